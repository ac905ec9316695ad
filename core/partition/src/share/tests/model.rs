//! Random days of a share partition beside a record of each record, kept as plainly as can be: who has it, how often it
//! was delivered, until when.
//!
//! The model does not choose which member gets what. It knows what no member may get, the results of
//! acknowledgements, what must be written, and that in the end everything is done.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use barnabas_base::{DurationMs, ErrorCode, LeaderEpoch, MonotonicMs, Offset, ProducerId, Text};

use super::super::*;
use crate::Ticket;

const SEEDS: u64 = 600;
const STEPS: usize = 250;
const MEMBERS: [&str; 3] = ["a", "b", "c"];

#[derive(Debug, Clone, PartialEq)]
struct Record {
    state: RecordState,
    count: u16,
    owner: Option<Text>,
    until: Option<u64>,
    /// The state before a change that is not written yet.
    before: Option<Box<Record>>,
}

/// A write that has not been answered.
struct Outstanding {
    id: WriteId,
    write: StateWrite,
    can_go_back: bool,
}

struct Day {
    seed: u64,
    settings: ShareSettings,
    committed: bool,
    now: u64,
    log: Vec<(FetchedBatch, bool)>,
    log_start: i64,
    partition: SharePartition,
    records: BTreeMap<i64, Record>,
    outstanding: VecDeque<Outstanding>,
    dead_letters: Vec<(Offset, Offset)>,
    /// What members were given, as far as they remember.
    given: Vec<(Text, Acquired)>,
    kept_start: i64,
    kept: BTreeMap<i64, (RecordState, u16)>,
    /// Accepted, and its member was told so.
    accepted: BTreeSet<i64>,
    tickets: u64,
    delivered: usize,
}

impl Day {
    fn new(seed: u64) -> Self {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut below = |limit: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % limit
        };
        let settings = ShareSettings {
            lock: DurationMs(1_000),
            deliveries_max: 2 + below(5) as u16,
            in_flight_max: [12, 40, 1_000][below(3) as usize],
            may_renew: below(4) != 0,
            dead_letters: below(3) == 0,
        };
        let state = WrittenState { state_epoch: StateEpoch(0), start: Offset(0), batches: Vec::new() };
        let partition =
            SharePartition::load(&state, LeaderEpoch(0), settings, &mut Vec::new()).expect("sound state");
        Self {
            seed: random,
            settings,
            committed: seed.is_multiple_of(2),
            now: 0,
            log: Vec::new(),
            log_start: 0,
            partition,
            records: BTreeMap::new(),
            outstanding: VecDeque::new(),
            dead_letters: Vec::new(),
            given: Vec::new(),
            kept_start: 0,
            kept: BTreeMap::new(),
            accepted: BTreeSet::new(),
            tickets: 0,
            delivered: 0,
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed % limit
    }

    fn member(&mut self) -> Text {
        Text::from(MEMBERS[self.below(MEMBERS.len() as u64) as usize])
    }

    fn run(mut self) -> usize {
        for _ in 0..STEPS {
            self.step();
            self.check();
        }
        self.finish();
        self.delivered
    }

    fn step(&mut self) {
        match self.below(100) {
            0..20 => self.append(),
            20..45 => self.fetch(),
            45..65 => self.acknowledge(),
            65..85 => {
                let fails = self.below(5) == 0;
                self.answer_write(fails);
            }
            85..90 => {
                self.now += self.below(700);
                self.expire();
            }
            90..94 => self.release(),
            94..96 => self.dead_letter(),
            96..98 => self.move_log_start(),
            98 => self.compact(),
            _ => self.restart(),
        }
    }

    fn append(&mut self) {
        let base = self.log.last().map_or(0, |(batch, _)| batch.last.get() + 1);
        let base = base + if self.below(10) == 0 { self.below(5) as i64 } else { 0 };
        let last = base + self.below(9) as i64;
        let aborted = self.below(6) == 0;
        let producer_id = ProducerId(if aborted { 9 } else { -1 });
        let new = FetchedBatch {
            base: Offset(base),
            last: Offset(last),
            producer_id,
            is_transactional: aborted,
            is_abort: false,
        };
        self.log.push((new, aborted));
        if aborted {
            let at = Offset(last + 1);
            self.log.push((FetchedBatch { base: at, last: at, is_abort: true, ..new }, false));
        }
    }

