//! One step of writing: take what has come, fill a round, write it, tell the workers, order what is to be written
//! back. On the journal's thread, or on that of a worker that is alone.
//!
//! The thread lingers after a round (`log.journal.linger.us`), and again for as long as each such time brings
//! [`WORTH_BYTES`], up to [`LINGERS_MAX`] times: where much comes, rounds become fewer and fuller, and so do the
//! requests of producers that wait for them. Small batches wait once at most, and not at all where a worker writes.

use super::files::{JournalDisk, RoundFiles, remove_files};
use super::{By, Phase, QUEUE_BYTES_MAX, Shared, Sleep, queued_bytes};
use crate::mailbox::{Mailbox, PartitionKey, Report};
use crate::mailbox::{WriteBackOrder, key_of};
use barnabas_base::{DirectoryId, Map, Offset};
use barnabas_metrics::Meter;
use barnabas_metrics::Stamp;
use barnabas_storage::journal::{
    Entry, EntryKind, Journal, JournalConfig, JournalError, JournalPartition, Micros, Recovered, Refused,
    Round, Take, WriteBackTicket, recover, slot_file_name,
};
use barnabas_storage::{Disk, DiskErrorKind, StorageError};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Partitions that are being written back at a time: as many as one sync of the file system is worth.
const WRITE_BACKS_MAX: usize = 1024;
/// How long a full disk is left alone before it is tried again.
const FULL_PAUSE: Duration = Duration::from_secs(1);
/// How many times in a row the thread lingers at most.
const LINGERS_MAX: u32 = 5;
/// What it must bring to linger once more: at the default linger this is 120 MB/s.
const WORTH_BYTES: u64 = 24 << 10;

/// What the thread needs beside its queue.
pub struct JournalParts {
    /// Place of the log directory in the node's list.
    pub directory: usize,
    pub path: Arc<Path>,
    pub id: DirectoryId,
    pub disk: Arc<dyn Disk>,
    pub files: Box<dyn JournalDisk>,
    pub config: JournalConfig,
    /// What was found and replayed after an unclean stop: the journal goes on in those files, at once.
    pub recovered: Option<Recovered>,
    /// A random number for each opening.
    pub opening: u64,
    pub workers: Vec<Mailbox>,
    pub meter: Arc<Meter>,
    pub is_online: Box<dyn Fn() -> bool + Send>,
    /// The disk has no room for the journal's files; said each time that it is tried.
    pub full: Box<dyn Fn(&StorageError) + Send>,
    /// Called once, with the first failure.
    pub failed: Box<dyn FnOnce(JournalError) + Send>,
}

pub(super) struct Writer {
    parts: JournalParts,
    shared: Arc<Shared>,
    /// `None` until something is written.
    open: Option<Open>,
    /// Taken from the queue, in order, and in no round yet.
    pending: VecDeque<Entry>,
    /// Large appends whose partition still has something here.
    ranges: Vec<Entry>,
    written_back: Vec<Arc<JournalPartition>>,
    /// A bit for each worker that has handed in what waits for the next round.
    workers: u64,
    /// Times in a row that the thread has lingered for the next round.
    lingers: u32,
    /// What the workers are writing back.
    ordered: Map<Arc<JournalPartition>, WriteBackTicket>,
    begun: Instant,
}

