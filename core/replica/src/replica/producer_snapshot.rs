//! Producers' state on disk, in the words of core/storage and back.
//!
//! Kafka writes a snapshot beside every segment. A start reads the newest one and replays the log from there on.
//!
//! Neighbours: core/storage's `producer_snapshot`; `append`, which writes one at the end of a segment; `retention`.

use barnabas_base::{Offset, Sequence};
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
pub(crate) fn aborted_entry(aborted: AbortedTxn) -> AbortedTransaction {
    AbortedTransaction {
        producer_id: aborted.producer_id,
        first_offset: aborted.first,
        last_offset: aborted.last,
        last_stable_offset: aborted.last_stable,
    }
}
