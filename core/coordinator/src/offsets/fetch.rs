//! OffsetFetch, for one group.
//!
//! A fetch without `require_stable` sees what is on disk, at once. One with it waits until everything in flight is
//! on disk, and gets UNSTABLE_OFFSET_COMMIT for partitions with an open transaction (KIP-447).
//!
//! # Source
//! Kafka 4.4 `OffsetMetadataManager.fetchOffsets`, `fetchAllOffsets`.

use barnabas_base::{ErrorCode, PartitionIndex};
use barnabas_wire::Str;
use barnabas_wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use barnabas_wire::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartitions, OffsetFetchResponseTopics,
};

use super::store::{OffsetEntry, Offsets};
use crate::framework::{Committed, part};

/// What an offset and a topic take on the wire beside their texts, at most.
const ENTRY_BYTES: usize = 24;
const TOPIC_BYTES: usize = 32;

pub(crate) fn fetch(
    offsets: &Offsets,
    request: &OffsetFetchRequestGroup,
    require_stable: bool,
) -> OffsetFetchResponseGroup {
    let topics = match &request.topics {
        None => all(offsets, &request.group_id, require_stable),
        Some(topics) => topics
            .iter()
            .map(|topic| OffsetFetchResponseTopics {
                name: topic.name.clone(),
                topic_id: topic.topic_id,
                partitions: topic
                    .partition_indexes
                    .iter()
                    .map(|index| {
                        let index = PartitionIndex(*index);
                        let slot = offsets.get(&request.group_id, &topic.name, index);
                        let entry = slot.and_then(|slot| view(slot, require_stable)).filter(|entry| {
                            // A topic that was deleted and made again has nothing of the old one's.
                            entry.topic_id.is_zero()
                                || topic.topic_id.is_zero()
                                || entry.topic_id == topic.topic_id
                        });
                        let unstable =
                            require_stable && offsets.is_unstable(&request.group_id, &topic.name, index);
                        answer(index, entry, unstable)
                    })
                    .collect(),
                ..Default::default()
            })
            .collect(),
    };
    OffsetFetchResponseGroup { group_id: request.group_id.clone(), topics, ..Default::default() }
}

/// What the answer takes, at most.
pub(crate) fn fetched_bytes(
    offsets: &Offsets,
    request: &OffsetFetchRequestGroup,
    require_stable: bool,
) -> usize {
    let entry = |slot: &Committed<OffsetEntry>| {
        let metadata = view(slot, require_stable).and_then(|entry| entry.metadata.as_ref());
        ENTRY_BYTES + metadata.map_or(0, |metadata| metadata.len())
    };
    let topics: usize = match &request.topics {
        None => offsets
            .of_group(&request.group_id)
            .into_iter()
            .flatten()
            .map(|(name, partitions)| {
                TOPIC_BYTES + name.len() + partitions.values().map(entry).sum::<usize>()
            })
            .sum(),
        Some(topics) => topics
            .iter()
            .map(|topic| {
                let partitions = topic.partition_indexes.iter().map(|index| {
                    offsets
                        .get(&request.group_id, &topic.name, PartitionIndex(*index))
                        .map_or(ENTRY_BYTES, entry)
                });
                TOPIC_BYTES + topic.name.len() + partitions.sum::<usize>()
            })
            .sum(),
    };
    part::taken(32 + request.group_id.len() + topics)
}

fn view(slot: &Committed<OffsetEntry>, require_stable: bool) -> Option<&OffsetEntry> {
    if require_stable { slot.latest() } else { slot.committed() }
}

fn all(offsets: &Offsets, group: &str, require_stable: bool) -> Vec<OffsetFetchResponseTopics> {
    let mut topics = Vec::new();
    for (name, partitions) in offsets.of_group(group).into_iter().flatten() {
        let mut topic = OffsetFetchResponseTopics { name: Str::from(name), ..Default::default() };
        for (index, slot) in partitions {
            if let Some(entry) = view(slot, require_stable) {
                let unstable = require_stable && offsets.is_unstable(group, name, *index);
                topic.topic_id = entry.topic_id;
                topic.partitions.push(answer(*index, Some(entry), unstable));
            }
        }
        if !topic.partitions.is_empty() {
            topics.push(topic);
        }
    }
    topics
}

fn answer(
    index: PartitionIndex,
    entry: Option<&OffsetEntry>,
    unstable: bool,
) -> OffsetFetchResponsePartitions {
    let nothing = OffsetFetchResponsePartitions {
        partition_index: index.0,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(Str::default()),
        ..Default::default()
    };
    match entry {
        _ if unstable => {
            OffsetFetchResponsePartitions { error_code: ErrorCode::UnstableOffsetCommit.code(), ..nothing }
        }
        None => nothing,
        Some(entry) => OffsetFetchResponsePartitions {
            committed_offset: entry.offset,
            committed_leader_epoch: entry.leader_epoch,
            metadata: Some(entry.metadata()),
            ..nothing
        },
    }
}
