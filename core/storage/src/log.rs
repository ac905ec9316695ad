//! One partition's log in Kafka's files: append, read, roll, truncate, retain, recover.
//!
//! Takes batches that are validated and numbered, and writes them into the page cache; what has to be synced before it may
//! be called durable is handed out ([`Log::take_dirty`]), so that one thread can sync many logs in one round and report back
//! ([`Log::mark_synced`]). Nothing exists on disk before the first append.
//!
//! Does not decide: offsets, the high watermark, producers' sequences (core/partition), when to sync (the worker).
//!
//! Always true:
//! 1. `start ≤ end`, `recovery_point ≤ end`
//! 2. all bytes and names below `recovery_point` were covered by a sync that succeeded
//! 3. segments follow one another in rising order of base offset; only the last one is written to

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use barnabas_base::{LeaderEpoch, LeaderEpochs, Offset, TimestampMs, TopicId, TopicPartition};
use bytes::Bytes;

use crate::disk::DiskFile;
use crate::error::StorageError;
use crate::file_pool::FilePool;
use crate::log_config::LogConfig;
use crate::producer_snapshot::ProducerEntry;
use crate::transaction_index::AbortedTransaction;

/// Where a log lies: `root/topic-partition`.
#[derive(Debug, Clone)]
pub struct LogPlace {
    /// The log directory (an entry of `log.dirs`).
    pub root: Arc<Path>,
    pub topic_partition: TopicPartition,
    /// Goes into `partition.metadata`; zero: no such file is written (`__cluster_metadata`).
    pub topic_id: TopicId,
}

/// What is known about a log from its directory's checkpoints.
#[derive(Debug, Clone, Copy)]
pub struct OpenFrom {
    /// The directory was shut down cleanly: nothing is checked batch by batch.
    pub clean: bool,
    /// From `recovery-point-offset-checkpoint`; 0 where it has no entry.
    pub recovery_point: Offset,
    /// From `log-start-offset-checkpoint`; 0 where it has no entry.
    pub log_start: Offset,
}

/// What opening a log found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opened {
    /// The unsynced tail that was cut.
    pub cut: Option<TailCut>,
    /// Files whose contents were rebuilt from the segments.
    pub rebuilt: Vec<PathBuf>,
    /// Leftovers of interrupted work that were removed.
    pub removed: Vec<PathBuf>,
}

/// A tail that was cut off, since it was never synced and is not whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TailCut {
    pub file: PathBuf,
    /// The first byte that was cut.
    pub position: u64,
    pub bytes: u64,
    /// The log's new end.
    pub end: Offset,
    pub why: &'static str,
}

/// What an append did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The log's new end: the offset after the last record.
    pub end: Offset,
    pub bytes: u64,
    /// A new segment was begun here: a good time for [`Log::write_producer_snapshot`].
    pub rolled: Option<Offset>,
}

/// A place in the files: for `sendfile`, and as a hint for the next read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPosition {
    pub segment: Offset,
    pub position: u32,
}

/// Whole batches, the first of which holds the offset that was asked for.
#[derive(Debug, Clone)]
pub struct BatchesRead {
    pub records: Bytes,
    /// The offset after the last batch in `records`; the requested offset where there is none.
    pub next_offset: Offset,
    /// Where `records` lies on disk.
    pub position: Option<LogPosition>,
    /// More bytes than were asked for are needed to return even the first batch, and `at_least_one` was not set.
    pub first_batch_too_large: bool,
}

/// What must be synced before the log is durable up to `ticket.end()`.
#[derive(Debug, Clone)]
pub struct Dirty {
    pub files: Vec<Arc<dyn DiskFile>>,
    /// Synced after the files, with [`crate::Disk::sync_dir`].
    pub dirs: Vec<Arc<Path>>,
    pub ticket: SyncTicket,
}

/// Names a state of the log; handed back with [`Log::mark_synced`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncTicket {
    end: Offset,
    generation: u32,
}

impl SyncTicket {
    /// All records below this are durable once the sync has succeeded.
    pub fn end(self) -> Offset {
        self.end
    }
}

/// Files that are out of use (renamed to `.deleted`) and to be removed `file.delete.delay.ms` later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelayedDelete {
    pub due: TimestampMs,
    pub files: Vec<PathBuf>,
}

