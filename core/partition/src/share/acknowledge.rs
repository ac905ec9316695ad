//! What becomes of acquired records: acknowledged by their members, left by members that go, or locked no longer.
//!
//! An acknowledgement changes states at once, so that no other request changes them, and is answered when the change
//! is written. If the write fails, the states are reverted, or the records become available if their lock has ended
//! meanwhile. The end of a lock is written too, but holds whether or not the write succeeds.
//!
//! Source: Kafka 4.4 `SharePartition.acknowledge`, `releaseAcquiredRecords`, `releaseAcquisitionLockOnTimeout`,
//! `rollbackOrProcessStateUpdates`, `initiateDLQAndArchive`.

use barnabas_base::{ErrorCode, MonotonicMs, Offset, Text};

use super::in_flight::{Change, Changes, InFlight, Pending, Run, State, States};
use super::share_partition::SharePartition;
use super::types::{
    AckBatch, AckType, DeadLetterCause, RecordState, ShareEffect, ShareRefusal, StateWrite, WriteId,
};
use crate::Ticket;

const NOT_FOUND: ShareRefusal = ShareRefusal::RecordState(
    "Batch record not found. The request batch offsets are not found in the cache.",
);
const FIRST_PAST: ShareRefusal =
    ShareRefusal::Request("Batch record not found. The first offset in request is past acquired records.");
const LAST_PAST: ShareRefusal =
    ShareRefusal::Request("Batch record not found. The last offset in request is past acquired records.");
const NOT_ACQUIRED: ShareRefusal =
    ShareRefusal::RecordState("The record cannot be acknowledged. It is not acquired.");
const NOT_OWNER: ShareRefusal = ShareRefusal::RecordState("Member is not the owner of the record");
const CHANGING: ShareRefusal = ShareRefusal::RecordState(
    "The record state is invalid. The acknowledgement of delivery could not be completed.",
);
const NO_RENEWAL: ShareRefusal =
    ShareRefusal::RecordState("Renewing acquisition locks is not enabled for the group.");
const BAD_TYPE: ShareRefusal = ShareRefusal::Request("Invalid acknowledge type");

impl SharePartition {
    /// Applies a member's acknowledgement. The ticket completes when it is written, or at once if it is refused or
    /// changes nothing. It applies as a whole or not at all.
    pub fn acknowledge(
        &mut self,
        member: &Text,
        batches: &[AckBatch],
        ticket: Ticket,
        now: MonotonicMs,
        effects: &mut Vec<ShareEffect>,
    ) {
        let mut changes = Changes::default();
        let taken =
            batches.iter().try_for_each(|batch| self.acknowledge_one(member, batch, now, &mut changes));
        match taken {
            Ok(()) => self.write(changes, Some(ticket), true, effects),
            Err(refusal) => {
                self.end_changes(&changes.0, false, now);
                effects.push(ShareEffect::Answer(ticket, Err(refusal)));
            }
        }
        self.assert_invariants();
    }

    fn acknowledge_one(
        &mut self,
        member: &Text,
        batch: &AckBatch,
        now: MonotonicMs,
        changes: &mut Changes,
    ) -> Result<(), ShareRefusal> {
        if batch.types.is_empty() {
            return Err(BAD_TYPE);
        }
        if batch.last < self.start {
            // Done long ago, or gone from the log.
            return Ok(());
        }
        for first in self.acknowledged_keys(batch)? {
            self.acknowledge_known(member, batch, first, now, changes)?;
        }
        Ok(())
    }

    /// The batches that an acknowledgement is about.
    fn acknowledged_keys(&self, batch: &AckBatch) -> Result<Vec<Offset>, ShareRefusal> {
        let floor = self.floor(batch.first).or_else(|| {
            let begins_before = batch.first < self.start && batch.last >= self.start;
            self.floor(self.start).filter(|_| begins_before)
        });
        let Some((floor, _)) = floor else { return Err(NOT_FOUND) };
        let Some((_, last)) = self.batches.range(floor..=batch.last.max(floor)).next_back() else {
            return Err(NOT_FOUND);
        };
        if last.last < batch.first {
            return Err(FIRST_PAST);
        }
        if batch.last > last.last {
            return Err(LAST_PAST);
        }
        Ok(self.keys(batch.first, batch.last))
    }

