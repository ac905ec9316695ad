//! One log that is written before [`LogDir::begin`]: the metadata log, while the node looks for its cluster.
//!
//! The mark of a clean stop (`.kafka_cleanshutdown`) stays until the node uses its partitions, so that a start which
//! ends before that leaves the mark as it found it, even by a kill. The mark still covers the partitions then, and no
//! longer this log: the empty file `barnabas-metadata-log-open` says so.
//!
//! Always true: before the first byte of this log is written under a mark, the file is there, durably.
//!
//! # Source
//! Kafka removes the mark in `LogManager.loadLogs`, after the broker has caught up with the metadata log. It never
//! trusts the mark for the metadata log, and reads that log from its beginning at every start.

use std::path::Path;

use barnabas_base::TopicPartition;

use super::LogDir;
use crate::disk::{Disk, DiskError, OpenMode};
use crate::error::StorageError;
use crate::log::OpenFrom;

pub(super) const FILE_NAME: &str = "barnabas-metadata-log-open";

impl LogDir {
    /// As [`LogDir::open_from`], for a log that is written before [`LogDir::begin`].
    ///
    /// # Errors
    /// The directory takes no file: nothing may be written there.
    pub fn open_ahead(&mut self, partition: &TopicPartition) -> Result<OpenFrom, StorageError> {
        let from = self.open_from(partition);
        if !self.clean {
            return Ok(from);
        }
        let path = self.path.join(FILE_NAME);
        let was_open = self.disk.stat(&path)?.is_some();
        if was_open {
            let synced = sync_log(&*self.disk, &self.path.join(partition.to_string()));
            self.note_failure(synced.map_err(StorageError::from))?;
        }
        let noted = self.disk.open(&path, OpenMode::Create).and_then(|_| self.disk.sync_dir(&self.path));
        match noted.map_err(StorageError::from) {
            // A disk that is full still lets the mark go.
            Err(error) if error.is_passing() => self.begin()?,
            noted => self.note_failure(noted)?,
        }
        Ok(OpenFrom { clean: from.clean && !was_open, ..from })
    }

    /// The log is like all others now: the mark is gone.
    pub(super) fn forget_ahead(&self) -> Result<(), DiskError> {
        let path = self.path.join(FILE_NAME);
        // Should its name come back after a power cut, the next start checks more than it must.
        if self.disk.stat(&path)?.is_some() { self.disk.remove_file(&path) } else { Ok(()) }
    }
}

/// What a process that was killed did to the files is durable from here on.
fn sync_log(disk: &dyn Disk, dir: &Path) -> Result<(), DiskError> {
    let entries = match disk.list(dir) {
        Err(error) if error.is_not_found() => return Ok(()),
        entries => entries?,
    };
    for entry in entries.iter().filter(|entry| !entry.is_dir) {
        disk.open(&dir.join(&entry.name), OpenMode::Read)?.sync()?;
    }
    disk.sync_dir(dir)
}
