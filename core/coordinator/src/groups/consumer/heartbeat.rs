//! ConsumerGroupHeartbeat of a member that joins or stays.
//!
//! Everything that can be refused is refused before anything has changed.
//!
//! # Source
//! KIP-848; Kafka 4.4 `GroupMetadataManager.consumerGroupHeartbeat`.

use std::sync::Arc;

use barnabas_base::Text;
use barnabas_wire::Str;
use barnabas_wire::messages::consumer_group_heartbeat_request::TopicPartitions as OwnedPartitions;
use barnabas_wire::messages::consumer_group_heartbeat_response::{Assignment, TopicPartitions};
use barnabas_wire::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};

use super::group::ConsumerGroup;
use super::member::ConsumerMember;
use super::reconcile::{Owned, reconcile};
use super::regex::{self, Change};
use super::target::assign_if_due;
use crate::framework::Caller;
use crate::groups::reconciled::{
    AWAY, Found, METADATA_REFRESH, MemberState, Refused, World, check_size, keep, set_names,
};
use crate::outbox::Outbox;
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
    group.check_room(&id, instance, out)?;
    let texts =
        [&request.instance_id, &request.rack_id, &request.subscribed_topic_regex, &request.server_assignor];
    let names = request.subscribed_topic_names.iter().flatten().map(|name| name.len() + 4);
    let texts = names.chain(texts.into_iter().flatten().map(|text| text.len())).sum();
    check_size((&request.group_id, &request.member_id), caller, texts, out)?;
    let owned = request.topic_partitions.as_deref();
    let found = group.find(&id, instance, request.member_epoch, is_released, |member| {
        check_epoch(member, request.member_epoch, owned)
    })?;
    let before = found.before(&id);
    let updated = update(&before, caller, request);
    regex::check(group, &updated)?;
    if let Found::Replaces(old) = &found {
        group.replace(&old.id, &before, out);
    }
    let is_known = !matches!(found, Found::New);
    let changed = settle(group, is_known.then_some(&before), updated, world, out);
    assign_if_due(group, world, out);
    advance(group, &id, world, owned, changed, out);
    group.watch(&id, out);
    let now = group.member(&id).expect("invariant: it was just put there");
    let is_full = request.rebalance_timeout_ms != -1
        && (request.subscribed_topic_names.is_some() || request.subscribed_topic_regex.is_some())
        && request.topic_partitions.is_some();
    let shows = request.member_epoch == 0 || is_full || !same_partitions(&before, now);
    Ok(ConsumerGroupHeartbeatResponse {
        member_id: Some(Str::from(&id)),
        member_epoch: now.epoch,
        heartbeat_interval_ms: group.heartbeat_interval_ms(now.is_reconciled_to(group.epoch), out),
        assignment: shows.then(|| assignment_of(now)),
        ..Default::default()
    })
}

/// A process of the classic protocol may be replaced at once, as no member of it can have been asked to leave for a
/// moment.
fn is_released(known: &ConsumerMember) -> bool {
    known.own.classic.is_some() || known.epoch == AWAY
}

fn check_epoch(member: &ConsumerMember, epoch: i32, owned: Owned<'_>) -> Result<(), Refused> {
    member.check_epoch(epoch, || has_all(member, owned))?;
    if member.state == MemberState::Unknown && owned.is_none_or(|owned| !owned.is_empty()) {
        return Err(member.fenced(epoch));
    }
    Ok(())
}

fn has_all(member: &ConsumerMember, owned: Owned<'_>) -> bool {
    let has = |topic: &OwnedPartitions| {
        let assigned = member.assigned.get(&topic.topic_id);
        assigned.is_some_and(|assigned| topic.partitions.iter().all(|each| assigned.contains_key(each)))
    };
    owned.is_some_and(|owned| owned.iter().all(has))
}

fn update(
    before: &ConsumerMember,
    caller: &Caller<'_>,
    request: &ConsumerGroupHeartbeatRequest,
) -> ConsumerMember {
    let mut member = before.clone();
    keep(request.instance_id.as_ref(), &mut member.instance);
    keep(request.rack_id.as_ref(), &mut member.rack);
    keep(request.server_assignor.as_ref(), &mut member.own.assignor);
    keep(request.subscribed_topic_regex.as_ref(), &mut member.own.regex);
    if request.rebalance_timeout_ms != -1 {
        member.rebalance_timeout_ms = request.rebalance_timeout_ms;
    }
    if let Some(names) = &request.subscribed_topic_names {
        set_names(&mut member.own.names, names.iter().map(Str::text));
    }
    member.set_client(caller);
    member.own.classic = None;
    member
}

/// Takes in what the member said now, and raises the group's epoch if it makes a difference, or if the topics have
/// changed. Gives whether the member subscribes to something else. `before`: `None` if it is new.
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
        Some(before) => before.own.names != updated.own.names,
        None => !updated.own.names.is_empty(),
    };
    if is_other {
        updated.own.names = group.own.names.shared(updated.own.names);
        group.put(updated.clone());
        group.note(Entry::Member(id));
    }
    let regex_changed = regex::changed(group, before, &updated);
    regex::resolve_if_due(group, world, out);
    let must_raise =
        names_changed || regex_changed == Change::Resolved || group.preferred_assignor() != assignor.as_ref();
    // The matches of an expression are unknown: resolving it looks at the topics as well.
    let is_known = group.patterns().keys().all(|pattern| group.own.resolved.contains_key(pattern));
    if must_raise || (is_known && group.refresh_at <= out.now.mono) {
        let hash = group.metadata_hash(world);
        if must_raise || hash != group.metadata_hash {
            group.raise(hash, out.now.mono);
        }
        group.refresh_at = out.now.mono.plus(METADATA_REFRESH);
        if std::mem::take(&mut group.own.has_partition_metadata) {
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
    if next.own.classic.is_none() {
        group.watch_revocation(&next, out);
    }
    group.take_step(next);
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
