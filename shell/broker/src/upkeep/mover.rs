//! The thread that copies: one piece of each move in turn, at the lowest priority, at the pace that is set.
//!
//! It alone makes, fills and removes `-future` directories after the start. It waits for the partitions' owners; no
//! thread waits for it. Its messages are in mailbox/moves.rs.

use crate::log_dirs::directories::random_uuid;
use crate::log_dirs::moves::Move;
use crate::mailbox::moves::{Begun, Copying, MoveCommand, SwapFailure};
use crate::mailbox::{Command, Declined, PartitionKey};
use crate::node::Node;
use crate::upkeep::checkpoints::clean_point;
use barnabas_base::{Offset, TopicPartition, name};
use barnabas_log_dirs::CopyPace;
use barnabas_replica::{CopyVerdict, Fits, LogCopy, LogPiece};
use barnabas_storage::{DirKind, FilePool, LogPlace, PartitionDir, StorageError, remove_dir};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A piece: an owner that reads it out is busy for well under a millisecond.
const PIECE_BYTES: usize = 256 << 10;
/// Files that a copy holds open.
const FILES_OPEN: usize = 8;
/// Before something is tried again that did not work (a full disk, a partition that is offline).
const PAUSE: Duration = Duration::from_millis(500);
const PACE_KEY: &str = "replica.alter.log.dirs.io.max.bytes.per.second";

/// # Errors
/// The system gives no thread.
pub fn start(node: Arc<Node>) -> std::io::Result<JoinHandle<()>> {
    let mover =
        Mover { node, copies: HashMap::new(), pace: CopyPace::default(), last: barnabas_clock::now() };
    std::thread::Builder::new().name("mover".to_owned()).spawn(move || mover.run())
}

struct Mover {
    node: Arc<Node>,
    copies: HashMap<PartitionKey, Copying>,
    pace: CopyPace,
    /// When the last piece was copied.
    last: Instant,
}

/// What came of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Copied(u64),
    /// To be tried again a little later.
    Waits,
    /// Nothing is left of the move.
    Over,
}

impl Mover {
    fn run(mut self) {
        if let Err(error) = rustix::process::setpriority_process(None, 19) {
            tracing::debug!(%error, "the mover keeps its priority");
        }
        if self.node.log_dirs.directories.are_several() {
            resume(&self.node);
        }
        let node = self.node.clone();
        while node.log_dirs.moves.wait_for_moves() {
            self.remove_discarded();
            let mut all_wait = true;
            for (key, each) in node.log_dirs.moves.all() {
                if node.log_dirs.moves.is_stopping() {
                    break;
                }
                match self.turn(key, &each) {
                    Turn::Copied(bytes) => {
                        all_wait = false;
                        self.keep_pace(bytes);
                    }
                    Turn::Waits => {}
                    Turn::Over => all_wait = false,
                }
            }
            if all_wait && !node.log_dirs.moves.wait(PAUSE) {
                break;
            }
        }
        self.close();
    }

    /// What is open at a clean stop is gone on with at the next start.
    fn close(&mut self) {
        for copying in self.copies.values_mut() {
            if !self.node.log_dirs.directories[copying.to].is_online() {
                continue;
            }
            if let Err(error) = copying.copy.close() {
                tracing::info!(copy = %copying.copy.path().display(), %error, "the copy of the replica was \
                    not closed cleanly");
            }
        }
    }

    fn keep_pace(&mut self, bytes: u64) {
        let config = self.node.cluster.config.load();
        let bound = config.dynamic().broker.get(PACE_KEY).or_else(|| config.dynamic().default.get(PACE_KEY));
        let bound =
            bound.and_then(|value| value.trim().parse::<u64>().ok()).filter(|&rate| rate < i64::MAX as u64);
        let now = barnabas_clock::now();
        let sleep = self.pace.spend(bytes, now - self.last, bound);
        self.last = now;
        if !sleep.is_zero() {
            self.node.log_dirs.moves.wait(sleep);
        }
    }

