//! What a streams group knows beside what every group does.
//!
//! Always true (checked by `shard/invariants/streams.rs`):
//! 1. an active task has one owner, and that member has it; who holds copies is who has them
//! 2. what is known of offsets is of a member
//! 3. a member that has something to give up has a timer
//!
//! Not in its records, and so gone with a move of the coordinator: how the topology fits the topics (looked at again
//! with the next heartbeat), the endpoints' epoch, reported offsets, members that missed an answer, a request to shut
//! down, and the topology's description (asked for again with the next heartbeat).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{ErrorCode, Map, Text};

use super::Streams;
use super::member::StreamsMember;
use super::topology::{Configured, Description, Topology};
use crate::assignment::streams::{Held, Offsets, Role, each, each_active};
use crate::groups::reconciled::ReconciledGroup;

pub(crate) type StreamsGroup = ReconciledGroup<Streams>;

type TaskId = (Text, i32);

/// How far a member's tasks have come, as it said last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TaskOffsets {
    pub offsets: Arc<Offsets>,
    pub ends: Arc<Offsets>,
}

#[derive(Debug)]
pub(crate) struct Own {
    /// Of the topology that all topics are there for; −1: they are not.
    pub validated_epoch: i32,
    /// What assignors were told when the epoch was last raised.
    pub assignment_configs: BTreeMap<Text, Text>,
    /// Kept for a plug-in of Kafka's: [`Self::description`] is in no record.
    pub description_epochs: (i32, i32),
    pub topology: Option<Arc<Topology>>,
    pub description: Description,
    /// `None`: to be looked at.
    pub configured: Option<Arc<Configured>>,
    owners: Map<TaskId, Text>,
    standbys: Map<TaskId, BTreeSet<Text>>,
    warmups: Map<TaskId, BTreeSet<Text>>,
    pub task_offsets: BTreeMap<Text, TaskOffsets>,
    /// Members that may have missed an answer: the last heartbeat named other tasks than they have, or the group was
    /// just loaded.
    pub doubted: BTreeSet<Text>,
    /// The member that asked for the whole application to shut down.
    pub shutdown_by: Option<Text>,
    /// Counts what changed about who serves what.
    pub endpoint_epoch: i32,
}

impl Default for Own {
    fn default() -> Self {
        Self {
            validated_epoch: -1,
            assignment_configs: BTreeMap::new(),
            description_epochs: (-1, -1),
            topology: None,
            description: Description::default(),
            configured: None,
            owners: Map::default(),
            standbys: Map::default(),
            warmups: Map::default(),
            task_offsets: BTreeMap::new(),
            doubted: BTreeSet::new(),
            shutdown_by: None,
            endpoint_epoch: 0,
        }
    }
}

impl Own {
    pub fn count(&mut self, old: Option<&StreamsMember>, new: Option<&StreamsMember>) {
        if let (Some(old), Some(new)) = (old, new)
            && Arc::ptr_eq(&old.assigned, &new.assigned)
            && Arc::ptr_eq(&old.revoking, &new.revoking)
        {
            return;
        }
        old.into_iter().for_each(|member| self.disown(member));
        match (old, new) {
            (_, Some(new)) => {
                self.own(&new.id, &new.revoking);
                self.own(&new.id, &new.assigned);
            }
            (Some(gone), None) => {
                self.task_offsets.remove(&gone.id);
                self.doubted.remove(&gone.id);
            }
            (None, None) => {}
        }
    }

    fn own(&mut self, id: &Text, held: &Held) {
        for (subtopology, partition) in each_active(&held.active) {
            self.owners.insert((subtopology.clone(), partition), id.clone());
        }
        for (tasks, holders) in [(&held.standby, &mut self.standbys), (&held.warmup, &mut self.warmups)] {
            for (subtopology, partition) in each(tasks) {
                holders.entry((subtopology.clone(), partition)).or_default().insert(id.clone());
            }
        }
    }

    fn disown(&mut self, member: &StreamsMember) {
        for held in [&member.assigned, &member.revoking] {
            for (subtopology, partition) in each_active(&held.active) {
                let task = (subtopology.clone(), partition);
                if self.owners.get(&task) == Some(&member.id) {
                    self.owners.remove(&task);
                }
            }
            for (tasks, all) in [(&held.standby, &mut self.standbys), (&held.warmup, &mut self.warmups)] {
                for (subtopology, partition) in each(tasks) {
                    let task = (subtopology.clone(), partition);
                    let Some(holders) = all.get_mut(&task) else { continue };
                    holders.remove(&member.id);
                    if holders.is_empty() {
                        all.remove(&task);
                    }
                }
            }
        }
    }
}

