//! A log directory that is short of room: producers are refused, everybody else is served.
//!
//! The operator asks for more room than there is, so that no disk need be filled; `make disk-full` fills one.

use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{DeleteTopicsRequest, ListOffsetsRequest, ProduceRequest, ResponseBody};

use crate::harness::{Client, TestNode, batch};

const STORAGE_ERROR: i16 = 56;
const NOT_LEADER: i16 = 6;

/// Error code and message of one record.
fn produce(client: &mut Client, version: i16) -> (i16, Option<String>) {
    let data = PartitionProduceData { index: 0, records: Some(batch(&["a"])), ..Default::default() };
    let topic = TopicProduceData { name: "t".into(), partition_data: vec![data], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() };
    let ResponseBody::Produce(response) = client.call(request, version) else { panic!("another response") };
    let partition = &response.responses[0].partition_responses[0];
    (partition.error_code, partition.error_message.as_ref().map(|text| text.to_string()))
}

fn end(client: &mut Client) -> i64 {
    use barnabas_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
    let partition = ListOffsetsPartition { timestamp: -1, ..Default::default() };
    let topic = ListOffsetsTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
    let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() };
    let ResponseBody::ListOffsets(response) = client.call(request, 7) else { panic!("another response") };
    response.topics[0].partitions[0].offset
}

#[test]
fn producers_are_refused_while_everybody_else_is_served() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    assert_eq!(produce(&mut client, 8).0, 0);
    assert!(node.stop().success());

    node.set_overrides(&[&crate::harness::no_room(&node.data())]);
    node.launch();
    let mut client = node.client();
    let (code, message) = produce(&mut client, 8);
    assert_eq!(code, STORAGE_ERROR);
    assert!(message.is_some_and(|message| message.contains("room")));
    assert_eq!(
        produce(&mut client, 3).0,
        NOT_LEADER,
        "clients of that time know no other code that is tried again"
    );
    assert_eq!(end(&mut client), 1, "readers are served");
    client.create_topic("another", 1, &[]);
    let names = vec!["another".into()];
    let request = DeleteTopicsRequest { topic_names: names, timeout_ms: 10_000, ..Default::default() };
    let ResponseBody::DeleteTopics(response) = client.call(request, 5) else { panic!("another response") };
    assert_eq!(response.responses[0].error_code, 0);
    assert!(node.stop_expecting_trouble().success(), "a clean stop: {}", node.log());
    let said = node.log().matches("nearly full").count();
    assert_eq!(said, 1, "said once, however many are refused");

    node.set_overrides(&["log.dir.min.free.bytes=0"]);
    node.launch();
    assert_eq!(produce(&mut node.client(), 8).0, 0);
    assert!(node.stop_expecting_trouble().success());
}
