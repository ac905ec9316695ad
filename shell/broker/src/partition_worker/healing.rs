//! A damaged copy is made whole from the leader's, and a damaged leader is one no more.
//!
//! Found by the scrub or by whoever reads, damage is first noted: the controller is told not to let this broker lead the partition
//! (not_to_lead.rs), so that a leader becomes a follower where another replica is in sync. A follower then asks its leader again from
//! where the damage begins and takes nothing of what comes; the leader sees it behind, and the controller lets it go. Only then, when
//! nobody counts on it, the damaged segment and all that follow are given up, and copied again as by any replica that was away.
//!
//! Nothing is given up where this replica is the last in sync, where the partition has no other replica, or while this one is eligible
//! to lead (KIP-966): then it is promised to hold all that was acknowledged, and who is elected would lead without. So where letting
//! it go would leave fewer than `min.insync.replicas` and the cluster has eligible leader replicas, it stays as it is until another
//! replica is back: producers go on, and all but what is damaged can be read. Without them (their feature at 0) it heals even though
//! producers with `acks=all` must wait meanwhile: a damaged copy is no copy.
//!
//! Always true: what is damaged is cut off only while the metadata log names this replica neither in sync nor eligible, and its leader
//! has seen it behind.
//!
//! Neighbours: scrub.rs and reads.rs, which find damage; cutting.rs, which cuts; core/partition's `partition/follower`, which decides.

use super::PartitionWorker;
use crate::mailbox::PartitionKey;
use crate::topic_settings;
use barnabas_base::{BrokerId, DurationMs, Offset};
use barnabas_partition::Cut;
use std::time::Instant;

impl PartitionWorker {
    /// The scrub found damage, maybe where nobody has looked yet.
    pub(super) fn scrub_met_damage(&mut self, key: PartitionKey, offset: Offset) {
        let image = self.node.image.load_full();
        let row = image.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
        if row.is_some_and(|row| row.replicas().len() > 1) {
            // Why it cannot be opened is said there.
            let _ = self.open(key);
        }
        if let Some(replica) = self.replicas.get_mut(&key) {
            // What readers found sound before may be what has changed.
            replica.log.forget_sound();
        }
        self.met_damage(key, offset);
    }

    /// Damage was found in this partition's log, at `offset`.
    pub(super) fn met_damage(&mut self, key: PartitionKey, offset: Offset) {
        let Self { replicas, node, following, .. } = self;
        let Some(replica) = replicas.get_mut(&key).filter(|replica| !replica.partition.is_failed()) else {
            return;
        };
        let from = offset.max(replica.partition.log_start());
        if replica.repair.damaged_from.is_some_and(|known| known <= from) {
            return;
        }
        let image = node.image.load();
        let row = image.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
        if row.is_none_or(|row| row.replicas().len() < 2) {
            return;
        }
        replica.repair.damaged_from = Some(from);
        if node.not_to_lead.damaged(key) {
            let role = if replica.partition.is_leader() { "leads" } else { "follows" };
            tracing::warn!(
                partition = %replica.name.topic_partition, broker = %node.broker_id,
                "this broker {role} with a copy that is damaged from offset {from} on: others shall lead"
            );
        }
        if replica.following.is_some() {
            following.settle_soon(key);
        }
    }

    /// Goes on with a replica that is damaged and follows.
    pub(super) fn heal(&mut self, key: PartitionKey) {
        let Self { replicas, node, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let Some(from) = replica.repair.damaged_from.filter(|_| replica.truncation.is_none()) else { return };
        if from < replica.partition.log_start() || from >= replica.partition.log_end() {
            // It was deleted, or cut off.
            return self.is_whole(key);
        }
        let image = node.image.load();
        let row = image.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
        let (Some(row), Some((leader, epoch)), me) = (row, replica.following, node.broker_id) else { return };
        let now = node.clock.monotonic();
        if row.leader_epoch != epoch || replica.partition.leader_epoch() != epoch {
            return;
        }
        let is_in_sync = row.isr().contains(&me);
        let others = row.isr().len() - usize::from(is_in_sync);
        let topic = &replica.name.topic_partition.topic;
        let needed = usize::from(topic_settings::min_in_sync(node, &image, topic)).min(row.replicas().len());
        if is_in_sync && (others == 0 || image.features.elr_enabled() && others < needed) {
            return;
        }
        if replica.partition.asks_again_from().is_none() {
            replica.partition.ask_again(from);
            if replica.partition.asks_again_from().is_none() {
                // This leader has not answered it yet.
                return;
            }
            replica.repair.refetches_since = Some((now, is_in_sync));
            tracing::warn!(
                partition = %replica.name.topic_partition, broker = %me, %leader,
                "this copy is damaged from offset {from} on, which is asked for again; what is here is kept until nobody counts on it"
            );
        }
        // Another engine's leader sends records at once, and may have asked the controller to let this one join. It does no more once it
        // has let go of it, or after such a time.
        let patience = DurationMs(node.config.load().long("replica.lag.time.max.ms"));
        let is_let_go = |(since, was_in_sync)| was_in_sync || now.since(since) >= patience;
        let counts =
            is_in_sync || row.elr().contains(&me) || !replica.repair.refetches_since.is_some_and(is_let_go);
        let cut = replica.partition.heal(counts);
        let is_settled = replica.partition.fetch_position(replica.log.epochs()).is_some();
        if let (Cut::To(_) | Cut::StartAt(_), true) = (cut, is_settled) {
            self.give_up_damaged(key, from, leader);
        }
    }

    fn give_up_damaged(&mut self, key: PartitionKey, from: Offset, leader: BrokerId) {
        let Some(replica) = self.replicas.get(&key) else { return };
        let (start, end) = (replica.partition.log_start(), replica.partition.log_end());
        let base = replica.log.segment_base_of(from);
        let (to, cut) = if base > start { (base, Cut::To(base)) } else { (start, Cut::StartAt(start)) };
        tracing::warn!(
            partition = %replica.name.topic_partition, broker = %self.node.broker_id, %leader,
            "damaged from offset {from} on: offsets {to} up to {end} in {} are given up (whole segments, *.deleted for \
             file.delete.delay.ms) and copied again from the leader",
            replica.log.place().dir().display()
        );
        self.note_cut(key, cut, true);
    }

    /// Nothing is known to be damaged in it any more.
    pub(super) fn is_whole(&mut self, key: PartitionKey) {
        if let Some(replica) = self.replicas.get_mut(&key) {
            (replica.repair.damaged_from, replica.repair.refetches_since) = (None, None);
        }
        self.node.not_to_lead.healed(key);
    }

    /// What its leader has from `offset` on is damaged, as it says or as it looks here. It is asked for again, with a pause.
    pub(super) fn warn_of_leader(&self, key: PartitionKey, offset: Offset, what: &str) {
        let me = self.node.broker_id;
        let Some(replica) = self.replicas.get(&key) else { return };
        self.node.meter.fetches_damaged.one();
        let Some(unsaid) = self.following.damaged_leaders.happened(&key, Instant::now()) else { return };
        let leader = replica.following.map_or(BrokerId::NONE, |(leader, _)| leader);
        tracing::warn!(
            partition = %replica.name.topic_partition, broker = %me, %leader,
            "what the leader has from offset {offset} on is damaged ({what}): this replica cannot go on, and asks again{unsaid}"
        );
    }
}