/// A record found by its timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundTimestamp {
    pub offset: Offset,
    pub timestamp: TimestampMs,
    pub leader_epoch: LeaderEpoch,
}

/// One partition's log. See the file's header.
#[derive(Debug)]
pub struct Log {
    place: LogPlace,
    config: Arc<LogConfig>,
    start: Offset,
    end: Offset,
    recovery_point: Offset,
    epochs: LeaderEpochs,
}

impl Log {
    /// A log that does not exist on disk yet, and will not before its first append.
    pub fn create(place: LogPlace, config: Arc<LogConfig>, start: Offset) -> Self {
        Self { place, config, start, end: start, recovery_point: start, epochs: LeaderEpochs::default() }
    }

    /// Opens what an earlier process left in `place`; after an unclean stop, checks what lies past the recovery point, cuts
    /// an unsynced tail that is not whole, and rebuilds indexes.
    ///
    /// # Errors
    /// [`StorageError::Damaged`]: something below the recovery point is not what was written. Nothing was changed.
    pub fn open(
        _files: &mut FilePool,
        _place: LogPlace,
        _config: Arc<LogConfig>,
        _from: OpenFrom,
        _now: TimestampMs,
    ) -> Result<(Self, Opened), StorageError> {
        unimplemented!()
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
        self.end
    }

    /// Everything below is durable.
    pub fn recovery_point(&self) -> Offset {
        self.recovery_point
    }

    /// Which leader epoch began where.
    pub fn epochs(&self) -> &LeaderEpochs {
        &self.epochs
    }

    /// Notes that `epoch` begins at the end of the log (a new leader's first act); written down with the next checkpoint.
    pub fn assign_epoch(&mut self, epoch: LeaderEpoch, start: Offset) -> bool {
        self.epochs.assign(epoch, start)
    }

    /// Bytes of all segments' records.
    pub fn size_bytes(&self) -> u64 {
        0
    }

    pub fn segment_count(&self) -> usize {
        0
    }

    /// Whether the log exists on disk.
    pub fn is_on_disk(&self) -> bool {
        false
    }

    pub fn config(&self) -> &Arc<LogConfig> {
        &self.config
    }

    /// New settings hold from the next append, roll or retention on.
    pub fn set_config(&mut self, config: Arc<LogConfig>) {
        self.config = config;
    }

    /// Writes whole batches, already validated and numbered, each of `records` holding one or more of them.
    ///
    /// Goes into the page cache only. Rolls a new segment first where one is due.
    ///
    /// # Errors
    /// After [`StorageError::Full`], [`StorageError::OutOfOrder`], [`StorageError::NotBatches`] and
    /// [`StorageError::TooLargeForSegment`] the log is as it was. After any other error it takes no more writes.
    pub fn append(
        &mut self,
        _files: &mut FilePool,
        _records: &[Bytes],
        _now: TimestampMs,
    ) -> Result<Appended, StorageError> {
        unimplemented!()
    }

    /// Batches from the one that holds `from` on, none with an offset at or past `upper`, up to `max_bytes`; with
    /// `at_least_one`, the first batch whatever its size.
    ///
    /// # Errors
    /// [`StorageError::OffsetOutOfRange`]: `from` is below the start or past the end.
    pub fn read(
        &mut self,
        _files: &mut FilePool,
        _from: Offset,
        _max_bytes: usize,
        _upper: Offset,
        _at_least_one: bool,
    ) -> Result<BatchesRead, StorageError> {
        unimplemented!()
    }

    /// Shows `visit` every batch (whole, header and records) from the one that holds `from` up to `to`, for rebuilding state.
    pub fn scan(
        &mut self,
        _files: &mut FilePool,
        _from: Offset,
        _to: Offset,
        _visit: &mut dyn FnMut(Bytes),
    ) -> Result<(), StorageError> {
        unimplemented!()
    }

    /// The first record at or past `from` whose timestamp is at least `timestamp`.
    pub fn offset_for_timestamp(
        &mut self,
        _files: &mut FilePool,
        _timestamp: TimestampMs,
        _from: Offset,
    ) -> Result<Option<FoundTimestamp>, StorageError> {
        unimplemented!()
    }

