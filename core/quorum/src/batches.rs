//! Metadata records ↔ record batches: how much goes into a batch, and what a batch of the log or of a snapshot holds.
//!
//! Always true:
//! 1. every batch of the log carries its leader's epoch as its partition leader epoch, and offsets without a gap
//! 2. records that must appear together are in one batch, or between Begin- and EndTransactionRecord (KIP-868)
//!
//! Source: Kafka `MetadataRecordSerde`, `BatchAccumulator`, `ControlRecordUtils`.

use barnabas_base::{LeaderEpoch, Offset, TimestampMs};
use barnabas_metadata::{MetadataVersion, snapshot::record_version};
use barnabas_wire::messages::{
    BeginTransactionRecord, EndTransactionRecord, KRaftVersionRecord, LeaderChangeMessage,
    SnapshotFooterRecord, SnapshotHeaderRecord, VotersRecord,
};
use barnabas_wire::records::{Batch, BatchBuilder, BatchOptions, ControlType};
use barnabas_wire::{EncodeError, Message, MetadataRecord, Reader, Writer};
use bytes::Bytes;

use crate::QuorumError;

/// Records in one batch at most: Kafka's controller writes no more either, and readers hold a batch at a time.
pub const BATCH_RECORDS_MAX: usize = 10_000;
/// Bytes of records in one batch, but for a batch of one record.
pub const BATCH_BYTES_MAX: usize = 1 << 20;
/// What Kafka's quorum takes as one batch (`KafkaRaftClient.MAX_BATCH_SIZE_BYTES`): for clusters whose level has no
/// transactions, where atomic means one batch.
pub const ATOMIC_BATCH_BYTES_MAX: usize = 8 << 20;
/// Every control record is written in its first version (`ControlRecordUtils`).
const CONTROL_VERSION: i16 = 0;

/// Where and when a batch is written.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub base: Offset,
    pub epoch: LeaderEpoch,
    pub timestamp: TimestampMs,
}

/// One batch, ready to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedBatch {
    pub base: Offset,
    /// The offset after its last record.
    pub end: Offset,
    pub bytes: Bytes,
}

/// Encodes records for one batch or several. Several make a metadata transaction if `atomic`.
///
/// # Errors
/// A record that its version cannot carry; too much for one batch at a level without transactions.
pub fn data_batches(
    records: &[MetadataRecord],
    version: MetadataVersion,
    atomic: bool,
    place: Place,
) -> Result<Vec<EncodedBatch>, QuorumError> {
    let encode = |record: &MetadataRecord| record.encode_value(record_version(record, version));
    let mut values = records.iter().map(encode).collect::<Result<Vec<Bytes>, EncodeError>>()?;
    let bytes = values.iter().map(Bytes::len).sum::<usize>();
    let fits = values.len() <= BATCH_RECORDS_MAX && bytes <= BATCH_BYTES_MAX;
    if fits || !atomic {
        return pack(&values, place, BATCH_RECORDS_MAX, BATCH_BYTES_MAX);
    }
    if version.has_transactions() {
        values.insert(0, encode(&BeginTransactionRecord::default().into())?);
        values.push(encode(&EndTransactionRecord::default().into())?);
        return pack(&values, place, BATCH_RECORDS_MAX, BATCH_BYTES_MAX);
    }
    if bytes > ATOMIC_BATCH_BYTES_MAX {
        let what =
            "raise metadata.version to 3.6-IV1 or later, which has transactions, or ask for less at once";
        return Err(QuorumError::TooLarge { needed: bytes, limit: ATOMIC_BATCH_BYTES_MAX, what });
    }
    pack(&values, place, usize::MAX, ATOMIC_BATCH_BYTES_MAX)
}

fn pack(
    values: &[Bytes],
    place: Place,
    records_max: usize,
    bytes_max: usize,
) -> Result<Vec<EncodedBatch>, QuorumError> {
    let mut batches = Vec::new();
    let mut rest = values;
    let mut base = place.base;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest.iter().take(records_max).take_while(|value| {
            bytes += value.len();
            bytes <= bytes_max
        });
        let count = fits.count().max(1);
        let (now, later) = rest.split_at(count);
        let batch = data_batch(now, Place { base, ..place })?;
        base = batch.end;
        batches.push(batch);
        rest = later;
    }
    Ok(batches)
}

/// One batch of encoded records.
pub(crate) fn data_batch(values: &[Bytes], place: Place) -> Result<EncodedBatch, QuorumError> {
    let mut builder = BatchBuilder::new(options(place, false));
    for value in values {
        builder.push(place.timestamp, None, Some(value), &[]);
    }
    let end = place.base.plus(values.len() as i64);
    Ok(EncodedBatch { base: place.base, end, bytes: builder.build()? })
}

