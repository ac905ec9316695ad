//! On which partitions a producer's transaction is open, as far as one connection has seen: their owners need not be
//! asked about every batch.
//!
//! Only of producers of `transaction.version` 2. What was open under an epoch of theirs has ended once a higher epoch
//! is there, and then the partition refuses the batch for its epoch; where a transaction was ended by hand under the
//! same epoch, it refuses what is not open.

use crate::mailbox::PartitionKey;
use barnabas_base::{Map, ProducerEpoch, ProducerId};

/// More than this is forgotten, and asked about again.
const PARTITIONS_MAX: usize = 1024;

/// See the file's header.
#[derive(Debug, Default)]
pub struct OpenTransactions {
    by_partition: Map<PartitionKey, (ProducerId, ProducerEpoch)>,
}

impl OpenTransactions {
    pub fn has(&self, partition: PartitionKey, producer: (ProducerId, ProducerEpoch)) -> bool {
        self.by_partition.get(&partition) == Some(&producer)
    }

    pub fn note(&mut self, partition: PartitionKey, producer: (ProducerId, ProducerEpoch)) {
        if self.by_partition.len() >= PARTITIONS_MAX {
            self.by_partition.clear();
        }
        self.by_partition.insert(partition, producer);
    }

    /// Something of the producer was refused: what is known may be wrong.
    pub fn forget_all(&mut self) {
        self.by_partition.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{PartitionIndex, TopicId};

    #[test]
    fn what_is_open_is_open_under_one_epoch_and_forgotten_in_the_end() {
        let key =
            |index| PartitionKey { topic: TopicId::from_random([7; 16]), partition: PartitionIndex(index) };
        let producer = |epoch| (ProducerId(9), ProducerEpoch(epoch));
        let mut open = OpenTransactions::default();
        open.note(key(0), producer(3));
        assert!(open.has(key(0), producer(3)));
        assert!(!open.has(key(0), producer(4)) && !open.has(key(1), producer(3)));
        open.note(key(0), producer(4));
        assert!(open.has(key(0), producer(4)) && !open.has(key(0), producer(3)));
        for index in 1..=PARTITIONS_MAX as i32 {
            open.note(key(index), producer(4));
        }
        assert!(open.by_partition.len() <= PARTITIONS_MAX);
        assert!(!open.has(key(0), producer(4)));
        open.forget_all();
        assert!(open.by_partition.is_empty());
    }
}
