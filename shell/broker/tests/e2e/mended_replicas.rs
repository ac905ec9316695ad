//! A byte changes in the only sealed segment of each replica, elsewhere on each of them: together they have everything,
//! and each is made whole with what the others have. Nothing is discarded.

use crate::harness::TestNode;
use crate::harness::replicas::{Cluster, append_patiently, eventually, leaders, signal};
use barnabas_base::TopicId;
use barnabas_wire::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::{CreateTopicsRequest, FetchRequest, ResponseBody};
use barnabas_wire::records::batches;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

const TOPIC: &str = "mended";
const SETTINGS: &str = "auto.leader.rebalance.enable=false\nlog.segment.bytes=2000000";
/// What the nodes say at WARN and ERROR: of the damage, and that they stop and start together.
const EXPECTED: &[&str] = &["corrupt", "in-sync replicas shrank", "below min.insync.replicas"];
const BATCHES: usize = 25;

fn create(cluster: &Cluster, nodes: &[i32], min_in_sync: usize) -> TopicId {
    let broker_ids = nodes.to_vec();
    let assignment = CreatableReplicaAssignment { partition_index: 0, broker_ids, ..Default::default() };
    let config = CreatableTopicConfig {
        name: "min.insync.replicas".into(),
        value: Some(min_in_sync.to_string().into()),
        ..Default::default()
    };
    let topic = CreatableTopic {
        name: TOPIC.into(),
        num_partitions: -1,
        replication_factor: -1,
        assignments: vec![assignment],
        configs: vec![config],
        ..Default::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 20_000, ..Default::default() };
    match cluster.client(1).call(request, 7) {
        ResponseBody::CreateTopics(response) => {
            assert_eq!(response.topics[0].error_code, 0, "{response:?}");
        }
        other => panic!("{other:?}"),
    }
    for node in cluster.nodes.values() {
        eventually("the topic is known", || leaders(&mut node.client(), TOPIC).len() == 1);
    }
    cluster.client(1).topic_id(TOPIC)
}

/// The names in partition 0's directory that end like this, in their order.
fn files(cluster: &Cluster, node: i32, suffix: &str) -> Vec<PathBuf> {
    let folder = cluster.nodes[&node].dir.path().join("data").join(format!("{TOPIC}-0"));
    let names = std::fs::read_dir(folder).expect("a folder").flatten();
    let mut paths: Vec<PathBuf> = names.map(|entry| entry.path()).collect();
    paths.retain(|path| path.to_str().is_some_and(|path| path.ends_with(suffix)));
    paths.sort();
    paths
}

fn bytes(cluster: &Cluster, node: i32) -> Vec<u8> {
    let segments = files(cluster, node, ".log");
    segments.iter().flat_map(|path| std::fs::read(path).expect("a segment")).collect()
}

fn flip(cluster: &Cluster, node: i32, position: u64) {
    let segment = &files(cluster, node, ".log")[0];
    let file = std::fs::File::options().read(true).write(true).open(segment).expect("a segment");
    let mut byte = [0];
    file.read_exact_at(&mut byte, position).expect("a byte");
    file.write_all_at(&[byte[0] ^ 0x55], position).expect("written");
}

/// Stops all nodes, and starts them all; `between` comes in between.
fn restart_all(cluster: &mut Cluster, between: impl FnOnce(&Cluster)) {
    cluster.nodes.values().for_each(|node| signal(node, "-TERM"));
    for node in cluster.nodes.values_mut() {
        assert!(node.wait().success(), "{}", node.log());
    }
    between(cluster);
    cluster.nodes.values_mut().for_each(TestNode::launch_unawaited);
    cluster.nodes.values_mut().for_each(TestNode::await_answer);
}

/// Damages the first segment at these nodes' positions.
fn mend_each_other(places: &[(i32, u64)]) {
    let nodes: Vec<i32> = places.iter().map(|(node, _)| *node).collect();
    mend(&nodes, places, 1);
}

fn mend(nodes: &[i32], places: &[(i32, u64)], min_in_sync: usize) {
    let mut cluster = Cluster::start_with(None, &["data"], SETTINGS);
    let topic = create(&cluster, nodes, min_in_sync);
    cluster.await_in_sync(TOPIC, nodes.len());
    let value = "x".repeat(99_000);
    (0..BATCHES).for_each(|_| append_patiently(&cluster, topic, 0, &value));
    // All of it is in segments.
    restart_all(&mut cluster, |_| ());
    cluster.await_in_sync(TOPIC, nodes.len());
    let whole = bytes(&cluster, nodes[0]);
    assert!(whole.len() > BATCHES * 99_000);
    restart_all(&mut cluster, |cluster| {
        for (node, position) in places {
            assert!(bytes(cluster, *node) == whole, "node {node} has other bytes");
            assert_eq!(files(cluster, *node, ".log").len(), 2);
            flip(cluster, *node, *position);
        }
    });
    for (node, _) in places {
        eventually("each is repaired", || cluster.nodes[node].log().contains("replica repaired: "));
        eventually("it is whole", || bytes(&cluster, *node) == whole);
        assert_eq!(files(&cluster, *node, ".deleted"), <[PathBuf; 0]>::default(), "nothing is discarded");
    }
    cluster.await_in_sync(TOPIC, nodes.len());
    append_patiently(&cluster, topic, 0, "behind it");
    let logs = |node: &i32| bytes(&cluster, *node);
    eventually("all have the same", || {
        let first = logs(&nodes[0]);
        first.starts_with(&whole) && nodes.iter().all(|node| logs(node) == first)
    });
    cluster.stop_expecting(EXPECTED);
}

