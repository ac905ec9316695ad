//! The thread that puts aside what is left of deleted partitions, once their owners have closed them.
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
/// checkpoints, which
/// name every partition of a directory, written for each handful.
const GATHER_FACTOR: u32 = 4;
const GATHER_MAX: Duration = Duration::from_millis(500);

/// # Errors
/// The system gives no thread.
pub fn start(node: Arc<Node>) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("deletions".to_owned()).spawn(move || {
        while let Some(all) = node.log_dirs.deleted.next() {
            let begun = barnabas_clock::now();
            put_aside(&node, &all);
            node.log_dirs.deleted.done(&all);
            node.log_dirs.deleted.gather((barnabas_clock::since(begun) * GATHER_FACTOR).min(GATHER_MAX));
        }
    })
}

fn put_aside(node: &Node, all: &[Closed]) {
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
                let path = directory.path.display();
                tracing::warn!(%error, "directories of deleted partitions could not be removed from \
                    {path}; the next start removes them");
                continue;
            }
        };
        for (path, topic) in aside {
            node.log_dirs.deletions.directory_later(at, path, due[&topic]);
        }
        let removed = all.iter().flat_map(|closed| &closed.removed).filter(|(directory, _)| *directory == at);
        let mut entries: Vec<Entry> = removed.map(|(_, name)| removal(name)).collect();
        directory.journal.submit(&mut entries);
    }
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
