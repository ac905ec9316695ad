//! Repair of damaged replicas, carried out: damage is noted, the controller asked, damaged batches are overwritten, the
//! log is truncated. core/replica's `repair` decides.
//!
//! Neighbours: aside.rs, which fetches for a replica that stays in the ISR; scrub.rs and reads.rs, which find damage;
//! truncation.rs, which truncates; node/log_dirs/impaired_partitions.rs, which asks the controller;
//! node/cluster/known_by.rs, which knows how new the image is; core/replica/src/replica/repair.rs.

use crate::mailbox::PartitionKey;
use crate::node::topic_settings;
use crate::upkeep::scrub::name_damage;
use crate::worker::partition_worker::PartitionWorker;
use barnabas_api::replication::fetch;
use barnabas_base::{BrokerId, DurationMs, MonotonicMs, Offset};
use barnabas_partition::FetchPosition;
use barnabas_replica::{BothDamaged, RepairStep, RepairView, TruncationVerdict};
use barnabas_storage::StorageError;

/// What becomes of a damaged replica on broker `me`.
fn what_follows(leader: BrokerId, me: BrokerId) -> &'static str {
    match leader {
        BrokerId::NONE => "it is repaired from the leader, once another replica leads",
        _ if leader == me => {
            "this broker leads: leadership moves to another replica in the ISR or ELR, if there is one, and \
             the replica is repaired from that"
        }
        _ => "it is repaired from the leader",
    }
}

impl PartitionWorker {
    /// The scrub found damage, maybe where no reader has met it yet.
    pub fn scrub_met_damage(&mut self, key: PartitionKey, damage: &StorageError) {
        if self.has_other_replicas(key) {
            // A partition that cannot be opened has a line in the log already.
            let _ = self.open(key);
        }
        if let Some(replica) = self.replicas.get_mut(&key) {
            // What readers found sound before may be what has changed.
            replica.log.forget_sound();
        }
        if !self.node.log_dirs.impaired.is_offline(key) {
            self.read_failed(key, damage);
        }
    }

