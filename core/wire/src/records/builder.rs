//! Makes a v2 batch out of records: for batches that the broker writes itself (coordinator and metadata records,
//! control batches, recompressed and converted ones), for the client, for tests.
//!
//! Byte for byte what Kafka's `MemoryRecordsBuilder` makes of the same records when they are not compressed.

use barnabas_base::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};
use bytes::Bytes;

use super::header::{ATTRIBUTES_AT, CRC_AT, HEADER_BYTES, LOG_OVERHEAD_BYTES};
use super::record::{HeaderRef, record_size, write_record};
use super::{Attributes, BatchError, BatchHeader, Compression, TimestampType, crc};

/// What a batch says about itself.
#[derive(Debug, Clone, Copy)]
pub struct BatchOptions {
    pub base_offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub compression: Compression,
    /// `Some`: the broker dates the records (LogAppendTime).
    pub append_time: Option<TimestampMs>,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub base_sequence: Sequence,
    pub transactional: bool,
    pub control: bool,
}

impl Default for BatchOptions {
    /// From offset 0, uncompressed, dated by the records, no producer.
    fn default() -> Self {
        Self {
            base_offset: Offset::ZERO,
            leader_epoch: LeaderEpoch::NONE,
            compression: Compression::NONE,
            append_time: None,
            producer_id: ProducerId::NONE,
            producer_epoch: ProducerEpoch::NONE,
            base_sequence: Sequence::NONE,
            transactional: false,
            control: false,
        }
    }
}

/// Collects records and then is a batch.
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    options: BatchOptions,
    body: Vec<u8>,
    count: i32,
    last_offset_delta: i32,
    base_timestamp: Option<TimestampMs>,
    max_timestamp: TimestampMs,
}

impl BatchBuilder {
    pub fn new(options: BatchOptions) -> Self {
        Self {
            options,
            body: Vec::new(),
            count: 0,
            last_offset_delta: -1,
            base_timestamp: None,
            max_timestamp: TimestampMs::NONE,
        }
    }

    /// Adds a record at the next offset.
    pub fn push(
        &mut self,
        timestamp: TimestampMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderRef<'_>],
    ) {
        self.push_at(self.last_offset_delta + 1, timestamp, key, value, headers);
    }

    /// Adds a record `offset_delta` after the base offset: for batches with gaps, as compaction leaves them.
    pub fn push_at(
        &mut self,
        offset_delta: i32,
        timestamp: TimestampMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderRef<'_>],
    ) {
        assert!(offset_delta > self.last_offset_delta, "offsets rise within a batch");
        let base = *self.base_timestamp.get_or_insert(timestamp);
        let timestamp_delta = timestamp.0.wrapping_sub(base.0);
        write_record(&mut self.body, timestamp_delta, offset_delta, key, value, headers);
        self.count += 1;
        self.last_offset_delta = offset_delta;
        self.max_timestamp = self.max_timestamp.max(timestamp);
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Records so far.
    pub fn record_count(&self) -> i32 {
        self.count
    }

    /// Bytes of the batch so far, not counting what compression will save.
    pub fn size_bytes(&self) -> usize {
        HEADER_BYTES + self.body.len()
    }

    /// Bytes that the batch would have with this record too, before compression.
    pub fn size_bytes_with(
        &self,
        timestamp: TimestampMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderRef<'_>],
    ) -> usize {
        let base = self.base_timestamp.unwrap_or(timestamp);
        let delta = timestamp.0.wrapping_sub(base.0);
        self.size_bytes() + record_size(delta, self.last_offset_delta + 1, key, value, headers)
    }

    /// The batch. No bytes at all where no record was added.
    ///
    /// # Errors
    /// [`BatchError::Full`] beyond `i32::MAX` bytes; [`BatchError::Compress`] where the codec failed.
    pub fn build(self) -> Result<Bytes, BatchError> {
        let Some(base_timestamp) = self.base_timestamp else { return Ok(Bytes::new()) };
        let codec = self.options.compression.codec;
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.body.len());
        bytes.resize(HEADER_BYTES, 0);
        self.options.compression.deflate(&self.body, &mut bytes)?;
        let limit = i32::MAX as usize;
        let length =
            i32::try_from(bytes.len() - LOG_OVERHEAD_BYTES).map_err(|_| BatchError::Full { limit })?;
        let (timestamp_type, max_timestamp) = match self.options.append_time {
            Some(time) => (TimestampType::LogAppendTime, time),
            None => (TimestampType::CreateTime, self.max_timestamp),
        };
        let options = self.options;
        let header = BatchHeader {
            base_offset: options.base_offset,
            length,
            partition_leader_epoch: options.leader_epoch,
            magic: 2,
            crc: 0,
            attributes: Attributes::new(codec, timestamp_type, options.transactional, options.control),
            last_offset_delta: self.last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id: options.producer_id,
            producer_epoch: options.producer_epoch,
            base_sequence: options.base_sequence,
            record_count: self.count,
        };
        bytes[..HEADER_BYTES].copy_from_slice(&header.to_raw());
        let crc = crc::crc32c(&bytes[ATTRIBUTES_AT..]);
        bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
        Ok(Bytes::from(bytes))
    }
}
