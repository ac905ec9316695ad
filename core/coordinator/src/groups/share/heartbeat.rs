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
use crate::assignment::Partitions;
use crate::assignment::share::{self, Candidate};
use crate::framework::ID_BYTES_MAX;
use crate::framework::{Caller, Ticket};
use crate::groups::reconciled::{METADATA_REFRESH, Standing, World, pace};
use crate::outbox::{Outbox, TimerKey, append_refusal};
use crate::records::Entry;

/// A refusal with words for people.
pub(crate) type Refused = (ErrorCode, String);

/// What numbers, lengths and framing take in a member's record, and more.
const NUMBERS_BYTES: usize = 100;

/// How far a heartbeat has got.
pub(crate) struct Stayed {
    pub heartbeat: Heartbeat,
    /// Topics of the group are not set up: the share coordinator is to be asked before the answer.
    pub lacks: bool,
}

/// Whether a heartbeat is sound in itself. The order decides which error wins.
pub(crate) fn check(request: &ShareGroupHeartbeatRequest) -> Result<(), Refused> {
    let invalid = |why: &str| Err((ErrorCode::InvalidRequest, why.to_owned()));
    let is_blank = |text: &str| text.trim().is_empty();
    if is_blank(&request.member_id) {
        return invalid("MemberId can't be empty.");
    }
    if is_blank(&request.group_id) {
        return invalid("GroupId can't be empty.");
    }
    if request.rack_id.as_deref().is_some_and(is_blank) {
        return invalid("RackId can't be empty.");
    }
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
    let known = group.member(&id).cloned();
    check_room(group, known.is_some(), out)?;
    check_size(caller, request, out)?;
    check_epoch(&group.id, known.as_deref(), request)?;
    let before = known.clone().unwrap_or_else(|| Arc::new(ShareMember::new(id.clone())));
    let mut updated = update(&before, caller, request);
    let names_changed = before.names != updated.names;
    if known.is_none() || *before != updated {
        updated.names = group.shared(updated.names);
        group.put(updated);
        group.note(Entry::Member(id.clone()));
    }
    if refresh(group, names_changed, world, out) {
        drop_unread(group, &id, world);
    }
    watch(group, &id, out);
    let lacks = group.set_up.lacks(group.names().keys(), &world.image);
    let shows_all = request.member_epoch == 0 || request.subscribed_topic_names.is_some();
    Ok(Stayed { heartbeat: Heartbeat { ticket, member: id, shows_all, before }, lacks })
}

fn check_room(group: &ShareGroup, is_member: bool, out: &Outbox) -> Result<(), Refused> {
    let max = out.config.share.size_max;
    if group.members().len() >= max && !is_member {
        let why = format!("The share group has reached its maximum capacity of {max} members.");
        return Err((ErrorCode::GroupMaxSizeReached, why));
    }
    Ok(())
}

/// What a member says of itself goes into one record.
fn check_size(
    caller: &Caller<'_>,
    request: &ShareGroupHeartbeatRequest,
    out: &Outbox,
) -> Result<(), Refused> {
    let names = request.subscribed_topic_names.iter().flatten().map(|name| name.len() + 4);
    let bytes: usize = names.chain(request.rack_id.as_ref().map(|rack| rack.len())).sum();
    let who =
        request.group_id.len() + request.member_id.len() + caller.client_id.len() + caller.client_host.len();
    if bytes + who + NUMBERS_BYTES <= out.config.batch_bytes_max {
        return Ok(());
    }
    let why = "What the member says of itself is more than a record can hold.";
    Err((append_refusal(ErrorCode::RecordListTooLarge), why.to_owned()))
}

/// A member may come with its epoch, with 0 to start again, or with its last epoch, as the answer that told it the new one may
/// have been lost.
fn check_epoch(
    group: &str,
    known: Option<&ShareMember>,
    request: &ShareGroupHeartbeatRequest,
) -> Result<(), Refused> {
    let epoch = request.member_epoch;
    let Some(member) = known else {
        if epoch == 0 {
            return Ok(());
        }
        return Err(unknown(group, &request.member_id));
    };
    if epoch == 0 || epoch == member.epoch || (epoch < member.epoch && epoch == member.previous_epoch) {
        return Ok(());
    }
    let known = member.epoch;
    let why = if epoch > known {
        format!(
            "The share group member has a greater member epoch ({epoch}) than the one known by the group coordinator ({known}). The \
             member must abandon all its partitions and rejoin."
        )
    } else {
        format!(
            "The share group member has a smaller member epoch ({epoch}) than the one known by the group coordinator ({known}), and \
             it does not match the previous member epoch ({}). The member must abandon all its partitions and rejoin.",
            member.previous_epoch
        )
    };
    Err((ErrorCode::FencedMemberEpoch, why))
}

fn unknown(group: &str, id: &str) -> Refused {
    (ErrorCode::UnknownMemberId, format!("Member {id} is not a member of group {group}."))
}

