//! The order in which a log is truncated, so that no crash brings back what went.
//!
//! The directory's journal may still hold records that are to go, or a `Range` that says that segments were synced past
//! the truncation. So the journal notes the truncation first. Once that is durable, the checkpoint files are lowered,
//! the log is truncated, and the state of producers is read again. After a crash before the note the log is as it was,
//! and the leader says the same again. After a crash behind the note, the next start truncates
//! (shell/broker/src/upkeep/replay.rs). With `log.ack.durability=written` there is no journal, and the first step is
//! left out.
//!
//! Always true (asserted):
//! 1. no log is truncated before the journal has noted it and the checkpoints name no more than what stays
//! 2. a replica with a truncation under way neither fetches nor changes its role
//!
//! Neighbours: shell/broker/src/worker/partition_worker/replication/truncation.rs, which carries it out; `repair`,
//! which gives up damaged segments; core/storage's `Log::truncate_to`; core/partition's `diverged` and `out_of_range`.

use std::sync::Arc;

use barnabas_base::{Offset, TimestampMs, TopicPartition};
use barnabas_partition::Cut;
use barnabas_storage::journal::{Entry, EntryKind};
use barnabas_storage::{DelayedDelete, FilePool, LogDir, StorageError};

use crate::{Effect, Replica};

/// Part of a log that its leader does not have, or that is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncation {
    pub cut: Cut,
    /// What goes is damaged: whole segments are given up, unread.
    pub is_repair: bool,
    step: Step,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The journal is to note it.
    Wanted,
    Noted,
    CheckpointsLowered,
    /// The state of producers is to be read again.
    Truncated,
}

/// What a truncation did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Truncated {
    /// Files that are out of use.
    pub delete: Option<DelayedDelete>,
    /// Bytes that were in memory and in the journal alone, and are never written back now.
    pub dropped_bytes: u64,
}

impl Replica {
    /// Where the log can be truncated, as batches go as a whole; and what is damaged around that place, to be noted
    /// ([`Replica::note_damage`]): where the end of the log is damaged it looks as if the log had diverged.
    ///
    /// # Errors
    /// The log cannot be read, or is too damaged there to be truncated.
    pub fn truncation_at(
        &self,
        files: &mut FilePool,
        cut: Cut,
    ) -> Result<(Cut, Option<StorageError>), StorageError> {
        match cut {
            Cut::To(end) => self.log.truncation_end(files, end).map(|(end, damage)| (Cut::To(end), damage)),
            Cut::Nothing | Cut::StartAt(_) => Ok((cut, None)),
        }
    }

    /// Begins to truncate. Returns what the journal has to note; `None` where there is no journal, and the next step
    /// may follow at once.
    ///
    /// `is_repair`: the place is the base of a segment, and what goes is damaged.
    pub fn want_truncation(&mut self, cut: Cut, is_repair: bool, has_journal: bool) -> Option<Entry> {
        let step = if has_journal { Step::Wanted } else { Step::Noted };
        self.truncation = Some(Truncation { cut, is_repair, step });
        self.was_truncated = true;
        let kind = match cut {
            Cut::To(end) => EntryKind::Truncate { end },
            Cut::StartAt(at) => EntryKind::Restart { at },
            Cut::Nothing => return None,
        };
        let (partition, leader_epoch) = (Arc::clone(&self.name), self.partition.leader_epoch());
        has_journal.then_some(Entry { partition, leader_epoch, kind })
    }

    /// The journal has noted everything that this replica handed in.
    pub fn truncation_noted(&mut self) {
        if let Some(truncation) = &mut self.truncation {
            truncation.step = truncation.step.max(Step::Noted);
        }
    }

    /// Whether the log may be truncated now: [`Replica::lower_checkpoints`] and [`Replica::truncate`] follow.
    pub fn may_truncate(&self) -> bool {
        self.truncation.is_some_and(|truncation| truncation.step >= Step::Noted)
    }

    /// Lowers what the directory's checkpoint files say of the log: a file that names more than the log holds reads as
    /// lost data.
    ///
    /// # Errors
    /// The checkpoints cannot be written. Nothing was truncated ([`TruncationVerdict`]).
    pub fn lower_checkpoints(&mut self, log_dir: &mut LogDir) -> Result<(), StorageError> {
        let Some(truncation) = self.truncation.as_mut() else { return Ok(()) };
        assert!(truncation.step >= Step::Noted, "the journal notes a truncation before anything else");
        if truncation.step == Step::Truncated {
            return Ok(());
        }
        lower_checkpoints(log_dir, &self.name.topic_partition, truncation.cut, None)?;
        truncation.step = Step::CheckpointsLowered;
        Ok(())
    }

