//! What comes in: requests to their handlers, answers to where they are waited for; what all of them have in common.
//!
//! Source: Kafka `KafkaRaftClient.handleRequest`, `maybeHandleCommonResponse`, `validateLeaderOnlyRequest`.

use barnabas_base::{BrokerId, ErrorCode, LeaderEpoch};

use super::message::{BeginEpoch, EndEpoch, Head, Request, Response};
use super::{Effect, Raft, Read, Ticket};
use crate::QuorumError;
use crate::now::Now;
use crate::raft::state::role::Role;
use crate::voters::VoterEndpoint;

impl Raft {
    /// Takes a request. The answer is an [`Effect::Answer`] with this ticket, now or later.
    ///
    /// # Errors
    /// What stops the node.
    pub fn request(&mut self, ticket: Ticket, request: Request, now: Now) -> Result<(), QuorumError> {
        match request {
            Request::Vote(vote) => {
                let response = self.on_vote(&vote, now);
                self.answer(ticket, response, None);
            }
            Request::BeginEpoch(begin) => {
                let response = self.on_begin_epoch(begin, now);
                self.answer(ticket, response, None);
            }
            Request::EndEpoch(end) => {
                let response = self.on_end_epoch(end, now);
                self.answer(ticket, response, None);
            }
            Request::Fetch(fetch) => self.on_fetch(ticket, fetch, now),
            Request::FetchSnapshot(fetch) => self.on_fetch_snapshot(ticket, &fetch, now),
            Request::AddVoter(add) => self.on_add_voter(ticket, add, now),
            Request::RemoveVoter(remove) => self.on_remove_voter(ticket, &remove, now)?,
            Request::UpdateVoter(update) => self.on_update_voter(ticket, update, now)?,
            Request::ApiVersions => self.answer(ticket, Response::Refused(ErrorCode::InvalidRequest), None),
        }
        self.poll(now)
    }

    pub(super) fn answer(&mut self, ticket: Ticket, response: Response, read: Option<Read>) {
        self.effects.push(Effect::Answer { ticket, response, read });
    }

    fn on_begin_epoch(&mut self, begin: BeginEpoch, now: Now) -> Response {
        if let Some(error) = self.refuse_voter_request(begin.leader, begin.epoch, now) {
            return Response::BeginEpoch(self.head(error));
        }
        let endpoints = self.known_endpoints(begin.leader, begin.endpoints);
        self.learn_leader(begin.epoch, Some(begin.leader), endpoints, now);
        let is_meant = begin.to.is_none_or(|to| to.means(&self.key));
        let error = if is_meant { ErrorCode::None } else { ErrorCode::InvalidVoterKey };
        Response::BeginEpoch(self.head(error))
    }

    fn on_end_epoch(&mut self, end: EndEpoch, now: Now) -> Response {
        if let Some(error) = self.refuse_voter_request(end.leader, end.epoch, now) {
            return Response::EndEpoch(self.head(error));
        }
        let endpoints = self.known_endpoints(end.leader, end.endpoints);
        self.learn_leader(end.epoch, Some(end.leader), endpoints, now);
        self.expect_election(end.leader, &end.successors, now);
        Response::EndEpoch(self.head(ErrorCode::None))
    }

    /// Checks of requests that go to any voter.
    fn refuse_voter_request(&mut self, from: BrokerId, epoch: LeaderEpoch, now: Now) -> Option<ErrorCode> {
        if epoch < self.epoch {
            return Some(ErrorCode::FencedLeaderEpoch);
        }
        let contradicts = epoch == self.epoch && self.leader.is_some_and(|known| known != from);
        let is_refused = from.get() < 0 || contradicts || !self.admits_epoch(epoch, now);
        is_refused.then_some(ErrorCode::InvalidRequest)
    }

    /// Checks of requests that only the leader answers.
    pub(super) fn refuse_leader_request(&self, epoch: LeaderEpoch) -> Option<ErrorCode> {
        if epoch < self.epoch {
            return Some(ErrorCode::FencedLeaderEpoch);
        }
        if epoch > self.epoch {
            return Some(ErrorCode::UnknownLeaderEpoch);
        }
        (!self.leads()).then_some(ErrorCode::NotLeaderOrFollower)
    }

    /// What an answer says of this member.
    pub(super) fn head(&self, error: ErrorCode) -> Head {
        let endpoints = self.leader.map(|leader| self.endpoints_of(leader)).unwrap_or_default();
        Head { error, leader: self.leader, epoch: self.epoch, endpoints }
    }

    pub(super) fn endpoints_of(&self, id: BrokerId) -> Vec<VoterEndpoint> {
        if id == self.key.id {
            return self.config.me.endpoints.clone();
        }
        let told = if self.leader == Some(id) { self.leader_endpoints.clone() } else { Vec::new() };
        self.known_endpoints(id, told)
    }

    /// `told`, or else what the voters' record says.
    fn known_endpoints(&self, id: BrokerId, told: Vec<VoterEndpoint>) -> Vec<VoterEndpoint> {
        if told.is_empty() {
            return self.voters().get(id).map(|voter| voter.endpoints.clone()).unwrap_or_default();
        }
        told
    }

