//! One log directory (an entry of `log.dirs`) as a whole: its lock, identity, checkpoints, and the partitions in it.
//!
//! One owner per directory. It learns how far each log is durable and writes Kafka's checkpoint files. A directory
//! that has failed stays failed until the process ends.
//!
//! Always true:
//! 1. an entry of `recovery-point-offset-checkpoint` never names more than was durable when it was written
//! 2. `.kafka_cleanshutdown` exists only while nothing is written in the directory
//! 3. entries of partitions that were not loaded yet are kept when a checkpoint is written

use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas_base::{BrokerEpoch, Map, Offset, Set, TopicId, TopicPartition, Uuid};

use crate::checkpoints::guard as checkpoint_guard;
use crate::checkpoints::guard::{Guard, Sum};
use crate::checkpoints::{clean_shutdown, offset_checkpoint};
use crate::disk::small_file;
use crate::disk::{Disk, DiskLock, DiskSpace};
use crate::error::StorageError;
use crate::log::OpenFrom;
use crate::log_dir::last_life::LastLife;
use crate::log_dir::meta_properties::MetaProperties;
use crate::partition_files::dir_name::{DirKind, PartitionDir};
use crate::partition_files::partition_metadata;

mod ahead;
mod guard;
pub(crate) mod last_life;
mod life;
pub(crate) mod meta_properties;
pub mod placement;
pub mod quarantine;
pub mod sweep;

#[cfg(test)]
mod tests;

/// The lock file of a log directory, as Kafka names it.
pub const LOCK: &str = ".lock";
const STANDS_IN: &str = "other files stand in for it, and logs are checked where those do not say enough";
const FROM_REPLICAS: &str =
    "high watermarks begin at the start of each log, until the in-sync replicas have what follows";

/// A log directory that this process holds the lock of.
#[derive(Debug)]
pub struct LogDir {
    disk: Arc<dyn Disk>,
    path: Arc<Path>,
    /// `None`: the directory could not be used from the start.
    _lock: Option<Box<dyn DiskLock>>,
    meta: Option<MetaProperties>,
    clean: bool,
    /// Nothing that an earlier process left is on its way to the medium still.
    settled: bool,
    /// Of the process before.
    kept_life: Option<LastLife>,
    online: bool,
    recovery_points: OffsetCheckpoint,
    log_starts: OffsetCheckpoint,
    high_watermarks: OffsetCheckpoint,
    cleaner_points: OffsetCheckpoint,
    /// What the journal says of synced logs, until they are opened.
    written_back: Map<(TopicPartition, TopicId), Offset>,
    /// Logs that were closed and synced by this process after an unclean stop: as good as after a clean one.
    vouched: Set<TopicPartition>,
    /// After a clean stop: the logs that were opened since, for which that stop vouches no more.
    opened: Set<TopicPartition>,
    damaged: Vec<StorageError>,
    /// The high watermarks that were read were durable when they were noted, whatever became of the process.
    high_watermarks_hold: bool,
    /// What is written from now on holds as much.
    is_synced: bool,
    /// The process before had a journal open here, and now this one has.
    had_journal: Option<u64>,
    journal: Option<u64>,
    /// Once this process has stopped writing here: of `.kafka_cleanshutdown`, where it wrote one.
    stopped: Option<Sum>,
    /// The guard's own words have changed.
    guard_changed: bool,
    /// The guard is there and fits: this program was the last to write here.
    is_ours: bool,
}

/// One checkpoint file as it is and as it shall be.
#[derive(Debug)]
struct OffsetCheckpoint {
    name: &'static str,
    offsets: Map<TopicPartition, Offset>,
    changed: bool,
    /// It was not what was written, or unreadable, at the start.
    is_damaged: bool,
    /// Of the file as it lies there.
    sum: Sum,
}

