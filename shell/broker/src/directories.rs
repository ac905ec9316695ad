//! The node's log directories: which are online, which partition lies where, what their checkpoints say.
//!
//! A directory's files are written by workers (logs), by its committer (syncs) and by housekeeping (checkpoints); this file
//! holds what they share. The lock around a [`LogDir`] is taken when a partition is opened, deleted or checkpointed, never
//! for an append or a read.
//!
//! Always true: a directory that has failed is offline until the process ends.

use crate::committer::Committer;
use crate::full::Room;
use barnabas_base::{DirectoryId, Offset, TopicId, TopicPartition, Uuid};
use barnabas_storage::{DirKind, Disk, LogDir, OpenFrom, PartitionDir, StorageError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One entry of `log.dirs` (or `metadata.log.dir`).
#[derive(Debug)]
pub struct Directory {
    pub path: Arc<Path>,
    pub id: DirectoryId,
    pub disk: Arc<dyn Disk>,
    pub committer: Committer,
    /// Who may still write here.
    pub room: Room,
    /// Whether partitions may lie here; the metadata log's own directory may not be an entry of `log.dirs`.
    pub holds_partitions: bool,
    log_dir: Mutex<LogDir>,
    online: AtomicBool,
    /// Partitions placed here since the start: what placement is balanced by.
    placed: AtomicUsize,
}

impl Directory {
    pub fn new(log_dir: LogDir, id: DirectoryId, holds_partitions: bool) -> Self {
        for error in log_dir.damaged() {
            tracing::warn!(%error, "a checkpoint is damaged");
        }
        Self {
            path: log_dir.path().clone(),
            id,
            disk: log_dir.disk().clone(),
            committer: Committer::new(),
            room: Room::new(log_dir.disk().clone(), log_dir.path().clone()),
            holds_partitions,
            log_dir: Mutex::new(log_dir),
            online: AtomicBool::new(true),
            placed: AtomicUsize::new(0),
        }
    }

    pub fn is_online(&self) -> bool {
        self.online.load(Ordering::Acquire)
    }

    /// Takes the directory out of service. Returns whether it was in service.
    pub fn fail(&self) -> bool {
        let was_online = self.online.swap(false, Ordering::AcqRel);
        if was_online {
            self.lock().fail();
        }
        was_online
    }

    pub fn lock(&self) -> MutexGuard<'_, LogDir> {
        self.log_dir.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All directories of the node, by their place in the list.
#[derive(Debug)]
pub struct Directories {
    list: Vec<Directory>,
}

impl std::ops::Deref for Directories {
    type Target = [Directory];

    fn deref(&self) -> &[Directory] {
        &self.list
    }
}

impl Directories {
    pub fn new(list: Vec<Directory>) -> Self {
        Self { list }
    }

    /// The directory that holds the partition, if one does. A directory of the same name that belongs to another topic id
    /// (deleted and made again while this node was down) is put aside.
    ///
    /// # Errors
    /// The file system cannot be asked. [`StorageError::Twice`]: two directories hold the partition (Kafka's
    /// `LogManager.loadLogs` stops the start there).
    pub fn find(&self, name: &TopicPartition, topic: TopicId) -> Result<Option<usize>, StorageError> {
        let mut holding = None;
        for (index, directory) in self.list.iter().enumerate() {
            if !directory.is_online() || !directory.holds_partitions {
                continue;
            }
            let path = directory.path.join(name.to_string());
            if directory.disk.stat(&path)?.is_none() {
                continue;
            }
            let partition = current_dir(name);
            let mut log_dir = directory.lock();
            match log_dir.topic_id(&partition)? {
                Some(found) if found != topic => {
                    let stray = log_dir.rename_to_stray(name, random_uuid())?;
                    tracing::warn!(
                        "{} belongs to topic id {found}, which is not {topic}: put aside as {}",
                        path.display(),
                        stray.unwrap_or_default().display()
                    );
                    continue;
                }
                _ => {}
            }
            if let Some(first) = holding.replace(index) {
                let first = self.list[first].path.join(name.to_string());
                return Err(StorageError::Twice { first, second: path });
            }
        }
        Ok(holding)
    }

    /// Where a partition that lies nowhere once lay: a directory whose checkpoints say that it held records there, up to which
    /// offset. Such a partition has lost its files; it must not begin anew.
    pub fn vanished(&self, name: &TopicPartition) -> Option<(usize, Offset)> {
        let mut online = self.list.iter().enumerate().filter(|(_, directory)| directory.is_online());
        online.find_map(|(index, directory)| {
            let log_dir = directory.lock();
            let high_watermark = log_dir.high_watermark(name).unwrap_or(Offset::ZERO);
            let reached = log_dir.recovery_point(name).max(high_watermark);
            (reached > Offset::ZERO).then_some((index, reached))
        })
    }

    /// A directory for a new partition: the one the metadata log names, else the one with the fewest.
    pub fn choose(&self, hint: Option<DirectoryId>) -> Option<usize> {
        let online = || {
            self.list
                .iter()
                .enumerate()
                .filter(|(_, directory)| directory.is_online() && directory.holds_partitions)
        };
        let named = online().find(|(_, directory)| Some(directory.id) == hint);
        let (index, directory) = named
            .or_else(|| online().min_by_key(|(_, directory)| directory.placed.load(Ordering::Relaxed)))?;
        directory.placed.fetch_add(1, Ordering::Relaxed);
        Some(index)
    }

    /// Whether partitions can lie in more than one place.
    pub fn are_several(&self) -> bool {
        self.list.iter().filter(|directory| directory.holds_partitions).count() > 1
    }

    /// Whether the metadata log says that a partition lies in a directory of this node that has failed: it is not new, though
    /// no other directory holds it.
    pub fn is_in_failed(&self, assigned: Option<DirectoryId>) -> bool {
        self.list.iter().any(|directory| Some(directory.id) == assigned && !directory.is_online())
    }

    /// What the checkpoints of a directory say of a partition that lies in it.
    pub fn known(&self, directory: usize, name: &TopicPartition) -> (Option<OpenFrom>, Option<Offset>) {
        let mut log_dir = self.list[directory].lock();
        (Some(log_dir.open_from(name)), log_dir.high_watermark(name))
    }

    /// Renames the directory of a deleted partition, wherever it lies. Returns what is to be removed later.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn put_aside(
        &self,
        name: &TopicPartition,
        topic: TopicId,
    ) -> Result<Option<(usize, PathBuf)>, StorageError> {
        let Some(index) = self.find(name, topic)? else {
            // Its files are gone: a new topic of that name must not be held to what its checkpoints say.
            while let Some((directory, ..)) = self.vanished(name) {
                let mut log_dir = self.list[directory].lock();
                log_dir.forget(name);
                log_dir.write_checkpoints()?;
            }
            return Ok(None);
        };
        let mut log_dir = self.list[index].lock();
        let aside = log_dir.rename_to_delete(name, random_uuid())?;
        Ok(aside.map(|aside| (index, aside)))
    }
}

fn current_dir(name: &TopicPartition) -> PartitionDir {
    PartitionDir { name: name.to_string(), topic_partition: name.clone(), kind: DirKind::Current }
}

/// A version-4 UUID.
pub fn random_uuid() -> Uuid {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("invariant: Linux always has random bytes for a running process");
    Uuid::from_random(bytes)
}
