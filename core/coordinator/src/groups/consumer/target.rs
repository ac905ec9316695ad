//! When and how a consumer group's target is made.

use std::sync::Arc;

use barnabas_base::Text;

use super::group::ConsumerGroup;
use crate::assignment::{Job, Partitions, PartitionsJob, Subscriber, Work};
use crate::groups::reconciled::{Due, World};
use crate::outbox::{Effect, Outbox};

/// Makes a new target, or has one made, if it is time for it.
pub(super) fn assign_if_due(group: &mut ConsumerGroup, world: &World, out: &mut Outbox) {
    if group.target_due(out) != Due::Now {
        return;
    }
    let job = job(group, world, out);
    if is_small(group, world, out) {
        group.assigned(group.epoch, job.run(), out);
    } else {
        group.assigning = Some(group.epoch);
        out.compute(Effect::Compute(Box::new(Job(Work::Partitions(job)))));
    }
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
        names: Arc::clone(&member.own.names),
        pattern: member.pattern().cloned(),
        has: Arc::clone(group.targets.get(&member.id).unwrap_or(&none)),
    });
    let standard = || out.config.consumer.assignors.first().cloned().unwrap_or_else(|| Text::from("uniform"));
    PartitionsJob {
        group: group.id.clone(),
        epoch: group.epoch,
        assignor: group.preferred_assignor().cloned().unwrap_or_else(standard),
        subscribers: subscribers.collect(),
        resolved: group.own.resolved.clone(),
        image: world.image.clone(),
    }
}
