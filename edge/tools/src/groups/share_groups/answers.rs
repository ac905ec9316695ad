//! Requests to a share group's coordinator: the group, and its start offsets.

use super::super::description::{Partition, coordinator};
use super::super::reset::Plan;
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster, Coordinated, check};
use barnabas_wire::messages::alter_share_group_offsets_request::{
    AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
};
use barnabas_wire::messages::delete_share_group_offsets_request::DeleteShareGroupOffsetsRequestTopic;
use barnabas_wire::messages::describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestGroup;
use barnabas_wire::messages::share_group_describe_response::DescribedGroup;
use barnabas_wire::messages::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse, DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse,
    ShareGroupDescribeRequest, ShareGroupDescribeResponse,
};
use std::collections::BTreeMap;

/// A share group's start offset of a partition; `None`: it has not begun to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Start {
    pub offset: Option<i64>,
    pub leader_epoch: Option<i32>,
    pub lag: Option<i64>,
}

/// The group, and its coordinator as `host:port  (id)`.
///
/// # Errors
/// The coordinator refuses; `GROUP_ID_NOT_FOUND` where there is no such share group.
pub async fn described(cluster: &mut Cluster, group: &str) -> Result<(DescribedGroup, String), ClientError> {
    let request = ShareGroupDescribeRequest { group_ids: vec![group.into()], ..Default::default() };
    let code = |answer: &ShareGroupDescribeResponse| answer.groups.first().map_or(0, |told| told.error_code);
    let (node, answer) = cluster.ask_coordinator(Coordinated::Group(group), &request, code).await?;
    let missing = || ClientError::refused(group, ErrorCode::GroupIdNotFound.code(), None);
    let told = answer.groups.into_iter().next().ok_or_else(missing)?;
    check(format!("group {group}"), told.error_code, told.error_message.as_deref())?;
    let at = coordinator(cluster, node)?;
    Ok((told, at))
}

/// # Errors
/// The coordinator refuses.
pub async fn starts(cluster: &mut Cluster, group: &str) -> Result<BTreeMap<Partition, Start>, ClientError> {
    let asked =
        DescribeShareGroupOffsetsRequestGroup { group_id: group.into(), topics: None, ..Default::default() };
    let request = DescribeShareGroupOffsetsRequest { groups: vec![asked], ..Default::default() };
    let code =
        |answer: &DescribeShareGroupOffsetsResponse| answer.groups.first().map_or(0, |told| told.error_code);
    let (_, answer) = cluster.ask_coordinator(Coordinated::Group(group), &request, code).await?;
    let mut starts = BTreeMap::new();
    for told in &answer.groups {
        check(format!("group {group}"), told.error_code, told.error_message.as_deref())?;
        for topic in &told.topics {
            for row in &topic.partitions {
                check(format!("group {group}"), row.error_code, row.error_message.as_deref())?;
                let is_begun = row.start_offset >= 0;
                let start = Start {
                    offset: is_begun.then_some(row.start_offset),
                    leader_epoch: is_begun.then_some(row.leader_epoch),
                    lag: Some(row.lag).filter(|lag| is_begun && *lag >= 0),
                };
                starts.insert((topic.topic_name.to_string(), row.partition_index), start);
            }
        }
    }
    Ok(starts)
}

/// # Errors
/// The coordinator refuses, for instance since the group has members.
pub async fn alter(cluster: &mut Cluster, group: &str, plan: &Plan) -> Result<(), ClientError> {
    let mut topics: Vec<AlterShareGroupOffsetsRequestTopic> = Vec::new();
    for ((topic, partition), offset) in plan {
        if topics.last().is_none_or(|last| &*last.topic_name != topic.as_str()) {
            topics.push(AlterShareGroupOffsetsRequestTopic {
                topic_name: topic.as_str().into(),
                ..Default::default()
            });
        }
        let row = AlterShareGroupOffsetsRequestPartition {
            partition_index: *partition,
            start_offset: *offset,
            ..Default::default()
        };
        topics.last_mut().expect("it was put there just now").partitions.push(row);
    }
    let request = AlterShareGroupOffsetsRequest { group_id: group.into(), topics, ..Default::default() };
    let code = |answer: &AlterShareGroupOffsetsResponse| answer.error_code;
    let (_, answer) = cluster.ask_coordinator(Coordinated::Group(group), &request, code).await?;
    check(format!("group {group}"), answer.error_code, answer.error_message.as_deref())?;
    let mut rows = answer.responses.iter().flat_map(|topic| &topic.partitions);
    rows.try_for_each(|row| check(format!("group {group}"), row.error_code, row.error_message.as_deref()))
}

/// Deletes the group's start offsets of topics. The outcome of each: its code and the coordinator's message.
///
/// # Errors
/// The group as a whole is refused.
pub async fn delete(
    cluster: &mut Cluster,
    group: &str,
    topics: &[&str],
) -> Result<BTreeMap<String, (ErrorCode, String)>, ClientError> {
    let topic = |topic: &&str| DeleteShareGroupOffsetsRequestTopic {
        topic_name: (*topic).into(),
        ..Default::default()
    };
    let topics = topics.iter().map(topic).collect();
    let request = DeleteShareGroupOffsetsRequest { group_id: group.into(), topics, ..Default::default() };
    let code = |answer: &DeleteShareGroupOffsetsResponse| answer.error_code;
    let (_, answer) = cluster.ask_coordinator(Coordinated::Group(group), &request, code).await?;
    check(format!("group {group}"), answer.error_code, answer.error_message.as_deref())?;
    let rows = answer.responses.iter().map(|row| {
        let message = row.error_message.as_deref().unwrap_or_default().to_owned();
        (row.topic_name.to_string(), (ErrorCode::from_code(row.error_code), message))
    });
    Ok(rows.collect())
}
