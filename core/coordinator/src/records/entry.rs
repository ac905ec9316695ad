//! The records of consumer, share and streams groups, by what they are about.

use barnabas_base::Text;
use barnabas_wire::Str;
use barnabas_wire::messages::{
    ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupMemberMetadataKey, ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey, ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMetadataKey, GroupRecordKey,
    ShareGroupCurrentMemberAssignmentKey, ShareGroupMemberMetadataKey, ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey, ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey, StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey, StreamsGroupMetadataKey, StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTopologyKey,
};
use bytes::Bytes;

use super::GroupKind;
use crate::framework::encoded;

/// One record of a group, by what it is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Entry {
    /// The tombstone of the classic group that this one was.
    OldClassic,
    /// The tombstone of a record that Kafka up to 4.0 wrote: a consumer group's topics with partitions and racks.
    OldPartitionMetadata,
    /// A member's epoch, state and assignment.
    Current(Text),
    /// A member's target.
    Target(Text),
    /// What a member said of itself.
    Member(Text),
    /// The topics that an expression of a consumer group matched.
    Regex(Text),
    /// Which share-partitions of a share group are set up.
    SetUp,
    /// The topology of a streams group.
    Topology,
    /// The group's epoch.
    Group,
    /// The group epoch of the target, and when it was made.
    TargetEpoch,
}

/// One line for each type of record: kind of group, entry, type. The field names what the entry is about beside the
/// group.
macro_rules! keys {
    ($($kind:ident $entry:ident $(($field:ident))? => $record:ident($key:ident),)*) => {
        fn key(kind: GroupKind, group: &Text, entry: &Entry) -> GroupRecordKey {
            let group_id = Str::from(group);
            match (kind, entry) {
                $((GroupKind::$kind, Entry::$entry $(($field))?) => GroupRecordKey::$record($key {
                    group_id,
                    $($field: $field.into(),)?
                    ..Default::default()
                }),)*
                _ => unreachable!("invariant: no record of a {} group is about {entry:?}", kind.name()),
            }
        }

        impl Entry {
            /// What the record with this key is about, and whose it is. `None`: it is no consumer, share or streams
            /// group's.
            pub fn of(key: &GroupRecordKey) -> Option<(GroupKind, Text, Self)> {
                match key {
                    $(GroupRecordKey::$record(key) => {
                        Some((GroupKind::$kind, key.group_id.text(), Self::$entry $((key.$field.text()))?))
                    })*
                    _ => None,
                }
            }
        }
    };
}

keys! {
    Consumer Group => ConsumerGroupMetadata(ConsumerGroupMetadataKey),
    Consumer OldPartitionMetadata => ConsumerGroupPartitionMetadata(ConsumerGroupPartitionMetadataKey),
    Consumer Member(member_id) => ConsumerGroupMemberMetadata(ConsumerGroupMemberMetadataKey),
    Consumer TargetEpoch => ConsumerGroupTargetAssignmentMetadata(ConsumerGroupTargetAssignmentMetadataKey),
    Consumer Target(member_id) => ConsumerGroupTargetAssignmentMember(ConsumerGroupTargetAssignmentMemberKey),
    Consumer Current(member_id) => ConsumerGroupCurrentMemberAssignment(ConsumerGroupCurrentMemberAssignmentKey),
    Consumer Regex(regular_expression) => ConsumerGroupRegularExpression(ConsumerGroupRegularExpressionKey),
    Share Group => ShareGroupMetadata(ShareGroupMetadataKey),
    Share Member(member_id) => ShareGroupMemberMetadata(ShareGroupMemberMetadataKey),
    Share TargetEpoch => ShareGroupTargetAssignmentMetadata(ShareGroupTargetAssignmentMetadataKey),
    Share Target(member_id) => ShareGroupTargetAssignmentMember(ShareGroupTargetAssignmentMemberKey),
    Share Current(member_id) => ShareGroupCurrentMemberAssignment(ShareGroupCurrentMemberAssignmentKey),
    Share SetUp => ShareGroupStatePartitionMetadata(ShareGroupStatePartitionMetadataKey),
    Streams Group => StreamsGroupMetadata(StreamsGroupMetadataKey),
    Streams Member(member_id) => StreamsGroupMemberMetadata(StreamsGroupMemberMetadataKey),
    Streams TargetEpoch => StreamsGroupTargetAssignmentMetadata(StreamsGroupTargetAssignmentMetadataKey),
    Streams Target(member_id) => StreamsGroupTargetAssignmentMember(StreamsGroupTargetAssignmentMemberKey),
    Streams Current(member_id) => StreamsGroupCurrentMemberAssignment(StreamsGroupCurrentMemberAssignmentKey),
    Streams Topology => StreamsGroupTopology(StreamsGroupTopologyKey),
}

impl Entry {
    /// The key of its record.
    pub fn key(&self, kind: GroupKind, group: &Text) -> Bytes {
        match self {
            Self::OldClassic => super::group_key(group),
            _ => encoded(key(kind, group, self).encode_key()),
        }
    }
}
