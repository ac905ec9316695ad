//! What a partition remembers of its producers: enough to know a retry, a gap and a zombie, and which transactions are
//! open.
//!
//! Pure bookkeeping: it assigns no offsets and answers no requests.
//!
//! Always true:
//! 1. of one producer at most five batches are remembered, all of its newest epoch, offsets rising
//! 2. an open transaction stands once in `open`, under its first offset, and in its producer's entry
//!
//! Source: KIP-98, KIP-360, KIP-447, KIP-890; Kafka 4 `ProducerStateEntry`, `ProducerAppendInfo`,
//! `ProducerStateManager`.

pub(crate) mod refused;

use std::collections::BTreeMap;

use barnabas_base::{
    CoordinatorEpoch, DurationMs, Map, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs,
};

use crate::{BatchInfo, BatchKind, LastBatch, Marker, Origin, Outcome, ProducerState, Refusal};

/// As many as a Java client keeps in flight when it is idempotent (`max.in.flight.requests.per.connection` ≤ 5).
pub(crate) const BATCHES_REMEMBERED: usize = 5;

/// Half of all sequences: what lies further back could as well lie ahead.
const IN_ORDER_MAX: u32 = 1 << 30;

/// A batch that a producer may send again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remembered {
    pub last_sequence: Sequence,
    pub last_offset: Offset,
    pub offset_delta: i32,
    pub timestamp: TimestampMs,
}

impl Remembered {
    const NOTHING: Self = Self {
        last_sequence: Sequence::NONE,
        last_offset: Offset::NONE,
        offset_delta: 0,
        timestamp: TimestampMs::NONE,
    };

    pub fn base(&self) -> Offset {
        self.last_offset.plus(-i64::from(self.offset_delta))
    }

    fn as_last(&self) -> LastBatch {
        LastBatch {
            last_sequence: self.last_sequence,
            last_offset: self.last_offset,
            offset_delta: self.offset_delta,
        }
    }

    fn holds(&self, batch: &BatchInfo) -> bool {
        self.offset_delta == batch.offsets - 1 && self.last_sequence == last_sequence(batch)
    }
}

fn last_sequence(batch: &BatchInfo) -> Sequence {
    if batch.base_sequence == Sequence::NONE {
        return Sequence::NONE;
    }
    batch.base_sequence.plus(batch.offsets - 1)
}

/// The sequence so many before. Sequences go on with 0 after the highest.
fn back_by(sequence: Sequence, records: i32) -> Sequence {
    Sequence(sequence.0.wrapping_sub(records) & i32::MAX)
}

/// One producer.
#[derive(Debug, Clone)]
pub(crate) struct Producer {
    epoch: ProducerEpoch,
    coordinator_epoch: CoordinatorEpoch,
    last_timestamp: TimestampMs,
    txn_first: Option<Offset>,
    /// Where the last marker lies that did not rise above what it ended: late records may have its epoch.
    /// [`Offset::NONE`] where none is known, as none is of the time before the log was opened.
    last_marker: Offset,
    /// Its newest record, data or marker.
    last_offset: Offset,
    /// Oldest first; the first `remembered` of them.
    batches: [Remembered; BATCHES_REMEMBERED],
    remembered: u8,
    /// So many sequences up to the last one were appended, one after the other; those of batches that are not
    /// remembered any more are among them.
    in_order: u32,
}

impl Producer {
    const NEW: Self = Self {
        epoch: ProducerEpoch::NONE,
        coordinator_epoch: CoordinatorEpoch::NONE,
        last_timestamp: TimestampMs::NONE,
        txn_first: None,
        last_marker: Offset::NONE,
        last_offset: Offset::NONE,
        batches: [Remembered::NOTHING; BATCHES_REMEMBERED],
        remembered: 0,
        in_order: 0,
    };

    fn batches(&self) -> &[Remembered] {
        &self.batches[..usize::from(self.remembered)]
    }

    fn last_sequence(&self) -> Sequence {
        self.batches().last().map_or(Sequence::NONE, |batch| batch.last_sequence)
    }

