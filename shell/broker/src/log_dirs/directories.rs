//! The node's log directories: which are online, which are cordoned, what their checkpoints say.
//!
//! A directory's files are written by workers (logs), by its committer (syncs) and by housekeeping (checkpoints); this
//! file holds what they share. The lock around a [`LogDir`] is taken when a partition is opened, deleted or
//! checkpointed, never for an append or a read.
//!
//! `directories/figures.rs` knows how full and how busy each directory is; upkeep/placement.rs acts on what is here.
//!
//! Always true:
//! 1. a directory that has failed is offline until the process ends
//! 2. one that could not be used at the start is offline from the start: nothing in it is touched

pub mod figures;
pub mod places;

use crate::log_dirs::committer::Committer;
use crate::log_dirs::full::Room;
use crate::log_dirs::journal_thread::JournalHandle;
use crate::mailbox::PartitionKey;
use barnabas_base::{DirectoryId, Text, TimestampMs, TopicId, TopicPartition, Uuid, name};
use barnabas_log_dirs::lost::is_reserved;
use barnabas_replica::Checkpoints;
use barnabas_storage::scrub::{self, Changed};
use barnabas_storage::{DirKind, Disk, FileSystem, LogDir, PartitionDir, StorageError};
use figures::Figures;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Partitions that are put aside under one hold of the lock: a few milliseconds.
const ASIDE_AT_ONCE: usize = 64;

/// One entry of `log.dirs` (or `metadata.log.dir`).
#[derive(Debug)]
pub struct Directory {
    pub path: Arc<Path>,
    /// A reserved id where the directory could not be read.
    pub id: DirectoryId,
    pub disk: Arc<dyn Disk>,
    pub committer: Committer,
    pub journal: JournalHandle,
    /// All of the file system, to be synced with one call where many files are unsynced. Open since before anything was
    /// written.
    pub file_system: Option<Arc<dyn FileSystem>>,
    /// Who may still write here.
    pub room: Room,
    /// Whether partitions may lie here; the metadata log's own directory may not be an entry of `log.dirs`.
    pub holds_partitions: bool,
    /// It could not be used when the node started.
    pub dead_from_start: bool,
    /// When the process before vouched for what lies here ([`scrub::vouched_at`]).
    pub vouched_at: Option<TimestampMs>,
    /// Segments of the metadata log that changed after that. Listed before this process opens the log: it appends to
    /// the log from its start on.
    pub changed_metadata: Vec<Changed>,
    log_dir: Mutex<LogDir>,
    online: AtomicBool,
    failed_at: OnceLock<Instant>,
    /// Takes no new partitions (KIP-1066).
    cordoned: AtomicBool,
    written_bytes: AtomicU64,
}

/// When the process before vouched for the files of a directory, and which segments of the metadata log changed since.
fn changes(log_dir: &LogDir) -> (Option<TimestampMs>, Vec<Changed>) {
    let disk = &**log_dir.disk();
    let metadata = log_dir.path().join(format!("{}-0", name::CLUSTER_METADATA));
    let changes = scrub::vouched_at(disk, log_dir.path()).and_then(|at| {
        let changed = at.map(|at| scrub::changed_segments(disk, &metadata, at)).transpose()?;
        Ok((at, changed.unwrap_or_default()))
    });
    changes.unwrap_or_else(|error| {
        tracing::warn!(%error, "files that changed since the last stop are not looked for");
        Default::default()
    })
}

impl Checkpoints for Directory {
    fn with<R>(&self, work: impl FnOnce(&mut LogDir) -> R) -> R {
        work(&mut self.lock())
    }
}

impl Directory {
    pub fn new(log_dir: LogDir, id: DirectoryId, holds_partitions: bool) -> Self {
        for error in log_dir.damaged() {
            tracing::warn!(%error, "a checkpoint file is corrupt");
        }
        let online = log_dir.is_online();
        let (vouched_at, changed_metadata) = if online { changes(&log_dir) } else { Default::default() };
        Self {
            path: log_dir.path().clone(),
            id,
            disk: log_dir.disk().clone(),
            committer: Committer::new(),
            journal: JournalHandle::new(),
            file_system: log_dir.disk().file_system(log_dir.path()).unwrap_or_default(),
            room: Room::new(log_dir.disk().clone(), log_dir.path().clone()),
            holds_partitions,
            dead_from_start: !online,
            vouched_at,
            changed_metadata,
            log_dir: Mutex::new(log_dir),
            online: AtomicBool::new(online),
            failed_at: if online { OnceLock::new() } else { OnceLock::from(barnabas_clock::now()) },
            cordoned: AtomicBool::new(false),
            written_bytes: AtomicU64::new(0),
        }
    }

