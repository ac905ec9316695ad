//! The node under attack: a process that may hold so much memory and no more, and what it held at most.

use barnabas_harness::{
    NodeProcess, free_port, limited, metadata_answers, peak_bytes, resident_bytes, server,
};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

/// How the limit is kept.
#[derive(Debug)]
enum Limit {
    /// A memory cgroup of its own: the kernel ends what holds more.
    Group(PathBuf),
    /// Where no group can be made: the address space, which counts what was set aside and never touched too.
    AddressSpace,
}

#[derive(Debug)]
pub struct Node {
    process: NodeProcess,
    pub port: u16,
    // Removed once the process has ended: fields are dropped in this order.
    limit: Limit,
}

impl Node {
    /// # Errors
    /// It does not start, or does not serve.
    pub fn start(binary: &Path, directory: &Path, memory_bytes: u64) -> Result<Self, String> {
        let told = |what: &str, error: std::io::Error| format!("{what}: {error}");
        std::fs::create_dir_all(directory).map_err(|error| told("the node's directory", error))?;
        let binary = binary.canonicalize().map_err(|error| told("the binary is not built", error))?;
        let port = free_port();
        let limit = limit(memory_bytes);
        let (enter, environment) = match &limit {
            Limit::Group(path) => (format!("echo $$ > {}/cgroup.procs", path.display()), None),
            Limit::AddressSpace => {
                (format!("ulimit -v {}", memory_bytes / 1024), Some(("MALLOC_ARENA_MAX", "4")))
            }
        };
        let mut command = limited(&binary, Some(&enter));
        let settings = [
            format!("listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0"),
            format!("log.dirs={}", directory.join("data").display()),
            "log.dir.min.free.bytes=0".to_owned(),
            "log.journal.bytes=67108864".to_owned(),
        ];
        server(&mut command, &settings);
        command.envs(environment);
        let mut node = Self { process: NodeProcess::new(directory.join("node.log")), port, limit };
        node.process.run(&mut command)?;
        node.process.await_ready(TIMEOUT, || metadata_answers(port))?;
        Ok(node)
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// How the process ended, if it has.
    ///
    /// # Errors
    /// The system refuses.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, String> {
        Ok(self.process.has_ended()?)
    }

    /// The most that was resident so far.
    pub fn peak_bytes(&self) -> u64 {
        self.process.pid().map_or(0, peak_bytes)
    }

    /// What is resident now.
    pub fn resident_bytes(&self) -> u64 {
        self.process.pid().map_or(0, resident_bytes)
    }

    pub fn limited_by(&self) -> &'static str {
        match self.limit {
            Limit::Group(_) => "cgroup",
            Limit::AddressSpace => "address space",
        }
    }

    pub fn last_lines(&self) -> String {
        self.process.last_lines()
    }

    /// Whether it has logged a bug: a panic, or a broken invariant.
    pub fn complaint(&self) -> Option<String> {
        let is_bug = |line: &&str| {
            ["panicked", "corruption found", "invariant"].iter().any(|word| line.contains(word))
        };
        self.process.log().lines().find(is_bug).map(str::to_owned)
    }

    /// SIGTERM, and whether the stop was clean.
    ///
    /// # Errors
    /// It was not, or did not come.
    pub fn stop(&mut self) -> Result<(), String> {
        let status = self.process.stop(TIMEOUT)?;
        if status.success() {
            return Ok(());
        }
        Err(format!("the stop was not clean ({status}): {}", self.last_lines()))
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        if let Self::Group(path) = self {
            // What cannot be removed stays: an empty group.
            let _ = std::fs::remove_dir(path);
        }
    }
}

/// A group of the first or the second version of cgroups, where this user may make one.
fn limit(bytes: u64) -> Limit {
    let name = format!("barnabas-fuzz-{}", std::process::id());
    for (root, file) in [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]
    {
        let path = Path::new(root).join(&name);
        if std::fs::create_dir(&path).is_err() {
            continue;
        }
        if std::fs::write(path.join(file), bytes.to_string()).is_ok() && path.join("cgroup.procs").exists() {
            return Limit::Group(path);
        }
        let _ = std::fs::remove_dir(&path);
    }
    Limit::AddressSpace
}
