//! One partition that is open on this worker: the state machine and the log, introduced to each other.
//!
//! core/partition decides offsets and who may be told; core/storage writes. Neither knows the other: this file turns a
//! batch's bytes into the words that the first understands, and opens a log with what both of them remember.
//!
//! Always true: between rounds, `log.end() == partition.log_end()`.
//!
//! In replica/: what brokers say to each other about their replicas.

pub mod arrivals;
pub mod behind;
pub mod bulk;
pub mod isr;
pub mod line;
pub mod manner;
#[cfg(test)]
mod tests;
pub mod throttles;
mod words;

pub use words::{Word, registered};

use crate::committer::{Covers, SyncRequest};
use crate::fetch_wait::{Committed, Waiters};
use crate::mailbox::{PartitionKey, Standing};
use crate::partition_worker::{Direct, ShareWaiters};
use crate::planted::Planted;
use crate::replay::{ReplayError, aside};
use barnabas_base::{BrokerId, DurationMs, LeaderEpoch, MonotonicMs, Offset, Sequence, TimestampMs};
use barnabas_metadata::config::BrokerConfig;
use barnabas_partition::{
    AbortedTxn, BatchInfo, BatchKind, Cut, Effect, LastBatch, LogEnds, Marker, Outcome, Partition,
    ProducerState, Refusal, Ticket,
};
use barnabas_storage::journal::{JournalPartition, LayOp, PartitionReplay};
use barnabas_storage::{
    AbortedTransaction, AppendBytes, Appended, Dirty, FilePool, Log, LogConfig, LogPlace, OpenFrom, Opened,
    ProducerEntry, StorageError, TailMemory,
};
use barnabas_wire::records::{Batch, BatchHeader, CONTROL_BYTES_MAX, ReadyBatch};
use bytes::Bytes;
use std::path::PathBuf;
use std::sync::Arc;
use throttles::{Throttled, Throttles};

/// An open partition. See the file's header.
#[derive(Debug)]
pub struct Replica {
    pub key: PartitionKey,
    /// Which of those that this worker has opened.
    pub number: u64,
    /// Its log directory's place in the node's list.
    pub directory: usize,
    pub log: Log,
    pub partition: Partition,
    pub waiters: Waiters,
    /// Fetches of followers: they wait for what is appended, durable here or not.
    pub follower_waiters: Waiters,
    /// Whom it follows, and in which epoch.
    pub following: Option<(BrokerId, LeaderEpoch)>,
    /// As its topic says.
    pub throttled: Throttled,
    /// It was led by this process.
    pub has_led: bool,
    /// When another broker was elected in this one's place.
    pub ceased_to_lead: Option<MonotonicMs>,
    /// What is about to be cut off. Until it is, nothing else happens to it.
    pub cutting: Option<Cutting>,
    /// Where damage was found in its log, and others have replicas of it.
    pub damaged_from: Option<Offset>,
    /// Since when that is asked for again, and whether it was in sync then.
    pub asks_again_since: Option<(MonotonicMs, bool)>,
    /// Its log was cut since a move to another directory began: the copy is of something else.
    pub was_cut: bool,
    /// Where its leader's log begins, as it last said.
    pub leaders_start: Offset,
    /// Of share groups.
    pub share_waiters: ShareWaiters,
    /// As the directory's journal names it.
    pub name: Arc<JournalPartition>,
    /// Batches that were given offsets in this round and are not yet written.
    pub round: Vec<AppendBytes>,
    pub round_bytes: usize,
    pub round_tickets: Vec<Ticket>,
    /// A ticket of this partition is with the committer.
    pub sync_in_flight: bool,
    /// How far that ticket's files reach, as long as no new segment was begun.
    pub covers: Option<Covers>,
    /// What the journal wants laid, up to where, until it is synced.
    pub laying: Option<(Arc<JournalPartition>, Offset)>,
    /// Large appends are on their way into the segment.
    pub direct: Option<Direct>,
    /// What closing wrote and is not synced yet.
    pub closing: Option<Dirty>,
    /// That is synced with the file system as a whole.
    pub closed_unsynced: bool,
    /// Aborted transactions whose markers are in this round.
    pub aborted: Vec<AbortedTransaction>,
    /// Producers wait until everything that is written is synced (`flush.messages`).
    pub must_flush: bool,
    /// `flush.messages` and `flush.ms`.
    pub flush_messages: i64,
    pub flush_after: DurationMs,
    /// Offsets written since the last sync, and since when.
    pub unflushed: i64,
    pub unflushed_since: Option<MonotonicMs>,
    /// Batches written since the last ticket was taken.
    pub unsynced_batches: u32,
    /// Stands in the list of those in which producers wait for `acks=all`.
    pub is_awaited: bool,
    /// Stands in the list of those that are synced when nobody asks.
    pub is_lazy: bool,
    /// Producers with `acks=1` and `acks=0` count everything below as written: a reader that asks after that must see it.
    pub promised_end: Offset,
    /// A reader waits until everything below is durable.
    pub reader_waits_for: Offset,
    /// Bytes appended of which waiting fetches were not told.
    pub unannounced_bytes: i64,
    /// The high watermark when they were last told.
    announced_to: Offset,
    /// The last stable offset when they were, and whether a transaction held it up.
    announced_stable: (Offset, bool),
    /// Where the newest producer snapshot stands.
    pub snapshot_at: Offset,
    /// Appended since the last checkpoint.
    pub changed: bool,
    /// Segments would go, were what is known of producers safe behind them.
    pub retention_waits: bool,
}