    fn set_epoch(&mut self, epoch: ProducerEpoch) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.remembered = 0;
            self.in_order = 0;
        }
    }

    fn remember(&mut self, batch: Remembered) {
        let last = self.last_sequence();
        let follows =
            last != Sequence::NONE && last.plus(1) == back_by(batch.last_sequence, batch.offset_delta);
        let before = if follows { self.in_order } else { 0 };
        self.in_order = match batch.last_sequence {
            Sequence::NONE => 0,
            _ => before.saturating_add(batch.offset_delta as u32 + 1).min(IN_ORDER_MAX),
        };
        let mut count = usize::from(self.remembered);
        if count == BATCHES_REMEMBERED {
            self.batches.copy_within(1.., 0);
            count -= 1;
        }
        self.batches[count] = batch;
        self.remembered = (count + 1) as u8;
    }

    fn state(&self, producer_id: ProducerId) -> ProducerState {
        ProducerState {
            producer_id,
            producer_epoch: self.epoch,
            coordinator_epoch: self.coordinator_epoch,
            last_timestamp: self.last_timestamp,
            txn_first: self.txn_first,
            last_batch: self.batches().last().map(Remembered::as_last),
        }
    }

    fn is_expired(&self, now: TimestampMs, expiration: DurationMs) -> bool {
        self.txn_first.is_none() && now.0.saturating_sub(self.last_timestamp.0) >= expiration.0
    }
}

/// A transaction that an end marker has just decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decided {
    pub first: Offset,
    pub outcome: Outcome,
    /// How far everything is decided now, were it all replicated: what the transaction index notes.
    pub last_stable: Offset,
}

/// The producers of one partition.
#[derive(Debug, Clone, Default)]
pub(crate) struct Producers {
    entries: Map<ProducerId, Producer>,
    /// First offset → producer of each transaction that is undecided.
    open: BTreeMap<Offset, ProducerId>,
    /// First offset → marker's offset of each transaction whose marker the high watermark has not passed.
    decided: BTreeMap<Offset, Offset>,
}

impl Producers {
    /// The remembered batch that `batch` repeats.
    pub fn duplicate(&self, batch: &BatchInfo) -> Option<Remembered> {
        let producer = self.entries.get(&batch.producer_id)?;
        if producer.epoch != batch.producer_epoch {
            return None;
        }
        producer.batches().iter().find(|remembered| remembered.holds(batch)).copied()
    }

    /// Of a batch that was appended and is not remembered any more: an offset that it lies before.
    ///
    /// A client sends such a batch where the leader changed while it was on its way: the new leader had it already, and
    /// took more than five of its successors before the former leader's refusal came.
    pub fn long_since(&self, batch: &BatchInfo) -> Option<Offset> {
        let producer = self.entries.get(&batch.producer_id)?;
        let is_one = producer.epoch == batch.producer_epoch
            && batch.kind == BatchKind::Data
            && !batch.is_transactional
            && batch.base_sequence != Sequence::NONE;
        let oldest = producer.batches().first().filter(|_| is_one)?;
        let back = |sequence: Sequence| back_by(producer.last_sequence(), sequence.0).0 as u32;
        let end = back(last_sequence(batch));
        let is_before = end > back(back_by(oldest.last_sequence, oldest.offset_delta));
        let was_taken = end.saturating_add(batch.offsets as u32) <= producer.in_order;
        (is_before && was_taken).then(|| oldest.base())
    }

    /// Whether the producer's state takes this batch. Nothing changes.
    pub fn check(&self, batch: &BatchInfo, origin: Origin, verified: bool) -> Result<(), Refusal> {
        let producer = self.entries.get(&batch.producer_id).unwrap_or(&Producer::NEW);
        match batch.kind {
            BatchKind::Data => check_data(producer, batch, origin, verified),
            BatchKind::Marker(marker) => check_marker(producer, batch, marker),
            BatchKind::OtherControl => Ok(()),
        }
    }

    /// Takes a batch at `base` into account. It was checked, or is read back from the log, whose word counts.
    pub fn note(&mut self, base: Offset, batch: &BatchInfo) -> Option<Decided> {
        match batch.kind {
            BatchKind::Data => {
                self.note_data(base, batch);
                None
            }
            BatchKind::Marker(marker) => self.note_marker(base, batch, marker),
            BatchKind::OtherControl => None,
        }
    }

    fn note_data(&mut self, base: Offset, batch: &BatchInfo) {
        let producer = self.entries.entry(batch.producer_id).or_insert(Producer::NEW);
        producer.set_epoch(batch.producer_epoch);
        producer.last_offset = base.plus(i64::from(batch.offsets) - 1);
        producer.remember(Remembered {
            last_sequence: last_sequence(batch),
            last_offset: producer.last_offset,
            offset_delta: batch.offsets - 1,
            timestamp: batch.max_timestamp,
        });
        producer.last_timestamp = batch.max_timestamp;
        if batch.is_transactional && producer.txn_first.is_none() {
            producer.txn_first = Some(base);
            self.open.insert(base, batch.producer_id);
        }
    }

