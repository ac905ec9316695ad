//! One partition of `__share_group_state`: its share-partitions.
//!
//! Always true (checked by [`ShareStateShard::violations`]):
//! 1. every ticket is answered exactly once
//! 2. what is answered rests on records that are on disk
//! 3. memory is what a replay of the log gives, and what is under way on top
//! 4. nothing is pruned that a replay needs
//! 5. what the room says is held is what the share-partitions take; a state that fits into no snapshot is not written
//!
//! Before: shell/broker/src/routing/share_persister.rs, coordinator_worker.rs. After: the partition, by way of
//! [`ShareStateEffect::Append`].

mod load;
#[cfg(test)]
mod tests;
mod upkeep;

use std::sync::Arc;

use barnabas_base::{DurationMs, ErrorCode, LeaderEpoch, Map, MonotonicMs, Offset, PartitionIndex, TopicId};
use barnabas_metadata::Image;

use super::ShareStateConfig;
use super::entry::{Change, Entry};
use super::record;
use super::request::{
    SharePartitionKey, ShareStateEffect, ShareStateRefusal, ShareStateRequest, ShareStateResponse,
    ShareStateSummary,
};
use super::state::{ShareState, StateBatch, Update};
use crate::framework::Room;
use crate::framework::append_refusal;
use crate::framework::{BatchId, Held, Now, Pending, Record, Refusable, Ticket, Timers};

const NEGATIVE_PARTITION: &str = "A partition has no negative number.";
const NEGATIVE_LEADER_EPOCH: &str = "The leader epoch must not be negative.";
const NEGATIVE_STATE_EPOCH: &str = "The state epoch must not be negative.";
const NO_ROOM: &str = "The coordinators of this broker hold as much as groups.memory.max.bytes allows.";
const NOT_INITIALIZED: &str = "The state of this share-partition is not initialized.";

/// What one batch of a state takes in a snapshot's record, and what the rest of the record takes at most, beside the
/// group's id.
const BATCH_RECORD_BYTES: usize = 20;
const SNAPSHOT_BYTES: usize = 256;

/// How much a shard holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShareStateStats {
    pub share_partitions: usize,
    pub pending_batches: usize,
}

/// What a shard waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum TimerKey {
    /// Redundant records are looked for.
    Prune,
    /// Search for idle share-partitions.
    Cold,
}

/// The coordinator of the share-partitions of one partition.
///
/// Life: [`ShareStateShard::new`], [`ShareStateShard::replay_batches`] for all that the partition holds, from its
/// start, [`ShareStateShard::activate`]; then requests and reports; in the end [`ShareStateShard::unload`]. Until
/// `activate`, every request gets COORDINATOR_LOAD_IN_PROGRESS.
#[derive(Debug)]
pub struct ShareStateShard {
    entries: Map<SharePartitionKey, Entry>,
    config: ShareStateConfig,
    image: Image,
    timers: Timers<TimerKey>,
    /// With each batch the share-partitions that it changes.
    pending: Pending<Vec<SharePartitionKey>, ShareStateResponse>,
    /// After the last record that is known to be on disk.
    end: Offset,
    /// What was last asked to be pruned.
    pruned: Offset,
    room: Room,
    now: Now,
    is_active: bool,
    effects: Vec<ShareStateEffect>,
}

type No = ShareStateRefusal;

impl ShareStateShard {
    pub fn new(config: ShareStateConfig) -> Self {
        Self {
            entries: Map::default(),
            config,
            image: Image::default(),
            timers: Timers::default(),
            pending: Pending::default(),
            end: Offset::ZERO,
            pruned: Offset::ZERO,
            room: Room::default(),
            now: Now { wall: barnabas_base::TimestampMs(0), mono: MonotonicMs(0) },
            is_active: false,
            effects: Vec::new(),
        }
    }

