//! The share partitions of one worker: each lives beside its partition, in the partition's owner.
//!
//! A share partition is loaded when a member of its group first fetches from the partition. It goes when the partition
//! is led elsewhere or under another epoch, when its state is fenced, and when no member of the group has a session
//! here any more.
//!
//! core/partition's [`SharePartition`] decides what becomes of records. Here is decided when its state is read and
//! written, when dead letters are sent, and which answer belongs to which request.
//!
//! Always true:
//! 1. writes of one share partition are sent one after another, in the order in which they came to be; those that came
//!    while one was under way are sent together
//! 2. an answer for an earlier instance of a share partition is ignored
//! 3. dead letters of one share partition are sent one delivery after another, and records are archived after that
//! 4. each acknowledgement is answered once
//!
//! The caller carries out the [`SharesEffect`]s of a step in their order, and says what came of them:
//! [`SharePartitions::loaded`], [`SharePartitions::written`], [`SharePartitions::dead_lettered`].
//!
//! Neighbours: shell/broker/src/worker/partition_worker/share.rs, which carries effects out;
//! core/replica/src/shares/fetched.rs, what a fetch has read.

pub(crate) mod fetched;
#[cfg(test)]
mod tests;

use barnabas_base::{ErrorCode, LeaderEpoch, Map, MonotonicMs, Offset, Text};
use barnabas_partition::{
    AckBatch, Acquire, Bounds, DeadLetterCause, PartitionKey, ShareEffect, SharePartition, ShareRefusal,
    ShareSettings, StateBatch, StateWrite, Ticket, WriteId,
};

use crate::RequestError;
use fetched::{Fetched, ShareRead};

/// What a record takes, in bytes, until it is known better.
const BYTES_PER_RECORD: usize = 1024;
/// What is read for a share partition, at least: batches are read whole.
const READ_BYTES_MIN: usize = 64 << 10;

/// A partition as one group sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShareKey {
    pub group: Text,
    pub partition: PartitionKey,
}

/// Why nothing is fetched from a share partition, or nothing acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareDeclined {
    /// The partition's own word.
    Partition(RequestError),
    /// Its state could not be read.
    NotLoaded(ErrorCode),
    Refused(ShareRefusal),
    /// No member of the group has fetched from it, as far as this leader knows.
    Unknown,
}

impl ShareDeclined {
    /// The code that Kafka's clients know it by.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Partition(error) => error.code(),
            Self::NotLoaded(code) => ShareRefusal::NotWritten(code).code(),
            Self::Refused(refusal) => refusal.code(),
            Self::Unknown => ErrorCode::UnknownTopicOrPartition,
        }
    }

    /// The error message beside the code.
    pub fn message(self) -> Option<String> {
        match self {
            Self::Refused(refusal) => Some(refusal.to_string()),
            Self::Partition(_) | Self::NotLoaded(_) | Self::Unknown => None,
        }
    }
}

impl From<RequestError> for ShareDeclined {
    fn from(error: RequestError) -> Self {
        Self::Partition(error)
    }
}

/// One acknowledgement of a command, by the command's own numbering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareAckItem {
    pub slot: u32,
    pub partition: PartitionKey,
    pub batches: Vec<AckBatch>,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareAckOutcome {
    pub slot: u32,
    pub result: Result<(), ShareDeclined>,
}

/// Records that were given up, of one cause and delivery count; `last` is one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenUp {
    pub first: Offset,
    pub last: Offset,
    pub delivery_count: u16,
    pub cause: DeadLetterCause,
}

/// What the caller is to do, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharesEffect {
    /// Read the state from the share coordinator, as the leader of this epoch; then [`SharePartitions::loaded`].
    Load { key: ShareKey, number: u64, leader_epoch: LeaderEpoch },
    /// Have this written down by the share coordinator; then [`SharePartitions::written`] with the same ids.
    Write { key: ShareKey, number: u64, ids: Vec<WriteId>, write: StateWrite },
    /// Copy these records to the group's dead letters if that can be done; then [`SharePartitions::dead_lettered`], in
    /// any case.
    DeadLetters { key: ShareKey, number: u64, given_up: Vec<GivenUp> },
    /// All acknowledgements of this command are answered.
    Acknowledged { command: u64, outcomes: Vec<ShareAckOutcome> },
    /// There may be something for one member of the group that waits.
    WakeNext(ShareKey),
}