impl OffsetCheckpoint {
    /// An unreadable file counts as empty, as in Kafka: its offsets are lower bounds, found again from the logs.
    fn read(
        disk: &dyn Disk,
        dir: &Path,
        name: &'static str,
        guard: Option<&Guard>,
        damaged: &mut Vec<StorageError>,
    ) -> Result<Self, StorageError> {
        let path = dir.join(name);
        let text = small_file::read(disk, &path)?;
        let sum = checkpoint_guard::sum(text.as_deref());
        let remedy =
            |of_others| if name == offset_checkpoint::HIGH_WATERMARK { FROM_REPLICAS } else { of_others };
        if let Some(guard) = guard
            && guard.file(name).is_some_and(|file| !file.fits(sum))
        {
            let what = "it is not what was last written there".to_owned();
            damaged.push(StorageError::BadFile { file: path, what, remedy: remedy(STANDS_IN) });
            return Ok(Self { name, offsets: Map::default(), changed: true, is_damaged: true, sum });
        }
        let (offsets, is_damaged) = match text.as_deref().map(offset_checkpoint::parse) {
            None => (Map::default(), false),
            Some(Ok(offsets)) => (offsets, false),
            Some(Err(what)) => {
                let remedy = remedy("it counts as empty, and logs are checked from their beginning");
                damaged.push(StorageError::BadFile { file: path, what, remedy });
                (Map::default(), true)
            }
        };
        Ok(Self { name, offsets, changed: is_damaged, is_damaged, sum })
    }

    /// A damaged file of recovery points says nothing of what was synced; zero would let synced records be cut. High
    /// watermarks were durable when they were noted, so they stand in. Where they are damaged too, the log's own checks
    /// are all there is.
    fn stand_in(&mut self, offsets: &Map<TopicPartition, Offset>) {
        if self.is_damaged {
            self.offsets.clone_from(offsets);
        }
    }

    fn get(&self, partition: &TopicPartition) -> Option<Offset> {
        self.offsets.get(partition).copied()
    }

    fn set(&mut self, partition: TopicPartition, offset: Option<Offset>) {
        let before = match offset {
            Some(offset) => self.offsets.insert(partition, offset),
            None => self.offsets.remove(&partition),
        };
        self.changed |= before != offset;
    }

    fn write(&mut self, disk: &dyn Disk, dir: &Path) -> Result<(), StorageError> {
        if self.changed {
            let text = offset_checkpoint::render(&self.offsets);
            small_file::replace(disk, &dir.join(self.name), text.as_bytes())?;
            self.changed = false;
            self.sum = checkpoint_guard::sum(Some(text.as_bytes()));
        }
        Ok(())
    }
}

impl LogDir {
    /// Makes the directory if it is missing (its parent must exist), takes its lock, reads `meta.properties` and the
    /// checkpoints.
    ///
    /// Changes nothing else: `.kafka_cleanshutdown` stays until [`LogDir::begin`].
    ///
    /// # Errors
    /// [`StorageError::Locked`]: another process works here. [`StorageError::BadFile`]: `meta.properties` is damaged.
    pub fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, StorageError> {
        if disk.stat(path)?.is_none() {
            disk.create_dir(path)?;
            if let Some(parent) = path.parent() {
                disk.sync_dir(parent)?;
            }
        }
        let lock = disk.lock(&path.join(LOCK)).map_err(|error| match StorageError::from(error) {
            StorageError::Locked(_) => StorageError::Locked(path.to_path_buf()),
            other => other,
        })?;
        let meta = read_meta(&*disk, path)?;
        let clean_file = small_file::read(&*disk, &path.join(clean_shutdown::FILE_NAME))?;
        let mut damaged = Vec::new();
        let guard = guard::read(&*disk, path, clean_file.as_deref(), &mut damaged)?;
        let mut read = |name| OffsetCheckpoint::read(&*disk, path, name, guard.as_ref(), &mut damaged);
        let mut recovery_points = read(offset_checkpoint::RECOVERY_POINT)?;
        // Where they are damaged, nothing stands in: what was synced here may be on no other replica.
        let high_watermarks = read(offset_checkpoint::HIGH_WATERMARK)?;
        let mut log_starts = read(offset_checkpoint::LOG_START)?;
        let cleaner_points = read(offset_checkpoint::CLEANER)?;
        let high_watermarks_hold =
            !high_watermarks.is_damaged && guard.as_ref().is_some_and(|guard| guard.is_synced);
        recovery_points.stand_in(&high_watermarks.offsets);
        if let Some(guard) = &guard {
            log_starts.stand_in(&guard.log_starts);
        }
        let kept_life = life::kept(&*disk, path, clean_file.as_deref(), !damaged.is_empty())?;
        Ok(Self {
            recovery_points,
            log_starts,
            high_watermarks,
            cleaner_points,
            high_watermarks_hold,
            is_synced: false,
            had_journal: guard.as_ref().and_then(|guard| guard.journal),
            journal: None,
            stopped: guard.as_ref().and_then(|guard| guard.stopped),
            guard_changed: false,
            is_ours: guard.is_some(),
            clean: clean_file.is_some(),
            settled: clean_file.is_some(),
            kept_life,
            online: true,
            written_back: Map::default(),
            vouched: Set::default(),
            opened: Set::default(),
            path: Arc::from(path),
            disk,
            _lock: Some(lock),
            meta,
            damaged,
        })
    }

