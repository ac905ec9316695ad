//! Compaction's threads (`log.cleaner.threads`, low priority): which log is cleaned when, how fast, and what became of
//! it.
//!
//! core/storage's `cleaner` reads and writes segments here, beside the partition's worker. The worker is asked three
//! things (partition_worker/upkeep/clean.rs): how much waits, what may be read, and to swap a group of segments, which
//! is a few renames.
//!
//! | file | answers |
//! |---|---|
//! | `cleaner/candidates.rs` | which partitions may need compaction (node/log_dirs/compaction.rs keeps the list) |
//! | `cleaner/pace.rs` | how fast may it go on, and whether it has to stop |
//!
//! Always true:
//! 1. an idle partition costs nothing: the cleaner looks only at logs that have grown since the last pass, and after
//!    a start at those whose newest segment begins past the directory's `cleaner-offset-checkpoint`
//! 2. the recovery-point checkpoint reaches past what is swapped, so that recovery never takes compaction's holes for
//!    lost segments
//! 3. `cleaner-offset-checkpoint` is written after the names of the new segments are durable
//! 4. a partition that cannot be cleaned is named once at WARN and counted until the next start; the others go on

mod candidates;
mod pace;

use crate::log_dirs::directories::{Directory, random_uuid};
use crate::mailbox::cleaning::{Begun, Looked, Waiting};
use crate::mailbox::{CleanCommand, Command, PartitionKey};
use crate::node::Node;
use crate::upkeep::checkpoints;
use crate::upkeep::checkpoints::write_checkpoints;
use crate::upkeep::scrub;
use barnabas_base::Offset;
use barnabas_storage::cleaner::{CleanError, CleanStats, Cleaning, LogToClean, MapMemory, Replaced};
use barnabas_storage::{CompactionDebt, DiskErrorKind, StorageError};
use pace::Throttled;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// How often directories are searched for partitions that are not open; also at the start.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);
/// After an error that may pass (no room, a change of leaders), a partition is left alone this long.
const REST_AFTER_ERROR: Duration = Duration::from_secs(60);

/// # Errors
/// The system gives no thread.
pub fn start(node: &Arc<Node>) -> std::io::Result<Vec<JoinHandle<()>>> {
    let config = node.cluster.config.load();
    let threads = usize::try_from(config.int("log.cleaner.threads")).unwrap_or(0);
    if config.value("log.cleaner.enable") == Some("false") {
        tracing::warn!(
            "log.cleaner.enable=false has no effect, as in Kafka since 4.0: compacted topics are compacted"
        );
    }
    if threads == 0 {
        tracing::warn!(
            "log.cleaner.threads=0: nothing is compacted, and compacted topics only grow. Set it to 1 or more"
        );
    }
    let spawn = |at: usize| {
        let node = node.clone();
        std::thread::Builder::new().name(format!("cleaner-{at}")).spawn(move || run(&node, at == 0))
    };
    (0..threads).map(spawn).collect()
}

fn run(node: &Node, sweeps: bool) {
    if let Err(error) = rustix::process::setpriority_process(None, 10) {
        tracing::debug!(%error, "a cleaner keeps its priority");
    }
    let mut sweep_at = barnabas_clock::now();
    loop {
        if sweeps && barnabas_clock::now() >= sweep_at {
            candidates::sweep(node);
            sweep_at = barnabas_clock::now() + SWEEP_EVERY;
        }
        match node.log_dirs.compaction.candidates.next(|| look(node)) {
            Some(partition) => {
                clean(node, partition);
                node.log_dirs.compaction.candidates.lock().done(partition);
                if !node.log_dirs.deletions.go_on_after(Duration::ZERO) {
                    return;
                }
            }
            None => {
                let backoff_ms = node.cluster.config.load().long("log.cleaner.backoff.ms");
                let backoff = Duration::from_millis(u64::try_from(backoff_ms).unwrap_or(15_000).max(10));
                if !node.log_dirs.deletions.go_on_after(backoff) {
                    return;
                }
            }
        }
    }
}

