//! Records that cost more to read than to send, and records that cannot be read: their sender waits for them or is
//! refused; other clients are served meanwhile, and nothing is called damage that a client wrote.

use crate::groups::{find_coordinator, find_coordinator_of};
use crate::harness::{TestNode, batch, now_ms};
use barnabas_base::{Offset, TimestampMs};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::offset_fetch_request::OffsetFetchRequestTopic;
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{
    FetchRequest, ListOffsetsRequest, OffsetCommitRequest, OffsetFetchRequest, ProduceRequest, ResponseBody,
};
use barnabas_wire::records::{BatchBuilder, BatchOptions, Codec, Compression, crc32c, down_convert};
use barnabas_wire::{ApiKey, RequestBody};
use bytes::Bytes;

/// A node with one worker, so that what holds up one client holds up all.
fn one_worker(overrides: &[&str]) -> TestNode {
    TestNode::start_limited(Some("taskset -pc 0 $$ >/dev/null"), overrides)
}

fn compressed(codec: Codec, values: &[&[u8]]) -> Bytes {
    let options = BatchOptions { compression: Compression::of(codec), ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    for value in values {
        builder.push(TimestampMs(now_ms()), None, Some(value), &[]);
    }
    builder.build().expect("a batch")
}

/// Some 16 KB that inflate to 16 MiB.
fn bomb() -> Bytes {
    compressed(Codec::Gzip, &[&vec![0; 16 << 20]])
}

pub fn request(topic: &str, records: &[Bytes]) -> ProduceRequest {
    let data = |(index, records): (usize, &Bytes)| PartitionProduceData {
        index: index as i32,
        records: Some(records.clone()),
        ..Default::default()
    };
    let partition_data = records.iter().enumerate().map(data).collect();
    let topic = TopicProduceData { name: topic.into(), partition_data, ..Default::default() };
    ProduceRequest { acks: -1, timeout_ms: 30_000, topic_data: vec![topic], ..Default::default() }
}

/// Error codes and base offsets by partition.
pub fn outcomes(response: &ResponseBody) -> Vec<(i16, i64)> {
    let ResponseBody::Produce(response) = response else { panic!("another response") };
    let partitions = &response.responses[0].partition_responses;
    partitions.iter().map(|partition| (partition.error_code, partition.base_offset)).collect()
}

/// A client that sends `attack`, and another one that is served before the first is answered. On a machine that does
/// other things too the attack may be over first: it is tried again. A worker that is held up never answers the other
/// one first.
fn others_are_served_during(node: &TestNode, attack: impl Into<RequestBody>, version: i16) {
    let attack = attack.into();
    let api = attack.key();
    let mut good = node.client();
    for _ in 0..20 {
        let mut attacker = node.client();
        attacker.send(attack.clone(), version);
        for _ in 0..10 {
            assert_eq!(outcomes(&good.call(request("good", &[batch(&["a"])]), 9))[0].0, 0);
        }
        if !attacker.has_answer() {
            return;
        }
        attacker.receive(api, version);
    }
    panic!("{api} was always answered first");
}

#[test]
fn bombs_in_old_formats_do_not_hold_up_others() {
    let mut node = one_worker(&[]);
    let mut client = node.client();
    client.create_topic("good", 1, &[]);
    client.create_topic("t", 8, &[]);
    let bomb = down_convert(bomb(), 1, Offset(0)).expect("format 1");
    assert!(bomb.len() < 30_000);
    others_are_served_during(&node, request("t", &vec![bomb; 8]), 2);
    assert!(node.stop().success());
}

#[test]
fn bombs_for_another_codec_do_not_hold_up_others() {
    let mut node = one_worker(&[]);
    let mut client = node.client();
    client.create_topic("good", 1, &[]);
    client.create_topic("t", 8, &[("compression.type", "zstd")]);
    others_are_served_during(&node, request("t", &vec![bomb(); 8]), 9);
    client.create_topic("keys", 8, &[("cleanup.policy", "compact")]);
    others_are_served_during(&node, request("keys", &vec![bomb(); 8]), 9);
    assert!(node.stop().success());
}

#[test]
fn batches_judged_elsewhere_keep_their_order() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 1, &[("compression.type", "gzip")]);
    // Too large for the worker, then small ones: each is numbered behind the one that was sent before it.
    let (large, small) = (compressed(Codec::Lz4, &[&[b'x'; 500_000]]), compressed(Codec::Lz4, &[b"y"]));
    for _ in 0..5 {
        client.send(request("t", std::slice::from_ref(&large)), 9);
        client.send(request("t", std::slice::from_ref(&small)), 9);
    }
    let answers = (0..10).map(|_| outcomes(&client.receive(ApiKey::Produce, 9).1)[0]);
    assert_eq!(answers.collect::<Vec<_>>(), (0..10).map(|offset| (0, offset)).collect::<Vec<_>>());
    assert!(node.stop().success());
}

