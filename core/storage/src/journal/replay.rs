//! What each partition's log lacks after a crash: the journal's tail, folded per partition, and turned into steps once
//! the log is open and its end is known.
//!
//! Writing back may have got anywhere before the crash, so the steps are the same whatever was written back: what the
//! log holds already is skipped, and a log that ends before what was synced into it is reported, never papered over. A
//! truncation that records follow was carried out and synced before they came (core/replica): it is not carried out
//! again, since the log may have been compacted after it.

use std::sync::Arc;

use barnabas_base::{LeaderEpoch, Offset};
use bytes::Bytes;

use super::error::JournalError;
use super::types::{Entry, EntryKind, JournalPartition, WriteBackOp};
use crate::segment::batch::{AppendBytes, BatchHeader};

/// The journal's tail of one partition.
#[derive(Debug, Clone)]
pub struct PartitionReplay {
    pub partition: Arc<JournalPartition>,
    /// The partition left this directory; what the journal says after that is of a new beginning.
    pub removed: bool,
    /// The log was given up and goes on here.
    pub restart: Option<Offset>,
    /// The log was cut here.
    pub cut: Option<Offset>,
    /// Nothing follows this truncation: the log may hold what it was to give up.
    pub(super) pending_cut: Option<Offset>,
    /// The log was synced up to here.
    pub synced_end: Option<Offset>,
    /// The round that said so: the segments hold all before it.
    pub(super) synced_round: Option<u64>,
    pub items: Vec<ReplayItem>,
}

/// One append, as it was submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayItem {
    /// The round that holds it.
    pub(super) round: u64,
    pub from: Offset,
    pub end: Offset,
    pub leader_epoch: LeaderEpoch,
    pub records: Bytes,
}

impl PartitionReplay {
    pub(crate) fn new(partition: Arc<JournalPartition>) -> Self {
        Self {
            partition,
            removed: false,
            restart: None,
            cut: None,
            pending_cut: None,
            synced_end: None,
            synced_round: None,
            items: Vec::new(),
        }
    }

    /// Folds the next entry in, of this round.
    pub(super) fn apply(&mut self, entry: Entry, round: u64) {
        match entry.kind {
            EntryKind::Records { from, end, records: AppendBytes::Whole(records) } => {
                // A truncation is always an entry of its own; should one be missing, the later records count.
                if self.items.last().is_some_and(|last| last.end > from) {
                    self.truncate(from);
                } else {
                    self.pending_cut = None;
                }
                self.items.push(ReplayItem { round, from, end, leader_epoch: entry.leader_epoch, records });
            }
            EntryKind::Records { records: AppendBytes::Split { .. }, .. } => {
                unreachable!("what is read from the journal is in one piece")
            }
            EntryKind::Range { end, .. } => {
                // Everything before it was written back and synced, truncations included.
                let fresh = Self::new(Arc::clone(&self.partition));
                *self = Self { synced_end: Some(end), synced_round: Some(round), ..fresh };
            }
            EntryKind::Truncate { end } => self.truncate(end),
            EntryKind::Restart { at } => {
                let fresh = Self::new(Arc::clone(&self.partition));
                *self = Self { removed: self.removed, restart: Some(at), ..fresh };
            }
            EntryKind::Remove => {
                *self = Self { removed: true, ..Self::new(Arc::clone(&self.partition)) };
            }
        }
    }

    fn truncate(&mut self, end: Offset) {
        self.cut = Some(self.cut.map_or(end, |cut| cut.min(end)));
        self.pending_cut = Some(self.pending_cut.map_or(end, |cut| cut.min(end)));
        self.synced_end = self.synced_end.map(|synced| synced.min(end));
        self.items.retain(|item| item.from < end);
        if let Some(last) = self.items.last_mut().filter(|last| last.end > end) {
            last.keep_below(end);
        }
        if self.items.last().is_some_and(|last| last.records.is_empty()) {
            self.items.pop();
        }
    }

    /// Whether this only adds to what the log has, so that it may wait until the partition is opened.
    pub fn only_appends(&self) -> bool {
        !self.starts_afresh() && self.cut.is_none()
    }

    /// Where its appends end; `None`: it has none, or does more than append.
    pub fn appends_to(&self) -> Option<Offset> {
        self.items.last().filter(|_| self.only_appends()).map(|item| item.end)
    }

