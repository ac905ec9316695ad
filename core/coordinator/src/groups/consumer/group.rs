//! What a consumer group knows beside what every group does.
//!
//! Always true (checked by `shard/invariants/consumer.rs`):
//! 1. a partition has one owner, and that member has it
//! 2. what is counted (names, expressions, assignors, classic members and their protocols) is what counting would give
//! 3. a resolved expression is one that some member subscribes by

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{ErrorCode, Map, Set, Text, TopicId};

use super::Consumer;
use super::member::ConsumerMember;
use crate::assignment::Resolved;
use crate::framework::weight;
use crate::groups::reconciled::{MemberState, Names, ReconciledGroup, World, tally};
use crate::records::Entry;

pub(crate) type ConsumerGroup = ReconciledGroup<Consumer>;

#[derive(Debug, Default)]
pub(crate) struct Own {
    pub names: Names,
    pub resolved: BTreeMap<Text, Resolved>,
    owners: Map<TopicId, Map<i32, Text>>,
    patterns: BTreeMap<Text, usize>,
    assignors: BTreeMap<Text, usize>,
    classic_members: usize,
    classic_protocols: BTreeMap<Text, usize>,
    /// Its expressions are being resolved, elsewhere.
    pub resolving: bool,
    /// A record of Kafka up to 4.0 is there and to go.
    pub has_partition_metadata: bool,
}

impl Own {
    pub fn count(&mut self, old: Option<&ConsumerMember>, new: Option<&ConsumerMember>) {
        self.names.change(old.map(|member| &member.own.names), new.map(|member| &member.own.names));
        old.into_iter().for_each(|member| self.tally(member, false));
        new.into_iter().for_each(|member| self.tally(member, true));
        if let (Some(old), Some(new)) = (old, new)
            && Arc::ptr_eq(&old.assigned, &new.assigned)
            && Arc::ptr_eq(&old.revoking, &new.revoking)
        {
            return;
        }
        old.into_iter().for_each(|member| self.disown(member));
        new.into_iter().for_each(|member| self.own(member));
    }

    fn own(&mut self, member: &ConsumerMember) {
        for (topic, partition) in member.holdings() {
            self.owners.entry(topic).or_default().insert(partition, member.id.clone());
        }
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

    fn tally(&mut self, member: &ConsumerMember, here: bool) {
        member.pattern().into_iter().for_each(|pattern| tally(&mut self.patterns, pattern, here));
        member.own.assignor.iter().for_each(|assignor| tally(&mut self.assignors, assignor, here));
        if let Some(classic) = &member.own.classic {
            self.classic_members = if here { self.classic_members + 1 } else { self.classic_members - 1 };
            classic.protocols.names().for_each(|name| tally(&mut self.classic_protocols, name, here));
        }
    }
}

impl ReconciledGroup<Consumer> {
    /// What members and what they subscribe to take, beside their structures.
    pub fn bytes(&self) -> usize {
        let mut lists = Set::default();
        let members = self.members().values().map(|member| {
            let is_new = lists.insert(Arc::as_ptr(&member.own.names));
            let names = if is_new { weight::texts(member.own.names.iter()) } else { 0 };
            let held = member.assigned.values().chain(member.revoking.values()).map(BTreeMap::len).sum();
            member.own_bytes() + names + weight::partitions(held) * 2
        });
        let members: usize = members.sum();
        let matched = self.own.resolved.values().map(|resolved| weight::partitions(resolved.topics.len()));
        members + weight::texts(self.names().keys()) + matched.sum::<usize>()
    }

    pub fn classic_members(&self) -> usize {
        self.own.classic_members
    }

    /// Subscribed names with how many members name each.
    pub fn names(&self) -> &BTreeMap<Text, usize> {
        self.own.names.counts()
    }

    /// Expressions with how many members subscribe by each.
    pub fn patterns(&self) -> &BTreeMap<Text, usize> {
        &self.own.patterns
    }

    pub fn classic_protocols(&self) -> &BTreeMap<Text, usize> {
        &self.own.classic_protocols
    }

    pub fn assignors(&self) -> &BTreeMap<Text, usize> {
        &self.own.assignors
    }

    pub fn owners(&self) -> &Map<TopicId, Map<i32, Text>> {
        &self.own.owners
    }

