//! From one generation to the next: who waits for whom, and for how long.
//!
//! # Source
//! Kafka 4.4 `GroupMetadataManager.prepareRebalance`, `completeClassicGroupJoin`, `expirePendingSync`,
//! `tryCompleteInitialRebalanceElseSchedule`.

use std::collections::BTreeMap;

use barnabas_base::{DurationMs, ErrorCode, Text};
use barnabas_wire::Str;
use barnabas_wire::messages::join_group_response::JoinGroupResponseMember;
use barnabas_wire::messages::{JoinGroupResponse, SyncGroupResponse};
use bytes::Bytes;

use super::group::{ClassicGroup, InitialDelay, State};
use crate::Response;
use crate::framework::Ticket;
use crate::outbox::{Outbox, Then, TimerKey};

/// How long a group that no member has joined waits at least before it looks again: members may request a timeout of
/// 0.
const EMPTY_JOIN_WAIT_MIN: DurationMs = DurationMs(1_000);

/// Sets the clock by which a member must be heard of again.
pub(crate) fn expect_member(group: &Text, member: &Text, within_ms: i32, out: &mut Outbox) {
    let key = TimerKey::Session { group: group.clone(), member: member.clone() };
    out.set_timer(key, DurationMs(i64::from(within_ms)));
}

/// Takes a member, or one that is pending, out of the group and answers what it waits for.
pub(crate) fn drop_member(group: &mut ClassicGroup, member_id: &str, out: &mut Outbox) {
    let key = TimerKey::Session { group: group.id.clone(), member: Text::from(member_id) };
    out.timers.cancel(&key);
    let Some(member) = group.remove(member_id) else { return };
    if let Some(ticket) = member.join {
        answer_join(ticket, "", ErrorCode::UnknownMemberId, out);
    }
    if let Some(ticket) = member.sync {
        answer_sync_refused(ticket, ErrorCode::UnknownMemberId, out);
    }
}

pub(super) fn answer_join(ticket: Ticket, member_id: &str, error: ErrorCode, out: &mut Outbox) {
    let response = JoinGroupResponse {
        member_id: member_id.into(),
        error_code: error.code(),
        protocol_name: Some(Str::default()),
        ..Default::default()
    };
    out.answer(ticket, Response::JoinGroup(response));
}

pub(super) fn answer_sync_refused(ticket: Ticket, error: ErrorCode, out: &mut Outbox) {
    let response = SyncGroupResponse { error_code: error.code(), ..Default::default() };
    out.answer(ticket, Response::SyncGroup(response));
}

/// After a member came, or said something new.
pub(super) fn prepare_or_complete(group: &mut ClassicGroup, out: &mut Outbox) {
    match group.state {
        State::PreparingRebalance => complete_if_all_joined(group, out),
        State::Empty | State::CompletingRebalance | State::Stable => prepare_rebalance(group, out),
    }
}

/// All members are to join again.
pub(crate) fn prepare_rebalance(group: &mut ClassicGroup, out: &mut Outbox) {
    if group.state == State::CompletingRebalance {
        refuse_all_syncs(group, ErrorCode::RebalanceInProgress, out);
    }
    group.pending_sync.clear();
    group.storing = None;
    out.timers.cancel(&TimerKey::Sync(group.id.clone()));
    let was_empty = group.state == State::Empty;
    group.enter(State::PreparingRebalance, out.now.wall);
    let timeout = group.rebalance_timeout();
    if was_empty {
        let delay = out.config.initial_rebalance_delay;
        let remaining = DurationMs((timeout.0 - delay.0).max(0));
        group.initial_delay = Some(InitialDelay { this_round: delay, remaining, member_added: false });
        out.set_timer(TimerKey::Join(group.id.clone()), delay);
    } else if group.have_all_joined() {
        complete_join(group, out);
    } else {
        out.set_timer(TimerKey::Join(group.id.clone()), timeout);
    }
}

/// Ends the join phase if all members have joined. An empty group's first rebalance lasts for its initial delay.
pub(super) fn complete_if_all_joined(group: &mut ClassicGroup, out: &mut Outbox) {
    if group.state == State::PreparingRebalance && group.initial_delay.is_none() && group.have_all_joined() {
        complete_join(group, out);
    }
}

/// The time to join is over.
pub(crate) fn join_over(group: &mut ClassicGroup, out: &mut Outbox) {
    if group.state != State::PreparingRebalance {
        return;
    }
    if let Some(delay) = group.initial_delay
        && delay.member_added
        && delay.remaining.0 > 0
    {
        let this_round = DurationMs(out.config.initial_rebalance_delay.0.min(delay.remaining.0));
        let remaining = DurationMs((delay.remaining.0 - delay.this_round.0).max(0));
        group.initial_delay = Some(InitialDelay { this_round, remaining, member_added: false });
        out.set_timer(TimerKey::Join(group.id.clone()), this_round);
        return;
    }
    complete_join(group, out);
}

