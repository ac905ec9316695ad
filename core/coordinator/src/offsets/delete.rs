//! OffsetDelete, and the end of offsets whose topic or group is gone.
//!
//! # Source
//! KIP-496; Kafka 4.4 `OffsetMetadataManager.deleteOffsets`, `deleteAllOffsets`, `onTopicsDeleted`.

use barnabas_base::{ErrorCode, Map, PartitionIndex, Text, TopicId};
use barnabas_wire::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use barnabas_wire::messages::{OffsetDeleteRequest, OffsetDeleteResponse};

use super::store::Offsets;
use crate::groups::Group;
use crate::groups::classic::State;
use crate::records::OffsetKey;

/// The answer, and whose offsets go.
///
/// # Errors
/// The refusal of the whole request.
pub(crate) fn delete(
    offsets: &Offsets,
    group: Option<&Group>,
    request: &OffsetDeleteRequest,
) -> Result<(OffsetDeleteResponse, Vec<OffsetKey>), ErrorCode> {
    let group = group.ok_or(ErrorCode::GroupIdNotFound)?;
    let group_id = request.group_id.text();
    if let Group::Classic(group) = group
        && group.state != State::Empty
        && !group.is_consumer()
    {
        return Err(ErrorCode::NonEmptyGroup);
    }
    let mut keys = Vec::new();
    let mut response = OffsetDeleteResponse::default();
    for topic in &request.topics {
        let is_read = match group {
            Group::Classic(group) => group.is_subscribed(&topic.name),
            Group::Consumer(group) => group.is_subscribed(&topic.name),
            Group::Streams(group) => group.is_subscribed(&topic.name),
            Group::Share(_) => true,
        };
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for partition in &topic.partitions {
            let index = PartitionIndex(partition.partition_index);
            let mut error = ErrorCode::None;
            if is_read {
                error = ErrorCode::GroupSubscribedToTopic;
            } else if exists(offsets, &group_id, &topic.name, index) {
                let topic = topic.name.text();
                keys.push(OffsetKey { group: group_id.clone(), topic, partition: index });
            }
            partitions.push(OffsetDeleteResponsePartition {
                partition_index: partition.partition_index,
                error_code: error.code(),
                ..Default::default()
            });
        }
        let name = topic.name.clone();
        response.topics.push(OffsetDeleteResponseTopic { name, partitions, ..Default::default() });
    }
    keys.sort();
    keys.dedup();
    Ok((response, keys))
}

fn exists(offsets: &Offsets, group: &str, topic: &str, partition: PartitionIndex) -> bool {
    offsets.get(group, topic, partition).is_some_and(|slot| slot.latest().is_some())
        || offsets.is_unstable(group, topic, partition)
}

impl Offsets {
    /// Everything that a group has, for its end.
    pub fn keys_of_group(&self, group: &Text) -> Vec<OffsetKey> {
        let mut keys: Vec<OffsetKey> =
            self.in_transactions_of(group).into_iter().map(|(key, _)| key).collect();
        for (topic, partitions) in self.of_group(group).into_iter().flatten() {
            let present = partitions.iter().filter(|(_, slot)| slot.latest().is_some());
            keys.extend(present.map(|(partition, _)| OffsetKey {
                group: group.clone(),
                topic: topic.clone(),
                partition: *partition,
            }));
        }
        keys.sort();
        keys.dedup();
        keys
    }
}

/// The offsets of topics that are gone. An offset that was committed to another topic of the same name stays.
pub(crate) fn tombstones_of_topics(offsets: &Offsets, topics: &[(Text, TopicId)]) -> Vec<OffsetKey> {
    let gone: Map<&Text, &TopicId> = topics.iter().map(|(name, id)| (name, id)).collect();
    let concerns = |topic: &Text, id: TopicId| {
        gone.get(topic).is_some_and(|deleted| id.is_zero() || id == **deleted || deleted.is_zero())
    };
    let mut keys = Vec::new();
    for group in offsets.group_ids() {
        for (topic, partitions) in offsets.of_group(&group).into_iter().flatten() {
            for (partition, slot) in partitions {
                if slot.latest().is_some_and(|entry| concerns(topic, entry.topic_id)) {
                    let (group, topic) = (group.clone(), topic.clone());
                    keys.push(OffsetKey { group, topic, partition: *partition });
                }
            }
        }
        let open = offsets.in_transactions_of(&group);
        keys.extend(open.into_iter().filter(|(key, id)| concerns(&key.topic, *id)).map(|(key, _)| key));
    }
    keys.sort();
    keys.dedup();
    keys
}
