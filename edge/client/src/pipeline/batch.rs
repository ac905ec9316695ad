//! One batch of one partition, from its first record to its acknowledgement.
//!
//! Records are written once, straight into the buffer that goes to the socket: 61 bytes are left free for the header,
//! which is filled in (with producer id, sequence and CRC) when the batch is sent for the first time, and again only
//! where its sequence has to change. With a codec the records are deflated into a second buffer when the batch closes.
//!
//! Does not know when a batch is due or where it goes: `lane` and `mod` do.
//!
//! Source: Kafka `DefaultRecord`, `DefaultRecordBatch`; KIP-98.

use super::Record;
use crate::ClientError;
use barnabas_base::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};
use barnabas_wire::records::{
    Attributes, BatchHeader, Compression, HEADER_BYTES, LOG_OVERHEAD_BYTES, TimestampType, crc32c,
};
use bytes::{Bytes, BytesMut};
use std::time::Instant;

/// Where the CRC stands, and where what it covers begins.
const CRC_AT: usize = 17;
const CRC_FROM: usize = 21;
/// The most that a record takes besides its key, value and headers: six numbers of up to ten bytes.
pub(super) const RECORD_OVERHEAD_MAX: usize = 40;

/// The producer id and epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub id: ProducerId,
    pub epoch: ProducerEpoch,
}

/// Marks of the caller in the order of the records: (mark, records that carry it).
pub(super) type Marks = Vec<(u64, u32)>;

/// A batch that still takes records.
#[derive(Debug)]
pub(super) struct OpenBatch {
    pub id: u64,
    pub opened: Instant,
    /// What it counts for in `buffer.memory`.
    pub reserved: usize,
    bytes: BytesMut,
    count: i32,
    base_timestamp: i64,
    max_timestamp: i64,
    /// Of keys and values.
    content_bytes: u64,
    marks: Marks,
}

impl OpenBatch {
    pub fn new(id: u64, opened: Instant, reserved: usize, mut bytes: BytesMut) -> Self {
        bytes.clear();
        bytes.resize(HEADER_BYTES, 0);
        Self {
            id,
            opened,
            reserved,
            bytes,
            count: 0,
            base_timestamp: 0,
            max_timestamp: i64::MIN,
            content_bytes: 0,
            marks: Vec::new(),
        }
    }

    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn count(&self) -> i32 {
        self.count
    }

    /// Adds a record at the next offset.
    pub fn push(&mut self, record: &Record<'_>, timestamp: i64, mark: u64) {
        if self.count == 0 {
            self.base_timestamp = timestamp;
        }
        let delta = timestamp.wrapping_sub(self.base_timestamp);
        write_record(&mut self.bytes, delta, self.count, record);
        self.count += 1;
        self.content_bytes +=
            (record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len)) as u64;
        self.max_timestamp = self.max_timestamp.max(timestamp);
        match self.marks.last_mut() {
            Some((last, count)) if *last == mark => *count += 1,
            _ => self.marks.push((mark, 1)),
        }
    }

    /// Closes the batch. `spare` receives the compressed records; the buffer that is no longer needed is
    /// returned with the batch.
    ///
    /// # Errors
    /// The codec failed.
    pub fn close(
        self,
        compression: Compression,
        spare: impl FnOnce() -> BytesMut,
    ) -> Result<(Batch, Option<BytesMut>), ClientError> {
        let inflated_bytes = self.bytes.len() - HEADER_BYTES;
        let (bytes, freed) = if compression == Compression::NONE {
            (self.bytes, None)
        } else {
            let mut out = Vec::from(spare());
            out.clear();
            out.resize(HEADER_BYTES, 0);
            let deflated = compression.deflate(&self.bytes[HEADER_BYTES..], &mut out);
            deflated.map_err(|error| ClientError::Records("a batch".to_owned(), error.to_string()))?;
            (BytesMut::from(Bytes::from(out)), Some(self.bytes))
        };
        let batch = Batch {
            id: self.id,
            opened: self.opened,
            reserved: self.reserved,
            inflated_bytes,
            bytes: Body::Own(bytes),
            compression,
            count: self.count,
            base_timestamp: self.base_timestamp,
            max_timestamp: self.max_timestamp,
            content_bytes: self.content_bytes,
            marks: self.marks,
            sequence: None,
            is_in_flight: false,
            attempts: 0,
        };
        Ok((batch, freed))
    }
}

#[derive(Debug)]
enum Body {
    Own(BytesMut),
    Shared(Bytes),
}

