//! Looks through the log directories for partitions that nobody has opened: those that belong to nobody, and those in which
//! retention has something to do.
//!
//! Names, sizes and times of files are all that is read, so that a million idle partitions stay closed.

use crate::directories::{Directory, random_uuid, reports};
use crate::mailbox::{Command, PartitionKey};
use crate::node::Node;
use crate::pending::name_of;
use crate::topic_settings;
use barnabas_base::{TimestampMs, TopicId, TopicPartition, name};
use barnabas_storage::journal::PartitionReplay;
use barnabas_storage::{DirKind, LogConfig, PartitionDir, StorageError, remove_dir};
use barnabas_wire::records::BatchHeader;

/// Partitions sent to a worker at once.
const KEYS_MAX: usize = 64;

/// Puts aside what the metadata log does not know (a topic that was deleted while this node was down), or knows as others' (a replica
/// that was moved away meanwhile), and finishes the deletions that the last stop interrupted.
///
/// # Source
/// Kafka `LogManager.isStrayReplica`.
pub fn put_strays_aside(node: &Node) {
    let mut all_were_listed = true;
    for (at, directory) in node.directories.iter().enumerate().filter(|(_, directory)| directory.is_usable())
    {
        let listed = note_written(node, directory);
        all_were_listed &= listed.is_ok();
        let mut unassigned = Vec::new();
        let mut deleted = Vec::new();
        for entry in listed.unwrap_or_default() {
            if let Err(error) = settle(node, at, &entry, &mut deleted) {
                tracing::warn!(directory = %directory.path.display(), %error, "{} was not changed", entry.name);
            }
            unassigned.extend(unassigned_key(node, directory, &entry).map(|key| (key, at)));
        }
        // What waits in memory has no folder to go by.
        for (key, _) in node.pending.all(at, |_| true) {
            let image = node.image.load();
            let row = image.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
            let is_others = row.is_some_and(|row| !row.has_replica(node.broker_id));
            if is_others && !node.controller.log_was_cut() {
                send_stray(node, key);
            }
        }
        finish_deletions(node, at, &deleted);
        if node.directories.are_several() {
            reports::assign(node, &unassigned);
        }
    }
    if all_were_listed {
        node.written.complete();
    }
}

/// What lies in a directory, and its partitions noted as written, with those that only a checkpoint still knows.
fn note_written(node: &Node, directory: &Directory) -> Result<Vec<PartitionDir>, StorageError> {
    let log_dir = directory.lock();
    let listed = log_dir.partitions()?;
    let image = node.image.load();
    let found = listed.iter().map(|entry| &entry.topic_partition);
    for TopicPartition { topic, partition } in found.chain(log_dir.checkpointed()) {
        if let Some(topic) = image.topics.id_of(topic) {
            node.written.add(PartitionKey { topic, partition: *partition });
        }
    }
    drop(log_dir);
    Ok(listed)
}

/// A partition that lies here though the metadata log does not say where (an older Kafka's), or names a directory that is not
/// online here: it is told, before the next directory fails.
fn unassigned_key(node: &Node, directory: &Directory, entry: &PartitionDir) -> Option<PartitionKey> {
    let TopicPartition { topic, partition } = &entry.topic_partition;
    let image = node.image.load();
    let topic = image.topics.by_name(topic).filter(|_| entry.kind == DirKind::Current)?;
    let id = topic.partition(*partition)?.directory(node.broker_id)?;
    let known = node.directories.by_id(id).filter(|&at| node.directories[at].is_online());
    let is_there = directory.disk.stat(&directory.path.join(&entry.name)).ok()?.is_some();
    (known.is_none() && is_there).then_some(PartitionKey { topic: topic.id, partition: *partition })
}

/// Partitions whose deletion the last stop interrupted.
fn finish_deletions(node: &Node, at: usize, deleted: &[(TopicPartition, TopicId)]) {
    let directory = &node.directories[at];
    let names: Vec<(&TopicPartition, TopicId)> = deleted.iter().map(|(name, topic)| (name, *topic)).collect();
    // Their folders were there a moment ago: whoever renamed one since has seen to its entries.
    match directory.put_aside(&names, |_| false, |_| true) {
        Ok(aside) => {
            let now = node.clock.wall();
            aside.into_iter().for_each(|(path, _)| node.deletions.directory_later(at, path, now));
        }
        Err(error) => {
            tracing::warn!(directory = %directory.path.display(), %error, "deleted partitions could not \
                be removed; the next start removes them");
        }
    }
}

