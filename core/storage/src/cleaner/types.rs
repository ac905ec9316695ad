//! What goes into a cleaning and comes out of it.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use barnabas_base::{Offset, ProducerEpoch, TimestampMs, TopicPartition};

use crate::disk::DiskError;
use crate::disk::file_pool::LogId;
use crate::error::StorageError;
use crate::log_config::LogConfig;
use crate::segment::DelayedDelete;
use crate::segment::LargestTimestamp;
use crate::segment::transaction_index::AbortedTransaction;

/// A batch whose records inflate to more is not compacted. A broker takes compressed batches by their headers, however
/// far they inflate, and consumers read them up to the same size.
pub(super) const BATCH_INFLATED_BYTES_MAX: usize = 1 << 30;

/// What may be cleaned of a log, as its owner saw it at one moment: [`crate::Log::log_to_clean`].
#[derive(Debug, Clone)]
pub struct LogToClean {
    pub name: TopicPartition,
    pub dir: PathBuf,
    pub config: Arc<LogConfig>,
    /// Everything below was compacted before.
    pub first_dirty: Offset,
    /// A segment's base: nothing at or past it is touched.
    pub first_uncleanable: Offset,
    /// All segments below `first_uncleanable`, oldest first.
    pub segments: Vec<SegmentToClean>,
    /// The aborted transactions of these segments.
    pub aborted: Vec<AbortedTransaction>,
    /// Where leader epochs begin, but for the first.
    pub epoch_starts: Vec<Offset>,
    pub ticket: CleanTicket,
}

/// A sealed segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentToClean {
    pub base: Offset,
    pub next_base: Offset,
    /// Bytes of its `.log`.
    pub size: u32,
}

/// Names a log and its state: what was read of it counts only as long as it was not truncated or opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanTicket {
    pub(crate) log: LogId,
    pub(crate) generation: u32,
}

/// The last thing that the partition remembers of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRecord {
    /// The last offset of its newest batch of records. `None`: only a marker is remembered.
    pub last_data_offset: Option<Offset>,
    pub epoch: ProducerEpoch,
}

/// New segments for old ones: for [`crate::Log::replace_segments`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    pub(crate) ticket: CleanTicket,
    pub(crate) old: Vec<SegmentToClean>,
    /// Written as `.cleaned` and synced, names included.
    pub(crate) new: Vec<CleanedSegment>,
}

impl Replacement {
    /// Everything below has to be synced before the swap: the segment after the last old one begins here.
    pub fn end(&self) -> Offset {
        self.old.last().map_or(Offset::ZERO, |last| last.next_base)
    }
}

/// A compacted segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanedSegment {
    pub(crate) base: Offset,
    pub(crate) size: u32,
    pub(crate) largest: LargestTimestamp,
    pub(crate) first_timestamp: Option<TimestampMs>,
}

/// What became of a [`Replacement`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replaced {
    /// The old segments' files go later.
    Done(DelayedDelete),
    /// The log is not what was read any more. Nothing was changed.
    Stale,
}

/// Asked before so many bytes are read or written: may hold the cleaner up, or end it.
pub trait Pace {
    fn take(&mut self, bytes: usize) -> ControlFlow<()>;
}

impl<F: FnMut(usize) -> ControlFlow<()>> Pace for F {
    fn take(&mut self, bytes: usize) -> ControlFlow<()> {
        self(bytes)
    }
}

/// What a cleaning did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CleanStats {
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub records_read: u64,
    pub records_kept: u64,
    /// Records without a key, which a compacted log cannot keep.
    pub records_without_key: u64,
    pub keys: u64,
    pub segments_before: u64,
    pub segments_after: u64,
}

/// Why a log was not cleaned. The log itself is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CleanError {
    #[error("compaction was told to stop")]
    Stopped,
    /// Another time: retention or a deletion was faster.
    #[error("{} is gone", .0.display())]
    Gone(PathBuf),
    #[error(
        "{} is damaged at byte {position}: {what}; nothing was dropped, and this partition is not compacted any more: \
         restore its directory from a copy, or delete the records up to there",
        file.display()
    )]
    Damaged { file: PathBuf, position: u64, what: String },
    /// Nothing is damaged: its checksum is right.
    #[error(
        "{}: the batch at byte {position} is as it was produced, and its records cannot be read: {what}; nothing was dropped, and this \
         partition is not compacted any more: delete the records up to there",
        file.display()
    )]
    Unreadable { file: PathBuf, position: u64, what: String },
    #[error(
        "the batch at offset {offset} alone has more keys than fit into memory: raise log.cleaner.dedupe.buffer.size, or lower \
         log.cleaner.threads"
    )]
    MapTooSmall { offset: Offset },
    #[error(transparent)]
    Storage(StorageError),
}

impl From<DiskError> for CleanError {
    fn from(error: DiskError) -> Self {
        if error.is_not_found() { Self::Gone(error.path) } else { Self::Storage(error.into()) }
    }
}
