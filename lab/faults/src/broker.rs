//! A node in a process of its own, on loopback ports that stay the same over its lives.

use crate::kafka::Connection;
use crate::{Trouble, trouble};
use barnabas_wire::messages::MetadataRequest;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const START_PATIENCE: Duration = Duration::from_secs(60);
const STOP_PATIENCE: Duration = Duration::from_secs(60);

/// How a node is set up.
#[derive(Debug, Clone)]
pub struct Setup {
    pub binary: PathBuf,
    /// Where its log and properties go: not on the file system that fails.
    pub place: PathBuf,
    pub log_dirs: Vec<PathBuf>,
    pub overrides: Vec<(String, String)>,
    /// The node's user, where that is not the rig's.
    pub user: Option<u32>,
}

/// A node and what is known of its lives.
#[derive(Debug)]
pub struct Broker {
    setup: Setup,
    pub port: u16,
    controller_port: u16,
    child: Option<Child>,
    /// How much of the log was there when this life began.
    log_at: u64,
}

impl Broker {
    pub fn new(setup: Setup) -> Result<Self, Trouble> {
        std::fs::create_dir_all(&setup.place)?;
        let broker =
            Self { setup, port: free_port()?, controller_port: free_port()?, child: None, log_at: 0 };
        broker.write_properties()?;
        Ok(broker)
    }

    fn properties_path(&self) -> PathBuf {
        self.setup.place.join("server.properties")
    }

    pub fn log_path(&self) -> PathBuf {
        self.setup.place.join("server.log")
    }