/// Begins the next generation with those who have joined.
///
/// Static members that have not joined stay as long as their session lasts (KIP-345). If no member has joined at
/// all, the group waits until sessions end.
fn complete_join(group: &mut ClassicGroup, out: &mut Outbox) {
    out.timers.cancel(&TimerKey::Join(group.id.clone()));
    let absent = group.members.iter().filter(|(_, member)| member.join.is_none() && !member.is_static());
    let absent: Vec<Text> = absent.map(|(id, _)| id.clone()).collect();
    absent.iter().for_each(|id| drop_member(group, id, out));
    if !elect_leader(group) {
        let again = group.rebalance_timeout().max(EMPTY_JOIN_WAIT_MIN);
        out.set_timer(TimerKey::Join(group.id.clone()), again);
        return;
    }
    group.initial_delay = None;
    group.storing = None;
    group.generation = group.generation.wrapping_add(1).max(0);
    group.pending_sync.clear();
    group.protocol = group.select_protocol();
    group.find_subscribed();
    if group.members.is_empty() {
        group.enter(State::Empty, out.now.wall);
        let record = group.record(&BTreeMap::new());
        // Should this record be lost, the last generation that had members comes back with the next load, and ends
        // when their sessions do. So nothing hangs on it.
        out.append(vec![record], Then::default());
    } else {
        group.enter(State::CompletingRebalance, out.now.wall);
        answer_all_joins(group, out);
        out.set_timer(TimerKey::Sync(group.id.clone()), group.rebalance_timeout());
    }
}

/// Sees to it that the leader is one who has joined. False: there are members, and none of them has.
fn elect_leader(group: &mut ClassicGroup) -> bool {
    let has_joined = |id: &Text| group.members.get(id).is_some_and(|member| member.join.is_some());
    if group.members.is_empty() || group.leader.as_ref().is_some_and(has_joined) {
        return true;
    }
    let first = group.members.keys().find(|id| has_joined(id)).cloned();
    if first.is_some() {
        group.leader = first;
        return true;
    }
    false
}

/// Tells every member the new generation; all of them are to sync.
fn answer_all_joins(group: &mut ClassicGroup, out: &mut Outbox) {
    let ids: Vec<Text> = group.members.keys().cloned().collect();
    for id in ids {
        let response = generation_of(group, &id);
        let Some(member) = group.members.get_mut(&id) else { continue };
        member.is_new = false;
        expect_member(&group.id, &id, member.session_timeout_ms, out);
        if let Some(ticket) = member.join.take() {
            group.awaiting_join -= 1;
            out.answer(ticket, Response::JoinGroup(response));
        }
        group.pending_sync.insert(id);
    }
}

/// A member's view of the current generation. The leader also learns the other members.
pub(super) fn generation_of(group: &ClassicGroup, member_id: &Text) -> JoinGroupResponse {
    JoinGroupResponse {
        generation_id: group.generation,
        protocol_type: group.protocol_type.as_ref().map(Str::from),
        protocol_name: group.protocol.as_ref().map(Str::from),
        leader: group.leader.as_ref().map(Str::from).unwrap_or_default(),
        member_id: Str::from(member_id),
        members: if group.is_leader(member_id) { everybody(group) } else { Vec::new() },
        ..Default::default()
    }
}

fn everybody(group: &ClassicGroup) -> Vec<JoinGroupResponseMember> {
    let members = group.members.iter().map(|(id, member)| JoinGroupResponseMember {
        member_id: Str::from(id),
        group_instance_id: member.instance.as_ref().map(Str::from),
        metadata: member.metadata(group.protocol.as_ref()),
        ..Default::default()
    });
    members.collect()
}

/// The time to sync is over: who has not is out.
pub(crate) fn sync_over(group: &mut ClassicGroup, out: &mut Outbox) {
    if !matches!(group.state, State::CompletingRebalance | State::Stable) || group.pending_sync.is_empty() {
        return;
    }
    let late: Vec<Text> = group.pending_sync.iter().cloned().collect();
    late.iter().for_each(|id| drop_member(group, id, out));
    prepare_rebalance(group, out);
}

/// No member gets an assignment in this generation.
pub(super) fn refuse_all_syncs(group: &mut ClassicGroup, error: ErrorCode, out: &mut Outbox) {
    let id = group.id.clone();
    for (member_id, member) in &mut group.members {
        member.assignment = Bytes::new();
        if let Some(ticket) = member.sync.take() {
            answer_sync_refused(ticket, error, out);
            // Its session may have run out while it waited for us.
            expect_member(&id, member_id, member.session_timeout_ms, out);
        }
    }
}

/// A group that was read from the log: its members have a whole session to be heard of.
///
/// # Source
/// Kafka `GroupMetadataManager.onLoaded`.
pub(crate) fn loaded(group: &mut ClassicGroup, out: &mut Outbox) {
    for (id, member) in &group.members {
        expect_member(&group.id, id, member.session_timeout_ms, out);
    }
    // The limit may have been lowered: a rebalance lets those who stay outside commit first.
    if group.members.len() > out.config.group_size_max {
        prepare_rebalance(group, out);
    }
}

/// Answers everybody who waits in the group.
pub(crate) fn send_away(group: &mut ClassicGroup, error: ErrorCode, out: &mut Outbox) {
    for (id, member) in &mut group.members {
        if let Some(ticket) = member.join.take() {
            answer_join(ticket, id, error, out);
        }
        if let Some(ticket) = member.sync.take() {
            answer_sync_refused(ticket, error, out);
        }
    }
    group.awaiting_join = 0;
}

/// The group is going: nothing is waited for any more, not even for those who were given an id.
pub(crate) fn forget_timers(group: &mut ClassicGroup, out: &mut Outbox) {
    out.timers.cancel(&TimerKey::Join(group.id.clone()));
    out.timers.cancel(&TimerKey::Sync(group.id.clone()));
    let pending = std::mem::take(&mut group.pending_members);
    for member in group.members.keys().chain(&pending) {
        out.timers.cancel(&TimerKey::Session { group: group.id.clone(), member: member.clone() });
    }
}
