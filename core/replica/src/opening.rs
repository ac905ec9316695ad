//! What a log says to the state machine when it is opened, and again when it was truncated.
//!
//! A log that was just opened lacks what only the journal holds: that is staged into its memory first. Then the newest producer snapshot
//! is read, and the batches after it are replayed.
//!
//! Always true: what is replayed twice changes nothing, so that a snapshot may be older than the log's end.
//!
//! Neighbours: shell/broker/src/partition_worker.rs, which opens the files; core/storage's `log/open.rs`, which recovers them.

use std::sync::Arc;

use barnabas_base::Offset;
use barnabas_partition::{LogEnds, Partition, ReplicaKey};
use barnabas_storage::journal::{JournalError, JournalPartition, LayOp, PartitionReplay};
use barnabas_storage::{FilePool, Log, StorageError, TailMemory};
use barnabas_wire::records::BatchHeader;
use bytes::Bytes;

use crate::producer_snapshot::{aborted_entry, producer_state};
use crate::{
    Flush, JournalState, LeaderHistory, Readers, Repair, Replica, Round, SyncState, Upkeep, batch_info,
};

/// A log whose files are open, and what is known of it beside.
#[derive(Debug)]
pub struct Opening<'a> {
    pub key: ReplicaKey,
    /// The log directory, by its place in the broker's list.
    pub directory: usize,
    /// Recovered, and synced as far as it reaches.
    pub log: Log,
    /// From the directory's checkpoint file.
    pub high_watermark: Option<Offset>,
    /// `producer.ids.per.partition.max`.
    pub producers_max: u32,
    /// What the journal holds of the partition and the log may lack.
    pub unreplayed: Option<&'a PartitionReplay>,
    /// From the directory's checkpoint file: where the log starts once that is staged.
    pub log_start: Offset,
}

/// Why a partition cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The log ends before what the journal goes on with.
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Replica {
    /// Stages what only the journal holds and rebuilds the state of producers.
    ///
    /// # Errors
    /// The partition cannot be served.
    pub fn open(opening: Opening<'_>, files: &mut FilePool) -> Result<Self, OpenError> {
        let Opening { key, directory, mut log, high_watermark, producers_max, unreplayed, log_start } =
            opening;
        if let Some(unreplayed) = unreplayed {
            stage(&mut log, unreplayed)?;
            log.advance_start(log_start);
        }
        let place = log.place();
        let name =
            JournalPartition { topic_id: place.topic_id, topic_partition: place.topic_partition.clone() };
        let mut partition = Partition::remembering(producers_max);
        let snapshot_at = load(&mut log, &mut partition, files, high_watermark, Indexed::InSegments)?;
        Ok(Self {
            key,
            number: 0,
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
        let mut partition = Partition::remembering(self.partition.producers_max());
        let high_watermark = Some(self.partition.high_watermark());
        self.upkeep.snapshot_at = load(&mut self.log, &mut partition, files, high_watermark, Indexed::All)?;
        // No producer waits on a replica that follows: there are no effects.
        partition.become_follower(self.partition.leader_epoch(), &mut Vec::new());
        self.partition = partition;
        self.readers.restart(&self.partition, self.log.end());
        Ok(())
    }
}

/// Puts what the log lacks into its memory, as if it had just been appended. The journal holds it already.
fn stage(log: &mut Log, unreplayed: &PartitionReplay) -> Result<(), OpenError> {
    let mut batches = Vec::new();
    for step in unreplayed.steps(log.end())? {
        match step {
            LayOp::Append { records, .. } => batches.push(records),
            LayOp::Truncate { .. } | LayOp::Restart { .. } | LayOp::Remove => {
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
    let segments_end = log.laid_end();
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