    /// What the log gives from `from` on.
    fn read(&mut self, from: Offset) -> (Vec<FetchedBatch>, Vec<(ProducerId, Offset)>) {
        let most = 1 + self.below(5) as usize;
        let holds = |(batch, _): &&(FetchedBatch, bool)| batch.last >= from;
        let read: Vec<(FetchedBatch, bool)> = self.log.iter().filter(holds).take(most).copied().collect();
        let aborted = read.iter().filter(|(_, aborted)| *aborted && self.committed);
        let aborted = aborted.map(|(batch, _)| (batch.producer_id, batch.base)).collect();
        (read.into_iter().map(|(batch, _)| batch).collect(), aborted)
    }

    fn fetch(&mut self) {
        let member = self.member();
        if !self.partition.can_acquire() {
            return;
        }
        let from = self.partition.next_fetch_offset();
        let (in_flight, end) = (self.partition.in_flight(), self.partition.end());
        let (fetched, aborted) = self.read(from);
        self.forget_gone(from, &fetched);
        let mode = [AcquireMode::BatchOptimized, AcquireMode::RecordLimit][self.below(2) as usize];
        let (records_max, batch_size) = (1 + self.below(20) as i64, 1 + self.below(12) as i64);
        let ask = Acquire { member: &member, mode, records_max, batch_size, from };
        let acquired = self.partition.acquire(&ask, &fetched, &aborted, MonotonicMs(self.now));
        let count: i64 = acquired.iter().map(Acquired::count).sum();
        assert!(mode == AcquireMode::BatchOptimized || count <= records_max, "{count} of {records_max}");
        for of in &acquired {
            let past = in_flight >= self.settings.in_flight_max && in_flight > 0 && of.last > end;
            assert!(!past, "{of:?} while {in_flight} were in flight");
            self.deliver(&member, of);
        }
        self.delivered += count as usize;
        self.given.extend(acquired.into_iter().map(|of| (member.clone(), of)));
    }

    /// Available records below the log start are gone.
    fn forget_gone(&mut self, from: Offset, fetched: &[FetchedBatch]) {
        let Some(first) = fetched.first().filter(|first| first.base > from) else { return };
        for record in self.records.range_mut(from.get()..first.base.get()).map(|(_, record)| record) {
            if record.state == RecordState::Available && record.before.is_none() {
                (record.state, record.owner) = (RecordState::Archived, None);
            }
        }
    }

    fn deliver(&mut self, member: &Text, of: &Acquired) {
        for offset in of.first.get()..=of.last.get() {
            assert!(offset >= self.log_start, "{offset} is gone");
            assert!(!self.accepted.contains(&offset), "{offset} was accepted");
            let batch =
                self.log.iter().find(|(batch, _)| (batch.base.get()..=batch.last.get()).contains(&offset));
            assert!(!self.committed || batch.is_none_or(|(_, aborted)| !aborted), "{offset} was aborted");
            let known = self.records.get(&offset);
            let free =
                known.is_none_or(|known| known.state == RecordState::Available && known.before.is_none());
            assert!(free, "{offset} is not free: {known:?}");
            let count = known.map_or(0, |known| known.count) + 1;
            assert!(
                of.delivery_count == count && count <= self.settings.deliveries_max,
                "{of:?}, not {count}"
            );
            let until = Some(self.now + self.settings.lock.0 as u64);
            let owner = Some(member.clone());
            let state = RecordState::Acquired;
            self.records.insert(offset, Record { state, count, owner, until, before: None });
        }
    }

    fn acknowledge(&mut self) {
        if self.given.is_empty() {
            return;
        }
        let mut batches = Vec::new();
        let whose = self.below(self.given.len() as u64) as usize;
        let (member, _) = self.given[whose].clone();
        let mut from = i64::MIN;
        for _ in 0..1 + self.below(3) {
            let at = self.below(self.given.len() as u64) as usize;
            let (_, of) =
                if self.below(8) == 0 { self.given.swap_remove(at) } else { self.given[at].clone() };
            let first = of.first.get() + self.below(of.count() as u64) as i64;
            let last = first + self.below((of.last.get() - first + 1) as u64) as i64;
            if first <= from || self.given.is_empty() {
                break;
            }
            from = last;
            let count = if self.below(2) == 0 { 1 } else { (last - first + 1) as usize };
            let types = (0..count).map(|_| AckType::from_code(self.below(5) as i8).expect("five")).collect();
            batches.push(AckBatch { first: Offset(first), last: Offset(last), types });
        }
        let expected = self.expect(&member, &batches);
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let mut effects = Vec::new();
        self.partition.acknowledge(&member, &batches, ticket, MonotonicMs(self.now), &mut effects);
        match expected {
            Some(changed) => {
                let refused = effects.iter().any(|effect| matches!(effect, ShareEffect::Answer(_, Err(_))));
                assert!(!refused, "{member} {batches:?} is sound: {effects:?}");
                self.take(effects, Some(changed), true);
            }
            None => {
                let [ShareEffect::Answer(_, Err(_))] = &effects[..] else {
                    panic!("{batches:?}: {effects:?}")
                };
            }
        }
    }

