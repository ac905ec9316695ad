//! How many producers a partition remembers, and what it takes over of them from a snapshot.
//!
//! Two bounds: one for each partition, kept with each batch, and one for all partitions of a node, kept now and then by
//! [`forget_beyond`](Partition::forget_beyond) what is above the [`level`].

use super::Partition;
use crate::{Append, BatchInfo, ProducerState, Refusal};
use barnabas_base::{ProducerId, Sequence};

impl Partition {
    /// # Errors
    /// [`Refusal::SequenceGap`]: nothing is remembered of the producer, so that any sequence would do, and an earlier
    /// batch of it was refused.
    pub(super) fn check_follows(&self, batch: &BatchInfo, how: &Append) -> Result<(), Refusal> {
        let (producer_id, sequence) = (batch.producer_id, batch.base_sequence);
        if how.follows_refused && !self.remembers(producer_id) {
            return Err(Refusal::SequenceGap { producer_id, sequence, last: Sequence::NONE });
        }
        Ok(())
    }

    /// Whether the producer's state says what comes next of it.
    pub fn remembers(&self, producer_id: ProducerId) -> bool {
        self.producers.as_deref().is_some_and(|producers| producers.has_epoch(producer_id))
    }

    /// What was given to [`Self::remembering`].
    pub fn producers_max(&self) -> u32 {
        self.producers_max
    }

    /// As [`Self::new`]; remembers `producers_max` producers at most, beside those with open transactions.
    pub fn remembering(producers_max: u32) -> Self {
        Self { producers_max, ..Self::new() }
    }

    /// Forgets producers until `max` are left, those that wrote longest ago first. Those with an open transaction stay.
    pub fn forget_beyond(&mut self, max: usize) {
        if let Some(producers) = &mut self.producers {
            producers.keep_within(max, ProducerId::NONE);
        }
        self.drop_empty();
        self.assert_invariants();
    }

    /// Takes over producers from a snapshot. Before [`Self::replay`] and [`Self::open`].
    pub fn restore(&mut self, producers: impl IntoIterator<Item = ProducerState>) {
        let max = self.producers_max as usize;
        for state in producers {
            let producers = self.producers_mut();
            producers.restore(state);
            producers.keep_within(max, state.producer_id);
        }
    }
}

/// How many producers each partition may keep, so that all together keep `max` at most: partitions with few keep
/// theirs, those with the most come down to one level. `None`: there are no more than `max`.
///
/// `counts`: how many producers each partition remembers, in any order.
pub fn level(counts: &mut [usize], max: usize) -> Option<usize> {
    if counts.iter().sum::<usize>() <= max {
        return None;
    }
    counts.sort_unstable();
    let mut left = max;
    for (at, &count) in counts.iter().enumerate() {
        let share = left / (counts.len() - at);
        if count > share {
            return Some(share);
        }
        left -= count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::level;

    #[test]
    fn partitions_with_the_most_come_down_to_one_level() {
        assert_eq!(level(&mut [5, 5], 10), None);
        assert_eq!(level(&mut [], 0), None);
        assert_eq!(level(&mut [100, 2, 3], 55), Some(50));
        assert_eq!(level(&mut [100, 2, 100], 102), Some(50));
        assert_eq!(level(&mut [1, 1, 1], 2), Some(0));
        for seed in 0..1_000_usize {
            let mut counts: Vec<usize> = (0..seed % 17).map(|at| (seed * 31 + at * at * 7) % 50).collect();
            let max = seed % 300;
            let Some(level) = level(&mut counts, max) else {
                assert!(counts.iter().sum::<usize>() <= max);
                continue;
            };
            let kept = |level: usize| counts.iter().map(|&count| count.min(level)).sum::<usize>();
            assert!(
                kept(level) <= max && kept(level + 1) > max,
                "{counts:?}, {max}: the highest level that fits"
            );
        }
    }
}
