//! ShareGroupHeartbeat: members that join, stay and leave, and those that are not heard of any more.
//!
//! Everything that can be refused is refused before anything has changed.
//!
//! # Source
//! KIP-932; Kafka 4.4 `GroupMetadataManager.shareGroupHeartbeat`, `shareGroupLeave`, `shareGroupFenceMember`;
//! `GroupCoordinatorService.throwIfShareGroupHeartbeatRequestIsInvalid`.

use std::sync::Arc;

use barnabas_base::{ErrorCode, Map, Text, TopicId};
use barnabas_wire::Str;
use barnabas_wire::messages::share_group_heartbeat_response::{Assignment, TopicPartitions};
use barnabas_wire::messages::{ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse};

use super::group::ShareGroup;
use super::member::ShareMember;
use super::order::Heartbeat;
use crate::assignment::share::{self, Candidate};
use crate::assignment::{NewTarget, Partitions};
use crate::framework::{Caller, Ticket};
use crate::groups::reconciled::{
    Due, Found, METADATA_REFRESH, Refused, World, check_ids, check_size, keep, set_names, unknown,
};
use crate::outbox::Outbox;
use crate::records::Entry;

/// How far a heartbeat has got.
pub(crate) struct Stayed {
    pub heartbeat: Heartbeat,
    /// Topics of the group are not set up: the share coordinator is to be asked before the answer.
    pub lacks: bool,
}

/// The refusal in this API's words.
pub(crate) fn refusal(refused: Refused) -> ShareGroupHeartbeatResponse {
    ShareGroupHeartbeatResponse {
        error_code: refused.code.code(),
        error_message: (!refused.why.is_empty()).then(|| refused.why.into()),
        ..Default::default()
    }
}

/// Whether a heartbeat is sound in itself. The order decides which error wins.
pub(crate) fn check(request: &ShareGroupHeartbeatRequest) -> Result<(), Refused> {
    let invalid = |why: &str| Err(Refused::new(ErrorCode::InvalidRequest, why));
    check_ids(&[
        ("MemberId", Some(&*request.member_id)),
        ("GroupId", Some(&*request.group_id)),
        ("RackId", request.rack_id.as_deref()),
    ])?;
    match request.member_epoch {
        0 if request.subscribed_topic_names.as_ref().is_none_or(Vec::is_empty) => {
            invalid("SubscribedTopicNames must be set in first request.")
        }
        ..=-2 => invalid("MemberEpoch is invalid."),
        _ => Ok(()),
    }
}

/// Takes in what a member says that joins or stays. What is to be written is noted in the group.
///
/// # Errors
/// GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH. Nothing has changed then.
pub(crate) fn stay(
    group: &mut ShareGroup,
    caller: &Caller<'_>,
    request: &ShareGroupHeartbeatRequest,
    ticket: Ticket,
    world: &mut World,
    out: &mut Outbox,
) -> Result<Stayed, Refused> {
    let id = request.member_id.text();
    group.check_room(&id, None, out)?;
    let names = request.subscribed_topic_names.iter().flatten().map(|name| name.len() + 4);
    let texts = names.chain(request.rack_id.as_ref().map(|rack| rack.len())).sum();
    check_size((&request.group_id, &request.member_id), caller, texts, out)?;
    let epoch = request.member_epoch;
    let found = group.find(&id, None, epoch, |_| false, |member| check_epoch(member, epoch))?;
    let before = found.before(&id);
    let mut updated = update(&before, caller, request);
    let names_changed = before.own.names != updated.own.names;
    if matches!(found, Found::New) || before != updated {
        updated.own.names = group.own.names.shared(updated.own.names);
        group.put(updated);
        group.note(Entry::Member(id.clone()));
    }
    if refresh(group, names_changed, world, out) {
        drop_unread(group, &id, world);
    }
    group.watch(&id, out);
    let lacks = group.own.set_up.lacks(group.names().keys(), &world.image);
    let shows_all = request.member_epoch == 0 || request.subscribed_topic_names.is_some();
    Ok(Stayed { heartbeat: Heartbeat { ticket, member: id, shows_all, before: Arc::new(before) }, lacks })
}