/// See the file's header.
#[derive(Debug, Default)]
pub struct SharePartitions {
    map: Map<ShareKey, Share>,
    /// Share partitions made so far.
    made: u64,
    tickets: u64,
    /// Acknowledgements that wait to be written: their commands, and their slots in them.
    waiting: Map<Ticket, (u64, u32)>,
    commands: Map<u64, Answers>,
    /// No lock ends before this.
    next_lock: Option<MonotonicMs>,
}

/// One command's acknowledgements, as far as they are answered.
#[derive(Debug)]
struct Answers {
    left: usize,
    outcomes: Vec<ShareAckOutcome>,
}

#[derive(Debug)]
struct Share {
    /// Of those that were made here.
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
    writes: Vec<(WriteId, StateWrite)>,
    is_writing: bool,
    given_up: Vec<GivenUp>,
    is_delivering: bool,
    /// The group has no members any more: the share partition is dropped once everything is written.
    is_leaving: bool,
    /// As the last read had it, to guess how much to read.
    bytes_per_record: usize,
}

impl Active {
    fn new(machine: SharePartition) -> Self {
        Self {
            machine,
            writes: Vec::new(),
            is_writing: false,
            given_up: Vec::new(),
            is_delivering: false,
            is_leaving: false,
            bytes_per_record: BYTES_PER_RECORD,
        }
    }

    /// No answer is outstanding.
    fn is_idle(&self) -> bool {
        self.machine.pending() == 0 && self.given_up.is_empty() && !self.is_delivering
    }
}

impl SharePartitions {
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// When [`SharePartitions::expire`] is due.
    pub fn deadline(&self) -> Option<MonotonicMs> {
        self.next_lock
    }

    /// Records that are in flight, and entries that keep them.
    pub fn in_flight(&self) -> (u64, u64) {
        self.active().fold((0, 0), |(records, batches), (_, share)| {
            let in_flight = u64::try_from(share.machine.in_flight()).unwrap_or(0);
            (records + in_flight, batches + share.machine.in_flight_batches() as u64)
        })
    }

    /// Whether there is a share partition to acquire from, which is led in this epoch; if not, it is loaded.
    ///
    /// # Errors
    /// It could not be loaded. The next call tries again.
    pub fn is_loaded(
        &mut self,
        key: &ShareKey,
        leader_epoch: LeaderEpoch,
        effects: &mut Vec<SharesEffect>,
    ) -> Result<bool, ShareDeclined> {
        match self.map.get(key).map(|share| &share.stage) {
            Some(Stage::Active(share)) if share.machine.leader_epoch() == leader_epoch => return Ok(true),
            Some(Stage::Active(_)) => self.discard(key, effects),
            Some(Stage::Loading) => return Ok(false),
            Some(Stage::Failed(declined)) => {
                let declined = *declined;
                self.map.remove(key);
                return Err(declined);
            }
            None => {}
        }
        self.made += 1;
        let number = self.made;
        self.map.insert(key.clone(), Share { number, stage: Stage::Loading });
        effects.push(SharesEffect::Load { key: key.clone(), number, leader_epoch });
        Ok(false)
    }

    /// Whether an answer for this instance is still wanted.
    pub fn has(&self, key: &ShareKey, number: u64) -> bool {
        self.map.get(key).is_some_and(|share| share.number == number)
    }

    /// The state was read, and `begun` from it with these effects; or it could not be.
    pub fn loaded(
        &mut self,
        key: &ShareKey,
        number: u64,
        begun: Result<(SharePartition, Vec<ShareEffect>), ShareDeclined>,
        effects: &mut Vec<SharesEffect>,
    ) {
        if !self.has(key, number) {
            return;
        }
        let (stage, decisions) = match begun {
            Ok((machine, decisions)) => (Stage::Active(Box::new(Active::new(machine))), decisions),
            Err(declined) => (Stage::Failed(declined), Vec::new()),
        };
        self.map.insert(key.clone(), Share { number, stage });
        self.absorb(key, decisions, effects);
    }

