//! What must hold of share groups beside what must of every group.

use std::collections::BTreeMap;

use barnabas_base::Text;

use crate::GroupShard;
use crate::groups::share::ShareGroup;

pub(super) fn violations(shard: &GroupShard, group: &ShareGroup) -> Vec<String> {
    let checks = [counts_are_true(group), assigned_is_set_up(group), order_is_known(shard, group)];
    checks.into_iter().flatten().collect()
}

fn counts_are_true(group: &ShareGroup) -> Option<String> {
    let mut names: BTreeMap<Text, usize> = BTreeMap::new();
    for name in group.members().values().flat_map(|member| member.own.names.iter()) {
        *names.entry(name.clone()).or_default() += 1;
    }
    (names != *group.names()).then(|| format!("names {names:?}, counted {:?}", group.names()))
}

/// Every assigned partition is initialized. Targets may name deleted topics.
fn assigned_is_set_up(group: &ShareGroup) -> Option<String> {
    for member in group.members().values().filter(|member| member.epoch == group.assignment_epoch) {
        for (topic, partitions) in member.assigned.iter() {
            let Some(known) = group.own.set_up.initialized.get(topic) else { continue };
            if let Some(partition) = partitions.iter().find(|partition| !known.partitions.contains(partition))
            {
                return Some(format!("{} has {topic}-{partition}, which is not set up", member.id));
            }
        }
    }
    None
}

fn order_is_known(shard: &GroupShard, group: &ShareGroup) -> Option<String> {
    let order = group.own.order.filter(|number| !shard.share_orders.contains_key(number));
    order.map(|number| format!("waits for order {number}, which does not exist"))
}

#[cfg(test)]
mod tests;
