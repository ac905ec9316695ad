//! What the requests to share coordinators (keys 83 to 87) have in common: they name share-partitions of one group by topic, and are
//! answered for each in its place.
//!
//! Source: Kafka 4.4 `KafkaApis`, `ShareCoordinatorService`.

use barnabas_base::TopicId;

use crate::Slot;

/// The answer as far as it is known, in the order of the request; `Said` is what is said of one share-partition.
#[derive(Debug)]
pub(crate) struct Results<Said> {
    topics: Vec<(TopicId, Vec<Said>)>,
}

impl<Said> Results<Said> {
    /// Splits a request by share-partition: `each` makes of one that was asked for its part of the work, and its result while nothing
    /// is known against it. `None`: the request asks for nothing, having no group or a topic that names no partition, and that is what
    /// it gets.
    pub fn split<Asked, Part>(
        group: &str,
        asked: impl ExactSizeIterator<Item = (TopicId, Vec<Asked>)>,
        each: impl Fn(Slot, TopicId, Asked) -> (Part, Said),
    ) -> Option<(Vec<Part>, Self)> {
        if group.is_empty() || asked.len() == 0 {
            return None;
        }
        let (mut parts, mut topics) = (Vec::new(), Vec::with_capacity(asked.len()));
        for (topic_at, (topic, asked)) in asked.enumerate() {
            if asked.is_empty() {
                return None;
            }
            let mut results = Vec::with_capacity(asked.len());
            for (at, asked) in asked.into_iter().enumerate() {
                let (part, result) = each(Slot::new(topic_at, at), topic, asked);
                parts.push(part);
                results.push(result);
            }
            topics.push((topic, results));
        }
        Some((parts, Self { topics }))
    }

    pub fn at(&mut self, slot: Slot) -> &mut Said {
        &mut self.topics[slot.topic()].1[slot.partition()]
    }

    /// All of them, in the words of one request's answer.
    pub fn map<Topic>(self, topic: impl Fn(TopicId, Vec<Said>) -> Topic) -> Vec<Topic> {
        self.topics.into_iter().map(|(id, results)| topic(id, results)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ORDERS;

    fn split(group: &str, topics: Vec<(TopicId, Vec<i32>)>) -> Option<(Vec<i32>, Results<i32>)> {
        Results::split(group, topics.into_iter(), |_, _, partition| (partition, 0))
    }

    #[test]
    fn what_asks_for_nothing_is_no_work() {
        assert!(split("", vec![(ORDERS, vec![1])]).is_none());
        assert!(split("g", Vec::new()).is_none());
        assert!(split("g", vec![(ORDERS, vec![1]), (ORDERS, Vec::new())]).is_none());
    }

    #[test]
    fn each_is_answered_in_its_place() {
        let topics = vec![(ORDERS, vec![3, 1]), (ORDERS, vec![3])];
        let split = Results::split("g", topics.into_iter(), |slot, _, partition| ((slot, partition), 0));
        let (parts, mut results) = split.expect("work");
        for (slot, partition) in parts {
            *results.at(slot) = partition;
        }
        assert_eq!(results.map(|_, results| results), [vec![3, 1], vec![3]]);
    }
}
