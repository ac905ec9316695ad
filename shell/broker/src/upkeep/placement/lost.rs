//! Replicas of a log directory that this node does not have any more, because its disk was replaced.
//!
//! Such a replica is empty now. If another replica has all acknowledged records, this one is created in
//! another directory and fetches from the leader. If none has, an empty replica would lose acknowledged
//! records, and only an operator may decide that.
//!
//! | the metadata log says | then |
//! |---|---|
//! | another broker leads; this one is not in ISR or ELR | assign a new directory; then open and follow |
//! | others are in the ISR or ELR, but none leads yet, or this broker is not registered yet | wait |
//! | no other replica is in the ISR or ELR | offline until the directory is back, or an unclean election |
//! | a directory of this node could not be read at the start | offline: it may be that one |
//!
//! Always true: the controller has removed the replica from ISR and ELR since this process registered. So an
//! empty replica neither acknowledges records nor wins an election, except an unclean one.
//!
//! Before: the registration, by which the controller knows which directories there are. After: locate.rs, which finds
//! the new place. node/log_dirs/lost.rs remembers what is not settled.
//!
//! Source: KIP-858; Kafka `LogManager.getOrCreateLog`, which creates every missing log while all directories are
//! online, even that of an only replica.

use super::reports;
use crate::log_dirs::directories::{Directories, Directory, is_reserved};
use crate::mailbox::PartitionKey;
use crate::node::Node;
use barnabas_base::{BrokerId, DirectoryId};
use barnabas_metadata::{Changes, Image, Partition as Row};
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Of many partitions, so many are named.
const NAMES_SAID: usize = 3;

/// What becomes of such a replica, as things are now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// It may be fetched from its leader.
    Refilled,
    /// The same, once the partition has a leader.
    Waits,
    /// No other replica has its records.
    Alone,
    /// It may lie in a directory that could not be read.
    Unread,
}

/// Whether the replica of this broker lies in a directory that is none of its own, by the metadata log.
pub fn is_lost(directories: &Directories, me: BrokerId, row: &Row) -> bool {
    let id = row.directory(me).filter(|id| !is_reserved(*id));
    id.is_some_and(|id| directories.by_id(id).is_none())
}

fn fate(node: &Node, row: &Row) -> Option<Fate> {
    let me = node.identity.broker_id;
    if !is_lost(&node.log_dirs.directories, me, row) {
        return None;
    }
    let is_unread = |directory: &Directory| directory.holds_partitions && !directory.is_known();
    let mut with_all = row.isr().iter().chain(row.elr());
    Some(if node.log_dirs.directories.iter().any(is_unread) {
        Fate::Unread
    } else if with_all.clone().all(|broker| *broker == me) {
        Fate::Alone
    } else if row.leader == BrokerId::NONE || row.leader == me || with_all.any(|broker| *broker == me) {
        Fate::Waits
    } else {
        Fate::Refilled
    })
}

/// The controller has judged what the former life of this broker left, by the directories of this one.
fn is_registered(node: &Node, image: &Image) -> bool {
    let known = image.cluster.broker(node.identity.broker_id);
    known.is_some_and(|broker| broker.incarnation == node.identity.incarnation)
}

/// An image is published: with the one that first knows this process, all of it is looked through, once.
pub fn look(node: &Node, image: &Image, changes: &Changes) {
    let lost = &node.log_dirs.lost;
    let concerns_me = changes.everything || changes.brokers.contains(&node.identity.broker_id);
    if !concerns_me || !is_registered(node, image) || lost.has_looked.swap(true, Ordering::AcqRel) {
        return;
    }
    let mut found: BTreeMap<(Fate, DirectoryId), Named> = BTreeMap::new();
    let mut keys = Vec::new();
    for topic in image.topics.iter() {
        for (partition, row) in topic.partitions() {
            let Some(fate) = fate(node, row) else { continue };
            let id = row.directory(node.identity.broker_id).unwrap_or_default();
            // In the log, those that wait count as refilled, as they will be.
            let said = if fate == Fate::Waits { Fate::Refilled } else { fate };
            found.entry((said, id)).or_default().add(|| format!("{}-{partition}", topic.name));
            if fate != Fate::Unread {
                keys.push(PartitionKey { topic: topic.id, partition });
            }
        }
    }
    found.iter().for_each(|((fate, id), named)| say(*fate, *id, named));
    lost.has_any.store(!keys.is_empty(), Ordering::Release);
    *lost.keys.lock().unwrap_or_else(PoisonError::into_inner) = keys;
    refill(node, image);
}

/// Once a second: tells the controller of new directories that the metadata log does not know yet.
pub fn watch(node: &Node) {
    if node.log_dirs.lost.has_any.load(Ordering::Acquire) {
        refill(node, &node.cluster.image.load_full());
    }
}

fn refill(node: &Node, image: &Image) {
    let lost = &node.log_dirs.lost;
    let mut keys = lost.keys.lock().unwrap_or_else(PoisonError::into_inner);
    let mut placed = Vec::new();
    keys.retain(|key| {
        let row = image.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
        let fate = row.and_then(|row| fate(node, row));
        if fate == Some(Fate::Refilled) {
            placed.extend(place(&node.log_dirs.directories, *key).map(|directory| (*key, directory)));
        }
        fate.is_some()
    });
    lost.has_any.store(!keys.is_empty(), Ordering::Release);
    drop(keys);
    reports::assign(node, &placed);
}

fn place(directories: &Directories, key: PartitionKey) -> Option<usize> {
    if directories.are_several() {
        return directories.place(key);
    }
    directories.iter().position(Directory::is_usable)
}

/// Partitions of one kind.
#[derive(Debug, Default)]
struct Named {
    count: u64,
    names: Vec<String>,
}

impl Named {
    fn add(&mut self, name: impl FnOnce() -> String) {
        self.count += 1;
        if self.names.len() < NAMES_SAID {
            self.names.push(name());
        }
    }
}

fn say(fate: Fate, id: DirectoryId, Named { count, names }: &Named) {
    let names = names.join(", ");
    match fate {
        Fate::Refilled | Fate::Waits => tracing::warn!(
            "{count} partitions (such as {names}) were in log directory {id} (directory.id in its \
             meta.properties), which is not among this node's. Other brokers have all their records, so \
             they are fetched again from the leaders. If that directory is missing from log.dirs by \
             mistake, add it and restart"
        ),
        Fate::Alone => tracing::error!(
            "{count} partitions (such as {names}) stay offline: they are in log directory {id} \
             (directory.id in its meta.properties), which is not among this node's, and no other broker \
             has all their records. If the directory can be restored, add it to log.dirs and restart. If \
             its data is lost, elect another replica, or restart the partition empty if this is the only \
             one: barnabas leader-election (or kafka-leader-election.sh) --bootstrap-server HOST:PORT \
             --election-type UNCLEAN --topic TOPIC --partition NUMBER"
        ),
        Fate::Unread => tracing::error!(
            "{count} partitions (such as {names}) stay offline: they are in log directory {id} \
             (directory.id in its meta.properties), which may be the one that could not be read at this \
             start. If the directory can be restored, restart. If its data is lost, partitions without \
             another replica can restart empty: barnabas leader-election (or kafka-leader-election.sh) \
             --bootstrap-server HOST:PORT --election-type UNCLEAN --topic TOPIC --partition NUMBER"
        ),
    }
}
