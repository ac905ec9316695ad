//! Of streams groups: commands → requests, records and answers → lines.
//!
//! A topology is written as `subs=0:t,>r;1:%r,#c`: subtopologies by id; of each its source topics, `>` sinks, `%`
//! repartition topics that it reads (`%r=4`: with 4 partitions), `#` changelogs, and `&0.1/0`: the sources 0 and 1 and
//! the repartition topic 0 are copartitioned. Tasks are written as `0:0+1,1:2`.

use barnabas_coordinator::StreamsHeartbeat;
use barnabas_wire::Str;
use barnabas_wire::messages::streams_group_describe_response::{Assignment, DescribedGroup};
use barnabas_wire::messages::streams_group_heartbeat_request::{
    CopartitionGroup, Endpoint, KeyValue, Subtopology, TaskIds, TaskOffset, TopicInfo, Topology,
};
use barnabas_wire::messages::streams_group_topology_description_update_request::{
    TopologyDescription, TopologyDescriptionNode, TopologyDescriptionSubtopology,
};
use barnabas_wire::messages::{
    GroupRecordValue, StreamsGroupDescribeRequest, StreamsGroupHeartbeatRequest,
    StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse,
};

use super::consumer::list;
use super::hear::error;
use super::{Words, short_id};

pub fn heartbeat_request(words: &Words<'_>) -> StreamsGroupHeartbeatRequest {
    let epoch = words.number("epoch", 0);
    let says_tasks = epoch == 0 || ["active", "standby", "warmup"].iter().any(|role| words.has(role));
    let tasks = |role: &str| says_tasks.then(|| task_ids(words.text(role, "")));
    let topology = Topology {
        epoch: words.number("top", 0),
        subtopologies: parts(words.text("subs", "0:t"), ';').map(subtopology).collect(),
        ..Default::default()
    };
    let offsets = parts(words.text("offsets", ""), ',').map(|said| {
        let (task, offset) = said.split_once('=').expect("a task = an offset");
        let (id, partition) = task.split_once('.').expect("subtopology.partition");
        TaskOffset {
            subtopology_id: id.into(),
            partition: partition.parse().expect("a partition"),
            offset: offset.parse().expect("an offset"),
            ..Default::default()
        }
    });
    StreamsGroupHeartbeatRequest {
        group_id: words.text("group", "g").into(),
        member_id: words.text("member", "a").into(),
        member_epoch: epoch,
        instance_id: words.get("instance").map(Str::from),
        rebalance_timeout_ms: if epoch == 0 { words.number("rebalance", 10_000) } else { -1 },
        topology: (epoch == 0 || words.has("subs")).then_some(topology),
        active_tasks: tasks("active"),
        standby_tasks: tasks("standby"),
        warmup_tasks: tasks("warmup"),
        process_id: (epoch == 0).then(|| words.text("process", words.text("member", "a")).into()),
        user_endpoint: words.get("endpoint").map(|host| Endpoint {
            host: host.into(),
            port: 80,
            ..Default::default()
        }),
        endpoint_information_epoch: words.number("endpoint-epoch", 0),
        client_tags: words
            .get("tag")
            .map(|tag| vec![KeyValue { key: tag.into(), value: "v".into(), ..Default::default() }]),
        task_offsets: words.has("offsets").then(|| offsets.collect()),
        shutdown_application: words.has("shutdown"),
        ..Default::default()
    }
}

pub fn describe_request(words: &Words<'_>) -> StreamsGroupDescribeRequest {
    StreamsGroupDescribeRequest {
        group_ids: vec![words.text("group", "g").into()],
        include_topology_description: words.has("with-topology"),
        ..Default::default()
    }
}

/// A topology of one source node for each name in `nodes`; `type=` says otherwise what they are.
pub fn description_request(words: &Words<'_>) -> StreamsGroupTopologyDescriptionUpdateRequest {
    let nodes = parts(words.text("nodes", "source"), ',').map(|name| TopologyDescriptionNode {
        name: name.into(),
        node_type: words.number("type", 1),
        ..Default::default()
    });
    let subtopology = TopologyDescriptionSubtopology {
        subtopology_id: "0".into(),
        nodes: nodes.collect(),
        ..Default::default()
    };
    StreamsGroupTopologyDescriptionUpdateRequest {
        group_id: words.text("group", "g").into(),
        member_id: words.text("member", "a").into(),
        topology_epoch: words.number("top", 0),
        topology_description: TopologyDescription { subtopologies: vec![subtopology], ..Default::default() },
        ..Default::default()
    }
}

