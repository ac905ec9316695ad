//! One copy in the making: a log in `-future`, and what is put behind it.
//!
//! The mover fills it; the partition's owner takes it over for the last step. It has its own few open files, so that it can be handed from
//! thread to thread.

use super::MoveRead;
use crate::mailbox::PartitionKey;
use barnabas_base::{Offset, TimestampMs};
use barnabas_storage::{AppendBytes, Disk, FilePool, Log, LogConfig, LogPlace, OpenFrom, StorageError};
use std::path::PathBuf;
use std::sync::Arc;

/// Files that a copy holds open.
const FILES_OPEN: usize = 8;
/// Unsynced bytes beyond which the mover syncs: the last step has little left to do.
const UNSYNCED_MAX: u64 = 16 << 20;

/// See the file's header.
#[derive(Debug)]
pub struct Copying {
    pub key: PartitionKey,
    /// The directory that it goes to.
    pub to: usize,
    pub place: LogPlace,
    pub log: Option<Log>,
    pub files: FilePool,
    /// How far the log was compacted before the first byte of it was copied; what is compacted meanwhile may be copied as it was before.
    pub clean_to: Option<Offset>,
    /// The operator was told that it waits for room.
    pub is_waiting: bool,
    unsynced: u64,
}

/// What a piece did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fits {
    Yes,
    /// The log is not what the copy began with: begin anew.
    No,
}

impl Copying {
    pub fn new(key: PartitionKey, to: usize, disk: Arc<dyn Disk>, place: LogPlace) -> Self {
        let files = FilePool::new(disk, FILES_OPEN);
        Self { key, to, place, log: None, files, clean_to: None, is_waiting: false, unsynced: 0 }
    }

    /// Goes on with what an earlier life of the node, which stopped cleanly, has copied.
    ///
    /// # Errors
    /// What is there cannot be gone on with.
    pub fn go_on(&mut self, config: Arc<LogConfig>, now: TimestampMs) -> Result<(), StorageError> {
        let from = OpenFrom::default();
        let (log, _) = Log::open(&mut self.files, self.place.clone(), config, from, now)?;
        self.log = log.is_on_disk().then_some(log);
        Ok(())
    }

    pub fn path(&self) -> PathBuf {
        self.place.dir()
    }

    /// Where the next piece begins; `None`: at the log's start.
    pub fn end(&self) -> Option<Offset> {
        self.log.as_ref().map(Log::end)
    }

    /// Puts a piece behind what is there.
    ///
    /// # Errors
    /// [`StorageError::Full`] leaves the copy as it was.
    pub fn put(&mut self, read: &MoveRead, now: TimestampMs) -> Result<Fits, StorageError> {
        // A log may start in the middle of its first batch, and in front of it where compaction left a hole.
        let first = read.from.min(read.log_start);
        let log = match &mut self.log {
            Some(log) => log,
            empty => empty.insert(Log::create(self.place.clone(), read.config.clone(), first)),
        };
        if read.log_start > log.end() && read.from > log.end() {
            // Retention was faster than the copy.
            let delete = log.truncate_fully_and_start_at(&mut self.files, first, now)?;
            for file in delete.map(|delete| delete.files).unwrap_or_default() {
                self.files.disk().remove_file(&file)?;
            }
        }
        if read.records.is_empty() {
            log.skip_to(&mut self.files, read.durable_end, now)?;
        } else {
            if read.from < log.end() {
                return Ok(Fits::No);
            }
            append(log, &mut self.files, read, now)?;
            self.unsynced += read.records.len() as u64;
            for aborted in &read.aborted {
                log.append_aborted(&mut self.files, *aborted)?;
            }
        }
        log.advance_start(read.log_start);
        if self.unsynced > UNSYNCED_MAX { self.sync().map(|()| Fits::Yes) } else { Ok(Fits::Yes) }
    }

    /// Makes what is there durable, and lets go of old segments' files.
    ///
    /// # Errors
    /// A failed sync is final for the directory.
    pub fn sync(&mut self) -> Result<(), StorageError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        self.unsynced = 0;
        let Some(dirty) = log.take_dirty() else { return Ok(()) };
        dirty.sync(&**self.files.disk(), self.files.file_system())?;
        log.mark_synced(dirty.ticket);
        Ok(())
    }

    /// Closes the copy so that the next start can go on with it.
    ///
    /// # Errors
    /// As for any write.
    pub fn close(&mut self) -> Result<(), StorageError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        if let Some(dirty) = log.close(&mut self.files)? {
            dirty.sync(&**self.files.disk(), self.files.file_system())?;
        }
        Ok(())
    }

    /// Lets go of the files, which are to be removed.
    pub fn abandon(&mut self) {
        if let Some(mut log) = self.log.take() {
            log.abandon(&mut self.files);
        }
    }
}

/// A batch may be larger than segments are now (`segment.bytes` was lowered since): it gets a segment of its own.
fn append(
    log: &mut Log,
    files: &mut FilePool,
    read: &MoveRead,
    now: TimestampMs,
) -> Result<(), StorageError> {
    let pieces = [AppendBytes::Whole(read.records.clone())];
    match log.append(files, &pieces, now) {
        Err(StorageError::TooLargeForSegment { .. }) => {
            log.set_config(Arc::new(LogConfig { segment_bytes: u32::MAX >> 1, ..(*read.config).clone() }));
            let done = log.append(files, &pieces, now);
            log.set_config(read.config.clone());
            done.map(|_| ())
        }
        done => done.map(|_| ()),
    }
}