    /// Truncates the log. [`Replica::finish_truncation`] follows.
    ///
    /// # Errors
    /// The log is of no use any more, or its whole directory ([`TruncationVerdict`]). It led nothing, so nothing false
    /// was acknowledged.
    pub fn truncate(
        &mut self,
        files: &mut FilePool,
        now: TimestampMs,
        effects: &mut Vec<Effect>,
    ) -> Result<Truncated, StorageError> {
        let Some(Truncation { cut, is_repair, step }) = self.truncation else {
            return Ok(Truncated::default());
        };
        if step == Step::Truncated {
            return Ok(Truncated::default());
        }
        assert!(step == Step::CheckpointsLowered, "checkpoints are lowered before the log is truncated");
        let before = self.log.staged_bytes();
        let delete = match cut {
            Cut::Nothing => None,
            Cut::To(base) if is_repair => self.log.give_up_segments(files, base, now)?,
            Cut::To(end) => self.log.truncate_to(files, end, now)?.1,
            Cut::StartAt(at) => self.log.truncate_fully_and_start_at(files, at, now)?,
        };
        self.truncation = Some(Truncation { cut, is_repair, step: Step::Truncated });
        self.sync.forget_covered(effects);
        self.upkeep.is_changed = true;
        self.journal.direct_from = None;
        // What was written and synced below the cut is as it was: an order to write back ends there.
        if let Some((_, ordered)) = &mut self.journal.write_back {
            *ordered = (*ordered).min(self.log.end());
        }
        Ok(Truncated { delete, dropped_bytes: before.saturating_sub(self.log.staged_bytes()) })
    }

    /// Reads the state of the log that was truncated. The replica goes on. Returns whether damage went with what was
    /// truncated.
    ///
    /// # Errors
    /// As [`Replica::truncate`].
    pub fn finish_truncation(&mut self, files: &mut FilePool) -> Result<bool, StorageError> {
        let is_repair = self.truncation.is_some_and(|truncation| {
            assert!(truncation.step == Step::Truncated, "the log is truncated before its state is read");
            truncation.is_repair
        });
        self.reload(files)?;
        self.truncation = None;
        if is_repair {
            self.forget_damage();
        }
        Ok(is_repair)
    }
}

/// Lowers what a directory's checkpoint files say of a log that is to be truncated. `raised`: a log start that later
/// entries of the journal reach, which stays.
///
/// # Errors
/// The checkpoints cannot be written.
pub(crate) fn lower_checkpoints(
    log_dir: &mut LogDir,
    name: &TopicPartition,
    cut: Cut,
    raised: Option<Offset>,
) -> Result<(), StorageError> {
    let (end, start) = match cut {
        Cut::Nothing => return Ok(()),
        Cut::To(end) => (end, None),
        Cut::StartAt(at) => (at, (at > Offset::ZERO).then_some(at)),
    };
    if log_dir.recovery_point(name) > end {
        log_dir.set_recovery_point(name.clone(), end);
    }
    if log_dir.high_watermark(name).is_some_and(|known| known > end) {
        log_dir.set_high_watermark(name.clone(), end);
    }
    if log_dir.cleaner_point(name).is_some_and(|known| known > end) {
        log_dir.set_cleaner_point(name.clone(), Some(end));
    }
    let start = start.max(raised);
    if start.is_some() || log_dir.log_start(name).is_some_and(|known| known > end) {
        log_dir.set_log_start(name.clone(), start);
    }
    log_dir.write_checkpoints()
}

/// What becomes of a replica whose log could not be truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TruncationVerdict {
    /// The disk is full, or no descriptor is left. Nothing is lost: the truncation is tried again from
    /// [`Replica::lower_checkpoints`] on, and the replica waits. A log that is truncated already is not truncated
    /// twice.
    Retry,
    /// The replica stays offline until the next start.
    Offline,
    /// Its directory has failed, with all that is in it.
    DirectoryFailed,
}

impl TruncationVerdict {
    pub fn of(error: &StorageError) -> Self {
        match error {
            error if error.is_passing() => Self::Retry,
            StorageError::Damaged { .. } | StorageError::BadFile { .. } => Self::Offline,
            _ => Self::DirectoryFailed,
        }
    }
}
