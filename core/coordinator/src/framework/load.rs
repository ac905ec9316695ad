//! Loading a partition: its records one by one, and why one cannot be read.

use barnabas_base::{Offset, ProducerId};
use barnabas_wire::DecodeError;
use barnabas_wire::records::{self, Batch, BatchError};
use bytes::Bytes;

/// A record that cannot be read: the partition cannot be served by this build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    #[error("the batch at {offset} cannot be read: {source}")]
    Batch { offset: i64, source: BatchError },
    #[error("record {offset} has a key that cannot be read: {source}")]
    Key { offset: i64, source: DecodeError },
    #[error("record {offset} (type {type_number}) has a value that cannot be read: {source}")]
    Value { offset: i64, type_number: i16, source: DecodeError },
    #[error("record {offset} has a transaction state that does not exist: {number}")]
    State { offset: i64, number: i8 },
}

/// One thing that a partition's log holds.
pub(crate) enum Loaded<'a> {
    Record {
        offset: Offset,
        /// [`ProducerId::NONE`] unless the batch is transactional.
        producer: ProducerId,
        key: Bytes,
        value: Option<Bytes>,
    },
    /// A control batch, not decoded.
    Control(&'a Batch),
}

/// Shows what whole batches hold, as they are in the log. Gives the offset after the last batch; `from` where there is
/// none. Records without a key are passed over: no coordinator writes one.
///
/// # Errors
/// What cannot be read, and what `take` gives.
pub(crate) fn each_loaded(
    from: Offset,
    bytes: Bytes,
    mut take: impl FnMut(Loaded<'_>) -> Result<(), LoadError>,
) -> Result<Offset, LoadError> {
    let mut next = from;
    for batch in records::batches(bytes) {
        let batch = batch.map_err(|source| LoadError::Batch { offset: next.0, source })?;
        if batch.header().attributes.is_control() {
            take(Loaded::Control(&batch))?;
        } else {
            each_record(&batch, &mut take)?;
        }
        next = batch.header().next_offset();
    }
    Ok(next)
}

fn each_record(
    batch: &Batch,
    take: &mut impl FnMut(Loaded<'_>) -> Result<(), LoadError>,
) -> Result<(), LoadError> {
    let header = batch.header();
    let is_transactional = header.attributes.is_transactional();
    let producer = if is_transactional { header.producer_id } else { ProducerId::NONE };
    let records = batch.records().map_err(|source| LoadError::of(batch, source))?;
    for record in &records {
        let record = record.map_err(|source| LoadError::of(batch, source))?;
        let Some(key) = record.key.map(|key| records.share(key)) else { continue };
        let value = record.value.map(|value| records.share(value));
        take(Loaded::Record { offset: record.offset, producer, key, value })?;
    }
    Ok(())
}

impl LoadError {
    pub(crate) fn of(batch: &Batch, source: BatchError) -> Self {
        Self::Batch { offset: batch.header().base_offset.0, source }
    }
}
