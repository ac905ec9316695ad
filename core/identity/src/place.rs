//! What lies at a log directory's path before the node makes, writes or keeps locked anything there.
//!
//! Neighbours: shell/broker/src/log_dirs/directories/places.rs, which looks; owner.rs, which judges.

use barnabas_metadata_log::metadata_partition;
use barnabas_storage::{DirKind, Disk, LogDir, MetaProperties, PartitionDir, StorageError, read_meta};
use std::path::{Path, PathBuf};

/// One of the node's log directories, which may not exist yet.
#[derive(Debug)]
pub struct Place {
    pub path: PathBuf,
    /// `log.dirs` names it, not `metadata.log.dir` alone.
    pub holds_partitions: bool,
    /// `None`: it is not formatted.
    pub meta: Option<MetaProperties>,
    /// The name of a partition in it, where it is not formatted.
    pub partition: Option<String>,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

impl Place {
    /// Reads whose the directory is, or what lies in it instead.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn read_meta(&mut self, disk: &dyn Disk) -> Result<(), StorageError> {
        self.meta = read_meta(disk, &self.path)?;
        if self.meta.is_none() {
            self.partition = first_partition(disk, &self.path)?;
        }
        Ok(())
    }

    /// One that is open, or was found to be of no use.
    pub fn of(log_dir: &LogDir, holds_partitions: bool) -> Self {
        let problem = (!log_dir.is_online()).then(|| "it is offline".to_owned());
        let meta = log_dir.meta().cloned();
        let partition = match (&meta, &problem) {
            (None, None) => first_partition(&**log_dir.disk(), log_dir.path()).unwrap_or_default(),
            _ => None,
        };
        Self { path: log_dir.path().to_path_buf(), holds_partitions, meta, partition, problem }
    }
}

fn first_partition(disk: &dyn Disk, path: &Path) -> Result<Option<String>, StorageError> {
    let found = disk.list(path)?;
    let name =
        found.into_iter().filter(|entry| entry.is_dir).find_map(|entry| PartitionDir::parse(&entry.name));
    Ok(name.map(|dir| dir.name))
}

/// The name of a topic's partition in a log directory, if it holds one that a broker would serve.
///
/// # Errors
/// The directory cannot be read.
pub fn partition_of_topics(disk: &dyn Disk, path: &Path) -> Result<Option<String>, StorageError> {
    let metadata = metadata_partition();
    let is_served = |dir: &PartitionDir| dir.kind == DirKind::Current && dir.topic_partition != metadata;
    let directories = disk.list(path)?.into_iter().filter(|entry| entry.is_dir);
    let mut partitions = directories.filter_map(|entry| PartitionDir::parse(&entry.name)).filter(is_served);
    Ok(partitions.next().map(|dir| dir.name))
}
