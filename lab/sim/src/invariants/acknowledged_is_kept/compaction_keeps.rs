//! Of a compacted log: the last value of each key is there that counts, at its offset; what is there is as it was
//! written, in its order; an older value is gone for good once its tombstone is; a tombstone and a marker stay for
//! `delete.retention.ms` at least, and a marker until nothing of its transaction is left; nothing that may not be
//! cleaned is touched.
//!
//! A replica that was away for longer than a tombstone lived has never had it, and keeps the older value, as in Kafka:
//! what such a replica lacks is not asked of it (`had`).
//!
//! Neighbours: lab/sim/src/batch/keyed.rs, whose records these are.

use std::collections::BTreeMap;

use barnabas_base::{DurationMs, MonotonicMs, Offset, ProducerId};
use bytes::Bytes;

use crate::batch::{Contents, KeyedRecord};
use crate::invariants::{Batch, History, Readable, Violation};

/// How long tombstones stay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub delete_retention: DurationMs,
}

/// Batches as they were before compaction, and what became of transactions.
pub(in crate::invariants) struct Known<'a> {
    batches: Vec<&'a Batch>,
    /// What lies below is not known.
    start: Offset,
    /// Whether each batch of a transaction that is over was committed.
    fates: BTreeMap<Offset, bool>,
    /// The batches that each marker ends.
    ended: BTreeMap<Offset, Vec<Offset>>,
}

/// When a batch was shown, how old it has to be, and whether the replica was given a record.
pub(in crate::invariants) struct Asked<'a> {
    pub history: &'a History,
    pub rules: Rules,
    pub now: MonotonicMs,
    pub had: &'a dyn Fn(Offset) -> bool,
}

impl Asked<'_> {
    /// Whether a tombstone or a marker may be gone.
    fn may_be_gone(&self, base: Offset) -> bool {
        let shown_at = self.history.shown_at.get(&base);
        shown_at.is_some_and(|at| at.plus(self.rules.delete_retention) <= self.now)
    }
}

impl<'a> Known<'a> {
    /// In the order of their offsets.
    pub fn of(batches: impl Iterator<Item = &'a Batch>, start: Offset) -> Self {
        let mut known = Self { batches: Vec::new(), start, fates: BTreeMap::new(), ended: BTreeMap::new() };
        let mut open: BTreeMap<ProducerId, Vec<Offset>> = BTreeMap::new();
        for batch in batches {
            known.batches.push(batch);
            if batch.is_transactional() {
                open.entry(batch.producer).or_default().push(batch.base);
            }
            if let Contents::Marker { commit, .. } = batch.contents {
                let ended = open.remove(&batch.producer).unwrap_or_default();
                known.fates.extend(ended.iter().map(|base| (*base, commit)));
                known.ended.insert(batch.base, ended);
            }
        }
        known
    }

    fn is_visible(&self, batch: &Batch) -> bool {
        !batch.is_transactional() || self.fates.get(&batch.base) == Some(&true)
    }

    /// The newest record of each key.
    fn newest<'b>(&self, batches: impl Iterator<Item = &'b Batch>, from: Offset) -> Newest {
        let visible = batches.filter(|batch| self.is_visible(batch));
        let records = visible.flat_map(|batch| batch.keyed()).filter(|record| record.offset >= from);
        records.map(|record| (record.key.clone(), record)).collect()
    }
}

type Newest = BTreeMap<Bytes, KeyedRecord>;

