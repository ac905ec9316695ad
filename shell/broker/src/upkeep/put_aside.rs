//! The thread that puts aside what is left of deleted partitions, once their owners have closed them. The journal notes
//! the removal of a partition once its folder's new name is durable: core/replica/src/opening/stays.rs says why.
//!
//! Before: node/log_dirs/deleted.rs, where workers hand them in. After: housekeeping.rs, which removes the files later.

use crate::log_dirs::directories::{Directory, random_uuid};
use crate::node::Node;
use crate::node::log_dirs::deleted::{Closed, Then};
use barnabas_base::{Map, Text, TimestampMs, TopicId, TopicPartition};
use barnabas_storage::journal::{Entry, EntryKind, JournalPartition};
use barnabas_storage::{DirKind, PartitionDir, StorageError};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two turns there are so many times as long as one took, so that what a move takes away does not have the
/// checkpoints, which name every partition of a directory, written for each handful.
const GATHER_FACTOR: u32 = 4;
const GATHER_MAX: Duration = Duration::from_millis(500);

/// # Errors
/// The system gives no thread.
pub fn start(node: Arc<Node>) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("deletions".to_owned()).spawn(move || {
        while let Some(mut all) = node.log_dirs.deleted.next() {
            let begun = barnabas_clock::now();
            let is_done = put_aside(&node, &mut all);
            let again =
                all.extract_if(.., |closed| !is_done && still_counts(&node, closed)).collect::<Vec<_>>();
            let pause =
                if again.is_empty() { barnabas_clock::since(begun) * GATHER_FACTOR } else { GATHER_MAX };
            node.log_dirs.deleted.done(&all);
            again.into_iter().for_each(|closed| node.log_dirs.deleted.again(closed));
            node.log_dirs.deleted.gather(pause.min(GATHER_MAX));
        }
    })
}

/// Whether the topic goes on: the replica may come back, and must not find what is left of its last stay.
fn still_counts(node: &Node, closed: &Closed) -> bool {
    node.cluster.image.load().topics.by_id(closed.topic).is_some()
}

/// `false`: some directory has no room for that now. What it has to remove from its journal stays in the lists.
fn put_aside(node: &Node, all: &mut [Closed]) -> bool {
    let mut is_done = true;
    let mut removed = take_removed(all);
    let is_stray = |closed: &&Closed| closed.then == Then::Stray;
    let names: Vec<(&TopicPartition, TopicId)> =
        all.iter().filter(|closed| !is_stray(closed)).flat_map(Closed::owned).collect();
    let is_free = |name: &Text| node.cluster.image.load().topics.by_name(name).is_none();
    let due = |closed: &Closed| match closed.then {
        Then::Deleted(due) => Some((closed.topic, due)),
        Then::Stray => None,
    };
    let due: Map<TopicId, TimestampMs> = all.iter().filter_map(due).collect();
    for (at, directory) in node.log_dirs.directories.iter().enumerate().filter(|(_, each)| each.is_usable()) {
        let strays = all.iter().filter(is_stray).flat_map(Closed::owned);
        let has_successor = |name: &TopicPartition| node.log_dirs.deleted.has_successor(name);
        let aside = put_strays_aside(directory, strays)
            .and_then(|()| directory.put_aside(&names, is_free, has_successor));
        let aside = match aside {
            Ok(aside) => aside,
            Err(error) => {
                is_done &= !error.is_passing();
                node.write_failed(at, &error);
                if !all.iter().all(|closed| still_counts(node, closed)) {
                    let path = directory.path.display();
                    tracing::warn!(%error, "directories of deleted partitions could not be removed from \
                        {path}; the next start removes them");
                }
                continue;
            }
        };
        for (path, topic) in aside {
            node.log_dirs.deletions.directory_later(at, path, due[&topic]);
        }
        let mut entries: Vec<Entry> =
            removed.extract_if(.., |one| one.directory == at).map(|one| removal(&one.name)).collect();
        directory.journal.submit(&mut entries);
    }
    removed.into_iter().for_each(|one| all[one.list].removed.push((one.directory, one.name)));
    is_done
}

/// A partition's removal, for the journal of a directory.
struct Removed {
    list: usize,
    directory: usize,
    name: Arc<JournalPartition>,
}

fn take_removed(all: &mut [Closed]) -> Vec<Removed> {
    let lists = all.iter_mut().enumerate();
    let removed = lists.flat_map(|(list, closed)| {
        let removed = std::mem::take(&mut closed.removed).into_iter();
        removed.map(move |(directory, name)| Removed { list, directory, name })
    });
    removed.collect()
}

fn put_strays_aside<'a>(
    directory: &Directory,
    strays: impl Iterator<Item = (&'a TopicPartition, TopicId)>,
) -> Result<(), StorageError> {
    for (name, topic) in strays {
        let mut log_dir = directory.lock();
        let folder =
            PartitionDir { name: name.to_string(), topic_partition: name.clone(), kind: DirKind::Current };
        if log_dir.topic_id(&folder)?.is_some_and(|found| found != topic) {
            continue;
        }
        if let Some(aside) = log_dir.rename_to_stray(name, random_uuid())? {
            let aside = aside.display();
            tracing::warn!(
                "the replicas of {name} are on other brokers now; the local directory was renamed to \
                 {aside}"
            );
        }
    }
    Ok(())
}

fn removal(name: &Arc<JournalPartition>) -> Entry {
    let leader_epoch = barnabas_base::LeaderEpoch::NONE;
    Entry { partition: Arc::clone(name), leader_epoch, kind: EntryKind::Remove }
}
