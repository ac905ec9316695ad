//! What must hold of a share group.

use std::collections::BTreeMap;

use barnabas_base::Text;

use crate::GroupShard;
use crate::outbox::TimerKey;
use crate::share_group::ShareGroup;

pub(super) fn violations(shard: &GroupShard, group: &ShareGroup) -> Vec<String> {
    let checks = [
        counts_are_true(group),
        epochs_are_in_order(group),
        targets_are_of_members(group),
        assigned_is_set_up(group),
        members_are_watched(shard, group),
        order_is_known(shard, group),
        (!group.is_written()).then(|| "has changes that nobody writes".to_owned()),
    ];
    checks.into_iter().flatten().collect()
}

fn counts_are_true(group: &ShareGroup) -> Option<String> {
    let mut names: BTreeMap<Text, usize> = BTreeMap::new();
    for name in group.members().values().flat_map(|member| member.names.iter()) {
        *names.entry(name.clone()).or_default() += 1;
    }
    (names != *group.names()).then(|| format!("names {names:?}, counted {:?}", group.names()))
}

fn epochs_are_in_order(group: &ShareGroup) -> Option<String> {
    let ahead = group.members().values().find(|member| member.epoch > group.assignment_epoch);
    if let Some(member) = ahead {
        return Some(format!(
            "{} is in epoch {}, the target in {}",
            member.id, member.epoch, group.assignment_epoch
        ));
    }
    (group.assignment_epoch > group.epoch)
        .then(|| format!("the target is in epoch {}, the group in {}", group.assignment_epoch, group.epoch))
}

fn targets_are_of_members(group: &ShareGroup) -> Option<String> {
    let stray = group.targets.keys().find(|id| !group.members().contains_key(*id));
    stray.map(|id| format!("a target of {id}, which is no member"))
}

/// Whoever is given a partition finds its state. Targets may be of topics that are gone.
fn assigned_is_set_up(group: &ShareGroup) -> Option<String> {
    for member in group.members().values().filter(|member| member.epoch == group.assignment_epoch) {
        for (topic, partitions) in member.assigned.iter() {
            let Some(known) = group.set_up.initialized.get(topic) else { continue };
            if let Some(partition) = partitions.iter().find(|partition| !known.partitions.contains(partition))
            {
                return Some(format!("{} has {topic}-{partition}, which is not set up", member.id));
            }
        }
    }
    None
}

fn members_are_watched(shard: &GroupShard, group: &ShareGroup) -> Option<String> {
    let is_watched = |member: &Text| {
        let key = TimerKey::Session { group: group.id.clone(), member: member.clone() };
        shard.out.timers.is_set(&key)
    };
    let unwatched = group.members().keys().find(|id| !is_watched(id));
    unwatched.map(|id| format!("nobody watches member {id}"))
}

fn order_is_known(shard: &GroupShard, group: &ShareGroup) -> Option<String> {
    let order = group.order.filter(|number| !shard.share_orders.contains_key(number));
    order.map(|number| format!("waits for order {number}, of which nobody knows"))
}

#[cfg(test)]
mod tests;
