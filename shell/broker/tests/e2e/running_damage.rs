//! A byte changes in a segment that consumers have read before, while its node runs, with no scrub and no restart: the
//! next readers find it, the log names it once, and where other replicas have the batch the replica is repaired.

use crate::harness::replicas::{
    Cluster, append_patiently, eventually, leaders, look_up, metadata, signal, until,
};
use crate::harness::{Client, TestNode, batch};
use barnabas_base::{ErrorCode, TopicId};
use barnabas_wire::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use barnabas_wire::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{
    AlterPartitionReassignmentsRequest, CreateTopicsRequest, FetchRequest, ProduceRequest, ResponseBody,
};
use barnabas_wire::records::batches;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const TOPIC: &str = "running";
/// Nothing but readers finds damage.
const NO_SCRUB: &str = "log.scrub.bytes.per.second=0";
const FOUND: &str = "corruption found";
const RECORDS: i64 = 25;
const VALUE_BYTES: usize = 99_000;
/// Each batch is as long as the first.
const BATCH_BYTES: u64 = VALUE_BYTES as u64 + 61 + 11;
/// In the value of this record.
const DAMAGED: i64 = 4;
const POSITION: u64 = DAMAGED as u64 * BATCH_BYTES + 5000;

fn flip(segment: &Path) {
    let file = std::fs::File::options().read(true).write(true).open(segment).expect("a segment");
    let mut byte = [0];
    file.read_exact_at(&mut byte, POSITION).expect("a byte");
    file.write_all_at(&[byte[0] ^ 0x55], POSITION).expect("written");
}

/// What a plain fetch gets: the code, and the offset behind the last sound batch.
#[derive(Debug, PartialEq, Eq)]
enum Fetched {
    Refused(ErrorCode),
    UpTo(i64),
    /// The first batch is not what was written.
    WrongChecksum,
}

/// `topic`: the id, or nothing where the name is asked for.
fn fetch(client: &mut Client, topic: Option<TopicId>, from: i64) -> Fetched {
    let wanted = FetchPartition { fetch_offset: from, partition_max_bytes: 300_000, ..Default::default() };
    let wanted = FetchTopic {
        topic: TOPIC.into(),
        topic_id: topic.unwrap_or_default(),
        partitions: vec![wanted],
        ..Default::default()
    };
    let request = FetchRequest {
        replica_id: -1,
        max_bytes: 1 << 20,
        session_epoch: -1,
        topics: vec![wanted],
        ..Default::default()
    };
    let version = if topic.is_some() { 17 } else { 12 };
    let ResponseBody::Fetch(answer) = client.call(request, version) else { panic!("another response") };
    let data = &answer.responses[0].partitions[0];
    if data.error_code != 0 {
        return Fetched::Refused(ErrorCode::from_code(data.error_code));
    }
    let mut next = from;
    for batch in batches(data.records.clone().unwrap_or_default()) {
        let batch = batch.expect("a batch");
        match batch.check_crc() {
            Ok(_) => next = batch.header().next_offset().get(),
            Err(_) if next == from => return Fetched::WrongChecksum,
            Err(_) => break,
        }
    }
    Fetched::UpTo(next)
}

/// As a consumer does that tries again: reads up to the end, and asks another leader where there is one.
fn consume(cluster: &Cluster, topic: TopicId) {
    let mut from = 0;
    until("all records", || {
        let (leader, _) = look_up(&cluster.ports(), topic, 0)?;
        let mut client = Client::try_connect(cluster.ports()[&leader]).ok()?;
        while let Fetched::UpTo(next) = fetch(&mut client, Some(topic), from)
            && next > from
        {
            from = next;
        }
        (from == RECORDS).then_some(())
    });
}

