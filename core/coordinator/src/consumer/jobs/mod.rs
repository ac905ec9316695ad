//! Work that a shard hands out, as it takes long: a large group's target (of consumer and of streams groups), a group's
//! expressions against every topic.
//!
//! A job is a value: whoever has it runs it wherever it likes, once, and brings what comes of it back to the shard that it
//! came from. The shard hands out one of each kind for a group at a time.

use barnabas_base::Text;

use crate::streams;

mod assign;
mod assignor;
mod resolve;

pub(crate) use assign::{Assigning, Assignment, NewTarget};
pub(crate) use resolve::{Resolving, Topics};

/// To be run away from the shard; costs up to seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Job(pub(crate) Work);

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Work {
    Assign(Assigning),
    AssignStreams(streams::Assigning),
    Resolve(Resolving),
}

/// What a [`Job`] came to: for [`crate::GroupShard::computed`].
#[derive(Debug, Clone, PartialEq)]
pub struct Done(pub(crate) Outcome);

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// `None`: it was not run.
    Assigned {
        group: Text,
        epoch: i32,
        assignment: Option<Assignment>,
    },
    Resolved {
        group: Text,
        topics: Option<Topics>,
    },
    /// `None`: it was not run.
    AssignedStreams {
        group: Text,
        epoch: i32,
        assignment: Option<streams::Assignment>,
    },
}

impl Job {
    /// The target of a streams group.
    pub(crate) fn for_streams(assigning: streams::Assigning) -> Self {
        Self(Work::AssignStreams(assigning))
    }

    /// The group that it is for.
    pub fn group(&self) -> &Text {
        match &self.0 {
            Work::Assign(assigning) => &assigning.group,
            Work::AssignStreams(assigning) => &assigning.group,
            Work::Resolve(resolving) => &resolving.group,
        }
    }

    pub fn run(self) -> Done {
        Done(match self.0 {
            Work::Assign(assigning) => Outcome::Assigned {
                group: assigning.group.clone(),
                epoch: assigning.epoch,
                assignment: Some(assigning.run()),
            },
            Work::AssignStreams(assigning) => Outcome::AssignedStreams {
                group: assigning.group.clone(),
                epoch: assigning.epoch,
                assignment: Some(assigning.run()),
            },
            Work::Resolve(resolving) => {
                Outcome::Resolved { group: resolving.group.clone(), topics: Some(resolving.run()) }
            }
        })
    }

    /// For whoever cannot run it: the shard hands out another one when a member is heard of next.
    pub fn give_up(self) -> Done {
        Done(match self.0 {
            Work::Assign(assigning) => {
                Outcome::Assigned { group: assigning.group, epoch: assigning.epoch, assignment: None }
            }
            Work::AssignStreams(assigning) => {
                let (group, epoch) = (assigning.group, assigning.epoch);
                Outcome::AssignedStreams { group, epoch, assignment: None }
            }
            Work::Resolve(resolving) => Outcome::Resolved { group: resolving.group, topics: None },
        })
    }
}
