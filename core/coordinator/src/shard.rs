//! One partition of `__consumer_offsets`: its groups and their offsets.
//!
//! Decides nothing about members or offsets itself (classic/, offsets/): finds the group, holds answers back until the
//! records behind them are on disk, and takes changes back if they never get there.
//!
//! Always true (checked by [`GroupShard::violations`]):
//! 1. every ticket is answered exactly once
//! 2. every answer rests on records that are on disk
//! 3. where there are offsets, there is a group
//! 4. whatever waits for something outside has a timer
//!
//! Before: shell/broker/src/coordinators/coordinator_worker.rs. After: the partition, by way of [`Effect::Append`].

mod admin;
mod commits;
mod groups;
mod invariants;
pub mod lag;
mod load;
mod look;
mod memory;
mod outcome;
mod parts;
mod reconciled;
mod transactional;

use self::memory::{NoRoom, Weights};
use barnabas_base::{ErrorCode, Map, MonotonicMs, Text, TopicId};
use barnabas_metadata::Image;

use crate::framework::{BatchId, Caller, Now, Record, Refusable, Ticket};
use crate::groups::Group;
use crate::groups::classic;
use crate::groups::reconciled::World;
use crate::groups::share::Awaiting;
use crate::offsets::{self, Heard, Offsets};
use crate::outbox::Effect;
use crate::outbox::{Outbox, TimerKey, append_refusal};
use crate::{GroupConfig, Request, Response};

pub use look::{CommittedOffset, GroupLook};

/// How much a shard holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupStats {
    pub groups: usize,
    pub members: usize,
    pub offsets: usize,
    pub pending_batches: usize,
    pub timers: usize,
}

/// The coordinator of the groups of one partition.
///
/// Life: [`GroupShard::new`], [`GroupShard::replay_batches`] for all that the partition holds, from its start,
/// [`GroupShard::activate`]; then whatever comes; in the end [`GroupShard::unload`]. Until `activate`, every request is
/// told that loading is in progress.
#[derive(Debug)]
pub struct GroupShard {
    pub(crate) groups: Map<Text, Group>,
    pub(crate) offsets: Offsets,
    pub(crate) out: Outbox,
    pub(crate) world: World,
    /// Groups by the batch with their tombstones. They are back if that is lost.
    deleted: Map<BatchId, Vec<Group>>,
    /// Tombstones of consumer groups that became classic ones, of batches that were lost.
    lost: Map<Text, Vec<Record>>,
    /// What share groups have asked of the share coordinator, and who waits for it.
    pub(crate) share_orders: Map<u64, Awaiting>,
    share_orders_made: u64,
    is_active: bool,
    /// Producers that committed within transactions.
    heard: Heard,
    /// The place of the next record, see [`offsets::OffsetEntry::written`].
    written: i64,
    weights: Weights,
}

impl GroupShard {
    pub fn new(config: GroupConfig) -> Self {
        Self {
            groups: Map::default(),
            offsets: Offsets::default(),
            out: Outbox::new(config),
            world: World::new(Image::default()),
            deleted: Map::default(),
            lost: Map::default(),
            share_orders: Map::default(),
            share_orders_made: 0,
            is_active: false,
            heard: Heard::default(),
            written: 0,
            weights: Weights::default(),
        }
    }

    /// Works on one request. Its answer is among the effects of this or of a later call, exactly once.
    pub fn handle(&mut self, caller: &Caller<'_>, request: Request, ticket: Ticket, now: Now) -> Vec<Effect> {
        self.out.now = now;
        if !self.is_active {
            self.out.answer(ticket, request.refuse_while_loading());
        } else if !request.is_writable() {
            self.out.answer(ticket, request.refuse(ErrorCode::InvalidRequest));
        } else if request.writes() && self.out.is_full() {
            self.out.answer(ticket, request.refuse(ErrorCode::CoordinatorNotAvailable));
        } else if let Some(parts) = self.parts(caller, &request) {
            self.out.answer(ticket, Response::Parts(parts));
        } else {
            match self.find_room(caller, &request) {
                Ok(cost) => {
                    self.dispatch(caller, &request, ticket);
                    self.weigh_after(&request, cost);
                }
                Err(NoRoom { code, why }) => {
                    self.out.answer(ticket, request.refuse(code).saying(Some(why.as_str().into())));
                }
            }
        }
        self.out.take_effects()
    }

