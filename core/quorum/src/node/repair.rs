//! Epochs out of range in this node's own files, and what the start makes of them.
//!
//! Releases before the bounds of [`crate::raft`]'s `epochs` took any epoch from a request. After 2³¹−1 the next one
//! wrapped to −2³¹, and the node stopped for good at its next start. Two files can hold such an epoch:
//!
//! - `quorum-state`: its epoch and its vote are unknown then. The node goes on in the epoch after the log's last one,
//!   and counts its vote in it as given to itself. So it cannot vote twice in an epoch that its log reaches.
//! - the metadata log of a quorum of one: batches of a wrapped epoch count as of the last epoch before them. No record
//!   is lost. A snapshot is made at once, so that followers fetch that in place of those batches.
//!
//! A log of several voters cannot hold a wrapped epoch, because no voter grants a vote for one.

use barnabas_base::{LeaderEpoch, Offset};

use crate::raft::state::epochs::is_in_range;
use crate::raft::state::quorum_state::QuorumState;

/// What a start repaired. For the operator, at WARN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Repair {
    #[error(
        "the quorum-state file has leaderEpoch={found}, which is out of range; the node goes on in epoch={epoch} of the metadata \
         log, and nothing of the log is lost. A request with a false epoch did that under an earlier release"
    )]
    State { found: LeaderEpoch, epoch: LeaderEpoch },
    #[error(
        "the metadata log has batches with epoch={found}, which is out of range, from offset={from} to offset={end}; they count as \
         of epoch={epoch}, and nothing of the log is lost. A snapshot replaces them for followers"
    )]
    Log { found: LeaderEpoch, epoch: LeaderEpoch, from: Offset, end: Offset },
}

/// What a start has found out of range so far.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// The epoch of the quorum-state file.
    state: Option<LeaderEpoch>,
    log: Option<Repair>,
}

impl Repairs {
    /// Takes a quorum-state that is out of range away.
    pub fn take_state(&mut self, state: Option<QuorumState>) -> Option<QuorumState> {
        let (sound, unsound) = match state {
            Some(state) if !is_in_range(state.epoch) => (None, Some(state.epoch)),
            state => (state, None),
        };
        self.state = unsound;
        sound
    }

    /// A batch of the log is out of range and counts as of `epoch`.
    pub fn note_batch(&mut self, found: LeaderEpoch, epoch: LeaderEpoch, base: Offset, next: Offset) {
        match &mut self.log {
            Some(Repair::Log { end, .. }) => *end = next,
            log => *log = Some(Repair::Log { found, epoch, from: base, end: next }),
        }
    }

    pub fn is_state_lost(&self) -> bool {
        self.state.is_some()
    }

    /// Where the batches that are out of range end.
    pub fn log_end(&self) -> Option<Offset> {
        match self.log {
            Some(Repair::Log { end, .. }) => Some(end),
            _ => None,
        }
    }

    pub fn list(&self, epoch: LeaderEpoch) -> Vec<Repair> {
        let state = self.state.map(|found| Repair::State { found, epoch });
        state.into_iter().chain(self.log).collect()
    }
}
