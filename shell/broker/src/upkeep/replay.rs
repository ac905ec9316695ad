//! After an unclean stop: what each directory's journal holds and its segments lack.
//!
//! Most of it waits in memory until its partition is opened (node/log_dirs/unreplayed.rs), and the journal goes on
//! holding it: so a start takes as
//! long as reading the journal, whatever number of partitions it names.
//!
//! Written into segments before anybody is served is what does more than append (a log that was cut or given up), and
//! everything where `log.ack.durability=written` leaves no journal, or where the journal's files have no room to go on.
//! Then the logs are opened by several threads, each is brought to where the journal says it ended, all is synced, and
//! the recovery points are noted. A crash anywhere in between starts over.
//!
//! After a clean stop there is no journal. Where one lies in a directory that says it was shut down cleanly, another
//! broker has used the directory since, and what the journal says is out of date: it is removed, not replayed.
//!
//! Always true:
//! 1. a journal forgets nothing that is not synced in segments, or kept in a file of its own (2)
//! 2. a partition whose log is damaged keeps what the journal held of it beside the partition's directory
//!    (core/storage/src/log_dir/quarantine.rs), and stays offline; the others are served
//! 3. nothing is replayed into a partition that has another topic id, was deleted, lies in another directory, or left
//!    this broker (core/replica/src/opening/stays.rs)

use crate::log_dirs::directories::Directory;
use crate::log_dirs::journal_thread::{journal_config, remove_files};
use crate::mailbox::key_of;
use crate::node::Node;
use crate::node::topic_settings;
use crate::upkeep::placement::abandon;
use crate::upkeep::placement::locate::{exchanged, foreign, is_deleted, owner};
use barnabas_base::{Offset, Set, TopicId, TopicPartition};
use barnabas_log_dirs::lost::is_reserved;
use barnabas_replica::{
    Found, OpenError, Standing, forget_left, has_left, has_returned, is_checkpointed, note_written_back,
    read_journal, replay_log, waits_for_opening,
};
use barnabas_storage::journal::{JournalConfig, JournalPartition, PartitionReplay, Recovered, slot_files};
use barnabas_storage::placement::locate::Owner;
use barnabas_storage::{DirKind, FilePool, FileSystem, LogPlace, PartitionDir, StorageError, quarantine};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Files that each thread holds open, at most.
const FILES_OPEN: usize = 64;
/// From so many partitions on the file system is synced as a whole, once.
const WHOLE_FROM: usize = 4;
/// From so many on it is synced meanwhile as well.
const AHEAD_FROM: usize = 1000;
const AHEAD_PAUSE: Duration = Duration::from_millis(100);

/// The journal's bounds in this directory.
pub fn config_of(node: &Node, directory: &Directory) -> JournalConfig {
    let total = directory.lock().space().map_or(u64::MAX, |space| space.total);
    journal_config(
        &node.cluster.config.load(),
        total,
        node.workers.memory_bytes,
        node.log_dirs.file_bytes_max,
    )
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
        "{path} holds a journal that is older than the last clean shutdown: another broker has used the \
         directory. The journal is stale and was removed"
    );
    Ok(remove_files(&*directory.disk, &directory.path, None)?)
}