    pub fn is_online(&self) -> bool {
        self.online.load(Ordering::Acquire)
    }

    /// Whether partitions are served from here.
    pub fn is_usable(&self) -> bool {
        self.holds_partitions && self.is_online()
    }

    /// Whether its identity could be read.
    pub fn is_known(&self) -> bool {
        !is_reserved(self.id)
    }

    pub fn is_cordoned(&self) -> bool {
        self.cordoned.load(Ordering::Acquire)
    }

    /// Takes the directory out of service. Returns whether it was in service.
    pub fn fail(&self) -> bool {
        let was_online = self.online.swap(false, Ordering::AcqRel);
        if was_online {
            self.failed_at.get_or_init(barnabas_clock::now);
            self.lock().fail();
        }
        was_online
    }

    /// For how long it has been offline.
    pub fn failed_for(&self) -> Option<Duration> {
        self.failed_at.get().map(|at| barnabas_clock::since(*at))
    }

    /// Bytes that were written into a partition here: what placement calls load.
    pub fn wrote(&self, bytes: u64) {
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    pub fn lock(&self) -> MutexGuard<'_, LogDir> {
        self.log_dir.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of the segments of a partition whose log is not open; 0 where it has no folder.
    ///
    /// # Errors
    /// The file system cannot be asked.
    pub fn size_on_disk(&self, name: &str) -> Result<u64, StorageError> {
        let dir = self.path.join(name);
        if self.disk.stat(&dir)?.is_none() {
            return Ok(0);
        }
        let mut bytes = 0;
        for file in self.disk.list(&dir)?.iter().filter(|file| file.name.ends_with(".log")) {
            bytes += self.disk.stat(&dir.join(&file.name))?.map_or(0, |stat| stat.len);
        }
        Ok(bytes)
    }

    /// Renames the folders of deleted partitions that lie here, in one go: their entries leave the checkpoints first,
    /// with one write. Returns the new names, and whose they are: they go later. What lies in a directory that is
    /// offline goes when it comes back (housekeeping/sweep.rs). Folders that other topics have made under the same
    /// names stay; one that does not say whose it is goes where its topic's name `is_free`. Where there is no folder,
    /// what the checkpoints say is its own unless it `has_successor`.
    ///
    /// The lock is held for a few at a time.
    ///
    /// # Errors
    /// The file system refuses; what is not renamed goes at the next start.
    pub fn put_aside(
        &self,
        names: &[(&TopicPartition, TopicId)],
        is_free: impl Fn(&Text) -> bool,
        has_successor: impl Fn(&TopicPartition) -> bool,
    ) -> Result<Vec<(PathBuf, TopicId)>, StorageError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let is_its = |log_dir: &LogDir, name: &TopicPartition, topic| -> Result<bool, StorageError> {
            let found = log_dir.topic_id(&current_dir(name))?;
            Ok(found.map_or_else(|| is_free(&name.topic), |found| found == topic))
        };
        let mut there = Vec::new();
        for some in names.chunks(ASIDE_AT_ONCE) {
            let mut log_dir = self.lock();
            for &(name, topic) in some {
                if self.disk.stat(&self.path.join(name.to_string()))?.is_none() {
                    // Its files are gone, or were never written back: a new topic of that name must not be held to
                    // what its checkpoints say.
                    if !has_successor(name) {
                        log_dir.forget(name);
                    }
                } else if is_its(&log_dir, name, topic)? {
                    log_dir.forget(name);
                    there.push((name, topic));
                }
            }
        }
        self.lock().write_checkpoints()?;
        let mut aside = Vec::with_capacity(there.len());
        for some in there.chunks(ASIDE_AT_ONCE) {
            let mut log_dir = self.lock();
            for &(name, topic) in some {
                // A new partition of that name has quarantined this one in the meantime.
                if is_its(&log_dir, name, topic)? {
                    let renamed = log_dir.rename_forgotten(name, random_uuid())?;
                    aside.extend(renamed.map(|path| (path, topic)));
                }
            }
        }
        if !aside.is_empty() {
            self.disk.sync_dir(&self.path)?;
        }
        Ok(aside)
    }