    fn remove_discarded(&mut self) {
        for (directory, path) in self.node.log_dirs.moves.take_discarded() {
            self.copies.retain(|_, copying| {
                let is_gone = copying.copy.path() == path;
                if is_gone {
                    copying.copy.abandon();
                }
                !is_gone
            });
            let directory = &self.node.log_dirs.directories[directory];
            if !directory.is_online() {
                continue;
            }
            if let Err(error) = remove_dir(&*directory.disk, &path) {
                tracing::warn!(%error, "the copy of a cancelled move could not be removed: {}", path.display());
            }
        }
    }

    /// One piece of one move, or its last step.
    fn turn(&mut self, key: PartitionKey, each: &Move) -> Turn {
        let node = self.node.clone();
        if node.cluster.image.load().topics.by_id(key.topic).is_none()
            || !node.log_dirs.directories[each.to].is_online()
        {
            self.give_up(key, each);
            return Turn::Over;
        }
        let mut copying = match self.copies.remove(&key) {
            Some(copying) if copying.copy.place.future == Some(each.unique) => copying,
            _ => match self.open(key, each) {
                Ok(copying) => copying,
                Err(error) => return self.failed(key, each, &error),
            },
        };
        if !self.has_room(each, &mut copying) {
            self.copies.insert(key, copying);
            return Turn::Waits;
        }
        let from = copying.copy.end();
        let read =
            match ask(&node, key, |reply| MoveCommand::Read { key, from, max_bytes: PIECE_BYTES, reply }) {
                Some(Ok(read)) => read,
                // Offline for now, or being moved by a change of the metadata.
                Some(Err(_)) | None => {
                    self.copies.insert(key, copying);
                    return Turn::Waits;
                }
            };
        match copying.copy.put(&read, node.clock.wall()) {
            Ok(Fits::Yes) => {
                if std::mem::take(&mut copying.is_waiting) {
                    tracing::info!(partition = %each.name, "there is free space again; the move \
                        continues");
                }
            }
            Ok(Fits::No) => {
                self.copies.insert(key, copying);
                return self.start_over(key, each);
            }
            Err(error) => {
                self.copies.insert(key, copying);
                return self.failed(key, each, &error);
            }
        }
        let copied = copying.copy.end().unwrap_or(read.log_start);
        node.log_dirs.moves.note(key, each.unique, copied, read.durable_end);
        if !copying.copy.has_caught_up(&read) {
            self.copies.insert(key, copying);
            return Turn::Copied(read.records.len() as u64);
        }
        self.swap(key, each, copying, &read)
    }

    /// Whether the directory that it goes to has room for one more piece. Says so once when there is none.
    fn has_room(&self, each: &Move, copying: &mut Copying) -> bool {
        let directory = &self.node.log_dirs.directories[each.to];
        let has_room = directory.room.admits_copy(PIECE_BYTES as u64);
        if !has_room && !std::mem::replace(&mut copying.is_waiting, true) {
            say_waits(each, &directory.path, "there is no room but what producers must have left");
        }
        has_room
    }

    /// The copy has all that is durable: the owner does the rest.
    fn swap(&mut self, key: PartitionKey, each: &Move, mut copying: Copying, read: &LogPiece) -> Turn {
        if let Err(error) = copying.copy.sync() {
            self.copies.insert(key, copying);
            return self.failed(key, each, &error);
        }
        copying.copy.fill_empty(read);
        let copying = Box::new(copying);
        match ask(&self.node, key, |reply| MoveCommand::Swap { copying, reply }) {
            Some(Ok(())) => {
                self.node.log_dirs.moves.finish(key);
                tracing::info!(
                    partition = %each.name,
                    "moved to {}",
                    self.node.log_dirs.directories[each.to].path.display()
                );
                Turn::Over
            }
            Some(Err(SwapFailure::NotYet(copying))) => {
                self.copies.insert(key, *copying);
                Turn::Copied(0)
            }
            Some(Err(SwapFailure::Over(copying))) => {
                self.copies.insert(key, *copying);
                self.give_up(key, each);
                Turn::Over
            }
            // The node stops.
            None => Turn::Waits,
        }
    }