    fn write_properties(&self) -> Result<(), Trouble> {
        let (port, controller) = (self.port, self.controller_port);
        let dirs: Vec<_> = self.setup.log_dirs.iter().map(|dir| dir.display().to_string()).collect();
        let mut text = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
             controller.listener.names=CONTROLLER\ninter.broker.listener.name=PLAINTEXT\n\
             offsets.topic.replication.factor=1\noffsets.topic.num.partitions=4\nlog.dirs={}\n",
            dirs.join(",")
        );
        for (key, value) in &self.setup.overrides {
            text.push_str(&format!("{key}={value}\n"));
        }
        Ok(std::fs::write(self.properties_path(), text)?)
    }

    /// Makes the empty directories a node's.
    pub fn format(&self) -> Result<(), Trouble> {
        let cluster = Command::new(&self.setup.binary).args(["storage", "random-uuid"]).output()?;
        let cluster = String::from_utf8_lossy(&cluster.stdout).trim().to_owned();
        let made = Command::new(&self.setup.binary)
            .args(["storage", "format", "-t", &cluster, "-c"])
            .arg(self.properties_path())
            .output()?;
        if made.status.success() {
            return Ok(());
        }
        trouble(format!("storage format: {}", String::from_utf8_lossy(&made.stderr)))
    }

    /// Starts the process and waits until Metadata is answered. Returns how long that took.
    ///
    /// # Errors
    /// It ended instead, or did not answer in time; with its last lines.
    pub fn start(&mut self) -> Result<Duration, Trouble> {
        let log = File::options().create(true).append(true).open(self.log_path())?;
        self.log_at = log.metadata()?.len();
        // The kernel ends the node when the rig is gone, whatever ended that.
        let mut command = Command::new("setpriv");
        if let Some(user) = self.setup.user {
            command.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()]);
        }
        let child = command
            .args(["--pdeathsig", "KILL"])
            .arg(&self.setup.binary)
            .arg("server")
            .arg(self.properties_path())
            .current_dir(&self.setup.place)
            .env("RUST_BACKTRACE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        self.child = Some(child);
        let begun = Instant::now();
        while !self.answers() {
            if let Some(status) = self.has_ended()? {
                return trouble(format!("the node ended at its start with {status}: {}", self.last_lines()));
            }
            if begun.elapsed() > START_PATIENCE {
                self.kill()?;
                return trouble(format!("the node was not ready in time: {}", self.last_lines()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(begun.elapsed())
    }

    fn answers(&self) -> bool {
        let request = MetadataRequest { topics: Some(Vec::new()), ..Default::default() };
        let asked = Connection::open(self.port).and_then(|mut open| open.call(&request, 4));
        asked.is_ok_and(|answer| !answer.brokers.is_empty())
    }

    /// `Some`: the process has ended by itself.
    pub fn has_ended(&mut self) -> Result<Option<ExitStatus>, Trouble> {
        match &mut self.child {
            Some(child) => Ok(child.try_wait()?),
            None => Ok(None),
        }
    }

    /// Stops every thread where it is. `in_writes`: one that is in the middle of a write or a sync stays there; else it
    /// ends that first.
    ///
    /// # Errors
    /// It does not stop.
    pub fn pause(&self, in_writes: bool) -> Result<(), Trouble> {
        let Some(child) = &self.child else { return trouble("the node does not run") };
        signal(child.id(), "STOP")?;
        let begun = Instant::now();
        while !is_stopped(child.id(), in_writes)? {
            if begun.elapsed() > STOP_PATIENCE {
                return trouble("the node does not pause");
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// # Errors
    /// The system refuses.
    pub fn resume(&self) -> Result<(), Trouble> {
        self.child.as_ref().map_or(Ok(()), |child| signal(child.id(), "CONT"))
    }

    /// kill −9.
    pub fn kill(&mut self) -> Result<(), Trouble> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Asks the node to end and waits for it.
    pub fn stop(&mut self) -> Result<ExitStatus, Trouble> {
        let Some(mut child) = self.child.take() else { return trouble("the node does not run") };
        signal(child.id(), "TERM")?;
        let asked = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if asked.elapsed() > STOP_PATIENCE {
                child.kill()?;
                child.wait()?;
                return trouble(format!("the node did not stop: {}", self.last_lines()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// What this life has logged.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(self.log_path()).unwrap_or_default();
        let from = usize::try_from(self.log_at).unwrap_or(0).min(bytes.len());
        String::from_utf8_lossy(&bytes[from..]).into_owned()
    }

    pub fn last_lines(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(6)..].join(" | ")
    }

    pub fn setup(&self) -> &Setup {
        &self.setup
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            eprintln!("the node was not ended: {error}");
        }
    }
}

fn signal(process: u32, name: &str) -> Result<(), Trouble> {
    let sent = Command::new("kill").args([format!("-{name}"), process.to_string()]).status()?;
    if sent.success() { Ok(()) } else { trouble(format!("the node does not take SIG{name}")) }
}

/// Whether all threads are stopped, or, `in_writes`, wait for a device.
fn is_stopped(process: u32, in_writes: bool) -> Result<bool, Trouble> {
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread may end meanwhile.
        let Ok(stat) = std::fs::read_to_string(thread?.path().join("stat")) else { continue };
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        match state {
            Some('T' | 'Z' | 'X') => {}
            Some('D') if in_writes => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Below the range from which the system numbers outgoing connections: nobody takes it between here and the node's own
/// bind.
///
/// # Errors
/// There is none.
pub fn free_port() -> Result<u16, Trouble> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..10_000 {
        let number = std::process::id().wrapping_mul(131).wrapping_add(NEXT.fetch_add(7, Ordering::Relaxed));
        let port = 12_000 + (number % 20_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    trouble("no port is free")
}

/// The `barnabas` program: what was named, or what cargo built for release.
pub fn binary(named: Option<&str>) -> Result<PathBuf, Trouble> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = named.map_or_else(|| root.join("target/release/barnabas"), PathBuf::from);
    match path.canonicalize() {
        Ok(path) => Ok(path),
        Err(error) => {
            trouble(format!("{}: {error}; build it with `cargo build --release -p barnabas`", path.display()))
        }
    }
}
