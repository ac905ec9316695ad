//! One thread for each log directory that makes the bytes in its segments durable: collects what workers hand in, syncs
//! each file once a round, or the file system as a whole where they are many, and tells the workers what is safe.
//!
//! With the journal (journal_thread.rs) this is what frees its files: segments are synced after they were written
//! back, and behind large appends, which go into them at once. With `log.ack.durability=written` it is what makes
//! anything durable.
//!
//! While a round is synced, the next one gathers: that is the group commit. A partition hands in again only after its
//! last ticket came back, so the queue holds at most one entry for each partition with unsynced bytes.
//!
//! Where producers keep several batches in flight, the round waits for the time of one sync before it begins: what is
//! written meanwhile is covered too ([`Covers`]), so that one sync serves several batches. A producer that sends one
//! batch at a time is not held up: its rounds never cover more than was handed in.
//!
//! Always true:
//! 1. a ticket comes back only after every file and directory that it names was synced
//! 2. after one failed sync no further ticket of this directory comes back: the directory is offline for good
//!    (a sync that succeeds after a failed one says nothing, PostgreSQL's fsyncgate)
//!
//! Produce path 4½ of 5. Before: partition_worker.rs, which hands in. After: partition_worker.rs, which answers.

use crate::mailbox::{Mailbox, PartitionKey, Report, Synced};
use barnabas_base::Offset;
use barnabas_metrics::Meter;
use barnabas_metrics::Stamp;
use barnabas_metrics::storage::SyncCells;
use barnabas_storage::{Dirty, Disk, DiskError, DiskFile, FileSystem, SyncTicket};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How many files one thread syncs in a row before another thread helps: the device works on several at once.
const FILES_PER_THREAD: usize = 8;
const THREADS_MAX: usize = 8;
/// From so many files and directories on, the file system is synced as a whole, once: each sync of a file is a flush of
/// the device, which all others wait for.
pub const WHOLE_FROM: usize = 24;

/// The longest that a round waits for more.
const GATHER_MAX: Duration = Duration::from_micros(500);

/// How far a partition's files reach that were handed in: moved by the worker after each write that stays in them, read
/// by the committer before it syncs.
#[derive(Debug, Clone)]
pub struct Covers(Arc<AtomicI64>);

impl Covers {
    pub fn new(end: Offset) -> Self {
        Self(Arc::new(AtomicI64::new(end.get())))
    }

    /// Everything below `end` has been written into the files that were handed in.
    pub fn extend(&self, end: Offset) {
        self.0.store(end.get(), Ordering::Release);
    }

    fn end(&self) -> Offset {
        Offset(self.0.load(Ordering::Acquire))
    }
}

/// One partition's unsynced bytes.
#[derive(Debug)]
pub struct SyncRequest {
    pub worker: usize,
    pub partition: PartitionKey,
    pub dirty: Dirty,
    pub covers: Covers,
    /// Batches that this sync was handed in for.
    pub batches: u32,
}

#[derive(Debug, Default)]
struct Queue {
    requests: Vec<SyncRequest>,
    stopping: bool,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    cells: SyncCells,
}

/// Where workers hand in. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Committer {
    shared: Arc<Shared>,
}

/// What the thread needs beside its queue.
pub struct CommitterParts {
    pub name: String,
    pub directory: usize,
    pub disk: Arc<dyn Disk>,
    pub file_system: Option<Arc<dyn FileSystem>>,
    pub workers: Vec<Mailbox>,
    pub meter: Arc<Meter>,
    /// Called once, with the first failed sync.
    pub failed: Box<dyn FnOnce(DiskError) + Send>,
}

impl Committer {
    /// Makes the queue; [`Committer::start`] gives it its thread once the workers exist.
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                queue: Mutex::default(),
                changed: Condvar::new(),
                cells: SyncCells::default(),
            }),
        }
    }

    /// # Errors
    /// The system gives no thread.
    pub fn start(&self, parts: CommitterParts) -> std::io::Result<JoinHandle<()>> {
        let shared = self.shared.clone();
        std::thread::Builder::new().name(parts.name.clone()).spawn(move || run(&shared, parts))
    }

    /// Hands in a round of requests; never blocks.
    pub fn submit(&self, requests: &mut Vec<SyncRequest>) {
        if requests.is_empty() {
            return;
        }
        let mut queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = queue.requests.is_empty();
        queue.requests.append(requests);
        drop(queue);
        if was_empty {
            self.shared.changed.notify_one();
        }
    }

    /// What its thread counts.
    pub fn cells(&self) -> &SyncCells {
        &self.shared.cells
    }

    /// Lets the thread end once its queue is empty.
    pub fn stop(&self) {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner).stopping = true;
        self.shared.changed.notify_one();
    }
}

