//! A streams group's target, of everything that goes into it: a snapshot, so that it can be made away from the shard.

mod sticky;
mod tasks;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use barnabas_base::Text;

use super::NewTarget;

pub(crate) use sticky::{Candidate, Offsets};
pub(crate) use tasks::{
    ActiveTasks, Held, Role, Target, Tasks, contains, each, each_active, insert, insert_active,
};

/// What the assignor knows of a subtopology.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subtopology {
    pub tasks: i32,
    /// It keeps state, which standby tasks copy.
    pub is_stateful: bool,
}

/// Everything that a target is made of, as it was at one moment.
#[derive(Debug, Clone)]
pub(crate) struct TasksJob {
    pub group: Text,
    pub epoch: i32,
    /// Instance ids of the candidates.
    pub instances: Vec<Option<Text>>,
    pub candidates: Vec<Candidate>,
    /// Empty while topics are missing: no tasks are assigned.
    pub subtopologies: BTreeMap<Text, Subtopology>,
    pub standbys: usize,
}

impl PartialEq for TasksJob {
    fn eq(&self, other: &Self) -> bool {
        self.group == other.group && self.epoch == other.epoch
    }
}

impl TasksJob {
    /// New targets, of those members whose target is another one now.
    pub fn run(self) -> Vec<NewTarget<Target>> {
        let targets = sticky::assign(&self.candidates, &self.subtopologies, self.standbys);
        let new = self.candidates.into_iter().zip(self.instances).zip(targets);
        new.filter(|((candidate, _), target)| *candidate.has != *target)
            .map(|((candidate, instance), target)| NewTarget {
                member: candidate.id,
                instance,
                target: Arc::new(target),
            })
            .collect()
    }
}
