//! What must hold of consumer groups beside what must of every group.

use std::collections::BTreeMap;

use barnabas_base::{Map, Text, TopicId};

use crate::groups::consumer::ConsumerGroup;

pub(super) fn violations(group: &ConsumerGroup) -> Vec<String> {
    let checks = [partitions_have_one_owner(group), counts_are_true(group), expressions_are_used(group)];
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

fn counts_are_true(group: &ConsumerGroup) -> Option<String> {
    let count = |all: Vec<&Text>| {
        let mut counts: BTreeMap<Text, usize> = BTreeMap::new();
        all.into_iter().for_each(|each| *counts.entry(each.clone()).or_default() += 1);
        counts
    };
    let members = || group.members().values();
    let classic = || members().filter_map(|member| member.own.classic.as_ref());
    let are_true = count(members().flat_map(|member| member.own.names.iter()).collect()) == *group.names()
        && count(members().filter_map(|member| member.pattern()).collect()) == *group.patterns()
        && count(members().filter_map(|member| member.own.assignor.as_ref()).collect()) == *group.assignors()
        && count(classic().flat_map(|side| side.protocols.names()).collect()) == *group.classic_protocols()
        && classic().count() == group.classic_members();
    (!are_true).then(|| "what is counted is not what there is".to_owned())
}

fn expressions_are_used(group: &ConsumerGroup) -> Option<String> {
    let unused = group.own.resolved.keys().find(|pattern| !group.patterns().contains_key(*pattern));
    unused.map(|pattern| format!("no member subscribes by {pattern}, which is resolved"))
}

#[cfg(test)]
mod tests;
