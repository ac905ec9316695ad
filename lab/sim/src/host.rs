//! One broker's log directory and the replicas that are open on it: core/replica and core/storage as they are, over a
//! disk in memory.
//!
//! What shell/broker does with several threads is done here in one: a replica's effects are carried out
//! ([`ReplicaHost::step`]), the journal's rounds and the syncs of segments take their time ([`journal`], [`syncs`]), a
//! start recovers what the disk has kept ([`start`]), logs are read for consumers and for the invariants ([`reading`]),
//! and asked by time and epoch ([`lookups`]).
//!
//! Compaction runs beside that ([`cleaning`]), and so do moves between log directories ([`moving`], [`directories`]).
//! What differs by the day is in [`ways`].
//!
//! Not played: a log directory that fails alone. All directories are on one disk.

mod cleaning;
mod directories;
mod journal;
mod lookups;
mod moving;
mod reading;
mod start;
mod syncs;
mod truncation;
mod upkeep;
mod ways;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use barnabas_base::{BrokerId, ErrorCode, MonotonicMs, Offset, TimestampMs, TopicPartition};
use barnabas_coordinator::BatchId;
use barnabas_partition::{Acked, Acks, Append, Cut, Origin, ReplicaKey, Ticket};
use barnabas_replica::{
    BatchLists, Durability, Effect, Leaving, Moment, OpenError, Outbox, Replica, RequestError, Surroundings,
    TxnVerification,
};
use barnabas_storage::journal::{Entry, JournalError, JournalPartition, PartitionReplay};
use barnabas_storage::{FilePool, Level, LogConfig, LogDir, MemoryDisk, StorageError, TailMemory, Writer};

use crate::batch::Batch;
use crate::counts::{Fault, Faults};
use crate::mistake::Mistake;
use crate::network::Reply;
use crate::random::Random;
pub(crate) use cleaning::Compacting;
use journal::JournalWriter;
pub(crate) use lookups::Lookup;
pub(crate) use reading::{Corrupted, Readable};
use syncs::Syncs;
pub(crate) use ways::Ways;

/// A round of a replica that holds more goes straight into the segment.
const JOURNAL_APPEND_BYTES_MAX: u64 = 1000;
/// What is in memory and in segments, at most, before the oldest is forgotten.
const CACHE_BYTES: u64 = 16 << 10;

/// Who waits for an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiter {
    Producer {
        client: usize,
        sequence: barnabas_base::Sequence,
    },
    Asker(Reply),
    /// The coordinator beside the partition, as it was loaded in this epoch.
    Shard(barnabas_base::LeaderEpoch, BatchId),
}

/// How a batch is handed to a replica.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handing {
    pub origin: Origin,
    pub acks: Acks,
    pub verification: TxnVerification,
    pub deadline: MonotonicMs,
}

/// What a broker does about a step of one of its replicas, and what invariants hear of it.
#[derive(Debug)]
pub(crate) enum News {
    Answer {
        key: ReplicaKey,
        waiter: Waiter,
        answer: Result<Acked, ErrorCode>,
        batch: Option<Batch>,
    },
    /// The log was opened, with these batches.
    Opened {
        key: ReplicaKey,
        start: Offset,
        log: Readable,
    },
    /// What lies below `start` was deleted.
    Started {
        key: ReplicaKey,
        start: Offset,
    },
    /// These batches count as durable from now on.
    Durable {
        key: ReplicaKey,
        batches: Vec<Batch>,
    },
    /// The high watermark is at `to`.
    HighWatermark {
        key: ReplicaKey,
        to: Offset,
        leads: bool,
        read: Readable,
    },
    /// A reader of committed records sees as far as `to`: these batches, some of which it passes over. `loaded`: the
    /// markers above the high watermark that the replica found when it loaded its producers.
    LastStable {
        key: ReplicaKey,
        to: Offset,
        read: Vec<(Batch, bool)>,
        loaded: Vec<Batch>,
    },
    /// The log is about to be truncated: nothing from there on counts as durable any more.
    WillCut {
        key: ReplicaKey,
        cut: Cut,
    },
    Cut {
        key: ReplicaKey,
        to: Offset,
        high_watermark: Offset,
    },
    /// Damaged segments are given up.
    GaveUp {
        key: ReplicaKey,
        to: Offset,
    },
    /// The replica is none any more: its directory is put aside.
    /// `is_gone`: its files are, too.
    Left {
        key: ReplicaKey,
        is_gone: bool,
    },
    /// It cannot be opened, and stays offline until the next start.
    Offline {
        key: ReplicaKey,
        why: String,
    },
    /// Segments gave way to compacted ones. Nothing at or past `bound` was to be touched.
    Compacted {
        key: ReplicaKey,
        before: Readable,
        after: Readable,
        bound: Offset,
        /// What a reader of committed records is sent, each with whether it passes over it.
        read: Option<Vec<(Batch, bool)>>,
    },
    /// The controller is to know that the replica lies in this log directory.
    Assigned {
        key: ReplicaKey,
        directory: usize,
    },
    /// The replica lies in another log directory now.
    Moved {
        key: ReplicaKey,
        before: Readable,
        after: Readable,
    },
    AlterIsr(ReplicaKey),
    FollowOn(ReplicaKey),
    Damaged(ReplicaKey, Offset),
    /// It is not open any more, or refuses everything.
    Reopen(ReplicaKey),
}

