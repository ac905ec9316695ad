//! Requests and events of consumer groups (KIP-848), brought to their group; groups that change their kind.

use barnabas_base::{ErrorCode, Text};
use barnabas_wire::messages::leave_group_request::MemberIdentity;
use barnabas_wire::messages::leave_group_response::MemberResponse;
use barnabas_wire::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse, JoinGroupRequest, LeaveGroupRequest, LeaveGroupResponse,
};

use super::{Group, GroupShard};
use crate::Response;
use crate::framework::{BatchId, Caller, Record, Ticket};
use crate::groups::classic::{self, ClassicGroup, State};
use crate::groups::consumer::{self, Consumer, Joined};
use crate::groups::find_mut;
use crate::groups::reconciled::{AWAY, Refused, wrong_kind};
use crate::outbox::{GroupThen, Then, TimerKey};
use crate::records::GroupKind;

/// LeaveGroup up to version 2 names one member, and answers for it at the top.
const SEVERAL_MEMBERS_SINCE: i16 = 3;

impl GroupShard {
    pub(in crate::shard) fn consumer_heartbeat(
        &mut self,
        caller: &Caller<'_>,
        request: &ConsumerGroupHeartbeatRequest,
        ticket: Ticket,
    ) {
        let worked = consumer::check(request, caller.version, &self.out.config).and_then(|()| {
            if request.member_epoch < 0 {
                self.consumer_leave(request, ticket)
            } else {
                self.consumer_stay(caller, request, ticket)
            }
        });
        if let Err(refused) = worked {
            self.out.answer(ticket, Response::ConsumerGroupHeartbeat(consumer::refusal(refused)));
        }
    }

    fn consumer_stay(
        &mut self,
        caller: &Caller<'_>,
        request: &ConsumerGroupHeartbeatRequest,
        ticket: Ticket,
    ) -> Result<(), Refused> {
        let id = request.group_id.text();
        if let Some(Group::Classic(old)) = self.groups.get(&id)
            && old.state != State::Empty
            && request.member_epoch == 0
        {
            return self.upgrade(caller, request, ticket);
        }
        self.stay(&id, request.member_epoch, ticket, |group, _, world, out| {
            consumer::heartbeat(group, caller, request, world, out).map(Response::ConsumerGroupHeartbeat)
        })
    }

    /// A classic group with members becomes a consumer group for the first member of the new protocol.
    fn upgrade(
        &mut self,
        caller: &Caller<'_>,
        request: &ConsumerGroupHeartbeatRequest,
        ticket: Ticket,
    ) -> Result<(), Refused> {
        let id = request.group_id.text();
        let Some(Group::Classic(old)) = self.groups.get(&id) else {
            return Err(wrong_kind(GroupKind::Consumer, &id));
        };
        consumer::can_upgrade(old, &self.out)?;
        let mut group = consumer::from_classic(old, &self.world.image)?;
        let response = consumer::heartbeat(&mut group, caller, request, &mut self.world, &mut self.out)?;
        self.found(group, ticket, Response::ConsumerGroupHeartbeat(response));
        Ok(())
    }

    fn consumer_leave(
        &mut self,
        request: &ConsumerGroupHeartbeatRequest,
        ticket: Ticket,
    ) -> Result<(), Refused> {
        let id = request.group_id.text();
        let group = find_mut::<Consumer>(&mut self.groups, &id)?;
        let member = group.find_leaving(&request.member_id, request.instance_id.as_deref())?;
        let response = Response::ConsumerGroupHeartbeat(ConsumerGroupHeartbeatResponse {
            member_id: Some(request.member_id.clone()),
            member_epoch: request.member_epoch,
            ..Default::default()
        });
        if request.member_epoch == AWAY {
            group.leave_for_a_moment((*member).clone());
            group.answer(ticket, response, &mut self.out);
        } else {
            let batch = self.fence_members(&id, std::slice::from_ref(&member.id));
            self.out.answer_after(batch, ticket, response);
        }
        Ok(())
    }

    /// A JoinGroup to a consumer group that has members.
    pub(in crate::shard) fn join_consumer(
        &mut self,
        caller: &Caller<'_>,
        request: &JoinGroupRequest,
        ticket: Ticket,
    ) -> Result<(), ErrorCode> {
        let id = request.group_id.text();
        let Some(Group::Consumer(group)) = self.groups.get_mut(&id) else {
            return Err(ErrorCode::InconsistentGroupProtocol);
        };
        match consumer::join(group, caller, request, &mut self.world, &mut self.out)? {
            Joined::Named(response) => self.out.answer(ticket, Response::JoinGroup(response)),
            Joined::Answer(response) => {
                group.answer(ticket, Response::JoinGroup(response), &mut self.out);
            }
            Joined::Downgrade { response, rebalance } => {
                let batch = self.downgrade(&id, &[], rebalance);
                self.out.answer_after(batch, ticket, Response::JoinGroup(response));
            }
        }
        Ok(())
    }

