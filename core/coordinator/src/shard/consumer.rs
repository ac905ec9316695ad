//! Requests and events of consumer groups (KIP-848), brought to their group; groups that change their kind.

use barnabas_base::{ErrorCode, MonotonicMs, Text};
use barnabas_metadata::Image;
use barnabas_wire::messages::leave_group_request::MemberIdentity;
use barnabas_wire::messages::leave_group_response::MemberResponse;
use barnabas_wire::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatRequest,
    JoinGroupRequest, LeaveGroupRequest, LeaveGroupResponse,
};

use super::{Group, GroupShard};
use crate::assignment::Outcome;
use crate::framework::{BatchId, Caller, Now, Record, Ticket};
use crate::groups::classic::{self, ClassicGroup, State};
use crate::groups::consumer::{self, ConsumerGroup, Joined, Left};
use crate::groups::reconciled::Refused;
use crate::groups::streams;
use crate::outbox::Effect;
use crate::outbox::{GroupThen, Then, TimerKey};
use crate::records::Entry;
use crate::{Done, Response};

/// LeaveGroup up to version 2 names one member, and answers for it at the top.
const SEVERAL_MEMBERS_SINCE: i16 = 3;

impl GroupShard {
    pub(super) fn consumer_heartbeat(
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
        if let Some(Group::Consumer(group)) = self.groups.get_mut(&id) {
            let response = consumer::heartbeat(group, caller, request, &mut self.world, &mut self.out)?;
            group.answer(ticket, Response::ConsumerGroupHeartbeat(response), &mut self.out);
            return Ok(());
        }
        if request.member_epoch != 0 {
            return Err(match self.groups.get(&id) {
                Some(_) => not_consumer(&id),
                None => not_found(format!("Consumer group {id} not found.")),
            });
        }
        let mut group = Box::new(self.new_consumer_group(&id)?);
        let response = consumer::heartbeat(&mut group, caller, request, &mut self.world, &mut self.out)?;
        if let Some(Group::Classic(mut old)) = self.groups.remove(&id) {
            // They join again and find themselves in the new group.
            classic::send_away(&mut old, ErrorCode::RebalanceInProgress, &mut self.out);
            classic::forget_timers(&mut old, &mut self.out);
        }
        consumer::watch_all(&group, &mut self.out);
        group.flush(&mut self.out);
        self.out.groups_changed = group.last_batch();
        group.answer(ticket, Response::ConsumerGroupHeartbeat(response), &mut self.out);
        self.groups.insert(id, Group::Consumer(group));
        Ok(())
    }

    /// The group that a member of the new protocol founds, or that a classic one becomes for it.
    fn new_consumer_group(&self, id: &Text) -> Result<ConsumerGroup, Refused> {
        match self.groups.get(id) {
            None => Ok(ConsumerGroup::new(id.clone())),
            Some(Group::Classic(old)) if old.state == State::Empty => {
                let mut group = ConsumerGroup::new(id.clone());
                group.note(Entry::OldClassic);
                Ok(group)
            }
            Some(Group::Classic(old)) => {
                consumer::can_upgrade(old, &self.out)?;
                consumer::from_classic(old, &self.world.image)
            }
            Some(Group::Consumer(_) | Group::Streams(_) | Group::Share(_)) => Err(not_consumer(id)),
        }
    }

    fn consumer_leave(
        &mut self,
        request: &ConsumerGroupHeartbeatRequest,
        ticket: Ticket,
    ) -> Result<(), Refused> {
        let id = request.group_id.text();
        let group = match self.groups.get_mut(&id) {
            Some(Group::Consumer(group)) => group,
            Some(_) => return Err(not_consumer(&id)),
            None => return Err(not_found(format!("Group {id} not found."))),
        };
        match consumer::leave(group, request)? {
            Left::ForAMoment(member) => {
                let response = consumer::static_leave(group, &member);
                group.answer(ticket, Response::ConsumerGroupHeartbeat(response), &mut self.out);
            }
            Left::ForGood(member) => {
                let response = barnabas_wire::messages::ConsumerGroupHeartbeatResponse {
                    member_id: Some(request.member_id.clone()),
                    member_epoch: request.member_epoch,
                    ..Default::default()
                };
                let batch = self.fence_members(&id, std::slice::from_ref(&member.id));
                self.out.answer_after(batch, ticket, Response::ConsumerGroupHeartbeat(response));
            }
        }
        Ok(())
    }

