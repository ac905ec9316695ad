//! A node in a process of its own on ephemeral ports and a temporary directory, and a client that speaks raw frames.
//!
//! What a test did not expect fails it: a line of level WARN or ERROR in the node's log ([`TestNode::stop`]).

pub mod bodies;
pub mod cluster;
pub mod dump;
pub mod patience;
pub mod quorum;
pub mod replicas;
pub mod sasl;
pub mod share;
pub mod three_dirs;
pub mod tls;
pub mod transactions;
pub mod txn;

use barnabas_harness::{
    NodeProcess, Signal, Trouble, limited, peak_bytes, reset_peak, resident_bytes, server,
};
pub use barnabas_harness::{TempDir, free_port};
use barnabas_wire::messages::{
    ApiVersionsRequest, CreateTopicsRequest, MetadataRequest, RequestBody, RequestHeader, ResponseBody,
    create_topics_request::CreatableTopic,
};
use barnabas_wire::records::{BatchBuilder, BatchOptions};
use barnabas_wire::{ApiKey, decode_response, encode_request};
use bytes::Bytes;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// Resources that have configs.
pub const TOPIC: i8 = 2;
pub const BROKER: i8 = 4;

pub const PATIENCE: Duration = Duration::from_secs(20);
/// A stop brings into segments what the journal holds: some files for each partition, a millisecond or more where many
/// tests share a disk.
const STOP_PATIENCE: Duration = Duration::from_secs(120);
/// Changes of files that are farther apart than this differ in their times.
const FILE_TIME_STEP: Duration = Duration::from_millis(20);

/// What the nodes of a cluster write at WARN or ERROR because a test ended one of them.
const OF_THE_CLUSTER: &[&str] = &[
    " fenced: the controller lost contact",
    "in-sync replicas shrank:",
    "partitions below min.insync.replicas:",
    "partitions without a leader for",
    "the metadata quorum has had no leader",
];

/// Lines of a node's log at WARN or ERROR, other than [`OF_THE_CLUSTER`].
pub fn trouble(log: &str) -> impl Iterator<Item = &str> {
    let is_of_the_cluster = |line: &str| OF_THE_CLUSTER.iter().any(|words| line.contains(words));
    log.lines()
        .filter(|line| line.contains(" WARN ") || line.contains(" ERROR "))
        .filter(move |line| !is_of_the_cluster(line))
        // Some files of these tests set a key of the harness once more.
        .filter(|line| !line.contains(" stands more than once in the file, in lines "))
        // Key stores of the repository hold no secret.
        .filter(|line| {
            !line.contains("/testdata/") || !line.contains("every user of this machine can open it")
        })
}

/// A running node.
#[derive(Debug)]
pub struct TestNode {
    /// Ended before the directory is removed: fields are dropped in this order.
    process: NodeProcess,
    pub dir: TempDir,
    pub port: u16,
    pub controller_port: u16,
    overrides: Vec<String>,
    /// What the shell runs before it becomes the node: `ulimit -n 256`.
    limits: Option<String>,
    /// Instead of a node without one.
    file: Option<String>,
    /// Instead of the tests' own.
    working_directory: Option<PathBuf>,
}

/// All metrics of the node whose `metrics.listener` has this port.
pub fn metrics_page(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    Some(page)
}

/// A metric without labels of the node whose `metrics.listener` has this port.
pub fn metric(port: u16, name: &str) -> Option<f64> {
    let page = metrics_page(port)?;
    let line = page.lines().find(|line| line.starts_with(&format!("{name} ")))?;
    line.split_once(' ')?.1.parse().ok()
}

pub fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_barnabas"))
}

impl TestNode {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(overrides: &[&str]) -> Self {
        Self::start_limited(None, overrides)
    }

    /// Under limits of the process, in the words of a shell.
    pub fn start_limited(limits: Option<&str>, overrides: &[&str]) -> Self {
        let mut node = Self::new(limits, overrides);
        node.launch();
        node
    }

