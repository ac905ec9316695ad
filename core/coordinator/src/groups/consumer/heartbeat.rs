//! ConsumerGroupHeartbeat of a member that joins or stays.
//!
//! Everything that can be refused is refused before anything has changed.
//!
//! # Source
//! KIP-848; Kafka 4.4 `GroupMetadataManager.consumerGroupHeartbeat`.

use std::sync::Arc;

use barnabas_base::{DurationMs, ErrorCode, Text};
use barnabas_wire::Str;
use barnabas_wire::messages::consumer_group_heartbeat_request::TopicPartitions as OwnedPartitions;
use barnabas_wire::messages::consumer_group_heartbeat_response::{Assignment, TopicPartitions};
use barnabas_wire::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};

use super::group::ConsumerGroup;
use super::leave::cancel_timers;
use super::member::{ConsumerMember, MemberState};
use super::reconcile::{Owned, reconcile};
use super::regex::{self, Change};
use super::target::assign_if_due;
use crate::framework::Caller;
use crate::framework::ID_BYTES_MAX;
use crate::groups::reconciled::{
    METADATA_REFRESH, Refused, Standing, World, check_instance, pace, unknown, unknown_instance,
};
use crate::outbox::{Outbox, TimerKey, append_refusal};
use crate::records::Entry;

/// Works on a heartbeat whose `check` went well, of a member that does not leave. What is to be written is noted in the
/// group.
///
/// # Errors
/// GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID,
/// INVALID_REGULAR_EXPRESSION. Nothing has changed then.
pub(crate) fn heartbeat(
    group: &mut ConsumerGroup,
    caller: &Caller<'_>,
    request: &ConsumerGroupHeartbeatRequest,
    world: &mut World,
    out: &mut Outbox,
) -> Result<ConsumerGroupHeartbeatResponse, Refused> {
    let id = if request.member_id.is_empty() {
        Text::from(barnabas_base::Uuid::from_random(caller.random).to_string())
    } else {
        request.member_id.text()
    };
    let instance = request.instance_id.as_deref();
    check_room(group, &id, instance, out)?;
    check_size(caller, request, out)?;
    let found = find(group, &id, request)?;
    let before = match &found {
        Found::Known(member) => (**member).clone(),
        Found::New => ConsumerMember::new(id.clone()),
        Found::Replaces(old) => replacement(old, id.clone()),
    };
    let updated = update(&before, caller, request);
    regex::check(group, &updated)?;
    if let Found::Replaces(old) = &found {
        replace(group, &old.id, &before, out);
    }
    let is_known = !matches!(found, Found::New);
    let changed = settle(group, is_known.then_some(&before), updated, world, out);
    assign_if_due(group, world, out);
    let owned = request.topic_partitions.as_deref();
    advance(group, &id, world, owned, changed, out);
    let times = out.config.consumer_of(&group.id);
    watch(group, &id, times.session_timeout, out);
    let now = group.member(&id).expect("invariant: it was just put there");
    let is_full = request.rebalance_timeout_ms != -1
        && (request.subscribed_topic_names.is_some() || request.subscribed_topic_regex.is_some())
        && request.topic_partitions.is_some();
    let shows = request.member_epoch == 0 || is_full || !same_partitions(&before, now);
    let interval = pace(times.heartbeat_interval, standing(group, now, out));
    Ok(ConsumerGroupHeartbeatResponse {
        member_id: Some(Str::from(&id)),
        member_epoch: now.epoch,
        heartbeat_interval_ms: i32::try_from(interval.0).unwrap_or(i32::MAX),
        assignment: shows.then(|| assignment_of(now)),
        ..Default::default()
    })
}

fn standing(group: &ConsumerGroup, member: &ConsumerMember, out: &Outbox) -> Standing {
    Standing {
        settling_interval: out.config.settling_heartbeat_interval,
        is_settled: member.is_reconciled_to(group.epoch),
        unchanged_for: group.raised_at.map(|raised| out.now.mono.since(raised)),
        members: group.members().len(),
    }
}

/// What numbers, lengths and framing take in a member's record, and more.
const NUMBERS_BYTES: usize = 100;

/// Whom a heartbeat comes from.
enum Found {
    Known(Arc<ConsumerMember>),
    New,
    /// It takes the place of this static member.
    Replaces(Arc<ConsumerMember>),
}

pub(super) fn check_room(
    group: &ConsumerGroup,
    id: &str,
    instance: Option<&str>,
    out: &Outbox,
) -> Result<(), Refused> {
    let max = out.config.consumer.size_max;
    let is_inside = instance.is_some_and(|instance| group.static_member(instance).is_some())
        || group.member(id).is_some();
    if group.members().len() >= max && !is_inside {
        let why = format!("The consumer group has reached its maximum capacity of {max} members.");
        return Err(Refused::new(ErrorCode::GroupMaxSizeReached, why));
    }
    Ok(())
}

