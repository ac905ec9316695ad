//! Replicas of a log directory that this node does not have any more: what core/log-dirs decides of each
//! (core/log-dirs/src/lost.rs), logged and carried out.
//!
//! Always true: the controller has removed the replica from ISR and ELR since this process registered. So an
//! empty replica neither acknowledges records nor wins an election, except an unclean one.
//!
//! Before: the registration, by which the controller knows which directories there are. After: locate.rs, which finds
//! the new place. node/log_dirs/lost.rs remembers what is not settled.

use super::reports;
use crate::log_dirs::directories::{Directories, Directory};
use crate::mailbox::PartitionKey;
use crate::node::Node;
use barnabas_base::{BrokerId, DirectoryId};
use barnabas_log_dirs::lost::{Fate, Own};
use barnabas_metadata::{Changes, Image, Partition as Row};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Asks with this node's directories.
fn with_own<T>(directories: &Directories, me: BrokerId, ask: impl FnOnce(Own<'_>) -> T) -> T {
    let has = |id: DirectoryId| directories.by_id(id).is_some();
    let is_unread = |directory: &Directory| directory.holds_partitions && !directory.is_known();
    ask(Own { me, has: &has, some_unread: directories.iter().any(is_unread) })
}

/// Whether the replica of this broker lies in a directory that is none of its own, by the metadata log.
pub fn is_lost(directories: &Directories, me: BrokerId, row: &Row) -> bool {
    let has = |id: DirectoryId| directories.by_id(id).is_some();
    Own { me, has: &has, some_unread: false }.is_lost(row)
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
    let me = node.identity.broker_id;
    let found = with_own(&node.log_dirs.directories, me, |own| own.look(image));
    for ((fate, id), named) in &found.found {
        let text = fate.said(*id, named);
        if fate.is_refilled() {
            tracing::warn!("{text}");
        } else {
            tracing::error!("{text}");
        }
    }
    lost.has_any.store(!found.keys.is_empty(), Ordering::Release);
    *lost.keys.lock().unwrap_or_else(PoisonError::into_inner) = found.keys;
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
        let (directories, me) = (&node.log_dirs.directories, node.identity.broker_id);
        let fate = row.and_then(|row| with_own(directories, me, |own| own.fate(row)));
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
