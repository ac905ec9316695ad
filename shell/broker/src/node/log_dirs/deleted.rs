//! Deleted topics on their way out: between the metadata log's word and the moment when nothing of them lies under
//! their names.
//!
//! Each worker closes its own partitions, a few in a turn (partition_worker/lifecycle/deleting.rs). What is closed is
//! put aside by a thread of its own: that writes checkpoints, which name every partition of a directory, syncs
//! directories, and for thousands of partitions takes longer than a worker may be away.
//!
//! Always true:
//! 1. a deleted partition's folder is not renamed while its log may be open: files of logs are opened by name
//! 2. a partition of the same name does not begin before that
//! 3. the journal hears that a partition is gone once its folder's new name is durable
//! 4. a kill at any moment leaves what the next start finishes (housekeeping/sweep.rs): the metadata log knows of the
//!    deletion
//!
//! Metadata path, besides: publisher.rs announces, placement/locate.rs asks, housekeeping.rs removes the files later.

use crate::mailbox::PartitionKey;
use barnabas_base::{Map, Set, Text, TimestampMs, TopicId, TopicPartition};
use barnabas_storage::journal::JournalPartition;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
pub struct DeletedTopics {
    shared: Mutex<Shared>,
    changed: Condvar,
    /// Topics and partitions on their way out: nothing is locked while there are none.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Shared {
    leaving: Map<TopicId, Leaving>,
    /// Partitions whose topics go on, with other brokers: their logs are closed.
    partitions: Set<PartitionKey>,
    /// Partitions of new topics of those names that have begun, or are about to.
    successors: Set<TopicPartition>,
    /// One list for each worker and topic at most.
    closed: Vec<Closed>,
    is_stopping: bool,
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

impl Shared {
    fn len(&self) -> usize {
        self.leaving.len() + self.partitions.len()
    }
}

impl DeletedTopics {
    /// A topic is deleted; workers are told after this.
    pub fn announce(&self, topic: TopicId, name: &Text, workers: usize) {
        let leaving = Leaving { name: name.clone(), is_closed: vec![false; workers], left: workers };
        let mut shared = self.lock();
        shared.leaving.insert(topic, leaving);
        self.count.store(shared.len(), Ordering::Release);
    }

    /// A worker has closed its partitions of a topic. Said once by each, also where it had none.
    pub fn closed(&self, worker: usize, closed: Closed) {
        let mut shared = self.lock();
        if let Some(leaving) = shared.leaving.get_mut(&closed.topic) {
            leaving.is_closed[worker] = true;
        }
        shared.closed.push(closed);
        self.changed.notify_one();
    }

    /// A worker has closed a partition of a topic that goes on: this broker has no replica of it any more.
    pub fn left(&self, closed: Closed) {
        let mut shared = self.lock();
        shared.partitions.extend(closed.keys());
        self.count.store(shared.len(), Ordering::Release);
        shared.closed.push(closed);
        self.changed.notify_one();
    }

    /// Whether this broker's replica of a partition is being put aside: another one does not begin before that.
    pub fn is_partition_leaving(&self, key: PartitionKey) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.lock().partitions.contains(&key)
    }

    /// Whether this topic's partitions are being closed and put aside.
    pub fn is_leaving(&self, topic: TopicId) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.lock().leaving.contains_key(&topic)
    }

    /// A partition is about to be created. If a topic of its name is being deleted, the caller drops that name's
    /// checkpoint entries now: later ones are the new partition's. Returns whether that is so.
    pub fn begins(&self, name: &TopicPartition) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut shared = self.lock();
        let is_leaving = shared.leaving.values().any(|leaving| leaving.name == name.topic);
        if is_leaving {
            shared.successors.insert(name.clone());
        }
        is_leaving
    }

    /// Whether a partition of this name has begun since, or is about to: see [`DeletedTopics::begins`].
    pub fn has_successor(&self, name: &TopicPartition) -> bool {
        self.lock().successors.contains(name)
    }

    /// Whether a log may be open still of a deleted topic's partition that had this name.
    pub fn may_be_open(&self, name: &TopicPartition) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let is_open = |(topic, leaving): (&TopicId, &Leaving)| {
            let key = PartitionKey { topic: *topic, partition: name.partition };
            leaving.name == name.topic && !leaving.is_closed[key.owner(leaving.is_closed.len())]
        };
        self.lock().leaving.iter().any(is_open)
    }

    /// Ends the thread once all that is closed is put aside. Workers close nothing after this.
    pub fn stop(&self) {
        self.lock().is_stopping = true;
        self.changed.notify_one();
    }

    /// All that is closed; waits for some. `None`: the node stops.
    pub fn next(&self) -> Option<Vec<Closed>> {
        let waits = |shared: &mut Shared| shared.closed.is_empty() && !shared.is_stopping;
        let shared = self.changed.wait_while(self.lock(), waits);
        let mut shared = shared.unwrap_or_else(PoisonError::into_inner);
        Some(std::mem::take(&mut shared.closed)).filter(|closed| !closed.is_empty())
    }

    /// Lets partitions gather that leave one after the other. A deleted topic is not held up by it.
    pub fn gather(&self, how_long: Duration) {
        let waits = |shared: &mut Shared| shared.leaving.is_empty() && !shared.is_stopping;
        drop(self.changed.wait_timeout_while(self.lock(), how_long, waits));
    }

    pub fn done(&self, all: &[Closed]) {
        let mut shared = self.lock();
        for closed in all {
            let was_left = closed.keys().fold(false, |any, key| shared.partitions.remove(&key) | any);
            if !was_left && let Some(leaving) = shared.leaving.get_mut(&closed.topic) {
                leaving.left -= 1;
                if leaving.left == 0 {
                    shared.leaving.remove(&closed.topic);
                }
            }
        }
        let Shared { leaving, successors, .. } = &mut *shared;
        successors.retain(|name| leaving.values().any(|leaving| leaving.name == name.topic));
        self.count.store(shared.len(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::PartitionIndex;

    #[test]
    fn a_name_is_free_once_its_owner_has_closed_it() {
        let deleted = DeletedTopics::default();
        let (topic, name) = (TopicId::from_random([7; 16]), Text::from("t"));
        let partition = TopicPartition { topic: name.clone(), partition: PartitionIndex(3) };
        let owner = PartitionKey { topic, partition: partition.partition }.owner(2);
        let then = Then::Deleted(TimestampMs(0));
        let list = || Closed { topic, names: Vec::new(), removed: Vec::new(), then };
        assert!(!deleted.may_be_open(&partition));
        deleted.announce(topic, &name, 2);
        assert!(deleted.may_be_open(&partition) && deleted.is_leaving(topic));
        deleted.closed(1 - owner, list());
        assert!(deleted.may_be_open(&partition));
        deleted.closed(owner, list());
        assert!(!deleted.may_be_open(&partition));
        assert!(deleted.is_leaving(topic) && !deleted.has_successor(&partition));
        assert!(
            deleted.begins(&partition) && deleted.has_successor(&partition),
            "its folder lies there still"
        );
        let all = deleted.next().unwrap();
        deleted.done(&all);
        assert!(
            !deleted.is_leaving(topic) && !deleted.begins(&partition) && !deleted.has_successor(&partition)
        );
        deleted.stop();
        assert!(deleted.next().is_none());
    }
}
