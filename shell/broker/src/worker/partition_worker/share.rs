//! Share partitions: each lives beside its partition, in the partition's owner.
//!
//! A share partition is made when a member of its group first fetches from the partition: its state is read from the
//! share coordinator, and where there is none the group begins where its settings say. It goes when the partition is
//! led elsewhere or under another epoch, when its state is fenced, and when no member of the group has a session on
//! this node any more.
//!
//! Fetches read the log as every other fetch does (reads.rs) from where the share partition says, and acquire in the
//! same turn: what was read cannot have changed. Acknowledgements are answered when the coordinator has written them.
//!
//! Always true:
//! 1. writes of one share partition are sent one after another, in the order in which they came to be; those that came
//!    while one was under way are sent together
//! 2. an answer for an earlier instance of a share partition is ignored
//! 3. what is given up is written to the group's dead letters, where it has some, before it is archived
//!    (share/letters.rs)
//!
//! Share path 3 of 5. Before: core/api/src/k78_share_fetch.rs, k79_share_acknowledge.rs, through
//! requests/share/fetch.rs. After: core/partition's `SharePartition`, share_persister.rs.

mod fetch;
mod letters;
mod load;
mod write;

use super::PartitionWorker;
use crate::mailbox::ImageChange;
use crate::mailbox::PartitionKey;
use crate::mailbox::share::{
    ShareAckCommand, ShareAckOutcome, ShareCommand, ShareDeclined, ShareFetchCommand, ShareItem, ShareKey,
    ShareOutcome, ShareRead,
};
use crate::node::Node;
use barnabas_api::dead_letters::DeadLetters;
use barnabas_api::share::ShareGroupSettings;
use barnabas_base::{Map, MonotonicMs, Text};
use barnabas_metadata::{Image, ResourceType};
use barnabas_partition::{
    AckBatch, AckType, ShareEffect, SharePartition, ShareRefusal, ShareSettings, StateBatch, StateWrite,
    Ticket, WriteId,
};
use letters::{Complaints, Given, Letters};
use tokio::sync::oneshot;

/// The share partitions of a worker.
#[derive(Debug, Default)]
pub(super) struct Shares {
    map: Map<ShareKey, Share>,
    /// Share partitions made so far.
    made: u64,
    tickets: u64,
    /// Acknowledgements that wait to be written.
    waiting: Map<Ticket, (u64, u32)>,
    answers: Map<u64, Answer>,
    /// No lock ends before this.
    next_lock: Option<MonotonicMs>,
    complaints: Complaints,
}

/// One command's acknowledgements, as far as they are answered.
#[derive(Debug)]
struct Answer {
    left: usize,
    outcomes: Vec<ShareAckOutcome>,
    reply: oneshot::Sender<Vec<ShareAckOutcome>>,
}

#[derive(Debug)]
struct Share {
    /// Of those that the worker has made.
    number: u64,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Loading,
    /// The state could not be read: the next fetch gets the error, and the one after that tries again.
    Failed(ShareDeclined),
    Active(Box<Active>),
}

#[derive(Debug)]
struct Active {
    machine: SharePartition,
    /// To be sent once what is under way is written.
    queue: Vec<(WriteId, StateWrite)>,
    is_writing: bool,
    letters: Letters,
    /// The group has no members any more: the share partition is dropped once everything is written.
    is_leaving: bool,
    /// As the last read had it, to guess how much to read.
    bytes_per_record: usize,
}

impl Active {
    /// No answer is outstanding.
    fn is_idle(&self) -> bool {
        self.machine.pending() == 0 && self.letters.are_done()
    }
}

impl PartitionWorker {
    pub(super) fn take_share(&mut self, command: ShareCommand) {
        match command {
            ShareCommand::Fetch(fetch) => self.share_fetch(fetch),
            ShareCommand::Acknowledge(acknowledge) => self.share_acknowledge(acknowledge),
            ShareCommand::Release { group, member, partitions, is_last } => {
                self.share_release(&group, &member, &partitions, is_last);
            }
            ShareCommand::Pass { group, partitions } => {
                for partition in partitions {
                    self.wake_share(&group, partition);
                }
            }
            ShareCommand::Loaded { key, number, state } => self.share_loaded(&key, number, state),
            ShareCommand::Written { key, number, ids, result } => {
                self.share_written(&key, number, &ids, result);
            }
            ShareCommand::Delivered { key, number, ranges, result } => {
                self.letters_delivered(&key, number, &ranges, result);
            }
        }
    }

