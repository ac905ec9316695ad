//! A streams group: what its records say, and what can be counted from them.
//!
//! Always true (checked by `shard/invariants.rs`):
//! 1. an active task has one owner, and that member has it; who holds copies is who has them
//! 2. an instance id stands for exactly one member, and that member has it
//! 3. a target is a member's; what is known of offsets is of a member
//! 4. no member is ahead of the target, the target is not ahead of the group
//! 5. whoever has something to give up is watched, and so is every member
//! 6. nothing that changed is left unwritten when a call ends
//!
//! Not in its records, and so gone with a move of the coordinator: how the topology fits the topics (looked at again with the next
//! heartbeat), the endpoints' epoch, reported offsets, members that missed an answer, and a request to shut down.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{ErrorCode, Map, MonotonicMs, Text};

use super::member::StreamsMember;
use super::topology::{Configured, Topology};
use crate::Response;
use crate::assignment::streams::Offsets;
use crate::assignment::streams::{Held, Role, Target, each, each_active};
use crate::framework::{BatchId, Ticket};
use crate::groups::reconciled::FIRST_EPOCH;
use crate::groups::reconciled::Unwritten;
use crate::outbox::{GroupThen, Outbox};
use crate::records::{Entry, GroupKind};

type TaskId = (Text, i32);

/// How far a member's tasks have come, as it said last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TaskOffsets {
    pub offsets: Arc<Offsets>,
    pub ends: Arc<Offsets>,
}

#[derive(Debug)]
pub(crate) struct StreamsGroup {
    pub id: Text,
    pub epoch: i32,
    /// When the epoch was raised last; not since the group was loaded: `None`.
    pub raised_at: Option<MonotonicMs>,
    pub metadata_hash: i64,
    /// Of the topology that all topics are there for; −1: they are not.
    pub validated_epoch: i32,
    /// What assignors were told when the epoch was last raised.
    pub assignment_configs: BTreeMap<Text, Text>,
    /// The group epoch that the target is for.
    pub assignment_epoch: i32,
    /// When the target was made, by the wall clock; 0: never, or by nobody who is here.
    pub assignment_timestamp: i64,
    /// Kept for a plug-in of Kafka's; this build has none.
    pub description_epochs: (i32, i32),
    pub topology: Option<Arc<Topology>>,
    /// `None`: to be looked at.
    pub configured: Option<Arc<Configured>>,
    members: BTreeMap<Text, Arc<StreamsMember>>,
    pub targets: BTreeMap<Text, Arc<Target>>,
    static_members: Map<Text, Text>,
    owners: Map<TaskId, Text>,
    standbys: Map<TaskId, BTreeSet<Text>>,
    warmups: Map<TaskId, BTreeSet<Text>>,
    pub task_offsets: BTreeMap<Text, TaskOffsets>,
    /// Members that may have missed an answer: the last heartbeat named other tasks than they have, or the group was just loaded.
    pub doubted: BTreeSet<Text>,
    /// When its topics are looked at again though nothing is known to have changed.
    pub refresh_at: MonotonicMs,
    /// The group epoch that a target is being made for, elsewhere.
    pub assigning: Option<i32>,
    /// The member that asked for the whole application to shut down.
    pub shutdown_by: Option<Text>,
    /// Counts what changed about who serves what.
    pub endpoint_epoch: i32,
    pub unwritten: Unwritten<Entry>,
    /// How often the epoch was raised since that was last counted.
    raises: u64,
}

impl StreamsGroup {
    pub fn new(id: Text) -> Self {
        Self {
            id,
            epoch: FIRST_EPOCH,
            raised_at: None,
            metadata_hash: 0,
            validated_epoch: -1,
            assignment_configs: BTreeMap::new(),
            assignment_epoch: FIRST_EPOCH,
            assignment_timestamp: 0,
            description_epochs: (-1, -1),
            topology: None,
            configured: None,
            members: BTreeMap::new(),
            targets: BTreeMap::new(),
            static_members: Map::default(),
            owners: Map::default(),
            standbys: Map::default(),
            warmups: Map::default(),
            task_offsets: BTreeMap::new(),
            doubted: BTreeSet::new(),
            refresh_at: MonotonicMs(0),
            assigning: None,
            shutdown_by: None,
            endpoint_epoch: 0,
            unwritten: Unwritten::default(),
            raises: 0,
        }
    }

    pub fn members(&self) -> &BTreeMap<Text, Arc<StreamsMember>> {
        &self.members
    }

    pub fn member(&self, id: &str) -> Option<&Arc<StreamsMember>> {
        self.members.get(id)
    }

    pub fn static_member(&self, instance: &str) -> Option<&Arc<StreamsMember>> {
        self.members.get(self.static_members.get(instance)?)
    }

