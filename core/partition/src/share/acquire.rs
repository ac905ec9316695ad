//! Acquiring: what a member gets of the batches that were read for it.
//!
//! The log is read from [`SharePartition::next_fetch_offset`] on. What was read may hold records that others have (they
//! are passed over), records that are free again (delivered once more), and new ones. Records that fail again and again
//! are delivered in ever smaller pieces, at last alone: so one that breaks its consumers does not take its neighbours
//! along.
//!
//! Source: Kafka 4.4 `SharePartition.acquire`, `acquireSubsetBatchRecords`, `shouldThrottleRecordsDelivery`.

use barnabas_base::{MonotonicMs, Offset, ProducerId};

use super::aborted;
use super::in_flight::{InFlight, State, States};
use super::share_partition::SharePartition;
use super::types::{Acquire, AcquireMode, Acquired, FetchedBatch, RecordState};

/// From how many deliveries on fewer records are delivered at once.
fn throttle_from(deliveries_max: u16) -> u16 {
    deliveries_max.div_ceil(2).max(2)
}

/// One call of [`SharePartition::acquire`].
struct Acquiring<'a> {
    ask: &'a Acquire<'a>,
    fetched: &'a [FetchedBatch],
    /// The first offset that was read.
    first: Offset,
    /// The last that may be acquired.
    last: Offset,
    until: MonotonicMs,
    /// How many may still be acquired.
    left: i64,
    acquired: Vec<Acquired>,
}

impl Acquiring<'_> {
    fn add(&mut self, acquired: Acquired) {
        self.left -= acquired.count();
        self.acquired.push(acquired);
    }

    /// One more record of a batch that is split; neighbours delivered equally often become one entry, from `since` on.
    fn add_one(&mut self, offset: Offset, delivery_count: u16, since: usize) {
        self.left -= 1;
        match self.acquired[since..].last_mut() {
            Some(last) if last.last.plus(1) == offset && last.delivery_count == delivery_count => {
                last.last = offset;
            }
            _ => self.acquired.push(Acquired { first: offset, last: offset, delivery_count }),
        }
    }
}

impl SharePartition {
    /// Acquires the available records of `fetched`, batches of the log from `ask.from` on, in their order. `aborted`
    /// are producers and first offsets of aborted transactions, for read_committed groups: their records are not
    /// delivered.
    ///
    /// A member holds acquired records until the lock ends, or until [`Self::acknowledge`].
    pub fn acquire(
        &mut self,
        ask: &Acquire<'_>,
        fetched: &[FetchedBatch],
        aborted: &[(ProducerId, Offset)],
        now: MonotonicMs,
    ) -> Vec<Acquired> {
        let (Some(first), Some(last)) = (fetched.first(), fetched.last()) else { return Vec::new() };
        if ask.records_max <= 0 || last.last < self.start {
            return Vec::new();
        }
        let (last, left) = self.room(ask, last.last);
        if left <= 0 {
            return Vec::new();
        }
        let until = now.plus(self.settings.lock);
        let mut acquiring =
            Acquiring { ask, fetched, first: first.base, last, until, left, acquired: Vec::new() };
        self.archive_between(ask.from, first.base);
        self.acquire_from(&mut acquiring);
        let mut acquired = acquiring.acquired;
        if let Some(last) = acquired.last() {
            self.gap_closed_to(last.last.plus(1));
            self.next_lock = Some(self.next_lock.map_or(until, |known| known.min(until)));
            if !aborted.is_empty() {
                acquired = self.without_aborted(acquired, fetched, aborted);
            }
        }
        self.assert_invariants();
        acquired
    }

    /// How far and how many: not more in flight than allowed, but what is in flight and free may be had at any time.
    fn room(&self, ask: &Acquire<'_>, last: Offset) -> (Offset, i64) {
        let room = self.settings.in_flight_max - self.in_flight();
        if room > 0 {
            return (last, ask.records_max.min(room));
        }
        if ask.from > self.end {
            return (last, 0);
        }
        let behind = ask.from.count_to(self.end);
        (last.min(self.end), ask.records_max.min(behind))
    }

