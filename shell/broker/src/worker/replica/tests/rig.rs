//! Brokers of one process without a quorum: real workers, journals and sockets, and an image that the test writes.

use crate::controller::publisher::publish;
use crate::log_dirs::committer::CommitterParts;
use crate::log_dirs::directories::{Directories, Directory};
use crate::log_dirs::journal_thread::{JournalParts, LinuxJournal};
use crate::mailbox::NewConnection;
use crate::mailbox::{Command, Mailbox};
use crate::node::audit::Audit;
use crate::node::log_dirs::deletions::Deletions;
use crate::node::peers::controller::ControllerHandle;
use crate::node::peers::planted::Mistake;
use crate::node::shutdown::Shutdown;
use crate::node::workers::connection_places::ConnectionPlaces;
use crate::node::{Node, NodeParts};
use crate::requests::session::MOVE_PATIENCE;
use crate::server::worker;
use crate::upkeep::replay;
use barnabas_base::{BrokerEpoch, BrokerId, ErrorCode, Offset, PartitionIndex, Text, Uuid};
use barnabas_clock::Clock;
use barnabas_config::Listener;
use barnabas_config::{Endpoint, ListenerName, SecurityProtocol};
use barnabas_disk::LinuxDisk;
use barnabas_metadata::config::{BrokerConfig, Properties, StaticConfig};
use barnabas_metadata::{Changes, Delta, Image, MetadataVersion, Provenance, ResourceType};
use barnabas_metrics::Meter;
use barnabas_net::links::{Address, Link, LinkSettings, LinkThread};
use barnabas_net::{Acceptor, SocketOptions};
use barnabas_quorum::raft::requests::Here;
use barnabas_security::quotas::places::Room;
use barnabas_storage::{Disk, LogDir, MetaProperties};
use barnabas_wire::messages::alter_partition_response::{PartitionData, TopicData};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::fetch_response::PartitionData as Answered;
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::register_broker_record::BrokerEndpoint;
use barnabas_wire::messages::{
    AlterPartitionRequest, AlterPartitionResponse, ConfigRecord, FeatureLevelRecord, FetchRequest,
    PartitionChangeRecord, PartitionRecord, ProduceRequest, RegisterBrokerRecord, TopicRecord,
};
use barnabas_wire::records::{BatchBuilder, BatchOptions, batches};
use barnabas_wire::{MetadataRecord, Str};
use bytes::Bytes;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

pub const CLUSTER: &str = "cluster-of-the-test";
const WORKERS: usize = 2;
const PATIENCE: Duration = Duration::from_secs(20);