/// Part of a log that its leader does not have.
#[derive(Debug, Clone, Copy)]
pub struct Cutting {
    pub cut: Cut,
    /// The journal has durably noted it, so that no start brings back what is cut off.
    pub is_noted: bool,
    /// What is cut off is damaged: whole segments go, unread.
    pub heals: bool,
}

/// What the workers of a node share of replication.
#[derive(Debug)]
pub struct Replication {
    pub isr: isr::IsrDesk,
    pub throttles: Throttles,
    pub arrivals: arrivals::Arrivals,
    #[cfg_attr(not(debug_assertions), allow(dead_code, reason = "tests alone plant mistakes"))]
    pub planted: Planted,
}

impl Replication {
    pub fn new(config: &BrokerConfig) -> Self {
        Self {
            isr: isr::IsrDesk::default(),
            throttles: Throttles::new(config),
            arrivals: arrivals::Arrivals::default(),
            planted: Planted::from_env(),
        }
    }
}

/// What is needed to open a partition's log.
#[derive(Debug)]
pub struct Opening {
    pub key: PartitionKey,
    pub directory: usize,
    pub place: LogPlace,
    pub config: Arc<LogConfig>,
    /// `None`: nothing is on disk yet.
    pub from: Option<OpenFrom>,
    pub high_watermark: Option<Offset>,
    /// `producer.ids.per.partition.max`.
    pub producers_max: u32,
    /// What the journal holds of it, and the log may lack.
    pub waiting: Option<Arc<PartitionReplay>>,
    /// Where more of it may be kept that the log could not take before.
    pub aside: PathBuf,
}

impl Opening {
    /// The log with all that is known to be in it.
    fn open_log(&self, files: &mut FilePool, now: TimestampMs) -> Result<(Log, Opened), ReplayError> {
        let (place, config) = (self.place.clone(), self.config.clone());
        let (mut log, opened) = match self.from {
            None => (Log::create(place, config, Offset::ZERO), Opened::default()),
            Some(from) => Log::open(files, place, config, from, now)?,
        };
        // What the crash left unsynced is made durable before anybody is told of it.
        if let Some(dirty) = log.take_dirty() {
            dirty.sync(&**files.disk(), files.file_system()).map_err(StorageError::from)?;
            log.mark_synced(dirty.ticket);
        }
        aside::take_in(&mut log, files, &self.aside, now)?;
        if let Some(waiting) = &self.waiting {
            stage(&mut log, waiting)?;
            log.advance_start(self.from.map_or(Offset::ZERO, |from| from.log_start));
        }
        Ok((log, opened))
    }
}

