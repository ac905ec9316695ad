//! A record batch as the log sees it: its header, read where it lies, enough to find offsets, times and sizes without
//! touching the records; and the bytes of batches that are to be appended.
//!
//! All three formats that a Kafka log may hold are understood: version 2, and the entries of versions 0 and 1, which
//! name only their last offset. Source: Kafka `DefaultRecordBatch`, `AbstractLegacyRecordBatch`, `Records`.

use barnabas_base::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};
pub(crate) use barnabas_wire::records::HEADER_BYTES;
use barnabas_wire::records::{LOG_OVERHEAD_BYTES as PREFIX_BYTES, crc32, crc32c};
use bytes::Bytes;

/// Prefix, checksum, magic, attributes of versions 0 and 1.
const OLD_HEADER_BYTES: usize = 18;

const TRANSACTIONAL: u16 = 1 << 4;
const CONTROL: u16 = 1 << 5;

/// What a batch says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// In formats 0 and 1: the last offset, as the first is not written down.
    pub base_offset: Offset,
    pub last_offset: Offset,
    /// All bytes of the batch, header included.
    pub size: u32,
    pub magic: i8,
    pub attributes: u16,
    pub leader_epoch: LeaderEpoch,
    pub max_timestamp: TimestampMs,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub base_sequence: Sequence,
    crc: u32,
}

/// Why bytes are no batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoBatch {
    /// More bytes are needed to tell; the number is what is needed at least.
    Short(usize),
    Wrong(&'static str),
}

fn i16_at(bytes: &[u8], at: usize) -> i16 {
    i16::from_be_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn i32_at(bytes: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl BatchHeader {
    /// Reads the header at the front of `bytes`.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, NoBatch> {
        if bytes.len() < OLD_HEADER_BYTES {
            return Err(NoBatch::Short(OLD_HEADER_BYTES));
        }
        let offset = i64_at(bytes, 0);
        let length = i32_at(bytes, 8);
        let magic = bytes[16] as i8;
        if offset < 0 {
            return Err(NoBatch::Wrong("the offset is negative"));
        }
        match magic {
            2 => Self::parse_current(bytes, offset, length),
            0 | 1 => Self::parse_old(bytes, offset, length, magic),
            _ => Err(NoBatch::Wrong("the format version is unknown")),
        }
    }

    fn parse_current(bytes: &[u8], offset: i64, length: i32) -> Result<Self, NoBatch> {
        if length < (HEADER_BYTES - PREFIX_BYTES) as i32 {
            return Err(NoBatch::Wrong("the size is smaller than a header"));
        }
        if bytes.len() < HEADER_BYTES {
            return Err(NoBatch::Short(HEADER_BYTES));
        }
        let last_delta = i32_at(bytes, 23);
        if last_delta < 0 {
            return Err(NoBatch::Wrong("the last offset lies before the first"));
        }
        let Some(last_offset) = offset.checked_add(i64::from(last_delta)).filter(|last| *last < i64::MAX)
        else {
            return Err(NoBatch::Wrong("the last offset is past the largest offset"));
        };
        Ok(Self {
            base_offset: Offset(offset),
            last_offset: Offset(last_offset),
            size: length as u32 + PREFIX_BYTES as u32,
            magic: 2,
            attributes: i16_at(bytes, 21) as u16,
            leader_epoch: LeaderEpoch(i32_at(bytes, 12)),
            max_timestamp: TimestampMs(i64_at(bytes, 35)),
            producer_id: ProducerId(i64_at(bytes, 43)),
            producer_epoch: ProducerEpoch(i16_at(bytes, 51)),
            base_sequence: Sequence(i32_at(bytes, 53)),
            crc: i32_at(bytes, 17) as u32,
        })
    }

    fn parse_old(bytes: &[u8], offset: i64, length: i32, magic: i8) -> Result<Self, NoBatch> {
        let timestamp_bytes = if magic == 1 { 8 } else { 0 };
        // Checksum, magic, attributes, timestamp, and the lengths of key and value.
        if length < 4 + 1 + 1 + timestamp_bytes + 8 || offset == i64::MAX {
            return Err(NoBatch::Wrong("the size is smaller than a header"));
        }
        if bytes.len() < OLD_HEADER_BYTES + timestamp_bytes as usize {
            return Err(NoBatch::Short(OLD_HEADER_BYTES + timestamp_bytes as usize));
        }
        let max_timestamp = if magic == 1 { i64_at(bytes, OLD_HEADER_BYTES) } else { -1 };
        Ok(Self {
            base_offset: Offset(offset),
            last_offset: Offset(offset),
            size: length as u32 + PREFIX_BYTES as u32,
            magic,
            attributes: u16::from(bytes[17]),
            leader_epoch: LeaderEpoch::NONE,
            max_timestamp: TimestampMs(max_timestamp),
            producer_id: ProducerId::NONE,
            producer_epoch: ProducerEpoch::NONE,
            base_sequence: Sequence::NONE,
            crc: i32_at(bytes, 12) as u32,
        })
    }

    /// The offset that follows this batch.
    pub fn next_offset(&self) -> Offset {
        self.last_offset.plus(1)
    }

    /// Whether its base offset, which is outside the checksum, was changed: it is another than `expected`, where the
    /// batch before it ends, and its records fit exactly between there and `behind`, where the next one begins.
    pub(crate) fn is_misplaced(&self, expected: Offset, behind: Offset) -> bool {
        let count = self.last_offset.get() - self.base_offset.get() + 1;
        self.magic == 2 && self.base_offset != expected && expected.plus(count) == behind
    }

    /// The same batch with another base offset.
    pub(crate) fn moved_to(self, base_offset: Offset) -> Self {
        let last_offset = base_offset.plus(self.last_offset.get() - self.base_offset.get());
        Self { base_offset, last_offset, ..self }
    }

    /// Names the leader epoch that it was written under.
    pub(crate) fn has_epoch(&self) -> bool {
        self.magic >= 2 && self.leader_epoch != LeaderEpoch::NONE
    }

    pub fn is_transactional(&self) -> bool {
        self.magic == 2 && self.attributes & TRANSACTIONAL != 0
    }

    /// Holds a marker of the broker instead of a producer's records.
    pub fn is_control(&self) -> bool {
        self.magic == 2 && self.attributes & CONTROL != 0
    }

    /// Whether the checksum of `batch` (all of its bytes) is what its header says.
    pub(crate) fn checksum_is_right(&self, batch: &[u8]) -> bool {
        match self.magic {
            // From the attributes on: base offset and leader epoch are set by the broker and lie outside.
            2 => crc32c(&batch[21..]) == self.crc,
            _ => crc32(&batch[16..]) == self.crc,
        }
    }
}

/// Bytes to append, validated and numbered.
#[derive(Debug, Clone)]
pub enum AppendBytes {
    /// One or more whole batches.
    Whole(Bytes),
    /// One batch whose header was rewritten, apart from its records.
    Split { header: [u8; HEADER_BYTES], body: Bytes },
}

impl AppendBytes {
    #[expect(clippy::len_without_is_empty, reason = "a batch is never empty")]
    pub fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Split { header, body } => header.len() + body.len(),
        }
    }
}

impl From<Bytes> for AppendBytes {
    fn from(batches: Bytes) -> Self {
        Self::Whole(batches)
    }
}
