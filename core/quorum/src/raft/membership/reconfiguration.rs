//! Voters come and go (KIP-853): AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter, as the leader carries them out.
//!
//! Always true:
//! 1. one change at a time: none begins before the last VotersRecord is committed, so that majorities of neighbouring
//!    voter sets always share a member
//! 2. none begins before the leader has committed something of its own epoch: or a change that an earlier leader left
//!    behind could come back (the flaw of Raft's single-server changes, raft-dev 2015)
//! 3. a leader that is voted out leads until that is committed, without a voice of its own, and then resigns
//!
//! Source: Kafka `AddVoterHandler`, `RemoveVoterHandler`, `UpdateVoterHandler`.

use std::borrow::Cow;

use barnabas_base::{BrokerId, DurationMs, ErrorCode, MonotonicMs, Text, TimestampMs};

use crate::QuorumError;
use crate::batches::Control;
use crate::now::Now;
use crate::raft::message::{AddVoter, RemoveVoter, ReplicaKey, Request, Response, UpdateVoter};
use crate::raft::state::role::Change;
use crate::raft::state::role::ChangeKind;
use crate::raft::state::role::Progress;
use crate::raft::state::role::Role;
use crate::raft::{Raft, Ticket};
use crate::voters::Voter;

/// Who has been caught up within that time may become a voter (Kafka `LeaderState.isReplicaCaughtUp`).
const CAUGHT_UP_WITHIN: DurationMs = DurationMs(3_600_000);

