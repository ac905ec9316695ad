//! Abandons a partition's records: it starts empty at the operator's request, an empty file
//! `barnabas-abandon-TOPIC-PARTITION` in the log directory. The topic's id may replace its name in any case, and
//! must if the file's name would be too long for the file system.
//!
//! A partition whose files are damaged or gone stays offline, since it held acknowledged batches. To delete the
//! topic would take its other partitions with it. So where that file lies, the partition's directory is put aside as a
//! stray, together with what the journal held of it and could not be replayed; the checkpoints forget the partition.
//! Once the journal has its removal, the operator's file goes, and the partition begins at offset 0 in any log
//! directory. Nothing is deleted.
//!
//! Before: partition_worker/lifecycle/waiting.rs, when the partition is first asked for. After: placement/locate.rs,
//! which finds nothing.

use crate::log_dirs::directories::{Directory, random_uuid};
use crate::node::Node;
use barnabas_base::{TopicId, TopicPartition};
use barnabas_log_dirs::abandon::{consequence, file_names};
use barnabas_storage::{StorageError, partition_file_name, quarantine};
use std::path::PathBuf;

pub use barnabas_log_dirs::abandon::file_name;

/// The log directories in which the operator has asked for it.
pub fn where_asked(node: &Node, name: &TopicPartition, topic: TopicId) -> Vec<usize> {
    let is_requested = |directory: &Directory| {
        // A directory that cannot be read is reported where it is used.
        directory.is_usable() && told(directory, name, topic).is_some()
    };
    (0..node.log_dirs.directories.len()).filter(|at| is_requested(&node.log_dirs.directories[*at])).collect()
}

/// Puts aside what one of them has of it. To do it again changes nothing.
///
/// # Errors
/// The file system refuses: it is asked for still.
pub fn put_aside(
    node: &Node,
    directory: usize,
    name: &TopicPartition,
    topic: TopicId,
) -> Result<(), StorageError> {
    let directory = &node.log_dirs.directories[directory];
    let disk = &directory.disk;
    let stray = directory.lock().rename_to_stray(name, random_uuid())?;
    let unreplayed = quarantine::path(&directory.path, name, topic);
    if disk.stat(&unreplayed)?.is_some() {
        let beside = stray.as_deref().unwrap_or(&directory.path);
        let id = format!(".{topic}");
        disk.rename(&unreplayed, &beside.join(partition_file_name("given-up-", name, &id, 0)))?;
        disk.sync_dir(&directory.path)?;
    }
    let put_aside = stray.map_or("its files were gone".to_owned(), |path| {
        format!("its files are put aside as {}", path.display())
    });
    let file = told(directory, name, topic).unwrap_or_else(|| directory.path.join(file_name(name, topic)));
    tracing::warn!(partition = %name, "{} exists: the partition starts empty, {put_aside}", file.display());
    Ok(())
}

/// Removes the operator's files from one of them: the partition may begin.
///
/// # Errors
/// The file system refuses: it is asked for still.
pub fn done(
    node: &Node,
    directory: usize,
    name: &TopicPartition,
    topic: TopicId,
) -> Result<(), StorageError> {
    let directory = &node.log_dirs.directories[directory];
    while let Some(file) = told(directory, name, topic) {
        directory.disk.remove_file(&file)?;
    }
    Ok(directory.disk.sync_dir(&directory.path)?)
}

/// How an operator abandons a replica, for the log; and what that costs, as the image of the cluster says.
pub fn advice(node: &Node, directory: usize, name: &TopicPartition, topic: TopicId) -> String {
    let file = file_name(name, topic);
    let directory = node.log_dirs.directories[directory].path.display();
    let image = node.cluster.image.load();
    let row = image.topics.by_id(topic).and_then(|topic| topic.partition(name.partition));
    let is_current = node.cluster.known_by.get().is_some();
    let what_follows = consequence(node.identity.broker_id, &image, row, is_current);
    format!("create an empty file {file} in {directory} and restart ({what_follows})")
}

/// The operator's file, if there is one.
fn told(directory: &Directory, name: &TopicPartition, topic: TopicId) -> Option<PathBuf> {
    let mut paths = file_names(name, topic).map(|file| directory.path.join(file));
    paths.find(|path| matches!(directory.disk.stat(path), Ok(Some(_))))
}
