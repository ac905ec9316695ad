//! Dead letters of share groups (KIP-1191) over the wire: what is given up is in the topic that the group names, with
//! what Kafka writes beside it.

use crate::harness::share::{ACCEPT, REJECT, RELEASE, ShareMember, set_group_configs};
use crate::harness::{Client, TestNode, now_ms};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{FetchRequest, ProduceRequest, ResponseBody};
use barnabas_wire::records::{BatchBuilder, BatchOptions, Codec, Compression, batches};
use std::time::{Duration, Instant};

const GROUP: &str = "g";
const AUTO_CREATE: &str = "errors.deadletterqueue.auto.create.topics.enable=true";

/// Six records with keys and headers, compressed.
fn produce(client: &mut Client, topic: &str) {
    let compression = Compression { codec: Codec::Gzip, level: None };
    let mut builder = BatchBuilder::new(BatchOptions { compression, ..BatchOptions::default() });
    for number in 0..6 {
        let (key, value) = (format!("key-{number}"), format!("value-{number}"));
        let headers: [(&[u8], Option<&[u8]>); 1] = [(b"own", Some(b"header"))];
        let now = barnabas_base::TimestampMs(now_ms() - 1_000);
        builder.push(now, Some(key.as_bytes()), Some(value.as_bytes()), &headers);
    }
    let records = Some(builder.build().expect("a batch"));
    let partition = PartitionProduceData { index: 0, records, ..Default::default() };
    let data = TopicProduceData { name: topic.into(), partition_data: vec![partition], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![data], ..Default::default() };
    let ResponseBody::Produce(response) = client.call(request, 9) else { panic!("another response") };
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
}

#[derive(Debug, PartialEq)]
struct Letter {
    key: Option<String>,
    value: Option<String>,
    headers: Vec<(String, String)>,
    timestamp: i64,
}

impl Letter {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().rfind(|(key, _)| key == name);
        found.map_or_else(|| panic!("no {name} in {self:?}"), |(_, value)| value)
    }
}

/// What the topic holds, as far as it is there.
fn letters(client: &mut Client, topic: &str) -> Vec<Letter> {
    let partition = FetchPartition { partition_max_bytes: 1 << 20, ..Default::default() };
    let wanted = FetchTopic { topic: topic.into(), partitions: vec![partition], ..Default::default() };
    let request = FetchRequest {
        replica_id: -1,
        max_wait_ms: 10,
        max_bytes: 1 << 20,
        session_epoch: -1,
        topics: vec![wanted],
        ..Default::default()
    };
    let ResponseBody::Fetch(response) = client.call(request, 11) else { panic!("another response") };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut all = Vec::new();
    let records = response.responses.first().and_then(|topic| topic.partitions[0].records.clone());
    for batch in batches(records.unwrap_or_default()) {
        let records = batch.expect("a batch").records().expect("records");
        for record in &records {
            let record = record.expect("a record");
            let headers = record.headers();
            all.push(Letter {
                key: record.key.map(text),
                value: record.value.map(text),
                headers: headers
                    .map(|(key, value)| (text(key), value.map(text).unwrap_or_default()))
                    .collect(),
                timestamp: record.timestamp.0,
            });
        }
    }
    all
}