impl ReconciledGroup<Streams> {
    pub fn owners(&self) -> &Map<TaskId, Text> {
        &self.own.owners
    }

    pub fn all_holders(&self, role: Role) -> &Map<TaskId, BTreeSet<Text>> {
        match role {
            Role::Standby => &self.own.standbys,
            Role::Warmup => &self.own.warmups,
        }
    }

    pub fn owner(&self, subtopology: &Text, partition: i32) -> Option<&Text> {
        self.own.owners.get(&(subtopology.clone(), partition))
    }

    pub fn holders(&self, role: Role, subtopology: &Text, partition: i32) -> Option<&BTreeSet<Text>> {
        self.all_holders(role).get(&(subtopology.clone(), partition))
    }

    /// Of its topology; −1: it has none.
    pub fn topology_epoch(&self) -> i32 {
        self.own.topology.as_ref().map_or(-1, |topology| topology.epoch())
    }

    /// Whether its tasks read this topic.
    pub fn is_subscribed(&self, topic: &str) -> bool {
        !self.is_empty()
            && self.own.topology.as_ref().is_some_and(|topology| topology.sources.contains_key(topic))
    }

    /// Whether its tasks need this topic for anything.
    pub fn needs(&self, topic: &str) -> bool {
        self.own.topology.as_ref().is_some_and(|topology| topology.required.contains(topic))
    }

    /// Kafka's word for the state it is in.
    ///
    /// # Source
    /// Kafka 4.4 `StreamsGroup.maybeUpdateGroupState`.
    pub fn state_name(&self) -> &'static str {
        let validated = self.own.validated_epoch;
        let topology = self.own.topology.as_ref();
        if !self.is_empty() && topology.is_none_or(|topology| topology.epoch() != validated) {
            return "NotReady";
        }
        self.progress()
    }

    /// A log that lacks a batch may give an active task to two members: the later record holds.
    pub fn settle_claims(&mut self) {
        let ids: Vec<Text> = self.members().keys().cloned().collect();
        for id in ids {
            let Some(member) = self.member(&id).cloned() else { continue };
            let owns = |held: &Held| {
                each_active(&held.active).all(|(name, partition)| self.owner(name, partition) == Some(&id))
            };
            if owns(&member.assigned) && owns(&member.revoking) {
                continue;
            }
            let settled = |held: &Held| {
                let mut held = held.clone();
                for (name, partitions) in &mut held.active {
                    partitions.retain(|partition, _| self.owner(name, *partition) == Some(&id));
                }
                held.active.retain(|_, partitions| !partitions.is_empty());
                Arc::new(held)
            };
            let settled = StreamsMember {
                assigned: settled(&member.assigned),
                revoking: settled(&member.revoking),
                ..(*member).clone()
            };
            self.take_step(settled);
        }
    }

    /// Whether every task is one member's in the target, if the target is the newest. Not so after a batch with a part
    /// of it was lost and the broker ended before it was written again.
    pub fn is_assigned_whole(&self, configured: &Configured) -> bool {
        if self.epoch > self.assignment_epoch || !configured.is_ready() {
            return true;
        }
        let all = configured.subtopologies.iter().flatten();
        let wanted: usize = all.map(|(_, each)| each.tasks.max(0) as usize).sum();
        let tasks = || self.targets.values().flat_map(|target| each(&target.active));
        let different: BTreeSet<(&Text, i32)> = tasks().collect();
        tasks().count() == wanted && different.len() == wanted
    }

    /// Whether this member may commit offsets of these partitions with this epoch.
    ///
    /// # Errors
    /// As [`ReconciledGroup::check_committer`].
    pub fn check_commit<'a>(
        &self,
        id: &str,
        epoch: i32,
        mut partitions: impl Iterator<Item = (&'a str, i32)>,
    ) -> Result<(), ErrorCode> {
        let sources = self.own.topology.as_ref().map(|topology| &topology.sources);
        self.check_committer(id, epoch, |member| {
            partitions.all(|(topic, partition)| {
                let subtopology = sources.and_then(|sources| sources.get(topic));
                let since = subtopology.and_then(|id| member.assignment_epoch(id, partition));
                since.is_some_and(|since| epoch >= since)
            })
        })
    }

    #[cfg(test)]
    pub fn plant_owner(&mut self, subtopology: &str, partition: i32, owner: &str) {
        self.own.owners.insert((subtopology.into(), partition), owner.into());
    }

    #[cfg(test)]
    pub fn plant_standby(&mut self, subtopology: &str, partition: i32, holder: &str) {
        self.own.standbys.entry((subtopology.into(), partition)).or_default().insert(holder.into());
    }
}