    pub fn static_members(&self) -> &Map<Text, Text> {
        &self.static_members
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub fn owners(&self) -> &Map<TaskId, Text> {
        &self.owners
    }

    pub fn all_holders(&self, role: Role) -> &Map<TaskId, BTreeSet<Text>> {
        match role {
            Role::Standby => &self.standbys,
            Role::Warmup => &self.warmups,
        }
    }

    pub fn owner(&self, subtopology: &Text, partition: i32) -> Option<&Text> {
        self.owners.get(&(subtopology.clone(), partition))
    }

    pub fn holders(&self, role: Role, subtopology: &Text, partition: i32) -> Option<&BTreeSet<Text>> {
        self.all_holders(role).get(&(subtopology.clone(), partition))
    }

    /// Whether its tasks read this topic.
    pub fn is_subscribed(&self, topic: &str) -> bool {
        !self.is_empty()
            && self.topology.as_ref().is_some_and(|topology| topology.sources.contains_key(topic))
    }

    /// Whether its tasks need this topic for anything.
    pub fn needs(&self, topic: &str) -> bool {
        self.topology.as_ref().is_some_and(|topology| topology.required.contains(topic))
    }

    /// Kafka's word for the state it is in.
    ///
    /// # Source
    /// Kafka 4.4 `StreamsGroup.maybeUpdateGroupState`.
    pub fn state_name(&self) -> &'static str {
        let validated = self.validated_epoch;
        if self.members.is_empty() {
            "Empty"
        } else if self.topology.as_ref().is_none_or(|topology| topology.epoch() != validated) {
            "NotReady"
        } else if self.epoch > self.assignment_epoch {
            "Assigning"
        } else if self.members.values().all(|member| member.is_reconciled_to(self.assignment_epoch)) {
            "Stable"
        } else {
            "Reconciling"
        }
    }

    /// Adds a member, or replaces it by what it is now.
    pub fn put(&mut self, member: StreamsMember) {
        let id = member.id.clone();
        let member = Arc::new(member);
        let old = self.members.insert(id.clone(), Arc::clone(&member));
        let keeps = old.as_ref().is_some_and(|old| {
            Arc::ptr_eq(&old.assigned, &member.assigned) && Arc::ptr_eq(&old.revoking, &member.revoking)
        });
        if let Some(old) = &old {
            self.forget_instance(old);
            if !keeps {
                self.disown(old);
            }
        }
        if let Some(instance) = &member.instance {
            self.static_members.insert(instance.clone(), id.clone());
        }
        if !keeps {
            self.own(&id, &member.revoking);
            self.own(&id, &member.assigned);
        }
    }

    pub fn remove(&mut self, id: &str) -> Option<Arc<StreamsMember>> {
        let old = self.members.remove(id)?;
        self.forget_instance(&old);
        self.disown(&old);
        self.task_offsets.remove(id);
        self.doubted.remove(id);
        if self.members.is_empty() {
            self.shutdown_by = None;
        }
        Some(old)
    }

