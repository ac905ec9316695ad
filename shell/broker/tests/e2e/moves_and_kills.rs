//! Partitions move between three log directories at random while idempotent producers write into them, and the node
//! is killed at random points: every acknowledged record is there once, in its order, without any repair by hand.
//!
//! `BARNABAS_MOVE_KILLS` sets the number of kills; the short form is a handful.

use crate::harness::{Client, TempDir, TestNode, now_ms};
use barnabas_base::{ProducerEpoch, ProducerId, Sequence, TimestampMs, TopicId};
use barnabas_wire::ApiKey;
use barnabas_wire::messages::alter_replica_log_dirs_request::{AlterReplicaLogDir, AlterReplicaLogDirTopic};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{
    AlterReplicaLogDirsRequest, DescribeLogDirsRequest, FetchRequest, ProduceRequest, ResponseBody,
};
use barnabas_wire::records::{BatchBuilder, BatchOptions, batches};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

const PARTITIONS: i32 = 3;
const TOPIC: &str = "moved";

/// Enough for a test: SplitMix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        barnabas_base::split_mix_64(&mut self.0) % bound
    }
}

fn connect(port: u16) -> Client {
    loop {
        match Client::try_connect(port) {
            Ok(client) => return client,
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn ask(
    client: &mut Client,
    body: impl Into<barnabas_wire::RequestBody>,
    version: i16,
) -> Option<ResponseBody> {
    let body = body.into();
    let key: ApiKey = body.key();
    if !client.try_send(body, version) {
        return None;
    }
    client.try_receive(key, version).map(|(_, response)| response)
}

/// One producer of one partition, one batch at a time, each sent until it is acknowledged.
struct Producer {
    port: u16,
    partition: i32,
    id: ProducerId,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicI32>,
}

impl Producer {
    fn run(self) {
        let mut client = connect(self.port);
        let mut next = 0;
        while !self.stop.load(Ordering::Relaxed) {
            match self.produce(&mut client, next) {
                // DUPLICATE_SEQUENCE_NUMBER: it was there already.
                Some(0 | 46) => {
                    self.acknowledged.store(next + 1, Ordering::Release);
                    next += 1;
                }
                Some(code @ (45 | 59 | 47)) => {
                    panic!("partition {}: sequence {next} was refused: {code}", self.partition)
                }
                Some(_) => std::thread::sleep(Duration::from_millis(10)),
                None => client = connect(self.port),
            }
        }
    }

    fn produce(&self, client: &mut Client, number: i32) -> Option<i16> {
        let options = BatchOptions {
            producer_id: self.id,
            producer_epoch: ProducerEpoch(0),
            base_sequence: Sequence(number),
            ..BatchOptions::default()
        };
        let mut builder = BatchBuilder::new(options);
        let value = format!("{number} {}", "x".repeat(3_000));
        builder.push(TimestampMs(now_ms()), None, Some(value.as_bytes()), &[]);
        let data = PartitionProduceData {
            index: self.partition,
            records: Some(builder.build().expect("a batch")),
            ..PartitionProduceData::default()
        };
        let topic = TopicProduceData { name: TOPIC.into(), partition_data: vec![data], ..Default::default() };
        let request =
            ProduceRequest { acks: -1, timeout_ms: 5_000, topic_data: vec![topic], ..Default::default() };
        let ResponseBody::Produce(response) = ask(client, request, 9)? else { panic!("another response") };
        Some(response.responses[0].partition_responses[0].error_code)
    }
}

fn alter(client: &mut Client, path: &str, partition: i32) -> Option<i16> {
    let topic =
        AlterReplicaLogDirTopic { name: TOPIC.into(), partitions: vec![partition], ..Default::default() };
    let dir = AlterReplicaLogDir { path: path.into(), topics: vec![topic], ..Default::default() };
    let request = AlterReplicaLogDirsRequest { dirs: vec![dir], ..Default::default() };
    let ResponseBody::AlterReplicaLogDirs(response) = ask(client, request, 2)? else {
        panic!("another response")
    };
    Some(response.results[0].partitions[0].error_code)
}

/// Each value's number, as the whole partition has them.
fn numbers(client: &mut Client, topic: TopicId, partition: i32) -> Vec<i32> {
    let mut numbers = Vec::new();
    loop {
        let wanted = FetchPartition {
            partition,
            fetch_offset: numbers.len() as i64,
            partition_max_bytes: 8 << 20,
            ..FetchPartition::default()
        };
        let topic = FetchTopic { topic_id: topic, partitions: vec![wanted], ..FetchTopic::default() };
        let request = FetchRequest {
            max_wait_ms: 100,
            min_bytes: 0,
            max_bytes: 8 << 20,
            topics: vec![topic],
            ..FetchRequest::default()
        };
        let ResponseBody::Fetch(response) = client.call(request, 13) else { panic!("another response") };
        let found = &response.responses[0].partitions[0];
        assert_eq!(found.error_code, 0, "{found:?}");
        let before = numbers.len();
        for batch in batches(found.records.clone().unwrap_or_default()) {
            for record in &batch.expect("a batch").records().expect("records") {
                let value = record.expect("a record").value.expect("a value");
                let text = String::from_utf8(value.to_vec()).expect("text");
                numbers.push(text.split(' ').next().expect("a number").parse().expect("a number"));
            }
        }
        if numbers.len() == before {
            return numbers;
        }
    }
}

/// No copy is left, and each partition lies in one directory.
fn is_settled(client: &mut Client) -> bool {
    let request = DescribeLogDirsRequest { topics: None, ..Default::default() };
    let ResponseBody::DescribeLogDirs(response) = client.call(request, 4) else { panic!("another response") };
    let topics = response.results.iter().flat_map(|dir| &dir.topics).filter(|topic| *topic.name == *TOPIC);
    let rows: Vec<_> = topics.flat_map(|topic| &topic.partitions).collect();
    rows.len() == PARTITIONS as usize && rows.iter().all(|row| !row.is_future_key)
}

fn move_and_kill(node: &mut TestNode, dirs: &[PathBuf; 3], chance: &mut Chance, kills: u64) {
    for _ in 0..kills {
        let until = Instant::now() + Duration::from_millis(100 + chance.below(600));
        let mut client = connect(node.port);
        while Instant::now() < until {
            let path = dirs[chance.below(3) as usize].display().to_string();
            let code = alter(&mut client, &path, chance.below(PARTITIONS as u64) as i32);
            assert!(matches!(code, None | Some(0 | 56)), "{code:?}");
            std::thread::sleep(Duration::from_millis(chance.below(60)));
        }
        node.kill();
        node.launch();
    }
}

#[test]
fn nothing_is_lost_or_doubled_by_moves_that_are_cut_off() {
    let kills = std::env::var("BARNABAS_MOVE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let mut chance = Chance(now_ms() as u64);
    eprintln!("seed {}", chance.0);
    let root = TempDir::new();
    let dirs = ["a", "b", "c"].map(|name| root.path().join(name));
    let log_dirs = format!("log.dirs={}", dirs.each_ref().map(|dir| dir.display().to_string()).join(","));
    let mut node = TestNode::start_with(&[&log_dirs]);
    let mut client = node.client();
    client.create_topic(TOPIC, PARTITIONS, &[("segment.bytes", "1048576")]);
    let topic = client.topic_id(TOPIC);
    let stop = Arc::new(AtomicBool::new(false));
    let producers: Vec<_> = (0..PARTITIONS)
        .map(|partition| {
            let acknowledged = Arc::new(AtomicI32::new(0));
            let producer = Producer {
                port: node.port,
                partition,
                id: client.producer_id(),
                stop: stop.clone(),
                acknowledged: acknowledged.clone(),
            };
            (std::thread::spawn(move || producer.run()), acknowledged)
        })
        .collect();
    move_and_kill(&mut node, &dirs, &mut chance, kills);
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = Vec::new();
    for (thread, count) in producers {
        thread.join().expect("no producer was refused");
        acknowledged.push(count.load(Ordering::Acquire));
    }
    let mut client = node.client();
    let settling = Instant::now();
    while !is_settled(&mut client) {
        assert!(settling.elapsed() < Duration::from_secs(30), "moves go on: {}", node.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    for (partition, &acknowledged) in (0..).zip(&acknowledged) {
        let found = numbers(&mut client, topic, partition);
        let expected: Vec<i32> = (0..found.len() as i32).collect();
        assert_eq!(found, expected, "partition {partition}: each once, in order");
        assert!(
            found.len() as i32 >= acknowledged,
            "partition {partition}: {} of {acknowledged}",
            found.len()
        );
    }
    let moved = node.log().matches("moved to ").count();
    let cut_off = node.log().matches("a copy of an interrupted move").count();
    let restarted = node.log().matches("the copy was restarted").count();
    eprintln!(
        "{kills} kills, {moved} moves ({cut_off} cut off between renames, {restarted} restarted), acknowledged {acknowledged:?}"
    );
    assert!(moved > 0 && acknowledged.iter().all(|&count| count > 0));
    assert!(node.stop().success());
    one_good_copy(&dirs);
}

/// Each partition has one folder, no copy in the making, and only that directory's checkpoints name it.
fn one_good_copy(dirs: &[PathBuf; 3]) {
    for partition in 0..PARTITIONS {
        let name = format!("{TOPIC}-{partition}");
        let holds = |dir: &PathBuf| dir.join(&name).exists();
        assert_eq!(dirs.iter().filter(|dir| holds(dir)).count(), 1, "{name}");
        for dir in dirs {
            let entries = std::fs::read_dir(dir).expect("listed").flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let copies: Vec<String> =
                names.filter(|entry| entry.starts_with(&name) && entry.ends_with("-future")).collect();
            assert_eq!(copies, Vec::<String>::new(), "{}", dir.display());
            for file in ["recovery-point-offset-checkpoint", "replication-offset-checkpoint"] {
                let text = std::fs::read_to_string(dir.join(file)).unwrap_or_default();
                let is_named = text.contains(&format!("{TOPIC} {partition} "));
                assert_eq!(is_named, holds(dir), "{name} in {}/{file}", dir.display());
            }
        }
    }
}