/// As the answer with the new epoch may have been lost, a member may come with its last one.
fn check_epoch(member: &ShareMember, epoch: i32) -> Result<(), Refused> {
    member.check_epoch(epoch, || true).map_err(|refused| {
        if epoch > member.epoch {
            return refused;
        }
        let why = format!(
            "The share group member has a smaller member epoch ({epoch}) than the one known by the group coordinator ({}), and it \
             does not match the previous member epoch ({}). The member must abandon all its partitions and rejoin.",
            member.epoch, member.previous_epoch
        );
        Refused::new(ErrorCode::FencedMemberEpoch, why)
    })
}

fn update(before: &ShareMember, caller: &Caller<'_>, request: &ShareGroupHeartbeatRequest) -> ShareMember {
    let mut member = before.clone();
    keep(request.rack_id.as_ref(), &mut member.rack);
    if let Some(names) = &request.subscribed_topic_names {
        set_names(&mut member.own.names, names.iter().map(Str::text));
    }
    member.set_client(caller);
    member
}

/// Raises the group's epoch if what members read has changed. Gives whether it has.
fn refresh(group: &mut ShareGroup, must_raise: bool, world: &mut World, out: &Outbox) -> bool {
    if !must_raise && group.refresh_at > out.now.mono {
        return false;
    }
    let hash = world.hash_of(group.names().keys());
    let raises = must_raise || hash != group.metadata_hash;
    if raises {
        group.raise(hash, out.now.mono);
    }
    group.refresh_at = out.now.mono.plus(METADATA_REFRESH);
    raises
}

/// A member reads at once no more what it no longer subscribes to, or what is gone, whenever the next target is made.
///
/// # Source
/// Kafka 4.3 `GroupMetadataManager.shareGroupHeartbeat`: every raise of the epoch has the member's assignment follow
/// its subscription.
fn drop_unread(group: &mut ShareGroup, id: &Text, world: &World) {
    let Some(member) = group.member(id) else { return };
    let is_at_target = member.epoch == group.assignment_epoch;
    let target = group.targets.get(id).filter(|_| is_at_target);
    let kept = filtered(target.unwrap_or(&member.assigned), member, world);
    if kept == *member.assigned {
        return;
    }
    let member = ShareMember { assigned: Arc::new(kept), ..(**member).clone() };
    group.take_step(member);
}

fn filtered(target: &Partitions, member: &ShareMember, world: &World) -> Partitions {
    let reads = |topic: &TopicId| {
        world.image.topics.by_id(*topic).is_some_and(|topic| member.subscribes(&topic.name))
    };
    target.iter().filter(|(topic, _)| reads(topic)).map(|(topic, each)| (*topic, each.clone())).collect()
}

/// Ends a heartbeat: a target is made if it is due, and the member has what is its.
pub(crate) fn finish(
    group: &mut ShareGroup,
    heartbeat: &Heartbeat,
    world: &mut World,
    out: &mut Outbox,
) -> Result<ShareGroupHeartbeatResponse, Refused> {
    if group.member(&heartbeat.member).is_none() {
        // It has left while its topics were set up.
        return Err(unknown(&group.id, &heartbeat.member));
    }
    if group.assignment_epoch >= group.epoch && misses_initialized(group, world) {
        let hash = group.metadata_hash;
        group.raise(hash, out.now.mono);
    }
    assign_if_due(group, world, out);
    advance(group, &heartbeat.member, world);
    let member = group.member(&heartbeat.member).expect("invariant: it was there above");
    let shows = heartbeat.shows_all || heartbeat.before.assigned != member.assigned;
    Ok(ShareGroupHeartbeatResponse {
        member_id: Some(Str::from(&member.id)),
        member_epoch: member.epoch,
        heartbeat_interval_ms: group.heartbeat_interval_ms(member.is_reconciled_to(group.epoch), out),
        assignment: shows.then(|| assignment_of(member)),
        ..Default::default()
    })
}