    fn note_marker(&mut self, offset: Offset, batch: &BatchInfo, marker: Marker) -> Option<Decided> {
        let producer = self.entries.entry(batch.producer_id).or_insert(Producer::NEW);
        let rises = producer.txn_first.is_some() && batch.producer_epoch > producer.epoch;
        if marker.transaction_version < 2 && !rises {
            producer.last_marker = offset;
        }
        producer.set_epoch(batch.producer_epoch);
        producer.last_offset = offset;
        producer.coordinator_epoch = marker.coordinator_epoch;
        producer.last_timestamp = batch.max_timestamp;
        let first = producer.txn_first.take()?;
        self.open.remove(&first);
        self.decided.insert(first, offset);
        let last_stable = self.open.keys().next().copied().unwrap_or(offset.plus(1));
        Some(Decided { first, outcome: marker.outcome, last_stable })
    }

    /// Whether a transaction of the producer is open under this epoch.
    pub fn is_ongoing(&self, producer_id: ProducerId, epoch: ProducerEpoch) -> bool {
        let known = self.entries.get(&producer_id);
        known.is_some_and(|producer| producer.epoch == epoch && producer.txn_first.is_some())
    }

    /// Whether anything is remembered of the producer but its name.
    pub fn has_epoch(&self, producer_id: ProducerId) -> bool {
        self.entries.get(&producer_id).is_some_and(|producer| producer.epoch != ProducerEpoch::NONE)
    }

    /// Where the producer's last transaction ended whose late records its marker does not keep out.
    pub fn last_marker(&self, producer_id: ProducerId) -> Offset {
        self.entries.get(&producer_id).map_or(Offset::NONE, |producer| producer.last_marker)
    }

    /// The first offset whose transaction is undecided, or decided by a marker that is not safe yet.
    pub fn first_unstable(&self) -> Option<Offset> {
        let open = self.open.keys().next();
        let decided = self.decided.keys().next();
        open.into_iter().chain(decided).min().copied()
    }

    /// Markers below `end` are safe: their transactions no longer hold back the last stable offset.
    pub fn settle(&mut self, end: Offset) {
        if !self.decided.is_empty() {
            self.decided.retain(|_, marker| *marker >= end);
        }
    }

    /// Forgets producers that have been silent for `expiration` and have no open transaction.
    pub fn expire(&mut self, now: TimestampMs, expiration: DurationMs) {
        self.entries.retain(|_, producer| !producer.is_expired(now, expiration));
    }

    /// Forgets producers beyond `max`: those that wrote longest ago, by offset, as clients choose timestamps. Producers
    /// with an open transaction stay, and so does `newest`. A forgotten producer goes on as an expired one does.
    ///
    /// More go than must: the next `max / 10` producers cost no look at all the others.
    pub fn keep_within(&mut self, max: usize, newest: ProducerId) {
        let Some(excess) = self.entries.len().checked_sub(max).filter(|excess| *excess > 0) else { return };
        let idle =
            self.entries.iter().filter(|(id, producer)| producer.txn_first.is_none() && **id != newest);
        let mut idle: Vec<(Offset, ProducerId)> =
            idle.map(|(id, producer)| (producer.last_offset, *id)).collect();
        let gone = excess.saturating_add(max / 10).min(idle.len());
        if gone < idle.len() {
            idle.select_nth_unstable(gone);
        }
        for (_, id) in &idle[..gone] {
            self.entries.remove(id);
        }
    }

    /// Takes over one entry of a snapshot. A later entry of the same producer and epoch adds its batch to those before
    /// it.
    pub fn restore(&mut self, state: ProducerState) {
        let before = self.entries.get(&state.producer_id).filter(|known| {
            let newest = known.batches().last();
            known.epoch == state.producer_epoch
                && newest
                    .zip(state.last_batch)
                    .is_some_and(|(newest, last)| newest.last_offset < last.last_offset)
        });
        let mut producer = Producer {
            epoch: state.producer_epoch,
            coordinator_epoch: state.coordinator_epoch,
            last_timestamp: state.last_timestamp,
            txn_first: state.txn_first,
            last_offset: state.last_batch.map_or(Offset::NONE, |last| last.last_offset),
            ..before.cloned().unwrap_or(Producer::NEW)
        };
        if let Some(last) = state.last_batch {
            producer.remember(Remembered {
                last_sequence: last.last_sequence,
                last_offset: last.last_offset,
                offset_delta: last.offset_delta,
                timestamp: state.last_timestamp,
            });
        }
        if let Some(first) = state.txn_first {
            self.open.insert(first, state.producer_id);
        }
        self.entries.insert(state.producer_id, producer);
    }

