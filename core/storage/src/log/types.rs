//! What goes into a log's calls and comes out of them: places, results, tickets.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas_base::{LeaderEpoch, Offset, TimestampMs, TopicId, TopicPartition, Uuid};
use bytes::Bytes;
use smallvec::SmallVec;

use crate::disk::file_pool::{FileKey, HeldFile, LogId};
use crate::disk::{Disk, DiskError, FileSystem};
use crate::error::StorageError;
use crate::partition_files::dir_name::{DirKind, PartitionDir};

/// Where a log lies: `root/topic-partition`, or `root/topic-partition.<id>-future` while it is a copy in the making.
#[derive(Debug, Clone)]
pub struct LogPlace {
    /// The log directory (an entry of `log.dirs`).
    pub root: Arc<Path>,
    pub topic_partition: TopicPartition,
    /// Goes into `partition.metadata`; zero: no such file is written (`__cluster_metadata`).
    pub topic_id: TopicId,
    /// A copy on its way into this log directory, by the id in its name.
    pub future: Option<Uuid>,
}

impl LogPlace {
    /// The partition's directory.
    pub fn dir(&self) -> PathBuf {
        match self.future {
            None => self.root.join(self.topic_partition.to_string()),
            Some(unique) => {
                self.root.join(PartitionDir::renamed(&self.topic_partition, DirKind::Future, unique))
            }
        }
    }
}

/// What is known about a log from its directory's checkpoints. The default: nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenFrom {
    /// The directory was shut down cleanly: nothing is checked batch by batch.
    pub clean: bool,
    /// From `recovery-point-offset-checkpoint`; 0 where it has no entry.
    pub recovery_point: Offset,
    /// From `log-start-offset-checkpoint`; 0 where it has no entry.
    pub log_start: Offset,
    /// Where the journal's appends end, which are staged next; [`Log::advance_start`] follows then.
    pub journal_end: Option<Offset>,
    /// This program was the last to write in the directory. It says which segments go before they do, so that one that
    /// is gone otherwise was lost.
    pub is_ours: bool,
    /// The last stop was unclean, and the file system was not synced as a whole since: what an earlier process cut or
    /// removed here, and was killed before it synced that, may come back when the power goes.
    pub is_unsettled: bool,
    /// This program wrote the recovery point, and it is as it was written: compaction has left holes below it alone.
    pub recovery_point_holds: bool,
    /// Compaction has worked on the log, which may have left offsets without a segment.
    pub was_compacted: bool,
    /// Another replica can repair this one: a log is opened even if batches of it are damaged, as long as it is known
    /// where it ends ([`Opened::damaged`]).
    pub is_repairable: bool,
}

/// What opening a log found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opened {
    /// The unsynced tail that was cut.
    pub cut: Option<TailCut>,
    /// Files whose contents were rebuilt from the segments.
    pub rebuilt: Vec<PathBuf>,
    /// Of a segment that was synced: indexes that said something else than the segment.
    pub disbelieved: Vec<PathBuf>,
    /// Damaged batches, each a [`StorageError::Damaged`](crate::StorageError::Damaged). Nothing was truncated. Empty
    /// unless [`OpenFrom::is_repairable`].
    pub damaged: Vec<StorageError>,
    /// Leftovers of interrupted work that were removed.
    pub removed: Vec<PathBuf>,
    /// Offsets for which there is no segment, where another program may have deleted it: from and to.
    pub gaps: Vec<(Offset, Offset)>,
}

impl Opened {
    /// # Errors
    /// The damage itself, where nothing can repair it.
    pub(super) fn found(&mut self, damage: StorageError, from: OpenFrom) -> Result<(), StorageError> {
        if !from.is_repairable {
            return Err(damage);
        }
        self.damaged.push(damage);
        Ok(())
    }
}

/// A tail that was cut off, since it was never synced and is not whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TailCut {
    pub file: PathBuf,
    /// The first byte that was cut.
    pub position: u64,
    /// Bytes that went, later segments included.
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
    /// A new segment was begun here: a good time for [`crate::Log::write_producer_snapshot`].
    pub rolled: Option<Offset>,
}