    /// When [`PartitionWorker::expire_shares`] is due.
    pub fn share_deadline(&self) -> Option<MonotonicMs> {
        self.shares.next_lock
    }

    /// Records that are in flight for share groups, and entries that keep them.
    pub fn shares_in_flight(&self) -> (u64, u64) {
        self.shares.active().fold((0, 0), |(records, batches), (_, share)| {
            let in_flight = u64::try_from(share.machine.in_flight()).unwrap_or(0);
            (records + in_flight, batches + share.machine.in_flight_batches() as u64)
        })
    }

    /// Ends the locks whose time is over.
    pub fn expire_shares(&mut self) {
        let now = self.node.clock.monotonic();
        if self.shares.next_lock.is_none_or(|at| at > now) {
            return;
        }
        let is_due = |machine: &SharePartition| machine.next_deadline().is_some_and(|at| at <= now);
        let due: Vec<ShareKey> = self
            .shares
            .active()
            .filter(|(_, share)| is_due(&share.machine))
            .map(|(key, _)| key.clone())
            .collect();
        for key in due {
            let mut effects = Vec::new();
            if let Some(share) = self.shares.get_active(&key) {
                share.machine.expire(now, &mut effects);
            }
            let ended = effects.iter().map(|effect| match effect {
                ShareEffect::Write(_, write) => records_of(&write.batches),
                _ => 0,
            });
            self.node.workers.meter.share_locks_ended.add(ended.sum());
            self.carry_out_share(&key, effects);
        }
        self.shares.next_lock =
            self.shares.active().filter_map(|(_, share)| share.machine.next_deadline()).min();
    }

    fn share_acknowledge(&mut self, command: ShareAckCommand) {
        let ShareAckCommand { group, member, items, reply } = command;
        let now = self.node.clock.monotonic();
        self.shares.tickets += 1;
        let number = self.shares.tickets;
        let left = items.len();
        self.shares.answers.insert(number, Answer { left, outcomes: Vec::with_capacity(left), reply });
        for item in items {
            count_acknowledged(&self.node, &item.batches);
            let key = ShareKey { group: group.clone(), partition: item.partition };
            self.shares.tickets += 1;
            let ticket = Ticket(self.shares.tickets);
            self.shares.waiting.insert(ticket, (number, item.slot));
            let mut effects = Vec::new();
            match self.shares.map.get_mut(&key).map(|share| &mut share.stage) {
                Some(Stage::Active(share)) => {
                    share.machine.acknowledge(&member, &item.batches, ticket, now, &mut effects);
                }
                // Whatever was acquired was so by a leader before this one.
                Some(Stage::Loading) => {
                    let none = ShareRefusal::RecordState("Batch record not found. The state is being read.");
                    self.shares.answer(ticket, Err(ShareDeclined::Refused(none)));
                }
                Some(Stage::Failed(_)) | None => self.shares.answer(ticket, Err(ShareDeclined::Unknown)),
            }
            self.carry_out_share(&key, effects);
        }
    }

    fn share_release(&mut self, group: &Text, member: &Text, partitions: &[PartitionKey], is_last: bool) {
        for &partition in partitions {
            let key = ShareKey { group: group.clone(), partition };
            self.shares.tickets += 1;
            let ticket = Ticket(self.shares.tickets);
            let mut effects = Vec::new();
            if let Some(share) = self.shares.get_active(&key) {
                share.machine.release_member(member, ticket, &mut effects);
            }
            self.carry_out_share(&key, effects);
        }
        if is_last {
            let of_group = self.shares.map.iter_mut().filter(|(key, _)| key.group == *group);
            let mut idle = Vec::new();
            for (key, share) in of_group {
                match &mut share.stage {
                    Stage::Active(active) => {
                        active.is_leaving = true;
                        if active.is_idle() {
                            idle.push(key.clone());
                        }
                    }
                    Stage::Failed(_) => idle.push(key.clone()),
                    Stage::Loading => {}
                }
            }
            idle.iter().for_each(|key| self.drop_share(key));
        }
    }