#[test]
fn a_bomb_that_would_be_stored_inflated_is_refused() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 4, &[("compression.type", "uncompressed")]);
    let answers = outcomes(&client.call(request("t", &vec![bomb(); 2]), 9));
    assert_eq!(answers, [(10, -1); 2], "MESSAGE_TOO_LARGE");
    assert!(node.stop().success());
}

/// A batch of one record with a right checksum, whose compressed bytes are none.
pub fn rubbish(codec: Codec) -> Bytes {
    let mut bytes = compressed(codec, &[b"one"]).to_vec();
    bytes[61..].fill(0xa5);
    let crc = crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    Bytes::from(bytes)
}

/// Error code and offset of the first record of `timestamp` or later; −3 is the newest.
fn by_time(node: &TestNode, topic: &str, timestamp: i64) -> (i16, i64) {
    let partition = ListOffsetsPartition { partition_index: 0, timestamp, ..Default::default() };
    let topic = ListOffsetsTopic { name: topic.into(), partitions: vec![partition], ..Default::default() };
    let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() };
    let ResponseBody::ListOffsets(response) = node.client().call(request, 7) else {
        panic!("another response")
    };
    let partition = &response.topics[0].partitions[0];
    (partition.error_code, partition.offset)
}

#[test]
fn what_a_client_wrote_is_not_called_damage() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 1, &[("segment.bytes", "1048576")]);
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        assert_eq!(outcomes(&client.call(request("t", &[rubbish(codec)]), 9))[0].0, 0);
    }
    // The newest record is to be another one's: of two in one millisecond the first counts.
    std::thread::sleep(std::time::Duration::from_millis(5));
    // Enough behind it that it comes to stand in a segment that is full.
    let large = batch(&["x".repeat(500_000).as_str()]);
    for _ in 0..4 {
        assert_eq!(outcomes(&client.call(request("t", std::slice::from_ref(&large)), 9))[0].0, 0);
    }
    assert_eq!(by_time(&node, "t", 0), (2, -1), "CORRUPT_MESSAGE");
    assert_eq!(by_time(&node, "t", -3).0, 0, "the newest record is another one's");
    // The partition goes on, and another start does not mind.
    assert_eq!(outcomes(&client.call(request("t", &[batch(&["b"])]), 9))[0], (0, 8));
    assert!(node.stop().success());
    node.launch();
    assert_eq!(by_time(&node, "t", 0), (2, -1));
    assert!(!node.log().contains("damage"), "{}", node.log());
    assert!(node.stop().success());
}

#[test]
fn structure_refuses_rubbish_and_takes_the_rest() {
    let mut node = TestNode::start_with(&["record.validation=structure"]);
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let refused = outcomes(&client.call(request("t", &[rubbish(codec)]), 9));
        assert_eq!(refused, [(87, -1)], "INVALID_RECORD {codec}");
        assert_eq!(outcomes(&client.call(request("t", &[compressed(codec, &[b"a", b"b"])]), 9))[0].0, 0);
    }
    assert!(node.stop().success());
}

#[test]
fn looking_for_a_time_in_bombs_does_not_hold_up_others() {
    let mut node = one_worker(&[]);
    let mut client = node.client();
    client.create_topic("good", 1, &[]);
    client.create_topic("t", 8, &[]);
    assert!(outcomes(&client.call(request("t", &vec![bomb(); 8]), 9)).iter().all(|outcome| outcome.0 == 0));
    let partition =
        |partition_index| ListOffsetsPartition { partition_index, timestamp: 0, ..Default::default() };
    let partitions = (0..8).map(partition).collect();
    let topic = ListOffsetsTopic { name: "t".into(), partitions, ..Default::default() };
    let attack = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() };
    others_are_served_during(&node, attack, 7);
    assert!(node.stop().success());
}

#[test]
fn a_time_within_a_large_batch_is_found() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    // Larger than a worker reads by itself, and compressed.
    let mut builder = BatchBuilder::new(BatchOptions {
        compression: Compression::of(Codec::Lz4),
        ..BatchOptions::default()
    });
    let start = now_ms();
    (0..1000).for_each(|at| builder.push(TimestampMs(start + at), None, Some(&[b'x'; 300]), &[]));
    let large = builder.build().expect("a batch");
    assert_eq!(outcomes(&client.call(request("t", &[large]), 9))[0].0, 0);
    assert_eq!(by_time(&node, "t", start + 700), (0, 700));
    assert_eq!(by_time(&node, "t", -3), (0, 999));
    assert_eq!(by_time(&node, "t", start + 1000), (0, -1));
    assert!(node.stop().success());
}

