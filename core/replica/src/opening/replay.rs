//! A log directory's start after an unclean stop: what its journal holds and its segments lack.
//!
//! Most of it is appends. They wait in memory until their partition is opened ([`waits_for_opening`],
//! [`Opening::unreplayed`]), and the journal goes on holding them. What does more than append (a log that was
//! truncated, restarted or removed) is replayed into the segments before any partition of the directory is opened
//! ([`replay_log`]).
//!
//! Always true:
//! 1. a checkpoint never names more than the log holds: it is lowered before the log is truncated
//! 2. doing a replay again, or after a crash in the middle of it, changes nothing
//! 3. records that DeleteRecords deleted stay deleted: a start that was raised after a truncation, a restart or a
//!    removal is not lowered by the replay of that
//!
//! Neighbours: shell/broker/src/upkeep/replay.rs, which does this for many partitions with several threads;
//! core/storage's `journal`.
//!
//! [`Opening::unreplayed`]: crate::Opening::unreplayed

use std::cell::RefCell;
use std::sync::Arc;

use barnabas_base::{DirectoryId, Offset, TimestampMs, TopicPartition};
use barnabas_partition::Cut;
use barnabas_storage::journal::{
    JournalError, JournalPartition, PartitionReplay, Recovered, WriteBackOp, recover, slot_files,
};
use barnabas_storage::{DelayedDelete, FilePool, Log, LogConfig, LogDir, LogPlace, StorageError, quarantine};

use crate::OpenError;
use crate::replica::truncation::lower_checkpoints;

/// Of a journal's files the one that there always is.
const FIRST_FILE: &str = "barnabas-journal-00";

/// The checkpoints of a log directory, for the time of one step: a broker locks them, since many threads need them.
pub trait Checkpoints {
    fn with<R>(&self, work: impl FnOnce(&mut LogDir) -> R) -> R;
}

impl Checkpoints for RefCell<LogDir> {
    fn with<R>(&self, work: impl FnOnce(&mut LogDir) -> R) -> R {
        work(&mut self.borrow_mut())
    }
}

/// Reads the journal of a directory, and makes it durable as it was found. `None`: there is none.
///
/// # Errors
/// The directory cannot be served: its journal is damaged, missing, older than was seen before, or another directory's.
pub fn read_journal(
    checkpoints: &impl Checkpoints,
    directory: DirectoryId,
) -> Result<Option<Recovered>, OpenError> {
    let (disk, path, had_life) =
        checkpoints.with(|log_dir| (log_dir.disk().clone(), log_dir.path().clone(), log_dir.had_journal()));
    let files = slot_files(&*disk, &path).map_err(StorageError::from)?;
    if had_life.is_some() && !files.iter().any(|file| file.ends_with(FIRST_FILE)) {
        let file = path.join(FIRST_FILE);
        let what = "it is missing, and the directory was not shut down cleanly: it held the batches acknowledged last";
        let remedy = "put it back; or, to give up what it held, remove barnabas-checkpoints beside it";
        return Err(StorageError::BadFile { file, what: what.to_owned(), remedy }.into());
    }
    if files.is_empty() {
        return Ok(None);
    }
    let recovered = recover(&*disk, &path, files.len(), directory)?;
    let (found, expected) = (recovered.newest_life(), had_life.unwrap_or(0));
    if found < expected {
        return Err(JournalError::Behind { directory: path.to_path_buf(), found, expected }.into());
    }
    // It is needed from now on: every checkpoint of this directory says so.
    checkpoints.with(|log_dir| log_dir.set_journal(Some(found).filter(|life| *life > 0)));
    // Before a log is changed by what a killed process may not have synced.
    recovered.sync_files(&*disk, &path)?;
    Ok(Some(recovered))
}

/// Notes up to where logs are synced of which the journal holds nothing that is to be replayed
/// ([`Recovered::written_back`]): they are opened with that ([`Checkpointed::read`](crate::Checkpointed::read)).
/// Comes after [`has_left`](crate::has_left) was asked for them.
///
/// A log that lacks what an earlier start had to keep aside does not reach as far: that says itself where it goes on
/// ([`quarantine::goes_on_at`]).
///
/// # Errors
/// The disk refuses.
pub fn note_written_back(checkpoints: &impl Checkpoints, recovered: &Recovered) -> Result<(), StorageError> {
    checkpoints.with(|log_dir| {
        for replay in &recovered.written_back {
            let JournalPartition { topic_id, topic_partition } = &*replay.partition;
            let aside = quarantine::path(log_dir.path(), topic_partition, *topic_id);
            if let (Some(end), None) = (replay.synced_end, log_dir.disk().stat(&aside)?) {
                log_dir.note_written_back(topic_partition.clone(), *topic_id, end);
            }
        }
        Ok(())
    })
}

