//! After an unclean stop: what each directory's journal holds and its segments lack is written into the segments, before anybody
//! is served.
//!
//! Per directory: read the journal, open the logs that it names (several threads), bring each to where the journal says it ended,
//! sync, note the recovery points, and only then let the journal go on. A crash anywhere in between starts over.
//!
//! After a clean stop there is no journal. Where one lies in a directory that says it was shut down cleanly, another broker has
//! used the directory since, and what the journal says is out of date: it is removed, not replayed.
//!
//! Always true:
//! 1. a journal goes on only after all that it held is synced in segments, or kept in a file of its own (2)
//! 2. a partition whose log is damaged keeps what the journal held of it in `barnabas-unreplayed-TOPIC-PARTITION.ID`, beside the
//!    partition's directory, and stays offline; the others are served
//! 3. nothing is replayed into a partition that has another topic id, was deleted, or lies in another directory

use crate::directories::Directory;
use crate::directories::locate::{Owner, exchanged, is_reserved};
use crate::journal_thread::{journal_config, remove_files, slot_files};
use crate::node::Node;
use crate::topic_settings;
use barnabas_base::{Offset, TimestampMs, TopicId, TopicPartition};
use barnabas_storage::journal::{
    JournalConfig, JournalError, JournalPartition, LayOp, PartitionReplay, Recovered, recover,
};
use barnabas_storage::{DirKind, FilePool, FileSystem, Log, LogPlace, PartitionDir, StorageError};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Of a journal's files the one that there always is.
const FIRST_FILE: &str = "barnabas-journal-00";
/// Files that each thread holds open, at most.
const FILES_OPEN: usize = 64;
/// From so many partitions on the file system is synced as a whole, once.
const WHOLE_FROM: usize = 4;
/// From so many on it is synced meanwhile as well.
const AHEAD_FROM: usize = 1000;
const AHEAD_PAUSE: Duration = Duration::from_millis(100);

/// Why a directory's journal was not replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The journal's bounds in this directory.
pub fn config_of(node: &Node, directory: &Directory) -> JournalConfig {
    let total = directory.lock().space().map_or(u64::MAX, |space| space.total);
    journal_config(&node.config.load(), total, node.memory_bytes)
}

/// Before anything is written in a directory that was shut down cleanly: a journal there is out of date.
///
/// # Errors
/// The file system refuses.
pub fn discard_stale(directory: &Directory) -> Result<(), StorageError> {
    if !directory.lock().was_clean() || slot_files(&*directory.disk, &directory.path)?.is_empty() {
        return Ok(());
    }
    let path = directory.path.display();
    tracing::warn!(
        "{path} holds a journal, but was shut down cleanly since: another broker has used it. The journal is out of date and is removed"
    );
    Ok(remove_files(&*directory.disk, &directory.path, None)?)
}

/// Replays the journal of one directory, if there is one. Afterwards everything in it is synced in segments.
///
/// # Errors
/// The directory cannot be served: its journal is damaged or belongs elsewhere, or the machine refuses.
pub fn replay(node: &Node, index: usize) -> Result<Option<Recovered>, ReplayError> {
    let directory = &node.directories[index];
    let disk = &*directory.disk;
    let files = slot_files(disk, &directory.path).map_err(StorageError::from)?;
    if directory.lock().must_have_journal() && !files.iter().any(|file| file.ends_with(FIRST_FILE)) {
        let file = directory.path.join(FIRST_FILE);
        let what = "it is missing, and the directory was not shut down cleanly: what was acknowledged last lay there";
        let remedy = "put it back; or, to give up what it held, remove barnabas-checkpoints beside it";
        return Err(StorageError::BadFile { file, what: what.to_owned(), remedy }.into());
    }
    if files.is_empty() {
        return Ok(None);
    }
    let begun = Instant::now();
    let mut recovered = recover(disk, &directory.path, files.len(), directory.id)?;
    // Before a log is changed by what a killed process may not have synced.
    recovered.sync_files(disk, &directory.path)?;
    if recovered.is_empty() {
        return Ok(Some(recovered));
    }
    let whole = directory.file_system.as_ref().filter(|_| recovered.partitions.len() >= WHOLE_FROM);
    let ends = replay_all(node, index, &recovered.partitions, whole.map(|whole| &**whole))?;
    if let Some(whole) = whole {
        whole.sync().map_err(StorageError::from)?;
    }
    let mut log_dir = directory.lock();
    for (partition, end) in ends {
        log_dir.vouch_for(partition, end);
    }
    log_dir.write_checkpoints()?;
    tracing::info!(
        "replayed {} rounds of the journal in {} into {} partitions in {} ms",
        recovered.rounds,
        directory.path.display(),
        recovered.partitions.len(),
        begun.elapsed().as_millis()
    );
    drop(log_dir);
    recovered.keep(|_| false);
    Ok(Some(recovered))
}

