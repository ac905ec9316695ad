//! A node with three log directories: one of them fails, at the start or while it serves; one is cordoned.

mod harness;

use barnabas_base::TopicId;
use barnabas_wire::messages::describe_log_dirs_response::DescribeLogDirsResult;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use barnabas_wire::messages::metadata_request::MetadataRequestTopic;
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{
    CreateTopicsRequest, DescribeLogDirsRequest, FetchRequest, IncrementalAlterConfigsRequest,
    MetadataRequest, ProduceRequest, ResponseBody, create_topics_request::CreatableTopic,
};
use barnabas_wire::records::Batch;
use harness::{Client, TempDir, TestNode, batch};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const STORAGE_ERROR: i16 = 56;
const PARTITIONS: i32 = 6;

struct Rig {
    node: TestNode,
    dirs: [PathBuf; 3],
    _root: TempDir,
}

impl Rig {
    fn start(more: &[&str]) -> Self {
        let root = TempDir::new();
        let dirs = ["a", "b", "c"].map(|name| root.path().join(name));
        let log_dirs = format!("log.dirs={}", dirs.each_ref().map(|dir| dir.display().to_string()).join(","));
        let overrides: Vec<&str> = [log_dirs.as_str()].into_iter().chain(more.iter().copied()).collect();
        Self { node: TestNode::start_with(&overrides), dirs, _root: root }
    }