    fn dispatch(&mut self, caller: &Caller<'_>, request: &Request, ticket: Ticket) {
        let refusal = match request {
            Request::JoinGroup(join) => self.join_group(caller, join, ticket),
            Request::SyncGroup(sync) => self.sync_group(caller, sync, ticket),
            Request::Heartbeat(heartbeat) => self.heartbeat(heartbeat, ticket),
            Request::ConsumerGroupHeartbeat(heartbeat) => {
                self.consumer_heartbeat(caller, heartbeat, ticket);
                Ok(())
            }
            Request::StreamsGroupHeartbeat(heartbeat) => {
                self.streams_heartbeat(caller, heartbeat, ticket);
                Ok(())
            }
            Request::ShareGroupHeartbeat(heartbeat) => {
                self.share_heartbeat(caller, heartbeat, ticket);
                Ok(())
            }
            Request::LeaveGroup(leave) => self.leave_group(caller, leave, ticket),
            Request::OffsetCommit(commit) => self.commit_offsets(caller, commit, ticket),
            Request::TxnOffsetCommit(commit) => self.commit_in_transaction(caller, commit, ticket),
            Request::EndTransaction(end) => {
                self.end_transaction(*end, ticket);
                Ok(())
            }
            Request::OffsetDelete(delete) => self.delete_offsets(delete, ticket),
            Request::OffsetFetch { .. } if caller.version == 0 => Err(ErrorCode::UnsupportedVersion),
            Request::OffsetFetch { group, require_stable } => {
                self.fetch_offsets(group, *require_stable, ticket)
            }
            Request::ListGroups(list) | Request::ListGroupsParts(list) => {
                self.list_groups(list, None, ticket)
            }
            Request::ListSomeGroups { list, ids } => self.list_groups(list, Some(ids), ticket),
            Request::DescribeGroups(describe) => self.describe_groups(caller, describe, ticket),
            Request::ConsumerGroupDescribe(describe) => {
                self.describe_consumers(describe, ticket);
                Ok(())
            }
            Request::StreamsGroupDescribe(describe) => {
                self.describe_streams(describe, ticket);
                Ok(())
            }
            Request::StreamsTopologyDescription(update) => {
                self.keep_description(update, ticket);
                Ok(())
            }
            Request::DeleteGroups(delete) => self.delete_groups(delete, ticket),
            Request::ShareGroupDescribe(_)
            | Request::SharePartitions(_)
            | Request::AlterShareGroupOffsets(_)
            | Request::DeleteShareGroupOffsets(_) => {
                self.dispatch_share(request, ticket);
                Ok(())
            }
        };
        if let Err(error) = refusal {
            self.out.answer(ticket, request.refuse(error));
        }
    }

    /// All batches up to `through` are as safe as they are to be (but for those that were said to have failed).
    pub fn durable(&mut self, through: BatchId, now: Now) -> Vec<Effect> {
        self.out.now = now;
        while let Some(closed) = self.out.pending.pop_durable(through) {
            if let Some(then) = closed.then {
                self.batch_done(closed.id, then);
            }
            for (ticket, response) in closed.answers {
                self.out.answer(ticket, response);
            }
        }
        self.out.take_effects()
    }

    /// `batch` was not appended and never will be; other batches are not concerned. Kafka's error code says why.
    pub fn failed(&mut self, batch: BatchId, error: ErrorCode, now: Now) -> Vec<Effect> {
        self.out.now = now;
        if let Some(closed) = self.out.pending.take_failed(batch) {
            if let Some(then) = closed.then {
                self.batch_lost(closed.id, then, error);
            }
            self.refuse_all(closed.answers, append_refusal(error));
        }
        self.out.take_effects()
    }

