//! Three processes hold the same records: what was acknowledged is there whoever dies, and all replicas are equal in the end.
//!
//! Producers write to topics of replication factor 3 with `acks=all` and `min.insync.replicas=2` while brokers are killed and come back.
//! Each acknowledgement names an offset; in the end that very record lies at that offset, on whichever broker leads.

mod harness;

use barnabas_base::TopicId;
use barnabas_wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::metadata_request::MetadataRequestTopic;
use barnabas_wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{
    CreateTopicsRequest, FetchRequest, MetadataRequest, MetadataResponse, ProduceRequest, ResponseBody,
};
use barnabas_wire::records::batches;
use harness::{Client, TestNode, batch, binary, free_port};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const PARTITIONS: i32 = 6;

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

struct Cluster {
    nodes: BTreeMap<i32, TestNode>,
}

impl Cluster {
    fn start() -> Self {
        Self::start_as(None)
    }

    /// With a shell command before each node.
    fn start_as(before: Option<&str>) -> Self {
        let output = binary().args(["storage", "random-uuid"]).output().expect("runs");
        let id = String::from_utf8(output.stdout).expect("text").trim().to_owned();
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
                 replica.lag.time.max.ms=3000\n",
                node.dir.path().join("data").display(),
                voters.join(",")
            );
            let file = node.dir.path().join("server.properties");
            std::fs::write(&file, text).expect("written");
            let file = file.to_str().expect("a path").to_owned();
            let formatted = binary().args(["storage", "format", "-t", &id, "-c", &file]).output();
            assert!(formatted.expect("runs").status.success());
            node.set_file(&file, (port, controller_port));
            nodes.insert(node_id, node);
        }
        nodes.values_mut().for_each(TestNode::launch_unawaited);
        nodes.values_mut().for_each(TestNode::await_answer);
        let cluster = Self { nodes };
        for node in cluster.nodes.values() {
            eventually("all brokers are known", || metadata(&mut node.client()).brokers.len() == 3);
        }
        cluster
    }

    fn client(&self, node: i32) -> Client {
        self.nodes[&node].client()
    }

    fn ports(&self) -> BTreeMap<i32, u16> {
        self.nodes.iter().map(|(id, node)| (*id, node.port)).collect()
    }

    fn create(&self, name: &str) -> TopicId {
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
    fn stop(mut self) {
        for node in self.nodes.values_mut() {
            assert!(node.stop().success(), "{}", node.log());
        }
    }

    /// Waits until all replicas of the topic are in sync, by each node's metadata.
    fn await_in_sync(&self, topic: &str, replicas: usize) {
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

fn metadata(client: &mut Client) -> MetadataResponse {
    match client.call(MetadataRequest { topics: None, ..Default::default() }, 12) {
        ResponseBody::Metadata(response) => *response,
        other => panic!("{other:?}"),
    }
}

/// The leader of each partition that has one.
fn leaders(client: &mut Client, topic: &str) -> BTreeMap<i32, i32> {
    let response = metadata(client);
    let known = response.topics.iter().find(|known| known.name.as_deref() == Some(topic));
    let partitions = known.iter().flat_map(|topic| &topic.partitions);
    let led = partitions.filter(|partition| partition.leader_id >= 0);
    led.map(|partition| (partition.partition_index, partition.leader_id)).collect()
}

/// The sets of replicas that partitions of a topic have.
fn placed(client: &mut Client, topic: &str) -> BTreeSet<Vec<i32>> {
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
struct Acknowledged {
    partition: i32,
    records: Vec<(i64, String)>,
    longest_gap: Duration,
    /// Answers that sent it nowhere.
    refusals: usize,
}

/// Who leads a partition in which epoch, as the brokers know that can be asked.
fn look_up(ports: &BTreeMap<i32, u16>, topic: TopicId, partition: i32) -> Option<(i32, i32)> {
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

/// Writes to one partition until it is told to stop; looks for the leader when it is refused, or hears nothing. As Kafka's clients do,
/// it believes the newest epoch that anybody names, and goes to whom an answer names at once.
fn producer(
    ports: BTreeMap<i32, u16>,
    topic: TopicId,
    partition: i32,
    stop: Arc<AtomicBool>,
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
                    number += 1;
                    longest_gap = longest_gap.max(last_ack.elapsed());
                    last_ack = Instant::now();
                }
                Some(Err(Some((named, newer)))) if newer > epoch => {
                    (leader, epoch, client) = (named, newer, None);
                }
                refused => {
                    // Refused for now (too few replicas, a leader that has not heard of it yet), or nobody knows whether it was
                    // written: another value next.
                    refusals += usize::from(refused.is_some());
                    number += 1;
                    client = None;
                    match look_up(&ports, topic, partition) {
                        Some((named, newer)) if newer >= epoch => (leader, epoch) = (named, newer),
                        _ => std::thread::sleep(Duration::from_millis(2)),
                    }
                }
            }
        }
        Acknowledged { partition, records, longest_gap, refusals }
    })
}

