//! One thread for each log directory that makes small appends durable: it owns the directory's only journal, writes
//! what workers hand in with one synced write for all of them, and says what is to be written back to segments.
//!
//! While one round is written the next one gathers in the queue: group commit. An idle thread does not linger.
//! Workers wake the thread only if it sleeps, and it wakes each of them once for each round. A worker that has been
//! the only writer for a while writes small rounds itself, without waking the thread
//! ([`JournalHandle::submit_or_write`], core/storage/src/journal/inline_write.rs).
//!
//! Segments are brought up to the journal by the workers that own them: [`WriteBackOrder`]s go out, come back
//! through [`JournalHandle::written_back`] once the segments are synced (committer.rs), and free the journal's
//! files. Where that falls behind, the queue fills, [`JournalHandle::is_over`] says so, and workers take no more
//! appends; orders and reports go past that bound, so what makes room never waits for room.
//!
//! The journal's files are made when the first partition of the directory is written, and go when everything in them is
//! written back at a clean stop.
//!
//! Always true:
//! 1. `Durable` is reported after the write of the round has returned, while the directory is online
//! 2. entries of one partition are written in the order in which its worker handed them in
//! 3. after a failed write nothing more is reported as durable: the directory is offline for good
//! 4. one round is written at a time: the writer is behind a lock, and a worker takes it only while the thread is
//!    parked
//!
//! Produce path 4½ of 5. Before: partition_worker/appends/journaled.rs, which hands in. After:
//! partition_worker/appends/journaled.rs, which answers.

mod files;
mod run;

#[cfg(test)]
use files::{JournalDisk, RoundFiles};
pub use files::{LinuxJournal, journal_config, remove_files};
pub use run::JournalParts;

use barnabas_metrics::storage::JournalCells;
use barnabas_replica::OpenError;
use barnabas_storage::AppendBytes;
use barnabas_storage::journal::{
    Entry, EntryKind, INLINE_BYTES_MAX, InlineWrites, JournalError, JournalPartition,
};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes handed in and not yet in a round, from which on workers take no more appends: two of the largest rounds.
const QUEUE_BYTES_MAX: u64 = 8 << 20;
/// A round that took longer found the device busy: at rest the largest take a few ms.
const SLOW_ROUND_US: u64 = 20_000;
/// The bit of everybody who is no worker.
const NO_WORKER: u32 = u64::BITS - 1;

/// Why a journal's thread did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// There is no file to go on in with what was recovered. Nothing has changed: it can be started with less.
    #[error("no file of the journal is free")]
    NoRoom,
    #[error(transparent)]
    Replay(#[from] Box<OpenError>),
    #[error("the system gives no thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// What becomes the thread.
pub struct Prepared(run::Writer);

/// Where workers hand in. Cheap to clone.
#[derive(Debug, Clone)]
pub struct JournalHandle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// What writes rounds, from the thread's start to its end. Locked before the queue is.
    writer: Mutex<Option<run::Writer>>,
    /// Bytes of entries that are in no round yet.
    waiting_bytes: AtomicU64,
    /// A worker holds appends back and wants to hear when there is room.
    is_room_wanted: AtomicBool,
    /// What is left of the journal's room is for producers.
    is_crowded: AtomicBool,
    /// Small pieces are written back as well.
    writes_back_all: AtomicBool,
    /// How long the newest round's write took.
    round_us: AtomicU64,
    /// `log.journal.linger.us`, from the thread's start on.
    linger_us: AtomicU64,
    /// The journal's newest durable life; 0: it is not open.
    life: AtomicU64,
    cells: JournalCells,
}

#[derive(Debug, Default)]
struct Queue {
    entries: Vec<Entry>,
    written_back: Vec<Arc<JournalPartition>>,
    /// A bit for each worker that has handed in what is here.
    workers: u64,
    /// The thread sleeps until it is woken.
    is_parked: bool,
    /// A worker writes a round; it wakes the thread if anything is left to do then.
    is_written_by_worker: bool,
    /// Something is left to do, whether anything is here or not.
    has_rest: bool,
    inline: InlineWrites,
    /// When the last round was written.
    written: Option<Instant>,
    phase: Phase,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    #[default]
    Running,
    /// Everything is written back and synced: close the journal.
    Stopping,
    /// What is handed in goes nowhere.
    Failed,
}

