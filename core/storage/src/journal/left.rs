//! Partitions that left the directory before an opening, without a removal in the journal: the opening's first rounds
//! hold their removals. [`super::Journal`] takes nothing else before those, and is open once they are durable.

use std::collections::VecDeque;
use std::sync::Arc;

use barnabas_base::LeaderEpoch;

use super::types::{Entry, EntryKind, JournalPartition, Refused};

#[derive(Debug)]
pub(super) struct Left {
    /// In no round yet.
    waiting: VecDeque<Arc<JournalPartition>>,
    /// The last round with a removal; 0: none.
    last_round: u64,
}

impl Left {
    pub(super) fn new(left: &[Arc<JournalPartition>]) -> Self {
        Self { waiting: left.iter().cloned().collect(), last_round: 0 }
    }

    /// Whether all removals are in rounds.
    pub(super) fn is_submitted(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether all removals are durable, as the rounds up to this one are.
    pub(super) fn is_durable(&self, round: u64) -> bool {
        self.is_submitted() && round >= self.last_round
    }

    /// The next removal.
    pub(super) fn next(&self) -> Option<Entry> {
        let partition = Arc::clone(self.waiting.front()?);
        Some(Entry { partition, leader_epoch: LeaderEpoch::NONE, kind: EntryKind::Remove })
    }

    /// What became of [`Left::next`]. Returns whether another one may be submitted.
    pub(super) fn submitted(&mut self, done: Result<u64, Refused>) -> bool {
        match done {
            Ok(round) => {
                self.waiting.pop_front();
                self.last_round = round;
                true
            }
            // Nothing is replayed after a journal that was closed.
            Err(Refused::Closed) => {
                self.waiting.clear();
                false
            }
            Err(_) => false,
        }
    }
}
