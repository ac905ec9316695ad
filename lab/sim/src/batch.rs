//! A batch in the words of the simulation, and as Kafka's bytes: what clients and coordinators mean is written as a
//! record batch, and what invariants judge is read back from the bytes in a log. A compacted log has less of it.

pub(crate) mod keyed;

use barnabas_base::{
    CoordinatorEpoch, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs,
};
use barnabas_coordinator::Record;
use barnabas_wire::records::{
    self, BatchBuilder, BatchError, BatchHeader, BatchOptions, EndTxnMarker, ReadyBatch, control_batch,
};
use bytes::Bytes;
use keyed::Keyed;

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
    /// Nothing any more: compaction has left the batch without records.
    Nothing,
    /// Records that were not written so.
    Strange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    pub base: Offset,
    pub epoch: LeaderEpoch,
    pub offsets: i32,
    pub producer: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub sequence: Sequence,
    /// Which records are there: their offsets, less the base. Compaction takes some away. Empty until it is read.
    pub left: Vec<i32>,
    pub contents: Contents,
}

/// What compaction goes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyedRecord {
    pub offset: Offset,
    pub key: Bytes,
    pub is_tombstone: bool,
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
            left: Vec::new(),
            contents,
        }
    }

    pub fn end(&self) -> Offset {
        self.base.plus(i64::from(self.offsets))
    }

    /// The offset of its record at `place` among those that are there.
    pub fn offset_of(&self, place: usize) -> Offset {
        self.base.plus(self.left.get(place).map_or(place as i64, |delta| i64::from(*delta)))
    }

    pub fn is_transactional(&self) -> bool {
        matches!(self.contents, Contents::Value(_) | Contents::Records { in_transaction: true, .. })
    }

    /// Its records that have keys.
    pub fn keyed(&self) -> Vec<KeyedRecord> {
        let of = |place: usize, keyed: Keyed| KeyedRecord {
            offset: self.offset_of(place),
            key: Bytes::copy_from_slice(&[keyed.key()]),
            is_tombstone: keyed.is_tombstone(),
        };
        match &self.contents {
            Contents::Words => {
                let keyed = |delta: &i32| Keyed::of_sequence(self.producer, self.sequence.plus(*delta));
                let keyed = self.left.iter().map(keyed).enumerate();
                keyed.filter_map(|(place, keyed)| Some(of(place, keyed?))).collect()
            }
            Contents::Value(value) => Keyed::of_value(*value).map(|keyed| of(0, keyed)).into_iter().collect(),
            Contents::Records { records, .. } => {
                let of = |(place, record): (usize, &Record)| KeyedRecord {
                    offset: self.offset_of(place),
                    key: record.key.clone(),
                    is_tombstone: record.value.is_none(),
                };
                records.iter().enumerate().map(of).collect()
            }
            Contents::Marker { .. } | Contents::Nothing | Contents::Strange => Vec::new(),
        }
    }

    /// Whether it is `whole`, or what compaction may leave of it: the same batch, with some of its records.
    pub fn is_left_of(&self, whole: &Self) -> bool {
        let words = |batch: &Self| {
            ((batch.base, batch.epoch, batch.offsets), (batch.producer, batch.producer_epoch, batch.sequence))
        };
        let is_there = |delta: &i32| whole.left.contains(delta);
        if words(self) != words(whole) || !self.left.iter().all(is_there) {
            return false;
        }
        match (&self.contents, &whole.contents) {
            (Contents::Nothing, _) => true,
            (
                Contents::Records { records, in_transaction },
                Contents::Records { records: all, in_transaction: was },
            ) => {
                let written = |delta: &i32| whole.left.iter().position(|other| other == delta);
                let written = self.left.iter().map(|delta| written(delta).and_then(|at| all.get(at)));
                in_transaction == was && written.eq(records.iter().map(Some))
            }
            (left, whole) => left == whole,
        }
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
            Contents::Words if Keyed::of_sequence(self.producer, self.sequence).is_some() => {
                let keyed = |delta| Keyed::of_sequence(self.producer, self.sequence.plus(delta));
                (0..self.offsets).filter_map(keyed).for_each(|keyed| keyed.push(&mut builder, now));
            }
            Contents::Words => {
                let size = WORDS_BYTES[(self.sequence.get() as usize) % WORDS_BYTES.len()];
                let words = vec![self.sequence.get() as u8; size];
                (0..self.offsets).for_each(|_| builder.push(now, None, Some(&words), &[]));
            }
            Contents::Value(value) => match Keyed::of_value(*value) {
                Some(keyed) => keyed.push(&mut builder, now),
                None => builder.push(now, None, Some(&value.to_be_bytes()), &[]),
            },
            Contents::Records { records, .. } => {
                for record in records {
                    builder.push(now, Some(&record.key), record.value.as_deref(), &[]);
                }
            }
            Contents::Marker { commit, coordinator_epoch } => {
                let marker = EndTxnMarker { commit: *commit, coordinator_epoch: *coordinator_epoch };
                return control_batch(options, now, marker.control_type(), &marker.value());
            }
            Contents::Nothing | Contents::Strange => {}
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
        let all = batch.records()?;
        let left = all.iter().map(|record| Ok(record?.offset_delta)).collect::<Result<_, BatchError>>()?;
        Ok(Self {
            base: header.base_offset,
            epoch: header.partition_leader_epoch,
            offsets: header.last_offset_delta + 1,
            producer: header.producer_id,
            producer_epoch: header.producer_epoch,
            sequence: header.base_sequence,
            left,
            contents: Contents::of(batch, header)?,
        })
    }
}

impl Contents {
    fn of(batch: &records::Batch, header: &BatchHeader) -> Result<Self, BatchError> {
        let is_transactional = header.attributes.is_transactional();
        if header.record_count == 0 {
            return Ok(Self::Nothing);
        }
        if header.attributes.is_control() {
            let marker =
                EndTxnMarker::of_batch(batch)?.expect("invariant: there are no other control batches");
            return Ok(Self::Marker { commit: marker.commit, coordinator_epoch: marker.coordinator_epoch });
        }
        if header.has_producer_id() && !is_transactional {
            return Self::of_words(batch, header);
        }
        let mut records = Vec::new();
        for record in batch.records()?.iter() {
            let record = record?;
            if let Some(keyed) = Keyed::read(&record) {
                return Ok(Self::Value(keyed.number()));
            }
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

    /// Records with keys are those of their sequences.
    fn of_words(batch: &records::Batch, header: &BatchHeader) -> Result<Self, BatchError> {
        for record in batch.records()?.iter() {
            let record = record?;
            let sequence = header.base_sequence.plus(record.offset_delta);
            let expected = Keyed::of_sequence(header.producer_id, sequence);
            if expected.is_some() && Keyed::read(&record) != expected {
                return Ok(Self::Strange);
            }
        }
        Ok(Self::Words)
    }
}
