//! Appends by way of the journal: kept in the log's tail in memory, made durable by the directory's journal thread, and brought
//! into segments later, when that thread says so.
//!
//! What one partition appends at once and is large goes another way: all that is staged is laid, the append goes straight into the
//! segment, and once that is synced a `Range` in the journal says so; its producers are answered when that is durable. Until
//! everything of the partition is, its other appends go the same way, so that nothing overtakes.
//!
//! Always true:
//! 1. entries of a partition reach the journal in the order of its log
//! 2. a `Range` is handed in only when the log is synced up to its end
//! 3. an order to lay is answered once, when the segments are synced up to its end, or when the partition is gone
//! 4. what the cache forgets is laid
//!
//! Neighbours: rounds.rs, which decides the way; journal_thread.rs; core/storage's `Log::stage` and `Log::lay`.

use super::PartitionWorker;
use super::rounds::{carry_out, keep_list};
use crate::journal_thread::LayOrder;
use crate::mailbox::{Command, PartitionKey};
use crate::node::Node;
use crate::replica::Hosted;
use barnabas_base::Offset;
use barnabas_storage::journal::{Entry, EntryKind, JournalPartition};
use barnabas_storage::{AppendBytes, StorageError, TailMemory};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes laid before the mailbox is looked at again, and how long that may take: small pieces of many partitions are mostly files
/// that are made.
const LAY_TURN_BYTES: u64 = 1 << 20;
const LAY_TURN: Duration = Duration::from_millis(2);
/// Bytes of appends that wait for the journal before the mailbox is left alone. Appends that are answered hold a share of the
/// node's memory budget meanwhile; this bound is for those that are not (`acks=0`).
const HELD_BYTES_MAX: usize = 32 << 20;

/// A batch that is larger never goes through the journal: half of its largest round.
const ENTRY_BYTES_MAX: usize = 2 << 20;

/// What a worker owes the journals and what they owe it.
#[derive(Debug, Default)]
pub(super) struct Journaled {
    /// For each directory: entries of this round.
    entries: Vec<Vec<Entry>>,
    /// For each directory: partitions that are laid and synced as ordered.
    laid: Vec<Vec<Arc<JournalPartition>>>,
    orders: VecDeque<LayOrder>,
    /// The disk was full, or no file could be opened.
    postponed: Vec<LayOrder>,
    /// Appends that wait for room, in their order.
    held: VecDeque<Command>,
    held_bytes: usize,
    pub(super) memory: TailMemory,
    /// What is in memory and in segments, oldest first.
    cached: VecDeque<(PartitionKey, Offset, u64)>,
    cached_bytes: u64,
}

impl Journaled {
    pub(super) fn new(directories: usize, memory: TailMemory) -> Self {
        Self {
            memory,
            entries: (0..directories).map(|_| Vec::new()).collect(),
            laid: (0..directories).map(|_| Vec::new()).collect(),
            ..Self::default()
        }
    }

    /// Keeps a partition's round in memory, for the journal to write. The round's list goes back to `lists`.
    pub(super) fn stage(
        &mut self,
        replica: &mut Hosted,
        node: &Node,
        lists: &mut Vec<Vec<AppendBytes>>,
    ) -> Result<(), StorageError> {
        let batches = std::mem::take(&mut replica.round.batches);
        let staged = replica.log.stage(&mut self.memory, &batches)?;
        node.meter.batches_appended.add(batches.len() as u64);
        keep_list(lists, batches);
        replica.round.bytes = 0;
        replica.round.tickets.clear();
        replica.readers.unannounced_bytes += staged.bytes as i64;
        replica.upkeep.is_changed = true;
        let leader_epoch = replica.partition.leader_epoch();
        let entries = &mut self.entries[replica.directory];
        for piece in staged.records {
            let records = AppendBytes::Whole(piece.bytes);
            let kind = EntryKind::Records { from: piece.from, end: piece.end, records };
            entries.push(Entry { partition: Arc::clone(&replica.name), leader_epoch, kind });
        }
        Ok(())
    }
}

impl PartitionWorker {
    /// Whether an append has to wait for room in a journal; it is kept then.
    pub(super) fn hold(&mut self, command: Command) -> Option<Command> {
        let Command::Append(append) = &command else { return Some(command) };
        let is_over = || self.node.directories.iter().any(|directory| directory.journal.is_over());
        if self.journaled.held.is_empty() && !is_over() {
            return Some(command);
        }
        self.node.meter.appends_held.one();
        self.journaled.held_bytes += append.items.iter().map(|item| item.batch.size_bytes()).sum::<usize>();
        self.journaled.held.push_back(command);
        None
    }

    /// Whether the mailbox may be looked at.
    pub fn takes_commands(&self) -> bool {
        self.journaled.held_bytes < HELD_BYTES_MAX
    }

