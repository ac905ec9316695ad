//! The process of one node, over all its runs.

use crate::{Trouble, trouble};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Between two looks at a node that starts or ends.
const POLL: Duration = Duration::from_millis(1);
const PAUSE_TIMEOUT: Duration = Duration::from_secs(60);

/// A node's process and its log. At most one process runs; the next appends to the same log. Ends with its owner.
#[derive(Debug)]
pub struct NodeProcess {
    child: Option<Child>,
    log: PathBuf,
    /// How long the log was when this run began.
    log_at: u64,
    started: Instant,
}

impl NodeProcess {
    /// Not run yet. `log`: where it will write.
    pub fn new(log: impl Into<PathBuf>) -> Self {
        Self { child: None, log: log.into(), log_at: 0, started: Instant::now() }
    }

    /// Runs `command`, whose standard error (all that Barnabas logs) goes to the log.
    ///
    /// # Errors
    /// It cannot be run, or the process before it still runs.
    pub fn run(&mut self, command: &mut Command) -> Result<(), Trouble> {
        if self.child.is_some() && self.has_ended()?.is_none() {
            return trouble("the node runs already");
        }
        let log = File::options().create(true).append(true).open(&self.log)?;
        self.log_at = log.metadata()?.len();
        self.started = Instant::now();
        self.child = Some(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?);
        Ok(())
    }

    /// Waits until `is_ready`; returns the time since the start of the process.
    ///
    /// # Errors
    /// It ended instead, or was not ready in time (it is killed then); with its last lines.
    pub fn await_ready(
        &mut self,
        timeout: Duration,
        mut is_ready: impl FnMut() -> bool,
    ) -> Result<Duration, Trouble> {
        while !is_ready() {
            if let Some(status) = self.has_ended()? {
                return trouble(format!("the node ended at its start with {status}: {}", self.last_lines()));
            }
            if self.started.elapsed() > timeout {
                self.kill()?;
                return trouble(format!("the node was not ready within {timeout:?}: {}", self.last_lines()));
            }
            std::thread::sleep(POLL);
        }
        Ok(self.started.elapsed())
    }

    /// When the process was started last.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// `None`: no process was started, or its end was seen by [`Self::kill`], [`Self::stop`] or [`Self::wait`].
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    fn running(&self) -> Result<&Child, Trouble> {
        self.child.as_ref().ok_or_else(|| Trouble("the node does not run".to_owned()))
    }

    /// `Some`: the process has ended by itself.
    ///
    /// # Errors
    /// The system refuses.
    pub fn has_ended(&mut self) -> Result<Option<ExitStatus>, Trouble> {
        match &mut self.child {
            Some(child) => Ok(child.try_wait()?),
            None => Ok(None),
        }
    }

    /// Waits until the process ends by itself.
    ///
    /// # Errors
    /// It does not run.
    pub fn wait(&mut self) -> Result<ExitStatus, Trouble> {
        let status = self.child.as_mut().map(Child::wait).transpose()?;
        self.child = None;
        status.ok_or_else(|| Trouble("the node does not run".to_owned()))
    }

    /// `kill -9`, if it runs.
    ///
    /// # Errors
    /// The system refuses.
    pub fn kill(&mut self) -> Result<(), Trouble> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// # Errors
    /// It does not run, or the system refuses.
    pub fn signal(&self, signal: Signal) -> Result<(), Trouble> {
        kill_process(Pid::from_child(self.running()?), signal)
            .map_err(|error| Trouble(format!("the node does not take {signal:?}: {error}")))
    }

    /// SIGTERM, and the wait for its end.
    ///
    /// # Errors
    /// It does not run, or did not end in time (it is killed then); with its last lines.
    pub fn stop(&mut self, timeout: Duration) -> Result<ExitStatus, Trouble> {
        self.stop_by(Signal::TERM, timeout)
    }

    /// [`Self::stop`] by another signal.
    ///
    /// # Errors
    /// As for [`Self::stop`].
    pub fn stop_by(&mut self, signal: Signal, timeout: Duration) -> Result<ExitStatus, Trouble> {
        self.signal(signal)?;
        let asked = Instant::now();
        loop {
            if let Some(status) = self.has_ended()? {
                self.child = None;
                return Ok(status);
            }
            if asked.elapsed() > timeout {
                self.kill()?;
                return trouble(format!("the node did not stop within {timeout:?}: {}", self.last_lines()));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Stops every thread where it is. `in_writes`: a thread that is in a write or a sync stays in it; else it ends
    /// that first.
    ///
    /// # Errors
    /// It does not run, or does not stop.
    pub fn pause(&self, in_writes: bool) -> Result<(), Trouble> {
        let process = self.running()?.id();
        self.signal(Signal::STOP)?;
        let begun = Instant::now();
        while !is_stopped(process, in_writes)? {
            if begun.elapsed() > PAUSE_TIMEOUT {
                return trouble("the node does not pause");
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// # Errors
    /// As for [`Self::signal`].
    pub fn resume(&self) -> Result<(), Trouble> {
        self.signal(Signal::CONT)
    }

    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// What this run has logged.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        let from = usize::try_from(self.log_at).unwrap_or(0).min(bytes.len());
        String::from_utf8_lossy(&bytes[from..]).into_owned()
    }

    /// What all runs have logged.
    pub fn whole_log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The end of this run's log, in one line.
    pub fn last_lines(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(6)..].join(" | ")
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            eprintln!("the node was not ended: {error}");
        }
    }
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

#[cfg(test)]
mod tests;
