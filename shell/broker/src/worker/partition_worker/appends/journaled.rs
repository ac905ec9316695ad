//! The journals' side of a worker: what waits for room in one, orders to write back, the cache of recent batches, and
//! what each round hands in. What a replica does about it is decided by core/replica's `append` and `write_back`.
//!
//! Neighbours: rounds.rs, which carries out effects; journal_thread.rs; core/replica/src/append/write_back.rs and
//! core/replica/src/append/await_journal.rs.

use crate::mailbox::WriteBackOrder;
use crate::mailbox::{AppendCommand, PartitionKey};
use crate::worker::partition_worker::PartitionWorker;
use barnabas_base::Offset;
use barnabas_replica::AwaitJournal;
use barnabas_storage::journal::{Entry, EntryKind, JournalPartition};
use barnabas_storage::{StorageError, TailMemory};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Bytes written back before the mailbox is looked at again, and how long that may take: small pieces of many
/// partitions are mostly files that are made.
const WRITE_BACK_TURN_BYTES: u64 = 1 << 20;
const WRITE_BACK_TURN: Duration = Duration::from_millis(2);

/// What a worker owes the journals and what they owe it.
#[derive(Debug, Default)]
pub struct Journaled {
    /// For each directory: entries of this round.
    pub entries: Vec<Vec<Entry>>,
    /// For each directory: partitions that are written back and synced as ordered.
    written_back: Vec<Vec<Arc<JournalPartition>>>,
    orders: VecDeque<WriteBackOrder>,
    /// The disk was full, or no file could be opened.
    postponed: Vec<WriteBackOrder>,
    /// Appends that wait for room, in their order.
    held: AwaitJournal<AppendCommand>,
    pub memory: TailMemory,
    /// What is in memory and in segments, oldest first.
    cached: VecDeque<(PartitionKey, Offset, u64)>,
    cached_bytes: u64,
}

impl Journaled {
    pub fn new(directories: usize, memory: TailMemory) -> Self {
        Self {
            memory,
            entries: (0..directories).map(|_| Vec::new()).collect(),
            written_back: (0..directories).map(|_| Vec::new()).collect(),
            ..Self::default()
        }
    }
}

impl PartitionWorker {
    /// Whether an append has to wait for room in a journal; it is kept then.
    pub fn hold(&mut self, append: AppendCommand) -> Option<AppendCommand> {
        let is_over = || self.node.log_dirs.directories.iter().any(|directory| directory.journal.is_over());
        if !self.journaled.held.must_wait(is_over) {
            return Some(append);
        }
        self.node.workers.meter.appends_held.one();
        let bytes = append.items.iter().map(|item| item.batch.size_bytes()).sum();
        self.journaled.held.hold(bytes, append);
        None
    }

    /// Whether the mailbox may be looked at.
    pub fn takes_commands(&self) -> bool {
        self.journaled.held.has_room()
    }

    /// Goes on with appends that had to wait.
    pub fn take_held(&mut self) {
        while let Some(append) = {
            let is_over =
                || self.node.log_dirs.directories.iter().any(|directory| directory.journal.is_over());
            self.journaled.held.next(is_over)
        } {
            self.append(append);
            // So that the next one sees what this one has handed in.
            self.finish_round();
        }
    }

    pub fn ordered_to_write_back(&mut self, orders: Vec<WriteBackOrder>) {
        self.journaled.orders.extend(orders);
    }

    /// Whether something is to be written back.
    pub fn has_orders(&self) -> bool {
        !self.journaled.orders.is_empty()
    }

    /// Writes back a piece of what was ordered. Returns whether there is more.
    pub fn write_back_some(&mut self) -> bool {
        let mut bytes = 0;
        let begun = barnabas_clock::now();
        while bytes < WRITE_BACK_TURN_BYTES
            && barnabas_clock::since(begun) < WRITE_BACK_TURN
            && let Some(order) = self.journaled.orders.pop_front()
        {
            bytes += self.write_back_ordered(order);
        }
        if bytes > 0 {
            self.recorder.cells().write_backs.record(barnabas_clock::since(begun).as_nanos() as u64);
        }
        self.submit();
        !self.journaled.orders.is_empty()
    }

    /// Whether a full disk, or a want of descriptors, keeps something from being written back.
    pub fn has_postponed(&self) -> bool {
        !self.journaled.postponed.is_empty()
    }

    pub fn retry_postponed(&mut self) {
        self.journaled.orders.extend(self.journaled.postponed.drain(..));
    }

