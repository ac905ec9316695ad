//! The 61 bytes before a batch's records (format v2): read, written, and changed in place.
//!
//! It does not look at the records behind them; it does not check the CRC unless asked ([`check_crc`]).
//!
//! Always true: a [`BatchHeader`] that came from [`BatchHeader::parse`] has magic 2 and a size of at least 61 bytes.
//!
//! ```text
//!  0 base offset i64 | 8 length i32 (of all that follows it) | 12 leader epoch i32 | 16 magic i8 = 2 | 17 CRC u32
//! 21 attributes i16 | 23 last offset delta i32 | 27 base timestamp i64 | 35 max timestamp i64
//! 43 producer id i64 | 51 producer epoch i16 | 53 base sequence i32 | 57 record count i32 | 61 records
//! ```
//! The CRC covers everything from 21 on, so offset and leader epoch can be written without touching it.
//!
//! Source: Kafka `DefaultRecordBatch`; KIP-98, KIP-101, KIP-534.

use barnabas_base::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use super::{BatchError, Codec, crc};

/// Bytes of a v2 batch before its first record.
pub const HEADER_BYTES: usize = 61;
/// Bytes before what `length` counts: base offset and length itself. The same in every format.
pub const LOG_OVERHEAD_BYTES: usize = 12;
/// Where the magic stands, in every format.
pub const MAGIC_AT: usize = 16;
pub(super) const LEADER_EPOCH_AT: usize = 12;
pub(super) const CRC_AT: usize = 17;
pub(super) const ATTRIBUTES_AT: usize = 21;
pub(super) const MAX_TIMESTAMP_AT: usize = 35;

/// Whether timestamps come from the producer (CreateTime) or from the broker's append (LogAppendTime).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimestampType {
    #[default]
    CreateTime,
    LogAppendTime,
}

/// A batch's flag word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes(pub i16);

impl Attributes {
    const CODEC: i16 = 0x07;
    const LOG_APPEND_TIME: i16 = 0x08;
    const TRANSACTIONAL: i16 = 0x10;
    const CONTROL: i16 = 0x20;
    const DELETE_HORIZON: i16 = 0x40;

    /// Flags for a new batch.
    pub fn new(codec: Codec, timestamp_type: TimestampType, transactional: bool, control: bool) -> Self {
        let mut bits = codec.id() & Self::CODEC;
        if timestamp_type == TimestampType::LogAppendTime {
            bits |= Self::LOG_APPEND_TIME;
        }
        if transactional {
            bits |= Self::TRANSACTIONAL;
        }
        if control {
            bits |= Self::CONTROL;
        }
        Self(bits)
    }

    /// The codec of the records; an error for numbers 5 to 7, which mean nothing.
    pub fn codec(self) -> Result<Codec, BatchError> {
        Codec::from_id(self.0 & Self::CODEC).ok_or(BatchError::Codec { id: self.0 & Self::CODEC })
    }

    pub fn timestamp_type(self) -> TimestampType {
        if self.0 & Self::LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    #[must_use]
    pub fn with_timestamp_type(self, timestamp_type: TimestampType) -> Self {
        match timestamp_type {
            TimestampType::CreateTime => Self(self.0 & !Self::LOG_APPEND_TIME),
            TimestampType::LogAppendTime => Self(self.0 | Self::LOG_APPEND_TIME),
        }
    }

    pub fn is_compressed(self) -> bool {
        self.0 & Self::CODEC != 0
    }

    pub fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    pub fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    #[must_use]
    pub fn with_delete_horizon(self, has: bool) -> Self {
        if has { Self(self.0 | Self::DELETE_HORIZON) } else { Self(self.0 & !Self::DELETE_HORIZON) }
    }

    /// Whether `base_timestamp` holds the moment from which compaction may drop this batch's tombstones (KIP-534).
    pub fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }
}

