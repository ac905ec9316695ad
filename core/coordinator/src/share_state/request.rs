//! What is asked about one share-partition, what is answered, and what the shard asks of its worker.
//!
//! Kafka's messages (keys 83 to 87) speak of many share-partitions at once: core/api, or the persister, splits them, as
//! each has a shard of its own.

use std::sync::Arc;

use barnabas_base::{ErrorCode, LeaderEpoch, Offset, PartitionIndex, Text, TopicId};

use super::state::{ShareState, StateBatch};
use crate::framework::ID_BYTES_MAX;
use crate::framework::{BatchId, Record, Refusable, Ticket};

/// A share-partition: one partition as one group reads it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharePartitionKey {
    pub group: Text,
    pub topic: TopicId,
    pub partition: PartitionIndex,
}

impl SharePartitionKey {
    /// The name under which its coordinator is found; also decides the shard.
    ///
    /// # Source
    /// Kafka 4.4 `SharePartitionKey.asCoordinatorKey`.
    pub fn coordinator_key(&self) -> String {
        format!("{}:{}:{}", self.group, self.topic, self.partition)
    }
}

/// One share-partition's part of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum ShareStateRequest {
    /// Resets the state: nothing is delivered, and the first offset is this one. [`Offset::NONE`]: the partition's
    /// leader decides.
    Initialize {
        key: SharePartitionKey,
        state_epoch: i32,
        start_offset: Offset,
    },
    /// The whole state, for the leader of the partition, whose epoch fences those before it.
    Read {
        key: SharePartitionKey,
        leader_epoch: LeaderEpoch,
    },
    Write {
        key: SharePartitionKey,
        state_epoch: i32,
        leader_epoch: LeaderEpoch,
        start_offset: Offset,
        /// Records from the start offset on that are done with; −1: not known.
        delivery_complete_count: i32,
        batches: Vec<StateBatch>,
    },
    Delete {
        key: SharePartitionKey,
    },
    /// The state without its batches.
    ReadSummary {
        key: SharePartitionKey,
    },
}

/// Why not, in a code and, where Kafka has some, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareStateRefusal {
    pub code: ErrorCode,
    pub why: Option<&'static str>,
}

impl From<ErrorCode> for ShareStateRefusal {
    fn from(code: ErrorCode) -> Self {
        Self { code, why: None }
    }
}

/// Where a share-partition stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareStateSummary {
    pub state_epoch: i32,
    pub leader_epoch: LeaderEpoch,
    /// [`Offset::NONE`]: no member has read from it yet, or there is no such share-partition.
    pub start_offset: Offset,
    /// −1: not known.
    pub delivery_complete_count: i32,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ShareStateResponse {
    /// To Initialize, Write and Delete: it is on disk.
    Done(Result<(), ShareStateRefusal>),
    Read(Result<Arc<ShareState>, ShareStateRefusal>),
    Summary(Result<ShareStateSummary, ShareStateRefusal>),
}

/// What the worker is to do. In this order.
#[derive(Debug, Clone, PartialEq)]
pub enum ShareStateEffect {
    /// As [`crate::Effect::Append`]; `durable` is also told where the first record is.
    Append { batch: BatchId, records: Vec<Record> },
    /// The answer to `ticket`.
    Answer { ticket: Ticket, response: ShareStateResponse },
    /// Delete the records before this offset from the shard's partition. Whether and when is not told back.
    Prune { before: Offset },
}

impl ShareStateRequest {
    pub fn key(&self) -> &SharePartitionKey {
        match self {
            Self::Initialize { key, .. }
            | Self::Read { key, .. }
            | Self::Write { key, .. }
            | Self::Delete { key }
            | Self::ReadSummary { key } => key,
        }
    }

    /// The answer that says `error` and nothing else: for a shard that is not here.
    pub fn refuse(&self, refusal: impl Into<ShareStateRefusal>) -> ShareStateResponse {
        let refusal = refusal.into();
        match self {
            Self::Initialize { .. } | Self::Write { .. } | Self::Delete { .. } => {
                ShareStateResponse::Done(Err(refusal))
            }
            Self::Read { .. } => ShareStateResponse::Read(Err(refusal)),
            Self::ReadSummary { .. } => ShareStateResponse::Summary(Err(refusal)),
        }
    }

    /// Whether it may come to records.
    pub(crate) fn writes(&self) -> bool {
        !matches!(self, Self::ReadSummary { .. })
    }

    /// Whether the group's id fits into a record.
    pub(crate) fn is_writable(&self) -> bool {
        self.key().group.len() <= ID_BYTES_MAX
    }
}

impl Refusable for ShareStateResponse {
    fn refused(self, error: ErrorCode) -> Self {
        match self {
            Self::Done(_) => Self::Done(Err(error.into())),
            Self::Read(_) => Self::Read(Err(error.into())),
            Self::Summary(_) => Self::Summary(Err(error.into())),
        }
    }
}
