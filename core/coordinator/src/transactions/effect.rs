//! What a transaction shard asks of its worker.

use barnabas_base::{CoordinatorEpoch, ErrorCode, ProducerEpoch, ProducerId, Text, TopicPartition};

use super::{TransactionResponse, TransactionVersion};
use crate::framework::{BatchId, Record, Ticket};

/// What the worker is to do. In this order.
#[derive(Debug, Clone, PartialEq)]
pub enum TransactionEffect {
    /// As [`crate::Effect::Append`].
    Append { batch: BatchId, records: Vec<Record> },
    /// The answer to `ticket`.
    Answer { ticket: Ticket, response: TransactionResponse },
    /// Bring the marker to each of these partitions' leaders, then say [`super::TransactionShard::markers_answered`]
    /// for each of them, in one go or in several.
    WriteMarkers(MarkerOrder),
    /// Bring producer ids: at least one, or the error that stands in the way ([`super::TransactionShard::supply`]).
    AllocateProducerIds,
}

/// Identifies the decision that a marker belongs to, and so an answer to an earlier order of the same producer:
/// before version 2 two transactions of one producer have the same epoch, and so the same markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MarkerTicket {
    pub coordinator_epoch: CoordinatorEpoch,
    /// Counts up in each shard.
    pub number: u64,
}

/// One transaction's markers that are to be written now. Ordered again for what could not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkerOrder {
    pub ticket: MarkerTicket,
    pub transactional_id: Text,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub commit: bool,
    /// Said in WriteTxnMarkers version 2 (KIP-1228): partitions hold markers of version 2 to a higher epoch than the
    /// records that they end.
    pub version: TransactionVersion,
    /// In order.
    pub partitions: Vec<TopicPartition>,
}

/// What became of one marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkerOutcome {
    /// It is in the partition's log, as safe as it is to be.
    Written,
    /// The partition does not exist any more.
    Gone,
    /// It was refused, or the outcome is unknown: WriteTxnMarkers' error for the partition, or one of the shell's
    /// own (`NetworkException`, `RequestTimedOut`, `LeaderNotAvailable`).
    Failed(ErrorCode),
}
