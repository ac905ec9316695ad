//! The threads that a start begins and a stop ends: workers, committers, journals.
//!
//! Committers and the quorum's thread run before the journals are read: what the journals hold is synced by them. See
//! [`super::start`] for the order, and [`super::stop`] for the way back.

use super::start_room::with_room;
use crate::log_dirs::committer::CommitterParts;
use crate::log_dirs::journal_thread::{JournalParts, LinuxJournal, Prepared, StartError};
use crate::mailbox::Inbox;
use crate::node::Node;
use crate::server::worker;
use crate::upkeep::replay;
use barnabas_replica::OpenError;
use barnabas_storage::journal::{JournalError, Recovered};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::Failure;

/// A node's threads.
pub struct Threads {
    pub links: JoinHandle<()>,
    pub workers: Vec<WorkerThread>,
    pub committers: Vec<JoinHandle<()>>,
    pub journals: Vec<JoinHandle<()>>,
    pub quorum: JoinHandle<()>,
    pub housekeeping: JoinHandle<()>,
    pub mover: JoinHandle<()>,
    pub deletions: JoinHandle<()>,
    pub metrics: JoinHandle<()>,
    pub doctor: Option<JoinHandle<()>>,
}

pub type WorkerThread = JoinHandle<std::io::Result<()>>;

pub fn start_workers(node: &Arc<Node>, inboxes: Vec<Inbox>) -> std::io::Result<Vec<WorkerThread>> {
    let threads = inboxes.into_iter().enumerate().map(|(id, inbox)| {
        let node = node.clone();
        std::thread::Builder::new().name(format!("worker-{id}")).spawn(move || worker::run(id, node, inbox))
    });
    threads.collect()
}

pub fn start_committers(node: &Arc<Node>) -> Result<Vec<JoinHandle<()>>, Failure> {
    let mut threads = Vec::new();
    for (index, directory) in node.log_dirs.directories.iter().enumerate() {
        let told = node.clone();
        let parts = CommitterParts {
            name: format!("committer-{index}"),
            directory: index,
            disk: directory.disk.clone(),
            file_system: directory.file_system.clone(),
            workers: node.workers.mailboxes.clone(),
            meter: node.workers.meter.clone(),
            failed: Box::new(move |error| told.directory_failed(index, &error)),
        };
        threads.push(directory.committer.start(parts)?);
    }
    Ok(threads)
}

/// Replays what the journals hold, and starts their threads. A directory whose journal is damaged is offline; the
/// others serve.
pub fn start_journals(node: &Arc<Node>) -> Vec<JoinHandle<()>> {
    // All of them are read before the first goes on: it may want something written back at once, and where a
    // partition lies is known only then.
    let mut prepared = Vec::new();
    for (index, directory) in node.log_dirs.directories.iter().enumerate() {
        if !directory.holds_partitions || !directory.is_online() {
            continue;
        }
        match prepare_journal(node, index) {
            Ok(journal) => prepared.push((index, journal)),
            Err(error) => node.directory_failed(index, &error),
        }
    }
    let mut threads = Vec::new();
    for (index, journal) in prepared {
        match node.log_dirs.directories[index].journal.start(journal) {
            Ok(thread) => threads.push(thread),
            Err(error) => node.directory_failed(index, &error),
        }
    }
    threads
}

/// See [`replay::settle`]. Runs after the journals are read: syncing them is a separate step, which the start waits
/// for.
pub fn start_settling(node: &Arc<Node>) -> Vec<JoinHandle<()>> {
    let mut threads = Vec::new();
    for (index, directory) in node.log_dirs.directories.iter().enumerate().filter(|(_, dir)| dir.is_online())
    {
        match replay::settle(node, index) {
            Ok(thread) => threads.extend(thread),
            Err(error) => {
                // Logs see to themselves then, and the stop will not be called clean.
                tracing::warn!(%error, "{} could not be synced after the unclean stop", directory.path.display());
            }
        }
    }
    threads
}

fn prepare_journal(node: &Arc<Node>, index: usize) -> Result<Prepared, StartError> {
    let recovered = with_room(node, index, is_full, || replay::replay(node, index));
    let recovered = recovered.map_err(Box::new)?;
    let journal = &node.log_dirs.directories[index].journal;
    match (journal.prepare(journal_parts(node, index, recovered.clone())), recovered) {
        (Err(StartError::NoRoom), Some(mut recovered)) => {
            let replayed =
                with_room(node, index, is_full, || replay::replay_rest(node, index, &mut recovered));
            replayed.map_err(Box::new)?;
            let has_no_room = |error: &StartError| matches!(error, StartError::NoRoom);
            with_room(node, index, has_no_room, || {
                journal.prepare(journal_parts(node, index, Some(recovered.clone())))
            })
        }
        (prepared, _) => prepared,
    }
}

fn is_full(error: &OpenError) -> bool {
    match error {
        OpenError::Storage(error) => error.is_passing(),
        OpenError::Journal(JournalError::Disk(error)) => error.kind.is_shortage(),
        OpenError::Journal(_) => false,
    }
}

fn journal_parts(node: &Arc<Node>, index: usize, recovered: Option<Recovered>) -> JournalParts {
    let directory = &node.log_dirs.directories[index];
    let (asked, told, shut) = (node.clone(), node.clone(), node.clone());
    JournalParts {
        directory: index,
        path: directory.path.clone(),
        id: directory.id,
        disk: directory.disk.clone(),
        files: Box::new(LinuxJournal),
        config: replay::config_of(node, directory),
        recovered,
        opening: u64::from_le_bytes(super::random_bytes()),
        workers: node.workers.mailboxes.clone(),
        meter: node.workers.meter.clone(),
        is_online: Box::new(move || asked.log_dirs.directories[index].is_online()),
        full: Box::new(move |error| shut.log_dirs.directories[index].room.hit(error, shut.clock.monotonic())),
        failed: Box::new(move |error| told.directory_failed(index, &error)),
    }
}
