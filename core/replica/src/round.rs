//! The batches of one replica that have offsets and are not written yet.
//!
//! The worker drains its mailbox in rounds: each batch gets its offset at once, and all batches of a partition are written together at
//! the end of the round.

use barnabas_partition::Ticket;
use barnabas_storage::{AbortedTransaction, AppendBytes};

/// See the file's header.
#[derive(Debug, Default)]
pub struct Round {
    pub batches: Vec<AppendBytes>,
    pub bytes: usize,
    /// Of the producers that wait for these batches.
    pub tickets: Vec<Ticket>,
    /// Aborted transactions whose markers are among these batches.
    pub aborted: Vec<AbortedTransaction>,
}

impl Round {
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }
}