/// A batch that takes no more records.
#[derive(Debug)]
pub(super) struct Batch {
    pub id: u64,
    pub opened: Instant,
    pub reserved: usize,
    /// Bytes of the records before compression.
    pub inflated_bytes: usize,
    bytes: Body,
    compression: Compression,
    count: i32,
    base_timestamp: i64,
    max_timestamp: i64,
    pub content_bytes: u64,
    pub marks: Marks,
    /// `None`: the batch was never sent, or needs a new sequence.
    sequence: Option<i32>,
    pub is_in_flight: bool,
    pub attempts: u32,
}

impl Batch {
    pub fn count(&self) -> i32 {
        self.count
    }

    pub fn size_bytes(&self) -> usize {
        match &self.bytes {
            Body::Own(bytes) => bytes.len(),
            Body::Shared(bytes) => bytes.len(),
        }
    }

    pub fn is_numbered(&self) -> bool {
        self.sequence.is_some()
    }

    /// Forgets the sequence: the next [`Self::seal`] writes another.
    pub fn unnumber(&mut self) {
        self.sequence = None;
    }

    /// The batch as it goes out. What was sealed once stays as it is.
    pub fn seal(&mut self, identity: Option<Identity>, next_sequence: &mut i32) -> Bytes {
        if let (Body::Shared(bytes), Some(_)) = (&self.bytes, self.sequence) {
            return bytes.clone();
        }
        let mut bytes = match std::mem::replace(&mut self.bytes, Body::Shared(Bytes::new())) {
            Body::Own(bytes) => bytes,
            // Another copy may still wait in a connection that was given up: then this one is copied.
            Body::Shared(bytes) => bytes.try_into_mut().unwrap_or_else(|bytes| BytesMut::from(&bytes[..])),
        };
        let sequence = if identity.is_some() { *next_sequence } else { Sequence::NONE.get() };
        let header = self.header(bytes.len(), identity, Sequence(sequence));
        bytes[..HEADER_BYTES].copy_from_slice(&header.to_raw());
        let crc = crc32c(&bytes[CRC_FROM..]);
        bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
        if identity.is_some() {
            *next_sequence = Sequence(sequence).plus(self.count).get();
        }
        self.sequence = Some(sequence);
        let bytes = bytes.freeze();
        self.bytes = Body::Shared(bytes.clone());
        bytes
    }

    fn header(&self, len: usize, identity: Option<Identity>, base_sequence: Sequence) -> BatchHeader {
        BatchHeader {
            base_offset: Offset::ZERO,
            length: (len - LOG_OVERHEAD_BYTES) as i32,
            partition_leader_epoch: LeaderEpoch::NONE,
            magic: 2,
            crc: 0,
            attributes: Attributes::new(self.compression.codec, TimestampType::CreateTime, false, false),
            last_offset_delta: self.count - 1,
            base_timestamp: TimestampMs(self.base_timestamp),
            max_timestamp: TimestampMs(self.max_timestamp),
            producer_id: identity.map_or(ProducerId::NONE, |identity| identity.id),
            producer_epoch: identity.map_or(ProducerEpoch::NONE, |identity| identity.epoch),
            base_sequence,
            record_count: self.count,
        }
    }

    /// The buffer, for another batch, unless a request still refers to it.
    pub fn into_buffer(self) -> Option<BytesMut> {
        match self.bytes {
            Body::Own(bytes) => Some(bytes),
            Body::Shared(bytes) => bytes.try_into_mut().ok(),
        }
    }
}

fn zigzag_32(value: i32) -> u64 {
    u64::from(((value << 1) ^ (value >> 31)) as u32)
}