/// A directory that goes with its owner.
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("barnabas-replica-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A broker that runs.
pub struct Broker {
    pub node: Arc<Node>,
    pub id: i32,
    acceptor: Option<(LinkThread, JoinHandle<()>)>,
    links: Option<JoinHandle<()>>,
    workers: Vec<JoinHandle<std::io::Result<()>>>,
    address: SocketAddr,
}

/// What the controller would know: an image, and who hears of it.
#[derive(Default)]
pub struct Controller {
    image: Arc<Image>,
    nodes: Vec<Arc<Node>>,
    offset: i64,
}

pub struct Cluster {
    pub controller: Arc<Mutex<Controller>>,
    pub brokers: Vec<Broker>,
    client: LinkThread,
    dirs: Vec<TempDir>,
    settings: Vec<(&'static str, &'static str)>,
    lives: i64,
}

impl Controller {
    /// Writes records, and tells everybody who is there.
    pub fn write(&mut self, records: &[MetadataRecord]) {
        self.write_telling(records, |_| true);
    }

    fn write_telling(&mut self, records: &[MetadataRecord], hears: impl Fn(i32) -> bool) {
        let mut delta = Delta::new((*self.image).clone());
        records.iter().for_each(|record| delta.replay(record).expect("a record that fits"));
        self.offset += records.len() as i64;
        delta.advance(Provenance { end: Offset(self.offset), ..Provenance::default() });
        let (image, changes) = delta.apply();
        self.image = Arc::new(image);
        for node in self.nodes.iter().filter(|node| hears(node.identity.broker_id.get())) {
            publish(node, self.image.clone(), Box::new(changes.clone()));
        }
    }

    pub fn partition(&self, topic: Uuid, index: i32) -> barnabas_metadata::Partition {
        let topic = self.image.topics.by_id(topic).expect("a topic");
        topic.partition(PartitionIndex(index)).expect("a partition").clone()
    }

    /// A leader says who is in sync. Believed if it speaks of the state that is known.
    fn alter(&mut self, request: &AlterPartitionRequest) -> AlterPartitionResponse {
        let mut records = Vec::new();
        let mut asked = Vec::new();
        for topic in &request.topics {
            for partition in &topic.partitions {
                let known = self.partition(topic.topic_id, partition.partition_index);
                let is_known = known.leader_epoch.get() == partition.leader_epoch
                    && known.partition_epoch.get() == partition.partition_epoch;
                let isr = partition.new_isr_with_epochs.iter().map(|member| member.broker_id);
                if is_known {
                    let change = PartitionChangeRecord {
                        topic_id: topic.topic_id,
                        partition_id: partition.partition_index,
                        isr: Some(isr.collect()),
                        leader: -2,
                        ..PartitionChangeRecord::default()
                    };
                    records.push(change.into());
                }
                asked.push((topic.topic_id, partition.partition_index, is_known));
            }
        }
        self.write(&records);
        let answer = |(topic_id, partition_index, is_known): (Uuid, i32, bool)| {
            let now = self.partition(topic_id, partition_index);
            let error = if is_known { ErrorCode::None } else { ErrorCode::InvalidUpdateVersion };
            let partition = PartitionData {
                partition_index,
                error_code: error.code(),
                leader_id: now.leader.get(),
                leader_epoch: now.leader_epoch.get(),
                isr: now.isr().iter().map(|broker| broker.get()).collect(),
                partition_epoch: now.partition_epoch.get(),
                ..PartitionData::default()
            };
            TopicData { topic_id, partitions: vec![partition], ..TopicData::default() }
        };
        let topics = asked.into_iter().map(answer).collect();
        AlterPartitionResponse { topics, ..AlterPartitionResponse::default() }
    }
}

impl Cluster {
    /// `count` brokers, numbered from 1.
    pub fn start(count: i32, settings: &[(&'static str, &'static str)]) -> Self {
        let (client, _) = LinkThread::start().expect("a thread");
        let mut cluster = Self {
            controller: Arc::default(),
            brokers: Vec::new(),
            client,
            dirs: Vec::new(),
            settings: settings.to_vec(),
            lives: 100,
        };
        let level = FeatureLevelRecord {
            name: Str::from("metadata.version"),
            feature_level: MetadataVersion::LATEST.level(),
            ..FeatureLevelRecord::default()
        };
        cluster.write(&[level.into()]);
        for id in 1..=count {
            cluster.dirs.push(TempDir::new());
            cluster.start_broker(id);
        }
        cluster
    }

    pub fn write(&self, records: &[MetadataRecord]) {
        self.controller.lock().expect("not poisoned").write(records);
    }

    /// Starts broker `id` in a new life, with an empty disk.
    pub fn start_broker(&mut self, id: i32) {
        self.lives += 1;
        let dir = TempDir::new();
        let broker = Broker::start(id, &dir.0, &self.settings);
        broker.node.identity.set_broker_epoch(BrokerEpoch(self.lives));
        let controller = self.controller.clone();
        broker.node.peers.replication.isr.answer_with(move |request| {
            let (reply, answer) = oneshot::channel();
            let controller = controller.clone();
            // Not on a worker's thread: to publish may block.
            std::thread::spawn(move || {
                let response = controller.lock().expect("not poisoned").alter(&request);
                drop(reply.send(response));
            });
            answer
        });
        let registration = RegisterBrokerRecord {
            broker_id: id,
            broker_epoch: self.lives,
            incarnation_id: Uuid([self.lives as u8; 16]),
            end_points: vec![BrokerEndpoint {
                name: Str::from("PLAINTEXT"),
                host: Str::from("127.0.0.1"),
                port: broker.address.port(),
                ..BrokerEndpoint::default()
            }],
            rack: Some(Str::from(format!("rack-{id}"))),
            log_dirs: vec![broker.node.log_dirs.directories[0].id],
            fenced: false,
            ..RegisterBrokerRecord::default()
        };
        {
            let mut controller = self.controller.lock().expect("not poisoned");
            publish(&broker.node, controller.image.clone(), Box::new(Changes::everything()));
            controller.nodes.push(broker.node.clone());
            controller.write(&[registration.into()]);
        }
        let old = std::mem::replace(&mut self.dirs[id as usize - 1], dir);
        drop(old);
        self.brokers.push(broker);
    }

    pub fn broker(&self, id: i32) -> &Broker {
        self.brokers.iter().find(|broker| broker.id == id).expect("it runs")
    }

    /// The broker's threads end where they are; its connections close.
    pub fn kill(&mut self, id: i32) {
        let at = self.brokers.iter().position(|broker| broker.id == id).expect("it runs");
        let broker = self.brokers.remove(at);
        let mut controller = self.controller.lock().expect("not poisoned");
        controller.nodes.retain(|node| !Arc::ptr_eq(node, &broker.node));
        drop(controller);
        broker.end();
    }

    /// Makes a topic; each of its partitions has these replicas, of which the first leads, and those in sync.
    pub fn create_topic(&self, id: u8, partitions: i32, replicas: &[i32], isr: &[i32]) -> Uuid {
        let topic_id = Uuid([id; 16]);
        let name = Str::from(format!("topic-{id}"));
        let mut records: Vec<MetadataRecord> =
            vec![TopicRecord { name, topic_id, ..TopicRecord::default() }.into()];
        records.extend((0..partitions).map(|partition_id| {
            let partition = PartitionRecord {
                partition_id,
                topic_id,
                replicas: replicas.to_vec(),
                isr: isr.to_vec(),
                leader: replicas[0],
                leader_epoch: 1,
                partition_epoch: 1,
                ..PartitionRecord::default()
            };
            MetadataRecord::from(partition)
        }));
        self.write(&records);
        topic_id
    }

    /// Elects `leader` in partitions `0..partitions`; who is in sync from then on.
    pub fn elect(&self, topic_id: Uuid, partitions: i32, leader: i32, isr: &[i32]) {
        let all: Vec<i32> = self.brokers.iter().map(|broker| broker.id).collect();
        self.elect_telling(&all, topic_id, partitions, leader, isr);
    }

    /// As [`Cluster::elect`]; only these brokers hear of it.
    pub fn elect_telling(&self, told: &[i32], topic_id: Uuid, partitions: i32, leader: i32, isr: &[i32]) {
        let records: Vec<MetadataRecord> = (0..partitions)
            .map(|partition_id| {
                let change = PartitionChangeRecord {
                    topic_id,
                    partition_id,
                    isr: Some(isr.to_vec()),
                    leader,
                    ..PartitionChangeRecord::default()
                };
                MetadataRecord::from(change)
            })
            .collect();
        let mut controller = self.controller.lock().expect("not poisoned");
        controller.write_telling(&records, |id| told.contains(&id));
    }

    pub fn isr(&self, topic: Uuid, partition: i32) -> Vec<i32> {
        let controller = self.controller.lock().expect("not poisoned");
        controller.partition(topic, partition).isr().iter().map(|broker| broker.get()).collect()
    }

    /// Waits until the controller knows that these are in sync.
    pub fn await_isr(&self, topic: Uuid, partition: i32, isr: &[i32]) {
        let begun = barnabas_clock::now();
        loop {
            let mut now = self.isr(topic, partition);
            now.sort_unstable();
            if now == isr {
                return;
            }
            assert!(barnabas_clock::since(begun) < PATIENCE, "in sync are {now:?}, not {isr:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn link(&self, broker: i32) -> Link {
        let address = self.broker(broker).address;
        let address = Address { host: Text::from(address.ip().to_string()), port: address.port() };
        Link::start(self.client.handle(), address, LinkSettings::new("test"))
    }

    /// Appends a batch of these values; the base offset.
    pub fn produce(
        &self,
        broker: i32,
        topic: Uuid,
        partition: i32,
        acks: i16,
        values: &[String],
    ) -> Result<i64, ErrorCode> {
        let link = self.link(broker);
        self.produce_over(&link, topic, partition, acks, values)
    }

    pub fn connect(&self, broker: i32) -> Link {
        self.link(broker)
    }

    /// All brokers that run make this mistake from now on.
    pub fn plant(&self, mistake: Mistake) {
        self.brokers.iter().for_each(|broker| broker.node.peers.replication.planted.plant(mistake));
    }

    pub fn produce_over(
        &self,
        link: &Link,
        topic: Uuid,
        partition: i32,
        acks: i16,
        values: &[String],
    ) -> Result<i64, ErrorCode> {
        self.produce_within(5_000, link, topic, (partition, acks), values)
    }

    pub fn produce_within(
        &self,
        timeout_ms: i32,
        link: &Link,
        topic: Uuid,
        (partition, acks): (i32, i16),
        values: &[String],
    ) -> Result<i64, ErrorCode> {
        let data =
            PartitionProduceData { index: partition, records: Some(batch(values)), ..Default::default() };
        let topic = TopicProduceData { topic_id: topic, partition_data: vec![data], ..Default::default() };
        let request =
            ProduceRequest { acks, timeout_ms, topic_data: vec![topic], ..ProduceRequest::default() };
        let response =
            self.client.handle().block_on(link.send(request)).map_err(|_| ErrorCode::NetworkException)?;
        let answer = &response.responses[0].partition_responses[0];
        match ErrorCode::from_code(answer.error_code) {
            ErrorCode::None => Ok(answer.base_offset),
            code => Err(code),
        }
    }

    /// What a broker answers a consumer in `rack` that reads from `from` on.
    pub fn fetch(&self, broker: i32, topic: Uuid, from: i64, rack: &str) -> Answered {
        let wanted =
            FetchPartition { fetch_offset: from, partition_max_bytes: 1 << 20, ..FetchPartition::default() };
        let topic = FetchTopic { topic_id: topic, partitions: vec![wanted], ..FetchTopic::default() };
        let request = FetchRequest {
            max_bytes: 8 << 20,
            session_epoch: -1,
            topics: vec![topic],
            rack_id: Str::from(rack),
            ..FetchRequest::default()
        };
        let link = self.link(broker);
        let mut response = self.client.handle().block_on(link.send(request)).expect("an answer");
        response.responses.remove(0).partitions.remove(0)
    }

    /// Sets a topic's and the brokers' settings.
    pub fn configure(&self, settings: &[(ResourceType, &str, &str, &str)]) {
        let record = |(kind, resource, name, value): &(ResourceType, &str, &str, &str)| {
            MetadataRecord::from(ConfigRecord {
                resource_type: kind.code(),
                resource_name: Str::from(*resource),
                name: Str::from(*name),
                value: Some(Str::from(*value)),
                ..ConfigRecord::default()
            })
        };
        self.write(&settings.iter().map(record).collect::<Vec<_>>());
    }

    /// All values that a consumer sees, in their order, with offsets; and the high watermark.
    pub fn consume(&self, broker: i32, topic: Uuid, partition: i32) -> (Vec<(i64, String)>, i64) {
        let link = self.link(broker);
        let (mut seen, mut from) = (Vec::new(), 0);
        loop {
            let wanted = FetchPartition {
                partition,
                fetch_offset: from,
                partition_max_bytes: 1 << 20,
                ..FetchPartition::default()
            };
            let topic = FetchTopic { topic_id: topic, partitions: vec![wanted], ..FetchTopic::default() };
            let request = FetchRequest {
                max_wait_ms: 0,
                min_bytes: 0,
                max_bytes: 8 << 20,
                session_epoch: -1,
                topics: vec![topic],
                ..FetchRequest::default()
            };
            let response = self.client.handle().block_on(link.send(request)).expect("an answer");
            let data = &response.responses[0].partitions[0];
            assert_eq!(ErrorCode::from_code(data.error_code), ErrorCode::None);
            let records = data.records.clone().unwrap_or_default();
            for read in batches(records) {
                let batch = read.expect("sound");
                batch.check_crc().expect("sound");
                let records = batch.records().expect("sound");
                for record in records.iter() {
                    let record = record.expect("sound");
                    let offset = record.offset.get();
                    if offset >= from {
                        let value = record.value.unwrap_or_default();
                        seen.push((offset, String::from_utf8_lossy(value).into_owned()));
                    }
                }
                from = batch.header().next_offset().get();
            }
            if from >= data.high_watermark {
                return (seen, data.high_watermark);
            }
        }
    }

    /// Waits until a consumer sees so many records.
    pub fn await_records(
        &self,
        broker: i32,
        topic: Uuid,
        partition: i32,
        count: usize,
    ) -> Vec<(i64, String)> {
        let begun = barnabas_clock::now();
        loop {
            let (seen, high_watermark) = self.consume(broker, topic, partition);
            if seen.len() >= count {
                return seen;
            }
            assert!(
                barnabas_clock::since(begun) < PATIENCE,
                "{} of {count} records below {high_watermark}",
                seen.len()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        while let Some(broker) = self.brokers.pop() {
            broker.end();
        }
    }
}

impl Broker {
    fn start(id: i32, dir: &Path, settings: &[(&'static str, &'static str)]) -> Self {
        let (directories, directory_id, config) = open(id, dir, settings);
        let options = SocketOptions { backlog: 64, send_buffer_bytes: None, receive_buffer_bytes: None };
        let places =
            ConnectionPlaces::open(&config, Vec::new(), Room::of(1024, false)).expect("no overrides");
        let acceptor = Acceptor::bind("127.0.0.1", 0, places.gate().clone(), options);
        let acceptor = acceptor.expect("binds");
        let address = acceptor.local_addr();
        let (mailboxes, inboxes): (Vec<_>, Vec<_>) = (0..WORKERS).map(|_| Mailbox::new()).unzip();
        // Requests to it are not answered.
        let (links, links_thread) = LinkThread::start().expect("a thread");
        let here = Arc::new(Here { cluster_id: Text::from(CLUSTER), listener: Text::from("CONTROLLER") });
        let (controller, _) = ControllerHandle::new(directory_id, 1, (links.clone(), None), here);
        let node = Arc::new(Node::new(NodeParts {
            audit: Audit::open(None, BrokerId(0), Arc::default()).expect("nothing to open"),
            logins: Arc::default(),
            broker_id: BrokerId(id),
            incarnation: crate::log_dirs::directories::random_uuid(),
            cluster_id: Text::from(CLUSTER),
            is_broker: true,
            clock: Clock::start(),
            tls: crate::config::tls::NodeTls::default(),
            links,
            mailboxes,
            listeners: vec![(listener(address.port()), address)],
            connection_places: places,
            directories,
            config,
            controller,
            meter: Arc::new(Meter::default()),
            open_files_max: 256,
            memory_bytes: 1 << 30,
            file_bytes_max: u64::MAX,
            shutdown: Shutdown::default(),
            deletions: Deletions::default(),
        }));
        let threads = inboxes.into_iter().enumerate().map(|(at, inbox)| {
            let node = node.clone();
            std::thread::spawn(move || worker::run(at, node, inbox))
        });
        let workers = threads.collect();
        start_storage(&node);
        node.workers.mailboxes.iter().for_each(|mailbox| mailbox.send_blocking(Command::Begin));
        let accepting = LinkThread::start().expect("a thread");
        accepting.0.handle().spawn(accept(node.clone(), acceptor));
        // It listens from its first turn on.
        while std::net::TcpStream::connect(address).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Self { node, id, acceptor: Some(accepting), links: Some(links_thread), workers, address }
    }

    fn end(mut self) {
        if let Some((thread, ended)) = self.acceptor.take() {
            thread.stop();
            drop(ended.join());
        }
        if let Some(ended) = self.links.take() {
            self.node.peers.links.stop();
            drop(ended.join());
        }
        for mailbox in &self.node.workers.mailboxes {
            mailbox.send_blocking(Command::End);
        }
        self.workers.drain(..).for_each(|worker| drop(worker.join()));
        // What the journal and the committer hold is lost on them.
        self.node.log_dirs.directories[0].fail();
        self.node.log_dirs.directories[0].journal.stop();
        self.node.log_dirs.directories[0].committer.stop();
    }
}

async fn accept(node: Arc<Node>, acceptor: Acceptor) {
    let mut next = 0;
    let take = |stream, peer, slot| {
        next = (next + 1) % node.workers.count;
        let (stream, certified, reader) = (barnabas_net::Detached::plain(stream), None, None);
        let (patience, login, listener) = (MOVE_PATIENCE, None, 0);
        let software = None;
        let new =
            NewConnection { stream, certified, peer, listener, slot, reader, patience, login, software };
        assert!(node.workers.mailboxes[next].try_send(Command::Connection(new)));
    };
    acceptor.listen().expect("listens");
    acceptor.run(barnabas_net::Unlimited, take, |_, refused| panic!("{refused}")).await.expect("accepts");
}

/// A log directory of broker `id` on the real disk, and the broker's configuration.
fn open(id: i32, dir: &Path, settings: &[(&'static str, &'static str)]) -> (Directories, Uuid, BrokerConfig) {
    let disk: Arc<dyn Disk> = Arc::new(LinuxDisk);
    let directory_id = crate::log_dirs::directories::random_uuid();
    let mut log_dir = LogDir::open(disk, dir).expect("a log directory");
    let meta = MetaProperties {
        version: 1,
        cluster_id: Some(Text::from(CLUSTER)),
        node_id: Some(BrokerId(id)),
        directory_id: Some(directory_id),
    };
    log_dir.write_meta(meta).expect("writes");
    let own = [("node.id", format!("{id}")), ("log.dirs", dir.display().to_string())];
    let own = own.iter().map(|(key, value)| (Text::from(*key), Text::from(value.as_str())));
    let given: Properties =
        own.chain(settings.iter().map(|(key, value)| (Text::from(*key), Text::from(*value)))).collect();
    let (given, _) = StaticConfig::check(given).expect("settings");
    let config = BrokerConfig::new(given);
    log_dir.set_synced(config.value("log.ack.durability") != Some("written"));
    let directories = Directories::new(vec![Directory::new(log_dir, directory_id, true)]);
    directories[0].lock().begin().expect("begins");
    (directories, directory_id, config)
}

/// The plain listener of every broker.
fn listener(port: u16) -> Listener {
    let endpoint = Endpoint { listener: ListenerName::new("PLAINTEXT"), host: "127.0.0.1".to_owned(), port };
    Listener {
        endpoint,
        protocol: SecurityProtocol::Plaintext,
        is_controller: false,
        is_reserved: false,
        is_inter_broker: true,
        is_early: false,
    }
}

fn start_storage(node: &Arc<Node>) {
    let directory = &node.log_dirs.directories[0];
    let told = node.clone();
    let parts = CommitterParts {
        name: "committer".to_owned(),
        directory: 0,
        disk: directory.disk.clone(),
        file_system: directory.file_system.clone(),
        workers: node.workers.mailboxes.clone(),
        meter: node.workers.meter.clone(),
        failed: Box::new(move |error| told.directory_failed(0, &error)),
    };
    directory.committer.start(parts).expect("a thread");
    let (asked, told) = (node.clone(), node.clone());
    let parts = JournalParts {
        directory: 0,
        path: directory.path.clone(),
        id: directory.id,
        disk: directory.disk.clone(),
        files: Box::new(LinuxJournal),
        config: replay::config_of(node, directory),
        recovered: None,
        opening: 7,
        workers: node.workers.mailboxes.clone(),
        meter: node.workers.meter.clone(),
        is_online: Box::new(move || asked.log_dirs.directories[0].is_online()),
        full: Box::new(|error| panic!("{error}")),
        failed: Box::new(move |error| told.directory_failed(0, &error)),
    };
    let prepared = directory.journal.prepare(parts).expect("prepares");
    directory.journal.start(prepared).expect("a thread");
}

/// A batch with these values.
fn batch(values: &[String]) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    let now = Clock::start().wall();
    values.iter().for_each(|value| builder.push(now, None, Some(value.as_bytes()), &[]));
    builder.build().expect("a batch")
}
