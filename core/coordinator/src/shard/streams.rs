//! Requests and events of streams groups (KIP-1071), brought to their group.

use barnabas_base::{ErrorCode, Text};
use barnabas_wire::messages::{
    StreamsGroupDescribeRequest, StreamsGroupDescribeResponse, StreamsGroupHeartbeatRequest,
};

use super::{Group, GroupShard};
use crate::Response;
use crate::framework::{Caller, Ticket};
use crate::groups::classic::{self, ClassicGroup, State};
use crate::groups::reconciled::Refused;
use crate::groups::streams::{self, StreamsGroup};
use crate::outbox::TimerKey;
use crate::records::Entry;
use crate::request::StreamsHeartbeat;

/// The only assignor there is.
const ASSIGNOR: &str = "sticky";

impl GroupShard {
    pub(super) fn streams_heartbeat(
        &mut self,
        caller: &Caller<'_>,
        request: &StreamsGroupHeartbeatRequest,
        ticket: Ticket,
    ) {
        let worked = streams::check(request).and_then(|()| {
            if request.member_epoch < 0 {
                self.streams_leave(request, ticket)
            } else {
                self.streams_stay(caller, request, ticket)
            }
        });
        if let Err(refused) = worked {
            let response = streams::refusal(refused);
            let refusal = StreamsHeartbeat { response, create: Vec::new() };
            self.out.answer(ticket, Response::StreamsGroupHeartbeat(Box::new(refusal)));
        }
    }

    fn streams_stay(
        &mut self,
        caller: &Caller<'_>,
        request: &StreamsGroupHeartbeatRequest,
        ticket: Ticket,
    ) -> Result<(), Refused> {
        let id = request.group_id.text();
        if let Some(Group::Streams(group)) = self.groups.get_mut(&id) {
            let answer = streams::heartbeat(group, false, caller, request, &mut self.world, &mut self.out)?;
            group.answer(ticket, Response::StreamsGroupHeartbeat(Box::new(answer)), &mut self.out);
            return Ok(());
        }
        if request.member_epoch != 0 {
            return Err(not_found(&id));
        }
        let mut group = Box::new(self.new_streams_group(&id)?);
        let answer = streams::heartbeat(&mut group, true, caller, request, &mut self.world, &mut self.out)?;
        if let Some(Group::Classic(mut old)) = self.groups.remove(&id) {
            // Whoever was given an id of the classic group joins again and finds itself elsewhere.
            classic::send_away(&mut old, ErrorCode::RebalanceInProgress, &mut self.out);
            classic::forget_timers(&mut old, &mut self.out);
        }
        group.flush(&mut self.out);
        self.out.groups_changed = group.last_batch();
        group.answer(ticket, Response::StreamsGroupHeartbeat(Box::new(answer)), &mut self.out);
        self.groups.insert(id, Group::Streams(group));
        Ok(())
    }

    /// The group that a first member founds, or that an empty classic one becomes for it; that one's offsets stay.
    fn new_streams_group(&self, id: &Text) -> Result<StreamsGroup, Refused> {
        match self.groups.get(id) {
            None => Ok(StreamsGroup::new(id.clone())),
            Some(Group::Classic(old)) if old.state == State::Empty => {
                let mut group = StreamsGroup::new(id.clone());
                group.note(Entry::OldClassic);
                Ok(group)
            }
            Some(_) => Err(not_streams(id)),
        }
    }

    fn streams_leave(
        &mut self,
        request: &StreamsGroupHeartbeatRequest,
        ticket: Ticket,
    ) -> Result<(), Refused> {
        let id = request.group_id.text();
        let group = match self.groups.get_mut(&id) {
            Some(Group::Streams(group)) => group,
            Some(_) => return Err(not_streams(&id)),
            None => return Err(not_found(&id)),
        };
        let response = streams::leave(group, request, &mut self.out)?;
        let answer = StreamsHeartbeat { response, create: Vec::new() };
        group.answer(ticket, Response::StreamsGroupHeartbeat(Box::new(answer)), &mut self.out);
        Ok(())
    }

    pub(super) fn describe_streams(&mut self, request: &StreamsGroupDescribeRequest, ticket: Ticket) {
        let mut last = self.out.groups_changed;
        let mut groups = Vec::with_capacity(request.group_ids.len());
        for id in &request.group_ids {
            groups.push(match self.groups.get(id.as_str()) {
                Some(Group::Streams(group)) => {
                    last = last.max(group.last_batch());
                    streams::describe(group, ASSIGNOR)
                }
                Some(_) => streams::not_streams(id),
                None => streams::describe_missing(id),
            });
        }
        let response = StreamsGroupDescribeResponse { groups, ..Default::default() };
        self.out.answer_after(last, ticket, Response::StreamsGroupDescribe(response));
    }

    /// Members had time to come.
    pub(super) fn first_streams_target(&mut self, id: &Text) {
        if let Some(Group::Streams(group)) = self.groups.get_mut(id) {
            streams::first_target(group, &mut self.out);
        }
    }

    /// Time is over for a member.
    pub(super) fn streams_timer(&mut self, key: &TimerKey) {
        let (TimerKey::Session { group, member } | TimerKey::Rebalance { group, member }) = key else {
            return;
        };
        if let Some(Group::Streams(group)) = self.groups.get_mut(group)
            && streams::is_late(group, member, key)
        {
            streams::fence(group, std::slice::from_ref(member), &mut self.out);
            group.flush(&mut self.out);
        }
    }

    /// An empty streams group becomes a classic one; its offsets stay.
    pub(super) fn end_streams(&mut self, id: &Text) {
        if !matches!(self.groups.get(id), Some(Group::Streams(_))) {
            return;
        }
        let Some(Group::Streams(group)) = self.groups.remove(id) else { return };
        streams::forget_timers(&group, &mut self.out);
        let new = ClassicGroup::new(id.clone(), self.out.now.wall);
        let batch = self.append_downgrade(&new, group.tombstones());
        self.groups.insert(id.clone(), Group::Classic(Box::new(new)));
        self.out.groups_changed = batch;
    }
}

fn not_found(id: &str) -> Refused {
    Refused::new(ErrorCode::GroupIdNotFound, format!("Streams group {id} not found."))
}

fn not_streams(id: &str) -> Refused {
    Refused::new(ErrorCode::GroupIdNotFound, format!("Group {id} is not a streams group."))
}