    /// The first record that has the largest timestamp of the log.
    pub fn offset_of_max_timestamp(
        &mut self,
        _files: &mut FilePool,
    ) -> Result<Option<FoundTimestamp>, StorageError> {
        unimplemented!()
    }

    /// What has to be synced so that everything appended so far is durable. `None`: everything is.
    pub fn take_dirty(&mut self) -> Option<Dirty> {
        None
    }

    /// The sync of what [`Log::take_dirty`] handed out has succeeded. Returns the new recovery point: everything below it is
    /// durable.
    pub fn mark_synced(&mut self, ticket: SyncTicket) -> Offset {
        self.recovery_point = self.recovery_point.max(ticket.end);
        self.recovery_point
    }

    /// A write or sync in this log's directory failed: no more writes.
    pub fn fail(&mut self) {}

    /// Writes what the recovery point rests on (leader epochs, the active segment's index), and returns the recovery point
    /// that `recovery-point-offset-checkpoint` may now name.
    pub fn checkpoint(&mut self, _files: &mut FilePool) -> Result<Offset, StorageError> {
        unimplemented!()
    }

    /// Writes indexes and small files out for a clean stop. The result must be synced like any other before the directory is
    /// marked clean.
    pub fn close(&mut self, _files: &mut FilePool) -> Result<Option<Dirty>, StorageError> {
        unimplemented!()
    }

    /// Begins a new segment at the log's end, unless the active one is empty.
    pub fn roll(&mut self, _files: &mut FilePool, _now: TimestampMs) -> Result<Option<Offset>, StorageError> {
        unimplemented!()
    }

    /// Drops every record at or past `offset`. Returns whether anything was dropped.
    ///
    /// Where the recovery point fell, the directory's recovery-point checkpoint must be written before the next append.
    pub fn truncate_to(
        &mut self,
        _files: &mut FilePool,
        _offset: Offset,
        _now: TimestampMs,
    ) -> Result<(bool, Option<DelayedDelete>), StorageError> {
        unimplemented!()
    }

    /// Drops everything; the log begins and ends at `offset`.
    pub fn truncate_fully_and_start_at(
        &mut self,
        _files: &mut FilePool,
        _offset: Offset,
        _now: TimestampMs,
    ) -> Result<Option<DelayedDelete>, StorageError> {
        unimplemented!()
    }

    /// Moves the start up to `offset` (DeleteRecords; at most the high watermark, which the caller has checked). Returns
    /// whether it moved; the bytes go with the next [`Log::delete_old_segments`].
    pub fn advance_start(&mut self, _offset: Offset) -> bool {
        unimplemented!()
    }

    /// Applies retention by start offset, size and time to segments below `high_watermark`.
    pub fn delete_old_segments(
        &mut self,
        _files: &mut FilePool,
        _now: TimestampMs,
        _high_watermark: Offset,
    ) -> Result<Option<DelayedDelete>, StorageError> {
        unimplemented!()
    }

    /// Writes `entries` as the state of producers when the log ended at `at`.
    pub fn write_producer_snapshot(
        &mut self,
        _files: &mut FilePool,
        _at: Offset,
        _entries: &[ProducerEntry],
    ) -> Result<(), StorageError> {
        unimplemented!()
    }

    /// The newest readable snapshot at or below `at`: rebuild from it with [`Log::scan`]. Unreadable ones are removed.
    pub fn read_producer_snapshot(
        &mut self,
        _files: &mut FilePool,
        _at: Offset,
    ) -> Result<Option<(Offset, Vec<ProducerEntry>)>, StorageError> {
        unimplemented!()
    }

    /// Notes an aborted transaction whose marker has just been appended.
    pub fn append_aborted(
        &mut self,
        _files: &mut FilePool,
        _aborted: AbortedTransaction,
    ) -> Result<(), StorageError> {
        unimplemented!()
    }

    /// The aborted transactions that a reader of `[from, upper)` has to skip.
    pub fn aborted_transactions(
        &mut self,
        _files: &mut FilePool,
        _from: Offset,
        _upper: Offset,
    ) -> Result<Vec<AbortedTransaction>, StorageError> {
        unimplemented!()
    }
}
