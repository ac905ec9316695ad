//! What a member is at the moment, and what it must remember for it.
//!
//! Epoch, leader and vote stand beside the role in [`crate::raft::Raft`], for they are on disk. "Observer" is no role:
//! an observer is a follower, or unattached, whom no voter record names.
//!
//! Sources: KIP-595, KIP-996; Kafka `EpochState` and its kinds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use barnabas_base::{BrokerId, MonotonicMs, Offset, TimestampMs};

use crate::raft::message::{AddVoter, Fetch, ReplicaKey};
use crate::raft::{RoleName, Ticket};
use crate::snapshot::SnapshotReader;
use crate::snapshot_id::SnapshotId;
use crate::voters::{Voter, Voters};

#[derive(Debug)]
pub(crate) enum Role {
    /// Knows of no leader that it could follow.
    Unattached {
        until: MonotonicMs,
    },
    /// Asks whether it could win.
    Prospective(Election),
    Candidate(Election),
    Leader(Box<Leading>),
    Follower(Box<Following>),
    /// Led this epoch and does so no longer.
    Resigned {
        successors: Vec<ReplicaKey>,
        unacknowledged: BTreeSet<BrokerId>,
        until: MonotonicMs,
    },
}

impl Role {
    pub fn name(&self) -> RoleName {
        match self {
            Self::Unattached { .. } => RoleName::Unattached,
            Self::Prospective(_) => RoleName::Prospective,
            Self::Candidate(_) => RoleName::Candidate,
            Self::Leader(_) => RoleName::Leader,
            Self::Follower(_) => RoleName::Follower,
            Self::Resigned { .. } => RoleName::Resigned,
        }
    }
}

/// A leader whose process is gone: its connection closed, and its listener refuses connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone {
    pub leader: BrokerId,
    /// How often this node asks again soon for votes that were refused: by voters that had not noticed yet, or whose
    /// logs end later and that were refused in their turn. `None`: it waits for the fetch timeout, or until one of
    /// them asks for its vote.
    pub tries: Option<u8>,
    /// When this node noticed.
    pub at: MonotonicMs,
}

impl Gone {
    /// How often the others are asked again soon.
    const TRIES: u8 = 4;

    pub fn new(leader: BrokerId, at: MonotonicMs) -> Self {
        Self { leader, tries: Some(Self::TRIES), at }
    }

    /// Another voter has noticed as well: all tries again.
    pub fn renew(&mut self) {
        self.tries = Some(Self::TRIES);
    }

    /// Whether votes are asked for again soon after this one.
    pub fn try_again(&mut self) -> bool {
        self.tries = self.tries.and_then(|tries| tries.checked_sub(1));
        self.tries.is_some()
    }
}

/// Votes that are asked for.
#[derive(Debug)]
pub(crate) struct Election {
    /// `None`: not answered yet.
    votes: BTreeMap<BrokerId, Option<bool>>,
    /// Who is not waited for.
    absent: Option<BrokerId>,
    pub until: MonotonicMs,
}

impl Election {
    pub fn new(voters: &Voters, absent: Option<BrokerId>, until: MonotonicMs) -> Self {
        Self { votes: voters.ids().into_iter().map(|id| (id, None)).collect(), absent, until }
    }

    pub fn record(&mut self, id: BrokerId, granted: bool) {
        if let Some(vote) = self.votes.get_mut(&id) {
            *vote = Some(granted);
        }
    }

    pub fn unanswered(&self) -> Vec<BrokerId> {
        self.votes.iter().filter(|(_, vote)| vote.is_none()).map(|(&id, _)| id).collect()
    }

    pub fn granting(&self) -> Vec<BrokerId> {
        self.votes.iter().filter(|&(_, &vote)| vote == Some(true)).map(|(&id, _)| id).collect()
    }

    pub fn is_won(&self) -> bool {
        self.granting().len() >= majority(self.votes.len())
    }

    /// Whether those who have not refused are too few.
    pub fn is_lost(&self) -> bool {
        let is_against = |(id, vote): &(&BrokerId, &Option<bool>)| {
            **vote == Some(false) || vote.is_none() && self.absent == Some(**id)
        };
        let refused = self.votes.iter().filter(is_against).count();
        self.votes.len() - refused < majority(self.votes.len())
    }
}

pub(crate) fn majority(voters: usize) -> usize {
    voters / 2 + 1
}

/// How far the leader knows a replica to be.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    pub key: ReplicaKey,
    /// Everything below is on its disk.
    pub end: Option<Offset>,
    pub fetched_at: Option<MonotonicMs>,
    pub fetched_wall: TimestampMs,
    /// Where the leader's log ended then.
    pub leader_end_then: Option<Offset>,
    pub caught_up_wall: TimestampMs,
    /// Whether it knows who leads.
    pub acknowledged: bool,
}

impl Progress {
    pub fn new(key: ReplicaKey) -> Self {
        Self {
            key,
            end: None,
            fetched_at: None,
            fetched_wall: TimestampMs::NONE,
            leader_end_then: None,
            caught_up_wall: TimestampMs::NONE,
            acknowledged: false,
        }
    }
}

/// A Fetch that waits for something to send.
#[derive(Debug)]
pub(crate) struct Parked {
    pub ticket: Ticket,
    pub fetch: Fetch,
    pub until: MonotonicMs,
}

/// A change of voters under way.
#[derive(Debug)]
pub(crate) struct Change {
    pub ticket: Ticket,
    pub kind: ChangeKind,
    /// When the request is answered that it takes too long. The change may still happen.
    pub until: MonotonicMs,
}

#[derive(Debug)]
pub(crate) enum ChangeKind {
    /// The new voter is asked which levels of `kraft.version` it supports.
    Probing(AddVoter),
    /// The record is written, at this offset.
    Adding(Offset),
    Removing(Offset),
}

#[derive(Debug)]
pub(crate) struct Leading {
    /// Where the epoch's first batch stands.
    pub epoch_start: Offset,
    /// Voters but for this node, if it is one.
    pub voters: BTreeMap<BrokerId, Progress>,
    pub observers: BTreeMap<ReplicaKey, Progress>,
    /// Voters that have fetched since the last time a majority had.
    pub fetched: BTreeSet<BrokerId>,
    /// When this node resigns unless a majority fetches.
    pub check_until: MonotonicMs,
    /// When voters are told again who leads.
    pub begin_at: MonotonicMs,
    pub change: Option<Change>,
    /// At `kraft.version` 0: what voters said of themselves ([`crate::raft::membership::upgrade`]).
    pub told: BTreeMap<BrokerId, Voter>,
    pub must_resign: bool,
    pub parked: VecDeque<Parked>,
}

#[derive(Debug)]
pub(crate) struct Following {
    /// Without a successful Fetch until then, the leader counts as gone.
    pub until: MonotonicMs,
    /// Whether the leader has answered a Fetch in this epoch: then no one else gets a pre-vote.
    pub has_fetched: bool,
    pub snapshot: Option<FetchingSnapshot>,
    /// At `kraft.version` 0: whether this leader was told where this voter lives, or does not want to know.
    pub has_updated: bool,
    /// When to see whether the leader has this voter's addresses, or whether to join.
    pub update_at: MonotonicMs,
}

/// A snapshot that comes in piece by piece.
#[derive(Debug)]
pub(crate) struct FetchingSnapshot {
    pub id: SnapshotId,
    pub position: i64,
    pub reader: SnapshotReader,
}
