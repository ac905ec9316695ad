//! One segment: the names of its files, and what is remembered of it in memory.

pub(crate) mod batch;
pub(crate) mod index_file;
pub(crate) mod offset_index;
pub(crate) mod time_index;
pub(crate) mod transaction_index;
pub(crate) mod walker;

use std::path::{Path, PathBuf};

use barnabas_base::{Offset, TimestampMs};

use crate::disk::file_pool::FileKind;

pub(crate) const LOG: &str = ".log";
pub(crate) const OFFSET_INDEX: &str = ".index";
pub(crate) const TIME_INDEX: &str = ".timeindex";
pub(crate) const TRANSACTION_INDEX: &str = ".txnindex";
pub(crate) const SNAPSHOT: &str = ".snapshot";
/// Out of use; removed after a delay, or when the log is opened.
pub(crate) const DELETED: &str = ".deleted";
/// Written by an unfinished compaction.
pub(crate) const CLEANED: &str = ".cleaned";
/// Written by a finished compaction that has not taken its place yet.
pub(crate) const SWAP: &str = ".swap";

impl FileKind {
    pub(crate) const ALL: [Self; 4] = [Self::Log, Self::OffsetIndex, Self::TimeIndex, Self::TransactionIndex];

    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Log => LOG,
            Self::OffsetIndex => OFFSET_INDEX,
            Self::TimeIndex => TIME_INDEX,
            Self::TransactionIndex => TRANSACTION_INDEX,
        }
    }
}

/// `dir/%020d<suffix>`: how Kafka names everything that belongs to an offset.
pub(crate) fn offset_path(dir: &Path, offset: Offset, suffix: &str) -> PathBuf {
    dir.join(format!("{:020}{suffix}", offset.get()))
}

/// The offset that a file's name begins with, and the rest of the name.
pub(crate) fn parse_offset_name(name: &str) -> Option<(Offset, &str)> {
    let dot = name.find('.')?;
    let (digits, suffix) = name.split_at(dot);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((Offset(digits.parse().ok()?), suffix))
}

/// The largest timestamp of some batches, and the last offset of the first batch that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LargestTimestamp {
    pub timestamp: TimestampMs,
    pub offset: Offset,
}

/// What is remembered of a segment. Some of it is read when it is first needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub base: Offset,
    /// Bytes of its `.log`.
    pub size: u32,
    /// `None`: not read yet. Timestamp −1: no batch has one.
    pub largest: Option<LargestTimestamp>,
    /// The first batch's largest timestamp, by which `segment.ms` counts. `None`: not read yet, or no batch.
    pub first_timestamp: Option<TimestampMs>,
    /// When this process began to use it: what `segment.ms` counts by where batches have no timestamps.
    pub created: TimestampMs,
}

impl Segment {
    pub(crate) fn empty(base: Offset, created: TimestampMs) -> Self {
        let largest = LargestTimestamp { timestamp: TimestampMs::NONE, offset: base };
        Self { base, size: 0, largest: Some(largest), first_timestamp: None, created }
    }

    /// Whether an index of this segment can name `offset`: it holds 31 bits relative to the base.
    pub(crate) fn can_index(&self, offset: Offset) -> bool {
        (0..=i64::from(i32::MAX)).contains(&offset.since(self.base))
    }
}

/// Files that are out of use (renamed to `.deleted`) and to be removed `file.delete.delay.ms` later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelayedDelete {
    pub due: TimestampMs,
    pub files: Vec<PathBuf>,
}
