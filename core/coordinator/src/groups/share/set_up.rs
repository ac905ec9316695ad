//! Which share-partitions of a group are set up, being set up, or on their way out: the contents of one record.

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::{ErrorCode, Map, Offset, PartitionIndex, Text, TopicId};
use barnabas_metadata::Image;

use crate::SharePartitionKey;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Topic {
    pub name: Text,
    pub partitions: BTreeSet<i32>,
}

pub(crate) type Topics = BTreeMap<TopicId, Topic>;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SetUp {
    pub initializing: Topics,
    pub initialized: Topics,
    /// Topics whose state still has to go.
    pub deleting: BTreeMap<TopicId, Text>,
}

impl SetUp {
    pub fn is_empty(&self) -> bool {
        self.initializing.is_empty() && self.initialized.is_empty() && self.deleting.is_empty()
    }

    /// Whether a group that reads these topics has partitions that are not set up.
    pub fn lacks<'a>(&self, names: impl Iterator<Item = &'a Text>, image: &Image) -> bool {
        names.filter_map(|name| image.topics.by_name(name)).any(|topic| {
            let known = self.initialized.get(&topic.id).map_or(0, |known| known.partitions.len());
            known < topic.partition_count()
        })
    }

    /// Notes everything that is missing as being set up, and says where each is to begin. Partitions that a topic got
    /// later begin at their first record, so that nothing written before anybody heard of them is passed over
    /// (KAFKA-19961); those of a new topic where the group's settings say.
    ///
    /// # Source
    /// Kafka 4.4 `GroupMetadataManager.subscribedTopicsChangeMap`, `buildInitializeShareGroupStateRequest`.
    pub fn begin<'a>(
        &mut self,
        group: &Text,
        names: impl Iterator<Item = &'a Text>,
        image: &Image,
    ) -> Vec<(SharePartitionKey, Offset)> {
        let mut starts = Vec::new();
        for topic in names.filter_map(|name| image.topics.by_name(name)) {
            let known = self.initialized.get(&topic.id);
            let start = if known.is_some() { Offset::ZERO } else { Offset::NONE };
            let count = i32::try_from(topic.partition_count()).unwrap_or(i32::MAX);
            let is_new = |partition: &i32| known.is_none_or(|known| !known.partitions.contains(partition));
            let missing: BTreeSet<i32> = (0..count).filter(is_new).collect();
            if missing.is_empty() {
                continue;
            }
            starts.extend(missing.iter().map(|partition| (key(group, topic.id, *partition), start)));
            self.note_initializing(topic.id, &topic.name, missing);
        }
        starts
    }

    pub fn note_initializing(&mut self, id: TopicId, name: &Text, partitions: BTreeSet<i32>) {
        self.deleting.remove(&id);
        let topic = self.initializing.entry(id).or_default();
        topic.name = name.clone();
        topic.partitions.extend(partitions);
    }

    /// These are set up, or could not be.
    pub fn end(&mut self, outcomes: &[(SharePartitionKey, ErrorCode)]) {
        for (key, error) in outcomes {
            let Some(topic) = self.initializing.get_mut(&key.topic) else { continue };
            let partition = key.partition.get();
            if !topic.partitions.remove(&partition) {
                continue;
            }
            let name = topic.name.clone();
            if topic.partitions.is_empty() {
                self.initializing.remove(&key.topic);
            }
            if *error == ErrorCode::None {
                let topic = self.initialized.entry(key.topic).or_default();
                topic.name = name;
                topic.partitions.insert(partition);
            }
        }
    }

    /// Notes everything as on its way out, and names it. Also what was begun, and what was on its way out before.
    pub fn delete_all(&mut self, group: &Text, image: &Image) -> Vec<SharePartitionKey> {
        let topics: Vec<TopicId> = self
            .initializing
            .keys()
            .chain(self.initialized.keys())
            .chain(self.deleting.keys())
            .copied()
            .collect();
        let mut keys = BTreeSet::new();
        topics.into_iter().for_each(|topic| keys.extend(self.delete(group, topic, image)));
        keys.into_iter().collect()
    }

    /// Notes a topic as on its way out, and names its share-partitions.
    pub fn delete(&mut self, group: &Text, id: TopicId, image: &Image) -> Vec<SharePartitionKey> {
        let mut partitions = BTreeSet::new();
        let mut name = self.deleting.get(&id).cloned();
        for topic in [self.initialized.remove(&id), self.initializing.remove(&id)].into_iter().flatten() {
            name = Some(topic.name);
            partitions.extend(topic.partitions);
        }
        let Some(name) = name else { return Vec::new() };
        match image.topics.by_id(id) {
            Some(topic) if self.deleting.contains_key(&id) => {
                partitions.extend(0..i32::try_from(topic.partition_count()).unwrap_or(i32::MAX));
            }
            Some(_) => {}
            // The share coordinator ends by itself what is left of a topic that is gone.
            None => {
                self.deleting.remove(&id);
                return Vec::new();
            }
        }
        self.deleting.insert(id, name);
        partitions.into_iter().map(|partition| key(group, id, partition)).collect()
    }

    /// Forgets topics that are gone. Gives whether there were any.
    pub fn forget(&mut self, topics: &[TopicId]) -> bool {
        let before = (self.initializing.len(), self.initialized.len(), self.deleting.len());
        for topic in topics {
            self.initializing.remove(topic);
            self.initialized.remove(topic);
            self.deleting.remove(topic);
        }
        before != (self.initializing.len(), self.initialized.len(), self.deleting.len())
    }

    /// What can be assigned: set up, and of a topic that there is.
    pub fn assignable(&self, image: &Image) -> Map<TopicId, Vec<i32>> {
        let there = self.initialized.iter().filter(|(id, _)| image.topics.by_id(**id).is_some());
        there.map(|(id, topic)| (*id, topic.partitions.iter().copied().collect())).collect()
    }
}

pub(crate) fn key(group: &Text, topic: TopicId, partition: i32) -> SharePartitionKey {
    SharePartitionKey { group: group.clone(), topic, partition: PartitionIndex(partition) }
}
