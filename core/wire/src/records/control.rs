//! Control batches: what the log says about itself, between the records. Consumers skip them.
//!
//! ```text
//! key:   version i16 = 0 | type i16           value: by type, version i16 first
//! ```
//! This file knows the keys, the batch around them and the end of a transaction, whose value the append path must read.
//! The other values are generated messages: LeaderChangeMessage, SnapshotHeaderRecord, SnapshotFooterRecord,
//! KRaftVersionRecord, VotersRecord.
//!
//! Source: Kafka `ControlRecordType`, `EndTransactionMarker`.

use barnabas_base::{CoordinatorEpoch, TimestampMs};
use bytes::Bytes;

use super::{Batch, BatchBuilder, BatchError, BatchOptions};

/// Control records are a few bytes, and no broker compresses them: more than this is not inflated to see one.
pub const CONTROL_BYTES_MAX: usize = 64 << 10;

/// What a control record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum ControlType {
    Abort = 0,
    Commit = 1,
    LeaderChange = 2,
    SnapshotHeader = 3,
    SnapshotFooter = 4,
    KRaftVersion = 5,
    KRaftVoters = 6,
}

impl ControlType {
    const ALL: [Self; 7] = [
        Self::Abort,
        Self::Commit,
        Self::LeaderChange,
        Self::SnapshotHeader,
        Self::SnapshotFooter,
        Self::KRaftVersion,
        Self::KRaftVoters,
    ];

    /// The key of a record of this type.
    pub fn key(self) -> [u8; 4] {
        let [high, low] = (self as i16).to_be_bytes();
        [0, 0, high, low]
    }

    /// The type that a key names; `None` for keys that are too short, negative versions and types from the future.
    pub fn from_key(key: &[u8]) -> Option<Self> {
        let &[v0, v1, t0, t1] = key.first_chunk()?;
        if i16::from_be_bytes([v0, v1]) < 0 {
            return None;
        }
        let number = i16::from_be_bytes([t0, t1]);
        Self::ALL.into_iter().find(|control| *control as i16 == number)
    }
}

/// The end of one producer's transaction on one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndTxnMarker {
    pub commit: bool,
    pub coordinator_epoch: CoordinatorEpoch,
}

impl EndTxnMarker {
    pub fn control_type(self) -> ControlType {
        if self.commit { ControlType::Commit } else { ControlType::Abort }
    }

    /// The record's value: version 0 and the coordinator epoch.
    pub fn value(self) -> [u8; 6] {
        let [a, b, c, d] = self.coordinator_epoch.get().to_be_bytes();
        [0, 0, a, b, c, d]
    }

    /// Reads a marker; `None` where the key names something else or the value is too short. A later version is read as
    /// far as version 0 goes.
    pub fn read(key: &[u8], value: &[u8]) -> Option<Self> {
        let commit = match ControlType::from_key(key)? {
            ControlType::Commit => true,
            ControlType::Abort => false,
            _ => return None,
        };
        let &[v0, v1, a, b, c, d] = value.first_chunk()?;
        if i16::from_be_bytes([v0, v1]) < 0 {
            return None;
        }
        Some(Self { commit, coordinator_epoch: CoordinatorEpoch(i32::from_be_bytes([a, b, c, d])) })
    }

    /// The marker in a control batch; `None` where the batch holds none (another type, or emptied by compaction).
    ///
    /// # Errors
    /// Records that cannot be read.
    pub fn of_batch(batch: &Batch) -> Result<Option<Self>, BatchError> {
        if !batch.header().attributes.is_control() || batch.header().record_count == 0 {
            return Ok(None);
        }
        let records = batch.records_within(CONTROL_BYTES_MAX)?;
        let Some(record) = records.iter().next() else { return Ok(None) };
        let record = record?;
        Ok(Self::read(record.key.unwrap_or_default(), record.value.unwrap_or_default()))
    }
}

/// A batch of one control record; `options.control` is set for the caller.
///
/// # Errors
/// Only what [`BatchBuilder::build`] says.
pub fn control_batch(
    options: BatchOptions,
    timestamp: TimestampMs,
    control: ControlType,
    value: &[u8],
) -> Result<Bytes, BatchError> {
    let mut builder = BatchBuilder::new(BatchOptions { control: true, ..options });
    builder.push(timestamp, Some(&control.key()), Some(value), &[]);
    builder.build()
}
