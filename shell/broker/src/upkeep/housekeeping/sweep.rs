//! Looks through the log directories for folders that no partition has opened: those without an owner, and those in
//! which retention has something to do. core/storage's `sweep` decides.
//!
//! Names, sizes and times of files are all that is read, so that a million idle partitions stay closed.

use crate::log_dirs::directories::{Directory, random_uuid};
use crate::mailbox::{Command, PartitionKey};
use crate::node::Node;
use crate::node::log_dirs::unreplayed::name_of;
use crate::node::topic_settings;
use crate::upkeep::checkpoints::forget_moved;
use crate::upkeep::placement::reports;
use barnabas_base::{Set, TimestampMs, TopicId, TopicPartition, name};
use barnabas_storage::sweep::{
    Fate, Known, SegmentFile, Swept, has_retention, retention_is_due, sweep, unreplayed_is_too_old,
};
use barnabas_storage::{DirKind, LogConfig, PartitionDir, StorageError, remove_dir};

/// Partitions sent to a worker at once.
const KEYS_MAX: usize = 64;

/// Puts aside what the metadata log does not know (a topic that was deleted while this node was down), or knows as
/// others' (a replica that was moved away meanwhile), and finishes the deletions that the last stop interrupted.
pub fn put_strays_aside(node: &Node) {
    let mut all_were_listed = true;
    for (at, directory) in
        node.log_dirs.directories.iter().enumerate().filter(|(_, directory)| directory.is_usable())
    {
        let listed = note_written(node, directory);
        all_were_listed &= listed.is_ok();
        let (listed, without_folder) = listed.unwrap_or_default();
        let mut unassigned = Vec::new();
        let mut deleted = Vec::new();
        for entry in listed {
            if let Err(error) = settle(node, at, &entry, &mut deleted) {
                tracing::warn!(directory = %directory.path.display(), %error, "{} was not changed", entry.name);
            }
            unassigned.extend(unassigned_key(node, directory, &entry).map(|key| (key, at)));
        }
        // What waits in memory has no folder to go by.
        for (key, _) in node.log_dirs.unreplayed.all(at, |_| true) {
            let image = node.cluster.image.load();
            let row = image.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
            let is_others = row.is_some_and(|row| !row.has_replica(node.identity.broker_id));
            if is_others && !node.peers.controller.log_was_cut() {
                send_stray(node, key);
            }
        }
        finish_deletions(node, at, &deleted);
        if node.log_dirs.directories.are_several() {
            reports::assign(node, &unassigned);
            forget_moved(node, at, &without_folder);
        }
    }
    if all_were_listed {
        node.log_dirs.written.complete();
    }
}

/// Notes the partitions of a directory as written. Returns what lies there, and the partitions that only its
/// checkpoints name.
fn note_written(
    node: &Node,
    directory: &Directory,
) -> Result<(Vec<PartitionDir>, Vec<TopicPartition>), StorageError> {
    let log_dir = directory.lock();
    let listed = log_dir.partitions()?;
    let image = node.cluster.image.load();
    let found = listed.iter().map(|entry| &entry.topic_partition);
    for TopicPartition { topic, partition } in found.chain(log_dir.checkpointed()) {
        if let Some(topic) = image.topics.id_of(topic) {
            node.log_dirs.written.add(PartitionKey { topic, partition: *partition });
        }
    }
    let folders = listed.iter().filter(|entry| entry.kind == DirKind::Current);
    let folders: Set<&TopicPartition> = folders.map(|entry| &entry.topic_partition).collect();
    let named = log_dir.checkpointed().filter(|partition| !folders.contains(partition));
    let without_folder = named.cloned().collect();
    drop(log_dir);
    Ok((listed, without_folder))
}

