//! What must hold of a shard after every call, one function for each. Tests and the simulator ask after every step;
//! each function has a planted bug in the tests that makes it speak.

use std::collections::BTreeMap;

use barnabas_base::{Map, Set, Text};

use crate::GroupShard;
use crate::framework::Ticket;
use crate::groups::Group;
use crate::groups::classic::{ClassicGroup, State};
use crate::outbox::TimerKey;

mod consumer;
mod reconciled;
mod share;
mod streams;
#[cfg(test)]
mod tests;

pub(crate) fn violations(shard: &GroupShard) -> Vec<String> {
    let mut found = Vec::new();
    for (id, group) in &shard.groups {
        let of_its_kind = match group {
            Group::Classic(group) => classic(shard, group),
            Group::Consumer(group) => {
                [reconciled::violations(shard, group), consumer::violations(group)].concat()
            }
            Group::Streams(group) => {
                [reconciled::violations(shard, group), streams::violations(shard, group)].concat()
            }
            Group::Share(group) => {
                [reconciled::violations(shard, group), share::violations(shard, group)].concat()
            }
        };
        let named = (id != group.id()).then(|| format!("is called {}", group.id()));
        let all = named.into_iter().chain(of_its_kind);
        found.extend(all.map(|what| format!("group {id}: {what}")));
    }
    found.extend(timers_have_an_object(shard));
    found.extend(tickets_wait_once(shard));
    found.extend(offsets_have_a_group(shard));
    found.extend(offsets_hold_something(shard));
    found
}

fn classic(shard: &GroupShard, group: &ClassicGroup) -> Vec<String> {
    let instance_of = |id: &Text| group.members.get(id).and_then(|member| member.instance.as_ref());
    let statics = group.members.values().filter(|member| member.is_static()).count();
    let checks = [
        state_fits_members(group),
        counts_are_true(group),
        instances_are_members(&group.static_members, instance_of, statics),
        members_speak_one_protocol(group),
        pending_are_strangers(group),
        members_are_watched(shard, group),
        phases_are_watched(shard, group),
    ];
    checks.into_iter().flatten().collect()
}

fn state_fits_members(group: &ClassicGroup) -> Option<String> {
    let state = group.state.name();
    let leads = group.leader.as_ref().is_some_and(|leader| group.members.contains_key(leader));
    match group.state {
        State::Empty if !group.members.is_empty() => Some("is Empty and has members".to_owned()),
        State::CompletingRebalance | State::Stable if group.members.is_empty() => {
            Some(format!("is {state} and has no members"))
        }
        _ if !group.members.is_empty() && !leads => Some(format!("is {state} and has no leader")),
        State::CompletingRebalance | State::Stable if group.protocol.is_none() => {
            Some(format!("is {state} and speaks nothing"))
        }
        _ => None,
    }
}

fn counts_are_true(group: &ClassicGroup) -> Option<String> {
    let awaiting = group.members.values().filter(|member| member.join.is_some()).count();
    if awaiting != group.awaiting_join {
        return Some(format!("{awaiting} wait to join, {} counted", group.awaiting_join));
    }
    let mut supported: BTreeMap<&Text, usize> = BTreeMap::new();
    for name in group.members.values().flat_map(|member| member.protocols.names()) {
        *supported.entry(name).or_default() += 1;
    }
    let counted: BTreeMap<&Text, usize> =
        group.supported.iter().map(|(name, count)| (name, *count)).collect();
    (supported != counted).then(|| format!("protocols {supported:?}, counted {counted:?}"))
}

/// `instance_of`: by which instance id a member goes. `statics`: how many go by one.
fn instances_are_members<'a>(
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

fn members_speak_one_protocol(group: &ClassicGroup) -> Option<String> {
    let common = group.supported.values().any(|count| *count == group.members.len());
    (!group.members.is_empty() && !common).then(|| "its members have no protocol in common".to_owned())
}

fn pending_are_strangers(group: &ClassicGroup) -> Option<String> {
    if let Some(id) = group.pending_members.iter().find(|id| group.members.contains_key(*id)) {
        return Some(format!("{id} is a member and pending"));
    }
    let stranger = group.pending_sync.iter().find(|id| !group.members.contains_key(*id));
    stranger.map(|id| format!("{id} is to sync and no member"))
}