/// Reads the journal of one directory, if there is one. Batches of partitions that are opened later wait in memory;
/// the rest is synced in segments, or belongs to no topic.
///
/// # Errors
/// The directory cannot be served: its journal is damaged or belongs elsewhere, or the machine refuses.
pub fn replay(node: &Node, index: usize) -> Result<Option<Recovered>, OpenError> {
    let directory = &node.log_dirs.directories[index];
    let begun = barnabas_clock::now();
    let Some(mut recovered) = read_journal(directory, directory.id)? else { return Ok(None) };
    // Before its bytes are counted for a partition.
    recovered.keep(|replay| is_known(node, replay.partition.topic_id));
    note_left(node, index, &mut recovered)?;
    let image = node.cluster.image.load();
    let waits = |replay: &PartitionReplay| {
        let is_there = image.topics.by_id(replay.partition.topic_id).is_some();
        waits_for_opening(replay, node.log_dirs.acks_are_synced, is_there)
    };
    let at_once: Vec<PartitionReplay> =
        recovered.partitions.iter().filter(|replay| !waits(replay)).cloned().collect();
    replay_now(node, index, &at_once)?;
    recovered.keep(waits);
    for replay in &recovered.partitions {
        let key = key_of(&replay.partition);
        node.log_dirs.written.add(key);
        node.log_dirs.unreplayed.add(&node.log_dirs.directories, index, key, Arc::new(replay.clone()));
    }
    if !recovered.is_empty() || !at_once.is_empty() {
        tracing::info!(
            "read {} rounds of the journal in {} in {} ms: {} partitions are replayed when they open, {} \
             were replayed",
            recovered.rounds,
            directory.path.display(),
            barnabas_clock::since(begun).as_millis(),
            recovered.partitions.len(),
            at_once.len()
        );
    }
    Ok(Some(recovered))
}

/// The journal's files have no room to go on with what is left in it: all of that is written into segments after all.
///
/// # Errors
/// As [`replay`].
pub fn replay_rest(node: &Node, index: usize, recovered: &mut Recovered) -> Result<(), OpenError> {
    if recovered.is_empty() {
        return Ok(());
    }
    tracing::info!(
        "the journal in {} has no free file: {} partitions are replayed before clients are served",
        node.log_dirs.directories[index].path.display(),
        recovered.partitions.len()
    );
    replay_now(node, index, &recovered.partitions)?;
    for replay in &recovered.partitions {
        node.log_dirs.unreplayed.remove(&node.log_dirs.directories, index, key_of(&replay.partition), 0);
    }
    recovered.keep(|_| false);
    Ok(())
}

/// After an unclean stop: has the disk take what a killed process left in page caches, while the node serves already. A
/// cut or a removal that the killed process did and did not sync looks done to this one, which has nothing to sync
/// then; without this, power that goes hours later would take it back.
///
/// Only the end of the node waits for it: a log that is opened before and written to settles itself
/// (`OpenFrom::is_unsettled`).
///
/// # Errors
/// The system gives no thread.
pub fn settle(node: &Arc<Node>, index: usize) -> std::io::Result<Option<JoinHandle<()>>> {
    let directory = &node.log_dirs.directories[index];
    let Some(file_system) = directory.file_system.clone().filter(|_| !directory.lock().was_clean()) else {
        return Ok(None);
    };
    let told = node.clone();
    let settle = move || {
        let begun = barnabas_clock::now();
        match file_system.sync() {
            Ok(()) => {
                told.log_dirs.directories[index].lock().note_settled();
                tracing::debug!(
                    directory = index,
                    ms = barnabas_clock::since(begun).as_millis() as u64,
                    "all that was left unsynced is synced"
                );
            }
            Err(error) => told.directory_failed(index, &StorageError::from(error)),
        }
    };
    std::thread::Builder::new().name(format!("settle-{index}")).spawn(settle).map(Some)
}

fn replay_now(node: &Node, index: usize, partitions: &[PartitionReplay]) -> Result<(), OpenError> {
    if partitions.is_empty() {
        return Ok(());
    }
    let directory = &node.log_dirs.directories[index];
    let whole = directory.file_system.as_ref().filter(|_| partitions.len() >= WHOLE_FROM);
    let ends = replay_all(node, index, partitions, whole.map(|whole| &**whole))?;
    if let Some(whole) = whole {
        whole.sync().map_err(StorageError::from)?;
    }
    let mut log_dir = directory.lock();
    for (partition, end) in ends {
        log_dir.vouch_for(partition, end);
    }
    match log_dir.write_checkpoints() {
        // What was replayed is synced in segments, and the next checkpoints name it: no start waits for that.
        Err(error) if error.is_passing() => {
            tracing::info!(
                "the replay position of the journal will be recorded once there is free \
                space: {error}"
            );
            Ok(())
        }
        written => Ok(written?),
    }
}

