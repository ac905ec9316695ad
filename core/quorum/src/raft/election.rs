//! Votes: asked for, given, counted; and how a member passes from one role to the next.
//!
//! A voter that misses its leader first asks whether it could win (pre-vote, KIP-996), and begins an epoch only then:
//! a member that was cut off does not disturb the others when it is back.
//!
//! Sources: KIP-595, KIP-996; Kafka `KafkaRaftClient.handleVoteRequest`, `UnattachedState`, `ProspectiveState`,
//! `CandidateState`, `FollowerState`: their `canGrantVote`.

use barnabas_base::{BrokerId, DurationMs, ErrorCode, LeaderEpoch, MonotonicMs};

use super::draw::Draw;
use super::message::{ReplicaKey, Request, Response, Vote};
use super::{Effect, LeaderAndEpoch, Raft};
use crate::QuorumError;
use crate::now::Now;
use crate::raft::state::quorum_state::QuorumState;
use crate::raft::state::role::Election;
use crate::raft::state::role::Following;
use crate::raft::state::role::Role;
use crate::voters::VoterEndpoint;

/// What an election's loser waits at least, times a random number that grows with each loss.
const BACKOFF_BASE_MS: i64 = 50;

impl Raft {
    pub(super) fn on_vote(&mut self, vote: &Vote, now: Now) -> Response {
        let granted = self.judge_vote(vote, now);
        let error = granted.err().unwrap_or(ErrorCode::None);
        Response::Vote { head: self.head(error), granted: granted.unwrap_or(false) }
    }

    fn judge_vote(&mut self, vote: &Vote, now: Now) -> Result<bool, ErrorCode> {
        if vote.epoch < self.epoch {
            return Err(ErrorCode::FencedLeaderEpoch);
        }
        // A candidate has begun an epoch after all that it has; one that only asks has not.
        let epoch_of_log_max = if vote.pre_vote { vote.epoch.get() } else { vote.epoch.get() - 1 };
        let last = vote.last;
        if vote.candidate.id.get() < 0 || last.offset.get() < 0 || last.epoch.get() < 0 {
            return Err(ErrorCode::InvalidRequest);
        }
        if last.epoch.get() > epoch_of_log_max {
            return Err(ErrorCode::InvalidRequest);
        }
        if !self.admits_epoch(vote.epoch, now) {
            return Err(ErrorCode::InvalidRequest);
        }
        if vote.epoch > self.epoch {
            self.unattach(vote.epoch, None, now);
        }
        if vote.to.is_some_and(|to| !to.means(&self.key)) {
            return Err(ErrorCode::InvalidVoterKey);
        }
        let granted = self.can_grant(vote);
        if granted && !vote.pre_vote {
            self.voted = Some(vote.candidate);
            self.persist();
        }
        if !granted && vote.pre_vote {
            self.ask_soon(now);
        }
        Ok(granted)
    }

    /// This node has refused a pre-vote. If it misses the leader too, the candidate's log ends earlier, and only this
    /// node can win. The candidate has noticed by now that the leader is gone: this node asks for votes soon.
    fn ask_soon(&mut self, now: Now) {
        let Some(gone) = &mut self.gone else { return };
        if let Role::Follower(following) = &mut self.role
            && self.leader == Some(gone.leader)
        {
            gone.renew();
            let until = now.monotonic.plus(pause(&mut self.draw));
            following.until = following.until.min(until);
        }
    }

    /// Any member gives its vote, also one that is no voter as far as it knows: the candidate may know newer voters.
    fn can_grant(&self, vote: &Vote) -> bool {
        let is_up_to_date = vote.last >= self.log.last();
        if vote.pre_vote {
            return match &self.role {
                Role::Leader(_) => false,
                // Who hears its leader keeps it.
                Role::Follower(following) => is_up_to_date && !following.has_fetched,
                _ => is_up_to_date,
            };
        }
        match &self.role {
            Role::Unattached { .. } | Role::Prospective(_) => match self.voted {
                Some(voted) => voted.means(&vote.candidate),
                None => self.leader.is_none() && is_up_to_date,
            },
            _ => false,
        }
    }

    pub(super) fn on_vote_answered(
        &mut self,
        from: BrokerId,
        granted: bool,
        now: Now,
    ) -> Result<(), QuorumError> {
        if let Role::Prospective(election) | Role::Candidate(election) = &mut self.role {
            election.record(from, granted);
        }
        self.settle_election(now)
    }

