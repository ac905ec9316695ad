//! Keys and values of `__share_group_state`.
//!
//! | type | key | value |
//! |---|---|---|
//! | 0 | group, topic id, partition | the whole state; a tombstone ends the share-partition |
//! | 1 | the same | what has changed since |
//!
//! # Source
//! Kafka 4.4 `ShareCoordinatorRecordHelpers`, `ShareCoordinatorRecordSerde`.

use barnabas_base::{LeaderEpoch, Offset, PartitionIndex, TimestampMs};
use barnabas_wire::Str;
use barnabas_wire::messages::{
    ShareRecordKey, ShareRecordValue, ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue,
    share_snapshot_value, share_update_value,
};
use bytes::Bytes;

use super::request::SharePartitionKey;
use super::state::{ShareState, StateBatch, Update};
use crate::framework::Record;
use crate::framework::{LoadError, encoded};

const VERSION: i16 = 0;

pub(super) fn snapshot(key: &SharePartitionKey, state: &ShareState) -> Record {
    let batches = state.batches.iter().map(|batch| share_snapshot_value::StateBatch {
        first_offset: batch.first.get(),
        last_offset: batch.last.get(),
        delivery_state: batch.delivery_state,
        delivery_count: batch.delivery_count,
        ..Default::default()
    });
    let value = ShareRecordValue::ShareSnapshot(ShareSnapshotValue {
        snapshot_epoch: state.snapshot_epoch,
        state_epoch: state.state_epoch,
        leader_epoch: state.leader_epoch.get(),
        start_offset: state.start_offset.get(),
        delivery_complete_count: state.delivery_complete_count,
        create_timestamp: state.created.0,
        write_timestamp: state.written.0,
        state_batches: batches.collect(),
        ..Default::default()
    });
    Record { key: snapshot_key(key), value: Some(encoded(value.encode_value(VERSION))) }
}

pub(super) fn update(key: &SharePartitionKey, update: &Update) -> Record {
    let batches = update.batches.iter().map(|batch| share_update_value::StateBatch {
        first_offset: batch.first.get(),
        last_offset: batch.last.get(),
        delivery_state: batch.delivery_state,
        delivery_count: batch.delivery_count,
        ..Default::default()
    });
    let value = ShareRecordValue::ShareUpdate(ShareUpdateValue {
        snapshot_epoch: update.snapshot_epoch,
        leader_epoch: update.leader_epoch.get(),
        start_offset: update.start_offset.get(),
        delivery_complete_count: update.delivery_complete_count,
        state_batches: batches.collect(),
        ..Default::default()
    });
    let key = ShareRecordKey::ShareUpdate(ShareUpdateKey {
        group_id: Str::from(&key.group),
        topic_id: key.topic,
        partition: key.partition.get(),
        ..Default::default()
    });
    Record { key: encoded(key.encode_key()), value: Some(encoded(value.encode_value(VERSION))) }
}

pub(super) fn tombstone(key: &SharePartitionKey) -> Record {
    Record { key: snapshot_key(key), value: None }
}

fn snapshot_key(key: &SharePartitionKey) -> Bytes {
    let key = ShareRecordKey::ShareSnapshot(ShareSnapshotKey {
        group_id: Str::from(&key.group),
        topic_id: key.topic,
        partition: key.partition.get(),
        ..Default::default()
    });
    encoded(key.encode_key())
}

/// A record, read.
pub(super) enum Read {
    /// `None`: the share-partition is gone.
    Snapshot(Option<ShareState>),
    Update(Update),
}

/// A record while loading; `None` for one of a type that Kafka 4.4 does not know either, which it passes over.
///
/// # Errors
/// The record cannot be read.
pub(super) fn read(
    offset: i64,
    key: &Bytes,
    value: Option<&Bytes>,
) -> Result<Option<(SharePartitionKey, Read)>, LoadError> {
    let type_number = key.first_chunk::<2>().map_or(-1, |bytes| i16::from_be_bytes(*bytes));
    if type_number >= 0 && ShareRecordKey::versions(type_number).is_none() {
        return Ok(None);
    }
    let key = ShareRecordKey::decode_key(key.clone()).map_err(|source| LoadError::Key { offset, source })?;
    let value = match value {
        Some(value) => {
            let decoded = ShareRecordValue::decode_value(type_number, value.clone());
            Some(decoded.map_err(|source| LoadError::Value { offset, type_number, source })?.0)
        }
        None => None,
    };
    Ok(match (key, value) {
        (ShareRecordKey::ShareSnapshot(key), Some(ShareRecordValue::ShareSnapshot(value))) => {
            Some((of(&key.group_id, key.topic_id, key.partition), Read::Snapshot(Some(state_of(&value)))))
        }
        (ShareRecordKey::ShareSnapshot(key), _) => {
            Some((of(&key.group_id, key.topic_id, key.partition), Read::Snapshot(None)))
        }
        (ShareRecordKey::ShareUpdate(key), Some(ShareRecordValue::ShareUpdate(value))) => {
            Some((of(&key.group_id, key.topic_id, key.partition), Read::Update(update_of(&value))))
        }
        // No coordinator writes the tombstone of an update.
        (ShareRecordKey::ShareUpdate(_), _) => None,
    })
}

fn of(group: &Str, topic: barnabas_base::TopicId, partition: i32) -> SharePartitionKey {
    SharePartitionKey { group: group.text(), topic, partition: PartitionIndex(partition) }
}

fn state_of(value: &ShareSnapshotValue) -> ShareState {
    let batches = value.state_batches.iter().map(|batch| StateBatch {
        first: Offset(batch.first_offset),
        last: Offset(batch.last_offset),
        delivery_state: batch.delivery_state,
        delivery_count: batch.delivery_count,
    });
    ShareState {
        snapshot_epoch: value.snapshot_epoch,
        state_epoch: value.state_epoch,
        leader_epoch: LeaderEpoch(value.leader_epoch),
        newest_leader_epoch: LeaderEpoch(value.leader_epoch),
        start_offset: Offset(value.start_offset),
        delivery_complete_count: value.delivery_complete_count,
        batches: batches.collect(),
        created: TimestampMs(value.create_timestamp),
        written: TimestampMs(value.write_timestamp),
    }
}

fn update_of(value: &ShareUpdateValue) -> Update {
    let batches = value.state_batches.iter().map(|batch| StateBatch {
        first: Offset(batch.first_offset),
        last: Offset(batch.last_offset),
        delivery_state: batch.delivery_state,
        delivery_count: batch.delivery_count,
    });
    Update {
        snapshot_epoch: value.snapshot_epoch,
        leader_epoch: LeaderEpoch(value.leader_epoch),
        start_offset: Offset(value.start_offset),
        delivery_complete_count: value.delivery_complete_count,
        batches: batches.collect(),
    }
}
