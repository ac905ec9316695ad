//! Which partitions may have something to compact, behind their lock.
//!
//! Housekeeping names those that were written since its last turn and have a sealed segment ([`Candidates::note`]); the
//! sweep over the directories names those that the last process left dirty. Both know compacted topics alone.
//! core/log-dirs/src/compaction.rs says which is next.

use crate::mailbox::PartitionKey;
use barnabas_base::{MonotonicMs, TopicId};
use barnabas_clock::Clock;
use barnabas_log_dirs::CompactionCandidates;
use barnabas_replica::Replica;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// See the file's header.
#[derive(Debug, Default)]
pub struct Candidates {
    state: Mutex<CompactionCandidates>,
    /// One thread looks at a time.
    looking: Mutex<()>,
}

impl Candidates {
    pub fn lock(&self) -> MutexGuard<'_, CompactionCandidates> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The replica was written to, or its settings have changed.
    pub fn note(&self, replica: &Replica) {
        if replica.log.config().cleanup.compact && replica.log.segment_count() > 1 {
            self.lock().add(replica.key);
        }
    }

    /// The next partition to clean; where none is known to be due, `look` is asked for some.
    pub fn next(&self, look: impl FnOnce() -> Vec<PartitionKey>) -> Option<PartitionKey> {
        if let Some(next) = self.pop() {
            return Some(next);
        }
        let _looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have looked in the meantime.
        if let Some(next) = self.pop() {
            return Some(next);
        }
        let due = look();
        self.lock().set_due(due);
        self.pop()
    }

    fn pop(&self) -> Option<PartitionKey> {
        self.lock().next(Clock::start().monotonic())
    }

    pub fn rest(&self, partition: PartitionKey, how_long: Duration) {
        let until = Clock::start().monotonic().0.saturating_add(how_long.as_millis() as u64);
        self.lock().rest(partition, MonotonicMs(until));
    }

    /// A topic is gone, and with it what could not be compacted.
    pub fn topic_deleted(&self, topic: TopicId) {
        self.lock().topic_deleted(topic);
    }
}
