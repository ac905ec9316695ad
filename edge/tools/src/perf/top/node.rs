//! What one node is asked for in a look, and what it tells.

use super::facts::{Group, Member, Room};
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_client::{ClientError, Cluster};
use barnabas_doctor::{NoPage, Scrape, metrics_page, series_page};
use barnabas_wire::messages::describe_log_dirs_response::DescribeLogDirsResult;
use barnabas_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use barnabas_wire::messages::{
    ConsumerGroupDescribeRequest, DescribeGroupsRequest, DescribeLogDirsRequest, ListGroupsRequest,
    ListOffsetsRequest,
};
use std::collections::BTreeMap;

/// ListOffsets' timestamp of the end.
const LATEST: i64 = -1;
/// Groups of a node that are described.
pub const GROUPS_MAX: usize = 200;
/// Groups of one request.
const AT_ONCE: usize = 50;

#[derive(Debug, Default, Clone, PartialEq)]
pub struct Wishes {
    pub has_page: bool,
    /// The page with series by topic and group besides.
    pub has_series: bool,
    pub has_dirs: bool,
    /// The sizes of all replicas besides.
    pub has_sizes: bool,
    pub has_groups: bool,
    /// What its groups have committed.
    pub has_offsets: bool,
    /// Partitions that it leads.
    pub ends: BTreeMap<String, Vec<i32>>,
}

#[derive(Debug, Default)]
pub struct Told {
    pub page: Option<Scrape>,
    pub series: Option<Scrape>,
    pub dirs: Option<Vec<Dir>>,
    pub ends: Vec<(String, i32, i64)>,
    pub groups: Vec<Group>,
    /// Why something is not there, in a sentence.
    pub trouble: Option<String>,
    /// Whether the connection may be gone.
    pub is_lost: bool,
}

#[derive(Debug)]
pub struct Dir {
    pub room: Room,
    /// Bytes by topic.
    pub sizes: BTreeMap<String, f64>,
}

/// Asks `node` for what is wished. The first question that it does not answer ends the look at it.
pub async fn ask(link: &mut Cluster, node: i32, wishes: Wishes) -> Told {
    let mut told = Told::default();
    if let Err(error) = ask_all(link, node, wishes, &mut told).await {
        told.trouble = Some(format!("node {node}: {error}"));
        told.is_lost = true;
    }
    told
}

async fn ask_all(link: &mut Cluster, node: i32, wishes: Wishes, told: &mut Told) -> Result<(), ClientError> {
    let id = BrokerId(node);
    if wishes.has_page {
        match metrics_page(link, id).await {
            Ok(page) => told.page = Some(page),
            Err(NoPage::Client(error)) => return Err(error),
            Err(NoPage::NotBarnabas(_)) => {}
            Err(refused) => told.trouble = Some(refused.to_string()),
        }
    }
    if wishes.has_series && told.page.is_some() {
        match series_page(link, id).await {
            Ok(page) => told.series = Some(page),
            Err(NoPage::Client(error)) => return Err(error),
            Err(other) => told.trouble = Some(other.to_string()),
        }
    }
    if wishes.has_dirs {
        // None: of all topics; an empty list: the directories alone.
        let topics = (!wishes.has_sizes).then(Vec::new);
        let answer = link.ask(id, &DescribeLogDirsRequest { topics, ..Default::default() }).await?;
        match answer.error_code {
            0 => told.dirs = Some(answer.results.iter().map(dir).collect()),
            code => told.trouble = Some(refused(node, "DescribeLogDirs", code)),
        }
    }
    if !wishes.ends.is_empty() {
        told.ends = ends(link, id, &wishes.ends).await?;
    }
    if wishes.has_groups {
        groups(link, id, wishes.has_offsets, told).await?;
    }
    Ok(())
}

fn refused(node: i32, what: &str, code: i16) -> String {
    format!("node {node} refuses {what}: {}", ErrorCode::from_code(code).name())
}

fn dir(told: &DescribeLogDirsResult) -> Dir {
    let sizes = told.topics.iter().map(|topic| {
        let bytes: i64 = topic.partitions.iter().map(|row| row.partition_size.max(0)).sum();
        (topic.name.to_string(), bytes as f64)
    });
    let bytes = |bytes: i64| bytes.max(0) as f64;
    Dir {
        room: Room { total: bytes(told.total_bytes), usable: bytes(told.usable_bytes) },
        sizes: sizes.collect(),
    }
}