fn update(before: &ShareMember, caller: &Caller<'_>, request: &ShareGroupHeartbeatRequest) -> ShareMember {
    let mut member = before.clone();
    if let Some(rack) = &request.rack_id
        && member.rack.as_ref().is_none_or(|old| *old != rack.as_str())
    {
        member.rack = Some(rack.text());
    }
    if let Some(names) = &request.subscribed_topic_names {
        let mut names: Vec<Text> = names.iter().map(Str::text).collect();
        names.sort();
        names.dedup();
        if *member.names != names {
            member.names = Arc::new(names);
        }
    }
    if member.client_id != caller.client_id {
        member.client_id = Text::from(crate::framework::shortened(caller.client_id, ID_BYTES_MAX));
    }
    if member.client_host != caller.client_host {
        member.client_host = Text::from(crate::framework::shortened(caller.client_host, ID_BYTES_MAX));
    }
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
/// Kafka 4.3 `GroupMetadataManager.shareGroupHeartbeat`: every raise of the epoch has the member's assignment follow its subscription.
fn drop_unread(group: &mut ShareGroup, id: &Text, world: &World) {
    let Some(member) = group.member(id) else { return };
    let is_at_target = member.epoch == group.assignment_epoch;
    let target = group.targets.get(id).filter(|_| is_at_target);
    let kept = filtered(target.unwrap_or(&member.assigned), member, world);
    if kept == *member.assigned {
        return;
    }
    let member = ShareMember { assigned: Arc::new(kept), ..(**member).clone() };
    group.put(member);
    group.note(Entry::Current(id.clone()));
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
    let standing = Standing {
        settling_interval: out.config.settling_heartbeat_interval,
        is_settled: member.epoch == group.epoch,
        unchanged_for: group.raised_at.map(|raised| out.now.mono.since(raised)),
        members: group.members().len(),
    };
    let interval = pace(out.config.share_of(&group.id).heartbeat_interval, standing);
    Ok(ShareGroupHeartbeatResponse {
        member_id: Some(Str::from(&member.id)),
        member_epoch: member.epoch,
        heartbeat_interval_ms: i32::try_from(interval.0).unwrap_or(i32::MAX),
        assignment: shows.then(|| assignment_of(member)),
        ..Default::default()
    })
}

/// Whether there are share-partitions, set up since, that are in nobody's target.
///
/// # Source
/// Kafka 4.4 `GroupMetadataManager.initializedAssignmentPending`.
fn misses_initialized(group: &ShareGroup, world: &World) -> bool {
    let mut missing: Map<TopicId, Vec<i32>> = group.set_up.assignable(&world.image);
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
    if group.epoch <= group.assignment_epoch {
        return;
    }
    let interval = out.config.share_of(&group.id).assignment_interval;
    let since = group.assignment_timestamp;
    if since != 0 && interval.0 != 0 && out.now.wall.0 < since.saturating_add(interval.0) {
        return;
    }
    let assignable = group.set_up.assignable(&world.image);
    let none = Arc::new(Partitions::new());
    let mut seen: Map<*const Vec<Text>, Arc<Vec<TopicId>>> = Map::default();
    let mut candidates = Vec::with_capacity(group.members().len());
    for (id, member) in group.members() {
        let topics = seen.entry(Arc::as_ptr(&member.names)).or_insert_with(|| {
            let there = member.names.iter().filter_map(|name| world.image.topics.id_of(name));
            let mut topics: Vec<TopicId> = there.collect();
            topics.sort_unstable();
            Arc::new(topics)
        });
        let has = Arc::clone(group.targets.get(id).unwrap_or(&none));
        candidates.push(Candidate { topics: Arc::clone(topics), has });
    }
    let targets = share::assign(&candidates, &assignable);
    let ids: Vec<Text> = group.members().keys().cloned().collect();
    for (id, target) in ids.into_iter().zip(targets) {
        if group.targets.get(&id).is_none_or(|old| *old != target) {
            group.targets.insert(id.clone(), target);
            group.note(Entry::Target(id));
        }
    }
    group.assignment_epoch = group.epoch;
    group.assignment_timestamp = out.now.wall.0;
    // Last, as it says that the rest is there.
    group.note(Entry::TargetEpoch);
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
    let next = ShareMember {
        previous_epoch: member.epoch,
        epoch: group.assignment_epoch,
        assigned,
        ..(**member).clone()
    };
    group.put(next);
    group.note(Entry::Current(id.clone()));
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
    fence(group, id, world, out);
    Ok(ShareGroupHeartbeatResponse { member_id: Some(Str::from(id)), member_epoch: -1, ..Default::default() })
}

/// Takes a member out; the group's epoch is raised.
pub(crate) fn fence(group: &mut ShareGroup, id: &Text, world: &mut World, out: &mut Outbox) {
    if group.remove(id).is_none() {
        return;
    }
    group.targets.remove(id);
    for entry in [Entry::Current(id.clone()), Entry::Target(id.clone()), Entry::Member(id.clone())] {
        group.note(entry);
    }
    out.timers.cancel(&session(group, id));
    let hash = world.hash_of(group.names().keys());
    group.raise(hash, out.now.mono);
    if group.is_empty() {
        // There is nobody to assign to: the target is made. Whoever comes next gets its own at once.
        group.assignment_epoch = group.epoch;
        group.assignment_timestamp = 0;
        group.note(Entry::TargetEpoch);
    }
}

fn session(group: &ShareGroup, member: &Text) -> TimerKey {
    TimerKey::Session { group: group.id.clone(), member: member.clone() }
}

/// Sets the clock by which the member must be heard of again.
fn watch(group: &ShareGroup, id: &Text, out: &mut Outbox) {
    let within = out.config.share_of(&group.id).session_timeout;
    out.set_timer(session(group, id), within);
}

/// The group is going.
pub(crate) fn forget_timers(group: &ShareGroup, out: &mut Outbox) {
    group.members().keys().for_each(|member| out.timers.cancel(&session(group, member)));
    out.timers.cancel(&TimerKey::Save(group.id.clone()));
}

/// A group that was read from the log. What was being set up is set up again by the next heartbeat.
///
/// # Source
/// Kafka 4.4 `GroupMetadataManager.onLoaded`.
pub(crate) fn loaded(group: &mut ShareGroup, out: &mut Outbox) {
    group.drop_strays();
    let ids: Vec<Text> = group.members().keys().cloned().collect();
    ids.iter().for_each(|id| watch(group, id, out));
    group.flush(out);
}
