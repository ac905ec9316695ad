//! JoinGroup: a new member, one that was given an id, one that comes again, a static one that takes its place back.
//!
//! # Source
//! Kafka 4.4 `GroupMetadataManager.classicGroupJoin…`; the order of the checks decides which error wins and is Kafka's.

use barnabas_base::{ErrorCode, Text};
use barnabas_wire::Str;
use barnabas_wire::messages::{JoinGroupRequest, JoinGroupResponse};
use bytes::Bytes;

use super::group::{ClassicGroup, State};
use super::member::Member;
use super::rebalance::{
    answer_join, answer_sync_refused, complete_if_all_joined, drop_member, expect_member, generation_of,
    prepare_or_complete, prepare_rebalance,
};
use crate::framework::{Caller, ID_BYTES_MAX, Ticket, shortened};
use crate::outbox::{GroupThen, Outbox, Replacement, Then, append_refusal};
use crate::request::Protocols;
use crate::{Request, Response};

/// From this version on, a new dynamic member is given an id first and joins with it (KIP-394).
const MEMBER_ID_REQUIRED_SINCE: i16 = 4;
/// From this version on, a leader can be told that the assignment stands (KIP-814).
const SKIP_ASSIGNMENT_SINCE: i16 = 9;

/// A JoinGroup, read.
struct Joining<'a> {
    caller: &'a Caller<'a>,
    ticket: Ticket,
    protocol_type: Str,
    protocols: Protocols,
    instance: Option<Text>,
    rebalance_timeout_ms: i32,
    session_timeout_ms: i32,
}

/// Whether this request may found a group.
///
/// # Errors
/// INCONSISTENT_GROUP_PROTOCOL. Kafka founds the group all the same and deletes it later.
pub(crate) fn check_new_group(request: &JoinGroupRequest) -> Result<(), ErrorCode> {
    if request.protocol_type.is_empty() || request.protocols.is_empty() {
        return Err(ErrorCode::InconsistentGroupProtocol);
    }
    Ok(())
}

/// Works on a JoinGroup to a group that is there. `Some`: the answer, at once; `None`: the request waits in the group.
pub(crate) fn join(
    group: &mut ClassicGroup,
    caller: &Caller<'_>,
    request: &JoinGroupRequest,
    ticket: Ticket,
    out: &mut Outbox,
) -> Option<JoinGroupResponse> {
    if !accepts(group, &request.member_id, out) {
        drop_member(group, &request.member_id, out);
        complete_if_all_joined(group, out);
        return refused("", ErrorCode::GroupMaxSizeReached);
    }
    let protocols = Protocols::from_request(&request.protocols);
    if !group.supports(&request.protocol_type, &protocols) {
        return refused(&request.member_id, ErrorCode::InconsistentGroupProtocol);
    }
    let joining = Joining {
        caller,
        ticket,
        protocol_type: request.protocol_type.clone(),
        protocols,
        instance: request.group_instance_id.as_ref().map(Str::text),
        // Version 0 has one time for both.
        rebalance_timeout_ms: if caller.version == 0 {
            request.session_timeout_ms
        } else {
            request.rebalance_timeout_ms
        },
        session_timeout_ms: request.session_timeout_ms,
    };
    if request.member_id.is_empty() {
        join_new(group, joining, out)
    } else {
        join_known(group, joining, &request.member_id, out)
    }
}

fn refused(member_id: &str, error: ErrorCode) -> Option<JoinGroupResponse> {
    let request = Request::JoinGroup(JoinGroupRequest { member_id: member_id.into(), ..Default::default() });
    match request.refuse(error) {
        Response::JoinGroup(response) => Some(response),
        _ => None,
    }
}

/// Whether there is room for this member.
///
/// While the group gathers, those who will be in the next generation are counted: if the limit was lowered, the last to
/// come again stay outside.
///
/// # Source
/// Kafka `GroupMetadataManager.acceptJoiningMember`, which forgets to count static members that are away and keep their
/// place.
fn accepts(group: &ClassicGroup, member_id: &str, out: &Outbox) -> bool {
    let max = out.config.group_size_max;
    let member = group.members.get(member_id);
    let has_room = match group.state {
        State::Empty => true,
        State::PreparingRebalance if group.members.len() < max => true,
        State::PreparingRebalance => {
            let stays = |known: &Member| known.join.is_some() || known.is_static();
            let others = group.members.iter().filter(|(id, known)| *id != member_id && stays(known));
            member.is_some_and(|known| known.join.is_some()) || others.count() < max
        }
        State::CompletingRebalance | State::Stable => member.is_some() || group.members.len() < max,
    };
    has_room && (!member_id.is_empty() || group.pending_members.len() < out.config.pending_members_max)
}