    fn describe(&self) -> Vec<DescribeLogDirsResult> {
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
    fn places(&self, topic: &str) -> [Vec<i32>; 3] {
        let described = self.describe();
        std::array::from_fn(|at| {
            let topics = described[at].topics.iter().filter(|found| *found.name == *topic);
            let mut found: Vec<i32> =
                topics.flat_map(|topic| topic.partitions.iter().map(|row| row.partition_index)).collect();
            found.sort_unstable();
            found
        })
    }

    fn leaders(&self, topic: &str) -> Vec<i32> {
        let topic = MetadataRequestTopic { name: Some(topic.into()), ..Default::default() };
        let request = MetadataRequest { topics: Some(vec![topic]), ..Default::default() };
        let ResponseBody::Metadata(response) = self.node.client().call(request, 12) else {
            panic!("another response")
        };
        let mut partitions = response.topics[0].partitions.clone();
        partitions.sort_by_key(|partition| partition.partition_index);
        partitions.iter().map(|partition| partition.leader_id).collect()
    }
}

fn produce(client: &mut Client, topic: &str, partition: i32, value: &str) -> i16 {
    let data = PartitionProduceData {
        index: partition,
        records: Some(batch(&[value])),
        ..PartitionProduceData::default()
    };
    let topic = TopicProduceData { name: topic.into(), partition_data: vec![data], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 5000, topic_data: vec![topic], ..Default::default() };
    let ResponseBody::Produce(response) = client.call(request, 9) else { panic!("another response") };
    response.responses[0].partition_responses[0].error_code
}

fn values(client: &mut Client, topic: TopicId, partition: i32) -> Result<Vec<String>, i16> {
    values_from(client, topic, partition, 0)
}

fn values_from(client: &mut Client, topic: TopicId, partition: i32, from: i64) -> Result<Vec<String>, i16> {
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

fn create(client: &mut Client, name: &str, partitions: i32) -> i16 {
    let topic = CreatableTopic {
        name: name.into(),
        num_partitions: partitions,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    let ResponseBody::CreateTopics(response) = client.call(request, 7) else { panic!("another response") };
    response.topics[0].error_code
}

fn cordon(client: &mut Client, value: Option<&str>) -> i16 {
    broker_config(client, "cordoned.log.dirs", value)
}

fn broker_config(client: &mut Client, key: &str, value: Option<&str>) -> i16 {
    let config = AlterableConfig {
        name: key.into(),
        config_operation: if value.is_some() { 0 } else { 1 },
        value: value.map(Into::into),
        ..AlterableConfig::default()
    };
    let resource = AlterConfigsResource {
        resource_type: 4,
        resource_name: "1".into(),
        configs: vec![config],
        ..AlterConfigsResource::default()
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let ResponseBody::IncrementalAlterConfigs(response) = client.call(request, 1) else {
        panic!("another response")
    };
    response.responses[0].error_code
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn new_partitions_are_spread_and_known_to_the_metadata_log_at_once() {
    let mut rig = Rig::start(&[]);
    rig.node.client().create_topic("spread", PARTITIONS, &[]);
    eventually("two partitions in each", || rig.places("spread").iter().all(|found| found.len() == 2));
    // Nothing was written: a restart places none of them anew.
    let before = rig.places("spread");
    assert!(rig.node.stop().success());
    rig.node.launch();
    assert_eq!(rig.places("spread"), before);
    assert!(rig.node.stop().success());
}

/// `b` is made unusable by `spoil` while the node is down; the others serve, and nothing of `b` begins anew.
fn one_is_lost_at_the_start(spoil: impl Fn(&PathBuf), mend: impl Fn(&PathBuf)) {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("t", PARTITIONS, &[]);
    client.create_topic("idle", PARTITIONS, &[]);
    let topic = client.topic_id("t");
    for partition in 0..PARTITIONS {
        assert_eq!(produce(&mut client, "t", partition, "before"), 0);
    }
    eventually("two partitions in each", || rig.places("t").iter().all(|found| found.len() == 2));
    let (places, idle) = (rig.places("t"), rig.places("idle"));
    assert!(rig.node.stop().success());
    spoil(&rig.dirs[1]);
    rig.node.launch();
    let mut client = rig.node.client();
    let described = rig.describe();
    assert_eq!(described.each_codes(), [0, STORAGE_ERROR, 0]);
    for partition in 0..PARTITIONS {
        let is_lost = places[1].contains(&partition);
        let expected = if is_lost { STORAGE_ERROR } else { 0 };
        assert_eq!(produce(&mut client, "t", partition, "while"), expected, "partition {partition}");
        assert_eq!(rig.leaders("t")[partition as usize], if is_lost { -1 } else { 1 });
        let of_idle = if idle[1].contains(&partition) { STORAGE_ERROR } else { 0 };
        assert_eq!(produce(&mut client, "idle", partition, "while"), of_idle, "idle {partition}");
    }
    client.create_topic("new", 4, &[]);
    for partition in 0..4 {
        assert_eq!(produce(&mut client, "new", partition, "new"), 0);
    }
    assert!(rig.node.log().contains(&format!("log directory {} is offline", rig.dirs[1].display())));
    assert!(rig.node.stop_expecting_trouble().success(), "the others were closed");
    mend(&rig.dirs[1]);
    rig.node.launch();
    let mut client = rig.node.client();
    assert_eq!(rig.describe().each_codes(), [0, 0, 0]);
    for partition in 0..PARTITIONS {
        assert_eq!(rig.leaders("t")[partition as usize], 1);
        assert_eq!(produce(&mut client, "t", partition, "after"), 0);
        let expected: &[&str] = match places[1].contains(&partition) {
            true => &["before", "after"],
            false => &["before", "while", "after"],
        };
        assert_eq!(values(&mut client, topic, partition).expect("records"), expected);
        assert_eq!(produce(&mut client, "idle", partition, "after"), 0);
    }
    assert!(rig.node.stop_expecting_trouble().success());
}

trait Codes {
    fn each_codes(&self) -> Vec<i16>;
}

impl Codes for Vec<DescribeLogDirsResult> {
    fn each_codes(&self) -> Vec<i16> {
        self.iter().map(|result| result.error_code).collect()
    }
}

#[test]
fn a_directory_that_is_a_file_at_the_start_leaves_the_others_serving() {
    let aside = |dir: &PathBuf| dir.with_extension("aside");
    one_is_lost_at_the_start(
        |dir| {
            std::fs::rename(dir, aside(dir)).expect("moved");
            std::fs::write(dir, "no directory").expect("a file");
        },
        |dir| {
            std::fs::remove_file(dir).expect("removed");
            std::fs::rename(aside(dir), dir).expect("moved back");
        },
    );
}

#[test]
fn a_directory_whose_identity_is_damaged_leaves_the_others_serving() {
    let copy = |dir: &PathBuf| dir.with_extension("meta");
    one_is_lost_at_the_start(
        |dir| {
            std::fs::copy(dir.join("meta.properties"), copy(dir)).expect("copied");
            std::fs::write(dir.join("meta.properties"), "version=seven\n").expect("damaged");
        },
        |dir| {
            std::fs::copy(copy(dir), dir.join("meta.properties")).expect("mended");
        },
    );
}

#[test]
fn a_directory_that_fails_while_the_node_serves_takes_only_its_own_partitions_with_it() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("t", PARTITIONS, &[("segment.bytes", "1048576")]);
    let topic = client.topic_id("t");
    for partition in 0..PARTITIONS {
        assert_eq!(produce(&mut client, "t", partition, "before"), 0);
    }
    let places = rig.places("t");
    // A device that is gone answers EIO; here its names are gone.
    let aside = rig.dirs[2].with_extension("aside");
    std::fs::rename(&rig.dirs[2], &aside).expect("moved");
    std::fs::write(&rig.dirs[2], "no directory").expect("a file");
    let said = format!("log directory {} is offline", rig.dirs[2].display());
    eventually("it is noticed though nobody writes", || rig.node.log().contains(&said));
    assert_eq!(rig.describe().each_codes(), [0, 0, STORAGE_ERROR]);
    for partition in 0..PARTITIONS {
        let is_lost = places[2].contains(&partition);
        let expected = if is_lost { STORAGE_ERROR } else { 0 };
        assert_eq!(produce(&mut client, "t", partition, "while"), expected, "partition {partition}");
        eventually("the controller knows", || {
            rig.leaders("t")[partition as usize] == if is_lost { -1 } else { 1 }
        });
    }
    client.create_topic("new", 4, &[]);
    for partition in 0..4 {
        assert_eq!(produce(&mut client, "new", partition, "new"), 0);
    }
    rig.node.stop_expecting_trouble();
    std::fs::remove_file(&rig.dirs[2]).expect("removed");
    std::fs::rename(&aside, &rig.dirs[2]).expect("moved back");
    rig.node.launch();
    let mut client = rig.node.client();
    for partition in 0..PARTITIONS {
        let found = values(&mut client, topic, partition).expect("records");
        assert_eq!(found[0], "before");
        assert_eq!(produce(&mut client, "t", partition, "after"), 0);
    }
    assert!(rig.node.stop_expecting_trouble().success());
}

#[test]
fn a_node_stops_when_no_directory_is_left() {
    let root = TempDir::new();
    let file = root.path().join("file");
    std::fs::write(&file, "no directory").expect("a file");
    let output = harness::binary()
        .args(["server", "--override", &format!("log.dirs={}", file.display())])
        .output()
        .expect("runs");
    assert!(!output.status.success());
}

#[test]
fn cordoned_directories_take_nothing_new_and_serve_what_they_have() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("old", PARTITIONS, &[]);
    let name = |at: usize| rig.dirs[at].display().to_string();
    assert_eq!(cordon(&mut client, Some("/elsewhere")), 42, "INVALID_REQUEST");
    assert_eq!(cordon(&mut client, Some(&format!("*,{}", name(0)))), 42);
    assert_eq!(cordon(&mut client, Some(&format!("{},{}", name(0), name(1)))), 0);
    let cordoned = |rig: &Rig| rig.describe().iter().map(|dir| dir.is_cordoned).collect::<Vec<_>>();
    assert_eq!(cordoned(&rig), [true, true, false]);
    client.create_topic("new", PARTITIONS, &[]);
    eventually("all in the third", || rig.places("new")[2].len() == 6);
    for partition in 0..PARTITIONS {
        assert_eq!(produce(&mut client, "old", partition, "still"), 0);
        assert_eq!(produce(&mut client, "new", partition, "new"), 0);
    }
    assert_eq!(cordon(&mut client, Some("*")), 0);
    eventually("INVALID_REPLICATION_FACTOR", || create(&mut rig.node.client(), "none", 1) == 38);
    // It holds over a restart, and is taken back.
    assert!(rig.node.stop().success());
    rig.node.launch();
    assert_eq!(cordoned(&rig), [true; 3]);
    let mut client = rig.node.client();
    assert_eq!(create(&mut client, "none", 1), 38);
    assert_eq!(cordon(&mut client, None), 0);
    eventually("uncordoned", || create(&mut rig.node.client(), "again", 1) == 0);
    assert_eq!(cordoned(&rig), [false; 3]);
    assert!(rig.node.stop().success());
}

#[test]
fn cordons_of_the_file_hold_from_the_start() {
    let mut rig = Rig::start(&["cordoned.log.dirs=*"]);
    let mut client = rig.node.client();
    assert_eq!(create(&mut client, "none", 1), 38);
    assert_eq!(cordon(&mut client, Some("")), 0);
    eventually("uncordoned", || create(&mut rig.node.client(), "some", 1) == 0);
    assert!(rig.node.stop().success());
}

fn alter(client: &mut Client, path: &str, topic: &str, partition: i32) -> i16 {
    use barnabas_wire::messages::AlterReplicaLogDirsRequest;
    use barnabas_wire::messages::alter_replica_log_dirs_request::{
        AlterReplicaLogDir, AlterReplicaLogDirTopic,
    };
    let topic =
        AlterReplicaLogDirTopic { name: topic.into(), partitions: vec![partition], ..Default::default() };
    let dir = AlterReplicaLogDir { path: path.into(), topics: vec![topic], ..Default::default() };
    let request = AlterReplicaLogDirsRequest { dirs: vec![dir], ..Default::default() };
    let ResponseBody::AlterReplicaLogDirs(response) = client.call(request, 2) else {
        panic!("another response")
    };
    response.results[0].partitions[0].error_code
}

impl Rig {
    fn path(&self, at: usize) -> String {
        self.dirs[at].display().to_string()
    }

    /// Where partition 0 of `topic` lies, and where its copies do.
    fn place(&self, topic: &str) -> (Vec<usize>, Vec<usize>) {
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

#[test]
fn a_partition_moves_with_all_that_it_has() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("moved", 1, &[("segment.bytes", "1048576")]);
    let topic = client.topic_id("moved");
    let large = "x".repeat(100_000);
    for number in 0..40 {
        assert_eq!(produce(&mut client, "moved", 0, &format!("{number} {large}")), 0);
    }
    let (from, _) = rig.place("moved");
    let to = (from[0] + 1) % 3;
    assert_eq!(alter(&mut client, "/nowhere", "moved", 0), 57);
    assert_eq!(alter(&mut client, &rig.path(to), "moved", 9), 9);
    assert_eq!(alter(&mut client, &rig.path(from[0]), "moved", 0), 0, "it is there");
    assert_eq!(alter(&mut client, &rig.path(to), "moved", 0), 0);
    eventually("it has moved", || rig.place("moved") == (vec![to], vec![]));
    assert_eq!(produce(&mut client, "moved", 0, "40 after"), 0);
    for again in 0..2 {
        let mut client = rig.node.client();
        let found = all_values(&mut client, topic, 0);
        let numbers: Vec<&str> = found.iter().filter_map(|value| value.split(' ').next()).collect();
        assert_eq!(numbers, (0..41).map(|number| number.to_string()).collect::<Vec<_>>());
        assert_eq!(rig.place("moved"), (vec![to], vec![]));
        if again == 0 {
            rig.node.kill();
            rig.node.launch();
        }
    }
    assert!(rig.node.stop().success());
}

#[test]
fn a_partition_that_was_never_written_to_moves_at_once() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("empty", 1, &[]);
    let (from, _) = rig.place("empty");
    let to = (from[0] + 1) % 3;
    assert_eq!(alter(&mut client, &rig.path(to), "empty", 0), 0);
    eventually("it begins there", || rig.place("empty") == (vec![to], vec![]));
    assert_eq!(produce(&mut client, "empty", 0, "first"), 0);
    // One that is to be made yet.
    assert_eq!(alter(&mut client, &rig.path(2), "later", 0), 9);
    client.create_topic("later", 1, &[]);
    eventually("it begins where it was wished for", || rig.place("later") == (vec![2], vec![]));
    assert_eq!(produce(&mut client, "later", 0, "first"), 0);
    assert!(rig.node.stop().success());
    // Until then what is written may be in the directory's journal alone.
    assert!(rig.dirs[to].join("empty-0").exists());
    assert!(rig.dirs[2].join("later-0").exists());
}

#[test]
fn a_move_keeps_its_pace_and_can_be_taken_back() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("slow", 1, &[("segment.bytes", "1048576")]);
    let topic = client.topic_id("slow");
    let large = "x".repeat(100_000);
    for number in 0..40 {
        assert_eq!(produce(&mut client, "slow", 0, &format!("{number} {large}")), 0);
    }
    let set = |client: &mut Client, value: &str| {
        broker_config(client, "replica.alter.log.dirs.io.max.bytes.per.second", Some(value))
    };
    assert_eq!(set(&mut client, "400000"), 0);
    let (from, _) = rig.place("slow");
    let (to, third) = ((from[0] + 1) % 3, (from[0] + 2) % 3);
    assert_eq!(alter(&mut client, &rig.path(to), "slow", 0), 0);
    eventually("it is on its way", || rig.place("slow") == (from.clone(), vec![to]));
    // Elsewhere instead, then not at all.
    assert_eq!(alter(&mut client, &rig.path(third), "slow", 0), 0);
    eventually("it is on its way elsewhere", || rig.place("slow") == (from.clone(), vec![third]));
    assert_eq!(alter(&mut client, &rig.path(from[0]), "slow", 0), 0);
    eventually("it stays", || rig.place("slow") == (from.clone(), vec![]));
    // It is remembered over a clean stop and over a kill.
    assert_eq!(alter(&mut client, &rig.path(to), "slow", 0), 0);
    eventually("it is on its way", || rig.place("slow") == (from.clone(), vec![to]));
    assert!(rig.node.stop().success());
    rig.node.launch();
    eventually("it goes on", || rig.place("slow") == (from.clone(), vec![to]));
    rig.node.kill();
    rig.node.launch();
    eventually("it goes on", || rig.place("slow") == (from.clone(), vec![to]));
    let mut client = rig.node.client();
    assert_eq!(produce(&mut client, "slow", 0, "40 after"), 0);
    assert_eq!(set(&mut client, "1000000000"), 0);
    eventually("it has moved", || rig.place("slow") == (vec![to], vec![]));
    assert_eq!(all_values(&mut client, topic, 0).len(), 41);
    assert!(rig.node.stop().success());
}

/// A move that was cut off between its two renames leaves the partition twice: the user sees nothing of it.
#[test]
fn a_move_that_is_cut_off_between_its_renames_is_begun_again() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("cut", 1, &[]);
    let topic = client.topic_id("cut");
    for number in 0..10 {
        assert_eq!(produce(&mut client, "cut", 0, &number.to_string()), 0);
    }
    let (from, _) = rig.place("cut");
    let to = (from[0] + 1) % 3;
    assert!(rig.node.stop().success());
    // What the disk looks like then: the copy has its name and stands in the checkpoint, and the old one is still there.
    let copy = std::process::Command::new("cp")
        .arg("-r")
        .arg(rig.dirs[from[0]].join("cut-0"))
        .arg(&rig.dirs[to])
        .status();
    assert!(copy.expect("cp").success());
    for file in ["replication-offset-checkpoint", "recovery-point-offset-checkpoint"] {
        std::fs::write(rig.dirs[to].join(file), "0\n1\ncut 0 10\n").expect("written");
    }
    std::fs::remove_file(rig.dirs[from[0]].join(".kafka_cleanshutdown")).expect("removed");
    rig.node.launch();
    let mut client = rig.node.client();
    assert_eq!(produce(&mut client, "cut", 0, "10"), 0);
    eventually("it is done", || rig.place("cut") == (vec![to], vec![]));
    assert_eq!(all_values(&mut client, topic, 0).len(), 11);
    assert!(rig.node.stop().success());
}

/// Everything in a partition, however many fetches it takes.
fn all_values(client: &mut Client, topic: TopicId, partition: i32) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let found = values_from(client, topic, partition, all.len() as i64).expect("records");
        if found.is_empty() {
            return all;
        }
        all.extend(found);
    }
}

