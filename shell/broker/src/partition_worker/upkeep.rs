//! What happens to open partitions now and then: retention, expiry of producers, checkpoints; and the end.

use super::PartitionWorker;
use crate::mailbox::{Checkpointed, PartitionKey};
use crate::replica::Replica;
use barnabas_base::Offset;
use barnabas_storage::{FilePool, StorageError};

impl PartitionWorker {
    /// Retention and expiry; returns how far the partitions that have changed may be called safe.
    pub(super) fn housekeep(&mut self, retain: bool) -> Vec<Checkpointed> {
        let keys: Vec<PartitionKey> = self.replicas.keys().copied().collect();
        let mut checkpoints = Vec::new();
        for key in keys {
            if retain {
                self.retain(key);
            }
            let Self { replicas, files, node, .. } = self;
            let Some(replica) = replicas.get_mut(&key) else { continue };
            if !std::mem::take(&mut replica.changed) {
                continue;
            }
            node.compaction.candidates.note(replica);
            match checkpoint(replica, files) {
                Ok(checkpointed) => checkpoints.push(checkpointed),
                Err(error) => self.upkeep_failed(key, &error),
            }
        }
        checkpoints
    }

    /// Partitions that nobody has asked for yet, and in which something has become too old or too much.
    pub(super) fn retain_unopened(&mut self, keys: &[PartitionKey]) {
        for &key in keys {
            // Refusals are about leadership and damage: nothing is retained then.
            if self.open(key).is_ok() {
                self.retain(key);
            }
        }
    }

    fn retain(&mut self, key: PartitionKey) {
        let Self { replicas, files, effects, node, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let now = node.clock.wall();
        replica.partition.expire_producers(now, node.producer_expiration);
        let high_watermark = replica.partition.high_watermark();
        match replica.log.delete_old_segments(&mut files[replica.directory], now, high_watermark) {
            Ok(None) => {}
            Ok(Some(delete)) => {
                replica.partition.advance_log_start(replica.log.start(), effects);
                replica.changed = true;
                node.deletions.later(replica.directory, delete);
                // All of it went: what is known of producers stands in no batch any more.
                let is_empty = replica.log.active_segment_base() == replica.log.end();
                let noted =
                    if is_empty { replica.snapshot_producers(&mut files[replica.directory]) } else { Ok(()) };
                self.apply_effects(key);
                if let Err(error) = noted {
                    self.upkeep_failed(key, &error);
                }
            }
            Err(error) => self.upkeep_failed(key, &error),
        }
    }

    pub(super) fn upkeep_failed(&mut self, key: PartitionKey, error: &StorageError) {
        let Some(replica) = self.replicas.get(&key) else { return };
        let (directory, name) = (replica.directory, replica.log.place().topic_partition.clone());
        match error {
            // Nothing is lost by it: what was to be written down is found again from the log.
            StorageError::Full(_) => {
                self.node.directories[directory].room.hit(error, self.node.clock.monotonic());
            }
            StorageError::Disk(_) | StorageError::Failed(_) => {
                self.node.directory_failed(directory, error);
                self.directory_failed(directory);
            }
            error => tracing::error!(partition = %name, %error, "upkeep failed"),
        }
    }

    /// Closes every log. What is dirty is synced here: nobody else is served any more.
    pub(super) fn close(&mut self) -> Vec<Checkpointed> {
        self.finish_round();
        self.closed = true;
        let mut checkpoints = Vec::new();
        for (key, mut replica) in std::mem::take(&mut self.replicas) {
            // Said when it failed.
            if !self.node.directories[replica.directory].is_online() {
                continue;
            }
            let files = &mut self.files[replica.directory];
            match close_one(&mut replica, files).and_then(|()| checkpoint(&mut replica, &mut self.files)) {
                Ok(checkpointed) => checkpoints.push(checkpointed),
                Err(error @ StorageError::Full(_)) => {
                    let name = &replica.log.place().topic_partition;
                    tracing::warn!(partition = %name, %error, "log was not closed cleanly; the next start recovers it");
                    // Nothing has failed, but nobody may vouch for the directory either.
                    self.node.directories[replica.directory].fail();
                    self.failed.insert(key);
                }
                Err(error) => {
                    let name = &replica.log.place().topic_partition;
                    tracing::error!(partition = %name, %error, "log was not closed cleanly");
                    self.node.directory_failed(replica.directory, &error);
                    self.failed.insert(key);
                }
            }
        }
        checkpoints
    }
}

pub(super) fn checkpoint(
    replica: &mut Replica,
    files: &mut [FilePool],
) -> Result<Checkpointed, StorageError> {
    let recovery_point = replica.log.checkpoint(&mut files[replica.directory])?;
    let start = replica.log.start();
    Ok(Checkpointed {
        directory: replica.directory,
        topic: replica.key.topic,
        partition: replica.log.place().topic_partition.clone(),
        recovery_point,
        log_start: (start > Offset::ZERO).then_some(start),
        high_watermark: replica.partition.high_watermark(),
    })
}

fn close_one(replica: &mut Replica, files: &mut FilePool) -> Result<(), StorageError> {
    if !replica.log.is_on_disk() {
        return Ok(());
    }
    replica.snapshot_producers(files)?;
    if let Some(dirty) = replica.log.close(files)? {
        dirty.files.iter().try_for_each(|file| file.sync())?;
        dirty.dirs.iter().try_for_each(|dir| files.disk().sync_dir(dir))?;
        replica.log.mark_synced(dirty.ticket);
    }
    Ok(())
}