impl Replica {
    /// Opens the log, recovers it where the last stop was unclean, takes in what the journal holds, and rebuilds what is known of
    /// producers.
    ///
    /// # Errors
    /// As [`Log::open`], or the log ends before what the journal goes on with: the partition cannot be served.
    pub fn open(
        opening: Opening,
        files: &mut FilePool,
        now: TimestampMs,
    ) -> Result<(Self, Opened), ReplayError> {
        let (mut log, opened) = opening.open_log(files, now)?;
        let Opening { key, directory, high_watermark, waiting, producers_max, .. } = opening;
        let place = log.place();
        let name =
            JournalPartition { topic_id: place.topic_id, topic_partition: place.topic_partition.clone() };
        let mut partition = Partition::remembering(producers_max);
        let snapshot_at = load(&mut log, &mut partition, files, high_watermark, Indexed::Laid)?;
        let announced_stable = stable(&partition);
        let announced_to = partition.high_watermark();
        let replica = Self {
            number: 0,
            key,
            directory,
            log,
            partition,
            waiters: Waiters::default(),
            follower_waiters: Waiters::default(),
            following: None,
            throttled: Throttled::default(),
            has_led: false,
            ceased_to_lead: None,
            cutting: None,
            damaged_from: None,
            asks_again_since: None,
            was_cut: false,
            leaders_start: Offset::ZERO,
            share_waiters: ShareWaiters::default(),
            name: Arc::new(name),
            round: Vec::new(),
            round_bytes: 0,
            round_tickets: Vec::new(),
            sync_in_flight: false,
            covers: None,
            laying: None,
            direct: None,
            closing: None,
            closed_unsynced: false,
            aborted: Vec::new(),
            must_flush: false,
            flush_messages: i64::MAX,
            flush_after: DurationMs(i64::MAX),
            unflushed: 0,
            unflushed_since: None,
            unsynced_batches: 0,
            is_awaited: false,
            is_lazy: false,
            promised_end: Offset::ZERO,
            reader_waits_for: Offset::ZERO,
            unannounced_bytes: 0,
            announced_to,
            announced_stable,
            snapshot_at,
            changed: waiting.is_some(),
            retention_waits: false,
        };
        Ok((replica, opened))
    }

    /// Whether the coordinator's word counts for this batch ([`barnabas_partition::Append::verified`]); a marker's version is noted.
    ///
    /// # Errors
    /// As [`Partition::is_verified`].
    pub fn stands(&self, batch: &mut BatchInfo, standing: Standing) -> Result<bool, Refusal> {
        match standing {
            Standing::Open => Ok(false),
            Standing::Waived => Ok(true),
            // It was made anew from its log: as if another broker led it now.
            Standing::Verified(word) if word.replica != self.number => Err(Refusal::NotLeader),
            Standing::Verified(word) => self.partition.is_verified(batch, &word.guard),
            Standing::Marker(version) => {
                if let BatchKind::Marker(marker) = &mut batch.kind {
                    marker.transaction_version = version;
                }
                Ok(true)
            }
        }
    }

    /// What the committer has to sync for this partition; `None` where nothing is unsynced or a ticket is out already.
    pub fn take_sync(&mut self, worker: usize) -> Option<SyncRequest> {
        if self.sync_in_flight {
            return None;
        }
        let dirty = self.log.take_dirty()?;
        self.sync_in_flight = true;
        let covers = Covers::new(dirty.ticket.end());
        self.covers = Some(covers.clone());
        let batches = std::mem::take(&mut self.unsynced_batches);
        Some(SyncRequest { worker, partition: self.key, dirty, covers, batches })
    }

