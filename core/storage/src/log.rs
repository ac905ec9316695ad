//! One partition's log in Kafka's files: append, read, roll, truncate, retain, recover.
//!
//! Batches that are validated and numbered take one of two ways. *Staged* batches ([`Log::stage`]) are in memory
//! (the log's *tail*, tail.rs), become durable with the directory's journal, and are *written back* to the segments
//! later, many at once ([`Log::write_back`]). *Appended* batches ([`Log::append`]) go into the segment at once.
//! Either way, [`Log::take_dirty`] returns what has to be synced before the segments count as durable, so that one
//! thread can sync many logs in one round and report back ([`Log::mark_synced`]). Reads use segments and tail
//! together, without a visible difference. Nothing exists on disk before the first append or write-back.
//!
//! Does not decide: offsets, the high watermark, producers' sequences (core/partition), when to write back
//! (core/storage/src/journal) and when to sync (the worker).
//!
//! ```text
//! 0 ───── start ────────────── recovery_point ─────── segment_end ──────── end
//!           │ segments, synced       │ segments, written  │ staged        │
//!                           │ in memory as well, for readers              │
//! ```
//!
//! Always true:
//! 1. `start ≤ end`, `recovery_point ≤ segment_end ≤ end`
//! 2. all bytes and names below `recovery_point` were covered by a sync that succeeded
//! 3. segments follow one another in rising order of base offset; only the last one is written to
//! 4. what is acknowledged as durable lies below `recovery_point` or in the journal, whatever the directory's
//!    checkpoint file says yet
//! 5. the segments that a log has after its batches were written back are those that it would have, had they been
//!    appended
//!
//! After a crash the checkpoint file vouches for less than 4: it is written now and then, so it names a lower bound
//! of what was synced. Damage below it is damage to synced data, and stops the log ([`StorageError::Damaged`]). Past
//! it, a torn write that was never synced and a byte that rotted after its sync look the same; there the log is
//! truncated at the first invalid batch, as in Kafka, and the caller gets [`Opened::cut`]. The more often
//! checkpoints are written, the less can be truncated. See docs/format/recovery.md.

mod append;
mod open;
mod read;
mod retention;
mod small_files;
mod sound;
mod tail;
mod types;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use barnabas_base::{LeaderEpoch, LeaderEpochs, Offset, TimestampMs};

use crate::disk::file_pool::{FileKey, FileKind, FilePool, HeldFile, LogId};
use crate::disk::{DiskError, DiskFile, OpenMode};
use crate::error::StorageError;
use crate::log_config::LogConfig;
use crate::segment::offset_index::OffsetEntries;
use crate::segment::time_index::TimeEntries;
use crate::segment::{Segment, offset_path};

pub use read::time_search::TimedBatch;
pub use retention::replace::{CleanBounds, CompactionDebt};
pub use sound::mend::{DamagedPlace, Mend};
pub use tail::memory::TailMemory;
pub use types::{
    Appended, BatchesRead, Dirty, FoundTimestamp, LogPlace, LogPosition, OpenFrom, Opened, Staged,
    StagedRecords, SyncTicket, TailCut, WrittenBack,
};

/// One partition's log. See the file's header.
#[derive(Debug)]
pub struct Log {
    id: LogId,
    place: LogPlace,
    config: Arc<LogConfig>,
    start: Offset,
    /// The end of the segments. What is staged lies behind it, in `tail`.
    segment_end: Offset,
    recovery_point: Offset,
    epochs: LeaderEpochs,
    /// The epochs are not written down as they are.
    epochs_changed: bool,
    /// They are written down, and a ticket with a higher number than this covers that.
    epochs_unsynced: Option<u32>,
    /// The last deleted offset, which a file's name says while the epochs cannot (retention/front.rs).
    front_named: Option<Offset>,
    /// Oldest first; empty while nothing is on disk.
    segments: Vec<Segment>,
    active: Active,
    /// The newest batches, where any are in memory.
    tail: Option<Box<tail::Tail>>,
    dirty: Unsynced,
    settling: Settling,
    /// What a start would have to read for the producers' states, roughly.
    since_snapshot: u64,
    /// What [`Log::checkpoint`] said last, and before that.
    checkpointed: [Offset; 2],
    vouched: open::vouched::Vouched,
    /// Goes up whenever bytes below `end` are given up, so that a sync begun before counts for nothing.
    generation: u32,
    /// So many tickets were taken.
    tickets: u32,
    /// Where the reads that may come next begin.
    hints: [Option<ReadHint>; 2],
    /// What readers have found sound.
    sound: Option<Box<sound::Sound>>,
    failed: bool,
}

/// What only the segment that is written to has.
#[derive(Debug, Default)]
struct Active {
    offsets: OffsetEntries,
    times: TimeEntries,
    /// The newest time entry's timestamp; −1 without one.
    last_time: TimestampMs,
    /// Bytes since the batch that got the newest offset entry, that batch included.
    since_entry: u32,
    /// Up to where this process has set room aside in its file.
    room: u64,
    /// What of the segment's last block is full, where that block was written directly: it is written again with the
    /// next.
    last_block: Vec<u8>,
    /// More room may be set aside than is used, and the file may go on with zeros up to the end of a block: by this
    /// process, or by one that ended uncleanly.
    has_spare_room: bool,
}

/// How far it is that what an earlier process did to the files, and did not sync, is durable
/// ([`OpenFrom::is_unsettled`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settling {
    Done,
    /// Before anything is written.
    Due,
    /// A ticket with a higher number than this covers it.
    Noted(u32),
}

