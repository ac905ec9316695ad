//! What goes into a coordinator and what comes out of it.

use barnabas_base::{
    ConnectionNumber, CoordinatorEpoch, MonotonicMs, ProducerEpoch, ProducerId, TimestampMs,
};
use bytes::Bytes;

use crate::{Job, Response, ShareStateOrder, TransactionVersion};

/// A request that waits for its answer, as the worker knows it. Answered exactly once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Records that were handed out together. Counts up from 1 in each shard; appended in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct BatchId(pub u64);

/// Both clocks: records carry the wall clock's time, deadlines the other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    pub wall: TimestampMs,
    pub mono: MonotonicMs,
}

/// Who asks, and in which version.
#[derive(Debug, Clone, Default)]
pub struct Caller<'a> {
    pub client_id: &'a str,
    /// As Java prints an address: `/127.0.0.1`. Shown by DescribeGroups and kept in the group's record.
    pub client_host: &'a str,
    /// The request's version.
    pub version: i16,
    /// Over which the request came; `None`: no client sent it.
    pub connection: Option<ConnectionNumber>,
    /// For a new member's id, should one be needed.
    pub random: [u8; 16],
}

/// One record of an internal topic, encoded as Kafka does. `value: None` is a tombstone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

impl Record {
    /// What the record weighs in a batch, framing included.
    pub fn bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, Bytes::len) + 24
    }
}

/// What the worker is to do. In this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Append `records` to the shard's partition, all or none, timestamped with the wall clock's time; batches in the order
    /// of their ids, several of them in one log batch if the worker likes. Then say `durable` or `failed`.
    Append { batch: BatchId, records: Vec<Record> },
    /// As `Append`, as part of the producer's transaction: the batch says so and bears its id and epoch, without a sequence.
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

/// Whose transaction records belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Producer {
    pub id: ProducerId,
    pub epoch: ProducerEpoch,
}

/// What WriteTxnMarkers says to one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndTransaction {
    pub producer: Producer,
    pub commit: bool,
    pub coordinator_epoch: CoordinatorEpoch,
    pub version: TransactionVersion,
}
