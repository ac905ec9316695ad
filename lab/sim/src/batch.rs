//! A batch as the simulation writes it: what a partition must know of it, and what it says.

use barnabas_base::{
    CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs,
};
use barnabas_coordinator::Record;
use barnabas_partition::{BatchInfo, BatchKind, Marker, Outcome};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// What a transactional client writes; never twice the same.
pub(crate) type Value = u64;

/// What a batch says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Contents {
    /// An idempotent producer's, of whatever words.
    Words,
    /// A part of a transaction.
    Value(Value),
    /// A coordinator's. Within a transaction: offsets that count once it is committed.
    Records { records: Vec<Record>, in_transaction: bool },
    /// The end of its producer's transaction, as the log keeps it.
    Marker { commit: bool, coordinator_epoch: CoordinatorEpoch },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    pub base: Offset,
    pub epoch: LeaderEpoch,
    pub offsets: i32,
    pub producer: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub sequence: Sequence,
    pub contents: Contents,
}

impl Batch {
    /// A batch that has no place yet, of one offset.
    pub fn new(producer: ProducerId, producer_epoch: ProducerEpoch, contents: Contents) -> Self {
        Self {
            base: Offset::NONE,
            epoch: LeaderEpoch::NONE,
            offsets: 1,
            producer,
            producer_epoch,
            sequence: Sequence::NONE,
            contents,
        }
    }

    pub fn end(&self) -> Offset {
        self.base.plus(i64::from(self.offsets))
    }

    pub fn info(&self) -> BatchInfo {
        let (is_transactional, kind) = match self.contents {
            Contents::Words => (false, BatchKind::Data),
            Contents::Value(_) => (true, BatchKind::Data),
            Contents::Records { in_transaction, .. } => (in_transaction, BatchKind::Data),
            Contents::Marker { commit, coordinator_epoch } => {
                let outcome = if commit { Outcome::Commit } else { Outcome::Abort };
                // The log does not say of which version a marker is; who appends it knows.
                (true, BatchKind::Marker(Marker { outcome, coordinator_epoch, transaction_version: 0 }))
            }
        };
        BatchInfo {
            offsets: self.offsets,
            max_timestamp: TimestampMs(0),
            producer_id: self.producer,
            producer_epoch: self.producer_epoch,
            base_sequence: self.sequence,
            is_transactional,
            kind,
        }
    }

    /// As records of a Fetch.
    pub fn write(batches: &[Self]) -> Bytes {
        let mut bytes = BytesMut::new();
        for batch in batches {
            bytes.put_i64(batch.base.get());
            bytes.put_i32(batch.epoch.get());
            bytes.put_i32(batch.offsets);
            bytes.put_i64(batch.producer.get());
            bytes.put_i16(batch.producer_epoch.get());
            bytes.put_i32(batch.sequence.get());
            batch.contents.write(&mut bytes);
        }
        bytes.freeze()
    }

    pub fn read(mut bytes: Bytes) -> Vec<Self> {
        let mut batches = Vec::new();
        while bytes.has_remaining() {
            batches.push(Self {
                base: Offset(bytes.get_i64()),
                epoch: LeaderEpoch(bytes.get_i32()),
                offsets: bytes.get_i32(),
                producer: ProducerId(bytes.get_i64()),
                producer_epoch: ProducerEpoch(bytes.get_i16()),
                sequence: Sequence(bytes.get_i32()),
                contents: Contents::read(&mut bytes),
            });
        }
        batches
    }
}

impl Contents {
    fn write(&self, bytes: &mut BytesMut) {
        match self {
            Self::Words => bytes.put_u8(0),
            Self::Value(value) => {
                bytes.put_u8(1);
                bytes.put_u64(*value);
            }
            Self::Records { records, in_transaction } => {
                bytes.put_u8(2 + u8::from(*in_transaction));
                bytes.put_u32(records.len() as u32);
                for record in records {
                    put(bytes, Some(&record.key));
                    put(bytes, record.value.as_ref());
                }
            }
            Self::Marker { commit, coordinator_epoch } => {
                bytes.put_u8(4 + u8::from(*commit));
                bytes.put_i32(coordinator_epoch.get());
            }
        }
    }

    fn read(bytes: &mut Bytes) -> Self {
        match bytes.get_u8() {
            0 => Self::Words,
            1 => Self::Value(bytes.get_u64()),
            kind @ (2 | 3) => {
                let count = bytes.get_u32();
                let record = |_| Record { key: take(bytes).unwrap_or_default(), value: take(bytes) };
                Self::Records { records: (0..count).map(record).collect(), in_transaction: kind == 3 }
            }
            kind => Self::Marker { commit: kind == 5, coordinator_epoch: CoordinatorEpoch(bytes.get_i32()) },
        }
    }
}

fn put(bytes: &mut BytesMut, part: Option<&Bytes>) {
    bytes.put_i32(part.map_or(-1, |part| part.len() as i32));
    bytes.put_slice(part.map_or(&[][..], |part| &part[..]));
}

fn take(bytes: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(bytes.get_i32()).ok()?;
    Some(bytes.split_to(length))
}