#[test]
fn a_directory_whose_journal_is_damaged_leaves_the_others_serving() {
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic("t", PARTITIONS, &[]);
    let topic = client.topic_id("t");
    for number in 0..20 {
        for partition in 0..PARTITIONS {
            assert_eq!(produce(&mut client, "t", partition, &number.to_string()), 0);
        }
    }
    let places = rig.places("t");
    // Not the metadata log's own, which is the first.
    let damaged = 1;
    rig.node.kill();
    let journals: Vec<PathBuf> = std::fs::read_dir(&rig.dirs[damaged])
        .expect("listed")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().contains("journal"))
        .collect();
    assert!(!journals.is_empty());
    let kept: Vec<(PathBuf, Vec<u8>)> =
        journals.iter().map(|path| (path.clone(), std::fs::read(path).expect("read"))).collect();
    for (path, bytes) in &kept {
        // Every round is a block of its own: a round in the middle is unreadable, those behind it are not.
        let written = bytes.chunks(4096).filter(|block| block.iter().any(|&byte| byte != 0)).count();
        let mut bytes = bytes.clone();
        let middle = (written / 2) * 4096;
        bytes[middle..middle + 4096].fill(0x5a);
        std::fs::write(path, bytes).expect("written");
    }
    rig.node.launch();
    assert_eq!(rig.describe().each_codes(), [0, STORAGE_ERROR, 0], "{}", rig.node.log());
    let mut client = rig.node.client();
    for partition in 0..PARTITIONS {
        let expected = if places[damaged].contains(&partition) { STORAGE_ERROR } else { 0 };
        assert_eq!(produce(&mut client, "t", partition, "while"), expected, "partition {partition}");
    }
    rig.node.stop_expecting_trouble();
    for (path, bytes) in &kept {
        std::fs::write(path, bytes).expect("mended");
    }
    rig.node.launch();
    let mut client = rig.node.client();
    for partition in 0..PARTITIONS {
        let found = values(&mut client, topic, partition).expect("records");
        assert_eq!(found[..20], (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
    }
    assert!(rig.node.stop_expecting_trouble().success());
}
