//! What goes wrong with a journal, for the operator.

use std::path::PathBuf;

use barnabas_base::{DirectoryId, Offset, TopicPartition};

use crate::disk::DiskError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// The machine refused. A journal that cannot be read is not guessed at, and one that cannot be written is at its
    /// end.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A round that was durable is not what was written, as a later one proves. Nothing was replayed.
    #[error(
        "the journal {} is damaged at byte {position}: {what}. What follows it was acknowledged; nothing was replayed and \
         nothing cut. Restore the log directory from a copy; or remove the journal's files to give up what is in them alone",
        file.display()
    )]
    Damaged { file: PathBuf, position: u64, what: &'static str },
    /// A file of the ring has lost its end.
    #[error(
        "the journal {} is {len} bytes long, and its files are {expected}: it was cut off, and what stood there may have been \
         acknowledged. Nothing was replayed and nothing cut. Restore the log directory from a copy; or remove the journal's files \
         to give up what is in them alone",
        file.display()
    )]
    Short { file: PathBuf, len: u64, expected: u64 },
    /// The newest part of the journal is gone.
    #[error(
        "the journal in {} ends in filling {found} of its files, and was seen in filling {expected}: a file barnabas-journal-* is \
         missing, was emptied or is an old copy. Put it back; or, to give up what it held, remove the journal's files and \
         barnabas-checkpoints beside them",
        directory.display()
    )]
    Behind { directory: PathBuf, found: u64, expected: u64 },
    /// Files of another log directory.
    #[error(
        "the journal {} belongs to log directory {found}, not to {expected}: put it back where it was taken from, or remove it",
        file.display()
    )]
    Foreign { file: PathBuf, found: DirectoryId, expected: DirectoryId },
    /// The partition's segments end before what was synced there.
    #[error(
        "partition {partition} ends at offset {found}, but was synced up to {expected}: its segments are damaged. Nothing was \
         replayed into it: restore its directory from a copy"
    )]
    Missing { partition: TopicPartition, found: Offset, expected: Offset },
    /// Every file still holds something: cannot be after a crash of ours, as one file is always kept back.
    #[error(
        "no file of the journal is free: fewer files than before? Raise log.journal.bytes to what it was"
    )]
    NoRoom,
}
