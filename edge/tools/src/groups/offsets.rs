//! Requests that delete a group or its committed offsets, and for the first and end offsets of partitions.

use super::description::Partition;
use barnabas_base::{ErrorCode, PartitionIndex};
use barnabas_client::{ClientError, Cluster, Coordinated, check};
use barnabas_wire::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use barnabas_wire::messages::{
    DeleteGroupsRequest, DeleteGroupsResponse, OffsetDeleteRequest, OffsetDeleteResponse,
};
use std::collections::BTreeMap;

/// ListOffsets' timestamps.
pub const LATEST: i64 = -1;
pub const EARLIEST: i64 = -2;

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
