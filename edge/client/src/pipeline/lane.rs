//! One partition's batches: the one that takes records, then those that are closed, oldest first.
//!
//! Always true:
//! 1. batches leave in the order in which they were closed, but for one that failed for good
//! 2. sequences are given in that order, when a batch is sent for the first time
//! 3. batches are under way over one link at a time: a new leader that gets the second before the first takes it for
//!    the beginning
//! 4. the first batch of a producer id is under way alone: a broker that refuses it, and takes the one behind it a
//!    moment later, would take that one for the beginning
//! 5. a batch that is sent again keeps its sequence, unless the producer got another id and
//!    renumbers all batches
//!
//! Several batches of a partition may be under way. Where one comes back to be sent again, those behind it are
//! refused by the broker (their sequence is not next) and come back too; each waits in its place and they go out in
//! order again.

use super::batch::{Batch, Identity, OpenBatch};
use bytes::Bytes;
use std::collections::VecDeque;
use std::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Lane {
    pub open: Option<OpenBatch>,
    pub closed: VecDeque<Batch>,
    /// Which link leads to its leader.
    pub leader: Option<usize>,
    /// Over which one its batches under way went.
    pub sent_over: Option<usize>,
    pub next_sequence: i32,
    /// Whether the leader has taken a batch of this producer id.
    pub has_begun: bool,
    /// Whether it stands in its leader's list of those with something to send.
    pub is_listed: bool,
    pub retry_at: Option<Instant>,
}

impl Lane {
    pub fn has_waiting(&self) -> bool {
        self.closed.iter().any(|batch| !batch.is_in_flight)
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_none() && self.closed.is_empty()
    }

    /// Batches that are not acknowledged.
    pub fn depth(&self) -> usize {
        self.closed.len() + usize::from(self.open.is_some())
    }

    /// Bytes of the batch that [`Self::take`] would give.
    pub fn next_size(&self) -> Option<usize> {
        self.closed.iter().find(|batch| !batch.is_in_flight).map(Batch::size_bytes)
    }

    /// Whether its next batch waits for the answers to those under way: they went to a broker that led before, or are
    /// the first of their producer id.
    pub fn waits_for_answers(&self, link: usize, is_idempotent: bool) -> bool {
        let must_be_alone = self.sent_over != Some(link) || (is_idempotent && !self.has_begun);
        must_be_alone && self.closed.iter().any(|batch| batch.is_in_flight)
    }

    /// The first batch that waits, as it goes out over a link.
    pub fn take(&mut self, identity: Option<Identity>, link: usize) -> Option<(u64, Bytes)> {
        let batch = self.closed.iter_mut().find(|batch| !batch.is_in_flight)?;
        self.sent_over = Some(link);
        batch.is_in_flight = true;
        batch.attempts += 1;
        Some((batch.id, batch.seal(identity, &mut self.next_sequence)))
    }

    /// Where a batch stands: 0 is the oldest.
    pub fn place(&self, id: u64) -> Option<usize> {
        self.closed.iter().position(|batch| batch.id == id)
    }

    /// Clears all sequences, so that they start at 0 again. No batch may be in flight.
    pub fn unnumber(&mut self) {
        self.next_sequence = 0;
        self.has_begun = false;
        for batch in &mut self.closed {
            assert!(!batch.is_in_flight, "sequences change only while nothing is under way");
            batch.unnumber();
        }
    }
}
