//! What an opening says first: of partitions that left the directory without a removal in the journal, that they left;
//! of those that came back without a word after their removal, that another stay has begun. [`super::Journal`] takes
//! nothing else before those, and is open once they are durable.

use std::collections::VecDeque;
use std::sync::Arc;

use barnabas_base::{LeaderEpoch, Offset};

use super::scan::Recovered;
use super::types::{Entry, EntryKind, JournalPartition, Refused};

#[derive(Debug)]
pub(super) struct Stays {
    /// In no round yet.
    waiting: VecDeque<Entry>,
    /// The last round with one of them; 0: none.
    last_round: u64,
}

impl Stays {
    pub(super) fn of(recovered: &Recovered) -> Self {
        // What the segments hold of the other stay is the opening's to find.
        let begins = EntryKind::Range { from: Offset::ZERO, end: Offset::ZERO };
        let entries = |partitions: &[Arc<JournalPartition>], kind: EntryKind| {
            let leader_epoch = LeaderEpoch::NONE;
            let entry = |partition| Entry { partition, leader_epoch, kind: kind.clone() };
            partitions.iter().cloned().map(entry).collect::<VecDeque<_>>()
        };
        let mut waiting = entries(&recovered.left, EntryKind::Remove);
        waiting.extend(entries(&recovered.returned, begins));
        Self { waiting, last_round: 0 }
    }

    /// Whether all of them are in rounds.
    pub(super) fn is_submitted(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether all of them are durable, as the rounds up to this one are.
    pub(super) fn is_durable(&self, round: u64) -> bool {
        self.is_submitted() && round >= self.last_round
    }

    pub(super) fn next(&self) -> Option<Entry> {
        self.waiting.front().cloned()
    }

    /// What became of [`Stays::next`]. Returns whether another one may be submitted.
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
