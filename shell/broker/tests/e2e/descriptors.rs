//! A node with few descriptors: any number of partitions is written, killed, read back; connections that are too many
//! are turned away, and nothing else comes of it.

use crate::harness::{Client, TestNode, batch};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{ApiVersionsRequest, FetchRequest, ProduceRequest, ResponseBody};
use std::time::{Duration, Instant};

const PARTITIONS: i32 = 1500;
/// Less than what one worker's round of so many partitions has to hold open where nothing bounds it.
const LIMIT: usize = 256;

fn produce_everywhere(client: &mut Client, value: &str) {
    // Several requests, so that rounds follow one another.
    for part in (0..PARTITIONS).collect::<Vec<_>>().chunks(300) {
        let data = part.iter().map(|&index| PartitionProduceData {
            index,
            records: Some(batch(&[&format!("{index} {value}")])),
            ..Default::default()
        });
        let topic =
            TopicProduceData { name: "wide".into(), partition_data: data.collect(), ..Default::default() };
        let request =
            ProduceRequest { acks: -1, timeout_ms: 30_000, topic_data: vec![topic], ..Default::default() };
        let ResponseBody::Produce(response) = client.call(request, 9) else { panic!("another response") };
        let refused: Vec<_> = response.responses[0]
            .partition_responses
            .iter()
            .filter(|answer| answer.error_code != 0)
            .map(|answer| (answer.index, answer.error_code))
            .collect();
        assert!(refused.is_empty(), "{} refused, first {:?}", refused.len(), refused[0]);
    }
}

/// Bytes of records in each partition.
fn read_everywhere(client: &mut Client) -> Vec<usize> {
    let mut found = vec![0; PARTITIONS as usize];
    for part in (0..PARTITIONS).collect::<Vec<_>>().chunks(300) {
        let wanted = part.iter().map(|&partition| FetchPartition {
            partition,
            partition_max_bytes: 1 << 20,
            ..Default::default()
        });
        let topic = FetchTopic { topic: "wide".into(), partitions: wanted.collect(), ..Default::default() };
        let request = FetchRequest {
            replica_id: -1,
            max_wait_ms: 0,
            max_bytes: 50 << 20,
            topics: vec![topic],
            session_epoch: -1,
            ..Default::default()
        };
        let ResponseBody::Fetch(response) = client.call(request, 12) else { panic!("another response") };
        for answer in &response.responses[0].partitions {
            assert_eq!(answer.error_code, 0, "{}", answer.partition_index);
            found[answer.partition_index as usize] =
                answer.records.as_ref().map_or(0, |records| records.len());
        }
    }
    found
}

fn open_descriptors(node: &TestNode) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", node.pid())).expect("proc").count()
}

fn survives(overrides: &[&str]) {
    let mut node = TestNode::start_limited(Some(&format!("ulimit -n {LIMIT}")), overrides);
    let mut client = node.client();
    client.create_topic("wide", PARTITIONS, &[]);
    let mut most = 0;
    for round in 0..4 {
        produce_everywhere(&mut client, &round.to_string());
        most = most.max(open_descriptors(&node));
    }
    assert!(most < LIMIT, "{most}");
    let before = read_everywhere(&mut client);
    assert!(before.iter().all(|bytes| *bytes >= 4 * 60), "{:?}", &before[..5]);
    node.kill();
    node.launch();
    let mut client = node.client();
    assert_eq!(read_everywhere(&mut client), before);
    produce_everywhere(&mut client, "after");
    assert!(node.stop().success());
    // And after a clean stop.
    node.launch();
    let after = read_everywhere(&mut node.client());
    assert!(after.iter().zip(&before).all(|(after, before)| after > before));
    assert!(node.stop().success());
}

#[test]
fn many_partitions_with_few_descriptors() {
    survives(&[]);
}

#[test]
fn many_partitions_with_few_descriptors_and_no_journal() {
    survives(&["log.ack.durability=written"]);
}

#[test]
fn many_partitions_with_few_descriptors_written_straight_into_segments() {
    survives(&["log.journal.append.bytes.max=0"]);
}