/// A replica that is open.
#[derive(Debug)]
pub(crate) struct Hosted {
    pub replica: Replica,
    waiting: VecDeque<(Ticket, Waiter)>,
    /// From here on there are records, as was reported.
    seen_start: Offset,
    /// Up to here was reported as durable, as shown, and as stable.
    seen_durable: Offset,
    seen_high: Offset,
    seen_stable: Offset,
    /// The end of the log when its producers were last loaded, by a start or a truncation.
    loaded_to: Offset,
    /// The image has something new, and is looked at once the log is truncated.
    pub role_waits: bool,
}

/// Why a directory is of no use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A disk that is full, or fails: another start may go well.
    Disk(String),
    /// What is on the disk is not what was left there.
    Lost(String),
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Full(_)
            | StorageError::Exhausted(_)
            | StorageError::Disk(_)
            | StorageError::Failed(_) => Self::Disk(error.to_string()),
            _ => Self::Lost(error.to_string()),
        }
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Disk(_) | JournalError::NoRoom => Self::Disk(error.to_string()),
            _ => Self::Lost(error.to_string()),
        }
    }
}

/// Why a partition was not opened.
#[derive(Debug)]
pub(crate) enum Unopened {
    /// Nothing is wrong with it: it is tried again.
    Later(OpenError),
    /// Its last stay on this broker is not over.
    Leaving,
    Failed(Failure),
}

impl From<Unopened> for Failure {
    fn from(unopened: Unopened) -> Self {
        match unopened {
            Unopened::Later(error) => error.into(),
            Unopened::Leaving => Self::Disk("its directory is not put aside".to_owned()),
            Unopened::Failed(failure) => failure,
        }
    }
}

/// What a host may use while it acts.
pub(crate) struct HostTime<'a> {
    pub now: MonotonicMs,
    pub random: &'a mut Random,
    pub faults: &'a mut Faults,
    pub mistake: Option<Mistake>,
}

impl HostTime<'_> {
    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }
}