type Ends = Vec<(TopicPartition, Offset)>;

/// Several threads, each taking the next partition. The first failure of the machine ends all of it.
fn replay_all(
    node: &Node,
    index: usize,
    partitions: &[PartitionReplay],
    whole: Option<&dyn FileSystem>,
) -> Result<Ends, StorageError> {
    let next = AtomicUsize::new(0);
    let synced_as_a_whole = whole.is_some();
    let done: Mutex<Result<Ends, StorageError>> = Mutex::new(Ok(Vec::new()));
    let threads = node.workers.min(partitions.len());
    // No worker has opened anything yet: their share is free.
    let share = (node.open_files_max / threads.max(1)).min(FILES_OPEN);
    std::thread::scope(|scope| {
        if let Some(whole) = whole.filter(|_| partitions.len() >= AHEAD_FROM) {
            scope.spawn(|| sync_ahead(whole, &next, partitions.len(), &done));
        }
        for _ in 0..threads {
            scope.spawn(|| {
                let directory = &node.directories[index];
                let mut files = FilePool::new(directory.disk.clone(), share)
                    .with_file_system(directory.file_system.clone());
                while let Some(replay) = partitions.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = replay_one(node, index, replay, &mut files, synced_as_a_whole);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    let Ok(ends) = &mut *done else { return };
                    match result {
                        Ok(Some(end)) => ends.push((replay.partition.topic_partition.clone(), end)),
                        Ok(None) => {}
                        Err(error) => *done = Err(error),
                    }
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Has the disk write while the other threads lay, so that little is left for the sync that counts.
fn sync_ahead(
    whole: &dyn FileSystem,
    next: &AtomicUsize,
    partitions: usize,
    done: &Mutex<Result<Ends, StorageError>>,
) {
    // After a failure the others stop early.
    let has_failed = || done.lock().unwrap_or_else(PoisonError::into_inner).is_err();
    while next.load(Ordering::Relaxed) < partitions && !has_failed() {
        std::thread::sleep(AHEAD_PAUSE);
        // A failure is reported once, and the sync that counts would not hear of it.
        if let Err(error) = whole.sync() {
            *done.lock().unwrap_or_else(PoisonError::into_inner) = Err(error.into());
            return;
        }
    }
}

/// Where the log ends now; `None`: it is not to be served, or not here.
fn replay_one(
    node: &Node,
    index: usize,
    replay: &PartitionReplay,
    files: &mut FilePool,
    synced_as_a_whole: bool,
) -> Result<Option<Offset>, StorageError> {
    let JournalPartition { topic_id, topic_partition: name } = &*replay.partition;
    let directory = &node.directories[index];
    let belongs_here = match belongs_here(node, index, &replay.partition) {
        Err(error @ StorageError::WrongOwner { .. }) => {
            keep_aside(directory, replay, &error.into())?;
            return Ok(None);
        }
        belongs => belongs?,
    };
    if !belongs_here {
        tracing::debug!(partition = %name, "was deleted or moved: what the journal holds of it is not replayed");
        return Ok(None);
    }
    let image = node.image.load_full();
    let place = LogPlace {
        root: directory.path.clone(),
        topic_partition: name.clone(),
        topic_id: *topic_id,
        future: None,
    };
    let config = topic_settings::log_config(node, &image, &name.topic);
    let from = directory.lock().open_from(name);
    let now = node.clock.wall();
    let opened = match Log::open(files, place, config, from, now) {
        Ok((log, _)) => replay.steps(log.end()).map(|steps| (log, steps)).map_err(ReplayError::from),
        Err(error @ (StorageError::Damaged { .. } | StorageError::BadFile { .. })) => Err(error.into()),
        Err(error) => return Err(error),
    };
    let (mut log, steps) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            keep_aside(directory, replay, &error)?;
            return Ok(None);
        }
    };
    for step in steps {
        carry_out(directory, &mut log, files, step, now)?;
    }
    let end = log.end();
    if let Some(dirty) = log.close(files)?
        && !synced_as_a_whole
    {
        dirty.sync(&*directory.disk, directory.file_system.as_ref())?;
    }
    Ok(Some(end))
}

/// Whether what the journal says is of a partition that lies in this directory, or will.
fn belongs_here(node: &Node, index: usize, partition: &JournalPartition) -> Result<bool, StorageError> {
    let JournalPartition { topic_id, topic_partition: name } = partition;
    let is_known = node.image.load().topics.by_id(*topic_id).is_some();
    if !is_known && !node.controller.log_was_cut() {
        return Ok(false);
    }
    let dir = PartitionDir { name: name.to_string(), topic_partition: name.clone(), kind: DirKind::Current };
    let mut is_elsewhere = false;
    for (at, directory) in node.directories.iter().enumerate().filter(|(_, dir)| dir.holds_partitions) {
        if !directory.is_online() {
            continue;
        }
        if directory.disk.stat(&directory.path.join(&dir.name))?.is_none() {
            continue;
        }
        // Torn or missing: the crash came before its first sync.
        let found = directory.lock().topic_id(&dir)?;
        if at == index {
            return match found.map(|found| (found, Owner::of(node, found, *topic_id))) {
                Some((found, Owner::Another)) => Err(exchanged(&directory.path, found, name, *topic_id)),
                Some((_, Owner::Gone)) => Ok(false),
                _ => Ok(true),
            };
        }
        is_elsewhere |= found == Some(*topic_id);
    }
    // It may have moved to a directory that is offline now.
    let image = node.image.load();
    let row = image.topics.by_id(*topic_id).and_then(|topic| topic.partition(name.partition));
    let assigned = row.and_then(|row| row.directory(node.broker_id)).filter(|id| !is_reserved(*id));
    let is_assigned_elsewhere = assigned.is_some_and(|id| id != node.directories[index].id);
    Ok(!is_elsewhere && !is_assigned_elsewhere)
}

fn carry_out(
    directory: &Directory,
    log: &mut Log,
    files: &mut FilePool,
    step: LayOp,
    now: TimestampMs,
) -> Result<(), StorageError> {
    let remove = |delete: Option<barnabas_storage::DelayedDelete>| -> Result<(), StorageError> {
        let gone = delete.map(|delete| delete.files).unwrap_or_default();
        Ok(gone.iter().try_for_each(|file| directory.disk.remove_file(file))?)
    };
    match step {
        LayOp::Append { records, .. } => {
            log.append(files, &[records], now)?;
            Ok(())
        }
        LayOp::Truncate { end } => {
            lower_recovery_point(directory, log, end)?;
            let (_, delete) = log.truncate_to(files, end, now)?;
            remove(delete)
        }
        LayOp::Restart { at } => {
            lower_recovery_point(directory, log, at)?;
            let delete = log.truncate_fully_and_start_at(files, at, now)?;
            directory.lock().set_log_start(log.place().topic_partition.clone(), Some(at));
            remove(delete)
        }
        LayOp::Remove => {
            let place = log.place().clone();
            log.abandon(files);
            let mut log_dir = directory.lock();
            log_dir.forget(&place.topic_partition);
            log_dir.write_checkpoints()?;
            log_dir.remove(&place.dir())?;
            directory.disk.sync_dir(&directory.path)?;
            *log = Log::create(place, Arc::clone(log.config()), Offset::ZERO);
            Ok(())
        }
    }
}

/// A checkpoint that names more than the log holds reads as lost data.
fn lower_recovery_point(directory: &Directory, log: &Log, end: Offset) -> Result<(), StorageError> {
    let mut log_dir = directory.lock();
    let name = &log.place().topic_partition;
    if log_dir.recovery_point(name) > end {
        log_dir.set_recovery_point(name.clone(), end);
        log_dir.write_checkpoints()?;
    }
    Ok(())
}

/// Where the journal's part of a partition is kept that could not be replayed. While it is there, the partition is not served;
/// a topic that is made anew under the same name has nothing to do with that.
pub fn unreplayed_path(directory: &Directory, name: &TopicPartition, topic: TopicId) -> PathBuf {
    directory.path.join(format!("barnabas-unreplayed-{name}.{topic}"))
}

/// The partition's log is damaged, so what the journal holds cannot be put behind it. It is kept, as the journal goes on.
fn keep_aside(
    directory: &Directory,
    replay: &PartitionReplay,
    error: &ReplayError,
) -> Result<(), StorageError> {
    let name = &replay.partition.topic_partition;
    let path = unreplayed_path(directory, name, replay.partition.topic_id);
    let file = directory.disk.open(&path, barnabas_storage::OpenMode::Truncate)?;
    let mut position = 0;
    for item in &replay.items {
        file.write_at(position, &[&item.records])?;
        position += item.records.len() as u64;
    }
    file.sync()?;
    directory.disk.sync_dir(&directory.path)?;
    tracing::error!(
        partition = %name,
        %error,
        "partition stays offline; the {position} bytes of record batches that the journal held of it are kept in {}",
        path.display()
    );
    Ok(())
}

/// The topic is deleted, and with it what was kept aside of it.
pub fn forget_aside(directories: &[Directory], name: &TopicPartition, topic: TopicId) {
    for directory in directories.iter().filter(|directory| directory.is_online()) {
        let path = unreplayed_path(directory, name, topic);
        if !matches!(directory.disk.stat(&path), Ok(None))
            && let Err(error) = directory.disk.remove_file(&path)
        {
            tracing::warn!(%error, "{} stays behind", path.display());
        }
    }
}