    /// A directory that cannot be used ([`LogDir::open`] failed, or what is in it is not to be trusted): offline for
    /// good. Its identity is read where that is still possible, so that it is known whose partitions lie in it.
    pub fn dead(disk: Arc<dyn Disk>, path: &Path) -> Self {
        let checkpoint = |name| OffsetCheckpoint {
            name,
            offsets: Map::default(),
            changed: false,
            is_damaged: false,
            sum: None,
        };
        Self {
            recovery_points: checkpoint(offset_checkpoint::RECOVERY_POINT),
            log_starts: checkpoint(offset_checkpoint::LOG_START),
            high_watermarks: checkpoint(offset_checkpoint::HIGH_WATERMARK),
            cleaner_points: checkpoint(offset_checkpoint::CLEANER),
            high_watermarks_hold: false,
            is_synced: false,
            had_journal: None,
            journal: None,
            stopped: None,
            guard_changed: false,
            is_ours: false,
            clean: false,
            settled: false,
            kept_life: None,
            online: false,
            written_back: Map::default(),
            vouched: Set::default(),
            opened: Set::default(),
            path: Arc::from(path),
            meta: read_meta(&*disk, path).unwrap_or_default(),
            disk,
            _lock: None,
            damaged: Vec::new(),
        }
    }

    pub fn path(&self) -> &Arc<Path> {
        &self.path
    }

    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Checkpoint files that were unreadable and count as empty: for the log, at WARN.
    pub fn damaged(&self) -> &[StorageError] {
        &self.damaged
    }

    /// `None`: the directory is not formatted.
    pub fn meta(&self) -> Option<&MetaProperties> {
        self.meta.as_ref()
    }

    pub fn write_meta(&mut self, meta: MetaProperties) -> Result<(), StorageError> {
        let path = self.path.join(meta_properties::FILE_NAME);
        small_file::replace(&*self.disk, &path, meta.render().as_bytes())?;
        self.meta = Some(meta);
        Ok(())
    }

    /// Whether the last process to write here stopped cleanly.
    pub fn was_clean(&self) -> bool {
        self.clean
    }

    /// The file system was synced as a whole since this process began: logs that are opened from now on need not have
    /// that done for what an earlier one left.
    pub fn note_settled(&mut self) {
        self.settled = true;
    }

    /// After an unclean stop: [`LogDir::note_settled`] was called. A clean stop must not be noted before that.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// Removes `.kafka_cleanshutdown` for good; called before the first partition is opened, since opening may write.
    /// The metadata log may be open by then ([`LogDir::open_ahead`]).
    pub fn begin(&mut self) -> Result<(), StorageError> {
        // Until here what is written is written beside the mark, which the guard goes on naming.
        self.stopped = None;
        // No other program has left holes in it: a start after a crash takes none for those of compaction.
        let is_new = !self.is_ours && !self.clean && self.partitions()?.is_empty();
        if self.clean {
            self.disk.remove_file(&self.path.join(clean_shutdown::FILE_NAME))?;
            self.disk.sync_dir(&self.path)?;
            self.forget_ahead()?;
        }
        if self.clean || is_new {
            // Else it still speaks of that file: after a kill nothing in the directory would count as this program's.
            self.guard_changed = true;
            if self.is_ours || is_new {
                let guarded = self.write_guard();
                // Where there is no room, the next checkpoints write it.
                let guarded = guarded.or_else(|error| if error.is_passing() { Ok(()) } else { Err(error) });
                return self.note_failure(guarded);
            }
        }
        Ok(())
    }