    fn open(&self, key: PartitionKey, each: &Move) -> Result<Copying, StorageError> {
        let directory = &self.node.log_dirs.directories[each.to];
        let place = LogPlace {
            root: directory.path.clone(),
            topic_partition: each.name.clone(),
            topic_id: key.topic,
            future: Some(each.unique),
        };
        let mut copy = LogCopy::new(place, FilePool::new(directory.disk.clone(), FILES_OPEN));
        if each.goes_on {
            // Compaction since the move began is not in the copy.
            let image = self.node.cluster.image.load();
            let config = crate::node::topic_settings::log_config(&self.node, &image, &each.name.topic);
            copy.resume(config, self.node.clock.wall())?;
        } else {
            copy.clean_to = clean_point(&self.node, key);
        }
        Ok(Copying { key, to: each.to, copy, is_waiting: false })
    }

    fn failed(&mut self, key: PartitionKey, each: &Move, error: &StorageError) -> Turn {
        match CopyVerdict::of(error, each.goes_on) {
            // The figures said otherwise (a quota, no more inodes), or something else than room is short.
            CopyVerdict::Retry => {
                if let Some(copying) = self.copies.get_mut(&key).filter(|copying| !copying.is_waiting) {
                    copying.is_waiting = true;
                    say_waits(each, &self.node.log_dirs.directories[each.to].path, &error.to_string());
                }
                return Turn::Waits;
            }
            CopyVerdict::BeginAgain => return self.start_over(key, each),
            CopyVerdict::DirectoryFailed => self.node.directory_failed(each.to, error),
            CopyVerdict::Over => {
                tracing::error!(partition = %each.name, %error, "the move failed; the replica stays in \
                    its directory and can be moved again");
            }
        }
        self.give_up(key, each);
        Turn::Over
    }

    fn start_over(&mut self, key: PartitionKey, each: &Move) -> Turn {
        tracing::info!(partition = %each.name, "the copy was restarted from the beginning");
        self.give_up(key, each);
        if let Err(error) = begin(&self.node, key, each.name.clone(), each.to) {
            tracing::error!(partition = %each.name, %error, "the move failed; the replica stays in its \
                directory and can be moved again");
        }
        // Whatever it was may be so again.
        Turn::Waits
    }

    fn give_up(&mut self, key: PartitionKey, each: &Move) {
        if let Some(mut copying) = self.copies.remove(&key) {
            copying.copy.abandon();
        }
        let is_same = self.node.log_dirs.moves.get(key).is_some_and(|now| now.unique == each.unique);
        if is_same {
            self.node.log_dirs.moves.finish(key);
        }
        self.node.log_dirs.moves.discard(each.to, path_of(&self.node, each));
    }
}

/// Makes the copy's directory, so that the move is remembered over a restart, and has the mover begin.
///
/// # Errors
/// The directory that it goes to refuses.
pub fn begin(node: &Node, key: PartitionKey, name: TopicPartition, to: usize) -> Result<(), StorageError> {
    let (unique, end) = (random_uuid(), Offset::ZERO);
    let each = Move { name, to, unique, copied_end: end, log_end: end, goes_on: false };
    let directory = &node.log_dirs.directories[to];
    directory.disk.create_dir(&path_of(node, &each))?;
    directory.disk.sync_dir(&directory.path)?;
    node.log_dirs.moves.begin(key, each, |old| path_of(node, old));
    Ok(())
}

/// Begins a move again that was cut off in its last step; `left` is what is left of its copy.
///
/// # Errors
/// As [`begin`].
pub fn begin_again(
    node: &Node,
    key: PartitionKey,
    name: &TopicPartition,
    to: usize,
    left: PathBuf,
) -> Result<(), StorageError> {
    node.log_dirs.moves.discard(to, left);
    begin(node, key, name.clone(), to)
}

