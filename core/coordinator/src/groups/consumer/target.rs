//! The target: who is to have what, for one epoch of the group.
//!
//! Made when the group's epoch has been raised, at most once in an assignment interval (KIP-1263): on the spot for a group
//! that is small, and elsewhere ([`crate::Job`]) for one that is large, while members go on with the old one.
//!
//! # Source
//! Kafka 4.4 `GroupMetadataManager.maybeUpdateTargetAssignment`, `TargetAssignmentBuilder`.

use std::sync::Arc;

use barnabas_base::Text;

use super::group::ConsumerGroup;
use crate::assignment::{Job, NewTarget, Partitions, PartitionsJob, Subscriber, Work};
use crate::groups::reconciled::World;
use crate::outbox::Effect;
use crate::outbox::Outbox;
use crate::records::Entry;

/// Makes a new target, or has one made, if it is time for it.
pub(super) fn assign_if_due(group: &mut ConsumerGroup, world: &World, out: &mut Outbox) {
    if group.epoch <= group.assignment_epoch || group.assigning.is_some() {
        return;
    }
    let interval = out.config.consumer_of(&group.id).assignment_interval;
    let since = group.assignment_timestamp;
    if since != 0 && interval.0 != 0 && out.now.wall.0 < since.saturating_add(interval.0) {
        return;
    }
    if is_small(group, world, out) {
        let assignment = job(group, world, out).run();
        assigned(group, group.epoch, assignment, out);
        return;
    }
    group.assigning = Some(group.epoch);
    let job = Job(Work::Partitions(job(group, world, out)));
    out.compute(Effect::Compute(Box::new(job)));
}

/// Whether a target is made faster than handed to another thread.
fn is_small(group: &ConsumerGroup, world: &World, out: &Outbox) -> bool {
    let mut left = out.config.consumer.assign_at_once_max.saturating_sub(group.members().len());
    for name in group.topics() {
        let partitions = world.image.topics.by_name(name).map_or(0, |topic| topic.partition_count());
        match left.checked_sub(partitions) {
            Some(rest) => left = rest,
            None => return false,
        }
    }
    left > 0
}

fn job(group: &ConsumerGroup, world: &World, out: &Outbox) -> PartitionsJob {
    let none = Arc::new(Partitions::new());
    let subscribers = group.members().values().map(|member| Subscriber {
        id: member.id.clone(),
        instance: member.instance.clone(),
        names: Arc::clone(&member.names),
        pattern: member.pattern().cloned(),
        has: Arc::clone(group.targets.get(&member.id).unwrap_or(&none)),
    });
    let standard = || out.config.consumer.assignors.first().cloned().unwrap_or_else(|| Text::from("uniform"));
    PartitionsJob {
        group: group.id.clone(),
        epoch: group.epoch,
        assignor: group.preferred_assignor().cloned().unwrap_or_else(standard),
        subscribers: subscribers.collect(),
        resolved: group.resolved.clone(),
        image: world.image.clone(),
    }
}

/// A target is made: it holds from now on.
fn assigned(group: &mut ConsumerGroup, epoch: i32, assignment: Vec<NewTarget<Partitions>>, out: &mut Outbox) {
    let mut entries = Vec::with_capacity(assignment.len() + 1);
    for NewTarget { member, instance, target } in assignment {
        // A static member may be another process by now. Whoever has left is missed by the next target, which is due.
        let now = match (group.member(&member), instance) {
            (None, Some(instance)) => group.static_member(&instance).map(|member| member.id.clone()),
            (known, _) => known.map(|member| member.id.clone()),
        };
        if let Some(member) = now {
            group.targets.insert(member.clone(), target);
            entries.push(Entry::Target(member));
        }
    }
    group.note_all(entries);
    group.assignment_epoch = epoch;
    group.assignment_timestamp = out.now.wall.0;
    // Last, as it says that the rest is there.
    group.note(Entry::TargetEpoch);
}

/// A target that was made elsewhere is here, or was given up.
pub(crate) fn computed(
    group: &mut ConsumerGroup,
    epoch: i32,
    assignment: Option<Vec<NewTarget<Partitions>>>,
    out: &mut Outbox,
) {
    // One that is for a group of the same name that is gone has another epoch.
    if group.assigning != Some(epoch) {
        return;
    }
    group.assigning = None;
    // A group that has become empty meanwhile is further on.
    if let Some(assignment) = assignment.filter(|_| epoch > group.assignment_epoch) {
        assigned(group, epoch, assignment, out);
        group.flush(out);
    }
}
