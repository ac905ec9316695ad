//! How many producers a partition remembers, and what it takes over of them from a snapshot.

use super::Partition;
use crate::ProducerState;

impl Partition {
    /// What was given to [`Self::remembering`].
    pub fn producers_max(&self) -> u32 {
        self.producers_max
    }

    /// As [`Self::new`]; remembers `producers_max` producers at most, beside those with open transactions.
    pub fn remembering(producers_max: u32) -> Self {
        Self { producers_max, ..Self::new() }
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