fn create(cluster: &Cluster, nodes: &[i32]) -> TopicId {
    let broker_ids = nodes.to_vec();
    let assignment = CreatableReplicaAssignment { partition_index: 0, broker_ids, ..Default::default() };
    let value = Some("1".into());
    let config = CreatableTopicConfig { name: "min.insync.replicas".into(), value, ..Default::default() };
    let topic = CreatableTopic {
        name: TOPIC.into(),
        num_partitions: -1,
        replication_factor: -1,
        assignments: vec![assignment],
        configs: vec![config],
        ..Default::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 20_000, ..Default::default() };
    let ResponseBody::CreateTopics(answer) = cluster.client(1).call(request, 7) else {
        panic!("another response")
    };
    assert_eq!(answer.topics[0].error_code, 0, "{answer:?}");
    for node in cluster.nodes.values() {
        eventually("the topic is known", || leaders(&mut node.client(), TOPIC).len() == 1);
    }
    cluster.client(1).topic_id(TOPIC)
}

/// Partition 0 is to be on node 2 besides.
fn add_replica(cluster: &Cluster) {
    let partition = ReassignablePartition { replicas: Some(vec![1, 2]), ..Default::default() };
    let wanted = ReassignableTopic { name: TOPIC.into(), partitions: vec![partition], ..Default::default() };
    let request = AlterPartitionReassignmentsRequest {
        timeout_ms: 20_000,
        allow_replication_factor_change: true,
        topics: vec![wanted],
        ..Default::default()
    };
    let ResponseBody::AlterPartitionReassignments(answer) = cluster.client(1).call(request, 1) else {
        panic!("another response")
    };
    assert_eq!(answer.responses[0].partitions[0].error_code, 0, "{answer:?}");
}

fn segment(cluster: &Cluster, node: i32) -> PathBuf {
    let data = cluster.nodes[&node].dir.path().join("data");
    data.join(format!("{TOPIC}-0")).join("00000000000000000000.log")
}

/// A partition on these nodes, all of which is in segments alone and was consumed; and who leads it.
fn consumed(nodes: &[i32]) -> (Cluster, TopicId, i32) {
    let settings = format!("auto.leader.rebalance.enable=false\nlog.segment.bytes=1048576\n{NO_SCRUB}");
    let mut cluster = Cluster::start_with(None, &["data"], &settings);
    let topic = create(&cluster, nodes);
    cluster.await_in_sync(TOPIC, nodes.len());
    let value = "x".repeat(VALUE_BYTES);
    (0..RECORDS).for_each(|_| append_patiently(&cluster, topic, 0, &value));
    cluster.nodes.values().for_each(|node| signal(node, "-TERM"));
    for node in cluster.nodes.values_mut() {
        assert!(node.wait().success(), "{}", node.log());
    }
    cluster.nodes.values_mut().for_each(TestNode::launch_unawaited);
    cluster.nodes.values_mut().for_each(TestNode::await_answer);
    cluster.await_in_sync(TOPIC, nodes.len());
    consume(&cluster, topic);
    let leader = leaders(&mut cluster.client(1), TOPIC)[&0];
    (cluster, topic, leader)
}

/// What the nodes say at WARN and ERROR: of the damage, and that they stop and start together.
const EXPECTED: &[&str] = &["corrupt", "in-sync replicas shrank", "below min.insync.replicas"];

fn leader_is_repaired(nodes: &[i32]) {
    let (cluster, topic, leader) = consumed(nodes);
    let whole = std::fs::read(segment(&cluster, leader)).expect("a segment");
    flip(&segment(&cluster, leader));
    let log = || cluster.nodes[&leader].log();
    eventually("a consumer finds the damage", || {
        consume(&cluster, topic);
        log().contains(FOUND)
    });
    eventually("it is repaired", || log().contains("replica repaired: "));
    assert!(std::fs::read(segment(&cluster, leader)).expect("a segment") == whole);
    cluster.await_in_sync(TOPIC, nodes.len());
    consume(&cluster, topic);
    let text = log();
    let named: Vec<&str> = text.lines().filter(|line| line.contains(FOUND)).collect();
    let place = format!(
        "{} is damaged at byte {}",
        segment(&cluster, leader).display(),
        DAMAGED as u64 * BATCH_BYTES
    );
    let is_right = |line: &&str| {
        line.contains(" ERROR ") && line.contains(&place) && line.contains(&format!("(offset {DAMAGED})"))
    };
    assert!(named.len() == 1 && named.iter().all(is_right), "{named:#?}");
    cluster.stop_expecting(EXPECTED);
}