    /// Not started yet.
    pub fn new(limits: Option<&str>, overrides: &[&str]) -> Self {
        let dir = TempDir::new();
        let process = NodeProcess::new(dir.path().join("stderr.log"));
        Self {
            dir,
            port: free_port(),
            controller_port: free_port(),
            overrides: overrides.iter().map(|text| (*text).to_owned()).collect(),
            limits: limits.map(str::to_owned),
            file: None,
            working_directory: None,
            process,
        }
    }

    /// With all of its settings in a file; not started yet.
    pub fn of_file(file: &str, port: u16) -> Self {
        let mut node = Self::new(None, &[]);
        node.file = Some(file.to_owned());
        node.port = port;
        node
    }

    /// Settings in a file, with the ports that it names.
    pub fn set_file(&mut self, file: &str, (port, controller_port): (u16, u16)) {
        self.file = Some(file.to_owned());
        self.port = port;
        self.controller_port = controller_port;
    }

    /// For the next launch.
    pub fn set_working_directory(&mut self, directory: &Path) {
        self.working_directory = Some(directory.to_owned());
    }

    /// For the next launch.
    pub fn set_overrides(&mut self, overrides: &[&str]) {
        self.overrides = overrides.iter().map(|text| (*text).to_owned()).collect();
    }

    /// What the node has logged so far, over all its runs.
    pub fn log(&self) -> String {
        self.process.whole_log()
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn command(&self) -> Command {
        let mut command = limited(binary().get_program(), self.limits.as_deref());
        if let Some(directory) = &self.working_directory {
            command.current_dir(directory);
        }
        if let Some(file) = &self.file {
            command.args(["server", file]);
            return command;
        }
        let listeners = format!(
            "listeners=PLAINTEXT://127.0.0.1:{},CONTROLLER://127.0.0.1:{}",
            self.port, self.controller_port
        );
        let log_dirs = format!("log.dirs={}", self.data().display());
        server(&mut command, [&listeners, &log_dirs].into_iter().chain(&self.overrides));
        command
    }

    /// Starts the process.
    pub fn launch_unawaited(&mut self) {
        let mut command = self.command();
        self.process.run(&mut command).expect("the binary starts");
    }

    /// Starts the process and waits until it answers.
    pub fn launch(&mut self) {
        self.launch_unawaited();
        self.await_answer();
    }

    /// Waits until the process answers.
    pub fn await_answer(&mut self) {
        let port = self.port;
        let answers = || {
            let client = Client::try_connect(port).ok();
            client.is_some_and(|mut client| client.try_call(ApiVersionsRequest::default(), 0).is_some())
        };
        if let Err(Trouble(text)) = self.process.await_ready(PATIENCE, answers) {
            panic!("{text}: {}", self.log());
        }
    }

    pub fn client(&self) -> Client {
        Client::try_connect(self.port).expect("connects")
    }

    /// A client of the controller's listener, once it listens.
    pub fn controller(&self) -> Client {
        patience::until("the controller listens", || Client::try_connect(self.controller_port).ok())
    }

    pub fn pid(&self) -> u32 {
        self.process.pid().expect("running")
    }

    /// Waits until the process ends by itself.
    pub fn wait(&mut self) -> ExitStatus {
        self.process.wait().expect("running")
    }

    /// Ends the process as a power cut of the process would.
    pub fn kill(&mut self) {
        assert!(self.process.pid().is_some(), "it runs");
        self.process.kill().expect("killed");
    }

    /// SIGTERM, and the wait for its end. Panics if the log holds a WARN or ERROR.
    pub fn stop(&mut self) -> ExitStatus {
        self.stop_by(Signal::TERM)
    }

    /// [`Self::stop`] by another signal.
    pub fn stop_by(&mut self, signal: Signal) -> ExitStatus {
        let status = self.end_by(signal);
        let log = self.log();
        let trouble: Vec<&str> = trouble(&log).collect();
        assert!(trouble.is_empty(), "{trouble:#?}");
        status
    }

    pub fn stop_expecting_trouble(&mut self) -> ExitStatus {
        self.end_by(Signal::TERM)
    }

    /// What the test changes next is younger than the node's files: the next start tells them apart by their times,
    /// and the kernel's clock for those stands still for some milliseconds.
    fn end_by(&mut self, signal: Signal) -> ExitStatus {
        match self.process.stop_by(signal, STOP_PATIENCE) {
            Ok(status) => {
                std::thread::sleep(FILE_TIME_STEP);
                status
            }
            Err(Trouble(text)) => panic!("{text}: {}", self.log()),
        }
    }

    /// The node's resident memory.
    pub fn rss_bytes(&self) -> u64 {
        resident_bytes(self.pid())
    }

    /// Resident memory at its largest since it was last asked, which begins a new count.
    pub fn peak_bytes(&self) -> u64 {
        let peak = peak_bytes(self.pid());
        reset_peak(self.pid()).expect("a new count");
        peak
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        if self.process.pid().is_some() && std::thread::panicking() {
            eprintln!("the node's log:\n{}", self.log());
        }
    }
}

/// One connection that sends and receives frames.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    correlation_id: i32,
}

