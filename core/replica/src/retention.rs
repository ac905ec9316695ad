//! Which segments of a replica are deleted by retention, and what of its log a checkpoint may vouch for.
//!
//! Always true:
//! 1. retention removes no segment that a start would need for the state of a producer, but on a disk that has no room
//!    for the snapshot that would replace it
//! 2. no checkpoint names records whose leader epochs are not on disk
//! 3. the high watermark of a checkpoint is not beyond its recovery point
//!
//! Neighbours: shell/broker/src/worker/partition_worker/upkeep.rs, which asks now and then; core/storage's
//! `log/retention.rs`.

use barnabas_base::Offset;
use barnabas_storage::{DelayedDelete, FilePool, StorageError};

use crate::{Effect, Replica, Surroundings};

/// What the directory's checkpoint files may say of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    pub recovery_point: Offset,
    /// Where it is not 0.
    pub log_start: Option<Offset>,
    pub high_watermark: Offset,
}

impl Replica {
    /// Deletes what is too old or too much. Returns the files that are out of use.
    ///
    /// `is_short`: the directory is short of room, so that room which is set aside is given back too.
    ///
    /// # Errors
    /// A full disk, or the directory has failed. What was deleted until then is.
    pub fn retain(
        &mut self,
        is_short: bool,
        around: &mut Surroundings<'_>,
    ) -> Result<Option<DelayedDelete>, StorageError> {
        // Retention works on segments. A full disk is met by deleting.
        let _ = self.write_back_all(around);
        if is_short {
            self.log.give_room_back(around.files)?;
        }
        let limit = self.retention_limit(is_short, around)?;
        let delete = self.log.delete_old_segments(around.files, around.now.wall, limit)?;
        if delete.is_some() {
            self.partition.advance_log_start(self.log.start(), &mut around.outbox.decisions);
            self.upkeep.is_changed = true;
        }
        if self.upkeep.retention_waits {
            around.outbox.effects.push(Effect::Sync);
        }
        Ok(delete)
    }

    /// Up to where retention may remove segments.
    ///
    /// Where that is beyond the newest snapshot that a start can rely on ([`Log::producers_vouched`]), a snapshot is
    /// written first, and retention has to be asked again once it is safe
    /// ([`Upkeep::retention_waits`](crate::Upkeep::retention_waits)). A disk that has no room even for a snapshot is
    /// relieved at once (`is_short`).
    ///
    /// [`Log::producers_vouched`]: barnabas_storage::Log::producers_vouched
    ///
    /// # Errors
    /// The directory has failed.
    fn retention_limit(
        &mut self,
        is_short: bool,
        around: &mut Surroundings<'_>,
    ) -> Result<Offset, StorageError> {
        self.upkeep.retention_waits = false;
        let high_watermark = self.partition.high_watermark();
        let vouched = self.log.producers_vouched();
        if self.partition.producer_count() == 0 || high_watermark <= vouched {
            return Ok(high_watermark);
        }
        let first = self.log.would_begin_at(around.files, around.now.wall, high_watermark)?;
        let Some(first) = first.filter(|first| *first > vouched) else {
            return Ok(high_watermark);
        };
        if !self.log.has_snapshot_from(first) {
            // It may be there already, unsynced, as a process left it that was killed.
            self.upkeep.snapshot_at = Offset::NONE;
            match self.snapshot_producers(around.files, &mut around.outbox.effects) {
                Err(error) if error.is_passing() && is_short => return Ok(high_watermark),
                written => written?,
            }
        }
        self.upkeep.retention_waits = true;
        // The checkpoint has to pass it.
        self.upkeep.is_changed = true;
        Ok(vouched)
    }

    /// What may be checkpointed now.
    ///
    /// # Errors
    /// The directory has failed, or it is full.
    pub fn checkpoint(&mut self, files: &mut FilePool) -> Result<Checkpoint, StorageError> {
        let recovery_point = self.log.checkpoint(files)?;
        let start = self.log.start();
        Ok(Checkpoint {
            recovery_point,
            log_start: (start > Offset::ZERO).then_some(start),
            // Not ahead of what is synced in segments: it stands in for a damaged file of recovery points.
            high_watermark: self.partition.high_watermark().min(recovery_point),
        })
    }

    /// As [`Replica::checkpoint`], without waiting for a sync. `None`: new leader epochs come first, which the
    /// committer syncs; what the checkpoint file says until then stays true. `epochs_left`: so many logs may have their
    /// epochs written in this turn.
    ///
    /// # Errors
    /// As [`Replica::checkpoint`].
    pub fn checkpoint_ahead(
        &mut self,
        files: &mut FilePool,
        epochs_left: &mut usize,
    ) -> Result<Option<Checkpoint>, StorageError> {
        if self.log.has_new_epochs() {
            let Some(left) = epochs_left.checked_sub(1) else { return Ok(None) };
            *epochs_left = left;
        }
        match self.log.note_epochs_ahead(files)? {
            true => self.checkpoint(files).map(Some),
            false => Ok(None),
        }
    }
}
