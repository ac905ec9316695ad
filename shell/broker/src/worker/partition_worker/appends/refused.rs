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

    /// Whether an earlier batch of this producer was refused, and has not come again.
    pub fn follows_refused(&mut self, key: PartitionKey, append: &Append, batch: BatchSequence) -> bool {
        if append.origin != Origin::Client || !self.keeps_refused() {
            return false;
        }
        let now = self.moment().monotonic;
        let cluster = &self.node.cluster;
        self.refused.are_before(key, batch, now)
            || cluster.unknown_topics.are_before(&cluster.image.load(), key, batch, now)
    }

    /// The partition has a batch of the producer.
    pub fn was_placed(&mut self, key: PartitionKey, producer: ProducerId) {
        self.refused.placed(key, producer);
        let cluster = &self.node.cluster;
        cluster.unknown_topics.placed(&cluster.image.load(), key, producer);
    }

    pub fn keeps_refused(&self) -> bool {
        !self.refused.is_empty() || self.node.cluster.unknown_topics.is_kept()
    }
}