    /// Counts the votes.
    fn settle_election(&mut self, now: Now) -> Result<(), QuorumError> {
        match &self.role {
            Role::Prospective(election) if election.is_won() => self.become_candidate(now),
            Role::Candidate(election) if election.is_won() => {
                let granting = election.granting();
                self.become_leader(&granting, now)
            }
            Role::Prospective(election) | Role::Candidate(election) if election.is_lost() => {
                self.lose_election(now);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Not enough votes, or not in time: back to the leader that was known, or a pause that grows.
    fn lose_election(&mut self, now: Now) {
        let leader = self.leader.filter(|&leader| leader != self.key.id);
        if let (Role::Prospective(_), Some(leader)) = (&self.role, leader) {
            let endpoints = self.endpoints_of(leader);
            if !endpoints.is_empty() {
                self.follow(self.epoch, leader, endpoints, now);
                return;
            }
        }
        // There is no leader. The former leader is asked for its vote like the others: it may be back, and there may
        // be no majority without it.
        self.gone = None;
        self.failures += 1;
        let steps = 2_i64 << self.failures.saturating_sub(1).min(20);
        let backoff =
            (BACKOFF_BASE_MS * (1 + self.draw.below(steps))).min(self.config.election_backoff_max.0);
        self.enter(Role::Unattached { until: now.monotonic.plus(DurationMs(backoff)) });
    }

    pub(super) fn poll_election(&mut self, now: Now) -> Result<bool, QuorumError> {
        let (Role::Prospective(election) | Role::Candidate(election)) = &self.role else { return Ok(false) };
        if election.is_won() {
            // Its own vote was enough: the only voter.
            self.settle_election(now)?;
            return Ok(true);
        }
        if election.until <= now.monotonic {
            self.lose_election(now);
            return Ok(true);
        }
        let pre_vote = matches!(self.role, Role::Prospective(_));
        for id in election.unanswered() {
            let Some(voter) = self.voters().get(id) else { continue };
            let to = Some(ReplicaKey { id, directory: voter.directory });
            let vote = Vote { to, candidate: self.key, epoch: self.epoch, last: self.log.last(), pre_vote };
            self.send_to_voter(id, Request::Vote(vote), now);
        }
        Ok(false)
    }

    pub(super) fn poll_unattached(&mut self, now: Now) -> bool {
        let Role::Unattached { until } = &self.role else { return false };
        if self.may_lead() && *until <= now.monotonic {
            self.become_prospective(now);
            return true;
        }
        self.fetch_from_any(now);
        false
    }

    pub(super) fn poll_resigned(&mut self, now: Now) -> Result<bool, QuorumError> {
        let Role::Resigned { unacknowledged, until, .. } = &self.role else { return Ok(false) };
        if *until <= now.monotonic {
            // Its own epoch has no leader any more, and can have none.
            self.unattach(self.next_epoch()?, None, now);
            return Ok(true);
        }
        let waiting: Vec<BrokerId> = unacknowledged.iter().copied().collect();
        for id in waiting {
            if let Some(request) = self.end_epoch() {
                self.send_to_voter(id, request, now);
            }
        }
        Ok(false)
    }

    pub(super) fn become_prospective(&mut self, now: Now) {
        let until = self.election_until(now);
        let mut election = Election::new(self.voters(), self.absent(), until);
        election.record(self.key.id, true);
        self.enter(Role::Prospective(election));
    }

    pub(super) fn become_candidate(&mut self, now: Now) -> Result<(), QuorumError> {
        self.epoch = self.next_epoch()?;
        self.leader = None;
        self.leader_endpoints = Vec::new();
        self.voted = Some(self.key);
        let until = self.election_until(now);
        let mut election = Election::new(self.voters(), self.absent(), until);
        election.record(self.key.id, true);
        self.enter(Role::Candidate(election));
        self.settle_election(now)
    }

    /// Goes into `epoch` without a leader to follow. `leader`: known by name only. It waits for an election timeout at
    /// most, also where more of the fetch timeout is left: a candidate with a shorter log may have begun the epoch, and
    /// only this node may be able to win.
    pub(super) fn unattach(&mut self, epoch: LeaderEpoch, leader: Option<BrokerId>, now: Now) {
        let until = match &self.role {
            Role::Unattached { until } => Some(*until),
            Role::Prospective(election) | Role::Candidate(election) => Some(election.until),
            Role::Follower(following) => Some(following.until),
            Role::Leader(_) | Role::Resigned { .. } => None,
        };
        let longest = self.election_until(now);
        let until = until.filter(|&until| until > now.monotonic).map_or(longest, |until| until.min(longest));
        if epoch > self.epoch {
            self.epoch = epoch;
            self.voted = None;
        }
        self.leader = leader;
        self.leader_endpoints = Vec::new();
        self.enter(Role::Unattached { until });
    }

    pub(super) fn follow(
        &mut self,
        epoch: LeaderEpoch,
        leader: BrokerId,
        endpoints: Vec<VoterEndpoint>,
        now: Now,
    ) {
        assert!(leader != self.key.id, "a node does not follow itself");
        let is_same = epoch == self.epoch && self.leader == Some(leader);
        if epoch > self.epoch {
            self.epoch = epoch;
            self.voted = None;
        }
        self.leader = Some(leader);
        self.leader_endpoints = endpoints;
        self.failures = 0;
        let timeout = self.patience(is_same);
        let update_at = now.monotonic.plus(self.config.fetch_timeout);
        let until = now.monotonic.plus(timeout);
        let following =
            Following { until, has_fetched: false, snapshot: None, has_updated: false, update_at };
        self.enter(Role::Follower(Box::new(following)));
    }

    /// How long a leader that is followed from now on may keep silent. `is_same`: it led before. If it is gone, votes
    /// were refused by those who still believed that they hear it: they are asked again soon, a few times.
    fn patience(&mut self, is_same: bool) -> DurationMs {
        self.gone = self.gone.filter(|_| is_same);
        let Some(gone) = &mut self.gone else { return self.config.fetch_timeout };
        if !gone.try_again() {
            return self.config.fetch_timeout;
        }
        pause(&mut self.draw).min(self.config.fetch_timeout)
    }

    fn absent(&self) -> Option<BrokerId> {
        self.gone.filter(|gone| gone.tries.is_some()).map(|gone| gone.leader)
    }

    /// Goes where an answer or a request says that there is a newer epoch, or a leader of this one.
    pub(super) fn learn_leader(
        &mut self,
        epoch: LeaderEpoch,
        leader: Option<BrokerId>,
        endpoints: Vec<VoterEndpoint>,
        now: Now,
    ) {
        let leader = leader.filter(|&leader| leader != self.key.id);
        if epoch > self.epoch {
            match leader {
                Some(leader) if !endpoints.is_empty() => self.follow(epoch, leader, endpoints, now),
                leader => self.unattach(epoch, leader, now),
            }
            return;
        }
        let Some(leader) = leader else { return };
        let is_new = self.leader.is_none_or(|known| known == leader);
        let can_follow = !matches!(self.role, Role::Follower(_) | Role::Leader(_) | Role::Resigned { .. });
        if epoch == self.epoch && is_new && can_follow && !endpoints.is_empty() {
            self.follow(epoch, leader, endpoints, now);
        }
    }

    /// Takes up a role: what the last one waited for is answered or forgotten, and epoch, leader and vote are on disk.
    pub(super) fn enter(&mut self, role: Role) {
        let left = std::mem::replace(&mut self.role, role);
        self.peers.reset();
        self.persist();
        if let Role::Leader(leading) = left {
            self.leave_leadership(*leading);
        }
    }

    pub(super) fn persist(&mut self) {
        let state = QuorumState {
            epoch: self.epoch,
            leader: self.leader,
            voted: self.voted.map(|key| (key.id, key.directory)),
            // Only version 0 of the file has them.
            voters: if self.kraft_version() == 0 { self.voters().ids() } else { Vec::new() },
        };
        if self.persisted.as_ref() == Some(&state) {
            return;
        }
        self.persisted = Some(state.clone());
        // Of two in a row, with nothing between them, only the second counts.
        if matches!(self.effects.last(), Some(Effect::Persist { .. })) {
            self.effects.pop();
        }
        self.effects.push(Effect::Persist { state, kraft_version: self.kraft_version() });
    }

    pub(super) fn announce(&mut self) {
        let known = self.leader_and_epoch();
        // A leader that has resigned is none.
        let leader = known.leader.filter(|&leader| leader != self.key.id || self.leads());
        let known = LeaderAndEpoch { leader, ..known };
        if self.announced != known {
            self.announced = known;
            self.effects.push(Effect::Leader(known));
        }
    }

    /// A random end for an election, or for the wait before one: between one and two timeouts.
    pub(super) fn election_until(&mut self, now: Now) -> MonotonicMs {
        let timeout = self.config.election_timeout.0.max(1);
        now.monotonic.plus(DurationMs(timeout + self.draw.below(timeout)))
    }
}

/// How long after a refused vote this node asks again, while the leader is gone.
fn pause(draw: &mut Draw) -> DurationMs {
    DurationMs(BACKOFF_BASE_MS + draw.below(2 * BACKOFF_BASE_MS))
}