    /// What [`Self::restore`] needs to know every batch again: an entry for each of a producer's remembered batches,
    /// oldest first.
    ///
    /// Kafka's loader keeps the last entry of a producer, and that is the one it would have written itself.
    pub fn snapshot(&self) -> Vec<ProducerState> {
        let mut states = Vec::with_capacity(self.entries.len());
        let mut ids: Vec<_> = self.entries.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let producer = &self.entries[&id];
            let newest = producer.state(id);
            let older = producer.batches().split_last().map_or(&[][..], |(_, older)| older);
            states.extend(older.iter().map(|batch| ProducerState {
                last_timestamp: batch.timestamp,
                txn_first: None,
                last_batch: Some(batch.as_last()),
                ..newest
            }));
            states.push(newest);
        }
        states
    }

    /// Every producer, by id.
    pub fn states(&self) -> Vec<ProducerState> {
        let mut states: Vec<_> = self.entries.iter().map(|(id, producer)| producer.state(*id)).collect();
        states.sort_unstable_by_key(|state| state.producer_id);
        states
    }

    /// When the producer of the oldest open transaction last wrote.
    pub fn oldest_txn_timestamp(&self) -> Option<TimestampMs> {
        let producer = self.entries.get(self.open.values().next()?)?;
        Some(producer.last_timestamp)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.open.is_empty() && self.decided.is_empty()
    }

    /// The invariants of one producer, after it was touched.
    pub fn assert_invariants(&self, producer_id: ProducerId) {
        let Some(producer) = self.entries.get(&producer_id) else { return };
        let rises = producer.batches().windows(2).all(|pair| pair[0].last_offset < pair[1].last_offset);
        assert!(rises, "invariant 1 of producers: remembered batches of {producer_id} rise");
        let open = producer.txn_first.map(|first| self.open.get(&first));
        assert!(
            open.is_none_or(|owner| owner == Some(&producer_id)),
            "invariant 2 of producers: the open transaction of {producer_id} is listed"
        );
    }

    #[cfg(test)]
    pub fn break_invariant(&mut self, producer_id: ProducerId, number: u8) {
        let producer = self.entries.get_mut(&producer_id).expect("a producer to break");
        match number {
            1 => producer.batches.reverse(),
            _ => producer.txn_first = Some(Offset(i64::MAX)),
        }
    }
}

fn check_data(producer: &Producer, batch: &BatchInfo, origin: Origin, verified: bool) -> Result<(), Refusal> {
    let producer_id = batch.producer_id;
    check_epoch(producer, batch)?;
    let in_txn = producer.txn_first.is_some();
    let ongoing = in_txn && producer.epoch == batch.producer_epoch;
    if batch.is_transactional && !ongoing && !verified {
        return Err(Refusal::TxnState { producer_id });
    }
    if origin == Origin::Client {
        check_sequence(producer, batch)?;
    }
    if in_txn && !batch.is_transactional {
        return Err(Refusal::TxnState { producer_id });
    }
    Ok(())
}

fn check_epoch(producer: &Producer, batch: &BatchInfo) -> Result<(), Refusal> {
    if batch.producer_epoch >= producer.epoch {
        return Ok(());
    }
    let (producer_id, epoch) = (batch.producer_id, batch.producer_epoch);
    Err(Refusal::OldProducerEpoch { producer_id, epoch, current: producer.epoch })
}

fn check_sequence(producer: &Producer, batch: &BatchInfo) -> Result<(), Refusal> {
    let (producer_id, sequence) = (batch.producer_id, batch.base_sequence);
    // Nothing is remembered (expired, or deleted with its records): any sequence may be the next.
    if producer.epoch == ProducerEpoch::NONE {
        return Ok(());
    }
    let last = if producer.epoch == batch.producer_epoch { producer.last_sequence() } else { Sequence::NONE };
    let next = if last == Sequence::NONE { Sequence(0) } else { last.plus(1) };
    if sequence == next { Ok(()) } else { Err(Refusal::SequenceGap { producer_id, sequence, last }) }
}

fn check_marker(producer: &Producer, batch: &BatchInfo, marker: Marker) -> Result<(), Refusal> {
    check_epoch(producer, batch)?;
    let (producer_id, epoch) = (batch.producer_id, batch.producer_epoch);
    // KIP-890: the coordinator bumps the epoch before it ends a transaction, so a marker of the records' own epoch is a
    // late one. With no transaction open it repeats a marker that is written already, and does no harm (KAFKA-19999).
    if marker.transaction_version >= 2 && epoch == producer.epoch && producer.txn_first.is_some() {
        return Err(Refusal::OldProducerEpoch { producer_id, epoch, current: producer.epoch });
    }
    if marker.coordinator_epoch < producer.coordinator_epoch {
        return Err(Refusal::OldCoordinator {
            producer_id,
            epoch: marker.coordinator_epoch,
            current: producer.coordinator_epoch,
        });
    }
    Ok(())
}
