//! Client quotas: a client's bytes per second stay near its quota, and its connection is muted meanwhile.

use crate::authorization::{OPEN, allow};
use crate::harness::cluster::Cluster;
use crate::harness::three_dirs::produce_batch;
use crate::harness::{Client, TestNode, batch, binary, free_port, metric};
use barnabas_wire::ApiKey;
use barnabas_wire::messages::create_topics_request::CreatableTopic;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::write_txn_markers_request::{WritableTxnMarker, WritableTxnMarkerTopic};
use barnabas_wire::messages::{
    CreateTopicsRequest, FetchRequest, ProduceRequest, ResponseBody, WriteTxnMarkersRequest,
};
use std::time::{Duration, Instant};

const QUOTA: f64 = 400_000.0;
const REQUEST_BYTES: usize = 40_000;
/// Three windows: a first burst of two seconds is free.
const WINDOWS: &str = "quota.window.num=3";

fn set_quota(node: &TestNode, words: &str) {
    let server = format!("127.0.0.1:{}", node.port);
    let output = binary()
        .args(["configs", "--bootstrap-server", &server, "--alter"])
        .args(words.split_whitespace())
        .output()
        .expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The time for which the answer says that the client is throttled.
fn produce(client: &mut Client, topic: &str) -> i32 {
    produce_as(client, "test", topic)
}

fn produce_as(client: &mut Client, client_id: &str, topic: &str) -> i32 {
    let value = "v".repeat(REQUEST_BYTES);
    let data = PartitionProduceData { records: Some(batch(&[&value])), ..PartitionProduceData::default() };
    let topic = TopicProduceData { name: topic.into(), partition_data: vec![data], ..Default::default() };
    let request = ProduceRequest { acks: 1, timeout_ms: 5000, topic_data: vec![topic], ..Default::default() };
    client.send_as(client_id, request, 9);
    let (_, ResponseBody::Produce(response)) = client.receive(ApiKey::Produce, 9) else {
        panic!("another response")
    };
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
    response.throttle_time_ms
}

/// Bytes per second and calls, once the first burst is over.
fn rate(mut call: impl FnMut() -> (usize, i32)) -> f64 {
    while call().1 == 0 {}
    let began = Instant::now();
    let mut bytes = 0;
    while began.elapsed() < Duration::from_secs(8) {
        bytes += call().0;
    }
    bytes as f64 / began.elapsed().as_secs_f64()
}

#[test]
fn producer_stays_near_its_quota_and_its_connection_is_muted() {
    let metrics = free_port();
    let listener = format!("metrics.listener=127.0.0.1:{metrics}");
    let mut node = TestNode::start_with(&[WINDOWS, &listener]);
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    for _ in 0..60 {
        assert_eq!(produce(&mut client, "t"), 0, "no quota, no throttling");
    }
    set_quota(&node, "--client-defaults --add-config producer_byte_rate=400000");
    let reached = rate(|| (REQUEST_BYTES, produce(&mut client, "t")));
    assert!((0.7 * QUOTA..1.3 * QUOTA).contains(&reached), "{reached} bytes per second of {QUOTA}");

    // The answer comes at once; the next request is not read before the time is over.
    let mut throttled = 0;
    while throttled == 0 {
        throttled = produce(&mut client, "t");
    }
    let began = Instant::now();
    produce(&mut client, "t");
    let waited = began.elapsed().as_millis() as i64;
    assert!(waited >= i64::from(throttled) - 20, "{waited} of {throttled} ms");

    set_quota(&node, "--client-defaults --delete-config producer_byte_rate");
    // The wait of the last request.
    produce(&mut client, "t");
    for _ in 0..60 {
        assert_eq!(produce(&mut client, "t"), 0, "the quota is gone");
    }
    let shown = metric(metrics, "barnabas_quota_accounts");
    assert!(shown.is_some_and(|accounts| accounts >= 1.0), "{shown:?}");
    assert!(node.stop().success());
}

#[test]
fn consumer_stays_near_its_quota_and_gets_what_its_windows_hold_at_most() {
    let mut node = TestNode::start_with(&[WINDOWS]);
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    let value = "v".repeat(REQUEST_BYTES);
    for _ in 0..100 {
        assert_eq!(produce_batch(&mut client, "t", 0, batch(&[&value])), 0);
    }
    let topic = client.topic_id("t");
    let mut fetch = |max_bytes| {
        let wanted = FetchPartition { partition_max_bytes: 50 << 20, ..FetchPartition::default() };
        let topic = FetchTopic { topic_id: topic, partitions: vec![wanted], ..FetchTopic::default() };
        let request = FetchRequest {
            replica_id: -1,
            session_epoch: -1,
            max_bytes,
            topics: vec![topic],
            ..FetchRequest::default()
        };
        let ResponseBody::Fetch(response) = client.call(request, 13) else { panic!("another response") };
        let partition = response.responses.first().map(|topic| &topic.partitions[0]);
        let records = partition.and_then(|one| one.records.as_ref()).map_or(0, |records| records.len());
        // As with Kafka, an answer over the quota is empty, and the client asks again.
        assert_eq!(response.throttle_time_ms > 0, partition.is_none(), "{response:?}");
        (records, response.throttle_time_ms)
    };
    assert!(fetch(50 << 20).0 > 3_000_000);
    set_quota(&node, "--client-defaults --add-config consumer_byte_rate=400000");
    let (bytes, _) = fetch(50 << 20);
    assert!((1..=2 * QUOTA as usize).contains(&bytes), "{bytes}");
    let reached = rate(|| fetch(60_000));
    assert!((0.7 * QUOTA..1.3 * QUOTA).contains(&reached), "{reached} bytes per second of {QUOTA}");
    assert!(node.stop().success());
}

/// Kafka would withhold it for ever.
#[test]
fn batch_larger_than_the_windows_hold_reaches_its_consumer() {
    let mut node = TestNode::start_with(&[WINDOWS]);
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    let value = "v".repeat(REQUEST_BYTES);
    assert_eq!(produce_batch(&mut client, "t", 0, batch(&[&value])), 0);
    set_quota(&node, "--client-defaults --add-config consumer_byte_rate=10000");
    let wanted = FetchPartition { partition_max_bytes: 1 << 20, ..FetchPartition::default() };
    let topic =
        FetchTopic { topic_id: client.topic_id("t"), partitions: vec![wanted], ..FetchTopic::default() };
    let request = FetchRequest {
        replica_id: -1,
        session_epoch: -1,
        max_bytes: 1 << 20,
        topics: vec![topic],
        ..Default::default()
    };
    let ResponseBody::Fetch(first) = client.call(request.clone(), 13) else { panic!("another response") };
    let records = first.responses[0].partitions[0].records.as_ref().map_or(0, |records| records.len());
    assert!(
        records > REQUEST_BYTES && first.throttle_time_ms > 0,
        "{records}, {} ms",
        first.throttle_time_ms
    );
    assert!(node.stop().success());
}

/// Creates or validates a topic. Returns its code and the time for which the answer says that the client is throttled.
fn create(client: &mut Client, topic: &str, partitions: i32, version: i16) -> (i16, i32) {
    let topic = CreatableTopic {
        name: topic.into(),
        num_partitions: partitions,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    let ResponseBody::CreateTopics(response) = client.call(request, version) else { panic!("another") };
    (response.topics[0].error_code, response.throttle_time_ms)
}

#[test]
fn client_past_its_mutation_rate_is_refused_and_muted() {
    let mut node = TestNode::start_with(&["controller.quota.window.num=5"]);
    set_quota(&node, "--client-defaults --add-config controller_mutation_rate=2");
    let mut client = node.client();
    // Five windows hold ten partitions; one topic may take more.
    assert_eq!(create(&mut client, "a", 12, 7), (0, 0));
    let (code, throttled) = create(&mut client, "b", 1, 7);
    assert!(code == 89 && (1..=1000).contains(&throttled), "{code} {throttled}");
    let began = Instant::now();
    assert_eq!(create(&mut client, "b", 3, 7), (0, 0), "the connection was muted until there was room");
    let waited = began.elapsed().as_millis() as i64;
    assert!(waited >= i64::from(throttled) - 20, "{waited} of {throttled} ms");
    // A version that does not know the error is throttled alone.
    let (code, throttled) = create(&mut client, "c", 1, 5);
    assert!(code == 0 && throttled > 0, "{code} {throttled}");
    // Without the quota the client is not throttled.
    set_quota(&node, "--client-defaults --delete-config controller_mutation_rate");
    assert_eq!(create(&mut node.client(), "d", 50, 7), (0, 0));
    assert!(node.stop().success());
}

/// The active controller counts what all brokers forward for a client.
#[test]
fn mutation_rate_counts_over_all_brokers() {
    let cluster = Cluster::start("controller.quota.window.num=5");
    set_quota(&cluster.nodes[&1], "--client-defaults --add-config controller_mutation_rate=2");
    assert_eq!(create(&mut cluster.nodes[&1].client(), "t", 60, 7), (0, 0));
    for node in cluster.nodes.values() {
        let (code, throttled) = create(&mut node.client(), "u", 1, 7);
        assert!(code == 89 && throttled > 0, "{code} {throttled}");
    }
    cluster.stop();
}

/// What a client sends that asks for what only brokers may: the code for its partition.
fn write_marker(client: &mut Client) -> i16 {
    let topic =
        WritableTxnMarkerTopic { name: "none".into(), partition_indexes: vec![0], ..Default::default() };
    let marker = WritableTxnMarker { topics: vec![topic], ..Default::default() };
    let request = WriteTxnMarkersRequest { markers: vec![marker], ..Default::default() };
    client.send_as("marker", request, 1);
    let (_, ResponseBody::WriteTxnMarkers(response)) = client.receive(ApiKey::WriteTxnMarkers, 1) else {
        panic!("another response")
    };
    response.markers[0].topics[0].partitions[0].error_code
}

/// What brokers ask of each other is not charged, and what a client asks in their place is.
#[test]
fn only_brokers_are_exempt_for_what_brokers_ask() {
    const CLUSTER_ACTION: i8 = 9;
    let metrics = free_port();
    let listener = format!("metrics.listener=127.0.0.1:{metrics}");
    let mut node = TestNode::start_with(&[OPEN[0], OPEN[1], &listener]);
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    let throttled = || metric(metrics, "barnabas_quota_throttled_requests_total{quota=\"request\"}");
    set_quota(&node, "--entity-type clients --entity-name marker --add-config request_percentage=0.0001");
    set_quota(
        &node,
        "--entity-type clients --entity-name batches-handed-on --add-config producer_byte_rate=1000",
    );
    // The cluster has no ACLs: the client may do what brokers do.
    for _ in 0..3 {
        assert_eq!((write_marker(&mut client), produce_as(&mut client, "batches-handed-on", "t")), (3, 0));
    }
    assert_eq!(throttled(), Some(0.0));

    allow(&mut client, &[(4, "kafka-cluster", 3, "User:alice", CLUSTER_ACTION)]);
    assert_eq!((write_marker(&mut client), write_marker(&mut client)), (31, 31));
    assert!(throttled().is_some_and(|requests| requests >= 1.0));
    assert!(produce_as(&mut node.client(), "batches-handed-on", "t") > 0);
    assert!(node.stop_expecting_trouble().success());
}
