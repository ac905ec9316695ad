//! Where a partition lies, or may begin: looks through the directories and carries out what core/storage's
//! `placement::locate` decides.
//!
//! Neighbours: partition_worker/lifecycle/waiting.rs and opening.rs, node/log_dirs/deleted.rs, which ask; mover.rs;
//! core/storage/src/log_dir/placement/locate.rs.

use crate::log_dirs::directories::{Directories, current_dir, random_uuid};
use crate::mailbox::PartitionKey;
use crate::node::Node;
use crate::upkeep::mover;
use crate::upkeep::placement::abandon;
use crate::upkeep::placement::reports;
use barnabas_base::{DirectoryId, Offset, TopicId, TopicPartition};
use barnabas_log_dirs::lost::is_reserved;
use barnabas_storage::placement::locate::{
    Assigned, Here, Located, Owner, Predecessor, Sight, keep_of_two, locate as decide, predecessor,
};
use barnabas_storage::{DiskErrorKind, LogDir, StorageError};
use std::path::Path;

const METADATA_NAME: &str = "partition.metadata";

/// A directory, by its place in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The partition lies there.
    Found(usize),
    /// It begins there.
    New(usize),
}

impl Place {
    pub fn directory(self) -> usize {
        match self {
            Self::Found(directory) | Self::New(directory) => directory,
        }
    }
}

/// Why a partition has no place: requests get KAFKA_STORAGE_ERROR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nowhere {
    /// It lies, or may lie, in a directory that is offline, or waits for the metadata log. Asked again, the answer may
    /// be another.
    Offline,
    /// It is damaged, and has been named in the log: not to be asked again in this life of the node.
    Broken,
}

/// Finds a partition, or a place for it to begin.
///
/// # Errors
/// [`Nowhere`].
pub fn locate(node: &Node, key: PartitionKey, name: &TopicPartition) -> Result<Place, Nowhere> {
    let directories = &node.log_dirs.directories;
    // Its predecessor's log is closed first, in a moment.
    if node.log_dirs.deleted.may_be_open(name) {
        return Err(Nowhere::Offline);
    }
    // In this order: what is no longer placed shows in the image.
    let placed = directories.figures.placed(key);
    let assigned = assigned_directory(node, key);
    let found = find(node, name, key.topic, assigned)?;
    if found.is_none() && node.log_dirs.deleted.begins(name) {
        forget_predecessor(directories, name)?;
    }
    let vanished = if found.is_none() { vanished(directories, name) } else { None };
    let sight = Sight {
        found,
        has_vanished: vanished.is_some(),
        assigned: assigned_here(directories, assigned),
        placed: placed.map(|at| here(directories, at)),
        some_offline: directories.iter().any(|each| each.holds_partitions && !each.is_online()),
    };
    match decide(&sight) {
        Located::Found(at) => Ok(Place::Found(at)),
        Located::New(at) => Ok(Place::New(at)),
        Located::Unplaced => directories.place(key).map(Place::New).ok_or(Nowhere::Offline),
        Located::FoundElsewhere(at) => {
            reports::assign(node, &[(key, at)]);
            Err(Nowhere::Offline)
        }
        Located::Offline => Err(Nowhere::Offline),
        Located::MayBeOffline => {
            directories.say_unassigned(name);
            Err(Nowhere::Offline)
        }
        Located::Vanished => {
            vanished.into_iter().for_each(|(at, reached)| log_vanished(directories, key, name, at, reached));
            Err(Nowhere::Broken)
        }
    }
}

fn here(directories: &Directories, directory: usize) -> Here {
    let each = &directories[directory];
    Here { directory, is_online: each.is_online(), is_usable: each.is_usable() }
}

fn assigned_here(directories: &Directories, assigned: Option<DirectoryId>) -> Assigned {
    let Some(id) = assigned else { return Assigned::Nowhere };
    directories.by_id(id).map_or(Assigned::Elsewhere, |at| Assigned::Here(here(directories, at)))
}

