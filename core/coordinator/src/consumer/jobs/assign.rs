//! A consumer group's target, of everything that goes into it: a snapshot, so that it can be made away from the shard.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{Map, Text, TopicId};
use barnabas_metadata::Image;

use super::assignor::{self, Candidate, Spec};
use crate::consumer::group::{Resolved, Target};
use crate::consumer::member::ConsumerMember;

/// Everything that a target is made of, as it was at one moment. Made in time linear in the members, without looking into
/// what they subscribe to.
#[derive(Debug, Clone)]
pub(crate) struct Assigning {
    pub group: Text,
    pub epoch: i32,
    pub assignor: Text,
    pub members: Vec<(Arc<ConsumerMember>, Arc<Target>)>,
    pub resolved: BTreeMap<Text, Resolved>,
    pub image: Image,
}

impl PartialEq for Assigning {
    fn eq(&self, other: &Self) -> bool {
        self.group == other.group && self.epoch == other.epoch
    }
}

/// New targets, of those members whose target is another one now.
pub(crate) type Assignment = Vec<NewTarget>;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewTarget {
    pub member: Text,
    pub instance: Option<Text>,
    pub target: Arc<Target>,
}

impl Assigning {
    pub fn run(self) -> Assignment {
        let mut spec = Spec::default();
        // By the list itself and not by what is in it: members that subscribe to the same share one.
        let mut seen: Map<(*const Vec<Text>, Option<Text>), usize> = Map::default();
        for (member, target) in &self.members {
            let key = (Arc::as_ptr(&member.names), member.pattern().cloned());
            let subscription = match seen.get(&key) {
                Some(known) => *known,
                None => {
                    let topics = self.topics_of(member, &mut spec);
                    let at = spec.subscription(topics);
                    seen.insert(key, at);
                    at
                }
            };
            spec.candidates.push(Candidate {
                id: member.id.clone(),
                instance: member.instance.clone(),
                subscription,
                has: Arc::clone(target),
            });
        }
        let targets = assignor::assign(&self.assignor, &spec);
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
    fn topics_of(&self, member: &ConsumerMember, spec: &mut Spec) -> BTreeSet<TopicId> {
        let matched = member.pattern().and_then(|pattern| self.resolved.get(pattern));
        let matched = matched.into_iter().flat_map(|resolved| resolved.topics.iter());
        let mut topics = BTreeSet::new();
        for name in member.names.iter().chain(matched) {
            if let Some(topic) = self.image.topics.by_name(name) {
                spec.partitions.insert(topic.id, topic.partition_count() as i32);
                topics.insert(topic.id);
            }
        }
        topics
    }
}