/// What is left of a log.
pub(in crate::invariants) fn check(
    known: &Known<'_>,
    log: &Readable,
    asked: &Asked<'_>,
) -> Result<(), Violation> {
    let found: BTreeMap<Offset, &Batch> = log.batches.iter().map(|batch| (batch.base, batch)).collect();
    let start = log.start.max(known.start);
    let reached = known.batches.iter().copied().filter(|batch| batch.end() <= log.end);
    let expected: Vec<&Batch> = reached.filter(|batch| batch.end() > start).collect();
    let newest = known.newest(expected.iter().copied(), start);
    for batch in &expected {
        let left = found.get(&batch.base).copied();
        if left.is_some_and(|left| !left.is_left_of(batch)) {
            return Err(format!("{left:?} is there, where {batch:?} was"));
        }
        let is_there =
            |offset: Offset| left.is_some_and(|left| left.left.contains(&(offset.since(left.base) as i32)));
        for record in batch.keyed() {
            if record.offset < start || is_there(record.offset) {
                continue;
            }
            let fate = known.fates.get(&batch.base).copied().or_else(|| fate_in(log, batch));
            may_go(batch, &record, (fate, &newest), asked)?;
        }
        if matches!(batch.contents, Contents::Marker { .. }) && !is_there(batch.base) {
            marker_may_go(batch, known, &found, asked)?;
        }
    }
    let end = known.batches.last().map_or(Offset::ZERO, |last| last.end());
    let is_known =
        |batch: &&Batch| known.batches.binary_search_by_key(&batch.base, |known| known.base).is_ok();
    // What came since is not judged.
    let judged = || log.batches.iter().filter(|batch| batch.end() <= end && batch.end() > start);
    if let Some(strange) = judged().find(|batch| !is_known(batch)) {
        return Err(format!("{strange:?} was not there"));
    }
    same_view(&newest, &known.newest(judged(), start), asked)
}

/// By a marker that was not shown yet. The last stable offset passes its transaction where a start has loaded it, as
/// Kafka's, and no other decision can follow.
fn fate_in(log: &Readable, batch: &Batch) -> Option<bool> {
    let mut behind = log.batches.iter().filter(|marker| {
        batch.is_transactional() && marker.producer == batch.producer && marker.base > batch.base
    });
    behind.find_map(|marker| match marker.contents {
        Contents::Marker { commit, .. } => Some(commit),
        _ => None,
    })
}

fn may_go(
    batch: &Batch,
    record: &KeyedRecord,
    (fate, newest): (Option<bool>, &Newest),
    asked: &Asked<'_>,
) -> Result<(), Violation> {
    let has_newer = newest.get(&record.key).is_some_and(|newest| newest.offset > record.offset);
    let is_decided = !batch.is_transactional() || fate.is_some();
    let is_forgotten = record.is_tombstone && asked.may_be_gone(batch.base);
    match is_decided && (fate == Some(false) || has_newer || is_forgotten) {
        true => Ok(()),
        false => Err(format!("{record:?} of {batch:?} is gone at {}, committed: {fate:?}", asked.now.0)),
    }
}

fn marker_may_go(
    marker: &Batch,
    known: &Known<'_>,
    found: &BTreeMap<Offset, &Batch>,
    asked: &Asked<'_>,
) -> Result<(), Violation> {
    if !(asked.had)(marker.base) {
        return Ok(());
    }
    let ended = known.ended.get(&marker.base).into_iter().flatten();
    let is_left = |base: &&Offset| found.get(base).is_some_and(|batch| !batch.left.is_empty());
    match ended.clone().find(is_left) {
        Some(base) => Err(format!("{marker:?} is gone, and what it ends is at {base}")),
        None if !asked.may_be_gone(marker.base) => Err(format!("{marker:?} is gone at {}", asked.now.0)),
        None => Ok(()),
    }
}

/// A reader sees the same in the end.
fn same_view(newest: &Newest, left: &Newest, asked: &Asked<'_>) -> Result<(), Violation> {
    for (key, record) in newest {
        match left.get(key) {
            Some(seen) if seen.offset != record.offset && (asked.had)(record.offset) => {
                return Err(format!("{seen:?} is seen again, and the newest is {record:?}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// One cleaning: what may not be cleaned is as it was, and nothing came that was not there.
pub(in crate::invariants) fn check_swap(
    before: &Readable,
    after: &Readable,
    bound: Offset,
) -> Result<(), Violation> {
    if (before.start, before.end) != (after.start, after.end) {
        return Err("the log begins or ends elsewhere".to_owned());
    }
    let past = |log: &Readable| -> Vec<Batch> {
        log.batches.iter().filter(|batch| batch.end() > bound).cloned().collect()
    };
    if past(before) != past(after) {
        return Err(format!("something at or past {bound} is not as it was"));
    }
    let was = |left: &&Batch| {
        let at = before.batches.binary_search_by_key(&left.base, |batch| batch.base);
        at.is_ok_and(|at| left.is_left_of(&before.batches[at]))
    };
    match after.batches.iter().find(|left| !was(left)) {
        Some(strange) => Err(format!("{strange:?} was not there before")),
        None => Ok(()),
    }
}
