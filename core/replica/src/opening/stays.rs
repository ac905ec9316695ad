//! Which stay of a replica on this broker the entries of a journal belong to.
//!
//! A reassignment takes a replica from a broker, and a later one may bring it back. Each stay has a log of its own,
//! under the same name and topic id. A removal in the journal ([`EntryKind::Remove`]) ends a stay: what stands before
//! it is never replayed. An operator who abandons a partition's records ends a stay as well, and a move to another log
//! directory ends one in the directory that the replica leaves. These steps end one, each durable before the next:
//! 1. the checkpoints forget the partition
//! 2. its directory is renamed
//! 3. the journal notes the removal
//! 4. another stay may begin ([`Leaving`])
//!
//! Always true:
//! 1. entries of one stay are never replayed into the log of another: where a start finds no removal, neither the
//!    journal nor the directory holds anything of a later stay
//! 2. a replica whose last stay has no removal is in no ISR: it has fetched nothing since it came back. If its records
//!    were abandoned, it may be in one; the operator's file is there until the removal is durable
//! 3. local data that the cluster counts on is never given up: a missing directory of such a replica is a loss
//!
//! Neighbours: shell/broker/src/worker/partition_worker/lifecycle/deleting.rs and shell/broker/src/upkeep/put_aside.rs,
//! which take the steps, and lifecycle/waiting.rs beside the first for an operator; shell/broker/src/upkeep/replay.rs,
//! which asks at a start.
//!
//! [`EntryKind::Remove`]: barnabas_storage::journal::EntryKind::Remove

use barnabas_base::{BrokerId, Map, Offset, TopicPartition};
use barnabas_metadata::Partition as Row;
use barnabas_partition::ReplicaKey;
use barnabas_storage::journal::PartitionReplay;
use barnabas_storage::{LogDir, StorageError};

/// What the image says of this broker's replica of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// There is none.
    Absent,
    /// Neither in the ISR nor eligible: all that was acknowledged is on other brokers.
    OutOfSync,
    /// Other brokers may lack what it holds.
    CountedOn,
}

impl Standing {
    pub fn of(row: Option<&Row>, me: BrokerId) -> Self {
        let Some(row) = row.filter(|row| row.has_replica(me)) else { return Self::Absent };
        let mut counted = row.isr().iter().chain(row.elr()).chain(&row.placement.last_known_elr);
        match row.leader == me || counted.any(|broker| *broker == me) {
            true => Self::CountedOn,
            false => Self::OutOfSync,
        }
    }
}

/// What a start finds of a partition beside its entries in the journal.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    pub standing: Standing,
    pub has_folder: bool,
    /// The directory's checkpoints say that it held records.
    pub is_checkpointed: bool,
    /// The metadata log has lost its end at this start, which may have said otherwise.
    pub log_was_cut: bool,
}

/// Whether the checkpoints of a directory say that the partition held records there.
pub fn is_checkpointed(log_dir: &LogDir, name: &TopicPartition) -> bool {
    let known = [log_dir.high_watermark(name), log_dir.log_start(name)];
    let known = known.into_iter().flatten().fold(log_dir.recovery_point(name), Offset::max);
    known > Offset::ZERO
}

/// Whether what the journal holds of a partition is of a stay that is over, though the journal has no removal: the
/// process was killed between two of the steps, or the journal's disk failed. The journal notes the removal before it
/// takes anything new of the partition ([`Recovered::note_left`]).
///
/// A replica that came back meanwhile fetches from its leader. If the journal holds the whole log of the earlier stay,
/// it goes on with that instead, and is truncated as any follower.
///
/// [`Recovered::note_left`]: barnabas_storage::journal::Recovered::note_left
pub fn has_left(replay: &PartitionReplay, found: Found) -> bool {
    if found.has_folder || found.log_was_cut {
        return false;
    }
    match found.standing {
        // A log that is whole is put aside as a stray, with its records.
        Standing::Absent => !replay.only_appends() || !replay.is_whole_log(),
        Standing::OutOfSync => !found.is_checkpointed && !replay.is_whole_log(),
        Standing::CountedOn => false,
    }
}

/// Whether the directory has a later stay of the partition than the one whose removal is the last that the journal
/// says of it: replaying that removal would remove the later stay. The journal notes that it has begun before it takes
/// anything new of the partition ([`Recovered::note_returned`]). `is_here`: the directory has the partition's folder.
///
/// The folder of the earlier stay was renamed, durably, before the journal noted the removal. A replica that moved back
/// from another log directory came as a copy, of which the journal's first word is a `Range`, after the copy has the
/// partition's name and the other directory has given its own up.
///
/// [`Recovered::note_returned`]: barnabas_storage::journal::Recovered::note_returned
///
/// # Errors
/// `is_here`'s.
pub fn has_returned<E>(
    replay: &PartitionReplay,
    is_here: impl FnOnce() -> Result<bool, E>,
) -> Result<bool, E> {
    Ok(replay.ends_with_removal() && is_here()?)
}

/// The checkpoints of a directory forget the replicas that left it, before the journal notes their removals: what they
/// say later is of another stay. On a full disk that waits for the next checkpoints.
///
/// # Errors
/// The disk refuses.
pub fn forget_left<'a>(
    log_dir: &mut LogDir,
    left: impl IntoIterator<Item = &'a TopicPartition>,
) -> Result<(), StorageError> {
    let mut has_any = false;
    for name in left {
        log_dir.forget(name);
        has_any = true;
    }
    match if has_any { log_dir.write_checkpoints() } else { Ok(()) } {
        Err(error) if error.is_passing() => Ok(()),
        written => written,
    }
}

/// Replicas that have left, or whose records an operator has abandoned: the journal's removal is not durable yet. None
/// of them begins another stay: what that puts into segments would be there without the removal after a crash.
#[derive(Debug, Default)]
pub struct Leaving {
    /// By which directories' journals.
    removals: Map<ReplicaKey, Vec<usize>>,
}

impl Leaving {
    /// The replica is closed, and its removal goes to the journal of that directory.
    pub fn begin(&mut self, key: ReplicaKey, directory: usize) {
        self.removals.entry(key).or_default().push(directory);
    }

    pub fn is_leaving(&self, key: ReplicaKey) -> bool {
        self.removals.contains_key(&key)
    }

    /// Whether the journal of that directory has yet to note the removal.
    pub fn is_leaving_directory(&self, key: ReplicaKey, directory: usize) -> bool {
        self.removals.get(&key).is_some_and(|directories| directories.contains(&directory))
    }

    /// A directory's journal reports that the partition's entries are durable up to `end`. Returns whether the stay is
    /// over.
    pub fn durable(&mut self, key: ReplicaKey, directory: usize, end: Offset) -> bool {
        if end != Offset::NONE {
            return false;
        }
        let Some(directories) = self.removals.get_mut(&key) else { return false };
        directories.retain(|of| *of != directory);
        directories.is_empty() && self.removals.remove(&key).is_some()
    }

    /// Its journal takes nothing more. What has left is not opened in this directory again by this process.
    pub fn directory_failed(&mut self, directory: usize) {
        self.removals.retain(|_, directories| {
            directories.retain(|of| *of != directory);
            !directories.is_empty()
        });
    }
}