    /// Notes a write: a sync that has not begun yet covers it too, unless it went into a new segment.
    pub fn note_written(&mut self, appended: &Appended, batches: usize) {
        self.unsynced_batches = self.unsynced_batches.saturating_add(batches as u32);
        self.unannounced_bytes += appended.bytes as i64;
        self.changed = true;
        self.note_in_files(appended.end, appended.rolled);
    }

    /// Everything below `end` is in the files, and since `rolled` in a new one.
    pub fn note_in_files(&mut self, end: Offset, rolled: Option<Offset>) {
        match &self.covers {
            Some(covers) if rolled.is_none() => covers.extend(end),
            _ => self.covers = None,
        }
    }

    /// Writes down what is known of producers, so that the next start need not read further back.
    ///
    /// # Errors
    /// The directory has failed.
    pub fn snapshot_producers(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        let at = self.log.end();
        if at == self.snapshot_at {
            return Ok(());
        }
        let entries: Vec<ProducerEntry> =
            self.partition.producer_snapshot().into_iter().map(entry_of).collect();
        self.log.write_producer_snapshot(files, at, &entries)?;
        self.snapshot_at = at;
        // It is a new file: a ticket that is out does not cover it.
        self.covers = None;
        Ok(())
    }

    /// Up to where segments may go. Where they would go further, what is known of producers is written down behind them, and this is
    /// asked again until that is safe ([`Log::producers_vouched`]). On a disk that has no room even for that they go at once.
    ///
    /// # Errors
    /// The directory has failed.
    pub fn may_go_below(
        &mut self,
        files: &mut FilePool,
        now: TimestampMs,
        is_short: bool,
    ) -> Result<Offset, StorageError> {
        self.retention_waits = false;
        let high_watermark = self.partition.high_watermark();
        let vouched = self.log.producers_vouched();
        if self.partition.producer_count() == 0 || high_watermark <= vouched {
            return Ok(high_watermark);
        }
        let Some(first) =
            self.log.would_begin_at(files, now, high_watermark)?.filter(|first| *first > vouched)
        else {
            return Ok(high_watermark);
        };
        if !self.log.has_snapshot_from(first) {
            // It may be there already, unsynced, as a process left it that was killed.
            self.snapshot_at = Offset::NONE;
            match self.snapshot_producers(files) {
                Err(error) if error.is_passing() && is_short => return Ok(high_watermark),
                written => written?,
            }
        }
        self.retention_waits = true;
        // The checkpoint has to pass it.
        self.changed = true;
        Ok(vouched)
    }

    /// Whether this batch, after what the round holds already, begins a new segment.
    pub fn rolls_with(&self, batch: &ReadyBatch, now: TimestampMs) -> bool {
        let header = batch.header();
        let last_offset = self.partition.log_end().plus(i64::from(header.last_offset_delta));
        self.rolls_at(batch.size_bytes(), last_offset, header.max_timestamp, now)
    }

    /// As [`Replica::rolls_with`], for a batch of that size that ends there.
    pub fn rolls_at(
        &self,
        bytes: usize,
        last_offset: Offset,
        max_timestamp: TimestampMs,
        now: TimestampMs,
    ) -> bool {
        let before = self.round_bytes as u64 + self.log.unlaid_bytes();
        let bytes = u32::try_from(before + bytes as u64).unwrap_or(u32::MAX);
        self.log.is_on_disk() && self.log.roll_is_due(bytes, last_offset, max_timestamp, now)
    }