    fn acknowledge_known(
        &mut self,
        member: &Text,
        ack: &AckBatch,
        first: Offset,
        now: MonotonicMs,
        changes: &mut Changes,
    ) -> Result<(), ShareRefusal> {
        let Self { settings, batches, delivery_complete, .. } = self;
        let Some(batch) = batches.get_mut(&first) else { return Ok(()) };
        let is_inside = first >= ack.first && batch.last <= ack.last;
        if let States::Whole(state) = &batch.states {
            check(state, member)?;
            if !is_inside || ack.types.len() > 1 {
                batch.split(first);
            }
        }
        let until = now.plus(settings.lock);
        for (run, state) in batch.within_mut(first, ack.first, ack.last) {
            check(state, member)?;
            let said = ack.of(run.first.max(ack.first)).ok_or(BAD_TYPE)?;
            let wanted = match said {
                AckType::Renew if !settings.may_renew => return Err(NO_RENEWAL),
                AckType::Renew => {
                    state.locked_until = Some(until);
                    continue;
                }
                AckType::Accept => RecordState::Acknowledged,
                AckType::Release => RecordState::Available,
                AckType::Reject if settings.dead_letters => RecordState::Archiving,
                AckType::Reject | AckType::Gap => RecordState::Archived,
            };
            state.begin(wanted, settings);
            changes.add(run, state, said == AckType::Reject);
            if state.state.is_done() {
                *delivery_complete += run.count();
            }
        }
        Ok(())
    }

    /// A member's session has ended: what it holds is free for others. It counts as delivered.
    pub fn release_member(&mut self, member: &Text, ticket: Ticket, effects: &mut Vec<ShareEffect>) {
        let settings = self.settings;
        let mut changes = Changes::default();
        let mut done = 0;
        for (run, state) in each_mut(&mut self.batches) {
            if state.state != RecordState::Acquired || !state.is_held_by(member) {
                continue;
            }
            state.begin(RecordState::Available, &settings);
            changes.add(run, state, false);
            if state.state.is_done() {
                done += run.count();
            }
        }
        self.delivery_complete += done;
        self.write(changes, Some(ticket), true, effects);
        self.assert_invariants();
    }

    /// Ends the locks whose time is over.
    pub fn expire(&mut self, now: MonotonicMs, effects: &mut Vec<ShareEffect>) {
        if self.next_lock.is_none_or(|at| at > now) {
            return;
        }
        let settings = self.settings;
        let mut changes = Changes::default();
        let (mut next, mut done) = (None::<MonotonicMs>, 0);
        for (run, state) in each_mut(&mut self.batches) {
            let Some(until) = state.locked_until.filter(|_| state.state == RecordState::Acquired) else {
                continue;
            };
            if until > now {
                next = Some(next.map_or(until, |next| next.min(until)));
                continue;
            }
            state.locked_until = None;
            state.leave(RecordState::Available, &settings);
            changes.add(run, state, false);
            match state.state {
                RecordState::Available => self.looks_back = true,
                state if state.is_done() => done += run.count(),
                _ => {}
            }
        }
        self.next_lock = next;
        self.delivery_complete += done;
        if !changes.0.is_empty() {
            self.write(changes, None, false, effects);
            effects.push(ShareEffect::Fetchable);
        }
        self.assert_invariants();
    }

    /// A write is done, or cannot be.
    pub fn written(
        &mut self,
        id: WriteId,
        result: Result<(), ErrorCode>,
        now: MonotonicMs,
        effects: &mut Vec<ShareEffect>,
    ) {
        let Some(pending) = self.pending.remove(&id) else { return };
        let is_free_again = pending.can_go_back && self.end_changes(&pending.changes, result.is_ok(), now);
        if let Some(ticket) = pending.ticket {
            effects.push(ShareEffect::Answer(ticket, result.map_err(ShareRefusal::NotWritten)));
        }
        if result.is_ok() || !pending.can_go_back {
            Self::send_dead_letters(&pending, effects);
        }
        if self.settle() || is_free_again {
            effects.push(ShareEffect::Fetchable);
        }
        self.assert_invariants();
    }

