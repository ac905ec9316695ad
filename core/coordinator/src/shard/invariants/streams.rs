//! What must hold of streams groups beside what must of every group.

use std::collections::BTreeSet;

use barnabas_base::{Map, Text};

use crate::GroupShard;
use crate::assignment::streams::{Role, each, each_active};
use crate::groups::reconciled::{AWAY, MemberState};
use crate::groups::streams::StreamsGroup;
use crate::outbox::TimerKey;

pub(super) fn violations(shard: &GroupShard, group: &StreamsGroup) -> Vec<String> {
    let checks = [
        tasks_have_one_owner(group),
        copies_are_counted(group, Role::Standby),
        copies_are_counted(group, Role::Warmup),
        offsets_are_members(group),
        revocations_are_watched(shard, group),
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

/// No member keeps for ever what others wait for.
fn revocations_are_watched(shard: &GroupShard, group: &StreamsGroup) -> Option<String> {
    let unwatched = group.members().iter().find(|(id, member)| {
        let key = TimerKey::Rebalance { group: group.id.clone(), member: (*id).clone() };
        member.state == MemberState::Unrevoked && member.epoch != AWAY && !shard.out.timers.is_set(&key)
    });
    unwatched.map(|(id, _)| format!("no timer for what {id} has to revoke"))
}

#[cfg(test)]
mod tests;
