//! A node with three log directories, and what tests of them ask it.

use super::{Client, TempDir, TestNode, batch};
use barnabas_base::TopicId;
use barnabas_wire::messages::alter_replica_log_dirs_request::{AlterReplicaLogDir, AlterReplicaLogDirTopic};
use barnabas_wire::messages::describe_log_dirs_response::DescribeLogDirsResult;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::metadata_request::MetadataRequestTopic;
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{
    AlterReplicaLogDirsRequest, DescribeLogDirsRequest, FetchRequest, MetadataRequest, ProduceRequest,
    ResponseBody,
};
use barnabas_wire::records::Batch;
use bytes::Bytes;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub const STORAGE_ERROR: i16 = 56;

/// A node with three log directories, one after another in the order of their names.
#[derive(Debug)]
pub struct Rig {
    pub node: TestNode,
    pub dirs: [PathBuf; 3],
    _root: TempDir,
}

impl Rig {
    pub fn start(more: &[&str]) -> Self {
        let root = TempDir::new();
        let dirs = ["a", "b", "c"].map(|name| root.path().join(name));
        let log_dirs = format!("log.dirs={}", dirs.each_ref().map(|dir| dir.display().to_string()).join(","));
        let overrides: Vec<&str> = [log_dirs.as_str()].into_iter().chain(more.iter().copied()).collect();
        Self { node: TestNode::start_with(&overrides), dirs, _root: root }
    }

    pub fn describe(&self) -> Vec<DescribeLogDirsResult> {
        let request = DescribeLogDirsRequest { topics: None, ..Default::default() };
        let ResponseBody::DescribeLogDirs(response) = self.node.client().call(request, 5) else {
            panic!("another response")
        };
        let mut results = response.results;
        results.sort_by(|a, b| a.log_dir.cmp(&b.log_dir));
        assert_eq!(results.len(), 3);
        results
    }

    /// The partitions of `topic` in each directory.
    pub fn places(&self, topic: &str) -> [Vec<i32>; 3] {
        let described = self.describe();
        std::array::from_fn(|at| {
            let topics = described[at].topics.iter().filter(|found| *found.name == *topic);
            let mut found: Vec<i32> =
                topics.flat_map(|topic| topic.partitions.iter().map(|row| row.partition_index)).collect();
            found.sort_unstable();
            found
        })
    }

    pub fn leaders(&self, topic: &str) -> Vec<i32> {
        let topic = MetadataRequestTopic { name: Some(topic.into()), ..Default::default() };
        let request = MetadataRequest { topics: Some(vec![topic]), ..Default::default() };
        let ResponseBody::Metadata(response) = self.node.client().call(request, 12) else {
            panic!("another response")
        };
        let mut partitions = response.topics[0].partitions.clone();
        partitions.sort_by_key(|partition| partition.partition_index);
        partitions.iter().map(|partition| partition.leader_id).collect()
    }

    pub fn path(&self, at: usize) -> String {
        self.dirs[at].display().to_string()
    }

    /// Where partition 0 of `topic` lies, and where its copies do.
    pub fn place(&self, topic: &str) -> (Vec<usize>, Vec<usize>) {
        let (mut current, mut future) = (Vec::new(), Vec::new());
        for (at, described) in self.describe().iter().enumerate() {
            for found in described.topics.iter().filter(|found| *found.name == *topic) {
                for row in &found.partitions {
                    if row.is_future_key { future.push(at) } else { current.push(at) }
                }
            }
        }
        (current, future)
    }
}

pub trait Codes {
    fn each_codes(&self) -> Vec<i16>;
}

impl Codes for Vec<DescribeLogDirsResult> {
    fn each_codes(&self) -> Vec<i16> {
        self.iter().map(|result| result.error_code).collect()
    }
}

pub fn produce(client: &mut Client, topic: &str, partition: i32, value: &str) -> i16 {
    produce_batch(client, topic, partition, batch(&[value]))
}

pub fn produce_batch(client: &mut Client, topic: &str, index: i32, records: Bytes) -> i16 {
    let data = PartitionProduceData { index, records: Some(records), ..PartitionProduceData::default() };
    let topic = TopicProduceData { name: topic.into(), partition_data: vec![data], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 5000, topic_data: vec![topic], ..Default::default() };
    let ResponseBody::Produce(response) = client.call(request, 9) else { panic!("another response") };
    response.responses[0].partition_responses[0].error_code
}

pub fn values(client: &mut Client, topic: TopicId, partition: i32) -> Result<Vec<String>, i16> {
    values_from(client, topic, partition, 0)
}

pub fn values_from(
    client: &mut Client,
    topic: TopicId,
    partition: i32,
    from: i64,
) -> Result<Vec<String>, i16> {
    let wanted = FetchPartition {
        partition,
        fetch_offset: from,
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    };
    let topic = FetchTopic { topic_id: topic, partitions: vec![wanted], ..FetchTopic::default() };
    let request = FetchRequest {
        max_wait_ms: 100,
        min_bytes: 0,
        max_bytes: 1 << 20,
        topics: vec![topic],
        ..FetchRequest::default()
    };
    let ResponseBody::Fetch(response) = client.call(request, 13) else { panic!("another response") };
    let found = &response.responses[0].partitions[0];
    if found.error_code != 0 {
        return Err(found.error_code);
    }
    let mut values = Vec::new();
    let mut bytes = found.records.clone().unwrap_or_default();
    while !bytes.is_empty() {
        let length = 12 + i32::from_be_bytes(bytes[8..12].try_into().expect("four bytes")) as usize;
        let records = Batch::new(bytes.split_to(length)).expect("a batch").records().expect("records");
        for record in records.iter() {
            let value = record.expect("a record").value.expect("a value");
            values.push(String::from_utf8(value.to_vec()).expect("text"));
        }
    }
    Ok(values)
}

/// Everything in a partition, however many fetches it takes.
pub fn all_values(client: &mut Client, topic: TopicId, partition: i32) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let found = values_from(client, topic, partition, all.len() as i64).expect("records");
        if found.is_empty() {
            return all;
        }
        all.extend(found);
    }
}

pub fn broker_config(client: &mut Client, key: &str, value: Option<&str>) -> i16 {
    client.alter_config(1, (super::BROKER, "1"), key, value)
}

pub fn alter(client: &mut Client, path: &str, topic: &str, partition: i32) -> i16 {
    let topic =
        AlterReplicaLogDirTopic { name: topic.into(), partitions: vec![partition], ..Default::default() };
    let dir = AlterReplicaLogDir { path: path.into(), topics: vec![topic], ..Default::default() };
    let request = AlterReplicaLogDirsRequest { dirs: vec![dir], ..Default::default() };
    let ResponseBody::AlterReplicaLogDirs(response) = client.call(request, 2) else {
        panic!("another response")
    };
    response.results[0].partitions[0].error_code
}

pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