fn await_letters(client: &mut Client, topic: &str, count: usize) -> Vec<Letter> {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let found = letters(client, topic);
        if found.len() >= count {
            return found;
        }
        assert!(Instant::now() < until, "{found:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Rejects one record, and releases three as often as the group allows.
fn give_up(node: &TestNode, topic: &str) {
    let mut member = ShareMember::join(node.client(), GROUP, topic);
    assert_eq!(member.fetch_some(&[]), [(0, 5, 1)]);
    let again = member.fetch_some(&[(0, 1, ACCEPT), (2, 2, REJECT), (3, 5, RELEASE)]);
    assert_eq!(again, [(3, 5, 2)]);
    assert_eq!(member.fetch(&[(3, 5, RELEASE)]), []);
}

#[test]
fn what_is_given_up_is_written_with_where_it_stood_and_why() {
    let mut node = TestNode::start_with(&[AUTO_CREATE]);
    let mut client = node.client();
    client.create_topic("orders", 1, &[]);
    set_group_configs(
        &mut client,
        GROUP,
        &[
            ("share.auto.offset.reset", "earliest"),
            ("share.delivery.count.limit", "2"),
            ("errors.deadletterqueue.topic.name", "dlq.orders"),
            ("errors.deadletterqueue.copy.record.enable", "true"),
        ],
    );
    produce(&mut client, "orders");
    let begun = now_ms();
    give_up(&node, "orders");
    let found = await_letters(&mut client, "dlq.orders", 4);
    let of = |name: &str| found.iter().map(|letter| letter.header(name)).collect::<Vec<_>>();
    assert_eq!(of("__dlq.errors.topic"), ["orders"; 4]);
    assert_eq!(of("__dlq.errors.partition"), ["0"; 4]);
    assert_eq!(of("__dlq.errors.offset"), ["2", "3", "4", "5"]);
    assert_eq!(of("__dlq.errors.group"), [GROUP; 4]);
    assert_eq!(of("__dlq.errors.delivery.count"), ["1", "2", "2", "2"]);
    let over = "Offset delivery count exceeded the threshold.";
    assert_eq!(of("__dlq.errors.message"), ["Offset rejected by client.", over, over, over]);
    assert_eq!(of("own"), ["header"; 4]);
    for (letter, number) in found.iter().zip(2..) {
        assert_eq!(letter.key, Some(format!("key-{number}")));
        assert_eq!(letter.value, Some(format!("value-{number}")));
        assert_eq!(letter.headers.len(), 7);
        assert!((begun..=now_ms()).contains(&letter.timestamp), "dated by when it was given up");
    }
    // The group goes on behind them, also after a kill. What is on its way while that happens may be written again.
    std::thread::sleep(Duration::from_millis(500));
    node.kill();
    node.launch();
    produce(&mut node.client(), "orders");
    let mut member = ShareMember::join(node.client(), GROUP, "orders");
    assert_eq!(member.fetch_some(&[]), [(6, 11, 1)]);
    assert_eq!(letters(&mut node.client(), "dlq.orders").len(), 4);
    assert!(node.stop().success());
}

#[test]
fn without_copies_a_letter_says_where_the_record_stood() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("orders", 1, &[]);
    client.create_topic("dlq.orders", 1, &[("errors.deadletterqueue.group.enable", "true")]);
    set_group_configs(
        &mut client,
        GROUP,
        &[
            ("share.auto.offset.reset", "earliest"),
            ("share.delivery.count.limit", "2"),
            ("errors.deadletterqueue.topic.name", "dlq.orders"),
        ],
    );
    produce(&mut client, "orders");
    give_up(&node, "orders");
    let found = await_letters(&mut client, "dlq.orders", 4);
    assert!(found.iter().all(|letter| (&letter.key, &letter.value) == (&None, &None)));
    assert!(found.iter().all(|letter| letter.headers.len() == 6));
    assert!(node.stop().success());
}

/// The topic cannot be used: the records are archived, the log has one line about it, and the group continues.
#[test]
fn an_unusable_dead_letter_topic_does_not_block_the_group() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("orders", 1, &[]);
    client.create_topic("dlq.orders", 1, &[]);
    set_group_configs(
        &mut client,
        GROUP,
        &[
            ("share.auto.offset.reset", "earliest"),
            ("share.delivery.count.limit", "2"),
            ("errors.deadletterqueue.topic.name", "dlq.orders"),
        ],
    );
    produce(&mut client, "orders");
    give_up(&node, "orders");
    produce(&mut client, "orders");
    let mut member = ShareMember::join(node.client(), GROUP, "orders");
    assert_eq!(member.fetch_some(&[]), [(6, 11, 1)]);
    assert_eq!(letters(&mut client, "dlq.orders"), []);
    let status = node.stop_expecting_trouble();
    assert!(status.success());
    let log = node.log();
    assert_eq!(log.matches("archived but not written to its dead-letter topic").count(), 1, "{log}");
    assert!(log.contains("errors.deadletterqueue.group.enable=true"), "{log}");
}