    /// Takes the answer to a request that was sent with `number`; `None`: there will be none.
    ///
    /// # Errors
    /// What stops the node.
    pub fn response(
        &mut self,
        from: BrokerId,
        number: u64,
        response: Option<Response>,
        now: Now,
    ) -> Result<(), QuorumError> {
        let is_waited_for = self.peers.answered(from, number, response.is_some(), now.monotonic);
        let Some(response) = response.filter(|_| is_waited_for) else {
            if is_waited_for {
                self.probe_failed(from, now);
                // Who cannot be reached gives no vote: the election need not wait for its timeout to know that.
                self.on_vote_answered(from, false, now)?;
            }
            return self.poll(now);
        };
        self.take_response(from, response, now)?;
        self.poll(now)
    }

    fn take_response(&mut self, from: BrokerId, response: Response, now: Now) -> Result<(), QuorumError> {
        match response {
            Response::Vote { head, granted } => {
                if self.is_usable(from, &head, now) && head.error == ErrorCode::None {
                    self.on_vote_answered(from, granted, now)?;
                }
            }
            Response::BeginEpoch(head) => {
                if self.is_usable(from, &head, now) && head.error == ErrorCode::None {
                    self.acknowledge_leader(from);
                }
            }
            Response::EndEpoch(head) => {
                let usable = self.is_usable(from, &head, now) && head.error == ErrorCode::None;
                if let (Role::Resigned { unacknowledged, .. }, true) = (&mut self.role, usable) {
                    unacknowledged.remove(&from);
                }
            }
            Response::Fetch(fetched) => {
                if self.is_usable(from, &fetched.head, now) {
                    self.on_fetched(from, fetched, now)?;
                }
            }
            Response::FetchSnapshot(fetched) => {
                if self.is_usable(from, &fetched.head, now) {
                    self.on_snapshot_fetched(from, fetched, now);
                }
            }
            Response::UpdateVoter(head) => {
                if self.is_usable(from, &head, now) {
                    self.voter_updated(head.error);
                }
            }
            Response::ApiVersions { error, kraft } => self.on_probed(from, error, kraft, now)?,
            // Joining is tried again after a while, whatever came of it.
            Response::AddVoter { .. } | Response::RemoveVoter { .. } => {}
            // A voter before KIP-996 does not know pre-votes: it cannot be asked, and is no obstacle.
            Response::Refused(ErrorCode::UnsupportedVersion) if matches!(self.role, Role::Prospective(_)) => {
                self.on_vote_answered(from, true, now)?;
            }
            Response::Refused(error) => {
                // A leader before KIP-853 knows no UpdateRaftVoter; nothing else that a follower says is newer than its
                // leader.
                self.voter_updated(error);
                self.peers.pause(from, now.monotonic);
                self.probe_failed(from, now);
            }
        }
        Ok(())
    }

    /// What every answer may say: another epoch, another leader. Whether the rest of it is for this role and epoch.
    fn is_usable(&mut self, from: BrokerId, head: &Head, now: Now) -> bool {
        if head.epoch < self.epoch || head.error == ErrorCode::UnknownLeaderEpoch {
            self.peers.pause(from, now.monotonic);
            return false;
        }
        let endpoints = head.leader.map(|leader| self.known_endpoints(leader, head.endpoints.clone()));
        let endpoints = endpoints.unwrap_or_default();
        if !self.admits_answered_epoch(from, head.epoch, now) {
            self.peers.pause(from, now.monotonic);
            return false;
        }
        if head.epoch > self.epoch {
            self.learn_leader(head.epoch, head.leader, endpoints, now);
            return false;
        }
        // Perhaps it knew the leader's name and not where to find it.
        let seeks = self.leader.is_none() || matches!(self.role, Role::Unattached { .. });
        if seeks && head.leader.is_some() {
            self.learn_leader(head.epoch, head.leader, endpoints, now);
            return head.error == ErrorCode::None;
        }
        let refused = [
            ErrorCode::FencedLeaderEpoch,
            ErrorCode::NotLeaderOrFollower,
            ErrorCode::BrokerNotAvailable,
            ErrorCode::InvalidVoterKey,
            ErrorCode::InvalidRequest,
        ];
        if refused.contains(&head.error) {
            self.learn_leader(head.epoch, head.leader, endpoints, now);
            self.peers.pause(from, now.monotonic);
            return false;
        }
        true
    }

    pub(super) fn send(&mut self, to: BrokerId, endpoint: VoterEndpoint, request: Request, now: Now) -> bool {
        if !self.peers.is_ready(to, now.monotonic) {
            return false;
        }
        let number = self.peers.sent(to, self.is_on_record(&endpoint), now.monotonic);
        self.effects.push(Effect::Send { to, endpoint, number, request });
        true
    }

    /// Whether the voters' records or the configuration name an address. Others are known from requests alone.
    fn is_on_record(&self, endpoint: &VoterEndpoint) -> bool {
        let of_voters = || self.voters().iter().flat_map(|voter| &voter.endpoints);
        self.config.bootstrap.iter().chain(of_voters()).any(|known| known == endpoint)
    }

    pub(super) fn send_to_voter(&mut self, id: BrokerId, request: Request, now: Now) -> bool {
        let endpoint = self.voters().get(id).and_then(|voter| self.endpoint_in(&voter.endpoints));
        endpoint.is_some_and(|endpoint| self.send(id, endpoint, request, now))
    }

    /// The endpoint that members use among themselves.
    pub(super) fn endpoint_in(&self, endpoints: &[VoterEndpoint]) -> Option<VoterEndpoint> {
        endpoints.iter().find(|endpoint| endpoint.listener == self.config.listener).cloned()
    }
}