    /// Works on one request. Its answer is among the effects of this or of a later call, exactly once.
    pub fn handle(&mut self, request: ShareStateRequest, ticket: Ticket, now: Now) -> Vec<ShareStateEffect> {
        self.now = now;
        let refusal: Result<(), No> = if !self.is_active {
            Err(ErrorCode::CoordinatorLoadInProgress.into())
        } else if !request.is_writable() {
            Err(ErrorCode::InvalidRequest.into())
        } else if request.writes() && self.pending.len() >= self.config.pending_batches_max {
            Err(ErrorCode::CoordinatorNotAvailable.into())
        } else {
            self.dispatch(&request, ticket)
        };
        if let Err(no) = refusal {
            self.answer(ticket, request.refuse(no));
        }
        self.take_effects()
    }

    fn dispatch(&mut self, request: &ShareStateRequest, ticket: Ticket) -> Result<(), No> {
        match request {
            ShareStateRequest::Initialize { key, state_epoch, start_offset } => {
                self.initialize(key, *state_epoch, *start_offset, ticket)
            }
            ShareStateRequest::Read { key, leader_epoch } => self.read(key, *leader_epoch, ticket),
            ShareStateRequest::Write {
                key,
                state_epoch,
                leader_epoch,
                start_offset,
                delivery_complete_count,
                batches,
            } => {
                self.check_write(key, *leader_epoch, *state_epoch)?;
                self.write(key, *start_offset, *delivery_complete_count, batches, ticket)
            }
            ShareStateRequest::Delete { key } => self.delete(key, ticket),
            ShareStateRequest::ReadSummary { key } => self.summarize(key, ticket),
        }
    }

    /// # Source
    /// Kafka 4.4 `ShareCoordinatorShard.initializeState`.
    fn initialize(
        &mut self,
        key: &SharePartitionKey,
        state_epoch: i32,
        start: Offset,
        ticket: Ticket,
    ) -> Result<(), No> {
        check_partition(key)?;
        if state_epoch < 0 {
            return Err(invalid(NEGATIVE_STATE_EPOCH));
        }
        let known = self.latest(key).cloned();
        if known.as_ref().is_some_and(|known| known.state_epoch > state_epoch) {
            return Err(ErrorCode::FencedStateEpoch.into());
        }
        self.check_exists(key)?;
        self.find_room(key, 0, ErrorCode::GroupMaxSizeReached)?;
        let state = ShareState::begin(known.as_deref(), state_epoch, start, self.now.wall);
        let record = record::snapshot(key, &state);
        let batch = self.append(vec![record], vec![(key.clone(), Change::Snapshot(Arc::new(state)))]);
        self.answer_after(batch, ticket, ShareStateResponse::Done(Ok(())));
        Ok(())
    }

    /// A new leader's epoch is written down before it is answered, so that the last one can write nothing more.
    ///
    /// # Source
    /// Kafka 4.4 `ShareCoordinatorShard.readStateAndMaybeUpdateLeaderEpoch`.
    fn read(&mut self, key: &SharePartitionKey, leader_epoch: LeaderEpoch, ticket: Ticket) -> Result<(), No> {
        check_partition(key)?;
        if leader_epoch.get() < 0 {
            return Err(invalid(NEGATIVE_LEADER_EPOCH));
        }
        let Some(known) = self.latest(key).cloned() else { return Err(invalid(NOT_INITIALIZED)) };
        if known.newest_leader_epoch > leader_epoch {
            return Err(ErrorCode::FencedLeaderEpoch.into());
        }
        self.check_exists(key)?;
        let batch = if known.newest_leader_epoch == leader_epoch {
            self.entries.get(key).and_then(Entry::newest).unwrap_or_default()
        } else {
            let update = Update {
                snapshot_epoch: known.snapshot_epoch,
                leader_epoch,
                start_offset: known.start_offset,
                delivery_complete_count: known.delivery_complete_count,
                batches: Vec::new(),
            };
            self.append_update(key, &known, update)?
        };
        self.answer_after(batch, ticket, ShareStateResponse::Read(Ok(known)));
        Ok(())
    }

