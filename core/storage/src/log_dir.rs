//! One log directory (an entry of `log.dirs`) as a whole: its lock, identity, checkpoints, and the partitions in it.
//!
//! The owner (one per directory, the committer's side) tells it how far each log is durable; it writes Kafka's checkpoint
//! files. A directory that has failed stays failed until the process ends.
//!
//! Always true:
//! 1. an entry of `recovery-point-offset-checkpoint` never names more than was durable when it was written
//! 2. `.kafka_cleanshutdown` exists only while nothing is written in the directory

use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas_base::{BrokerEpoch, Map, Offset, TopicId, TopicPartition, Uuid};

use crate::dir_name::PartitionDir;
use crate::disk::{Disk, DiskLock, DiskSpace};
use crate::error::StorageError;
use crate::log::OpenFrom;
use crate::meta_properties::MetaProperties;

/// A log directory that this process holds the lock of.
#[derive(Debug)]
pub struct LogDir {
    disk: Arc<dyn Disk>,
    path: Arc<Path>,
    _lock: Box<dyn DiskLock>,
    meta: Option<MetaProperties>,
    clean: bool,
    clean_broker_epoch: Option<BrokerEpoch>,
    online: bool,
    recovery_points: Map<TopicPartition, Offset>,
    log_starts: Map<TopicPartition, Offset>,
    high_watermarks: Map<TopicPartition, Offset>,
}

impl LogDir {
    /// Makes the directory if it is missing, takes its lock, reads `meta.properties` and the checkpoints.
    ///
    /// Changes nothing else: `.kafka_cleanshutdown` stays until [`LogDir::begin`].
    pub fn open(_disk: Arc<dyn Disk>, _path: &Path) -> Result<Self, StorageError> {
        unimplemented!()
    }

    pub fn path(&self) -> &Arc<Path> {
        &self.path
    }

    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// `None`: the directory is not formatted.
    pub fn meta(&self) -> Option<&MetaProperties> {
        self.meta.as_ref()
    }

    pub fn write_meta(&mut self, _meta: MetaProperties) -> Result<(), StorageError> {
        unimplemented!()
    }

    /// Whether the last process to write here stopped cleanly.
    pub fn was_clean(&self) -> bool {
        self.clean
    }

    /// The broker epoch of the process that stopped cleanly, where its file says so (KIP-966).
    pub fn clean_broker_epoch(&self) -> Option<BrokerEpoch> {
        self.clean_broker_epoch
    }

    /// Removes `.kafka_cleanshutdown` for good; called after the logs are loaded and before the first write.
    pub fn begin(&mut self) -> Result<(), StorageError> {
        unimplemented!()
    }

    /// The partitions found in the directory, `__cluster_metadata-0` included. Names that are no partition's are left out.
    pub fn partitions(&self) -> Result<Vec<PartitionDir>, StorageError> {
        unimplemented!()
    }

    /// The topic id in a partition directory's `partition.metadata`; `None` where there is no such file or it is torn.
    pub fn topic_id(&self, _partition: &PartitionDir) -> Result<Option<TopicId>, StorageError> {
        unimplemented!()
    }

    /// What the checkpoints say of a partition, for [`crate::Log::open`].
    pub fn open_from(&self, _partition: &TopicPartition) -> OpenFrom {
        unimplemented!()
    }

    pub fn high_watermark(&self, partition: &TopicPartition) -> Option<Offset> {
        self.high_watermarks.get(partition).copied()
    }

    /// `offset` comes from [`crate::Log::checkpoint`] or [`crate::Log::mark_synced`].
    pub fn set_recovery_point(&mut self, partition: TopicPartition, offset: Offset) {
        self.recovery_points.insert(partition, offset);
    }

    /// Only worth an entry where the start lies above the first segment's base; `None` removes the entry.
    pub fn set_log_start(&mut self, partition: TopicPartition, offset: Option<Offset>) {
        match offset {
            Some(offset) => self.log_starts.insert(partition, offset),
            None => self.log_starts.remove(&partition),
        };
    }

    pub fn set_high_watermark(&mut self, partition: TopicPartition, offset: Offset) {
        self.high_watermarks.insert(partition, offset);
    }

    /// Drops all entries of a partition. Written by the next [`LogDir::write_checkpoints`], which must happen before a log of
    /// the same name is written to.
    pub fn forget(&mut self, partition: &TopicPartition) {
        self.recovery_points.remove(partition);
        self.log_starts.remove(partition);
        self.high_watermarks.remove(partition);
    }

    /// Writes the checkpoint files that have changed, each atomically.
    pub fn write_checkpoints(&mut self) -> Result<(), StorageError> {
        unimplemented!()
    }

    /// Vouches for everything in the directory: all logs are closed and synced, all checkpoints written.
    pub fn mark_clean(&mut self, _broker_epoch: BrokerEpoch) -> Result<(), StorageError> {
        unimplemented!()
    }

    /// Renames a partition's directory so that it counts as deleted. The returned directory's files go later, with
    /// [`LogDir::remove`]. `unique` is drawn at random by the caller.
    pub fn rename_to_delete(
        &mut self,
        _partition: &PartitionDir,
        _unique: Uuid,
    ) -> Result<PathBuf, StorageError> {
        unimplemented!()
    }

    /// Puts a partition's directory aside as belonging to nobody.
    pub fn rename_to_stray(
        &mut self,
        _partition: &PartitionDir,
        _unique: Uuid,
    ) -> Result<PathBuf, StorageError> {
        unimplemented!()
    }

    /// Removes a directory with all files in it.
    pub fn remove(&self, _dir: &Path) -> Result<(), StorageError> {
        unimplemented!()
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
}
