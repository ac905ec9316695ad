//! Heartbeat, and what happens without one.

use barnabas_base::{ErrorCode, Text};
use barnabas_wire::messages::HeartbeatRequest;

use super::group::{ClassicGroup, State};
use super::rebalance::{complete_if_all_joined, drop_member, expect_member, prepare_rebalance};
use crate::outbox::Outbox;

/// # Errors
/// The refusal. REBALANCE_IN_PROGRESS is the one that tells a member to join again; its session goes on.
///
/// # Source
/// Kafka 4.4 `GroupMetadataManager.classicGroupHeartbeatToClassicGroup`.
pub(crate) fn heartbeat(
    group: &mut ClassicGroup,
    request: &HeartbeatRequest,
    out: &mut Outbox,
) -> Result<(), ErrorCode> {
    group.check_member(&request.member_id, request.group_instance_id.as_deref())?;
    if request.generation_id != group.generation {
        return Err(ErrorCode::IllegalGeneration);
    }
    heard_of(group, &request.member_id, out);
    match group.state {
        State::PreparingRebalance => Err(ErrorCode::RebalanceInProgress),
        State::Empty => Err(ErrorCode::UnknownMemberId),
        State::CompletingRebalance | State::Stable => Ok(()),
    }
}

/// A member is alive.
pub(crate) fn heard_of(group: &ClassicGroup, member_id: &str, out: &mut Outbox) {
    if let Some((id, member)) = group.members.get_key_value(member_id) {
        expect_member(&group.id, id, member.session_timeout_ms, out);
    }
}

/// Nothing was heard of a member for as long as its session may last.
pub(crate) fn session_over(group: &mut ClassicGroup, member_id: &Text, out: &mut Outbox) {
    if group.pending_members.contains(member_id) {
        drop_member(group, member_id, out);
        end_join_phase(group, out);
        return;
    }
    let Some(member) = group.members.get(member_id) else { return };
    if member.is_excused() {
        return;
    }
    drop_member(group, member_id, out);
    match group.state {
        State::CompletingRebalance | State::Stable => prepare_rebalance(group, out),
        State::PreparingRebalance => end_join_phase(group, out),
        State::Empty => {}
    }
}

/// Unlike after LeaveGroup, an empty group's first rebalance ends here, if all members have joined.
///
/// # Source
/// Kafka `GroupMetadataManager.removeMemberAndUpdateClassicGroup`, `removePendingMemberAndUpdateClassicGroup`.
fn end_join_phase(group: &mut ClassicGroup, out: &mut Outbox) {
    if group.state == State::PreparingRebalance && group.have_all_joined() {
        group.initial_delay = None;
    }
    complete_if_all_joined(group, out);
}
