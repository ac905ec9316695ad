//! `uniform` where members subscribe to different topics.
//!
//! 1. Everybody keeps what it has and still subscribes to.
//! 2. What is left goes to the subscriber who has least; topics first that give their subscribers most, as those have
//!    least choice.
//! 3. Topic by topic, partitions move from the subscriber who has most to the one who has least, until they differ by
//!    no more than one or a bounded number of rounds is over: with subscriptions that overlap, perfect balance can take
//!    very long.
//!
//! # Source
//! Kafka 4.4 `UniformHeterogeneousAssignmentBuilder`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::TopicId;

use super::{Owners, Partitions, Spec};

/// Rounds over all topics. Where all subscribers of a topic subscribe to the same, one is enough.
const ROUNDS_MAX: usize = 16;

pub(super) fn assign(spec: &Spec) -> Vec<Partitions> {
    let subscribers = spec.subscribers();
    let (mut owners, mut loads) = Owners::kept(spec);
    let mut topics: Vec<TopicId> = subscribers.keys().copied().collect();
    topics.sort_by(|a, b| {
        let size = |topic: &TopicId| {
            (i64::from(spec.partitions_of(*topic)), subscribers.get(topic).map_or(0, Vec::len) as i64)
        };
        let ((a_parts, a_subs), (b_parts, b_subs)) = (size(a), size(b));
        // Partitions for each subscriber, most first: crosswise, as whole numbers.
        (b_parts * a_subs).cmp(&(a_parts * b_subs)).then(a_subs.cmp(&b_subs)).then(a.cmp(b))
    });
    for topic in &topics {
        fill(*topic, &subscribers, &mut owners, &mut loads);
    }
    for _ in 0..ROUNDS_MAX {
        let moved: usize =
            topics.iter().map(|topic| balance(*topic, &subscribers, &mut owners, &mut loads)).sum();
        if moved == 0 {
            break;
        }
    }
    owners.targets(spec.candidates.len())
}

type Subscribers = BTreeMap<TopicId, Vec<usize>>;

/// Assigns the unowned partitions of a topic.
fn fill(topic: TopicId, subscribers: &Subscribers, owners: &mut Owners, loads: &mut [usize]) {
    let (Some(subscribers), Some(slots)) = (subscribers.get(&topic), owners.0.get_mut(&topic)) else {
        return;
    };
    if slots.iter().all(Option::is_some) {
        return;
    }
    let mut by_load: BTreeSet<(usize, usize)> = subscribers.iter().map(|at| (loads[*at], *at)).collect();
    for slot in slots.iter_mut().filter(|slot| slot.is_none()) {
        let Some((load, at)) = by_load.pop_first() else { return };
        *slot = Some(at as u32);
        loads[at] = load + 1;
        by_load.insert((load + 1, at));
    }
}

/// Moves partitions of a topic to where there is less. Gives how many.
fn balance(topic: TopicId, subscribers: &Subscribers, owners: &mut Owners, loads: &mut [usize]) -> usize {
    let (Some(subscribers), Some(slots)) = (subscribers.get(&topic), owners.0.get_mut(&topic)) else {
        return 0;
    };
    let least = subscribers.iter().map(|at| loads[*at]).min().unwrap_or(0);
    let most = subscribers.iter().map(|at| loads[*at]).max().unwrap_or(0);
    if most - least <= 1 {
        return 0;
    }
    // What each owner has of this topic, to be given up from its end.
    let mut held: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (partition, owner) in slots.iter().enumerate() {
        owner.iter().for_each(|owner| held.entry(*owner as usize).or_default().push(partition));
    }
    let mut rich: BTreeSet<(Reverse<usize>, usize)> =
        held.keys().map(|at| (Reverse(loads[*at]), *at)).collect();
    let mut poor: BTreeSet<(usize, usize)> = subscribers.iter().map(|at| (loads[*at], *at)).collect();
    let mut moved = 0;
    while let (Some((Reverse(most), from)), Some((least, to))) = (rich.pop_first(), poor.first().copied()) {
        if most - least.min(most) <= 1 {
            break;
        }
        let Some(partition) = held.get_mut(&from).and_then(Vec::pop) else { continue };
        slots[partition] = Some(to as u32);
        poor.remove(&(least, to));
        poor.remove(&(most, from));
        poor.insert((least + 1, to));
        poor.insert((most - 1, from));
        loads[from] = most - 1;
        loads[to] = least + 1;
        rich.insert((Reverse(most - 1), from));
        if rich.remove(&(Reverse(least), to)) {
            rich.insert((Reverse(least + 1), to));
        }
        moved += 1;
    }
    moved
}