    pub fn owner(&self, topic: TopicId, partition: i32) -> Option<&Text> {
        self.own.owners.get(&topic)?.get(&partition)
    }

    /// Shows every subscribed topic once, in the order of their names.
    pub fn each_topic(&self, mut show: impl FnMut(&Text)) {
        if self.own.resolved.is_empty() {
            return self.names().keys().for_each(show);
        }
        let matched = self.own.resolved.values().flat_map(|resolved| resolved.topics.iter());
        let all: BTreeSet<&Text> = self.names().keys().chain(matched).collect();
        all.into_iter().for_each(&mut show);
    }

    /// The hash over all topics that the group reads and that there are.
    pub fn metadata_hash(&self, world: &mut World) -> i64 {
        world.hash_of_each(|show| self.each_topic(show))
    }

    /// As [`ConsumerGroup::each_topic`], in any order, and some perhaps more than once.
    pub fn topics(&self) -> impl Iterator<Item = &Text> {
        let matched = self.own.resolved.values().flat_map(|resolved| resolved.topics.iter());
        self.names().keys().chain(matched)
    }

    pub fn is_subscribed(&self, topic: &str) -> bool {
        self.names().contains_key(topic)
            || self.own.resolved.values().any(|resolved| resolved.topics.contains(topic))
    }

    /// The assignor that most members ask for; between equals, the first by name. `None`: no member asks for one.
    pub fn preferred_assignor(&self) -> Option<&Text> {
        let most = self.own.assignors.values().max()?;
        self.own.assignors.iter().find(|(_, count)| *count == most).map(|(name, _)| name)
    }

    /// Whether a member that speaks the classic protocol can be one of the group.
    ///
    /// # Source
    /// Kafka `ConsumerGroup.supportsClassicProtocols`.
    pub fn supports<'a>(&self, protocol_type: &str, mut protocols: impl Iterator<Item = &'a Text>) -> bool {
        let is_common = |name: &Text| {
            self.own.classic_protocols.get(name).copied().unwrap_or(0) == self.own.classic_members
        };
        protocol_type == "consumer"
            && if self.is_empty() { protocols.next().is_some() } else { protocols.any(is_common) }
    }

    /// A log that lacks a batch may give a partition to two members: the later record holds.
    pub fn settle_claims(&mut self) {
        let ids: Vec<Text> = self.members().keys().cloned().collect();
        for id in ids {
            let Some(member) = self.member(&id).cloned() else { continue };
            if member.holdings().all(|(topic, partition)| self.owner(topic, partition) == Some(&id)) {
                continue;
            }
            let mut settled = (*member).clone();
            for side in [&mut settled.assigned, &mut settled.revoking] {
                let side = Arc::make_mut(side);
                for (topic, partitions) in side.iter_mut() {
                    partitions.retain(|partition, _| self.owner(*topic, *partition) == Some(&id));
                }
                side.retain(|_, partitions| !partitions.is_empty());
            }
            self.take_step(settled);
        }
    }

    /// A log that lacks a batch may hold resolved expressions that no member subscribes by.
    pub fn drop_unused_expressions(&mut self) {
        let Own { resolved, patterns, .. } = &self.own;
        let unused: Vec<Text> = resolved.keys().filter(|id| !patterns.contains_key(*id)).cloned().collect();
        for pattern in unused {
            self.own.resolved.remove(&pattern);
            self.note(Entry::Regex(pattern));
        }
    }

    #[cfg(test)]
    pub fn plant_owner(&mut self, topic: TopicId, partition: i32, owner: &str) {
        self.own.owners.entry(topic).or_default().insert(partition, owner.into());
    }

    /// Whether this member may commit offsets of these partitions with this epoch.
    ///
    /// # Errors
    /// As [`ReconciledGroup::check_committer`].
    pub fn check_commit(
        &self,
        id: &str,
        epoch: i32,
        mut partitions: impl Iterator<Item = (TopicId, i32)>,
    ) -> Result<(), ErrorCode> {
        self.check_committer(id, epoch, |member| {
            partitions.all(|(topic, partition)| {
                member.assignment_epoch(topic, partition).is_some_and(|since| epoch >= since)
            })
        })
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