impl JournalHandle {
    /// Makes the queue; [`JournalHandle::start`] gives it its thread.
    pub fn new() -> Self {
        let shared = Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            writer: Mutex::new(None),
            waiting_bytes: AtomicU64::new(0),
            is_room_wanted: AtomicBool::new(false),
            is_crowded: AtomicBool::new(false),
            writes_back_all: AtomicBool::new(false),
            round_us: AtomicU64::new(0),
            linger_us: AtomicU64::new(0),
            life: AtomicU64::new(0),
            cells: JournalCells::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Where a journal was recovered: makes ready to go on in it. Nothing is written yet.
    ///
    /// # Errors
    /// [`StartError::NoRoom`]: it can be tried again with less. Else the directory is offline.
    pub fn prepare(&self, parts: JournalParts) -> Result<Prepared, StartError> {
        let mut writer = run::Writer::new(self.shared.clone(), parts);
        match writer.prepare() {
            Ok(true) => Ok(Prepared(writer)),
            Ok(false) => Err(StartError::NoRoom),
            Err(error) => {
                self.shared.fail();
                Err(error.into())
            }
        }
    }

    /// Starts the thread. Where a journal was recovered it goes on in it first, so that nothing is served before that
    /// is durable. From here on it may want something written back.
    ///
    /// # Errors
    /// The journal cannot be gone on with: the directory is offline, and nothing was started.
    pub fn start(&self, prepared: Prepared) -> Result<JoinHandle<()>, StartError> {
        let Prepared(mut writer) = prepared;
        if let Err(error) = writer.go_on() {
            self.shared.fail();
            return Err(error.into());
        }
        let name = writer.name();
        self.shared.linger_us.store(writer.linger_us(), Ordering::Relaxed);
        *self.shared.lock_writer() = Some(writer);
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new().name(name).spawn(move || shared.serve());
        if thread.is_err() {
            *self.shared.lock_writer() = None;
        }
        Ok(thread?)
    }

    /// Hands in what a round appended; never blocks. The entries of one partition in the order of its log.
    pub fn submit(&self, entries: &mut Vec<Entry>) {
        self.hand_in(entries, NO_WORKER, false);
    }

    /// As [`JournalHandle::submit`], for `worker`'s round. Where that worker has been the only one lately, the round is
    /// small and the thread sleeps, it is written here and now: this blocks for the time of a synced write. Its reports
    /// come as ever.
    pub fn submit_or_write(&self, entries: &mut Vec<Entry>, worker: usize) {
        self.hand_in(entries, worker as u32, true);
    }

    fn hand_in(&self, entries: &mut Vec<Entry>, worker: u32, may_write: bool) {
        if entries.is_empty() {
            return;
        }
        let bytes: u64 = entries.iter().map(queued_bytes).sum();
        let mut queue = self.shared.lock();
        if queue.phase == Phase::Failed {
            entries.clear();
            return;
        }
        self.shared.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        queue.entries.append(entries);
        queue.workers |= 1 << (worker % u64::BITS);
        let writes =
            may_write && bytes <= INLINE_BYTES_MAX && queue.may_be_written_by_worker(self.shared.linger());
        if writes {
            queue.is_written_by_worker = true;
            drop(queue);
            self.shared.write_here();
        } else {
            self.shared.wake(queue);
        }
    }

    /// These partitions are written back and synced as far as they were ordered to be.
    pub fn written_back(&self, partitions: &mut Vec<Arc<JournalPartition>>) {
        if partitions.is_empty() {
            return;
        }
        let mut queue = self.shared.lock();
        queue.written_back.append(partitions);
        self.shared.wake(queue);
    }

    /// While its directory runs out of room: whatever is in the journal is written back, so that a start on a disk
    /// that is full to the last byte finds it in segments. To be said as often as one likes.
    pub fn write_back_all(&self, is_wanted: bool) {
        if self.shared.writes_back_all.swap(is_wanted, Ordering::Relaxed) != is_wanted && is_wanted {
            let mut queue = self.shared.lock();
            queue.has_rest = true;
            self.shared.wake(queue);
        }
    }

    /// Whether so much waits that workers should take no more appends. The journal reports to them when there is
    /// room again ([`super::mailbox::Report`]).
    pub fn is_over(&self) -> bool {
        if self.shared.waiting_bytes.load(Ordering::Relaxed) <= QUEUE_BYTES_MAX {
            return false;
        }
        self.shared.is_room_wanted.store(true, Ordering::SeqCst);
        // Once more: the thread may have made room before it could see the wish.
        self.shared.waiting_bytes.load(Ordering::SeqCst) > QUEUE_BYTES_MAX
    }

    /// Whether what can wait had better come seldom: the device is slow just now.
    pub fn is_slow(&self) -> bool {
        self.shared.round_us.load(Ordering::Relaxed) > SLOW_ROUND_US
    }

    /// Whether what can wait must wait: what room is left is for producers.
    pub fn is_crowded(&self) -> bool {
        self.shared.is_crowded.load(Ordering::Relaxed)
            || self.shared.waiting_bytes.load(Ordering::Relaxed) > QUEUE_BYTES_MAX / 2
    }

    /// What its thread counts.
    pub fn cells(&self) -> &JournalCells {
        &self.shared.cells
    }

    /// Bytes that are in no round yet.
    pub fn waiting_bytes(&self) -> u64 {
        self.shared.waiting_bytes.load(Ordering::Relaxed)
    }

    /// The newest life of the journal's files that something durable lies in; `None`: no journal is open.
    pub fn life(&self) -> Option<u64> {
        Some(self.shared.life.load(Ordering::Acquire)).filter(|life| *life > 0)
    }

    /// Lets the thread close the journal and end: everything in it is written back and synced, and nothing more is
    /// handed in.
    pub fn stop(&self) {
        let mut queue = self.shared.lock();
        if queue.phase == Phase::Running {
            queue.phase = Phase::Stopping;
        }
        queue.is_parked = true;
        self.shared.wake(queue);
    }
}

impl Queue {
    fn is_idle(&self) -> bool {
        self.entries.is_empty()
            && self.written_back.is_empty()
            && self.phase == Phase::Running
            && !self.has_rest
    }