/// The answer to a change that was not made: Kafka's code, and why.
pub(crate) type Refused = (ErrorCode, &'static str);
/// The same, where the reason names who is there.
type RefusedBy = (ErrorCode, Cow<'static, str>);

impl Raft {
    pub(crate) fn on_add_voter(&mut self, ticket: Ticket, add: AddVoter, now: Now) {
        if let Err(refused) = self.begin_add(ticket, add, now) {
            self.answer(ticket, added(refused), None);
        }
    }

    fn begin_add(&mut self, ticket: Ticket, add: AddVoter, now: Now) -> Result<(), Refused> {
        if let Some(error) = self.refuse_leader_request(self.epoch) {
            return Err((error, ""));
        }
        if add.voter.id.get() < 0 || add.voter.directory.is_zero() {
            return Err((ErrorCode::InvalidRequest, "the voter needs an id and a directory id"));
        }
        let endpoint = self.endpoint_in(&add.endpoints);
        let endpoint =
            endpoint.ok_or((ErrorCode::InvalidRequest, "the voter does not listen where voters do"))?;
        self.refuse_change(now)?;
        if self.voters().get(add.voter.id).is_some() {
            return Err((ErrorCode::DuplicateVoter, "a voter has this id"));
        }
        let id = add.voter.id;
        if !self.send(id, endpoint, Request::ApiVersions, now) {
            return Err((ErrorCode::RequestTimedOut, "the new voter cannot be reached now"));
        }
        let until = now.monotonic.plus(self.config.request_timeout);
        self.set_change(Change { ticket, kind: ChangeKind::Probing(add), until });
        Ok(())
    }

    /// Why no change of voters can begin now.
    fn refuse_change(&mut self, now: Now) -> Result<(), Refused> {
        self.expire_change(now);
        let timed_out = ErrorCode::RequestTimedOut;
        let under_way = matches!(&self.role, Role::Leader(leading) if leading.change.is_some());
        if under_way {
            return Err((timed_out, "another change of voters is under way"));
        }
        if !self.is_established() {
            return Err((timed_out, "the leader has not committed anything yet"));
        }
        if self.kraft_version() < 1 {
            return Err((ErrorCode::UnsupportedVersion, "voters change from kraft.version 1 on"));
        }
        let is_committed = self.log.history.voters_at().is_some_and(|at| at < self.high_watermark);
        if !is_committed {
            return Err((timed_out, "the last change of voters is not committed yet"));
        }
        Ok(())
    }

    fn set_change(&mut self, change: Change) {
        if let Role::Leader(leading) = &mut self.role {
            leading.change = Some(change);
        }
    }

    fn take_probe(&mut self, from: BrokerId) -> Option<(Ticket, AddVoter, MonotonicMs)> {
        let Role::Leader(leading) = &mut self.role else { return None };
        let is_its =
            |change: &mut Change| matches!(&change.kind, ChangeKind::Probing(add) if add.voter.id == from);
        let change = leading.change.take_if(is_its)?;
        let ChangeKind::Probing(add) = change.kind else { return None };
        Some((change.ticket, add, change.until))
    }

    /// A node that wants to vote did not say what it supports.
    pub(crate) fn probe_failed(&mut self, from: BrokerId, _now: Now) {
        if let Some((ticket, ..)) = self.take_probe(from) {
            self.answer(ticket, added((ErrorCode::RequestTimedOut, "the new voter does not answer")), None);
        }
    }

    pub(crate) fn on_probed(
        &mut self,
        from: BrokerId,
        error: ErrorCode,
        kraft: Option<(i16, i16)>,
        now: Now,
    ) -> Result<(), QuorumError> {
        let Some((ticket, add, until)) = self.take_probe(from) else { return Ok(()) };
        let level = self.kraft_version();
        let range = kraft.filter(|&(min, max)| min <= level && level <= max);
        let refused = match range {
            _ if error != ErrorCode::None => {
                Some((ErrorCode::RequestTimedOut, "the new voter refuses to answer"))
            }
            None => Some((ErrorCode::InvalidRequest, "the new voter does not support this kraft.version")),
            Some(_) if !self.is_caught_up(add.voter, now) => {
                Some((ErrorCode::RequestTimedOut, "the new voter lags behind"))
            }
            Some(_) => None,
        };
        let (None, Some((kraft_min, kraft_max))) = (refused, range) else {
            self.answer(ticket, added(refused.unwrap_or((ErrorCode::InvalidRequest, ""))), None);
            return Ok(());
        };
        let ReplicaKey { id, directory } = add.voter;
        let voter = Voter { id, directory, endpoints: add.endpoints, kraft_min, kraft_max };
        let record = Control::Voters(self.voters().with(voter).to_record());
        let at = self.append_controls(&[record], now)?;
        let kind = ChangeKind::Adding(at);
        if add.ack_when_committed {
            self.set_change(Change { ticket, kind, until });
        } else {
            self.answer(ticket, added((ErrorCode::None, "")), None);
        }
        Ok(())
    }

    fn is_caught_up(&self, key: ReplicaKey, now: Now) -> bool {
        let Role::Leader(leading) = &self.role else { return false };
        let is_recent = |progress: &Progress| {
            progress.caught_up_wall > TimestampMs::NONE
                && progress.fetched_at.is_some_and(|at| now.monotonic.since(at) < CAUGHT_UP_WITHIN)
        };
        leading.observers.get(&key).is_some_and(is_recent)
    }

    pub(crate) fn on_remove_voter(
        &mut self,
        ticket: Ticket,
        remove: &RemoveVoter,
        now: Now,
    ) -> Result<(), QuorumError> {
        if let Err((error, why)) = self.judge_remove(remove, now) {
            self.answer(ticket, Response::RemoveVoter { error, message: message(&why) }, None);
            return Ok(());
        }
        let record = Control::Voters(self.voters().without(remove.voter.id).to_record());
        let at = self.append_controls(&[record], now)?;
        let until = now.monotonic.plus(self.config.request_timeout);
        self.set_change(Change { ticket, kind: ChangeKind::Removing(at), until });
        self.advance_high_watermark(now);
        Ok(())
    }

    fn judge_remove(&mut self, remove: &RemoveVoter, now: Now) -> Result<(), RefusedBy> {
        if let Some(error) = self.refuse_leader_request(self.epoch) {
            return Err((error, "".into()));
        }
        let ReplicaKey { id, directory } = remove.voter;
        if id.get() < 0 || directory.is_zero() {
            return Err((ErrorCode::InvalidRequest, "the voter needs an id and a directory id".into()));
        }
        self.refuse_change(now).map_err(|(error, why)| (error, why.into()))?;
        let voters = self.voters();
        let why = match voters.get(id) {
            None => {
                let known: Vec<String> = voters.iter().map(|voter| voter.id.to_string()).collect();
                format!("node {id} is no voter; voters are {}", known.join(", "))
            }
            Some(voter) if voter.directory != directory => {
                format!("voter {id} has directory id {}, not {directory}", voter.directory)
            }
            Some(_) if voters.len() == 1 => format!("voter {id} is the only one"),
            Some(_) => return Ok(()),
        };
        Err((ErrorCode::VoterNotFound, why.into()))
    }

    pub(crate) fn on_update_voter(
        &mut self,
        ticket: Ticket,
        update: UpdateVoter,
        now: Now,
    ) -> Result<(), QuorumError> {
        let judged = self.judge_update(&update, now);
        let is_written = judged.is_ok() && self.kraft_version() >= 1;
        let judged = if self.kraft_version() < 1 {
            judged.and_then(|()| self.note_voter(update.clone()))
        } else {
            judged
        };
        let error = judged.err().map_or(ErrorCode::None, |(error, _)| error);
        if is_written {
            let UpdateVoter { voter: ReplicaKey { id, directory }, endpoints, kraft_min, kraft_max, .. } =
                update;
            let voter = Voter { id, directory, endpoints, kraft_min, kraft_max };
            let record = Control::Voters(self.voters().with(voter).to_record());
            self.append_controls(&[record], now)?;
        }
        let head = self.head(error);
        self.answer(ticket, Response::UpdateVoter(head), None);
        Ok(())
    }

    fn judge_update(&mut self, update: &UpdateVoter, now: Now) -> Result<(), Refused> {
        if let Some(error) = self.refuse_leader_request(update.epoch) {
            return Err((error, ""));
        }
        let level = self.kraft_version();
        let is_sound = update.voter.id.get() >= 0
            && !update.voter.directory.is_zero()
            && self.endpoint_in(&update.endpoints).is_some()
            && (0..=update.kraft_max).contains(&update.kraft_min);
        if !is_sound {
            return Err((ErrorCode::InvalidRequest, ""));
        }
        if level < 1 {
            // Nothing is written: it is no change.
            return Ok(());
        }
        self.refuse_change(now)?;
        if level < update.kraft_min || level > update.kraft_max {
            return Err((ErrorCode::InvalidRequest, ""));
        }
        let voter = self.voters().get(update.voter.id);
        let is_there = voter.is_some_and(|voter| voter.directory == update.voter.directory);
        if is_there { Ok(()) } else { Err((ErrorCode::VoterNotFound, "")) }
    }

    /// The high watermark has moved: perhaps over the change.
    pub(crate) fn change_committed(&mut self, _now: Now) {
        let high_watermark = self.high_watermark;
        let is_committed = self.log.history.voters_at().is_some_and(|at| at < high_watermark);
        let is_voter = self.is_voter();
        let Role::Leader(leading) = &mut self.role else { return };
        if is_committed && !is_voter {
            leading.must_resign = true;
        }
        let is_done = |change: &mut Change| match change.kind {
            ChangeKind::Adding(at) | ChangeKind::Removing(at) => at < high_watermark,
            ChangeKind::Probing(_) => false,
        };
        if let Some(change) = leading.change.take_if(is_done) {
            self.answer_change(change, ErrorCode::None, "");
        }
    }

    pub(crate) fn expire_change(&mut self, now: Now) {
        let Role::Leader(leading) = &mut self.role else { return };
        if let Some(change) = leading.change.take_if(|change| change.until <= now.monotonic) {
            self.answer_change(change, ErrorCode::RequestTimedOut, "it is not committed yet");
        }
    }

    pub(crate) fn answer_change(&mut self, change: Change, error: ErrorCode, why: &'static str) {
        let response = match change.kind {
            ChangeKind::Probing(_) | ChangeKind::Adding(_) => added((error, why)),
            ChangeKind::Removing(_) => removed((error, why)),
        };
        self.answer(change.ticket, response, None);
    }
}

fn added((error, why): Refused) -> Response {
    Response::AddVoter { error, message: message(why) }
}

fn removed((error, why): Refused) -> Response {
    Response::RemoveVoter { error, message: message(why) }
}

fn message(why: &str) -> Option<Text> {
    (!why.is_empty()).then(|| Text::from(why))
}
