//! Members of a consumer group that speak the classic protocol: what they ask for is answered out of the new one's
//! state.
//!
//! | request | what it is here |
//! |---|---|
//! | JoinGroup | a heartbeat with everything in it: the generation is the member's epoch |
//! | SyncGroup | what the member has, as a consumer's assignment; there is no leader |
//! | Heartbeat | REBALANCE_IN_PROGRESS when it must join again, to give something up or to get more |
//! | LeaveGroup | as in the new protocol |
//!
//! # Source
//! KIP-848 (online migration); Kafka 4.4 `classicGroupJoinToConsumerGroup`, `classicGroupSyncToConsumerGroup`,
//! `classicGroupHeartbeatToConsumerGroup`, `classicGroupLeaveToConsumerGroup`.

use std::sync::Arc;

use barnabas_base::{DurationMs, ErrorCode, Text};
use barnabas_metadata::Image;
use barnabas_wire::Str;
use barnabas_wire::messages::consumer_group_heartbeat_request::TopicPartitions;
use barnabas_wire::messages::leave_group_request::MemberIdentity;
use barnabas_wire::messages::{
    ConsumerProtocolSubscription, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, SyncGroupRequest,
    SyncGroupResponse,
};

use super::group::ConsumerGroup;
use super::heartbeat::{advance, settle};
use super::member::{ClassicSide, ConsumerMember};
use super::migrate::{self, assignment_bytes, subscription_of};
use super::target::assign_if_due;
use crate::framework::Caller;
use crate::groups::reconciled::{MemberState, World, check_instance, set_names};
use crate::outbox::{Outbox, TimerKey, append_refusal};
use crate::request::Protocols;

/// From this version on, a new dynamic member is given an id first and joins with it (KIP-394).
const MEMBER_ID_REQUIRED_SINCE: i16 = 4;

/// What a JoinGroup comes to.
pub(crate) enum Joined {
    /// The member is to come back with its id: nothing was written.
    Named(JoinGroupResponse),
    Answer(JoinGroupResponse),
    /// As it replaces the last member of the new protocol, the group becomes a classic one; the answer.
    Downgrade {
        response: JoinGroupResponse,
        rebalance: bool,
    },
}

/// Works on a JoinGroup to a consumer group that has members.
///
/// # Errors
/// The refusal. Nothing has changed then.
pub(crate) fn join(
    group: &mut ConsumerGroup,
    caller: &Caller<'_>,
    request: &JoinGroupRequest,
    world: &mut World,
    out: &mut Outbox,
) -> Result<Joined, ErrorCode> {
    if out.config.consumer.migration == migrate::Policy::Disabled {
        return Err(ErrorCode::InconsistentGroupProtocol);
    }
    let instance = request.group_instance_id.as_deref();
    let is_unknown = request.member_id.is_empty();
    let id = if is_unknown {
        crate::groups::classic::new_member_id(instance.unwrap_or(caller.client_id), caller)
    } else {
        request.member_id.text()
    };
    group.check_room(&id, instance, out).map_err(|refused| refused.code)?;
    let protocols = Protocols::from_request(&request.protocols);
    if !group.supports(&request.protocol_type, protocols.names()) {
        return Err(ErrorCode::InconsistentGroupProtocol);
    }
    if out.is_too_large_in_all(protocols.pairs().map(|(name, said)| name.len() + said.len() * 2)) {
        return Err(append_refusal(ErrorCode::RecordListTooLarge));
    }
    if is_unknown && instance.is_none() && caller.version >= MEMBER_ID_REQUIRED_SINCE {
        let error_code = ErrorCode::MemberIdRequired.code();
        let member_id = Str::from(&id);
        return Ok(Joined::Named(JoinGroupResponse { member_id, error_code, ..Default::default() }));
    }
    let subscription = subscription_of(&protocols).ok_or(ErrorCode::InconsistentGroupProtocol)?;
    let old = instance.and_then(|instance| group.static_member(instance)).cloned();
    let before = place(group, &id, old.as_deref(), is_unknown, instance)?;
    let downgrades = old
        .as_ref()
        .is_some_and(|old| migrate::can_downgrade(group, std::slice::from_ref(&old.id), true, out));
    let is_replaced = old.as_ref().is_some_and(|old| old.id != id);
    if let (Some(old), Some(before), true) = (&old, &before, is_replaced) {
        group.replace(&old.id, before, out);
    }
    let updated = update(before.as_ref(), &id, caller, request, protocols, &subscription);
    let protocol_name =
        updated.own.classic.as_ref().and_then(|classic| classic.protocols.names().next().cloned());
    let changed = settle(group, before.as_ref(), updated, world, out);
    if !downgrades {
        assign_if_due(group, world, out);
    }
    let owned = owned_of(&subscription, &world.image);
    if !(downgrades && changed) {
        advance(group, &id, world, Some(&owned), changed, out);
    }
    let response = JoinGroupResponse {
        member_id: Str::from(&id),
        generation_id: group.member(&id).map_or(0, |member| member.epoch),
        protocol_type: Some("consumer".into()),
        protocol_name: protocol_name.as_ref().map(Str::from),
        ..Default::default()
    };
    if downgrades {
        return Ok(Joined::Downgrade { response, rebalance: changed });
    }
    out.timers.cancel(&TimerKey::MemberJoin { group: group.id.clone(), member: id.clone() });
    group.watch(&id, out);
    let sync = TimerKey::MemberSync { group: group.id.clone(), member: id };
    out.set_timer(sync, DurationMs(i64::from(request.rebalance_timeout_ms)));
    Ok(Joined::Answer(response))
}