    /// Where a fetch of a loaded share partition reads, and about how many bytes. `None`: there is nothing now. The
    /// group has a member again.
    pub fn next_read(
        &mut self,
        key: &ShareKey,
        bounds: &Bounds,
        records_max: i64,
    ) -> Option<(Offset, usize)> {
        let share = self.get_active(key)?;
        share.is_leaving = false;
        let machine = &mut share.machine;
        if machine.start() < bounds.log_start {
            machine.log_start_moved(bounds.log_start);
        }
        if !machine.can_acquire() {
            return None;
        }
        let from = machine.next_fetch_offset();
        if from >= bounds.end {
            return None;
        }
        let records = usize::try_from(records_max).unwrap_or(0).saturating_add(1);
        let wish = records.saturating_mul(share.bytes_per_record);
        Some((from, wish.saturating_add(wish / 4).max(READ_BYTES_MIN)))
    }

    /// Learns from a read how large records are.
    pub fn note_read(&mut self, key: &ShareKey, fetched: &Fetched) {
        if let Some(share) = self.get_active(key) {
            share.bytes_per_record = fetched.bytes_per_record();
        }
    }

    /// Whether a member that asks now would get something, of a log with this end. `None`: it is not loaded.
    pub fn can_acquire_before(&mut self, key: &ShareKey, end: Offset) -> Option<bool> {
        let share = self.get_active(key)?;
        Some(share.machine.can_acquire() && share.machine.next_fetch_offset() < end)
    }

    /// Acquires from what was read. Nothing, where all of it was aborted or is acquired already.
    pub fn acquire(
        &mut self,
        key: &ShareKey,
        ask: &Acquire<'_>,
        fetched: &Fetched,
        now: MonotonicMs,
    ) -> ShareRead {
        let Some(share) = self.get_active(key) else { return ShareRead::default() };
        let acquired = share.machine.acquire(ask, &fetched.headers(), &fetched.aborted, now);
        let next_lock = share.machine.next_deadline();
        self.note_lock(next_lock);
        ShareRead { records: fetched.around(&acquired), acquired }
    }

    /// Takes one member's acknowledgements. Returns the command's number, which its answer names.
    pub fn acknowledge(
        &mut self,
        (group, member): (&Text, &Text),
        items: &[ShareAckItem],
        now: MonotonicMs,
        effects: &mut Vec<SharesEffect>,
    ) -> u64 {
        let command = self.next_number();
        let answers = Answers { left: items.len(), outcomes: Vec::with_capacity(items.len()) };
        self.commands.insert(command, answers);
        for item in items {
            let key = ShareKey { group: group.clone(), partition: item.partition };
            let ticket = Ticket(self.next_number());
            self.waiting.insert(ticket, (command, item.slot));
            let mut decisions = Vec::new();
            match self.map.get_mut(&key).map(|share| &mut share.stage) {
                Some(Stage::Active(share)) => {
                    share.machine.acknowledge(member, &item.batches, ticket, now, &mut decisions);
                }
                // Whatever was acquired was so by a leader before this one.
                Some(Stage::Loading) => {
                    let none = ShareRefusal::RecordState("Batch record not found. The state is being read.");
                    self.answer(ticket, Err(ShareDeclined::Refused(none)), effects);
                }
                Some(Stage::Failed(_)) | None => self.answer(ticket, Err(ShareDeclined::Unknown), effects),
            }
            self.absorb(&key, decisions, effects);
        }
        command
    }

    /// A member's session has ended. `is_last`: the group has no other member here.
    pub fn release(
        &mut self,
        (group, member): (&Text, &Text),
        partitions: &[PartitionKey],
        is_last: bool,
        effects: &mut Vec<SharesEffect>,
    ) {
        for &partition in partitions {
            let key = ShareKey { group: group.clone(), partition };
            // Without a waiting caller.
            let ticket = Ticket(self.next_number());
            let mut decisions = Vec::new();
            if let Some(share) = self.get_active(&key) {
                share.machine.release_member(member, ticket, &mut decisions);
            }
            self.absorb(&key, decisions, effects);
        }
        if is_last {
            self.leave(group, effects);
        }
    }

