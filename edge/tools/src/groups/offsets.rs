//! Requests for a consumer group's committed offsets, and for the first and end offsets of partitions.

use super::description::Partition;
use barnabas_base::{ErrorCode, PartitionIndex};
use barnabas_client::{ClientError, Cluster, Coordinated, check};
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use barnabas_wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use barnabas_wire::messages::{
    DeleteGroupsRequest, DeleteGroupsResponse, OffsetCommitRequest, OffsetCommitResponse,
    OffsetDeleteRequest, OffsetDeleteResponse, OffsetFetchRequest, OffsetFetchResponse,
};
use std::collections::BTreeMap;

/// The newest versions that name topics instead of ids: offsets of topics that were deleted are shown too.
const FETCH_NEWEST: i16 = 9;
const COMMIT_NEWEST: i16 = 9;
/// From this version on OffsetFetch asks for several groups.
const GROUPS_SINCE: i16 = 8;
/// ListOffsets' timestamps.
pub const LATEST: i64 = -1;
pub const EARLIEST: i64 = -2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    pub offset: i64,
    pub leader_epoch: Option<i32>,
}

/// # Errors
/// The coordinator refuses.
pub async fn committed(
    cluster: &mut Cluster,
    group: &str,
) -> Result<BTreeMap<Partition, Committed>, ClientError> {
    let request = |version: i16| match version {
        GROUPS_SINCE.. => OffsetFetchRequest {
            groups: vec![OffsetFetchRequestGroup {
                group_id: group.into(),
                topics: None,
                ..Default::default()
            }],
            ..Default::default()
        },
        _ => OffsetFetchRequest { group_id: group.into(), topics: None, ..Default::default() },
    };
    let code = |answer: &OffsetFetchResponse| {
        answer.groups.first().map_or(answer.error_code, |group| group.error_code)
    };
    let of = Coordinated::Group(group);
    let (_, answer) = cluster.ask_coordinator_up_to(of, FETCH_NEWEST, request, code).await?;
    check(format!("group {group}"), code(&answer), None)?;
    let topics = answer.groups.iter().flat_map(|group| &group.topics);
    let rows = topics.flat_map(|topic| {
        let row = |row: &barnabas_wire::messages::offset_fetch_response::OffsetFetchResponsePartitions| {
            (topic.name.to_string(), row.partition_index, row.committed_offset, row.committed_leader_epoch)
        };
        topic.partitions.iter().map(row).collect::<Vec<_>>()
    });
    let old = answer.topics.iter().flat_map(|topic| {
        let row = |row: &barnabas_wire::messages::offset_fetch_response::OffsetFetchResponsePartition| {
            (topic.name.to_string(), row.partition_index, row.committed_offset, row.committed_leader_epoch)
        };
        topic.partitions.iter().map(row).collect::<Vec<_>>()
    });
    let known = rows.chain(old).filter(|row| row.2 >= 0);
    Ok(known
        .map(|(topic, partition, offset, epoch)| {
            ((topic, partition), Committed { offset, leader_epoch: (epoch >= 0).then_some(epoch) })
        })
        .collect())
}

/// Commits for a group without members.
///
/// # Errors
/// The coordinator refuses, for instance since the group has members.
pub async fn commit(
    cluster: &mut Cluster,
    group: &str,
    offsets: &BTreeMap<Partition, i64>,
) -> Result<(), ClientError> {
    if offsets.is_empty() {
        return Ok(());
    }
    let mut topics: Vec<OffsetCommitRequestTopic> = Vec::new();
    for ((topic, partition), offset) in offsets {
        if topics.last().is_none_or(|last| &*last.name != topic.as_str()) {
            topics.push(OffsetCommitRequestTopic { name: topic.as_str().into(), ..Default::default() });
        }
        let row = OffsetCommitRequestPartition {
            partition_index: *partition,
            committed_offset: *offset,
            committed_leader_epoch: -1,
            committed_metadata: Some("".into()),
            ..Default::default()
        };
        topics.last_mut().expect("it was put there just now").partitions.push(row);
    }
    let request = OffsetCommitRequest {
        group_id: group.into(),
        generation_id_or_member_epoch: -1,
        topics,
        ..Default::default()
    };
    let first_code = |answer: &OffsetCommitResponse| {
        let mut codes = answer.topics.iter().flat_map(|topic| &topic.partitions).map(|row| row.error_code);
        codes.find(|code| *code != 0).unwrap_or(0)
    };
    let of = Coordinated::Group(group);
    let (_, answer) =
        cluster.ask_coordinator_up_to(of, COMMIT_NEWEST, |_| request.clone(), first_code).await?;
    let failed = answer.topics.iter().flat_map(|topic| {
        let rows = topic.partitions.iter().filter(|row| row.error_code != 0);
        rows.map(|row| format!("{}-{}", &*topic.name, row.partition_index)).collect::<Vec<_>>()
    });
    let failed = failed.collect::<Vec<_>>().join(", ");
    let why = format!("Failed altering group offsets for the following partitions: [{failed}]");
    check(format!("group {group}"), first_code(&answer), Some(&why))
}