    /// Does what a share partition said.
    fn carry_out_share(&mut self, key: &ShareKey, effects: Vec<ShareEffect>) {
        let mut is_fenced = false;
        for effect in effects {
            match effect {
                ShareEffect::Write(id, write) => {
                    if let Some(share) = self.shares.get_active(key) {
                        share.queue.push((id, write));
                    }
                }
                ShareEffect::Answer(ticket, result) => {
                    is_fenced |= result.is_err_and(ShareRefusal::is_fenced);
                    self.shares.answer(ticket, result.map_err(ShareDeclined::Refused));
                }
                ShareEffect::DeadLetter { first, last, delivery_count, cause } => {
                    if let Some(share) = self.shares.get_active(key) {
                        share.letters.push(Given { first, last, delivery_count, cause });
                    }
                }
                ShareEffect::Fetchable => self.wake_share(&key.group, key.partition),
            }
        }
        if is_fenced {
            self.drop_share(key);
        } else {
            self.send_share_writes(key);
            self.send_letters(key);
        }
    }

    fn wake_share(&mut self, group: &Text, partition: PartitionKey) {
        if let Some(replica) = self.replicas.get_mut(&partition) {
            replica.share_waiters.wake_next(group);
        }
    }

    /// Drops a share partition. Requests that wait for a write are answered NOT_LEADER_OR_FOLLOWER.
    fn drop_share(&mut self, key: &ShareKey) {
        let Some(Share { stage: Stage::Active(share), .. }) = self.shares.map.remove(key) else { return };
        let mut effects = Vec::new();
        share.machine.fence(&mut effects);
        for effect in effects {
            if let ShareEffect::Answer(ticket, result) = effect {
                self.shares.answer(ticket, result.map_err(ShareDeclined::Refused));
            }
        }
        self.wake_share(&key.group, key.partition);
    }

    /// New leaders, epochs and settings.
    pub(super) fn shares_changed(&mut self, change: &ImageChange) {
        if self.shares.map.is_empty() {
            return;
        }
        let image = &change.image;
        let is_lost = |key: &ShareKey, share: &Share| {
            let topic = image.topics.by_id(key.partition.topic);
            let state = topic.and_then(|topic| topic.partition(key.partition.partition));
            let led = state
                .filter(|state| state.leader == self.node.identity.broker_id)
                .map(|state| state.leader_epoch);
            match &share.stage {
                Stage::Active(active) => led != Some(active.machine.leader_epoch()),
                Stage::Loading | Stage::Failed(_) => led.is_none(),
            }
        };
        let lost: Vec<ShareKey> = self
            .shares
            .map
            .iter()
            .filter(|(key, share)| is_lost(key, share))
            .map(|(key, _)| key.clone())
            .collect();
        lost.iter().for_each(|key| self.drop_share(key));
        let kinds = change.changes.configs.iter().map(|resource| resource.kind);
        let are_concerned = change.changes.everything
            || change.changes.features
            || kinds.into_iter().any(|kind| matches!(kind, ResourceType::Group | ResourceType::Broker));
        if are_concerned {
            let Self { shares, node, .. } = self;
            for (key, share) in &mut shares.map {
                if let Stage::Active(active) = &mut share.stage {
                    active.machine.set_settings(settings(&key.group, image, node));
                }
            }
        }
    }

    /// The node stops: requests are no longer answered.
    pub(super) fn drop_shares(&mut self) {
        let keys: Vec<ShareKey> = self.shares.map.keys().cloned().collect();
        keys.iter().for_each(|key| self.drop_share(key));
        self.shares.next_lock = None;
    }
}

impl Shares {
    fn active(&self) -> impl Iterator<Item = (&ShareKey, &Active)> {
        self.map.iter().filter_map(|(key, share)| match &share.stage {
            Stage::Active(active) => Some((key, &**active)),
            Stage::Loading | Stage::Failed(_) => None,
        })
    }

    fn get_active(&mut self, key: &ShareKey) -> Option<&mut Active> {
        match &mut self.map.get_mut(key)?.stage {
            Stage::Active(active) => Some(active),
            Stage::Loading | Stage::Failed(_) => None,
        }
    }

    /// Answers one acknowledgement; the last one completes the command. The release of a member has no waiting
    /// caller.
    fn answer(&mut self, ticket: Ticket, result: Result<(), ShareDeclined>) {
        let Some((number, slot)) = self.waiting.remove(&ticket) else { return };
        let Some(answer) = self.answers.get_mut(&number) else { return };
        answer.outcomes.push(ShareAckOutcome { slot, result });
        answer.left -= 1;
        if answer.left == 0
            && let Some(Answer { outcomes, reply, .. }) = self.answers.remove(&number)
        {
            // A connection that is gone does not hear its answer.
            let _ = reply.send(outcomes);
        }
    }
}

fn records_of(batches: &[StateBatch]) -> u64 {
    batches.iter().map(|batch| u64::try_from(batch.last.get() - batch.first.get() + 1).unwrap_or(0)).sum()
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
