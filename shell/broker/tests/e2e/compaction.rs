//! Compaction in a running node: of each key the newest record stays, through restarts and kills, and readers never
//! notice.

use crate::harness::transactions::{Model, write_transactions};
use crate::harness::{Client, TestNode, now_ms};
use barnabas_base::TimestampMs;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{FetchRequest, ProduceRequest, ResponseBody};
use barnabas_wire::records::{BatchBuilder, BatchOptions, Codec, Compression, batches};
use bytes::Bytes;
use std::time::{Duration, Instant};

const QUICK: [&str; 2] = ["log.cleaner.backoff.ms=50", "log.cleaner.dedupe.buffer.size=1048577"];
const COMPACTED: [(&str, &str); 4] = [
    ("cleanup.policy", "compact"),
    ("segment.bytes", "1048576"),
    ("min.cleanable.dirty.ratio", "0.01"),
    ("file.delete.delay.ms", "100"),
];

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
    read_from(node, 0)
}

fn read_from(node: &TestNode, from: i64) -> (usize, Model) {
    let mut client = node.client();
    let (mut at, mut count, mut model) = (from, 0, Model::new());
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
    assert_eq!(
        node.client().alter_config(1, (crate::harness::TOPIC, "t"), "cleanup.policy", Some("compact")),
        0
    );
    wait_until("the log is compacted", || read(&node).0 < 5_000);
    assert_eq!(alive(&read(&node).1), alive(&writer.model));
    assert!(node.stop().success());
}