    /// What the acknowledgement must come to: the records that change, or nothing where it must be refused. Renewals
    /// hold as far as it is read before it is refused.
    fn expect(&mut self, member: &Text, batches: &[AckBatch]) -> Option<BTreeMap<i64, Record>> {
        let mut changed = BTreeMap::new();
        for batch in batches {
            if batch.last < self.partition.start() {
                continue;
            }
            for offset in batch.first.max(self.partition.start()).get()..=batch.last.get() {
                let record = changed.get(&offset).or_else(|| self.records.get(&offset))?.clone();
                let is_held = record.owner.as_ref() == Some(member);
                if record.state != RecordState::Acquired || record.before.is_some() || !is_held {
                    return None;
                }
                let said = batch.of(Offset(offset))?;
                if said == AckType::Renew {
                    if !self.settings.may_renew {
                        return None;
                    }
                    let until = Some(self.now + self.settings.lock.0 as u64);
                    self.records.insert(offset, Record { until, ..record });
                    continue;
                }
                let state = match said {
                    AckType::Accept => RecordState::Acknowledged,
                    AckType::Release => self.released(record.count),
                    AckType::Reject if self.settings.dead_letters => RecordState::Archiving,
                    _ => RecordState::Archived,
                };
                let before = Some(Box::new(record.clone()));
                changed.insert(offset, Record { state, owner: None, before, ..record });
            }
        }
        Some(changed)
    }

    fn released(&self, count: u16) -> RecordState {
        match count >= self.settings.deliveries_max {
            true if self.settings.dead_letters => RecordState::Archiving,
            true => RecordState::Archived,
            false => RecordState::Available,
        }
    }

    /// Takes effects in; `changed` is what they must write.
    fn take(&mut self, effects: Vec<ShareEffect>, changed: Option<BTreeMap<i64, Record>>, can_go_back: bool) {
        let mut to_write = changed;
        for effect in effects {
            match effect {
                ShareEffect::Write(id, write) => {
                    let changed = to_write.take().expect("one write");
                    let wrote: BTreeMap<i64, (RecordState, u16)> = each(&write);
                    let expected: BTreeMap<i64, (RecordState, u16)> = changed
                        .iter()
                        .map(|(&offset, record)| (offset, (record.state, record.count)))
                        .collect();
                    assert_eq!(wrote, expected);
                    self.records.extend(changed);
                    self.outstanding.push_back(Outstanding { id, write, can_go_back });
                }
                ShareEffect::DeadLetter { first, last, .. } => self.dead_letters.push((first, last)),
                ShareEffect::Answer(..) | ShareEffect::Fetchable => {}
            }
        }
        assert!(to_write.is_none_or(|left| left.is_empty()), "something was not written");
    }

    fn answer_write(&mut self, fails: bool) {
        let Some(Outstanding { id, write, can_go_back }) = self.outstanding.pop_front() else { return };
        let offsets = each(&write);
        if !fails {
            self.kept_start = self.kept_start.max(write.start.get());
            for (&offset, &(state, count)) in &offsets {
                self.kept.insert(offset, (state, count));
                if state == RecordState::Acknowledged {
                    self.accepted.insert(offset);
                }
            }
        }
        for offset in offsets.keys().filter(|_| can_go_back) {
            let now = self.now;
            let Some(record) = self.records.get(offset).cloned() else { continue };
            let Some(before) = record.before.clone() else { continue };
            let next = match (fails, record.until.is_some_and(|until| until <= now)) {
                (false, _) => Record { before: None, until: None, ..record },
                (true, false) => Record { until: record.until, ..*before },
                (true, true) => {
                    let spent = record.count >= self.settings.deliveries_max;
                    let state = if spent { RecordState::Archived } else { RecordState::Available };
                    Record { state, owner: None, until: None, before: None, ..record }
                }
            };
            self.records.insert(*offset, next);
        }
        let result = if fails { Err(ErrorCode::CoordinatorNotAvailable) } else { Ok(()) };
        let mut effects = Vec::new();
        self.partition.written(id, result, MonotonicMs(self.now), &mut effects);
        self.take(effects, None, false);
    }

