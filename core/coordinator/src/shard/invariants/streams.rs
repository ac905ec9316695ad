//! Of streams groups: one function for each of [`crate::groups::streams::StreamsGroup`]'s.

use std::collections::BTreeSet;

use barnabas_base::{Map, Text};

use super::assigned::{
    epochs_follow, instances_are_members, lost_entries_are_watched, members_are_watched, targets_are_members,
};
use crate::GroupShard;
use crate::assignment::streams::{Role, each, each_active};
use crate::groups::reconciled::{AWAY, MemberState};
use crate::groups::streams::StreamsGroup;
use crate::outbox::TimerKey;

pub(super) fn violations(shard: &GroupShard, group: &StreamsGroup) -> Vec<String> {
    let instance_of = |id: &Text| group.member(id).and_then(|member| member.instance.as_ref());
    let statics = group.members().values().filter(|member| member.instance.is_some()).count();
    let epochs = (group.epoch, group.assignment_epoch);
    let members = group.members().iter().map(|(id, member)| (id, member.epoch));
    let checks = [
        tasks_have_one_owner(group),
        copies_are_counted(group, Role::Standby),
        copies_are_counted(group, Role::Warmup),
        instances_are_members(group.static_members(), instance_of, statics),
        targets_are_members(group.targets.keys(), |id| group.member(id).is_some()),
        offsets_are_members(group),
        epochs_follow(epochs, members),
        everything_is_written(group),
        members_are_watched(shard, &group.id, group.members().keys()),
        revocations_are_watched(shard, group),
        lost_entries_are_watched(shard, &group.id, group.unwritten.has_lost()),
    ];
    checks.into_iter().flatten().collect()
}

fn tasks_have_one_owner(group: &StreamsGroup) -> Option<String> {
    let mut owners: Map<(Text, i32), Text> = Map::default();
    for (id, member) in group.members() {
        let held = each_active(&member.assigned.active).chain(each_active(&member.revoking.active));
        for (subtopology, partition) in held {
            if let Some(other) = owners.insert((subtopology.clone(), partition), id.clone()) {
                return Some(format!("{id} and {other} both run task {subtopology}_{partition}"));
            }
        }
    }
    (owners != *group.owners()).then(|| "its owners are not who runs what".to_owned())
}

fn copies_are_counted(group: &StreamsGroup, role: Role) -> Option<String> {
    let mut holders: Map<(Text, i32), BTreeSet<Text>> = Map::default();
    for (id, member) in group.members() {
        let held = each(member.assigned.replicas(role)).chain(each(member.revoking.replicas(role)));
        for (subtopology, partition) in held {
            holders.entry((subtopology.clone(), partition)).or_default().insert(id.clone());
        }
    }
    (holders != *group.all_holders(role)).then(|| format!("its {role:?} tasks are not who has what"))
}

fn offsets_are_members(group: &StreamsGroup) -> Option<String> {
    let stranger = group.own.task_offsets.keys().find(|id| group.member(id).is_none());
    stranger.map(|id| format!("{id} has task offsets and is no member"))
}

fn everything_is_written(group: &StreamsGroup) -> Option<String> {
    (!group.unwritten.is_flushed()).then(|| "something changed and was not handed out".to_owned())
}

/// Nobody keeps for ever what others wait for.
fn revocations_are_watched(shard: &GroupShard, group: &StreamsGroup) -> Option<String> {
    let unwatched = group.members().iter().find(|(id, member)| {
        let key = TimerKey::Rebalance { group: group.id.clone(), member: (*id).clone() };
        member.state == MemberState::Unrevoked && member.epoch != AWAY && !shard.out.timers.is_set(&key)
    });
    unwatched.map(|(id, _)| format!("nobody watches what {id} is to give up"))
}

#[cfg(test)]
mod tests;
