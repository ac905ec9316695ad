//! Partitions that may have something on this node's disks: so that deleting a million partitions that were never
//! written asks the file system nothing.
//!
//! Only those that were ever opened here or that the start found, by topic id: bytes for each, and nothing for those
//! that were never written. Until the directories have been looked through once (housekeeping/sweep.rs), every
//! partition may.
//!
//! Always true: once [`WrittenPartitions::complete`] was said, a partition of a known topic that is not named here has
//! no replica open, no directory and no entry in a checkpoint.

use crate::mailbox::PartitionKey;
use barnabas_base::{Map, PartitionIndex, Set, TopicId};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// See the file's header.
#[derive(Debug, Default)]
pub struct WrittenPartitions {
    by_topic: Mutex<Map<TopicId, BTreeSet<PartitionIndex>>>,
    is_complete: AtomicBool,
    /// Topics that were deleted shortly before the start, by the metadata log.
    deleted: Mutex<Set<TopicId>>,
}

impl WrittenPartitions {
    /// The partition is about to be opened, or was found on disk.
    pub fn add(&self, key: PartitionKey) {
        self.lock().entry(key.topic).or_default().insert(key.partition);
    }

    /// Every directory has been looked through, and what was found was added.
    pub fn complete(&self) {
        self.is_complete.store(true, Ordering::Release);
    }

    /// Forgets those partitions of a deleted topic that the caller owns, and returns them. `None`: it may be any of
    /// them.
    pub fn take(
        &self,
        topic: TopicId,
        is_mine: impl Fn(PartitionIndex) -> bool,
    ) -> Option<Vec<PartitionIndex>> {
        let is_complete = self.is_complete.load(Ordering::Acquire);
        let mut by_topic = self.lock();
        let mut taken = Vec::new();
        if let Some(partitions) = by_topic.get_mut(&topic) {
            taken.extend(partitions.iter().copied().filter(|&index| is_mine(index)));
            for index in &taken {
                partitions.remove(index);
            }
            if partitions.is_empty() {
                by_topic.remove(&topic);
            }
        }
        is_complete.then_some(taken)
    }

    /// Deletions that were read of. Of interest are those that the process before may not have carried out: those of
    /// the start.
    pub fn note_deleted(&self, topics: impl Iterator<Item = TopicId>) {
        if self.is_complete.load(Ordering::Acquire) {
            return;
        }
        self.deleted.lock().unwrap_or_else(PoisonError::into_inner).extend(topics);
    }

    /// Whether what is left of this topic is to go: it was deleted, and is no stray.
    pub fn was_deleted(&self, topic: TopicId) -> bool {
        self.deleted.lock().unwrap_or_else(PoisonError::into_inner).contains(&topic)
    }

    fn lock(&self) -> MutexGuard<'_, Map<TopicId, BTreeSet<PartitionIndex>>> {
        self.by_topic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_added_is_looked_for() {
        let written = WrittenPartitions::default();
        let topic = TopicId::from_random([7; 16]);
        let key = |index| PartitionKey { topic, partition: PartitionIndex(index) };
        written.add(key(3));
        assert_eq!(written.take(topic, |_| true), None, "the disks were not looked through yet");
        written.complete();
        [1, 2, 5].into_iter().for_each(|index| written.add(key(index)));
        let is_odd = |index: PartitionIndex| index.get() % 2 == 1;
        assert_eq!(written.take(topic, is_odd), Some(vec![PartitionIndex(1), PartitionIndex(5)]));
        assert_eq!(written.take(topic, |index| !is_odd(index)), Some(vec![PartitionIndex(2)]));
        assert_eq!(written.take(topic, |_| true), Some(vec![]));
        assert!(written.lock().is_empty());
    }
}
