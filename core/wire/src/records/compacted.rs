//! A batch again, after compaction took records out of it.
//!
//! The bytes are those that Kafka's cleaner writes (before compression): offsets stay, and with them the batch's first and last,
//! its producer's sequences included; timestamps count from the first record that is left, or from the delete horizon. It does
//! not decide what stays.
//!
//! Source: Kafka `MemoryRecords.buildRetainedRecordsInto`, `DefaultRecordBatch.writeEmptyHeader`; KIP-354, KIP-534.

use barnabas_base::TimestampMs;
use bytes::Bytes;

use super::down_convert::MessageSet;
use super::header::{ATTRIBUTES_AT, CRC_AT, LOG_OVERHEAD_BYTES};
use super::record::write_record;
use super::{
    Attributes, BatchError, BatchHeader, Codec, Compression, HEADER_BYTES, Message, RecordRef, TimestampType,
    crc,
};

/// The batch of `header` with the records `kept` alone, compressed by the codec that it had. With `delete_horizon`, that stands
/// where the base timestamp was.
///
/// # Errors
/// An unknown codec; [`BatchError::Full`] beyond `i32::MAX` bytes; [`BatchError::Compress`] where the codec failed.
pub fn with_records_left(
    header: &BatchHeader,
    kept: &[RecordRef<'_>],
    delete_horizon: Option<TimestampMs>,
) -> Result<Bytes, BatchError> {
    let first = kept.first().map_or(TimestampMs::NONE, |record| record.timestamp);
    let base_timestamp = delete_horizon.unwrap_or(first);
    let (mut body, mut headers) = (Vec::new(), Vec::new());
    let mut newest = TimestampMs::NONE;
    for record in kept {
        newest = newest.max(record.timestamp);
        headers.clear();
        headers.extend(record.headers());
        let timestamp_delta = record.timestamp.0.wrapping_sub(base_timestamp.0);
        write_record(&mut body, timestamp_delta, record.offset_delta, record.key, record.value, &headers);
    }
    let codec = header.attributes.codec()?;
    let max_timestamp = match header.attributes.timestamp_type() {
        TimestampType::LogAppendTime => header.max_timestamp,
        TimestampType::CreateTime => newest,
    };
    let left = BatchHeader {
        attributes: attributes(header, codec).with_delete_horizon(delete_horizon.is_some()),
        base_timestamp,
        max_timestamp,
        record_count: kept.len() as i32,
        ..*header
    };
    let mut bytes = vec![0; HEADER_BYTES];
    Compression::of(codec).deflate(&body, &mut bytes)?;
    seal(left, bytes)
}

/// The batch of `header` without any record: kept for its producer's last sequence, or for its last offset.
pub fn without_records(header: &BatchHeader) -> Bytes {
    let left = BatchHeader {
        attributes: attributes(header, Codec::None),
        base_timestamp: TimestampMs::NONE,
        record_count: 0,
        ..*header
    };
    seal(left, vec![0; HEADER_BYTES]).expect("a header alone is short enough")
}

/// The message (or compressed set) `message` of format 0 or 1 with the messages `kept` alone.
///
/// # Errors
/// A codec that the old formats do not know; [`BatchError::Compress`] where it failed.
pub fn with_messages_left(message: &Message, kept: &[Message]) -> Result<Bytes, BatchError> {
    let mut set = MessageSet::new(message.magic, message.codec()?, message.timestamp_type);
    for inner in kept {
        set.push(inner.offset, inner.timestamp, inner.key.as_deref(), inner.value.as_deref());
    }
    let mut out = Vec::new();
    set.finish(&mut out)?;
    Ok(Bytes::from(out))
}

fn attributes(header: &BatchHeader, codec: Codec) -> Attributes {
    let was = header.attributes;
    Attributes::new(codec, was.timestamp_type(), was.is_transactional(), was.is_control())
}

/// Puts the header in front, with the length and the checksum that belong to it.
fn seal(header: BatchHeader, mut bytes: Vec<u8>) -> Result<Bytes, BatchError> {
    let limit = i32::MAX as usize;
    let length = i32::try_from(bytes.len() - LOG_OVERHEAD_BYTES).map_err(|_| BatchError::Full { limit })?;
    bytes[..HEADER_BYTES].copy_from_slice(&BatchHeader { length, ..header }.to_raw());
    let crc = crc::crc32c(&bytes[ATTRIBUTES_AT..]);
    bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
    Ok(Bytes::from(bytes))
}