/// Records of a deleted topic are dropped, unless the metadata log has lost its end.
fn is_known(node: &Node, topic: TopicId) -> bool {
    node.cluster.image.load().topics.by_id(topic).is_some() || node.peers.controller.log_was_cut()
}

/// Takes out what is of an earlier stay of a replica on this broker (core/replica/src/opening/stays.rs).
fn note_left(node: &Node, index: usize, recovered: &mut Recovered) -> Result<(), StorageError> {
    let (image, me) = (node.cluster.image.load(), node.identity.broker_id);
    let directory = &node.log_dirs.directories[index];
    let (mut left, mut returned) =
        (Set::<Arc<JournalPartition>>::default(), Set::<Arc<JournalPartition>>::default());
    for replay in recovered.partitions.iter().chain(&recovered.written_back) {
        let JournalPartition { topic_id, topic_partition: name } = &*replay.partition;
        let row = image.topics.by_id(*topic_id).and_then(|topic| topic.partition(name.partition));
        if has_returned(replay, || is_here(directory, name))? {
            tracing::info!(partition = %name, "came back to {} before the unclean stop", directory.path.display());
            returned.insert(Arc::clone(&replay.partition));
            continue;
        }
        if has_moved(node, index, &replay.partition)? {
            left.insert(Arc::clone(&replay.partition));
            continue;
        }
        let standing = Standing::of(row, me);
        if standing == Standing::CountedOn {
            continue;
        }
        let found = Found {
            standing,
            has_folder: has_folder(node, name)?,
            is_checkpointed: is_checkpointed(&directory.lock(), name),
            log_was_cut: node.peers.controller.log_was_cut(),
        };
        if has_left(replay, found) {
            tracing::info!(partition = %name, "left this broker before the unclean stop: what the journal \
                holds of it is not replayed");
            left.insert(Arc::clone(&replay.partition));
        }
    }
    forget_left(&mut directory.lock(), left.iter().map(|partition| &partition.topic_partition))?;
    recovered.note_left(|replay| left.contains(&replay.partition));
    recovered.note_returned(|replay| returned.contains(&replay.partition));
    note_written_back(directory, recovered)
}

/// Whether the replica lies in another log directory: it moved there before the unclean stop, and what this journal
/// holds of it is in its segments there. Where that cannot be found out, its opening asks again.
fn has_moved(node: &Node, index: usize, partition: &JournalPartition) -> Result<bool, StorageError> {
    let directory = &node.log_dirs.directories[index];
    let has_one_place = !node.log_dirs.directories.are_several() || node.peers.controller.log_was_cut();
    if has_one_place || is_here(directory, &partition.topic_partition)? {
        return Ok(false);
    }
    Ok(matches!(belongs_here(node, index, partition), Ok(false)))
}

fn is_here(directory: &Directory, name: &TopicPartition) -> Result<bool, StorageError> {
    Ok(directory.disk.stat(&directory.path.join(name.to_string()))?.is_some())
}

