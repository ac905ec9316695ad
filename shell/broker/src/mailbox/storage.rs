//! What the threads of log directories and a worker tell each other: what is durable, what is to be written back, how
//! far checkpoints reach.

use super::PartitionKey;
use barnabas_base::{Offset, TopicId, TopicPartition};
use barnabas_storage::SyncTicket;
use barnabas_storage::journal::JournalPartition;
use std::sync::Arc;

/// Partitions of one worker that are durable, each up to the offset beside its ticket.
#[derive(Debug)]
pub struct Synced {
    pub tickets: Vec<(PartitionKey, SyncTicket, Offset)>,
}

/// Bring a partition's segments up to here, have them synced, and say so with [`JournalHandle::written_back`].
#[derive(Debug, Clone)]
pub struct WriteBackOrder {
    /// Place of the log directory in the node's list.
    pub directory: usize,
    pub partition: Arc<JournalPartition>,
    /// Everything below; what the log does not hold any more is not meant.
    pub end: Offset,
}

impl WriteBackOrder {
    pub fn key(&self) -> PartitionKey {
        key_of(&self.partition)
    }
}

/// The partition as workers name it.
pub fn key_of(partition: &JournalPartition) -> PartitionKey {
    PartitionKey { topic: partition.topic_id, partition: partition.topic_partition.partition }
}

/// How far one partition may be called safe in its directory's checkpoint files.
#[derive(Debug, Clone)]
pub struct Checkpointed {
    pub directory: usize,
    pub topic: TopicId,
    pub partition: TopicPartition,
    pub recovery_point: Offset,
    pub log_start: Option<Offset>,
    pub high_watermark: Offset,
}

/// An open log's bytes, wherever they are.
#[derive(Debug)]
pub struct LogSize {
    pub directory: usize,
    pub partition: TopicPartition,
    pub bytes: u64,
    /// Where an open log begins and ends.
    pub range: Option<(Offset, Offset)>,
}
