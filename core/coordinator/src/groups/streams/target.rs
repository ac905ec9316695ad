//! When and how a streams group's target is made: not before the initial delay is over.
//!
//! # Source
//! KIP-1071; Kafka 4.4 `GroupMetadataManager.maybeUpdateStreamsTargetAssignment`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::group::StreamsGroup;
use super::topology::Configured;
use crate::assignment::streams::{Candidate, Subtopology, Target, TasksJob};
use crate::assignment::{Job, Work};
use crate::groups::reconciled::Due;
use crate::outbox::{Effect, Outbox, TimerKey};

/// Why there is no new target though the group's epoch is ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delay {
    /// More members may come.
    Initial,
    /// The last one is too young.
    Interval,
}

/// Makes a new target, or has one made, if it is time for it.
pub(super) fn assign_if_due(group: &mut StreamsGroup, out: &mut Outbox) -> Option<Delay> {
    if out.timers.is_set(&TimerKey::FirstTarget(group.id.clone())) {
        return Some(Delay::Initial);
    }
    let configured = group.own.configured.clone()?;
    match group.target_due(out) {
        Due::No => return None,
        Due::Later => return Some(Delay::Interval),
        Due::Now => {}
    }
    let job = job(group, &configured, out);
    if is_small(group, &configured, out) {
        group.assigned(group.epoch, job.run(), out);
    } else {
        group.assigning = Some(group.epoch);
        out.compute(Effect::Compute(Box::new(Job(Work::Tasks(job)))));
    }
    None
}

fn job(group: &StreamsGroup, configured: &Configured, out: &Outbox) -> TasksJob {
    let none = Arc::new(Target::default());
    let candidates = group.members().values().map(|member| Candidate {
        id: member.id.clone(),
        process: member.own.process.clone(),
        has: Arc::clone(group.targets.get(&member.id).unwrap_or(&none)),
        offsets: group.own.task_offsets.get(&member.id).map(|it| Arc::clone(&it.offsets)).unwrap_or_default(),
    });
    let ready = configured.subtopologies.iter().filter(|_| configured.is_ready()).flatten();
    let subtopologies = ready
        .map(|(id, each)| (id.clone(), Subtopology { tasks: each.tasks, is_stateful: each.is_stateful }));
    TasksJob {
        group: group.id.clone(),
        epoch: group.epoch,
        instances: group.members().values().map(|member| member.instance.clone()).collect(),
        candidates: candidates.collect(),
        subtopologies: subtopologies.collect(),
        standbys: out.config.streams.settings.of(&group.id).standby_replicas,
    }
}

/// Whether a target is made faster than handed to another thread.
fn is_small(group: &StreamsGroup, configured: &Configured, out: &Outbox) -> bool {
    let tasks = configured.subtopologies.iter().flat_map(BTreeMap::values);
    let tasks: usize = tasks.map(|each| each.tasks.max(0) as usize).sum();
    let standbys = out.config.streams.settings.of(&group.id).standby_replicas;
    let copies = tasks.saturating_mul(standbys.saturating_add(1));
    group.members().len().saturating_add(copies) < out.config.consumer.assign_at_once_max
}

/// The initial delay is over: who has come so far is assigned to.
pub(crate) fn first_target(group: &mut StreamsGroup, out: &mut Outbox) {
    if !group.is_empty() {
        assign_if_due(group, out);
        group.flush(out);
    }
}
