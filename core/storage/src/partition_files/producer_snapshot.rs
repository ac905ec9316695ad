//! `%020d.snapshot`: what a partition remembered of its producers when its log ended at that offset.
//!
//! Version (i16, 1), CRC-32C of all that follows (u32), count (i32), 46 bytes per producer. Source: Kafka
//! `ProducerStateManager.writeSnapshot`, `ProducerSnapshot.json`; drawn in docs/format/producer-snapshot.md.

use barnabas_base::{CoordinatorEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};
use barnabas_wire::records::crc32c;

const VERSION: i16 = 1;
/// Version and checksum.
const HEAD_BYTES: usize = 6;
const ENTRY_BYTES: usize = 46;

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

/// The size of a snapshot of so many producers.
pub(crate) fn bytes_of(producers: usize) -> usize {
    HEAD_BYTES + 4 + producers * ENTRY_BYTES
}

pub(crate) fn encode(entries: &[ProducerEntry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(bytes_of(entries.len()));
    bytes.extend_from_slice(&VERSION.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&(entries.len() as i32).to_be_bytes());
    for entry in entries {
        bytes.extend_from_slice(&entry.producer_id.get().to_be_bytes());
        bytes.extend_from_slice(&entry.epoch.get().to_be_bytes());
        bytes.extend_from_slice(&entry.last_sequence.get().to_be_bytes());
        bytes.extend_from_slice(&entry.last_offset.get().to_be_bytes());
        bytes.extend_from_slice(&entry.offset_delta.to_be_bytes());
        bytes.extend_from_slice(&entry.timestamp.0.to_be_bytes());
        bytes.extend_from_slice(&entry.coordinator_epoch.get().to_be_bytes());
        bytes.extend_from_slice(&entry.current_txn_first_offset.get().to_be_bytes());
    }
    let crc = crc32c(&bytes[HEAD_BYTES..]);
    bytes[2..HEAD_BYTES].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// `None`: this is no snapshot, or not a whole one.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<ProducerEntry>> {
    let body = bytes.get(HEAD_BYTES..)?;
    let crc = u32::from_be_bytes(bytes[2..HEAD_BYTES].try_into().ok()?);
    if bytes[..2] != VERSION.to_be_bytes() || crc32c(body) != crc {
        return None;
    }
    let count = i32::from_be_bytes(body.get(..4)?.try_into().ok()?);
    let (entries, rest) = body[4..].as_chunks::<ENTRY_BYTES>();
    if !rest.is_empty() || entries.len() as i64 != i64::from(count) {
        return None;
    }
    Some(entries.iter().map(decode_entry).collect())
}

fn decode_entry(bytes: &[u8; ENTRY_BYTES]) -> ProducerEntry {
    let long = |at: usize| i64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let int = |at: usize| i32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    ProducerEntry {
        producer_id: ProducerId(long(0)),
        epoch: ProducerEpoch(i16::from_be_bytes([bytes[8], bytes[9]])),
        last_sequence: Sequence(int(10)),
        last_offset: Offset(long(14)),
        offset_delta: int(22),
        timestamp: TimestampMs(long(26)),
        coordinator_epoch: CoordinatorEpoch(int(34)),
        current_txn_first_offset: Offset(long(38)),
    }
}
