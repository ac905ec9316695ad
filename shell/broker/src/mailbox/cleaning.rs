//! What a compaction thread asks of a partition's owner.
//!
//! Neighbours: cleaner.rs, which asks; partition_worker/upkeep/clean.rs, which answers.

use super::{Checkpointed, PartitionKey};
use barnabas_base::{Map, Offset, ProducerId};
use barnabas_storage::cleaner::{LastRecord, LogToClean, Replaced, Replacement};
use barnabas_storage::{CompactionDebt, StorageError};
use tokio::sync::oneshot;

/// What a worker is asked by a cleaner. With each partition goes how far it is clean, as its directory's checkpoint
/// says.
#[derive(Debug)]
pub enum CleanCommand {
    Look {
        partitions: Vec<(PartitionKey, Option<Offset>)>,
        reply: oneshot::Sender<Vec<Looked>>,
    },
    Begin {
        partition: PartitionKey,
        clean_to: Option<Offset>,
        reply: oneshot::Sender<Option<Box<Begun>>>,
    },
    Swap {
        partition: PartitionKey,
        replacement: Box<Replacement>,
        reply: oneshot::Sender<Result<Replaced, StorageError>>,
    },
}

/// How much of a partition waits. `None`: it is not here, or not compacted.
#[derive(Debug)]
pub struct Looked {
    pub partition: PartitionKey,
    pub found: Option<Waiting>,
}

#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    pub directory: usize,
    pub debt: CompactionDebt,
    /// `min.cleanable.dirty.ratio`
    pub min_dirty_ratio: f64,
}

impl Waiting {
    /// # Source
    /// Kafka `LogCleanerManager.grabFilthiestCompactedLog`.
    pub fn is_due(&self) -> bool {
        let debt = &self.debt;
        (debt.is_overdue && debt.dirty_bytes > 0) || debt.dirty_ratio() > self.min_dirty_ratio
    }
}

/// What one cleaning begins with.
#[derive(Debug)]
pub struct Begun {
    pub log: LogToClean,
    pub debt: CompactionDebt,
    pub last_records: Map<ProducerId, LastRecord>,
    pub checkpoint: Checkpointed,
}
