//! Keys and values of `__consumer_offsets`, in the versions that Kafka 4.4 writes.
//!
//! - OffsetCommit: key 1, value 4; value 1 when the client set a retention of its own, as only that version has a field
//!   for when the offset expires (Kafka 4.4 `GroupCoordinatorRecordHelpers.offsetCommitValueVersion`).
//! - GroupMetadata: key 2, value 3 (version 4 differs in nothing but its encoding; Kafka 4.4 writes 3).

use barnabas_base::{PartitionIndex, Text};
use barnabas_wire::Str;
use barnabas_wire::messages::{
    GroupMetadataKey, GroupMetadataValue, GroupRecordKey, GroupRecordValue, OffsetCommitKey,
    OffsetCommitValue,
};
use bytes::Bytes;

mod entry;
mod kind;

use crate::framework::{Record, encoded};

pub(crate) use entry::Entry;
pub use kind::GroupKind;

const GROUP_METADATA_VERSION: i16 = 3;
const OFFSET_COMMIT_VERSION: i16 = 4;
const OFFSET_COMMIT_VERSION_WITH_EXPIRY: i16 = 1;

/// Whose offset of which partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct OffsetKey {
    pub group: Text,
    pub topic: Text,
    pub partition: PartitionIndex,
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

fn group_key(group: &str) -> Bytes {
    let key = GroupMetadataKey { group: group.into(), ..GroupMetadataKey::default() };
    encoded(GroupRecordKey::GroupMetadata(key).encode_key())
}
