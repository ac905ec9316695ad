//! Work that a shard hands out, as it takes long: a large group's target, a consumer group's expressions against every
//! topic.
//!
//! A job is a value. The worker runs it on any thread, once, and hands the result to the shard that it
//! came from. The shard hands out one of each kind for a group at a time.

use barnabas_base::Text;

use super::{Describable, NewTarget, Partitions, PartitionsJob, Resolving, Tasks, TasksJob, Topics};

/// To be run away from the shard; costs up to seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Job(pub(crate) Work);

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Work {
    /// The target of a consumer group.
    Partitions(PartitionsJob),
    /// The target of a streams group.
    Tasks(TasksJob),
    /// The expressions of a consumer group.
    Resolve(Resolving),
}

/// What a [`Job`] came to: for [`crate::GroupShard::computed`].
#[derive(Debug, Clone, PartialEq)]
pub struct Done(pub(crate) Outcome);

/// `None`: the job was not run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Partitions { group: Text, epoch: i32, targets: Option<Vec<NewTarget<Partitions>>> },
    Tasks { group: Text, epoch: i32, targets: Option<Vec<NewTarget<Tasks>>> },
    Resolved { group: Text, topics: Option<Topics> },
}

impl Job {
    /// The group that it is for.
    pub fn group(&self) -> &Text {
        match &self.0 {
            Work::Partitions(job) => &job.group,
            Work::Tasks(job) => &job.group,
            Work::Resolve(resolving) => &resolving.group,
        }
    }

    /// Has expressions match only topics that the client may describe. Other jobs name no topics to it.
    pub fn show_only(&mut self, describable: Describable) {
        if let Work::Resolve(resolving) = &mut self.0 {
            resolving.describable = Some(describable);
        }
    }

    pub fn run(self) -> Done {
        Done(match self.0 {
            Work::Partitions(job) => {
                let (group, epoch) = (job.group.clone(), job.epoch);
                Outcome::Partitions { group, epoch, targets: Some(job.run()) }
            }
            Work::Tasks(job) => {
                let (group, epoch) = (job.group.clone(), job.epoch);
                Outcome::Tasks { group, epoch, targets: Some(job.run()) }
            }
            Work::Resolve(resolving) => {
                Outcome::Resolved { group: resolving.group.clone(), topics: Some(resolving.run()) }
            }
        })
    }

    /// For a worker that cannot run it: the shard hands out another one with a member's next heartbeat.
    pub fn give_up(self) -> Done {
        Done(match self.0 {
            Work::Partitions(job) => {
                Outcome::Partitions { group: job.group, epoch: job.epoch, targets: None }
            }
            Work::Tasks(job) => Outcome::Tasks { group: job.group, epoch: job.epoch, targets: None },
            Work::Resolve(resolving) => Outcome::Resolved { group: resolving.group, topics: None },
        })
    }
}

impl Outcome {
    pub fn group(&self) -> &Text {
        match self {
            Self::Partitions { group, .. } | Self::Tasks { group, .. } | Self::Resolved { group, .. } => {
                group
            }
        }
    }
}
