//! A log that cannot be opened is an offline replica: the metrics that operators watch show it, the log names it once
//! with what to do, DescribeLogDirs leaves it out as Kafka's does, and what the log advises helps.

use crate::harness::quorum::{create, eventually, metadata, prepared, random_uuid, until};
use crate::harness::replicas::append;
use crate::harness::{TestNode, free_port, metric};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::{DescribeLogDirsRequest, FetchRequest, ResponseBody};
use std::collections::BTreeMap;

const TOPIC: &str = "t";
const STORAGE_ERROR: i16 = 56;
const LEADER_NOT_AVAILABLE: i16 = 5;
const OFFLINE: &str = "kafka_server_replicamanager_offlinereplicacount";

struct Node {
    node: TestNode,
    metrics: u16,
}

impl Node {
    fn metric(&self, name: &str) -> Option<f64> {
        metric(self.metrics, name)
    }

    fn await_metric(&self, name: &str, value: f64) {
        eventually(&format!("{name} is {value}"), || self.metric(name) == Some(value));
    }

    /// The partitions of the topic that it shows in its log directory.
    fn described(&self) -> Vec<i32> {
        let request = DescribeLogDirsRequest { topics: None, ..Default::default() };
        let ResponseBody::DescribeLogDirs(response) = self.node.client().call(request, 4) else {
            panic!("another response")
        };
        assert_eq!(response.results[0].error_code, 0, "the directory itself is sound");
        let topics = response.results.iter().flat_map(|directory| &directory.topics);
        let partitions = topics.filter(|topic| topic.name == TOPIC).flat_map(|topic| &topic.partitions);
        partitions.map(|partition| partition.partition_index).collect()
    }

    /// Stops it, removes the only segment of partition 0, and starts it again.
    fn lose_segment(&mut self) {
        assert!(self.node.stop_expecting_trouble().success());
        let segment = self.node.data().join(format!("{TOPIC}-0")).join("00000000000000000000.log");
        std::fs::remove_file(segment).expect("a segment");
        self.node.launch();
    }

    /// Stops it, raises the base offset of the last of three equal batches of partition 0, and starts it again.
    fn damage_last_batch(&mut self) {
        assert!(self.node.stop_expecting_trouble().success());
        let segment = self.node.data().join(format!("{TOPIC}-0")).join("00000000000000000000.log");
        let mut bytes = std::fs::read(&segment).expect("a segment");
        // "three" is two bytes longer than the others.
        let last = bytes.len() - (bytes.len() - 2) / 3 - 2;
        bytes[last + 7] += 1;
        std::fs::write(&segment, bytes).expect("written");
        self.node.launch();
    }

    /// What was logged of a log that cannot be opened: once, with names in the place of placeholders.
    fn named_once(&self) -> String {
        let log = self.node.log();
        let mut lines = log.lines().filter(|line| line.contains("cannot be opened and stays offline"));
        let line = lines.next().expect("a line").to_owned();
        assert_eq!(lines.next(), None);
        let advice =
            format!("create an empty file barnabas-abandon-{TOPIC}-0 in {}", self.node.data().display());
        assert!(line.contains(&advice), "{line}");
        assert!(!line.contains("TOPIC-PARTITION"), "{line}");
        line
    }

    /// Does what the line advises.
    fn abandon(&mut self) {
        assert!(self.node.stop_expecting_trouble().success());
        std::fs::write(self.node.data().join(format!("barnabas-abandon-{TOPIC}-0")), "").expect("written");
        self.node.launch();
    }
}

/// So many nodes, and a topic of one partition with a replica on each.
fn start(count: i32) -> BTreeMap<i32, Node> {
    let id = random_uuid();
    let ports: Vec<(i32, u16, u16)> = (1..=count).map(|node| (node, free_port(), free_port())).collect();
    let voters: Vec<String> =
        ports.iter().map(|(node, _, port)| format!("{node}@127.0.0.1:{port}")).collect();
    let node = |(id_of, port, controller): (i32, u16, u16), metrics: u16| {
        let more = format!(
            "controller.quorum.voters={}\nmetrics.listener=127.0.0.1:{metrics}\nreplica.lag.time.max.ms=3000",
            voters.join(",")
        );
        let node = prepared(None, id_of, "broker,controller", (port, controller), &id, &more, &[]);
        (id_of, Node { node, metrics })
    };
    let mut nodes: BTreeMap<i32, Node> = ports.into_iter().map(|ports| node(ports, free_port())).collect();
    nodes.values_mut().for_each(|node| node.node.launch_unawaited());
    nodes.values_mut().for_each(|node| node.node.await_answer());
    for node in nodes.values() {
        eventually("all brokers", || metadata(&mut node.node.client()).brokers.len() == count as usize);
    }
    assert_eq!(create(&mut nodes[&1].node.client(), 7, TOPIC, 1, count as i16), 0);
    nodes
}

/// The leader and the ISR of partition 0, as `node` knows them.
fn state(node: &Node) -> Option<(i32, Vec<i32>)> {
    let known = metadata(&mut node.node.client());
    let topic = known.topics.iter().find(|topic| topic.name.as_deref() == Some(TOPIC))?;
    let row = topic.partitions.first().filter(|row| row.leader_id >= 0)?;
    Some((row.leader_id, row.isr_nodes.clone()))
}

