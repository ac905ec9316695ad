//! What comes behind a batch that was refused waits until that one has come again, where its producer is not
//! remembered.
//!
//! Source: core/partition/src/producers/refused.rs.

use crate::mailbox::PartitionKey;
use crate::worker::partition_worker::PartitionWorker;
use barnabas_base::ProducerId;
use barnabas_partition::{Append, BatchSequence, Origin};

impl PartitionWorker {
    /// Keeps in mind that these batches will come again.
    pub fn note_refused(&mut self, batches: impl IntoIterator<Item = (PartitionKey, BatchSequence)>) {
        let now = self.node.clock.monotonic();
        for (key, batch) in batches {
            self.refused.note(key, batch, now);
        }
    }

    /// Whether an earlier batch of this producer was refused, and has not come again. `is_new`: see
    /// [`Self::is_new`].
    pub fn follows_refused(
        &mut self,
        key: PartitionKey,
        append: &Append,
        batch: BatchSequence,
        is_new: bool,
    ) -> bool {
        if append.origin != Origin::Client || self.refused.is_empty() && !is_new {
            return false;
        }
        let now = self.moment().monotonic;
        let cluster = &self.node.cluster;
        self.refused.are_before(key, batch, now)
            || is_new && cluster.unknown_topics.are_before(&cluster.image.load(), key, batch, now)
    }

    /// Whether the batch is a producer's first one here, while the node keeps batches for topics that it did not know.
    /// Those stand behind a lock of the whole node, so that nothing else asks for them.
    pub fn is_new(&self, key: PartitionKey, batch: BatchSequence) -> bool {
        let is_known = || {
            let replica = self.replicas.get(&key);
            replica.is_some_and(|hosted| hosted.replica.partition.remembers(batch.producer_id))
        };
        self.node.cluster.unknown_topics.is_kept() && batch.is_numbered() && !is_known()
    }

    /// The partition has a batch of the producer.
    pub fn was_placed(&mut self, key: PartitionKey, producer: ProducerId, is_new: bool) {
        if !self.refused.is_empty() {
            self.refused.placed(key, producer);
        }
        if is_new {
            let cluster = &self.node.cluster;
            cluster.unknown_topics.placed(&cluster.image.load(), key, producer);
        }
    }
}
