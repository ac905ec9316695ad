//! Transactions from end to end, over the wire: committed records are readable, others are not, and late producers
//! are refused.

use crate::harness::txn::{PATIENCE, Producer, end_offset, read};
use crate::harness::{Client, TestNode, now_ms};
use barnabas_base::{ProducerEpoch, ProducerId, Sequence, TimestampMs};
use barnabas_wire::messages::add_partitions_to_txn_request::{
    AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction,
};
use barnabas_wire::messages::describe_producers_request::TopicRequest;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::write_txn_markers_request::{WritableTxnMarker, WritableTxnMarkerTopic};
use barnabas_wire::messages::{
    AddPartitionsToTxnRequest, DeleteTopicsRequest, DescribeProducersRequest, EndTxnRequest, FetchRequest,
    ListTransactionsRequest, ProduceRequest, ResponseBody, WriteTxnMarkersRequest,
};
use barnabas_wire::records::{BatchBuilder, BatchOptions};
use std::time::{Duration, Instant};

const COMMIT: bool = true;
const ABORT: bool = false;

fn topic(node: &TestNode, name: &str, partitions: i32) -> Client {
    let mut client = node.client();
    client.create_topic(name, partitions, &[]);
    client
}

/// Markers follow the answer to EndTxn.
fn wait_until_stable(client: &mut Client, topic: &str, partition: i32) {
    let asked = Instant::now();
    while end_offset(client, topic, partition, true) < end_offset(client, topic, partition, false) {
        assert!(asked.elapsed() < PATIENCE, "the last stable offset stands still");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_is_committed_is_read_and_what_is_aborted_is_not() {
    for version in 0..=2 {
        let mut node = TestNode::start();
        let mut client = topic(&node, "t", 2);
        let mut producer = Producer::ready(&node, "payments", version);
        assert_eq!(producer.write("t", 0, &["a", "b"]), 0);
        assert_eq!(read(&mut client, "t", 0, false), ["a", "b"], "read_uncommitted consumers see everything");
        assert_eq!(read(&mut client, "t", 0, true), [""; 0], "it is open");
        assert_eq!((end_offset(&mut client, "t", 0, true), end_offset(&mut client, "t", 0, false)), (0, 2));
        assert_eq!(producer.end(COMMIT), 0);
        wait_until_stable(&mut client, "t", 0);
        assert_eq!(read(&mut client, "t", 0, true), ["a", "b"]);

        assert_eq!(producer.write("t", 0, &["c"]), 0);
        assert_eq!(producer.end(ABORT), 0);
        assert_eq!(producer.write("t", 0, &["d"]), 0);
        assert_eq!(producer.end(COMMIT), 0);
        wait_until_stable(&mut client, "t", 0);
        assert_eq!(read(&mut client, "t", 0, true), ["a", "b", "d"]);
        assert_eq!(read(&mut client, "t", 0, false), ["a", "b", "c", "d"]);
        // Each transaction under an epoch of its own, or all under one.
        assert_eq!(producer.epoch, if version >= 2 { 3 } else { 0 });
        // The same after a start.
        assert!(node.stop().success());
        node.launch();
        let mut client = node.client();
        assert_eq!(read(&mut client, "t", 0, true), ["a", "b", "d"]);
        assert_eq!(read(&mut client, "t", 0, false), ["a", "b", "c", "d"]);
        assert!(node.stop().success());
    }
}

#[test]
fn an_open_transaction_holds_up_its_own_partitions_and_no_others() {
    let mut node = TestNode::start();
    let mut client = topic(&node, "t", 2);
    let (mut slow, mut quick) = (Producer::ready(&node, "slow", 2), Producer::ready(&node, "quick", 2));
    assert_eq!(slow.write("t", 0, &["slow"]), 0);
    assert_eq!(quick.write("t", 0, &["quick"]), 0);
    quick.sequence = 0;
    assert_eq!(quick.write("t", 1, &["quick"]), 0);
    assert_eq!(quick.end(COMMIT), 0);
    wait_until_stable(&mut client, "t", 1);
    assert_eq!(read(&mut client, "t", 1, true), ["quick"]);
    assert_eq!(read(&mut client, "t", 0, true), [""; 0]);
    assert_eq!(slow.end(ABORT), 0);
    wait_until_stable(&mut client, "t", 0);
    assert_eq!(read(&mut client, "t", 0, true), ["quick"]);
    assert!(node.stop().success());
}

#[test]
fn a_reader_that_waits_is_woken_by_the_end_of_a_transaction() {
    let mut node = TestNode::start();
    let mut client = topic(&node, "t", 1);
    let mut producer = Producer::ready(&node, "payments", 2);
    let large = "x".repeat(3_000);
    assert_eq!(producer.write("t", 0, &[&large]), 0);
    // It wants more than a marker weighs, and may wait for longer than this test.
    let request = |committed| {
        let wanted = FetchPartition {
            current_leader_epoch: -1,
            log_start_offset: -1,
            partition_max_bytes: 1 << 20,
            ..Default::default()
        };
        let topic = FetchTopic { topic: "t".into(), partitions: vec![wanted], ..Default::default() };
        FetchRequest {
            replica_id: -1,
            max_wait_ms: 15_000,
            min_bytes: 2_000,
            max_bytes: 1 << 20,
            isolation_level: i8::from(committed),
            session_epoch: -1,
            topics: vec![topic],
            ..Default::default()
        }
    };
    client.send(request(true), 11);
    std::thread::sleep(Duration::from_millis(100));
    // More of what is open wakes it in vain at most.
    assert_eq!(producer.write("t", 0, &[&large]), 0);
    let asked = Instant::now();
    assert_eq!(producer.end(COMMIT), 0);
    let (_, response) = client.receive(barnabas_wire::ApiKey::Fetch, 11);
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    let ResponseBody::Fetch(response) = response else { panic!("another response") };
    let records = response.responses[0].partitions[0].records.as_ref().map_or(0, |records| records.len());
    assert!(records > 6_000, "{records}");
    assert!(node.stop().success());
}

#[test]
fn a_partition_takes_no_transaction_that_its_coordinator_does_not_know() {
    let mut node = TestNode::start();
    let mut client = topic(&node, "t", 1);
    let mut producer = Producer::ready(&node, "payments", 1);
    // Older clients say before what they write to. They are told in words that they know.
    assert_eq!(producer.write_as(9, "t", 0, &["x"]), 48, "INVALID_TXN_STATE");
    assert_eq!(producer.write_as(10, "t", 0, &["x"]), 48, "INVALID_TXN_STATE");
    assert_eq!(producer.write_as(11, "t", 0, &["x"]), 120, "TRANSACTION_ABORTABLE");
    assert_eq!(producer.add("t", &[0]), 0);
    assert_eq!(producer.write_as(9, "t", 0, &["x"]), 0);
    // What is open goes on without the coordinator; a stranger's does not.
    let mut stranger = Producer::new(&node, "somebody", 2);
    (stranger.id, stranger.epoch) = (producer.id + 1, 0);
    assert_eq!(stranger.write_as(12, "t", 0, &["y"]), 49, "INVALID_PRODUCER_ID_MAPPING");
    // Who gives no transactional id has none.
    let mut request = stranger.request("t", 0, stranger.batch(&["y"]));
    request.transactional_id = None;
    let ResponseBody::Produce(response) = client.call(request, 12) else { panic!("another response") };
    assert_eq!(
        response.responses[0].partition_responses[0].error_code, 53,
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    );
    // A transaction has one producer, and is not left by a plain batch.
    assert_eq!(producer.end(COMMIT), 0);
    wait_until_stable(&mut client, "t", 0);
    assert_eq!(read(&mut client, "t", 0, true), ["x"]);
    assert!(node.stop().success());
}

#[test]
fn a_late_batch_opens_no_transaction_after_its_own_has_ended() {
    let mut node = TestNode::start();
    let mut client = topic(&node, "t", 1);
    for version in [1, 2] {
        let mut producer = Producer::ready(&node, &format!("p{version}"), version);
        assert_eq!(producer.write("t", 0, &["in time"]), 0);
        let late = producer.request("t", 0, producer.batch(&["late"]));
        assert_eq!(producer.end(COMMIT), 0);
        producer.wait_for("CompleteCommit");
        let ResponseBody::Produce(response) = client.call(late, producer.produce_version()) else {
            panic!("another response")
        };
        let code = response.responses[0].partition_responses[0].error_code;
        // By its epoch, or by the coordinator's word.
        assert_eq!(code, if version >= 2 { 47 } else { 120 });
    }
    assert_eq!(read(&mut client, "t", 0, true), ["in time", "in time"]);
    assert_eq!(end_offset(&mut client, "t", 0, true), end_offset(&mut client, "t", 0, false));
    assert!(node.stop().success());
}

#[test]
fn batches_that_are_sent_one_after_the_other_keep_their_order() {
    let mut node = TestNode::start();
    let mut client = topic(&node, "t", 1);
    let mut producer = Producer::ready(&node, "payments", 2);
    let words: Vec<String> = (0..5).map(|number| number.to_string()).collect();
    // The first one waits for the coordinator, and the others for it.
    for word in &words {
        let request = producer.request("t", 0, producer.batch(&[word]));
        producer.client.send(request, 12);
        producer.sequence += 1;
    }
    for _ in &words {
        let (_, response) = producer.client.receive(barnabas_wire::ApiKey::Produce, 12);
        let ResponseBody::Produce(response) = response else { panic!("another response") };
        assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
    }
    assert_eq!(producer.end(COMMIT), 0);
    wait_until_stable(&mut client, "t", 0);
    assert_eq!(read(&mut client, "t", 0, true), words);
    assert!(node.stop().success());
}

#[test]
fn the_newest_producer_holds_the_transactional_id() {
    for version in [1, 2] {
        let mut node = TestNode::start();
        let mut client = topic(&node, "t", 1);
        let mut zombie = Producer::ready(&node, "payments", version);
        assert_eq!(zombie.write("t", 0, &["zombie"]), 0);
        let mut producer = Producer::new(&node, "payments", version);
        assert_eq!(producer.init_once(), 51, "CONCURRENT_TRANSACTIONS: its transaction is aborted first");
        assert_eq!(producer.init(), 0);
        assert_eq!(producer.id, zombie.id);
        assert!(producer.epoch > zombie.epoch);
        assert_eq!(
            zombie.write_as(zombie.produce_version(), "t", 0, &["again"]),
            47,
            "INVALID_PRODUCER_EPOCH"
        );
        assert_eq!(zombie.end(COMMIT), 90, "PRODUCER_FENCED");
        assert_eq!(zombie.add("t", &[0]), 90);
        assert_eq!(producer.write("t", 0, &["heir"]), 0);
        assert_eq!(producer.end(COMMIT), 0);
        wait_until_stable(&mut client, "t", 0);
        assert_eq!(read(&mut client, "t", 0, true), ["heir"]);
        assert!(node.stop().success());
    }
}

#[test]
fn a_transaction_that_takes_too_long_is_aborted() {
    let mut node = TestNode::start_with(&["transaction.max.timeout.ms=5000"]);
    let mut client = topic(&node, "t", 1);
    let mut producer = Producer::new(&node, "payments", 2);
    producer.find_coordinator();
    producer.timeout_ms = 5_001;
    assert_eq!(producer.init(), 50, "INVALID_TRANSACTION_TIMEOUT");
    producer.timeout_ms = 300;
    assert_eq!(producer.init(), 0);
    assert_eq!(producer.write("t", 0, &["late"]), 0);
    wait_until_stable(&mut client, "t", 0);
    producer.wait_for("CompleteAbort");
    assert_eq!(read(&mut client, "t", 0, true), [""; 0]);
    // It may go on after an error: PRODUCER_FENCED, from which a client recovers.
    assert_eq!(producer.end(COMMIT), 90);
    assert_eq!(producer.init(), 0);
    assert_eq!(producer.write("t", 0, &["in time"]), 0);
    assert_eq!(producer.end(COMMIT), 0);
    wait_until_stable(&mut client, "t", 0);
    assert_eq!(read(&mut client, "t", 0, true), ["in time"]);
    assert!(node.stop().success());
}

#[test]
fn a_transaction_ends_though_a_topic_of_it_is_gone() {
    let mut node = TestNode::start();
    let mut client = topic(&node, "gone", 1);
    client.create_topic("stays", 1, &[]);
    let mut producer = Producer::ready(&node, "payments", 2);
    assert_eq!(producer.write("gone", 0, &["x"]), 0);
    producer.sequence = 0;
    assert_eq!(producer.write("stays", 0, &["y"]), 0);
    let request =
        DeleteTopicsRequest { topic_names: vec!["gone".into()], timeout_ms: 10_000, ..Default::default() };
    let ResponseBody::DeleteTopics(response) = client.call(request, 5) else { panic!("another response") };
    assert_eq!(response.responses[0].error_code, 0);
    assert_eq!(producer.end(COMMIT), 0);
    producer.wait_for("CompleteCommit");
    assert_eq!(read(&mut client, "stays", 0, true), ["y"]);
    assert!(node.stop().success());
}

/// Producers that the partition remembers, by DescribeProducers.
fn remembered(client: &mut Client) -> usize {
    let request = DescribeProducersRequest {
        topics: vec![TopicRequest { name: "t".into(), partition_indexes: vec![0], ..Default::default() }],
        ..Default::default()
    };
    let ResponseBody::DescribeProducers(response) = client.call(request, 0) else {
        panic!("another response")
    };
    assert_eq!(response.topics[0].partitions[0].error_code, 0);
    response.topics[0].partitions[0].active_producers.len()
}

/// For the whole cluster, while it runs.
fn set_expiration(client: &mut Client, ms: &str) {
    assert_eq!(client.alter_config(1, (4, ""), "producer.id.expiration.ms", Some(ms)), 0);
}

fn wait_until_forgotten(client: &mut Client) {
    let asked = Instant::now();
    while remembered(client) > 0 {
        assert!(asked.elapsed() < PATIENCE, "the producer is still remembered");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn producers_expire_once_their_transaction_has_ended() {
    let overrides = ["producer.id.expiration.ms=3600000", "producer.id.expiration.check.interval.ms=100"];
    let mut node = TestNode::start_with(&overrides);
    let mut client = topic(&node, "t", 1);
    for version in 1..=2 {
        let mut producer = Producer::ready(&node, &format!("payments-{version}"), version);
        assert_eq!(producer.write("t", 0, &["a"]), 0);
        set_expiration(&mut client, "1");
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(remembered(&mut client), 1, "its transaction is open");
        assert_eq!(producer.end(COMMIT), 0);
        wait_until_stable(&mut client, "t", 0);
        wait_until_forgotten(&mut client);
        // What comes after it begins again, under the same id.
        set_expiration(&mut client, "3600000");
        assert_eq!(producer.write("t", 0, &["b"]), 0);
        assert_eq!(producer.end(COMMIT), 0);
        wait_until_stable(&mut client, "t", 0);
        assert_eq!(remembered(&mut client), 1);
        set_expiration(&mut client, "1");
        wait_until_forgotten(&mut client);
    }
    assert!(node.stop().success());
}

#[test]
fn producers_of_all_partitions_are_bounded_together() {
    const MAX: usize = 1_000;
    // One worker, whose share is the whole bound.
    let mut node = TestNode::start_limited(
        Some("taskset -pc 0 $$ >/dev/null"),
        &["producer.ids.max=1000", "producer.ids.per.partition.max=10000"],
    );
    let mut client = topic(&node, "t", 1);
    let write = |client: &mut Client, id: i64, sequence: i32| {
        let mut builder = BatchBuilder::new(BatchOptions {
            producer_id: ProducerId(id),
            producer_epoch: ProducerEpoch(0),
            base_sequence: Sequence(sequence),
            ..BatchOptions::default()
        });
        builder.push(TimestampMs(now_ms()), None, Some(b"a"), &[]);
        let data =
            PartitionProduceData { records: Some(builder.build().expect("a batch")), ..Default::default() };
        let topic = TopicProduceData { name: "t".into(), partition_data: vec![data], ..Default::default() };
        let request =
            ProduceRequest { acks: -1, timeout_ms: 30_000, topic_data: vec![topic], ..Default::default() };
        let ResponseBody::Produce(response) = client.call(request, 9) else { panic!("another response") };
        response.responses[0].partition_responses[0].error_code
    };
    for id in 0..2 * MAX as i64 {
        assert_eq!(write(&mut client, id, 0), 0);
    }
    let asked = Instant::now();
    while remembered(&mut client) > MAX {
        assert!(asked.elapsed() < PATIENCE, "{} producers are remembered", remembered(&mut client));
        std::thread::sleep(Duration::from_millis(20));
    }
    // A forgotten one goes on with its next batch, and so does one that is remembered.
    assert_eq!(write(&mut client, 0, 1), 0);
    assert_eq!(write(&mut client, 2 * MAX as i64 - 1, 1), 0);
    assert!(node.stop().success());
}

#[test]
fn an_administrator_ends_a_transaction_that_hangs() {
    // Without verification a late batch opens one that no coordinator knows, as before KIP-890.
    let mut node = TestNode::start_with(&["transaction.partition.verification.enable=false"]);
    let mut client = topic(&node, "t", 1);
    Producer::ready(&node, "payments", 1);
    let mut producer = Producer::ready(&node, "payments", 1);
    assert_eq!(producer.write_as(11, "t", 0, &["hangs"]), 0);
    assert_eq!(end_offset(&mut client, "t", 0, true), 0);
    let request = DescribeProducersRequest {
        topics: vec![TopicRequest { name: "t".into(), partition_indexes: vec![0], ..Default::default() }],
        ..Default::default()
    };
    let ResponseBody::DescribeProducers(response) = client.call(request, 0) else {
        panic!("another response")
    };
    let found = &response.topics[0].partitions[0].active_producers[0];
    assert_eq!((found.producer_id, found.current_txn_start_offset), (producer.id, 0));
    let marker = |epoch: i32, coordinator_epoch| WriteTxnMarkersRequest {
        markers: vec![WritableTxnMarker {
            producer_id: producer.id,
            producer_epoch: epoch as i16,
            transaction_result: false,
            topics: vec![WritableTxnMarkerTopic {
                name: "t".into(),
                partition_indexes: vec![0, 9],
                ..Default::default()
            }],
            coordinator_epoch,
            ..Default::default()
        }],
        ..Default::default()
    };
    let mut told = |request, version| {
        let ResponseBody::WriteTxnMarkers(response) = client.call(request, version) else {
            panic!("another response")
        };
        let partitions = &response.markers[0].topics[0].partitions;
        assert_eq!(partitions[1].error_code, 3, "UNKNOWN_TOPIC_OR_PARTITION");
        partitions[0].error_code
    };
    assert_eq!(told(marker(-1, 7), 1), -1, "a marker without a producer cannot be written");
    assert_eq!(told(marker(found.producer_epoch - 1, 7), 1), 47, "INVALID_PRODUCER_EPOCH");
    let mut of_version_2 = marker(found.producer_epoch, 7);
    of_version_2.markers[0].transaction_version = 2;
    assert_eq!(told(of_version_2, 2), 47, "a marker of version 2 has a higher epoch (KIP-1228)");
    assert_eq!(told(marker(found.producer_epoch, 7), 1), 0);
    assert_eq!(told(marker(found.producer_epoch, 6), 1), 52, "TRANSACTION_COORDINATOR_FENCED");
    assert_eq!(end_offset(&mut client, "t", 0, true), 2);
    assert_eq!(read(&mut client, "t", 0, true), [""; 0]);
    assert!(node.stop().success());
}

#[test]
fn brokers_ask_about_many_transactions_at_once() {
    let mut node = TestNode::start();
    let mut client = topic(&node, "t", 2);
    let mut producers = ["a", "b"].map(|id| Producer::ready(&node, id, 1));
    assert_eq!(producers[0].add("t", &[0]), 0);
    let transaction = |producer: &Producer, verify_only, partitions: &[i32]| AddPartitionsToTxnTransaction {
        transactional_id: producer.transactional_id.as_str().into(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        verify_only,
        topics: vec![AddPartitionsToTxnTopic {
            name: "t".into(),
            partitions: partitions.to_vec(),
            ..Default::default()
        }],
        ..Default::default()
    };
    let request = AddPartitionsToTxnRequest {
        transactions: vec![
            transaction(&producers[0], true, &[0, 1]),
            transaction(&producers[1], false, &[1]),
            transaction(&producers[1], false, &[7]),
        ],
        ..Default::default()
    };
    let ResponseBody::AddPartitionsToTxn(response) = client.call(request, 5) else {
        panic!("another response")
    };
    let codes: Vec<Vec<i16>> = response
        .results_by_transaction
        .iter()
        .map(|result| {
            let partitions = result.topic_results.iter().flat_map(|topic| &topic.results_by_partition);
            partitions.map(|partition| partition.partition_error_code).collect()
        })
        .collect();
    assert_eq!(codes, [vec![0, 120], vec![0], vec![3]]);
    let ResponseBody::ListTransactions(listed) = client.call(ListTransactionsRequest::default(), 1) else {
        panic!("another response")
    };
    let mut listed: Vec<_> = listed
        .transaction_states
        .iter()
        .map(|each| (each.transactional_id.to_string(), each.transaction_state.to_string()))
        .collect();
    listed.sort();
    assert_eq!(listed, [("a".to_owned(), "Ongoing".to_owned()), ("b".to_owned(), "Ongoing".to_owned())]);
    assert!(node.stop().success());
}

#[test]
fn an_unused_transactional_id_expires() {
    let mut node = TestNode::start_with(&[
        "transactional.id.expiration.ms=200",
        "transaction.remove.expired.transaction.cleanup.interval.ms=50",
        "transaction.state.log.num.partitions=3",
    ]);
    let mut client = topic(&node, "t", 1);
    let mut producer = Producer::ready(&node, "payments", 2);
    assert_eq!(producer.write("t", 0, &["x"]), 0);
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(producer.state(), "Ongoing", "what is open is not forgotten");
    assert_eq!(producer.end(COMMIT), 0);
    let asked = Instant::now();
    while !producer.state().is_empty() {
        assert!(asked.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(producer.write_as(12, "t", 0, &["y"]), 49, "INVALID_PRODUCER_ID_MAPPING");
    let before = producer.id;
    assert_eq!(producer.init(), 0);
    assert!(producer.id > before);
    assert_eq!(read(&mut client, "t", 0, true), ["x"]);
    assert!(node.stop().success());
}

/// The client is cut from its coordinator while it commits, and says that again over another connection; then comes
/// what it said first.
#[test]
fn an_end_that_comes_late_over_a_connection_given_up_ends_no_other_transaction() {
    let mut node = TestNode::start();
    let mut client = topic(&node, "t", 1);
    for version in 0..=1 {
        let mut producer = Producer::ready(&node, &format!("p{version}"), version);
        assert_eq!(producer.write("t", 0, &["whole"]), 0);
        let mut given_up = std::mem::replace(&mut producer.client, node.client());
        assert_eq!(producer.end(COMMIT), 0);
        producer.wait_for("CompleteCommit");
        assert_eq!(producer.write("t", 0, &["half"]), 0);
        let late = EndTxnRequest {
            transactional_id: producer.transactional_id.as_str().into(),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            committed: COMMIT,
            ..Default::default()
        };
        given_up.send(late, 4);
        assert!(given_up.is_closed());
        assert_eq!(producer.state(), "Ongoing");
        assert_eq!(producer.end(ABORT), 0);
        producer.wait_for("CompleteAbort");
    }
    wait_until_stable(&mut client, "t", 0);
    assert_eq!(read(&mut client, "t", 0, true), ["whole", "whole"]);
    assert_eq!(read(&mut client, "t", 0, false), ["whole", "half", "whole", "half"]);
    assert!(node.stop().success());
}

#[test]
fn a_producer_that_uses_two_connections_comes_back_with_another_and_goes_on() {
    let mut node = TestNode::start();
    let mut client = topic(&node, "t", 2);
    let mut producer = Producer::ready(&node, "payments", 1);
    let mut other = node.client();
    for round in 0..6 {
        std::mem::swap(&mut producer.client, &mut other);
        if round > 0 {
            producer.client.send(producer.addition("t", &[0]), 3);
            assert!(producer.client.is_closed());
            producer.client = node.client();
        }
        assert_eq!(producer.write("t", 0, &["x"]), 0);
        assert_eq!(producer.end(COMMIT), 0);
    }
    wait_until_stable(&mut client, "t", 0);
    assert_eq!(read(&mut client, "t", 0, true), ["x"; 6]);
    assert!(node.stop().success());
}