fn zigzag_64(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn size(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// A number of a few bytes, collected so that a record's front is one copy.
#[derive(Debug)]
struct Front {
    bytes: [u8; RECORD_OVERHEAD_MAX],
    len: usize,
}

impl Front {
    #[inline]
    fn byte(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    #[inline]
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    #[inline]
    fn flush(&mut self, out: &mut BytesMut) {
        out.extend_from_slice(&self.bytes[..self.len]);
        self.len = 0;
    }
}

fn nullable_size(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| size(zigzag_32(bytes.len() as i32)) + bytes.len())
}

fn headers_size(record: &Record<'_>) -> usize {
    record.headers.iter().map(|(key, value)| nullable_size(Some(key)) + nullable_size(*value)).sum()
}

/// Bytes that a record takes at the most, wherever it stands in its batch.
pub(super) fn record_size_max(record: &Record<'_>) -> usize {
    let parts = record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len);
    let headers = if record.headers.is_empty() { 0 } else { headers_size(record) };
    RECORD_OVERHEAD_MAX + parts + headers
}

fn write_record(out: &mut BytesMut, timestamp_delta: i64, offset_delta: i32, record: &Record<'_>) {
    let (timestamp, offset) = (zigzag_64(timestamp_delta), zigzag_32(offset_delta));
    let headers = zigzag_32(record.headers.len() as i32);
    let body = 1
        + size(timestamp)
        + size(offset)
        + nullable_size(record.key)
        + nullable_size(record.value)
        + size(headers)
        + headers_size(record);
    let mut front = Front { bytes: [0; RECORD_OVERHEAD_MAX], len: 0 };
    front.number(zigzag_32(body as i32));
    front.byte(0);
    front.number(timestamp);
    front.number(offset);
    for part in [record.key, record.value] {
        match part {
            None => front.number(zigzag_32(-1)),
            Some(bytes) => {
                front.number(zigzag_32(bytes.len() as i32));
                front.flush(out);
                out.extend_from_slice(bytes);
            }
        }
    }
    front.number(headers);
    front.flush(out);
    for (key, value) in record.headers {
        front.number(zigzag_32(key.len() as i32));
        front.flush(out);
        out.extend_from_slice(key);
        front.number(value.map_or(zigzag_32(-1), |value| zigzag_32(value.len() as i32)));
        front.flush(out);
        out.extend_from_slice(value.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_wire::records::{Batch as WireBatch, BatchBuilder, BatchOptions, Codec};

    fn identity() -> Identity {
        Identity { id: ProducerId(7), epoch: ProducerEpoch(3) }
    }

    fn records() -> Vec<(i64, Record<'static>)> {
        let headers: &'static [(&[u8], Option<&[u8]>)] = &[(b"h", Some(b"x")), (b"empty", None)];
        let plain = Record { value: Some(b"a value of some length"), ..Record::default() };
        vec![
            (1_000, plain),
            (999, Record { key: Some(b"k"), ..plain }),
            (5_000_000_000, Record { key: None, value: None, headers, ..plain }),
            (1_001, Record { key: Some(b""), value: Some(&[7; 300]), ..plain }),
        ]
    }

    /// Byte for byte what the builder of the wire crate makes, which in turn makes what Kafka's makes.
    #[test]
    fn a_sealed_batch_is_kafkas() {
        let options = BatchOptions {
            producer_id: ProducerId(7),
            producer_epoch: ProducerEpoch(3),
            base_sequence: Sequence(40),
            ..Default::default()
        };
        let mut builder = BatchBuilder::new(options);
        let mut open = OpenBatch::new(1, Instant::now(), 0, BytesMut::new());
        for (timestamp, record) in records() {
            builder.push(TimestampMs(timestamp), record.key, record.value, record.headers);
            open.push(&record, timestamp, 9);
        }
        let (mut batch, freed) = open.close(Compression::NONE, BytesMut::new).unwrap();
        assert!(freed.is_none());
        let mut sequence = 40;
        let sealed = batch.seal(Some(identity()), &mut sequence);
        assert_eq!(sealed, builder.build().unwrap());
        assert_eq!(sequence, 44);
        assert_eq!(batch.marks, [(9, 4)]);
        // A second seal changes nothing; a renumbered batch gets another sequence and a valid CRC.
        assert_eq!(batch.seal(Some(identity()), &mut sequence), sealed);
        batch.unnumber();
        let again = WireBatch::new(batch.seal(Some(identity()), &mut 0)).unwrap();
        again.check_crc().unwrap();
        assert_eq!(again.header().base_sequence, Sequence(0));
    }

    #[test]
    fn every_codec_gives_the_records_back() {
        for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
            let mut open = OpenBatch::new(1, Instant::now(), 0, BytesMut::new());
            for (timestamp, record) in records() {
                open.push(&record, timestamp, 0);
            }
            let (mut batch, freed) = open.close(Compression::of(codec), BytesMut::new).unwrap();
            assert!(freed.is_some());
            let wire = WireBatch::new(batch.seal(None, &mut 0)).unwrap();
            wire.check_crc().unwrap();
            let inflated = wire.records().unwrap();
            let read: Vec<_> = inflated.iter().map(Result::unwrap).collect();
            assert_eq!(read.len(), 4);
            for (found, (timestamp, record)) in read.iter().zip(records()) {
                assert_eq!(
                    (found.timestamp.0, found.key, found.value),
                    (timestamp, record.key, record.value)
                );
                assert_eq!(found.headers().collect::<Vec<_>>(), record.headers);
            }
        }
    }

    #[test]
    fn no_record_is_larger_than_foretold() {
        for (timestamp, record) in records() {
            let mut out = BytesMut::new();
            write_record(&mut out, timestamp, i32::MAX, &record);
            assert!(out.len() <= record_size_max(&record));
        }
    }
}
