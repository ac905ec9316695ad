//! The node under test: a process that is started, killed and asked what it logged.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// Small segments, so that they roll, are deleted and (one day) compacted under the load; everything else as it comes.
const OVERRIDES: &[&str] = &[
    "offsets.topic.num.partitions=4",
    "offsets.topic.replication.factor=1",
    "log.retention.check.interval.ms=200",
    "log.segment.delete.delay.ms=200",
    "auto.create.topics.enable=false",
    "log.cleaner.backoff.ms=200",
];

#[derive(Debug)]
pub struct Node {
    binary: PathBuf,
    directory: PathBuf,
    overrides: Vec<String>,
    port: u16,
    child: Option<Child>,
    started: Instant,
    log_read: u64,
}

impl Node {
    /// `overrides`: further settings, as `KEY=VALUE`.
    pub fn new(binary: &Path, directory: &Path, overrides: Vec<String>) -> Result<Self, String> {
        std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let binary =
            binary.canonicalize().map_err(|error| format!("{} is not built: {error}", binary.display()))?;
        let port = free_port()?;
        let started = Instant::now();
        let directory = directory.to_owned();
        Ok(Self { binary, directory, overrides, port, child: None, started, log_read: 0 })
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// When the process was last executed.
    pub fn started(&self) -> Instant {
        self.started
    }

    fn log_path(&self) -> PathBuf {
        self.directory.join("node.log")
    }

    /// Executes the node; returns how long it took until it answered Metadata.
    pub fn start(&mut self) -> Result<Duration, String> {
        let log = File::options().create(true).append(true).open(self.log_path());
        let log = log.map_err(|error| format!("the node's log: {error}"))?;
        let mut command = Command::new(&self.binary);
        let listeners = format!("listeners=PLAINTEXT://127.0.0.1:{},CONTROLLER://127.0.0.1:0", self.port);
        let log_dirs = format!("log.dirs={}", self.directory.join("data").display());
        command.arg("server").args(["--override", &listeners, "--override", &log_dirs]);
        for setting in OVERRIDES.iter().copied().chain(self.overrides.iter().map(String::as_str)) {
            command.args(["--override", setting]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.started = Instant::now();
        self.child = Some(command.spawn().map_err(|error| format!("the node does not start: {error}"))?);
        while !metadata_answers(self.port) {
            if let Some(status) = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten()) {
                return Err(format!("the node ended at its start ({status}): {}", self.last_lines()));
            }
            if self.started.elapsed() > PATIENCE {
                return Err(format!("the node does not serve: {}", self.last_lines()));
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        Ok(self.started.elapsed())
    }

    /// −9; then what it had logged is looked at.
    pub fn kill(&mut self) -> Result<(), String> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("the node ended by itself ({status}): {}", self.last_lines()));
        }
        child
            .kill()
            .and_then(|()| child.wait())
            .map_err(|error| format!("the node cannot be killed: {error}"))?;
        self.complaints()
    }

    /// Cuts the last bytes of the largest segment of a topic: the planted loss that a look must find.
    pub fn cut_a_segment(&self, topic: &str) -> Result<(), String> {
        let cut = || {
            let mut segments = Vec::new();
            for entry in std::fs::read_dir(self.directory.join("data"))? {
                let entry = entry?;
                if entry.file_name().to_string_lossy().starts_with(&format!("{topic}-")) {
                    for file in std::fs::read_dir(entry.path())? {
                        let path = file?.path();
                        if path.extension().is_some_and(|ending| ending == "log") {
                            segments.push((std::fs::metadata(&path)?.len(), path));
                        }
                    }
                }
            }
            let Some((len, path)) = segments.into_iter().max() else {
                return Err(std::io::ErrorKind::NotFound.into());
            };
            File::options().write(true).open(&path)?.set_len(len - len / 4)
        };
        cut().map_err(|error| format!("no segment of {topic} was cut: {error}"))
    }

    pub fn stop(&mut self) -> Result<(), String> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)
            .map_err(|error| format!("the node cannot be stopped: {error}"))?;
        let asked = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return self.complaints(),
                Ok(Some(status)) => {
                    return Err(format!("the stop was not clean ({status}): {}", self.last_lines()));
                }
                Ok(None) if asked.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
                _ => return Err(format!("the node does not stop: {}", self.last_lines())),
            }
        }
    }

    /// Fails where the node has logged an ERROR, a WARN or a panic since the last look. A cut tail is INFO.
    pub fn complaints(&mut self) -> Result<(), String> {
        let mut text = String::new();
        let read = File::open(self.log_path()).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.log_read))?;
            file.read_to_string(&mut text)
        });
        self.log_read += read.map_err(|error| format!("the node's log: {error}"))? as u64;
        // A topic whose deletion was committed just before the kill, and carried out no more.
        let is_expected =
            |line: &str| line.contains("WARN passing-") && line.contains("belongs to no known topic");
        let bad = |line: &&str| {
            [" ERROR ", " WARN ", "panicked"].iter().any(|word| line.contains(word)) && !is_expected(line)
        };
        text.lines().find(bad).map_or(Ok(()), |line| Err(format!("the node logged: {line}")))
    }

    fn last_lines(&self) -> String {
        let text = std::fs::read_to_string(self.log_path()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}

/// Below the range from which the system numbers outgoing connections, so that none takes it while the node is dead.
fn free_port() -> Result<u16, String> {
    let from = 12_000 + (std::process::id() % 15_000) as u16;
    let free = (from..from + 3_000).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.ok_or_else(|| "no port is free".to_owned())
}

/// Whether a Metadata request (version 1, no topic) is answered.
fn metadata_answers(port: u16) -> bool {
    use std::io::Write;
    let mut frame = vec![0, 0, 0, 19, 0, 3, 0, 1, 0, 0, 0, 7, 0, 5];
    frame.extend(b"ready");
    frame.extend([0, 0, 0, 0]);
    let ask = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_millis(500)))?;
        stream.write_all(&frame)?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer)?;
        // The number of brokers follows size and correlation id.
        std::io::Result::Ok(answer[11] > 0)
    };
    ask().unwrap_or(false)
}