    /// A LeaveGroup: of members of the classic protocol by themselves, of any by an operator.
    pub(in crate::shard) fn leave_consumer(
        &mut self,
        caller: &Caller<'_>,
        request: &LeaveGroupRequest,
        ticket: Ticket,
    ) {
        let id = request.group_id.text();
        let alone = [MemberIdentity { member_id: request.member_id.clone(), ..Default::default() }];
        let leaving = if caller.version < SEVERAL_MEMBERS_SINCE { &alone[..] } else { &request.members };
        let (mut gone, mut members) = (Vec::new(), Vec::new());
        for who in leaving {
            let found = match self.groups.get(&id) {
                Some(Group::Consumer(group)) => consumer::leaves(group, who),
                _ => Err(ErrorCode::UnknownMemberId),
            };
            members.push(MemberResponse {
                member_id: who.member_id.clone(),
                group_instance_id: who.group_instance_id.clone(),
                error_code: found.as_ref().err().map_or(0, |error| error.code()),
                ..Default::default()
            });
            gone.extend(found.ok().filter(|member| !gone.contains(member)));
        }
        let response = if caller.version < SEVERAL_MEMBERS_SINCE {
            let error_code = members.first().map_or(0, |member| member.error_code);
            LeaveGroupResponse { error_code, ..Default::default() }
        } else {
            LeaveGroupResponse { members, ..Default::default() }
        };
        let response = Response::LeaveGroup(response);
        if gone.is_empty() {
            self.out.answer(ticket, response);
        } else {
            let batch = self.fence_members(&id, &gone);
            self.out.answer_after(batch, ticket, response);
        }
    }

    /// Takes members out of a consumer group; if none of the new protocol is left, the group becomes a classic one.
    /// Gives the batch that says so.
    pub(super) fn fence_members(&mut self, id: &Text, leaving: &[Text]) -> BatchId {
        let Some(Group::Consumer(group)) = self.groups.get_mut(id) else { return BatchId(0) };
        if consumer::can_downgrade(group, leaving, false, &self.out) {
            return self.downgrade(id, leaving, true);
        }
        consumer::fence(group, leaving, &mut self.world, &mut self.out);
        group.flush(&mut self.out);
        group.last_batch()
    }

    /// Makes a consumer group a classic one, without `leaving`.
    pub(in crate::shard) fn downgrade(&mut self, id: &Text, leaving: &[Text], rebalance: bool) -> BatchId {
        let Some(Group::Consumer(group)) = self.groups.remove(id) else { return BatchId(0) };
        group.forget_timers(&mut self.out);
        let mut new = consumer::to_classic(&group, leaving, &self.world.image, self.out.now.wall);
        let batch = self.append_downgrade(&new, group.tombstones());
        for (member, known) in &new.members {
            classic::expect_member(id, member, known.session_timeout_ms, &mut self.out);
        }
        if rebalance {
            classic::prepare_rebalance(&mut new, &mut self.out);
        }
        self.groups.insert(id.clone(), Group::Classic(Box::new(new)));
        self.out.groups_changed = batch;
        batch
    }

    pub(in crate::shard) fn append_downgrade(
        &mut self,
        group: &ClassicGroup,
        tombstones: Vec<Record>,
    ) -> BatchId {
        let (mut records, mut bytes) = (Vec::new(), 0);
        for record in tombstones {
            if bytes + record.bytes() > self.out.config.batch_bytes_max {
                self.append_downgraded(&group.id, std::mem::take(&mut records), None);
                bytes = 0;
            }
            bytes += record.bytes();
            records.push(record);
        }
        self.append_downgraded(&group.id, records, Some(group.record_as_is()))
    }

    fn append_downgraded(&mut self, id: &Text, tombstones: Vec<Record>, group: Option<Record>) -> BatchId {
        let mut records = tombstones.clone();
        records.extend(group);
        let downgraded = GroupThen::Downgraded { group: id.clone(), tombstones };
        self.out.append(records, Then { groups: vec![downgraded], ..Then::default() })
    }

    /// A batch of a downgrade never got to disk.
    pub(in crate::shard) fn downgrade_lost(&mut self, id: Text, tombstones: Vec<Record>) {
        self.out.set_timer(TimerKey::Save(id.clone()), barnabas_base::DurationMs(1_000));
        self.lost.entry(id).or_default().extend(tombstones);
    }

    /// Writes again what was lost of a group.
    pub(in crate::shard) fn save_again(&mut self, id: &Text) {
        if let Some(lost) = self.lost.remove(id) {
            match self.groups.get(id) {
                Some(Group::Classic(group)) => {
                    let mut records = lost.clone();
                    records.push(group.record_as_is());
                    let downgraded = GroupThen::Downgraded { group: id.clone(), tombstones: lost };
                    self.out.append(records, Then { groups: vec![downgraded], ..Then::default() });
                }
                Some(group @ (Group::Consumer(_) | Group::Streams(_))) => {
                    let own: Vec<_> = group.tombstones().into_iter().map(|record| record.key).collect();
                    let gone: Vec<Record> =
                        lost.into_iter().filter(|record| !own.contains(&record.key)).collect();
                    self.append_downgraded(id, gone, None);
                }
                Some(Group::Share(_)) | None => {
                    self.append_downgraded(id, lost, None);
                }
            }
        }
        if let Some(group) = self.groups.get_mut(id) {
            group.flush(&mut self.out);
        }
    }

    pub(in crate::shard) fn describe_consumers(
        &mut self,
        request: &ConsumerGroupDescribeRequest,
        ticket: Ticket,
    ) {
        let standard = self.out.config.consumer.assignors.first().map_or("uniform", |name| name.as_str());
        let (groups, last) = self.describe_each(
            &request.group_ids,
            |group| consumer::describe(group, standard, &self.world.image),
            consumer::describe_refused,
        );
        let response = ConsumerGroupDescribeResponse { groups, ..Default::default() };
        self.out.answer_after(last, ticket, Response::ConsumerGroupDescribe(response));
    }
}
