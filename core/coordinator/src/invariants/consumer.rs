//! Of consumer groups: one function for each of [`crate::consumer::ConsumerGroup`]'s.

use std::collections::BTreeMap;

use barnabas_base::{Map, Text, TopicId};

use crate::GroupShard;
use crate::consumer::ConsumerGroup;
use crate::outbox::TimerKey;

pub(super) fn violations(shard: &GroupShard, group: &ConsumerGroup) -> Vec<String> {
    let checks = [
        partitions_have_one_owner(group),
        instances_are_members(group),
        counts_are_true(group),
        expressions_are_used(group),
        targets_are_members(group),
        epochs_follow(group),
        everything_is_written(group),
        members_are_watched(shard, group),
        lost_entries_are_watched(shard, group),
    ];
    checks.into_iter().flatten().collect()
}

fn partitions_have_one_owner(group: &ConsumerGroup) -> Option<String> {
    let mut owners: Map<TopicId, Map<i32, Text>> = Map::default();
    for (id, member) in group.members() {
        for (topic, partition) in member.holdings() {
            if let Some(other) = owners.entry(topic).or_default().insert(partition, id.clone()) {
                return Some(format!("{id} and {other} both have partition {partition}"));
            }
        }
    }
    (owners != *group.owners()).then(|| "its owners are not who has what".to_owned())
}

fn instances_are_members(group: &ConsumerGroup) -> Option<String> {
    let of = |id: &Text| group.member(id).and_then(|member| member.instance.as_ref());
    let stray = group.static_members().iter().find(|(instance, id)| of(id) != Some(instance));
    if let Some((instance, id)) = stray {
        return Some(format!("instance {instance} stands for {id}, which is not its"));
    }
    let statics = group.members().values().filter(|member| member.instance.is_some()).count();
    (statics != group.static_members().len()).then(|| format!("{statics} static members, not all known"))
}

fn counts_are_true(group: &ConsumerGroup) -> Option<String> {
    let count = |all: Vec<&Text>| {
        let mut counts: BTreeMap<Text, usize> = BTreeMap::new();
        all.into_iter().for_each(|each| *counts.entry(each.clone()).or_default() += 1);
        counts
    };
    let members = || group.members().values();
    let classic = || members().filter_map(|member| member.classic.as_ref());
    let are_true = count(members().flat_map(|member| member.names.iter()).collect()) == *group.names()
        && count(members().filter_map(|member| member.pattern()).collect()) == *group.patterns()
        && count(members().filter_map(|member| member.assignor.as_ref()).collect()) == *group.assignors()
        && count(classic().flat_map(|side| side.protocols.names()).collect()) == *group.classic_protocols()
        && classic().count() == group.classic_members();
    (!are_true).then(|| "what is counted is not what there is".to_owned())
}

fn expressions_are_used(group: &ConsumerGroup) -> Option<String> {
    let unused = group.resolved.keys().find(|pattern| !group.patterns().contains_key(*pattern));
    unused.map(|pattern| format!("nobody subscribes by {pattern}, which is resolved"))
}

fn targets_are_members(group: &ConsumerGroup) -> Option<String> {
    let stranger = group.targets.keys().find(|id| group.member(id).is_none());
    stranger.map(|id| format!("{id} has a target and is no member"))
}

fn epochs_follow(group: &ConsumerGroup) -> Option<String> {
    if group.assignment_epoch > group.epoch {
        return Some(format!("its target is of {}, it is in {}", group.assignment_epoch, group.epoch));
    }
    let ahead = group.members().iter().find(|(_, member)| member.epoch > group.assignment_epoch);
    ahead.map(|(id, member)| format!("{id} is in {}, the target of {}", member.epoch, group.assignment_epoch))
}

fn everything_is_written(group: &ConsumerGroup) -> Option<String> {
    (!group.unwritten.is_flushed()).then(|| "something changed and was not handed out".to_owned())
}

/// Whoever is gone is found out in the end.
fn members_are_watched(shard: &GroupShard, group: &ConsumerGroup) -> Option<String> {
    let unwatched = group.members().keys().find(|member| {
        let key = TimerKey::Session { group: group.id.clone(), member: (*member).clone() };
        !shard.out.timers.is_set(&key)
    });
    unwatched.map(|id| format!("nobody watches member {id}"))
}

fn lost_entries_are_watched(shard: &GroupShard, group: &ConsumerGroup) -> Option<String> {
    let is_watched = shard.out.timers.is_set(&TimerKey::Save(group.id.clone()));
    (group.unwritten.has_lost() && !is_watched).then(|| "what was lost is written again by nobody".to_owned())
}

#[cfg(test)]
mod tests;
