//! OffsetCommit: by members of a group, and by anybody while the group has none.
//!
//! # Source
//! Kafka 4.4 `OffsetMetadataManager.commitOffset`, `ClassicGroup.validateOffsetCommit`.

use barnabas_base::{ErrorCode, PartitionIndex, TimestampMs, TopicId};
use barnabas_wire::Str;
use barnabas_wire::messages::offset_commit_request::OffsetCommitRequestPartition;
use barnabas_wire::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use barnabas_wire::messages::{OffsetCommitRequest, OffsetCommitResponse};

use super::store::{OffsetEntry, Offsets};
use crate::GroupConfig;
use crate::framework::Record;
use crate::groups::Group;
use crate::groups::classic::{ClassicGroup, State};
use crate::groups::consumer::ConsumerGroup;
use crate::groups::streams::StreamsGroup;
use crate::records;
use crate::records::OffsetKey;

/// From this version on, a group that is not there has an error of its own (KIP-848).
const NOT_FOUND_SINCE: i16 = 9;

/// What a commit comes to.
#[derive(Debug)]
pub(crate) struct Commit {
    pub response: OffsetCommitResponse,
    pub records: Vec<Record>,
    pub changes: Vec<(OffsetKey, OffsetEntry)>,
}

/// Works out what to write. `group`: `None` if there is none. `names`: where the names are that are known.
///
/// # Errors
/// The refusal of the whole request. Partitions with too much metadata are refused one by one.
pub(crate) fn commit(
    group: Option<&Group>,
    version: i16,
    request: &OffsetCommitRequest,
    names: &Offsets,
    (now, config): (TimestampMs, &GroupConfig),
) -> Result<Commit, ErrorCode> {
    match group {
        Some(Group::Classic(group)) => check(group, request)?,
        Some(Group::Consumer(group)) => check_consumer(group, version, request)?,
        Some(Group::Streams(group)) => check_streams(group, version, request)?,
        Some(Group::Share(_)) => {}
        None if request.generation_id_or_member_epoch < 0 => {}
        None if version >= NOT_FOUND_SINCE => return Err(ErrorCode::GroupIdNotFound),
        None => return Err(ErrorCode::IllegalGeneration),
    }
    let mut commit =
        Commit { response: OffsetCommitResponse::default(), records: Vec::new(), changes: Vec::new() };
    let expire_timestamp = match request.retention_time_ms {
        -1 => -1,
        retention => now.0.saturating_add(retention),
    };
    let group_id = names.group(&request.group_id);
    for topic in &request.topics {
        let name = names.topic(&request.group_id, &topic.name);
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for partition in &topic.partitions {
            let error = if is_metadata_too_long(partition.committed_metadata.as_ref(), config) {
                ErrorCode::OffsetMetadataTooLarge
            } else {
                let entry = entry(partition, topic.topic_id, now, expire_timestamp);
                let key = OffsetKey {
                    group: group_id.clone(),
                    topic: name.clone(),
                    partition: PartitionIndex(partition.partition_index),
                };
                commit.records.push(records::offset_commit(
                    &request.group_id,
                    &topic.name,
                    partition.partition_index,
                    entry.to_record(),
                ));
                commit.changes.push((key, entry));
                ErrorCode::None
            };
            partitions.push(OffsetCommitResponsePartition {
                partition_index: partition.partition_index,
                error_code: error.code(),
                ..Default::default()
            });
        }
        commit.response.topics.push(OffsetCommitResponseTopic {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            partitions,
            ..Default::default()
        });
    }
    Ok(commit)
}

/// Whether this caller may commit for this group now.
fn check(group: &ClassicGroup, request: &OffsetCommitRequest) -> Result<(), ErrorCode> {
    let generation = request.generation_id_or_member_epoch;
    let instance = request.group_instance_id.as_deref();
    if generation < 0 && group.state == State::Empty {
        // An administrator, or a consumer that assigns partitions to itself.
        return Ok(());
    }
    if generation < 0 && request.member_id.is_empty() && instance.is_none() {
        return Err(ErrorCode::UnknownMemberId);
    }
    group.check_member(&request.member_id, instance)?;
    if generation != group.generation {
        return Err(ErrorCode::IllegalGeneration);
    }
    if group.state == State::CompletingRebalance {
        return Err(ErrorCode::RebalanceInProgress);
    }
    Ok(())
}

/// # Source
/// Kafka 4.4 `ConsumerGroup.validateOffsetCommit`.
fn check_consumer(
    group: &ConsumerGroup,
    version: i16,
    request: &OffsetCommitRequest,
) -> Result<(), ErrorCode> {
    let epoch = request.generation_id_or_member_epoch;
    if epoch < 0 && group.is_empty() {
        return Ok(());
    }
    let member = group.member(&request.member_id).ok_or(ErrorCode::UnknownMemberId)?;
    if member.own.classic.is_none() && version < NOT_FOUND_SINCE {
        return Err(ErrorCode::UnsupportedVersion);
    }
    let partitions = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| (topic.topic_id, partition.partition_index))
    });
    group.check_commit(&request.member_id, epoch, partitions)
}

/// # Source
/// Kafka 4.4 `StreamsGroup.validateOffsetCommit`.
fn check_streams(group: &StreamsGroup, version: i16, request: &OffsetCommitRequest) -> Result<(), ErrorCode> {
    let epoch = request.generation_id_or_member_epoch;
    if epoch < 0 && group.is_empty() {
        return Ok(());
    }
    if group.member(&request.member_id).is_none() {
        return Err(ErrorCode::UnknownMemberId);
    }
    if version < NOT_FOUND_SINCE {
        return Err(ErrorCode::UnsupportedVersion);
    }
    let partitions = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| (topic.name.as_str(), partition.partition_index))
    });
    group.check_commit(&request.member_id, epoch, partitions)
}

pub(super) fn is_metadata_too_long(metadata: Option<&Str>, config: &GroupConfig) -> bool {
    let Some(metadata) = metadata else { return false };
    // In UTF-16 a text never has more units than it has bytes in UTF-8.
    metadata.len() > config.offset_metadata_max
        && metadata.encode_utf16().count() > config.offset_metadata_max
}

fn entry(
    partition: &OffsetCommitRequestPartition,
    topic_id: TopicId,
    now: TimestampMs,
    expire_timestamp: i64,
) -> OffsetEntry {
    let metadata = partition.committed_metadata.as_ref();
    // The one record version that can say when an offset expires can say neither of these, so neither may count now and
    // be gone after the next load. No request version has both.
    let is_short = expire_timestamp != -1;
    OffsetEntry {
        offset: partition.committed_offset,
        leader_epoch: if is_short { -1 } else { partition.committed_leader_epoch.max(-1) },
        metadata: metadata.filter(|text| !text.is_empty()).map(|text| text.text()),
        commit_timestamp: if partition.commit_timestamp == -1 { now.0 } else { partition.commit_timestamp },
        expire_timestamp,
        topic_id: if is_short { TopicId::ZERO } else { topic_id },
        written: 0,
    }
}