/// The offset; or who leads instead and in which epoch, if the answer says so; or nothing, where no answer came.
fn append(
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

/// All records of a partition that consumers see on its leader.
fn consume(cluster: &Cluster, name: &str, topic: TopicId, partition: i32) -> BTreeMap<i64, String> {
    let leader = leaders(&mut cluster.client(1), name)[&partition];
    let mut client = cluster.client(leader);
    let (mut found, mut from) = (BTreeMap::new(), 0);
    loop {
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
        assert_eq!(data.error_code, 0, "{data:?}");
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
        if from >= data.high_watermark {
            return found;
        }
    }
}

/// Acknowledged records that are not where their producers were told.
fn missing(cluster: &Cluster, name: &str, topic: TopicId, all: &[Acknowledged]) -> Vec<String> {
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
fn judge(cluster: &Cluster, name: &str, topic: TopicId, all: &[Acknowledged]) {
    let missing = missing(cluster, name, topic, all);
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn nothing_acknowledged_is_lost_whoever_is_killed() {
    let mut cluster = Cluster::start();
    let topic = cluster.create("kept");
    cluster.await_in_sync("kept", 3);
    let stop = Arc::new(AtomicBool::new(false));
    let ports = cluster.ports();
    let producers: Vec<_> =
        (0..PARTITIONS).map(|partition| producer(ports.clone(), topic, partition, stop.clone())).collect();
    std::thread::sleep(Duration::from_secs(1));
    for round in 0..6 {
        let victim = 1 + round % 3;
        cluster.nodes.get_mut(&victim).expect("there").kill();
        std::thread::sleep(Duration::from_millis(1_500));
        cluster.nodes.get_mut(&victim).expect("there").launch();
        cluster.await_in_sync("kept", 3);
        std::thread::sleep(Duration::from_millis(300));
    }
    stop.store(true, Ordering::Relaxed);
    let all: Vec<Acknowledged> = producers.into_iter().map(|one| one.join().expect("no panic")).collect();
    let count: usize = all.iter().map(|one| one.records.len()).sum();
    let longest = all.iter().map(|one| one.longest_gap).max().unwrap_or_default();
    println!("{count} records acknowledged through 6 kills; longest gap {longest:?}");
    assert!(count > 500, "{count}");
    judge(&cluster, "kept", topic, &all);
    // Whoever else leads has the same.
    for victim in 1..=3 {
        cluster.nodes.get_mut(&victim).expect("there").kill();
        let asked = 1 + victim % 3;
        eventually("others lead", || {
            let leaders = leaders(&mut cluster.client(asked), "kept");
            leaders.len() == PARTITIONS as usize && leaders.values().all(|leader| *leader != victim)
        });
        cluster.nodes.get_mut(&victim).expect("there").launch();
        cluster.await_in_sync("kept", 3);
        judge(&cluster, "kept", topic, &all);
    }
    let cuts: usize =
        cluster.nodes.values().map(|node| node.log().matches("the log is cut from").count()).sum();
    println!("{cuts} times a log was cut");
    cluster.stop();
}

fn signal(node: &TestNode, name: &str) {
    let sent = std::process::Command::new("kill").args([name, &node.pid().to_string()]).status();
    assert!(sent.expect("kill").success());
}

/// The followers stand still while producers write, and the leader dies before they go on. What is missing then.
fn lost_with_the_leader(before: Option<&str>) -> Vec<String> {
    let mut cluster = Cluster::start_as(before);
    let topic = cluster.create("still");
    cluster.await_in_sync("still", 3);
    let stop = Arc::new(AtomicBool::new(false));
    let ports = cluster.ports();
    let producers: Vec<_> =
        (0..PARTITIONS).map(|partition| producer(ports.clone(), topic, partition, stop.clone())).collect();
    std::thread::sleep(Duration::from_millis(500));
    for other in [2, 3] {
        signal(&cluster.nodes[&other], "-STOP");
    }
    std::thread::sleep(Duration::from_millis(400));
    cluster.nodes.get_mut(&1).expect("there").kill();
    for other in [2, 3] {
        signal(&cluster.nodes[&other], "-CONT");
    }
    eventually("others lead", || {
        let leaders = leaders(&mut cluster.client(2), "still");
        leaders.len() == PARTITIONS as usize && leaders.values().all(|leader| *leader != 1)
    });
    std::thread::sleep(Duration::from_millis(500));
    stop.store(true, Ordering::Relaxed);
    cluster.nodes.get_mut(&1).expect("there").launch();
    let all: Vec<Acknowledged> = producers.into_iter().map(|one| one.join().expect("no panic")).collect();
    cluster.await_in_sync("still", 3);
    let missing = missing(&cluster, "still", topic, &all);
    cluster.stop();
    missing
}

#[test]
fn an_acknowledgement_before_the_isr_would_be_noticed() {
    assert_eq!(lost_with_the_leader(None), Vec::<String>::new());
    let planted = "export BARNABAS_PLANTED_MISTAKE=acks-before-the-isr";
    assert!(!lost_with_the_leader(Some(planted)).is_empty());
}

#[test]
fn a_planned_restart_is_a_short_pause() {
    let mut cluster = Cluster::start();
    let topic = cluster.create("calm");
    cluster.await_in_sync("calm", 3);
    let stop = Arc::new(AtomicBool::new(false));
    let ports = cluster.ports();
    let producers: Vec<_> =
        (0..PARTITIONS).map(|partition| producer(ports.clone(), topic, partition, stop.clone())).collect();
    std::thread::sleep(Duration::from_millis(500));
    for restarted in 1..=3 {
        let node = cluster.nodes.get_mut(&restarted).expect("there");
        assert!(node.stop().success(), "{}", node.log());
        node.launch();
        cluster.await_in_sync("calm", 3);
    }
    stop.store(true, Ordering::Relaxed);
    let all: Vec<Acknowledged> = producers.into_iter().map(|one| one.join().expect("no panic")).collect();
    let count: usize = all.iter().map(|one| one.records.len()).sum();
    let longest = all.iter().map(|one| one.longest_gap).max().unwrap_or_default();
    let gaps: Vec<Duration> = all.iter().map(|one| one.longest_gap).collect();
    let refusals: usize = all.iter().map(|one| one.refusals).sum();
    println!(
        "{count} records acknowledged through 3 restarts; longest gap {longest:?}, by partition {gaps:?}; {refusals} refusals"
    );
    judge(&cluster, "calm", topic, &all);
    cluster.stop();
}

#[test]
fn replicas_move_from_broker_to_broker_and_leave_nothing_behind() {
    use barnabas_wire::messages::alter_partition_reassignments_request::{
        ReassignablePartition, ReassignableTopic,
    };
    use barnabas_wire::messages::{AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest};
    let cluster = Cluster::start();
    let topic = cluster.create("moves");
    let stop = Arc::new(AtomicBool::new(false));
    let ports = cluster.ports();
    let producers: Vec<_> =
        (0..PARTITIONS).map(|partition| producer(ports.clone(), topic, partition, stop.clone())).collect();
    std::thread::sleep(Duration::from_millis(500));
    // Away from broker 1, then away from broker 2, then everywhere.
    for replicas in [vec![2, 3], vec![1, 3], vec![1, 2, 3]] {
        let partitions = (0..PARTITIONS).map(|partition_index| ReassignablePartition {
            partition_index,
            replicas: Some(replicas.clone()),
            ..Default::default()
        });
        let wanted = ReassignableTopic {
            name: "moves".into(),
            partitions: partitions.collect(),
            ..Default::default()
        };
        let request = AlterPartitionReassignmentsRequest {
            timeout_ms: 20_000,
            allow_replication_factor_change: true,
            topics: vec![wanted],
            ..Default::default()
        };
        let ResponseBody::AlterPartitionReassignments(response) = cluster.client(2).call(request, 1) else {
            panic!("another response")
        };
        assert_eq!(response.error_code, 0, "{response:?}");
        let rows = response.responses.iter().flat_map(|topic| &topic.partitions);
        rows.for_each(|row| assert_eq!(row.error_code, 0, "{row:?}"));
        for node in cluster.nodes.values() {
            eventually("the replicas have moved", || {
                let mut client = node.client();
                let request = ListPartitionReassignmentsRequest { timeout_ms: 20_000, ..Default::default() };
                let ResponseBody::ListPartitionReassignments(response) = client.call(request, 0) else {
                    panic!("another response")
                };
                response.topics.is_empty() && placed(&mut client, "moves") == [replicas.clone()].into()
            });
        }
        cluster.await_in_sync("moves", replicas.len());
        for (id, node) in &cluster.nodes {
            let folders = || {
                let found = std::fs::read_dir(node.dir.path().join("data")).into_iter().flatten().flatten();
                let names = found.filter_map(|entry| entry.file_name().into_string().ok());
                names.filter(|name| name.starts_with("moves-") && !name.ends_with("-delete")).count()
            };
            let expected = if replicas.contains(id) { PARTITIONS as usize } else { 0 };
            eventually("folders come and go", || {
                let there = folders();
                // What is in the journal alone has no folder yet.
                if expected == 0 { there == 0 } else { there <= expected }
            });
        }
    }
    stop.store(true, Ordering::Relaxed);
    let all: Vec<Acknowledged> = producers.into_iter().map(|one| one.join().expect("no panic")).collect();
    let count: usize = all.iter().map(|one| one.records.len()).sum();
    let longest = all.iter().map(|one| one.longest_gap).max().unwrap_or_default();
    println!("{count} records acknowledged through 3 moves; longest gap {longest:?}");
    judge(&cluster, "moves", topic, &all);
    cluster.stop();
}
