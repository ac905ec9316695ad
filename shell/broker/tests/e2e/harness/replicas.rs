//! Three processes that replicate: their topics, producers that remember what they were told, and the judgement that
//! all of it is there.

use super::patience::PATIENCE;
pub use super::patience::{eventually, until};
use super::quorum::random_uuid;
use super::trouble;
use super::txn::end_offset_if_known;
use super::{Client, TestNode, batch, binary, free_port};
use barnabas_base::TopicId;
use barnabas_wire::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use barnabas_wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::metadata_request::MetadataRequestTopic;
use barnabas_wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{
    AlterPartitionReassignmentsRequest, CreateTopicsRequest, FetchRequest, ListPartitionReassignmentsRequest,
    MetadataRequest, MetadataResponse, ProduceRequest, ResponseBody,
};
use barnabas_wire::records::batches;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const PARTITIONS: i32 = 6;
/// What a consumer gets from a broker that does not lead: unknown here, no leader, not the leader, another epoch,
/// another topic.
const SENT_AWAY: [i16; 6] = [3, 5, 6, 74, 75, 100];

/// Three brokers that are controllers too.
pub struct Cluster {
    pub nodes: BTreeMap<i32, TestNode>,
    id: String,
}

impl Cluster {
    pub fn start() -> Self {
        Self::start_with(None, &["data"], "")
    }

    /// With a shell command before each node, on these log directories, with these lines in its file.
    pub fn start_with(before: Option<&str>, dirs: &[&str], settings: &str) -> Self {
        let id = random_uuid();
        let ports: Vec<(i32, u16, u16)> = (1..=3).map(|node| (node, free_port(), free_port())).collect();
        let voters: Vec<String> =
            ports.iter().map(|(node, _, port)| format!("{node}@127.0.0.1:{port}")).collect();
        let mut nodes = BTreeMap::new();
        for (node_id, port, controller_port) in ports {
            let mut node = TestNode::new(before, &[]);
            let text = format!(
                "process.roles=broker,controller\nnode.id={node_id}\n\
                 listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n\
                 controller.listener.names=CONTROLLER\nlog.dirs={}\ncontroller.quorum.voters={}\n\
                 replica.lag.time.max.ms=3000\n{settings}\n",
                dirs.iter().map(|dir| path_of(&node, dir)).collect::<Vec<_>>().join(","),
                voters.join(",")
            );
            let file = node.dir.path().join("server.properties");
            std::fs::write(&file, text).expect("written");
            let file = file.to_str().expect("a path").to_owned();
            node.set_file(&file, (port, controller_port));
            format(&node, &id);
            nodes.insert(node_id, node);
        }
        nodes.values_mut().for_each(TestNode::launch_unawaited);
        nodes.values_mut().for_each(TestNode::await_answer);
        let cluster = Self { nodes, id };
        for node in cluster.nodes.values() {
            eventually("all brokers are known", || metadata(&mut node.client()).brokers.len() == 3);
        }
        cluster
    }

    /// Nodes that run, formatted for this cluster.
    pub fn of(nodes: BTreeMap<i32, TestNode>, id: String) -> Self {
        Self { nodes, id }
    }

    /// Another disk in the place of this one of a node that does not run, made ready as an operator does it.
    pub fn replace_disk(&self, node: i32, dir: &str) {
        let node = &self.nodes[&node];
        let path = path_of(node, dir);
        std::fs::remove_dir_all(&path).expect("it is there");
        std::fs::create_dir(&path).expect("an empty one");
    }

    /// Formats what is empty of a node that does not run.
    pub fn format(&self, node: i32) {
        format(&self.nodes[&node], &self.id);
    }

    pub fn client(&self, node: i32) -> Client {
        self.nodes[&node].client()
    }

    pub fn ports(&self) -> BTreeMap<i32, u16> {
        self.nodes.iter().map(|(id, node)| (*id, node.port)).collect()
    }