    fn write_back_ordered(&mut self, order: WriteBackOrder) -> u64 {
        let key = order.key();
        let is_online = self.node.log_dirs.directories[order.directory].is_online();
        if is_online
            && self.node.log_dirs.unreplayed.has(order.directory, key)
            && !self.open_to_write_back(order.directory, key)
        {
            self.journaled.postponed.push(order);
            return 0;
        }
        match self.replicas.get(&key) {
            // Nothing of the directory is written back any more.
            _ if !is_online => return 0,
            Some(replica) if replica.directory == order.directory => {}
            // It has left this broker. Its directory lacks what is ordered, and is what a crash would find.
            None if self.node.log_dirs.deleted.is_partition_leaving(key) => {
                self.journaled.postponed.push(order);
                return 0;
            }
            // Deleted, or moved to another directory: there is nothing to write back.
            _ => {
                self.journaled.written_back[order.directory].push(order.partition);
                return 0;
            }
        }
        let (now, name) = (self.now(), Arc::clone(&order.partition));
        let done =
            self.step(key, now, |replica, around| replica.write_back_as_ordered(name, order.end, around));
        match done {
            Some(Ok(bytes)) => bytes,
            Some(Err(error)) if error.is_passing() => {
                self.journaled.postponed.push(order);
                0
            }
            Some(Err(_)) | None => 0,
        }
    }

    /// Brings all that is staged into the segments, in the page cache: before what works on segments alone.
    ///
    /// # Errors
    /// A full disk, with the log as it was; or the directory has failed, which is dealt with already.
    pub fn write_back_all(&mut self, key: PartitionKey) -> Result<(), StorageError> {
        let now = self.now();
        self.step(key, now, |replica, around| replica.write_back_all(around)).unwrap_or(Ok(()))
    }

    /// So many bytes below `end` are in memory and in the segments: keeps the cache of recent batches within its bound.
    pub fn cache(&mut self, key: PartitionKey, end: Offset, bytes: u64) {
        self.journaled.cached.push_back((key, end, bytes));
        self.journaled.cached_bytes += bytes;
        let bound = self.node.cache_share();
        while self.journaled.cached_bytes > bound
            && let Some((key, end, bytes)) = self.journaled.cached.pop_front()
        {
            self.journaled.cached_bytes -= bytes;
            if let Some(replica) = self.replicas.get_mut(&key) {
                replica.log.forget_below(end);
            }
        }
    }

    /// Answers the order to write back once the segments are synced that far; asks for the sync before.
    pub fn settle_write_back(&mut self, key: PartitionKey) {
        if let Some(replica) = self.replicas.get_mut(&key) {
            replica.settle_write_back(&mut self.effects);
            self.apply_effects(key);
        }
    }

    /// Says of large appends to the journal that they are synced.
    pub fn note_ranges(&mut self, key: PartitionKey) {
        let Self { replicas, journaled, .. } = self;
        if let Some(replica) = replicas.get_mut(&key) {
            let directory = replica.directory;
            replica.note_ranges(&mut journaled.entries[directory]);
        }
    }

    /// The partition has left the directory, durably: nothing of it is to be replayed there.
    pub fn journal_removed(&mut self, directory: usize, name: Arc<JournalPartition>) {
        let leader_epoch = barnabas_base::LeaderEpoch::NONE;
        let entry = Entry { partition: name, leader_epoch, kind: EntryKind::Remove };
        self.journaled.entries[directory].push(entry);
    }

    /// What this round has for the journal beside its records.
    pub fn journal_entry(&mut self, directory: usize, entry: Entry) {
        self.journaled.entries[directory].push(entry);
    }

    /// Completes an order without a sync of its own: the partition is closed, or another sync has covered it.
    pub fn written_back_otherwise(&mut self, directory: usize, partition: Arc<JournalPartition>) {
        self.journaled.written_back[directory].push(partition);
    }

    /// Hands the round to the journals. It may write the round itself where it is for one of them alone.
    pub fn submit_to_journals(&mut self) {
        let Self { id, journaled, node, .. } = self;
        let is_for_one = journaled.entries.iter().filter(|entries| !entries.is_empty()).count() == 1;
        let lists = journaled.entries.iter_mut().zip(&mut journaled.written_back);
        for (directory, (entries, written_back)) in node.log_dirs.directories.iter().zip(lists) {
            match is_for_one {
                true => directory.journal.submit_or_write(entries, *id),
                false => directory.journal.submit(entries),
            }
            directory.journal.written_back(written_back);
        }
    }

    /// Nothing of this directory is written back, or said to be, any more.
    pub fn forget_orders(&mut self, directory: usize) {
        self.journaled.orders.retain(|order| order.directory != directory);
        self.journaled.postponed.retain(|order| order.directory != directory);
        self.journaled.entries[directory].clear();
        self.journaled.written_back[directory].clear();
    }
}
