//! What comes behind a batch that was refused waits until that one has come again, where its producer is not
//! remembered.
//!
//! Source: core/partition/src/producers/refused.rs.

use crate::mailbox::PartitionKey;
use crate::worker::partition_worker::PartitionWorker;
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
        if self.refused.is_empty() || append.origin != Origin::Client {
            return false;
        }
        let now = self.moment().monotonic;
        self.refused.are_before(key, batch, now)
    }
}
