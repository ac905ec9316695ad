//! One call of a coordinator: who asks, when, and what is written for it.

use barnabas_base::{
    ConnectionNumber, CoordinatorEpoch, MonotonicMs, ProducerEpoch, ProducerId, TimestampMs,
};
use bytes::Bytes;

use super::TransactionVersion;

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
    /// Bytes that the answer may take ([`super::Part`]); `None`: as many as it takes.
    pub room: Option<usize>,
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
