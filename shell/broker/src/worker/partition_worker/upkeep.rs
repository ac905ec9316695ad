//! What happens to open partitions now and then: retention, expiry of producers, checkpoints; and the end.

mod clean;

use super::PartitionWorker;
use crate::log_dirs::committer::WHOLE_FROM;
use crate::mailbox::{Checkpointed, LogSize, PartitionKey};
use crate::worker::replica::{Hosted, Replica};
use barnabas_base::DurationMs;
use barnabas_replica::Checkpoint;
use barnabas_storage::StorageError;

/// Leader epochs that are written down in one turn: a file each. After an election or a move thousands have new ones.
const EPOCHS_AT_ONCE: usize = 256;
/// Logs that are closed before their files are synced.
const CLOSE_AT_ONCE: usize = 64;

impl PartitionWorker {
    pub(super) fn expire_producers(&mut self) {
        let now = self.node.clock.wall();
        let expiration = DurationMs(self.node.cluster.config.load().long("producer.id.expiration.ms"));
        for replica in self.replicas.values_mut().filter(|replica| replica.partition.producer_count() > 0) {
            replica.partition.expire_producers(now, expiration);
        }
    }

    /// Keeps this worker's share of `producer.ids.max`.
    fn bound_producers(&mut self) {
        let max = self.node.cluster.config.load().long("producer.ids.max");
        let share = usize::try_from(max).unwrap_or(usize::MAX) / self.node.workers.count.max(1);
        let counts = self.replicas.values().map(|replica| replica.partition.producer_count());
        let mut counts: Vec<usize> = counts.filter(|count| *count > 0).collect();
        let Some(level) = barnabas_partition::level(&mut counts, share) else { return };
        tracing::debug!(level, share, "partitions remember fewer producers");
        for replica in self.replicas.values_mut() {
            if replica.partition.producer_count() > level {
                replica.partition.forget_beyond(level);
            }
        }
    }

    /// Retention; returns how far the partitions that have changed may be called safe.
    pub(super) fn housekeep(&mut self, retain: bool) -> Vec<Checkpointed> {
        let keys: Vec<PartitionKey> = self.replicas.keys().copied().collect();
        let mut checkpoints = Vec::new();
        self.bound_producers();
        let mut epochs_left = EPOCHS_AT_ONCE;
        for key in keys {
            if retain || self.replicas.get(&key).is_some_and(|replica| replica.upkeep.retention_waits) {
                self.retain(key);
            }
            let Self { replicas, files, node, .. } = self;
            let Some(replica) = replicas.get_mut(&key) else { continue };
            if !std::mem::take(&mut replica.upkeep.is_changed) {
                continue;
            }
            node.log_dirs.compaction.candidates.note(replica);
            let files = &mut files[replica.directory];
            match replica.checkpoint_ahead(files, &mut epochs_left) {
                Ok(Some(checkpoint)) => checkpoints.push(named(replica, checkpoint)),
                Ok(None) => {
                    replica.upkeep.is_changed = true;
                    // Those for whom this turn has no room are noted in the next one.
                    if !replica.log.has_new_epochs() {
                        self.sync_now(key);
                    }
                }
                Err(error) => self.upkeep_failed(key, &error),
            }
        }
        checkpoints
    }

    /// Partitions that are not open and in which retention applies.
    pub(super) fn retain_unopened(&mut self, keys: &[PartitionKey]) {
        for &key in keys {
            // Refusals are about leadership and damage: nothing is retained then.
            if self.open(key).is_ok() {
                self.retain(key);
            }
        }
    }

    fn retain(&mut self, key: PartitionKey) {
        let Some(directory) = self.replicas.get(&key).map(|replica| replica.directory) else { return };
        let (now, is_short) = (self.now(), self.node.log_dirs.directories[directory].room.is_short());
        match self.step(key, now, |replica, around| replica.retain(is_short, around)) {
            Some(Ok(Some(delete))) => {
                self.recorder.retained(&delete.files);
                self.node.log_dirs.deletions.later(directory, delete);
            }
            Some(Ok(None)) | None => {}
            Some(Err(error)) => self.upkeep_failed(key, &error),
        }
    }

    pub(super) fn upkeep_failed(&mut self, key: PartitionKey, error: &StorageError) {
        let Some(replica) = self.replicas.get(&key) else { return };
        let (directory, name) = (replica.directory, replica.log.place().topic_partition.clone());
        match error {
            // Nothing is lost by it: what was to be written down is found again from the log.
            error if error.is_passing() => {
                self.node.log_dirs.directories[directory].room.hit(error, self.node.clock.monotonic());
            }
            StorageError::Disk(_) | StorageError::Failed(_) => {
                self.node.directory_failed(directory, error);
                self.directory_failed(directory);
            }
            StorageError::Damaged { .. } => self.read_failed(key, error),
            error => {
                tracing::error!(partition = %name, %error, "retention or a checkpoint of the partition \
                    failed; it will be retried")
            }
        }
    }

