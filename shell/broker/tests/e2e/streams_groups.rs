//! A streams group (KIP-1071) over the wire: its internal topics are made by the broker, its tasks are assigned, and it
//! is there after a restart.

use crate::harness::{Client, TestNode};
use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;
use barnabas_wire::messages::streams_group_heartbeat_request::{Subtopology, TopicInfo, Topology};
use barnabas_wire::messages::streams_group_topology_description_update_request::{
    TopologyDescription, TopologyDescriptionNode, TopologyDescriptionSubtopology,
};
use barnabas_wire::messages::{
    DescribeConfigsRequest, FindCoordinatorRequest, ResponseBody, StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse,
    StreamsGroupTopologyDescriptionUpdateRequest, streams_group_heartbeat_request,
    streams_group_heartbeat_response,
};
use std::time::{Duration, Instant};

/// Heartbeats until `done`, with a coordinator that may have to be found or loaded first.
fn beat(
    client: &mut Client,
    request: &StreamsGroupHeartbeatRequest,
    done: impl Fn(&StreamsGroupHeartbeatResponse) -> bool,
) -> Box<StreamsGroupHeartbeatResponse> {
    let asked = Instant::now();
    let mut request = request.clone();
    loop {
        assert!(asked.elapsed() < Duration::from_secs(30), "too long");
        let find = FindCoordinatorRequest { key: request.group_id.clone(), ..Default::default() };
        let ResponseBody::FindCoordinator(found) = client.call(find, 2) else { panic!("another response") };
        if found.error_code == 0 {
            let ResponseBody::StreamsGroupHeartbeat(response) = client.call(request.clone(), 1) else {
                panic!("another response")
            };
            if done(&response) {
                return response;
            }
            assert!(matches!(response.error_code, 0 | 14 | 15 | 16), "{response:?}");
            if response.error_code == 0 {
                request = stays(response.member_epoch);
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Reads `lines`, counts by another key, keeps the counts.
fn joins() -> StreamsGroupHeartbeatRequest {
    let info = |name: &str| TopicInfo { name: name.into(), ..Default::default() };
    let first = Subtopology {
        subtopology_id: "0".into(),
        source_topics: vec!["lines".into()],
        repartition_sink_topics: vec!["app-words-repartition".into()],
        ..Default::default()
    };
    let second = Subtopology {
        subtopology_id: "1".into(),
        repartition_source_topics: vec![info("app-words-repartition")],
        state_changelog_topics: vec![info("app-counts-changelog")],
        ..Default::default()
    };
    StreamsGroupHeartbeatRequest {
        rebalance_timeout_ms: 10_000,
        topology: Some(Topology { subtopologies: vec![first, second], ..Default::default() }),
        active_tasks: Some(Vec::new()),
        standby_tasks: Some(Vec::new()),
        warmup_tasks: Some(Vec::new()),
        process_id: Some("p".into()),
        ..stays(0)
    }
}

fn stays(member_epoch: i32) -> StreamsGroupHeartbeatRequest {
    StreamsGroupHeartbeatRequest {
        group_id: "app".into(),
        member_id: "m".into(),
        member_epoch,
        ..Default::default()
    }
}

#[test]
fn the_broker_makes_a_groups_topics_and_assigns_its_tasks() {
    let mut node = TestNode::start_with(&["group.streams.initial.rebalance.delay.ms=0"]);
    let mut client = node.client();
    client.create_topic("lines", 3, &[]);
    let told = beat(&mut client, &joins(), |told| told.error_code == 0 && told.member_epoch > 0);
    let status: Vec<i8> = told.status.iter().flatten().map(|status| status.status_code).collect();
    assert!(status.contains(&3), "MISSING_INTERNAL_TOPICS: {told:?}");
    let has_tasks = |told: &StreamsGroupHeartbeatResponse| {
        told.active_tasks.as_ref().is_some_and(|tasks| !tasks.is_empty())
    };
    let told = beat(&mut client, &stays(told.member_epoch), has_tasks);
    let tasks: usize = told.active_tasks.iter().flatten().map(|each| each.partitions.len()).sum();
    assert_eq!(tasks, 6);
    let epoch = told.member_epoch;

    node.kill();
    node.launch();
    let mut client = node.client();
    // A member may have missed the last answer before the kill: a loaded group repeats its tasks once.
    let told = beat(&mut client, &stays(epoch), |told| told.error_code == 0);
    let repeated: usize = told.active_tasks.iter().flatten().map(|each| each.partitions.len()).sum();
    assert_eq!((told.member_epoch, repeated), (epoch, 6), "the same tasks");
    let told = beat(&mut client, &stays(epoch), |told| told.error_code == 0);
    assert_eq!((told.member_epoch, &told.active_tasks), (epoch, &None), "nothing has changed");
    let describe = StreamsGroupDescribeRequest { group_ids: vec!["app".into()], ..Default::default() };
    let ResponseBody::StreamsGroupDescribe(described) = client.call(describe, 1) else { panic!("another") };
    assert_eq!(described.groups[0].group_state, "Stable");
    let topology = described.groups[0].topology.as_ref().expect("a topology");
    let widths = topology.subtopologies.iter().flatten().flat_map(|each| &each.state_changelog_topics);
    assert_eq!(widths.map(|topic| topic.partitions).collect::<Vec<_>>(), [3]);
}

/// What the node says of the group's description: its status, and the names of its nodes.
fn description(client: &mut Client) -> (i8, Vec<String>) {
    let group_ids = vec!["app".into()];
    let describe =
        StreamsGroupDescribeRequest { group_ids, include_topology_description: true, ..Default::default() };
    let ResponseBody::StreamsGroupDescribe(described) = client.call(describe, 1) else { panic!("another") };
    let group = &described.groups[0];
    let subtopologies = group.topology_description.iter().flat_map(|description| &description.subtopologies);
    let nodes = subtopologies.flat_map(|each| &each.nodes).map(|node| node.name.to_string());
    (group.topology_description_status, nodes.collect())
}

/// Sends a description with one node; the error.
fn describe_topology(client: &mut Client, name: &str) -> (i16, Option<String>) {
    let nodes = vec![TopologyDescriptionNode { name: name.into(), node_type: 1, ..Default::default() }];
    let subtopologies =
        vec![TopologyDescriptionSubtopology { subtopology_id: "0".into(), nodes, ..Default::default() }];
    let request = StreamsGroupTopologyDescriptionUpdateRequest {
        group_id: "app".into(),
        member_id: "m".into(),
        topology_description: TopologyDescription { subtopologies, ..Default::default() },
        ..Default::default()
    };
    let answer = client.call(request, 0);
    let ResponseBody::StreamsGroupTopologyDescriptionUpdate(answer) = answer else { panic!("another") };
    (answer.error_code, answer.error_message.map(|why| why.to_string()))
}

const PLUG_IN: &str = "group.streams.topology.description.plugin.class=\
                       org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin";

#[test]
fn members_topology_description_is_shown_and_asked_for_after_a_restart() {
    let mut node = TestNode::start_with(&["group.streams.initial.rebalance.delay.ms=0", PLUG_IN]);
    let mut client = node.client();
    client.create_topic("lines", 3, &[]);
    let asks = |told: &StreamsGroupHeartbeatResponse| told.topology_description_required;
    let told = beat(&mut client, &joins(), asks);
    assert_eq!(description(&mut client), (1, Vec::new()), "NOT_STORED");
    assert_eq!(describe_topology(&mut client, "source"), (0, None));
    assert_eq!(description(&mut client), (3, vec!["source".to_owned()]), "AVAILABLE");
    let told = beat(&mut client, &stays(told.member_epoch), |told| told.error_code == 0);
    assert!(!asks(&told), "it is there");

    node.kill();
    node.launch();
    let mut client = node.client();
    beat(&mut client, &stays(told.member_epoch), asks);
    assert_eq!(description(&mut client), (1, Vec::new()), "NOT_STORED");
    assert_eq!(describe_topology(&mut client, "again"), (0, None));
    assert_eq!(description(&mut client), (3, vec!["again".to_owned()]), "AVAILABLE");
}

#[test]
fn node_without_the_plug_in_takes_no_topology_description() {
    let node = TestNode::start_with(&["group.streams.initial.rebalance.delay.ms=0"]);
    let mut client = node.client();
    client.create_topic("lines", 3, &[]);
    let told = beat(&mut client, &joins(), |told| told.error_code == 0 && told.member_epoch > 0);
    assert!(!told.topology_description_required);
    let why = "The broker has no streams group topology description plugin configured.";
    assert_eq!(describe_topology(&mut client, "source"), (35, Some(why.to_owned())), "UNSUPPORTED_VERSION");
    assert_eq!(description(&mut client), (1, Vec::new()), "NOT_STORED");
}

/// `kafka-configs --entity-type groups`.
const GROUP: i8 = 32;
const INVALID_CONFIG: i16 = 40;

/// The values of the group's own keys, by key.
fn described(client: &mut Client, keys: &[&str]) -> Vec<(String, String)> {
    let resource = DescribeConfigsResource {
        resource_type: GROUP,
        resource_name: "app".into(),
        configuration_keys: Some(keys.iter().map(|&key| key.into()).collect()),
        ..Default::default()
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    let ResponseBody::DescribeConfigs(response) = client.call(request, 4) else { panic!("another") };
    let configs = response.results[0].configs.iter();
    let mut found: Vec<_> = configs
        .map(|config| (config.name.to_string(), config.value.as_deref().unwrap_or_default().to_string()))
        .collect();
    found.sort();
    found
}

#[test]
fn settings_of_a_running_group_count_with_its_next_heartbeats() {
    let mut node = TestNode::start_with(&[
        "group.streams.initial.rebalance.delay.ms=0",
        "group.streams.min.heartbeat.interval.ms=100",
    ]);
    let mut client = node.client();
    client.create_topic("lines", 3, &[]);
    let names = ["m", "n"];
    let as_member = |request: StreamsGroupHeartbeatRequest, name: &str| StreamsGroupHeartbeatRequest {
        member_id: name.into(),
        process_id: request.process_id.as_ref().map(|_| name.into()),
        ..request
    };
    let mut epochs = names.map(|name| {
        let joined = |told: &StreamsGroupHeartbeatResponse| told.error_code == 0 && told.member_epoch > 0;
        beat(&mut client, &as_member(joins(), name), joined).member_epoch
    });
    let app = (GROUP, "app");
    assert_eq!(client.alter_config(1, app, "streams.num.standby.replicas", Some("-1")), INVALID_CONFIG);
    let keys = [
        ("streams.heartbeat.interval.ms", "300"),
        ("streams.num.standby.replicas", "1"),
        ("streams.session.timeout.ms", "46000"),
    ];
    for (key, value) in keys {
        assert_eq!(client.alter_config(1, app, key, Some(value)), 0, "{key}");
    }
    let expected = keys.map(|(key, value)| (key.to_string(), value.to_string()));
    assert_eq!(described(&mut client, &keys.map(|(key, _)| key)), expected);

    // Each member owns what it was told, and beats until both have standby tasks.
    let mut owned = names.map(|_| StreamsGroupHeartbeatResponse::default());
    let until = Instant::now() + Duration::from_secs(30);
    let has_standby = |told: &StreamsGroupHeartbeatResponse| {
        told.standby_tasks.as_ref().is_some_and(|tasks| !tasks.is_empty())
    };
    while !owned.iter().any(has_standby) {
        assert!(Instant::now() < until, "no standby task: {owned:?}");
        for (member, name) in names.into_iter().enumerate() {
            let mut request = as_member(stays(epochs[member]), name);
            let tasks = |told: Option<&Vec<_>>| Some(told.into_iter().flatten().map(as_owned).collect());
            request.active_tasks = tasks(owned[member].active_tasks.as_ref());
            request.standby_tasks = tasks(owned[member].standby_tasks.as_ref());
            request.warmup_tasks = Some(Vec::new());
            let told = beat(&mut client, &request, |told| told.error_code == 0);
            epochs[member] = told.member_epoch;
            if told.active_tasks.is_some() || told.standby_tasks.is_some() {
                owned[member] = *told;
            }
        }
    }
    let told = beat(&mut client, &as_member(stays(epochs[0]), names[0]), |told| told.error_code == 0);
    assert_eq!(told.heartbeat_interval_ms, 300);
    assert!(node.stop().success());
}

fn as_owned(task: &streams_group_heartbeat_response::TaskIds) -> streams_group_heartbeat_request::TaskIds {
    streams_group_heartbeat_request::TaskIds {
        subtopology_id: task.subtopology_id.clone(),
        partitions: task.partitions.clone(),
        ..Default::default()
    }
}