#[test]
fn a_small_ring_and_the_fewest_files() {
    survives(&["log.journal.bytes=12582912", "log.open.files.max=64"]);
}

/// Error code and whether it was answered at all.
fn produce_one(client: &mut Client, partition: i32) -> i16 {
    let data = PartitionProduceData { index: partition, records: Some(batch(&["x"])), ..Default::default() };
    let topic = TopicProduceData { name: "wide".into(), partition_data: vec![data], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() };
    let ResponseBody::Produce(response) = client.call(request, 9) else { panic!("another response") };
    response.responses[0].partition_responses[0].error_code
}

/// The soft limit, from outside, while the node runs.
fn limit(node: &TestNode, files: usize) {
    let files = format!("--nofile={files}:");
    let set = std::process::Command::new("prlimit").args(["--pid", &node.pid().to_string(), &files]).status();
    assert!(set.expect("prlimit").success());
}

/// Nothing that is opened then is the disk's fault: what cannot be done is refused, and the directory stays.
fn goes_on_after_a_while_without(overrides: &[&str]) {
    let mut node = TestNode::start_limited(Some("ulimit -n 1024"), overrides);
    let mut client = node.client();
    client.create_topic("wide", PARTITIONS, &[]);
    assert_eq!(produce_one(&mut client, 0), 0);
    limit(&node, 10);
    let codes: Vec<i16> = (0..40).map(|partition| produce_one(&mut client, partition)).collect();
    assert!(codes.iter().all(|code| matches!(code, 0 | 56)), "{codes:?}");
    // Retention, checkpoints and the watch over directories come by meanwhile.
    std::thread::sleep(Duration::from_secs(3));
    limit(&node, 1024);
    for partition in 0..100 {
        let begun = Instant::now();
        while produce_one(&mut client, partition) != 0 {
            assert!(begun.elapsed() < Duration::from_secs(10), "{partition}");
        }
    }
    let before = read_everywhere(&mut client);
    assert!(before[..100].iter().all(|bytes| *bytes > 0));
    node.kill();
    node.launch();
    assert_eq!(read_everywhere(&mut node.client()), before);
    let log = node.log();
    assert!(!log.contains("offline"), "{log}");
    assert!(node.stop_expecting_trouble().success());
}

#[test]
fn a_while_without_descriptors_is_survived() {
    goes_on_after_a_while_without(&[]);
}

#[test]
fn a_while_without_descriptors_is_survived_without_a_journal() {
    goes_on_after_a_while_without(&["log.ack.durability=written"]);
}

#[test]
fn a_while_without_descriptors_is_survived_straight_into_segments() {
    goes_on_after_a_while_without(&["log.journal.append.bytes.max=0"]);
}

#[test]
fn connections_beyond_the_limit_are_closed_and_the_others_go_on() {
    let mut node = TestNode::start_limited(Some(&format!("ulimit -n {LIMIT}")), &[]);
    let mut first = node.client();
    first.create_topic("t", 1, &[]);
    // Some are accepted and closed at once, all others stay open.
    let mut others: Vec<Client> =
        (0..2 * LIMIT).filter_map(|_| Client::try_connect(node.port).ok()).collect();
    assert!(first.try_call(ApiVersionsRequest::default(), 0).is_some());
    assert!(others.last_mut().expect("connected").is_closed());
    first.create_topic("u", 1, &[]);
    drop(others);
    let begun = Instant::now();
    let is_served = || {
        Client::try_connect(node.port)
            .is_ok_and(|mut client| client.try_call(ApiVersionsRequest::default(), 0).is_some())
    };
    while !is_served() {
        assert!(begun.elapsed() < Duration::from_secs(10), "no connection is accepted any more");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(node.stop().success());
}

#[test]
fn a_limit_that_is_too_low_is_named_at_the_start() {
    let mut node = TestNode::new(Some("ulimit -n 40"), &[]);
    node.launch_unawaited();
    let status = node.wait();
    assert!(!status.success());
    let log = node.log();
    assert!(log.contains("ulimit -n") && log.contains("LimitNOFILE"), "{log}");
}
