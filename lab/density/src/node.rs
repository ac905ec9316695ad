//! The broker under test: a process of its own, at stock limits, and what the system says of it.
//!
//! A watcher reads `/proc` twenty times a second and keeps the highest figures since it was last asked.

use barnabas_harness::{NodeProcess, Usage, free_port, limited, server};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub type Failure = Box<dyn Error>;

/// The descriptors of a process on a machine that is not tuned: the bar.
pub const DESCRIPTORS: u64 = 20_000;
/// `vm.max_map_count` as Linux comes.
pub const MAPS: u64 = 65_530;
const WATCH_EVERY: Duration = Duration::from_millis(50);
const STOP_TIMEOUT: Duration = Duration::from_secs(120);

/// The highest figures of a process over a time.
#[derive(Debug, Default)]
struct Peaks {
    pid: AtomicU32,
    ended: AtomicBool,
    highest: Mutex<Usage>,
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
    process: NodeProcess,
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
        let process = NodeProcess::new(dir.join("node.log"));
        let (port, controller_port) = (free_port(), free_port());
        let mut node =
            Self { binary: binary.to_owned(), dir, port, controller_port, directories, process, peaks };
        node.run()?;
        Ok(node)
    }

    /// Runs the program on the data that is there. Does not wait until it serves.
    ///
    /// # Errors
    /// The program cannot be run.
    pub fn run(&mut self) -> Result<(), Failure> {
        let (port, controller) = (self.port, self.controller_port);
        let data: Vec<String> = self.data().iter().map(|dir| dir.display().to_string()).collect();
        let settings = [
            format!("listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}"),
            format!("log.dirs={}", data.join(",")),
            "offsets.topic.num.partitions=4".to_owned(),
        ];
        let mut command = limited(&self.binary, Some(&format!("ulimit -n {DESCRIPTORS}")));
        server(&mut command, &settings);
        self.process.run(&mut command)?;
        self.peaks.pid.store(self.process.pid().unwrap_or(0), Ordering::Relaxed);
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

    pub fn usage(&self) -> Usage {
        self.process.pid().map_or(Usage::default(), Usage::of)
    }

    /// The highest figures since the last call.
    pub fn take_peaks(&self) -> Usage {
        let mut highest = self.peaks.highest.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *highest)
    }

    /// Stops it cleanly. Returns how long that took.
    ///
    /// # Errors
    /// It did not end, or not well.
    pub fn stop(&mut self) -> Result<Duration, Failure> {
        let begun = Instant::now();
        let status = self.process.stop(STOP_TIMEOUT)?;
        if status.success() {
            return Ok(begun.elapsed());
        }
        Err(format!("the node ended with {status}: {}", self.process.last_lines()).into())
    }

    /// `kill -9`
    ///
    /// # Errors
    /// The system refuses.
    pub fn kill(&mut self) -> Result<(), Failure> {
        Ok(self.process.kill()?)
    }

    /// Lines at level ERROR or WARN of all runs: none is expected.
    pub fn complaints(&self) -> Vec<String> {
        let complains = |line: &&str| line.contains(" ERROR ") || line.contains(" WARN ");
        self.process.whole_log().lines().filter(complains).take(3).map(str::to_owned).collect()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.peaks.ended.store(true, Ordering::Relaxed);
        // The node writes into the directory until it has ended. What cannot be removed stays.
        let _ = self.process.kill();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn watch(peaks: &Peaks) {
    while !peaks.ended.load(Ordering::Relaxed) {
        let now = Usage::of(peaks.pid.load(Ordering::Relaxed));
        {
            let mut highest = peaks.highest.lock().unwrap_or_else(PoisonError::into_inner);
            *highest = highest.highest(now);
        }
        std::thread::sleep(WATCH_EVERY);
    }
}
