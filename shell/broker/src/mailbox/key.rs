//! A partition's name, and which worker owns it.

use barnabas_base::{PartitionIndex, TopicId};
use barnabas_partition::ReplicaKey;

/// So many partitions of each topic, the first ones, belong to two workers.
const PARTITIONS_OF_TWO: usize = 16;

/// A partition by its topic's identity: one made again under the same name is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionKey {
    pub topic: TopicId,
    pub partition: PartitionIndex,
}

impl PartitionKey {
    /// Which of `workers` owns it. Neighbours in a topic go to different workers. But the first few partitions of each
    /// topic are shared by two workers: a request that has something for each of them then wakes two threads and not
    /// all (figures: lab/bench/JOURNAL.md), and what a small topic gets is less than two workers can do.
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

impl From<PartitionKey> for ReplicaKey {
    fn from(PartitionKey { topic, partition }: PartitionKey) -> Self {
        Self { topic, partition }
    }
}

impl From<ReplicaKey> for PartitionKey {
    fn from(ReplicaKey { topic, partition }: ReplicaKey) -> Self {
        Self { topic, partition }
    }
}
