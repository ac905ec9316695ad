//! Repair of damaged replicas, carried out: damage is noted, the controller asked, the log truncated. core/replica's
//! `repair` decides.
//!
//! Neighbours: scrub.rs and reads.rs, which find damage; truncation.rs, which truncates;
//! node/log_dirs/impaired_partitions.rs, which asks the controller; node/cluster/known_by.rs, which knows how new the
//! image is; core/replica/src/replica/repair.rs.

use crate::mailbox::PartitionKey;
use crate::node::topic_settings;
use crate::worker::partition_worker::PartitionWorker;
use barnabas_base::{BrokerId, DurationMs, Offset};
use barnabas_replica::{RepairStep, RepairView};

impl PartitionWorker {
    /// The scrub found damage, maybe where no reader has met it yet.
    pub fn scrub_met_damage(&mut self, key: PartitionKey, offset: Offset) {
        if self.has_other_replicas(key) {
            // A partition that cannot be opened has a line in the log already.
            let _ = self.open(key);
        }
        if let Some(replica) = self.replicas.get_mut(&key) {
            // What readers found sound before may be what has changed.
            replica.log.forget_sound();
        }
        self.met_damage(key, offset);
    }

    /// Damage was found in this partition's log, at `offset`.
    pub fn met_damage(&mut self, key: PartitionKey, offset: Offset) {
        let has_others = self.has_other_replicas(key);
        let Self { replicas, node, following, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let Some(from) = replica.note_damage(offset, has_others) else { return };
        if node.log_dirs.impaired.damaged(key) {
            let (role, next) = match replica.partition.is_leader() {
                true => ("leads", "leadership moves to another replica in the ISR or ELR, if there is one"),
                false => ("follows", "it is repaired from the leader"),
            };
            tracing::warn!(
                partition = %replica.name.topic_partition, broker = %node.identity.broker_id,
                "this broker {role}, and its replica is corrupt from offset {from}; {next}"
            );
        }
        if replica.following.is_some() {
            following.settle_soon(key);
        }
    }

    pub fn has_other_replicas(&self, key: PartitionKey) -> bool {
        let image = self.node.cluster.image.load();
        let row = image.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
        row.is_some_and(|row| row.replicas().len() > 1)
    }

    /// Goes on with a replica that is damaged and follows. Costs nothing where none is.
    pub fn repair(&mut self, key: PartitionKey) {
        let Self { replicas, node, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let Some(leader) = replica.repair.damaged_from().map(|_| replica.following) else { return };
        // Before the image: what is known holds of that one and of all after it.
        let known_by = node.cluster.known_by.get();
        let image = node.cluster.image.load();
        let row = image.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
        let Some(row) = row else { return };
        let view = RepairView {
            me: node.identity.broker_id,
            row,
            known_by,
            min_in_sync: topic_settings::min_in_sync(node, &image, &replica.name.topic_partition.topic),
            elr_enabled: image.features.elr_enabled(),
            lag_max: DurationMs(node.cluster.config.load().long("replica.lag.time.max.ms")),
            now: node.clock.monotonic(),
        };
        let step = replica.repair_step(&view);
        let (partition, broker) = (&replica.name.topic_partition, node.identity.broker_id);
        let leader = leader.map_or(BrokerId::NONE, |(leader, _)| leader);
        match step {
            RepairStep::Wait => {}
            RepairStep::Repaired => self.repaired(key),
            RepairStep::Refetch { from } => {
                tracing::warn!(
                    %partition, %broker, %leader,
                    "replica is corrupt from offset {from}. It will be fetched again from the leader once \
                     this replica has left the ISR and ELR; local data is kept until then"
                );
                // The fetcher has the place from before.
                self.following.settle_soon(key);
            }
            RepairStep::FetchOn => self.following.settle_soon(key),
            RepairStep::GiveUp { from, to, cut } => {
                let end = replica.partition.log_end();
                tracing::warn!(
                    %partition, %broker, %leader,
                    "replica is corrupt from offset {from}: offsets {to} up to {end} in {} are deleted \
                     (whole segments, kept as *.deleted for file.delete.delay.ms) and fetched again from \
                     the leader",
                    replica.log.place().dir().display()
                );
                self.note_truncation(key, cut, true);
            }
        }
    }

    /// No damage is known in it any more.
    pub fn repaired(&mut self, key: PartitionKey) {
        if let Some(replica) = self.replicas.get_mut(&key) {
            replica.forget_damage();
        }
        self.node.log_dirs.impaired.healed(key);
    }

    /// What its leader has from `offset` on is damaged, as it says or as it looks here. It is asked for again, with a
    /// pause.
    pub fn warn_of_leader(&self, key: PartitionKey, offset: Offset, what: &str) {
        let me = self.node.identity.broker_id;
        let Some(replica) = self.replicas.get(&key) else { return };
        self.node.workers.meter.fetches_damaged.one();
        let Some(unsaid) = self.following.damaged_leaders.happened(&key, barnabas_clock::now()) else {
            return;
        };
        let leader = replica.following.map_or(BrokerId::NONE, |(leader, _)| leader);
        tracing::warn!(
            partition = %replica.name.topic_partition, broker = %me, %leader,
            "the leader's records from offset {offset} are corrupt ({what}); this replica cannot \
             continue and will retry{unsaid}"
        );
    }
}
