//! Members that go: by themselves, for a moment, or because nothing was heard of them.
//!
//! # Source
//! Kafka 4.4 `GroupMetadataManager.consumerGroupLeave`, `consumerGroupFenceMembers`.

use barnabas_base::{Set, Text};

use super::group::ConsumerGroup;
use super::regex;
use crate::groups::reconciled::World;
use crate::outbox::Outbox;

/// Takes members out; the group's epoch is raised.
pub(crate) fn fence(group: &mut ConsumerGroup, ids: &[Text], world: &mut World, out: &mut Outbox) {
    let gone = group.take_out(ids, out);
    if gone.is_empty() {
        return;
    }
    for pattern in gone.iter().filter_map(|member| member.pattern()) {
        regex::forget_if_unused(group, pattern);
    }
    let hash = group.metadata_hash(world);
    group.raise(hash, out.now.mono);
    group.assigned_to_none(out.now.wall.0);
}

/// Whether every partition of the group's topics is in one member's target. Not so after a batch with a part of the
/// target was lost and the broker ended before it was written again.
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
    group.drop_unused_expressions();
    if group.epoch == group.assignment_epoch && !has_whole_target(group, world) {
        let hash = group.metadata_hash(world);
        group.raise(hash, out.now.mono);
    }
    group.watch_all(out);
    for member in group.members().values().filter(|member| member.own.classic.is_none()) {
        group.watch_revocation(member, out);
    }
    group.flush(out);
}