    /// # Source
    /// Kafka 4.4 `ShareCoordinatorShard.maybeGetWriteStateError`; the order decides which error wins.
    fn check_write(
        &self,
        key: &SharePartitionKey,
        leader_epoch: LeaderEpoch,
        state_epoch: i32,
    ) -> Result<(), No> {
        check_partition(key)?;
        if leader_epoch.get() < 0 {
            return Err(invalid(NEGATIVE_LEADER_EPOCH));
        }
        if state_epoch < 0 {
            return Err(invalid(NEGATIVE_STATE_EPOCH));
        }
        let Some(known) = self.latest(key) else { return Err(invalid(NOT_INITIALIZED)) };
        if known.newest_leader_epoch > leader_epoch {
            return Err(ErrorCode::FencedLeaderEpoch.into());
        }
        if known.state_epoch > state_epoch {
            return Err(ErrorCode::FencedStateEpoch.into());
        }
        self.check_exists(key)
    }

    fn write(
        &mut self,
        key: &SharePartitionKey,
        start: Offset,
        complete: i32,
        batches: &[StateBatch],
        ticket: Ticket,
    ) -> Result<(), No> {
        let Some(known) = self.latest(key).cloned() else { return Err(invalid(NOT_INITIALIZED)) };
        if batches.len() > self.batches_max(key) {
            return Err(append_refusal(ErrorCode::RecordListTooLarge).into());
        }
        let start_offset = start.max(known.start_offset);
        let update = Update {
            snapshot_epoch: known.snapshot_epoch,
            leader_epoch: known.leader_epoch,
            start_offset,
            delivery_complete_count: match start.cmp(&known.start_offset) {
                std::cmp::Ordering::Greater => complete,
                std::cmp::Ordering::Equal => complete.max(known.delivery_complete_count),
                std::cmp::Ordering::Less => known.delivery_complete_count,
            },
            batches: super::state::combine(&[], batches, start_offset),
        };
        let batch = self.append_update(key, &known, update)?;
        self.answer_after(batch, ticket, ShareStateResponse::Done(Ok(())));
        Ok(())
    }

    /// An update, or a whole snapshot where there have been enough updates.
    fn append_update(
        &mut self,
        key: &SharePartitionKey,
        known: &Arc<ShareState>,
        update: Update,
    ) -> Result<BatchId, No> {
        let (most, has) = (self.batches_max(key), known.batches.len());
        // Each new batch cuts off at most two.
        if has + 2 * update.batches.len() > most && known.merged(&update).batches.len() > most {
            return Err(append_refusal(ErrorCode::RecordListTooLarge).into());
        }
        self.find_room(key, update.batches.len(), ErrorCode::CoordinatorNotAvailable)?;
        let updates = self.entries.get(key).map_or(0, |entry| entry.updates);
        let (record, change) = if updates >= self.config.updates_per_snapshot {
            let state = known.merged(&update).as_snapshot(self.now.wall, self.now.wall);
            (record::snapshot(key, &state), Change::Snapshot(Arc::new(state)))
        } else {
            (record::update(key, &update), Change::Update(update))
        };
        if record.bytes() > self.config.batch_bytes_max {
            return Err(append_refusal(ErrorCode::RecordListTooLarge).into());
        }
        Ok(self.append(vec![record], vec![(key.clone(), change)]))
    }

    /// Batches of a state whose snapshot can be written.
    fn batches_max(&self, key: &SharePartitionKey) -> usize {
        let rest = SNAPSHOT_BYTES + key.group.len();
        self.config.batch_bytes_max.saturating_sub(rest) / BATCH_RECORD_BYTES
    }

    /// Whether the node may hold what a change of so many batches makes of the share-partition.
    fn find_room(&mut self, key: &SharePartitionKey, batches: usize, refusal: ErrorCode) -> Result<(), No> {
        let entry = self.entries.get(key);
        let before = entry.map_or(0, |entry| bytes(key, entry));
        let now = key_bytes(key) + entry.unwrap_or(&Entry::default()).bytes_with(batches);
        if self.room.has(before, now, self.config.memory_bytes_max) {
            return Ok(());
        }
        self.room.refuse_for_node(self.config.memory_bytes_max);
        Err(ShareStateRefusal { code: refusal, why: Some(NO_ROOM) })
    }

    /// What the share-partitions hold, and refusals for want of room.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// Bytes that the node's other shards hold now.
    pub fn others_hold(&mut self, bytes: usize) {
        self.room.others_hold(bytes);
    }