/// Whether what the journal holds of a partition waits until that is opened. Otherwise [`replay_log`] comes first.
///
/// `has_journal`: the journal goes on (`log.ack.durability=synced`). `is_known`: the topic is in the image.
pub fn waits_for_opening(replay: &PartitionReplay, has_journal: bool, is_known: bool) -> bool {
    has_journal && is_known && replay.only_appends()
}

/// Writes into the segments what the journal holds of a log, and brings it to where the journal says that it ended.
/// Returns where it ends. The caller notes that once it is durable ([`LogDir::vouch_for`]).
///
/// `is_synced_after`: the caller syncs the file system as a whole when many logs have been replayed.
///
/// # Errors
/// `Ok(Err(_))`: of this log alone. It is offline, and what the journal holds of it is kept in a file
/// ([`quarantine::keep`](barnabas_storage::quarantine::keep)). `Err(_)`: the machine refuses.
pub fn replay_log(
    replay: &PartitionReplay,
    place: LogPlace,
    config: Arc<LogConfig>,
    is_synced_after: bool,
    checkpoints: &impl Checkpoints,
    files: &mut FilePool,
    now: TimestampMs,
) -> Result<Result<Offset, OpenError>, StorageError> {
    let mut from = checkpoints.with(|log_dir| log_dir.open_from(&place.topic_partition));
    from.recovery_point = from.recovery_point.max(replay.synced_below());
    // Before anything rests on it the file system is synced, once for all.
    from.is_unsettled &= !is_synced_after;
    let opened = match Log::open(files, place.clone(), Arc::clone(&config), from, now) {
        Ok((log, _)) => replay.steps(log.end()).map(|steps| (log, steps)).map_err(OpenError::from),
        // Nothing of it counts: what comes first empties it.
        Err(StorageError::Damaged { .. } | StorageError::BadFile { .. }) if replay.starts_afresh() => {
            checkpoints.with(|log_dir| log_dir.remove(&place.dir()))?;
            files.disk().sync_dir(&place.root)?;
            let log = Log::create(place, config, Offset::ZERO);
            replay.steps(log.end()).map(|steps| (log, steps)).map_err(OpenError::from)
        }
        Err(error @ (StorageError::Damaged { .. } | StorageError::BadFile { .. })) => Err(error.into()),
        Err(error) => return Err(error),
    };
    let (mut log, steps) = match opened {
        Ok(opened) => opened,
        Err(error) => return Ok(Err(error)),
    };
    let raised = checkpoints.with(|log_dir| raised_start(log_dir, &replay.partition.topic_partition, &steps));
    // Producers are not followed here: aborted transactions are read from the batches once all are there.
    let mut indexed = log.end();
    for step in steps {
        let is_append = matches!(step, WriteBackOp::Append { .. });
        carry_out(&mut log, step, raised, checkpoints, files, now)?;
        if !is_append {
            indexed = indexed.min(log.end());
        }
    }
    log.find_aborted(files, indexed)?;
    let end = log.end();
    if !replay.only_appends() {
        // The crash may have come before the process lowered them itself.
        checkpoints.with(|log_dir| {
            lower_checkpoints(log_dir, &replay.partition.topic_partition, Cut::To(end), raised)
        })?;
    }
    if let Some(dirty) = log.close(files)?
        && !is_synced_after
    {
        dirty.sync(&**files.disk(), files.file_system())?;
    }
    Ok(Ok(end))
}

/// The log start of the checkpoints, if it was raised after the last step that does more than append. A step that the
/// process did not get to carry out is the last of its log in the journal: nothing behind it reaches that start. The
/// checkpoints forget a replica before the journal notes its removal.
fn raised_start(log_dir: &LogDir, name: &TopicPartition, steps: &[WriteBackOp]) -> Option<Offset> {
    let end = steps.last().map(|step| match step {
        WriteBackOp::Append { end, .. } | WriteBackOp::Truncate { end } => *end,
        WriteBackOp::Restart { at } => *at,
        WriteBackOp::Remove => Offset::ZERO,
    });
    log_dir.log_start(name).filter(|known| end.is_some_and(|end| *known <= end))
}

