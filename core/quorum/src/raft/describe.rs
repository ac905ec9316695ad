//! How the quorum stands, as its leader sees it.
//!
//! Source: Kafka `LeaderState.describeQuorum`.

use barnabas_base::{BrokerId, LeaderEpoch, Offset, TimestampMs};

use super::Raft;
use super::message::ReplicaKey;
use crate::now::Now;
use crate::raft::replication::leading::OBSERVER_SESSION;
use crate::raft::state::role::Progress;
use crate::raft::state::role::Role;

/// The quorum at a glance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    pub leader: BrokerId,
    pub epoch: LeaderEpoch,
    /// −1 while the leader has committed nothing of its own epoch.
    pub high_watermark: Offset,
    pub voters: Vec<ReplicaView>,
    pub observers: Vec<ReplicaView>,
}

/// How far one replica has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaView {
    pub key: ReplicaKey,
    /// −1: it has not fetched.
    pub log_end: Offset,
    pub last_fetch: TimestampMs,
    pub last_caught_up: TimestampMs,
}

impl Raft {
    /// `None` unless this node leads.
    pub fn describe(&self, now: Now) -> Option<Described> {
        let Role::Leader(leading) = &self.role else { return None };
        let mine = |directory| ReplicaView {
            key: ReplicaKey { id: self.key.id, directory },
            log_end: self.log.end,
            last_fetch: now.wall,
            last_caught_up: now.wall,
        };
        let voters = self.voters().iter().map(|voter| {
            let known = leading.voters.get(&voter.id);
            let mut view = known.map_or_else(|| mine(voter.directory), view);
            view.key.directory = voter.directory;
            view
        });
        let is_heard = |progress: &&Progress| {
            progress.fetched_at.is_some_and(|at| now.monotonic.since(at) < OBSERVER_SESSION)
        };
        let high_watermark = if self.is_established() { self.high_watermark } else { Offset::NONE };
        Some(Described {
            leader: self.key.id,
            epoch: self.epoch,
            high_watermark,
            voters: voters.collect(),
            observers: leading.observers.values().filter(is_heard).map(view).collect(),
        })
    }
}

fn view(progress: &Progress) -> ReplicaView {
    ReplicaView {
        key: progress.key,
        log_end: progress.end.unwrap_or(Offset::NONE),
        last_fetch: progress.fetched_wall,
        last_caught_up: progress.caught_up_wall,
    }
}
