//! Where two logs part: what a leader tells a follower of its epochs, and where a follower cuts its log because of
//! that.
//!
//! A follower names the epoch of its last record. If that epoch is not the leader's at that place, the leader answers
//! with the largest epoch up to it that it knows, and where that ends; the follower cuts to the smaller of the two
//! ends. Where the follower does not know that epoch either, it cuts to the end of its largest smaller one, and asks
//! again: each question goes one epoch back at least, so that it ends (KIP-279). The high watermark plays no part
//! (KIP-101).
//!
//! Source: KIP-101, KIP-279, KIP-595; Kafka `Partition.readRecords`, `AbstractFetcherThread.getOffsetTruncationState`.

use barnabas_base::{LeaderEpoch, LeaderEpochs, Offset};

/// The answer to a reader whose last record before `from` is of epoch `last`, if its log is not a prefix of this
/// one: the largest epoch that both may know, and where it ends here. Both −1: no record here is of that epoch, nor
/// of any older one.
pub fn diverging(
    epochs: &LeaderEpochs,
    log_end: Offset,
    last: LeaderEpoch,
    from: Offset,
) -> Option<(LeaderEpoch, Offset)> {
    let (epoch, end) = epochs.end_offset_for(last, log_end);
    (epoch < last || end < from).then_some((epoch, end))
}

/// Where a log that ends at `log_end` is to be cut when its leader says that `leaders` is the largest common epoch and
/// ends at `leaders_end`.
pub fn truncation(
    epochs: &LeaderEpochs,
    log_end: Offset,
    leaders: LeaderEpoch,
    leaders_end: Offset,
) -> Offset {
    let (own, own_end) = epochs.end_offset_for(leaders, log_end);
    let target = if own == LeaderEpoch::NONE {
        // No epoch is known here that old: the leader's word is all there is.
        leaders_end
    } else if own == leaders {
        own_end.min(leaders_end)
    } else {
        own_end
    };
    target.min(log_end)
}

#[cfg(test)]
mod tests {
    use barnabas_base::EpochEntry;

    use super::*;

    fn epochs(entries: &[(i32, i64)]) -> LeaderEpochs {
        let entry =
            |&(epoch, start): &(i32, i64)| EpochEntry { epoch: LeaderEpoch(epoch), start: Offset(start) };
        LeaderEpochs::from_entries(entries.iter().map(entry).collect()).expect("rising")
    }

    /// Lets a follower ask until the leader has nothing to say; returns each cut.
    fn cuts(leader: &[(i32, i64)], leader_end: i64, follower: &[(i32, i64)], follower_end: i64) -> Vec<i64> {
        let (leader, mut follower) = (epochs(leader), epochs(follower));
        let mut end = Offset(follower_end);
        let mut cuts = Vec::new();
        while let Some(last) = follower.epoch_at(end.plus(-1)).filter(|_| end > Offset::ZERO) {
            let Some((epoch, epoch_end)) = diverging(&leader, Offset(leader_end), last, end) else { break };
            assert_ne!(epoch, LeaderEpoch::NONE, "nothing in common");
            end = truncation(&follower, end, epoch, epoch_end);
            follower.truncate_from_end(end);
            cuts.push(end.get());
            assert!(cuts.len() < 10, "it ends");
        }
        cuts
    }

    #[test]
    fn a_log_that_is_a_beginning_of_the_leaders_is_not_cut() {
        assert_eq!(cuts(&[(1, 0), (2, 10)], 20, &[(1, 0)], 5), []);
        assert_eq!(cuts(&[(1, 0), (2, 10)], 20, &[(1, 0), (2, 10)], 20), []);
    }

    #[test]
    fn what_the_leader_does_not_have_is_cut() {
        assert_eq!(cuts(&[(1, 0), (3, 10)], 20, &[(1, 0)], 15), [10]);
        assert_eq!(cuts(&[(1, 0), (2, 10)], 12, &[(1, 0), (2, 10)], 15), [12]);
    }

    /// KIP-279: two brokers led in turn without knowing of each other's records.
    #[test]
    fn an_epoch_that_the_follower_does_not_know_takes_a_second_question() {
        let leader = [(1, 0), (2, 10), (4, 30)];
        let follower = [(1, 0), (3, 8)];
        assert_eq!(cuts(&leader, 40, &follower, 40), [8]);
        let follower = [(1, 0), (3, 20)];
        assert_eq!(cuts(&leader, 40, &follower, 40), [20, 10]);
    }
}
