//! What a shard of groups hands out for the worker to do.

use crate::SharePartitionKey;
use crate::assignment::Job;
use crate::framework::{BatchId, EndTransaction, Producer, Record, Ticket};
use crate::request::Response;
use barnabas_base::{ErrorCode, Offset};

/// What the worker is to do. In this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Append `records` to the shard's partition, all or none, timestamped with the wall clock's time; batches in the
    /// order of their ids, several of them in one log batch if the worker likes. Then say `durable` or `failed`.
    Append { batch: BatchId, records: Vec<Record> },
    /// As `Append`, as part of the producer's transaction: the batch says so and bears its id and epoch, without a
    /// sequence.
    AppendInTransaction { batch: BatchId, producer: Producer, records: Vec<Record> },
    /// Append the marker that ends the producer's transaction, in order with the rest. Then say `durable` or `failed`.
    AppendMarker { batch: BatchId, end: EndTransaction },
    /// Run the job away from the shard, and bring what comes of it back by [`crate::GroupShard::computed`].
    Compute(Box<Job>),
    /// Bring this to the share coordinator, and what comes of it back by [`crate::GroupShard::share_state_done`].
    ShareState(ShareStateOrder),
    /// The answer to `ticket`.
    Answer { ticket: Ticket, response: Response },
}

/// Bring this to the share-partitions' coordinators, then say [`crate::GroupShard::share_state_done`].
#[derive(Debug, Clone, PartialEq)]
pub struct ShareStateOrder {
    /// Counts up in each shard.
    pub number: u64,
    pub work: ShareStateWork,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ShareStateWork {
    /// Each begins at this offset; [`Offset::NONE`]: where its leader decides.
    Initialize {
        state_epoch: i32,
        starts: Vec<(SharePartitionKey, Offset)>,
    },
    Delete(Vec<SharePartitionKey>),
}

/// What came of an order: one outcome for each of its share-partitions. Those that are missing failed.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareStateDone {
    pub number: u64,
    pub outcomes: Vec<(SharePartitionKey, ErrorCode)>,
}
