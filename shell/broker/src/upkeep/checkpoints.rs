//! The checkpoint files of log directories: how far each log is safe, where it starts, its high watermark.
//!
//! Workers report it for their partitions; the files belong to directories. core/storage writes them.
//!
//! Called by: housekeeping.rs.

use crate::log_dirs::directories::Directory;
use crate::mailbox::{Checkpointed, PartitionKey};
use crate::node::Node;
use barnabas_base::{Offset, TopicPartition};
use barnabas_metadata_log::metadata_partition;

/// Notes how far each log is safe, and writes the files that have changed.
pub fn write_checkpoints(node: &Node, checkpoints: Vec<Checkpointed>) {
    let mut concerned: Vec<usize> = note_metadata_log(node).into_iter().collect();
    for Checkpointed { directory, topic, partition, recovery_point, log_start, high_watermark } in checkpoints
    {
        // A topic that was deleted in the meantime must not come back into the files. Asked under the lock: a deletion
        // forgets its entries under it too, after the image has lost the topic.
        let mut log_dir = node.log_dirs.directories[directory].lock();
        if node.cluster.image.load().topics.by_id(topic).is_none() {
            continue;
        }
        // Nor one that has moved.
        if node.log_dirs.directories.are_several()
            && has_moved(node, directory, &partition, recovery_point > Offset::ZERO)
        {
            continue;
        }
        log_dir.set_recovery_point(partition.clone(), recovery_point);
        // A partition's answer may be older than records that were deleted since.
        log_dir.raise_log_start(partition.clone(), log_start);
        log_dir.set_high_watermark(partition, high_watermark);
        if !concerned.contains(&directory) {
            concerned.push(directory);
        }
    }
    for directory in concerned {
        let written = node.log_dirs.directories[directory].lock().write_checkpoints();
        if let Err(error) = written {
            node.write_failed(directory, &error);
        }
    }
}

/// Whether a partition's folder does not lie here any more. What `is_synced` lies in a folder; what is not may have
/// none yet, unless another directory has it. The caller holds the directory's lock, under which a move renames.
fn has_moved(node: &Node, directory: usize, partition: &TopicPartition, is_synced: bool) -> bool {
    let lies_in = |directory: &Directory| directory.disk.stat(&directory.path.join(partition.to_string()));
    let directories = &node.log_dirs.directories;
    if !matches!(lies_in(&directories[directory]), Ok(None)) {
        return false;
    }
    let mut others =
        directories.iter().enumerate().filter(|(at, other)| *at != directory && other.is_online());
    is_synced || others.any(|(_, other)| matches!(lies_in(other), Ok(Some(_))))
}

/// Takes out of a directory's files what a move has left there: a kill came between the new name of its folder and the
/// files. `without_folder`: partitions that the files name, and that had no folder a moment ago.
pub fn forget_moved(node: &Node, at: usize, without_folder: &[TopicPartition]) {
    let mut log_dir = node.log_dirs.directories[at].lock();
    let moved = without_folder.iter().filter(|partition| has_moved(node, at, partition, false));
    let moved: Vec<&TopicPartition> = moved.collect();
    if moved.is_empty() {
        return;
    }
    moved.into_iter().for_each(|partition| log_dir.forget(partition));
    let written = log_dir.write_checkpoints();
    drop(log_dir);
    if let Err(error) = written {
        node.write_failed(at, &error);
    }
}

/// The metadata log is synced after each append: its recovery point is named like any other partition's, so that damage
/// below it is not cut at the next start.
pub fn note_metadata_log(node: &Node) -> Option<usize> {
    let at =
        node.log_dirs.directories.iter().position(|directory| node.peers.controller.lies_in(directory.id))?;
    let synced = node.peers.controller.recovery_point();
    if synced > Offset::ZERO && node.log_dirs.directories[at].is_online() {
        node.log_dirs.directories[at].lock().set_recovery_point(metadata_partition(), synced);
        return Some(at);
    }
    None
}

/// How far a partition is clean, as the checkpoints say. In the last step of a move two directories have an entry for
/// it, and what was left of one that was cut off is older.
pub fn clean_point(node: &Node, partition: PartitionKey) -> Option<Offset> {
    let image = node.cluster.image.load();
    let topic = image.topics.by_id(partition.topic)?.name.clone();
    let name = TopicPartition { topic, partition: partition.partition };
    let usable = node.log_dirs.directories.iter().filter(|directory| directory.is_usable());
    usable.filter_map(|directory| directory.lock().cleaner_point(&name)).min()
}
