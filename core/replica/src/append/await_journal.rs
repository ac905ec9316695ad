//! Appends that wait for room in a journal, in their order.
//!
//! Where a journal's queue is full, a worker takes no appends for any of its directories: a request may have batches
//! for several. Appends that are answered hold a share of the node's memory budget meanwhile. `acks=0` holds none, so
//! the bytes held are bounded here, and past the bound the mailbox waits.
//!
//! Always true:
//! 1. no append overtakes one that waits
//! 2. no append is taken out while a journal is full
//!
//! Neighbours: shell/broker/src/worker/partition_worker/appends/journaled.rs, which holds commands;
//! core/replica/src/append.rs, where they go.

use std::collections::VecDeque;

/// Bytes of appends that wait before the mailbox is left alone.
const HELD_BYTES_MAX: usize = 32 << 20;

/// See the file's header.
#[derive(Debug)]
pub struct AwaitJournal<T> {
    waiting: VecDeque<(usize, T)>,
    bytes: usize,
}

impl<T> Default for AwaitJournal<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), bytes: 0 }
    }
}

impl<T> AwaitJournal<T> {
    /// Whether an append that comes now waits. `is_full`: whether a journal's queue is.
    pub fn must_wait(&self, is_full: impl FnOnce() -> bool) -> bool {
        !self.waiting.is_empty() || is_full()
    }

    /// Keeps an append with batches of so many bytes.
    pub fn hold(&mut self, bytes: usize, append: T) {
        self.bytes += bytes;
        self.waiting.push_back((bytes, append));
    }

    /// Whether more may be taken out of the mailbox.
    pub fn has_room(&self) -> bool {
        self.bytes < HELD_BYTES_MAX
    }

    /// The next append that waits no more.
    pub fn next(&mut self, is_full: impl FnOnce() -> bool) -> Option<T> {
        if self.waiting.is_empty() || is_full() {
            return None;
        }
        let (bytes, append) = self.waiting.pop_front()?;
        self.bytes -= bytes;
        Some(append)
    }
}
