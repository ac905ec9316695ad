//! The files of `__cluster_metadata-0`: the log, `quorum-state`, snapshots.

mod snapshot_check;

use crate::damage::refuse_damage_before_valid;
use crate::{MetadataError, metadata_partition};
use barnabas_base::{LeaderEpoch, Offset, TimestampMs, Uuid};
use barnabas_quorum::batches::EncodedBatch;
use barnabas_quorum::bootstrap::LEGACY_FILE_NAME;
use barnabas_quorum::raft::state::quorum_state::FILE_NAME;
use barnabas_quorum::{SnapshotId, SnapshotTask, Starting, Stored};
use barnabas_storage::{
    DelayedDelete, Disk, DiskFile, FilePool, Log, LogConfig, LogPlace, OpenFrom, OpenMode, StorageError,
};
use barnabas_wire::records::BatchHeader;
use bytes::Bytes;
use snapshot_check::headers_of;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Of log or snapshot, for another member at once.
const PEER_BYTES_MAX: usize = 8 << 20;
/// Read at once at the start.
const PIECE_BYTES: usize = 1 << 20;
const FILES_OPEN_MAX: usize = 16;
/// Room that is kept for deletions and settings while the disk is full. Not a file of Kafka's, which leaves it alone.
pub const RESERVE_NAME: &str = "disk-full.reserve";
const RESERVE_BYTES: u64 = 4 << 20;

/// The directory of the metadata log, open. See the file's header.
#[derive(Debug)]
pub struct MetadataFiles {
    disk: Arc<dyn Disk>,
    dir: Arc<Path>,
    pool: FilePool,
    log: Log,
    /// The log lost its tail at this start: it may know less than lies in the directories.
    pub cut: Option<Truncated>,
}

/// What an unclean stop left behind that was never synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncated {
    pub bytes: u64,
    pub end: Offset,
}

impl MetadataFiles {
    /// The directory of the metadata log within a log directory.
    pub fn dir_in(root: &Path) -> PathBuf {
        root.join(metadata_partition().to_string())
    }

    /// Opens the log under `root`, recovering what an unclean stop left.
    ///
    /// # Errors
    /// The log cannot be read as it must be.
    pub fn open(
        disk: Arc<dyn Disk>,
        root: Arc<Path>,
        from: OpenFrom,
        config: LogConfig,
        now: TimestampMs,
    ) -> Result<Self, StorageError> {
        let dir: Arc<Path> = Self::dir_in(&root).into();
        let mut pool = FilePool::new(disk.clone(), FILES_OPEN_MAX);
        // What fills a block up would be told from damage by its place alone, and damage.rs looks at bytes.
        pool.set_direct_from(None);
        let place =
            LogPlace { root, topic_partition: metadata_partition(), topic_id: Uuid::ZERO, future: None };
        let config = Arc::new(config);
        let has_segments =
            disk.stat(&dir)?.is_some() && disk.list(&dir)?.iter().any(|entry| entry.name.ends_with(".log"));
        if has_segments && !from.clean {
            refuse_damage_before_valid(disk.as_ref(), &dir, from.recovery_point)?;
        }
        let mut cut = None;
        let log = if has_segments || from.recovery_point > Offset::ZERO {
            let (log, opened) = Log::open(&mut pool, place, config, from, now)?;
            cut = opened.cut.map(|cut| Truncated { bytes: cut.bytes, end: cut.end });
            log
        } else {
            Log::create(place, config, Offset::ZERO)
        };
        Ok(Self { disk, dir, pool, log, cut })
    }

    fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    fn log_range(&self) -> (Offset, Offset) {
        (self.log.start(), self.log.end())
    }