/// `raised`: see [`raised_start`].
fn carry_out(
    log: &mut Log,
    step: WriteBackOp,
    raised: Option<Offset>,
    checkpoints: &impl Checkpoints,
    files: &mut FilePool,
    now: TimestampMs,
) -> Result<(), StorageError> {
    match step {
        WriteBackOp::Append { records, .. } => {
            log.append(files, &[records], now)?;
            Ok(())
        }
        WriteBackOp::Truncate { end } => {
            let name = &log.place().topic_partition;
            checkpoints.with(|log_dir| lower_checkpoints(log_dir, name, Cut::To(end), raised))?;
            let (_, delete) = log.truncate_to(files, end, now)?;
            remove_files(files, delete)
        }
        WriteBackOp::Restart { at } => {
            // With the new start: a full disk may keep the log from beginning there, and the next start finds nothing.
            let name = log.place().topic_partition.clone();
            checkpoints.with(|log_dir| lower_checkpoints(log_dir, &name, Cut::StartAt(at), raised))?;
            let delete = log.truncate_fully_and_start_at(files, at, now)?;
            remove_files(files, delete)
        }
        WriteBackOp::Remove => {
            let place = log.place().clone();
            log.abandon(files);
            checkpoints.with(|log_dir| {
                log_dir.forget(&place.topic_partition);
                log_dir.raise_log_start(place.topic_partition.clone(), raised);
                log_dir.write_checkpoints()?;
                log_dir.remove(&place.dir())
            })?;
            files.disk().sync_dir(&place.root)?;
            *log = Log::create(place, Arc::clone(log.config()), Offset::ZERO);
            Ok(())
        }
    }
}

fn remove_files(files: &FilePool, delete: Option<DelayedDelete>) -> Result<(), StorageError> {
    let gone = delete.map(|delete| delete.files).unwrap_or_default();
    Ok(gone.iter().try_for_each(|file| files.disk().remove_file(file))?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use barnabas_base::{LeaderEpoch, PartitionIndex};
    use barnabas_storage::{AppendBytes, MemoryDisk};
    use bytes::Bytes;

    use super::*;

    /// DeleteRecords is answered once the checkpoint names the new start (found by lab/sim, climate retention).
    #[test]
    fn start_that_later_records_reach_is_not_lowered() {
        let disk = MemoryDisk::new();
        let mut log_dir = LogDir::open(Arc::new(disk), Path::new("/data")).unwrap();
        let name = TopicPartition { topic: "a".into(), partition: PartitionIndex(0) };
        let known = Offset(11);
        let append = |from, end| WriteBackOp::Append {
            from: Offset(from),
            end: Offset(end),
            leader_epoch: LeaderEpoch(0),
            records: AppendBytes::Whole(Bytes::new()),
        };
        let after = |log_dir: &mut LogDir, steps: &[WriteBackOp], cut| {
            log_dir.set_log_start(name.clone(), Some(known));
            let raised = raised_start(log_dir, &name, steps);
            lower_checkpoints(log_dir, &name, cut, raised).unwrap();
            log_dir.log_start(&name)
        };
        let restart = WriteBackOp::Restart { at: Offset(7) };
        let restart_at = Cut::StartAt(Offset(7));
        assert_eq!(after(&mut log_dir, &[restart.clone(), append(7, 12)], restart_at), Some(known));
        assert_eq!(after(&mut log_dir, &[restart.clone(), append(7, 10)], restart_at), Some(Offset(7)));
        assert_eq!(after(&mut log_dir, &[restart], restart_at), Some(Offset(7)), "it was not carried out");
        let higher = [WriteBackOp::Restart { at: Offset(20) }, append(20, 22)];
        assert_eq!(after(&mut log_dir, &higher, Cut::StartAt(Offset(20))), Some(Offset(20)));
        let truncate = WriteBackOp::Truncate { end: Offset(5) };
        let truncate_at = Cut::To(Offset(5));
        assert_eq!(after(&mut log_dir, &[truncate.clone(), append(5, 12)], truncate_at), Some(known));
        assert_eq!(after(&mut log_dir, &[truncate], truncate_at), None);
    }
}
