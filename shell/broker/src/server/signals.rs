//! Signals. SIGTERM, SIGINT and SIGHUP stop a node cleanly, as in Kafka. SIGQUIT writes a line about the node's state,
//! SIGUSR1 and SIGUSR2 write that they change nothing; the node goes on after each of the three.
//!
//! Always true:
//! 1. from the moment that [`Signals::listen`] returns no signal is lost. One that comes while the node reads its
//!    directories stops it after that
//! 2. no signal that a process can take ends the node without a line
//! 3. a signal that comes while the node stops changes nothing: others would take an abrupt end for a crash

pub mod supervisor;

use crate::node::Node;
use std::fmt::Write;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Option<Signal>,
    quit: Signal,
    user_1: Signal,
    user_2: Signal,
    /// Whose state SIGQUIT shows.
    node: Weak<Node>,
}

impl Signals {
    /// Within the runtime that is to wait for them.
    ///
    /// # Errors
    /// The system takes no handler.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: hangup()?,
            quit: signal(SignalKind::quit())?,
            user_1: signal(SignalKind::user_defined1())?,
            user_2: signal(SignalKind::user_defined2())?,
            node: Weak::new(),
        })
    }

    pub fn describe(&mut self, node: &Arc<Node>) {
        self.node = Arc::downgrade(node);
    }

    /// Waits for one that stops a node and has not been waited for yet. Returns its name.
    pub async fn next(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return "SIGTERM",
                _ = self.interrupt.recv() => return "SIGINT",
                _ = async { match &mut self.hangup {
                    Some(signal) => signal.recv().await,
                    None => std::future::pending().await,
                } } => return "SIGHUP",
                _ = self.quit.recv() => tracing::info!("SIGQUIT: {}", state(&self.node)),
                _ = self.user_1.recv() => say_unused("SIGUSR1"),
                _ = self.user_2.recv() => say_unused("SIGUSR2"),
            }
        }
    }
}

fn say_unused(name: &str) {
    tracing::info!("{name} has no meaning here, and the node goes on");
}

/// What the JVM's thread dump is for, as far as a line can say it.
fn state(node: &Weak<Node>) -> String {
    let pid = std::process::id();
    let Some(node) = node.upgrade() else {
        return "the node reads its log directories, and goes on".to_owned();
    };
    let doing = match node.shutdown.progress() {
        Some((what, since)) => stopping(what, since),
        None if node.peers.controller.has_image() => "the node goes on".to_owned(),
        None => format!("the node starts: {}", node.peers.controller.standing()),
    };
    let image = node.cluster.image.load();
    let mut line = format!(
        "{doing}. node={} cluster={} broker_epoch={} controller={} brokers={} topics={}",
        node.identity.broker_id,
        node.identity.cluster_id,
        node.identity.broker_epoch(),
        node.peers.controller.leader(),
        image.cluster.broker_count(),
        image.topics.len(),
    );
    for (name, value) in node.workers.meter.snapshot().iter().filter(|(_, value)| *value > 0) {
        let _ = write!(line, " {name}={value}");
    }
    let _ = write!(line, ". The stacks of its threads: gdb -p {pid} -batch -ex 'thread apply all backtrace'");
    line
}

/// What a node that stops waits for.
pub fn stopping(what: &str, since: Duration) -> String {
    format!("the node has been stopping for {} s and waits for {what}", since.as_secs())
}

/// SIGHUP, unless the process was started to outlive its terminal (`nohup`): then the signal stays ignored, as in the
/// JVM.
fn hangup() -> std::io::Result<Option<Signal>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // Signal n is bit n - 1; SIGHUP is 1.
    if mask & 1 != 0 { Ok(None) } else { signal(SignalKind::hangup()).map(Some) }
}
