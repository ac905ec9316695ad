//! A consumer group: what its records say, and what can be counted from them.
//!
//! Always true (checked by `shard/invariants.rs`):
//! 1. a partition has one owner, and that member has it
//! 2. an instance id stands for exactly one member, and that member has it
//! 3. what is counted (names, expressions, assignors, classic members and their protocols) is what counting would give
//! 4. a resolved expression is one that somebody subscribes by; a target is a member's
//! 5. no member is ahead of the target, the target is not ahead of the group
//! 6. nothing that changed is left unwritten when a call ends

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{ErrorCode, Map, MonotonicMs, Set, Text, TopicId};

use super::member::{ConsumerMember, MemberState};
use crate::Response;
use crate::assignment::{Partitions, Resolved};
use crate::framework::weight;
use crate::framework::{BatchId, Ticket};
use crate::groups::reconciled::FIRST_EPOCH;
use crate::groups::reconciled::{Unwritten, World};
use crate::outbox::{GroupThen, Outbox};
use crate::records::{Entry, GroupKind};

#[derive(Debug)]
pub(crate) struct ConsumerGroup {
    pub id: Text,
    pub epoch: i32,
    /// When the epoch was raised last; not since the group was loaded: `None`.
    pub raised_at: Option<MonotonicMs>,
    pub metadata_hash: i64,
    /// The group epoch that the target is for; [`FIRST_EPOCH`], for an empty target, before the first one is made.
    pub assignment_epoch: i32,
    /// When the target was made, by the wall clock; 0: never.
    pub assignment_timestamp: i64,
    members: BTreeMap<Text, Arc<ConsumerMember>>,
    pub targets: BTreeMap<Text, Arc<Partitions>>,
    pub resolved: BTreeMap<Text, Resolved>,
    owners: Map<TopicId, Map<i32, Text>>,
    static_members: Map<Text, Text>,
    names: BTreeMap<Text, usize>,
    /// Lists of names that members subscribe to: whoever subscribes to the same shares one.
    lists: Set<Arc<Vec<Text>>>,
    patterns: BTreeMap<Text, usize>,
    assignors: BTreeMap<Text, usize>,
    classic_members: usize,
    classic_protocols: BTreeMap<Text, usize>,
    /// When its topics are looked at again though nothing is known to have changed.
    pub refresh_at: MonotonicMs,
    /// The group epoch that a target is being made for, elsewhere.
    pub assigning: Option<i32>,
    /// Its expressions are being resolved, elsewhere.
    pub resolving: bool,
    /// A record of Kafka up to 4.0 is there and to go.
    pub has_partition_metadata: bool,
    pub unwritten: Unwritten<Entry>,
    /// How often the epoch was raised since that was last counted.
    raises: u64,
}

impl ConsumerGroup {
    pub fn new(id: Text) -> Self {
        Self {
            id,
            epoch: FIRST_EPOCH,
            raised_at: None,
            metadata_hash: 0,
            assignment_epoch: FIRST_EPOCH,
            assignment_timestamp: 0,
            members: BTreeMap::new(),
            targets: BTreeMap::new(),
            resolved: BTreeMap::new(),
            owners: Map::default(),
            static_members: Map::default(),
            names: BTreeMap::new(),
            lists: Set::default(),
            patterns: BTreeMap::new(),
            assignors: BTreeMap::new(),
            classic_members: 0,
            classic_protocols: BTreeMap::new(),
            refresh_at: MonotonicMs(0),
            assigning: None,
            resolving: false,
            has_partition_metadata: false,
            unwritten: Unwritten::default(),
            raises: 0,
        }
    }

    pub fn members(&self) -> &BTreeMap<Text, Arc<ConsumerMember>> {
        &self.members
    }

    pub fn member(&self, id: &str) -> Option<&Arc<ConsumerMember>> {
        self.members.get(id)
    }

    pub fn static_member(&self, instance: &str) -> Option<&Arc<ConsumerMember>> {
        self.members.get(self.static_members.get(instance)?)
    }

    pub fn static_members(&self) -> &Map<Text, Text> {
        &self.static_members
    }

