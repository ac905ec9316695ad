//! The partition that the group reads: Kafka's bytes, by idempotent producers and in transactions that end at once, so
//! that all of it is stable.

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::{CoordinatorEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};
use barnabas_partition::{Bounds, Isolation};
use barnabas_wire::records::{BatchBuilder, BatchOptions, EndTxnMarker, control_batch};
use bytes::Bytes;

use crate::random::Random;

#[derive(Debug)]
pub(super) struct PlayedLog {
    pub isolation: Isolation,
    batches: BTreeMap<i64, Bytes>,
    /// Producers, with the first and the last offset of the transaction; the last is the marker's.
    aborted: Vec<(ProducerId, i64, i64)>,
    /// Offsets that no member must be given: of transactions that were aborted.
    hidden: BTreeSet<i64>,
    markers: BTreeSet<i64>,
    start: i64,
    end: i64,
}

impl PlayedLog {
    pub fn new(isolation: Isolation) -> Self {
        Self {
            isolation,
            batches: BTreeMap::new(),
            aborted: Vec::new(),
            hidden: BTreeSet::new(),
            markers: BTreeSet::new(),
            start: 0,
            end: 0,
        }
    }

    pub fn end(&self) -> i64 {
        self.end
    }

    pub fn bounds(&self) -> Bounds {
        let end = Offset(self.end);
        Bounds { log_start: Offset(self.start), end, high_watermark: end, last_stable: end, log_end: end }
    }

    /// A batch of one to five records; one in five is a transaction of its own.
    pub fn append(&mut self, random: &mut Random) {
        let count = 1 + random.below(5) as i64;
        let transactional = random.one_in(5);
        let producer_id = ProducerId(random.below(3) as i64);
        let options = BatchOptions {
            producer_id,
            producer_epoch: ProducerEpoch(0),
            transactional,
            ..BatchOptions::default()
        };
        let first = self.end;
        let mut builder = BatchBuilder::new(BatchOptions { base_offset: Offset(first), ..options });
        for _ in 0..count {
            builder.push(TimestampMs(1), None, Some(&[7; 40]), &[]);
        }
        self.put(builder.build().expect("invariant: a few records fit a batch"), count);
        if transactional {
            self.end_transaction(random.one_in(2), first, options);
        }
    }

    fn end_transaction(&mut self, commit: bool, first: i64, options: BatchOptions) {
        let at = self.end;
        let marker = EndTxnMarker { commit, coordinator_epoch: CoordinatorEpoch(0) };
        let options = BatchOptions { base_offset: Offset(at), ..options };
        let bytes = control_batch(options, TimestampMs(1), marker.control_type(), &marker.value());
        self.put(bytes.expect("invariant: a marker fits a batch"), 1);
        self.markers.insert(at);
        if !commit {
            self.aborted.push((options.producer_id, first, at));
            if self.isolation == Isolation::ReadCommitted {
                self.hidden.extend(first..at);
            }
        }
    }

    fn put(&mut self, bytes: Bytes, records: i64) {
        self.batches.insert(self.end, bytes);
        self.end += records;
    }

    /// DeleteRecords: some of the front goes.
    pub fn delete_some(&mut self, random: &mut Random) {
        self.start += random.below((self.end - self.start).min(12) as usize + 1) as i64;
    }

    /// Whole batches from the one that holds `from`, at least one; and what was aborted of them.
    pub fn read(&self, from: Offset, bytes_max: usize) -> (Bytes, Vec<(ProducerId, Offset)>) {
        let first = self.batches.range(..=from.get()).next_back().map_or(0, |(base, _)| *base);
        let (mut bytes, mut last) = (Vec::new(), first);
        for (base, batch) in self.batches.range(first..) {
            if !bytes.is_empty() && bytes.len() + batch.len() > bytes_max {
                break;
            }
            bytes.extend_from_slice(batch);
            last = *base;
        }
        let hides = self.isolation == Isolation::ReadCommitted;
        let concerns = |(_, begins, ends): &&(ProducerId, i64, i64)| *ends >= first && *begins <= last;
        let aborted = self.aborted.iter().filter(|_| hides).filter(concerns);
        (bytes.into(), aborted.map(|(producer, begins, _)| (*producer, Offset(*begins))).collect())
    }

    /// Whether a member must not be given the record.
    pub fn is_hidden(&self, offset: i64) -> bool {
        self.hidden.contains(&offset)
    }

    /// Whether a member must have been given the record in the end.
    pub fn is_owed(&self, offset: i64) -> bool {
        offset >= self.start && !self.hidden.contains(&offset) && !self.markers.contains(&offset)
    }
}
