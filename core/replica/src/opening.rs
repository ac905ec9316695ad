//! Opening a partition: its log is recovered, what only the journal holds is staged, and the state machine learns what
//! the log says.
//!
//! The order, each step durable before the next rests on it:
//! 1. the log is recovered from its files and the directory's checkpoints, and what that left unsynced is synced
//! 2. what a start before had to keep aside is appended ([`quarantine`])
//! 3. what only the journal holds is staged into the log's memory
//! 4. the newest producer snapshot is read, and the batches after it are replayed
//! 5. a log that ends before what was acknowledged is refused
//!
//! Always true: what is replayed twice changes nothing, so that a snapshot may be older than the log's end.
//!
//! Neighbours: shell/broker/src/worker/partition_worker/lifecycle/opening.rs, which finds the directory and carries the
//! verdict out; `replay`, which comes before for logs that were truncated; `stays`, which says what is of an earlier
//! log; core/storage's `log/open.rs`, which recovers the files.

pub(crate) mod replay;
pub(crate) mod stays;

use std::sync::Arc;

use barnabas_base::{Offset, TimestampMs, TopicId, TopicPartition};
use barnabas_partition::{LogEnds, Partition, ReplicaKey};
use barnabas_storage::journal::{JournalError, JournalPartition, PartitionReplay, WriteBackOp};
use barnabas_storage::{
    DiskErrorKind, FilePool, Log, LogConfig, LogDir, LogPlace, OpenFrom, Opened, StorageError, TailMemory,
    quarantine,
};
use barnabas_wire::records::BatchHeader;
use bytes::Bytes;

use crate::replica::producer_snapshot::{aborted_entry, producer_state};
use crate::{
    Flush, JournalState, LeaderHistory, Readers, Repair, Replica, Round, SyncState, Upkeep, batch_info,
};

/// A partition that is to be opened.
#[derive(Debug)]
pub struct Opening<'a> {
    pub key: ReplicaKey,
    /// Another one for each replica that the caller opens ([`Replica::number`]).
    pub number: u64,
    /// The log directory, by its place in the broker's list.
    pub directory: usize,
    pub place: LogPlace,
    pub config: Arc<LogConfig>,
    /// `None`: nothing is on disk, and the partition begins here.
    pub checkpointed: Option<Checkpointed>,
    /// `producer.ids.per.partition.max`.
    pub producers_max: u32,
    /// What the journal holds of the partition and the log may lack. It only appends.
    pub unreplayed: Option<&'a PartitionReplay>,
    /// Other brokers have replicas: damage that leaves the end of the log known is repaired from one of them
    /// ([`Opened::damaged`], [`Replica::note_damage`]).
    pub has_other_replicas: bool,
    pub now: TimestampMs,
}

/// What the checkpoint files of a directory say of a partition in it.
#[derive(Debug, Clone, Copy)]
pub struct Checkpointed {
    pub from: OpenFrom,
    pub high_watermark: Option<Offset>,
    /// The log reaches at least this far, after whatever stop.
    pub held_end: Option<Offset>,
}

impl Checkpointed {
    /// Of the log of that topic's partition.
    pub fn read(log_dir: &mut LogDir, name: &TopicPartition, topic: TopicId) -> Self {
        log_dir.take_written_back(name, topic);
        let (high_watermark, held_end) = (log_dir.high_watermark(name), log_dir.held_end(name));
        Self { from: log_dir.open_from(name), high_watermark, held_end }
    }
}

/// What opening found beside the replica, for the operator.
#[derive(Debug, Default)]
pub struct OpenReport {
    pub log: Opened,
    /// What an earlier start had kept aside is in the log now.
    pub took_in: bool,
}

/// Why a partition, or a directory's journal, cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The journal cannot be read; or the log ends before what the journal goes on with.
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// What becomes of a partition that could not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenVerdict {
    /// Nothing is wrong with it: the next request may find it open.
    Retry,
    /// Its directory has failed, with all that is in it.
    DirectoryFailed,
    /// It stays offline until the next start.
    Offline,
    /// As [`OpenVerdict::Offline`]; and as the journal must not be held by it for good, what that holds of the
    /// partition is kept aside ([`quarantine::keep`]).
    Quarantine,
}

impl OpenError {
    /// What was written is not there, or is not what was written: counted with the damage that readers find.
    pub fn is_damage(&self) -> bool {
        use StorageError::{BadFile, Damaged, EndsEarly};
        matches!(
            self,
            Self::Journal(JournalError::Missing { .. })
                | Self::Storage(Damaged { .. } | EndsEarly { .. } | BadFile { .. })
        )
    }