    fn refuse_all(&mut self, answers: Vec<(Ticket, Response)>, error: ErrorCode) {
        for (ticket, response) in answers {
            self.out.answer(ticket, response.refused(error));
        }
    }

    /// When to call [`GroupShard::tick`] at the latest.
    pub fn next_deadline(&self) -> Option<MonotonicMs> {
        let deadlines = [self.out.timers.next(), self.out.pending.deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Now) -> Vec<Effect> {
        self.out.now = now;
        while let Some((batch, answers)) = self.out.pending.take_overdue(now.mono) {
            self.batch_overdue(batch);
            self.refuse_all(answers, append_refusal(ErrorCode::RequestTimedOut));
        }
        while let Some(key) = self.out.timers.take_due(now.mono) {
            self.fire(&key);
            match key.group() {
                Some(group) => self.lighter(group),
                None => self.weigh_all(),
            }
        }
        self.out.take_effects()
    }

    fn fire(&mut self, key: &TimerKey) {
        match key {
            TimerKey::Expiry => self.expire(),
            TimerKey::Save(group) => self.save_again(group),
            TimerKey::FirstTarget(group) => self.first_streams_target(group),
            TimerKey::SetUp(group) => self.share_set_up_is_late(group),
            TimerKey::Session { group, .. }
            | TimerKey::Join(group)
            | TimerKey::Sync(group)
            | TimerKey::Rebalance { group, .. }
            | TimerKey::MemberJoin { group, .. }
            | TimerKey::MemberSync { group, .. } => match (self.groups.get_mut(group), key) {
                (Some(Group::Classic(group)), TimerKey::Session { member, .. }) => {
                    classic::session_over(group, member, &mut self.out);
                }
                (Some(Group::Classic(group)), TimerKey::Join(_)) => classic::join_over(group, &mut self.out),
                (Some(Group::Classic(group)), TimerKey::Sync(_)) => classic::sync_over(group, &mut self.out),
                (Some(_), _) => self.member_timer(key),
                (None, _) => {}
            },
        }
    }

    /// These topics are gone: their offsets go too. An id of zero means whatever topic had the name.
    pub fn topics_deleted(&mut self, topics: &[(Text, TopicId)], now: Now) -> Vec<Effect> {
        self.out.now = now;
        if self.is_active {
            let keys = offsets::tombstones_of_topics(&self.offsets, topics);
            self.append_tombstones(keys, Vec::new());
            let ids: Vec<TopicId> = topics.iter().map(|(_, id)| *id).collect();
            self.share_topics_deleted(&ids);
        }
        self.out.take_effects()
    }

    /// Settings that changed hold from now on.
    pub fn set_config(&mut self, config: GroupConfig) {
        self.out.config = config;
    }

    /// Another broker leads the partition, or its log is gone: everybody who waits is sent away.
    pub fn unload(mut self) -> Vec<Effect> {
        while let Some(closed) = self.out.pending.pop_durable(BatchId(u64::MAX)) {
            self.refuse_all(closed.answers, ErrorCode::NotCoordinator);
        }
        self.abandon_share_orders();
        let mut ids: Vec<Text> = self.groups.keys().cloned().collect();
        ids.sort();
        for id in ids {
            if let Some(Group::Classic(group)) = self.groups.get_mut(&id) {
                classic::send_away(group, ErrorCode::NotCoordinator, &mut self.out);
            }
        }
        self.out.take_effects()
    }

    pub fn stats(&self) -> GroupStats {
        GroupStats {
            groups: self.groups.len(),
            members: self.groups.values().map(Group::members).sum(),
            offsets: self.offsets.len(),
            pending_batches: self.out.pending.len(),
            timers: self.out.timers.len(),
        }
    }

    /// What is not as it must always be, in words; empty as long as there is no bug. Costs a look at everything: for
    /// tests and the simulator.
    pub fn violations(&self) -> Vec<String> {
        invariants::violations(self)
    }
}