#[derive(Debug)]
pub(crate) struct ReplicaHost {
    id: BrokerId,
    pub disk: MemoryDisk,
    ways: Ways,
    /// The log directories. What follows has one for each of them.
    dirs: Vec<LogDir>,
    config: Arc<LogConfig>,
    pub(crate) files: Vec<FilePool>,
    memory: TailMemory,
    entries: Vec<Vec<Entry>>,
    lists: BatchLists,
    outbox: Outbox,
    journals: Vec<JournalWriter>,
    syncs: Syncs,
    /// The journals' orders to write back.
    orders: VecDeque<(usize, Arc<JournalPartition>, Offset)>,
    pub replicas: BTreeMap<ReplicaKey, Hosted>,
    /// What only the journal of that directory holds.
    unreplayed: BTreeMap<ReplicaKey, (usize, Arc<PartitionReplay>)>,
    /// Where the controller knows each replica to lie.
    pub assigned: BTreeMap<ReplicaKey, usize>,
    moves: BTreeMap<ReplicaKey, moving::Move>,
    /// Partitions whose logs are damaged beyond repair here.
    pub offline: BTreeSet<ReplicaKey>,
    /// Replicas that have left, until the journal has their removals.
    leaving: Leaving,
    /// Those of them whose directories are not put aside.
    departures: VecDeque<(ReplicaKey, TopicPartition, Vec<usize>)>,
    touched: BTreeSet<ReplicaKey>,
    /// Replicas with bytes that no producer waits for to be synced.
    lazy: BTreeSet<ReplicaKey>,
    pub news: VecDeque<News>,
    deletions: Vec<(TimestampMs, PathBuf)>,
    cached: VecDeque<(ReplicaKey, Offset, u64)>,
    cached_bytes: u64,
    opened: u64,
    tickets: u64,
    room_is_short: bool,
    /// Where a reserve is kept.
    level: Level,
    /// Segments are deleted by age and size.
    pub retains: bool,
    /// Segments are compacted.
    compacts: Option<Compacting>,
    cleaner: cleaning::Cleaner,
    /// A mistake that is planted.
    pub shows_everything: bool,
    /// The directory takes no more writes.
    pub failed: Option<Failure>,
}

pub(crate) fn moment(now: MonotonicMs) -> Moment {
    Moment { wall: TimestampMs(now.0 as i64), monotonic: now }
}

impl ReplicaHost {
    pub fn replica(&self, key: ReplicaKey) -> Option<&Replica> {
        self.replicas.get(&key).map(|hosted| &hosted.replica)
    }

    pub fn ways(&self) -> Ways {
        self.ways
    }

    fn durability(&self) -> Durability {
        let acks_are_synced = !self.ways.acks_are_written;
        Durability { acks_are_synced, journal_append_bytes_max: JOURNAL_APPEND_BYTES_MAX }
    }