    fn expire(&mut self) {
        let mut changed = BTreeMap::new();
        for (&offset, record) in &self.records {
            let is_over = record.until.is_some_and(|until| until <= self.now);
            if record.state == RecordState::Acquired && is_over {
                let state = self.released(record.count);
                changed.insert(offset, Record { state, owner: None, until: None, ..record.clone() });
            }
        }
        let mut effects = Vec::new();
        self.partition.expire(MonotonicMs(self.now), &mut effects);
        self.take(effects, Some(changed), false);
    }

    fn release(&mut self) {
        let member = self.member();
        let mut changed = BTreeMap::new();
        for (&offset, record) in &self.records {
            if record.state == RecordState::Acquired && record.owner.as_ref() == Some(&member) {
                let before = Some(Box::new(record.clone()));
                let state = self.released(record.count);
                changed.insert(offset, Record { state, owner: None, before, ..record.clone() });
            }
        }
        let mut effects = Vec::new();
        self.partition.release_member(&member, Ticket(0), &mut effects);
        self.take(effects, Some(changed), true);
    }

    fn dead_letter(&mut self) {
        if self.dead_letters.is_empty() {
            return;
        }
        let at = self.below(self.dead_letters.len() as u64) as usize;
        let (first, last) = self.dead_letters.swap_remove(at);
        let mut changed = BTreeMap::new();
        for (&offset, record) in self.records.range(first.get()..=last.get()) {
            assert!(record.before.is_none(), "{offset} is a dead letter before that is written");
            if record.state == RecordState::Archiving {
                changed.insert(offset, Record { state: RecordState::Archived, ..record.clone() });
            }
        }
        let mut effects = Vec::new();
        self.partition.dead_lettered(first, last, &mut effects);
        self.take(effects, Some(changed), false);
    }

    fn move_log_start(&mut self) {
        let Some((last, _)) = self.log.last().copied() else { return };
        let to = self.log_start + self.below((last.last.get() + 1 - self.log_start) as u64 / 2 + 1) as i64;
        self.log_start = to;
        self.log.retain(|(batch, _)| batch.last.get() >= to);
        self.partition.log_start_moved(Offset(to));
        self.records = self.records.split_off(&to);
    }

    /// A batch is compacted away.
    fn compact(&mut self) {
        if self.log.len() > 3 {
            let at = self.below(self.log.len() as u64 - 2) as usize;
            let (batch, _) = self.log[at];
            let is_untouched = self
                .records
                .range(batch.base.get()..=batch.last.get())
                .all(|(_, record)| record.state.is_done() && record.before.is_none());
            // Of what is free the machine learns by the next fetch; the model would have to read its mind.
            if is_untouched && !batch.is_transactional {
                self.log.remove(at);
            }
        }
    }

    /// Another leader takes over with what was written.
    fn restart(&mut self) {
        // What was sent is written, or lost.
        while !self.outstanding.is_empty() {
            let fails = self.below(2) == 0;
            self.answer_write(fails);
        }
        let start = self.kept_start;
        let written = WrittenState {
            state_epoch: StateEpoch(0),
            start: Offset(start),
            batches: batches(self.kept.range(start..).map(|(&offset, &kept)| (offset, kept))),
        };
        let mut effects = Vec::new();
        self.partition = SharePartition::load(&written, LeaderEpoch(1), self.settings, &mut effects)
            .unwrap_or_else(|bad| panic!("{bad}: {written:?}"));
        let kept = self.kept.range(start..).map(|(&offset, &(state, count))| {
            (offset, Record { state, count, owner: None, until: None, before: None })
        });
        self.records = kept.collect();
        self.dead_letters.clear();
        self.take(effects, None, false);
        self.partition.log_start_moved(Offset(self.log_start));
        self.records = self.records.split_off(&self.log_start);
    }