    pub fn create(&self, name: &str) -> TopicId {
        let config = |name: &str, value: &str| CreatableTopicConfig {
            name: name.into(),
            value: Some(value.into()),
            ..Default::default()
        };
        let topic = CreatableTopic {
            name: name.into(),
            num_partitions: PARTITIONS,
            replication_factor: 3,
            configs: vec![config("min.insync.replicas", "2")],
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 20_000, ..Default::default() };
        match self.client(1).call(request, 7) {
            ResponseBody::CreateTopics(response) => assert_eq!(response.topics[0].error_code, 0),
            other => panic!("{other:?}"),
        }
        for node in self.nodes.values() {
            eventually("the topic is known", || {
                leaders(&mut node.client(), name).len() == PARTITIONS as usize
            });
        }
        self.client(1).topic_id(name)
    }

    /// Ends all nodes; none has said WARN or ERROR.
    pub fn stop(mut self) {
        for node in self.nodes.values_mut() {
            assert!(node.stop().success(), "{}", node.log());
        }
    }

    /// Ends all nodes, of which some have said one of these words on WARN or ERROR, and none anything else there.
    pub fn stop_expecting(mut self, words: &[&str]) {
        for node in self.nodes.values_mut() {
            assert!(node.stop_expecting_trouble().success(), "{}", node.log());
            let log = node.log();
            let unexpected = trouble(&log).find(|line| !words.iter().any(|word| line.contains(word)));
            assert_eq!(unexpected, None);
        }
    }

    /// Kills one node after the other, and judges what the others hold each time.
    pub fn judge_on_all(&mut self, name: &str, topic: TopicId, all: &[Acknowledged]) {
        for victim in 1..=3 {
            self.nodes.get_mut(&victim).expect("there").kill();
            let asked = 1 + victim % 3;
            eventually("others lead", || {
                let leaders = leaders(&mut self.client(asked), name);
                leaders.len() == PARTITIONS as usize && leaders.values().all(|leader| *leader != victim)
            });
            self.nodes.get_mut(&victim).expect("there").launch();
            self.await_in_sync(name, 3);
            judge(self, name, topic, all);
        }
    }

    /// Waits until all replicas of the topic are in sync, by each node's metadata.
    pub fn await_in_sync(&self, topic: &str, replicas: usize) {
        for node in self.nodes.values() {
            // Partition, leader, replicas, in-sync replicas.
            let mut seen: Vec<(i32, i32, Vec<i32>, Vec<i32>)> = Vec::new();
            let started = Instant::now();
            eventually("all replicas are in sync", || {
                assert!(started.elapsed() < PATIENCE / 2, "in sync should be {replicas} each: {seen:?}");
                let response = metadata(&mut node.client());
                let known = response.topics.iter().find(|known| known.name.as_deref() == Some(topic));
                let state = |topic: &MetadataResponseTopic| {
                    let of = |row: &MetadataResponsePartition| {
                        (row.partition_index, row.leader_id, row.replica_nodes.clone(), row.isr_nodes.clone())
                    };
                    topic.partitions.iter().map(of).collect()
                };
                seen = known.map(state).unwrap_or_default();
                !seen.is_empty() && seen.iter().all(|(_, _, _, isr)| isr.len() == replicas)
            });
        }
    }
}

fn path_of(node: &TestNode, dir: &str) -> String {
    node.dir.path().join(dir).display().to_string()
}

