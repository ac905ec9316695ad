//! Bounds on epochs: which epochs of other members are taken, and what comes after the last one.
//!
//! An epoch is an `int32` that only rises. A member takes any higher epoch that another member names, so one request
//! could use them all up: Apache Kafka takes 2³¹−1 and can hold no election afterwards. Three bounds prevent that.
//!
//! | the epoch comes from | accepted |
//! |---|---|
//! | a request, or an answer from an address that only a request named | within the budget |
//! | an answer from a voter's address or a bootstrap server | up to [`ASKED_MAX`] at once; above, within the budget |
//! | this member, for its own election | one at a time, up to `i32::MAX` |
//!
//! The budget is [`BURST`] epochs at once and [`PER_SECOND`] in the long run. Voters' addresses are those in
//! their records, bootstrap servers those of `controller.quorum.bootstrap.servers`. No epoch above
//! [`LARGEST`] is taken from another member. The room above is for elections of a quorum of one.
//!
//! Why these bounds:
//! - The id and the directory id in a request are claims, and DescribeQuorum shows both. The address that this member
//!   connected to is one that the quorum's own records name. So a claim is bounded, and an address counts as verified.
//! - A voter that was alone for long may be ahead by more than the budget: one election a second for twelve days makes
//!   2²⁰ epochs (Kafka before pre-votes, KIP-996). Its requests are refused then. It comes back all the same: every
//!   member asks the voters that it knows (Fetch while it has no leader, Vote as a candidate, BeginQuorumEpoch as the
//!   leader), and their answers name the epoch. The same holds for a new disk, whose first Fetch goes to a bootstrap
//!   address.
//! - A candidate that the voters' records do not name may know newer records. It needs one epoch for each election,
//!   which the budget covers.
//! - A flood of requests uses up the budget and is refused. It refills within 1/16 s for the next election of an honest
//!   voter. At [`PER_SECOND`] the epochs last for four years.
//! - A voter or a bootstrap server that is taken over can name [`ASKED_MAX`] once. Half of all epochs are left then.
//! - Real quorums stay compatible: Apache's members need one epoch for each election and never more than [`PER_SECOND`]
//!   in the long run.
//!
//! Refused are: Vote, BeginQuorumEpoch and EndQuorumEpoch with INVALID_REQUEST; Fetch and FetchSnapshot with
//! UNKNOWN_LEADER_EPOCH, as Kafka does it, and without any effect. Answers are dropped. A negative epoch is below every
//! epoch that a member can be in, and is refused as such (FENCED_LEADER_EPOCH).
//!
//! Source: ours. Kafka has no such bound (`KafkaRaftClient.handleVoteRequest`).

use barnabas_base::{BrokerId, LeaderEpoch, MonotonicMs};

use crate::QuorumError;
use crate::now::Now;
use crate::raft::Raft;

/// Epochs that requests may use up at once.
const BURST: i64 = 1 << 20;
/// Epochs that requests may use up in the long run, each second.
const PER_SECOND: i64 = 16;
/// Up to here an epoch is taken at once from an address that the quorum's records name.
const ASKED_MAX: LeaderEpoch = LeaderEpoch(1 << 30);
/// The largest epoch that another member, a log or the quorum-state file may name.
pub(crate) const LARGEST: LeaderEpoch = LeaderEpoch(i32::MAX - (1 << 20));

/// Whether a file of this node may hold `epoch`.
pub(crate) fn is_in_range(epoch: LeaderEpoch) -> bool {
    (0..=LARGEST.get()).contains(&epoch.get())
}

/// What requests may still use up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    /// In thousandths of an epoch, so that short times count.
    left: i64,
    at: MonotonicMs,
}

impl Budget {
    const FULL: i64 = BURST * 1_000;

    pub fn new(now: MonotonicMs) -> Self {
        Self { left: Self::FULL, at: now }
    }

    /// Takes `rise` epochs out, if there are so many.
    fn take(&mut self, rise: i64, now: MonotonicMs) -> bool {
        let refill = now.since(self.at).0.saturating_mul(PER_SECOND);
        self.left = self.left.saturating_add(refill).min(Self::FULL);
        self.at = self.at.max(now);
        let Some(left) = rise.checked_mul(1_000).and_then(|cost| self.left.checked_sub(cost)) else {
            return false;
        };
        if left < 0 {
            return false;
        }
        self.left = left;
        true
    }
}

impl Raft {
    /// Whether an epoch that a request names may be gone into. To be asked once for each request.
    pub(crate) fn admits_epoch(&mut self, epoch: LeaderEpoch, now: Now) -> bool {
        if epoch <= self.epoch {
            return true;
        }
        let rise = i64::from(epoch.get()) - i64::from(self.epoch.get());
        epoch <= LARGEST && self.epoch_budget.take(rise, now.monotonic)
    }

    /// The same for the epoch of an answer from `from`.
    pub(crate) fn admits_answered_epoch(&mut self, from: BrokerId, epoch: LeaderEpoch, now: Now) -> bool {
        (epoch <= ASKED_MAX && self.peers.is_on_record(from)) || self.admits_epoch(epoch, now)
    }

    /// The epoch of this member's next election.
    ///
    /// # Errors
    /// There is none left.
    pub(crate) fn next_epoch(&self) -> Result<LeaderEpoch, QuorumError> {
        let next = self.epoch.get().checked_add(1);
        next.map(LeaderEpoch).ok_or(QuorumError::EpochsUsedUp { epoch: self.epoch })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_of_a_flood_refills_at_a_bounded_rate() {
        let mut budget = Budget::new(MonotonicMs(0));
        assert!(!budget.take(BURST + 1, MonotonicMs(0)));
        assert!(budget.take(BURST, MonotonicMs(0)));
        assert!(!budget.take(1, MonotonicMs(62)));
        assert!(budget.take(1, MonotonicMs(63)), "an honest election after 1/16 s");
        let taken = (63..3_600_063).filter(|&at| budget.take(1, MonotonicMs(at))).count();
        assert_eq!(taken, 57_599, "an hour's flood");
    }

    #[test]
    fn budget_of_extreme_values_does_not_wrap() {
        let mut budget = Budget::new(MonotonicMs(0));
        assert!(!budget.take(i64::MAX, MonotonicMs(u64::MAX)));
        assert!(budget.take(BURST, MonotonicMs(u64::MAX)));
        assert!(!budget.take(1, MonotonicMs(0)), "a clock that stands still refills nothing");
    }
}
