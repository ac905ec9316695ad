//! `%020d.timeindex`: up to which offset which timestamp was the largest.
//!
//! An entry is 12 bytes: a timestamp (i64) and an offset relative to the segment's base (i32); both rise from entry to
//! entry. Source: Kafka `TimeIndex`; drawn in docs/format/indexes.md.

use barnabas_base::{Offset, TimestampMs};

use crate::segment::LargestTimestamp;
use crate::segment::index_file::IndexEntries;

pub(crate) const ENTRY_BYTES: usize = 12;

pub(crate) type TimeEntries = IndexEntries<ENTRY_BYTES>;

impl LargestTimestamp {
    /// The caller has checked that the segment can index the offset.
    pub(crate) fn encode(self, base: Offset) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..8].copy_from_slice(&self.timestamp.0.to_be_bytes());
        bytes[8..].copy_from_slice(&(self.offset.since(base) as i32).to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: [u8; ENTRY_BYTES], base: Offset) -> Self {
        let timestamp = i64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"));
        let relative = i32::from_be_bytes(bytes[8..].try_into().expect("four bytes"));
        Self { timestamp: TimestampMs(timestamp), offset: base.plus(i64::from(relative)) }
    }
}
