//! Keys and values of `__consumer_offsets`, in the versions that Kafka 4.4 writes.
//!
//! - OffsetCommit: key 1, value 4; value 1 when the client set a retention of its own, as only that version has a field for
//!   when the offset expires (Kafka 4.4 `GroupCoordinatorRecordHelpers.offsetCommitValueVersion`).
//! - GroupMetadata: key 2, value 3 (version 4 differs in nothing but its encoding; Kafka 4.4 writes 3).

use barnabas_wire::messages::{
    GroupMetadataKey, GroupMetadataValue, GroupRecordKey, GroupRecordValue, OffsetCommitKey,
    OffsetCommitValue,
};
use barnabas_wire::records::BatchError;
use barnabas_wire::{DecodeError, Str};
use bytes::Bytes;

use crate::framework::Record;

const GROUP_METADATA_VERSION: i16 = 3;
const OFFSET_COMMIT_VERSION: i16 = 4;
const OFFSET_COMMIT_VERSION_WITH_EXPIRY: i16 = 1;

/// A record that cannot be read: the partition cannot be served by this build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    #[error("the batch at {offset} cannot be read: {source}")]
    Batch { offset: i64, source: BatchError },
    #[error("record {offset} has a key that cannot be read: {source}")]
    Key { offset: i64, source: DecodeError },
    #[error("record {offset} (type {type_number}) has a value that cannot be read: {source}")]
    Value { offset: i64, type_number: i16, source: DecodeError },
    #[error("record {offset} has a transaction state that does not exist: {number}")]
    State { offset: i64, number: i8 },
}

/// The names are those of the request: slices of its frame, copied once, into the key.
pub(crate) fn offset_commit(group: &Str, topic: &Str, partition: i32, value: OffsetCommitValue) -> Record {
    let version = match value.expire_timestamp {
        -1 => OFFSET_COMMIT_VERSION,
        _ => OFFSET_COMMIT_VERSION_WITH_EXPIRY,
    };
    let value = GroupRecordValue::OffsetCommit(value);
    let key = offset_key(group.clone(), topic.clone(), partition);
    Record { key, value: Some(encoded(value.encode_value(version))) }
}

pub(crate) fn offset_tombstone(group: &str, topic: &str, partition: i32) -> Record {
    Record { key: offset_key(group.into(), topic.into(), partition), value: None }
}

pub(crate) fn group_metadata(group: &str, value: GroupMetadataValue) -> Record {
    let value = GroupRecordValue::GroupMetadata(value);
    Record { key: group_key(group), value: Some(encoded(value.encode_value(GROUP_METADATA_VERSION))) }
}

pub(crate) fn group_tombstone(group: &str) -> Record {
    Record { key: group_key(group), value: None }
}

fn offset_key(group: Str, topic: Str, partition: i32) -> Bytes {
    let key = OffsetCommitKey { group, topic, partition, ..OffsetCommitKey::default() };
    encoded(GroupRecordKey::OffsetCommit(key).encode_key())
}

pub(crate) fn group_key(group: &str) -> Bytes {
    let key = GroupMetadataKey { group: group.into(), ..GroupMetadataKey::default() };
    encoded(GroupRecordKey::GroupMetadata(key).encode_key())
}

pub(crate) fn encoded(result: Result<Bytes, barnabas_wire::EncodeError>) -> Bytes {
    result
        .expect("invariant: every string in a record came in as a string of a request, so it is short enough")
}