/// What is known of the member that joins; `None`: it is new.
fn place(
    group: &ConsumerGroup,
    id: &Text,
    old: Option<&ConsumerMember>,
    is_unknown: bool,
    instance: Option<&str>,
) -> Result<Option<ConsumerMember>, ErrorCode> {
    match old {
        Some(old) if old.id == *id => Ok(Some(old.clone())),
        Some(old) if is_unknown => Ok(Some(old.replacement(id.clone()))),
        Some(_) => Err(ErrorCode::FencedInstanceId),
        None if instance.is_some() && !is_unknown => Err(ErrorCode::UnknownMemberId),
        None => Ok(group.member(id).map(|member| (**member).clone())),
    }
}

fn update(
    before: Option<&ConsumerMember>,
    id: &Text,
    caller: &Caller<'_>,
    request: &JoinGroupRequest,
    protocols: Protocols,
    subscription: &ConsumerProtocolSubscription,
) -> ConsumerMember {
    let mut member = before.cloned().unwrap_or_else(|| ConsumerMember::new(id.clone()));
    if let Some(instance) = &request.group_instance_id {
        member.instance = Some(instance.text());
    }
    if let Some(rack) = subscription.rack_id.as_ref().filter(|rack| !rack.is_empty()) {
        member.rack = Some(rack.text());
    }
    if request.rebalance_timeout_ms != -1 {
        member.rebalance_timeout_ms = request.rebalance_timeout_ms;
    }
    set_names(&mut member.own.names, subscription.topics.iter().map(Str::text));
    // An expression is not said in the classic protocol: the client looks for the topics itself.
    member.own.regex = Some(Text::default());
    member.set_client(caller);
    let classic = ClassicSide { session_timeout_ms: request.session_timeout_ms, protocols };
    if member.own.classic.as_deref() != Some(&classic) {
        member.own.classic = Some(Arc::new(classic));
    }
    member
}

fn owned_of(subscription: &ConsumerProtocolSubscription, image: &Image) -> Vec<TopicPartitions> {
    let topics = subscription.owned_partitions.iter().filter_map(|topic| {
        Some(TopicPartitions {
            topic_id: image.topics.id_of(&topic.topic)?,
            partitions: topic.partitions.clone(),
            ..Default::default()
        })
    });
    topics.collect()
}