    /// Of the batches in `from..to`, and perhaps a few more.
    fn headers(&mut self, from: Offset, to: Offset) -> Result<Vec<BatchHeader>, StorageError> {
        let (mut headers, mut next) = (Vec::new(), from);
        while next < to {
            let read = self.log.read(&mut self.pool, next, PIECE_BYTES, to.max(from), true)?;
            let (found, after) = headers_of(read.records);
            let Some(after) = after else { break };
            headers.extend(found);
            next = after;
        }
        Ok(headers)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What is there, for the quorum to begin with.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn stored(&self) -> Result<Stored, StorageError> {
        let mut stored = Stored {
            quorum_state: self.read_text(FILE_NAME)?,
            log_start: self.log.start(),
            log_end: self.log.end(),
            snapshots: Vec::new(),
            legacy_bootstrap: self.read_whole(&self.legacy_path())?,
        };
        if self.disk.stat(&self.dir)?.is_some() {
            stored.snapshots = self
                .disk
                .list(&self.dir)?
                .iter()
                .filter_map(|entry| SnapshotId::parse(&entry.name))
                .map(|id| {
                    let stat = self.disk.stat(&self.dir.join(id.file_name()))?;
                    Ok((id, stat.map_or(0, |stat| stat.len)))
                })
                .collect::<Result<Vec<_>, StorageError>>()?;
        }
        Ok(stored)
    }

    /// Kafka up to 4.3 wrote it beside the partition's directory.
    fn legacy_path(&self) -> PathBuf {
        self.log.place().root.join(LEGACY_FILE_NAME)
    }

    /// Feeds the quorum its snapshot and its log.
    ///
    /// # Errors
    /// They cannot be read, or say what cannot be.
    pub fn feed(&mut self, starting: &mut Starting) -> Result<(), MetadataError> {
        if let Some(id) = starting.snapshot() {
            let path = self.dir.join(id.file_name());
            let at = |source| MetadataError::At { place: path.clone(), source };
            let file = self.disk.open(&path, OpenMode::Read).map_err(StorageError::from)?;
            let mut position = 0;
            loop {
                let piece = file.read_bytes(position, PIECE_BYTES).map_err(StorageError::from)?;
                if piece.is_empty() {
                    break;
                }
                position += piece.len() as u64;
                starting.feed_snapshot(&piece).map_err(at)?;
            }
            starting.finish_snapshot().map_err(at)?;
            self.check_snapshot(id, &path)?;
        }
        let end = self.log.end();
        let mut next = starting.log_from().max(self.log.start());
        while next < end {
            let read = self.log.read(&mut self.pool, next, PIECE_BYTES, end, true)?;
            if read.records.is_empty() {
                break;
            }
            next = read.next_offset;
            let at = |source| MetadataError::At { place: self.dir.to_path_buf(), source };
            starting.feed_log(read.records).map_err(at)?;
        }
        Ok(())
    }

    /// # Errors
    /// The log takes no more writes.
    pub fn append(&mut self, batch: &EncodedBatch, now: TimestampMs) -> Result<(), StorageError> {
        if let Some(epoch) = barnabas_wire::records::BatchHeader::parse(&batch.bytes)
            .ok()
            .map(|header| header.partition_leader_epoch)
        {
            self.note_epoch(epoch, batch.base);
        }
        self.log.append(&mut self.pool, &[batch.bytes.clone().into()], now).map(|_| ())
    }

    /// Whole batches from `from` on, up to `end`: at least one, then no more than `bytes_max`.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn read(&mut self, from: Offset, end: Offset, bytes_max: i32) -> Result<Bytes, StorageError> {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(0).min(PEER_BYTES_MAX);
        Ok(self.log.read(&mut self.pool, from, bytes_max, end, true)?.records)
    }

