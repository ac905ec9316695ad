//! What the mover asks of a partition's owner.
//!
//! Neighbours: upkeep/mover.rs, which asks; partition_worker/lifecycle/moves.rs, which answers.

use super::{Declined, PartitionKey};
use barnabas_base::Offset;
use barnabas_replica::{LogCopy, LogPiece};
use tokio::sync::oneshot;

/// What a partition's owner is asked for the sake of a move.
#[derive(Debug)]
pub enum MoveCommand {
    /// Where the partition lies. One that was never written to is moved at once.
    Begin { key: PartitionKey, to: usize, reply: oneshot::Sender<Result<Begun, Declined>> },
    /// Whole batches that are durable. `from`: the log's start where it is not known yet.
    Read {
        key: PartitionKey,
        from: Option<Offset>,
        max_bytes: usize,
        reply: oneshot::Sender<Result<LogPiece, Declined>>,
    },
    /// The last step.
    Swap { copying: Box<Copying>, reply: oneshot::Sender<Result<(), SwapFailure>> },
}

/// What becomes of a wish to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// It is there already, or begins there.
    There,
    /// Its log is to be copied: so many bytes now.
    ToCopy { bytes: u64 },
}

/// One copy in the making. The mover fills it; the partition's owner takes it over for the last step.
#[derive(Debug)]
pub struct Copying {
    pub key: PartitionKey,
    /// The directory that it goes to.
    pub to: usize,
    pub copy: LogCopy,
    /// The operator was told that it waits for room.
    pub is_waiting: bool,
}

/// Why the last step was not done. The partition goes on where it was.
#[derive(Debug)]
pub enum SwapFailure {
    /// Too much has come since, or the disk is full: to be tried again.
    NotYet(Box<Copying>),
    /// There is nothing to swap any more: the partition or a directory is gone.
    Over(Box<Copying>),
}
