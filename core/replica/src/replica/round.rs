//! The batches of one replica that have offsets and are not written yet.
//!
//! The worker drains its mailbox in rounds: each batch gets its offset at once, and all batches of a partition are
//! written together at the end of the round.

use barnabas_partition::Ticket;
use barnabas_storage::{AbortedTransaction, AppendBytes};

/// Lists of batches that are kept for the next round, and how many batches each may have room for: together a few MiB.
const LISTS_MAX: usize = 1024;
const LIST_BATCHES_MAX: usize = 16;

/// See the file's header.
#[derive(Debug, Default)]
pub struct Round {
    pub(crate) batches: Vec<AppendBytes>,
    pub(crate) bytes: usize,
    /// Of the producers that wait for these batches.
    pub(crate) tickets: Vec<Ticket>,
    /// Aborted transactions whose markers are among these batches.
    pub(crate) aborted: Vec<AbortedTransaction>,
}

impl Round {
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Bytes that were admitted for these batches.
    pub fn size_bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Adds one batch, numbered.
    pub(crate) fn push(&mut self, batch: AppendBytes, lists: &mut BatchLists) {
        if self.batches.is_empty() {
            self.batches = lists.take();
        }
        self.bytes += batch.len();
        self.batches.push(batch);
    }
}

/// Lists of batches, empty, for the next rounds: thousands of partitions need one for a moment each.
#[derive(Debug, Default)]
pub struct BatchLists(Vec<Vec<AppendBytes>>);

impl BatchLists {
    fn take(&mut self) -> Vec<AppendBytes> {
        self.0.pop().unwrap_or_default()
    }

    pub(crate) fn keep(&mut self, mut list: Vec<AppendBytes>) {
        list.clear();
        if self.0.len() < LISTS_MAX && list.capacity() <= LIST_BATCHES_MAX {
            self.0.push(list);
        }
    }
}