    /// After the log was cut: what is left, as if it had just been opened. It goes on following.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn reload(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        let mut partition = Partition::remembering(self.partition.producers_max());
        let high_watermark = Some(self.partition.high_watermark());
        self.snapshot_at = load(&mut self.log, &mut partition, files, high_watermark, Indexed::All)?;
        // Nobody waits on a replica that follows.
        partition.become_follower(self.partition.leader_epoch(), &mut Vec::new());
        self.partition = partition;
        self.announced_stable = stable(&self.partition);
        self.announced_to = self.partition.high_watermark();
        self.unannounced_bytes = 0;
        let end = self.log.end();
        self.promised_end = self.promised_end.min(end);
        self.reader_waits_for = self.reader_waits_for.min(end);
        Ok(())
    }

    /// Lets everybody who waits look again: it leads no more, or is led otherwise.
    pub fn wake_all(&mut self) {
        self.waiters.wake_all();
        self.follower_waiters.wake_all();
        self.share_waiters.wake_all();
    }

    /// Passes on to waiting fetches that more can be read: the high watermark has moved.
    pub fn announce(&mut self) {
        // What was appended and is not safe yet is announced once it is. Which bytes those are nobody counts: a share of the offsets.
        let (to, end) = (self.partition.high_watermark(), self.partition.log_end());
        let (safe, all) = (to.get() - self.announced_to.get(), end.get() - self.announced_to.get());
        self.announced_to = to;
        let share = || i128::from(self.unannounced_bytes) * i128::from(safe) / i128::from(all.max(1));
        let bytes = match safe {
            ..=0 => 0,
            _ if to >= end => self.unannounced_bytes.max(1),
            _ => i64::try_from(share()).unwrap_or(i64::MAX).max(1),
        };
        self.unannounced_bytes = self.unannounced_bytes.saturating_sub(bytes).max(0);
        let now = stable(&self.partition);
        let (before, was_held_up) = std::mem::replace(&mut self.announced_stable, now);
        let committed = match (now.0 > before, was_held_up) {
            (false, _) => Committed::Nothing,
            (true, false) => Committed::Bytes(bytes),
            (true, true) => Committed::Unknown,
        };
        if bytes == 0 && committed != Committed::Unknown {
            return;
        }
        if !self.waiters.is_empty() {
            self.waiters.arrived(bytes, committed);
        }
        if !self.share_waiters.is_empty() {
            self.share_waiters.wake_one_each();
        }
    }
}

/// The last stable offset, and whether a transaction holds it up.
fn stable(partition: &Partition) -> (Offset, bool) {
    (partition.last_stable(), partition.last_stable() < partition.high_watermark())
}

/// What the log lacks of it is in memory from then on, as if it had just been appended; the journal holds it already.
fn stage(log: &mut Log, waiting: &PartitionReplay) -> Result<(), ReplayError> {
    let mut batches = Vec::new();
    for step in waiting.steps(log.end())? {
        match step {
            LayOp::Append { records, .. } => batches.push(records),
            LayOp::Truncate { .. } | LayOp::Restart { .. } | LayOp::Remove => {
                unreachable!("what does more than append is replayed at the start (replay.rs)")
            }
        }
    }
    log.stage(&mut TailMemory::default(), &batches)?;
    Ok(())
}

/// Which aborted transactions the log's index holds already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Indexed {
    All,
    /// Those whose markers are in segments.
    Laid,
}

/// Tells the state machine what the log holds; returns where the producer snapshot stood.
fn load(
    log: &mut Log,
    partition: &mut Partition,
    files: &mut FilePool,
    high_watermark: Option<Offset>,
    indexed: Indexed,
) -> Result<Offset, StorageError> {
    let end = log.end();
    let laid_end = log.laid_end();
    let (from, entries) = if log.is_on_disk() {
        log.read_producer_snapshot(files, end)?.unwrap_or((log.first_segment_base(), Vec::new()))
    } else {
        (laid_end, Vec::new())
    };
    partition.restore(entries.into_iter().map(state_of));
    // Markers that are in memory alone stand in no index of aborted transactions yet.
    let mut aborted = Vec::new();
    if from < end {
        let mut replay = |bytes: Bytes| {
            if let Ok(header) = BatchHeader::parse(&bytes)
                && header.has_producer_id()
            {
                let ended = partition.replay(header.base_offset, &batch_info(&header, || bytes.clone()));
                aborted.extend(ended.filter(|ended| ended.last >= laid_end && indexed == Indexed::Laid));
            }
        };
        log.scan_headers(files, from, end, &mut replay)?;
    }
    for ended in aborted {
        log.append_aborted(files, entry_of_aborted(ended))?;
    }
    let high_watermark = high_watermark.unwrap_or(log.start());
    partition.open(LogEnds { log_start: log.start(), log_end: end, high_watermark });
    Ok(from)
}