/// Asks the workers how much waits, and returns those partitions that are due, the dirtiest first.
fn look(node: &Node) -> Vec<PartitionKey> {
    let compaction = &node.log_dirs.compaction;
    let mut found: Vec<(PartitionKey, Waiting)> = Vec::new();
    for (owner, partitions) in candidates::by_owner(node) {
        let Some(answer) = ask(node, owner, |reply| CleanCommand::Look { partitions, reply }) else {
            continue;
        };
        for Looked { partition, found: waiting } in answer {
            match waiting {
                Some(waiting) if waiting.debt.dirty_bytes + waiting.debt.held_back_bytes > 0 => {
                    found.push((partition, waiting));
                }
                _ => compaction.candidates.lock().forget(partition),
            }
        }
    }
    compaction.figures.looked(found.iter().map(|(_, waiting)| waiting), node.clock.wall());
    found.retain(|(_, waiting)| waiting.is_due() && node.log_dirs.directories[waiting.directory].is_online());
    found.sort_by(|(_, a), (_, b)| b.debt.dirty_ratio().total_cmp(&a.debt.dirty_ratio()));
    found.into_iter().map(|(partition, _)| partition).collect()
}

fn ask<T>(node: &Node, owner: usize, command: impl FnOnce(oneshot::Sender<T>) -> CleanCommand) -> Option<T> {
    let (reply, answer) = oneshot::channel();
    node.workers.mailboxes[owner].send_blocking(Command::Clean(command(reply)));
    // A worker that has ended answers nothing.
    answer.blocking_recv().ok()
}

fn clean(node: &Node, partition: PartitionKey) {
    let owner = partition.owner(node.workers.count);
    let clean_to = checkpoints::clean_point(node, partition);
    let begun = ask(node, owner, |reply| CleanCommand::Begin { partition, clean_to, reply }).flatten();
    let Some(begun) = begun else {
        node.log_dirs.compaction.candidates.rest(partition, REST_AFTER_ERROR);
        return;
    };
    let directory = begun.checkpoint.directory;
    let name = begun.log.name.clone();
    let bytes = begun.debt.clean_bytes + begun.debt.dirty_bytes;
    let began = barnabas_clock::now();
    match clean_log(node, partition, owner, *begun) {
        Ok((end, stats)) => {
            let took = barnabas_clock::since(began).as_millis();
            let CleanStats { bytes_read, bytes_written, records_read, records_kept, .. } = stats;
            tracing::info!(
                partition = %name,
                "compacted up to offset {end}: {bytes_read} bytes became {bytes_written}, {records_kept} \
                 of {records_read} records were kept ({took} ms)"
            );
            node.log_dirs.compaction.figures.cleaned(&stats);
        }
        Err(error) => failed(node, partition, directory, bytes, &name.to_string(), &error),
    }
}

/// Cleans what was begun, group by group. Returns how far the log is clean, durably.
fn clean_log(
    node: &Node,
    partition: PartitionKey,
    owner: usize,
    begun: Begun,
) -> Result<(Offset, CleanStats), CleanError> {
    let Begun { log, last_records, checkpoint, debt } = begun;
    let at = checkpoint.directory;
    let directory = &node.log_dirs.directories[at];
    let name = log.name.clone();
    check_room(directory, &log, &debt)?;
    let dir = log.dir.clone();
    if directory.lock().recovery_point(&name) < log.first_uncleanable {
        write_checkpoints(node, vec![checkpoint]);
        if directory.lock().recovery_point(&name) < log.first_uncleanable || !directory.is_online() {
            return Err(CleanError::Stopped);
        }
    }
    let mut pace = Throttled::new(node, directory);
    let now = node.clock.wall();
    let disk = Arc::clone(&directory.disk);
    let mut cleaning = Cleaning::begin(disk, log, last_records, memory(node), now, &mut pace)?;
    while let Some(replacement) = cleaning.next_group(&mut pace)? {
        let replacement = Box::new(replacement);
        let swapped = ask(node, owner, |reply| CleanCommand::Swap { partition, replacement, reply });
        match swapped {
            Some(Ok(Replaced::Done(delete))) => node.log_dirs.deletions.later(at, delete),
            Some(Err(error)) => {
                cleaning.give_up()?;
                return Err(CleanError::Storage(error));
            }
            Some(Ok(Replaced::Stale)) | None => {
                cleaning.give_up()?;
                return Err(CleanError::Stopped);
            }
        }
    }
    directory.disk.sync_dir(&dir)?;
    let end = cleaning.end();
    let mut log_dir = directory.lock();
    // Asked under the lock: a deletion forgets its entries under it too, after the image has lost the topic; and a move
    // does so after it has renamed the partition's directory.
    let is_here = directory.disk.stat(&dir)?.is_some();
    if is_here && node.cluster.image.load().topics.by_id(partition.topic).is_some() {
        log_dir.set_cleaner_point(name, Some(end));
        log_dir.write_checkpoints().map_err(CleanError::Storage)?;
    }
    Ok((end, cleaning.stats()))
}

