//! Looks at fake brokers.

use super::super::node::GROUPS_MAX;
use super::*;
use crate::fake_broker::fake_broker;
use barnabas_client::ClusterConfig;
use barnabas_wire::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use barnabas_wire::messages::list_groups_response::ListedGroup;
use barnabas_wire::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use barnabas_wire::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use barnabas_wire::messages::{
    DescribeConfigsResponse, DescribeLogDirsResponse, ListGroupsResponse, ListOffsetsResponse,
};
use barnabas_wire::{RequestBody, ResponseBody};
use std::sync::{Arc, Mutex};

/// ListOffsets, Metadata, DescribeGroups, ListGroups, DescribeConfigs, DescribeLogDirs.
const APIS: &[(i16, i16)] = &[(2, 7), (3, 12), (15, 5), (16, 4), (32, 4), (35, 4)];

fn metadata(address: &str, partitions: i32) -> MetadataResponse {
    let (host, port) = address.rsplit_once(':').expect("host:port");
    let broker = |node_id: i32, port: &str| MetadataResponseBroker {
        node_id,
        host: host.into(),
        port: port.parse().expect("a port"),
        ..Default::default()
    };
    let row = |partition_index: i32| MetadataResponsePartition {
        partition_index,
        leader_id: if partition_index == 1 { -1 } else { 1 },
        replica_nodes: vec![1, 2],
        isr_nodes: vec![1],
        ..Default::default()
    };
    let topic = MetadataResponseTopic {
        name: Some("t".into()),
        partitions: (0..partitions).map(row).collect(),
        ..Default::default()
    };
    // Port 1 takes no connection.
    let brokers = vec![broker(1, port), broker(2, "1")];
    MetadataResponse { brokers, controller_id: 1, topics: vec![topic], ..Default::default() }
}

fn answer(body: &RequestBody, address: &str, partitions: i32) -> ResponseBody {
    match body {
        RequestBody::Metadata(_) => metadata(address, partitions).into(),
        RequestBody::DescribeConfigs(_) => DescribeConfigsResponse::default().into(),
        RequestBody::DescribeLogDirs(asked) => {
            let row = DescribeLogDirsPartition { partition_size: 500, ..Default::default() };
            let topic =
                DescribeLogDirsTopic { name: "t".into(), partitions: vec![row], ..Default::default() };
            let topics = if asked.topics.is_none() { vec![topic] } else { Vec::new() };
            let dir =
                DescribeLogDirsResult { total_bytes: 100, usable_bytes: 40, topics, ..Default::default() };
            DescribeLogDirsResponse { results: vec![dir.clone(), dir], ..Default::default() }.into()
        }
        RequestBody::ListOffsets(asked) => {
            let partitions = asked.topics[0].partitions.iter().map(|row| ListOffsetsPartitionResponse {
                partition_index: row.partition_index,
                error_code: if row.partition_index == 2 { 6 } else { 0 },
                offset: 42,
                ..Default::default()
            });
            let topic = ListOffsetsTopicResponse {
                name: "t".into(),
                partitions: partitions.collect(),
                ..Default::default()
            };
            ListOffsetsResponse { topics: vec![topic], ..Default::default() }.into()
        }
        RequestBody::ListGroups(_) => {
            let row = |at: usize| ListedGroup {
                group_id: format!("g{at}").as_str().into(),
                group_state: "Empty".into(),
                ..Default::default()
            };
            ListGroupsResponse { groups: (0..GROUPS_MAX + 3).map(row).collect(), ..Default::default() }.into()
        }
        RequestBody::DescribeGroups(asked) => {
            let group = |name: &Str| barnabas_wire::messages::describe_groups_response::DescribedGroup {
                group_id: name.clone(),
                members: vec![Default::default()],
                ..Default::default()
            };
            let groups = asked.groups.iter().map(group).collect();
            barnabas_wire::messages::DescribeGroupsResponse { groups, ..Default::default() }.into()
        }
        other => panic!("{other:?}"),
    }
}

/// A look at two nodes of Kafka's, of which one does not answer, and the names of what the other was asked.
async fn look(views: &[View], partitions: i32) -> (Facts, Vec<String>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (heard, at) = (asked.clone(), Arc::new(Mutex::new(String::new())));
    let own = at.clone();
    let address = fake_broker(APIS, move |body| {
        let name = format!("{body:?}");
        let name = name.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default().to_owned();
        heard.lock().expect("unpoisoned").push(name);
        Some(answer(&body, &own.lock().expect("unpoisoned"), partitions))
    });
    let address = address.await;
    at.lock().expect("unpoisoned").clone_from(&address);
    let mut collector = Collector::new(Cluster::new(ClusterConfig::new(&address, "test")));
    let facts = collector.look(views).await.expect("a look");
    let asked = asked.lock().expect("unpoisoned").clone();
    (facts, asked)
}

#[tokio::test]
async fn view_asks_for_what_it_shows() {
    for (view, expected) in [
        (View::Nodes, vec!["Metadata", "DescribeConfigs", "DescribeLogDirs"]),
        (View::Topics, vec!["Metadata", "DescribeConfigs", "DescribeLogDirs", "ListOffsets"]),
        (View::Hotspots, vec!["Metadata", "DescribeConfigs"]),
    ] {
        assert_eq!(look(&[view], 3).await.1, expected, "{view:?}");
    }
}

#[tokio::test]
async fn node_that_does_not_answer_is_a_note() {
    let (facts, _) = look(&[View::Topics], 3).await;
    assert_eq!((facts.nodes[0].leaders, facts.nodes[1].out_of_sync), (2, 3));
    assert_eq!((facts.totals.under_replicated, facts.totals.leaderless), (3, 1));
    assert_eq!((facts.dirs[&1].total, !facts.dirs.contains_key(&2)), (200.0, true));
    assert_eq!(facts.sizes["t"], 1000.0);
    assert_eq!(facts.ends["t"], BTreeMap::from([(0, 42)]), "without the leaderless one and the refused one");
    assert_eq!(facts.notes.len(), 1);
    assert!(facts.notes[0].starts_with("node 2: "), "{:?}", facts.notes);
}

#[tokio::test]
async fn questions_are_bounded() {
    let (facts, asked) = look(&[View::Topics], PARTITIONS_MAX as i32 + 1).await;
    assert!(!asked.contains(&"ListOffsets".to_owned()) && facts.sizes.is_empty(), "{asked:?}");
    assert!(facts.notes.iter().any(|note| note.contains("20000 partitions")), "{:?}", facts.notes);
    let (facts, _) = look(&[View::Clients], 3).await;
    let described = facts.groups.iter().filter(|group| group.members.is_some()).count();
    assert_eq!((facts.groups.len(), described), (GROUPS_MAX + 3, GROUPS_MAX));
    assert!(facts.notes.iter().any(|note| note.contains("members of 3 of its groups")), "{:?}", facts.notes);
}