/// Error, leader and offline replicas of partition 0 in Metadata.
fn described(node: &Node) -> (i16, i32, Vec<i32>) {
    let known = metadata(&mut node.node.client());
    let topic = known.topics.iter().find(|topic| topic.name.as_deref() == Some(TOPIC)).expect("the topic");
    let row = &topic.partitions[0];
    (row.error_code, row.leader_id, row.offline_replicas.clone())
}

fn write(nodes: &BTreeMap<i32, Node>) {
    let topic = nodes[&1].node.client().topic_id(TOPIC);
    for value in ["one", "two", "three"] {
        until("an acknowledgement", || {
            let (leader, _) = state(&nodes[&1])?;
            append(&mut nodes[&leader].node.client(), topic, 0, value)?.ok()
        });
    }
}

/// The look through what changed meets the damage before a client asks for the partition.
#[test]
fn damage_that_keeps_the_only_replica_closed_is_named_once() {
    let mut nodes = start(1);
    write(&nodes);
    let node = nodes.get_mut(&1).expect("a node");
    node.damage_last_batch();
    node.await_metric(OFFLINE, 1.0);
    let topic = node.node.client().topic_id(TOPIC);
    let partitions = vec![FetchPartition { partition_max_bytes: 1 << 20, ..FetchPartition::default() }];
    let topics = vec![FetchTopic { topic_id: topic, partitions, ..FetchTopic::default() }];
    let request =
        FetchRequest { replica_id: -1, session_epoch: -1, max_bytes: 1 << 20, topics, ..Default::default() };
    let ResponseBody::Fetch(response) = node.node.client().call(request, 13) else {
        panic!("another response")
    };
    assert_eq!(response.responses[0].partitions[0].error_code, STORAGE_ERROR);
    // As Kafka's partition whose only replica lies in a log directory that has failed.
    assert_eq!(described(node), (LEADER_NOT_AVAILABLE, -1, vec![1]));
    assert!(node.node.stop_expecting_trouble().success());
    node.named_once();
    assert!(!node.node.log().contains("corruption found"), "{}", node.node.log());
}

#[test]
fn follower_that_cannot_be_opened_is_counted_and_named() {
    let mut nodes = start(3);
    eventually("all are in sync", || state(&nodes[&1]).is_some_and(|(_, isr)| isr.len() == 3));
    write(&nodes);
    let (leader, _) = state(&nodes[&1]).expect("a leader");
    let broken = 1 + leader % 3;
    nodes.get_mut(&broken).expect("a node").lose_segment();

    let node = &nodes[&broken];
    node.await_metric(OFFLINE, 1.0);
    node.await_metric("barnabas_damage_found_total", 1.0);
    node.await_metric("barnabas_partitions_leadership_impaired", 1.0);
    assert!(node.named_once().contains("the replica is then fetched from its leader"));
    assert_eq!((node.described(), nodes[&leader].described()), (vec![], vec![0]));
    nodes[&leader].await_metric(OFFLINE, 0.0);
    let (leads, isr) = state(&nodes[&leader]).expect("a leader");
    assert!(leads != broken && !isr.contains(&broken), "{isr:?}");

    nodes.get_mut(&broken).expect("a node").abandon();
    eventually("it is copied", || state(&nodes[&leader]).is_some_and(|(_, isr)| isr.len() == 3));
    nodes[&broken].await_metric(OFFLINE, 0.0);
    assert_eq!(nodes[&broken].described(), [0]);
    for node in nodes.values_mut() {
        assert!(node.node.stop_expecting_trouble().success());
    }
}

#[test]
fn damaged_metadata_log_is_not_to_be_abandoned() {
    let mut nodes = start(1);
    write(&nodes);
    let node = &mut nodes.get_mut(&1).expect("a node").node;
    assert!(node.stop().success());
    let log = node.data().join("__cluster_metadata-0").join("00000000000000000000.log");
    let mut bytes = std::fs::read(&log).expect("a metadata log");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&log, bytes).expect("written");
    node.launch_unawaited();
    assert!(!node.wait().success());
    let said = node.log();
    assert!(said.contains("is damaged at byte") && said.contains("restore it from a backup"), "{said}");
    assert!(!said.contains("barnabas-abandon"), "{said}");
}

#[test]
fn only_replica_that_cannot_be_opened_is_counted_and_named() {
    let mut nodes = start(1);
    write(&nodes);
    let node = nodes.get_mut(&1).expect("a node");
    let topic = node.node.client().topic_id(TOPIC);
    node.lose_segment();
    // Before anybody asks for it.
    node.await_metric(OFFLINE, 1.0);
    let wanted = FetchPartition { partition_max_bytes: 1 << 20, ..Default::default() };
    let wanted = FetchTopic { topic_id: topic, partitions: vec![wanted], ..Default::default() };
    let request =
        FetchRequest { max_bytes: 1 << 20, session_epoch: -1, topics: vec![wanted], ..Default::default() };
    let ResponseBody::Fetch(response) = node.node.client().call(request, 17) else {
        panic!("another response")
    };
    assert_eq!(response.responses[0].partitions[0].error_code, STORAGE_ERROR);
    node.await_metric("barnabas_damage_found_total", 1.0);
    assert!(node.named_once().contains("no other broker has a replica"));
    assert!(node.described().is_empty());

    node.abandon();
    write(&nodes);
    nodes[&1].await_metric(OFFLINE, 0.0);
    assert_eq!(nodes[&1].described(), [0]);
}
