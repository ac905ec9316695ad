//! The bounded queue of commands to one worker, and the reports of storage threads beside it.

use super::{Command, Report};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, mpsc};

/// How many commands wait for one worker before their senders do.
const COMMANDS_MAX: usize = 1024;

/// Reports that a worker has not taken yet. Bounded by what the worker itself has handed in: each report answers that.
#[derive(Debug, Default)]
pub struct Reports {
    list: Mutex<Vec<Report>>,
    arrived: Notify,
}

/// Where commands for one worker go. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Mailbox {
    sender: mpsc::Sender<Command>,
    reports: Arc<Reports>,
}

/// The worker's end.
#[derive(Debug)]
pub struct Inbox {
    pub commands: mpsc::Receiver<Command>,
    pub reports: Arc<Reports>,
}

impl Reports {
    /// Waits until there are reports.
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// What was reported since this was last asked, in its order. `into` is empty and is filled.
    pub fn take(&self, into: &mut Vec<Report>) {
        std::mem::swap(&mut *self.list.lock().unwrap_or_else(PoisonError::into_inner), into);
    }
}

impl Mailbox {
    pub fn new() -> (Self, Inbox) {
        let (sender, commands) = mpsc::channel(COMMANDS_MAX);
        let reports = Arc::<Reports>::default();
        (Self { sender, reports: reports.clone() }, Inbox { commands, reports })
    }

    /// Tells the worker; never blocks.
    pub fn report(&self, report: Report) {
        let mut list = self.reports.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.push(report);
        let is_first = list.len() == 1;
        drop(list);
        if is_first {
            self.reports.arrived.notify_one();
        }
    }

    /// Waits while the queue is full. A worker that has ended takes nothing: the command, and with it its `reply`, is
    /// dropped, which its sender notices.
    pub async fn send(&self, command: Command) {
        match self.sender.try_send(command) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(command)) => {
                let _ = self.sender.send(command).await;
            }
        }
    }

    /// Without waiting; gives the command back where the queue is full. A worker that has ended takes nothing, as in
    /// [`Mailbox::send`].
    pub fn offer(&self, command: Command) -> Result<(), Box<Command>> {
        match self.sender.try_send(command) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
            Err(mpsc::error::TrySendError::Full(command)) => Err(Box::new(command)),
        }
    }

    /// Commands that wait.
    pub fn waiting(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }

    /// Without waiting; `false` where the queue is full.
    pub fn try_send(&self, command: Command) -> bool {
        self.sender.try_send(command).is_ok()
    }

    /// As [`Mailbox::send`], for a thread without a runtime.
    pub fn send_blocking(&self, command: Command) {
        let _ = self.sender.blocking_send(command);
    }
}
