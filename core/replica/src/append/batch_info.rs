//! A batch's header in the words of core/partition, which does not know Kafka's bytes.
//!
//! A control batch is read as a whole, since its kind stands in its record; any other batch is not looked into.
//!
//! Neighbours: append and fetch in shell/broker/src/worker/partition_worker; `opening`, which replays a log.

use barnabas_partition::{BatchInfo, BatchKind, BatchSequence, Marker, Outcome};
use barnabas_wire::records::{Batch, BatchHeader, CONTROL_BYTES_MAX};
use bytes::Bytes;

/// What the state machine needs to know of a batch.
///
/// `whole` gives the batch's bytes. It is called for control batches alone.
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

/// Which batch of its producer it is.
pub fn batch_sequence(header: &BatchHeader) -> BatchSequence {
    let BatchHeader { producer_id, producer_epoch, base_sequence, .. } = *header;
    BatchSequence { producer_id, producer_epoch, base_sequence }
}

/// Kafka `EndTransactionMarker`: key = version i16, type i16 (0 abort, 1 commit); value = version i16, coordinator
/// epoch i32.
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
