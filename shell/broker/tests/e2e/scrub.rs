//! Bytes of a cold segment change while the node runs and no client reads it: the scrub logs the place, the damage
//! is never served, and the records around it are.

use crate::harness::patience::eventually;
use crate::harness::{Client, TestNode, batch};
use barnabas_base::ErrorCode;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{FetchRequest, ProduceRequest, ResponseBody};
use barnabas_wire::records::batches;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant, SystemTime};

const TOPIC: &str = "cold";

fn produce(client: &mut Client, value: &str) {
    let data = PartitionProduceData { records: Some(batch(&[value])), ..Default::default() };
    let topic = TopicProduceData { name: TOPIC.into(), partition_data: vec![data], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() };
    let ResponseBody::Produce(answer) = client.call(request, 9) else { panic!("another response") };
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
}

/// The code, and the offsets of what came with it.
fn fetch(client: &mut Client, from: i64) -> (ErrorCode, Vec<i64>) {
    let partition = FetchPartition { fetch_offset: from, partition_max_bytes: 1 << 20, ..Default::default() };
    let topic = FetchTopic { topic: TOPIC.into(), partitions: vec![partition], ..Default::default() };
    let request = FetchRequest {
        replica_id: -1,
        max_bytes: 1 << 20,
        topics: vec![topic],
        session_epoch: -1,
        ..Default::default()
    };
    let ResponseBody::Fetch(answer) = client.call(request, 12) else { panic!("another response") };
    let partition = &answer.responses[0].partitions[0];
    let sound = batches(partition.records.clone().unwrap_or_default()).map(|batch| {
        let batch = batch.expect("a batch");
        batch.check_crc().expect("only sound batches are served");
        batch.header().base_offset.get()
    });
    (ErrorCode::from_code(partition.error_code), sound.collect())
}

#[test]
fn damage_in_a_cold_segment_is_found_named_and_never_served() {
    let mut node = TestNode::start_with(&["log.scrub.interval.ms=1000"]);
    let mut client = node.client();
    client.create_topic(TOPIC, 1, &[("internal.segment.bytes", "4000")]);
    let value = "x".repeat(900);
    (0..12).for_each(|_| produce(&mut client, &value));
    // Written back into segments, and out of memory.
    assert!(node.stop().success());
    node.launch();
    let mut client = node.client();
    assert_eq!(fetch(&mut client, 0).1.first(), Some(&0));

    let segment = node.data().join("cold-0").join("00000000000000000000.log");
    let file = std::fs::File::options().write(true).open(segment).expect("a segment");
    let batch_bytes = 61 + 7 + 900 + 4;
    file.write_all_at(b"!", batch_bytes + batch_bytes / 2).expect("damages the second batch");
    let begun = Instant::now();
    while !node.log().contains("corruption found") {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", node.log());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(node.log().contains("cold-0/00000000000000000000.log is damaged at byte"), "{}", node.log());
    // From the moment it is named.
    assert_eq!(fetch(&mut client, 1), (ErrorCode::CorruptMessage, vec![]));
    assert_eq!(fetch(&mut client, 0), (ErrorCode::None, vec![0]));
    assert_eq!(fetch(&mut client, 2).1.first(), Some(&2));
    assert_eq!(node.log().matches("corruption found").count(), 1, "named once");
    assert!(node.stop_expecting_trouble().success());
}

#[test]
fn start_names_segments_changed_while_stopped_and_no_others() {
    const CHANGED: &str = "segments changed while the node was stopped";
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic(TOPIC, 2, &[]);
    produce(&mut client, "a");
    assert!(node.stop().success());
    // Every start appends to the metadata log.
    node.launch();
    assert!(node.stop().success());
    let segment = node.data().join(format!("{TOPIC}-0")).join("00000000000000000000.log");
    let file = std::fs::File::options().write(true).open(segment).expect("a segment");
    file.set_modified(SystemTime::now()).expect("a new modification time");
    node.launch();
    eventually("the changed segment is named", || node.log().contains(CHANGED));
    assert!(node.stop().success());
    let lines: Vec<_> = node.log().lines().filter(|line| line.contains(CHANGED)).map(str::to_owned).collect();
    assert!(lines.len() == 1 && lines[0].contains("partitions=1"), "{lines:#?}");
}
