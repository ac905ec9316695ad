//! `%020d.snapshot`: what a partition remembered of its producers when its log ended at that offset.

use barnabas_base::{CoordinatorEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

/// One producer's newest batch, as the snapshot file keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerEntry {
    pub producer_id: ProducerId,
    pub epoch: ProducerEpoch,
    pub last_sequence: Sequence,
    pub last_offset: Offset,
    /// Last offset minus first offset of the newest batch.
    pub offset_delta: i32,
    pub timestamp: TimestampMs,
    pub coordinator_epoch: CoordinatorEpoch,
    /// −1: no transaction is open.
    pub current_txn_first_offset: Offset,
}
