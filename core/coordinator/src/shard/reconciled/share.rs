//! Requests and events of share groups (KIP-932), brought to their group.
//!
//! # Source
//! Kafka 4.4 `GroupCoordinatorService`, `GroupMetadataManager`.

mod orders;

use barnabas_base::{DurationMs, ErrorCode, Text, TopicId};
use barnabas_wire::messages::{
    ShareGroupDescribeRequest, ShareGroupDescribeResponse, ShareGroupHeartbeatRequest,
};

use super::{Group, GroupShard};
use crate::framework::{BatchId, Caller, Ticket};
use crate::groups::find_mut;
use crate::groups::reconciled::{Kind, Refused, no_group, wrong_kind};
use crate::groups::share::{self, Awaiting, Heartbeat, Share, ShareGroup, Stayed};
use crate::outbox::{ShareStateWork, TimerKey};
use crate::records::{Entry, GroupKind};
use crate::{Request, Response};

/// How long a heartbeat waits until share partitions are initialized. Mostly they are within milliseconds, and the
/// member has them with its first answer; a share coordinator that cannot write takes seconds.
const SET_UP_WAIT: DurationMs = DurationMs(500);

impl GroupShard {
    pub(in crate::shard) fn share_heartbeat(
        &mut self,
        caller: &Caller<'_>,
        request: &ShareGroupHeartbeatRequest,
        ticket: Ticket,
    ) {
        let worked = share::check(request).and_then(|()| match request.member_epoch {
            -1 => self.share_leave(request, ticket),
            _ => self.share_stay(caller, request, ticket),
        });
        if let Err(refused) = worked {
            self.out.answer(ticket, refusal(refused));
        }
    }

    /// Requests that concern share groups alone, but for heartbeats.
    pub(in crate::shard) fn dispatch_share(&mut self, request: &Request, ticket: Ticket) {
        let worked = match request {
            Request::ShareGroupDescribe(describe) => {
                self.describe_shares(describe, ticket);
                Ok(())
            }
            Request::SharePartitions(group) => {
                self.share_partitions(group, ticket);
                Ok(())
            }
            Request::AlterShareGroupOffsets(alter) => self.alter_share_offsets(alter, ticket),
            Request::DeleteShareGroupOffsets(delete) => self.delete_share_offsets(delete, ticket),
            other => {
                let why = format!("{other:?} is not about a share group.");
                Err(Refused::new(ErrorCode::InvalidRequest, why))
            }
        };
        if let Err(Refused { code, why }) = worked {
            self.out.answer(ticket, request.refuse(code).saying(Some(why.into())));
        }
    }

    fn share_stay(
        &mut self,
        caller: &Caller<'_>,
        request: &ShareGroupHeartbeatRequest,
        ticket: Ticket,
    ) -> Result<(), Refused> {
        let id = request.group_id.text();
        let mut new = None;
        let group = match self.groups.get_mut(&id) {
            Some(known) => Share::of_mut(known).ok_or_else(|| wrong_kind(GroupKind::Share, &id))?,
            None if request.member_epoch != 0 => return Err(no_group(GroupKind::Share, &id)),
            None => &mut **new.insert(Box::new(ShareGroup::new(id.clone()))),
        };
        let stayed = share::stay(group, caller, request, ticket, &mut self.world, &mut self.out)?;
        if let Some(group) = new {
            self.groups.insert(id.clone(), Group::Share(group));
            self.out.groups_changed = self.out.pending.upcoming();
        }
        self.go_on(&id, stayed);
        Ok(())
    }

    /// Answers a heartbeat, or has the topics set up that it needs before.
    fn go_on(&mut self, id: &Text, stayed: Stayed) {
        let Stayed { heartbeat, lacks } = stayed;
        let Some(Group::Share(group)) = self.groups.get_mut(id) else { return };
        let under_way = group.own.order.and_then(|number| self.share_orders.get_mut(&number));
        let lacks = lacks && group.own.set_up_again_at <= self.out.now.mono;
        match under_way {
            None if lacks => {
                let names: Vec<Text> = group.names().keys().cloned().collect();
                let starts = group.own.set_up.begin(id, names.iter(), &self.world.image);
                let state_epoch = group.epoch;
                group.note(Entry::SetUp);
                let work = ShareStateWork::Initialize { state_epoch, starts };
                let heartbeats = vec![heartbeat];
                let awaiting = Awaiting::SetUp { group: id.clone(), heartbeats, is_late: false };
                self.out.set_timer(TimerKey::SetUp(id.clone()), SET_UP_WAIT);
                self.order(id, work, awaiting);
            }
            // A member that joins meanwhile gets everything at once too.
            Some(Awaiting::SetUp { heartbeats, is_late: false, .. })
                if lacks && heartbeat.before.epoch == 0 =>
            {
                heartbeats.push(heartbeat);
                group.flush(&mut self.out);
            }
            _ => self.end_heartbeat(id, &heartbeat),
        }
    }

