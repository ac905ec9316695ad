//! Who reads what: Kafka's assignor `simple`.
//!
//! Each partition is read by `sharing = ⌈members / partitions⌉` members, so that each member has something to read; how
//! many partitions each of them has differs by one at most. What a member has it keeps, as far as that allows.
//!
//! Members with different subscriptions: each topic by itself, among its subscribers, those with the fewest
//! partitions first.
//!
//! # Source
//! KIP-932; Kafka 4.4 `SimpleAssignor`, `SimpleHomogeneousAssignmentBuilder`, `SimpleHeterogeneousAssignmentBuilder`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{Map, TopicId};

use super::Partitions;

#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// What it subscribes to and there is: sorted.
    pub topics: Arc<Vec<TopicId>>,
    /// Its target until now.
    pub has: Arc<Partitions>,
}

/// Targets of the candidates, in their order. A candidate with an unchanged target gets the same value.
pub(crate) fn assign(candidates: &[Candidate], assignable: &Map<TopicId, Vec<i32>>) -> Vec<Arc<Partitions>> {
    let Some(first) = candidates.first() else { return Vec::new() };
    let is_same = candidates.iter().all(|each| each.topics == first.topics);
    let mut targets = vec![Partitions::new(); candidates.len()];
    if is_same {
        let slots = slots(first.topics.iter(), assignable);
        let everybody: Vec<usize> = (0..candidates.len()).collect();
        share_out(&slots, &everybody, candidates, &mut targets);
    } else {
        let topics: BTreeSet<TopicId> =
            candidates.iter().flat_map(|each| each.topics.iter().copied()).collect();
        let mut loads = vec![0usize; candidates.len()];
        for topic in topics {
            let subscribes = |at: &usize| candidates[*at].topics.binary_search(&topic).is_ok();
            let mut subscribers: Vec<usize> = (0..candidates.len()).filter(subscribes).collect();
            subscribers.sort_by_key(|at| (loads[*at], *at));
            share_out(&slots([topic].iter(), assignable), &subscribers, candidates, &mut targets);
            for at in subscribers {
                loads[at] = targets[at].values().map(Vec::len).sum();
            }
        }
    }
    let same = candidates.iter().zip(targets);
    same.map(
        |(candidate, new)| if *candidate.has == new { Arc::clone(&candidate.has) } else { Arc::new(new) },
    )
    .collect()
}

type Slot = (TopicId, i32);

fn slots<'a>(topics: impl Iterator<Item = &'a TopicId>, assignable: &Map<TopicId, Vec<i32>>) -> Vec<Slot> {
    let of = |topic: &TopicId| {
        let topic = *topic;
        assignable.get(&topic).into_iter().flatten().map(move |partition| (topic, *partition))
    };
    topics.flat_map(of).collect()
}

/// Shares `slots` out among the candidates at `members`, in this order.
fn share_out(slots: &[Slot], members: &[usize], candidates: &[Candidate], targets: &mut [Partitions]) {
    if slots.is_empty() || members.is_empty() {
        return;
    }
    let sharing = members.len().div_ceil(slots.len());
    let total = sharing * slots.len();
    // The places are spread evenly: the first so many of each share get one more.
    let quota = |at: usize| ((at + 1) * total).div_ceil(members.len()) - (at * total).div_ceil(members.len());
    let places: Map<Slot, usize> = slots.iter().enumerate().map(|(at, slot)| (*slot, at)).collect();
    let mut readers = vec![0usize; slots.len()];
    let mut counts = vec![0usize; members.len()];
    let mut taken: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); members.len()];
    for (at, member) in members.iter().enumerate() {
        let has = candidates[*member].has.iter();
        for slot in
            has.flat_map(|(topic, partitions)| partitions.iter().map(|partition| (*topic, *partition)))
        {
            let Some(place) = places.get(&slot).copied() else { continue };
            if counts[at] < quota(at) && readers[place] < sharing && taken[at].insert(place) {
                readers[place] += 1;
                counts[at] += 1;
            }
        }
    }
    fill(sharing, &mut readers, &mut counts, &mut taken, quota);
    for (at, member) in members.iter().enumerate() {
        let mut by_topic: BTreeMap<TopicId, Vec<i32>> = BTreeMap::new();
        for place in &taken[at] {
            let (topic, partition) = slots[*place];
            by_topic.entry(topic).or_default().push(partition);
        }
        for (topic, mut partitions) in by_topic {
            partitions.sort_unstable();
            targets[*member].insert(topic, partitions);
        }
    }
}

/// Gives each free place to a member below its share, those with the fewest partitions first, so that each member
/// gets at least one partition that it does not have yet.
fn fill(
    sharing: usize,
    readers: &mut [usize],
    counts: &mut [usize],
    taken: &mut [BTreeSet<usize>],
    quota: impl Fn(usize) -> usize,
) {
    let mut open: BTreeSet<(usize, usize)> =
        (0..counts.len()).filter(|at| counts[*at] < quota(*at)).map(|at| (counts[at], at)).collect();
    for (place, readers) in readers.iter_mut().enumerate() {
        while *readers < sharing {
            let next = open.iter().copied().find(|(_, at)| !taken[*at].contains(&place));
            let Some((count, at)) = next else { break };
            open.remove(&(count, at));
            taken[at].insert(place);
            *readers += 1;
            counts[at] += 1;
            if counts[at] < quota(at) {
                open.insert((counts[at], at));
            }
        }
    }
}

#[cfg(test)]
mod tests;
