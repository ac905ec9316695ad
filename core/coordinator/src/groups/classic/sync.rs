//! SyncGroup: the leader brings the assignment, everybody fetches their part of it.
//!
//! # Source
//! Kafka 4.4 `GroupMetadataManager.classicGroupSync`.

use std::collections::BTreeMap;

use barnabas_base::{ErrorCode, Text};
use barnabas_wire::Str;
use barnabas_wire::messages::{SyncGroupRequest, SyncGroupResponse};
use bytes::Bytes;

use super::group::{ClassicGroup, State};
use super::rebalance::{answer_sync_refused, expect_member, prepare_rebalance, refuse_all_syncs};
use crate::Response;
use crate::framework::Ticket;
use crate::outbox::{GroupThen, Outbox, Then, TimerKey, append_refusal};

/// Works on a SyncGroup. `None`: the request waits in the group.
///
/// # Errors
/// The refusal.
pub(crate) fn sync(
    group: &mut ClassicGroup,
    request: &SyncGroupRequest,
    ticket: Ticket,
    out: &mut Outbox,
) -> Result<Option<SyncGroupResponse>, ErrorCode> {
    check(group, request)?;
    let id = request.member_id.text();
    match group.state {
        State::Empty => Err(ErrorCode::UnknownMemberId),
        State::PreparingRebalance => Err(ErrorCode::RebalanceInProgress),
        State::CompletingRebalance => {
            has_synced(group, &id, out);
            if let Some(given_up) = group.members.get_mut(&id).and_then(|member| member.sync.replace(ticket))
            {
                answer_sync_refused(given_up, ErrorCode::RebalanceInProgress, out);
            }
            if group.is_leader(&id) && group.storing.is_none() {
                store(group, request, out);
            }
            Ok(None)
        }
        State::Stable => {
            has_synced(group, &id, out);
            Ok(Some(assignment_of(group, &id)))
        }
    }
}

fn check(group: &ClassicGroup, request: &SyncGroupRequest) -> Result<(), ErrorCode> {
    group.check_member(&request.member_id, request.group_instance_id.as_deref())?;
    if request.generation_id != group.generation {
        return Err(ErrorCode::IllegalGeneration);
    }
    let differs = |said: &Option<Str>, known: &Option<Text>| match (said, known) {
        (Some(said), Some(known)) => said.as_str() != known.as_str(),
        _ => false,
    };
    if differs(&request.protocol_type, &group.protocol_type)
        || differs(&request.protocol_name, &group.protocol)
    {
        return Err(ErrorCode::InconsistentGroupProtocol);
    }
    Ok(())
}

fn has_synced(group: &mut ClassicGroup, id: &Text, out: &mut Outbox) {
    group.pending_sync.remove(id);
    if group.pending_sync.is_empty() {
        out.timers.cancel(&TimerKey::Sync(group.id.clone()));
    }
}

fn assignment_of(group: &ClassicGroup, id: &Text) -> SyncGroupResponse {
    SyncGroupResponse {
        protocol_type: group.protocol_type.as_ref().map(Str::from),
        protocol_name: group.protocol.as_ref().map(Str::from),
        assignment: group.members.get(id).map(|member| member.assignment.clone()).unwrap_or_default(),
        ..Default::default()
    }
}

/// Writes the assignment. Members that it does not name get none, names of strangers are dropped.
fn store(group: &mut ClassicGroup, request: &SyncGroupRequest, out: &mut Outbox) {
    let mut assignments = BTreeMap::new();
    for given in &request.assignments {
        if group.members.contains_key(given.member_id.as_str()) {
            assignments.insert(given.member_id.text(), Bytes::copy_from_slice(&given.assignment));
        }
    }
    let records = vec![group.record(&assignments)];
    if out.is_too_large(&records) {
        refuse_all_syncs(group, append_refusal(ErrorCode::RecordListTooLarge), out);
        prepare_rebalance(group, out);
        return;
    }
    let assigned = GroupThen::Assigned { group: group.id.clone(), generation: group.generation, assignments };
    let batch = out.append(records, Then { groups: vec![assigned], ..Default::default() });
    group.storing = Some(batch);
}

/// The assignment is on disk: everybody gets theirs. Unless another rebalance has begun meanwhile.
pub(crate) fn assigned(
    group: &mut ClassicGroup,
    generation: i32,
    mut assignments: BTreeMap<Text, Bytes>,
    out: &mut Outbox,
) {
    if group.state != State::CompletingRebalance || group.generation != generation {
        return;
    }
    group.storing = None;
    group.enter(State::Stable, out.now.wall);
    out.counts.classic_rebalances += 1;
    for (id, member) in &mut group.members {
        member.assignment = assignments.remove(id).unwrap_or_default();
    }
    let ids: Vec<Text> = group.members.keys().cloned().collect();
    for id in ids {
        let response = assignment_of(group, &id);
        let Some(member) = group.members.get_mut(&id) else { continue };
        if let Some(ticket) = member.sync.take() {
            // Its session may have run out while it waited for us.
            expect_member(&group.id, &id, member.session_timeout_ms, out);
            out.answer(ticket, Response::SyncGroup(response));
        }
    }
}

/// The assignment was lost: everybody joins again.
pub(crate) fn assignment_lost(group: &mut ClassicGroup, generation: i32, error: ErrorCode, out: &mut Outbox) {
    if group.state == State::CompletingRebalance && group.generation == generation {
        refuse_all_syncs(group, append_refusal(error), out);
        prepare_rebalance(group, out);
    }
}