    fn acquire_from(&mut self, acquiring: &mut Acquiring<'_>) {
        let base = match self.floor(acquiring.first) {
            Some((first, batch)) if batch.last >= acquiring.first => first,
            _ => acquiring.first.max(self.start),
        };
        let keys = self.keys(acquiring.first, acquiring.last);
        let Some(&last_key) = keys.last() else { return self.acquire_new(acquiring, base, acquiring.last) };
        let known_to = self.batches.get(&last_key).map_or(acquiring.last, |batch| batch.last);
        let mut hole_from = base;
        for first in keys {
            if acquiring.left <= 0 {
                break;
            }
            let Some(batch) = self.batches.get(&first) else { continue };
            let after = batch.last.plus(1);
            if self.open_gap().is_some() {
                if hole_from < first {
                    self.acquire_new(acquiring, hole_from, first.plus(-1));
                }
                hole_from = after;
                if acquiring.left <= 0 {
                    break;
                }
            }
            if self.acquire_known(acquiring, first) == Next::Stop {
                return;
            }
        }
        if acquiring.left > 0 && known_to < acquiring.last {
            self.acquire_new(acquiring, known_to.plus(1), acquiring.last);
        }
    }

    /// What is free of a batch that has been acquired before.
    fn acquire_known(&mut self, acquiring: &mut Acquiring<'_>, first: Offset) -> Next {
        let settings = self.settings;
        let Some(batch) = self.batches.get_mut(&first) else { return Next::Batch };
        let must_isolate = is_failing(batch, first, acquiring, settings.deliveries_max);
        if must_isolate && !acquiring.acquired.is_empty() {
            // It gets a fetch of its own.
            return Next::Stop;
        }
        let is_inside = first >= acquiring.first && batch.last <= acquiring.last;
        let count = first.count_to(batch.last);
        let is_too_long = acquiring.ask.mode == AcquireMode::RecordLimit && count > acquiring.left;
        if let States::Whole(state) = &mut batch.states {
            if !state.is_free() {
                return Next::Batch;
            }
            if is_inside && !is_too_long && !must_isolate {
                state.take(acquiring.ask.member, acquiring.until);
                let delivery_count = state.delivery_count;
                acquiring.add(Acquired { first, last: batch.last, delivery_count });
                return Next::Batch;
            }
            batch.split(first);
        }
        let had = acquiring.left;
        acquire_each(batch, first, acquiring, settings.deliveries_max);
        if must_isolate && acquiring.left < had { Next::Stop } else { Next::Batch }
    }

    /// Records that were never acquired.
    fn acquire_new(&mut self, acquiring: &mut Acquiring<'_>, from: Offset, to: Offset) {
        let from = if self.batches.is_empty() { from.max(self.end) } else { from };
        if from > to {
            return;
        }
        let mut last = to;
        if acquiring.left < from.count_to(to) {
            // As far as the batch goes in the log that holds the last one wanted.
            last = end_of_batch(acquiring.fetched, from.plus(acquiring.left - 1));
            if last > to && self.open_gap().is_some() {
                last = to;
            }
        }
        let is_first = self.batches.first_key_value().is_none_or(|(&known, _)| from <= known);
        match acquiring.ask.mode {
            AcquireMode::RecordLimit => self.add_within_limit(acquiring, from, last),
            AcquireMode::BatchOptimized => self.add_in_batches(acquiring, from, last),
        }
        if is_first {
            self.start = self.start.max(from);
        }
        self.end = self.end.max(last);
        if let Some(acquired) = acquiring.acquired.last() {
            self.gap_closed_to(acquired.last.plus(1));
        }
    }

    /// One entry, of which the member gets no more than it asked for; the rest is free.
    fn add_within_limit(&mut self, acquiring: &mut Acquiring<'_>, from: Offset, last: Offset) {
        let member = acquiring.ask.member;
        let mut batch = InFlight::whole(last, State::acquired(member, acquiring.until));
        let wanted = from.plus(acquiring.left - 1);
        if wanted < last {
            batch.split(from);
            for (_, state) in batch.within_mut(from, wanted.plus(1), last) {
                *state = State::new(RecordState::Available, 0);
            }
            self.looks_back = true;
        }
        self.batches.insert(from, batch);
        acquiring.add(Acquired { first: from, last: wanted.min(last), delivery_count: 1 });
    }

    /// Entries of about the size that the member wants to acknowledge, cut where batches of the log begin.
    fn add_in_batches(&mut self, acquiring: &mut Acquiring<'_>, from: Offset, last: Offset) {
        let size = acquiring.ask.batch_size;
        let mut first = from;
        if from.count_to(last) > size {
            for batch in acquiring.fetched {
                if batch.base > last {
                    break;
                }
                if batch.base > first && batch.base.since(first) >= size {
                    self.add_entry(acquiring, first, batch.base.plus(-1));
                    first = batch.base;
                }
            }
        }
        self.add_entry(acquiring, first, last);
    }