    /// `has_unreplayed`: the journal holds something of the partition.
    ///
    /// A failed disk is no fault of the partition. A file that may not be read or written is no fault of the disk. A
    /// failed sync is final for the directory: what it covered may be gone, while the page cache still shows it to the
    /// next start.
    pub fn verdict(&self, has_unreplayed: bool) -> OpenVerdict {
        let of_partition = if has_unreplayed { OpenVerdict::Quarantine } else { OpenVerdict::Offline };
        match self {
            Self::Storage(error) if error.is_passing() => OpenVerdict::Retry,
            Self::Storage(StorageError::Disk(disk)) if disk.kind == DiskErrorKind::Denied => of_partition,
            Self::Storage(StorageError::Disk(_) | StorageError::Failed(_)) => OpenVerdict::DirectoryFailed,
            _ => of_partition,
        }
    }
}

impl Replica {
    /// Opens a partition with all that its files and the journal hold. [`Replica::take_role`] follows.
    ///
    /// # Errors
    /// The partition cannot be served: [`OpenError::verdict`].
    pub fn open(opening: Opening<'_>, files: &mut FilePool) -> Result<(Self, OpenReport), OpenError> {
        let (log, report) = opening.recover(files)?;
        let held_end = opening.checkpointed.and_then(|known| known.held_end);
        let replica = Self::with_log(log, opening, files)?;
        // Acknowledged batches were in the log or in the journal. Where neither has it, one of them was lost or is an
        // old copy.
        let end = replica.log.end();
        if let Some(acknowledged) = held_end.filter(|held| end < *held) {
            return Err(StorageError::EndsEarly { dir: replica.log.place().dir(), end, acknowledged }.into());
        }
        Ok((replica, report))
    }

    /// Stages what only the journal holds into a log that was recovered, and rebuilds the state of producers.
    fn with_log(mut log: Log, opening: Opening<'_>, files: &mut FilePool) -> Result<Self, OpenError> {
        let Opening { key, number, directory, place, checkpointed, producers_max, unreplayed, .. } = opening;
        if let Some(unreplayed) = unreplayed {
            stage(&mut log, unreplayed)?;
            log.advance_start(checkpointed.map_or(Offset::ZERO, |known| known.from.log_start));
        }
        let name = JournalPartition { topic_id: place.topic_id, topic_partition: place.topic_partition };
        let mut partition = Partition::remembering(producers_max);
        let high_watermark = checkpointed.and_then(|known| known.high_watermark);
        let snapshot_at = load(&mut log, &mut partition, files, high_watermark, Indexed::InSegments)?;
        Ok(Self {
            key,
            number,
            directory,
            name: Arc::new(name),
            readers: Readers::new(&partition),
            log,
            partition,
            following: None,
            history: LeaderHistory::default(),
            leader_start: Offset::ZERO,
            truncation: None,
            was_truncated: false,
            repair: Repair::default(),
            round: Round::default(),
            sync: SyncState::default(),
            flush: Flush::default(),
            journal: JournalState::default(),
            upkeep: Upkeep { snapshot_at, is_changed: unreplayed.is_some(), retention_waits: false },
        })
    }

    /// Reads the state again from a log that was truncated. The replica goes on following.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn reload(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        self.load_again(files, Indexed::All)
    }

    /// Reads the state again from a log in which batches from `from` up to `to` were mended. They may have been
    /// unreadable when producers and aborted transactions were derived from it: a transaction seemed to begin behind
    /// them.
    ///
    /// # Errors
    /// As [`Replica::reload`].
    pub(crate) fn reload_mended(
        &mut self,
        files: &mut FilePool,
        (from, to): (Offset, Offset),
    ) -> Result<(), StorageError> {
        let mut has_producers = false;
        let mut look = |bytes: Bytes| {
            has_producers |= BatchHeader::parse(&bytes).is_ok_and(|header| header.has_producer_id());
        };
        self.log.scan_headers(files, from, to, &mut look)?;
        if !has_producers {
            return self.reload(files);
        }
        self.log.derive_again(files, from)?;
        self.load_again(files, Indexed::InSegments)
    }

    fn load_again(&mut self, files: &mut FilePool, indexed: Indexed) -> Result<(), StorageError> {
        let mut partition = Partition::remembering(self.partition.producers_max());
        let high_watermark = Some(self.partition.high_watermark());
        self.upkeep.snapshot_at = load(&mut self.log, &mut partition, files, high_watermark, indexed)?;
        // No producer waits on a replica that follows: there are no effects.
        partition.become_follower(self.partition.leader_epoch(), &mut Vec::new());
        self.partition = partition;
        self.readers.restart(&self.partition, self.log.end());
        Ok(())
    }
}

