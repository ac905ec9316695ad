//! A batch in the words of the simulation, and as Kafka's bytes: what clients and coordinators mean is written as a
//! record batch, and what invariants judge is read back from the bytes in a log.

use barnabas_base::{
    CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs,
};
use barnabas_coordinator::Record;
use barnabas_wire::records::{
    self, BatchBuilder, BatchError, BatchHeader, BatchOptions, EndTxnMarker, ReadyBatch, control_batch,
};
use bytes::Bytes;

/// Bytes of a record of words, by its batch's sequence: one size in five makes a batch that goes past the journal.
const WORDS_BYTES: [usize; 5] = [20, 60, 20, 700, 120];

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

    /// As a client or a coordinator sends it: Kafka's bytes, without a place.
    pub fn to_ready(&self, now: TimestampMs) -> ReadyBatch {
        let options = BatchOptions {
            producer_id: self.producer,
            producer_epoch: self.producer_epoch,
            base_sequence: self.sequence,
            transactional: !matches!(
                self.contents,
                Contents::Words | Contents::Records { in_transaction: false, .. }
            ),
            ..BatchOptions::default()
        };
        let bytes = self.build(options, now).expect("invariant: what is written fits a batch");
        ReadyBatch::from_bytes(bytes).expect("invariant: it is one batch")
    }

    fn build(&self, options: BatchOptions, now: TimestampMs) -> Result<Bytes, BatchError> {
        let mut builder = BatchBuilder::new(options);
        match &self.contents {
            Contents::Words => {
                let size = WORDS_BYTES[(self.sequence.get() as usize) % WORDS_BYTES.len()];
                let words = vec![self.sequence.get() as u8; size];
                (0..self.offsets).for_each(|_| builder.push(now, None, Some(&words), &[]));
            }
            Contents::Value(value) => builder.push(now, None, Some(&value.to_be_bytes()), &[]),
            Contents::Records { records, .. } => {
                for record in records {
                    builder.push(now, Some(&record.key), record.value.as_deref(), &[]);
                }
            }
            Contents::Marker { commit, coordinator_epoch } => {
                let marker = EndTxnMarker { commit: *commit, coordinator_epoch: *coordinator_epoch };
                return control_batch(options, now, marker.control_type(), &marker.value());
            }
        }
        builder.build()
    }

    /// The batches of a log. Their checksums are looked at.
    ///
    /// # Errors
    /// They are not what was written.
    pub fn read(bytes: Bytes) -> Result<Vec<Self>, BatchError> {
        records::batches(bytes).map(|batch| Self::of(&batch?)).collect()
    }

    fn of(batch: &records::Batch) -> Result<Self, BatchError> {
        batch.check_crc()?;
        let header = batch.header();
        Ok(Self {
            base: header.base_offset,
            epoch: header.partition_leader_epoch,
            offsets: header.last_offset_delta + 1,
            producer: header.producer_id,
            producer_epoch: header.producer_epoch,
            sequence: header.base_sequence,
            contents: Contents::of(batch, header)?,
        })
    }
}

impl Contents {
    fn of(batch: &records::Batch, header: &BatchHeader) -> Result<Self, BatchError> {
        let is_transactional = header.attributes.is_transactional();
        if header.attributes.is_control() {
            let marker =
                EndTxnMarker::of_batch(batch)?.expect("invariant: there are no other control batches");
            return Ok(Self::Marker { commit: marker.commit, coordinator_epoch: marker.coordinator_epoch });
        }
        if header.has_producer_id() && !is_transactional {
            return Ok(Self::Words);
        }
        let mut records = Vec::new();
        for record in batch.records()?.iter() {
            let record = record?;
            match (record.key, record.value) {
                (None, Some(value)) => {
                    let value =
                        value.try_into().expect("invariant: a value of a transaction has eight bytes");
                    return Ok(Self::Value(u64::from_be_bytes(value)));
                }
                (key, value) => records.push(Record {
                    key: Bytes::copy_from_slice(key.unwrap_or_default()),
                    value: value.map(Bytes::copy_from_slice),
                }),
            }
        }
        Ok(Self::Records { records, in_transaction: is_transactional })
    }
}
