//! Requests of members, brought to their group.
//!
//! # Source
//! Kafka 4.4 `GroupCoordinatorService` (checks that need no group), `GroupMetadataManager`.

use barnabas_base::ErrorCode;
use barnabas_wire::messages::{
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest,
};

use super::{Group, GroupShard};
use crate::framework::{Caller, Ticket};
use crate::groups::classic::{self, ClassicGroup};
use crate::groups::consumer;
use crate::outbox::{GroupThen, Then};
use crate::{Request, Response};

/// From this version on, a member must say which protocol it believes to speak (KIP-559).
const PROTOCOL_SAID_SINCE: i16 = 5;

type Refusal = Result<(), ErrorCode>;

impl GroupShard {
    pub(super) fn join_group(
        &mut self,
        caller: &Caller<'_>,
        request: &JoinGroupRequest,
        ticket: Ticket,
    ) -> Refusal {
        if request.group_id.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        let session = i64::from(request.session_timeout_ms);
        let config = &self.out.config;
        if session < config.session_timeout_min.0 || session > config.session_timeout_max.0 {
            return Err(ErrorCode::InvalidSessionTimeout);
        }
        match self.groups.get_mut(request.group_id.as_str()) {
            Some(Group::Share(_)) => {
                self.refuse_join(ErrorCode::InconsistentGroupProtocol, ticket);
                Ok(())
            }
            Some(Group::Consumer(group)) if !group.is_empty() => {
                if let Err(error) = self.join_consumer(caller, request, ticket) {
                    self.refuse_join(error, ticket);
                }
                Ok(())
            }
            Some(Group::Consumer(_)) => self.refound_group(caller, request, ticket),
            Some(Group::Streams(group)) if group.is_empty() => self.refound_group(caller, request, ticket),
            Some(Group::Streams(_)) => {
                self.refuse_join(ErrorCode::InconsistentGroupProtocol, ticket);
                Ok(())
            }
            Some(Group::Classic(group)) => {
                if let Some(answer) = classic::join(group, caller, request, ticket, &mut self.out) {
                    self.out.answer(ticket, Response::JoinGroup(answer));
                }
                Ok(())
            }
            None if !request.member_id.is_empty() => Err(ErrorCode::UnknownMemberId),
            None => self.found_group(caller, request, ticket),
        }
    }

    /// A group that is no classic one names no member in a refusal.
    ///
    /// # Source
    /// Kafka 4.3 `GroupCoordinatorService.joinGroup`, `GroupMetadataManager.classicGroupJoin`.
    fn refuse_join(&mut self, error: ErrorCode, ticket: Ticket) {
        self.out.answer(ticket, Request::JoinGroup(JoinGroupRequest::default()).refuse(error));
    }

    /// The first member of a new group. It gets its id once the group is on disk.
    fn found_group(&mut self, caller: &Caller<'_>, request: &JoinGroupRequest, ticket: Ticket) -> Refusal {
        classic::check_new_group(request)?;
        let id = request.group_id.text();
        let mut group = Box::new(ClassicGroup::new(id.clone(), self.out.now.wall));
        let record = group.record_as_is();
        let answer = classic::join(&mut group, caller, request, ticket, &mut self.out);
        self.groups.insert(id.clone(), Group::Classic(group));
        let then = Then { groups: vec![GroupThen::Created(id)], ..Default::default() };
        let batch = self.out.append(vec![record], then);
        self.out.groups_changed = batch;
        if let Some(answer) = answer {
            self.out.answer_after(batch, ticket, Response::JoinGroup(answer));
        }
        Ok(())
    }

    /// An empty consumer or streams group becomes a classic one.
    fn refound_group(&mut self, caller: &Caller<'_>, request: &JoinGroupRequest, ticket: Ticket) -> Refusal {
        if !request.member_id.is_empty() {
            return Err(ErrorCode::UnknownMemberId);
        }
        classic::check_new_group(request)?;
        let id = request.group_id.text();
        match self.groups.get(&id) {
            Some(Group::Streams(_)) => self.end_streams(&id),
            _ => {
                self.downgrade(&id, &[], false);
            }
        }
        self.join_group(caller, request, ticket)
    }

    pub(super) fn sync_group(
        &mut self,
        caller: &Caller<'_>,
        request: &SyncGroupRequest,
        ticket: Ticket,
    ) -> Refusal {
        let says_protocol = request.protocol_type.is_some() && request.protocol_name.is_some();
        if caller.version >= PROTOCOL_SAID_SINCE && !says_protocol {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        if let Some(Group::Consumer(group)) = self.groups.get_mut(request.group_id.as_str()) {
            let response = consumer::sync(group, request, &self.world, &mut self.out)?;
            group.answer(ticket, Response::SyncGroup(response), &mut self.out);
            return Ok(());
        }
        let group = self.classic_group(&request.group_id)?;
        let Some(group) = group else { return Err(ErrorCode::UnknownMemberId) };
        if let Some(answer) = classic::sync(group.0, request, ticket, group.1)? {
            self.out.answer(ticket, Response::SyncGroup(answer));
        }
        Ok(())
    }

    pub(super) fn heartbeat(&mut self, request: &HeartbeatRequest, ticket: Ticket) -> Refusal {
        if let Some(Group::Consumer(group)) = self.groups.get_mut(request.group_id.as_str()) {
            consumer::touch(group, request, &mut self.out)?;
            self.out.answer(ticket, Response::Heartbeat(HeartbeatResponse::default()));
            return Ok(());
        }
        let Some((group, out)) = self.classic_group(&request.group_id)? else {
            return Err(ErrorCode::UnknownMemberId);
        };
        classic::heartbeat(group, request, out)?;
        self.out.answer(ticket, Response::Heartbeat(HeartbeatResponse::default()));
        Ok(())
    }

    pub(super) fn leave_group(
        &mut self,
        caller: &Caller<'_>,
        request: &LeaveGroupRequest,
        ticket: Ticket,
    ) -> Refusal {
        if request.group_id.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        if let Some(Group::Consumer(_)) = self.groups.get(request.group_id.as_str()) {
            self.leave_consumer(caller, request, ticket);
            return Ok(());
        }
        let group = match self.groups.get_mut(request.group_id.as_str()) {
            Some(Group::Classic(group)) => Some(&mut **group),
            _ => None,
        };
        let next = self.out.pending.upcoming();
        let answer = Response::LeaveGroup(classic::leave(group, caller.version, request, &mut self.out));
        // The last to leave makes the group an empty one, which has a record.
        if self.out.pending.is_pending(next) {
            self.out.answer_after(next, ticket, answer);
        } else {
            self.out.answer(ticket, answer);
        }
        Ok(())
    }

    /// The group, next to what it is worked on with.
    fn classic_group(
        &mut self,
        id: &str,
    ) -> Result<Option<(&mut ClassicGroup, &mut crate::outbox::Outbox)>, ErrorCode> {
        if id.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        match self.groups.get_mut(id) {
            Some(Group::Classic(group)) => Ok(Some((group, &mut self.out))),
            _ => Ok(None),
        }
    }
}
