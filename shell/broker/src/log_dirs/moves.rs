//! Moves of partitions between log directories, while they are read and written (AlterReplicaLogDirs).
//!
//! A move is a second log of the partition, `TOPIC-P.<id>-future` in the directory that it goes to, which one thread of
//! low priority fills with what the partition's owner reads out to it (upkeep/mover.rs). When it has nearly caught up,
//! the owner itself does the rest in one go, between two rounds: copies what is left, syncs, and gives the copy the
//! partition's name (core/replica/src/moving.rs). So the copy follows the log whatever happens to it meanwhile:
//! appends, retention, deleted records, compaction.
//!
//! What a crash leaves, in the order of the steps, and what the next start does:
//!
//! | crash while | on disk | next start |
//! |---|---|---|
//! | copying | the partition, and an incomplete `-future` | copies again; after a clean stop continues |
//! | between the two renames | the partition twice, complete | the old one stays; the new one is `-future` again |
//! | after the renames | the new one, the old one as `-delete` | reports the new directory; removes the old one |
//!
//! Always true:
//! 1. nothing is acknowledged between the first rename and the second one being durable, so that both copies have
//!    everything
//! 2. only what is durable in the partition is copied before the last step
//! 3. a partition that was never written to has no copy: its place changes in the metadata log, and that is all
//! 4. a copy never takes the room that producers need: one that does not fit is refused, one that fits no more waits
//!    (core/storage's room.rs)
//! 5. what the checkpoints say of the partition goes with it: recovery point, high watermark, log start, and how far it
//!    is compacted, as it was when the copy was begun
//!
//! Source: KIP-113, KIP-858; Kafka `ReplicaManager.alterReplicaLogDirs`, `ReplicaAlterLogDirsThread`,
//! `LogManager.replaceCurrentWithFutureLog`, which renames in the same order and leaves two to be chosen from by hand.

use crate::mailbox::PartitionKey;
use barnabas_base::{Offset, TopicPartition, Uuid};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Wishes for partitions that are not here; more are forgotten.
const PREFERRED_MAX: usize = 10_000;

/// One move, as everybody may know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    pub name: TopicPartition,
    /// The directory that it goes to.
    pub to: usize,
    /// The id in the name of the copy's directory.
    pub unique: Uuid,
    /// How far the copy reaches, and how far the log did when that was looked at.
    pub copied_end: Offset,
    pub log_end: Offset,
    /// The copy was found at the start, and may be gone on with.
    pub goes_on: bool,
}

/// All moves of the node.
#[derive(Debug, Default)]
pub struct Moves {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    moves: BTreeMap<PartitionKey, Move>,
    /// Copies that are no longer needed: the directory's place, and their path.
    discarded: Vec<(usize, PathBuf)>,
    /// Where partitions shall begin that are not here yet.
    preferred: HashMap<TopicPartition, usize>,
    stopping: bool,
}

impl Moves {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, key: PartitionKey) -> Option<Move> {
        self.lock().moves.get(&key).cloned()
    }

    pub fn all(&self) -> Vec<(PartitionKey, Move)> {
        self.lock().moves.iter().map(|(&key, each)| (key, each.clone())).collect()
    }

    /// Begins a move whose copy's directory is there already. One that it replaces has its copy, which lies at
    /// `path_of`, removed.
    pub fn begin(&self, key: PartitionKey, each: Move, path_of: impl Fn(&Move) -> PathBuf) {
        let mut state = self.lock();
        if let Some(old) = state.moves.insert(key, each) {
            let discarded = (old.to, path_of(&old));
            state.discarded.push(discarded);
        }
        self.changed.notify_all();
    }

    /// Ends a move, if there is one, and has its copy, which lies at `path_of`, removed.
    pub fn cancel(&self, key: PartitionKey, path_of: impl Fn(&Move) -> PathBuf) {
        let mut state = self.lock();
        if let Some(each) = state.moves.remove(&key) {
            let discarded = (each.to, path_of(&each));
            state.discarded.push(discarded);
            self.changed.notify_all();
        }
    }

    /// A move is done.
    pub fn finish(&self, key: PartitionKey) {
        self.lock().moves.remove(&key);
    }

    pub fn note(&self, key: PartitionKey, unique: Uuid, copied_end: Offset, log_end: Offset) {
        if let Some(each) = self.lock().moves.get_mut(&key).filter(|each| each.unique == unique) {
            each.copied_end = copied_end;
            each.log_end = log_end;
        }
    }

    pub fn discard(&self, directory: usize, path: PathBuf) {
        self.lock().discarded.push((directory, path));
    }

    pub fn take_discarded(&self) -> Vec<(usize, PathBuf)> {
        std::mem::take(&mut self.lock().discarded)
    }

    /// Remembers where a partition shall begin that is not here.
    pub fn prefer(&self, name: TopicPartition, directory: usize) {
        let mut state = self.lock();
        if state.preferred.len() < PREFERRED_MAX || state.preferred.contains_key(&name) {
            state.preferred.insert(name, directory);
        }
    }

    pub fn take_preferred(&self, name: &TopicPartition) -> Option<usize> {
        let mut state = self.lock();
        if state.preferred.is_empty() { None } else { state.preferred.remove(name) }
    }

    /// Ends the mover's thread at its next turn.
    pub fn stop(&self) {
        self.lock().stopping = true;
        self.changed.notify_all();
    }

    pub fn is_stopping(&self) -> bool {
        self.lock().stopping
    }

    /// Waits until there is something to do, or for so long. `false`: the node stops.
    pub fn wait(&self, time: Duration) -> bool {
        let state = self.lock();
        let is_idle = |state: &mut State| !state.stopping && state.discarded.is_empty();
        let (state, _) =
            self.changed.wait_timeout_while(state, time, is_idle).unwrap_or_else(PoisonError::into_inner);
        !state.stopping
    }

    /// Waits until there is a move.
    pub fn wait_for_moves(&self) -> bool {
        let state = self.lock();
        let is_idle =
            |state: &mut State| !state.stopping && state.moves.is_empty() && state.discarded.is_empty();
        let state = self.changed.wait_while(state, is_idle).unwrap_or_else(PoisonError::into_inner);
        !state.stopping
    }
}