    /// Partitions that a checkpoint has something to say of, some of them several times.
    pub fn checkpointed(&self) -> impl Iterator<Item = &TopicPartition> {
        let all = [&self.recovery_points, &self.log_starts, &self.high_watermarks, &self.cleaner_points];
        all.into_iter().flat_map(|checkpoint| checkpoint.offsets.keys())
    }

    /// The partitions found in the directory, `__cluster_metadata-0` included. Names that are no partition's are left
    /// out.
    pub fn partitions(&self) -> Result<Vec<PartitionDir>, StorageError> {
        let entries = self.disk.list(&self.path)?;
        Ok(entries
            .iter()
            .filter(|entry| entry.is_dir)
            .filter_map(|entry| PartitionDir::parse(&entry.name))
            .collect())
    }

    /// The topic id in a partition directory's `partition.metadata`; `None` where there is no such file or it is torn.
    pub fn topic_id(&self, partition: &PartitionDir) -> Result<Option<TopicId>, StorageError> {
        let path = self.path.join(&partition.name).join(partition_metadata::FILE_NAME);
        let text = small_file::read(&*self.disk, &path)?;
        Ok(text.as_deref().and_then(partition_metadata::parse))
    }

    /// Rewrites a partition's topic id, where the file is known to be damaged.
    pub fn write_topic_id(&self, partition: &PartitionDir, topic: TopicId) -> Result<(), StorageError> {
        let path = self.path.join(&partition.name).join(partition_metadata::FILE_NAME);
        Ok(small_file::replace(&*self.disk, &path, partition_metadata::render(topic).as_bytes())?)
    }

    /// What the checkpoints say of a partition, for [`crate::Log::open`].
    ///
    /// A clean stop vouches for a log once: a log that is opened again may hold bytes that were never synced.
    pub fn open_from(&mut self, partition: &TopicPartition) -> OpenFrom {
        OpenFrom {
            clean: (self.clean || self.vouched.contains(partition)) && self.opened.insert(partition.clone()),
            recovery_point: self.recovery_points.get(partition).unwrap_or(Offset::ZERO),
            log_start: self.log_starts.get(partition).unwrap_or(Offset::ZERO),
            journal_end: None,
            is_ours: self.is_ours,
            is_unsettled: !self.settled,
            recovery_point_holds: self.is_ours && !self.recovery_points.is_damaged,
            was_compacted: self.cleaner_points.get(partition).is_some(),
            is_repairable: false,
        }
    }

    /// The log of a partition was recovered, closed and synced up to `end`, before anybody else opens it. Noted in the
    /// checkpoint file by the next [`LogDir::write_checkpoints`].
    pub fn vouch_for(&mut self, partition: TopicPartition, end: Offset) {
        self.opened.remove(&partition);
        self.recovery_points.set(partition.clone(), Some(end));
        self.vouched.insert(partition);
    }

    /// The offset below which the partition was synced when the checkpoint was written; 0 where it has no entry.
    pub fn recovery_point(&self, partition: &TopicPartition) -> Offset {
        self.recovery_points.get(partition).unwrap_or(Offset::ZERO)
    }

    /// The first offset that may be read, where that is not the first segment's base.
    pub fn log_start(&self, partition: &TopicPartition) -> Option<Offset> {
        self.log_starts.get(partition)
    }

    /// The end of the log may not lie below this after whatever stop: everything below was on disk when it was noted.
    /// `None`: the directory's files do not say so.
    pub fn held_end(&self, partition: &TopicPartition) -> Option<Offset> {
        self.high_watermark(partition).filter(|_| self.high_watermarks_hold)
    }