/// What a member says of itself goes into one record.
fn check_size(
    caller: &Caller<'_>,
    request: &ConsumerGroupHeartbeatRequest,
    out: &Outbox,
) -> Result<(), Refused> {
    let texts =
        [&request.instance_id, &request.rack_id, &request.subscribed_topic_regex, &request.server_assignor];
    let names = request.subscribed_topic_names.iter().flatten().map(|name| name.len() + 4);
    let bytes: usize = names.chain(texts.into_iter().flatten().map(|text| text.len())).sum();
    let who =
        request.group_id.len() + request.member_id.len() + caller.client_id.len() + caller.client_host.len();
    if bytes + who + NUMBERS_BYTES <= out.config.batch_bytes_max {
        return Ok(());
    }
    let why = "What the member says of itself is more than a record can hold.";
    Err(Refused::new(append_refusal(ErrorCode::RecordListTooLarge), why))
}

fn find(group: &ConsumerGroup, id: &str, request: &ConsumerGroupHeartbeatRequest) -> Result<Found, Refused> {
    let joins = request.member_epoch == 0;
    let owned = request.topic_partitions.as_deref();
    let Some(instance) = request.instance_id.as_deref() else {
        return match group.member(id) {
            Some(member) => {
                check_epoch(member, request.member_epoch, owned)?;
                Ok(Found::Known(Arc::clone(member)))
            }
            None if joins => Ok(Found::New),
            None => Err(unknown(&group.id, id)),
        };
    };
    match group.static_member(instance) {
        None if joins => Ok(Found::New),
        None => Err(unknown_instance(instance)),
        Some(known) if joins && known.id == id => Ok(Found::Known(Arc::clone(known))),
        // A process of the other protocol may be replaced at once, as nobody can have told it to leave for a moment.
        Some(known) if joins && known.classic.is_none() && known.epoch != -2 => Err(Refused::new(
            ErrorCode::UnreleasedInstanceId,
            format!(
                "Static member {id} with instance id {instance} cannot join the group because the instance id is owned by {} member.",
                known.id
            ),
        )),
        Some(known) if joins => Ok(Found::Replaces(Arc::clone(known))),
        Some(known) => {
            check_instance(&known.id, id, instance)?;
            check_epoch(known, request.member_epoch, owned)?;
            Ok(Found::Known(Arc::clone(known)))
        }
    }
}

/// A member may come with its epoch, with 0 to start again, or with its last epoch and nothing that is not its, as the answer
/// that told it the new one may have been lost.
fn check_epoch(member: &ConsumerMember, epoch: i32, owned: Owned<'_>) -> Result<(), Refused> {
    let is_lost_answer = || epoch == member.previous_epoch && has_all(member, owned);
    let is_good = epoch == 0 || epoch == member.epoch || (epoch < member.epoch && is_lost_answer());
    if is_good && !(member.state == MemberState::Unknown && owned.is_none_or(|owned| !owned.is_empty())) {
        return Ok(());
    }
    let is = if epoch > member.epoch { "greater" } else { "smaller" };
    let why = format!(
        "The consumer group member has a {is} member epoch ({epoch}) than the one known by the group coordinator ({}). The member must \
         abandon all its partitions and rejoin.",
        member.epoch
    );
    Err(Refused::new(ErrorCode::FencedMemberEpoch, why))
}

fn has_all(member: &ConsumerMember, owned: Owned<'_>) -> bool {
    let has = |topic: &OwnedPartitions| {
        let assigned = member.assigned.get(&topic.topic_id);
        assigned.is_some_and(|assigned| topic.partitions.iter().all(|each| assigned.contains_key(each)))
    };
    owned.is_some_and(|owned| owned.iter().all(has))
}

/// The new process of a static member: what the old one had, under another id.
pub(super) fn replacement(old: &ConsumerMember, id: Text) -> ConsumerMember {
    ConsumerMember { id, epoch: 0, previous_epoch: 0, ..old.clone() }
}

/// Puts `new` in the place of the member `old`.
pub(super) fn replace(group: &mut ConsumerGroup, old: &Text, new: &ConsumerMember, out: &mut Outbox) {
    cancel_timers(&group.id, old, out);
    group.remove(old);
    let target = group.targets.remove(old);
    for entry in [Entry::Current(old.clone()), Entry::Target(old.clone()), Entry::Member(old.clone())] {
        group.note(entry);
    }
    group.put(new.clone());
    group.note(Entry::Member(new.id.clone()));
    if let Some(target) = target {
        group.targets.insert(new.id.clone(), target);
        group.note(Entry::Target(new.id.clone()));
    }
    group.note(Entry::Current(new.id.clone()));
}