#[test]
fn committed_offsets_do_not_pile_up_and_are_found_again() {
    let overrides = [
        QUICK[0],
        QUICK[1],
        "offsets.topic.num.partitions=1",
        "offsets.topic.segment.bytes=1048576",
        "log.cleaner.min.cleanable.ratio=0.01",
    ];
    let mut node = TestNode::start_with(&overrides);
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    // Makes the offsets topic.
    let request = barnabas_wire::messages::FindCoordinatorRequest { key: "g".into(), ..Default::default() };
    client.call(request, 2);
    for at in 0..1_200 {
        let asked = Instant::now();
        loop {
            match commit(&mut client, at) {
                0 => break,
                // The coordinator loads.
                14..=16 => assert!(asked.elapsed() < Duration::from_secs(10)),
                code => panic!("error {code}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let dir = node.data().join("__consumer_offsets-0");
    wait_until("the offsets topic is compacted", || log_bytes(&dir) < 2 << 20);
    node.kill();
    node.launch();
    assert_eq!(committed(&node), 1_199);
    assert!(node.stop().success());
    node.launch();
    assert_eq!(committed(&node), 1_199);
    assert!(node.stop().success());
}

fn commit(client: &mut Client, offset: i64) -> i16 {
    use barnabas_wire::messages::OffsetCommitRequest;
    use barnabas_wire::messages::offset_commit_request::{
        OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    };
    let partition = OffsetCommitRequestPartition {
        committed_offset: offset,
        committed_metadata: Some("m".repeat(4_000).as_str().into()),
        ..Default::default()
    };
    let topic =
        OffsetCommitRequestTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
    let request = OffsetCommitRequest {
        group_id: "g".into(),
        generation_id_or_member_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    };
    let ResponseBody::OffsetCommit(response) = client.call(request, 7) else { panic!("another response") };
    response.topics[0].partitions[0].error_code
}

fn committed(node: &TestNode) -> i64 {
    use barnabas_wire::messages::OffsetFetchRequest;
    use barnabas_wire::messages::offset_fetch_request::OffsetFetchRequestTopic;
    let asked = Instant::now();
    loop {
        let topic =
            OffsetFetchRequestTopic { name: "t".into(), partition_indexes: vec![0], ..Default::default() };
        let request =
            OffsetFetchRequest { group_id: "g".into(), topics: Some(vec![topic]), ..Default::default() };
        let ResponseBody::OffsetFetch(response) = node.client().call(request, 5) else {
            panic!("another response")
        };
        if response.error_code == 0 {
            return response.topics[0].partitions[0].committed_offset;
        }
        assert!(asked.elapsed() < Duration::from_secs(10), "{response:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn log_bytes(dir: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(dir).expect("a directory").flatten();
    let logs = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".log"));
    logs.map(|entry| entry.metadata().map_or(0, |data| data.len())).sum()
}

/// As a consumer with `isolation.level=read_committed`.
fn read_committed(node: &TestNode) -> (usize, Model) {
    let mut client = node.client();
    let (mut at, mut count, mut model) = (0, 0, Model::new());
    loop {
        let partition =
            FetchPartition { fetch_offset: at, partition_max_bytes: 1 << 20, ..Default::default() };
        let topic = FetchTopic { topic: "t".into(), partitions: vec![partition], ..Default::default() };
        let request = FetchRequest {
            max_bytes: 1 << 20,
            isolation_level: 1,
            topics: vec![topic],
            ..Default::default()
        };
        let ResponseBody::Fetch(response) = client.call(request, 11) else { panic!("another response") };
        let partition = &response.responses[0].partitions[0];
        assert_eq!(partition.error_code, 0, "{partition:?}");
        let records = partition.records.clone().unwrap_or_default();
        if records.is_empty() {
            return (count, model);
        }
        let mut aborted: Vec<(i64, i64)> = partition
            .aborted_transactions
            .iter()
            .flatten()
            .map(|aborted| (aborted.first_offset, aborted.producer_id))
            .collect();
        aborted.sort();
        let mut hidden = std::collections::BTreeSet::new();
        for batch in batches(records) {
            let batch = batch.expect("a batch");
            let header = batch.header();
            let (producer, last) = (header.producer_id.get(), header.last_offset().get());
            aborted.retain(|&(first, id)| {
                let begins = first <= last;
                if begins {
                    hidden.insert(id);
                }
                !begins
            });
            at = header.next_offset().get();
            if header.attributes.is_control() {
                hidden.remove(&producer);
                continue;
            }
            if hidden.contains(&producer) {
                continue;
            }
            for record in &batch.records().expect("records") {
                let record = record.expect("a record");
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
                model.insert(text(record.key.expect("a key")), record.value.map(text));
                count += 1;
            }
        }
    }
}

#[test]
fn transactions_are_compacted_and_read_committed_stays_what_it_was() {
    let mut node = TestNode::start_with(&QUICK);
    node.client().create_topic("t", 1, &COMPACTED);
    let id = node.client().topic_id("t");
    assert!(node.stop().success());
    let dir = node.data().join("t-0");
    std::fs::create_dir_all(&dir).expect("made");
    std::fs::write(dir.join("partition.metadata"), format!("version: 0\ntopic_id: {id}")).expect("written");
    let model = write_transactions(&dir);
    // As after a crash: indexes, transactions and producers are found again in the batches.
    std::fs::remove_file(node.data().join(".kafka_cleanshutdown")).expect("removed");
    node.launch();
    assert_eq!(read_committed(&node).1, model);
    wait_until("the log is compacted", || cleanings(&node) > 0 && read_committed(&node).0 < 300);
    assert_eq!(read_committed(&node).1, model);
    assert!(node.stop().success());
    node.launch();
    assert_eq!(read_committed(&node).1, model);
    assert!(node.stop().success());
}

#[test]
fn what_cannot_be_compacted_is_named_and_the_others_go_on() {
    let mut node = TestNode::start_with(&["log.cleaner.backoff.ms=1000000"]);
    let mut client = node.client();
    client.create_topic("t", 1, &COMPACTED);
    client.create_topic("damaged", 1, &COMPACTED);
    let mut writer = Writer::new(&node);
    for _ in 0..200 {
        assert!(writer.write());
    }
    assert!(node.stop().success());
    // The same log under another name, with one bit turned.
    let (from, to) = (node.data().join("t-0"), node.data().join("damaged-0"));
    std::fs::create_dir_all(&to).expect("made");
    node.launch();
    let id = node.client().topic_id("damaged");
    assert!(node.stop().success());
    for file in std::fs::read_dir(&from).expect("a directory").flatten() {
        std::fs::copy(file.path(), to.join(file.file_name())).expect("copied");
    }
    std::fs::write(to.join("partition.metadata"), format!("version: 0\ntopic_id: {id}")).expect("written");
    let first = to.join("00000000000000000000.log");
    let mut bytes = std::fs::read(&first).expect("a segment");
    // In the records of the first batch. The segment is short if a pass has compacted it before the stop.
    bytes[100] ^= 1;
    std::fs::write(&first, bytes).expect("written");
    node.set_overrides(&QUICK);
    node.launch();
    wait_until("the damage is named", || node.log().contains("is skipped until the next start"));
    wait_until("the other log is compacted", || read(&node).0 < 5_000);
    assert_eq!(alive(&read(&node).1), alive(&writer.model));
    std::thread::sleep(Duration::from_millis(500));
    let log = node.log();
    let named: Vec<&str> =
        log.lines().filter(|line| line.contains("is skipped until the next start")).collect();
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(named[0].contains("WARN") && named[0].contains("damaged-0"), "{named:?}");
    assert!(node.stop_expecting_trouble().success());
}

#[test]
fn deleted_records_leave_the_disk_of_an_unopened_partition() {
    use barnabas_wire::messages::DeleteRecordsRequest;
    use barnabas_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
    let mut node = TestNode::start_with(&["log.cleaner.backoff.ms=1000000"]);
    node.client().create_topic("t", 1, &[("retention.ms", "-1"), ("segment.bytes", "1048576")]);
    let mut writer = Writer::new(&node);
    for _ in 0..200 {
        assert!(writer.write());
    }
    let partition = DeleteRecordsPartition { offset: writer.end - 1, ..Default::default() };
    let topic = DeleteRecordsTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    let ResponseBody::DeleteRecords(response) = node.client().call(request, 2) else { panic!("another") };
    assert_eq!(response.topics[0].partitions[0].error_code, 0, "{response:?}");
    node.kill();
    let first = node.data().join("t-0/00000000000000000000.log");
    assert!(first.exists());
    node.set_overrides(&["log.cleaner.backoff.ms=1000000", "log.retention.check.interval.ms=200"]);
    node.launch();
    wait_until("the first segment goes", || !first.exists());
    let found = read_from(&node, writer.end - 1);
    assert_eq!(found.0, 1);
    assert!(node.stop().success());
}
