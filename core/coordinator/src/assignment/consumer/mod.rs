//! Who gets what: Kafka's assignors `uniform` and `range`, as functions of a [`Spec`] and nothing else.
//!
//! Deterministic: members count in the order of their ids, topics in the order of theirs. In Kafka 4.4 neither looks at
//! racks (a topic's racks are part of the group's metadata hash, so a change of them makes a new target); so it is
//! here.
//!
//! A spec's `has` may be of another epoch: of topics that are gone, or, after a batch was lost, the same for two
//! members. The first one counts.
//!
//! # Source
//! Kafka 4.4 `UniformAssignor`, `RangeAssignor`.

mod job;
mod mixed;
mod range;
#[cfg(test)]
mod tests;
mod uniform;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{Map, Text, TopicId};

use crate::assignment::Partitions;

pub(crate) use job::{PartitionsJob, Subscriber};

#[derive(Debug, Clone)]
struct Candidate {
    id: Text,
    instance: Option<Text>,
    /// Which of [`Spec::subscriptions`].
    subscription: usize,
    /// Its target until now.
    has: Arc<Partitions>,
}

#[derive(Debug, Default)]
struct Spec {
    /// By id.
    candidates: Vec<Candidate>,
    /// Sorted topics; no two the same.
    subscriptions: Vec<Vec<TopicId>>,
    /// How many partitions each of those topics has.
    partitions: BTreeMap<TopicId, i32>,
    known: Map<Vec<TopicId>, usize>,
}

impl Spec {
    /// The number of a subscription.
    fn subscription(&mut self, topics: BTreeSet<TopicId>) -> usize {
        let topics: Vec<TopicId> = topics.into_iter().collect();
        if let Some(known) = self.known.get(&topics) {
            return *known;
        }
        let at = self.subscriptions.len();
        self.known.insert(topics.clone(), at);
        self.subscriptions.push(topics);
        at
    }

    fn topics_of(&self, candidate: &Candidate) -> &[TopicId] {
        &self.subscriptions[candidate.subscription]
    }

    fn partitions_of(&self, topic: TopicId) -> i32 {
        self.partitions.get(&topic).copied().unwrap_or(0)
    }

    /// Which candidates subscribe to each topic, in the order that they have here.
    fn subscribers(&self) -> BTreeMap<TopicId, Vec<usize>> {
        let mut subscribers: BTreeMap<TopicId, Vec<usize>> = BTreeMap::new();
        for (at, candidate) in self.candidates.iter().enumerate() {
            self.topics_of(candidate)
                .iter()
                .for_each(|topic| subscribers.entry(*topic).or_default().push(at));
        }
        subscribers
    }
}

/// Targets of the candidates, in their order. A candidate with an unchanged target gets the same value.
fn assign(name: &str, spec: &Spec) -> Vec<Arc<Partitions>> {
    let new = match name {
        "range" => range::assign(spec),
        _ if spec.subscriptions.len() <= 1 => uniform::assign(spec),
        _ => mixed::assign(spec),
    };
    let same = spec.candidates.iter().zip(new);
    same.map(
        |(candidate, new)| if *candidate.has == new { Arc::clone(&candidate.has) } else { Arc::new(new) },
    )
    .collect()
}

/// For each topic, who owns each partition.
struct Owners(BTreeMap<TopicId, Vec<Option<u32>>>);

impl Owners {
    /// What candidates have and still subscribe to, and how much that is for each of them.
    fn kept(spec: &Spec) -> (Self, Vec<usize>) {
        let empty = |partitions: &i32| vec![None; usize::try_from(*partitions).unwrap_or(0)];
        let used: BTreeSet<usize> = spec.candidates.iter().map(|candidate| candidate.subscription).collect();
        let wanted: BTreeSet<&TopicId> = used.iter().flat_map(|at| &spec.subscriptions[*at]).collect();
        let mut owners: BTreeMap<TopicId, Vec<Option<u32>>> = BTreeMap::new();
        for topic in wanted {
            owners.insert(*topic, empty(&spec.partitions_of(*topic)));
        }
        let mut loads = vec![0; spec.candidates.len()];
        for (at, candidate) in spec.candidates.iter().enumerate() {
            let topics = spec.topics_of(candidate);
            for (topic, partitions) in candidate.has.iter() {
                let Some(slots) = owners.get_mut(topic) else { continue };
                if topics.binary_search(topic).is_err() {
                    continue;
                }
                for partition in partitions {
                    let slot = usize::try_from(*partition).ok().and_then(|at| slots.get_mut(at));
                    if let Some(slot @ None) = slot {
                        *slot = Some(at as u32);
                        loads[at] += 1;
                    }
                }
            }
        }
        (Self(owners), loads)
    }

    fn targets(self, candidates: usize) -> Vec<Partitions> {
        let mut targets = vec![Partitions::new(); candidates];
        for (topic, slots) in self.0 {
            for (partition, owner) in slots.into_iter().enumerate() {
                if let Some(owner) = owner {
                    targets[owner as usize].entry(topic).or_default().push(partition as i32);
                }
            }
        }
        targets
    }
}