    fn delete(&mut self, key: &SharePartitionKey, ticket: Ticket) -> Result<(), No> {
        check_partition(key)?;
        self.check_exists(key)?;
        let done = ShareStateResponse::Done(Ok(()));
        if self.latest(key).is_none() {
            // As after a deletion whose answer was lost.
            let batch = self.entries.get(key).and_then(Entry::newest).unwrap_or_default();
            self.answer_after(batch, ticket, done);
            return Ok(());
        }
        let batch = self.append(vec![record::tombstone(key)], vec![(key.clone(), Change::End)]);
        self.answer_after(batch, ticket, done);
        Ok(())
    }

    fn summarize(&mut self, key: &SharePartitionKey, ticket: Ticket) -> Result<(), No> {
        check_partition(key)?;
        self.check_exists(key)?;
        let nothing = ShareStateSummary {
            state_epoch: 0,
            leader_epoch: LeaderEpoch(0),
            start_offset: Offset::NONE,
            delivery_complete_count: -1,
        };
        let summary = self.latest(key).map_or(nothing, |known| ShareStateSummary {
            state_epoch: known.state_epoch,
            leader_epoch: known.leader_epoch,
            start_offset: known.start_offset,
            delivery_complete_count: known.delivery_complete_count,
        });
        let batch = self.entries.get(key).and_then(Entry::newest).unwrap_or_default();
        self.answer_after(batch, ticket, ShareStateResponse::Summary(Ok(summary)));
        Ok(())
    }

    /// All batches up to `through` are as safe as they are to be (but for those that were said to have failed). `base`:
    /// where the first record of `through` is; said for each batch by itself.
    pub fn durable(&mut self, through: BatchId, base: Offset, now: Now) -> Vec<ShareStateEffect> {
        self.now = now;
        while let Some(closed) = self.pending.pop_durable(through) {
            assert!(closed.id == through, "it is not known where batch {} is", closed.id.0);
            let keys = closed.then.unwrap_or_default();
            self.end = self.end.max(base.plus(keys.len() as i64));
            for key in keys {
                self.entry_changes(&key, |entry| entry.commit(closed.id, base));
            }
            for (ticket, response) in closed.answers {
                self.answer(ticket, response);
            }
        }
        self.take_effects()
    }

    /// `batch` was not appended and never will be; other batches are not concerned. Kafka's error code says why.
    pub fn failed(&mut self, batch: BatchId, error: ErrorCode, now: Now) -> Vec<ShareStateEffect> {
        self.now = now;
        if let Some(closed) = self.pending.take_failed(batch) {
            for key in closed.then.into_iter().flatten() {
                self.entry_changes(&key, |entry| entry.revert(batch));
            }
            self.refuse_all(closed.answers, append_refusal(error));
        }
        self.take_effects()
    }

    /// When to call [`ShareStateShard::tick`] at the latest.
    pub fn next_deadline(&self) -> Option<MonotonicMs> {
        [self.timers.next(), self.pending.deadline()].into_iter().flatten().min()
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Now) -> Vec<ShareStateEffect> {
        self.now = now;
        while let Some((_, answers)) = self.pending.take_overdue(now.mono) {
            self.refuse_all(answers, append_refusal(ErrorCode::RequestTimedOut));
        }
        while let Some(key) = self.timers.take_due(now.mono) {
            match key {
                TimerKey::Prune => self.prune(),
                TimerKey::Cold => self.snapshot_cold(),
            }
        }
        self.take_effects()
    }

    /// Settings that changed hold from now on.
    pub fn set_config(&mut self, config: ShareStateConfig) {
        self.config = config;
    }

    /// The cluster looks like this now.
    pub fn image_changed(&mut self, image: &Image) {
        self.image = image.clone();
    }

    /// Another broker leads the partition, or its log is gone: everybody who waits is sent away.
    pub fn unload(mut self) -> Vec<ShareStateEffect> {
        while let Some(closed) = self.pending.pop_durable(BatchId(u64::MAX)) {
            self.refuse_all(closed.answers, ErrorCode::NotCoordinator);
        }
        self.take_effects()
    }

