//! Which offsets may be committed: per partition, up to the first record that is not done. Pure.

use barnabas_base::{Offset, PartitionIndex};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
struct Partition {
    /// Sent and not done.
    open: BTreeSet<Offset>,
    /// All records below it were begun.
    next: Option<Offset>,
    committed: Option<Offset>,
}

impl Partition {
    /// What may be committed, if it is more than what was.
    fn ahead(&self) -> Option<Offset> {
        self.open.first().copied().or(self.next).filter(|upto| self.committed.is_none_or(|was| was < *upto))
    }
}

/// The progress of one membership.
#[derive(Debug, Default)]
pub(super) struct Progress(BTreeMap<PartitionIndex, Partition>);

impl Progress {
    /// Of the partitions that are ours, with their committed offsets.
    pub fn new(assigned: &[(PartitionIndex, Option<Offset>)]) -> Self {
        let partition =
            |committed: &Option<Offset>| Partition { committed: *committed, ..Partition::default() };
        Self(assigned.iter().map(|(index, committed)| (*index, partition(committed))).collect())
    }

    pub fn begin(&mut self, partition: PartitionIndex, offset: Offset) {
        let partition = self.0.entry(partition).or_default();
        partition.open.insert(offset);
        partition.next = partition.next.max(Some(offset.plus(1)));
    }

    pub fn done(&mut self, partition: PartitionIndex, offset: Offset) {
        if let Some(partition) = self.0.get_mut(&partition) {
            partition.open.remove(&offset);
        }
    }

    /// The consumer has given out everything below `position`: transaction markers are passed without a record.
    pub fn reach(&mut self, partition: PartitionIndex, position: Offset) {
        if let Some(partition) = self.0.get_mut(&partition) {
            partition.next = partition.next.max(Some(position));
        }
    }

    /// Whether [`Self::take`] would return anything.
    pub fn is_ahead(&self) -> bool {
        self.0.values().any(|partition| partition.ahead().is_some())
    }

    /// The offsets that have moved since the last call.
    pub fn take(&mut self) -> Vec<(PartitionIndex, Offset)> {
        let mut moved = Vec::new();
        for (index, partition) in &mut self.0 {
            if let Some(upto) = partition.ahead() {
                partition.committed = Some(upto);
                moved.push((*index, upto));
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: PartitionIndex = PartitionIndex(0);

    #[test]
    fn offset_waits_for_all_before_it() {
        let mut progress = Progress::new(&[(P, Some(Offset(5)))]);
        for offset in [5, 6, 9] {
            progress.begin(P, Offset(offset));
        }
        progress.done(P, Offset(6));
        assert!(!progress.is_ahead());
        assert_eq!(progress.take(), []);
        progress.done(P, Offset(5));
        assert_eq!(progress.take(), [(P, Offset(9))], "6 is done and 7 and 8 hold no records");
        assert_eq!(progress.take(), []);
        progress.done(P, Offset(9));
        assert_eq!(progress.take(), [(P, Offset(10))]);
        progress.done(PartitionIndex(7), Offset(1));
        assert_eq!(progress.take(), []);
    }

    #[test]
    fn markers_at_the_end_are_passed() {
        let mut progress = Progress::new(&[(P, None)]);
        progress.begin(P, Offset(0));
        progress.reach(P, Offset(2));
        assert_eq!(progress.take(), [(P, Offset(0))], "the record is open");
        progress.done(P, Offset(0));
        assert_eq!(progress.take(), [(P, Offset(2))]);
        progress.reach(P, Offset(1));
        progress.reach(PartitionIndex(1), Offset(9));
        assert!(!progress.is_ahead(), "no position moves back, and partitions of others do not count");
    }
}