async fn ends(
    link: &mut Cluster,
    node: BrokerId,
    wanted: &BTreeMap<String, Vec<i32>>,
) -> Result<Vec<(String, i32, i64)>, ClientError> {
    let row = |index: &i32| ListOffsetsPartition {
        partition_index: *index,
        timestamp: LATEST,
        ..Default::default()
    };
    let topic = |(name, indexes): (&String, &Vec<i32>)| ListOffsetsTopic {
        name: name.as_str().into(),
        partitions: indexes.iter().map(row).collect(),
        ..Default::default()
    };
    let topics = wanted.iter().map(topic).collect();
    let answer = link.ask(node, &ListOffsetsRequest { replica_id: -1, topics, ..Default::default() }).await?;
    let mut ends = Vec::new();
    for topic in &answer.topics {
        // A leader that has just changed is asked with the next look.
        let rows = topic.partitions.iter().filter(|row| row.error_code == 0 && row.offset >= 0);
        ends.extend(rows.map(|row| (topic.name.to_string(), row.partition_index, row.offset)));
    }
    Ok(ends)
}

/// A group of a node, as the sheets know it.
fn group(name: &str, kind: &str, state: &str, coordinator: i32) -> Group {
    let kind = if kind.is_empty() { "classic".to_owned() } else { kind.to_ascii_lowercase() };
    Group {
        name: name.to_owned(),
        kind,
        state: state.to_owned(),
        coordinator,
        members: None,
        committed: None,
    }
}

/// The groups that the node coordinates; members and offsets of [`GROUPS_MAX`] of them, those with members first.
async fn groups(
    link: &mut Cluster,
    node: BrokerId,
    has_offsets: bool,
    told: &mut Told,
) -> Result<(), ClientError> {
    let answer = link.ask(node, &ListGroupsRequest::default()).await?;
    if answer.error_code != 0 {
        told.trouble = Some(refused(node.get(), "ListGroups", answer.error_code));
        return Ok(());
    }
    let of =
        answer.groups.iter().map(|row| group(&row.group_id, &row.group_type, &row.group_state, node.get()));
    let mut groups: Vec<Group> = of.collect();
    let is_idle = |group: &Group| matches!(group.state.as_str(), "Empty" | "Dead");
    groups.sort_by_cached_key(|group| (is_idle(group), group.name.clone()));
    if groups.len() > GROUPS_MAX {
        let more = groups.len() - GROUPS_MAX;
        told.trouble = Some(format!("node {node}: members of {more} of its groups are not asked for"));
    }
    let end = groups.len().min(GROUPS_MAX);
    for some in groups[..end].chunks_mut(AT_ONCE) {
        classic(link, node, some).await?;
        modern(link, node, some).await?;
        if has_offsets {
            offsets(link, some).await?;
        }
    }
    told.groups = groups;
    Ok(())
}

async fn classic(link: &mut Cluster, node: BrokerId, groups: &mut [Group]) -> Result<(), ClientError> {
    let names = groups.iter().filter(|group| group.kind == "classic").map(|group| group.name.as_str().into());
    let names: Vec<barnabas_wire::Str> = names.collect();
    if names.is_empty() {
        return Ok(());
    }
    let answer = link.ask(node, &DescribeGroupsRequest { groups: names, ..Default::default() }).await?;
    for told in answer.groups.iter().filter(|told| told.error_code == 0) {
        let members = told.members.iter().map(|member| Member {
            client_id: member.client_id.to_string(),
            host: member.client_host.to_string(),
        });
        set_members(groups, &told.group_id, members.collect());
    }
    Ok(())
}

async fn modern(link: &mut Cluster, node: BrokerId, groups: &mut [Group]) -> Result<(), ClientError> {
    let names =
        groups.iter().filter(|group| group.kind == "consumer").map(|group| group.name.as_str().into());
    let group_ids: Vec<barnabas_wire::Str> = names.collect();
    if group_ids.is_empty() {
        return Ok(());
    }
    let answer = link.ask(node, &ConsumerGroupDescribeRequest { group_ids, ..Default::default() }).await?;
    for told in answer.groups.iter().filter(|told| told.error_code == 0) {
        let members = told.members.iter().map(|member| Member {
            client_id: member.client_id.to_string(),
            host: member.client_host.to_string(),
        });
        set_members(groups, &told.group_id, members.collect());
    }
    Ok(())
}

fn set_members(groups: &mut [Group], name: &str, members: Vec<Member>) {
    if let Some(group) = groups.iter_mut().find(|group| group.name == name) {
        group.members = Some(members);
    }
}

async fn offsets(link: &mut Cluster, groups: &mut [Group]) -> Result<(), ClientError> {
    let with_offsets = |group: &&mut Group| group.kind != "share";
    for group in groups.iter_mut().filter(with_offsets) {
        match link.committed_offsets(&group.name).await {
            Ok(rows) => {
                let by_topic = group.committed.get_or_insert_default();
                for ((topic, partition), committed) in rows {
                    by_topic.entry(topic).or_default().insert(partition, committed.offset);
                }
            }
            // A group that refuses does not hide the others.
            Err(error) if error.code().is_some() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
