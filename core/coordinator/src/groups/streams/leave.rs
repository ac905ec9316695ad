//! Members that go: by themselves, for a moment, or because nothing was heard of them.
//!
//! # Source
//! Kafka 4.4 `GroupMetadataManager.streamsGroupLeave`, `streamsGroupFenceMember`, `onLoaded`.

use std::sync::Arc;

use barnabas_base::Text;
use barnabas_wire::Str;
use barnabas_wire::messages::{StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse};

use super::group::StreamsGroup;
use super::member::StreamsMember;
use crate::groups::reconciled::{AWAY, Refused};
use crate::outbox::{Outbox, TimerKey};
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
        group.own.shutdown_by.get_or_insert_with(|| request.member_id.text());
    }
    let member = group.find_leaving(&request.member_id, request.instance_id.as_deref())?;
    if request.member_epoch == AWAY {
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

fn go_for_a_moment(group: &mut StreamsGroup, member: &StreamsMember) {
    let mut held = (*member.assigned).clone();
    held.active.values_mut().flat_map(|partitions| partitions.values_mut()).for_each(|epoch| *epoch = 0);
    group.leave_for_a_moment(StreamsMember { assigned: Arc::new(held), ..member.clone() });
}

/// Takes members out; the group's epoch is raised.
pub(crate) fn fence(group: &mut StreamsGroup, ids: &[Text], out: &mut Outbox) {
    if group.take_out(ids, out).is_empty() {
        return;
    }
    group.raise(group.metadata_hash, out.now.mono);
    // The next member to come is the first again.
    group.assigned_to_none(0);
    if group.is_empty() {
        group.own.shutdown_by = None;
        out.timers.cancel(&TimerKey::FirstTarget(group.id.clone()));
    }
}

/// A group that was read from the log: every member has a whole session to be heard of. Members report offsets and
/// endpoints again. The log does not say which member missed an answer, so that every member may have.
pub(crate) fn loaded(group: &mut StreamsGroup, out: &mut Outbox) {
    group.settle_claims();
    group.drop_strays(out.now.mono);
    group.own.doubted = group.members().keys().cloned().collect();
    group.watch_all(out);
    group.members().values().for_each(|member| group.watch_revocation(member, out));
    group.flush(out);
}