fn join_new(group: &mut ClassicGroup, joining: Joining<'_>, out: &mut Outbox) -> Option<JoinGroupResponse> {
    let id = new_member_id(joining.instance.as_deref().unwrap_or(joining.caller.client_id), joining.caller);
    if let Some(instance) = &joining.instance {
        return match group.static_members.get(instance).cloned() {
            Some(old) => take_place_back(group, joining, &old, id, out),
            None => add(group, joining, id, out),
        };
    }
    if joining.caller.version < MEMBER_ID_REQUIRED_SINCE {
        return add(group, joining, id, out);
    }
    expect_member(&group.id, &id, joining.session_timeout_ms, out);
    let response = refused(&id, ErrorCode::MemberIdRequired);
    group.pending_members.insert(id);
    response
}

/// `name-uuid`, as Kafka forms it. A name that would make the id longer than a string may be is cut.
pub(crate) fn new_member_id(name: &str, caller: &Caller<'_>) -> Text {
    let name = shortened(name, ID_BYTES_MAX - 37);
    let mut random = caller.random;
    random[6] = (random[6] & 0x0f) | 0x40;
    random[8] = (random[8] & 0x3f) | 0x80;
    let mut id = String::with_capacity(name.len() + 37);
    id.push_str(name);
    for (at, byte) in random.iter().enumerate() {
        if matches!(at, 0 | 4 | 6 | 8 | 10) {
            id.push('-');
        }
        id.push_str(&format!("{byte:02x}"));
    }
    Text::from(id)
}

fn join_known(
    group: &mut ClassicGroup,
    joining: Joining<'_>,
    member_id: &Str,
    out: &mut Outbox,
) -> Option<JoinGroupResponse> {
    let id = member_id.text();
    if group.pending_members.contains(&id) {
        // Static members get no id in advance, so this is not the client that we gave it to.
        if joining.instance.is_some() {
            return refused(&id, ErrorCode::UnknownMemberId);
        }
        return add(group, joining, id, out);
    }
    if let Err(error) = group.check_member(&id, joining.instance.as_deref()) {
        return refused(&id, error);
    }
    let says_nothing_new = group.members.get(&id).is_some_and(|member| member.protocols == joining.protocols);
    match group.state {
        State::PreparingRebalance => join_again(group, joining, &id, out),
        // It may not have got the answer to its first JoinGroup.
        State::CompletingRebalance if says_nothing_new => Some(generation_of(group, &id)),
        State::CompletingRebalance => join_again(group, joining, &id, out),
        // A leader that joins again wants a rebalance: partitions may have been added.
        State::Stable if says_nothing_new && !group.is_leader(&id) => Some(generation_of(group, &id)),
        State::Stable => join_again(group, joining, &id, out),
        State::Empty => refused(&id, ErrorCode::UnknownMemberId),
    }
}

/// A member that the group does not have yet.
fn add(
    group: &mut ClassicGroup,
    joining: Joining<'_>,
    id: Text,
    out: &mut Outbox,
) -> Option<JoinGroupResponse> {
    if let Some(delay) = &mut group.initial_delay {
        delay.member_added = true;
    }
    let member = Member {
        instance: joining.instance,
        client_id: Text::from(shortened(joining.caller.client_id, ID_BYTES_MAX)),
        client_host: Text::from(shortened(joining.caller.client_host, ID_BYTES_MAX)),
        rebalance_timeout_ms: joining.rebalance_timeout_ms,
        session_timeout_ms: joining.session_timeout_ms,
        protocols: joining.protocols,
        assignment: Bytes::new(),
        join: Some(joining.ticket),
        sync: None,
        is_new: true,
    };
    group.add(id.clone(), member, &joining.protocol_type);
    // It cannot send heartbeats yet, and a client that gave up waiting joins again under another id. So its first
    // join is limited in time, and abandoned ids do not pile up.
    let limit = i32::try_from(out.config.new_member_join_timeout.0).unwrap_or(i32::MAX);
    expect_member(&group.id, &id, limit, out);
    prepare_or_complete(group, out);
    None
}

/// A member that waits for the rebalance, with what it has to say now.
fn join_again(
    group: &mut ClassicGroup,
    joining: Joining<'_>,
    id: &Text,
    out: &mut Outbox,
) -> Option<JoinGroupResponse> {
    update(group, joining, id, out);
    prepare_or_complete(group, out);
    None
}

