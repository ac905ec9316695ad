//! LeaveGroup: members that go, or are sent away by an administrator by their instance id.

use barnabas_base::{ErrorCode, Text};
use barnabas_wire::messages::leave_group_request::MemberIdentity;
use barnabas_wire::messages::leave_group_response::MemberResponse;
use barnabas_wire::messages::{LeaveGroupRequest, LeaveGroupResponse};

use super::group::{ClassicGroup, State};
use super::rebalance::{complete_if_all_joined, drop_member, prepare_rebalance};
use crate::outbox::Outbox;

/// Versions up to 2 name one member, and answer for it at the top.
const SEVERAL_MEMBERS_SINCE: i16 = 3;

/// Works on a LeaveGroup. `group`: `None` if there is no such group.
///
/// # Source
/// Kafka 4.4 `GroupMetadataManager.classicGroupLeaveToClassicGroup`, `LeaveGroupRequest.members`.
pub(crate) fn leave(
    group: Option<&mut ClassicGroup>,
    version: i16,
    request: &LeaveGroupRequest,
    out: &mut Outbox,
) -> LeaveGroupResponse {
    let alone = [MemberIdentity { member_id: request.member_id.clone(), ..Default::default() }];
    let leaving = if version < SEVERAL_MEMBERS_SINCE { &alone[..] } else { &request.members };
    let mut members = Vec::new();
    match group {
        None => members.extend(leaving.iter().map(|who| answer(who, Err(ErrorCode::UnknownMemberId)))),
        Some(group) => {
            members.extend(leaving.iter().map(|who| answer(who, leave_one(group, who, out))));
            if members.iter().any(|member| member.error_code == 0) {
                match group.state {
                    State::CompletingRebalance | State::Stable => prepare_rebalance(group, out),
                    State::PreparingRebalance => complete_if_all_joined(group, out),
                    State::Empty => {}
                }
            }
        }
    }
    if version < SEVERAL_MEMBERS_SINCE {
        let error_code = members.first().map_or(0, |member| member.error_code);
        return LeaveGroupResponse { error_code, ..Default::default() };
    }
    LeaveGroupResponse { members, ..Default::default() }
}

fn answer(who: &MemberIdentity, result: Result<(), ErrorCode>) -> MemberResponse {
    MemberResponse {
        member_id: who.member_id.clone(),
        group_instance_id: who.group_instance_id.clone(),
        error_code: result.err().unwrap_or(ErrorCode::None).code(),
        ..Default::default()
    }
}

fn leave_one(group: &mut ClassicGroup, who: &MemberIdentity, out: &mut Outbox) -> Result<(), ErrorCode> {
    let id: Text = if who.member_id.is_empty() {
        let instance = who.group_instance_id.as_deref().ok_or(ErrorCode::UnknownMemberId)?;
        group.static_members.get(instance).cloned().ok_or(ErrorCode::UnknownMemberId)?
    } else {
        let id = who.member_id.text();
        if !group.pending_members.contains(&id) {
            group.check_member(&id, who.group_instance_id.as_deref())?;
        }
        id
    };
    drop_member(group, &id, out);
    Ok(())
}
