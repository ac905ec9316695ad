//! Which partitions may have something to compact, so that the others are never looked at, and which is next.
//!
//! A partition waits from when it was written until its worker says that nothing waits in it. Of those that wait, a
//! look finds the ones that are due; they are cleaned the dirtiest first, one thread for each.
//!
//! Always true: a partition that is being cleaned, rests, or cannot be compacted is not next.
//!
//! Carried by: shell/broker/src/node/log_dirs/compaction/candidates.rs.

use barnabas_base::{Map, MonotonicMs, Set, TopicId};
use barnabas_partition::PartitionKey;
use std::collections::VecDeque;

/// See the file's header. Bounded by the number of compacted partitions that have a sealed segment.
#[derive(Debug, Default)]
pub struct CompactionCandidates {
    waiting: Set<PartitionKey>,
    /// Found to be due, the dirtiest first.
    due: VecDeque<PartitionKey>,
    /// Being cleaned.
    busy: Set<PartitionKey>,
    resting: Map<PartitionKey, MonotonicMs>,
    /// With the bytes that are not compacted for it.
    uncleanable: Map<PartitionKey, u64>,
}

impl CompactionCandidates {
    pub fn add(&mut self, partition: PartitionKey) {
        if !self.uncleanable.contains_key(&partition) {
            self.waiting.insert(partition);
        }
    }

    /// What a look found, the dirtiest first.
    pub fn set_due(&mut self, due: Vec<PartitionKey>) {
        self.due = due.into();
    }

    /// The next partition to clean. It is busy until [`Self::done`].
    pub fn next(&mut self, now: MonotonicMs) -> Option<PartitionKey> {
        self.resting.retain(|_, until| *until > now);
        while let Some(next) = self.due.pop_front() {
            let is_free = !self.resting.contains_key(&next) && !self.uncleanable.contains_key(&next);
            if is_free && self.busy.insert(next) {
                return Some(next);
            }
        }
        None
    }

    pub fn done(&mut self, partition: PartitionKey) {
        self.busy.remove(&partition);
    }

    pub fn rest(&mut self, partition: PartitionKey, until: MonotonicMs) {
        self.resting.insert(partition, until);
    }

    pub fn forget(&mut self, partition: PartitionKey) {
        self.waiting.remove(&partition);
    }

    pub fn set_uncleanable(&mut self, partition: PartitionKey, bytes: u64) {
        self.waiting.remove(&partition);
        self.uncleanable.insert(partition, bytes);
    }

    /// A topic is gone, and with it what could not be compacted.
    pub fn topic_deleted(&mut self, topic: TopicId) {
        self.waiting.retain(|partition| partition.topic != topic);
        self.uncleanable.retain(|partition, _| partition.topic != topic);
    }

    /// All that may have something to compact.
    pub fn waiting(&self) -> Vec<PartitionKey> {
        self.waiting.iter().copied().collect()
    }

    /// How many partitions cannot be compacted, and how many bytes they have.
    pub fn uncleanable(&self) -> (usize, u64) {
        (self.uncleanable.len(), self.uncleanable.values().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{PartitionIndex, Uuid};

    fn key(topic: u8, partition: i32) -> PartitionKey {
        PartitionKey { topic: Uuid([topic; 16]), partition: PartitionIndex(partition) }
    }

    #[test]
    fn partition_is_cleaned_by_one_thread_at_a_time() {
        let (mut all, now) = (CompactionCandidates::default(), MonotonicMs(0));
        all.set_due(vec![key(1, 0), key(1, 1)]);
        assert_eq!(all.next(now), Some(key(1, 0)));
        all.set_due(vec![key(1, 0), key(1, 1)]);
        assert_eq!((all.next(now), all.next(now)), (Some(key(1, 1)), None));
        all.done(key(1, 0));
        all.set_due(vec![key(1, 0), key(1, 1)]);
        assert_eq!((all.next(now), all.next(now)), (Some(key(1, 0)), None));
    }

    #[test]
    fn partition_that_failed_rests_until_its_time() {
        let mut all = CompactionCandidates::default();
        all.rest(key(1, 0), MonotonicMs(10));
        all.set_due(vec![key(1, 0)]);
        assert_eq!(all.next(MonotonicMs(9)), None);
        all.set_due(vec![key(1, 0)]);
        assert_eq!(all.next(MonotonicMs(10)), Some(key(1, 0)));
    }

    #[test]
    fn uncleanable_partition_is_left_out_until_its_topic_is_deleted() {
        let mut all = CompactionCandidates::default();
        all.add(key(1, 0));
        all.add(key(2, 0));
        all.set_uncleanable(key(1, 0), 7);
        all.add(key(1, 0));
        assert_eq!((all.waiting(), all.uncleanable()), (vec![key(2, 0)], (1, 7)));
        all.set_due(vec![key(1, 0)]);
        assert_eq!(all.next(MonotonicMs(0)), None);
        all.topic_deleted(key(1, 0).topic);
        all.forget(key(2, 0));
        all.add(key(1, 0));
        assert_eq!((all.waiting(), all.uncleanable()), (vec![key(1, 0)], (0, 0)));
    }
}
