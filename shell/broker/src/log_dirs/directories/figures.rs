//! The figures that placement goes by, behind their lock: housekeeping measures once a second.
//!
//! core/log-dirs/src/figures.rs counts and chooses.

use super::Directory;
use crate::mailbox::PartitionKey;
use barnabas_base::{BrokerId, DirectoryId};
use barnabas_log_dirs::{Measured, PlacementFigures};
use barnabas_metadata::{Changes, Image};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Figures of all directories, and the partitions that were placed and do not show in the image yet.
#[derive(Debug, Default)]
pub struct Figures {
    state: Mutex<PlacementFigures>,
}

impl Figures {
    pub fn new(directories: &[Directory]) -> Self {
        let figures = Self { state: Mutex::new(PlacementFigures::new(directories.len())) };
        figures.measure(directories);
        figures
    }

    fn lock(&self) -> MutexGuard<'_, PlacementFigures> {
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
        state.measure(directories.iter().zip(spaces).map(|(directory, space)| Measured {
            space: space.map(|space| (space.device, space.free)),
            written_bytes: directory.written_bytes(),
        }));
    }

    /// Where a partition was placed that the image knows no place of.
    pub fn placed(&self, key: PartitionKey) -> Option<usize> {
        self.lock().placed(key)
    }

    /// Chooses among the directories that `may_be_chosen` and remembers the choice until the image shows it.
    pub fn place(&self, key: PartitionKey, may_be_chosen: impl Fn(usize) -> bool) -> Option<usize> {
        self.lock().place(key, may_be_chosen)
    }

    /// A partition that was never written to is to begin here, wherever the metadata log says that it does.
    pub fn prefer(&self, key: PartitionKey, directory: usize) {
        self.lock().prefer(key, directory);
    }

    /// Partitions that the metadata log is still to be told of.
    pub fn untold(&self) -> Vec<(PartitionKey, usize)> {
        self.lock().untold()
    }

    /// See [`PlacementFigures::follow`].
    pub fn follow(
        &self,
        before: &Image,
        image: &Image,
        changes: &Changes,
        broker: BrokerId,
        index_of: impl Fn(DirectoryId) -> Option<usize>,
    ) {
        self.lock().follow(before, image, changes, broker, index_of);
    }
}
