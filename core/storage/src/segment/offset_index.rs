//! `%020d.index`: which offset lies at which byte of the segment, about every `index.interval.bytes`.
//!
//! An entry is 8 bytes: the last offset of a batch, relative to the segment's base (i32), and the byte at which that
//! batch begins (i32). Source: Kafka `OffsetIndex`; drawn in docs/format/indexes.md.

use barnabas_base::Offset;

use crate::segment::index_file::IndexEntries;

pub(crate) const ENTRY_BYTES: usize = 8;

pub(crate) type OffsetEntries = IndexEntries<ENTRY_BYTES>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OffsetEntry {
    pub offset: Offset,
    pub position: u32,
}

impl OffsetEntry {
    /// The caller has checked that the segment can index the offset.
    pub(crate) fn encode(self, base: Offset) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..4].copy_from_slice(&(self.offset.since(base) as i32).to_be_bytes());
        bytes[4..].copy_from_slice(&self.position.to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: [u8; ENTRY_BYTES], base: Offset) -> Self {
        let relative = i32::from_be_bytes(bytes[..4].try_into().expect("four bytes"));
        let position = u32::from_be_bytes(bytes[4..].try_into().expect("four bytes"));
        Self { offset: base.plus(i64::from(relative)), position }
    }
}
