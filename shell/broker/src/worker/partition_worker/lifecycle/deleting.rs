//! Closing the partitions of deleted topics: a few in a turn, whatever their number.
//!
//! Before: changes.rs, which hears of the deletion. After: node/log_dirs/deleted.rs, whose thread puts their folders
//! aside. The order of the steps: core/replica/src/opening/stays.rs.

use crate::mailbox::{Declined, ImageChange, PartitionKey, WriteBackOrder};
use crate::node::log_dirs::deleted::{Closed, Then};
use crate::node::topic_settings;
use crate::node::workers::repeated::Repeated;
use crate::upkeep::replay;
use crate::worker::partition_worker::PartitionWorker;
use barnabas_base::{PartitionIndex, TopicId, TopicPartition};
use barnabas_metadata::TopicChange;
use barnabas_storage::journal::JournalPartition;
use std::sync::Arc;
use std::time::Duration;

/// How long a turn of closing takes, and by how much less the rest of the worker waits.
const TURN: Duration = Duration::from_millis(2);

/// A deleted topic's partitions of this worker: `closed.names` are all, those from `open` on may be open still.
#[derive(Debug)]
pub struct Deleting {
    closed: Closed,
    open: usize,
}

impl PartitionWorker {
    pub fn topic_deleted(&mut self, id: TopicId, topic: &TopicChange, change: &ImageChange) {
        self.node.log_dirs.compaction.candidates.topic_deleted(id);
        let (workers, me) = (self.node.workers.count, self.id);
        let is_mine = |partition: &PartitionIndex| {
            PartitionKey { topic: id, partition: *partition }.owner(workers) == me
        };
        let written = self.node.log_dirs.written.take(id, |partition| is_mine(&partition));
        let written = written.unwrap_or_else(|| {
            let before = change.before.topics.by_id(id);
            let count = before.map_or(0, |topic| topic.partition_count() as i32);
            (0..count).map(PartitionIndex).filter(is_mine).collect()
        });
        let name = |partition| TopicPartition { topic: topic.name.clone(), partition };
        let config = topic_settings::log_config(&self.node, &self.node.cluster.image.load(), &topic.name);
        let closed = Closed {
            topic: id,
            names: written.into_iter().map(name).collect(),
            removed: Vec::new(),
            then: Then::Deleted(self.node.clock.wall().plus(config.file_delete_delay_ms)),
        };
        self.deleting.push_back(Deleting { closed, open: 0 });
    }

    /// Closes some. Returns whether there are more.
    pub fn close_some_deleted(&mut self) -> bool {
        let begun = barnabas_clock::now();
        while let Some(Deleting { mut closed, mut open }) = self.deleting.pop_front() {
            while open < closed.names.len() {
                if barnabas_clock::since(begun) >= TURN {
                    self.deleting.push_front(Deleting { closed, open });
                    return true;
                }
                closed.removed.extend(self.close_deleted(closed.topic, &closed.names[open]));
                open += 1;
            }
            // What the round has for the journal comes before the word that they are gone.
            self.submit();
            self.node.log_dirs.deleted.closed(self.id, closed);
        }
        false
    }

    /// Before the node stops.
    pub fn close_all_deleted(&mut self) {
        while self.close_some_deleted() {}
    }

    /// Another broker has the replica now: this one's log is closed, and its files go.
    pub fn leave_replica(&mut self, key: PartitionKey, name: TopicPartition) {
        let delay = topic_settings::log_config(&self.node, &self.node.cluster.image.load(), &name.topic);
        if let Some(unsaid) = self.node.workers.repeated.happened_to(Repeated::ReplicaLeft, &*name.topic) {
            tracing::info!(partition = %name, "this broker no longer has a replica of the partition{unsaid}");
        }
        let then = Then::Deleted(self.node.clock.wall().plus(delay.file_delete_delay_ms));
        self.give_up_replica(key, name, then);
    }