    /// The process before was not stopped cleanly and had a journal open here; its newest life then, or before.
    pub fn had_journal(&self) -> Option<u64> {
        self.had_journal.filter(|_| !self.clean)
    }

    /// A journal is open here from now on, and this is its newest life; or no longer. Written with the next
    /// checkpoints. Returns whether that is news.
    pub fn set_journal(&mut self, life: Option<u64>) -> bool {
        let is_news = self.journal != life;
        self.guard_changed |= is_news;
        self.journal = life;
        is_news
    }

    /// From now on high watermarks are noted only once what lies below is durable, or not.
    pub fn set_synced(&mut self, is_synced: bool) {
        self.is_synced = is_synced;
    }

    pub fn high_watermark(&self, partition: &TopicPartition) -> Option<Offset> {
        self.high_watermarks.get(partition)
    }

    /// The offset up to which a compacted log is clean.
    pub fn cleaner_point(&self, partition: &TopicPartition) -> Option<Offset> {
        self.cleaner_points.get(partition)
    }

    /// `offset` comes from [`crate::Log::checkpoint`].
    pub fn set_recovery_point(&mut self, partition: TopicPartition, offset: Offset) {
        self.recovery_points.set(partition, Some(offset));
    }

    /// The journal's rounds say that the log of this topic's partition is synced up to there, where the recovery point
    /// of the checkpoint file may be less. Counts once that log is about to be opened.
    pub fn note_written_back(&mut self, partition: TopicPartition, topic: TopicId, end: Offset) {
        self.written_back.insert((partition, topic), end);
    }

    /// A log of this topic's partition is about to be opened: its recovery point is that of the checkpoint file, or
    /// what the journal has said ([`LogDir::note_written_back`]).
    pub fn take_written_back(&mut self, partition: &TopicPartition, topic: TopicId) {
        let Some(end) = self.written_back.remove(&(partition.clone(), topic)) else { return };
        if end > self.recovery_point(partition) {
            self.set_recovery_point(partition.clone(), end);
        }
    }

    /// As [`LogDir::set_log_start`] where the given offset may be older than the known one: a log's start does not move
    /// back.
    pub fn raise_log_start(&mut self, partition: TopicPartition, offset: Option<Offset>) {
        let known = self.log_starts.get(&partition);
        self.log_starts.set(partition, known.max(offset));
    }

    /// Only worth an entry where the start lies above the first segment's base; `None` removes the entry.
    pub fn set_log_start(&mut self, partition: TopicPartition, offset: Option<Offset>) {
        self.log_starts.set(partition, offset);
    }

    pub fn set_high_watermark(&mut self, partition: TopicPartition, offset: Offset) {
        self.high_watermarks.set(partition, Some(offset));
    }

    /// `None` removes the entry.
    pub fn set_cleaner_point(&mut self, partition: TopicPartition, offset: Option<Offset>) {
        self.cleaner_points.set(partition, offset);
    }

    /// Drops all entries of a partition. Written by the next [`LogDir::write_checkpoints`], which must happen before a
    /// log of the same name is written to: an entry of the old log would vouch for the new one's unsynced bytes.
    pub fn forget(&mut self, partition: &TopicPartition) {
        for checkpoint in self.checkpoints() {
            checkpoint.set(partition.clone(), None);
        }
    }

    /// Writes the checkpoint files that have changed, each atomically.
    pub fn write_checkpoints(&mut self) -> Result<(), StorageError> {
        self.check_online()?;
        let (disk, path) = (self.disk.clone(), self.path.clone());
        let guarded = self.write_guard();
        self.note_failure(guarded)?;
        let written =
            self.checkpoints().into_iter().try_for_each(|checkpoint| checkpoint.write(&*disk, &path));
        self.note_failure(written)
    }

    /// Vouches for everything in the directory: all logs are closed and synced, all checkpoints written.
    pub fn mark_clean(&mut self, broker_epoch: BrokerEpoch) -> Result<(), StorageError> {
        self.check_online()?;
        let path = self.path.join(clean_shutdown::FILE_NAME);
        let text = clean_shutdown::render(broker_epoch);
        self.write_stopped(checkpoint_guard::sum(Some(text.as_bytes())))?;
        small_file::replace(&*self.disk, &path, text.as_bytes())?;
        self.clean = true;
        Ok(())
    }

