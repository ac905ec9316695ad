//! One partition as one share group sees it: which record is whose, how often it was delivered, and how far everything
//! is done.
//!
//! Pure. No clock, log, lock or channel: the partition's owner hands it what it has read, says what time it is, and
//! carries out the [`ShareEffect`]s. Acquiring is in memory alone; what is acknowledged counts, and is answered, once
//! it is written down.
//!
//! Always true (the cheap ones are asserted after every step, all of them by tests/share_model.rs):
//! 1. a record is acquired by one member at most, and only by one that it was delivered to
//! 2. a record that is acknowledged or archived is not delivered again
//! 3. `start` does not move back, and everything below it is done or gone from the log
//! 4. every unfinished record below the fetched offset is either acquired by a member or found by
//!    [`SharePartition::next_fetch_offset`]
//! 5. a record is delivered at most `deliveries_max` times
//! 6. batches do not overlap, lie between `start` and `end`, and `delivery_complete` counts what is done among them
//!
//! Unlike Kafka's, it forgets what lies below `start` at once, its start also passes what was archived without a word
//! of a member's (records of aborted transactions, and those that compaction removed), and locks are values: one
//! deadline for each state.
//!
//! Share path 4 of 5. Before: shell/broker/src/worker/partition_worker/share.rs. After: the state topic, by the share
//! coordinator.
//!
//! Source: KIP-932, KIP-1206, KIP-1222, KIP-1191; Kafka 4.4 `SharePartition`.

use std::collections::BTreeMap;
use std::ops::Bound;

use barnabas_base::{LeaderEpoch, MonotonicMs, Offset};

use super::in_flight::{InFlight, Pending, State};
use super::types::{
    BadState, DeadLetterCause, RecordState, ShareEffect, ShareSettings, StateBatch, StateEpoch, WriteId,
    WrittenState,
};

/// See the file's header.
#[derive(Debug, Clone)]
pub struct SharePartition {
    pub(super) settings: ShareSettings,
    pub(super) leader_epoch: LeaderEpoch,
    pub(super) state_epoch: StateEpoch,
    /// Kafka's SPSO.
    pub(super) start: Offset,
    /// Kafka's SPEO: the last offset that was ever acquired; `start` while nothing is in flight.
    pub(super) end: Offset,
    pub(super) batches: BTreeMap<Offset, InFlight>,
    /// The state that was read back has holes; whether there are records in them is unknown.
    pub(super) gap: Option<Gap>,
    /// Something at or before `end` may be free.
    pub(super) looks_back: bool,
    /// Records in flight that are done.
    pub(super) delivery_complete: i64,
    pub(super) pending: BTreeMap<WriteId, Pending>,
    pub(super) writes: u64,
    /// No lock ends before this.
    pub(super) next_lock: Option<MonotonicMs>,
}

/// Holes from `from` on, up to `end`; of no account once `end` is not the share partition's end any more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gap {
    pub from: Offset,
    pub end: Offset,
}

impl SharePartition {
    /// Goes on where what was written down ends. What was on its way to the dead letters is sent there again.
    ///
    /// # Errors
    /// [`BadState`]: it cannot have been written by anyone who follows the rules.
    pub fn load(
        written: &WrittenState,
        leader_epoch: LeaderEpoch,
        settings: ShareSettings,
        effects: &mut Vec<ShareEffect>,
    ) -> Result<Self, BadState> {
        let mut partition = Self {
            settings,
            leader_epoch,
            state_epoch: written.state_epoch,
            start: written.start,
            end: written.start,
            batches: BTreeMap::new(),
            gap: None,
            looks_back: false,
            delivery_complete: 0,
            pending: BTreeMap::new(),
            writes: 0,
            next_lock: None,
        };
        let mut next = written.start;
        let mut gap_from = None;
        for batch in &written.batches {
            if batch.first < next || batch.last < batch.first {
                return Err(BadState { first: batch.first, last: batch.last, after: next.plus(-1) });
            }
            if batch.first > next && gap_from.is_none() {
                gap_from = Some(next);
            }
            next = batch.last.plus(1);
            partition.read_back(batch, effects);
        }
        if let Some((_, last)) = partition.batches.last_key_value() {
            partition.end = last.last;
            partition.looks_back = true;
            partition.gap = gap_from.map(|from| Gap { from, end: partition.end });
            partition.settle();
        }
        partition.assert_invariants();
        Ok(partition)
    }

