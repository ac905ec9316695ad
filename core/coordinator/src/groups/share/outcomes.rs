//! What came of an order, found by share-partition, by topic and by group: each outcome is looked at once, however many
//! ask.

use barnabas_base::{ErrorCode, Map, Text, TopicId};

use crate::SharePartitionKey;

/// Where there are several outcomes for a place, the first counts.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    by_partition: Map<(TopicId, i32), ErrorCode>,
    failed_topics: Map<TopicId, ErrorCode>,
    failed_groups: Map<Text, ErrorCode>,
    /// Outcomes that were looked at, for tests that count work.
    #[cfg(test)]
    pub looked_at: usize,
}

impl Outcomes {
    pub fn new(outcomes: &[(SharePartitionKey, ErrorCode)]) -> Self {
        let mut all = Self::default();
        for (key, error) in outcomes {
            all.add(key, *error);
        }
        all
    }

    fn add(&mut self, key: &SharePartitionKey, error: ErrorCode) {
        #[cfg(test)]
        {
            self.looked_at += 1;
        }
        self.by_partition.entry((key.topic, key.partition.get())).or_insert(error);
        if is_failure(error) {
            self.failed_topics.entry(key.topic).or_insert(error);
            if !self.failed_groups.contains_key(&key.group) {
                self.failed_groups.insert(key.group.clone(), error);
            }
        }
    }

    /// `None`: the order was not about this share-partition.
    pub fn of_partition(&self, topic: TopicId, partition: i32) -> Option<ErrorCode> {
        self.by_partition.get(&(topic, partition)).copied()
    }

    /// The first failure among the topic's share-partitions.
    pub fn failure_of_topic(&self, topic: TopicId) -> Option<ErrorCode> {
        self.failed_topics.get(&topic).copied()
    }

    /// The first failure among the group's share-partitions.
    pub fn failure_of_group(&self, group: &Text) -> Option<ErrorCode> {
        self.failed_groups.get(group).copied()
    }
}

/// A topic that is gone has no state that could stay behind.
fn is_failure(error: ErrorCode) -> bool {
    !matches!(error, ErrorCode::None | ErrorCode::UnknownTopicOrPartition)
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{PartitionIndex, Uuid};

    fn key(group: &str, topic: u8, partition: i32) -> SharePartitionKey {
        let topic: TopicId = Uuid([topic; 16]);
        SharePartitionKey { group: group.into(), topic, partition: PartitionIndex(partition) }
    }

    #[test]
    fn first_outcome_of_a_place_counts() {
        let full = ErrorCode::GroupMaxSizeReached;
        let outcomes = Outcomes::new(&[
            (key("g", 1, 0), ErrorCode::None),
            (key("g", 1, 0), full),
            (key("g", 1, 1), ErrorCode::NotCoordinator),
            (key("h", 2, 0), ErrorCode::UnknownTopicOrPartition),
        ]);
        let (one, two) = (key("g", 1, 0).topic, key("g", 2, 0).topic);
        assert_eq!(outcomes.of_partition(one, 0), Some(ErrorCode::None));
        assert_eq!(outcomes.of_partition(two, 0), Some(ErrorCode::UnknownTopicOrPartition));
        assert_eq!(outcomes.of_partition(two, 1), None);
        assert_eq!(outcomes.failure_of_topic(one), Some(full));
        assert_eq!(outcomes.failure_of_topic(two), None, "a topic that is gone has no state");
        assert_eq!(outcomes.failure_of_group(&"g".into()), Some(full));
        assert_eq!(outcomes.failure_of_group(&"h".into()), None);
    }

    #[test]
    fn asking_for_each_partition_looks_at_each_outcome_once() {
        let all: Vec<_> = (0..5_000).map(|partition| (key("g", 1, partition), ErrorCode::None)).collect();
        let outcomes = Outcomes::new(&all);
        for (key, error) in &all {
            assert_eq!(outcomes.of_partition(key.topic, key.partition.get()), Some(*error));
        }
        assert_eq!(outcomes.looked_at, all.len());
    }
}
