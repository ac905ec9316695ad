//! A batch as the simulation writes it: what a partition must know of it, and nothing else.

use barnabas_base::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};
use barnabas_partition::{BatchInfo, BatchKind};
use bytes::{Buf, BufMut, Bytes, BytesMut};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batch {
    pub base: Offset,
    pub epoch: LeaderEpoch,
    pub offsets: i32,
    pub producer: ProducerId,
    pub sequence: Sequence,
}

impl Batch {
    pub fn end(&self) -> Offset {
        self.base.plus(i64::from(self.offsets))
    }

    pub fn info(&self) -> BatchInfo {
        BatchInfo {
            offsets: self.offsets,
            max_timestamp: TimestampMs(0),
            producer_id: self.producer,
            producer_epoch: ProducerEpoch(0),
            base_sequence: self.sequence,
            is_transactional: false,
            kind: BatchKind::Data,
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
            bytes.put_i32(batch.sequence.get());
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
                sequence: Sequence(bytes.get_i32()),
            });
        }
        batches
    }
}