#[test]
fn old_consumers_of_bombs_do_not_hold_up_others() {
    let mut node = one_worker(&[]);
    let mut client = node.client();
    client.create_topic("good", 1, &[]);
    client.create_topic("t", 8, &[]);
    assert!(outcomes(&client.call(request("t", &vec![bomb(); 8]), 9)).iter().all(|outcome| outcome.0 == 0));
    let partition =
        |partition| FetchPartition { partition, partition_max_bytes: 1 << 20, ..Default::default() };
    let topic =
        FetchTopic { topic: "t".into(), partitions: (0..8).map(partition).collect(), ..Default::default() };
    let attack = FetchRequest { replica_id: -1, max_wait_ms: 1, topics: vec![topic], ..Default::default() };
    others_are_served_during(&node, attack, 2);
    assert!(node.stop().success());
}

#[test]
fn coordinators_topics_take_no_rubbish_from_an_admin_client() {
    let settings = [
        "offsets.topic.num.partitions=1",
        "transaction.state.log.num.partitions=1",
        "share.coordinator.state.topic.num.partitions=1",
    ];
    let mut node = TestNode::start_with(&settings);
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    let share_key = format!("g:{}:0", client.topic_id("t"));
    let topics = [
        ("__consumer_offsets", 0, "g"),
        ("__transaction_state", 1, "x"),
        ("__share_group_state", 2, share_key.as_str()),
    ];
    for (topic, key_type, key) in topics {
        find_coordinator_of(&mut client, key_type, key);
        for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
            client.send_as("__admin_client", request(topic, &[rubbish(codec)]), 9);
            let refused = outcomes(&client.receive(ApiKey::Produce, 9).1);
            assert_eq!(refused, [(87, -1)], "INVALID_RECORD: {topic}, {codec}");
        }
    }
    assert!(node.stop().success());
    node.launch();
    let mut client = node.client();
    for (_, key_type, key) in topics {
        find_coordinator_of(&mut client, key_type, key);
    }
    assert!(!node.log().contains("cannot be read"), "{}", node.log());
    assert!(node.stop().success());
}

#[test]
fn a_coordinator_loads_what_is_compressed() {
    let mut node =
        TestNode::start_with(&["offsets.topic.num.partitions=1", "offsets.topic.compression.codec=1"]);
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    // A group that has committed.
    find_coordinator(&mut client, "g");
    let commit = |client: &mut crate::harness::Client, offset| {
        let partition = OffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
        let topic =
            OffsetCommitRequestTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
        let request = OffsetCommitRequest {
            group_id: "g".into(),
            generation_id_or_member_epoch: -1,
            topics: vec![topic],
            ..Default::default()
        };
        loop {
            let ResponseBody::OffsetCommit(response) = client.call(request.clone(), 7) else {
                panic!("another")
            };
            match response.topics[0].partitions[0].error_code {
                0 => return,
                14..=15 => std::thread::sleep(std::time::Duration::from_millis(20)),
                code => panic!("error {code}"),
            }
        }
    };
    commit(&mut client, 5);
    // A client of that name may write there, as in Kafka: records of a type that is not known, which inflate to
    // megabytes.
    let options = BatchOptions { compression: Compression::of(Codec::Gzip), ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    for _ in 0..20_000 {
        builder.push(TimestampMs(now_ms()), Some(&[0, 99, 1]), Some(&[0; 100]), &[]);
    }
    let records = builder.build().expect("a batch");
    client.send_as("__admin_client", request("__consumer_offsets", &[records]), 9);
    assert_eq!(outcomes(&client.receive(ApiKey::Produce, 9).1)[0].0, 0);
    commit(&mut client, 7);
    assert!(node.stop().success());
    node.launch();
    let topic =
        OffsetFetchRequestTopic { name: "t".into(), partition_indexes: vec![0], ..Default::default() };
    let request =
        OffsetFetchRequest { group_id: "g".into(), topics: Some(vec![topic]), ..Default::default() };
    let mut client = node.client();
    let committed = loop {
        let ResponseBody::OffsetFetch(response) = client.call(request.clone(), 5) else { panic!("another") };
        match response.error_code {
            0 => break response.topics[0].partitions[0].committed_offset,
            14..=16 => std::thread::sleep(std::time::Duration::from_millis(20)),
            code => panic!("error {code}"),
        }
    };
    assert_eq!(committed, 7);
    assert!(node.stop().success());
}