    fn read_back(&mut self, batch: &StateBatch, effects: &mut Vec<ShareEffect>) {
        let state = match batch.state {
            // It is not written, and no member holds it any more.
            RecordState::Acquired => RecordState::Available,
            state => state,
        };
        if state.is_done() {
            self.delivery_complete = self.delivery_complete.saturating_add(batch.first.count_to(batch.last));
        }
        if state == RecordState::Archiving {
            effects.push(ShareEffect::DeadLetter {
                first: batch.first,
                last: batch.last,
                delivery_count: batch.delivery_count,
                cause: if batch.delivery_count >= self.settings.deliveries_max {
                    DeadLetterCause::DeliveryCountExceeded
                } else {
                    DeadLetterCause::Rejected
                },
            });
        }
        self.batches
            .insert(batch.first, InFlight::whole(batch.last, State::new(state, batch.delivery_count)));
    }

    // What is asked of it.

    pub fn start(&self) -> Offset {
        self.start
    }

    pub fn end(&self) -> Offset {
        self.end
    }

    pub fn state_epoch(&self) -> StateEpoch {
        self.state_epoch
    }

    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.leader_epoch
    }

    /// Records in flight that are done.
    pub fn delivery_complete(&self) -> i64 {
        self.delivery_complete
    }

    /// From the first record that is not done to the last that was ever acquired.
    pub fn in_flight(&self) -> i64 {
        if self.batches.is_empty() { 0 } else { self.start.count_to(self.end) }
    }

    /// Entries in flight: what it costs to look through them.
    pub fn in_flight_batches(&self) -> usize {
        self.batches.len()
    }

    /// Writes that have not been answered.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// When [`Self::expire`] should next be called, if anything is acquired. May be early, never late.
    pub fn next_deadline(&self) -> Option<MonotonicMs> {
        self.next_lock
    }

    /// The group's settings have changed. Locks keep the time that they were given.
    pub fn set_settings(&mut self, settings: ShareSettings) {
        self.settings = settings;
    }

    /// Where the log is to be read for the next fetch: the first record that is free, or what comes after all that was
    /// acquired.
    pub fn next_fetch_offset(&mut self) -> Offset {
        if self.batches.is_empty() {
            self.looks_back = false;
            return self.end;
        }
        if !self.looks_back {
            return self.end.plus(1);
        }
        let found = self.first_free();
        if found.is_none() {
            self.looks_back = false;
        }
        found.unwrap_or(self.end.plus(1))
    }

    fn first_free(&self) -> Option<Offset> {
        let mut gap_from = self.open_gap().map(|gap| gap.from);
        for (&first, batch) in &self.batches {
            if let Some(from) = &mut gap_from {
                if first > *from {
                    return Some(*from);
                }
                // What was found in it closes it, though later batches may have been read back.
                *from = batch.last.plus(1).max(*from);
            }
            let free = batch.within(first, first, batch.last).find(|(_, state)| state.is_free());
            if let Some((run, _)) = free {
                return Some(run.first);
            }
        }
        None
    }

    /// Whether a fetch may find something to acquire.
    pub fn can_acquire(&mut self) -> bool {
        self.next_fetch_offset() != self.end.plus(1) || self.in_flight() < self.settings.in_flight_max
    }

    /// The holes, as long as nothing past them has been acquired: a fetch that passes them has read them.
    pub(super) fn open_gap(&self) -> Option<Gap> {
        self.gap.filter(|gap| gap.end == self.end)
    }

    pub(super) fn gap_closed_to(&mut self, from: Offset) {
        self.gap =
            self.open_gap().filter(|gap| from <= gap.end).map(|gap| Gap { from: gap.from.max(from), ..gap });
    }

    /// The batch that holds `offset`, or else the last one before it.
    pub(super) fn floor(&self, offset: Offset) -> Option<(Offset, &InFlight)> {
        self.batches.range(..=offset).next_back().map(|(&first, batch)| (first, batch))
    }

    /// The keys of the batches that hold any of `from` to `to`.
    pub(super) fn keys(&self, from: Offset, to: Offset) -> Vec<Offset> {
        if to < from {
            return Vec::new();
        }
        let holder = self.floor(from).filter(|(_, batch)| batch.last >= from).map(|(first, _)| first);
        let later = self.batches.range((Bound::Excluded(from), Bound::Included(to))).map(|(&first, _)| first);
        holder.into_iter().chain(later).collect()
    }

    // What changes it.

    /// Records below `log_start` are gone: they are not delivered, and need no acknowledgement.
    ///
    /// Nothing is written: the next write says it.
    pub fn log_start_moved(&mut self, log_start: Offset) {
        if log_start <= self.start {
            return;
        }
        self.forget_below(log_start);
        self.start = log_start;
        if self.batches.is_empty() {
            (self.end, self.gap) = (log_start, None);
        }
        self.gap = self.gap.map(|gap| Gap { from: gap.from.max(log_start), ..gap });
        self.settle();
        self.assert_invariants();
    }

    /// Drops all states below `offset`, and what they counted.
    fn forget_below(&mut self, offset: Offset) {
        while let Some(entry) = self.batches.first_entry() {
            let first = *entry.key();
            if first >= offset {
                return;
            }
            let mut batch = entry.remove();
            let to = batch.last.min(offset.plus(-1));
            for (run, state) in batch.within(first, first, to) {
                if state.state.is_done() {
                    self.delivery_complete -= run.first.count_to(run.last.min(to));
                }
            }
            if batch.last >= offset {
                batch.cut_front(first, offset);
                self.batches.insert(offset, batch);
                return;
            }
        }
    }

    /// Moves the start past everything that is done. Returns whether it moved.
    pub(super) fn settle(&mut self) -> bool {
        let before = self.start;
        let hole = self.open_gap().map(|gap| gap.from);
        let mut done_below = None;
        'batches: for (&first, batch) in &self.batches {
            if hole.is_some_and(|hole| batch.last >= hole) {
                break;
            }
            for (run, state) in batch.within(first, first, batch.last) {
                if !state.is_settled() {
                    break 'batches;
                }
                done_below = Some(run.last.plus(1));
            }
        }
        if let Some(done_below) = done_below {
            self.forget_below(done_below);
            self.start = self.start.max(done_below);
        }
        match self.batches.first_key_value() {
            None if done_below.is_some() => (self.end, self.gap) = (self.start, None),
            None => {}
            // Between what is done and what is not there may be offsets that were never records.
            Some((&first, _)) => self.start = self.start.max(hole.map_or(first, |hole| hole.min(first))),
        }
        self.start > before
    }

    pub(super) fn assert_invariants(&self) {
        let first = self.batches.first_key_value().map(|(&first, _)| first);
        let last = self.batches.last_key_value().map(|(_, batch)| batch.last);
        assert!(
            first.is_none_or(|first| first >= self.start) && last.is_none_or(|last| last <= self.end),
            "invariant 6: {first:?} to {last:?} lie between {} and {}",
            self.start,
            self.end
        );
        assert!(
            self.delivery_complete >= 0 && self.delivery_complete <= self.in_flight(),
            "invariant 6: {} of {} are done",
            self.delivery_complete,
            self.in_flight()
        );
    }
}