    /// Goes on with appends that had to wait.
    pub fn take_held(&mut self) {
        while !self.journaled.held.is_empty()
            && !self.node.directories.iter().any(|directory| directory.journal.is_over())
        {
            let Some(Command::Append(append)) = self.journaled.held.pop_front() else { return };
            let bytes: usize = append.items.iter().map(|item| item.batch.size_bytes()).sum();
            self.journaled.held_bytes = self.journaled.held_bytes.saturating_sub(bytes);
            self.append(append);
            // So that the next one sees what this one has handed in.
            self.finish_round();
        }
    }

    /// Keeps the round's batches in memory and hands them to the journal.
    fn stage_round(&mut self, key: PartitionKey) {
        let Self { replicas, node, journaled, lists, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        match journaled.stage(replica, node, lists) {
            Ok(()) => self.note_aborted(key),
            Err(error) => self.write_failed(key, &error),
        }
    }

    /// Writes the round's batches into the segment, behind all that is staged.
    pub(super) fn write_direct(&mut self, key: PartitionKey) {
        match self.lay_all(key) {
            Ok(()) => {}
            // The journal has its room already, whatever the segments lack.
            Err(error) if error.is_passing() && self.fits_journal(key) => return self.stage_round(key),
            Err(error) => return self.write_failed(key, &error),
        }
        let from = self.replicas.get(&key).map_or(Offset::ZERO, |replica| replica.log.end());
        if !self.append_round(key) {
            return;
        }
        self.node.meter.direct_appends.one();
        if let Some(replica) = self.replicas.get_mut(&key) {
            replica.journal.direct_from.get_or_insert(from);
        }
        self.sync_now(key);
    }

    /// Whether each of the round's batches fits into a round of the journal, and no large append is under way.
    fn fits_journal(&self, key: PartitionKey) -> bool {
        let Some(replica) = self.replicas.get(&key) else { return false };
        replica.journal.direct_from.is_none()
            && replica.round.batches.iter().all(|batch| batch.len() <= ENTRY_BYTES_MAX)
    }

    /// A round of a journal is durable.
    pub(super) fn durable(&mut self, ends: Vec<(PartitionKey, Offset)>) {
        for (key, end) in ends {
            let Self { replicas, effects, tickets, following, .. } = self;
            // A partition that was deleted meanwhile has told its producers.
            let Some(replica) = replicas.get_mut(&key) else { continue };
            if replica.partition.is_failed() {
                continue;
            }
            let end = end.min(replica.partition.log_end());
            replica.partition.synced(end, &mut effects.decisions);
            if replica.journal.direct_from.is_some() && end == replica.partition.log_end() {
                replica.journal.direct_from = None;
            }
            if replica.following.is_some() {
                following.durable(replica);
            }
            carry_out(effects, tickets, Some(replica));
        }
        self.resume_readers();
    }

    pub(super) fn ordered_to_lay(&mut self, orders: Vec<LayOrder>) {
        self.journaled.orders.extend(orders);
    }

    /// Whether something is to be laid.
    pub fn has_orders(&self) -> bool {
        !self.journaled.orders.is_empty()
    }

    /// Lays a piece of what was ordered. Returns whether there is more.
    pub fn lay_some(&mut self) -> bool {
        let mut bytes = 0;
        let begun = Instant::now();
        while bytes < LAY_TURN_BYTES
            && begun.elapsed() < LAY_TURN
            && let Some(order) = self.journaled.orders.pop_front()
        {
            bytes += self.lay_ordered(order);
        }
        if bytes > 0 {
            self.recorder.cells().lays.record(begun.elapsed().as_nanos() as u64);
        }
        self.submit();
        !self.journaled.orders.is_empty()
    }

    /// Whether a full disk, or a want of descriptors, keeps something from being laid.
    pub fn has_postponed(&self) -> bool {
        !self.journaled.postponed.is_empty()
    }

    pub fn retry_postponed(&mut self) {
        self.journaled.orders.extend(self.journaled.postponed.drain(..));
    }

    fn lay_ordered(&mut self, order: LayOrder) -> u64 {
        let key = order.key();
        let is_online = self.node.directories[order.directory].is_online();
        if is_online && self.node.pending.has(order.directory, key) && !self.open_to_lay(order.directory, key)
        {
            self.journaled.postponed.push(order);
            return 0;
        }
        let end = match self.replicas.get(&key) {
            // Nothing of the directory is laid any more.
            _ if !is_online => return 0,
            Some(replica) if replica.directory == order.directory => order.end.min(replica.log.end()),
            // Deleted, or moved to another directory: there is nothing to lay.
            _ => {
                self.journaled.laid[order.directory].push(order.partition);
                return 0;
            }
        };
        match self.lay_up_to(key, end) {
            Ok(bytes) => {
                if let Some(replica) = self.replicas.get_mut(&key) {
                    replica.journal.write_back = Some((order.partition, end));
                }
                self.snapshot_if_due(key);
                self.settle_laid(key);
                bytes
            }
            Err(error) if error.is_passing() => {
                self.journaled.postponed.push(order);
                0
            }
            Err(_) => 0,
        }
    }

    /// Brings all that is staged into the segments, in the page cache: before what works on segments alone.
    ///
    /// # Errors
    /// A full disk, with the log as it was; or the directory has failed, which is dealt with already.
    pub(super) fn lay_all(&mut self, key: PartitionKey) -> Result<(), StorageError> {
        let Some(replica) = self.replicas.get(&key) else { return Ok(()) };
        let end = replica.log.end();
        self.lay_up_to(key, end).map(|_| ())
    }

    fn lay_up_to(&mut self, key: PartitionKey, end: Offset) -> Result<u64, StorageError> {
        let now = self.node.clock.wall();
        let Self { replicas, files, node, effects, .. } = self;
        let Some(replica) = replicas.get_mut(&key).filter(|replica| replica.log.laid_end() < end) else {
            return Ok(0);
        };
        let directory = replica.directory;
        match replica.log.lay(&mut files[directory], end, now) {
            Ok(laid) => {
                node.meter.lays.one();
                node.meter.laid_bytes.add(laid.bytes);
                node.directories[directory].room.settle(laid.bytes);
                replica.note_in_files(laid.end, laid.rolled, &mut effects.effects);
                self.apply_effects(key);
                self.cache(key, laid.end, laid.bytes);
                Ok(laid.bytes)
            }
            Err(error) if error.is_passing() => {
                node.directories[directory].room.hit(&error, node.clock.monotonic());
                Err(error)
            }
            Err(error) => {
                node.directory_failed(directory, &error);
                self.directory_failed(directory);
                Err(error)
            }
        }
    }

    /// So many bytes below `end` are in memory and in the segments: keeps the cache of recent batches within its bound.
    pub(super) fn cache(&mut self, key: PartitionKey, end: Offset, bytes: u64) {
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

    /// Answers the order to lay once the segments are synced that far; asks for the sync before.
    pub(super) fn settle_laid(&mut self, key: PartitionKey) {
        let Some(replica) = self.replicas.get_mut(&key) else { return };
        let synced = replica.log.recovery_point();
        if let Some((partition, _)) = replica.journal.write_back.take_if(|(_, end)| *end <= synced) {
            self.journaled.laid[replica.directory].push(partition);
        }
        self.sync_now(key);
    }

    /// The committer has synced what this partition handed in: says so of large appends.
    pub(super) fn note_ranges(&mut self, key: PartitionKey) {
        let Self { replicas, journaled, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let synced = replica.log.recovery_point();
        let Some(from) = replica.journal.direct_from.as_mut().filter(|from| **from < synced) else { return };
        let kind = EntryKind::Range { from: *from, end: synced };
        *from = synced;
        let leader_epoch = replica.partition.leader_epoch();
        let entry = Entry { partition: Arc::clone(&replica.name), leader_epoch, kind };
        journaled.entries[replica.directory].push(entry);
    }

    /// The partition has left the directory, durably: nothing of it is to be replayed there.
    pub(super) fn journal_removed(&mut self, directory: usize, name: Arc<JournalPartition>) {
        let leader_epoch = barnabas_base::LeaderEpoch::NONE;
        let entry = Entry { partition: name, leader_epoch, kind: EntryKind::Remove };
        self.journaled.entries[directory].push(entry);
    }

    /// What this round has for the journal beside its records.
    pub(super) fn journal_entry(&mut self, directory: usize, entry: Entry) {
        self.journaled.entries[directory].push(entry);
    }

    /// An order that is answered otherwise than by a sync: the partition is gone, or was synced by somebody else.
    pub(super) fn laid_otherwise(&mut self, directory: usize, partition: Arc<JournalPartition>) {
        self.journaled.laid[directory].push(partition);
    }

    /// Hands the round to the journals. It may write the round itself where it is for one of them alone.
    pub(super) fn submit_to_journals(&mut self) {
        let Self { id, journaled, node, .. } = self;
        let is_for_one = journaled.entries.iter().filter(|entries| !entries.is_empty()).count() == 1;
        let lists = journaled.entries.iter_mut().zip(&mut journaled.laid);
        for (directory, (entries, laid)) in node.directories.iter().zip(lists) {
            match is_for_one {
                true => directory.journal.submit_or_write(entries, *id),
                false => directory.journal.submit(entries),
            }
            directory.journal.laid(laid);
        }
    }

    /// Nothing of this directory is laid, or said to be, any more.
    pub(super) fn forget_orders(&mut self, directory: usize) {
        self.journaled.orders.retain(|order| order.directory != directory);
        self.journaled.postponed.retain(|order| order.directory != directory);
        self.journaled.entries[directory].clear();
        self.journaled.laid[directory].clear();
    }
}
