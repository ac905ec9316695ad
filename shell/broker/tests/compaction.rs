//! Compaction in a running node: of each key the newest record stays, through restarts and kills, and readers never notice.

mod harness;

use barnabas_base::TimestampMs;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{FetchRequest, ProduceRequest, ResponseBody};
use barnabas_wire::records::{BatchBuilder, BatchOptions, Codec, Compression, batches};
use bytes::Bytes;
use harness::{Client, TestNode, now_ms};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const QUICK: [&str; 2] = ["log.cleaner.backoff.ms=50", "log.cleaner.dedupe.buffer.size=1000000"];
const COMPACTED: [(&str, &str); 4] = [
    ("cleanup.policy", "compact"),
    ("segment.bytes", "1048576"),
    ("min.cleanable.dirty.ratio", "0.01"),
    ("file.delete.delay.ms", "100"),
];

/// Keys and what they stand for.
type Model = BTreeMap<String, Option<String>>;

struct Writer {
    client: Client,
    next: u64,
    model: Model,
    end: i64,
}

impl Writer {
    fn new(node: &TestNode) -> Self {
        Self { client: node.client(), next: 0, model: Model::new(), end: 0 }
    }

    /// A batch of 50 records over 200 keys, every seventh a tombstone; waits until it is acknowledged.
    fn write(&mut self) -> bool {
        let codec = [Codec::None, Codec::Gzip, Codec::Lz4, Codec::Zstd][(self.next / 50 % 4) as usize];
        let options = BatchOptions { compression: Compression::of(codec), ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options);
        let mut news = Vec::new();
        for _ in 0..50 {
            let key = format!("key{}", self.next * 7919 % 200);
            let value = (!self.next.is_multiple_of(7)).then(|| format!("{:0>600}", self.next));
            builder.push(
                TimestampMs(now_ms()),
                Some(key.as_bytes()),
                value.as_ref().map(|v| v.as_bytes()),
                &[],
            );
            news.push((key, value));
            self.next += 1;
        }
        let records = builder.build().expect("a batch");
        let data = PartitionProduceData { index: 0, records: Some(records), ..Default::default() };
        let topic = TopicProduceData { name: "t".into(), partition_data: vec![data], ..Default::default() };
        let request =
            ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() };
        let Some(ResponseBody::Produce(response)) = self.client.try_call(request, 9) else { return false };
        let answer = &response.responses[0].partition_responses[0];
        assert_eq!(answer.error_code, 0, "{answer:?}");
        assert!(answer.base_offset >= self.end, "offsets rise");
        self.end = answer.base_offset + 50;
        self.model.extend(news);
        true
    }
}

/// Every record from the start on: how many there are, and what each key stands for.
fn read(node: &TestNode) -> (usize, Model) {
    let mut client = node.client();
    let (mut at, mut count, mut model) = (0, 0, Model::new());
    loop {
        let records = fetch(&mut client, at);
        if records.is_empty() {
            return (count, model);
        }
        for batch in batches(records) {
            let batch = batch.expect("a batch");
            batch.check_crc().expect("its checksum");
            assert!(batch.header().next_offset().get() > at, "reading goes on");
            for record in &batch.records().expect("records") {
                let record = record.expect("a record");
                if record.offset.get() < at {
                    continue;
                }
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
                model.insert(text(record.key.expect("a key")), record.value.map(text));
                count += 1;
            }
            at = batch.header().next_offset().get();
        }
    }
}

fn fetch(client: &mut Client, from: i64) -> Bytes {
    let partition = FetchPartition {
        partition: 0,
        fetch_offset: from,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    let topic = FetchTopic { topic: "t".into(), partitions: vec![partition], ..Default::default() };
    let request = FetchRequest {
        max_wait_ms: 0,
        min_bytes: 0,
        max_bytes: 1 << 20,
        topics: vec![topic],
        ..Default::default()
    };
    let ResponseBody::Fetch(response) = client.call(request, 11) else { panic!("another response") };
    let partition = &response.responses[0].partitions[0];
    assert_eq!(partition.error_code, 0, "{partition:?}");
    partition.records.clone().unwrap_or_default()
}

/// Without tombstones: those may be gone.
fn alive(model: &Model) -> Model {
    model
        .iter()
        .filter(|(_, value)| value.is_some())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let asked = Instant::now();
    while !is_so() {
        assert!(asked.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn cleanings(node: &TestNode) -> usize {
    node.log().matches("compacted up to offset").count()
}

#[test]
fn a_compacted_topic_keeps_the_newest_of_each_key_and_starts_again() {
    let mut node = TestNode::start_with(&QUICK);
    node.client().create_topic("t", 1, &COMPACTED);
    let mut writer = Writer::new(&node);
    for _ in 0..400 {
        assert!(writer.write());
    }
    wait_until("the log is compacted", || read(&node).0 < 6_000);
    let (_, found) = read(&node);
    assert_eq!(alive(&found), alive(&writer.model));
    let checkpoint = node.data().join("cleaner-offset-checkpoint");
    wait_until("the checkpoint names it", || {
        std::fs::read_to_string(&checkpoint).is_ok_and(|text| text.contains("t 0 "))
    });
    assert!(node.stop().success());
    let cleaned = cleanings(&node);
    node.launch();
    assert_eq!(alive(&read(&node).1), alive(&writer.model));
    // What is clean is not cleaned again.
    std::thread::sleep(Duration::from_millis(500));
    assert!(cleanings(&node) <= cleaned + 1, "{}", node.log());
    assert!(node.stop().success());
}

#[test]
fn kills_while_it_is_compacted_lose_nothing() {
    let mut node = TestNode::start_with(&QUICK);
    node.client().create_topic("t", 1, &COMPACTED);
    let mut writer = Writer::new(&node);
    for round in 0..8 {
        for _ in 0..120 {
            assert!(writer.write());
        }
        // Between the first and the last step of a cleaning, somewhere.
        std::thread::sleep(Duration::from_millis(round * 17));
        node.kill();
        node.launch();
        writer.client = node.client();
        assert_eq!(alive(&read(&node).1), alive(&writer.model), "round {round}");
    }
    wait_until("the log is compacted", || read(&node).0 < 6_000);
    assert_eq!(alive(&read(&node).1), alive(&writer.model));
    assert!(node.stop().success());
}

#[test]
fn a_topic_that_becomes_compacted_is_compacted() {
    use barnabas_wire::messages::IncrementalAlterConfigsRequest;
    use barnabas_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
    let mut node = TestNode::start_with(&QUICK);
    node.client().create_topic(
        "t",
        1,
        &[("segment.bytes", "1048576"), ("min.cleanable.dirty.ratio", "0.01")],
    );
    let mut writer = Writer::new(&node);
    for _ in 0..200 {
        assert!(writer.write());
    }
    let all = read(&node).0;
    assert_eq!(all, 10_000);
    let config = AlterableConfig {
        name: "cleanup.policy".into(),
        config_operation: 0,
        value: Some("compact".into()),
        ..Default::default()
    };
    let resource = AlterConfigsResource {
        resource_type: 2,
        resource_name: "t".into(),
        configs: vec![config],
        ..Default::default()
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let ResponseBody::IncrementalAlterConfigs(response) = node.client().call(request, 1) else { panic!() };
    assert_eq!(response.responses[0].error_code, 0, "{response:?}");
    wait_until("the log is compacted", || read(&node).0 < 5_000);
    assert_eq!(alive(&read(&node).1), alive(&writer.model));
    assert!(node.stop().success());
}