fn say_waits(each: &Move, to: &Path, why: &str) {
    let (copied, end) = (each.copied_end, each.log_end);
    tracing::warn!(
        partition = %each.name,
        "the move to {} is paused, {copied} of {end} offsets copied: {why}. It continues by itself; to \
         cancel it, move the replica to its current directory",
        to.display()
    );
}

/// Where a move's copy lies.
pub fn path_of(node: &Node, each: &Move) -> PathBuf {
    let root = node.log_dirs.directories[each.to].path.clone();
    let topic_partition = each.name.clone();
    let place =
        LogPlace { root, topic_partition, topic_id: barnabas_base::Uuid::ZERO, future: Some(each.unique) };
    place.dir()
}

/// Asks a partition's owner and waits. `None`: it has ended.
fn ask<T>(
    node: &Node,
    key: PartitionKey,
    command: impl FnOnce(oneshot::Sender<T>) -> MoveCommand,
) -> Option<T> {
    let (reply, answer) = oneshot::channel();
    node.workers.owner(key).send_blocking(Command::Move(command(reply)));
    answer.blocking_recv().ok()
}

/// Finds the copies that the last life of the node left, and goes on with those moves.
fn resume(node: &Node) {
    for (at, directory) in node.log_dirs.directories.iter().enumerate().filter(|(_, each)| each.is_usable()) {
        let listed = directory.lock().partitions();
        for entry in listed.unwrap_or_default().iter().filter(|entry| entry.kind == DirKind::Future) {
            resume_one(node, at, entry);
        }
    }
}

fn resume_one(node: &Node, at: usize, entry: &PartitionDir) {
    let name = &entry.topic_partition;
    let directory = &node.log_dirs.directories[at];
    let path = directory.path.join(&entry.name);
    let image = node.cluster.image.load_full();
    let topic = image.topics.by_name(&name.topic).filter(|_| *name.topic != *name::CLUSTER_METADATA);
    let known = topic.filter(|topic| topic.partition(name.partition).is_some());
    let Some((topic, unique)) = known.zip(entry.unique()) else {
        if !node.peers.controller.log_was_cut() {
            node.log_dirs.moves.discard(at, path);
        }
        return;
    };
    let key = PartitionKey { topic: topic.id, partition: name.partition };
    let of_other = directory.lock().topic_id(entry).ok().flatten().is_some_and(|found| found != topic.id);
    let is_second = node.log_dirs.moves.get(key).is_some();
    if of_other || is_second {
        node.log_dirs.moves.discard(at, path);
        return;
    }
    match ask(node, key, |reply| MoveCommand::Begin { key, to: at, reply }) {
        Some(Ok(Begun::ToCopy { .. })) => {}
        Some(Ok(Begun::There)) => return node.log_dirs.moves.discard(at, path),
        // The partition is offline: what was copied of it stays where it is.
        Some(Err(
            Declined::Storage | Declined::Full | Declined::Damaged | Declined::Refused(_) | Declined::Unknown,
        ))
        | None => {
            return;
        }
    }
    // A last step that was cut off may have noted it in the checkpoints of where it was to go.
    {
        let mut log_dir = directory.lock();
        log_dir.forget(name);
        if let Err(error) = log_dir.write_checkpoints() {
            tracing::warn!(partition = %name, %error, "a move interrupted by a stop was cancelled; the \
                replica stays in its directory and can be moved again");
            return;
        }
    }
    // Only a clean stop vouches that the partition has all that was copied.
    if node.log_dirs.directories.iter().all(|each| !each.is_online() || each.lock().was_clean()) {
        let (name, end) = (name.clone(), Offset::ZERO);
        let each = Move { name, to: at, unique, copied_end: end, log_end: end, goes_on: true };
        node.log_dirs.moves.begin(key, each, |old| path_of(node, old));
        return;
    }
    node.log_dirs.moves.discard(at, path);
    if let Err(error) = begin(node, key, name.clone(), at) {
        tracing::warn!(partition = %name, %error, "a move interrupted by a stop was cancelled; the \
            replica stays in its directory and can be moved again");
    }
}
