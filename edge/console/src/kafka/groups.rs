//! Groups: which there are, and a consumer group of either protocol as its coordinator describes it.
//!
//! As Kafka's admin client does, it sends ConsumerGroupDescribe, and DescribeGroups where the group is a classic one or
//! the broker too old.
//!
//! Source: Kafka 4.3 `DescribeConsumerGroupsHandler`.

use super::Partition;
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_client::{ClientError, Cluster, Coordinated, check};
use barnabas_wire::messages::consumer_group_describe_response as modern;
use barnabas_wire::messages::describe_groups_response as classic;
use barnabas_wire::messages::list_groups_response::ListedGroup;
use barnabas_wire::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, ConsumerProtocolAssignment,
    DescribeGroupsRequest, DescribeGroupsResponse, ListGroupsRequest,
};
use barnabas_wire::{DecodeError, Message, Reader};
use bytes::Bytes;

/// A consumer group.
#[derive(Debug, Clone)]
pub struct Described {
    pub group: String,
    pub coordinator: BrokerId,
    pub state: String,
    pub assignor: String,
    /// Without members, and its offsets committed by hand.
    pub is_simple: bool,
    /// `classic` or `consumer`.
    pub kind: &'static str,
    pub members: Vec<Member>,
}

#[derive(Debug, Clone)]
pub struct Member {
    pub id: String,
    pub instance: Option<String>,
    pub client: String,
    pub host: String,
    /// In order.
    pub assigned: Vec<Partition>,
}

impl Described {
    pub fn member(&self, id: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    /// Who reads a partition.
    pub fn reader(&self, partition: &Partition) -> Option<&Member> {
        self.members.iter().find(|member| member.assigned.contains(partition))
    }
}

/// The groups of all kinds that the caller may see, by name.
///
/// # Errors
/// A broker refuses, or does not answer.
pub async fn list(cluster: &mut Cluster) -> Result<Vec<ListedGroup>, ClientError> {
    let mut groups = Vec::new();
    for node in cluster.nodes().await? {
        let code = |answer: &barnabas_wire::messages::ListGroupsResponse| answer.error_code;
        let what = format!("listing the groups of broker {node}");
        let answer = cluster.ask_until_answered(node, &what, |_| ListGroupsRequest::default(), code).await?;
        groups.extend(answer.groups);
    }
    groups.sort_by(|one, other| one.group_id.cmp(&other.group_id));
    groups.dedup_by(|one, other| one.group_id == other.group_id);
    Ok(groups)
}

/// Whether consumers use the group: neither a share group, a streams group, nor one of Connect.
pub fn has_consumers(group: &ListedGroup) -> bool {
    let is_kind = group.group_type.is_empty()
        || group.group_type.eq_ignore_ascii_case("classic")
        || group.group_type.eq_ignore_ascii_case("consumer");
    is_kind && matches!(group.protocol_type.as_str(), "" | "consumer")
}

/// # Errors
/// The coordinator refuses; `GROUP_ID_NOT_FOUND` where there is no such group.
pub async fn describe(cluster: &mut Cluster, group: &str) -> Result<Described, ClientError> {
    let first = match describe_modern(cluster, group).await {
        Err(ClientError::Unsupported { .. }) => None,
        Err(error) if error.code() == Some(ErrorCode::UnsupportedVersion) => None,
        Err(error) if error.code() == Some(ErrorCode::GroupIdNotFound) => Some(error),
        described => return described,
    };
    match describe_classic(cluster, group).await {
        // The first answer says why: the group may be there and of another kind.
        Err(error) if error.code() == Some(ErrorCode::GroupIdNotFound) => Err(first.unwrap_or(error)),
        described => described,
    }
}

async fn describe_modern(cluster: &mut Cluster, group: &str) -> Result<Described, ClientError> {
    let request = ConsumerGroupDescribeRequest { group_ids: vec![group.into()], ..Default::default() };
    let code =
        |answer: &ConsumerGroupDescribeResponse| answer.groups.first().map_or(0, |told| told.error_code);
    let (coordinator, answer) = cluster.ask_coordinator(Coordinated::Group(group), &request, code).await?;
    let told = answer.groups.into_iter().next().ok_or_else(|| no_group(group))?;
    check(format!("group {group}"), told.error_code, told.error_message.as_deref())?;
    Ok(Described {
        group: group.to_owned(),
        coordinator,
        state: told.group_state.to_string(),
        assignor: told.assignor_name.to_string(),
        is_simple: false,
        kind: "consumer",
        members: told.members.iter().map(modern_member).collect(),
    })
}

fn modern_member(member: &modern::Member) -> Member {
    let topics = member.assignment.topic_partitions.iter();
    let mut assigned: Vec<Partition> = topics
        .flat_map(|topic| topic.partitions.iter().map(|&number| (topic.topic_name.to_string(), number)))
        .collect();
    assigned.sort();
    Member {
        id: member.member_id.to_string(),
        instance: member.instance_id.as_ref().map(ToString::to_string),
        client: member.client_id.to_string(),
        host: member.client_host.to_string(),
        assigned,
    }
}

async fn describe_classic(cluster: &mut Cluster, group: &str) -> Result<Described, ClientError> {
    let request = DescribeGroupsRequest { groups: vec![group.into()], ..Default::default() };
    let code = |answer: &DescribeGroupsResponse| answer.groups.first().map_or(0, |told| told.error_code);
    let (coordinator, answer) = cluster.ask_coordinator(Coordinated::Group(group), &request, code).await?;
    let told = answer.groups.into_iter().next().ok_or_else(|| no_group(group))?;
    check(format!("group {group}"), told.error_code, told.error_message.as_deref())?;
    // Up to version 5 a group that does not exist is a dead one.
    if told.group_state.as_str() == "Dead" && told.members.is_empty() {
        return Err(no_group(group));
    }
    if !matches!(told.protocol_type.as_str(), "" | "consumer") {
        let kind = told.protocol_type.as_str();
        return Err(ClientError::Invalid(format!("group {group} is not a consumer group ({kind})")));
    }
    let members: Result<Vec<Member>, ClientError> = told.members.iter().map(classic_member).collect();
    Ok(Described {
        group: group.to_owned(),
        coordinator,
        state: told.group_state.to_string(),
        assignor: told.protocol_data.to_string(),
        is_simple: told.protocol_type.is_empty(),
        kind: "classic",
        members: members?,
    })
}

fn classic_member(member: &classic::DescribedGroupMember) -> Result<Member, ClientError> {
    let unreadable = |error: DecodeError| {
        ClientError::Invalid(format!(
            "the assignment of member {} cannot be read: {error}",
            &*member.member_id
        ))
    };
    Ok(Member {
        id: member.member_id.to_string(),
        instance: member.group_instance_id.as_ref().map(ToString::to_string),
        client: member.client_id.to_string(),
        host: member.client_host.to_string(),
        assigned: assignment(&member.member_assignment).map_err(unreadable)?,
    })
}

/// Of the consumers' embedded protocol: a version, then the message. Empty where the member has none yet.
fn assignment(bytes: &Bytes) -> Result<Vec<Partition>, DecodeError> {
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

fn no_group(group: &str) -> ClientError {
    ClientError::refused(format!("group {group}"), ErrorCode::GroupIdNotFound.code(), None)
}
