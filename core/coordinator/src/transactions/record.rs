//! Keys and values of `__transaction_state`.
//!
//! The value's version follows the cluster's `transaction.version`: 0 as ever, 1 with the client's version and the
//! producer ids before and after in tagged fields. Version 0 has no place for those, so that a shard loaded from it has
//! forgotten them. Kafka writes partitions in no order, we write them in theirs.
//!
//! # Source
//! Kafka 4.4 `TransactionLog.valueToBytes`, `TransactionLog.read`.

use std::collections::BTreeSet;

use barnabas_base::{PartitionIndex, ProducerEpoch, ProducerId, Text, TimestampMs, TopicPartition};
use barnabas_wire::messages::transaction_log_value::{PartitionsSchema, TransactionLogValue};
use barnabas_wire::messages::{TransactionLogKey, TransactionRecordKey, TransactionRecordValue};
use barnabas_wire::{EncodeError, Str};
use bytes::Bytes;

use super::transaction::Transaction;
use super::{TransactionState, TransactionVersion};
use crate::framework::LoadError;
use crate::framework::Record;

pub(crate) fn record(id: &Text, transaction: &Transaction, version: TransactionVersion) -> Record {
    let version = version.record_version();
    let mut value = TransactionLogValue {
        producer_id: transaction.producer_id.get(),
        producer_epoch: transaction.producer_epoch.get(),
        transaction_timeout_ms: transaction.timeout_ms,
        transaction_status: transaction.state.number(),
        transaction_partitions: partitions(transaction),
        transaction_last_update_timestamp_ms: transaction.last_update.0,
        transaction_start_timestamp_ms: transaction.start.0,
        ..Default::default()
    };
    if version >= 1 {
        value.previous_producer_id = transaction.previous_producer_id.get();
        value.next_producer_id = transaction.next_producer_id.get();
        value.client_transaction_version = transaction.client_version.0;
    }
    let value = encoded(TransactionRecordValue::TransactionLog(value).encode_value(version));
    Record { key: key(id), value: Some(value) }
}

pub(crate) fn tombstone(id: &Text) -> Record {
    Record { key: key(id), value: None }
}

/// A record while loading; `None` for one of a type that Kafka 4.4 does not know either, which it passes over.
///
/// # Errors
/// The record cannot be read.
pub(crate) fn read(
    offset: i64,
    key: &Bytes,
    value: Option<&Bytes>,
) -> Result<Option<(Text, Option<Transaction>)>, LoadError> {
    let type_number = key.first_chunk::<2>().map_or(-1, |bytes| i16::from_be_bytes(*bytes));
    if type_number >= 0 && TransactionRecordKey::versions(type_number).is_none() {
        return Ok(None);
    }
    let key = TransactionRecordKey::decode_key(key.clone());
    let TransactionRecordKey::TransactionLog(key) =
        key.map_err(|source| LoadError::Key { offset, source })?;
    let id = key.transactional_id.text();
    let Some(value) = value else { return Ok(Some((id, None))) };
    let value = TransactionRecordValue::decode_value(type_number, value.clone());
    let (TransactionRecordValue::TransactionLog(value), _) =
        value.map_err(|source| LoadError::Value { offset, type_number, source })?;
    let number = value.transaction_status;
    let state = TransactionState::of_record(number).ok_or(LoadError::State { offset, number })?;
    Ok(Some((id, Some(transaction(state, &value)))))
}

fn transaction(state: TransactionState, value: &TransactionLogValue) -> Transaction {
    let topics = value.transaction_partitions.iter().flatten();
    let partitions: BTreeSet<TopicPartition> = topics
        .flat_map(|topic| {
            let name = topic.topic.text();
            let of = move |index: &i32| TopicPartition::new(name.clone(), PartitionIndex(*index));
            topic.partition_ids.iter().map(of)
        })
        .collect();
    Transaction {
        producer_id: ProducerId(value.producer_id),
        previous_producer_id: ProducerId(value.previous_producer_id),
        next_producer_id: ProducerId(value.next_producer_id),
        producer_epoch: ProducerEpoch(value.producer_epoch),
        last_producer_epoch: ProducerEpoch::NONE,
        timeout_ms: value.transaction_timeout_ms,
        state,
        partitions: if state.is_idle() { BTreeSet::new() } else { partitions },
        start: TimestampMs(value.transaction_start_timestamp_ms),
        last_update: TimestampMs(value.transaction_last_update_timestamp_ms),
        client_version: TransactionVersion(value.client_transaction_version),
    }
}

/// By topic; none at all where there is no transaction yet.
fn partitions(transaction: &Transaction) -> Option<Vec<PartitionsSchema>> {
    if transaction.state == TransactionState::Empty {
        return None;
    }
    let mut topics: Vec<PartitionsSchema> = Vec::new();
    for partition in &transaction.partitions {
        match topics.last_mut().filter(|topic| *topic.topic == *partition.topic) {
            Some(topic) => topic.partition_ids.push(partition.partition.get()),
            None => topics.push(PartitionsSchema {
                topic: Str::from(&partition.topic),
                partition_ids: vec![partition.partition.get()],
                ..Default::default()
            }),
        }
    }
    Some(topics)
}

fn key(id: &Text) -> Bytes {
    let key = TransactionLogKey { transactional_id: Str::from(id), ..Default::default() };
    encoded(TransactionRecordKey::TransactionLog(key).encode_key())
}

fn encoded(result: Result<Bytes, EncodeError>) -> Bytes {
    result.expect("invariant: every string in a record was found short enough when the request came")
}
