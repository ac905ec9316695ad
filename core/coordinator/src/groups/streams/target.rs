//! The target: who is to have what, for one epoch of the group.
//!
//! Made when the group's epoch has been raised, at most once in an assignment interval, and not before the initial delay is
//! over: on the spot for a group that is small, and elsewhere ([`crate::Job`]) for one that is large, while members go on with
//! the old one.
//!
//! # Source
//! KIP-1071; Kafka 4.4 `GroupMetadataManager.maybeUpdateStreamsTargetAssignment`, `TargetAssignmentBuilder`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::group::StreamsGroup;
use super::topology::Configured;
use crate::assignment::streams::{Candidate, Subtopology, Target, TasksJob};
use crate::assignment::{Job, NewTarget, Work};
use crate::outbox::{Effect, Outbox, TimerKey};
use crate::records::Entry;

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
    let configured = group.configured.clone().filter(|_| group.epoch > group.assignment_epoch)?;
    if group.assigning.is_some() {
        return None;
    }
    let interval = out.config.streams_of(&group.id).assignment_interval;
    let since = group.assignment_timestamp;
    if since != 0 && interval.0 != 0 && out.now.wall.0 < since.saturating_add(interval.0) {
        return Some(Delay::Interval);
    }
    let is_small = is_small(group, &configured, out);
    let job = job(group, &configured, out);
    if is_small {
        assigned(group, group.epoch, job.run(), out);
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
        process: member.process.clone(),
        has: Arc::clone(group.targets.get(&member.id).unwrap_or(&none)),
        offsets: group.task_offsets.get(&member.id).map(|it| Arc::clone(&it.offsets)).unwrap_or_default(),
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
        standbys: out.config.streams_of(&group.id).standby_replicas,
    }
}

/// Whether a target is made faster than handed to another thread.
fn is_small(group: &StreamsGroup, configured: &Configured, out: &Outbox) -> bool {
    let tasks = configured.subtopologies.iter().flat_map(BTreeMap::values);
    let tasks: usize = tasks.map(|each| each.tasks.max(0) as usize).sum();
    let standbys = out.config.streams_of(&group.id).standby_replicas;
    let copies = tasks.saturating_mul(standbys.saturating_add(1));
    group.members().len().saturating_add(copies) < out.config.consumer.assign_at_once_max
}

/// A target is made: it holds from now on.
fn assigned(group: &mut StreamsGroup, epoch: i32, assignment: Vec<NewTarget<Target>>, out: &mut Outbox) {
    for NewTarget { member, instance, target } in assignment {
        // A static member may be another process by now. Whoever has left is missed by the next target, which is due.
        let now = match (group.member(&member), instance) {
            (None, Some(instance)) => group.static_member(&instance).map(|member| member.id.clone()),
            (known, _) => known.map(|member| member.id.clone()),
        };
        if let Some(member) = now {
            group.targets.insert(member.clone(), target);
            group.note(Entry::Target(member));
        }
    }
    group.assignment_epoch = epoch;
    group.assignment_timestamp = out.now.wall.0;
    // Last, as it says that the rest is there.
    group.note(Entry::TargetEpoch);
}

/// The initial delay is over: who has come so far is assigned to.
pub(crate) fn first_target(group: &mut StreamsGroup, out: &mut Outbox) {
    if !group.is_empty() {
        assign_if_due(group, out);
        group.flush(out);
    }
}

/// A target that was made elsewhere is here, or was given up.
pub(crate) fn computed(
    group: &mut StreamsGroup,
    epoch: i32,
    assignment: Option<Vec<NewTarget<Target>>>,
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
