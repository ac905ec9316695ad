//! What a producer sends again: it is known, though its records were deleted and the node was killed since; and where
//! it was refused, it comes before what was sent behind it.

use crate::harness::three_dirs::eventually;
use crate::harness::{BROKER, Client, TestNode, now_ms};
use barnabas_base::{ProducerEpoch, ProducerId, Sequence, TimestampMs};
use barnabas_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{DeleteRecordsRequest, ProduceRequest, ResponseBody};
use barnabas_wire::records::{BatchBuilder, BatchOptions};

/// One batch of one record; error code and base offset.
fn produce(client: &mut Client, id: ProducerId, number: i32) -> (i16, i64) {
    let options = BatchOptions {
        producer_id: id,
        producer_epoch: ProducerEpoch(0),
        base_sequence: Sequence(number),
        ..BatchOptions::default()
    };
    let mut builder = BatchBuilder::new(options);
    builder.push(TimestampMs(now_ms()), None, Some(b"once"), &[]);
    let records = Some(builder.build().expect("a batch"));
    let data = PartitionProduceData { index: 0, records, ..Default::default() };
    let topic = TopicProduceData { name: "paid".into(), partition_data: vec![data], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 5_000, topic_data: vec![topic], ..Default::default() };
    let ResponseBody::Produce(response) = client.call(request, 9) else { panic!("another response") };
    let answer = &response.responses[0].partition_responses[0];
    (answer.error_code, answer.base_offset)
}

fn delete_all(client: &mut Client) {
    let partition = DeleteRecordsPartition { partition_index: 0, offset: -1, ..Default::default() };
    let topic = DeleteRecordsTopic { name: "paid".into(), partitions: vec![partition], ..Default::default() };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    let ResponseBody::DeleteRecords(response) = client.call(request, 2) else { panic!("another response") };
    assert_eq!(response.topics[0].partitions[0].error_code, 0);
}

/// The last two of three batches come again, as after answers that a kill has swallowed.
fn are_known_again(node: &mut TestNode, id: ProducerId) {
    node.kill();
    node.launch();
    let mut client = node.client();
    assert_eq!(produce(&mut client, id, 1), (0, 1), "the batch is where it was");
    assert_eq!(produce(&mut client, id, 2), (0, 2), "the batch is where it was");
}

fn with_three_batches(overrides: &[&str], configs: &[(&str, &str)]) -> (TestNode, ProducerId) {
    let node = TestNode::start_with(overrides);
    let mut client = node.client();
    client.create_topic("paid", 1, configs);
    let id = client.producer_id();
    for number in 0..3 {
        assert_eq!(produce(&mut client, id, number), (0, i64::from(number)));
    }
    (node, id)
}

/// Retention takes what the producer wrote before the directory's checkpoint has passed the segments that stay.
#[test]
fn though_its_segments_are_gone() {
    let configs = [("internal.segment.bytes", "400"), ("retention.bytes", "400")];
    let (mut node, id) = with_three_batches(&["log.retention.check.interval.ms=20"], &configs);
    let first = node.data().join("paid-0/00000000000000000000.log");
    let mut client = node.client();
    let another = client.producer_id();
    for number in 0..60 {
        assert_eq!(produce(&mut client, another, number).0, 0);
    }
    eventually("the segments are deleted", || !first.exists());
    are_known_again(&mut node, id);
}

#[test]
fn though_only_the_journal_has_it() {
    let (mut node, id) = with_three_batches(&[], &[]);
    delete_all(&mut node.client());
    are_known_again(&mut node, id);
}

/// The first batches of a producer are refused, and a later one comes when none would be: it must not become the
/// beginning, or the first one, sent again, were out of order for good.
#[test]
fn first_batch_that_was_refused_stays_the_first() {
    const STORAGE_ERROR: i16 = 56;
    const OUT_OF_ORDER: i16 = 45;
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("paid", 1, &[]);
    let all = crate::harness::no_room(&node.data());
    let (min_free, all) = all.split_once('=').expect("a setting");
    assert_eq!(client.alter_config(1, (BROKER, "1"), min_free, Some(all)), 0);
    let as_another = |client: &mut Client| {
        let another = client.producer_id();
        produce(client, another, 0)
    };
    eventually("there is no room", || as_another(&mut client).0 == STORAGE_ERROR);
    let id = client.producer_id();
    assert_eq!(produce(&mut client, id, 0).0, STORAGE_ERROR);
    assert_eq!(produce(&mut client, id, 1).0, STORAGE_ERROR);
    assert_eq!(client.alter_config(1, (BROKER, "1"), min_free, None), 0);
    eventually("batches are taken", || as_another(&mut client).0 == 0);
    assert_eq!(produce(&mut client, id, 2), (OUT_OF_ORDER, -1));
    assert_eq!(produce(&mut client, id, 1), (OUT_OF_ORDER, -1));
    let next = as_another(&mut client).1 + 1;
    for number in 0..3 {
        assert_eq!(produce(&mut client, id, number), (0, next + i64::from(number)));
    }
    assert!(node.stop_expecting_trouble().success(), "{}", node.log());
}

/// A client may know a new topic before the broker does: its first batch is refused, the next one is not.
#[test]
fn first_batch_for_a_topic_that_is_not_known_yet_stays_the_first() {
    const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
    const OUT_OF_ORDER: i16 = 45;
    let mut node = TestNode::start();
    let mut client = node.client();
    let id = client.producer_id();
    for number in [1, 0] {
        assert_eq!(produce(&mut client, id, number).0, UNKNOWN_TOPIC_OR_PARTITION);
    }
    client.create_topic("paid", 1, &[]);
    for number in [2, 1] {
        assert_eq!(produce(&mut client, id, number), (OUT_OF_ORDER, -1));
    }
    let another = client.producer_id();
    assert_eq!(produce(&mut client, another, 0), (0, 0), "no other producer waits");
    for number in 0..3 {
        assert_eq!(produce(&mut client, id, number), (0, 1 + i64::from(number)));
    }
    assert!(node.stop().success(), "{}", node.log());
}