/// Compaction gives room in the end, and needs some before: a group of segments is written before the old ones go.
fn check_room(directory: &Directory, log: &LogToClean, debt: &CompactionDebt) -> Result<(), CleanError> {
    let needed = (debt.clean_bytes + debt.dirty_bytes).min(u64::from(log.config.segment_bytes).max(1 << 20));
    let space = directory.disk.space(&log.dir)?;
    if space.free < needed {
        return Err(CleanError::Storage(StorageError::Full(log.dir.clone())));
    }
    Ok(())
}

fn memory(node: &Node) -> MapMemory {
    let config = node.cluster.config.load();
    let threads = u64::try_from(config.int("log.cleaner.threads")).unwrap_or(1).max(1);
    let all = u64::try_from(config.long("log.cleaner.dedupe.buffer.size")).unwrap_or(128 << 20);
    let random = random_uuid().0;
    let (low, high) = random.split_at(8);
    let word = |bytes: &[u8]| bytes.iter().fold(0, |word, &byte| (word << 8) | u64::from(byte));
    MapMemory {
        // Kafka's bound for one thread.
        bytes: usize::try_from((all / threads).min(i32::MAX as u64)).unwrap_or(128 << 20),
        load_factor: config.double("log.cleaner.io.buffer.load.factor"),
        seed: [word(low), word(high)],
    }
}

fn failed(
    node: &Node,
    partition: PartitionKey,
    directory: usize,
    bytes: u64,
    name: &str,
    error: &CleanError,
) {
    let is_known = node.cluster.image.load().topics.by_id(partition.topic).is_some();
    let candidates = &node.log_dirs.compaction.candidates;
    match error {
        // The topic was deleted under the cleaner's hands, and perhaps made again.
        _ if !is_known => candidates.lock().forget(partition),
        CleanError::Stopped | CleanError::Gone(_) => candidates.rest(partition, REST_AFTER_ERROR),
        CleanError::Storage(error) if error.is_passing() => {
            tracing::warn!(partition = name, %error, "compaction of the partition failed; it will be \
                retried");
            candidates.rest(partition, REST_AFTER_ERROR);
        }
        // Reading a sector that is gone is this partition's matter; anything else is the directory's.
        CleanError::Storage(StorageError::Disk(disk))
            if !(disk.action == "read" && disk.kind == DiskErrorKind::Device) =>
        {
            node.directory_failed(directory, &StorageError::Disk(disk.clone()));
        }
        CleanError::Storage(StorageError::Failed(_)) => {}
        error => {
            if let CleanError::Storage(damage @ StorageError::Damaged { .. }) = error {
                scrub::tell_damaged(node, partition, damage.clone());
            }
            tracing::warn!(partition = name, %error, "compaction of the partition failed; it is skipped \
                until the next start");
            candidates.lock().set_uncleanable(partition, bytes);
        }
    }
    node.log_dirs.compaction.figures.failed();
}
