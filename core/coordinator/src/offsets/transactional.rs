//! TxnOffsetCommit: offsets that count once the producer's transaction is committed.
//!
//! The shard does not know transactions: the partition refuses a batch with an old epoch or without an open
//! transaction, and the marker, not a request, ends it.
//!
//! # Source
//! KIP-98, KIP-447; Kafka 4.4 `OffsetMetadataManager.commitTransactionalOffset`, `ClassicGroup.validateOffsetCommit`.

use barnabas_base::{ErrorCode, PartitionIndex, TimestampMs, TopicId};
use barnabas_wire::messages::txn_offset_commit_request::TxnOffsetCommitRequestPartition;
use barnabas_wire::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use barnabas_wire::messages::{TxnOffsetCommitRequest, TxnOffsetCommitResponse};

use super::commit::is_metadata_too_long;
use super::store::OffsetEntry;
use crate::GroupConfig;
use crate::framework::Record;
use crate::groups::Group;
use crate::groups::classic::{ClassicGroup, State};
use crate::groups::consumer::ConsumerGroup;
use crate::groups::streams::StreamsGroup;
use crate::records;
use crate::records::OffsetKey;

/// What a commit within a transaction comes to.
#[derive(Debug, Default)]
pub(crate) struct Transactional {
    pub response: TxnOffsetCommitResponse,
    pub records: Vec<Record>,
    pub changes: Vec<(OffsetKey, OffsetEntry)>,
}

/// Works out what to write. `group`: `None` if there is none.
///
/// # Errors
/// The refusal of the whole request. Partitions with too much metadata are refused one by one.
pub(crate) fn commit_in_transaction(
    group: Option<&Group>,
    request: &TxnOffsetCommitRequest,
    now: TimestampMs,
    config: &GroupConfig,
) -> Result<Transactional, ErrorCode> {
    match group {
        Some(Group::Classic(group)) => check(group, request)?,
        Some(Group::Consumer(group)) => check_consumer(group, request).map_err(as_generation)?,
        Some(Group::Streams(group)) => check_streams(group, request).map_err(as_generation)?,
        Some(Group::Share(_)) => {}
        None if request.generation_id_or_member_epoch < 0 => {}
        None => return Err(ErrorCode::IllegalGeneration),
    }
    let mut commit = Transactional::default();
    let group_id = request.group_id.text();
    for topic in &request.topics {
        let name = topic.name.text();
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for partition in &topic.partitions {
            let mut error = ErrorCode::OffsetMetadataTooLarge;
            if !is_metadata_too_long(partition.committed_metadata.as_ref(), config) {
                error = ErrorCode::None;
                let entry = entry(partition, topic.topic_id, now);
                let index = partition.partition_index;
                let record = records::offset_commit(&request.group_id, &topic.name, index, entry.to_record());
                commit.records.push(record);
                let (group, topic) = (group_id.clone(), name.clone());
                commit.changes.push((OffsetKey { group, topic, partition: PartitionIndex(index) }, entry));
            }
            partitions.push(TxnOffsetCommitResponsePartition {
                partition_index: partition.partition_index,
                error_code: error.code(),
                ..Default::default()
            });
        }
        commit.response.topics.push(TxnOffsetCommitResponseTopic {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            partitions,
            ..Default::default()
        });
    }
    Ok(commit)
}

/// Older versions do not say who commits, so anybody may who says nothing, and the group's state is no hindrance: what
/// was read was read (KIP-447).
fn check(group: &ClassicGroup, request: &TxnOffsetCommitRequest) -> Result<(), ErrorCode> {
    let generation = request.generation_id_or_member_epoch;
    let instance = request.group_instance_id.as_deref();
    let is_anonymous = generation < 0 && request.member_id.is_empty() && instance.is_none();
    if is_anonymous || (generation < 0 && group.state == State::Empty) {
        return Ok(());
    }
    group.check_member(&request.member_id, instance)?;
    if generation == group.generation { Ok(()) } else { Err(ErrorCode::IllegalGeneration) }
}

/// Transactional producers know no STALE_MEMBER_EPOCH.
///
/// # Source
/// Kafka 4.3 `OffsetMetadataManager.validateTransactionalOffsetCommit`.
fn as_generation(error: ErrorCode) -> ErrorCode {
    if error == ErrorCode::StaleMemberEpoch { ErrorCode::IllegalGeneration } else { error }
}

/// # Source
/// Kafka 4.4 `ConsumerGroup.validateOffsetCommit`.
fn check_consumer(group: &ConsumerGroup, request: &TxnOffsetCommitRequest) -> Result<(), ErrorCode> {
    let epoch = request.generation_id_or_member_epoch;
    let is_anonymous = epoch == -1 && request.member_id.is_empty() && request.group_instance_id.is_none();
    if is_anonymous || (epoch < 0 && group.is_empty()) {
        return Ok(());
    }
    let partitions = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| (topic.topic_id, partition.partition_index))
    });
    group.check_commit(&request.member_id, epoch, partitions)
}

/// # Source
/// Kafka 4.4 `StreamsGroup.validateOffsetCommit`.
fn check_streams(group: &StreamsGroup, request: &TxnOffsetCommitRequest) -> Result<(), ErrorCode> {
    let epoch = request.generation_id_or_member_epoch;
    let is_anonymous = epoch == -1 && request.member_id.is_empty() && request.group_instance_id.is_none();
    if is_anonymous || (epoch < 0 && group.is_empty()) {
        return Ok(());
    }
    let partitions = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| (topic.name.as_str(), partition.partition_index))
    });
    group.check_commit(&request.member_id, epoch, partitions)
}

fn entry(partition: &TxnOffsetCommitRequestPartition, topic_id: TopicId, now: TimestampMs) -> OffsetEntry {
    let metadata = partition.committed_metadata.as_ref();
    OffsetEntry {
        offset: partition.committed_offset,
        leader_epoch: partition.committed_leader_epoch.max(-1),
        metadata: metadata.filter(|text| !text.is_empty()).map(|text| text.text()),
        commit_timestamp: now.0,
        expire_timestamp: -1,
        topic_id,
        written: 0,
    }
}