/// What [`crate::Log::stage`] took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Staged {
    /// Where the log ended before.
    pub from: Offset,
    /// Where it ends now.
    pub end: Offset,
    pub bytes: u64,
    /// The same bytes as are staged, for the journal: one entry each.
    pub records: SmallVec<[StagedRecords; 1]>,
}

/// Whole batches that follow one another, in one piece of memory that the log's tail shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedRecords {
    /// Where the log ended before: at or below the first batch's base offset.
    pub from: Offset,
    pub end: Offset,
    pub bytes: Bytes,
}

/// What [`crate::Log::write_back`] wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenBack {
    /// [`crate::Log::segment_end`] now.
    pub end: Offset,
    pub bytes: u64,
    /// A new segment was begun, the last of them here.
    pub rolled: Option<Offset>,
}

/// A place in the files, as a hint for the next read.
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
    /// Where `records` lies on disk; `None` where it came from memory.
    pub position: Option<LogPosition>,
    /// More bytes than were asked for are needed to return even the first batch, and `at_least_one` was not set.
    pub first_batch_too_large: bool,
}

impl BatchesRead {
    pub(super) fn in_memory(found: Found) -> Self {
        Self {
            records: found.records,
            next_offset: found.next,
            position: None,
            first_batch_too_large: found.too_large,
        }
    }

    /// No batch at or past `from` may be read yet.
    pub(super) fn nothing(from: Offset) -> Self {
        Self { records: Bytes::new(), next_offset: from, position: None, first_batch_too_large: false }
    }
}

/// What must be synced before the log is durable up to `ticket.end()`.
#[derive(Debug)]
pub struct Dirty {
    pub files: Vec<HeldFile>,
    /// Synced after the files, with [`crate::Disk::sync_dir`].
    pub dirs: Vec<PathBuf>,
    /// More was written than may be held open: only a sync of the file system makes all of it durable, and nothing else
    /// is needed then. Never where the pool knows no file system ([`crate::FilePool::with_file_system`]).
    pub is_whole: bool,
    pub ticket: SyncTicket,
}

impl Dirty {
    /// Makes it durable; `file_system` is that of the pool with which it was written.
    ///
    /// # Errors
    /// Final for the directory, as any failed sync.
    pub fn sync(&self, disk: &dyn Disk, file_system: Option<&Arc<dyn FileSystem>>) -> Result<(), DiskError> {
        if let Some(whole) = file_system.filter(|_| self.is_whole) {
            return whole.sync();
        }
        self.files.iter().try_for_each(|file| file.sync())?;
        // Names after contents: a name that is durable points at contents that are.
        match (self.dirs.iter().try_for_each(|dir| disk.sync_dir(dir)), file_system) {
            // The directory could not be opened. The file system is open already.
            (Err(error), Some(whole)) if error.kind.is_shortage() => whole.sync(),
            (synced, _) => synced,
        }
    }
}

/// Names a state of the log; handed back with [`crate::Log::mark_synced`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncTicket {
    pub(super) log: LogId,
    /// Tickets of a log are counted.
    pub(super) number: u32,
    pub(super) end: Offset,
    pub(super) generation: u32,
    /// The file of the segment that was written to, where it is among those to be synced.
    pub(super) active: Option<FileKey>,
    /// The newest producer snapshot.
    pub(super) snapshot: Offset,
}

impl SyncTicket {
    /// All records below this are durable once the sync has succeeded.
    pub fn end(self) -> Offset {
        self.end
    }
}

/// A record found by its timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundTimestamp {
    pub offset: Offset,
    pub timestamp: TimestampMs,
    pub leader_epoch: LeaderEpoch,
}

/// What a read found in memory.
#[derive(Debug)]
pub(super) struct Found {
    pub records: Bytes,
    pub next: Offset,
    /// The first batch has more bytes than were asked for.
    pub too_large: bool,
}
