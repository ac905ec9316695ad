//! A consumer group of either protocol, as its coordinator describes it.
//!
//! As Kafka's admin client does, it sends ConsumerGroupDescribe, and DescribeGroups where the group is a classic one or
//! the broker too old.
//!
//! Source: Kafka 4.3 `DescribeConsumerGroupsHandler`.

use barnabas_base::{BrokerId, ErrorCode};
use barnabas_client::{ClientError, Cluster, Coordinated, check};
use barnabas_wire::messages::consumer_group_describe_response::{self as modern, Assignment};
use barnabas_wire::messages::describe_groups_response as classic;
use barnabas_wire::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, ConsumerProtocolAssignment,
    DescribeGroupsRequest, DescribeGroupsResponse,
};
use barnabas_wire::{Message, Reader};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// A partition of a topic, by name.
pub type Partition = (String, i32);

#[derive(Debug, Clone)]
pub struct Described {
    pub group: String,
    pub state: String,
    /// `host:port  (id)`, as Kafka's tools write it.
    pub coordinator: String,
    pub assignor: String,
    /// `None`: a classic group.
    pub epoch: Option<i32>,
    pub target_epoch: Option<i32>,
    pub members: Vec<Member>,
}

#[derive(Debug, Clone, Default)]
pub struct Member {
    pub id: String,
    pub instance: String,
    pub client: String,
    pub host: String,
    pub epoch: Option<i32>,
    /// In order.
    pub assigned: Vec<Partition>,
    pub target: Vec<Partition>,
    /// Whether a member of a consumer group speaks the new protocol; `None`: a classic group, or the broker is too old.
    pub is_upgraded: Option<bool>,
}

/// # Errors
/// The coordinator refuses; `GROUP_ID_NOT_FOUND` where there is no such group.
pub async fn describe(cluster: &mut Cluster, group: &str) -> Result<Described, ClientError> {
    let first = match describe_modern(cluster, group).await {
        Err(ClientError::Unsupported { .. }) => return describe_classic(cluster, group).await,
        Err(error) if error.code() == Some(ErrorCode::UnsupportedVersion) => {
            return describe_classic(cluster, group).await;
        }
        Err(error) if error.code() == Some(ErrorCode::GroupIdNotFound) => error,
        described => return described,
    };
    match describe_classic(cluster, group).await {
        // The first answer says why: the group may be there and of another kind.
        Err(error) if error.code() == Some(ErrorCode::GroupIdNotFound) => Err(first),
        described => described,
    }
}

async fn describe_modern(cluster: &mut Cluster, group: &str) -> Result<Described, ClientError> {
    let request = ConsumerGroupDescribeRequest { group_ids: vec![group.into()], ..Default::default() };
    let code =
        |answer: &ConsumerGroupDescribeResponse| answer.groups.first().map_or(0, |told| told.error_code);
    let (node, answer) = cluster.ask_coordinator(Coordinated::Group(group), &request, code).await?;
    let told = answer.groups.into_iter().next().ok_or_else(|| no_group(group))?;
    check(format!("group {group}"), told.error_code, told.error_message.as_deref())?;
    Ok(Described {
        group: group.to_owned(),
        state: told.group_state.to_string(),
        coordinator: coordinator(cluster, node)?,
        assignor: told.assignor_name.to_string(),
        epoch: Some(told.group_epoch),
        target_epoch: Some(told.assignment_epoch),
        members: told.members.iter().map(modern_member).collect(),
    })
}

fn modern_member(member: &modern::Member) -> Member {
    Member {
        id: member.member_id.to_string(),
        instance: member.instance_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        client: member.client_id.to_string(),
        host: member.client_host.to_string(),
        epoch: Some(member.member_epoch),
        assigned: partitions(&member.assignment),
        target: partitions(&member.target_assignment),
        is_upgraded: match member.member_type {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        },
    }
}

fn partitions(assignment: &Assignment) -> Vec<Partition> {
    let topics = assignment.topic_partitions.iter();
    let mut all: Vec<Partition> = topics
        .flat_map(|topic| topic.partitions.iter().map(|&number| (topic.topic_name.to_string(), number)))
        .collect();
    all.sort();
    all
}

async fn describe_classic(cluster: &mut Cluster, group: &str) -> Result<Described, ClientError> {
    let request = DescribeGroupsRequest { groups: vec![group.into()], ..Default::default() };
    let code = |answer: &DescribeGroupsResponse| answer.groups.first().map_or(0, |told| told.error_code);
    let (node, answer) = cluster.ask_coordinator(Coordinated::Group(group), &request, code).await?;
    let told = answer.groups.into_iter().next().ok_or_else(|| no_group(group))?;
    check(format!("group {group}"), told.error_code, told.error_message.as_deref())?;
    if !matches!(told.protocol_type.as_str(), "" | "consumer") {
        let kind = told.protocol_type.as_str();
        return Err(ClientError::Invalid(format!("GroupId {group} is not a consumer group ({kind}).")));
    }
    let members: Result<Vec<Member>, ClientError> = told.members.iter().map(classic_member).collect();
    Ok(Described {
        group: group.to_owned(),
        state: told.group_state.to_string(),
        coordinator: coordinator(cluster, node)?,
        assignor: told.protocol_data.to_string(),
        epoch: None,
        target_epoch: None,
        members: members?,
    })
}

fn classic_member(member: &classic::DescribedGroupMember) -> Result<Member, ClientError> {
    let unreadable = |error: barnabas_wire::DecodeError| {
        ClientError::Invalid(format!(
            "the assignment of member {} cannot be read: {error}",
            &*member.member_id
        ))
    };
    Ok(Member {
        id: member.member_id.to_string(),
        instance: member.group_instance_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        client: member.client_id.to_string(),
        host: member.client_host.to_string(),
        assigned: assignment(&member.member_assignment).map_err(unreadable)?,
        ..Member::default()
    })
}

/// Of the consumers' embedded protocol: a version, then the message. Empty where the member has none yet.
fn assignment(bytes: &Bytes) -> Result<Vec<Partition>, barnabas_wire::DecodeError> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let mut reader = Reader::new(bytes.clone());
    let versions = ConsumerProtocolAssignment::VERSIONS;
    let version = reader.int16("Version")?.clamp(versions.min, versions.max);
    let assigned = ConsumerProtocolAssignment::decode(&mut reader, version)?.assigned_partitions;
    let mut all: Vec<Partition> = assigned
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|&number| (topic.topic.to_string(), number)))
        .collect();
    all.sort();
    Ok(all)
}

/// `orders:0,1;payments:3`.
pub fn assignment_text<'a>(partitions: impl IntoIterator<Item = (&'a str, i32)>) -> String {
    let mut topics: BTreeMap<&str, BTreeSet<i32>> = BTreeMap::new();
    for (topic, partition) in partitions {
        topics.entry(topic).or_default().insert(partition);
    }
    let topic = |(topic, numbers): (&str, BTreeSet<i32>)| {
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        format!("{topic}:{}", numbers.join(","))
    };
    topics.into_iter().map(topic).collect::<Vec<_>>().join(";")
}

/// `host:port  (id)`.
///
/// # Errors
/// The node was not named in an answer.
pub fn coordinator(cluster: &Cluster, node: BrokerId) -> Result<String, ClientError> {
    Ok(format!("{}  ({node})", cluster.address(node)?))
}

fn no_group(group: &str) -> ClientError {
    ClientError::refused(format!("group {group}"), ErrorCode::GroupIdNotFound.code(), None)
}
