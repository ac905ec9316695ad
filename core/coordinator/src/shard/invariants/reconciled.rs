//! Of consumer, share and streams groups alike: one function for each of [`ReconciledGroup`]'s.

use barnabas_base::Text;

use super::instances_are_members;
use crate::GroupShard;
use crate::groups::reconciled::{Kind, ReconciledGroup};
use crate::outbox::TimerKey;

pub(super) fn violations<K: Kind>(shard: &GroupShard, group: &ReconciledGroup<K>) -> Vec<String> {
    let instance_of = |id: &Text| group.member(id).and_then(|member| member.instance.as_ref());
    let statics = group.members().values().filter(|member| member.instance.is_some()).count();
    let checks = [
        instances_are_members(group.static_members(), instance_of, statics),
        targets_are_members(group),
        epochs_follow(group),
        members_are_watched(shard, group),
        everything_is_written(group),
        lost_entries_are_watched(shard, group),
    ];
    checks.into_iter().flatten().collect()
}

fn targets_are_members<K: Kind>(group: &ReconciledGroup<K>) -> Option<String> {
    let stranger = group.targets.keys().find(|id| group.member(id).is_none());
    stranger.map(|id| format!("{id} has a target and is no member"))
}

/// No member is ahead of the target, nor the target of the group.
fn epochs_follow<K: Kind>(group: &ReconciledGroup<K>) -> Option<String> {
    let (epoch, assignment_epoch) = (group.epoch, group.assignment_epoch);
    if assignment_epoch > epoch {
        return Some(format!("its target is of {assignment_epoch}, it is in {epoch}"));
    }
    let ahead = group.members().values().find(|member| member.epoch > assignment_epoch);
    ahead.map(|member| format!("{} is in {}, the target of {assignment_epoch}", member.id, member.epoch))
}

/// A member that is gone is found out in the end.
fn members_are_watched<K: Kind>(shard: &GroupShard, group: &ReconciledGroup<K>) -> Option<String> {
    let unwatched = group.members().keys().find(|member| {
        let key = TimerKey::Session { group: group.id.clone(), member: (*member).clone() };
        !shard.out.timers.is_set(&key)
    });
    unwatched.map(|id| format!("no timer for member {id}"))
}

fn everything_is_written<K: Kind>(group: &ReconciledGroup<K>) -> Option<String> {
    (!group.unwritten.is_flushed()).then(|| "something changed and was not handed out".to_owned())
}

fn lost_entries_are_watched<K: Kind>(shard: &GroupShard, group: &ReconciledGroup<K>) -> Option<String> {
    let is_watched = shard.out.timers.is_set(&TimerKey::Save(group.id.clone()));
    let is_lost = group.unwritten.has_lost() && !is_watched;
    is_lost.then(|| "a lost record is not written again".to_owned())
}

#[cfg(test)]
pub(super) mod tests;
