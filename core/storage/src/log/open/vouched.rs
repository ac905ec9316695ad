//! Up to where an unclean start would still know the producers, were everything below gone.
//!
//! A start believes a producer snapshot where the directory's checkpoint file has passed it. So a segment may go only
//! when such a snapshot lies at or behind its end: otherwise a crash forgets the producers whose batches stood there
//! alone, and takes what one of them sends again for something new.
//!
//! Neighbours: small_files.rs writes snapshots, sync.rs says what is durable, upkeep.rs of the shell asks before it
//! deletes.

use barnabas_base::Offset;

use crate::log::Log;

/// Where producer snapshots stand; [`Offset::NONE`]: nowhere.
#[derive(Debug, Clone, Copy)]
pub(in crate::log) struct Vouched {
    /// The newest that this process has written.
    written: Offset,
    /// The newest that is durable.
    synced: Offset,
    /// A durable one that the checkpoint file has not passed yet.
    awaited: Offset,
    /// The newest that a start would believe.
    vouched: Offset,
}

impl Vouched {
    pub const NOTHING: Self =
        Self { written: Offset::NONE, synced: Offset::NONE, awaited: Offset::NONE, vouched: Offset::NONE };

    /// A start has found a snapshot at `newest`, which it believes.
    pub fn found(newest: Offset) -> Self {
        Self { vouched: newest, ..Self::NOTHING }
    }

    pub fn write(&mut self, at: Offset) {
        self.written = at;
    }

    /// The newest that a ticket which is taken now covers.
    pub fn in_ticket(&self) -> Offset {
        self.written
    }

    pub fn sync(&mut self, at: Offset) {
        self.synced = self.synced.max(at);
    }

    /// The checkpoint file says `on_disk`.
    ///
    /// One snapshot is waited for at a time: under load the newest is always ahead of the file.
    pub fn checkpoint(&mut self, on_disk: Offset) {
        if self.awaited == Offset::NONE && self.synced > self.vouched {
            self.awaited = self.synced;
        }
        if self.awaited != Offset::NONE && self.awaited <= on_disk {
            self.vouched = std::mem::replace(&mut self.awaited, Offset::NONE);
        }
    }

    /// The log was cut at `offset`: snapshots behind it are gone.
    pub fn cut(&mut self, offset: Offset) {
        if [self.written, self.synced, self.awaited, self.vouched].iter().any(|at| *at > offset) {
            *self = Self::NOTHING;
        }
    }
}

impl Log {
    /// What lies below may be deleted without an unclean start forgetting producers; [`Offset::NONE`]: nothing.
    pub fn producers_vouched(&self) -> Offset {
        self.vouched.vouched
    }

    /// Whether a snapshot at or behind `offset` was written by this process: it counts once it is durable and two
    /// checkpoints have passed.
    pub fn has_snapshot_from(&self, offset: Offset) -> bool {
        self.vouched.written >= offset
    }
}
