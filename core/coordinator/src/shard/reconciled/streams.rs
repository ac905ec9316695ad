//! Requests and events of streams groups (KIP-1071), brought to their group.

use barnabas_base::Text;
use barnabas_wire::messages::{
    StreamsGroupDescribeRequest, StreamsGroupDescribeResponse, StreamsGroupHeartbeatRequest,
    StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse,
};

use super::{Group, GroupShard};
use crate::Response;
use crate::framework::{BatchId, Caller, Ticket};
use crate::groups::classic::ClassicGroup;
use crate::groups::reconciled::{Refused, no_group};
use crate::groups::streams::Streams;
use crate::groups::{find_mut, streams};
use crate::records::GroupKind;
use crate::request::StreamsHeartbeat;

/// The only assignor there is.
const ASSIGNOR: &str = "sticky";

impl GroupShard {
    pub(in crate::shard) fn streams_heartbeat(
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
        self.stay(&id, request.member_epoch, ticket, |group, is_new, world, out| {
            let answer = streams::heartbeat(group, is_new, caller, request, world, out)?;
            Ok(Response::StreamsGroupHeartbeat(Box::new(answer)))
        })
    }

    fn streams_leave(
        &mut self,
        request: &StreamsGroupHeartbeatRequest,
        ticket: Ticket,
    ) -> Result<(), Refused> {
        let id = request.group_id.text();
        if !self.groups.contains_key(&id) {
            return Err(no_group(GroupKind::Streams, &id));
        }
        let group = find_mut(&mut self.groups, &id)?;
        let response = streams::leave(group, request, &mut self.out)?;
        let answer = StreamsHeartbeat { response, create: Vec::new() };
        group.answer(ticket, Response::StreamsGroupHeartbeat(Box::new(answer)), &mut self.out);
        Ok(())
    }

    pub(in crate::shard) fn describe_streams(
        &mut self,
        request: &StreamsGroupDescribeRequest,
        ticket: Ticket,
    ) {
        let (groups, last) = self.describe_each(
            &request.group_ids,
            |group| streams::describe(group, ASSIGNOR, request.include_topology_description),
            streams::describe_refused,
        );
        let response = StreamsGroupDescribeResponse { groups, ..Default::default() };
        self.out.answer_after(last, ticket, Response::StreamsGroupDescribe(response));
    }

    /// The answer waits for the records that the member and the topology are in.
    pub(in crate::shard) fn keep_description(
        &mut self,
        request: &StreamsGroupTopologyDescriptionUpdateRequest,
        ticket: Ticket,
    ) {
        let kept = find_mut::<Streams>(&mut self.groups, &request.group_id).and_then(|group| {
            streams::keep_description(group, request, &self.out)?;
            Ok(group.last_batch())
        });
        let mut response = StreamsGroupTopologyDescriptionUpdateResponse::default();
        let last = kept.unwrap_or_else(|refused| {
            response.error_code = refused.code.code();
            response.error_message = Some(refused.why.into());
            BatchId(0)
        });
        self.out.answer_after(last, ticket, Response::StreamsTopologyDescription(response));
    }

    /// Members had time to come.
    pub(in crate::shard) fn first_streams_target(&mut self, id: &Text) {
        if let Some(Group::Streams(group)) = self.groups.get_mut(id) {
            streams::first_target(group, &mut self.out);
        }
    }

    /// An empty streams group becomes a classic one; its offsets stay.
    pub(in crate::shard) fn end_streams(&mut self, id: &Text) {
        if !matches!(self.groups.get(id), Some(Group::Streams(_))) {
            return;
        }
        let Some(Group::Streams(group)) = self.groups.remove(id) else { return };
        group.forget_timers(&mut self.out);
        let new = ClassicGroup::new(id.clone(), self.out.now.wall);
        let batch = self.append_downgrade(&new, group.tombstones());
        self.groups.insert(id.clone(), Group::Classic(Box::new(new)));
        self.out.groups_changed = batch;
    }
}