/// A partition that is stored here although the metadata log names no directory (an older Kafka's), or one that is
/// not online here. It is reported, before the next directory fails.
fn unassigned_key(node: &Node, directory: &Directory, entry: &PartitionDir) -> Option<PartitionKey> {
    let TopicPartition { topic, partition } = &entry.topic_partition;
    let image = node.cluster.image.load();
    let topic = image.topics.by_name(topic).filter(|_| entry.kind == DirKind::Current)?;
    let id = topic.partition(*partition)?.directory(node.identity.broker_id)?;
    let known = node.log_dirs.directories.by_id(id).filter(|&at| node.log_dirs.directories[at].is_online());
    let is_there = directory.disk.stat(&directory.path.join(&entry.name)).ok()?.is_some();
    (known.is_none() && is_there).then_some(PartitionKey { topic: topic.id, partition: *partition })
}

/// Partitions whose deletion the last stop interrupted.
fn finish_deletions(node: &Node, at: usize, deleted: &[(TopicPartition, TopicId)]) {
    let directory = &node.log_dirs.directories[at];
    let names: Vec<(&TopicPartition, TopicId)> = deleted.iter().map(|(name, topic)| (name, *topic)).collect();
    // Their folders existed a moment ago: a thread that has renamed one since has removed its entries as well.
    match directory.put_aside(&names, |_| false, |_| true) {
        Ok(aside) => {
            say_removed(directory, deleted);
            let now = node.clock.wall();
            aside.into_iter().for_each(|(path, _)| node.log_dirs.deletions.directory_later(at, path, now));
        }
        Err(error) => {
            tracing::warn!(directory = %directory.path.display(), %error, "deleted partitions could not \
                be removed; the next start removes them");
        }
    }
}

/// Each start says once what it removes.
fn say_removed(directory: &Directory, deleted: &[(TopicPartition, TopicId)]) {
    const NAMED_MAX: usize = 20;
    if deleted.is_empty() {
        return;
    }
    let names: Vec<String> =
        deleted.iter().take(NAMED_MAX).map(|(name, topic)| format!("{name} ({topic})")).collect();
    let more = deleted.len().saturating_sub(NAMED_MAX);
    let and_more = if more > 0 { format!(" and {more} more") } else { String::new() };
    tracing::info!(
        directory = %directory.path.display(),
        "removes partitions whose topics were deleted: {}{and_more}",
        names.join(", ")
    );
}

/// `deleted`: what is found to be a deleted topic's.
fn settle(
    node: &Node,
    at: usize,
    entry: &PartitionDir,
    deleted: &mut Vec<(TopicPartition, TopicId)>,
) -> Result<(), StorageError> {
    let directory = &node.log_dirs.directories[at];
    let (known, key) = known(node, at, entry)?;
    let log_was_cut = node.peers.controller.log_was_cut();
    // Held until the folder is renamed: a deletion renames under it too.
    let mut log_dir = directory.lock();
    let (fate, found) = match known {
        Known::No => fate(node, log_dir.topic_id(entry)?),
        Known::Mine | Known::Others => (Fate::Unknown, None),
    };
    match sweep(entry.kind, known, fate, log_was_cut) {
        Swept::Stays => {}
        Swept::Remove => {
            drop(log_dir);
            remove_dir(&*directory.disk, &directory.path.join(&entry.name))?;
        }
        Swept::StaysUnknown => tracing::warn!(
            "{} belongs to no known topic, but the metadata log was truncated at this start; the \
             directory was not changed",
            directory.path.join(&entry.name).display()
        ),
        Swept::Close => {
            drop(log_dir);
            key.into_iter().for_each(|key| send_stray(node, key));
        }
        Swept::Delete => deleted.extend(found.map(|topic| (entry.topic_partition.clone(), topic))),
        Swept::PutAside => {
            let aside = log_dir.rename_to_stray(&entry.topic_partition, random_uuid())?;
            if let Some(aside) = aside {
                let aside = aside.display();
                tracing::warn!("{} belongs to no known topic; renamed to {aside}", entry.name);
            }
        }
    }
    Ok(())
}

/// What is known of a topic that the image does not have, by the id in its folder.
fn fate(node: &Node, found: Option<TopicId>) -> (Fate, Option<TopicId>) {
    let fate = match found {
        // A deletion of this life (deleted.rs).
        Some(topic) if node.log_dirs.deleted.is_leaving(topic) => Fate::Leaving,
        Some(topic) if node.log_dirs.written.was_deleted(topic) => Fate::Deleted,
        _ => Fate::Unknown,
    };
    (fate, found)
}