/// Every field of a v2 batch header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    pub base_offset: Offset,
    /// Bytes after this field: the whole batch is 12 bytes longer ([`Self::size_bytes`]).
    pub length: i32,
    pub partition_leader_epoch: LeaderEpoch,
    pub magic: i8,
    pub crc: u32,
    pub attributes: Attributes,
    pub last_offset_delta: i32,
    /// Records' timestamps count from here; the delete horizon where [`Attributes::has_delete_horizon`].
    pub base_timestamp: TimestampMs,
    pub max_timestamp: TimestampMs,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub base_sequence: Sequence,
    /// The number of records according to the header, not checked yet.
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`. The records need not be there; the CRC is not checked.
    ///
    /// # Errors
    /// Fewer than 61 bytes, a magic that is not 2, a length that cannot hold a header.
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        let Some(raw) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(BatchError::Short { have: bytes.len(), need: HEADER_BYTES });
        };
        Self::from_raw(raw)
    }

    /// As [`Self::parse`], from exactly the header's bytes.
    pub fn from_raw(raw: &[u8; HEADER_BYTES]) -> Result<Self, BatchError> {
        let header = Self {
            base_offset: Offset(i64_at(raw, 0)),
            length: i32_at(raw, 8),
            partition_leader_epoch: LeaderEpoch(i32_at(raw, LEADER_EPOCH_AT)),
            magic: raw[MAGIC_AT] as i8,
            crc: i32_at(raw, CRC_AT) as u32,
            attributes: Attributes(i16_at(raw, ATTRIBUTES_AT)),
            last_offset_delta: i32_at(raw, 23),
            base_timestamp: TimestampMs(i64_at(raw, 27)),
            max_timestamp: TimestampMs(i64_at(raw, MAX_TIMESTAMP_AT)),
            producer_id: ProducerId(i64_at(raw, 43)),
            producer_epoch: ProducerEpoch(i16_at(raw, 51)),
            base_sequence: Sequence(i32_at(raw, 53)),
            record_count: i32_at(raw, 57),
        };
        if header.magic != 2 {
            return Err(BatchError::Magic { magic: header.magic });
        }
        if header.length < (HEADER_BYTES - LOG_OVERHEAD_BYTES) as i32 {
            return Err(BatchError::Length { length: header.length });
        }
        Ok(header)
    }

    /// The header's bytes, as they stand in the log.
    pub fn to_raw(self) -> [u8; HEADER_BYTES] {
        let mut raw = [0; HEADER_BYTES];
        raw[0..8].copy_from_slice(&self.base_offset.get().to_be_bytes());
        raw[8..12].copy_from_slice(&self.length.to_be_bytes());
        raw[12..16].copy_from_slice(&self.partition_leader_epoch.get().to_be_bytes());
        raw[16] = self.magic as u8;
        raw[17..21].copy_from_slice(&self.crc.to_be_bytes());
        raw[21..23].copy_from_slice(&self.attributes.0.to_be_bytes());
        raw[23..27].copy_from_slice(&self.last_offset_delta.to_be_bytes());
        raw[27..35].copy_from_slice(&self.base_timestamp.0.to_be_bytes());
        raw[35..43].copy_from_slice(&self.max_timestamp.0.to_be_bytes());
        raw[43..51].copy_from_slice(&self.producer_id.get().to_be_bytes());
        raw[51..53].copy_from_slice(&self.producer_epoch.get().to_be_bytes());
        raw[53..57].copy_from_slice(&self.base_sequence.get().to_be_bytes());
        raw[57..61].copy_from_slice(&self.record_count.to_be_bytes());
        raw
    }

    /// Bytes of the whole batch, header included.
    pub fn size_bytes(&self) -> usize {
        LOG_OVERHEAD_BYTES + self.length as usize
    }

    /// The offset of the last record that the batch ever had; compaction may have taken the record itself.
    pub fn last_offset(&self) -> Offset {
        Offset(self.base_offset.get().wrapping_add(i64::from(self.last_offset_delta)))
    }

    /// The offset after the batch.
    pub fn next_offset(&self) -> Offset {
        Offset(self.last_offset().get().wrapping_add(1))
    }

    /// The last record's sequence; none where the batch has no producer.
    pub fn last_sequence(&self) -> Sequence {
        if self.base_sequence == Sequence::NONE || self.last_offset_delta < 0 {
            return Sequence::NONE;
        }
        self.base_sequence.plus(self.last_offset_delta)
    }

    pub fn has_producer_id(&self) -> bool {
        self.producer_id.is_some()
    }
}

/// Compares the stored CRC of one whole batch with what its bytes give.
///
/// # Errors
/// [`BatchError::Crc`] if they differ, or any error of [`BatchHeader::parse`].
pub fn check_crc(batch: &[u8]) -> Result<(), BatchError> {
    BatchHeader::parse(batch)?.check_crc(batch)
}

/// Numbers a received batch where it lies: base offset and leader epoch, and with `append_time` the broker's timestamp,
/// which alone changes the CRC. Records are not touched, nor read.
///
/// # Errors
/// Whatever [`BatchHeader::parse`] says; then nothing has changed.
pub fn number_in_place(
    batch: &mut [u8],
    base: Offset,
    epoch: LeaderEpoch,
    append_time: Option<TimestampMs>,
) -> Result<BatchHeader, BatchError> {
    let header = number(&BatchHeader::parse(batch)?, batch.len() - HEADER_BYTES, base, epoch, append_time);
    batch[..HEADER_BYTES].copy_from_slice(&header.to_raw());
    Ok(header)
}

/// The header that stands before the same `body_len` bytes of records after numbering.
pub(super) fn number(
    header: &BatchHeader,
    body_len: usize,
    base: Offset,
    epoch: LeaderEpoch,
    append_time: Option<TimestampMs>,
) -> BatchHeader {
    let mut numbered = BatchHeader { base_offset: base, partition_leader_epoch: epoch, ..*header };
    if let Some(time) = append_time {
        numbered.set_max_timestamp(TimestampType::LogAppendTime, time, body_len);
    }
    numbered
}

impl BatchHeader {
    /// Compares this header's CRC with that of `batch`, the bytes that it was read from.
    pub(super) fn check_crc(&self, batch: &[u8]) -> Result<(), BatchError> {
        let computed = crc::crc32c(&batch[ATTRIBUTES_AT..]);
        if computed == self.crc { Ok(()) } else { Err(BatchError::Crc { stored: self.crc, computed }) }
    }

    /// Sets the timestamp type and the newest timestamp, and recomputes the CRC without reading the records.
    pub(super) fn set_max_timestamp(
        &mut self,
        timestamp_type: TimestampType,
        max: TimestampMs,
        body_len: usize,
    ) {
        if self.attributes.timestamp_type() == timestamp_type && self.max_timestamp == max {
            return;
        }
        let old = self.to_raw();
        self.attributes = self.attributes.with_timestamp_type(timestamp_type);
        self.max_timestamp = max;
        let new = self.to_raw();
        self.crc = crc::crc32c_replace_head(self.crc, &old[ATTRIBUTES_AT..], &new[ATTRIBUTES_AT..], body_len);
    }
}

fn i16_at(raw: &[u8; HEADER_BYTES], at: usize) -> i16 {
    i16::from_be_bytes([raw[at], raw[at + 1]])
}

fn i32_at(raw: &[u8; HEADER_BYTES], at: usize) -> i32 {
    i32::from_be_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]])
}

fn i64_at(raw: &[u8; HEADER_BYTES], at: usize) -> i64 {
    (i64::from(i32_at(raw, at)) << 32) | i64::from(i32_at(raw, at + 4) as u32)
}