    /// Record bytes.
    pub fn bytes(&self) -> u64 {
        self.items.iter().map(|item| item.records.len() as u64).sum()
    }

    /// Whether the log is to be emptied before anything else, whatever it holds.
    pub fn starts_afresh(&self) -> bool {
        self.removed || self.restart.is_some()
    }

    /// Whether the partition's removal is the last that the journal says of it.
    pub fn ends_with_removal(&self) -> bool {
        self.removed && self.restart.is_none() && self.cut.is_none() && self.items.is_empty()
    }

    /// Whether this is all of the log: it needs nothing that is in segments alone. What a start finds in segments and
    /// not here stays there, so the appends may have a gap.
    pub fn is_whole_log(&self) -> bool {
        let has_gap = self.items.windows(2).any(|pair| pair[1].from > pair[0].end);
        self.synced_below() == Offset::ZERO && !has_gap
    }

    /// The log is synced up to here: what the journal holds no more was written back and synced, also below a
    /// truncation, and ranges say so themselves. The directory's checkpoint file lags behind that.
    pub fn synced_below(&self) -> Offset {
        if self.starts_afresh() {
            return Offset::ZERO;
        }
        let first = self.items.first().map(|item| item.from).into_iter().chain(self.cut).min();
        first.max(self.synced_end).unwrap_or(Offset::ZERO)
    }

    /// The steps that bring a log which ends at `log_end` to where the journal says it ended. Doing them again, or
    /// after only some of them were done before the next crash, changes nothing.
    ///
    /// # Errors
    /// [`JournalError::Missing`]: the log lacks what was synced; nothing is to be replayed into it.
    pub fn steps(&self, log_end: Offset) -> Result<Vec<WriteBackOp>, JournalError> {
        let mut steps = Vec::new();
        let mut end = log_end;
        if self.removed {
            steps.push(WriteBackOp::Remove);
            end = self.items.first().map_or(Offset::ZERO, |item| item.from);
        }
        if let Some(at) = self.restart {
            steps.push(WriteBackOp::Restart { at });
            end = at;
        }
        let synced = if self.starts_afresh() { None } else { self.synced_end };
        if let Some(expected) = synced.filter(|synced| *synced > end) {
            return Err(self.missing(end, expected));
        }
        if let Some(cut) = self.pending_cut.filter(|cut| *cut < end && !self.starts_afresh()) {
            steps.push(WriteBackOp::Truncate { end: cut });
            end = cut;
        }
        for item in &self.items {
            if item.end <= end {
                continue;
            }
            if item.from > end {
                return Err(self.missing(end, item.from));
            }
            let mut lacking = item.clone();
            lacking.drop_below(end);
            end = item.end;
            steps.push(lacking.append());
        }
        Ok(steps)
    }

    fn missing(&self, found: Offset, expected: Offset) -> JournalError {
        JournalError::Missing { partition: self.partition.topic_partition.clone(), found, expected }
    }
}

impl ReplayItem {
    pub(super) fn append(&self) -> WriteBackOp {
        WriteBackOp::Append {
            from: self.from,
            end: self.end,
            leader_epoch: self.leader_epoch,
            records: AppendBytes::Whole(self.records.clone()),
        }
    }

    /// Keeps the whole batches that lie below `end`.
    fn keep_below(&mut self, end: Offset) {
        let kept = self.batches_while(|header| header.next_offset() <= end);
        self.records.truncate(kept);
        self.end = end;
    }

    /// Drops the whole batches that lie below `end`, where the log holds them already.
    fn drop_below(&mut self, end: Offset) {
        let dropped = self.batches_while(|header| header.next_offset() <= end);
        self.records = self.records.slice(dropped..);
        self.from = self.from.max(end);
    }

    /// Bytes of the batches at the front that satisfy `is_wanted`.
    fn batches_while(&self, is_wanted: impl Fn(&BatchHeader) -> bool) -> usize {
        let mut at = 0;
        while let Ok(header) = BatchHeader::parse(&self.records[at..]) {
            if !is_wanted(&header) || at + header.size as usize > self.records.len() {
                break;
            }
            at += header.size as usize;
        }
        at
    }
}
