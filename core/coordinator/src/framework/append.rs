//! What a coordinator appends to its partition: records, records within a transaction, a marker; each as a batch.
//!
//! In append/: what a shard appends in one turn goes into one batch.

mod gathered;

pub use gathered::{Gathered, Together};

use crate::framework::{EndTransaction, Producer, Record};
use barnabas_base::{ErrorCode, TimestampMs};
use barnabas_wire::records::{
    BatchBuilder, BatchError, BatchOptions, EndTxnMarker, ReadyBatch, control_batch,
};

/// What a batch holds.
#[derive(Debug)]
pub enum Contents {
    Records(Vec<Record>),
    InTransaction(Producer, Vec<Record>),
    Marker(EndTransaction),
}

impl Contents {
    /// The batch that holds this.
    ///
    /// # Errors
    /// Only what the builder says.
    pub fn batch(&self, now: TimestampMs) -> Result<ReadyBatch, BatchError> {
        match self {
            Self::Records(records) => build(BatchOptions::default(), records, now),
            Self::InTransaction(producer, records) => build(of_transaction(*producer), records, now),
            Self::Marker(end) => marker_batch(end, now),
        }
    }
}

fn of_transaction(producer: Producer) -> BatchOptions {
    BatchOptions {
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        transactional: true,
        ..BatchOptions::default()
    }
}

/// A marker's batch.
///
/// # Errors
/// Only what the builder says.
pub fn marker_batch(end: &EndTransaction, now: TimestampMs) -> Result<ReadyBatch, BatchError> {
    let marker = EndTxnMarker { commit: end.commit, coordinator_epoch: end.coordinator_epoch };
    control_batch(of_transaction(end.producer), now, marker.control_type(), &marker.value())
        .and_then(ReadyBatch::from_bytes)
}

fn build(options: BatchOptions, records: &[Record], now: TimestampMs) -> Result<ReadyBatch, BatchError> {
    let mut builder = BatchBuilder::new(options);
    for record in records {
        builder.push(now, Some(&record.key), record.value.as_deref(), &[]);
    }
    builder.build().and_then(ReadyBatch::from_bytes)
}

/// What a coordinator's clients are told when its records could not be appended.
///
/// # Source
/// Kafka `CoordinatorOperationExceptionHelper.handleOperationException`, `CoordinatorPartitionWriter`.
pub fn append_error(code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::UnknownTopicOrPartition
        | ErrorCode::NotEnoughReplicas
        | ErrorCode::NotEnoughReplicasAfterAppend
        | ErrorCode::RequestTimedOut => ErrorCode::CoordinatorNotAvailable,
        ErrorCode::NotLeaderOrFollower | ErrorCode::KafkaStorageError => ErrorCode::NotCoordinator,
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge | ErrorCode::InvalidFetchSize => {
            ErrorCode::UnknownServerError
        }
        other => other,
    }
}