#[test]
fn two_replicas_with_different_damage_are_mended() {
    mend_each_other(&[(1, 350_050), (2, 1_250_050)]);
}

/// The leader is damaged in front of what the other one lacks.
#[test]
fn damage_in_the_order_of_the_other_replica_is_mended() {
    mend_each_other(&[(2, 1_250_050), (1, 350_050)]);
}

#[test]
fn three_replicas_with_different_damage_are_mended() {
    mend_each_other(&[(1, 350_050), (2, 1_250_050), (3, 750_050)]);
}

/// A byte of the magic: nothing shows how long the batch is.
#[test]
fn replicas_with_unreadable_headers_are_mended() {
    // Each batch is as long as the first: the header of the eighth and of the third one.
    let len = 99_000 + 61 + 11;
    mend_each_other(&[(1, 7 * len + 16), (2, 2 * len + 16)]);
}

/// What a plain fetch from `offset` gets: the code, and the offset of the first batch.
fn fetch(cluster: &Cluster, node: i32, topic: TopicId, offset: i64) -> (i16, Option<i64>) {
    let partition = FetchPartition { fetch_offset: offset, partition_max_bytes: 1, ..Default::default() };
    let wanted = FetchTopic { topic_id: topic, partitions: vec![partition], ..Default::default() };
    let request =
        FetchRequest { max_bytes: 1 << 20, session_epoch: -1, topics: vec![wanted], ..Default::default() };
    let ResponseBody::Fetch(answer) = cluster.client(node).call(request, 17) else {
        panic!("another response")
    };
    let data = &answer.responses[0].partitions[0];
    let first = batches(data.records.clone().unwrap_or_default()).next();
    let offset = first.map(|batch| {
        let batch = batch.expect("a batch");
        batch.check_crc().expect("only sound batches are served");
        batch.header().base_offset.get()
    });
    (data.error_code, offset)
}

/// Nothing is left to repair the batch from: one line says so, and everything else is served.
#[test]
fn damage_on_every_replica_is_said_once_and_the_rest_served() {
    said_once(&[1, 2, 3], 1);
}

/// The last follower cannot leave the ISR, and asks beside its fetches.
#[test]
fn damage_on_both_required_replicas_is_one_error() {
    said_once(&[1, 2], 2);
}

#[test]
fn damage_on_three_replicas_two_required_is_one_error() {
    said_once(&[1, 2, 3], 2);
}

/// The ISR has both all the time, and the partition takes records.
#[test]
fn replica_that_must_stay_in_sync_is_mended() {
    mend(&[1, 2], &[(1, 350_050)], 2);
}

#[test]
fn both_replicas_that_must_stay_in_sync_are_mended() {
    mend(&[1, 2], &[(1, 350_050), (2, 1_250_050)], 2);
}

fn said_once(nodes: &[i32], min_in_sync: usize) {
    const LOST: &str = "no replica has a sound copy of the batch at offset 3";
    let mut cluster = Cluster::start_with(None, &["data"], SETTINGS);
    let topic = create(&cluster, nodes, min_in_sync);
    cluster.await_in_sync(TOPIC, nodes.len());
    let value = "x".repeat(99_000);
    (0..BATCHES).for_each(|_| append_patiently(&cluster, topic, 0, &value));
    restart_all(&mut cluster, |_| ());
    cluster.await_in_sync(TOPIC, nodes.len());
    restart_all(&mut cluster, |cluster| nodes.iter().for_each(|node| flip(cluster, *node, 350_050)));
    eventually("a node says so", || cluster.nodes.values().any(|node| node.log().contains(LOST)));
    let leader = leaders(&mut cluster.client(1), TOPIC)[&0];
    for offset in 0..BATCHES as i64 {
        let expected = if offset == 3 { (2, None) } else { (0, Some(offset)) };
        assert_eq!(fetch(&cluster, leader, topic, offset), expected, "{offset}");
    }
    // A restart finds the damage in the note.
    for id in nodes.iter().filter(|id| **id != leader) {
        let noted = cluster.nodes[id].dir.path().join("data").join("barnabas-scrub");
        eventually("it is noted", || {
            std::fs::read_to_string(&noted).is_ok_and(|text| text.contains(&format!("damaged {TOPIC}-0")))
        });
    }
    let said: usize = cluster.nodes.values().map(|node| node.log().matches(LOST).count()).sum();
    assert_eq!(said, 1, "once");
    for id in nodes {
        let log = cluster.nodes[id].log();
        assert!(log.matches(LOST).count() <= 1, "{log}");
        for line in log.lines().filter(|line| line.contains(LOST)) {
            let named = [" ERROR ", "partition=mended-0", &format!("replicas={nodes:?}")];
            assert!(named.iter().all(|words| line.contains(words)), "{line}");
        }
        // What is wrong is named before what is done about it.
        let at = |words: &str| log.find(words).unwrap_or_else(|| panic!("{words} is missing: {log}"));
        assert!(at("corruption found") < at("is corrupt from offset 3"), "{log}");
        // No line says that the leader is repaired from the leader.
        let wrong = format!("broker={id} leader={id}");
        let is_wrong = |line: &str| line.contains(&wrong) && !line.contains("this broker leads");
        assert!(!log.lines().any(is_wrong), "{log}");
        assert_eq!(files(&cluster, *id, ".deleted"), <[PathBuf; 0]>::default(), "nothing is discarded");
    }
    cluster.stop_expecting(&["corrupt", "in-sync replicas shrank", "below min.insync.replicas", LOST]);
}
