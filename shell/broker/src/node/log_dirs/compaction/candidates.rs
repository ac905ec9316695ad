//! Which partitions may have something to compact, so that the others are never looked at.
//!
//! Housekeeping names those that were written since its last turn and have a sealed segment ([`Candidates::note`]);
//! the sweep
//! over the directories names those that the last process left dirty. Both know compacted topics alone. A partition
//! is forgotten
//! once its worker says that nothing waits in it, until it is written again.

use crate::mailbox::PartitionKey;
use barnabas_base::{Map, Set, TopicId};
use barnabas_replica::Replica;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// See the file's header. Bounded by the number of compacted partitions that have a sealed segment.
#[derive(Debug, Default)]
pub struct Candidates {
    state: Mutex<State>,
    /// One thread looks at a time.
    looking: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Set<PartitionKey>,
    /// Found to be due, the dirtiest first.
    due: VecDeque<PartitionKey>,
    /// Being cleaned.
    busy: Set<PartitionKey>,
    resting: Map<PartitionKey, Instant>,
    /// With the bytes that are not compacted for it.
    uncleanable: Map<PartitionKey, u64>,
}

impl Candidates {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The replica was written to, or its settings have changed.
    pub fn note(&self, replica: &Replica) {
        if replica.log.config().cleanup.compact && replica.log.segment_count() > 1 {
            self.add(replica.key);
        }
    }

    pub fn add(&self, partition: PartitionKey) {
        let mut state = self.lock();
        if !state.uncleanable.contains_key(&partition) {
            state.waiting.insert(partition);
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
        self.lock().due = due.into();
        self.pop()
    }

    fn pop(&self) -> Option<PartitionKey> {
        let mut state = self.lock();
        let now = barnabas_clock::now();
        state.resting.retain(|_, until| *until > now);
        while let Some(next) = state.due.pop_front() {
            let is_free = !state.resting.contains_key(&next) && !state.uncleanable.contains_key(&next);
            if is_free && state.busy.insert(next) {
                return Some(next);
            }
        }
        None
    }

    pub fn done(&self, partition: PartitionKey) {
        self.lock().busy.remove(&partition);
    }

    pub fn rest(&self, partition: PartitionKey, how_long: Duration) {
        self.lock().resting.insert(partition, barnabas_clock::now() + how_long);
    }

    pub fn forget(&self, partition: PartitionKey) {
        self.lock().waiting.remove(&partition);
    }

    pub fn set_uncleanable(&self, partition: PartitionKey, bytes: u64) {
        let mut state = self.lock();
        state.waiting.remove(&partition);
        state.uncleanable.insert(partition, bytes);
    }

    /// A topic is gone, and with it what could not be compacted.
    pub fn topic_deleted(&self, topic: TopicId) {
        let mut state = self.lock();
        state.waiting.retain(|partition| partition.topic != topic);
        state.uncleanable.retain(|partition, _| partition.topic != topic);
    }

    /// All that may have something to compact.
    pub fn waiting(&self) -> Vec<PartitionKey> {
        self.lock().waiting.iter().copied().collect()
    }

    /// How many partitions cannot be compacted, and how many bytes they have.
    pub fn uncleanable(&self) -> (usize, u64) {
        let state = self.lock();
        (state.uncleanable.len(), state.uncleanable.values().sum())
    }
}
