//! Batches that were refused for a reason that passes, of producers that their partitions do not remember: what came
//! behind them on the same connection waits until they have come again.
//!
//! A partition takes any sequence from a producer that it does not remember. So where the
//! first batch of a producer finds no room and the second one does, the second becomes the beginning, and the first,
//! sent again, is out of order until its client gives up. Kafka has this hurt, and mends it for transactions alone
//! (KIP-890, `VerificationStateEntry`).
//!
//! Kept by a worker and not by a partition: a batch is also refused where the partition is not open, or cannot be. What
//! is refused as its topic is not known yet is kept by the node, by the name that the request gives.
//!
//! Always true:
//! 1. of one producer and partition one batch is kept: of its newest epoch the first
//! 2. at most [`BATCHES_MAX`] are kept, and none for longer than [`KEPT_FOR`]

use std::hash::Hash;

use barnabas_base::{DurationMs, Map, MonotonicMs, ProducerEpoch, ProducerId, Sequence};

use crate::PartitionKey;

/// Producers beyond these, the ones refused longest ago, go on as with Kafka.
const BATCHES_MAX: usize = 4096;
/// Longer than clients try by default: `delivery.timeout.ms` is two minutes, librdkafka's `message.timeout.ms` five.
/// Each refusal begins it again.
const KEPT_FOR: DurationMs = DurationMs(600_000);

/// Half of all sequences: what lies further ahead lies behind.
const AHEAD_MAX: i32 = 1 << 30;

/// Which batch of its producer a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSequence {
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    /// Of the first record.
    pub base_sequence: Sequence,
}

impl BatchSequence {
    /// Whether it is an idempotent producer's.
    pub fn is_numbered(&self) -> bool {
        self.producer_id.is_some() && self.base_sequence != Sequence::NONE
    }

    /// Whether it lies behind `other`. Sequences go on with 0 after the highest.
    fn follows(&self, other: Sequence) -> bool {
        let ahead = self.base_sequence.0.wrapping_sub(other.0) & i32::MAX;
        ahead != 0 && ahead < AHEAD_MAX
    }
}

#[derive(Debug, Clone, Copy)]
struct Refused {
    epoch: ProducerEpoch,
    sequence: Sequence,
    at: MonotonicMs,
}

impl Refused {
    fn is_stale(&self, now: MonotonicMs) -> bool {
        now.since(self.at) >= KEPT_FOR
    }
}

/// See the file's header. `K` names a partition.
#[derive(Debug)]
pub struct RefusedBatches<K = PartitionKey> {
    first: Map<(K, ProducerId), Refused>,
}

impl<K> Default for RefusedBatches<K> {
    fn default() -> Self {
        Self { first: Map::default() }
    }
}

impl<K: Clone + Eq + Hash> RefusedBatches<K> {
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    pub fn len(&self) -> usize {
        self.first.len()
    }

    /// A batch was refused, and its client will send it again. One without a sequence is not kept.
    pub fn note(&mut self, key: K, batch: BatchSequence, now: MonotonicMs) {
        if !batch.is_numbered() {
            return;
        }
        let (epoch, sequence) = (batch.producer_epoch, batch.base_sequence);
        let known =
            self.first.entry((key, batch.producer_id)).or_insert(Refused { epoch, sequence, at: now });
        known.at = now;
        let is_earlier = epoch == known.epoch && !batch.follows(known.sequence);
        if epoch > known.epoch || is_earlier {
            (known.epoch, known.sequence) = (epoch, sequence);
        }
        if self.first.len() > BATCHES_MAX {
            self.drop_oldest(now);
        }
    }

    /// Whether an earlier batch of the producer is still to come again. It counts where the partition does not remember
    /// the producer ([`Append::follows_refused`](crate::Append::follows_refused)).
    pub fn are_before(&self, key: K, batch: BatchSequence, now: MonotonicMs) -> bool {
        let Some(known) = self.first.get(&(key, batch.producer_id)) else { return false };
        let is_behind = known.epoch == batch.producer_epoch && batch.follows(known.sequence);
        batch.is_numbered() && is_behind && !known.is_stale(now)
    }

    /// The partition has a batch of the producer: its own state says what comes next.
    pub fn placed(&mut self, key: K, producer_id: ProducerId) {
        self.first.remove(&(key, producer_id));
    }