    fn forget_instance(&mut self, member: &StreamsMember) {
        if let Some(instance) = &member.instance
            && self.static_members.get(instance) == Some(&member.id)
        {
            self.static_members.remove(instance);
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

    /// A log that lacks a batch may give an active task to two members: the later record holds.
    pub fn settle_claims(&mut self) {
        let ids: Vec<Text> = self.members.keys().cloned().collect();
        for id in ids {
            let Some(member) = self.members.get(&id).cloned() else { continue };
            let owns = |held: &Held| {
                each_active(&held.active).all(|(name, partition)| self.owner(name, partition) == Some(&id))
            };
            if owns(&member.assigned) && owns(&member.revoking) {
                continue;
            }
            let cut = |held: &Held| {
                let mut held = held.clone();
                for (name, partitions) in &mut held.active {
                    partitions.retain(|partition, _| self.owner(name, *partition) == Some(&id));
                }
                held.active.retain(|_, partitions| !partitions.is_empty());
                Arc::new(held)
            };
            let cut = StreamsMember {
                assigned: cut(&member.assigned),
                revoking: cut(&member.revoking),
                ..(*member).clone()
            };
            self.put(cut);
            self.note(Entry::Current(id));
        }
    }

    /// A log that lacks a batch may hold two members of one instance id: the one that had left for a moment goes.
    fn drop_replaced(&mut self, now: MonotonicMs) {
        let mut newest: BTreeMap<Text, (i32, Text)> = BTreeMap::new();
        let mut gone = Vec::new();
        for (id, member) in &self.members {
            let Some(instance) = &member.instance else { continue };
            let this = (member.epoch, id.clone());
            match newest.get(instance) {
                Some(other) if *other > this => gone.push(id.clone()),
                Some(other) => {
                    gone.push(other.1.clone());
                    newest.insert(instance.clone(), this);
                }
                None => {
                    newest.insert(instance.clone(), this);
                }
            }
        }
        let has_gone = !gone.is_empty();
        for id in gone {
            self.remove(&id);
            for entry in [Entry::Current(id.clone()), Entry::Target(id.clone()), Entry::Member(id)] {
                self.note(entry);
            }
        }
        self.static_members = newest.into_iter().map(|(instance, (_, id))| (instance, id)).collect();
        if has_gone {
            self.raise(now);
        }
    }

    /// What a log that lacks a batch has left behind: members that were replaced, targets of nobody, epochs ahead of what they
    /// follow.
    pub fn drop_strays(&mut self, now: MonotonicMs) {
        self.drop_replaced(now);
        let members = &self.members;
        let strays: Vec<Text> =
            self.targets.keys().filter(|id| !members.contains_key(*id)).cloned().collect();
        for id in strays {
            self.targets.remove(&id);
            self.note(Entry::Target(id));
        }
        let newest = self.members.values().map(|member| member.epoch).max().unwrap_or(0);
        if self.assignment_epoch < newest || self.epoch < self.assignment_epoch.max(newest) {
            // A new target is made, in an epoch that nobody has seen.
            self.epoch = self.epoch.max(self.assignment_epoch).max(newest).saturating_add(1);
            self.note(Entry::Group);
            if self.assignment_epoch < newest {
                self.assignment_epoch = newest;
                self.note(Entry::TargetEpoch);
            }
        }
    }

    /// Whether every task is one member's in the target, if the target is the newest. Not so after a batch with a part of it was
    /// lost and the broker ended before it was written again.
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

    /// Raises the group's epoch: a new target is to be made.
    pub fn raise(&mut self, now: MonotonicMs) {
        self.raised_at = Some(now);
        self.raises += 1;
        self.epoch = self.epoch.saturating_add(1);
        self.note(Entry::Group);
    }

    /// This record is to be written anew.
    pub fn note(&mut self, entry: Entry) {
        self.unwritten.note(entry);
    }

    /// Hands out the records that changed.
    pub fn flush(&mut self, out: &mut Outbox) {
        out.counts.streams_rebalances += std::mem::take(&mut self.raises);
        let mut unwritten = std::mem::take(&mut self.unwritten);
        let then = |entries| GroupThen::Written { kind: GroupKind::Streams, group: self.id.clone(), entries };
        unwritten.flush(&self.id, |entry| self.record(entry), then, out);
        self.unwritten = unwritten;
    }

    /// A batch with these entries never got to disk.
    pub fn lost(&mut self, entries: Vec<Entry>, out: &mut Outbox) {
        self.unwritten.lose(&self.id, entries, out);
    }

    pub fn last_batch(&self) -> BatchId {
        self.unwritten.last_batch
    }

    /// Writes what changed, and answers once it is on disk.
    pub fn answer(&mut self, ticket: Ticket, response: Response, out: &mut Outbox) {
        self.flush(out);
        out.answer_after(self.last_batch(), ticket, response);
    }

    /// Whether this member may commit offsets with this epoch: its own, or an earlier one as long as it has held the tasks since
    /// then (KIP-1251).
    ///
    /// # Source
    /// Kafka 4.4 `StreamsGroup.validateOffsetCommit`.
    pub fn check_commit<'a>(
        &self,
        member_id: &str,
        epoch: i32,
        mut partitions: impl Iterator<Item = (&'a str, i32)>,
    ) -> Result<(), ErrorCode> {
        let member = self.member(member_id).ok_or(ErrorCode::UnknownMemberId)?;
        if epoch == member.epoch {
            return Ok(());
        }
        let holds = |(topic, partition): (&str, i32)| {
            let subtopology = self.topology.as_ref().and_then(|topology| topology.sources.get(topic));
            let since = subtopology.and_then(|id| member.assignment_epoch(id, partition));
            since.is_some_and(|since| epoch >= since)
        };
        if epoch < member.epoch && partitions.all(holds) { Ok(()) } else { Err(ErrorCode::StaleMemberEpoch) }
    }

    /// Whether this member may fetch offsets with this epoch. Nobody in particular may.
    pub fn check_fetch(&self, member_id: Option<&str>, epoch: i32) -> Result<(), ErrorCode> {
        if member_id.is_none() && epoch < 0 {
            return Ok(());
        }
        let member = self.member(member_id.unwrap_or_default()).ok_or(ErrorCode::UnknownMemberId)?;
        if epoch == member.epoch { Ok(()) } else { Err(ErrorCode::StaleMemberEpoch) }
    }

    #[cfg(test)]
    pub fn plant_owner(&mut self, subtopology: &str, partition: i32, owner: &str) {
        self.owners.insert((subtopology.into(), partition), owner.into());
    }

    #[cfg(test)]
    pub fn plant_standby(&mut self, subtopology: &str, partition: i32, holder: &str) {
        self.standbys.entry((subtopology.into(), partition)).or_default().insert(holder.into());
    }

    #[cfg(test)]
    pub fn plant_instance(&mut self, instance: &str, member: &str) {
        self.static_members.insert(instance.into(), member.into());
    }
}
