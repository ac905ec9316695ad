//! What the mover asks of a partition's owner.
//!
//! Neighbours: moves/mover.rs, which asks; partition_worker/moves.rs, which answers.

pub mod copying;

pub use copying::Copying;

use super::{Declined, PartitionKey};
use barnabas_base::Offset;
use barnabas_storage::{AbortedTransaction, LogConfig};
use bytes::Bytes;
use std::sync::Arc;
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
        reply: oneshot::Sender<Result<MoveRead, Declined>>,
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

/// A piece of a log.
#[derive(Debug)]
pub struct MoveRead {
    pub records: Bytes,
    /// The first batch's base offset; the log's end where there is none.
    pub from: Offset,
    /// Those whose marker is in `records`.
    pub aborted: Vec<AbortedTransaction>,
    pub log_start: Offset,
    /// Everything below may be copied.
    pub durable_end: Offset,
    pub config: Arc<LogConfig>,
}

/// Why the last step was not done. The partition goes on where it was.
#[derive(Debug)]
pub enum SwapFailure {
    /// Too much has come since, or the disk is full: to be tried again.
    NotYet(Box<Copying>),
    /// There is nothing to swap any more: the partition or a directory is gone.
    Over(Box<Copying>),
}