    /// Whether an entry of `cordoned.log.dirs` or of an AlterReplicaLogDirs request means this directory.
    pub fn is_called(&self, name: &str) -> bool {
        let name = Path::new(name);
        *self.path == *name || std::path::absolute(&self.path).is_ok_and(|path| path == name)
    }
}

/// All directories of the node, by their place in the list.
#[derive(Debug)]
pub struct Directories {
    list: Vec<Directory>,
    pub figures: Figures,
    /// It was said that partitions may lie in a directory that is offline.
    said_unassigned: AtomicBool,
}

impl std::ops::Deref for Directories {
    type Target = [Directory];

    fn deref(&self) -> &[Directory] {
        &self.list
    }
}

impl Directories {
    pub fn new(list: Vec<Directory>) -> Self {
        let figures = Figures::new(&list);
        Self { list, figures, said_unassigned: AtomicBool::new(false) }
    }

    pub fn by_id(&self, id: DirectoryId) -> Option<usize> {
        self.list.iter().position(|directory| directory.id == id && directory.is_known())
    }

    /// Whether partitions can lie in more than one place.
    pub fn are_several(&self) -> bool {
        self.list.iter().filter(|directory| directory.holds_partitions).count() > 1
    }

    /// A directory for a new partition, remembered until the metadata log knows it: one with room for producers, else
    /// one that is short of it, else one that is cordoned. Where all are cordoned the controller places no new
    /// partition here: this one is older than the cordon.
    pub fn place(&self, key: PartitionKey) -> Option<usize> {
        let open = |at: usize| self.list[at].is_usable() && !self.list[at].is_cordoned();
        let any = |at: usize| self.list[at].is_usable();
        let roomy = |at: usize| open(at) && !self.list[at].room.is_short();
        self.figures
            .place(key, roomy)
            .or_else(|| self.figures.place(key, open))
            .or_else(|| self.figures.place(key, any))
    }

    /// `cordoned.log.dirs`: `*` means all.
    pub fn cordon(&self, entries: Vec<&str>) {
        for directory in &self.list {
            let named = entries.iter().any(|entry| *entry == "*" || directory.is_called(entry));
            let is_cordoned = named && directory.holds_partitions;
            if directory.cordoned.swap(is_cordoned, Ordering::AcqRel) != is_cordoned {
                let path = directory.path.display();
                let what =
                    if is_cordoned { "cordoned: it takes no new partitions" } else { "no longer cordoned" };
                tracing::info!("log directory {path} is {what}");
            }
        }
    }

    /// The ids of those that are cordoned, sorted.
    pub fn cordoned(&self) -> Vec<DirectoryId> {
        let cordoned = self.list.iter().filter(|directory| directory.is_cordoned() && directory.is_known());
        let mut ids: Vec<DirectoryId> = cordoned.map(|directory| directory.id).collect();
        ids.sort_unstable();
        ids
    }

    pub fn say_unassigned(&self, name: &TopicPartition) {
        if !self.said_unassigned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                partition = %name,
                "the partition is not created: the metadata log does not name its log directory, and an \
                 offline directory may hold it (logged once for all such partitions)"
            );
        }
    }

    /// Puts a partition's second copy aside: another directory has all that it has. Returns the path of one that a move
    /// left, which was cut off between its two renames; what else there is stays as a stray.
    pub fn put_copy_aside(
        &self,
        directory: usize,
        name: &TopicPartition,
    ) -> Result<Option<PathBuf>, StorageError> {
        let path = self.list[directory].path.join(name.to_string());
        let mut log_dir = self.list[directory].lock();
        // A move notes the copy in the checkpoints before it renames it; a copy made by hand has no such entry.
        if log_dir.high_watermark(name).is_some() {
            tracing::info!(partition = %name, "{} is a copy of an interrupted move", path.display());
            return log_dir.rename_to_future(name, random_uuid());
        }
        let stray = log_dir.rename_to_stray(name, random_uuid())?;
        tracing::warn!(
            partition = %name,
            "{} is a second copy of the partition, and the metadata log names another directory; renamed \
             to {}",
            path.display(),
            stray.unwrap_or_default().display()
        );
        Ok(None)
    }
}

/// The folder of a partition that is in use.
pub fn current_dir(name: &TopicPartition) -> PartitionDir {
    PartitionDir { name: name.to_string(), topic_partition: name.clone(), kind: DirKind::Current }
}

/// A version-4 UUID.
pub fn random_uuid() -> Uuid {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("invariant: Linux always has random bytes for a running process");
    Uuid::from_random(bytes)
}

#[cfg(test)]
mod tests;
