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
//! core/log-dirs/src/departures.rs keeps the lists.
//!
//! Metadata path, besides: publisher.rs announces, placement/locate.rs asks, housekeeping.rs removes the files later.

use crate::mailbox::PartitionKey;
use barnabas_base::{Text, TopicId, TopicPartition};
use barnabas_log_dirs::Departures;
pub use barnabas_log_dirs::{Closed, Then};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
    departures: Departures,
    is_stopping: bool,
}

impl DeletedTopics {
    /// A topic is deleted; workers are told after this.
    pub fn announce(&self, topic: TopicId, name: &Text, workers: usize) {
        self.change(|departures| departures.announce(topic, name, workers));
    }

    /// See [`Departures::closed`].
    pub fn closed(&self, worker: usize, closed: Closed) {
        self.change(|departures| departures.closed(worker, closed));
        self.changed.notify_one();
    }

    /// See [`Departures::left`].
    pub fn left(&self, closed: Closed) {
        self.change(|departures| departures.left(closed));
        self.changed.notify_one();
    }

    /// See [`Departures::is_partition_leaving`].
    pub fn is_partition_leaving(&self, key: PartitionKey) -> bool {
        self.has_any() && self.lock().departures.is_partition_leaving(key)
    }

    /// Whether this topic's partitions are being closed and put aside.
    pub fn is_leaving(&self, topic: TopicId) -> bool {
        self.has_any() && self.lock().departures.is_leaving(topic)
    }

    /// A partition is about to be created. If a topic of its name is being deleted, the caller drops that name's
    /// checkpoint entries now: later ones are the new partition's. Returns whether that is so.
    pub fn begins(&self, name: &TopicPartition) -> bool {
        self.has_any() && self.lock().departures.begins(name)
    }

    /// Whether a partition of this name has begun since, or is about to: see [`DeletedTopics::begins`].
    pub fn has_successor(&self, name: &TopicPartition) -> bool {
        self.lock().departures.has_successor(name)
    }

    /// Whether a log may be open still of a deleted topic's partition that had this name.
    pub fn may_be_open(&self, name: &TopicPartition) -> bool {
        self.has_any() && self.lock().departures.may_be_open(name)
    }

    /// Ends the thread once all that is closed is put aside. Workers close nothing after this.
    pub fn stop(&self) {
        self.lock().is_stopping = true;
        self.changed.notify_one();
    }

    /// All that is closed; waits for some. `None`: the node stops.
    pub fn next(&self) -> Option<Vec<Closed>> {
        let waits = |shared: &mut Shared| !shared.departures.has_closed() && !shared.is_stopping;
        let shared = self.changed.wait_while(self.lock(), waits);
        let mut shared = shared.unwrap_or_else(PoisonError::into_inner);
        Some(shared.departures.take_closed()).filter(|closed| !closed.is_empty())
    }

    /// One that has left could not be put aside, as there was no room: it is tried again, unless the node stops.
    pub fn again(&self, closed: Closed) {
        let mut shared = self.lock();
        match shared.is_stopping {
            true => shared.departures.done(&[closed]),
            false => shared.departures.left(closed),
        }
        self.count.store(shared.departures.count(), Ordering::Release);
    }

    /// Lets partitions gather that leave one after the other. A deleted topic is not held up by it.
    pub fn gather(&self, how_long: Duration) {
        let waits = |shared: &mut Shared| !shared.departures.has_topics() && !shared.is_stopping;
        drop(self.changed.wait_timeout_while(self.lock(), how_long, waits));
    }

    pub fn done(&self, all: &[Closed]) {
        self.change(|departures| departures.done(all));
    }

    fn has_any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    fn change(&self, change: impl FnOnce(&mut Departures)) {
        let mut shared = self.lock();
        change(&mut shared.departures);
        self.count.store(shared.departures.count(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{PartitionIndex, TimestampMs};

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
