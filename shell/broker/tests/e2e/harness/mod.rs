//! A node in a process of its own on ephemeral ports and a temporary directory, and a client that speaks raw frames.
//!
//! What a test did not expect fails it: a line of level WARN or ERROR in the node's log ([`TestNode::stop`]).

pub mod bodies;
pub mod cluster;
pub mod dump;
pub mod patience;
pub mod quorum;
pub mod replicas;
pub mod share;
pub mod three_dirs;
pub mod transactions;
pub mod txn;

use barnabas_wire::messages::{
    ApiVersionsRequest, CreateTopicsRequest, MetadataRequest, RequestBody, RequestHeader, ResponseBody,
    create_topics_request::CreatableTopic,
};
use barnabas_wire::records::{BatchBuilder, BatchOptions};
use barnabas_wire::{ApiKey, decode_response, encode_request};
use bytes::Bytes;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Resources that have configs.
pub const TOPIC: i8 = 2;
pub const BROKER: i8 = 4;

const PATIENCE: Duration = Duration::from_secs(20);
/// A stop brings into segments what the journal holds: some files for each partition, a millisecond or more where many
/// tests share a disk.
const STOP_PATIENCE: Duration = Duration::from_secs(120);

/// A directory that goes with its owner.
#[derive(Debug)]
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("barnabas-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

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
}

/// A running node.
#[derive(Debug)]
pub struct TestNode {
    pub dir: TempDir,
    pub port: u16,
    pub controller_port: u16,
    overrides: Vec<String>,
    /// What the shell is told before it becomes the node: `ulimit -n 256`.
    limits: Option<String>,
    /// Instead of a node without one.
    file: Option<String>,
    /// Instead of the tests' own.
    working_directory: Option<PathBuf>,
    child: Option<Child>,
}

/// Below the range from which the system numbers outgoing connections, and never the same twice in one process: nobody
/// takes it between here and the node's own bind.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_mul(97).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = 10_000 + (number % 20_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A metric without labels of the node whose `metrics.listener` has this port.
pub fn metric(port: u16, name: &str) -> Option<f64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
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
        Self {
            dir: TempDir::new(),
            port: free_port(),
            controller_port: free_port(),
            overrides: overrides.iter().map(|text| (*text).to_owned()).collect(),
            limits: limits.map(str::to_owned),
            file: None,
            working_directory: None,
            child: None,
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

    fn log_path(&self) -> PathBuf {
        self.dir.path().join("stderr.log")
    }

    /// What the node has logged so far, over all its lives.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn command(&self) -> Command {
        let mut command = match &self.limits {
            None => binary(),
            Some(limits) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("{limits} && exec \"$0\" \"$@\"")]);
                shell.arg(binary().get_program());
                shell
            }
        };
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
        command.arg("server");
        for text in [&listeners, &log_dirs].into_iter().chain(&self.overrides) {
            command.args(["--override", text]);
        }
        command
    }

    /// Starts the process.
    pub fn launch_unawaited(&mut self) {
        let log = std::fs::File::options().create(true).append(true).open(self.log_path()).expect("a log");
        let child = self.command().stderr(log).stdout(Stdio::null()).spawn().expect("the binary starts");
        self.child = Some(child);
    }

    /// Starts the process and waits until it answers.
    pub fn launch(&mut self) {
        self.launch_unawaited();
        self.await_answer();
    }

    /// Waits until the process answers.
    pub fn await_answer(&mut self) {
        let started = Instant::now();
        loop {
            if let Ok(mut client) = Client::try_connect(self.port)
                && client.try_call(ApiVersionsRequest::default(), 0).is_some()
            {
                return;
            }
            let exited = self.child.as_mut().expect("running").try_wait().expect("a child");
            assert!(exited.is_none(), "the node ended at its start: {}", self.log());
            assert!(started.elapsed() < PATIENCE, "the node does not answer: {}", self.log());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub fn client(&self) -> Client {
        Client::try_connect(self.port).expect("connects")
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("running").id()
    }

    /// Waits until the process ends by itself.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.take().expect("running").wait().expect("reaped")
    }

    /// Ends the process as a power cut of the process would.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("running");
        child.kill().expect("killed");
        child.wait().expect("reaped");
    }

    /// SIGTERM, and the wait for its end. Panics if the log holds a WARN or ERROR.
    pub fn stop(&mut self) -> ExitStatus {
        self.stop_by("-TERM")
    }

    /// [`Self::stop`] by another signal, as `kill` names it.
    pub fn stop_by(&mut self, signal: &str) -> ExitStatus {
        let status = self.end_by(signal);
        let log = self.log();
        let trouble: Vec<&str> = trouble(&log).collect();
        assert!(trouble.is_empty(), "{trouble:#?}");
        status
    }

    pub fn stop_expecting_trouble(&mut self) -> ExitStatus {
        self.end_by("-TERM")
    }

    fn end_by(&mut self, signal: &str) -> ExitStatus {
        let mut child = self.child.take().expect("running");
        let killed = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(killed.expect("kill").success());
        let asked = Instant::now();
        loop {
            if let Some(status) = child.try_wait().expect("a child") {
                return status;
            }
            assert!(asked.elapsed() < STOP_PATIENCE, "the node does not stop: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The node's resident memory.
    pub fn rss_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("proc");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).expect("kB") * 1024
    }

    /// Resident memory at its largest since it was last asked, which begins a new count.
    pub fn peak_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("proc");
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
        let peak =
            line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).expect("kB") * 1024;
        std::fs::write(format!("/proc/{}/clear_refs", self.pid()), "5").expect("a new count");
        peak
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
            if std::thread::panicking() {
                eprintln!("the node's log:\n{}", self.log());
            }
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