    /// What members and what they subscribe to take, beside their structures.
    pub fn bytes(&self) -> usize {
        let mut lists = Set::default();
        let members = self.members.values().map(|member| {
            let is_new = lists.insert(Arc::as_ptr(&member.names));
            let names = if is_new { weight::texts(member.names.iter()) } else { 0 };
            let held = member.assigned.values().chain(member.revoking.values()).map(BTreeMap::len).sum();
            member.own_bytes() + names + weight::partitions(held) * 2
        });
        let members: usize = members.sum();
        let matched = self.resolved.values().map(|resolved| weight::partitions(resolved.topics.len()));
        members + weight::texts(self.names.keys()) + matched.sum::<usize>()
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub fn classic_members(&self) -> usize {
        self.classic_members
    }

    /// Subscribed names with how many members name each.
    pub fn names(&self) -> &BTreeMap<Text, usize> {
        &self.names
    }

    /// Expressions with how many members subscribe by each.
    pub fn patterns(&self) -> &BTreeMap<Text, usize> {
        &self.patterns
    }

    pub fn classic_protocols(&self) -> &BTreeMap<Text, usize> {
        &self.classic_protocols
    }

    pub fn assignors(&self) -> &BTreeMap<Text, usize> {
        &self.assignors
    }

    pub fn owners(&self) -> &Map<TopicId, Map<i32, Text>> {
        &self.owners
    }

    pub fn owner(&self, topic: TopicId, partition: i32) -> Option<&Text> {
        self.owners.get(&topic)?.get(&partition)
    }

    /// Shows every topic that somebody subscribes to, once, in the order of their names.
    pub fn each_topic(&self, mut show: impl FnMut(&Text)) {
        if self.resolved.is_empty() {
            return self.names.keys().for_each(show);
        }
        let matched = self.resolved.values().flat_map(|resolved| resolved.topics.iter());
        let all: BTreeSet<&Text> = self.names.keys().chain(matched).collect();
        all.into_iter().for_each(&mut show);
    }

    /// The hash over all topics that the group reads and that there are.
    pub fn metadata_hash(&self, world: &mut World) -> i64 {
        world.hash_of_each(|show| self.each_topic(show))
    }

    /// As [`ConsumerGroup::each_topic`], in any order, and some perhaps more than once.
    pub fn topics(&self) -> impl Iterator<Item = &Text> {
        let matched = self.resolved.values().flat_map(|resolved| resolved.topics.iter());
        self.names.keys().chain(matched)
    }

    pub fn is_subscribed(&self, topic: &str) -> bool {
        self.names.contains_key(topic)
            || self.resolved.values().any(|resolved| resolved.topics.contains(topic))
    }

    /// The assignor that most members ask for; between equals, the first by name. `None`: nobody asks.
    pub fn preferred_assignor(&self) -> Option<&Text> {
        let most = self.assignors.values().max()?;
        self.assignors.iter().find(|(_, count)| *count == most).map(|(name, _)| name)
    }

    /// Kafka's word for the state it is in.
    pub fn state_name(&self) -> &'static str {
        if self.members.is_empty() {
            "Empty"
        } else if self.epoch > self.assignment_epoch {
            "Assigning"
        } else if self.members.values().all(|member| member.is_reconciled_to(self.assignment_epoch)) {
            "Stable"
        } else {
            "Reconciling"
        }
    }

