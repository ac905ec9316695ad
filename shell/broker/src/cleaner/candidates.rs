//! Which partitions may have something to compact, so that the others are never looked at.
//!
//! Housekeeping names those that were written since its last turn and have a sealed segment ([`Candidates::note`]); the sweep
//! over the directories names those that the last process left dirty. Both know compacted topics alone. A partition is forgotten
//! once its worker says that nothing waits in it, until it is written again.

use crate::directories::Directory;
use crate::mailbox::PartitionKey;
use crate::node::Node;
use crate::replica::Replica;
use crate::topic_settings;
use barnabas_base::{Map, Offset, Set, Text, TopicId, TopicPartition};
use barnabas_storage::{DirKind, PartitionDir, StorageError};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Partitions asked for at once: the worker serves its clients between two questions.
const PARTITIONS_PER_QUESTION: usize = 64;

/// See the file's header. Bounded by the number of compacted partitions that have a sealed segment.
#[derive(Debug, Default)]
pub struct Candidates {
    state: Mutex<State>,
    /// One thread looks at a time.
    looking: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Set<PartitionKey>,
    /// Found to be due, the dirtiest first.
    due: VecDeque<PartitionKey>,
    /// Being cleaned.
    busy: Set<PartitionKey>,
    resting: Map<PartitionKey, Instant>,
    /// With the bytes that are not compacted for it.
    uncleanable: Map<PartitionKey, u64>,
}

impl Candidates {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The replica was written to, or its settings have changed.
    pub fn note(&self, replica: &Replica) {
        if replica.log.config().cleanup.compact && replica.log.segment_count() > 1 {
            self.add(replica.key.into());
        }
    }

    fn add(&self, partition: PartitionKey) {
        let mut state = self.lock();
        if !state.uncleanable.contains_key(&partition) {
            state.waiting.insert(partition);
        }
    }

    /// The next partition to clean; where none is known to be due, `look` is asked for some.
    pub(super) fn next(&self, look: impl FnOnce() -> Vec<PartitionKey>) -> Option<PartitionKey> {
        if let Some(next) = self.pop() {
            return Some(next);
        }
        let _looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have looked in the meantime.
        if let Some(next) = self.pop() {
            return Some(next);
        }
        let due = look();
        self.lock().due = due.into();
        self.pop()
    }

    fn pop(&self) -> Option<PartitionKey> {
        let mut state = self.lock();
        let now = Instant::now();
        state.resting.retain(|_, until| *until > now);
        while let Some(next) = state.due.pop_front() {
            let is_free = !state.resting.contains_key(&next) && !state.uncleanable.contains_key(&next);
            if is_free && state.busy.insert(next) {
                return Some(next);
            }
        }
        None
    }

    pub(super) fn done(&self, partition: PartitionKey) {
        self.lock().busy.remove(&partition);
    }

    pub(super) fn rest(&self, partition: PartitionKey, how_long: Duration) {
        self.lock().resting.insert(partition, Instant::now() + how_long);
    }

    pub(super) fn forget(&self, partition: PartitionKey) {
        self.lock().waiting.remove(&partition);
    }

    pub(super) fn set_uncleanable(&self, partition: PartitionKey, bytes: u64) {
        let mut state = self.lock();
        state.waiting.remove(&partition);
        state.uncleanable.insert(partition, bytes);
    }

    /// A topic is gone, and with it what could not be compacted.
    pub fn topic_deleted(&self, topic: TopicId) {
        let mut state = self.lock();
        state.waiting.retain(|partition| partition.topic != topic);
        state.uncleanable.retain(|partition, _| partition.topic != topic);
    }

    /// How many partitions cannot be compacted, and how many bytes they have.
    pub fn uncleanable(&self) -> (usize, u64) {
        let state = self.lock();
        (state.uncleanable.len(), state.uncleanable.values().sum())
    }
}

type Question = (usize, Vec<(PartitionKey, Option<Offset>)>);

/// The candidates in pieces for one [`Look`](super::CleanCommand::Look) each, with the workers that own them.
pub(super) fn by_owner(node: &Node) -> Vec<Question> {
    let waiting: Vec<PartitionKey> = node.compaction.candidates.lock().waiting.iter().copied().collect();
    let mut by_owner: Vec<Vec<(PartitionKey, Option<Offset>)>> = vec![Vec::new(); node.workers];
    for partition in waiting {
        by_owner[partition.owner(node.workers)].push((partition, clean_point(node, partition)));
    }
    let pieces = by_owner.into_iter().enumerate().flat_map(|(owner, partitions)| {
        let pieces: Vec<_> = partitions.chunks(PARTITIONS_PER_QUESTION).map(<[_]>::to_vec).collect();
        pieces.into_iter().map(move |piece| (owner, piece))
    });
    pieces.collect()
}

/// How far a partition is clean, as the checkpoints say. In the last step of a move two directories have an entry for it, and what was
/// left of one that was cut off is older.
pub fn clean_point(node: &Node, partition: PartitionKey) -> Option<Offset> {
    let image = node.image.load();
    let topic = image.topics.by_id(partition.topic)?.name.clone();
    let name = TopicPartition { topic, partition: partition.partition };
    let usable = node.directories.iter().filter(|directory| directory.is_usable());
    usable.filter_map(|directory| directory.lock().cleaner_point(&name)).min()
}

/// Names the compacted partitions on disk whose newest segment begins past what is clean. File names are all that is read.
pub(super) fn sweep(node: &Node) {
    let mut last: Option<(Text, bool)> = None;
    for directory in node.directories.iter().filter(|directory| directory.is_usable()) {
        let listed = directory.lock().partitions();
        for entry in listed.unwrap_or_default().iter().filter(|entry| entry.kind == DirKind::Current) {
            let image = node.image.load();
            let TopicPartition { topic, partition } = &entry.topic_partition;
            let Some(id) = image.topics.id_of(topic) else { continue };
            // Partitions of a topic mostly follow one another.
            let is_compacted = match &last {
                Some((known, is_compacted)) if known == topic => *is_compacted,
                _ => topic_settings::log_config(node, &image, topic).cleanup.compact,
            };
            last = Some((topic.clone(), is_compacted));
            // A directory that cannot be read is the next opener's to complain of.
            if is_compacted && is_dirty(directory, entry).unwrap_or(false) {
                node.compaction.candidates.add(PartitionKey { topic: id, partition: *partition });
            }
        }
    }
}

fn is_dirty(directory: &Directory, entry: &PartitionDir) -> Result<bool, StorageError> {
    let files = directory.disk.list(&directory.path.join(&entry.name))?;
    let base = |name: &str| name.strip_suffix(".log")?.parse::<i64>().ok();
    let newest = files.iter().filter_map(|file| base(&file.name)).max();
    let clean_to = directory.lock().cleaner_point(&entry.topic_partition).unwrap_or(Offset::ZERO);
    Ok(newest.is_some_and(|newest| newest > clean_to.get()))
}