    /// A piece of a snapshot; `None` where there is no such file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read_snapshot(
        &self,
        id: SnapshotId,
        position: i64,
        bytes_max: i32,
    ) -> Result<Option<Bytes>, StorageError> {
        let path = self.dir.join(id.file_name());
        let Some(stat) = self.disk.stat(&path)? else { return Ok(None) };
        let position = u64::try_from(position).unwrap_or(0).min(stat.len);
        let left = usize::try_from(stat.len - position).unwrap_or(usize::MAX);
        let count = usize::try_from(bytes_max).unwrap_or(0).min(PEER_BYTES_MAX).min(left);
        Ok(Some(self.disk.open(&path, OpenMode::Read)?.read_bytes(position, count)?))
    }

    /// Cuts the log off at `end`, durably.
    ///
    /// # Errors
    /// As for any write.
    pub fn truncate(&mut self, end: Offset, now: TimestampMs) -> Result<(), StorageError> {
        let (_, gone) = self.log.truncate_to(&mut self.pool, end, now)?;
        self.remove(gone)
    }

    /// Empties the log: it begins and ends at `start`.
    ///
    /// # Errors
    /// As for any write.
    pub fn restart(&mut self, start: Offset, now: TimestampMs) -> Result<(), StorageError> {
        let gone = self.log.truncate_fully_and_start_at(&mut self.pool, start, now)?;
        self.remove(gone)
    }

    fn remove(&self, gone: Option<DelayedDelete>) -> Result<(), StorageError> {
        for file in gone.iter().flat_map(|gone| &gone.files) {
            self.disk.remove_file(file)?;
        }
        Ok(())
    }

    /// Writes a piece of a snapshot that comes from the leader to its unfinished file.
    ///
    /// # Errors
    /// As for any write.
    pub fn write_piece(&self, id: SnapshotId, position: i64, bytes: &Bytes) -> Result<(), StorageError> {
        make_dir(self.disk.as_ref(), &self.dir)?;
        let mode = if position == 0 { OpenMode::Truncate } else { OpenMode::Write };
        let file = self.disk.open(&self.part_path(id), mode)?;
        Ok(file.write_at(u64::try_from(position).unwrap_or(0), &[bytes])?)
    }

    /// Gives a snapshot that is whole its name, durably. Returns its size.
    ///
    /// # Errors
    /// As for any write.
    pub fn store_snapshot(&self, id: SnapshotId) -> Result<u64, StorageError> {
        let (part, path) = (self.part_path(id), self.dir.join(id.file_name()));
        self.disk.open(&part, OpenMode::Write)?.sync()?;
        self.disk.rename(&part, &path)?;
        self.disk.sync_dir(&self.dir)?;
        Ok(self.disk.stat(&path)?.map_or(0, |stat| stat.len))
    }

    fn part_path(&self, id: SnapshotId) -> PathBuf {
        self.dir.join(format!("{}.part", id.file_name()))
    }

    fn note_epoch(&mut self, epoch: LeaderEpoch, at: Offset) {
        if self.log.epochs().latest().is_none_or(|latest| latest.epoch < epoch) {
            self.log.assign_epoch(epoch, at);
        }
    }

    /// Takes the reserve, where it is not there yet. Returns whether it stands.
    ///
    /// # Errors
    /// Anything but a full disk.
    pub fn take_reserve(&self) -> Result<bool, StorageError> {
        let path = self.dir.join(RESERVE_NAME);
        if self.disk.stat(&path)?.is_some_and(|stat| stat.len >= RESERVE_BYTES) {
            return Ok(true);
        }
        make_dir(self.disk.as_ref(), &self.dir)?;
        let filled = self.disk.open(&path, OpenMode::Truncate).and_then(|file| file.fill(RESERVE_BYTES));
        match filled.map_err(StorageError::from) {
            Ok(()) => Ok(true),
            Err(error) if error.is_passing() => {
                self.disk.remove_file(&path)?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Releases the reserve's room for the next write.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn release_reserve(&self) -> Result<(), StorageError> {
        Ok(self.disk.remove_file(&self.dir.join(RESERVE_NAME))?)
    }

    /// What the recovery-point checkpoint may name: synced, with the leader epochs that it rests on. A full disk leaves
    /// the old one standing.
    ///
    /// # Errors
    /// As for any write.
    pub fn recovery_point(&mut self) -> Result<Option<Offset>, StorageError> {
        match self.log.checkpoint(&mut self.pool) {
            Ok(synced) => Ok(Some(synced)),
            Err(error) if error.is_passing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes everything that was appended durable.
    ///
    /// # Errors
    /// The sync failed, which is final.
    pub fn sync(&mut self) -> Result<(), StorageError> {
        let Some(dirty) = self.log.take_dirty() else { return Ok(()) };
        dirty.sync(&*self.disk, None)?;
        self.log.mark_synced(dirty.ticket);
        Ok(())
    }

    /// Replaces `quorum-state`, atomically and durably.
    ///
    /// # Errors
    /// As for any write.
    pub fn write_state(&self, text: &str) -> Result<(), StorageError> {
        make_dir(self.disk.as_ref(), &self.dir)?;
        write_file(self.disk.as_ref(), &self.dir, FILE_NAME, |file| Ok(file.write_at(0, &[text.as_bytes()])?))
    }

    pub fn snapshot_writer(&self) -> SnapshotFiles {
        SnapshotFiles { disk: self.disk.clone(), dir: self.dir.clone() }
    }

    /// Deletes the part of the log that a snapshot covers.
    ///
    /// # Errors
    /// As for any write.
    pub fn delete_before(
        &mut self,
        log_start: Offset,
        snapshots: &[SnapshotId],
        now: TimestampMs,
    ) -> Result<(), StorageError> {
        self.log.advance_start(log_start);
        if let Some(delete) = self.log.delete_old_segments(&mut self.pool, now, log_start)? {
            for file in &delete.files {
                self.disk.remove_file(file)?;
            }
        }
        for id in snapshots {
            self.disk.remove_file(&self.dir.join(id.file_name()))?;
        }
        Ok(())
    }

    /// # Errors
    /// As for any write.
    pub fn close(&mut self) -> Result<(), StorageError> {
        self.sync()?;
        if let Some(dirty) = self.log.close(&mut self.pool)? {
            dirty.sync(&*self.disk, None)?;
            self.log.mark_synced(dirty.ticket);
        }
        Ok(())
    }

    fn read_text(&self, name: &str) -> Result<Option<String>, StorageError> {
        let bytes = self.read_whole(&self.dir.join(name))?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn read_whole(&self, path: &Path) -> Result<Option<Bytes>, StorageError> {
        let Some(stat) = self.disk.stat(path)? else { return Ok(None) };
        let file = self.disk.open(path, OpenMode::Read)?;
        Ok(Some(file.read_bytes(0, stat.len as usize)?))
    }
}

/// Writes snapshots, on whatever thread.
#[derive(Debug)]
pub struct SnapshotFiles {
    disk: Arc<dyn Disk>,
    dir: Arc<Path>,
}

impl SnapshotFiles {
    /// Writes beside, syncs, renames. Returns the size.
    ///
    /// # Errors
    /// As for any write; a record that cannot be written.
    pub fn write(&self, task: &SnapshotTask) -> Result<u64, MetadataError> {
        let mut size = 0;
        write_file(self.disk.as_ref(), &self.dir, &task.id.file_name(), |file| {
            let mut position = 0;
            task.write(|piece| -> Result<(), MetadataError> {
                file.write_at(position, &[&piece]).map_err(StorageError::from)?;
                position += piece.len() as u64;
                size = position;
                Ok(())
            })
        })?;
        Ok(size)
    }
}

pub fn make_dir(disk: &dyn Disk, dir: &Path) -> Result<(), StorageError> {
    if disk.stat(dir)?.is_none() {
        disk.create_dir(dir)?;
        if let Some(parent) = dir.parent() {
            disk.sync_dir(parent)?;
        }
    }
    Ok(())
}

/// Writes a file beside its name, syncs it, and gives it its name: after a crash there is the old one or the new one.
///
/// # Errors
/// Whatever `write` says, or the disk. The old file, if there was one, is as it was.
pub fn write_file<E: From<StorageError>>(
    disk: &dyn Disk,
    dir: &Path,
    name: &str,
    write: impl FnOnce(&dyn DiskFile) -> Result<(), E>,
) -> Result<(), E> {
    let part = dir.join(format!("{name}.part"));
    let file = disk.open(&part, OpenMode::Truncate).map_err(StorageError::from)?;
    write(file.as_ref())?;
    let named =
        file.sync().and_then(|()| disk.rename(&part, &dir.join(name))).and_then(|()| disk.sync_dir(dir));
    Ok(named.map_err(StorageError::from)?)
}

#[cfg(test)]
mod tests;
