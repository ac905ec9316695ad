//! What goes wrong in storage, for the operator: what, where, and what to do.

use std::path::PathBuf;

use barnabas_base::Offset;

use crate::disk::{DiskError, DiskErrorKind};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The machine refused. Whatever was being written is in doubt: the log that met this takes no more writes, and the
    /// directory goes offline.
    #[error(transparent)]
    Disk(DiskError),
    /// The log is as it was before the call; later calls may succeed.
    #[error("the disk is full while writing {}: free space there or lower retention; nothing was kept of this write", .0.display())]
    Full(PathBuf),
    /// The process has no descriptor left, the system no memory, or a file may not grow: nothing is wrong with the
    /// disk. As with [`StorageError::Full`], the log is as it was, and later calls may succeed.
    #[error("{0}; nothing was kept of this, and it is tried again")]
    Exhausted(DiskError),
    /// Bytes that were synced, or that a clean stop vouched for, are not what was written. Nothing was cut.
    #[error(
        "{} is damaged at byte {position} (offset {offset}): {what}; this was written and synced, so nothing is truncated",
        file.display()
    )]
    Damaged { file: PathBuf, position: u64, offset: Offset, what: &'static str },
    /// Nothing is damaged: a producer sent it so, and only `record.validation` refuses that.
    #[error(
        "the batch at offset {offset} is as it was produced, and its records cannot be read: consumers cannot read it either; \
         record.validation=structure refuses such batches"
    )]
    Unreadable { offset: Offset },
    /// Neither the log nor the journal has what was acknowledged.
    #[error(
        "{} ends at offset {end}, and records up to offset {acknowledged} were acknowledged: a segment, or a file barnabas-journal-* \
         of the log directory, was lost or is an old copy. Nothing was truncated: put back what is missing and start again",
        dir.display()
    )]
    EndsEarly { dir: PathBuf, end: Offset, acknowledged: Offset },
    /// A small file that cannot be rebuilt from anything else.
    #[error("{} is not readable as what it should be: {what}; {remedy}", file.display())]
    BadFile { file: PathBuf, what: String, remedy: &'static str },
    #[error("offset {requested} is outside of this log, which holds {start} up to {end}")]
    OffsetOutOfRange { requested: Offset, start: Offset, end: Offset },
    /// A bug of the caller or a follower out of step.
    #[error("a batch that begins at offset {found} cannot follow a log that ends at {end}")]
    OutOfOrder { found: Offset, end: Offset },
    /// Bytes that were handed in to be written are no whole batches.
    #[error("the bytes to append are no whole record batches: {0}")]
    NotBatches(&'static str),
    #[error(
        "{bytes} bytes do not fit into a segment of {segment_bytes}: raise segment.bytes or send less at once"
    )]
    TooLargeForSegment { bytes: u64, segment_bytes: u32 },
    /// An earlier write or sync failed, and that is final.
    #[error("{} takes no more writes, since an earlier write or sync there failed: check the disk, then restart", .0.display())]
    Failed(PathBuf),
    #[error(
        "{} is in use by another process: stop it, or choose another directory in log.dirs",
        .0.display()
    )]
    Locked(PathBuf),
    /// It is unknown which of the two has the newer records.
    #[error(
        "{} and {} hold the same partition: stop the node and move the one with the older records out of log.dirs",
        first.display(), second.display()
    )]
    Twice { first: PathBuf, second: PathBuf },
    /// A directory that belongs to another node or cluster.
    #[error("{} belongs to {found}, not to {expected}: {remedy}", place.display())]
    WrongOwner { place: PathBuf, found: String, expected: String, remedy: &'static str },
}

impl StorageError {
    /// What was to be done was not, and nothing else has changed: it may be tried again.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Full(_) | Self::Exhausted(_))
    }
}

/// A full disk, or one descriptor too few, keeps no log from being served: entries stay in memory, or readers begin at
/// the front of the segment.
pub(crate) fn unless_full(done: Result<(), StorageError>) -> Result<(), StorageError> {
    match done {
        Err(error) if error.is_passing() => Ok(()),
        done => done,
    }
}

impl From<DiskError> for StorageError {
    fn from(error: DiskError) -> Self {
        match error.kind {
            DiskErrorKind::Full => Self::Full(error.path),
            DiskErrorKind::Locked => Self::Locked(error.path),
            kind if kind.is_shortage() => Self::Exhausted(error),
            _ => Self::Disk(error),
        }
    }
}
