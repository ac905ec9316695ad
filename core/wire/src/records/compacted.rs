//! A batch again, after compaction took records out of it.
//!
//! The bytes are those that Kafka's cleaner writes (before compression): offsets stay, and with them the batch's first
//! and last, its producer's sequences included; timestamps count from the first record that is left, or from the delete
//! horizon. What was stored in an old format is of the current one afterwards. It does not decide what stays.
//!
//! Source: Kafka `MemoryRecords.buildRetainedRecordsInto`, `DefaultRecordBatch.writeEmptyHeader`; KIP-354, KIP-534.

use barnabas_base::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};
use bytes::Bytes;

use super::header::{ATTRIBUTES_AT, CRC_AT, LOG_OVERHEAD_BYTES};
use super::record::write_record;
use super::{
    Attributes, Batch, BatchError, BatchHeader, Codec, Compression, HEADER_BYTES, HeaderRef, Message,
    RecordRef, TimestampType, batches, crc,
};

/// The batch of `header` with the records `kept` alone, compressed by the codec that it had. With `delete_horizon`,
/// that stands where the base timestamp was.
///
/// # Errors
/// An unknown codec; [`BatchError::Full`] beyond `i32::MAX` bytes; [`BatchError::Compress`] where the codec failed.
pub fn with_records_left(
    header: &BatchHeader,
    kept: &[RecordRef<'_>],
    delete_horizon: Option<TimestampMs>,
) -> Result<Bytes, BatchError> {
    let mut body = Body::new(delete_horizon);
    let mut headers = Vec::new();
    for record in kept {
        headers.clear();
        headers.extend(record.headers());
        body.push(record.offset_delta, record.timestamp, record.key, record.value, &headers);
    }
    body.seal(header)
}

/// Rewrites `message`, a message or compressed set of format 0 or 1, as a batch of the current format with
/// the messages `kept`, at least one. The batch's first and last offsets are theirs.
///
/// # Errors
/// As [`with_records_left`]; offsets that do not rise, or lie too far apart for a batch.
pub fn with_messages_left(
    message: &Message,
    kept: &[Message],
    delete_horizon: Option<TimestampMs>,
) -> Result<Bytes, BatchError> {
    let base_offset = kept.first().map_or(message.offset, |first| first.offset);
    let mut body = Body::new(delete_horizon);
    let mut last_offset_delta = -1;
    for inner in kept {
        let delta = i32::try_from(inner.offset.since(base_offset)).ok();
        let delta = delta.filter(|delta| *delta > last_offset_delta);
        last_offset_delta =
            delta.ok_or(BatchError::Record { index: 0, what: "an old message's offset does not follow" })?;
        body.push(last_offset_delta, inner.timestamp, inner.key.as_deref(), inner.value.as_deref(), &[]);
    }
    body.seal(&BatchHeader {
        base_offset,
        length: 0,
        partition_leader_epoch: LeaderEpoch::NONE,
        magic: 2,
        crc: 0,
        attributes: Attributes::new(message.codec()?, message.timestamp_type, false, false),
        last_offset_delta,
        base_timestamp: TimestampMs::NONE,
        max_timestamp: message.timestamp,
        producer_id: ProducerId::NONE,
        producer_epoch: ProducerEpoch::NONE,
        base_sequence: Sequence::NONE,
        record_count: 0,
    })
}

/// Records one behind the other, and what their header has to say of them.
struct Body {
    bytes: Vec<u8>,
    count: i32,
    delete_horizon: Option<TimestampMs>,
    base_timestamp: Option<TimestampMs>,
    newest: TimestampMs,
}

impl Body {
    fn new(delete_horizon: Option<TimestampMs>) -> Self {
        Self {
            bytes: Vec::new(),
            count: 0,
            delete_horizon,
            base_timestamp: delete_horizon,
            newest: TimestampMs::NONE,
        }
    }

    fn push(
        &mut self,
        offset_delta: i32,
        timestamp: TimestampMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderRef<'_>],
    ) {
        let base = *self.base_timestamp.get_or_insert(timestamp);
        self.newest = self.newest.max(timestamp);
        self.count += 1;
        write_record(&mut self.bytes, timestamp.0.wrapping_sub(base.0), offset_delta, key, value, headers);
    }

    fn seal(self, header: &BatchHeader) -> Result<Bytes, BatchError> {
        let codec = header.attributes.codec()?;
        let max_timestamp = match header.attributes.timestamp_type() {
            TimestampType::LogAppendTime => header.max_timestamp,
            TimestampType::CreateTime => self.newest,
        };
        let left = BatchHeader {
            attributes: attributes(header, codec).with_delete_horizon(self.delete_horizon.is_some()),
            base_timestamp: self.base_timestamp.unwrap_or(TimestampMs::NONE),
            max_timestamp,
            record_count: self.count,
            ..*header
        };
        let mut bytes = vec![0; HEADER_BYTES];
        Compression::of(codec).deflate(&self.bytes, &mut bytes)?;
        seal(left, bytes)
    }
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

/// The batches of `run` without compression, in pieces of some `piece_bytes`: a batch that inflates to more comes in
/// parts, each with the header's offsets and a part of its records. For a reader that takes in a log's records bit by
/// bit. Control batches stay as they are, and what follows the last whole batch is left out.
///
/// # Errors
/// The offset of a batch whose records cannot be read, and why.
pub fn inflated_run(run: Bytes, piece_bytes: usize) -> Result<Vec<Bytes>, (Offset, BatchError)> {
    let mut pieces = Vec::new();
    let mut piece = Vec::new();
    let mut last = Offset::ZERO;
    for batch in batches(run) {
        let batch = batch.map_err(|error| (last, error))?;
        let header = *batch.header();
        last = header.base_offset;
        if header.attributes.is_control() || !header.attributes.is_compressed() {
            piece.extend_from_slice(batch.bytes());
        } else {
            inflate_batch(&batch, piece_bytes, &mut piece, &mut pieces).map_err(|error| (last, error))?;
        }
        if piece.len() >= piece_bytes {
            pieces.push(Bytes::from(std::mem::take(&mut piece)));
        }
    }
    if !piece.is_empty() {
        pieces.push(Bytes::from(piece));
    }
    Ok(pieces)
}

fn inflate_batch(
    batch: &Batch,
    piece_bytes: usize,
    piece: &mut Vec<u8>,
    pieces: &mut Vec<Bytes>,
) -> Result<(), BatchError> {
    let plain = BatchHeader { attributes: attributes(batch.header(), Codec::None), ..*batch.header() };
    let records = batch.records()?;
    let (mut part, mut part_bytes) = (Vec::new(), 0);
    for record in &records {
        let record = record?;
        part_bytes += record.body_bytes;
        part.push(record);
        if part_bytes >= piece_bytes {
            piece.extend_from_slice(&with_records_left(&plain, &part, None)?);
            pieces.push(Bytes::from(std::mem::take(piece)));
            part.clear();
            part_bytes = 0;
        }
    }
    if !part.is_empty() {
        piece.extend_from_slice(&with_records_left(&plain, &part, None)?);
    }
    Ok(())
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