    fn may_be_written_by_worker(&self, linger: Duration) -> bool {
        self.is_parked
            && !self.is_written_by_worker
            && self.phase == Phase::Running
            && self.inline.may_write(linger, self.written.map(barnabas_clock::since))
            && self.workers.count_ones() == 1
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn linger(&self) -> Duration {
        Duration::from_micros(self.linger_us.load(Ordering::Relaxed))
    }

    fn lock_writer(&self) -> MutexGuard<'_, Option<run::Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, mut queue: MutexGuard<'_, Queue>) {
        if queue.is_written_by_worker {
            // It looks once more when it has written.
            return;
        }
        let is_parked = std::mem::take(&mut queue.is_parked);
        drop(queue);
        if is_parked {
            self.changed.notify_one();
        }
    }

    /// The thread's loop.
    fn serve(&self) {
        let mut sleep = Sleep::UntilTold;
        loop {
            self.wait(sleep);
            let mut writer = self.lock_writer();
            let next = writer.as_mut().and_then(|writer| writer.step(By::Thread));
            match next {
                Some(next) => sleep = next,
                None => {
                    *writer = None;
                    return;
                }
            }
        }
    }

    /// Writes a round on a worker's thread, while the journal's is parked.
    fn write_here(&self) {
        let mut place = self.lock_writer();
        let next = place.as_mut().and_then(|writer| writer.step(By::Worker));
        let has_rest = match (&mut *place, next) {
            (Some(writer), Some(_)) => writer.has_rest(),
            // The thread sees that it is over.
            (writer, _) => {
                *writer = None;
                true
            }
        };
        drop(place);
        let mut queue = self.lock();
        queue.is_written_by_worker = false;
        queue.has_rest |= has_rest;
        if !queue.is_idle() {
            self.wake(queue);
        }
    }

    /// Waits until there is something to do, at most as long as `sleep` says.
    fn wait(&self, sleep: Sleep) {
        match sleep {
            Sleep::No => return,
            // Not to be woken by every entry that comes: that is what lingering is for.
            Sleep::Through(time) => return std::thread::sleep(time),
            Sleep::AtMost(_) | Sleep::UntilTold => {}
        }
        let mut queue = self.lock();
        let sleeps = |queue: &mut Queue| queue.is_written_by_worker || queue.is_idle();
        if sleeps(&mut queue) {
            queue.is_parked = true;
            queue = match sleep {
                Sleep::AtMost(time) => {
                    let waited = self.changed.wait_timeout_while(queue, time, sleeps);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                _ => self.changed.wait_while(queue, sleeps).unwrap_or_else(PoisonError::into_inner),
            };
            queue.is_parked = false;
        }
    }

    /// Takes what has been handed in, and who did so.
    fn take(
        &self,
        entries: &mut VecDeque<Entry>,
        written_back: &mut Vec<Arc<JournalPartition>>,
    ) -> (Phase, u64) {
        let mut queue = self.lock();
        entries.extend(queue.entries.drain(..));
        written_back.append(&mut queue.written_back);
        queue.has_rest = false;
        (queue.phase, std::mem::take(&mut queue.workers))
    }

    /// A round that these workers had handed in is written; `took`: how long a worker wrote.
    fn note_round(&self, workers: u64, took: Option<Duration>) {
        let mut queue = self.lock();
        let meanwhile = queue.workers;
        queue.written = Some(barnabas_clock::now());
        queue.inline.note(workers | meanwhile, took);
    }

    /// Nothing is taken any more.
    fn fail(&self) {
        let mut queue = self.lock();
        queue.phase = Phase::Failed;
        queue.entries.clear();
        queue.written_back.clear();
        self.waiting_bytes.store(0, Ordering::SeqCst);
    }
}

/// On whose thread a step is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Thread,
    Worker,
}

/// How long the thread waits where there is nothing to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sleep {
    No,
    Through(Duration),
    AtMost(Duration),
    UntilTold,
}

/// What an entry counts for in the queue: its records, and a little for itself.
fn queued_bytes(entry: &Entry) -> u64 {
    let records = match &entry.kind {
        EntryKind::Records { records: AppendBytes::Whole(bytes), .. } => bytes.len(),
        EntryKind::Records { records: AppendBytes::Split { header, body }, .. } => header.len() + body.len(),
        _ => 0,
    };
    records as u64 + 128
}

#[cfg(test)]
mod tests;