    /// A JoinGroup to a consumer group that has members.
    pub(super) fn join_consumer(
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
    pub(super) fn leave_consumer(
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

    /// Takes members out of a consumer group; if none of the new protocol is left, the group becomes a classic one. Gives the
    /// batch that says so.
    fn fence_members(&mut self, id: &Text, leaving: &[Text]) -> BatchId {
        let Some(Group::Consumer(group)) = self.groups.get_mut(id) else { return BatchId(0) };
        if consumer::can_downgrade(group, leaving, false, &self.out) {
            return self.downgrade(id, leaving, true);
        }
        consumer::fence(group, leaving, &mut self.world, &mut self.out);
        group.flush(&mut self.out);
        group.last_batch()
    }

    /// Makes a consumer group a classic one, without `leaving`.
    pub(super) fn downgrade(&mut self, id: &Text, leaving: &[Text], rebalance: bool) -> BatchId {
        let Some(Group::Consumer(group)) = self.groups.remove(id) else { return BatchId(0) };
        consumer::forget_timers(&group, &mut self.out);
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

    pub(super) fn append_downgrade(&mut self, group: &ClassicGroup, tombstones: Vec<Record>) -> BatchId {
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
    pub(super) fn downgrade_lost(&mut self, id: Text, tombstones: Vec<Record>) {
        self.out.set_timer(TimerKey::Save(id.clone()), barnabas_base::DurationMs(1_000));
        self.lost.entry(id).or_default().extend(tombstones);
    }

    /// Writes again what was lost of a group.
    pub(super) fn save_again(&mut self, id: &Text) {
        if let Some(lost) = self.lost.remove(id) {
            match self.groups.get(id) {
                Some(Group::Classic(group)) => {
                    let mut records = lost.clone();
                    records.push(group.record_as_is());
                    let downgraded = GroupThen::Downgraded { group: id.clone(), tombstones: lost };
                    self.out.append(records, Then { groups: vec![downgraded], ..Then::default() });
                }
                Some(Group::Consumer(group)) => {
                    let own: Vec<_> = group.tombstones().into_iter().map(|record| record.key).collect();
                    let gone: Vec<Record> =
                        lost.into_iter().filter(|record| !own.contains(&record.key)).collect();
                    self.append_downgraded(id, gone, None);
                }
                Some(Group::Streams(group)) => {
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
        match self.groups.get_mut(id) {
            Some(Group::Consumer(group)) => group.flush(&mut self.out),
            Some(Group::Streams(group)) => group.flush(&mut self.out),
            Some(Group::Share(group)) => group.flush(&mut self.out),
            _ => {}
        }
    }

    pub(super) fn describe_consumers(
        &mut self,
        request: &ConsumerGroupDescribeRequest,
        ticket: Ticket,
    ) -> Result<(), ErrorCode> {
        let mut last = self.out.groups_changed;
        let standard = self.out.config.consumer.assignors.first().map_or("uniform", |name| name.as_str());
        let mut groups = Vec::with_capacity(request.group_ids.len());
        for id in &request.group_ids {
            groups.push(match self.groups.get(id.as_str()) {
                Some(Group::Consumer(group)) => {
                    last = last.max(group.last_batch());
                    consumer::describe(group, standard, &self.world.image)
                }
                Some(_) => consumer::not_consumer(id),
                None => consumer::describe_missing(id),
            });
        }
        let response = ConsumerGroupDescribeResponse { groups, ..Default::default() };
        self.out.answer_after(last, ticket, Response::ConsumerGroupDescribe(response));
        Ok(())
    }

    /// Time is over for a member of a consumer group.
    pub(super) fn consumer_timer(&mut self, key: &TimerKey) {
        let (TimerKey::Session { group, member }
        | TimerKey::Rebalance { group, member }
        | TimerKey::MemberJoin { group, member }
        | TimerKey::MemberSync { group, member }) = key
        else {
            return;
        };
        // A member that has gone over to the other protocol, or is not asked for anything any more, is not what this is about.
        let is_meant = match self.groups.get(group) {
            Some(Group::Consumer(group)) => consumer::is_late(group, member, key),
            _ => false,
        };
        if is_meant {
            self.fence_members(group, std::slice::from_ref(member));
        }
    }

    /// A job of this shard was run, or given up.
    pub fn computed(&mut self, done: Done, now: Now) -> Vec<Effect> {
        self.out.now = now;
        match (self.groups.get_mut(done.0.group()), done.0) {
            (Some(Group::Streams(group)), Outcome::Tasks { epoch, targets, .. }) => {
                streams::computed(group, epoch, targets, &mut self.out);
            }
            (Some(Group::Consumer(group)), Outcome::Partitions { epoch, targets, .. }) => {
                consumer::computed(group, epoch, targets, &mut self.out);
            }
            (Some(Group::Consumer(group)), Outcome::Resolved { topics, .. }) => {
                consumer::resolved(group, topics, &mut self.world, &mut self.out);
            }
            // Of a group of the same name that is gone.
            _ => {}
        }
        self.out.take_effects()
    }

    /// The cluster looks like this now. `topics`: those that were created, deleted or got more partitions; `None`: any.
    pub fn image_changed(&mut self, image: &Image, topics: Option<&[Text]>, has_new: bool) {
        self.world.change(image.clone(), topics, has_new);
        if topics.is_some_and(<[Text]>::is_empty) {
            return;
        }
        for group in self.groups.values_mut() {
            let concerns = |reads: &dyn Fn(&str) -> bool| {
                topics.is_none_or(|topics| topics.iter().any(|topic| reads(topic)))
            };
            match group {
                Group::Consumer(group) if concerns(&|topic| group.is_subscribed(topic)) => {
                    group.refresh_at = MonotonicMs(0);
                }
                Group::Streams(group) if concerns(&|topic| group.needs(topic)) => {
                    group.refresh_at = MonotonicMs(0);
                }
                Group::Share(group) if concerns(&|topic| group.names().contains_key(topic)) => {
                    group.refresh_at = MonotonicMs(0);
                }
                _ => {}
            }
        }
    }
}

fn not_found(why: String) -> Refused {
    Refused::new(ErrorCode::GroupIdNotFound, why)
}

fn not_consumer(id: &str) -> Refused {
    not_found(format!("Group {id} is not a consumer group."))
}