/// Every member has a timer that ends its session.
fn members_are_watched(shard: &GroupShard, group: &ClassicGroup) -> Option<String> {
    let is_watched = |member: &Text| {
        let key = TimerKey::Session { group: group.id.clone(), member: member.clone() };
        shard.out.timers.is_set(&key)
    };
    let unwatched = group.members.iter().find(|(id, member)| !member.is_excused() && !is_watched(id));
    if let Some((id, _)) = unwatched {
        return Some(format!("no timer for member {id}"));
    }
    let unwatched = group.pending_members.iter().find(|id| !is_watched(id));
    unwatched.map(|id| format!("no timer for pending member {id}"))
}

/// No phase of a rebalance lasts for ever, and none is watched for longer than it lasts.
fn phases_are_watched(shard: &GroupShard, group: &ClassicGroup) -> Option<String> {
    let join = shard.out.timers.is_set(&TimerKey::Join(group.id.clone()));
    let sync = shard.out.timers.is_set(&TimerKey::Sync(group.id.clone()));
    match group.state {
        State::PreparingRebalance if !join => Some("no timer for the join phase".to_owned()),
        State::Empty | State::CompletingRebalance | State::Stable if join => {
            Some("a join phase that is over is watched".to_owned())
        }
        State::Empty | State::PreparingRebalance if sync => {
            Some("a sync phase that is over is watched".to_owned())
        }
        State::CompletingRebalance if !sync && !group.pending_sync.is_empty() => {
            Some("no timer for the sync phase".to_owned())
        }
        State::CompletingRebalance if group.pending_sync.is_empty() && group.storing.is_none() => {
            Some("everybody has synced and nothing is on its way to disk".to_owned())
        }
        _ => None,
    }
}

fn timers_have_an_object(shard: &GroupShard) -> Option<String> {
    let expected = shard.groups.values().map(|group| match group {
        Group::Classic(group) => group.members.len() + group.pending_members.len() + 3,
        Group::Consumer(group) => group.members().len() * 4 + 1,
        Group::Streams(group) => group.members().len() * 2 + 2,
        Group::Share(group) => group.members().len() + 1,
    });
    let max = expected.sum::<usize>() + 1;
    let timers = shard.out.timers.len();
    (timers > max).then(|| format!("{timers} timers where at most {max} can mean something"))
}

fn tickets_wait_once(shard: &GroupShard) -> Option<String> {
    let mut seen: Set<Ticket> = Set::default();
    let members = shard.groups.values().filter_map(|group| match group {
        Group::Classic(group) => Some(group.members.values()),
        Group::Consumer(_) | Group::Streams(_) | Group::Share(_) => None,
    });
    let parked = members.flatten().flat_map(|member| [member.join, member.sync]).flatten();
    let held = shard.out.pending.tickets();
    let ordered = shard.share_orders.values().flat_map(|awaiting| awaiting.tickets());
    let twice = parked.chain(held).chain(ordered).find(|ticket| !seen.insert(*ticket));
    twice.map(|ticket| format!("ticket {} waits twice", ticket.0))
}

fn offsets_have_a_group(shard: &GroupShard) -> Option<String> {
    let orphan = shard.offsets.group_ids().into_iter().find(|id| {
        let on_its_way_out = || {
            let slots = shard.offsets.of_group(id).into_iter().flat_map(BTreeMap::values);
            slots.flat_map(BTreeMap::values).all(|slot| slot.latest().is_none())
        };
        !shard.groups.contains_key(id) && !on_its_way_out()
    });
    orphan.map(|id| format!("offsets of group {id}, which is not there"))
}

fn offsets_hold_something(shard: &GroupShard) -> Option<String> {
    for (group, topics) in shard.offsets.by_group() {
        let is_hollow = topics.is_empty()
            || topics
                .values()
                .any(|partitions| partitions.is_empty() || partitions.values().any(|slot| slot.is_gone()));
        if is_hollow {
            return Some(format!("group {group} keeps an offset that is none"));
        }
    }
    None
}