fn run(shared: &Shared, parts: CommitterParts) {
    let CommitterParts { directory, disk, file_system, workers, meter, failed, .. } = parts;
    let mut gather = Duration::ZERO;
    while let Some(mut round) = next_round(shared) {
        if !gather.is_zero() {
            std::thread::sleep(gather);
            round.append(&mut lock(shared).requests);
        }
        // Read before the sync begins: what is written after that may not be covered.
        let ends: Vec<Offset> = round.iter().map(|request| request.covers.end()).collect();
        let (begun, stamp) = (barnabas_clock::now(), Stamp::now());
        match sync_round(disk.as_ref(), file_system.as_deref(), &round, &meter) {
            Ok(files) => {
                shared.cells.synced(stamp, round.len(), files);
                let gains = round.len() > 1
                    || round.iter().any(|request| request.batches > 1)
                    || round.iter().zip(&ends).any(|(request, end)| *end > request.dirty.ticket.end());
                gather = if gains { barnabas_clock::since(begun).min(GATHER_MAX) } else { Duration::ZERO };
                answer(round, &ends, &workers);
            }
            Err(error) => {
                failed(error);
                for mailbox in &workers {
                    mailbox.report(Report::DirectoryFailed(directory));
                }
                // Whatever is handed in from now on is dropped unanswered: the workers have failed its partitions.
                while next_round(shared).is_some() {}
                return;
            }
        }
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, Queue> {
    shared.queue.lock().unwrap_or_else(PoisonError::into_inner)
}

fn next_round(shared: &Shared) -> Option<Vec<SyncRequest>> {
    let mut queue = lock(shared);
    while queue.requests.is_empty() {
        if queue.stopping {
            return None;
        }
        queue = shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
    Some(std::mem::take(&mut queue.requests))
}

/// Returns how many files that were.
fn sync_round(
    disk: &dyn Disk,
    file_system: Option<&dyn FileSystem>,
    round: &[SyncRequest],
    meter: &Meter,
) -> Result<usize, DiskError> {
    let mut seen = HashSet::new();
    let mut files: Vec<&dyn DiskFile> = Vec::new();
    let mut dirs: Vec<&PathBuf> = Vec::new();
    for request in round {
        let unseen = request.dirty.files.iter().filter(|file| seen.insert(Arc::as_ptr(file).cast::<()>()));
        files.extend(unseen.map(|file| &***file));
        dirs.extend(request.dirty.dirs.iter());
    }
    dirs.sort();
    dirs.dedup();
    meter.syncs.one();
    meter.files_synced.add(files.len() as u64);
    // Some may have been written and closed, since too many were open.
    let is_left_to_it = round.iter().any(|request| request.dirty.is_whole);
    let is_whole = is_left_to_it || files.len() + dirs.len() >= WHOLE_FROM;
    if let Some(file_system) = file_system.filter(|_| is_whole) {
        return file_system.sync().map(|()| files.len());
    }
    sync_files(&files)?;
    // Names after contents: a name that is durable points at contents that are.
    let synced = match (dirs.into_iter().try_for_each(|dir| disk.sync_dir(dir)), file_system) {
        // A directory could not be opened. The file system is open already.
        (Err(error), Some(file_system)) if error.kind.is_shortage() => file_system.sync(),
        (synced, _) => synced,
    };
    synced.map(|()| files.len())
}

fn sync_files(files: &[&dyn DiskFile]) -> Result<(), DiskError> {
    let sync_all = |part: &[&dyn DiskFile]| part.iter().try_for_each(|file| file.sync());
    if files.len() <= FILES_PER_THREAD {
        return sync_all(files);
    }
    let part = files.len().div_ceil(THREADS_MAX).max(FILES_PER_THREAD);
    std::thread::scope(|scope| {
        let threads: Vec<_> = files.chunks(part).map(|chunk| scope.spawn(move || sync_all(chunk))).collect();
        // Every thread is waited for, whatever the first one says.
        let results: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        results.into_iter().collect()
    })
}

fn answer(round: Vec<SyncRequest>, ends: &[Offset], workers: &[Mailbox]) {
    let mut tickets: Vec<Vec<(PartitionKey, SyncTicket, Offset)>> =
        workers.iter().map(|_| Vec::new()).collect();
    for (request, &end) in round.into_iter().zip(ends) {
        tickets[request.worker].push((request.partition, request.dirty.ticket, end));
    }
    for (mailbox, tickets) in workers.iter().zip(tickets) {
        if !tickets.is_empty() {
            mailbox.report(Report::Synced(Synced { tickets }));
        }
    }
}

#[cfg(test)]
mod tests;
