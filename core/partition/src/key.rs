//! The name of a partition by its topic's id, and the worker that owns it.

use barnabas_base::{PartitionIndex, TopicId};

/// So many partitions of each topic, the first ones, belong to two workers.
const PARTITIONS_OF_TWO: usize = 16;

/// A partition by its topic's identity: one made again under the same name is another one. Kafka's `TopicIdPartition`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionKey {
    pub topic: TopicId,
    pub partition: PartitionIndex,
}

/// One replica's name between brokers.
pub type ReplicaKey = PartitionKey;

impl PartitionKey {
    /// Which of `workers` owns it, from 0 on. Neighbours in a topic go to different workers. But the first few
    /// partitions of each topic are shared by two workers: a request that has something for each of them then wakes two
    /// threads and not all (figures: lab/bench/JOURNAL.md). What a small topic gets is less than two workers can do.
    pub fn owner(&self, workers: usize) -> usize {
        let spread =
            self.topic.0.iter().fold(0usize, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let partition = self.partition.get() as usize;
        let step = if partition < PARTITIONS_OF_TWO { partition % 2 } else { partition };
        spread.wrapping_add(step) % workers
    }
}

/// As log lines name it where no topic name is at hand: the topic's id, and the partition.
impl std::fmt::Display for PartitionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::Uuid;
    use std::collections::BTreeSet;

    fn owners(topic: u8, partitions: std::ops::Range<i32>, workers: usize) -> BTreeSet<usize> {
        let key = |partition| PartitionKey { topic: Uuid([topic; 16]), partition: PartitionIndex(partition) };
        partitions.map(|partition| key(partition).owner(workers)).collect()
    }

    #[test]
    fn first_partitions_of_a_topic_have_two_owners() {
        for topic in 0..=255 {
            assert_eq!(owners(topic, 0..16, 8).len(), 2, "topic {topic}");
            assert_eq!(owners(topic, 0..16, 1), [0].into());
        }
    }

    #[test]
    fn later_partitions_go_to_all_workers() {
        for workers in 1..=16 {
            assert_eq!(owners(7, 16..16 + workers as i32, workers).len(), workers);
        }
    }
}