impl Opening<'_> {
    /// The log with all that its files hold, and what was kept aside.
    fn recover(&self, files: &mut FilePool) -> Result<(Log, OpenReport), StorageError> {
        let (place, config) = (self.place.clone(), self.config.clone());
        let LogPlace { root, topic_partition, topic_id, .. } = &self.place;
        let aside = quarantine::path(root, topic_partition, *topic_id);
        let (mut log, opened) = match self.checkpointed {
            None => (Log::create(place, config, Offset::ZERO), Opened::default()),
            Some(Checkpointed { mut from, .. }) => {
                from.is_repairable = self.has_other_replicas;
                if let Some(unreplayed) = self.unreplayed {
                    from.recovery_point = from.recovery_point.max(unreplayed.synced_below());
                    from.journal_end = unreplayed.appends_to();
                }
                // Else what is damaged before it would pass for a torn tail.
                let goes_on_at = quarantine::goes_on_at(&**files.disk(), &aside)?;
                from.recovery_point = from.recovery_point.max(goes_on_at.unwrap_or(Offset::ZERO));
                Log::open(files, place, config, from, self.now)?
            }
        };
        // What the crash left unsynced is durable before any client sees it.
        if let Some(dirty) = log.take_dirty() {
            dirty.sync(&**files.disk(), files.file_system())?;
            log.mark_synced(dirty.ticket);
        }
        let took_in = quarantine::take_in(&mut log, files, &aside, self.now)?;
        Ok((log, OpenReport { log: opened, took_in }))
    }
}

/// Notes in the checkpoints that offsets inside of the log have no segment, so that the next start does not take that
/// for a loss.
///
/// # Errors
/// The checkpoints cannot be written: the next start may refuse the partition.
pub fn note_gaps(log: &Log, opened: &Opened, log_dir: &mut LogDir) -> Result<(), StorageError> {
    // What is missing at the front shows in nothing any more.
    if !opened.gaps.iter().any(|(_, to)| *to > log.first_segment_base()) {
        return Ok(());
    }
    let name = &log.place().topic_partition;
    let cleaned = log_dir.cleaner_point(name).unwrap_or(log.start());
    log_dir.set_cleaner_point(name.clone(), Some(cleaned));
    log_dir.write_checkpoints()
}

/// Puts what the log lacks into its memory, as if it had just been appended. The journal holds it already.
fn stage(log: &mut Log, unreplayed: &PartitionReplay) -> Result<(), OpenError> {
    let mut batches = Vec::new();
    for step in unreplayed.steps(log.end())? {
        match step {
            WriteBackOp::Append { records, .. } => batches.push(records),
            WriteBackOp::Truncate { .. } | WriteBackOp::Restart { .. } | WriteBackOp::Remove => {
                unreachable!("the start replays what does more than append, before any partition is opened")
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
    InSegments,
}

/// Rebuilds the state machine from the log. Returns where the producer snapshot stood.
fn load(
    log: &mut Log,
    partition: &mut Partition,
    files: &mut FilePool,
    high_watermark: Option<Offset>,
    indexed: Indexed,
) -> Result<Offset, StorageError> {
    let end = log.end();
    let segments_end = log.segment_end();
    let (from, entries) = if log.is_on_disk() {
        log.read_producer_snapshot(files, end)?.unwrap_or((log.first_segment_base(), Vec::new()))
    } else {
        (segments_end, Vec::new())
    };
    partition.restore(entries.into_iter().map(producer_state));
    // Markers that are in memory alone stand in no index of aborted transactions yet.
    let mut aborted = Vec::new();
    if from < end {
        let mut replay = |bytes: Bytes| {
            if let Ok(header) = BatchHeader::parse(&bytes)
                && header.has_producer_id()
            {
                let ended = partition.replay(header.base_offset, &batch_info(&header, || bytes.clone()));
                aborted.extend(
                    ended.filter(|ended| ended.last >= segments_end && indexed == Indexed::InSegments),
                );
            }
        };
        log.scan_headers(files, from, end, &mut replay)?;
    }
    for ended in aborted {
        log.append_aborted(files, aborted_entry(ended))?;
    }
    let high_watermark = high_watermark.unwrap_or(log.start());
    partition.open(LogEnds { log_start: log.start(), log_end: end, high_watermark });
    Ok(from)
}