#[test]
fn leader_damaged_after_a_read_is_repaired_by_two_others() {
    leader_is_repaired(&[1, 2, 3]);
}

#[test]
fn leader_damaged_after_a_read_is_repaired_by_one_other() {
    leader_is_repaired(&[2, 1]);
}

/// The follower refuses what it gets: its leader learns of that as it asks again.
#[test]
fn leader_names_what_a_new_follower_refuses() {
    let (cluster, topic, leader) = consumed(&[1]);
    flip(&segment(&cluster, leader));
    add_replica(&cluster);
    let log = || cluster.nodes[&leader].log();
    eventually("the leader names it", || log().contains(FOUND));
    let is_refused = |client: &mut Client| fetch(client, Some(topic), DAMAGED);
    assert_eq!(is_refused(&mut cluster.client(leader)), Fetched::Refused(ErrorCode::CorruptMessage));
    // There is no sound copy: what is around it is served, and the new replica waits.
    assert_eq!(fetch(&mut cluster.client(leader), Some(topic), 0), Fetched::UpTo(3));
    assert_eq!(fetch(&mut cluster.client(leader), Some(topic), DAMAGED + 1), Fetched::UpTo(DAMAGED + 4));
    let row = metadata(&mut cluster.client(leader));
    let row = row.topics.iter().find(|known| known.name.as_deref() == Some(TOPIC)).expect("the topic");
    assert_eq!(row.partitions[0].isr_nodes, [1]);
    const LOST: &str = "no replica has a sound copy of the batch at offset 4";
    eventually("no other replica has it", || log().contains(LOST));
    cluster.stop_expecting(&["corrupt", "in-sync replicas shrank", "below min.insync.replicas", LOST]);
}

#[test]
fn damage_of_the_only_replica_is_named_once_and_the_rest_served() {
    let mut node = TestNode::start_with(&[NO_SCRUB]);
    let mut client = node.client();
    client.create_topic(TOPIC, 1, &[("segment.bytes", "1048576")]);
    for _ in 0..RECORDS {
        let records = Some(batch(&[&"x".repeat(VALUE_BYTES)]));
        let data = PartitionProduceData { records, ..Default::default() };
        let topic = TopicProduceData { name: TOPIC.into(), partition_data: vec![data], ..Default::default() };
        let request =
            ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() };
        let ResponseBody::Produce(answer) = client.call(request, 9) else { panic!("another response") };
        assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    }
    assert!(node.stop().success());
    node.launch();
    let mut client = node.client();
    let all = |client: &mut Client| {
        let mut from = 0;
        while let Fetched::UpTo(next) = fetch(client, None, from)
            && next > from
        {
            from = next;
        }
        from
    };
    assert_eq!(all(&mut client), RECORDS);
    let segment = node.data().join(format!("{TOPIC}-0")).join("00000000000000000000.log");
    flip(&segment);
    let refused = Fetched::Refused(ErrorCode::CorruptMessage);
    eventually("the damage is found", || fetch(&mut client, None, DAMAGED) == refused);
    // A consumer that loops.
    for _ in 0..20 {
        assert_eq!(fetch(&mut client, None, DAMAGED), refused);
    }
    assert_eq!(all(&mut client), DAMAGED);
    for from in DAMAGED + 1..RECORDS {
        assert!(matches!(fetch(&mut client, None, from), Fetched::UpTo(next) if next > from), "{from}");
    }
    let log = node.log();
    let named: Vec<&str> = log.lines().filter(|line| line.contains(FOUND)).collect();
    let place = format!("{} is damaged at byte {}", segment.display(), DAMAGED as u64 * BATCH_BYTES);
    let [line] = named[..] else { panic!("{named:#?}") };
    assert!(line.contains(" ERROR ") && line.contains(&place) && line.contains("(offset 4)"), "{line}");
    assert!(node.stop_expecting_trouble().success());
}