fn format(node: &TestNode, cluster: &str) {
    let file = path_of(node, "server.properties");
    let words = ["storage", "format", "-t", cluster, "-c", &file, "-g"];
    let output = binary().args(words).output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

pub fn metadata(client: &mut Client) -> MetadataResponse {
    match client.call(MetadataRequest { topics: None, ..Default::default() }, 12) {
        ResponseBody::Metadata(response) => *response,
        other => panic!("{other:?}"),
    }
}

/// The leader of each partition that has one.
pub fn leaders(client: &mut Client, topic: &str) -> BTreeMap<i32, i32> {
    let response = metadata(client);
    let known = response.topics.iter().find(|known| known.name.as_deref() == Some(topic));
    let partitions = known.iter().flat_map(|topic| &topic.partitions);
    let led = partitions.filter(|partition| partition.leader_id >= 0);
    led.map(|partition| (partition.partition_index, partition.leader_id)).collect()
}

/// The sets of replicas that partitions of a topic have.
pub fn placed(client: &mut Client, topic: &str) -> BTreeSet<Vec<i32>> {
    let response = metadata(client);
    let known = response.topics.iter().find(|known| known.name.as_deref() == Some(topic));
    let rows = known.iter().flat_map(|topic| &topic.partitions);
    let sorted = |row: &MetadataResponsePartition| {
        let mut replicas = row.replica_nodes.clone();
        replicas.sort_unstable();
        replicas
    };
    rows.map(sorted).collect()
}

/// What one producer was told: offset and value of each record that was acknowledged.
pub struct Acknowledged {
    pub partition: i32,
    pub records: Vec<(i64, String)>,
    pub longest_gap: Duration,
    /// Answers that sent it nowhere.
    pub refusals: usize,
}

/// Who leads a partition in which epoch, as the brokers know that can be asked.
pub fn look_up(ports: &BTreeMap<i32, u16>, topic: TopicId, partition: i32) -> Option<(i32, i32)> {
    let known = |port: &u16| {
        let mut client = Client::try_connect(*port).ok()?;
        let wanted = MetadataRequestTopic { topic_id: topic, name: None, ..Default::default() };
        let request = MetadataRequest { topics: Some(vec![wanted]), ..Default::default() };
        let ResponseBody::Metadata(response) = client.try_call(request, 12)? else { return None };
        let mut rows = response.topics.first()?.partitions.iter();
        let row = rows.find(|row| row.partition_index == partition)?;
        (row.leader_id >= 0).then_some((row.leader_epoch, row.leader_id))
    };
    ports.values().filter_map(known).max().map(|(epoch, leader)| (leader, epoch))
}

/// Writes to one partition until it has to stop; looks for the leader when it is refused, or hears nothing. As
/// Kafka's clients do, it believes the newest epoch that anybody names, and goes to whom an answer names at once.
fn producer(
    ports: BTreeMap<i32, u16>,
    topic: TopicId,
    partition: i32,
    stop: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
) -> JoinHandle<Acknowledged> {
    std::thread::spawn(move || {
        let mut records = Vec::new();
        let (mut longest_gap, mut refusals) = (Duration::ZERO, 0);
        let (mut last_ack, mut number) = (Instant::now(), 0);
        let (mut leader, mut epoch) = (-1, -1);
        let mut client: Option<Client> = None;
        while !stop.load(Ordering::Relaxed) {
            if client.is_none() {
                client = ports.get(&leader).and_then(|port| Client::try_connect(*port).ok());
            }
            let value = format!("{partition}:{number}:{}", "x".repeat(100));
            let outcome = client.as_mut().and_then(|client| append(client, topic, partition, &value));
            match outcome {
                Some(Ok(offset)) => {
                    records.push((offset, value));
                    count.fetch_add(1, Ordering::Relaxed);
                    number += 1;
                    longest_gap = longest_gap.max(last_ack.elapsed());
                    last_ack = Instant::now();
                }
                Some(Err(Some((named, newer)))) if newer > epoch => {
                    (leader, epoch, client) = (named, newer, None);
                }
                refused => {
                    // Refused for now (too few replicas, a leader that has not heard of it yet), or nobody knows
                    // whether it was written: another value next.
                    refusals += usize::from(refused.is_some());
                    number += 1;
                    client = None;
                    if let Some((named, newer)) = look_up(&ports, topic, partition)
                        && newer >= epoch
                    {
                        (leader, epoch) = (named, newer);
                    }
                    // Without it they make more connections within a second than a node takes from an address.
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        }
        Acknowledged { partition, records, longest_gap, refusals }
    })
}

/// The offset; or who leads instead and in which epoch, if the answer says so; or nothing, where no answer came.
pub fn append(
    client: &mut Client,
    topic: TopicId,
    partition: i32,
    value: &str,
) -> Option<Result<i64, Option<(i32, i32)>>> {
    let data =
        PartitionProduceData { index: partition, records: Some(batch(&[value])), ..Default::default() };
    let data = TopicProduceData { topic_id: topic, partition_data: vec![data], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 3_000, topic_data: vec![data], ..ProduceRequest::default() };
    if !client.try_send(request, 13) {
        return None;
    }
    let (_, ResponseBody::Produce(response)) = client.try_receive(barnabas_wire::ApiKey::Produce, 13)? else {
        panic!("another response")
    };
    let answer = &response.responses[0].partition_responses[0];
    Some(match answer.error_code {
        0 => Ok(answer.base_offset),
        _ => {
            let leader = &answer.current_leader;
            Err((leader.leader_id >= 0).then_some((leader.leader_id, leader.leader_epoch)))
        }
    })
}

/// As [`append`], to the present leader, until it is acknowledged. It may be written more than once.
pub fn append_patiently(cluster: &Cluster, topic: TopicId, partition: i32, value: &str) {
    until("an acknowledgement", || {
        let (leader, _) = look_up(&cluster.ports(), topic, partition)?;
        append(&mut cluster.client(leader), topic, partition, value)?.ok()
    });
}

/// All records of a partition that consumers see on its leader.
pub fn consume(cluster: &Cluster, name: &str, topic: TopicId, partition: i32) -> BTreeMap<i64, String> {
    until("a leader that shows all of it", || {
        let (leader, _) = look_up(&cluster.ports(), topic, partition)?;
        consume_from(&mut cluster.client(leader), name, topic, partition)
    })
}

/// `None`: it does not lead, or does not know yet where the log ends for consumers, or not all of it is shown.
fn consume_from(
    client: &mut Client,
    name: &str,
    topic: TopicId,
    partition: i32,
) -> Option<BTreeMap<i64, String>> {
    let end = end_offset_if_known(client, name, partition)?;
    let (mut found, mut from) = (BTreeMap::new(), 0);
    while from < end {
        let wanted = FetchPartition {
            partition,
            fetch_offset: from,
            partition_max_bytes: 4 << 20,
            ..FetchPartition::default()
        };
        let wanted = FetchTopic { topic_id: topic, partitions: vec![wanted], ..FetchTopic::default() };
        let request = FetchRequest {
            max_wait_ms: 0,
            max_bytes: 8 << 20,
            session_epoch: -1,
            topics: vec![wanted],
            ..FetchRequest::default()
        };
        let ResponseBody::Fetch(response) = client.call(request, 17) else { panic!("another response") };
        let data = &response.responses[0].partitions[0];
        if SENT_AWAY.contains(&data.error_code) {
            return None;
        }
        assert_eq!(data.error_code, 0, "{data:?}");
        let before = from;
        for read in batches(data.records.clone().unwrap_or_default()) {
            let batch = read.expect("sound");
            batch.check_crc().expect("sound");
            for record in batch.records().expect("sound").iter() {
                let record = record.expect("sound");
                let value = record.value.unwrap_or_default();
                found.insert(record.offset.get(), String::from_utf8_lossy(value).into_owned());
            }
            from = batch.header().next_offset().get();
        }
        if from == before {
            return None;
        }
    }
    Some(found)
}

/// Acknowledged records that are not where their producers were told.
pub fn missing(cluster: &Cluster, name: &str, topic: TopicId, all: &[Acknowledged]) -> Vec<String> {
    let mut missing = Vec::new();
    for acknowledged in all {
        let found = consume(cluster, name, topic, acknowledged.partition);
        for (offset, value) in &acknowledged.records {
            let there = found.get(offset);
            if there != Some(value) {
                let partition = acknowledged.partition;
                missing.push(format!("partition {partition} at {offset}: {there:?}, not {value}"));
            }
        }
    }
    missing
}

/// Each acknowledged record is where its producer was told.
pub fn judge(cluster: &Cluster, name: &str, topic: TopicId, all: &[Acknowledged]) {
    let missing = missing(cluster, name, topic, all);
    assert!(missing.is_empty(), "{missing:#?}");
}

pub fn signal(node: &TestNode, name: &str) {
    let sent = std::process::Command::new("kill").args([name, &node.pid().to_string()]).status();
    assert!(sent.expect("kill").success());
}

/// Gives all partitions of a topic these replicas, and does not wait for them.
pub fn order_reassignment(cluster: &Cluster, asked: i32, name: &str, replicas: &[i32]) {
    let partitions = (0..PARTITIONS).map(|partition_index| ReassignablePartition {
        partition_index,
        replicas: Some(replicas.to_vec()),
        ..Default::default()
    });
    let wanted =
        ReassignableTopic { name: name.into(), partitions: partitions.collect(), ..Default::default() };
    let request = AlterPartitionReassignmentsRequest {
        timeout_ms: 20_000,
        allow_replication_factor_change: true,
        topics: vec![wanted],
        ..Default::default()
    };
    let ResponseBody::AlterPartitionReassignments(response) = cluster.client(asked).call(request, 1) else {
        panic!("another response")
    };
    assert_eq!(response.error_code, 0, "{response:?}");
    let rows = response.responses.iter().flat_map(|topic| &topic.partitions);
    rows.for_each(|row| assert_eq!(row.error_code, 0, "{row:?}"));
}

/// Gives all partitions of a topic these replicas. Returns once the nodes in `asked` know that they have them.
pub fn reassign(cluster: &Cluster, asked: &[i32], name: &str, replicas: &[i32]) {
    order_reassignment(cluster, asked[0], name, replicas);
    let mut expected = replicas.to_vec();
    expected.sort_unstable();
    for node in asked {
        eventually("the replicas have moved", || {
            let mut client = cluster.client(*node);
            let request = ListPartitionReassignmentsRequest { timeout_ms: 20_000, ..Default::default() };
            let ResponseBody::ListPartitionReassignments(response) = client.call(request, 0) else {
                panic!("another response")
            };
            response.topics.is_empty() && placed(&mut client, name) == [expected.clone()].into()
        });
    }
}

/// Folders of a topic's partitions in a node's `data`: those that are in use, and those that were put aside as strays.
pub fn folders(node: &TestNode, topic: &str) -> (usize, usize) {
    let found = std::fs::read_dir(node.dir.path().join("data")).into_iter().flatten().flatten();
    let prefix = format!("{topic}-");
    let names = found.filter_map(|entry| entry.file_name().into_string().ok());
    let names: Vec<String> = names.filter(|name| name.starts_with(&prefix)).collect();
    let strays = names.iter().filter(|name| name.ends_with("-stray")).count();
    let gone = names.iter().filter(|name| name.ends_with("-delete")).count();
    (names.len() - strays - gone, strays)
}

/// A producer for each partition of a topic.
pub struct Producers {
    stop: Arc<AtomicBool>,
    /// Records that were acknowledged.
    count: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<Acknowledged>>,
}

impl Producers {
    pub fn start(cluster: &Cluster, topic: TopicId) -> Self {
        let (stop, count, ports) = (Arc::new(AtomicBool::new(false)), Arc::default(), cluster.ports());
        let one = |partition| producer(ports.clone(), topic, partition, stop.clone(), Arc::clone(&count));
        Self { threads: (0..PARTITIONS).map(one).collect(), stop, count }
    }

    /// Waits until so many records more are acknowledged.
    pub fn await_more(&self, records: usize) {
        let wanted = self.count.load(Ordering::Relaxed) + records;
        eventually("acknowledgements", || self.count.load(Ordering::Relaxed) >= wanted);
    }

    /// What they were told.
    pub fn stop(self) -> Vec<Acknowledged> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    }
}