/// What was written and not yet handed out to be synced. Holds the files open: closing one could lose the report of a
/// failed write.
#[derive(Debug, Default)]
struct Unsynced {
    files: Vec<(FileKey, HeldFile)>,
    /// More than may be held open: the file system is synced.
    is_whole: bool,
    /// Names in the partition's directory have changed.
    dir: bool,
    /// The partition's directory itself is new.
    root: bool,
}

/// A batch with no offset below `offset` begins at `position`.
#[derive(Debug, Clone, Copy)]
struct ReadHint {
    offset: Offset,
    position: LogPosition,
}

impl Log {
    /// A log that does not exist on disk yet, and will not before its first append.
    pub fn create(place: LogPlace, config: Arc<LogConfig>, start: Offset) -> Self {
        Self {
            id: LogId::next(),
            place,
            config,
            start,
            segment_end: start,
            recovery_point: start,
            epochs: LeaderEpochs::default(),
            epochs_changed: false,
            epochs_unsynced: None,
            front_named: None,
            segments: Vec::new(),
            active: Active::default(),
            tail: None,
            dirty: Unsynced::default(),
            settling: Settling::Done,
            since_snapshot: 0,
            checkpointed: [Offset::ZERO; 2],
            vouched: open::vouched::Vouched::NOTHING,
            generation: 0,
            tickets: 0,
            hints: [None; 2],
            sound: None,
            failed: false,
        }
    }

    pub fn place(&self) -> &LogPlace {
        &self.place
    }

    /// The first offset that may be read.
    pub fn start(&self) -> Offset {
        self.start
    }

    /// The offset that the next record gets.
    pub fn end(&self) -> Offset {
        self.tail.as_ref().and_then(|tail| tail.staged_end()).unwrap_or(self.segment_end)
    }

    /// Everything below is durable in the segments.
    pub fn recovery_point(&self) -> Offset {
        self.recovery_point
    }

    /// Which leader epoch began where.
    pub fn epochs(&self) -> &LeaderEpochs {
        &self.epochs
    }

    /// Notes that `epoch` begins at `start` (a new leader's first act); written down with the next checkpoint. Returns
    /// whether that was news.
    pub fn assign_epoch(&mut self, epoch: LeaderEpoch, start: Offset) -> bool {
        let news = self.epochs.assign(epoch, start);
        self.epochs_changed |= news;
        news
    }

    /// Takes over what another log of the same records knows of leader epochs: it may know of some that wrote nothing.
    pub fn adopt_epochs(&mut self, mut epochs: LeaderEpochs) {
        epochs.truncate_from_start(self.start);
        self.epochs_changed |= epochs != self.epochs;
        self.epochs = epochs;
    }

    /// A copy that was in the making is the partition's log from now on: its directory has been renamed. Its files must
    /// be closed ([`Log::abandon_files`]) before that.
    pub fn become_current(&mut self) {
        self.place.future = None;
    }

    /// Bytes of all records: those in segments and those that are staged.
    pub fn size_bytes(&self) -> u64 {
        let written_back: u64 = self.segments.iter().map(|segment| u64::from(segment.size)).sum();
        written_back + self.staged_bytes()
    }

    pub fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// The first offset that some segment can hold; where the log's start lies above it, `log-start-offset-checkpoint`
    /// must say so.
    pub fn first_segment_base(&self) -> Offset {
        self.segments.first().map_or(self.start, |segment| segment.base)
    }

    /// The base offset of the segment that is written to.
    pub fn active_segment_base(&self) -> Offset {
        self.segments.last().map_or(self.segment_end, |segment| segment.base)
    }

    /// Whether the log exists on disk.
    pub fn is_on_disk(&self) -> bool {
        !self.segments.is_empty()
    }

    pub fn config(&self) -> &Arc<LogConfig> {
        &self.config
    }

    /// New settings hold from the next append, roll or retention on.
    pub fn set_config(&mut self, config: Arc<LogConfig>) {
        self.config = config;
    }

    /// A write or sync in this log's directory failed: no more writes.
    pub fn fail(&mut self) {
        self.failed = true;
    }

    fn check_writable(&self) -> Result<(), StorageError> {
        if self.failed { Err(StorageError::Failed(self.place.dir())) } else { Ok(()) }
    }

    /// Runs a change of the files; if the machine fails in the middle of it, the log takes no more writes.
    fn change<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        self.check_writable()?;
        let done = work(self);
        self.failed |= done.is_err();
        done
    }

    /// As [`Log::change`], for work that leaves the log as it was where it finds the disk full, or no descriptor left.
    fn attempt<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        self.check_writable()?;
        let done = work(self);
        self.failed |= done.as_ref().is_err_and(|error| !error.is_passing());
        done
    }

    fn path(&self, base: Offset, kind: FileKind) -> PathBuf {
        offset_path(&self.place.dir(), base, kind.suffix())
    }

    fn key(&self, base: Offset, kind: FileKind) -> FileKey {
        FileKey { log: self.id, base, kind }
    }

    /// A segment's file, to read and write; made if missing.
    fn file(
        &self,
        files: &mut FilePool,
        base: Offset,
        kind: FileKind,
    ) -> Result<Arc<dyn DiskFile>, DiskError> {
        // A log that has failed in the midst of its renames may lack a file: a start must not find an empty one.
        let mode = if self.failed { OpenMode::Write } else { OpenMode::Create };
        files.get(self.key(base, kind), mode, || self.path(base, kind))
    }

    /// A segment's file if it exists.
    fn existing_file(
        &self,
        files: &mut FilePool,
        base: Offset,
        kind: FileKind,
    ) -> Result<Option<Arc<dyn DiskFile>>, DiskError> {
        match files.get(self.key(base, kind), OpenMode::Write, || self.path(base, kind)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
