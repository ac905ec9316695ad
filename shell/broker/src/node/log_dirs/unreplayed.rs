//! Batches of journals whose partitions have not been opened since the start. They stay in memory, where the start
//! has read them, until a request opens the partition, or the journal orders them written back
//! (partition_worker/lifecycle/waiting.rs).
//!
//! So a start after a kill takes as long as reading the journal, however many partitions that names.
//!
//! Filled before anybody is served; after that each partition's owner alone takes out what is its own.
//!
//! Always true:
//! 1. what is in here is in a journal, which goes on holding it: a crash finds it again
//! 2. a partition that is in here pins that directory, whether it has a folder there or not
//! 3. its bytes count as used room until it is opened or gone

use crate::log_dirs::directories::Directories;
use crate::mailbox::PartitionKey;
use barnabas_base::{Map, TopicPartition};
use barnabas_storage::journal::PartitionReplay;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the file's header.
#[derive(Debug)]
pub struct Unreplayed {
    /// For each log directory.
    waiting: Vec<Mutex<Waiting>>,
    /// In all of them: nothing is locked once they are empty.
    count: AtomicUsize,
}

type Waiting = Map<PartitionKey, Arc<PartitionReplay>>;

impl Unreplayed {
    pub fn new(directories: usize) -> Self {
        Self { waiting: (0..directories).map(|_| Mutex::default()).collect(), count: AtomicUsize::new(0) }
    }

    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    pub fn add(
        &self,
        directories: &Directories,
        directory: usize,
        key: PartitionKey,
        replay: Arc<PartitionReplay>,
    ) {
        directories[directory].room.count(replay.bytes());
        if self.lock(directory).insert(key, replay).is_none() {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// In which directories something waits for this partition: more than one where it was moved lately.
    pub fn find(&self, key: PartitionKey) -> Vec<(usize, Arc<PartitionReplay>)> {
        if self.is_empty() {
            return Vec::new();
        }
        let found = |at| Some((at, Arc::clone(self.lock(at).get(&key)?)));
        (0..self.waiting.len()).filter_map(found).collect()
    }

    pub fn has(&self, directory: usize, key: PartitionKey) -> bool {
        !self.is_empty() && self.lock(directory).contains_key(&key)
    }

    /// It is opened, kept elsewhere, or gone. `left`: bytes that are in memory still and nowhere else.
    pub fn remove(&self, directories: &Directories, directory: usize, key: PartitionKey, left: u64) {
        if let Some(replay) = self.lock(directory).remove(&key) {
            self.count.fetch_sub(1, Ordering::AcqRel);
            directories[directory].room.settle(replay.bytes().saturating_sub(left));
        }
    }

    /// What waits in a directory and `is_wanted`.
    pub fn all(
        &self,
        directory: usize,
        is_wanted: impl Fn(PartitionKey) -> bool,
    ) -> Vec<(PartitionKey, Arc<PartitionReplay>)> {
        if self.is_empty() {
            return Vec::new();
        }
        let waiting = self.lock(directory);
        let wanted = waiting.iter().filter(|(key, _)| is_wanted(**key));
        wanted.map(|(key, replay)| (*key, Arc::clone(replay))).collect()
    }

    fn lock(&self, directory: usize) -> MutexGuard<'_, Waiting> {
        self.waiting[directory].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of whose it is.
pub fn name_of(replay: &PartitionReplay) -> &TopicPartition {
    &replay.partition.topic_partition
}
