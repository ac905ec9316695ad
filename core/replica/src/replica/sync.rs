//! What of a replica is in files and not synced, and what a finished sync makes durable.
//!
//! A replica has one sync request under way at most. A write that stays in the files of that request is covered by it,
//! as long as the sync has not begun: so one sync serves several batches.
//!
//! Always true: a sync request never covers a file that was begun after it was handed in.
//!
//! Neighbours: core/storage's `Log::take_dirty`; shell/broker/src/log_dirs/committer.rs, which syncs.

use barnabas_base::{DurationMs, MonotonicMs, Offset};
use barnabas_storage::{Appended, Dirty};

use crate::{Effect, Replica};

/// The sync request of a replica.
#[derive(Debug, Default)]
pub struct SyncState {
    /// A request is with the committer.
    pub is_in_flight: bool,
    /// What is written now is covered by that request: no new segment was begun since.
    covers_writes: bool,
    /// Batches written since the last request.
    batches: u32,
    /// What closing the log wrote and is not synced yet.
    pub closing: Option<Dirty>,
    /// That is synced with the file system as a whole.
    pub closes_with_file_system: bool,
}

impl SyncState {
    /// Nothing that was handed in counts any more: the log was truncated, or lies elsewhere.
    pub(crate) fn forget_covered(&mut self, effects: &mut Vec<Effect>) {
        if std::mem::take(&mut self.covers_writes) {
            effects.push(Effect::SyncEnds);
        }
    }

    /// The log is another one now, of which nothing was handed in.
    pub fn restart(&mut self, effects: &mut Vec<Effect>) {
        self.forget_covered(effects);
        self.is_in_flight = false;
        self.batches = 0;
    }
}

/// When unsynced records are synced with `log.ack.durability=written`.
#[derive(Debug)]
pub struct Flush {
    /// Producers wait until everything that is written is synced (`flush.messages`).
    pub(crate) is_awaited: bool,
    /// `flush.messages`.
    pub messages_max: i64,
    /// `flush.ms`.
    pub after: DurationMs,
    /// Offsets written since the last sync.
    pub(crate) unflushed: i64,
    pub(crate) unflushed_since: Option<MonotonicMs>,
}

impl Default for Flush {
    fn default() -> Self {
        Self {
            is_awaited: false,
            messages_max: i64::MAX,
            after: DurationMs(i64::MAX),
            unflushed: 0,
            unflushed_since: None,
        }
    }
}

impl Replica {
    /// What has to be synced, and for how many batches. `None`: nothing is unsynced, or a request is under way.
    pub fn take_sync(&mut self) -> Option<(Dirty, u32)> {
        if self.sync.is_in_flight {
            return None;
        }
        let dirty = self.log.take_dirty()?;
        self.sync.is_in_flight = true;
        self.sync.covers_writes = true;
        Some((dirty, std::mem::take(&mut self.sync.batches)))
    }

    /// Batches were written into the segment.
    pub(crate) fn note_written(&mut self, appended: &Appended, batches: usize, effects: &mut Vec<Effect>) {
        self.sync.batches = self.sync.batches.saturating_add(batches as u32);
        self.readers.unannounced_bytes += appended.bytes as i64;
        self.upkeep.is_changed = true;
        self.note_in_files(appended.end, appended.rolled, effects);
    }

    /// Everything below `end` is in files, and since `rolled` in a new one.
    pub(crate) fn note_in_files(&mut self, end: Offset, rolled: Option<Offset>, effects: &mut Vec<Effect>) {
        match (self.sync.covers_writes, rolled) {
            (true, None) => effects.push(Effect::SyncCovers(end)),
            (true, Some(_)) => self.sync.forget_covered(effects),
            (false, _) => {}
        }
    }
}