pub fn description_taken(response: &StreamsGroupTopologyDescriptionUpdateResponse) -> String {
    let why = response.error_message.as_deref().map(|why| format!(": {why}"));
    format!("topology{}{}", error(response.error_code), why.unwrap_or_default())
}

fn parts(said: &str, by: char) -> impl Iterator<Item = &str> {
    said.split(by).filter(|part| !part.is_empty())
}

fn task_ids(said: &str) -> Vec<TaskIds> {
    let tasks = parts(said, ',').filter(|said| *said != "-").map(|said| {
        let (id, partitions) = said.split_once(':').expect("subtopology:partitions");
        TaskIds {
            subtopology_id: id.into(),
            partitions: parts(partitions, '+').map(|each| each.parse().expect("a partition")).collect(),
            ..Default::default()
        }
    });
    tasks.collect()
}

fn subtopology(said: &str) -> Subtopology {
    let (id, rest) = said.split_once(':').expect("subtopology:topics");
    let mut subtopology = Subtopology { subtopology_id: id.into(), ..Default::default() };
    for word in parts(rest, ',') {
        let (mark, name) = word.split_at(1);
        let info = |name: &str| {
            let (name, partitions) = name.split_once('=').unwrap_or((name, "0"));
            TopicInfo {
                name: name.into(),
                partitions: partitions.parse().expect("partitions"),
                ..Default::default()
            }
        };
        match mark {
            ">" => subtopology.repartition_sink_topics.push(name.into()),
            "%" => subtopology.repartition_source_topics.push(info(name)),
            "#" => subtopology.state_changelog_topics.push(info(name)),
            "&" => subtopology.copartition_groups.push(copartition(name)),
            _ => subtopology.source_topics.push(word.into()),
        }
    }
    subtopology
}

fn copartition(said: &str) -> CopartitionGroup {
    let (sources, internal) = said.split_once('/').unwrap_or((said, ""));
    let places = |said: &str| parts(said, '.').map(|each| each.parse().expect("a place")).collect();
    CopartitionGroup {
        source_topics: places(sources),
        repartition_source_topics: places(internal),
        ..Default::default()
    }
}

/// The same fields under as many names as there are messages that have them.
macro_rules! tasks {
    ($tasks:expr) => {
        list(
            $tasks
                .iter()
                .map(|each| {
                    let partitions: Vec<String> = each.partitions.iter().map(i32::to_string).collect();
                    format!("{}:{}", each.subtopology_id, partitions.join("+"))
                })
                .collect(),
        )
    };
}

/// Active, and the others where there are any.
macro_rules! roles {
    ($active:expr, $standby:expr, $warmup:expr) => {{
        let mut line = tasks!($active);
        if !$standby.is_empty() {
            line += &format!(" standby={}", tasks!($standby));
        }
        if !$warmup.is_empty() {
            line += &format!(" warmup={}", tasks!($warmup));
        }
        line
    }};
}

/// What a record says; `None`: it is of another kind of group.
pub fn said(value: &GroupRecordValue) -> Option<String> {
    Some(match value {
        GroupRecordValue::StreamsGroupMetadata(value) => {
            let configs = value.last_assignment_configs.iter().flatten();
            let configs = configs.map(|config| format!(" {}={}", config.key, config.value));
            let validated = value.validated_topology_epoch;
            format!("epoch={} validated={validated}{}", value.epoch, configs.collect::<String>())
        }
        GroupRecordValue::StreamsGroupTargetAssignmentMetadata(value) => value.assignment_epoch.to_string(),
        GroupRecordValue::StreamsGroupTopology(value) => {
            let ids: Vec<&str> =
                value.subtopologies.iter().map(|each| each.subtopology_id.as_str()).collect();
            format!("epoch={} subs={}", value.epoch, ids.join(","))
        }
        GroupRecordValue::StreamsGroupMemberMetadata(value) => {
            let instance = value.instance_id.as_ref().map(|instance| format!(" instance={instance}"));
            let endpoint =
                value.user_endpoint.as_ref().map(|endpoint| format!(" endpoint={}", endpoint.host));
            let (instance, endpoint) = (instance.unwrap_or_default(), endpoint.unwrap_or_default());
            format!("process={}{instance}{endpoint}", value.process_id)
        }
        GroupRecordValue::StreamsGroupTargetAssignmentMember(value) => {
            roles!(value.active_tasks, value.standby_tasks, value.warmup_tasks)
        }
        GroupRecordValue::StreamsGroupCurrentMemberAssignment(value) => {
            let state = match value.state {
                1 => "stable",
                2 => "unrevoked",
                3 => "unreleased",
                _ => "unknown",
            };
            let has = roles!(value.active_tasks, value.standby_tasks, value.warmup_tasks);
            let revokes = roles!(
                value.active_tasks_pending_revocation,
                value.standby_tasks_pending_revocation,
                value.warmup_tasks_pending_revocation
            );
            let (epoch, previous) = (value.member_epoch, value.previous_member_epoch);
            format!("epoch={epoch}<{previous} {state} has={has} revokes={revokes}")
        }
        _ => return None,
    })
}

