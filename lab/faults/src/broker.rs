//! The node of these rigs: its settings in a file, on loopback ports that stay the same over its runs.

use crate::{Trouble, trouble};
use barnabas_harness::{NodeProcess, die_with_the_rig, free_port, metadata_answers};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Duration;

const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

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

/// A node and its process.
#[derive(Debug)]
pub struct Broker {
    setup: Setup,
    pub port: u16,
    controller_port: u16,
    pub process: NodeProcess,
}

impl Broker {
    pub fn new(setup: Setup) -> Result<Self, Trouble> {
        std::fs::create_dir_all(&setup.place)?;
        let process = NodeProcess::new(setup.place.join("server.log"));
        let broker = Self { setup, port: free_port(), controller_port: free_port(), process };
        broker.write_properties()?;
        Ok(broker)
    }

    fn properties_path(&self) -> PathBuf {
        self.setup.place.join("server.properties")
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
        let mut command = die_with_the_rig(&self.setup.binary, self.setup.user);
        command
            .arg("server")
            .arg(self.properties_path())
            .current_dir(&self.setup.place)
            .env("RUST_BACKTRACE", "1");
        self.process.run(&mut command)?;
        let port = self.port;
        self.process.await_ready(START_TIMEOUT, || metadata_answers(port))
    }

    /// Asks the node to end and waits for it.
    ///
    /// # Errors
    /// It does not run, or does not end in time.
    pub fn stop(&mut self) -> Result<ExitStatus, Trouble> {
        self.process.stop(STOP_TIMEOUT)
    }

    pub fn setup(&self) -> &Setup {
        &self.setup
    }
}