/// The member of the classic protocol that speaks.
fn speaker(
    group: &ConsumerGroup,
    id: &str,
    instance: Option<&str>,
    generation: i32,
) -> Result<(Arc<ConsumerMember>, Arc<ClassicSide>), ErrorCode> {
    let member = match instance {
        None => group.member(id),
        Some(instance) => group.static_member(instance),
    };
    let member = member.ok_or(ErrorCode::UnknownMemberId)?;
    check_instance(&member.id, id, instance.unwrap_or_default()).map_err(|refused| refused.code)?;
    let classic = member.own.classic.as_ref().ok_or(ErrorCode::UnknownMemberId)?;
    if member.epoch != generation {
        return Err(ErrorCode::IllegalGeneration);
    }
    Ok((Arc::clone(member), Arc::clone(classic)))
}

/// # Errors
/// The refusal; REBALANCE_IN_PROGRESS if there is a newer target already.
pub(crate) fn sync(
    group: &mut ConsumerGroup,
    request: &SyncGroupRequest,
    world: &World,
    out: &mut Outbox,
) -> Result<SyncGroupResponse, ErrorCode> {
    let (member, classic) =
        speaker(group, &request.member_id, request.group_instance_id.as_deref(), request.generation_id)?;
    let own = classic.protocols.names().next();
    let is_other = |said: &Option<Str>, own: &str| said.as_ref().is_some_and(|said| said.as_str() != own);
    if is_other(&request.protocol_type, "consumer")
        || is_other(&request.protocol_name, own.map_or("", |name| name.as_str()))
    {
        return Err(ErrorCode::InconsistentGroupProtocol);
    }
    if group.assignment_epoch > member.epoch && member.state != MemberState::Unrevoked {
        expect_join(group, &member, out);
        return Err(ErrorCode::RebalanceInProgress);
    }
    out.timers.cancel(&TimerKey::MemberSync { group: group.id.clone(), member: member.id.clone() });
    group.watch(&member.id, out);
    let assigned =
        member.assigned.iter().map(|(topic, partitions)| (*topic, partitions.keys().copied().collect()));
    Ok(SyncGroupResponse {
        protocol_type: request.protocol_type.clone(),
        protocol_name: request.protocol_name.clone(),
        assignment: assignment_bytes(assigned, &classic.protocols, &world.image),
        ..Default::default()
    })
}

/// A Heartbeat.
///
/// # Errors
/// The refusal. After REBALANCE_IN_PROGRESS the session goes on.
pub(crate) fn touch(
    group: &mut ConsumerGroup,
    request: &HeartbeatRequest,
    out: &mut Outbox,
) -> Result<(), ErrorCode> {
    let (member, _) =
        speaker(group, &request.member_id, request.group_instance_id.as_deref(), request.generation_id)?;
    group.watch(&member.id, out);
    let can_go_on = member.state == MemberState::Unreleased && !group.waits_for_others(&member);
    // The epoch of the group and not that of its target: it is only joins and heartbeats that have a target made, and
    // there may be no member of the new protocol to send those.
    if member.epoch < group.epoch || member.state == MemberState::Unrevoked || can_go_on {
        expect_join(group, &member, out);
        return Err(ErrorCode::RebalanceInProgress);
    }
    Ok(())
}

/// The member has its rebalance timeout to join again, from the first REBALANCE_IN_PROGRESS on.
fn expect_join(group: &ConsumerGroup, member: &ConsumerMember, out: &mut Outbox) {
    let key = TimerKey::MemberJoin { group: group.id.clone(), member: member.id.clone() };
    if !out.timers.is_set(&key) {
        out.set_timer(key, DurationMs(i64::from(member.rebalance_timeout_ms)));
    }
}

/// Whom a LeaveGroup means: a member of either protocol, as an operator who empties a group knows neither.
///
/// # Errors
/// UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
pub(crate) fn leaves(group: &ConsumerGroup, who: &MemberIdentity) -> Result<Text, ErrorCode> {
    let member = match who.group_instance_id.as_deref() {
        None => group.member(&who.member_id),
        Some(instance) => group.static_member(instance),
    };
    let member = member.ok_or(ErrorCode::UnknownMemberId)?;
    if !who.member_id.is_empty() {
        check_instance(&member.id, &who.member_id, who.group_instance_id.as_deref().unwrap_or_default())
            .map_err(|refused| refused.code)?;
    }
    Ok(member.id.clone())
}