    fn add_entry(&mut self, acquiring: &mut Acquiring<'_>, first: Offset, last: Offset) {
        let state = State::acquired(acquiring.ask.member, acquiring.until);
        self.batches.insert(first, InFlight::whole(last, state));
        acquiring.add(Acquired { first, last, delivery_count: 1 });
    }

    /// What is free from `from` up to `to` was looked for in the log and is not there any more: compaction has taken
    /// it.
    fn archive_between(&mut self, from: Offset, to: Offset) {
        if from >= to {
            return;
        }
        let last = to.plus(-1);
        for first in self.keys(from, last) {
            let Some(batch) = self.batches.get_mut(&first) else { continue };
            let is_inside = first >= from && batch.last <= last;
            if !is_inside && !batch.is_split() {
                if batch.within(first, first, batch.last).all(|(_, state)| !state.is_free()) {
                    continue;
                }
                batch.split(first);
            }
            for (run, state) in batch.within_mut(first, from, last) {
                if state.is_free() {
                    state.archive();
                    self.delivery_complete += run.count();
                    self.looks_back = true;
                }
            }
        }
        self.settle();
    }

    /// Takes records of aborted transactions out of what was acquired: they are archived, without a word to anyone.
    fn without_aborted(
        &mut self,
        acquired: Vec<Acquired>,
        fetched: &[FetchedBatch],
        aborted: &[(ProducerId, Offset)],
    ) -> Vec<Acquired> {
        let ranges = aborted::batches(fetched, aborted);
        for cut in aborted::common(&acquired, &ranges) {
            for first in self.keys(cut.first, cut.last) {
                let Some(batch) = self.batches.get_mut(&first) else { continue };
                if first < cut.first || batch.last > cut.last {
                    batch.split(first);
                }
                for (run, state) in batch.within_mut(first, cut.first, cut.last) {
                    state.archive();
                    self.delivery_complete += run.count();
                }
            }
        }
        self.settle();
        aborted::without(&acquired, &ranges)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    Batch,
    Stop,
}

/// Whether something free in it has been delivered so often that it had better come in small pieces.
fn is_failing(batch: &InFlight, first: Offset, acquiring: &Acquiring<'_>, deliveries_max: u16) -> bool {
    let states = batch.within(first, acquiring.first, acquiring.last);
    let most = states.filter(|(_, state)| state.is_free()).map(|(_, state)| state.delivery_count).max();
    most.is_some_and(|most| most >= throttle_from(deliveries_max))
}

/// The free records of a split batch.
fn acquire_each(batch: &mut InFlight, first: Offset, acquiring: &mut Acquiring<'_>, deliveries_max: u16) {
    // Kafka keeps a batch until all of it is done: the records that are done still count for the size of the pieces.
    let size = batch.acquired_count(first);
    let threshold = throttle_from(deliveries_max);
    let (mut taken, mut few) = (0, None);
    let since = acquiring.acquired.len();
    for (run, state) in batch.within_mut(first, acquiring.first, acquiring.last) {
        if !state.is_free() {
            continue;
        }
        // The last delivery of a record is to it alone.
        let is_last = deliveries_max > 2 && state.delivery_count.saturating_add(1) >= deliveries_max;
        if is_last && taken > 0 {
            break;
        }
        if state.delivery_count >= threshold && few.is_none() {
            let halvings = u32::from(state.delivery_count - threshold) + 1;
            few = Some((size >> halvings.min(62)).max(1));
        }
        state.take(acquiring.ask.member, acquiring.until);
        acquiring.add_one(run.first, state.delivery_count, since);
        taken += 1;
        let is_full = acquiring.ask.mode == AcquireMode::RecordLimit && acquiring.left <= 0;
        if is_last || is_full || few.is_some_and(|few| taken >= few) {
            break;
        }
    }
}

/// The last offset of the batch that holds `offset`, or `offset` where none does.
fn end_of_batch(fetched: &[FetchedBatch], offset: Offset) -> Offset {
    let after = fetched.partition_point(|batch| batch.base <= offset);
    let holder = after.checked_sub(1).and_then(|at| fetched.get(at));
    holder.map_or(offset, |batch| batch.last.max(offset))
}