/// Whether there are share-partitions, initialized since, that are in no member's target.
///
/// # Source
/// Kafka 4.4 `GroupMetadataManager.initializedAssignmentPending`.
fn misses_initialized(group: &ShareGroup, world: &World) -> bool {
    let mut missing: Map<TopicId, Vec<i32>> = group.own.set_up.assignable(&world.image);
    missing.retain(|id, _| {
        let topic = world.image.topics.by_id(*id);
        topic.is_some_and(|topic| group.names().contains_key(&topic.name))
    });
    for target in group.targets.values() {
        for (topic, has) in target.iter() {
            if let Some(left) = missing.get_mut(topic) {
                left.retain(|partition| has.binary_search(partition).is_err());
            }
        }
    }
    missing.values().any(|left| !left.is_empty())
}

/// Makes a new target if it is time for it.
fn assign_if_due(group: &mut ShareGroup, world: &World, out: &Outbox) {
    if group.target_due(out) != Due::Now {
        return;
    }
    let assignable = group.own.set_up.assignable(&world.image);
    let none = Arc::new(Partitions::new());
    let mut seen: Map<*const Vec<Text>, Arc<Vec<TopicId>>> = Map::default();
    let mut candidates = Vec::with_capacity(group.members().len());
    for (id, member) in group.members() {
        let topics = seen.entry(Arc::as_ptr(&member.own.names)).or_insert_with(|| {
            let there = member.own.names.iter().filter_map(|name| world.image.topics.id_of(name));
            let mut topics: Vec<TopicId> = there.collect();
            topics.sort_unstable();
            Arc::new(topics)
        });
        let has = Arc::clone(group.targets.get(id).unwrap_or(&none));
        candidates.push(Candidate { topics: Arc::clone(topics), has });
    }
    let targets = share::assign(&candidates, &assignable);
    let new = group.members().keys().zip(targets);
    let new = new.filter(|(id, target)| group.targets.get(*id).is_none_or(|old| old != target));
    let new = new.map(|(id, target)| NewTarget { member: id.clone(), instance: None, target }).collect();
    group.assigned(group.epoch, new, out);
}

/// The member has its target, and is in the target's epoch.
///
/// # Source
/// Kafka 4.4 `ShareGroupAssignmentBuilder`.
fn advance(group: &mut ShareGroup, id: &Text, world: &World) {
    let Some(member) = group.member(id) else { return };
    if member.epoch == group.assignment_epoch {
        return;
    }
    let target = group.targets.get(id).map(|target| filtered(target, member, world)).unwrap_or_default();
    let assigned = if *member.assigned == target { Arc::clone(&member.assigned) } else { Arc::new(target) };
    let mut next = ShareMember { assigned, ..(**member).clone() };
    next.advance(group.assignment_epoch);
    group.take_step(next);
}

fn assignment_of(member: &ShareMember) -> Assignment {
    let topics = member.assigned.iter().map(|(topic, partitions)| TopicPartitions {
        topic_id: *topic,
        partitions: partitions.clone(),
        ..Default::default()
    });
    Assignment { topic_partitions: topics.collect(), ..Default::default() }
}

/// A member leaves.
///
/// # Errors
/// UNKNOWN_MEMBER_ID.
pub(crate) fn leave(
    group: &mut ShareGroup,
    id: &Text,
    world: &mut World,
    out: &mut Outbox,
) -> Result<ShareGroupHeartbeatResponse, Refused> {
    if group.member(id).is_none() {
        return Err(unknown(&group.id, id));
    }
    fence(group, std::slice::from_ref(id), world, out);
    Ok(ShareGroupHeartbeatResponse { member_id: Some(Str::from(id)), member_epoch: -1, ..Default::default() })
}

/// Takes members out; the group's epoch is raised.
pub(crate) fn fence(group: &mut ShareGroup, ids: &[Text], world: &mut World, out: &mut Outbox) {
    if group.take_out(ids, out).is_empty() {
        return;
    }
    let hash = world.hash_of(group.names().keys());
    group.raise(hash, out.now.mono);
    // The next member to come gets its own at once.
    group.assigned_to_none(0);
}

/// A group that was read from the log. What was being set up is set up again by the next heartbeat.
///
/// # Source
/// Kafka 4.4 `GroupMetadataManager.onLoaded`.
pub(crate) fn loaded(group: &mut ShareGroup, out: &mut Outbox) {
    group.drop_strays(out.now.mono);
    group.watch_all(out);
    group.flush(out);
}