pub fn heartbeat(answer: &StreamsHeartbeat) -> String {
    let response = &answer.response;
    if response.error_code != 0 {
        let why = response.error_message.as_deref().map(|why| format!(": {why}"));
        return format!("shb{}{}", error(response.error_code), why.unwrap_or_default());
    }
    let mut line = format!("shb member={} epoch={}", short_id(&response.member_id), response.member_epoch);
    if let (Some(active), Some(standby), Some(warmup)) =
        (&response.active_tasks, &response.standby_tasks, &response.warmup_tasks)
    {
        line += &format!(" has={}", roles!(active, standby, warmup));
    }
    for status in response.status.iter().flatten() {
        line += &format!(" [{}: {}]", status.status_code, status.status_detail);
    }
    for topic in &answer.create {
        line += &format!(" create={}/{}x{}", topic.name, topic.num_partitions, topic.replication_factor);
    }
    for endpoint in response.partitions_by_user_endpoint.iter().flatten() {
        let shown =
            |topics: &[barnabas_wire::messages::streams_group_heartbeat_response::TopicPartition]| {
                let all = topics.iter().map(|topic| {
                    let partitions: Vec<String> = topic.partitions.iter().map(i32::to_string).collect();
                    format!("{}:{}", topic.topic, partitions.join("+"))
                });
                list(all.collect())
            };
        let (active, standby) = (shown(&endpoint.active_partitions), shown(&endpoint.standby_partitions));
        line += &format!(" {}={active}/{standby}", endpoint.user_endpoint.host);
    }
    if response.endpoint_information_epoch != 0 {
        line += &format!(" endpoint-epoch={}", response.endpoint_information_epoch);
    }
    if response.topology_description_required {
        line += " describe-topology!";
    }
    line
}

pub fn described(group: &DescribedGroup) -> String {
    if group.error_code != 0 {
        return format!("described {}{}", group.group_id, error(group.error_code));
    }
    let show = |tasks: &Assignment| roles!(tasks.active_tasks, tasks.standby_tasks, tasks.warmup_tasks);
    let members = group.members.iter().map(|member| {
        let (has, target) = (show(&member.assignment), show(&member.target_assignment));
        format!(" [{} epoch={} has={has} target={target}]", member.member_id, member.member_epoch)
    });
    let topology = group.topology.as_ref().map(|topology| {
        let subtopologies = topology.subtopologies.iter().flatten().map(|each| {
            let internal = each.repartition_source_topics.iter().chain(&each.state_changelog_topics);
            let internal = internal.map(|topic| format!(" {}/{}", topic.name, topic.partitions));
            format!(" ({}{})", each.subtopology_id, internal.collect::<String>())
        });
        format!(" topology={}{}", topology.epoch, subtopologies.collect::<String>())
    });
    let status =
        ["", " no-description", " unreadable", " nodes="][group.topology_description_status as usize];
    let subtopologies = group.topology_description.iter().flat_map(|description| &description.subtopologies);
    let nodes: Vec<&str> =
        subtopologies.flat_map(|each| &each.nodes).map(|node| node.name.as_str()).collect();
    format!(
        "described {} {} epoch={} target={} {}{}{}{status}{}",
        group.group_id,
        group.group_state,
        group.group_epoch,
        group.assignment_epoch,
        group.assignor_name.as_deref().unwrap_or("-"),
        topology.unwrap_or_default(),
        members.collect::<String>(),
        nodes.join("+")
    )
}