    /// Initializing share partitions takes long: heartbeats are answered with what is initialized, as in Kafka. The
    /// next ones bring the rest.
    pub(in crate::shard) fn share_set_up_is_late(&mut self, id: &Text) {
        let order = match self.groups.get(id) {
            Some(Group::Share(group)) => group.own.order,
            _ => None,
        };
        let awaiting = order.and_then(|number| self.share_orders.get_mut(&number));
        let Some(Awaiting::SetUp { heartbeats, is_late, .. }) = awaiting else { return };
        *is_late = true;
        for heartbeat in std::mem::take(heartbeats) {
            self.end_heartbeat(id, &heartbeat);
        }
    }

    fn end_heartbeat(&mut self, id: &Text, heartbeat: &Heartbeat) {
        let Some(Group::Share(group)) = self.groups.get_mut(id) else { return };
        match share::finish(group, heartbeat, &mut self.world, &mut self.out) {
            Ok(response) => {
                group.answer(heartbeat.ticket, Response::ShareGroupHeartbeat(response), &mut self.out);
            }
            Err(refused) => self.out.answer(heartbeat.ticket, refusal(refused)),
        }
    }

    fn share_leave(&mut self, request: &ShareGroupHeartbeatRequest, ticket: Ticket) -> Result<(), Refused> {
        let id = request.group_id.text();
        let group = find_mut::<Share>(&mut self.groups, &id)?;
        let member = request.member_id.text();
        let response = share::leave(group, &member, &mut self.world, &mut self.out)?;
        group.answer(ticket, Response::ShareGroupHeartbeat(response), &mut self.out);
        Ok(())
    }

    pub(in crate::shard) fn describe_shares(&mut self, request: &ShareGroupDescribeRequest, ticket: Ticket) {
        let (groups, last) = self.describe_each(
            &request.group_ids,
            |group| share::describe(group, &self.world.image),
            share::describe_refused,
        );
        let response = ShareGroupDescribeResponse { groups, ..Default::default() };
        self.out.answer_after(last, ticket, Response::ShareGroupDescribe(response));
    }

    /// The share-partitions of a group that are set up; none for a group that is none.
    ///
    /// # Source
    /// Kafka 4.4 `GroupMetadataManager.initializedShareGroupPartitions`.
    pub(in crate::shard) fn share_partitions(&mut self, id: &str, ticket: Ticket) {
        let (topics, batch) = match self.groups.get(id) {
            Some(Group::Share(group)) => {
                let topics = group.own.set_up.initialized.iter();
                let topics = topics.map(|(id, topic)| (*id, topic.partitions.iter().copied().collect()));
                (topics.collect(), group.last_batch())
            }
            _ => (Vec::new(), BatchId(0)),
        };
        self.out.answer_after(batch, ticket, Response::SharePartitions(Ok(topics)));
    }

    /// These topics are gone: no share group knows of them any more. The share coordinator ends their state by itself.
    pub(in crate::shard) fn share_topics_deleted(&mut self, topics: &[TopicId]) {
        let mut ids: Vec<Text> = Vec::new();
        for (id, group) in &mut self.groups {
            if let Group::Share(group) = group
                && group.own.set_up.forget(topics)
            {
                ids.push(id.clone());
            }
        }
        ids.sort();
        for id in ids {
            if let Some(Group::Share(group)) = self.groups.get_mut(&id) {
                group.note(Entry::SetUp);
                group.flush(&mut self.out);
            }
        }
    }
}

fn refusal(refused: Refused) -> Response {
    Response::ShareGroupHeartbeat(share::refusal(refused))
}