    fn send_dead_letters(pending: &Pending, effects: &mut Vec<ShareEffect>) {
        for Change { batch, rejected } in &pending.changes {
            if batch.state == RecordState::Archiving {
                effects.push(ShareEffect::DeadLetter {
                    first: batch.first,
                    last: batch.last,
                    delivery_count: batch.delivery_count,
                    cause: match rejected {
                        true => DeadLetterCause::Rejected,
                        false => DeadLetterCause::DeliveryCountExceeded,
                    },
                });
            }
        }
    }

    /// The dead letters have these records, or cannot have them: they are archived either way, so that the start can
    /// pass them.
    pub fn dead_lettered(&mut self, first: Offset, last: Offset, effects: &mut Vec<ShareEffect>) {
        let mut changes = Changes::default();
        for key in self.keys(first, last) {
            let Some(batch) = self.batches.get_mut(&key) else { continue };
            if !batch.is_split() && (key < first || batch.last > last) {
                batch.split(key);
            }
            for (run, state) in batch.within_mut(key, first, last) {
                if state.state == RecordState::Archiving {
                    state.archive();
                    self.delivery_complete += run.count();
                    changes.add(run, state, false);
                }
            }
        }
        self.write(changes, None, false, effects);
        self.assert_invariants();
    }

    /// Another leader, or none, has the share partition from now on: requests that wait for a write are refused.
    pub fn fence(self, effects: &mut Vec<ShareEffect>) {
        let refusal = ShareRefusal::NotWritten(ErrorCode::NotLeaderOrFollower);
        let tickets = self.pending.into_values().filter_map(|pending| pending.ticket);
        effects.extend(tickets.map(|ticket| ShareEffect::Answer(ticket, Err(refusal))));
        effects.push(ShareEffect::Fetchable);
    }

    fn write(
        &mut self,
        changes: Changes,
        ticket: Option<Ticket>,
        can_go_back: bool,
        effects: &mut Vec<ShareEffect>,
    ) {
        let Changes(changes) = changes;
        if changes.is_empty() {
            effects.extend(ticket.map(|ticket| ShareEffect::Answer(ticket, Ok(()))));
            return;
        }
        self.writes += 1;
        let id = WriteId(self.writes);
        let write = StateWrite {
            state_epoch: self.state_epoch,
            leader_epoch: self.leader_epoch,
            start: self.start,
            delivery_complete: i32::try_from(self.delivery_complete).unwrap_or(i32::MAX),
            batches: changes.iter().map(|change| change.batch).collect(),
        };
        self.pending.insert(id, Pending { changes, ticket, can_go_back });
        effects.push(ShareEffect::Write(id, write));
    }

    /// Ends changes under way. Returns whether something is free now.
    fn end_changes(&mut self, changed: &[Change], is_written: bool, now: MonotonicMs) -> bool {
        let settings = self.settings;
        let mut is_any_free = false;
        for Change { batch: change, .. } in changed {
            for first in self.keys(change.first, change.last) {
                let Some(batch) = self.batches.get_mut(&first) else { continue };
                let mut undone = 0;
                for (run, state) in batch.within_mut(first, change.first, change.last) {
                    let was_done = state.state.is_done();
                    state.end(is_written, &settings, now);
                    if was_done && !state.state.is_done() {
                        undone += run.count();
                    } else if !was_done && state.state.is_done() {
                        undone -= run.count();
                    }
                    is_any_free |= state.is_free();
                    if state.state == RecordState::Acquired {
                        // Its lock goes on, and may end before any other.
                        let ends = [self.next_lock, state.locked_until];
                        self.next_lock = ends.into_iter().flatten().min();
                    }
                }
                self.delivery_complete -= undone;
            }
        }
        self.looks_back |= is_any_free;
        is_any_free
    }
}

/// Whether a member may say what becomes of it.
fn check(state: &State, member: &Text) -> Result<(), ShareRefusal> {
    if state.is_changing() {
        return Err(CHANGING);
    }
    if state.state != RecordState::Acquired {
        return Err(NOT_ACQUIRED);
    }
    if !state.is_held_by(member) {
        return Err(NOT_OWNER);
    }
    Ok(())
}

fn each_mut(
    batches: &mut std::collections::BTreeMap<Offset, InFlight>,
) -> impl Iterator<Item = (Run, &mut State)> {
    batches.iter_mut().flat_map(|(&first, batch)| {
        let last = batch.last;
        batch.within_mut(first, first, last)
    })
}
