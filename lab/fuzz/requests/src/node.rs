//! The node under attack: a process that may hold so much memory and no more, and what it held at most.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// How the limit is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Limit {
    /// A memory cgroup of its own: the kernel ends what holds more.
    Group(PathBuf),
    /// Where no group can be made: the address space, which counts what was set aside and never touched too.
    AddressSpace,
}

#[derive(Debug)]
pub struct Node {
    child: Child,
    pub port: u16,
    directory: PathBuf,
    limit: Limit,
}

impl Node {
    /// # Errors
    /// It does not start, or does not serve.
    pub fn start(binary: &Path, directory: &Path, memory_bytes: u64) -> Result<Self, String> {
        let told = |what: &str, error: std::io::Error| format!("{what}: {error}");
        std::fs::create_dir_all(directory).map_err(|error| told("the node's directory", error))?;
        let binary = binary.canonicalize().map_err(|error| told("the binary is not built", error))?;
        let port = free_port()?;
        let limit = limit(memory_bytes);
        let (enter, environment) = match &limit {
            Limit::Group(path) => (format!("echo $$ > {}/cgroup.procs", path.display()), None),
            Limit::AddressSpace => {
                (format!("ulimit -v {}", memory_bytes / 1024), Some(("MALLOC_ARENA_MAX", "4")))
            }
        };
        let log = File::create(directory.join("node.log")).map_err(|error| told("the node's log", error))?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{enter} && exec \"$0\" \"$@\"")).arg(&binary).arg("server");
        let data = directory.join("data");
        for setting in [
            format!("listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0"),
            format!("log.dirs={}", data.display()),
            "log.dir.min.free.bytes=0".to_owned(),
            "log.journal.bytes=67108864".to_owned(),
        ] {
            command.args(["--override", &setting]);
        }
        command.envs(environment).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().map_err(|error| told("the node does not start", error))?;
        let mut node = Self { child, port, directory: directory.to_owned(), limit };
        let started = Instant::now();
        while TcpStream::connect(node.address()).is_err() {
            if let Some(status) = node.ended() {
                return Err(format!("the node ended at its start ({status}): {}", node.last_lines()));
            }
            if started.elapsed() > PATIENCE {
                return Err(format!("the node does not serve: {}", node.last_lines()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(node)
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// How the process ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The most that was resident so far.
    pub fn peak_bytes(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// What is resident now.
    pub fn resident_bytes(&self) -> u64 {
        self.status("VmRSS:")
    }

    fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) * 1024
    }

    pub fn limited_by(&self) -> &'static str {
        match self.limit {
            Limit::Group(_) => "cgroup",
            Limit::AddressSpace => "address space",
        }
    }

    pub fn last_lines(&self) -> String {
        let text = std::fs::read_to_string(self.directory.join("node.log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(8).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Whether it has logged a bug: a panic, or a broken invariant.
    pub fn complaint(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.directory.join("node.log")).unwrap_or_default();
        let is_bug = |line: &&str| {
            ["panicked", "corruption found", "invariant"].iter().any(|word| line.contains(word))
        };
        text.lines().find(is_bug).map(str::to_owned)
    }

    /// SIGTERM, and whether the stop was clean.
    ///
    /// # Errors
    /// It was not, or did not come.
    pub fn stop(&mut self) -> Result<(), String> {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let asked = Instant::now();
        loop {
            match self.ended() {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    return Err(format!("the stop was not clean ({status}): {}", self.last_lines()));
                }
                None if asked.elapsed() > PATIENCE => return Err("the node does not stop".to_owned()),
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
        if let Limit::Group(path) = &self.limit {
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

/// Below the range from which the system numbers outgoing connections.
fn free_port() -> Result<u16, String> {
    let from = 12_000 + (std::process::id() % 15_000) as u16;
    let free = (from..from + 3_000).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.ok_or_else(|| "no port is free".to_owned())
}
