//! Where a partition lies, or may begin. The one place that decides it.
//!
//! A directory that is offline may hold anything that is not seen elsewhere, so that a partition begins anew only where that
//! cannot lose what it had:
//!
//! | found in an online directory | the metadata log says | then |
//! |---|---|---|
//! | yes | this directory, another online one, or none | it lies there; the metadata log is told where it differs |
//! | yes | a directory of this node that is offline | the metadata log is told first, and the partition waits for that |
//! | a deleted topic's, of the same name | anything | it waits until that one is closed; then that is put aside (deleted.rs) |
//! | a topic's that nobody knows | anything | put aside; but where the checkpoints say that it had records and nobody else has them: offline |
//! | in two | one of the two | it lies there; the other copy is put aside, and if a move was cut off between its two renames, that is begun again |
//! | in two | neither | [`StorageError::Twice`] |
//! | no, but its checkpoints name it | anything | its files are gone: offline |
//! | no | an online directory | it begins there: nothing was ever written |
//! | no | another directory than the one it was moved to before anything was written | it waits for the metadata log |
//! | no | a directory that is offline here | offline: it lies there |
//! | no | a directory that is none of this node's | offline until the metadata log names another: lost.rs sees to it where others have its records, else an unclean election does |
//! | no | none (UNASSIGNED, MIGRATING), and it was made in this life of the node | it begins where it was placed |
//! | no | none, and a directory is offline | offline: it may lie there |
//! | no | none, and all directories are online | it is placed (core/storage/src/placement.rs) and begins |
//!
//! Always true: nothing is acknowledged in a second directory while the metadata log names a first one that may come back, so of
//! two copies the one that the metadata log names has everything.
//!
//! Source: KIP-858; Kafka `LogManager.getOrCreateLog`, which knows less: it refuses whatever is not marked new while any directory is
//! offline, and stops the start where it finds a partition twice.

use super::{Directories, current_dir, random_uuid, reports};
use crate::mailbox::PartitionKey;
use crate::moves;
use crate::node::Node;
use barnabas_base::{DirectoryId, Offset, TopicId, TopicPartition};
use barnabas_storage::{DiskErrorKind, LogDir, StorageError};
use std::path::Path;

const METADATA_NAME: &str = "partition.metadata";
/// A topic id that differs in no more bits is not another topic's.
const DAMAGED_BITS_MAX: u32 = 16;

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

/// Why a partition has no place: KAFKA_STORAGE_ERROR for whoever asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nowhere {
    /// It lies, or may lie, in a directory that is offline, or waits for the metadata log. Asked again, the answer may be
    /// another.
    Offline,
    /// It is damaged, and has been named in the log: not to be asked again in this life of the node.
    Broken,
}

/// Finds a partition, or a place for it to begin.
///
/// # Errors
/// [`Nowhere`].
pub fn locate(node: &Node, key: PartitionKey, name: &TopicPartition) -> Result<Place, Nowhere> {
    let directories = &node.directories;
    // Its predecessor's log is closed first, in a moment.
    if node.deleted.may_be_open(name) {
        return Err(Nowhere::Offline);
    }
    // In this order: what is no longer placed shows in the image.
    let placed = directories.figures.placed(key);
    let assigned = assigned_directory(node, key);
    if let Some(found) = find(node, name, key.topic, assigned)? {
        if directories.is_offline_here(assigned) {
            reports::assign(node, &[(key, found)]);
            return Err(Nowhere::Offline);
        }
        return Ok(Place::Found(found));
    }
    if node.deleted.begins(name) {
        forget_predecessor(directories, name)?;
    }
    if let Some((directory, reached)) = vanished(directories, name) {
        let path = directories[directory].path.join(name.to_string());
        tracing::error!(
            partition = %name,
            "{} is missing, but the checkpoints of its log directory show offset {reached}: the \
             partition stays offline. Restore the files and restart; or create an empty file {} in {} \
             and restart, to abandon its records; or delete the topic",
            path.display(),
            super::give_up::file_name(name, key.topic),
            directories[directory].path.display()
        );
        return Err(Nowhere::Broken);
    }
    if placed.is_some_and(|at| assigned.is_some_and(|id| directories[at].id != id)) {
        return Err(Nowhere::Offline);
    }
    if let Some(id) = assigned {
        let there = directories.by_id(id).filter(|&at| directories[at].is_usable());
        return there.map(Place::New).ok_or(Nowhere::Offline);
    }
    if let Some(placed) = placed {
        return if directories[placed].is_usable() { Ok(Place::New(placed)) } else { Err(Nowhere::Offline) };
    }
    if directories.iter().any(|directory| directory.holds_partitions && !directory.is_online()) {
        directories.say_unassigned(name);
        return Err(Nowhere::Offline);
    }
    directories.place(key).map(Place::New).ok_or(Nowhere::Offline)
}

/// The checkpoints may speak still of a deleted topic's partition of this name, which is closed and has no folder.
fn forget_predecessor(directories: &Directories, name: &TopicPartition) -> Result<(), Nowhere> {
    while let Some((at, _)) = vanished(directories, name) {
        let mut log_dir = directories[at].lock();
        log_dir.forget(name);
        // Whoever puts that topic aside writes them too, and complains.
        log_dir.write_checkpoints().map_err(|_| Nowhere::Offline)?;
    }
    Ok(())
}