fn update(group: &mut ClassicGroup, joining: Joining<'_>, id: &Text, out: &mut Outbox) {
    group.update(id, joining.protocols, joining.rebalance_timeout_ms, joining.session_timeout_ms);
    let Some(member) = group.members.get_mut(id) else { return };
    match member.join.replace(joining.ticket) {
        // The same member asked before and has not been answered: it has given up on that.
        Some(given_up) => answer_join(given_up, id, ErrorCode::RebalanceInProgress, out),
        None => group.awaiting_join += 1,
    }
}

/// A static member without an id: a process has started again, or a second one has the same instance id. The new one
/// gets the place, the old one is fenced. Other members do not notice while the group is stable (KIP-345).
fn take_place_back(
    group: &mut ClassicGroup,
    joining: Joining<'_>,
    old: &Text,
    new: Text,
    out: &mut Outbox,
) -> Option<JoinGroupResponse> {
    let instance = joining.instance.clone().unwrap_or_default();
    let version = joining.caller.version;
    let old_leader = group.leader.clone();
    fence(group, old, out);
    group.rename_static(&instance, old, &new);
    let old_protocols;
    let (old_rebalance_timeout_ms, old_session_timeout_ms);
    {
        let member = group.members.get(&new).expect("invariant: it was just renamed");
        old_protocols = member.protocols.clone();
        (old_rebalance_timeout_ms, old_session_timeout_ms) =
            (member.rebalance_timeout_ms, member.session_timeout_ms);
    }
    expect_member(&group.id, &new, old_session_timeout_ms, out);
    update(group, joining, &new, out);
    match group.state {
        State::Stable if group.select_protocol() == group.protocol => {
            let replacement = Replacement {
                group: group.id.clone(),
                instance,
                old_member: old.clone(),
                new_member: new,
                old_protocols,
                old_rebalance_timeout_ms,
                old_session_timeout_ms,
                old_leader,
                version,
            };
            let then =
                Then { groups: vec![GroupThen::Replaced(Box::new(replacement))], ..Default::default() };
            let record = group.record_as_is();
            out.append(vec![record], then);
        }
        State::Stable => prepare_or_complete(group, out),
        // The leader may be about to assign to the old id, so the new one would come away with nothing.
        State::CompletingRebalance => prepare_rebalance(group, out),
        State::PreparingRebalance | State::Empty => complete_if_all_joined(group, out),
    }
    None
}

/// Tells the old holder of an instance id, should it wait for something, that it has lost it.
fn fence(group: &mut ClassicGroup, id: &Text, out: &mut Outbox) {
    let key = crate::outbox::TimerKey::Session { group: group.id.clone(), member: id.clone() };
    out.timers.cancel(&key);
    let Some(member) = group.members.get_mut(id) else { return };
    if let Some(ticket) = member.join.take() {
        group.awaiting_join -= 1;
        answer_join(ticket, id, ErrorCode::FencedInstanceId, out);
    }
    if let Some(ticket) = member.sync.take() {
        answer_sync_refused(ticket, ErrorCode::FencedInstanceId, out);
    }
}

/// The new id is on disk.
pub(crate) fn finish_replacement(group: &mut ClassicGroup, done: &Replacement, out: &mut Outbox) {
    // A rebalance that has begun meanwhile answers by itself.
    if group.state != State::Stable {
        return;
    }
    let mut response = generation_of(group, &done.new_member);
    if done.version >= SKIP_ASSIGNMENT_SINCE {
        response.skip_assignment = group.is_leader(&done.new_member);
    } else {
        // It must not take itself for the leader, or it would assign again: so the answer names the old leader.
        response.members = Vec::new();
        response.leader = done.old_leader.as_ref().map(Str::from).unwrap_or_default();
    }
    let Some(member) = group.members.get_mut(&done.new_member) else { return };
    if let Some(ticket) = member.join.take() {
        group.awaiting_join -= 1;
        member.is_new = false;
        expect_member(&group.id, &done.new_member, member.session_timeout_ms, out);
        out.answer(ticket, Response::JoinGroup(response));
    }
}

/// The new id never got to disk: the old one is back.
pub(crate) fn revert_replacement(
    group: &mut ClassicGroup,
    lost: Replacement,
    error: ErrorCode,
    out: &mut Outbox,
) {
    let Some(member) = group.members.get_mut(&lost.new_member) else { return };
    if group.state != State::Stable {
        return;
    }
    if let Some(ticket) = member.join.take() {
        group.awaiting_join -= 1;
        answer_join(ticket, "", append_refusal(error), out);
    }
    fence(group, &lost.new_member, out);
    group.rename_static(&lost.instance, &lost.new_member, &lost.old_member);
    group.update(
        &lost.old_member,
        lost.old_protocols,
        lost.old_rebalance_timeout_ms,
        lost.old_session_timeout_ms,
    );
    expect_member(&group.id, &lost.old_member, lost.old_session_timeout_ms, out);
}
