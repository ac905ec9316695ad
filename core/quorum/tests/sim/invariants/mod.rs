//! What must always hold, one file each: the invariants of the public TLA+ specification of KRaft, and the rules that
//! the proof of Raft rests on. Each is asked after every step of a node.

mod acknowledged;
mod committed_stays;
mod committed_with_epoch;
mod epoch_rises;
mod high_watermark;
mod known_by;
mod leader_complete;
mod log_matching;
mod on_majority;
mod one_change;
mod one_leader;
mod one_vote;
mod persisted_first;
mod roles;
mod snapshots;
mod voters_of_log;

use super::cluster::{Cluster, Step};

pub trait Invariant {
    fn name(&self) -> &'static str;

    /// # Errors
    /// How it is broken.
    fn check(&mut self, cluster: &Cluster, step: &Step) -> Result<(), String>;
}

pub fn all() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(one_leader::OneLeader::default()),
        Box::new(leader_complete::LeaderComplete),
        Box::new(log_matching::LogMatching::default()),
        Box::new(committed_stays::CommittedStays),
        Box::new(committed_with_epoch::CommittedWithEpoch),
        Box::new(on_majority::OnMajority),
        Box::new(one_vote::OneVote::default()),
        Box::new(persisted_first::PersistedFirst),
        Box::new(epoch_rises::EpochRises::default()),
        Box::new(high_watermark::HighWatermark),
        Box::new(acknowledged::Acknowledged),
        Box::new(known_by::KnownBy::default()),
        Box::new(roles::Roles),
        Box::new(one_change::OneChange),
        Box::new(voters_of_log::VotersOfLog),
        Box::new(snapshots::Snapshots),
    ]
}
