//! Share partitions: each lives beside its partition, in the partition's owner.
//!
//! core/replica's `SharePartitions` decides when one is loaded and dropped, and when its state is written. Here its
//! effects are carried out: the share coordinator is asked (share/load.rs, share/write.rs), dead letters are sent
//! (share/letters.rs), members are answered and woken.
//!
//! Fetches read the log as every other fetch does (reads.rs) from where the share partition says, and acquire in the
//! same turn: what was read cannot have changed. Acknowledgements are answered when the coordinator has written them.
//!
//! Share path 3 of 5. Before: core/api/src/k78_share_fetch.rs, k79_share_acknowledge.rs, through
//! requests/share/fetch.rs. After: core/replica/src/shares.rs,
//! share_persister.rs.

mod fetch;
mod letters;
mod load;
mod write;

use super::PartitionWorker;
use crate::mailbox::ImageChange;
use crate::mailbox::PartitionKey;
use crate::mailbox::share::{ShareAckCommand, ShareAckOutcome, ShareCommand, ShareFetchCommand, ShareItem};
use crate::mailbox::share::{ShareKey, ShareOutcome};
use crate::node::Node;
use barnabas_api::dead_letters::DeadLetters;
use barnabas_api::share::ShareGroupSettings;
use barnabas_base::{Map, MonotonicMs, Text};
use barnabas_metadata::{Image, ResourceType};
use barnabas_partition::{AckBatch, AckType, ShareSettings};
use barnabas_replica::{SharePartitions, SharesEffect};
use letters::Complaints;
use tokio::sync::oneshot;

/// The share partitions of a worker, and who waits for their answers.
#[derive(Debug, Default)]
pub(super) struct Shares {
    partitions: SharePartitions,
    replies: Map<u64, oneshot::Sender<Vec<ShareAckOutcome>>>,
    complaints: Complaints,
}

impl PartitionWorker {
    pub(super) fn take_share(&mut self, command: ShareCommand) {
        match command {
            ShareCommand::Fetch(fetch) => self.share_fetch(fetch),
            ShareCommand::Acknowledge(acknowledge) => self.share_acknowledge(acknowledge),
            ShareCommand::Release { group, member, partitions, is_last } => {
                let mut effects = Vec::new();
                self.shares.partitions.release((&group, &member), &partitions, is_last, &mut effects);
                self.carry_out_shares(effects);
            }
            ShareCommand::Pass { group, partitions } => {
                for partition in partitions {
                    self.wake_share(&group, partition);
                }
            }
            ShareCommand::Loaded { key, number, state } => self.share_loaded(&key, number, state),
            ShareCommand::Written { key, number, ids, result } => {
                let (now, mut effects) = (self.node.clock.monotonic(), Vec::new());
                self.shares.partitions.written((&key, number), &ids, result, now, &mut effects);
                self.carry_out_shares(effects);
            }
            ShareCommand::Delivered { key, number, ranges, result } => {
                self.shares.complaints.note(&key, result);
                let mut effects = Vec::new();
                self.shares.partitions.dead_lettered((&key, number), &ranges, &mut effects);
                self.carry_out_shares(effects);
            }
        }
    }

    /// When [`PartitionWorker::expire_shares`] is due.
    pub fn share_deadline(&self) -> Option<MonotonicMs> {
        self.shares.partitions.deadline()
    }

    /// Records that are in flight for share groups, and entries that keep them.
    pub fn shares_in_flight(&self) -> (u64, u64) {
        self.shares.partitions.in_flight()
    }

    /// Ends the locks whose time is over.
    pub fn expire_shares(&mut self) {
        let (now, mut effects) = (self.node.clock.monotonic(), Vec::new());
        let ended = self.shares.partitions.expire(now, &mut effects);
        self.node.workers.meter.share_locks_ended.add(ended);
        self.carry_out_shares(effects);
    }

