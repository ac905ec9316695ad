//! A consumer group's target, of everything that goes into it: a snapshot, so that it can be made away from the shard.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{Map, Text, TopicId};
use barnabas_metadata::Image;

use super::{Candidate, Spec};
use crate::assignment::{NewTarget, Partitions, Resolved};

/// Everything that a target is made of, as it was at one moment. Made in time linear in the members, without looking
/// into what they subscribe to.
#[derive(Debug, Clone)]
pub(crate) struct PartitionsJob {
    pub group: Text,
    pub epoch: i32,
    pub assignor: Text,
    pub subscribers: Vec<Subscriber>,
    pub resolved: BTreeMap<Text, Resolved>,
    pub image: Image,
}

/// What the assignor knows of a member.
#[derive(Debug, Clone)]
pub(crate) struct Subscriber {
    pub id: Text,
    pub instance: Option<Text>,
    /// Topics subscribed to by name.
    pub names: Arc<Vec<Text>>,
    /// The expression that it subscribes by.
    pub pattern: Option<Text>,
    /// Its target until now.
    pub has: Arc<Partitions>,
}

impl PartialEq for PartitionsJob {
    fn eq(&self, other: &Self) -> bool {
        self.group == other.group && self.epoch == other.epoch
    }
}

impl PartitionsJob {
    /// New targets, of those members whose target is another one now.
    pub fn run(self) -> Vec<NewTarget<Partitions>> {
        let mut spec = Spec::default();
        // By the list itself and not by what is in it: members that subscribe to the same share one.
        let mut seen: Map<(*const Vec<Text>, Option<Text>), usize> = Map::default();
        for subscriber in &self.subscribers {
            let key = (Arc::as_ptr(&subscriber.names), subscriber.pattern.clone());
            let subscription = match seen.get(&key) {
                Some(known) => *known,
                None => {
                    let topics = self.topics_of(subscriber, &mut spec);
                    let at = spec.subscription(topics);
                    seen.insert(key, at);
                    at
                }
            };
            spec.candidates.push(Candidate {
                id: subscriber.id.clone(),
                instance: subscriber.instance.clone(),
                subscription,
                has: Arc::clone(&subscriber.has),
            });
        }
        let targets = super::assign(&self.assignor, &spec);
        let new = spec.candidates.into_iter().zip(targets);
        new.filter(|(candidate, target)| candidate.has != *target)
            .map(|(candidate, target)| NewTarget {
                member: candidate.id,
                instance: candidate.instance,
                target,
            })
            .collect()
    }

    /// The topics that there are of those that the member subscribes to.
    fn topics_of(&self, subscriber: &Subscriber, spec: &mut Spec) -> BTreeSet<TopicId> {
        let matched = subscriber.pattern.as_ref().and_then(|pattern| self.resolved.get(pattern));
        let matched = matched.into_iter().flat_map(|resolved| resolved.topics.iter());
        let mut topics = BTreeSet::new();
        for name in subscriber.names.iter().chain(matched) {
            if let Some(topic) = self.image.topics.by_name(name) {
                spec.partitions.insert(topic.id, topic.partition_count() as i32);
                topics.insert(topic.id);
            }
        }
        topics
    }
}