    fn leave(&mut self, group: &Text, effects: &mut Vec<SharesEffect>) {
        let of_group = self.map.iter_mut().filter(|(key, _)| key.group == *group);
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
        idle.iter().for_each(|key| self.discard(key, effects));
    }

    /// Ends the locks whose time is over. Returns the number of records that were locked.
    pub fn expire(&mut self, now: MonotonicMs, effects: &mut Vec<SharesEffect>) -> u64 {
        if self.next_lock.is_none_or(|at| at > now) {
            return 0;
        }
        let is_due = |machine: &SharePartition| machine.next_deadline().is_some_and(|at| at <= now);
        let due = self.active().filter(|(_, share)| is_due(&share.machine));
        let due: Vec<ShareKey> = due.map(|(key, _)| key.clone()).collect();
        let mut records = 0;
        for key in due {
            let mut decisions = Vec::new();
            if let Some(share) = self.get_active(&key) {
                share.machine.expire(now, &mut decisions);
            }
            let ended = decisions.iter().map(|decision| match decision {
                ShareEffect::Write(_, write) => records_of(&write.batches),
                _ => 0,
            });
            records += ended.sum::<u64>();
            self.absorb(&key, decisions, effects);
        }
        self.next_lock = self.active().filter_map(|(_, share)| share.machine.next_deadline()).min();
        records
    }

    /// A write is on disk, or was refused.
    pub fn written(
        &mut self,
        (key, number): (&ShareKey, u64),
        ids: &[WriteId],
        result: Result<(), ErrorCode>,
        now: MonotonicMs,
        effects: &mut Vec<SharesEffect>,
    ) {
        if !self.has(key, number) {
            return;
        }
        let Some(share) = self.get_active(key) else { return };
        share.is_writing = false;
        let mut decisions = Vec::new();
        for &id in ids {
            share.machine.written(id, result, now, &mut decisions);
        }
        let next_lock = share.machine.next_deadline();
        self.note_lock(next_lock);
        self.absorb(key, decisions, effects);
        self.discard_if_left(key, effects);
    }

    /// Dead letters of these records (first and last of each range) are written, or cannot be.
    pub fn dead_lettered(
        &mut self,
        (key, number): (&ShareKey, u64),
        ranges: &[(Offset, Offset)],
        effects: &mut Vec<SharesEffect>,
    ) {
        if !self.has(key, number) {
            return;
        }
        let Some(share) = self.get_active(key) else { return };
        share.is_delivering = false;
        let mut decisions = Vec::new();
        for &(first, last) in ranges {
            share.machine.dead_lettered(first, last, &mut decisions);
        }
        self.absorb(key, decisions, effects);
        self.discard_if_left(key, effects);
    }

    /// Drops what is led elsewhere or in another epoch. `led`: in which epoch this broker leads a partition.
    pub fn keep_led(
        &mut self,
        led: impl Fn(PartitionKey) -> Option<LeaderEpoch>,
        effects: &mut Vec<SharesEffect>,
    ) {
        let is_lost = |key: &ShareKey, share: &Share| match &share.stage {
            Stage::Active(active) => led(key.partition) != Some(active.machine.leader_epoch()),
            Stage::Loading | Stage::Failed(_) => led(key.partition).is_none(),
        };
        let lost = self.map.iter().filter(|(key, share)| is_lost(key, share));
        let lost: Vec<ShareKey> = lost.map(|(key, _)| key.clone()).collect();
        lost.iter().for_each(|key| self.discard(key, effects));
    }

    /// What groups allow now.
    pub fn set_settings(&mut self, of: impl Fn(&str) -> ShareSettings) {
        for (key, share) in &mut self.map {
            if let Stage::Active(active) = &mut share.stage {
                active.machine.set_settings(of(&key.group));
            }
        }
    }

    /// The node stops: what waits for a write is refused.
    pub fn discard_all(&mut self, effects: &mut Vec<SharesEffect>) {
        let keys: Vec<ShareKey> = self.map.keys().cloned().collect();
        keys.iter().for_each(|key| self.discard(key, effects));
        self.next_lock = None;
    }

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