    /// Damage was found in this partition's log, at `offset`.
    pub fn met_damage(&mut self, key: PartitionKey, offset: Offset) {
        let has_others = self.has_other_replicas(key);
        let leader = self.leader_of(key);
        let Self { replicas, node, following, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let Some(from) = replica.note_damage(offset, has_others) else { return };
        if node.log_dirs.impaired.damaged(key) {
            let me = node.identity.broker_id;
            tracing::warn!(
                partition = %replica.name.topic_partition, broker = %me, %leader,
                "the replica of this broker is corrupt from offset {from}; {}", what_follows(leader, me)
            );
        }
        if replica.following.is_some() {
            following.settle_soon(key);
        }
    }

    /// By the newest metadata: the replica may not have its role yet.
    fn leader_of(&self, key: PartitionKey) -> BrokerId {
        let image = self.node.cluster.image.load();
        let row = image.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
        row.map_or(BrokerId::NONE, |row| row.leader)
    }

    pub fn has_other_replicas(&self, key: PartitionKey) -> bool {
        let image = self.node.cluster.image.load();
        let row = image.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
        row.is_some_and(|row| row.replicas().len() > 1)
    }

    /// Goes on with a replica that is damaged and follows. Costs nothing where none is.
    pub fn repair(&mut self, key: PartitionKey) {
        let Self { replicas, node, files, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        if !replica.repair.is_under_way() {
            return;
        }
        let leader = replica.following;
        // Before the image: what is known holds of that one and of all after it.
        let known_by = node.cluster.known_by.get();
        let image = node.cluster.image.load();
        let row = image.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
        let Some(row) = row else { return };
        let (name, directory) = (&replica.name.topic_partition, replica.directory);
        let was_compacted = || node.log_dirs.directories[directory].lock().cleaner_point(name).is_some();
        let has_no_holes = !replica.log.config().cleanup.compact && !was_compacted();
        let view = RepairView {
            me: node.identity.broker_id,
            row,
            known_by,
            min_in_sync: topic_settings::min_in_sync(node, &image, &name.topic),
            elr_enabled: image.features.elr_enabled(),
            lag_max: DurationMs(node.cluster.config.load().long("replica.lag.time.max.ms")),
            has_no_holes,
            now: node.clock.monotonic(),
        };
        let step = replica.repair_step(&view, &mut files[directory]);
        let leader = leader.map_or(BrokerId::NONE, |(leader, _)| leader);
        match step {
            Ok(step) => self.carry_out_repair(key, leader, step),
            Err(error) => self.mend_failed(key, &error),
        }
    }

    fn carry_out_repair(&mut self, key: PartitionKey, leader: BrokerId, step: RepairStep) {
        let Some(replica) = self.replicas.get(&key) else { return };
        let (partition, broker) = (&replica.name.topic_partition, self.node.identity.broker_id);
        match step {
            RepairStep::Wait => self.repair_later(key),
            RepairStep::FetchAside { from } => self.fetch_aside(key, from),
            RepairStep::Check => self.following.settle_soon(key),
            RepairStep::Repaired { mended } => {
                if let Some((from, to)) = mended {
                    tracing::info!(
                        %partition, %broker, %leader,
                        "replica repaired: the corrupt batches from offset {from} up to {to} were copied \
                         from the leader"
                    );
                }
                self.repaired(key);
                self.following.settle_soon(key);
            }
            RepairStep::Refetch { from } => {
                tracing::warn!(
                    %partition, %broker, %leader,
                    "replica is corrupt from offset {from}. Corrupt batches are fetched again from the \
                     leader; local data is kept"
                );
                // The fetcher has the place from before.
                self.following.settle_soon(key);
            }
            RepairStep::Ask | RepairStep::FetchOn => self.following.settle_soon(key),
            RepairStep::GiveUp { from, to, cut } => {
                let end = replica.partition.log_end();
                tracing::warn!(
                    %partition, %broker, %leader,
                    "replica is corrupt from offset {from}, and the leader's batches do not fit there: \
                     offsets {to} up to {end} in {}, all of which the leader has served, are deleted \
                     (whole segments, kept as *.deleted for file.delete.delay.ms) and fetched again from \
                     the leader",
                    replica.log.place().dir().display()
                );
                self.note_truncation(key, cut, true);
            }
        }
    }

    /// Takes what the leader has sent to a replica that fetches again what it has.
    pub fn take_again(
        &mut self,
        key: PartitionKey,
        asked: &FetchPosition,
        answer: fetch::Answer,
        now: MonotonicMs,
    ) {
        let Self { replicas, files, node, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        if replica.throttled.as_follower {
            node.peers.replication.throttles.follower.record(answer.records.len(), now);
        }
        let files = &mut files[replica.directory];
        let taken = replica.take_again(asked.offset, answer.records, answer.high_watermark, files);
        match taken {
            Ok(both) => self.warn_of_both(key, both),
            Err(error) => return self.mend_failed(key, &error),
        }
        self.repair(key);
        let Some(replica) = self.replicas.get(&key) else { return };
        let goes_on = replica.partition.fetch_position(replica.log.epochs());
        if goes_on.is_none_or(|position| position.offset == asked.offset) {
            // What came comes again.
            if let Some(fetcher) = self.following.fetcher_of(key) {
                fetcher.delayed(key, now);
            }
        }
    }

    /// The leader says that it cannot read what was asked for.
    pub fn leader_is_damaged(&mut self, key: PartitionKey, offset: Offset, what: &str) {
        let Some(replica) = self.replicas.get_mut(&key) else { return };
        let asks_again = replica.partition.asks_again_from().is_some();
        let both = replica.leader_is_damaged(offset);
        if !asks_again {
            return self.warn_of_leader(key, offset, what);
        }
        self.node.workers.meter.fetches_damaged.one();
        self.warn_of_both(key, both);
        self.repair(key);
    }

    /// A follower has asked this leader for `offset`, which is damaged here.
    pub fn refused_follower(&mut self, key: PartitionKey, follower: BrokerId, offset: Offset) {
        let Self { replicas, node, .. } = self;
        let image = node.cluster.image.load();
        let row = image.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
        let Some((replica, row)) = replicas.get_mut(&key).zip(row) else { return };
        let me = node.identity.broker_id;
        if replica.refused_follower(offset, follower, me, row) {
            let replicas: Vec<String> = row.replicas().iter().map(ToString::to_string).collect();
            let replicas = format!("[{}]", replicas.join(", "));
            tracing::error!(
                partition = %replica.name.topic_partition, broker = %me, %replicas,
                "no replica has a sound copy of the batch at offset {offset}: restore the partition's \
                 directory of one broker from a backup, or let consumers seek past it. Everything else is served"
            );
        }
    }

    pub(super) fn warn_of_both(&self, key: PartitionKey, both: Option<BothDamaged>) {
        let Some((replica, BothDamaged { own, leaders })) = self.replicas.get(&key).zip(both) else { return };
        let leader = replica.following.map_or(BrokerId::NONE, |(leader, _)| leader);
        tracing::warn!(
            partition = %replica.name.topic_partition, broker = %self.node.identity.broker_id, %leader,
            "this replica is corrupt at offset {own} and its leader at offset {leaders}: nothing is deleted. \
             What the leader can serve is copied; the rest waits until another replica leads"
        );
    }

    /// The log could not be mended. Any part of what was damaged may be overwritten.
    pub(super) fn mend_failed(&mut self, key: PartitionKey, error: &StorageError) {
        let Some(replica) = self.replicas.get(&key) else { return };
        let directory = replica.directory;
        match TruncationVerdict::of(error) {
            TruncationVerdict::Retry => {
                self.node.write_failed(directory, error);
                self.following.settle_later(key);
            }
            TruncationVerdict::Offline => {
                name_damage(&self.node, error);
                tracing::error!(
                    partition = %replica.name.topic_partition, %error,
                    "the log was repaired from the leader's, and cannot be read; the replica stays offline \
                     until the next start"
                );
                self.goes_offline(key);
            }
            TruncationVerdict::DirectoryFailed => {
                self.node.directory_failed(directory, error);
                self.directory_failed(directory);
            }
        }
    }

    /// No damage is known in it any more.
    pub fn repaired(&mut self, key: PartitionKey) {
        if let Some(replica) = self.replicas.get_mut(&key) {
            replica.forget_damage();
            self.node.log_dirs.damages.repaired(&replica.log.place().dir());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leader_is_not_said_to_be_repaired_from_itself() {
        let (me, other) = (BrokerId(1), BrokerId(2));
        assert!(what_follows(me, me).starts_with("this broker leads"));
        assert_eq!(what_follows(other, me), "it is repaired from the leader");
        assert!(what_follows(BrokerId::NONE, me).ends_with("once another replica leads"));
    }
}