fn log_vanished(
    directories: &Directories,
    key: PartitionKey,
    name: &TopicPartition,
    directory: usize,
    reached: Offset,
) {
    let path = &directories[directory].path;
    tracing::error!(
        partition = %name,
        "{} is missing, but the checkpoints of its log directory show offset {reached}: the \
         partition stays offline. Restore the files and restart; or create an empty file {} in {} \
         and restart, to abandon its records; or delete the topic",
        path.join(name.to_string()).display(),
        abandon::file_name(name, key.topic),
        path.display()
    );
}

/// The checkpoints may speak still of a deleted topic's partition of this name, which is closed and has no folder.
fn forget_predecessor(directories: &Directories, name: &TopicPartition) -> Result<(), Nowhere> {
    while let Some((at, _)) = vanished(directories, name) {
        let mut log_dir = directories[at].lock();
        log_dir.forget(name);
        // The code that quarantines that topic writes them too, and logs the error.
        log_dir.write_checkpoints().map_err(|_| Nowhere::Offline)?;
    }
    Ok(())
}

/// What the metadata log says of where it lies here.
fn assigned_directory(node: &Node, key: PartitionKey) -> Option<DirectoryId> {
    let image = node.cluster.image.load();
    let row = image.topics.by_id(key.topic)?.partition(key.partition)?;
    row.directory(node.identity.broker_id).filter(|id| !is_reserved(*id))
}

/// As [`look`]; a directory that cannot be asked is out of service from then on, and the others are asked again.
fn find(
    node: &Node,
    name: &TopicPartition,
    topic: TopicId,
    assigned: Option<DirectoryId>,
) -> Result<Option<usize>, Nowhere> {
    loop {
        let (directory, error) = match look(node, name, topic, assigned) {
            Ok(found) => return Ok(found),
            Err(failed) => failed,
        };
        // The directory is sound; asked again, it may answer.
        if error.is_passing() {
            node.log_dirs.directories[directory].room.hit(&error, node.clock.monotonic());
            return Err(Nowhere::Offline);
        }
        // A file that may not be read says nothing of the others.
        let is_denied = matches!(&error, StorageError::Disk(error) if error.kind == DiskErrorKind::Denied);
        if is_denied || !matches!(error, StorageError::Disk(_) | StorageError::Failed(_)) {
            tracing::error!(partition = %name, %error, "partition cannot be opened and stays offline until the next start. Mend what the error names and restart");
            return Err(Nowhere::Broken);
        }
        node.directory_failed(directory, &error);
    }
}

/// The online directory that holds the partition, if one does. A directory of the same name that belongs to another
/// topic id (deleted and made again while this node was down) is put aside, and so is the second of two copies.
///
/// # Errors
/// With the directory concerned. The file system cannot be asked. [`StorageError::Twice`]: two directories hold the
/// partition, and the metadata log names neither.
fn look(
    node: &Node,
    name: &TopicPartition,
    topic: TopicId,
    assigned: Option<DirectoryId>,
) -> Result<Option<usize>, (usize, StorageError)> {
    let directories = &node.log_dirs.directories;
    let mut holding: Option<usize> = None;
    for (index, directory) in directories.iter().enumerate() {
        if !directory.is_usable() || !is_there(node, index, name, topic).map_err(|why| (index, why))? {
            continue;
        }
        let Some(first) = holding.replace(index) else { continue };
        let copies = [first, index];
        let Some(kept) = keep_of_two(copies.map(|at| directories[at].id), assigned) else {
            let [first, second] = copies.map(|at| directories[at].path.join(name.to_string()));
            return Err((index, StorageError::Twice { first, second }));
        };
        holding = Some(copies[kept]);
        let other = copies[1 - kept];
        if let Some(copy) = directories.put_copy_aside(other, name).map_err(|why| (other, why))? {
            let key = PartitionKey { topic, partition: name.partition };
            mover::begin_again(node, key, name, other, copy).map_err(|why| (other, why))?;
        }
    }
    Ok(holding)
}

/// Of which topic a folder is that should be `topic`'s.
pub fn owner(node: &Node, found: TopicId, topic: TopicId) -> Owner {
    Owner::of(found, topic, || node.cluster.image.load().topics.by_id(found).is_some())
}