/// The words of a batch that the state machine understands.
///
/// `whole` gives the batch's bytes, asked for only where it is a control batch.
pub fn batch_info(header: &BatchHeader, whole: impl FnOnce() -> Bytes) -> BatchInfo {
    BatchInfo {
        offsets: header.last_offset_delta.wrapping_add(1),
        max_timestamp: header.max_timestamp,
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
        base_sequence: header.base_sequence,
        is_transactional: header.attributes.is_transactional(),
        kind: if header.attributes.is_control() { control_kind(whole()) } else { BatchKind::Data },
    }
}

/// Kafka `EndTransactionMarker`: key = version i16, type i16 (0 abort, 1 commit); value = version i16, coordinator epoch
/// i32.
fn control_kind(bytes: Bytes) -> BatchKind {
    let marker = || {
        let records = Batch::new(bytes).ok()?.records_within(CONTROL_BYTES_MAX).ok()?;
        let record = records.iter().next()?.ok()?;
        let outcome = match record.key?.get(2..4)? {
            [0, 0] => Outcome::Abort,
            [0, 1] => Outcome::Commit,
            _ => return None,
        };
        let epoch = record.value?.get(2..6)?.first_chunk::<4>().map(|word| i32::from_be_bytes(*word))?;
        Some(Marker { outcome, coordinator_epoch: epoch.into(), transaction_version: 0 })
    };
    marker().map_or(BatchKind::OtherControl, BatchKind::Marker)
}

pub fn entry_of(state: ProducerState) -> ProducerEntry {
    // Kafka's words for "no batch yet".
    let last = state.last_batch.unwrap_or(LastBatch {
        last_sequence: Sequence::NONE,
        last_offset: Offset::NONE,
        offset_delta: 0,
    });
    ProducerEntry {
        producer_id: state.producer_id,
        epoch: state.producer_epoch,
        last_sequence: last.last_sequence,
        last_offset: last.last_offset,
        offset_delta: last.offset_delta,
        timestamp: state.last_timestamp,
        coordinator_epoch: state.coordinator_epoch,
        current_txn_first_offset: state.txn_first.unwrap_or(Offset::NONE),
    }
}

fn state_of(entry: ProducerEntry) -> ProducerState {
    let last_batch = LastBatch {
        last_sequence: entry.last_sequence,
        last_offset: entry.last_offset,
        offset_delta: entry.offset_delta,
    };
    let first = entry.current_txn_first_offset;
    ProducerState {
        producer_id: entry.producer_id,
        producer_epoch: entry.epoch,
        coordinator_epoch: entry.coordinator_epoch,
        last_timestamp: entry.timestamp,
        txn_first: (first != Offset::NONE).then_some(first),
        last_batch: (entry.last_sequence != Sequence::NONE).then_some(last_batch),
    }
}

/// The words of the transaction index.
pub fn entry_of_aborted(aborted: AbortedTxn) -> AbortedTransaction {
    AbortedTransaction {
        producer_id: aborted.producer_id,
        first_offset: aborted.first,
        last_offset: aborted.last,
        last_stable_offset: aborted.last_stable,
    }
}

/// A place for effects that is reused from call to call.
pub type Effects = Vec<Effect>;