fn update(
    before: &ConsumerMember,
    caller: &Caller<'_>,
    request: &ConsumerGroupHeartbeatRequest,
) -> ConsumerMember {
    let mut member = before.clone();
    let keep = |new: Option<&Str>, old: &mut Option<Text>| {
        if let Some(new) = new
            && old.as_ref().is_none_or(|old| *old != new.as_str())
        {
            *old = Some(new.text());
        }
    };
    keep(request.instance_id.as_ref(), &mut member.instance);
    keep(request.rack_id.as_ref(), &mut member.rack);
    keep(request.server_assignor.as_ref(), &mut member.assignor);
    keep(request.subscribed_topic_regex.as_ref(), &mut member.regex);
    if request.rebalance_timeout_ms != -1 {
        member.rebalance_timeout_ms = request.rebalance_timeout_ms;
    }
    if let Some(names) = &request.subscribed_topic_names {
        set_names(&mut member, names.iter().map(Str::text).collect());
    }
    set_client(&mut member, caller);
    member.classic = None;
    member
}

pub(super) fn set_names(member: &mut ConsumerMember, mut names: Vec<Text>) {
    names.sort();
    names.dedup();
    if *member.names != names {
        member.names = Arc::new(names);
    }
}

pub(super) fn set_client(member: &mut ConsumerMember, caller: &Caller<'_>) {
    if member.client_id != caller.client_id {
        member.client_id = Text::from(crate::framework::shortened(caller.client_id, ID_BYTES_MAX));
    }
    if member.client_host != caller.client_host {
        member.client_host = Text::from(crate::framework::shortened(caller.client_host, ID_BYTES_MAX));
    }
}

/// Takes in what the member said now, and raises the group's epoch if it makes a difference, or if the topics have changed.
/// Gives whether the member subscribes to something else. `before`: `None` if it is new.
pub(super) fn settle(
    group: &mut ConsumerGroup,
    before: Option<&ConsumerMember>,
    mut updated: ConsumerMember,
    world: &mut World,
    out: &mut Outbox,
) -> bool {
    let id = updated.id.clone();
    let is_other = before != Some(&updated);
    let assignor = group.preferred_assignor().cloned();
    let names_changed = match before {
        Some(before) => before.names != updated.names,
        None => !updated.names.is_empty(),
    };
    if is_other {
        updated.names = group.shared(updated.names);
        group.put(updated.clone());
        group.note(Entry::Member(id));
    }
    let regex_changed = regex::changed(group, before, &updated);
    regex::resolve_if_due(group, world, out);
    let must_raise =
        names_changed || regex_changed == Change::Resolved || group.preferred_assignor() != assignor.as_ref();
    // What an expression matches is not known: whoever resolves it looks at the topics as well.
    let is_known = group.patterns().keys().all(|pattern| group.resolved.contains_key(pattern));
    if must_raise || (is_known && group.refresh_at <= out.now.mono) {
        let hash = group.metadata_hash(world);
        if must_raise || hash != group.metadata_hash {
            group.raise(hash, out.now.mono);
        }
        group.refresh_at = out.now.mono.plus(METADATA_REFRESH);
        if std::mem::take(&mut group.has_partition_metadata) {
            group.note(Entry::OldPartitionMetadata);
        }
    }
    names_changed || regex_changed != Change::None
}

/// Brings the member as near to the target as it can come now.
pub(super) fn advance(
    group: &mut ConsumerGroup,
    id: &Text,
    world: &World,
    owned: Owned<'_>,
    changed: bool,
    out: &mut Outbox,
) {
    let Some(member) = group.member(id) else { return };
    if !changed && member.is_reconciled_to(group.assignment_epoch) {
        return;
    }
    let Some(next) = reconcile(group, member, &world.image, owned, changed) else { return };
    let (state, timeout, is_classic) = (next.state, next.rebalance_timeout_ms, next.classic.is_some());
    group.put(next);
    group.note(Entry::Current(id.clone()));
    if !is_classic {
        let key = TimerKey::Rebalance { group: group.id.clone(), member: id.clone() };
        if state == MemberState::Unrevoked {
            out.set_timer(key, DurationMs(i64::from(timeout)));
        } else {
            out.timers.cancel(&key);
        }
    }
}

/// Sets the clock by which the member must be heard of again.
pub(super) fn watch(group: &ConsumerGroup, id: &Text, within: DurationMs, out: &mut Outbox) {
    out.set_timer(TimerKey::Session { group: group.id.clone(), member: id.clone() }, within);
}

fn same_partitions(before: &ConsumerMember, now: &ConsumerMember) -> bool {
    Arc::ptr_eq(&before.assigned, &now.assigned)
        || (before.assigned.len() == now.assigned.len()
            && before.assigned.iter().zip(now.assigned.iter()).all(|((topic, old), (other, new))| {
                topic == other && old.len() == new.len() && old.keys().eq(new.keys())
            }))
}

fn assignment_of(member: &ConsumerMember) -> Assignment {
    let topics = member.assigned.iter().map(|(topic, partitions)| TopicPartitions {
        topic_id: *topic,
        partitions: partitions.keys().copied().collect(),
        ..Default::default()
    });
    Assignment { topic_partitions: topics.collect(), ..Default::default() }
}