    fn share_acknowledge(&mut self, command: ShareAckCommand) {
        let ShareAckCommand { group, member, items, reply } = command;
        items.iter().for_each(|item| count_acknowledged(&self.node, &item.batches));
        let (now, mut effects) = (self.node.clock.monotonic(), Vec::new());
        let number = self.shares.partitions.acknowledge((&group, &member), &items, now, &mut effects);
        self.shares.replies.insert(number, reply);
        self.carry_out_shares(effects);
    }

    /// Does what share partitions ask for.
    fn carry_out_shares(&mut self, effects: Vec<SharesEffect>) {
        for effect in effects {
            match effect {
                SharesEffect::Load { key, number, leader_epoch } => {
                    self.load_share(key, number, leader_epoch)
                }
                SharesEffect::Write { key, number, ids, write } => self.write_share(key, number, ids, write),
                SharesEffect::DeadLetters { key, number, given_up } => {
                    self.send_letters(key, number, given_up);
                }
                SharesEffect::Acknowledged { command, outcomes } => {
                    if let Some(reply) = self.shares.replies.remove(&command) {
                        // A connection that is gone does not read its answer.
                        let _ = reply.send(outcomes);
                    }
                }
                SharesEffect::WakeNext(key) => self.wake_share(&key.group, key.partition),
            }
        }
    }

    fn wake_share(&mut self, group: &Text, partition: PartitionKey) {
        if let Some(replica) = self.replicas.get_mut(&partition) {
            replica.share_waiters.wake_next(group);
        }
    }

    /// New leaders, epochs and settings.
    pub(super) fn shares_changed(&mut self, change: &ImageChange) {
        if self.shares.partitions.is_empty() {
            return;
        }
        let (image, me) = (&change.image, self.node.identity.broker_id);
        let led = |key: PartitionKey| {
            let state = image.topics.by_id(key.topic)?.partition(key.partition)?;
            (state.leader == me).then_some(state.leader_epoch)
        };
        let mut effects = Vec::new();
        self.shares.partitions.keep_led(led, &mut effects);
        self.carry_out_shares(effects);
        let kinds = change.changes.configs.iter().map(|resource| resource.kind);
        let are_concerned = change.changes.everything
            || change.changes.features
            || kinds.into_iter().any(|kind| matches!(kind, ResourceType::Group | ResourceType::Broker));
        if are_concerned {
            let Self { shares, node, .. } = self;
            shares.partitions.set_settings(|group| settings(group, image, node));
        }
    }

    /// The node stops: requests are no longer answered.
    pub(super) fn drop_shares(&mut self) {
        let mut effects = Vec::new();
        self.shares.partitions.discard_all(&mut effects);
        self.carry_out_shares(effects);
    }
}

/// Counts what a member says, record by record, before anybody has judged it, as Kafka does.
fn count_acknowledged(node: &Node, batches: &[AckBatch]) {
    let mut said = [0; 4];
    for batch in batches {
        let each = match batch.types.len() {
            1 => u64::try_from(batch.last.get() - batch.first.get() + 1).unwrap_or(0),
            _ => 1,
        };
        for kind in &batch.types {
            let place = match kind {
                AckType::Accept => 0,
                AckType::Release => 1,
                AckType::Reject => 2,
                AckType::Renew => 3,
                // No word of a consumer: it found nothing there.
                AckType::Gap => continue,
            };
            said[place] += each;
        }
    }
    node.workers.meter.share_acknowledged.iter().zip(said).for_each(|(counter, count)| counter.add(count));
}

/// What a group allows now.
fn settings(group: &str, image: &Image, node: &Node) -> ShareSettings {
    let of = ShareGroupSettings::of(group, image, &node.cluster.config.load());
    ShareSettings {
        lock: of.lock,
        deliveries_max: of.deliveries_max,
        in_flight_max: of.in_flight_max,
        may_renew: of.may_renew,
        dead_letters: DeadLetters::of(group, image).is_some(),
    }
}