impl Client {
    pub fn try_connect(port: u16) -> std::io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, correlation_id: 0 })
    }

    /// Sends a request without waiting; returns its correlation id.
    pub fn send(&mut self, body: impl Into<RequestBody>, version: i16) -> i32 {
        assert!(self.try_send(body, version), "the connection was closed");
        self.correlation_id
    }

    /// As another client.
    pub fn send_as(&mut self, client_id: &str, body: impl Into<RequestBody>, version: i16) {
        assert!(self.try_send_as(client_id, body, version), "the connection was closed");
    }

    /// `false`: the connection was closed.
    pub fn try_send(&mut self, body: impl Into<RequestBody>, version: i16) -> bool {
        self.try_send_as("test", body, version)
    }

    fn try_send_as(&mut self, client_id: &str, body: impl Into<RequestBody>, version: i16) -> bool {
        let body = body.into();
        self.correlation_id += 1;
        let header = RequestHeader {
            request_api_key: body.key().number(),
            request_api_version: version,
            correlation_id: self.correlation_id,
            client_id: Some(client_id.into()),
            ..RequestHeader::default()
        };
        let frame =
            encode_request(&header, &body).expect("a request that its version can carry").into_bytes();
        self.stream.write_all(&[&(frame.len() as i32).to_be_bytes()[..], &frame].concat()).is_ok()
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("sends");
    }

    pub fn receive(&mut self, key: ApiKey, version: i16) -> (i32, ResponseBody) {
        self.try_receive(key, version).expect("an answer")
    }

    /// `None`: the connection was closed instead.
    pub fn try_receive(&mut self, key: ApiKey, version: i16) -> Option<(i32, ResponseBody)> {
        let frame = self.receive_frame()?;
        let (header, body) = decode_response(frame, key, version).expect("a response");
        Some((header.correlation_id, body))
    }

    pub fn receive_frame(&mut self) -> Option<Bytes> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).ok()?;
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut frame).ok()?;
        Some(Bytes::from(frame))
    }

    /// Whether bytes of an answer are there already.
    pub fn has_answer(&self) -> bool {
        self.stream.set_nonblocking(true).expect("a socket");
        let found = self.stream.peek(&mut [0; 1]);
        self.stream.set_nonblocking(false).expect("a socket");
        found.is_ok_and(|count| count > 0)
    }

    pub fn call(&mut self, body: impl Into<RequestBody>, version: i16) -> ResponseBody {
        self.try_call(body, version).expect("an answer")
    }

    pub fn try_call(&mut self, body: impl Into<RequestBody>, version: i16) -> Option<ResponseBody> {
        let body = body.into();
        let key = body.key();
        if !self.try_send(body, version) {
            return None;
        }
        let (correlation_id, response) = self.try_receive(key, version)?;
        assert_eq!(correlation_id, self.correlation_id);
        Some(response)
    }

    /// Whether the node has closed the connection, which it is to do soon.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0) | Err(_))
    }

    /// Makes a topic and waits until it has leaders.
    pub fn create_topic(&mut self, name: &str, partitions: i32, configs: &[(&str, &str)]) {
        use barnabas_wire::messages::create_topics_request::CreatableTopicConfig;
        let topic = CreatableTopic {
            name: name.into(),
            num_partitions: partitions,
            replication_factor: 1,
            configs: configs
                .iter()
                .map(|&(key, value)| CreatableTopicConfig {
                    name: key.into(),
                    value: Some(value.into()),
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
        let ResponseBody::CreateTopics(response) = self.call(request, 7) else { panic!("another response") };
        assert_eq!(response.topics[0].error_code, 0, "{response:?}");
    }

    /// A resource's configs, as DescribeConfigs shows them.
    pub fn configs(&mut self, kind: i8, name: &str) -> std::collections::BTreeMap<String, String> {
        use barnabas_wire::messages::DescribeConfigsRequest;
        use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;
        let resource =
            DescribeConfigsResource { resource_type: kind, resource_name: name.into(), ..Default::default() };
        let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
        let ResponseBody::DescribeConfigs(response) = self.call(request, 4) else { panic!("no answer") };
        assert_eq!(response.results[0].error_code, 0, "{:?}", response.results[0].error_message);
        let shown = response.results[0].configs.iter();
        shown
            .map(|config| (config.name.to_string(), config.value.as_deref().unwrap_or_default().to_owned()))
            .collect()
    }

    /// Sets one key of a resource, or takes it away; the code that comes back.
    pub fn alter_config(
        &mut self,
        version: i16,
        (kind, name): (i8, &str),
        key: &str,
        value: Option<&str>,
    ) -> i16 {
        use barnabas_wire::messages::IncrementalAlterConfigsRequest;
        use barnabas_wire::messages::incremental_alter_configs_request::{
            AlterConfigsResource, AlterableConfig,
        };
        let config = AlterableConfig {
            name: key.into(),
            config_operation: i8::from(value.is_none()),
            value: value.map(Into::into),
            ..Default::default()
        };
        let resource = AlterConfigsResource {
            resource_type: kind,
            resource_name: name.into(),
            configs: vec![config],
            ..Default::default()
        };
        let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
        let ResponseBody::IncrementalAlterConfigs(response) = self.call(request, version) else {
            panic!("another response")
        };
        response.responses[0].error_code
    }

    /// A producer's id, not for transactions.
    pub fn producer_id(&mut self) -> barnabas_base::ProducerId {
        use barnabas_wire::messages::InitProducerIdRequest;
        let request = InitProducerIdRequest {
            transactional_id: None,
            transaction_timeout_ms: 60_000,
            ..Default::default()
        };
        let ResponseBody::InitProducerId(response) = self.call(request, 4) else {
            panic!("another response")
        };
        assert_eq!(response.error_code, 0);
        barnabas_base::ProducerId(response.producer_id)
    }

    pub fn topic_id(&mut self, name: &str) -> barnabas_base::TopicId {
        use barnabas_wire::messages::metadata_request::MetadataRequestTopic;
        let topic = MetadataRequestTopic { name: Some(name.into()), ..Default::default() };
        let request = MetadataRequest { topics: Some(vec![topic]), ..Default::default() };
        let ResponseBody::Metadata(response) = self.call(request, 12) else { panic!("another response") };
        assert_eq!(response.topics[0].error_code, 0, "{response:?}");
        response.topics[0].topic_id
    }
}

/// `log.dir.min.free.bytes` that asks for more than is free: all of the file system.
pub fn no_room(data: &Path) -> String {
    let size = Command::new("df").args(["-B1", "--output=size"]).arg(data).output().expect("df");
    let size = String::from_utf8(size.stdout).expect("text");
    format!("log.dir.min.free.bytes={}", size.lines().nth(1).expect("a line").trim())
}

/// A batch with these values.
pub fn batch(values: &[&str]) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for value in values {
        let now = barnabas_base::TimestampMs(now_ms());
        builder.push(now, None, Some(value.as_bytes()), &[]);
    }
    builder.build().expect("a batch")
}

pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    since.as_millis() as i64
}