/// In whichever log directory.
fn has_folder(node: &Node, name: &TopicPartition) -> Result<bool, StorageError> {
    for directory in node.log_dirs.directories.iter().filter(|each| each.is_usable()) {
        if is_here(directory, name)? {
            return Ok(true);
        }
    }
    Ok(false)
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
    let threads = node.workers.count.min(partitions.len());
    // No worker has opened anything yet: their share is free.
    let share = (node.log_dirs.open_files_max / threads.max(1)).min(FILES_OPEN);
    std::thread::scope(|scope| {
        if let Some(whole) = whole.filter(|_| partitions.len() >= AHEAD_FROM) {
            scope.spawn(|| sync_ahead(whole, &next, partitions.len(), &done));
        }
        for _ in 0..threads {
            scope.spawn(|| {
                let directory = &node.log_dirs.directories[index];
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

/// Has the disk write while the other threads write back, so that little is left for the sync that counts.
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
    let directory = &node.log_dirs.directories[index];
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
    let place = LogPlace {
        root: directory.path.clone(),
        topic_partition: name.clone(),
        topic_id: *topic_id,
        future: None,
    };
    let config = topic_settings::log_config(node, &node.cluster.image.load_full(), &name.topic);
    let now = node.clock.wall();
    match replay_log(replay, place, config, synced_as_a_whole, directory, files, now)? {
        Ok(end) => Ok(Some(end)),
        Err(error) => {
            keep_aside(directory, replay, &error)?;
            Ok(None)
        }
    }
}

/// The partition's log cannot take what the journal holds. It is kept in a file, as the journal goes on.
///
/// # Errors
/// The file system refuses: nothing may be forgotten.
pub fn keep_aside(
    directory: &Directory,
    replay: &PartitionReplay,
    why: &OpenError,
) -> Result<(), StorageError> {
    let path = quarantine::keep(&*directory.disk, &directory.path, replay)?;
    let (name, bytes, path) = (&replay.partition.topic_partition, replay.bytes(), path.display());
    tracing::error!(
        partition = %name,
        error = %why,
        "partition cannot be opened and stays offline until the next start; the journal's {bytes} bytes \
         of its record batches are kept in {path}. Once its files are restored, the next start applies \
         them; or create an empty file {} in {} and restart, to abandon its records",
        abandon::file_name(name, replay.partition.topic_id),
        directory.path.display()
    );
    Ok(())
}

/// The topic is deleted, and with it what was kept of it.
pub fn forget_aside(directories: &[Directory], name: &TopicPartition, topic: TopicId) {
    for directory in directories.iter().filter(|directory| directory.is_online()) {
        let path = quarantine::path(&directory.path, name, topic);
        if !matches!(directory.disk.stat(&path), Ok(None))
            && let Err(error) = directory.disk.remove_file(&path)
        {
            tracing::warn!(%error, "{} could not be removed", path.display());
        }
    }
}

/// Whether what the journal says is of a partition that lies in this directory, or will.
///
/// # Errors
/// [`StorageError::WrongOwner`]: folders were exchanged. Else the file system cannot be asked.
pub fn belongs_here(node: &Node, index: usize, partition: &JournalPartition) -> Result<bool, StorageError> {
    let JournalPartition { topic_id, topic_partition: name } = partition;
    if !is_known(node, *topic_id) {
        return Ok(false);
    }
    let dir = PartitionDir { name: name.to_string(), topic_partition: name.clone(), kind: DirKind::Current };
    let mut is_elsewhere = false;
    for (at, directory) in
        node.log_dirs.directories.iter().enumerate().filter(|(_, dir)| dir.holds_partitions)
    {
        if !directory.is_online() {
            continue;
        }
        if directory.disk.stat(&directory.path.join(&dir.name))?.is_none() {
            continue;
        }
        // Torn or missing: the crash came before its first sync.
        let found = directory.lock().topic_id(&dir)?;
        if at == index {
            return match found.map(|found| (found, owner(node, found, *topic_id))) {
                Some((found, Owner::Another)) => Err(exchanged(&directory.path, found, name, *topic_id)),
                Some((found, Owner::Gone)) if is_deleted(node, found) => Ok(false),
                // The journal has records of the partition here, so this is not its predecessor's.
                Some((found, Owner::Gone)) => Err(foreign(&directory.path, found, name, *topic_id)),
                _ => Ok(true),
            };
        }
        is_elsewhere |= found == Some(*topic_id);
    }
    // It may have moved to a directory that is offline now.
    let image = node.cluster.image.load();
    let row = image.topics.by_id(*topic_id).and_then(|topic| topic.partition(name.partition));
    let assigned = row.and_then(|row| row.directory(node.identity.broker_id)).filter(|id| !is_reserved(*id));
    let is_assigned_elsewhere = assigned.is_some_and(|id| id != node.log_dirs.directories[index].id);
    Ok(!is_elsewhere && !is_assigned_elsewhere)
}
