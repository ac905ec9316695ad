//! Groups: their members, what they have committed, and how old the first record is that they have not read.

mod unread;

use super::ask::{Asker, checked};
use barnabas_base::Uuid;
use barnabas_findings::{Committed, Group, GroupKind, Member, Seen, Topic, Unseen};
use barnabas_wire::messages::consumer_group_describe_response as modern;
use barnabas_wire::messages::describe_groups_response as classic;
use barnabas_wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use barnabas_wire::messages::offset_fetch_response::OffsetFetchResponse;
use barnabas_wire::messages::{
    ConsumerGroupDescribeRequest, ConsumerProtocolAssignment, DescribeGroupsRequest, ListGroupsRequest,
    OffsetFetchRequest,
};
use barnabas_wire::{Message, Reader};
use bytes::Bytes;
use std::collections::BTreeMap;

/// From this version on OffsetFetch asks for several groups.
const GROUPS_SINCE: i16 = 8;
/// Groups of one request.
const AT_ONCE: usize = 200;

/// A group as its coordinator lists it.
#[derive(Debug, Clone)]
pub struct Listed {
    name: String,
    coordinator: i32,
    kind: GroupKind,
    state: String,
}

/// All groups; `Err` where a node did not list its own.
pub type Groups = Seen<Vec<Listed>>;
/// Offsets by group and partition.
pub type Offsets = BTreeMap<String, Seen<BTreeMap<(String, i32), i64>>>;

pub async fn list(asker: &mut Asker, nodes: &[i32]) -> Groups {
    let mut listed = Vec::new();
    for node in nodes {
        let answer = asker.ask(*node, |_| ListGroupsRequest::default()).await?;
        checked(&format!("groups of node {node}"), answer.error_code, None)?;
        for group in answer.groups {
            let kind = match group.group_type.to_ascii_lowercase().as_str() {
                "consumer" => GroupKind::Consumer,
                "share" => GroupKind::Share,
                "streams" => GroupKind::Streams,
                // Connect's and others' classic groups commit nothing here.
                _ if matches!(&*group.protocol_type, "" | "consumer") => GroupKind::Classic,
                _ => continue,
            };
            let (name, state) = (group.group_id.to_string(), group.group_state.to_string());
            listed.push(Listed { name, coordinator: *node, kind, state });
        }
    }
    Ok(listed)
}

/// What every group has committed now.
pub async fn committed(asker: &mut Asker, groups: &Groups, names: &BTreeMap<Uuid, String>) -> Offsets {
    let mut offsets = Offsets::new();
    for (node, groups) in by_coordinator(groups) {
        let commits = groups.into_iter().filter(|group| group.kind != GroupKind::Share);
        let groups: Vec<&str> = commits.map(|group| group.name.as_str()).collect();
        for group in groups {
            let asked = asker.ask(node, |version| request(group, version)).await;
            offsets.insert(group.to_owned(), asked.and_then(|answer| read(group, &answer, names)));
        }
    }
    offsets
}

fn request(group: &str, version: i16) -> OffsetFetchRequest {
    if version < GROUPS_SINCE {
        return OffsetFetchRequest { group_id: group.into(), topics: None, ..Default::default() };
    }
    let of = OffsetFetchRequestGroup { group_id: group.into(), topics: None, ..Default::default() };
    OffsetFetchRequest { groups: vec![of], ..Default::default() }
}

fn read(
    group: &str,
    answer: &OffsetFetchResponse,
    names: &BTreeMap<Uuid, String>,
) -> Seen<BTreeMap<(String, i32), i64>> {
    let code = answer.groups.first().map_or(answer.error_code, |group| group.error_code);
    checked(&format!("offsets of group {group}"), code, None)?;
    let mut offsets = BTreeMap::new();
    for topic in answer.groups.iter().flat_map(|group| &group.topics) {
        let named = (!topic.name.is_empty()).then(|| topic.name.to_string());
        let Some(name) = named.or_else(|| names.get(&topic.topic_id).cloned()) else { continue };
        for row in topic.partitions.iter().filter(|row| row.committed_offset >= 0) {
            offsets.insert((name.clone(), row.partition_index), row.committed_offset);
        }
    }
    for topic in &answer.topics {
        for row in topic.partitions.iter().filter(|row| row.committed_offset >= 0) {
            offsets.insert((topic.name.to_string(), row.partition_index), row.committed_offset);
        }
    }
    Ok(offsets)
}

fn by_coordinator(groups: &Groups) -> BTreeMap<i32, Vec<&Listed>> {
    let mut by: BTreeMap<i32, Vec<&Listed>> = BTreeMap::new();
    for group in groups.iter().flatten() {
        by.entry(group.coordinator).or_default().push(group);
    }
    by
}

