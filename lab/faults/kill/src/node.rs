//! The node under test: its settings, and what in its log is a failure.

use barnabas_harness::{NodeProcess, free_port, metadata_answers, server};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(30);

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
    process: NodeProcess,
}

impl Node {
    /// `overrides`: further settings, as `KEY=VALUE`.
    pub fn new(binary: &Path, directory: &Path, overrides: Vec<String>) -> Result<Self, String> {
        std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let binary =
            binary.canonicalize().map_err(|error| format!("{} is not built: {error}", binary.display()))?;
        let process = NodeProcess::new(directory.join("node.log"));
        Ok(Self { binary, directory: directory.to_owned(), overrides, port: free_port(), process })
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// When the process was last executed.
    pub fn started(&self) -> Instant {
        self.process.started()
    }

    /// Executes the node; returns how long it took until it answered Metadata.
    pub fn start(&mut self) -> Result<Duration, String> {
        let own = [
            format!("listeners=PLAINTEXT://127.0.0.1:{},CONTROLLER://127.0.0.1:0", self.port),
            format!("log.dirs={}", self.directory.join("data").display()),
        ];
        let further = OVERRIDES.iter().copied().chain(self.overrides.iter().map(String::as_str));
        let mut command = Command::new(&self.binary);
        server(&mut command, own.iter().map(String::as_str).chain(further));
        self.process.run(&mut command)?;
        let port = self.port;
        Ok(self.process.await_ready(TIMEOUT, || metadata_answers(port))?)
    }

    /// −9; then its log is read.
    pub fn kill(&mut self) -> Result<(), String> {
        if let Some(status) = self.process.has_ended()? {
            return Err(format!("the node ended by itself ({status}): {}", self.process.last_lines()));
        }
        self.process.kill()?;
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
        let status = self.process.stop(TIMEOUT)?;
        if status.success() {
            return self.complaints();
        }
        Err(format!("the stop was not clean ({status}): {}", self.process.last_lines()))
    }

    /// Fails where this run of the node has logged an ERROR, a WARN or a panic. A cut tail is INFO.
    fn complaints(&self) -> Result<(), String> {
        // A topic whose deletion was committed just before the kill, and carried out no more.
        let is_expected =
            |line: &str| line.contains("WARN passing-") && line.contains("belongs to no known topic");
        let bad = |line: &&str| {
            [" ERROR ", " WARN ", "panicked"].iter().any(|word| line.contains(word)) && !is_expected(line)
        };
        let log = self.process.log();
        log.lines().find(bad).map_or(Ok(()), |line| Err(format!("the node logged: {line}")))
    }
}
