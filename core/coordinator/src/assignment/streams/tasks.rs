//! Tasks in their three roles, and the little arithmetic on them.

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::Text;

/// Partitions by subtopology.
pub(crate) type Tasks = BTreeMap<Text, BTreeSet<i32>>;

/// Active tasks, each with the epoch in which the member was given it: commits from before are refused (KIP-1251).
pub(crate) type ActiveTasks = BTreeMap<Text, BTreeMap<i32, i32>>;

/// What a member is to have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Target {
    pub active: Tasks,
    pub standby: Tasks,
    pub warmup: Tasks,
}

/// What a member has, or is to give up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Held {
    pub active: ActiveTasks,
    pub standby: Tasks,
    pub warmup: Tasks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Standby,
    Warmup,
}

impl Target {
    pub fn is_empty(&self) -> bool {
        self.active.is_empty() && self.standby.is_empty() && self.warmup.is_empty()
    }

    /// Whether any of `held` is among these, role by role.
    pub fn overlaps(&self, held: &Held) -> bool {
        each_active(&held.active).any(|(id, partition)| contains(&self.active, id, partition))
            || each(&held.standby).any(|(id, partition)| contains(&self.standby, id, partition))
            || each(&held.warmup).any(|(id, partition)| contains(&self.warmup, id, partition))
    }

    /// Whether these are just what is held, role by role.
    pub fn is(&self, held: &Held) -> bool {
        self.is_within(held)
            && each(&self.active).count() == each_active(&held.active).count()
            && each(&self.standby).count() == each(&held.standby).count()
            && each(&self.warmup).count() == each(&held.warmup).count()
    }

    /// Whether `held` has all of these, role by role.
    pub fn is_within(&self, held: &Held) -> bool {
        each(&self.active).all(|(id, partition)| held.epoch(id, partition).is_some())
            && each(&self.standby).all(|(id, partition)| contains(&held.standby, id, partition))
            && each(&self.warmup).all(|(id, partition)| contains(&held.warmup, id, partition))
    }
}

impl Held {
    pub fn is_empty(&self) -> bool {
        self.active.is_empty() && self.standby.is_empty() && self.warmup.is_empty()
    }

    /// The epoch in which an active task was given.
    pub fn epoch(&self, subtopology: &str, partition: i32) -> Option<i32> {
        self.active.get(subtopology)?.get(&partition).copied()
    }

    pub fn replicas(&self, role: Role) -> &Tasks {
        match role {
            Role::Standby => &self.standby,
            Role::Warmup => &self.warmup,
        }
    }
}

pub(crate) fn contains(tasks: &Tasks, subtopology: &str, partition: i32) -> bool {
    tasks.get(subtopology).is_some_and(|partitions| partitions.contains(&partition))
}

pub(crate) fn each(tasks: &Tasks) -> impl Iterator<Item = (&Text, i32)> {
    tasks.iter().flat_map(|(id, partitions)| partitions.iter().map(move |partition| (id, *partition)))
}

pub(crate) fn each_active(tasks: &ActiveTasks) -> impl Iterator<Item = (&Text, i32)> {
    tasks.iter().flat_map(|(id, partitions)| partitions.keys().map(move |partition| (id, *partition)))
}

pub(crate) fn insert(tasks: &mut Tasks, subtopology: &Text, partition: i32) {
    match tasks.get_mut(subtopology) {
        Some(partitions) => {
            partitions.insert(partition);
        }
        None => {
            tasks.insert(subtopology.clone(), BTreeSet::from([partition]));
        }
    }
}

pub(crate) fn insert_active(tasks: &mut ActiveTasks, subtopology: &Text, partition: i32, epoch: i32) {
    match tasks.get_mut(subtopology) {
        Some(partitions) => {
            partitions.insert(partition, epoch);
        }
        None => {
            tasks.insert(subtopology.clone(), BTreeMap::from([(partition, epoch)]));
        }
    }
}