    /// One step of a replica. What it asks for is carried out.
    pub fn step<R>(
        &mut self,
        key: ReplicaKey,
        now: MonotonicMs,
        work: impl FnOnce(&mut Replica, &mut Surroundings<'_>) -> R,
    ) -> Option<R> {
        let durability = self.durability();
        let Self { replicas, files, memory, entries, lists, outbox, .. } = self;
        let hosted = replicas.get_mut(&key)?;
        let now = moment(now);
        let at = hosted.replica.directory;
        let (files, entries) = (&mut files[at], &mut entries[at]);
        let mut around = Surroundings { now, durability, files, memory, entries, lists, outbox };
        let done = work(&mut hosted.replica, &mut around);
        self.carry_out(key);
        Some(done)
    }

    /// Hands a batch in. Who waits for it hears by the news.
    pub fn append(
        &mut self,
        key: ReplicaKey,
        batch: &Batch,
        how: Handing,
        waiter: Waiter,
        now: MonotonicMs,
    ) -> Result<(), ErrorCode> {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let Handing { origin, acks, verification, deadline } = how;
        let append = Append {
            origin,
            acks,
            ticket,
            deadline,
            leader_epoch: None,
            verified: false,
            follows_refused: false,
        };
        let hosted = self.replicas.get_mut(&key).ok_or(ErrorCode::NotLeaderOrFollower)?;
        if hosted.replica.partition.is_failed() {
            return Err(RequestError::Storage.code());
        }
        hosted.waiting.push_back((ticket, waiter));
        let ready = batch.to_ready(TimestampMs(now.0 as i64));
        let (is_short, level) = (self.room_is_short, self.level);
        let reserved = self.ways.keeps_reserve;
        let admit = move |_: usize, writer| match reserved {
            true => level.admits(writer),
            false => !is_short || writer == Writer::Coordinator,
        };
        let appended =
            self.step(key, now, |replica, around| replica.append(ready, verification, append, admit, around));
        match appended {
            Some(Ok(_)) => {
                self.touched.insert(key);
                Ok(())
            }
            refused => {
                if let Some(hosted) = self.replicas.get_mut(&key) {
                    hosted.waiting.retain(|(waiting, _)| *waiting != ticket);
                }
                Err(refused.and_then(Result::err).map_or(ErrorCode::NotLeaderOrFollower, RequestError::code))
            }
        }
    }

    /// A replica has something for the end of the turn.
    pub fn touch(&mut self, key: ReplicaKey) {
        self.touched.insert(key);
    }

    /// Writes what the turn has appended, and hands the journal what is new.
    pub fn finish_turn(&mut self, now: MonotonicMs, mistake: Option<Mistake>) {
        while let Some(key) = self.touched.pop_first() {
            self.step(key, now, |replica, around| {
                replica.finish_round(around);
                let counts = match mistake {
                    Some(Mistake::CountsTheUndurable) => replica.partition.is_leader(),
                    Some(Mistake::FollowsUndurably) => !replica.partition.is_leader(),
                    _ => false,
                };
                if counts && !replica.partition.is_failed() {
                    replica.partition.synced(replica.log.end(), &mut around.outbox.decisions);
                }
            });
        }
        self.submit();
    }

    fn submit(&mut self) {
        for (journal, entries) in self.journals.iter_mut().zip(&mut self.entries) {
            journal.pending.append(&mut entries.drain(..).collect());
        }
    }

    /// Whether appends and fetches are held back.
    pub fn is_over(&self) -> bool {
        self.journals.iter().any(JournalWriter::is_over)
    }

    /// Carries out what a replica asks for; what concerns others becomes news.
    fn carry_out(&mut self, key: ReplicaKey) {
        let Some(hosted) = self.replicas.get_mut(&key) else { return };
        hosted.replica.absorb(&mut self.outbox);
        let directory = hosted.replica.directory;
        self.observe(key);
        for effect in std::mem::take(&mut self.outbox.effects) {
            match effect {
                Effect::Answer { ticket, answer } => self.answer(key, ticket, answer),
                Effect::AlterIsr => self.news.push_back(News::AlterIsr(key)),
                Effect::SyncCovers(end) => self.syncs.extend(key, end),
                Effect::FlushLater => _ = self.lazy.insert(key),
                Effect::SyncEnds => self.syncs.end(key),
                Effect::Sync => self.sync_now(key),
                Effect::WroteToSegment { end, bytes } | Effect::WroteBack { end, bytes } => {
                    self.cache(key, end, bytes);
                }
                Effect::WriteBackDone(order) => self.journals[directory].written_back.push(order),
                Effect::NoRoom(_) => {
                    self.room_is_short = true;
                    self.level = Level::Full;
                }
                Effect::DirectoryFailed(error) => self.fail(Failure::from(*error)),
                Effect::ReadFailed(error) => self.read_failed(key, &error),
                Effect::Reopen => {
                    self.drop_replica(key);
                    self.news.push_back(News::Reopen(key));
                }
                Effect::FollowOn => self.news.push_back(News::FollowOn(key)),
                Effect::Readable { .. }
                | Effect::Appended { .. }
                | Effect::AppendedDirectly
                | Effect::Released(_)
                | Effect::NotWritten(_)
                | Effect::WakeReaders
                | Effect::Log(_) => {}
            }
        }
    }

    fn answer(&mut self, key: ReplicaKey, ticket: Ticket, answer: Result<Acked, RequestError>) {
        let Some(hosted) = self.replicas.get_mut(&key) else { return };
        let Some(at) = hosted.waiting.iter().position(|(waiting, _)| *waiting == ticket) else { return };
        let Some((_, waiter)) = hosted.waiting.remove(at) else { return };
        let batch = answer.ok().and_then(|acked| self.batch_at(key, acked.base));
        self.news.push_back(News::Answer { key, waiter, answer: answer.map_err(RequestError::code), batch });
    }

    fn read_failed(&mut self, key: ReplicaKey, error: &StorageError) {
        if let StorageError::Damaged { offset, .. } | StorageError::Unreadable { offset } = error {
            self.news.push_back(News::Damaged(key, *offset));
        }
    }

    /// Nothing is written in the directory any more.
    fn fail(&mut self, failure: Failure) {
        self.failed.get_or_insert(failure);
        self.dirs.iter_mut().for_each(LogDir::fail);
        assert!(!self.dirs.iter().any(LogDir::is_online), "a directory that has failed stays so");
        self.journals.iter_mut().for_each(JournalWriter::fail);
        for key in self.replicas.keys().copied().collect::<Vec<_>>() {
            let Some(hosted) = self.replicas.get_mut(&key) else { continue };
            hosted.replica.log.fail();
            hosted.replica.fail(RequestError::Storage, &mut self.outbox);
            self.carry_out(key);
        }
    }

    /// So many bytes below `end` are in memory and in segments.
    fn cache(&mut self, key: ReplicaKey, end: Offset, bytes: u64) {
        self.cached.push_back((key, end, bytes));
        self.cached_bytes += bytes;
        while self.cached_bytes > CACHE_BYTES
            && let Some((key, end, bytes)) = self.cached.pop_front()
        {
            self.cached_bytes -= bytes;
            if let Some(hosted) = self.replicas.get_mut(&key) {
                hosted.replica.log.forget_below(end);
            }
        }
    }

    /// What time brings: rounds and syncs that are done, orders to write back, checkpoints.
    pub fn tick(&mut self, time: &mut HostTime<'_>) {
        if self.failed.is_some() {
            return;
        }
        self.disk.set_now(TimestampMs(time.now.0 as i64));
        if self.ways.sweeps {
            self.files.iter_mut().for_each(FilePool::expire_checks);
        }
        self.write_rounds(time);
        self.run_syncs(time);
        self.write_back_some(time);
        self.keep_house(time);
        if !self.moves.is_empty() {
            self.move_some(time);
        }
        if self.ways.acks_are_written {
            self.flush_lazy(time.now);
        }
        if self.compacts.is_some() && self.failed.is_none() && time.random.one_in(3) {
            self.clean_some(time);
        }
        self.submit();
    }

    fn write_rounds(&mut self, time: &mut HostTime<'_>) {
        for at in 0..self.dirs.len() {
            self.write_round_of(at, time);
        }
    }

    fn write_round_of(&mut self, at: usize, time: &mut HostTime<'_>) {
        let done = match self.journals[at].turn(&self.disk, &self.dirs[at], time) {
            Ok(done) => done,
            Err(error) => return self.fail(error),
        };
        for durable in done {
            let partition = &durable.partition;
            let key =
                ReplicaKey { topic: partition.topic_id, partition: partition.topic_partition.partition };
            self.leaving.durable(key, at, durable.end);
            // What the journal says of a log that has moved away is of the log that was left.
            let Some(hosted) = self.replicas.get_mut(&key).filter(|hosted| hosted.replica.directory == at)
            else {
                continue;
            };
            hosted.replica.journal_durable(durable.end, &mut self.outbox);
            self.carry_out(key);
        }
        let orders = self.journals[at].orders().into_iter();
        self.orders.extend(orders.map(|(partition, end)| (at, partition, end)));
    }

    fn write_back_some(&mut self, time: &mut HostTime<'_>) {
        let mut postponed = Vec::new();
        for _ in 0..4 {
            let Some((at, order, end)) = self.orders.pop_front() else { break };
            if time.random.one_in(4) {
                postponed.push((at, order, end));
                continue;
            }
            let key = ReplicaKey { topic: order.topic_id, partition: order.topic_partition.partition };
            if self.unreplayed.contains_key(&key) || self.is_departing(key) {
                // It is opened when the image is looked at; or its directory lacks what is ordered, and is there.
                postponed.push((at, order, end));
                continue;
            }
            if self.replica(key).is_none_or(|replica| replica.directory != at) {
                self.journals[at].written_back.push(order);
                continue;
            }
            if time.is(Mistake::AnswersOrdersEarly) {
                self.journals[at].written_back.push(Arc::clone(&order));
            }
            let name = Arc::clone(&order);
            let done =
                self.step(key, time.now, |replica, around| replica.write_back_as_ordered(name, end, around));
            if let Some(Err(error)) = done
                && error.is_passing()
            {
                time.faults.note(Fault::PostponedWriteBack);
                postponed.push((at, order, end));
            }
        }
        self.orders.extend(postponed);
    }
}
