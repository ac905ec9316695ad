//! Replicas that must not lead although their broker is alive: damaged ones, and *offline* ones whose log cannot be
//! opened.
//!
//! Carried by: shell/broker/src/node/log_dirs/impaired_partitions.rs.
//! core/quorum's `controller/impaired.rs` acts on it.

use barnabas_base::BrokerId;
use barnabas_metadata::Image;
use barnabas_partition::PartitionKey;
use std::collections::BTreeSet;

/// See the file's header. Nearly always empty.
#[derive(Debug, Default)]
pub struct ImpairedReplicas {
    damaged: BTreeSet<PartitionKey>,
    /// Their logs could not be opened by this process.
    offline: BTreeSet<PartitionKey>,
}

impl ImpairedReplicas {
    /// Returns whether that is new.
    pub fn damaged(&mut self, key: PartitionKey) -> bool {
        self.damaged.insert(key)
    }

    /// Returns whether that is new.
    pub fn offline(&mut self, key: PartitionKey) -> bool {
        self.offline.insert(key)
    }

    /// The copy is whole again, or gone. Returns whether it was not.
    pub fn healed(&mut self, key: PartitionKey) -> bool {
        self.damaged.remove(&key) | self.offline.remove(&key)
    }

    /// Copies that are known to be damaged, or cannot be opened.
    pub fn count(&self) -> usize {
        self.damaged.union(&self.offline).count()
    }

    /// Copies that cannot be opened.
    pub fn offline_count(&self) -> usize {
        self.offline.len()
    }

    pub fn is_offline(&self, key: PartitionKey) -> bool {
        self.offline.contains(&key)
    }

    /// Copies that are open and damaged.
    pub fn all_damaged(&self) -> &BTreeSet<PartitionKey> {
        &self.damaged
    }

    /// Copies that cannot be opened.
    pub fn all_offline(&self) -> &BTreeSet<PartitionKey> {
        &self.offline
    }

    /// What a heartbeat names, in the order of keys: at most `max`.
    pub fn named(&self, max: usize) -> Vec<PartitionKey> {
        self.damaged.union(&self.offline).take(max).copied().collect()
    }

    /// Forgets partitions that this broker has no replica of any more. Returns whether there were any.
    pub fn forget_moved(&mut self, broker: BrokerId, image: &Image) -> bool {
        self.retain(|key| {
            let topic = image.topics.by_id(key.topic);
            let row = topic.and_then(|topic| topic.partition(key.partition));
            row.is_some_and(|row| row.has_replica(broker))
        })
    }

    fn retain(&mut self, is_here: impl Fn(&PartitionKey) -> bool) -> bool {
        let before = self.damaged.len() + self.offline.len();
        self.damaged.retain(&is_here);
        self.offline.retain(&is_here);
        self.damaged.len() + self.offline.len() != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{PartitionIndex, Uuid};

    fn key(partition: i32) -> PartitionKey {
        PartitionKey { topic: Uuid([1; 16]), partition: PartitionIndex(partition) }
    }

    #[test]
    fn replica_with_both_faults_is_named_and_counted_once() {
        let mut impaired = ImpairedReplicas::default();
        assert!(impaired.damaged(key(1)) && impaired.offline(key(1)) && impaired.offline(key(0)));
        assert!(!impaired.offline(key(0)), "known already");
        assert_eq!((impaired.named(9), impaired.named(1)), (vec![key(0), key(1)], vec![key(0)]));
        assert_eq!((impaired.count(), impaired.offline_count()), (2, 2));
        assert!(impaired.is_offline(key(0)) && !impaired.is_offline(key(2)));
        assert!(impaired.healed(key(1)) && !impaired.healed(key(1)));
        assert!(impaired.all_damaged().is_empty() && impaired.count() == 1);
    }

    #[test]
    fn replicas_that_moved_away_are_forgotten() {
        let mut impaired = ImpairedReplicas::default();
        impaired.damaged(key(1));
        impaired.offline(key(2));
        assert!(!impaired.retain(|_| true) && impaired.retain(|at| *at == key(1)));
        assert_eq!(impaired.named(9), [key(1)]);
        // An image without topics has no replica here.
        assert!(impaired.forget_moved(BrokerId(1), &Image::default()) && impaired.count() == 0);
    }
}