    pub fn stats(&self) -> ShareStateStats {
        ShareStateStats { share_partitions: self.entries.len(), pending_batches: self.pending.len() }
    }

    /// What is on disk about a share-partition: for tests and the simulator.
    pub fn committed(&self, key: &SharePartitionKey) -> Option<&ShareState> {
        self.entries.get(key)?.committed().map(|state| &**state)
    }

    fn latest(&self, key: &SharePartitionKey) -> Option<&Arc<ShareState>> {
        self.entries.get(key)?.latest()
    }

    fn check_exists(&self, key: &SharePartitionKey) -> Result<(), No> {
        if exists(&self.image, key.topic, key.partition) {
            Ok(())
        } else {
            Err(ErrorCode::UnknownTopicOrPartition.into())
        }
    }

    /// Nothing happens to a share-partition that is not there. One of which nothing is left goes.
    fn entry_changes(&mut self, key: &SharePartitionKey, change: impl FnOnce(&mut Entry)) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let before = bytes(key, entry);
        change(entry);
        let is_gone = entry.is_gone();
        self.room.change(before, if is_gone { 0 } else { bytes(key, entry) });
        if is_gone {
            self.entries.remove(key);
        }
    }

    /// The share-partition of that key, which begins now if there is none.
    fn begin_entry(&mut self, key: &SharePartitionKey) {
        if !self.entries.contains_key(key) {
            let entry = Entry::default();
            self.room.add(bytes(key, &entry));
            self.entries.insert(key.clone(), entry);
        }
    }

    fn append(&mut self, records: Vec<Record>, changes: Vec<(SharePartitionKey, Change)>) -> BatchId {
        let deadline = self.now.mono.plus(self.config.write_timeout);
        let keys = changes.iter().map(|(key, _)| key.clone()).collect();
        let batch = self.pending.open(deadline, keys);
        for (place, (key, change)) in changes.into_iter().enumerate() {
            self.begin_entry(&key);
            self.entry_changes(&key, |entry| entry.change(batch, place as i64, change));
        }
        self.effects.push(ShareStateEffect::Append { batch, records });
        batch
    }

    fn answer(&mut self, ticket: Ticket, response: ShareStateResponse) {
        self.effects.push(ShareStateEffect::Answer { ticket, response });
    }

    fn answer_after(&mut self, batch: BatchId, ticket: Ticket, response: ShareStateResponse) {
        match self.pending.hold(batch, ticket, response) {
            Held::Waits => {}
            Held::Decided(response) => self.answer(ticket, response),
            Held::Overdue(response) => {
                self.answer(ticket, response.refused(append_refusal(ErrorCode::RequestTimedOut)));
            }
        }
    }

    fn refuse_all(&mut self, answers: Vec<(Ticket, ShareStateResponse)>, error: ErrorCode) {
        for (ticket, response) in answers {
            self.answer(ticket, response.refused(error));
        }
    }

    fn set_timer(&mut self, key: TimerKey, after: DurationMs) {
        self.timers.set(key, self.now.mono.plus(after.max(DurationMs(1))));
    }

    fn take_effects(&mut self) -> Vec<ShareStateEffect> {
        std::mem::take(&mut self.effects)
    }
}

/// What a share-partition takes of the node's memory: its key and its states.
fn bytes(key: &SharePartitionKey, entry: &Entry) -> usize {
    key_bytes(key) + entry.bytes()
}

fn key_bytes(key: &SharePartitionKey) -> usize {
    size_of::<SharePartitionKey>() + key.group.len()
}

fn check_partition(key: &SharePartitionKey) -> Result<(), No> {
    if key.partition.get() < 0 { Err(invalid(NEGATIVE_PARTITION)) } else { Ok(()) }
}

fn invalid(why: &'static str) -> No {
    ShareStateRefusal { code: ErrorCode::InvalidRequest, why: Some(why) }
}

fn exists(image: &Image, topic: TopicId, partition: PartitionIndex) -> bool {
    image.topics.by_id(topic).is_some_and(|topic| topic.partition(partition).is_some())
}
