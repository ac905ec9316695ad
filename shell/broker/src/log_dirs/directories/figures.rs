//! The figures that placement goes by: how free each device is, how much is written to it, how many partitions lie
//! there.
//!
//! Counted as the image changes, measured once a second by housekeeping. The rule itself is
//! core/storage/src/log_dir/placement.rs.

use super::Directory;
use crate::mailbox::PartitionKey;
use barnabas_base::{BrokerId, DirectoryId};
use barnabas_metadata::{Changes, Image};
use barnabas_storage::placement::{self, Candidate};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A measurement counts for a sixteenth of the average: what is written shows within about a quarter of a minute.
const SMOOTHING: u64 = 16;

/// Figures of all directories, and the partitions that were placed and do not show in the image yet.
#[derive(Debug, Default)]
pub struct Figures {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    directories: Vec<Counted>,
    /// Partitions that were placed in this life of the node, and whose place the metadata log does not know yet.
    /// Nothing was acknowledged in them by an earlier life, or they were found nowhere while every directory could be
    /// looked at.
    placed: HashMap<PartitionKey, usize>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counted {
    device: u64,
    free_bytes: u64,
    /// By the image.
    assigned: u64,
    /// Of [`State::placed`].
    placed: u64,
    written_per_s: u64,
    unmeasured: u64,
    written_before: u64,
}

impl Figures {
    pub fn new(directories: &[Directory]) -> Self {
        let state =
            State { directories: vec![Counted::default(); directories.len()], placed: HashMap::new() };
        let figures = Self { state: Mutex::new(state) };
        figures.measure(directories);
        figures
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called once a second.
    pub fn measure(&self, directories: &[Directory]) {
        // Asked before the lock is taken: a device that hangs must not hold up who places.
        let spaces: Vec<_> = directories
            .iter()
            .map(|directory| {
                directory.is_online().then(|| directory.disk.space(&directory.path).ok()).flatten()
            })
            .collect();
        let mut state = self.lock();
        for ((counted, directory), space) in state.directories.iter_mut().zip(directories).zip(spaces) {
            if let Some(space) = space {
                counted.device = space.device;
                counted.free_bytes = space.free;
            }
            let written = directory.written_bytes();
            let since = written.saturating_sub(counted.written_before);
            counted.written_before = written;
            counted.written_per_s =
                counted.written_per_s - counted.written_per_s.div_ceil(SMOOTHING) + since / SMOOTHING;
            counted.unmeasured -= counted.unmeasured.div_ceil(SMOOTHING);
        }
    }

    /// Where a partition was placed that the image knows no place of.
    pub fn placed(&self, key: PartitionKey) -> Option<usize> {
        self.lock().placed.get(&key).copied()
    }

    /// Chooses among the directories that `may_be_chosen` and remembers the choice until the image shows it.
    pub fn place(&self, key: PartitionKey, may_be_chosen: impl Fn(usize) -> bool) -> Option<usize> {
        let mut state = self.lock();
        if let Some(&placed) = state.placed.get(&key) {
            return Some(placed);
        }
        let places: Vec<usize> = (0..state.directories.len()).filter(|&at| may_be_chosen(at)).collect();
        let candidates: Vec<Candidate> =
            places.iter().map(|&at| state.directories[at].as_candidate()).collect();
        let chosen = places[placement::choose(&candidates)?];
        state.note_placed(key, chosen);
        Some(chosen)
    }

    /// A partition that was never written to is to begin here, wherever the metadata log says that it does.
    pub fn prefer(&self, key: PartitionKey, directory: usize) {
        let mut state = self.lock();
        state.forget_placed(key);
        state.note_placed(key, directory);
    }

    /// Partitions that the metadata log is still to be told of.
    pub fn untold(&self) -> Vec<(PartitionKey, usize)> {
        self.lock().placed.iter().map(|(&key, &directory)| (key, directory)).collect()
    }

    /// Follows the image that was just published: assigned partitions are counted there, and no longer as placed. A
    /// reader that finds a partition not placed and then looks at the image sees where it is assigned.
    pub fn follow(
        &self,
        before: &Image,
        image: &Image,
        changes: &Changes,
        broker: BrokerId,
        index_of: impl Fn(DirectoryId) -> Option<usize>,
    ) {
        let mut state = self.lock();
        if changes.everything {
            for counted in &mut state.directories {
                counted.assigned = 0;
            }
            for topic in image.topics.iter() {
                for (partition, row) in topic.partitions() {
                    let key = PartitionKey { topic: topic.id, partition };
                    state.note_assigned(key, row.directory(broker).and_then(&index_of));
                }
            }
            return;
        }
        for (&id, change) in &changes.topics {
            if let Some(topic) = before.topics.by_id(id) {
                let old = |partition| topic.partition(partition).and_then(|row| row.directory(broker));
                if change.deleted {
                    for (partition, row) in topic.partitions() {
                        state.forget_assigned(row.directory(broker).and_then(&index_of));
                        state.forget_placed(PartitionKey { topic: id, partition });
                    }
                } else {
                    for &partition in &change.partitions {
                        state.forget_assigned(old(partition).and_then(&index_of));
                    }
                }
            }
            let Some(topic) = image.topics.by_id(id) else { continue };
            for &partition in &change.partitions {
                let directory = topic.partition(partition).and_then(|row| row.directory(broker));
                state.note_assigned(PartitionKey { topic: id, partition }, directory.and_then(&index_of));
            }
        }
    }
}

impl State {
    fn note_placed(&mut self, key: PartitionKey, directory: usize) {
        self.placed.insert(key, directory);
        self.directories[directory].placed += 1;
        self.directories[directory].unmeasured += 1;
    }

    fn forget_placed(&mut self, key: PartitionKey) {
        if let Some(directory) = self.placed.remove(&key) {
            let placed = &mut self.directories[directory].placed;
            *placed = placed.saturating_sub(1);
        }
    }

    fn note_assigned(&mut self, key: PartitionKey, directory: Option<usize>) {
        if let Some(directory) = directory {
            self.directories[directory].assigned += 1;
            // One that is to begin elsewhere waits until the metadata log says so.
            if self.placed.get(&key) == Some(&directory) {
                self.forget_placed(key);
            }
        }
    }

    fn forget_assigned(&mut self, directory: Option<usize>) {
        if let Some(directory) = directory {
            let assigned = &mut self.directories[directory].assigned;
            *assigned = assigned.saturating_sub(1);
        }
    }
}

impl Counted {
    fn as_candidate(&self) -> Candidate {
        Candidate {
            device: self.device,
            free_bytes: self.free_bytes,
            partitions: self.assigned + self.placed,
            written_per_s: self.written_per_s,
            unmeasured: self.unmeasured,
        }
    }
}
