//! Records that say who wrote them and as which of theirs, and reading them back.

use crate::{Trouble, trouble};
use barnabas_base::{ProducerEpoch, ProducerId, Sequence, TimestampMs};
use barnabas_wire::records::{BatchBuilder, BatchOptions, batches};
use bytes::Bytes;

/// What a record's value begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub writer: u32,
    /// The writer's count of records to this partition.
    pub number: u64,
}

/// Whose batches these are.
#[derive(Debug, Clone, Copy)]
pub struct Identity {
    pub id: ProducerId,
    pub epoch: ProducerEpoch,
}

const STAMP_BYTES: usize = 12;

/// A batch of `count` records from `first` on, each with `bytes` of value.
pub fn batch(
    identity: Option<Identity>,
    first: Stamp,
    count: u32,
    bytes: usize,
    now: TimestampMs,
) -> Result<Bytes, Trouble> {
    let plain = BatchOptions::default();
    let options = match identity {
        None => plain,
        Some(identity) => BatchOptions {
            producer_id: identity.id,
            producer_epoch: identity.epoch,
            base_sequence: Sequence((first.number & 0x7fff_ffff) as i32),
            ..plain
        },
    };
    let mut builder = BatchBuilder::new(options);
    for at in 0..count {
        let stamp = Stamp { number: first.number + u64::from(at), ..first };
        builder.push(now, None, Some(&value(stamp, bytes)), &[]);
    }
    builder.build().map_err(|error| Trouble(error.to_string()))
}

fn value(stamp: Stamp, bytes: usize) -> Vec<u8> {
    let mut value = Vec::with_capacity(bytes.max(STAMP_BYTES));
    value.extend_from_slice(&stamp.writer.to_be_bytes());
    value.extend_from_slice(&stamp.number.to_be_bytes());
    let filler = (stamp.number as u8).wrapping_mul(31).wrapping_add(stamp.writer as u8);
    value.resize(bytes.max(STAMP_BYTES), filler);
    value
}

/// One record as it was read.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    pub offset: i64,
    pub stamp: Stamp,
}

/// The records of what a fetch returned, each batch's checksum and each value checked; batches that end below `from`
/// left out.
///
/// # Errors
/// Bytes that are no whole, sound batch; a value that is not what its stamp says.
pub fn read(records: Bytes, from: i64) -> Result<Vec<Found>, Trouble> {
    let mut found = Vec::new();
    let mut run = batches(records);
    for batch in &mut run {
        let batch = batch.map_err(|error| Trouble(format!("a batch that is none: {error}")))?;
        let base = batch.header().base_offset.get();
        batch.check_crc().map_err(|error| Trouble(format!("the batch at offset {base}: {error}")))?;
        let records =
            batch.records().map_err(|error| Trouble(format!("the batch at offset {base}: {error}")))?;
        for record in records.iter() {
            let record = record
                .map_err(|error| Trouble(format!("a record of the batch at offset {base}: {error}")))?;
            let offset = base + i64::from(record.offset_delta);
            if offset < from {
                continue;
            }
            let stamp = record.value.and_then(stamp_of);
            let Some(stamp) = stamp else {
                return trouble(format!("the record at offset {offset} is none that was written"));
            };
            found.push(Found { offset, stamp });
        }
    }
    Ok(found)
}

fn stamp_of(value: &[u8]) -> Option<Stamp> {
    let writer = u32::from_be_bytes(*value.first_chunk::<4>()?);
    let number = u64::from_be_bytes(*value.get(4..)?.first_chunk::<8>()?);
    let stamp = Stamp { writer, number };
    (value == self::value(stamp, value.len())).then_some(stamp)
}