/// What the metadata log says of where it lies here.
fn assigned_directory(node: &Node, key: PartitionKey) -> Option<DirectoryId> {
    let image = node.image.load();
    let row = image.topics.by_id(key.topic)?.partition(key.partition)?;
    row.directory(node.broker_id).filter(|id| !is_reserved(*id))
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
            node.directories[directory].room.hit(&error, node.clock.monotonic());
            return Err(Nowhere::Offline);
        }
        // A file that may not be read says nothing of the others.
        let is_denied = matches!(&error, StorageError::Disk(error) if error.kind == DiskErrorKind::Denied);
        if is_denied || !matches!(error, StorageError::Disk(_) | StorageError::Failed(_)) {
            tracing::error!(partition = %name, %error, "partition cannot be opened and stays offline until the next start");
            return Err(Nowhere::Broken);
        }
        node.directory_failed(directory, &error);
    }
}

/// The online directory that holds the partition, if one does. A directory of the same name that belongs to another topic id
/// (deleted and made again while this node was down) is put aside, and so is the second of two copies.
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
    let directories = &node.directories;
    let mut holding: Option<usize> = None;
    for (index, directory) in directories.iter().enumerate() {
        if !directory.is_usable() || !is_there(node, index, name, topic).map_err(|why| (index, why))? {
            continue;
        }
        let Some(first) = holding.replace(index) else { continue };
        let other = match assigned {
            Some(id) if id == directories[first].id => {
                holding = Some(first);
                index
            }
            Some(id) if id == directory.id => first,
            _ => {
                let [first, second] = [first, index].map(|at| directories[at].path.join(name.to_string()));
                return Err((index, StorageError::Twice { first, second }));
            }
        };
        if let Some(copy) = directories.put_copy_aside(other, name).map_err(|why| (other, why))? {
            let key = PartitionKey { topic, partition: name.partition };
            moves::begin_again(node, key, name, other, copy).map_err(|why| (other, why))?;
        }
    }
    Ok(holding)
}

/// What the topic id in a partition's directory says of whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    This,
    /// The id differs in a few bits. Ids are random, two topics' differ in about 61: this one is damaged.
    ThisDamaged,
    /// A topic that is there under another name: files were exchanged.
    Another,
    /// A topic of this name that was deleted.
    Gone,
}

impl Owner {
    pub fn of(node: &Node, found: TopicId, topic: TopicId) -> Self {
        let bits: u32 = found.0.iter().zip(topic.0).map(|(one, other)| (one ^ other).count_ones()).sum();
        match bits {
            0 => Self::This,
            1..=DAMAGED_BITS_MAX => Self::ThisDamaged,
            _ if node.image.load().topics.by_id(found).is_some() => Self::Another,
            _ => Self::Gone,
        }
    }
}

/// Whether it is known of a topic that it was deleted.
pub fn is_deleted(node: &Node, topic: TopicId) -> bool {
    node.written.was_deleted(topic) || node.deleted.is_leaving(topic)
}

/// The folder of a topic that nobody knows, where one of ours should be.
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
    let directory = &node.directories[index];
    let path = directory.path.join(name.to_string());
    if directory.disk.stat(&path)?.is_none() {
        return Ok(false);
    }
    let mut log_dir = directory.lock();
    let Some(found) = log_dir.topic_id(&current_dir(name))? else { return Ok(true) };
    match Owner::of(node, found, topic) {
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
        Owner::Gone if is_deleted(node, found) => {
            if let Some(aside) = log_dir.rename_to_delete(&[(name.clone(), random_uuid())])?.pop() {
                node.deletions.directory_later(index, aside, node.clock.wall());
            }
            Ok(false)
        }
        // After a kill the journal may hold more of it: there replay.rs says the same.
        Owner::Gone if is_only_copy(node, name, topic) && reached(&log_dir, name) > Offset::ZERO => {
            Err(foreign(&directory.path, found, name, topic))
        }
        Owner::Gone => {
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

/// Whether nobody else has what lay here: it must not begin anew.
fn is_only_copy(node: &Node, name: &TopicPartition, topic: TopicId) -> bool {
    let image = node.image.load();
    let row = image.topics.by_id(topic).and_then(|topic| topic.partition(name.partition));
    row.is_some_and(|row| row.isr().iter().all(|broker| *broker == node.broker_id))
}

/// Up to where a directory's checkpoints say that it held the partition's records.
fn reached(log_dir: &LogDir, name: &TopicPartition) -> Offset {
    let high_watermark = log_dir.high_watermark(name).unwrap_or(Offset::ZERO);
    log_dir.recovery_point(name).max(high_watermark)
}

/// Where a partition that lies nowhere once lay: a directory whose checkpoints say that it held records there, up to which
/// offset. Such a partition has lost its files; it must not begin anew.
pub fn vanished(directories: &Directories, name: &TopicPartition) -> Option<(usize, Offset)> {
    let mut online = directories.iter().enumerate().filter(|(_, directory)| directory.is_online());
    online.find_map(|(index, directory)| {
        let reached = reached(&directory.lock(), name);
        (reached > Offset::ZERO).then_some((index, reached))
    })
}

/// UNASSIGNED, LOST, MIGRATING and what may come after them: no directory's id (KIP-858).
pub fn is_reserved(id: DirectoryId) -> bool {
    id.0[..15] == [0; 15] && id.0[15] < 100
}