    /// The start found files of a partition whose replicas others have, since this node was down: its log is closed and
    /// put aside.
    pub fn put_stray_aside(&mut self, key: PartitionKey) {
        let image = self.node.cluster.image.load_full();
        let topic = image.topics.by_id(key.topic);
        let Some((topic, row)) = topic.and_then(|topic| Some((topic, topic.partition(key.partition)?)))
        else {
            return;
        };
        if self.closed || row.has_replica(self.node.identity.broker_id) || self.is_leaving(key) {
            return;
        }
        // What only the journal holds of it comes along, where that can be.
        if !self.node.log_dirs.unreplayed.find(key).is_empty() {
            let _ = self.open_known(key);
        }
        if self.replicas.contains_key(&key) && self.write_back_all(key).is_err() {
            return;
        }
        let name = TopicPartition { topic: topic.name.clone(), partition: key.partition };
        self.give_up_replica(key, name, Then::Stray);
    }

    /// Whether the last stay of a replica on this broker is not over: another one does not begin before that.
    pub fn is_leaving(&self, key: PartitionKey) -> bool {
        self.leaving.is_leaving(key) || self.node.log_dirs.deleted.is_partition_leaving(key)
    }

    fn give_up_replica(&mut self, key: PartitionKey, name: TopicPartition, then: Then) {
        let mut removed = self.close_deleted(key.topic, &name);
        if removed.is_empty() {
            removed = self.journaled_unopened(key.topic, &name);
        }
        for (directory, _) in &removed {
            self.begin_leaving(key, *directory);
        }
        self.following.forget(key);
        self.node.peers.replication.isr.withdraw(key);
        // What the round has for the journal comes before the word that it is gone.
        self.submit();
        self.node.log_dirs.deleted.left(Closed { topic: key.topic, names: vec![name], removed, then });
    }

    /// The journal of that directory gets a removal, and the replica is not opened before that is durable.
    pub(super) fn begin_leaving(&mut self, key: PartitionKey, directory: usize) {
        if self.node.log_dirs.directories[directory].is_usable() {
            self.leaving.begin(key, directory);
        }
    }

    /// What the journal of that directory holds of the replica is of a log that is over: its folder is gone, durably.
    pub(super) fn end_stay(&mut self, key: PartitionKey, directory: usize, name: Arc<JournalPartition>) {
        self.begin_leaving(key, directory);
        self.journal_removed(directory, name);
    }

    /// A replica that is not open may have been: any journal may still hold some of it.
    fn journaled_unopened(
        &self,
        topic: TopicId,
        name: &TopicPartition,
    ) -> Vec<(usize, Arc<JournalPartition>)> {
        let name = Arc::new(JournalPartition { topic_id: topic, topic_partition: name.clone() });
        let directories = self.node.log_dirs.directories.iter().enumerate();
        let journaled = directories.filter(|(_, each)| each.is_usable() && each.journal.life().is_some());
        journaled.map(|(at, _)| (at, Arc::clone(&name))).collect()
    }

    /// Closes a deleted partition. Returns the journals that may hold some of it, and its name there, to report once
    /// its folder is quarantined.
    fn close_deleted(
        &mut self,
        topic: TopicId,
        name: &TopicPartition,
    ) -> Vec<(usize, Arc<JournalPartition>)> {
        let key = PartitionKey { topic, partition: name.partition };
        if self.failed.remove(&key) {
            self.node.log_dirs.impaired.healed(key);
        }
        replay::forget_aside(&self.node.log_dirs.directories, name, key.topic);
        let waiting = self.forget_waiting(key).into_iter();
        let mut removed: Vec<_> =
            waiting.map(|(directory, replay)| (directory, replay.partition.clone())).collect();
        let Self { replicas, effects, files, node, .. } = self;
        let mut unanswered = None;
        if let Some(mut replica) = replicas.remove(&key) {
            let directory = replica.directory;
            let unwritten = replica.round.size_bytes() + replica.log.staged_bytes();
            node.log_dirs.directories[directory].room.settle(unwritten);
            replica.replica.fail(Declined::Unknown, effects);
            replica.wake_all();
            replica.log.abandon(&mut files[directory]);
            let order = replica.journal.write_back.take();
            unanswered = order.map(|(partition, end)| WriteBackOrder { directory, partition, end });
            if self.node.log_dirs.acks_are_synced {
                removed.push((directory, replica.replica.name));
            }
            self.apply_effects(key);
        }
        // Answered once its directory is renamed: until then a crash would find that, and needs the journal.
        self.ordered_to_write_back(unanswered.into_iter().collect());
        removed
    }
}