/// Deletes what is committed for these partitions. The outcome of each: a code of its own.
///
/// # Errors
/// The group as a whole is refused.
pub async fn delete(
    cluster: &mut Cluster,
    group: &str,
    partitions: &[Partition],
) -> Result<BTreeMap<Partition, ErrorCode>, ClientError> {
    let mut topics: Vec<OffsetDeleteRequestTopic> = Vec::new();
    for (topic, partition) in partitions {
        let at = topics.iter().position(|known| &*known.name == topic.as_str()).unwrap_or_else(|| {
            topics.push(OffsetDeleteRequestTopic { name: topic.as_str().into(), ..Default::default() });
            topics.len() - 1
        });
        let row = OffsetDeleteRequestPartition { partition_index: *partition, ..Default::default() };
        topics[at].partitions.push(row);
    }
    let request = OffsetDeleteRequest { group_id: group.into(), topics, ..Default::default() };
    let code = |answer: &OffsetDeleteResponse| answer.error_code;
    let of = Coordinated::Group(group);
    let (_, answer) = cluster.ask_coordinator(of, &request, code).await?;
    check(format!("group {group}"), answer.error_code, None)?;
    let rows = answer.topics.iter().flat_map(|topic| {
        let row = |row: &barnabas_wire::messages::offset_delete_response::OffsetDeleteResponsePartition| {
            ((topic.name.to_string(), row.partition_index), ErrorCode::from_code(row.error_code))
        };
        topic.partitions.iter().map(row).collect::<Vec<_>>()
    });
    Ok(rows.collect())
}

/// Deletes a group of any kind.
///
/// # Errors
/// The coordinator refuses.
pub async fn delete_group(cluster: &mut Cluster, group: &str) -> Result<(), ClientError> {
    let request = DeleteGroupsRequest { groups_names: vec![group.into()], ..Default::default() };
    let code = |answer: &DeleteGroupsResponse| answer.results.first().map_or(0, |row| row.error_code);
    let of = Coordinated::Group(group);
    let (_, answer) = cluster.ask_coordinator(of, &request, code).await?;
    let message = answer.results.first().and_then(|row| row.error_message.as_deref());
    check(format!("group {group}"), code(&answer), message)
}

/// The offset at a timestamp, or at one of [`LATEST`] and [`EARLIEST`]; `None` where there is none, or no leader.
///
/// # Errors
/// The leader refuses, or does not answer.
pub async fn offset_at(
    cluster: &mut Cluster,
    (topic, partition): &Partition,
    timestamp: i64,
) -> Result<Option<i64>, ClientError> {
    let tries = cluster.tries(format!("asking for an offset of {topic}-{partition}"));
    loop {
        match cluster.list_offset(topic, PartitionIndex(*partition), timestamp).await {
            Ok(offset) => return Ok(Some(offset.get()).filter(|offset| *offset >= 0)),
            Err(error) if error.code() == Some(ErrorCode::LeaderNotAvailable) => return Ok(None),
            Err(error) if error.code() == Some(ErrorCode::UnknownTopicOrPartition) => return Err(error),
            Err(error) => tries.after(error).await?,
        }
    }
}