/// Whether it is known of a topic that it was deleted.
pub fn is_deleted(node: &Node, topic: TopicId) -> bool {
    node.log_dirs.written.was_deleted(topic) || node.log_dirs.deleted.is_leaving(topic)
}

/// The folder of an unknown topic, where one of ours should be.
pub fn foreign(directory: &Path, found: TopicId, name: &TopicPartition, topic: TopicId) -> StorageError {
    StorageError::WrongOwner {
        place: directory.join(name.to_string()).join(METADATA_NAME),
        found: format!("a topic that is not known, of id {found}"),
        expected: format!("{name} of id {topic}"),
        remedy: "was it put there from elsewhere? Put the right one back and start again",
    }
}

/// [`Owner::Another`], for the operator.
pub fn exchanged(directory: &Path, found: TopicId, name: &TopicPartition, topic: TopicId) -> StorageError {
    StorageError::WrongOwner {
        place: directory.join(name.to_string()).join(METADATA_NAME),
        found: format!("another topic that is there, of id {found}"),
        expected: format!("{name} of id {topic}"),
        remedy: "were directories or their files exchanged? Put them back and start again",
    }
}

fn is_there(node: &Node, index: usize, name: &TopicPartition, topic: TopicId) -> Result<bool, StorageError> {
    let directory = &node.log_dirs.directories[index];
    let path = directory.path.join(name.to_string());
    if directory.disk.stat(&path)?.is_none() {
        return Ok(false);
    }
    let mut log_dir = directory.lock();
    let Some(found) = log_dir.topic_id(&current_dir(name))? else { return Ok(true) };
    match owner(node, found, topic) {
        Owner::This => Ok(true),
        Owner::ThisDamaged => {
            let path = path.display();
            tracing::warn!(
                "{path}/{METADATA_NAME} names topic id {found}, which differs from {topic} in a few \
                 bits: it is corrupt and was rewritten"
            );
            log_dir.write_topic_id(&current_dir(name), topic)?;
            Ok(true)
        }
        Owner::Another => Err(exchanged(&directory.path, found, name, topic)),
        Owner::Gone => {
            let reached = reached(&log_dir, name);
            match predecessor(is_deleted(node, found), is_only_copy(node, name, topic), reached) {
                Predecessor::Deleted => {
                    if let Some(aside) = log_dir.rename_to_delete(&[(name.clone(), random_uuid())])?.pop() {
                        node.log_dirs.deletions.directory_later(index, aside, node.clock.wall());
                    }
                    Ok(false)
                }
                // After a kill the journal may hold more of it: there replay.rs says the same.
                Predecessor::Foreign => Err(foreign(&directory.path, found, name, topic)),
                Predecessor::Stray => {
                    let stray = log_dir.rename_to_stray(name, random_uuid())?;
                    tracing::warn!(
                        "{} belongs to topic id {found}, not {topic}; renamed to {}",
                        path.display(),
                        stray.unwrap_or_default().display()
                    );
                    Ok(false)
                }
            }
        }
    }
}

/// Whether no other replica has the records that were stored here: it must not start empty.
fn is_only_copy(node: &Node, name: &TopicPartition, topic: TopicId) -> bool {
    let image = node.cluster.image.load();
    let row = image.topics.by_id(topic).and_then(|topic| topic.partition(name.partition));
    row.is_some_and(|row| row.isr().iter().all(|broker| *broker == node.identity.broker_id))
}

/// Up to where a directory's checkpoints say that it held the partition's records.
fn reached(log_dir: &LogDir, name: &TopicPartition) -> Offset {
    let high_watermark = log_dir.high_watermark(name).unwrap_or(Offset::ZERO);
    log_dir.recovery_point(name).max(high_watermark)
}

/// For a partition without files: a directory whose checkpoints say that it held records there, and up to which
/// offset. Such a partition has lost its files; it must not start empty.
pub fn vanished(directories: &Directories, name: &TopicPartition) -> Option<(usize, Offset)> {
    let mut online = directories.iter().enumerate().filter(|(_, directory)| directory.is_online());
    online.find_map(|(index, directory)| {
        let reached = reached(&directory.lock(), name);
        (reached > Offset::ZERO).then_some((index, reached))
    })
}
