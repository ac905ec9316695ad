//! Which leader epoch began at which offset: what replicas, consumers and the quorum compare to find where two logs
//! part.
//!
//! Always true:
//! 1. epochs rise strictly from entry to entry, and so do start offsets
//! 2. an entry names an epoch under which at least one record was written, or the newest epoch
//!
//! Sources: KIP-101, KIP-279, KIP-320; Kafka `LeaderEpochFileCache`.

use crate::{LeaderEpoch, Offset};

/// One epoch and the offset of its first record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochEntry {
    pub epoch: LeaderEpoch,
    pub start: Offset,
}

/// The epochs of one log, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeaderEpochs {
    entries: Vec<EpochEntry>,
}

impl LeaderEpochs {
    /// Takes over the entries of a checkpoint file. `None` where they do not rise.
    pub fn from_entries(entries: Vec<EpochEntry>) -> Option<Self> {
        let rises =
            entries.windows(2).all(|pair| pair[0].epoch < pair[1].epoch && pair[0].start < pair[1].start);
        rises.then_some(Self { entries })
    }

    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// The newest epoch, if the log has any.
    pub fn latest(&self) -> Option<EpochEntry> {
        self.entries.last().copied()
    }

    /// Notes that `epoch` starts at `start`. Returns whether anything changed and must be written down.
    ///
    /// An entry that the new one contradicts (a later epoch, or one that begins no earlier) gives way: the log is what
    /// counts. So does the entry of a leader that never wrote anything, when records of an older epoch follow all the
    /// same; where that epoch began stays known. (Kafka's followers name the empty epoch to their leader, and cut it
    /// away before.)
    pub fn assign(&mut self, epoch: LeaderEpoch, start: Offset) -> bool {
        if epoch.get() < 0 || start.get() < 0 {
            return false;
        }
        if self.latest().is_some_and(|last| last.epoch == epoch && last.start <= start) {
            return false;
        }
        let before = self.entries.len();
        self.entries.retain(|entry| entry.epoch <= epoch && entry.start < start);
        if self.latest().is_some_and(|last| last.epoch == epoch) {
            return self.entries.len() != before;
        }
        self.entries.push(EpochEntry { epoch, start });
        true
    }

    /// Forgets the epochs that began at `end` or later. Returns whether anything changed.
    pub fn truncate_from_end(&mut self, end: Offset) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.start < end);
        self.entries.len() != before
    }

    /// Forgets what lies below `start`; the epoch that is in force there begins at `start` now. Returns whether
    /// anything changed.
    pub fn truncate_from_start(&mut self, start: Offset) -> bool {
        let Some(last_below) = self.entries.iter().rposition(|entry| entry.start <= start) else {
            return false;
        };
        if last_below == 0 && self.entries[0].start == start {
            return false;
        }
        let changed = last_below > 0 || self.entries[0].start != start;
        self.entries.drain(..last_below);
        self.entries[0].start = start;
        changed
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// The epoch that the record at `offset` was written under.
    pub fn epoch_at(&self, offset: Offset) -> Option<LeaderEpoch> {
        self.entries.iter().rev().find(|entry| entry.start <= offset).map(|entry| entry.epoch)
    }

    /// For `requested`: the largest epoch up to it that this log knows, and the offset where that epoch ends.
    ///
    /// (−1, −1) where the log cannot tell. `log_end` ends the newest epoch.
    ///
    /// # Source
    /// Kafka `LeaderEpochFileCache.endOffsetFor`.
    pub fn end_offset_for(&self, requested: LeaderEpoch, log_end: Offset) -> (LeaderEpoch, Offset) {
        let unknown = (LeaderEpoch::NONE, Offset::NONE);
        let Some(latest) = self.latest() else { return unknown };
        if requested == LeaderEpoch::NONE || requested > latest.epoch {
            return unknown;
        }
        if requested == latest.epoch {
            return (requested, log_end);
        }
        let next = self.entries.partition_point(|entry| entry.epoch <= requested);
        let end = self.entries[next].start;
        match next.checked_sub(1) {
            // Below the oldest epoch that is known: the log begins after it.
            None => (requested, end),
            Some(floor) => (self.entries[floor].epoch, end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(entries: &[(i32, i64)]) -> LeaderEpochs {
        let entries = entries
            .iter()
            .map(|&(epoch, start)| EpochEntry { epoch: LeaderEpoch(epoch), start: Offset(start) });
        LeaderEpochs::from_entries(entries.collect()).expect("rising")
    }

    #[test]
    fn the_end_of_an_epoch_is_the_start_of_the_next_that_is_known() {
        let cache = epochs(&[(2, 10), (4, 20), (7, 35)]);
        let end = |epoch| {
            let (found, end) = cache.end_offset_for(LeaderEpoch(epoch), Offset(50));
            (found.get(), end.get())
        };
        assert_eq!(end(7), (7, 50));
        assert_eq!(end(8), (-1, -1));
        assert_eq!(end(4), (4, 35));
        assert_eq!(end(5), (4, 35));
        assert_eq!(end(2), (2, 20));
        assert_eq!(end(1), (1, 10));
        assert_eq!(end(-1), (-1, -1));
    }

    #[test]
    fn a_later_word_displaces_what_contradicts_it() {
        let mut cache = epochs(&[(2, 10), (4, 20), (7, 35)]);
        assert!(!cache.assign(LeaderEpoch(7), Offset(40)));
        assert!(cache.assign(LeaderEpoch(8), Offset(20)));
        assert_eq!(cache, epochs(&[(2, 10), (8, 20)]));
    }

    /// A leader of epoch 2 wrote nothing and now follows one that has more of epoch 1. The cache
    /// must keep where epoch 1 begins: without it the divergence point of a log that ends in epoch
    /// 1 could not be found (found by lab/sim).
    #[test]
    fn records_of_an_older_epoch_displace_an_empty_one_and_not_their_own() {
        let mut cache = epochs(&[(1, 0), (2, 2)]);
        assert!(cache.assign(LeaderEpoch(1), Offset(2)));
        assert_eq!(cache, epochs(&[(1, 0)]));
        assert_eq!(cache.end_offset_for(LeaderEpoch(0), Offset(9)), (LeaderEpoch(0), Offset(0)));
        assert!(cache.assign(LeaderEpoch(3), Offset(4)));
        assert_eq!(cache, epochs(&[(1, 0), (3, 4)]));
    }

    #[test]
    fn truncation_keeps_the_epoch_in_force() {
        let mut cache = epochs(&[(2, 10), (4, 20), (7, 35)]);
        assert!(cache.truncate_from_start(Offset(25)));
        assert_eq!(cache, epochs(&[(4, 25), (7, 35)]));
        assert!(!cache.truncate_from_start(Offset(25)));
        assert!(cache.truncate_from_end(Offset(35)));
        assert_eq!(cache, epochs(&[(4, 25)]));
        assert_eq!(cache.epoch_at(Offset(24)), None);
        assert_eq!(cache.epoch_at(Offset(99)), Some(LeaderEpoch(4)));
    }

    #[test]
    fn entries_that_do_not_rise_are_refused() {
        let entry = |epoch, start| EpochEntry { epoch: LeaderEpoch(epoch), start: Offset(start) };
        assert_eq!(LeaderEpochs::from_entries(vec![entry(2, 10), entry(2, 11)]), None);
        assert_eq!(LeaderEpochs::from_entries(vec![entry(2, 10), entry(3, 10)]), None);
    }
}