    fn check(&mut self) {
        let start = self.partition.start().get();
        for (offset, record) in self.records.range(..start) {
            let is_done = record.state.is_done() && record.before.is_none();
            assert!(is_done, "the start is at {start}, and {offset} is {record:?}");
        }
        let next = self.partition.next_fetch_offset().get();
        let free = self
            .records
            .iter()
            .find(|(_, record)| record.state == RecordState::Available && record.before.is_none());
        if let Some((&offset, record)) = free {
            assert!(next <= offset, "{next} is read next, and {offset} is {record:?}");
        }
        let done: i64 = self
            .partition
            .batches
            .iter()
            .flat_map(|(&first, batch)| batch.within(first, first, batch.last))
            .filter(|(_, state)| state.state.is_done())
            .map(|(run, _)| run.count())
            .sum();
        assert_eq!(self.partition.delivery_complete(), done);
        let lock = self.records.values().filter(|record| record.state == RecordState::Acquired);
        if let Some(first) = lock.filter_map(|record| record.until).min() {
            let known = self.partition.next_deadline().map(|at| at.0);
            assert!(known.is_some_and(|at| at <= first), "{known:?} is after {first}");
        }
    }

    /// Everything is done in the end, whatever happened before.
    fn finish(&mut self) {
        let member = Text::from("z");
        for _ in 0..20_000 {
            while !self.outstanding.is_empty() {
                self.answer_write(false);
            }
            while !self.dead_letters.is_empty() {
                self.dead_letter();
            }
            self.check();
            if !self.outstanding.is_empty() {
                continue;
            }
            let end = self.log.last().map_or(self.log_start, |(batch, _)| batch.last.get() + 1);
            if self.partition.start().get() >= end || self.log.is_empty() {
                return;
            }
            let from = self.partition.next_fetch_offset();
            let (fetched, aborted) = self.read(from);
            self.forget_gone(from, &fetched);
            let mode = AcquireMode::BatchOptimized;
            let ask = Acquire { member: &member, mode, records_max: 10, batch_size: 10, from };
            let acquired = self.partition.acquire(&ask, &fetched, &aborted, MonotonicMs(self.now));
            if acquired.is_empty() {
                self.now += self.settings.lock.0 as u64;
                self.expire();
                continue;
            }
            for of in &acquired {
                self.deliver(&member, of);
            }
            let accept =
                |of: &Acquired| AckBatch { first: of.first, last: of.last, types: vec![AckType::Accept] };
            let batches: Vec<AckBatch> = acquired.iter().map(accept).collect();
            let changed = self.expect(&member, &batches).expect("just acquired");
            let mut effects = Vec::new();
            self.partition.acknowledge(&member, &batches, Ticket(0), MonotonicMs(self.now), &mut effects);
            self.take(effects, Some(changed), true);
        }
        panic!("the start stays at {}: {:?}", self.partition.start(), self.partition);
    }
}

fn each(write: &StateWrite) -> BTreeMap<i64, (RecordState, u16)> {
    let of = |batch: &StateBatch| {
        let kept = (batch.state, batch.delivery_count);
        (batch.first.get()..=batch.last.get()).map(move |offset| (offset, kept))
    };
    write.batches.iter().flat_map(of).collect()
}

/// Neighbours of one kind in one, as the coordinator keeps them.
fn batches(kept: impl Iterator<Item = (i64, (RecordState, u16))>) -> Vec<StateBatch> {
    let mut list: Vec<StateBatch> = Vec::new();
    for (offset, (state, delivery_count)) in kept {
        match list.last_mut() {
            Some(last)
                if last.last.get() + 1 == offset
                    && (last.state, last.delivery_count) == (state, delivery_count) =>
            {
                last.last = Offset(offset);
            }
            _ => list.push(StateBatch { first: Offset(offset), last: Offset(offset), state, delivery_count }),
        }
    }
    list
}

#[test]
fn hundreds_of_days_go_as_the_model_says() {
    let mut delivered = 0;
    for seed in 0..SEEDS {
        delivered +=
            catch_unwind(AssertUnwindSafe(|| Day::new(seed).run())).unwrap_or_else(|_| panic!("seed {seed}"));
    }
    println!("{SEEDS} days: {delivered} deliveries");
    assert!(delivered > 100 * SEEDS as usize, "{delivered}");
}

#[cfg(planted)]
#[test]
fn planted_mistakes_of_a_share_partition_are_noticed() {
    barnabas_base::planted::hunt("share", |seed| {
        Day::new(seed).run();
        Ok(())
    });
}
