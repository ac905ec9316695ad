//! Deleted topics on their way out: between the metadata log's word and the moment when nothing of them lies under
//! their names.
//!
//! Each worker closes its own partitions, a few in a turn; a thread puts aside what is closed
//! (shell/broker/src/node/log_dirs/deleted.rs).
//!
//! Always true:
//! 1. a deleted partition's name is not free while its log may be open: files of logs are opened by name
//! 2. a topic leaves the list once each worker's part of it is put aside

use barnabas_base::{Map, Set, Text, TimestampMs, TopicId, TopicPartition};
use barnabas_partition::PartitionKey;
use barnabas_storage::journal::JournalPartition;
use std::sync::Arc;

/// One worker's partitions of a deleted topic: their logs are closed.
#[derive(Debug)]
pub struct Closed {
    pub topic: TopicId,
    pub names: Vec<TopicPartition>,
    /// Whose journals know them, and by which name.
    pub removed: Vec<(usize, Arc<JournalPartition>)>,
    pub then: Then,
}

/// What becomes of their files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// They go at that time.
    Deleted(TimestampMs),
    /// They stay, renamed as strays: other brokers got the replica while this node was down.
    Stray,
}

/// See the file's header.
#[derive(Debug, Default)]
pub struct Departures {
    leaving: Map<TopicId, Leaving>,
    /// Partitions whose topics go on, with other brokers: their logs are closed.
    partitions: Set<PartitionKey>,
    /// Partitions of new topics of those names that have begun, or are about to.
    successors: Set<TopicPartition>,
    /// One list for each worker and topic at most.
    closed: Vec<Closed>,
}

#[derive(Debug)]
struct Leaving {
    name: Text,
    /// For each worker.
    is_closed: Vec<bool>,
    /// Workers whose list is not put aside yet.
    left: usize,
}

impl Closed {
    pub fn owned(&self) -> impl Iterator<Item = (&TopicPartition, TopicId)> {
        self.names.iter().map(|name| (name, self.topic))
    }

    fn keys(&self) -> impl Iterator<Item = PartitionKey> {
        let key = |name: &TopicPartition| PartitionKey { topic: self.topic, partition: name.partition };
        self.names.iter().map(key)
    }
}

impl Departures {
    /// Topics and partitions on their way out.
    pub fn count(&self) -> usize {
        self.leaving.len() + self.partitions.len()
    }

    /// A topic is deleted; the workers have not closed its partitions yet.
    pub fn announce(&mut self, topic: TopicId, name: &Text, workers: usize) {
        let leaving = Leaving { name: name.clone(), is_closed: vec![false; workers], left: workers };
        self.leaving.insert(topic, leaving);
    }

    /// A worker has closed its partitions of a topic. Said once by each, also where it had none.
    pub fn closed(&mut self, worker: usize, closed: Closed) {
        if let Some(leaving) = self.leaving.get_mut(&closed.topic) {
            leaving.is_closed[worker] = true;
        }
        self.closed.push(closed);
    }

    /// A worker has closed a partition of a topic that goes on: this broker has no replica of it any more.
    pub fn left(&mut self, closed: Closed) {
        self.partitions.extend(closed.keys());
        self.closed.push(closed);
    }

    /// Whether this broker's replica of a partition is being put aside: another one does not begin before that.
    pub fn is_partition_leaving(&self, key: PartitionKey) -> bool {
        self.partitions.contains(&key)
    }

    /// Whether this topic's partitions are being closed and put aside.
    pub fn is_leaving(&self, topic: TopicId) -> bool {
        self.leaving.contains_key(&topic)
    }

    /// Whether topics are being closed and put aside.
    pub fn has_topics(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// A partition is about to be created. Returns whether a topic of its name is being deleted.
    pub fn begins(&mut self, name: &TopicPartition) -> bool {
        let is_leaving = self.leaving.values().any(|leaving| leaving.name == name.topic);
        if is_leaving {
            self.successors.insert(name.clone());
        }
        is_leaving
    }

    /// Whether a partition of this name has begun since, or is about to: see [`Departures::begins`].
    pub fn has_successor(&self, name: &TopicPartition) -> bool {
        self.successors.contains(name)
    }

    /// Whether a log may be open still of a deleted topic's partition that had this name.
    pub fn may_be_open(&self, name: &TopicPartition) -> bool {
        let is_open = |(topic, leaving): (&TopicId, &Leaving)| {
            let key = PartitionKey { topic: *topic, partition: name.partition };
            leaving.name == name.topic && !leaving.is_closed[key.owner(leaving.is_closed.len())]
        };
        self.leaving.iter().any(is_open)
    }

    /// Whether there is something to put aside.
    pub fn has_closed(&self) -> bool {
        !self.closed.is_empty()
    }

    /// All that is closed and not taken yet.
    pub fn take_closed(&mut self) -> Vec<Closed> {
        std::mem::take(&mut self.closed)
    }

    /// These are put aside.
    pub fn done(&mut self, all: &[Closed]) {
        for closed in all {
            let was_left = closed.keys().fold(false, |any, key| self.partitions.remove(&key) | any);
            if !was_left && let Some(leaving) = self.leaving.get_mut(&closed.topic) {
                leaving.left -= 1;
                if leaving.left == 0 {
                    self.leaving.remove(&closed.topic);
                }
            }
        }
        let Self { leaving, successors, .. } = self;
        successors.retain(|name| leaving.values().any(|leaving| leaving.name == name.topic));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::PartitionIndex;

    const TOPIC: TopicId = barnabas_base::Uuid([7; 16]);

    fn name() -> TopicPartition {
        TopicPartition { topic: Text::from("t"), partition: PartitionIndex(3) }
    }

    fn list(names: Vec<TopicPartition>) -> Closed {
        Closed { topic: TOPIC, names, removed: Vec::new(), then: Then::Stray }
    }

    #[test]
    fn name_is_free_once_its_owner_has_closed_it() {
        let mut all = Departures::default();
        let owner = PartitionKey { topic: TOPIC, partition: name().partition }.owner(2);
        all.announce(TOPIC, &name().topic, 2);
        assert!(all.may_be_open(&name()) && !all.has_closed());
        all.closed(1 - owner, list(Vec::new()));
        assert!(all.may_be_open(&name()));
        all.closed(owner, list(vec![name()]));
        assert!(!all.may_be_open(&name()) && all.is_leaving(TOPIC));
        assert!(all.begins(&name()) && all.has_successor(&name()), "its folder lies there still");
        let taken = all.take_closed();
        assert_eq!((taken.len(), all.has_closed()), (2, false));
        all.done(&taken[..1]);
        assert!(all.is_leaving(TOPIC), "one worker's part is left");
        all.done(&taken[1..]);
        assert!(!all.has_topics() && !all.has_successor(&name()) && all.count() == 0);
    }

    #[test]
    fn partition_of_a_topic_that_goes_on_leaves_by_itself() {
        let mut all = Departures::default();
        let key = PartitionKey { topic: TOPIC, partition: name().partition };
        all.left(list(vec![name()]));
        assert!(all.is_partition_leaving(key) && !all.is_leaving(TOPIC));
        assert!(!all.may_be_open(&name()) && !all.begins(&name()));
        let taken = all.take_closed();
        all.done(&taken);
        assert!(!all.is_partition_leaving(key) && all.count() == 0);
    }
}
