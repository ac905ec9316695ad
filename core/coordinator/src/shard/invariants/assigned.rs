//! Of groups whose coordinator assigns, whatever their type: consumer, streams and share groups. What they are asked for they show by
//! parts, as they have nothing else in common.

use barnabas_base::{Map, Text};

use crate::GroupShard;
use crate::outbox::TimerKey;

/// `instance_of`: by which instance id a member goes. `statics`: how many go by one.
pub(super) fn instances_are_members<'a>(
    known: &Map<Text, Text>,
    instance_of: impl Fn(&Text) -> Option<&'a Text>,
    statics: usize,
) -> Option<String> {
    let stray = known.iter().find(|(instance, id)| instance_of(id) != Some(instance));
    if let Some((instance, id)) = stray {
        return Some(format!("instance {instance} stands for {id}, which is not its"));
    }
    (statics != known.len()).then(|| format!("{statics} static members, not all known"))
}

pub(super) fn targets_are_members<'a>(
    mut targets: impl Iterator<Item = &'a Text>,
    is_member: impl Fn(&Text) -> bool,
) -> Option<String> {
    let stranger = targets.find(|id| !is_member(id));
    stranger.map(|id| format!("{id} has a target and is no member"))
}

/// No member is ahead of the target, nor the target of the group.
pub(super) fn epochs_follow<'a>(
    (epoch, assignment_epoch): (i32, i32),
    mut members: impl Iterator<Item = (&'a Text, i32)>,
) -> Option<String> {
    if assignment_epoch > epoch {
        return Some(format!("its target is of {assignment_epoch}, it is in {epoch}"));
    }
    let ahead = members.find(|(_, epoch)| *epoch > assignment_epoch);
    ahead.map(|(id, epoch)| format!("{id} is in {epoch}, the target of {assignment_epoch}"))
}

/// Whoever is gone is found out in the end.
pub(super) fn members_are_watched<'a>(
    shard: &GroupShard,
    group: &Text,
    mut members: impl Iterator<Item = &'a Text>,
) -> Option<String> {
    let unwatched = members.find(|member| {
        let key = TimerKey::Session { group: group.clone(), member: (*member).clone() };
        !shard.out.timers.is_set(&key)
    });
    unwatched.map(|id| format!("nobody watches member {id}"))
}

pub(super) fn lost_entries_are_watched(shard: &GroupShard, group: &Text, has_lost: bool) -> Option<String> {
    let is_watched = shard.out.timers.is_set(&TimerKey::Save(group.clone()));
    (has_lost && !is_watched).then(|| "what was lost is written again by nobody".to_owned())
}
