//! The broker under test: a process of its own, at stock limits, and what the system says of it.
//!
//! A watcher reads `/proc` twenty times a second and keeps the highest figures since it was last asked.

use barnabas_faults::broker::free_port;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub type Failure = Box<dyn Error>;

/// What a process has without anybody tuning the machine: the descriptors of the bar.
pub const DESCRIPTORS: u64 = 20_000;
/// `vm.max_map_count` as Linux comes.
pub const MAPS: u64 = 65_530;
const WATCH_EVERY: Duration = Duration::from_millis(50);
/// How long a node may take to end by itself.
const STOP_WITHIN: Duration = Duration::from_secs(120);

/// What the system says of a process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    pub rss_mb: u64,
    pub descriptors: u64,
    pub maps: u64,
}

impl Figures {
    pub fn of(pid: u32) -> Self {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = resident.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        Self {
            rss_mb: kib.unwrap_or(0) / 1024,
            descriptors: descriptors as u64,
            maps: maps.lines().count() as u64,
        }
    }
}

/// The highest figures of a process over a time.
#[derive(Debug, Default)]
struct Peaks {
    pid: AtomicU64,
    ended: AtomicBool,
    highest: Mutex<Figures>,
}

/// One node and its data.
#[derive(Debug)]
pub struct Node {
    binary: PathBuf,
    dir: PathBuf,
    port: u16,
    controller_port: u16,
    /// Log directories.
    directories: usize,
    process: Option<Child>,
    peaks: Arc<Peaks>,
}

impl Node {
    /// Starts a new node on an empty directory under `root`.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(binary: &Path, root: &Path, name: &str, directories: usize) -> Result<Self, Failure> {
        let dir = root.join(name);
        std::fs::create_dir_all(&dir)?;
        let peaks = Arc::new(Peaks::default());
        let watched = peaks.clone();
        std::thread::spawn(move || watch(&watched));
        let mut node = Self {
            binary: binary.to_owned(),
            dir,
            port: free_port()?,
            controller_port: free_port()?,
            directories,
            process: None,
            peaks,
        };
        node.run()?;
        Ok(node)
    }

    /// Runs the program on the data that is there. Does not wait until it serves.
    ///
    /// # Errors
    /// The program cannot be run.
    pub fn run(&mut self) -> Result<(), Failure> {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.dir.join("node.log"))?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("ulimit -n {DESCRIPTORS}; exec \"$0\" \"$@\"")).arg(&self.binary);
        command.arg("server");
        let (port, controller) = (self.port, self.controller_port);
        let data: Vec<String> = self.data().iter().map(|dir| dir.display().to_string()).collect();
        let own = [
            format!("listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}"),
            format!("log.dirs={}", data.join(",")),
            "offsets.topic.num.partitions=4".to_owned(),
        ];
        for word in &own {
            command.arg("--override").arg(word);
        }
        let process = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
        self.peaks.pid.store(u64::from(process.id()), Ordering::Relaxed);
        self.process = Some(process);
        Ok(())
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn data(&self) -> Vec<PathBuf> {
        (0..self.directories).map(|number| self.dir.join(format!("data-{number}"))).collect()
    }

    /// Partition directories on disk.
    pub fn directories(&self) -> usize {
        let data = self.data();
        let listed = data.iter().flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten());
        listed.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).count()
    }

    pub fn figures(&self) -> Figures {
        self.process.as_ref().map_or(Figures::default(), |process| Figures::of(process.id()))
    }

    /// The highest figures since this was last asked.
    pub fn take_peaks(&self) -> Figures {
        let mut highest = self.peaks.highest.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *highest)
    }

    /// Ends it as an operator would. Returns how long that took.
    ///
    /// # Errors
    /// It did not end, or not well.
    pub fn stop(&mut self) -> Result<Duration, Failure> {
        let Some(mut process) = self.process.take() else { return Ok(Duration::ZERO) };
        let begun = Instant::now();
        let pid = rustix::process::Pid::from_child(&process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        while begun.elapsed() < STOP_WITHIN {
            if let Some(status) = process.try_wait()? {
                if status.success() {
                    return Ok(begun.elapsed());
                }
                return Err(format!("the node ended with {status}: {}", self.last_words()).into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        process.kill()?;
        process.wait()?;
        Err(format!("the node did not stop within {} s", STOP_WITHIN.as_secs()).into())
    }

    /// `kill -9`
    ///
    /// # Errors
    /// It was not there any more.
    pub fn kill(&mut self) -> Result<(), Failure> {
        if let Some(mut process) = self.process.take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    /// The last lines that it said.
    pub fn last_words(&self) -> String {
        let text = std::fs::read_to_string(self.dir.join("node.log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }

    /// Lines at level ERROR or WARN: none is expected.
    pub fn complaints(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.dir.join("node.log")).unwrap_or_default();
        let complains = |line: &&str| line.contains(" ERROR ") || line.contains(" WARN ");
        text.lines().filter(complains).take(3).map(str::to_owned).collect()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.peaks.ended.store(true, Ordering::Relaxed);
        // What cannot be ended or removed stays; there is nobody left to tell.
        let _ = self.kill();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn watch(peaks: &Peaks) {
    while !peaks.ended.load(Ordering::Relaxed) {
        let pid = peaks.pid.load(Ordering::Relaxed);
        let now = Figures::of(pid as u32);
        {
            let mut highest = peaks.highest.lock().unwrap_or_else(PoisonError::into_inner);
            highest.rss_mb = highest.rss_mb.max(now.rss_mb);
            highest.descriptors = highest.descriptors.max(now.descriptors);
            highest.maps = highest.maps.max(now.maps);
        }
        std::thread::sleep(WATCH_EVERY);
    }
}