/// One control record of a quorum.
#[derive(Debug, Clone, PartialEq)]
pub enum Control {
    LeaderChange(LeaderChangeMessage),
    SnapshotHeader(SnapshotHeaderRecord),
    SnapshotFooter(SnapshotFooterRecord),
    KRaftVersion(KRaftVersionRecord),
    Voters(VotersRecord),
}

/// One batch of control records.
pub fn control_batch(controls: &[Control], place: Place) -> Result<EncodedBatch, QuorumError> {
    let mut builder = BatchBuilder::new(options(place, true));
    for control in controls {
        let (kind, value) = encode_control(control)?;
        builder.push(place.timestamp, Some(&kind.key()), Some(&value), &[]);
    }
    let end = place.base.plus(controls.len() as i64);
    Ok(EncodedBatch { base: place.base, end, bytes: builder.build()? })
}

fn options(place: Place, control: bool) -> BatchOptions {
    BatchOptions { base_offset: place.base, leader_epoch: place.epoch, control, ..BatchOptions::default() }
}

fn encode_control(control: &Control) -> Result<(ControlType, Bytes), EncodeError> {
    let mut w = Writer::new();
    let kind = match control {
        Control::LeaderChange(message) => {
            message.encode(&mut w, CONTROL_VERSION)?;
            ControlType::LeaderChange
        }
        Control::SnapshotHeader(message) => {
            message.encode(&mut w, CONTROL_VERSION)?;
            ControlType::SnapshotHeader
        }
        Control::SnapshotFooter(message) => {
            message.encode(&mut w, CONTROL_VERSION)?;
            ControlType::SnapshotFooter
        }
        Control::KRaftVersion(message) => {
            message.encode(&mut w, CONTROL_VERSION)?;
            ControlType::KRaftVersion
        }
        Control::Voters(message) => {
            message.encode(&mut w, CONTROL_VERSION)?;
            ControlType::KRaftVoters
        }
    };
    Ok((kind, w.into_bytes()))
}

/// What a batch holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Records(Vec<MetadataRecord>),
    Control(Vec<Control>),
}

/// Reads a batch, after checking its CRC.
///
/// # Errors
/// Anything in it that is not understood: nothing is skipped, or this node would believe other things than its peers.
pub fn read_batch(batch: &Batch) -> Result<Content, QuorumError> {
    let base = batch.header().base_offset;
    let damaged = |source| QuorumError::Batch { offset: base, source };
    batch.check_crc().map_err(damaged)?;
    let records = batch.records().map_err(damaged)?;
    if batch.header().attributes.is_control() {
        let mut controls = Vec::new();
        for record in &records {
            let record = record.map_err(damaged)?;
            let value = records.share(record.value.unwrap_or_default());
            let decoded = decode_control(record.key.unwrap_or_default(), value);
            controls.extend(decoded.map_err(|source| QuorumError::Decode { offset: record.offset, source })?);
        }
        return Ok(Content::Control(controls));
    }
    let mut values = Vec::new();
    for record in &records {
        let record = record.map_err(damaged)?;
        let value = records.share(record.value.unwrap_or_default());
        let decoded = MetadataRecord::decode_value(value);
        values.push(decoded.map_err(|source| QuorumError::Decode { offset: record.offset, source })?.0);
    }
    Ok(Content::Records(values))
}

/// `None` for a transaction marker or a type from the future: neither has a meaning here, and readers of Kafka's quorum
/// go past what they do not know in control batches.
fn decode_control(key: &[u8], value: Bytes) -> Result<Option<Control>, barnabas_wire::DecodeError> {
    let mut r = Reader::new(value);
    let r = &mut r;
    Ok(match ControlType::from_key(key) {
        Some(ControlType::LeaderChange) => {
            Some(Control::LeaderChange(LeaderChangeMessage::decode(r, CONTROL_VERSION)?))
        }
        Some(ControlType::SnapshotHeader) => {
            Some(Control::SnapshotHeader(SnapshotHeaderRecord::decode(r, CONTROL_VERSION)?))
        }
        Some(ControlType::SnapshotFooter) => {
            Some(Control::SnapshotFooter(SnapshotFooterRecord::decode(r, CONTROL_VERSION)?))
        }
        Some(ControlType::KRaftVersion) => {
            Some(Control::KRaftVersion(KRaftVersionRecord::decode(r, CONTROL_VERSION)?))
        }
        Some(ControlType::KRaftVoters) => Some(Control::Voters(VotersRecord::decode(r, CONTROL_VERSION)?)),
        Some(ControlType::Abort | ControlType::Commit) | None => None,
    })
}

#[cfg(test)]
mod tests;