struct Open {
    journal: Journal,
    files: Box<dyn RoundFiles>,
    /// The file of the newest round.
    slot: usize,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("directory", &self.parts.directory).finish_non_exhaustive()
    }
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, parts: JournalParts) -> Self {
        Self {
            parts,
            shared,
            open: None,
            pending: VecDeque::new(),
            ranges: Vec::new(),
            written_back: Vec::new(),
            workers: 0,
            lingers: 0,
            ordered: Map::default(),
            begun: barnabas_clock::now(),
        }
    }

    pub(super) fn name(&self) -> String {
        format!("journal-{}", self.parts.directory)
    }

    pub(super) fn linger_us(&self) -> u64 {
        self.parts.config.linger_us
    }

    /// After an unclean stop: opens the files to go on in. `false`: there is no room for what is left in the journal,
    /// or for its first words on stays.
    pub(super) fn prepare(&mut self) -> Result<bool, JournalError> {
        let Some(recovered) = &self.parts.recovered else { return Ok(true) };
        let holds_some = !recovered.is_empty();
        let may_wait = !holds_some && !recovered.has_stays();
        match self.make_ready() {
            Err(JournalError::NoRoom) if holds_some => Ok(false),
            is_ready => Ok(is_ready? || may_wait),
        }
    }

    /// Before clients are served: from these rounds on, what was replayed is not replayed again, and what was not is
    /// held.
    pub(super) fn go_on(&mut self) -> Result<(), JournalError> {
        let opens = |open: &Option<Open>| open.as_ref().is_some_and(|open| !open.journal.is_open());
        while opens(&self.open) && self.turn(By::Thread)? == Sleep::No {}
        Ok(())
    }

    /// Takes what has come and does what is to be done about it. Says when to look again; `None`: never.
    pub(super) fn step(&mut self, by: By) -> Option<Sleep> {
        let (phase, workers) = self.shared.take(&mut self.pending, &mut self.written_back);
        self.workers |= workers;
        if !(self.parts.is_online)() {
            self.give_up();
            return None;
        }
        let done = match phase {
            Phase::Running => self.turn(by).map(Some),
            Phase::Stopping => self.close().map(|()| None),
            Phase::Failed => return None,
        };
        done.unwrap_or_else(|error| {
            self.fail(error);
            None
        })
    }

    /// Whether there is work that no worker submits.
    pub(super) fn has_rest(&self) -> bool {
        let is_pressed = self.open.as_ref().is_some_and(|open| open.journal.is_pressed());
        is_pressed || !self.pending.is_empty() || !self.ranges.is_empty() || !self.written_back.is_empty()
    }

    /// One step; says whether to look again at once.
    fn turn(&mut self, by: By) -> Result<Sleep, JournalError> {
        if self.open.is_none() && self.pending.is_empty() {
            return Ok(Sleep::UntilTold);
        }
        if !self.make_ready()? {
            return Ok(Sleep::AtMost(FULL_PAUSE));
        }
        self.take_written_back();
        let placed = self.fill();
        if self.lingers_on(placed) {
            self.order_write_backs();
            return Ok(Sleep::Through(Duration::from_micros(self.parts.config.linger_us)));
        }
        let now = match by {
            By::Thread => self.now(),
            // No other worker writes.
            By::Worker => Micros(u64::MAX),
        };
        let Some(open) = &mut self.open else { return Ok(Sleep::UntilTold) };
        open.journal.write_back_all(self.shared.writes_back_all.load(Ordering::Relaxed));
        let (take, sleep) = match open.journal.take_round(now) {
            Take::Write(round) => (Some(round), Sleep::No),
            Take::Wait(until) => (None, Sleep::Through(Duration::from_micros(until.0.saturating_sub(now.0)))),
            Take::Nothing => (None, Sleep::UntilTold),
        };
        self.lingers = u32::from(matches!(sleep, Sleep::Through(_)));
        if let Some(round) = take {
            self.write(round, by)?;
        }
        self.order_write_backs();
        if let Some(open) = &self.open {
            self.shared.is_crowded.store(open.journal.is_crowded(), Ordering::Relaxed);
        }
        Ok(sleep)
    }

    /// Whether the thread, having lingered and got so much, had better do so once more.
    fn lingers_on(&mut self, placed: u64) -> bool {
        let Some(open) = &self.open else { return false };
        let goes_on = (1..LINGERS_MAX).contains(&self.lingers)
            && placed >= WORTH_BYTES
            && open.journal.gathered_bytes() < self.parts.config.round_bytes_enough as usize;
        self.lingers += u32::from(goes_on);
        goes_on
    }

    fn now(&self) -> Micros {
        Micros(u64::try_from(barnabas_clock::since(self.begun).as_micros()).unwrap_or(u64::MAX))
    }

    /// Opens the journal unless it is open. `false`: the disk has no room for it, or the process no descriptors.
    fn make_ready(&mut self) -> Result<bool, JournalError> {
        if self.open.is_some() {
            return Ok(true);
        }
        let parts = &mut self.parts;
        let recovered = match parts.recovered.take() {
            Some(recovered) => recovered,
            None => match recover(&*parts.disk, &parts.path, parts.config.files, parts.id) {
                Err(JournalError::Disk(error)) if error.kind.is_shortage() => {
                    (parts.full)(&error.into());
                    return Ok(false);
                }
                recovered => recovered?,
            },
        };
        let journal = Journal::open(parts.config.clone(), &recovered, parts.opening)?;
        match parts.files.open(&parts.path, journal.files(), journal.file_bytes().into()) {
            Ok(files) => {
                self.open = Some(Open { journal, files, slot: 0 });
                Ok(true)
            }
            Err(error) if error.kind == DiskErrorKind::Full || error.kind.is_shortage() => {
                (parts.full)(&error.into());
                parts.recovered = Some(recovered);
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn take_written_back(&mut self) {
        let Some(open) = &mut self.open else { return };
        for partition in self.written_back.drain(..) {
            if let Some(ticket) = self.ordered.remove(&partition) {
                open.journal.written_back(&ticket);
            }
        }
    }

    /// Puts into the round what has room; returns how much that was.
    fn fill(&mut self) -> u64 {
        let Some(open) = &mut self.open else { return 0 };
        let ordered = &self.ordered;
        self.ranges.retain(|range| !open.journal.submit_range(range, ordered.contains_key(&range.partition)));
        let mut placed = 0;
        while let Some(entry) = self.pending.pop_front() {
            let bytes = queued_bytes(&entry);
            if matches!(entry.kind, EntryKind::Range { .. }) {
                // Everything before it of its partition is in the journal; it has to be written back as well.
                if !open.journal.submit_range(&entry, ordered.contains_key(&entry.partition)) {
                    self.ranges.push(entry);
                }
                placed += bytes;
                continue;
            }
            match open.journal.submit(entry.clone()) {
                Ok(_) => placed += bytes,
                Err(Refused::TooLarge) => {
                    panic!("workers write what is too large for a round into its segment")
                }
                Err(Refused::RoundFull | Refused::RingFull | Refused::StagedFull | Refused::Closed) => {
                    self.pending.push_front(entry);
                    break;
                }
            }
        }
        if placed > 0 {
            let left = self.shared.waiting_bytes.fetch_sub(placed, Ordering::SeqCst) - placed;
            if left <= QUEUE_BYTES_MAX / 2 && self.shared.is_room_wanted.swap(false, Ordering::SeqCst) {
                self.parts.workers.iter().for_each(|worker| worker.report(Report::Room));
            }
        }
        placed
    }

    fn write(&mut self, round: Round, by: By) -> Result<(), JournalError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let bytes = round.bytes().len() as u64;
        let begun = Stamp::now();
        open.files.write_durable(round.slot, round.position, round.bytes())?;
        let times = self.shared.cells.written(begun, bytes);
        self.shared.round_us.store(times.durable.since(begun) / 1000, Ordering::Relaxed);
        let took = (by == By::Worker).then(|| Duration::from_nanos(times.durable.since(begun)));
        self.shared.note_round(std::mem::take(&mut self.workers), took);
        open.slot = round.slot;
        let meter = &self.parts.meter;
        meter.journal_rounds.one();
        meter.journal_bytes.add(bytes);
        let now = Micros(u64::try_from(barnabas_clock::since(self.begun).as_micros()).unwrap_or(u64::MAX));
        if !(self.parts.is_online)() {
            // A segment of this directory could not be synced meanwhile: no further durable ends are reported.
            open.journal.fail();
        }
        let done = open.journal.round_durable(round, now);
        self.shared.life.store(open.journal.durable_life(), Ordering::Release);
        while open.journal.shrink() {
            open.files.forget_last();
            self.parts.disk.remove_file(&self.parts.path.join(slot_file_name(open.journal.files())))?;
        }
        self.shared.cells.round_partitions.record(done.ends.len() as u64);
        let count = self.parts.workers.len();
        let mut ends: Vec<Vec<(PartitionKey, Offset)>> = vec![Vec::new(); count];
        for durable in done.ends {
            let key = key_of(&durable.partition);
            ends[key.owner(count)].push((key, durable.end));
        }
        for (worker, ends) in self.parts.workers.iter().zip(ends) {
            if !ends.is_empty() {
                worker.report(Report::Durable(self.parts.directory, ends, times));
            }
        }
        Ok(())
    }

    /// Hands out what is to be written back, a bounded number at a time.
    fn order_write_backs(&mut self) {
        let Some(open) = &mut self.open else { return };
        let count = self.parts.workers.len();
        let mut orders: Vec<Vec<WriteBackOrder>> = Vec::new();
        while self.ordered.len() < WRITE_BACKS_MAX
            && let Some(write_back) = open.journal.next_write_back()
        {
            let directory = self.parts.directory;
            let order = WriteBackOrder {
                directory,
                partition: Arc::clone(&write_back.partition),
                end: write_back.end(),
            };
            orders.resize_with(count, Vec::new);
            orders[order.key().owner(count)].push(order);
            self.ordered.insert(write_back.partition, write_back.ticket);
        }
        for (worker, orders) in self.parts.workers.iter().zip(orders) {
            if !orders.is_empty() {
                worker.report(Report::WriteBack(orders));
            }
        }
    }

    /// Everything is written back and synced: says so in a last round, and removes the files.
    fn close(&mut self) -> Result<(), JournalError> {
        self.pending.clear();
        let Some(open) = &mut self.open else { return Ok(()) };
        for (_, ticket) in self.ordered.drain() {
            open.journal.written_back(&ticket);
        }
        open.journal.close();
        while !open.journal.is_closed() {
            while let Some(write_back) = open.journal.next_write_back() {
                open.journal.written_back(&write_back.ticket);
            }
            let now = Micros(u64::MAX);
            let Take::Write(round) = open.journal.take_round(now) else {
                // A bug, or the directory has just failed; what is not closed is replayed at the next start.
                tracing::error!(directory = %self.parts.path.display(), "journal was not closed; the next start replays it");
                return Ok(());
            };
            open.files.write_durable(round.slot, round.position, round.bytes())?;
            open.slot = round.slot;
            open.journal.round_durable(round, now);
        }
        let slot = open.slot;
        self.open = None;
        remove_files(&*self.parts.disk, &self.parts.path, Some(slot))?;
        Ok(())
    }

    /// The directory is offline, which another thread has logged.
    fn give_up(&mut self) {
        self.shared.fail();
        self.open = None;
        self.parts.workers.iter().for_each(|worker| worker.report(Report::Room));
    }

    fn fail(&mut self, error: JournalError) {
        self.shared.fail();
        let failed = std::mem::replace(&mut self.parts.failed, Box::new(|_| {}));
        failed(error);
        for worker in &self.parts.workers {
            worker.report(Report::DirectoryFailed(self.parts.directory));
        }
    }
}
