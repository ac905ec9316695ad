//! Questions that Kafka answers from any replica, and those that only the leader answers.
//!
//! `kafka-transactions describe-producers --broker-id` and `find-hanging --broker-id` ask the broker that they are
//! given.

use crate::harness::cluster::{Cluster, SETTINGS, comes_back, eventually, until};
use barnabas_base::{ProducerEpoch, Sequence, TimestampMs};
use barnabas_wire::messages::*;
use barnabas_wire::records::{BatchBuilder, BatchOptions};

const NOT_LEADER: i16 = 6;

fn produce(cluster: &Cluster) -> i64 {
    let mut client = cluster.client_of_leader("t", 0);
    let producer_id = client.producer_id();
    let mut builder = BatchBuilder::new(BatchOptions {
        producer_id,
        producer_epoch: ProducerEpoch(0),
        base_sequence: Sequence(0),
        ..BatchOptions::default()
    });
    builder.push(TimestampMs(crate::harness::now_ms()), None, Some(b"a"), &[]);
    let records = builder.build().expect("a batch");
    let data = produce_request::PartitionProduceData { records: Some(records), ..Default::default() };
    let topic = produce_request::TopicProduceData {
        name: "t".into(),
        partition_data: vec![data],
        ..Default::default()
    };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() };
    until("the batch is taken", || {
        let mut client = cluster.client_of_leader("t", 0);
        let ResponseBody::Produce(response) = client.try_call(request.clone(), 9)? else { panic!("another") };
        let code = response.responses[0].partition_responses[0].error_code;
        assert!(code == 0 || comes_back(code), "{code}");
        (code == 0).then_some(())
    });
    producer_id.get()
}

fn producers(cluster: &Cluster, node: i32) -> (i16, Vec<i64>) {
    let topic = describe_producers_request::TopicRequest {
        name: "t".into(),
        partition_indexes: vec![0],
        ..Default::default()
    };
    let request = DescribeProducersRequest { topics: vec![topic], ..Default::default() };
    let Some(ResponseBody::DescribeProducers(response)) = cluster.ask(node, request, 0) else {
        panic!("no answer")
    };
    let partition = &response.topics[0].partitions[0];
    (partition.error_code, partition.active_producers.iter().map(|each| each.producer_id).collect())
}

/// ListOffsets of the log's end, with a replica id; OffsetForLeaderEpoch.
fn codes(cluster: &Cluster, node: i32, replica_id: i32) -> (i16, i16) {
    let partition = list_offsets_request::ListOffsetsPartition {
        timestamp: -1,
        current_leader_epoch: -1,
        ..Default::default()
    };
    let topic = list_offsets_request::ListOffsetsTopic {
        name: "t".into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let request = ListOffsetsRequest { replica_id, topics: vec![topic], ..Default::default() };
    let Some(ResponseBody::ListOffsets(offsets)) = cluster.ask(node, request, 6) else { panic!("no answer") };
    let partition = offset_for_leader_epoch_request::OffsetForLeaderPartition {
        current_leader_epoch: -1,
        ..Default::default()
    };
    let topic = offset_for_leader_epoch_request::OffsetForLeaderTopic {
        topic: "t".into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let request = OffsetForLeaderEpochRequest { replica_id: -2, topics: vec![topic], ..Default::default() };
    let Some(ResponseBody::OffsetForLeaderEpoch(epochs)) = cluster.ask(node, request, 4) else {
        panic!("no answer")
    };
    (offsets.topics[0].partitions[0].error_code, epochs.topics[0].partitions[0].error_code)
}

#[test]
fn followers_describe_producers_as_the_leader_does() {
    let cluster = Cluster::start(SETTINGS);
    cluster.create("t", 1);
    let producer = produce(&cluster);
    let leader = until("a leader", || cluster.leader("t", 0));
    for node in 1..=3 {
        eventually("the replica knows the producer", || {
            let (code, producers) = producers(&cluster, node);
            assert_eq!(code, 0, "node {node}, leader {leader}");
            producers == [producer]
        });
        let expected = if node == leader { 0 } else { NOT_LEADER };
        assert_eq!(codes(&cluster, node, -1), (expected, expected), "a consumer asks node {node}");
        // Kafka's DEBUGGING_REPLICA_ID.
        assert_eq!(codes(&cluster, node, -2), (0, expected), "a debugger asks node {node}");
    }
    cluster.stop();
}
