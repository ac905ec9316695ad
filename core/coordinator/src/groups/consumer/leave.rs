//! Members that go: by themselves, for a moment, or because nothing was heard of them.
//!
//! # Source
//! Kafka 4.4 `GroupMetadataManager.consumerGroupLeave`, `consumerGroupFenceMembers`.

use std::sync::Arc;

use barnabas_base::{DurationMs, Set, Text};
use barnabas_wire::Str;
use barnabas_wire::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};

use super::group::ConsumerGroup;
use super::member::{ConsumerMember, MemberState};
use super::regex;
use crate::groups::reconciled::{Refused, World, check_instance, unknown, unknown_instance};
use crate::outbox::{Outbox, TimerKey};
use crate::records::Entry;

/// How a member leaves.
pub(crate) enum Left {
    /// A static member will be back: it keeps its place.
    ForAMoment(Arc<ConsumerMember>),
    ForGood(Arc<ConsumerMember>),
}

/// Who leaves, and how.
///
/// # Errors
/// UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
pub(crate) fn leave(group: &ConsumerGroup, request: &ConsumerGroupHeartbeatRequest) -> Result<Left, Refused> {
    let id = request.member_id.as_str();
    let Some(instance) = request.instance_id.as_deref() else {
        return group.member(id).cloned().map(Left::ForGood).ok_or_else(|| unknown(&group.id, id));
    };
    let member = group.static_member(instance).cloned().ok_or_else(|| unknown_instance(instance))?;
    check_instance(&member.id, id, instance)?;
    Ok(if request.member_epoch == -2 { Left::ForAMoment(member) } else { Left::ForGood(member) })
}

/// A static member is away: its epoch says so, and whoever comes with its instance id takes its place. Its session goes on.
pub(crate) fn static_leave(
    group: &mut ConsumerGroup,
    member: &ConsumerMember,
) -> ConsumerGroupHeartbeatResponse {
    let mut away = member.clone();
    away.epoch = -2;
    away.revoking = Arc::default();
    group.put(away);
    group.note(Entry::Current(member.id.clone()));
    ConsumerGroupHeartbeatResponse {
        member_id: Some(Str::from(&member.id)),
        member_epoch: -2,
        ..Default::default()
    }
}

/// Takes members out; the group's epoch is raised.
pub(crate) fn fence(group: &mut ConsumerGroup, ids: &[Text], world: &mut World, out: &mut Outbox) {
    let mut gone = Vec::new();
    for id in ids {
        let Some(member) = group.remove(id) else { continue };
        group.targets.remove(id);
        for entry in [Entry::Current(id.clone()), Entry::Target(id.clone()), Entry::Member(id.clone())] {
            group.note(entry);
        }
        cancel_timers(&group.id, id, out);
        gone.push(member);
    }
    if gone.is_empty() {
        return;
    }
    for pattern in gone.iter().filter_map(|member| member.pattern()) {
        regex::forget_if_unused(group, pattern);
    }
    let hash = group.metadata_hash(world);
    group.raise(hash, out.now.mono);
    if group.is_empty() {
        // There is nobody to assign to: the target is made.
        group.assignment_epoch = group.epoch;
        group.assignment_timestamp = out.now.wall.0;
        group.note(Entry::TargetEpoch);
    }
}

pub(super) fn cancel_timers(group: &Text, member: &Text, out: &mut Outbox) {
    let (group, member) = (group.clone(), member.clone());
    for key in [
        TimerKey::Session { group: group.clone(), member: member.clone() },
        TimerKey::Rebalance { group: group.clone(), member: member.clone() },
        TimerKey::MemberJoin { group: group.clone(), member: member.clone() },
        TimerKey::MemberSync { group, member },
    ] {
        out.timers.cancel(&key);
    }
}

/// Whether a member of whom `key` speaks is still asked for what it is late with.
pub(crate) fn is_late(group: &ConsumerGroup, id: &str, key: &TimerKey) -> bool {
    let Some(member) = group.member(id) else { return false };
    match key {
        TimerKey::Session { .. } => true,
        TimerKey::Rebalance { .. } => member.state == MemberState::Unrevoked && member.classic.is_none(),
        TimerKey::MemberJoin { .. } | TimerKey::MemberSync { .. } => member.classic.is_some(),
        TimerKey::Join(_)
        | TimerKey::Sync(_)
        | TimerKey::FirstTarget(_)
        | TimerKey::Save(_)
        | TimerKey::Expiry => false,
    }
}

/// The group is going, or becomes another kind of group.
pub(crate) fn forget_timers(group: &ConsumerGroup, out: &mut Outbox) {
    group.members().keys().for_each(|member| cancel_timers(&group.id, member, out));
    out.timers.cancel(&TimerKey::Save(group.id.clone()));
}

/// Every member has a whole session to be heard of.
pub(crate) fn watch_all(group: &ConsumerGroup, out: &mut Outbox) {
    let own = out.config.consumer_of(&group.id).session_timeout;
    for (id, member) in group.members() {
        let session = member.classic.as_ref().map(|side| DurationMs(i64::from(side.session_timeout_ms)));
        out.set_timer(
            TimerKey::Session { group: group.id.clone(), member: id.clone() },
            session.unwrap_or(own),
        );
    }
}

/// Whether every partition of the group's topics is in one member's target. Not so after a batch with a part of the target was
/// lost and the broker ended before it was written again.
fn has_whole_target(group: &ConsumerGroup, world: &World) -> bool {
    let (mut seen, mut count) = (Set::default(), 0);
    for (topic, partitions) in group.targets.values().flat_map(|target| target.iter()) {
        count += partitions.len();
        seen.extend(partitions.iter().map(|partition| (*topic, *partition)));
    }
    let mut wanted = 0;
    group.each_topic(|name| {
        wanted += world.image.topics.by_name(name).map_or(0, |topic| topic.partition_count());
    });
    group.is_empty() || (seen.len() == count && count == wanted)
}

/// A group that was read from the log.
///
/// # Source
/// Kafka `GroupMetadataManager.onLoaded`.
pub(crate) fn loaded(group: &mut ConsumerGroup, world: &mut World, out: &mut Outbox) {
    group.settle_claims();
    group.drop_strays(out.now.mono);
    if group.epoch == group.assignment_epoch && !has_whole_target(group, world) {
        let hash = group.metadata_hash(world);
        group.raise(hash, out.now.mono);
    }
    watch_all(group, out);
    for (id, member) in group.members() {
        if member.state == MemberState::Unrevoked && member.classic.is_none() {
            let key = TimerKey::Rebalance { group: group.id.clone(), member: id.clone() };
            out.set_timer(key, DurationMs(i64::from(member.rebalance_timeout_ms)));
        }
    }
    group.flush(out);
}
