//! The signals that stop a node: SIGTERM, SIGINT and SIGHUP, each for a clean stop, as in Kafka.
//!
//! Always true: from the moment that [`Signals::listen`] returns no signal is lost. One that comes while the node still starts stops it
//! once it has started. A handler that is dropped would take signals and forget them: the process's default is not restored.

use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals within so long of each other are one.
const SAME_SIGNAL: Duration = Duration::from_secs(2);

pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Option<Signal>,
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
        })
    }

    /// Waits for one that has not been waited for yet.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = async { match &mut self.hangup {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            } } => {}
        }
    }

    /// Waits for one that comes a good while after the first: the sender does not want to wait. One that comes at once is the same
    /// wish told twice, by a terminal to a whole group or by a supervisor that goes on.
    pub async fn insisted(&mut self) {
        let asked = Instant::now();
        loop {
            self.next().await;
            if asked.elapsed() >= SAME_SIGNAL {
                return;
            }
        }
    }
}

/// SIGHUP, unless the process was started to outlive its terminal (`nohup`): then the signal stays ignored, as in the JVM.
fn hangup() -> std::io::Result<Option<Signal>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // Signal n is bit n - 1; SIGHUP is 1.
    if mask & 1 != 0 { Ok(None) } else { signal(SignalKind::hangup()).map(Some) }
}
