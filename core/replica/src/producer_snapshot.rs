//! Producers' state on disk: when a snapshot is written, and how far retention may go without one.
//!
//! Kafka writes a snapshot beside every segment. A start reads the newest one and replays the log from there on.
//!
//! Always true: retention removes no segment that a start would need for the state of a producer, but on a disk that has no room for the
//! snapshot that would replace it.
//!
//! Neighbours: core/storage's `producer_snapshot`; shell/broker/src/partition_worker/upkeep.rs, which retains.

use barnabas_base::{Offset, Sequence, TimestampMs};
use barnabas_partition::{AbortedTxn, LastBatch, ProducerState};
use barnabas_storage::{AbortedTransaction, FilePool, ProducerEntry, StorageError};

use crate::{Effect, Replica};

impl Replica {
    /// Writes a snapshot at the log's end, unless the newest one stands there.
    ///
    /// # Errors
    /// The directory has failed, or it is full.
    pub fn snapshot_producers(
        &mut self,
        files: &mut FilePool,
        effects: &mut Vec<Effect>,
    ) -> Result<(), StorageError> {
        let at = self.log.end();
        if at == self.upkeep.snapshot_at {
            return Ok(());
        }
        self.log.write_producer_snapshot(files, at, &self.producer_entries())?;
        self.upkeep.snapshot_at = at;
        // It is a new file: a sync request that is under way does not cover it.
        self.sync.forget_covered(effects);
        Ok(())
    }

    /// Up to where retention may remove segments.
    ///
    /// Where that is beyond the newest snapshot that a start can rely on ([`Log::producers_vouched`]), a snapshot is written first, and
    /// retention has to be asked again once it is safe ([`Upkeep::retention_waits`](crate::Upkeep::retention_waits)). A disk that has no
    /// room even for a snapshot is relieved at once (`is_short`).
    ///
    /// [`Log::producers_vouched`]: barnabas_storage::Log::producers_vouched
    ///
    /// # Errors
    /// The directory has failed.
    pub fn retention_limit(
        &mut self,
        files: &mut FilePool,
        now: TimestampMs,
        is_short: bool,
        effects: &mut Vec<Effect>,
    ) -> Result<Offset, StorageError> {
        self.upkeep.retention_waits = false;
        let high_watermark = self.partition.high_watermark();
        let vouched = self.log.producers_vouched();
        if self.partition.producer_count() == 0 || high_watermark <= vouched {
            return Ok(high_watermark);
        }
        let first = self.log.would_begin_at(files, now, high_watermark)?;
        let Some(first) = first.filter(|first| *first > vouched) else {
            return Ok(high_watermark);
        };
        if !self.log.has_snapshot_from(first) {
            // It may be there already, unsynced, as a process left it that was killed.
            self.upkeep.snapshot_at = Offset::NONE;
            match self.snapshot_producers(files, effects) {
                Err(error) if error.is_passing() && is_short => return Ok(high_watermark),
                written => written?,
            }
        }
        self.upkeep.retention_waits = true;
        // The checkpoint has to pass it.
        self.upkeep.is_changed = true;
        Ok(vouched)
    }

    /// What a snapshot at the log's end holds.
    pub fn producer_entries(&self) -> Vec<ProducerEntry> {
        self.partition.producer_snapshot().into_iter().map(producer_entry).collect()
    }
}

/// One producer, as a snapshot file holds it.
pub fn producer_entry(state: ProducerState) -> ProducerEntry {
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

pub(crate) fn producer_state(entry: ProducerEntry) -> ProducerState {
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

/// An aborted transaction, as a transaction index holds it.
pub fn aborted_entry(aborted: AbortedTxn) -> AbortedTransaction {
    AbortedTransaction {
        producer_id: aborted.producer_id,
        first_offset: aborted.first,
        last_offset: aborted.last,
        last_stable_offset: aborted.last_stable,
    }
}
