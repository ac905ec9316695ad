//! Which of a group's records are to be written, and their way to disk.
//!
//! State is exactly what the records say: each change notes its record, and [`Unwritten::flush`] writes the noted
//! records with the state of that moment. Entries of a lost batch are written again, so that state is never reverted
//! while later changes rest on it.

use std::collections::BTreeSet;

use barnabas_base::{DurationMs, Text};

use crate::framework::{BatchId, Record};
use crate::outbox::{GroupThen, Outbox, Then, TimerKey};
use crate::records::{Entry, GroupKind};

/// How long after a loss entries are written again, if no request has done so.
const SAVE_AGAIN: DurationMs = DurationMs(1_000);

#[derive(Debug, Default)]
pub(crate) struct Unwritten {
    dirty: Vec<Entry>,
    /// Entries of batches that were lost.
    lost: Vec<Entry>,
    /// What answers wait for.
    pub last_batch: BatchId,
}

impl Unwritten {
    /// This record is to be written again.
    pub fn note(&mut self, entry: Entry) {
        self.dirty.push(entry);
    }

    /// What is to be written, and what was lost.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        self.dirty.iter().chain(&self.lost).cloned()
    }

    /// Nothing has changed since the last flush.
    pub fn is_flushed(&self) -> bool {
        self.dirty.is_empty()
    }

    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// A batch with these entries never got to disk.
    pub fn lose(&mut self, group: &Text, entries: Vec<Entry>, out: &mut Outbox) {
        self.lost.extend(entries);
        out.set_timer(TimerKey::Save(group.clone()), SAVE_AGAIN);
    }

    /// Hands out the records that changed, in one batch or in as many as it takes.
    pub fn flush(
        &mut self,
        kind: GroupKind,
        group: &Text,
        record: impl Fn(&Entry) -> Record,
        out: &mut Outbox,
    ) {
        let mut entries = std::mem::take(&mut self.lost);
        if !entries.is_empty() {
            out.timers.cancel(&TimerKey::Save(group.clone()));
        }
        entries.append(&mut self.dirty);
        // Once each, where it was noted last: what says that others are there comes after those.
        let mut seen = BTreeSet::new();
        let mut entries: Vec<Entry> =
            entries.into_iter().rev().filter(|entry| seen.insert(entry.clone())).collect();
        entries.reverse();
        let bytes_max = out.config.batch_bytes_max;
        let (mut records, mut held, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut append = |records, entries, last: &mut BatchId| {
            let written = GroupThen::Written { kind, group: group.clone(), entries };
            *last = out.append(records, Then { groups: vec![written], ..Then::default() });
        };
        for entry in entries {
            let record = record(&entry);
            if !records.is_empty() && bytes + record.bytes() > bytes_max {
                append(std::mem::take(&mut records), std::mem::take(&mut held), &mut self.last_batch);
                bytes = 0;
            }
            bytes += record.bytes();
            records.push(record);
            held.push(entry);
        }
        if !records.is_empty() {
            append(records, held, &mut self.last_batch);
        }
    }
}
