//! Members that go: by themselves, for a moment, or because nothing was heard of them.
//!
//! # Source
//! Kafka 4.4 `GroupMetadataManager.streamsGroupLeave`, `streamsGroupFenceMember`, `onLoaded`.

use std::sync::Arc;

use barnabas_base::{DurationMs, Text};
use barnabas_wire::Str;
use barnabas_wire::messages::{StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse};

use super::group::StreamsGroup;
use super::member::{MemberState, StreamsMember};
use crate::assignment::streams::Held;
use crate::groups::reconciled::{Refused, check_instance, unknown, unknown_instance};
use crate::outbox::{Outbox, TimerKey};
use crate::records::Entry;
use crate::request::empty_streams_heartbeat;

/// Takes out the member that says so; a static one may be away for a moment only.
///
/// # Errors
/// UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID. Nothing has changed then, but that an application may be to shut down.
pub(crate) fn leave(
    group: &mut StreamsGroup,
    request: &StreamsGroupHeartbeatRequest,
    out: &mut Outbox,
) -> Result<StreamsGroupHeartbeatResponse, Refused> {
    if request.shutdown_application && !group.is_empty() {
        group.shutdown_by.get_or_insert_with(|| request.member_id.text());
    }
    let member = match request.instance_id.as_deref() {
        None => {
            group.member(&request.member_id).cloned().ok_or_else(|| unknown(&group.id, &request.member_id))?
        }
        Some(instance) => {
            let known = group.static_member(instance).cloned().ok_or_else(|| unknown_instance(instance))?;
            check_instance(&known.id, &request.member_id, instance)?;
            known
        }
    };
    if request.member_epoch == -2 {
        go_for_a_moment(group, &member);
    } else {
        fence(group, std::slice::from_ref(&member.id), out);
    }
    Ok(StreamsGroupHeartbeatResponse {
        member_id: Str::from(&member.id),
        member_epoch: request.member_epoch,
        ..empty_streams_heartbeat()
    })
}

/// A static member is away: its epoch says so, and whoever comes with its instance id takes its place. Its session goes on.
fn go_for_a_moment(group: &mut StreamsGroup, member: &StreamsMember) {
    let mut held = (*member.assigned).clone();
    held.active.values_mut().flat_map(|partitions| partitions.values_mut()).for_each(|epoch| *epoch = 0);
    let away = StreamsMember {
        epoch: -2,
        assigned: Arc::new(held),
        revoking: Arc::new(Held::default()),
        ..member.clone()
    };
    group.put(away);
    group.note(Entry::Current(member.id.clone()));
}

/// Takes members out; the group's epoch is raised.
pub(crate) fn fence(group: &mut StreamsGroup, ids: &[Text], out: &mut Outbox) {
    let mut has_gone = false;
    for id in ids {
        if group.remove(id).is_none() {
            continue;
        }
        has_gone = true;
        group.targets.remove(id);
        for entry in [Entry::Current(id.clone()), Entry::Target(id.clone()), Entry::Member(id.clone())] {
            group.note(entry);
        }
        cancel_timers(&group.id, id, out);
    }
    if !has_gone {
        return;
    }
    group.raise(out.now.mono);
    if group.is_empty() {
        // There is nobody to assign to: the target is made. Whoever comes next is the first again.
        group.assignment_epoch = group.epoch;
        group.assignment_timestamp = 0;
        group.note(Entry::TargetEpoch);
        out.timers.cancel(&TimerKey::FirstTarget(group.id.clone()));
    }
}

/// Sets the clock by which the member must be heard of again.
pub(super) fn watch(group: &StreamsGroup, id: &Text, out: &mut Outbox) {
    let within = out.config.streams_of(&group.id).session_timeout;
    out.set_timer(TimerKey::Session { group: group.id.clone(), member: id.clone() }, within);
}

pub(super) fn cancel_timers(group: &Text, member: &Text, out: &mut Outbox) {
    let (group, member) = (group.clone(), member.clone());
    out.timers.cancel(&TimerKey::Session { group: group.clone(), member: member.clone() });
    out.timers.cancel(&TimerKey::Rebalance { group, member });
}

/// Whether a member of whom `key` speaks is still asked for what it is late with.
pub(crate) fn is_late(group: &StreamsGroup, id: &str, key: &TimerKey) -> bool {
    let Some(member) = group.member(id) else { return false };
    match key {
        TimerKey::Session { .. } => true,
        TimerKey::Rebalance { .. } => member.state == MemberState::Unrevoked && member.epoch != -2,
        _ => false,
    }
}

/// The group is going, or becomes another kind of group.
pub(crate) fn forget_timers(group: &StreamsGroup, out: &mut Outbox) {
    group.members().keys().for_each(|member| cancel_timers(&group.id, member, out));
    out.timers.cancel(&TimerKey::Save(group.id.clone()));
    out.timers.cancel(&TimerKey::FirstTarget(group.id.clone()));
}

/// A group that was read from the log: every member has a whole session to be heard of. Members report offsets and endpoints again.
/// The log does not say which member missed an answer, so that every member may have.
pub(crate) fn loaded(group: &mut StreamsGroup, out: &mut Outbox) {
    group.settle_claims();
    group.drop_strays(out.now.mono);
    group.doubted = group.members().keys().cloned().collect();
    for (id, member) in group.members() {
        watch(group, id, out);
        if member.state == MemberState::Unrevoked {
            let key = TimerKey::Rebalance { group: group.id.clone(), member: id.clone() };
            out.set_timer(key, DurationMs(i64::from(member.rebalance_timeout_ms)));
        }
    }
    group.flush(out);
}