    /// Closes every log: staged batches are written back, dirty files are synced here. No request is served any
    /// more.
    pub(super) fn close(&mut self) -> Vec<Checkpointed> {
        self.finish_round();
        self.close_all_deleted();
        self.open_all_waiting();
        self.closed = true;
        let mut checkpoints = Vec::new();
        let replicas: Vec<Hosted> = std::mem::take(&mut self.replicas).into_values().collect();
        let as_a_whole = replicas.len() >= WHOLE_FROM;
        let at_once = if as_a_whole { usize::MAX } else { CLOSE_AT_ONCE };
        let mut replicas = replicas.into_iter();
        loop {
            // A bounded number at a time, as their files are open until they are synced.
            let mut some: Vec<Hosted> = replicas.by_ref().take(at_once).collect();
            if some.is_empty() {
                break;
            }
            some.retain_mut(|replica| match self.close_files(replica) {
                Ok(()) => {
                    self.leave_to_file_system(replica, as_a_whole);
                    true
                }
                Err(error) => self.not_closed(replica, &error),
            });
            self.sync_closed(&mut some);
            for replica in &mut some {
                let files = &mut self.files[replica.directory];
                match replica.checkpoint(files) {
                    Ok(checkpoint) => checkpoints.push(named(replica, checkpoint)),
                    Err(error) => drop(self.not_closed(replica, &error)),
                }
            }
        }
        checkpoints
    }

    pub(super) fn sizes(&self) -> Vec<LogSize> {
        let size = |replica: &Hosted| LogSize {
            directory: replica.directory,
            partition: replica.log.place().topic_partition.clone(),
            bytes: replica.log.size_bytes(),
            range: Some((replica.partition.log_start(), replica.partition.log_end())),
        };
        self.replicas.values().map(size).chain(self.sizes_of_waiting()).collect()
    }

    fn close_files(&mut self, replica: &mut Hosted) -> Result<(), StorageError> {
        // Said when it failed.
        if !self.node.log_dirs.directories[replica.directory].is_online() {
            return Err(StorageError::Failed(replica.log.place().dir()));
        }
        let files = &mut self.files[replica.directory];
        if replica.log.staged_bytes() > 0 {
            let written_back = replica.log.write_back_all(files, self.node.clock.wall())?;
            self.node.log_dirs.directories[replica.directory].room.settle(written_back.bytes);
        }
        if replica.log.is_on_disk() {
            if replica.sync.is_in_flight {
                // The checkpoints are written, and the journal goes, before the committer is through with it.
                replica.log.note_unsynced_again(files)?;
            }
            // No sync request counts any more: there is nothing to carry out.
            replica.snapshot_producers(files, &mut Vec::new())?;
            replica.sync.closing = replica.log.close(files)?;
        }
        Ok(())
    }

    /// Where many logs are closed, their files are not kept open for a sync each: the file systems are synced, once.
    fn leave_to_file_system(&self, replica: &mut Hosted, as_a_whole: bool) {
        let is_possible = self.node.log_dirs.directories[replica.directory].file_system.is_some();
        if let Some(dirty) = replica.sync.closing.as_mut().filter(|_| as_a_whole && is_possible) {
            dirty.files.clear();
            dirty.dirs.clear();
            dirty.is_whole = false;
            replica.sync.closes_with_file_system = true;
        }
    }

    /// Syncs what closing wrote.
    fn sync_closed(&mut self, replicas: &mut Vec<Hosted>) {
        for (at, directory) in self.node.log_dirs.directories.iter().enumerate() {
            let concerned = replicas
                .iter()
                .find(|replica| replica.sync.closes_with_file_system && replica.directory == at);
            let Some((file_system, replica)) = directory.file_system.as_ref().zip(concerned) else {
                continue;
            };
            if let Err(error) = file_system.sync() {
                self.not_closed(replica, &error.into());
            }
        }
        replicas.retain(|replica| self.node.log_dirs.directories[replica.directory].is_online());
        replicas.retain_mut(|replica| {
            let Some(dirty) = replica.sync.closing.take() else { return true };
            let directory = &self.node.log_dirs.directories[replica.directory];
            match dirty.sync(&*directory.disk, directory.file_system.as_ref()) {
                Ok(()) => {
                    replica.log.mark_synced(dirty.ticket);
                    true
                }
                Err(error) => self.not_closed(replica, &error.into()),
            }
        });
    }

    /// Always `false`: the log is not vouched for.
    fn not_closed(&self, replica: &Hosted, error: &StorageError) -> bool {
        let name = &replica.log.place().topic_partition;
        let directory = replica.directory;
        if !self.node.log_dirs.directories[directory].is_online() {
            return false;
        }
        if error.is_passing() {
            tracing::warn!(partition = %name, %error, "log was not closed cleanly; the next start recovers it");
            // Nothing has failed, but the directory cannot be vouched for either.
            self.node.log_dirs.directories[directory].fail();
        } else {
            tracing::error!(partition = %name, %error, "log was not closed cleanly; the next start recovers it");
            self.node.directory_failed(directory, error);
        }
        false
    }
}

/// A replica's checkpoint, by the partition's name.
pub(super) fn named(replica: &Replica, checkpoint: Checkpoint) -> Checkpointed {
    let Checkpoint { recovery_point, log_start, high_watermark } = checkpoint;
    Checkpointed {
        directory: replica.directory,
        topic: replica.key.topic,
        partition: replica.log.place().topic_partition.clone(),
        recovery_point,
        log_start,
        high_watermark,
    }
}