/// The groups with their members and offsets.
pub async fn describe(
    asker: &mut Asker,
    listed: &Groups,
    before: &Offsets,
    after: &Offsets,
    topics: &[Topic],
) -> Seen<Vec<Group>> {
    let all = listed.as_ref().map_err(Clone::clone)?;
    let mut described = BTreeMap::new();
    for (node, groups) in by_coordinator(listed) {
        let of =
            |kind| groups.iter().filter(move |g| g.kind == kind).map(|g| g.name.clone()).collect::<Vec<_>>();
        for names in of(GroupKind::Classic).chunks(AT_ONCE) {
            describe_classic(asker, node, names, &mut described).await;
        }
        for names in of(GroupKind::Consumer).chunks(AT_ONCE) {
            describe_modern(asker, node, names, &mut described).await;
        }
    }
    let mut unread = unread::find(asker, after, topics).await;
    let group = |listed: &Listed| {
        let name = &listed.name;
        let missing = || (String::new(), Err(Unseen(format!("group {name} was not described"))));
        let (assignor, members) = described.remove(name).unwrap_or_else(missing);
        let missing = || Err(Unseen(format!("offsets of group {name} were not told")));
        let offsets = after.get(name).cloned().unwrap_or_else(missing);
        let old = before.get(name).cloned().unwrap_or_else(missing);
        let rows = offsets.and_then(|offsets| old.map(|old| (offsets, old))).map(|(offsets, old)| {
            let row = |((topic, partition), offset): ((String, i32), i64)| {
                let place = (topic.clone(), partition);
                let nothing = || Err(Unseen(format!("{topic}-{partition} was not read")));
                Committed {
                    offset,
                    offset_before: old.get(&place).copied().unwrap_or(-1),
                    oldest_unread_ms: unread.remove(&(name.clone(), place)).unwrap_or_else(nothing),
                    topic,
                    partition,
                }
            };
            offsets.into_iter().map(row).collect()
        });
        let (name, state) = (name.clone(), listed.state.clone());
        Group { name, kind: listed.kind, state, assignor, members, committed: rows }
    };
    Ok(all.iter().map(group).collect())
}

type Described = BTreeMap<String, (String, Seen<Vec<Member>>)>;

async fn describe_classic(asker: &mut Asker, node: i32, names: &[String], described: &mut Described) {
    let request = DescribeGroupsRequest {
        groups: names.iter().map(|name| name.as_str().into()).collect(),
        ..Default::default()
    };
    match asker.ask(node, |_| request.clone()).await {
        Ok(answer) => {
            for group in answer.groups {
                let told = checked(&format!("group {}", &*group.group_id), group.error_code, None);
                let members = told.and_then(|()| group.members.iter().map(classic_member).collect());
                described.insert(group.group_id.to_string(), (group.protocol_data.to_string(), members));
            }
        }
        Err(why) => described.extend(names.iter().map(|n| (n.clone(), (String::new(), Err(why.clone()))))),
    }
}

fn classic_member(member: &classic::DescribedGroupMember) -> Seen<Member> {
    let unreadable =
        |error| Unseen(format!("the assignment of {} cannot be read: {error}", &*member.member_id));
    Ok(Member {
        id: member.member_id.to_string(),
        client_id: member.client_id.to_string(),
        host: member.client_host.to_string(),
        rack: None,
        assigned: assignment(&member.member_assignment).map_err(unreadable)?,
    })
}

/// Of the consumers' embedded protocol: a version, then the message. Empty where the member has none yet.
fn assignment(bytes: &Bytes) -> Result<Vec<(String, i32)>, barnabas_wire::DecodeError> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let mut reader = Reader::new(bytes.clone());
    let versions = ConsumerProtocolAssignment::VERSIONS;
    let version = reader.int16("Version")?.clamp(versions.min, versions.max);
    let assigned = ConsumerProtocolAssignment::decode(&mut reader, version)?.assigned_partitions;
    let rows = assigned.iter().flat_map(|t| t.partitions.iter().map(|&number| (t.topic.to_string(), number)));
    Ok(rows.collect())
}

async fn describe_modern(asker: &mut Asker, node: i32, names: &[String], described: &mut Described) {
    let request = ConsumerGroupDescribeRequest {
        group_ids: names.iter().map(|name| name.as_str().into()).collect(),
        ..Default::default()
    };
    match asker.ask(node, |_| request.clone()).await {
        Ok(answer) => {
            for group in answer.groups {
                let message = group.error_message.as_deref();
                let told = checked(&format!("group {}", &*group.group_id), group.error_code, message);
                let members = told.map(|()| group.members.iter().map(modern_member).collect());
                described.insert(group.group_id.to_string(), (group.assignor_name.to_string(), members));
            }
        }
        Err(why) => described.extend(names.iter().map(|n| (n.clone(), (String::new(), Err(why.clone()))))),
    }
}

fn modern_member(member: &modern::Member) -> Member {
    let topics = member.assignment.topic_partitions.iter();
    let assigned = topics.flat_map(|t| t.partitions.iter().map(|&number| (t.topic_name.to_string(), number)));
    Member {
        id: member.member_id.to_string(),
        client_id: member.client_id.to_string(),
        host: member.client_host.to_string(),
        rack: member.rack_id.as_ref().map(ToString::to_string).filter(|rack| !rack.is_empty()),
        assigned: assigned.collect(),
    }
}