    /// Drops stale ones, and so many more that the next tenth of them costs no look at all the others.
    fn drop_oldest(&mut self, now: MonotonicMs) {
        self.first.retain(|_, refused| !refused.is_stale(now));
        let kept = BATCHES_MAX - BATCHES_MAX / 10;
        let Some(excess) = self.first.len().checked_sub(kept).filter(|excess| *excess > 0) else { return };
        let mut by_age: Vec<_> =
            self.first.iter().map(|(name, refused)| (refused.at, name.clone())).collect();
        by_age.select_nth_unstable_by_key(excess - 1, |(at, _)| *at);
        for (_, name) in &by_age[..excess] {
            self.first.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{PartitionIndex, Uuid};

    const KEY: PartitionKey = PartitionKey { topic: Uuid([7; 16]), partition: PartitionIndex(0) };
    const NOW: MonotonicMs = MonotonicMs(5_000);

    fn batch(producer: i64, epoch: i16, sequence: i32) -> BatchSequence {
        BatchSequence {
            producer_id: ProducerId(producer),
            producer_epoch: ProducerEpoch(epoch),
            base_sequence: Sequence(sequence),
        }
    }

    #[test]
    fn later_batches_wait_for_the_first_one_refused() {
        let mut refused = RefusedBatches::default();
        assert!(!refused.are_before(KEY, batch(1, 0, 5), NOW));
        refused.note(KEY, batch(1, 0, 5), NOW);
        refused.note(KEY, batch(1, 0, 0), NOW);
        refused.note(KEY, batch(1, 0, 9), NOW);
        assert!(refused.are_before(KEY, batch(1, 0, 5), NOW));
        assert!(!refused.are_before(KEY, batch(1, 0, 0), NOW), "the one that is waited for");
        assert!(!refused.are_before(KEY, batch(2, 0, 5), NOW), "another producer");
        let other = PartitionKey { partition: PartitionIndex(1), ..KEY };
        assert!(!refused.are_before(other, batch(1, 0, 5), NOW), "another partition");
        refused.placed(KEY, ProducerId(1));
        assert!(refused.is_empty());
    }

    #[test]
    fn newer_epoch_begins_again_and_an_older_one_changes_nothing() {
        let mut refused = RefusedBatches::default();
        refused.note(KEY, batch(1, 3, 40), NOW);
        assert!(!refused.are_before(KEY, batch(1, 4, 50), NOW), "it counts from 0 again");
        refused.note(KEY, batch(1, 4, 2), NOW);
        refused.note(KEY, batch(1, 3, 0), NOW);
        assert!(refused.are_before(KEY, batch(1, 4, 3), NOW));
    }

    #[test]
    fn sequences_go_on_with_0_after_the_highest() {
        let mut refused = RefusedBatches::default();
        refused.note(KEY, batch(1, 0, i32::MAX - 1), NOW);
        assert!(refused.are_before(KEY, batch(1, 0, 3), NOW));
        assert!(!refused.are_before(KEY, batch(1, 0, i32::MAX - 7), NOW), "it came before");
        refused.note(KEY, batch(1, 0, 3), NOW);
        assert!(refused.are_before(KEY, batch(1, 0, 3), NOW), "the earlier one stays the first");
    }

    #[test]
    fn batches_without_a_sequence_are_none_of_its_business() {
        let mut refused = RefusedBatches::default();
        refused.note(KEY, batch(-1, -1, -1), NOW);
        refused.note(KEY, batch(1, 0, -1), NOW);
        assert!(refused.is_empty());
        refused.note(KEY, batch(1, 0, 0), NOW);
        assert!(!refused.are_before(KEY, batch(1, 0, -1), NOW));
    }

    #[test]
    fn what_was_refused_long_ago_is_forgotten() {
        let mut refused = RefusedBatches::default();
        refused.note(KEY, batch(1, 0, 0), NOW);
        let late = NOW.plus(KEPT_FOR);
        assert!(!refused.are_before(KEY, batch(1, 0, 5), late));
        refused.note(KEY, batch(1, 0, 5), late);
        assert!(refused.are_before(KEY, batch(1, 0, 5), late), "its client still tries");
        for producer in 0..10 * BATCHES_MAX as i64 {
            refused.note(KEY, batch(producer, 0, 0), late.plus(DurationMs(producer)));
            assert!(refused.first.len() <= BATCHES_MAX);
        }
        let last = 10 * BATCHES_MAX as i64 - 1;
        let end = late.plus(DurationMs(last));
        assert!(refused.are_before(KEY, batch(last, 0, 1), end), "the newest stay");
    }
}