    fn next_number(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    fn note_lock(&mut self, ends: Option<MonotonicMs>) {
        self.next_lock = [self.next_lock, ends].into_iter().flatten().min();
    }

    /// Turns a share partition's decisions into effects.
    fn absorb(&mut self, key: &ShareKey, decisions: Vec<ShareEffect>, effects: &mut Vec<SharesEffect>) {
        let mut is_fenced = false;
        for decision in decisions {
            match decision {
                ShareEffect::Write(id, write) => {
                    if let Some(share) = self.get_active(key) {
                        share.writes.push((id, write));
                    }
                }
                ShareEffect::Answer(ticket, result) => {
                    is_fenced |= result.is_err_and(ShareRefusal::is_fenced);
                    self.answer(ticket, result.map_err(ShareDeclined::Refused), effects);
                }
                ShareEffect::DeadLetter { first, last, delivery_count, cause } => {
                    if let Some(share) = self.get_active(key) {
                        share.given_up.push(GivenUp { first, last, delivery_count, cause });
                    }
                }
                ShareEffect::Fetchable => effects.push(SharesEffect::WakeNext(key.clone())),
            }
        }
        if is_fenced {
            self.discard(key, effects);
        } else {
            self.send(key, effects);
        }
    }

    /// Sends what waits to be written or delivered, unless something of its kind is under way.
    fn send(&mut self, key: &ShareKey, effects: &mut Vec<SharesEffect>) {
        let Some(Share { number, stage: Stage::Active(share) }) = self.map.get_mut(key) else { return };
        let number = *number;
        if !share.is_writing && !share.writes.is_empty() {
            let writes = std::mem::take(&mut share.writes);
            let ids = writes.iter().map(|(id, _)| *id).collect();
            if let Some(write) = combined(writes.into_iter().map(|(_, write)| write)) {
                share.is_writing = true;
                effects.push(SharesEffect::Write { key: key.clone(), number, ids, write });
            }
        }
        if !share.is_delivering && !share.given_up.is_empty() {
            share.is_delivering = true;
            let given_up = std::mem::take(&mut share.given_up);
            effects.push(SharesEffect::DeadLetters { key: key.clone(), number, given_up });
        }
    }

    /// Drops a share partition. Requests that wait for a write are answered NOT_LEADER_OR_FOLLOWER.
    fn discard(&mut self, key: &ShareKey, effects: &mut Vec<SharesEffect>) {
        let Some(Share { stage: Stage::Active(share), .. }) = self.map.remove(key) else { return };
        let mut decisions = Vec::new();
        share.machine.fence(&mut decisions);
        for decision in decisions {
            if let ShareEffect::Answer(ticket, result) = decision {
                self.answer(ticket, result.map_err(ShareDeclined::Refused), effects);
            }
        }
        effects.push(SharesEffect::WakeNext(key.clone()));
    }

    fn discard_if_left(&mut self, key: &ShareKey, effects: &mut Vec<SharesEffect>) {
        if self.get_active(key).is_some_and(|share| share.is_leaving && share.is_idle()) {
            self.discard(key, effects);
        }
    }

    /// Answers one acknowledgement; the last one completes its command. The release of a member has no waiting caller.
    fn answer(&mut self, ticket: Ticket, result: Result<(), ShareDeclined>, effects: &mut Vec<SharesEffect>) {
        let Some((command, slot)) = self.waiting.remove(&ticket) else { return };
        let Some(answers) = self.commands.get_mut(&command) else { return };
        answers.outcomes.push(ShareAckOutcome { slot, result });
        answers.left -= 1;
        if answers.left == 0
            && let Some(Answers { outcomes, .. }) = self.commands.remove(&command)
        {
            effects.push(SharesEffect::Acknowledged { command, outcomes });
        }
    }
}

/// Several writes in one: later batches count where they say otherwise than earlier ones.
fn combined(writes: impl Iterator<Item = StateWrite>) -> Option<StateWrite> {
    writes.reduce(|mut all, next| {
        (all.start, all.delivery_complete) = (next.start, next.delivery_complete);
        all.batches.extend(next.batches);
        all
    })
}

fn records_of(batches: &[StateBatch]) -> u64 {
    batches.iter().map(|batch| u64::try_from(batch.last.get() - batch.first.get() + 1).unwrap_or(0)).sum()
}