    /// Nothing is written here any more, and not everything in the directory is vouched for ([`LogDir::unrecovered`]).
    pub fn mark_left(&mut self) -> Result<(), StorageError> {
        self.check_online()?;
        self.write_stopped(None)
    }

    fn write_stopped(&mut self, clean_shutdown: Sum) -> Result<(), StorageError> {
        self.stopped = Some(clean_shutdown);
        self.guard_changed = true;
        self.write_checkpoints()
    }

    /// Logs that an unclean stop left and that were not recovered since: not among `closed` (by this process, on its
    /// way out), nor vouched for. A clean stop must not speak for them ([`LogDir::mark_clean`]): their ends may be
    /// torn.
    pub fn unrecovered(&self, closed: &Set<TopicPartition>) -> Result<usize, StorageError> {
        if self.clean {
            return Ok(0);
        }
        let mut left = self.partitions()?;
        left.retain(|dir| dir.kind == DirKind::Current);
        left.retain(|dir| {
            !closed.contains(&dir.topic_partition) && !self.vouched.contains(&dir.topic_partition)
        });
        Ok(left.len())
    }

    /// Renames partitions' directories so that they count as deleted, once their entries are gone from the checkpoints.
    /// Returns the new names of those that were there; they go later, with [`LogDir::remove`]. The names are made of
    /// numbers that the caller draws at random. The logs must be closed ([`crate::Log::abandon`]).
    ///
    /// The checkpoints are written once and the directory synced once, however many there are: they name every
    /// partition of the directory, so to write them for each of thousands would take minutes.
    pub fn rename_to_delete(
        &mut self,
        partitions: &[(TopicPartition, Uuid)],
    ) -> Result<Vec<PathBuf>, StorageError> {
        partitions.iter().for_each(|(partition, _)| self.forget(partition));
        self.write_checkpoints()?;
        let mut renamed = Vec::with_capacity(partitions.len());
        for (partition, unique) in partitions {
            renamed.extend(self.rename_forgotten(partition, *unique)?);
        }
        if !renamed.is_empty() {
            self.sync_names()?;
        }
        Ok(renamed)
    }

    /// The middle of [`LogDir::rename_to_delete`], for one that is forgotten ([`LogDir::forget`]) in checkpoints that
    /// are written. The caller syncs the directory, once for many.
    pub fn rename_forgotten(
        &mut self,
        partition: &TopicPartition,
        unique: Uuid,
    ) -> Result<Option<PathBuf>, StorageError> {
        self.rename_unsynced(partition, DirKind::Delete, unique)
    }

    /// As [`LogDir::rename_to_delete`], for a partition that another directory holds now: its name goes first, and its
    /// entries after that, so that a crash in between leaves either all of it or none.
    pub fn rename_moved(
        &mut self,
        partition: &TopicPartition,
        unique: Uuid,
    ) -> Result<Option<PathBuf>, StorageError> {
        self.check_online()?;
        let aside = self.rename_dir(partition, DirKind::Delete, unique)?;
        self.forget(partition);
        self.write_checkpoints()?;
        Ok(aside)
    }

    /// Turns a partition's directory into a copy in the making: another directory holds the partition.
    pub fn rename_to_future(
        &mut self,
        partition: &TopicPartition,
        unique: Uuid,
    ) -> Result<Option<PathBuf>, StorageError> {
        self.rename_to(partition, DirKind::Future, unique)
    }

    /// Gives a copy that is complete and synced the partition's own name, once the checkpoints vouch for it.
    pub fn promote_future(&mut self, partition: &TopicPartition, unique: Uuid) -> Result<(), StorageError> {
        self.write_checkpoints()?;
        let from = self.path.join(PartitionDir::renamed(partition, DirKind::Future, unique));
        let renamed = self.disk.rename(&from, &self.path.join(partition.to_string()));
        let synced = renamed.and_then(|()| self.disk.sync_dir(&self.path)).map_err(StorageError::from);
        self.note_failure(synced)
    }