    /// Whether a member that speaks the classic protocol can be one of the group.
    ///
    /// # Source
    /// Kafka `ConsumerGroup.supportsClassicProtocols`.
    pub fn supports<'a>(&self, protocol_type: &str, mut protocols: impl Iterator<Item = &'a Text>) -> bool {
        let is_common =
            |name: &Text| self.classic_protocols.get(name).copied().unwrap_or(0) == self.classic_members;
        protocol_type == "consumer"
            && if self.is_empty() { protocols.next().is_some() } else { protocols.any(is_common) }
    }

    /// Adds a member, or replaces it by what it is now.
    pub fn put(&mut self, member: ConsumerMember) {
        let id = member.id.clone();
        let member = Arc::new(member);
        let old = self.members.insert(id.clone(), Arc::clone(&member));
        let keeps_holdings = old.as_ref().is_some_and(|old| {
            Arc::ptr_eq(&old.assigned, &member.assigned) && Arc::ptr_eq(&old.revoking, &member.revoking)
        });
        let keeps_names = old.as_ref().is_some_and(|old| Arc::ptr_eq(&old.names, &member.names));
        if let Some(old) = &old {
            self.count(old, keeps_names, false);
            if !keeps_holdings {
                self.disown(old);
            }
        }
        self.count(&member, keeps_names, true);
        if !keeps_holdings {
            for (topic, partition) in member.holdings() {
                self.owners.entry(topic).or_default().insert(partition, id.clone());
            }
        }
    }

    pub fn remove(&mut self, id: &str) -> Option<Arc<ConsumerMember>> {
        let old = self.members.remove(id)?;
        self.count(&old, false, false);
        self.disown(&old);
        Some(old)
    }

    /// A list of names that is somebody's already, or this one. Ten thousand members with a thousand names each would otherwise
    /// hold ten million names.
    pub fn shared(&mut self, names: Arc<Vec<Text>>) -> Arc<Vec<Text>> {
        if let Some(known) = self.lists.get(&names) {
            return Arc::clone(known);
        }
        if self.lists.len().is_power_of_two() {
            self.lists.retain(|list| Arc::strong_count(list) > 1);
        }
        self.lists.insert(Arc::clone(&names));
        names
    }

    fn disown(&mut self, member: &ConsumerMember) {
        for (topic, partition) in member.holdings() {
            let Some(partitions) = self.owners.get_mut(&topic) else { continue };
            if partitions.get(&partition).is_some_and(|owner| *owner == member.id) {
                partitions.remove(&partition);
            }
            if partitions.is_empty() {
                self.owners.remove(&topic);
            }
        }
    }

    /// `keeps_names`: its names are counted, and stay.
    fn count(&mut self, member: &ConsumerMember, keeps_names: bool, here: bool) {
        if !keeps_names {
            member.names.iter().for_each(|name| tally(&mut self.names, name, here));
        }
        member.pattern().into_iter().for_each(|pattern| tally(&mut self.patterns, pattern, here));
        member.assignor.iter().for_each(|assignor| tally(&mut self.assignors, assignor, here));
        if let Some(classic) = &member.classic {
            self.classic_members = if here { self.classic_members + 1 } else { self.classic_members - 1 };
            classic.protocols.names().for_each(|name| tally(&mut self.classic_protocols, name, here));
        }
        if let Some(instance) = &member.instance {
            if here {
                self.static_members.insert(instance.clone(), member.id.clone());
            } else if self.static_members.get(instance) == Some(&member.id) {
                self.static_members.remove(instance);
            }
        }
    }

    /// A log that lacks a batch may give a partition to two members: the later record holds.
    pub fn settle_claims(&mut self) {
        let ids: Vec<Text> = self.members.keys().cloned().collect();
        for id in ids {
            let Some(member) = self.members.get(&id).cloned() else { continue };
            if member.holdings().all(|(topic, partition)| self.owner(topic, partition) == Some(&id)) {
                continue;
            }
            let mut cut = (*member).clone();
            for side in [&mut cut.assigned, &mut cut.revoking] {
                let side = Arc::make_mut(side);
                for (topic, partitions) in side.iter_mut() {
                    partitions.retain(|partition, _| self.owner(*topic, *partition) == Some(&id));
                }
                side.retain(|_, partitions| !partitions.is_empty());
            }
            self.put(cut);
            self.note(Entry::Current(id));
        }
    }

    /// A log that lacks a batch may hold two members of one instance id: the one that was replaced goes. It had left for a moment,
    /// or its place in the target was taken; between equals the later record holds.
    fn drop_replaced(&mut self, now: MonotonicMs) {
        let mut newest: BTreeMap<Text, (i32, bool, Text)> = BTreeMap::new();
        let mut gone = Vec::new();
        for (id, member) in &self.members {
            let Some(instance) = &member.instance else { continue };
            let is_named = self.static_members.get(instance) == Some(id);
            let this = (member.epoch, is_named, id.clone());
            match newest.get(instance) {
                Some(other) if *other > this => gone.push(id.clone()),
                other => {
                    gone.extend(other.map(|(.., id)| id.clone()));
                    newest.insert(instance.clone(), this);
                }
            }
        }
        if gone.is_empty() {
            return;
        }
        for id in gone {
            self.remove(&id);
            self.note_all([Entry::Current(id.clone()), Entry::Target(id.clone()), Entry::Member(id)]);
        }
        self.static_members = newest.into_iter().map(|(instance, (.., id))| (instance, id)).collect();
        self.raise(self.metadata_hash, now);
    }

    /// What a log that lacks a batch, or part of a transition, has left behind: members that were replaced, targets of nobody,
    /// expressions that nobody subscribes by, epochs ahead of what they follow. A member of whom nothing is known but where it stands goes
    /// with its session.
    pub fn drop_strays(&mut self, now: MonotonicMs) {
        self.drop_replaced(now);
        let members = &self.members;
        let strays: Vec<Text> =
            self.targets.keys().filter(|id| !members.contains_key(*id)).cloned().collect();
        for id in strays {
            self.targets.remove(&id);
            self.note(Entry::Target(id));
        }
        let patterns = &self.patterns;
        let unused: Vec<Text> =
            self.resolved.keys().filter(|id| !patterns.contains_key(*id)).cloned().collect();
        for pattern in unused {
            self.resolved.remove(&pattern);
            self.note(Entry::Regex(pattern));
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

    /// Raises the group's epoch: a new target is to be made.
    pub fn raise(&mut self, metadata_hash: i64, now: MonotonicMs) {
        self.raised_at = Some(now);
        self.raises += 1;
        self.epoch = self.epoch.saturating_add(1);
        self.metadata_hash = metadata_hash;
        self.note(Entry::Group);
    }

    /// This record is to be written anew.
    pub fn note(&mut self, entry: Entry) {
        self.unwritten.note(entry);
    }

    pub fn note_all(&mut self, entries: impl IntoIterator<Item = Entry>) {
        self.unwritten.note_all(entries);
    }

    /// Hands out the records that changed.
    pub fn flush(&mut self, out: &mut Outbox) {
        out.counts.consumer_rebalances += std::mem::take(&mut self.raises);
        let mut unwritten = std::mem::take(&mut self.unwritten);
        let bytes_max = out.config.batch_bytes_max;
        let record = |entry: &Entry| {
            let mut record = self.record(entry);
            if matches!(entry, Entry::Regex(_)) && record.bytes() > bytes_max {
                // An expression that matches more than a record can hold is resolved anew after a load.
                record.value = None;
            }
            record
        };
        let then =
            |entries| GroupThen::Written { kind: GroupKind::Consumer, group: self.id.clone(), entries };
        unwritten.flush(&self.id, record, then, out);
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

    #[cfg(test)]
    pub fn plant_owner(&mut self, topic: TopicId, partition: i32, owner: &str) {
        self.owners.entry(topic).or_default().insert(partition, owner.into());
    }

    #[cfg(test)]
    pub fn plant_instance(&mut self, instance: &str, member: &str) {
        self.static_members.insert(instance.into(), member.into());
    }

    #[cfg(test)]
    pub fn plant_name(&mut self, name: &str) {
        self.names.insert(name.into(), 1);
    }

    /// Whether this member may commit offsets with this epoch: its own, or an earlier one as long as it has held the partition
    /// since then (KIP-1251).
    ///
    /// # Source
    /// Kafka 4.4 `ConsumerGroup.validateOffsetCommit`.
    pub fn check_commit(
        &self,
        member_id: &str,
        epoch: i32,
        partitions: impl Iterator<Item = (TopicId, i32)>,
    ) -> Result<(), ErrorCode> {
        let member = self.member(member_id).ok_or(ErrorCode::UnknownMemberId)?;
        if epoch == member.epoch {
            return Ok(());
        }
        let stale = Err(wrong_epoch(member));
        if epoch > member.epoch {
            return stale;
        }
        for (topic, partition) in partitions {
            match member.assignment_epoch(topic, partition) {
                Some(since) if epoch >= since => {}
                _ => return stale,
            }
        }
        Ok(())
    }

    /// Whether this member may fetch offsets with this epoch. Nobody in particular may.
    pub fn check_fetch(&self, member_id: Option<&str>, epoch: i32) -> Result<(), ErrorCode> {
        if member_id.is_none() && epoch < 0 {
            return Ok(());
        }
        let member = self.member(member_id.unwrap_or_default()).ok_or(ErrorCode::UnknownMemberId)?;
        if epoch == member.epoch { Ok(()) } else { Err(wrong_epoch(member)) }
    }

    /// Whether the member waits for a partition that another one still has.
    pub fn waits_for_others(&self, member: &ConsumerMember) -> bool {
        member.state == MemberState::Unreleased
            && self.targets.get(&member.id).into_iter().flat_map(|target| target.iter()).any(
                |(topic, partitions)| {
                    let has = member.assigned.get(topic);
                    partitions.iter().any(|partition| {
                        !has.is_some_and(|has| has.contains_key(partition))
                            && self.owner(*topic, *partition).is_some()
                    })
                },
            )
    }
}

/// What a member with another epoch is told, in the words of its protocol.
fn wrong_epoch(member: &ConsumerMember) -> ErrorCode {
    if member.classic.is_some() { ErrorCode::IllegalGeneration } else { ErrorCode::StaleMemberEpoch }
}

fn tally(counts: &mut BTreeMap<Text, usize>, what: &Text, here: bool) {
    if here {
        *counts.entry(what.clone()).or_default() += 1;
    } else if let Some(count) = counts.get_mut(what) {
        *count -= 1;
        if *count == 0 {
            counts.remove(what);
        }
    }
}