/// What the image says of a folder, and of which partition it is.
fn known(
    node: &Node,
    at: usize,
    entry: &PartitionDir,
) -> Result<(Known, Option<PartitionKey>), StorageError> {
    let TopicPartition { topic, partition } = &entry.topic_partition;
    if entry.kind != DirKind::Current || **topic == *name::CLUSTER_METADATA {
        return Ok((Known::Mine, None));
    }
    let image = node.cluster.image.load_full();
    let Some(known) = image.topics.by_name(topic) else { return Ok((Known::No, None)) };
    let Some(row) = known.partition(*partition) else { return Ok((Known::No, None)) };
    let key = Some(PartitionKey { topic: known.id, partition: *partition });
    if row.has_replica(node.identity.broker_id) {
        return Ok((Known::Mine, key));
    }
    let found = node.log_dirs.directories[at].lock().topic_id(entry)?;
    let is_its = found.is_none_or(|found| found == known.id);
    Ok((if is_its { Known::Others } else { Known::No }, key))
}

fn send_stray(node: &Node, key: PartitionKey) {
    node.workers.mailboxes[key.owner(node.workers.count)].send_blocking(Command::Stray(key));
}

/// Sends the owners those partitions whose oldest segment is too old or holds deleted records alone, or that are too
/// large.
pub fn retain_unopened(node: &Node) {
    let now = node.clock.wall();
    let mut due: Vec<Vec<PartitionKey>> = vec![Vec::new(); node.workers.count];
    for (at, directory) in node.log_dirs.directories.iter().enumerate().filter(|(_, each)| each.is_usable()) {
        // What waits in memory has no file to go by.
        for (key, replay) in node.log_dirs.unreplayed.all(at, |_| true) {
            let config =
                topic_settings::log_config(node, &node.cluster.image.load(), &name_of(&replay).topic);
            if unreplayed_is_too_old(&replay, &config, now) {
                due[key.owner(node.workers.count)].push(key);
            }
        }
        let listed = directory.lock().partitions();
        for entry in listed.unwrap_or_default().iter().filter(|entry| entry.kind == DirKind::Current) {
            let image = node.cluster.image.load();
            let Some(topic) = image.topics.id_of(&entry.topic_partition.topic) else { continue };
            let config = topic_settings::log_config(node, &image, &entry.topic_partition.topic);
            // A directory that cannot be read is the next opener's to complain of.
            if is_due(directory, entry, &config, now).unwrap_or(false) {
                let key = PartitionKey { topic, partition: entry.topic_partition.partition };
                let owner = key.owner(node.workers.count);
                due[owner].push(key);
                if due[owner].len() >= KEYS_MAX {
                    let keys = std::mem::take(&mut due[owner]);
                    node.workers.mailboxes[owner].send_blocking(Command::Retain(keys));
                }
            }
        }
    }
    for (mailbox, keys) in node.workers.mailboxes.iter().zip(due) {
        if !keys.is_empty() {
            mailbox.send_blocking(Command::Retain(keys));
        }
    }
}

fn is_due(
    directory: &Directory,
    entry: &PartitionDir,
    config: &LogConfig,
    now: TimestampMs,
) -> Result<bool, StorageError> {
    let start = directory.lock().log_start(&entry.topic_partition);
    if !has_retention(config, start) {
        return Ok(false);
    }
    let dir = directory.path.join(&entry.name);
    let mut segments = Vec::new();
    // Names sort by base offset: the first segment is the oldest.
    for file in directory.disk.list(&dir)?.iter().filter(|file| file.name.ends_with(".log")) {
        let Some(stat) = directory.disk.stat(&dir.join(&file.name))? else { continue };
        let base = file.name.strip_suffix(".log").and_then(|base| base.parse::<i64>().ok());
        segments.push(SegmentFile { base, bytes: stat.len, modified: stat.modified });
    }
    Ok(retention_is_due(&segments, start, config, now))
}