    /// Puts a partition's directory aside as a stray.
    pub fn rename_to_stray(
        &mut self,
        partition: &TopicPartition,
        unique: Uuid,
    ) -> Result<Option<PathBuf>, StorageError> {
        self.rename_to(partition, DirKind::Stray, unique)
    }

    fn rename_to(
        &mut self,
        partition: &TopicPartition,
        kind: DirKind,
        unique: Uuid,
    ) -> Result<Option<PathBuf>, StorageError> {
        self.forget(partition);
        self.write_checkpoints()?;
        self.rename_dir(partition, kind, unique)
    }

    fn rename_dir(
        &mut self,
        partition: &TopicPartition,
        kind: DirKind,
        unique: Uuid,
    ) -> Result<Option<PathBuf>, StorageError> {
        let renamed = self.rename_unsynced(partition, kind, unique)?;
        if renamed.is_some() {
            self.sync_names()?;
        }
        Ok(renamed)
    }

    fn rename_unsynced(
        &mut self,
        partition: &TopicPartition,
        kind: DirKind,
        unique: Uuid,
    ) -> Result<Option<PathBuf>, StorageError> {
        let from = self.path.join(partition.to_string());
        let to = self.path.join(PartitionDir::renamed(partition, kind, unique));
        match self.disk.rename(&from, &to) {
            Err(error) if error.is_not_found() => Ok(None),
            renamed => self.note_failure(renamed.map_err(StorageError::from)).map(|()| Some(to)),
        }
    }

    fn sync_names(&mut self) -> Result<(), StorageError> {
        let synced = self.disk.sync_dir(&self.path).map_err(StorageError::from);
        self.note_failure(synced)
    }

    /// Removes a directory with all files in it.
    pub fn remove(&self, dir: &Path) -> Result<(), StorageError> {
        remove_dir(&*self.disk, dir)
    }

    /// A write or sync in this directory failed: offline from now on.
    pub fn fail(&mut self) {
        self.online = false;
    }

    pub fn is_online(&self) -> bool {
        self.online
    }

    pub fn space(&self) -> Result<DiskSpace, StorageError> {
        Ok(self.disk.space(&self.path)?)
    }

    fn checkpoints(&mut self) -> [&mut OffsetCheckpoint; 4] {
        // As in `offset_checkpoint::ALL`.
        [&mut self.recovery_points, &mut self.high_watermarks, &mut self.log_starts, &mut self.cleaner_points]
    }

    fn check_online(&self) -> Result<(), StorageError> {
        if self.online { Ok(()) } else { Err(StorageError::Failed(self.path.to_path_buf())) }
    }

    /// A full disk is no failure: the old checkpoint stays, and is a lower bound still.
    fn note_failure<T>(&mut self, done: Result<T, StorageError>) -> Result<T, StorageError> {
        self.online &= !matches!(done, Err(StorageError::Disk(_)));
        done
    }
}

/// Removes a directory with all files in it, from any thread: what [`LogDir::remove`] does, without the directory at
/// hand.
pub fn remove_dir(disk: &dyn Disk, dir: &Path) -> Result<(), StorageError> {
    let entries = match disk.list(dir) {
        Err(error) if error.is_not_found() => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = dir.join(&entry.name);
        if entry.is_dir {
            disk.remove_dir(&path)?;
        } else {
            disk.remove_file(&path)?;
        }
    }
    Ok(disk.remove_dir(dir)?)
}

/// The identity of a directory that is not opened: nothing is made or locked there. `None`: it is not formatted.
///
/// # Errors
/// `meta.properties` cannot be read, or is damaged.
pub fn read_meta(disk: &dyn Disk, dir: &Path) -> Result<Option<MetaProperties>, StorageError> {
    let path = dir.join(meta_properties::FILE_NAME);
    let Some(text) = small_file::read(disk, &path)? else { return Ok(None) };
    let meta = MetaProperties::parse(&text).map_err(|what| StorageError::BadFile {
        file: path,
        what,
        remedy: "restore it from a copy, or write it by hand with the cluster's and the node's id",
    })?;
    Ok(Some(meta))
}