/// `deleted`: what is found to be a deleted topic's.
fn settle(
    node: &Node,
    at: usize,
    entry: &PartitionDir,
    deleted: &mut Vec<(TopicPartition, TopicId)>,
) -> Result<(), StorageError> {
    let directory = &node.directories[at];
    let topic = &entry.topic_partition.topic;
    match entry.kind {
        DirKind::Delete => remove_dir(&*directory.disk, &directory.path.join(&entry.name)),
        DirKind::Current if **topic != *name::CLUSTER_METADATA => {
            if is_known(node, at, entry)? {
                return Ok(());
            }
            if node.controller.log_was_cut() {
                // The lost tail may have been what knew it.
                tracing::warn!(
                    "{} belongs to no known topic, but the metadata log was truncated at this start; the \
                     directory was not changed",
                    directory.path.join(&entry.name).display()
                );
                return Ok(());
            }
            let mut log_dir = directory.lock();
            match log_dir.topic_id(entry)? {
                // A deletion of this life (deleted.rs).
                Some(topic) if node.deleted.is_leaving(topic) => return Ok(()),
                Some(topic) if node.written.was_deleted(topic) => {
                    deleted.push((entry.topic_partition.clone(), topic));
                    return Ok(());
                }
                _ => {}
            }
            let aside = log_dir.rename_to_stray(&entry.topic_partition, random_uuid())?;
            if let Some(aside) = aside {
                let aside = aside.display();
                tracing::warn!("{} belongs to no known topic; renamed to {aside}", entry.name);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Whether the metadata log knows whose it is. A replica that others have now is put aside once its owner has closed it.
fn is_known(node: &Node, at: usize, entry: &PartitionDir) -> Result<bool, StorageError> {
    let TopicPartition { topic, partition } = &entry.topic_partition;
    let image = node.image.load_full();
    let Some(known) = image.topics.by_name(topic) else { return Ok(false) };
    let Some(row) = known.partition(*partition) else { return Ok(false) };
    if row.has_replica(node.broker_id) {
        return Ok(true);
    }
    let found = node.directories[at].lock().topic_id(entry)?;
    let is_its = found.is_none_or(|found| found == known.id);
    // The tail that was lost may have been what gave it back.
    if is_its && !node.controller.log_was_cut() {
        send_stray(node, PartitionKey { topic: known.id, partition: *partition });
    }
    Ok(is_its)
}

fn send_stray(node: &Node, key: PartitionKey) {
    node.mailboxes[key.owner(node.workers)].send_blocking(Command::Stray(key));
}

/// Sends the owners those partitions whose oldest segment is too old or holds deleted records alone, or that are too large.
pub fn retain_unopened(node: &Node) {
    let now = node.clock.wall();
    let mut due: Vec<Vec<PartitionKey>> = vec![Vec::new(); node.workers];
    for (at, directory) in node.directories.iter().enumerate().filter(|(_, each)| each.is_usable()) {
        // What waits in memory has no file to go by.
        for (key, replay) in node.pending.all(at, |_| true) {
            let config = topic_settings::log_config(node, &node.image.load(), &name_of(&replay).topic);
            if is_waiting_too_old(&replay, &config, now) {
                due[key.owner(node.workers)].push(key);
            }
        }
        let listed = directory.lock().partitions();
        for entry in listed.unwrap_or_default().iter().filter(|entry| entry.kind == DirKind::Current) {
            let image = node.image.load();
            let Some(topic) = image.topics.id_of(&entry.topic_partition.topic) else { continue };
            let config = topic_settings::log_config(node, &image, &entry.topic_partition.topic);
            // A directory that cannot be read is the next opener's to complain of.
            if is_due(directory, entry, &config, now).unwrap_or(false) {
                let key = PartitionKey { topic, partition: entry.topic_partition.partition };
                let owner = key.owner(node.workers);
                due[owner].push(key);
                if due[owner].len() >= KEYS_MAX {
                    let keys = std::mem::take(&mut due[owner]);
                    node.mailboxes[owner].send_blocking(Command::Retain(keys));
                }
            }
        }
    }
    for (mailbox, keys) in node.mailboxes.iter().zip(due) {
        if !keys.is_empty() {
            mailbox.send_blocking(Command::Retain(keys));
        }
    }
}

fn is_waiting_too_old(replay: &PartitionReplay, config: &LogConfig, now: TimestampMs) -> bool {
    let limit_ms = config.retention_ms.0;
    let newest = replay.items.last().and_then(|item| BatchHeader::parse(&item.records).ok());
    config.cleanup.delete
        && limit_ms >= 0
        && newest.is_some_and(|newest| now.0.saturating_sub(newest.max_timestamp.0) > limit_ms)
}

fn is_due(
    directory: &Directory,
    entry: &PartitionDir,
    config: &LogConfig,
    now: TimestampMs,
) -> Result<bool, StorageError> {
    let (limit_ms, limit_bytes) = match config.cleanup.delete {
        true => (config.retention_ms.0, config.retention_bytes),
        false => (-1, -1),
    };
    let start = directory.lock().log_start(&entry.topic_partition);
    if limit_ms < 0 && limit_bytes < 0 && start.is_none() {
        return Ok(false);
    }
    let dir = directory.path.join(&entry.name);
    let mut bytes = 0u64;
    let mut oldest: Option<TimestampMs> = None;
    let mut bases: Vec<i64> = Vec::new();
    // Names sort by base offset: the first segment is the oldest.
    for file in directory.disk.list(&dir)?.iter().filter(|file| file.name.ends_with(".log")) {
        let Some(stat) = directory.disk.stat(&dir.join(&file.name))? else { continue };
        bytes += stat.len;
        bases.extend(file.name.strip_suffix(".log").and_then(|base| base.parse::<i64>().ok()));
        oldest = oldest.or((stat.len > 0).then_some(stat.modified));
    }
    let too_old = limit_ms >= 0 && oldest.is_some_and(|at| now.0.saturating_sub(at.0) > limit_ms);
    // Deleted records (DeleteRecords) fill the first segment.
    let deleted = start.is_some_and(|start| bases.get(1).is_some_and(|second| *second <= start.get()));
    Ok(deleted || too_old || (limit_bytes >= 0 && bytes > limit_bytes as u64))
}
