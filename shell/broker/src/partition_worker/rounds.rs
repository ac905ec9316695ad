//! The end of a round: one write for each touched partition, one submission for each directory, and what comes back from
//! the committer.

use super::{FLUSH_PAUSE, PartitionWorker};
use crate::committer::Synced;
use crate::mailbox::{Declined, PartitionKey};
use crate::replica::Hosted;
use crate::tickets::Tickets;
use barnabas_base::Offset;
use barnabas_partition::Effect as Decision;
use barnabas_replica::{Effect, Outbox};
use barnabas_storage::{AppendBytes, Dirty, StorageError};

/// Lists of batches that are kept for the next round, and how many batches each may have room for: together a few MiB.
const LISTS_MAX: usize = 1024;
const LIST_BATCHES_MAX: usize = 16;

impl PartitionWorker {
    /// Writes what this round's commands appended and hands in what must be synced.
    pub fn finish_round(&mut self) {
        self.take_early();
        self.moment = None;
        if !self.touched.is_empty() {
            self.node.meter.append_rounds.one();
            let mut touched = std::mem::take(&mut self.touched);
            for key in touched.drain(..) {
                self.write_round(key);
            }
            self.touched = touched;
        }
        self.resume_readers();
        self.submit();
    }

    fn write_round(&mut self, key: PartitionKey) {
        let Self { replicas, node, journaled, lists, .. } = self;
        let Some(replica) = replicas.get_mut(&key).filter(|replica| !replica.round.is_empty()) else {
            return;
        };
        let is_large = || replica.round.bytes as u64 > node.journal_append_bytes_max;
        if !node.acks_are_synced {
            self.write_and_answer(key);
        } else if replica.journal.direct_from.is_some() || is_large() {
            self.write_direct(key);
        } else {
            match journaled.stage(replica, node, lists) {
                Ok(()) if replica.round.aborted.is_empty() => {}
                Ok(()) => self.note_aborted(key),
                Err(error) => self.write_failed(key, &error),
            }
        }
    }

    /// `log.ack.durability=written`: producers are answered as soon as the bytes are in the page cache, but where
    /// `flush.messages` asks for a sync first, as in Kafka's `UnifiedLog.append`.
    fn write_and_answer(&mut self, key: PartitionKey) {
        let before = self.replicas.get(&key).map_or(Offset::ZERO, |replica| replica.log.end());
        if !self.append_round(key) {
            return;
        }
        let now = self.node.clock.monotonic();
        let Self { replicas, effects, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let end = replica.log.end();
        replica.flush.unflushed += end.get() - before.get();
        replica.flush.unflushed_since.get_or_insert(now);
        replica.flush.is_awaited |= replica.flush.unflushed >= replica.flush.messages_max;
        if replica.flush.is_awaited {
            self.sync_now(key);
            return;
        }
        replica.partition.synced(end, &mut effects.decisions);
        self.apply_effects(key);
        self.flush_later(key);
    }

    fn flush_later(&mut self, key: PartitionKey) {
        let Some(replica) = self.replicas.get_mut(&key) else { return };
        if !replica.is_lazy {
            replica.is_lazy = true;
            self.lazy.push(key);
        }
    }

    /// Their markers are in the log; the index beside the segment is written now, to be synced with them.
    pub(super) fn note_aborted(&mut self, key: PartitionKey) {
        let Self { replicas, files, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let files = &mut files[replica.directory];
        for entry in std::mem::take(&mut replica.round.aborted) {
            if let Err(error) = replica.log.append_aborted(files, entry) {
                let name = &replica.name.topic_partition;
                tracing::error!(partition = %name, %error, "aborted transaction was not noted; its records may be read");
            }
        }
    }

    /// Writes the round's batches into the segment. `false`: they are not there, and their producers know it.
    pub(super) fn append_round(&mut self, key: PartitionKey) -> bool {
        let now = self.node.clock.wall();
        let Self { replicas, files, node, journaled, lists, effects, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return false };
        let batches = std::mem::take(&mut replica.round.batches);
        let directory = replica.directory;
        let bytes = std::mem::take(&mut replica.round.bytes) as u64;
        let files = &mut files[directory];
        // Kept for readers near the end, as what goes through the journal is.
        let written = replica.log.append_kept(files, &mut journaled.memory, &batches, now);
        node.directories[directory].room.settle(bytes);
        match written {
            Ok(appended) => {
                node.meter.batches_appended.add(batches.len() as u64);
                node.directories[replica.directory].wrote(appended.bytes);
                replica.note_written(&appended, batches.len(), &mut effects.effects);
                replica.round.tickets.clear();
                keep_list(lists, batches);
                self.apply_effects(key);
                self.note_aborted(key);
                self.cache(key, appended.end, appended.bytes);
                self.snapshot_if_due(key);
                true
            }
            Err(error) => {
                self.write_failed(key, &error);
                false
            }
        }
    }

    /// A new segment begins with the next batch, or might: writes what came before it, then what is known of producers there, as Kafka
    /// does, so that every segment has a snapshot at its beginning.
    pub(super) fn close_segment(&mut self, key: PartitionKey) {
        self.write_round(key);
        // So that the segment is as full as it will be, and the next batch begins the next one.
        let _ = self.lay_all(key);
        let Self { replicas, files, effects, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let directory = replica.directory;
        if let Err(error) = replica.snapshot_producers(&mut files[directory], &mut effects.effects) {
            // Only the next start pays for it: it reads further back.
            let name = &replica.name.topic_partition;
            tracing::warn!(partition = %name, %error, "producer snapshot was not written; the next start reads more of the log");
        }
        self.apply_effects(key);
    }

    /// Writes down what is known of producers where a start would have to read much for it.
    pub(super) fn snapshot_if_due(&mut self, key: PartitionKey) {
        let is_due = |replica: &&Hosted| {
            replica.round.is_empty() && replica.log.snapshot_is_due(replica.partition.producer_count())
        };
        if self.replicas.get(&key).filter(is_due).is_some() {
            self.close_segment(key);
        }
    }

    /// Hands what is in files and unsynced to the committer, unless something of the partition is there already.
    pub(super) fn sync_now(&mut self, key: PartitionKey) {
        let Some(replica) = self.replicas.get_mut(&key) else { return };
        let directory = replica.directory;
        if let Some(request) = replica.take_request(self.id) {
            self.submissions[directory].push(request);
        }
    }

    /// The round's batches are not in the log: their producers are told, and the partition forgets them.
    pub(super) fn write_failed(&mut self, key: PartitionKey, error: &StorageError) {
        let Self { replicas, tickets, effects, node, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        for ticket in replica.round.tickets.drain(..) {
            tickets.answer(ticket, Err(Declined::Storage));
        }
        replica.round.batches.clear();
        replica.round.aborted.clear();
        let unwritten = std::mem::take(&mut replica.round.bytes) as u64;
        node.directories[replica.directory].room.settle(unwritten);
        let as_it_was = matches!(
            error,
            StorageError::Full(_)
                | StorageError::Exhausted(_)
                | StorageError::OutOfOrder { .. }
                | StorageError::NotBatches(_)
                | StorageError::TooLargeForSegment { .. }
        );
        if as_it_was {
            if error.is_passing() {
                node.directories[replica.directory].room.hit(error, node.clock.monotonic());
            } else {
                tracing::error!(partition = %replica.log.place().topic_partition, %error, "batches were not written, and their producers were told");
            }
            // The state machine has given out offsets that are not in the log. It is dropped with everybody who waits in
            // it (their retries find what was written), and made anew from the log when it is next asked for.
            replica.partition.fail(&mut effects.decisions);
            replica.waiters.wake_all();
            self.apply_effects(key);
            self.let_go(key);
        } else {
            let directory = replica.directory;
            node.directory_failed(directory, error);
            self.directory_failed(directory);
        }
    }

    /// Drops a partition that is made anew from its log. What of it is in files is synced first: an order to lay may rest on that.
    pub(super) fn let_go(&mut self, key: PartitionKey) {
        if self.lay_all(key).is_err() {
            // What is staged alone would be lost with it. It stays, and refuses everything.
            return;
        }
        let Some(mut replica) = self.replicas.remove(&key) else { return };
        let directory = replica.directory;
        let of = &self.node.directories[directory];
        let sync = |dirty: Dirty| dirty.sync(&*of.disk, of.file_system.as_ref()).map_err(StorageError::from);
        // A ticket that is out may not be synced yet, and nobody would wait for it.
        let noted = match replica.sync.is_in_flight {
            true => replica.log.note_unsynced_again(&mut self.files[directory]),
            false => Ok(()),
        };
        let synced = noted.and_then(|()| replica.log.take_dirty().map_or(Ok(()), sync));
        if let Err(error) = synced {
            self.node.directory_failed(directory, &error);
            self.directory_failed(directory);
        } else if let Some((partition, _)) = replica.journal.write_back.take() {
            self.laid_otherwise(directory, partition);
        }
    }

    /// Hands in what has waited long enough with `log.ack.durability=written`: `flush.ms`, or our own time.
    pub fn flush_lazy(&mut self) {
        let now = self.node.clock.monotonic();
        for key in std::mem::take(&mut self.lazy) {
            let Some(replica) = self.replicas.get_mut(&key) else { continue };
            replica.is_lazy = false;
            let Some(since) = replica.flush.unflushed_since else { continue };
            if now >= since.plus(replica.flush.after.min(FLUSH_PAUSE)) {
                self.sync_now(key);
            } else {
                self.flush_later(key);
            }
        }
        self.submit();
    }

    pub(super) fn submit(&mut self) {
        for (directory, requests) in self.submissions.iter_mut().enumerate() {
            if !requests.is_empty() {
                self.node.directories[directory].committer.submit(requests);
            }
        }
        self.submit_to_journals();
    }

    /// What the committer has made durable.
    pub(super) fn synced(&mut self, synced: Synced) {
        for (key, ticket, end) in synced.tickets {
            let Some(replica) = self.replicas.get_mut(&key) else { continue };
            replica.end_sync();
            replica.end_request();
            let before = replica.log.recovery_point();
            replica.upkeep.is_changed |= replica.log.mark_synced_to(ticket, end) > before;
            if self.node.acks_are_synced {
                self.note_ranges(key);
                self.settle_laid(key);
            } else {
                self.flushed(key);
            }
        }
        self.resume_readers();
    }

    /// With `log.ack.durability=written`: a sync is done; who waited for it is answered.
    fn flushed(&mut self, key: PartitionKey) {
        let now = self.node.clock.monotonic();
        let Self { replicas, effects, following, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let synced = replica.log.recovery_point();
        let left = replica.log.end().get() - synced.get();
        replica.flush.unflushed = left;
        replica.flush.unflushed_since = (left > 0).then_some(now);
        if !replica.flush.is_awaited {
            return;
        }
        replica.flush.is_awaited = left > 0;
        replica.partition.synced(synced, &mut effects.decisions);
        if replica.following.is_some() {
            following.durable(replica);
        }
        self.apply_effects(key);
        self.sync_now(key);
    }

    /// Carries out what a partition decided.
    pub(crate) fn apply_effects(&mut self, key: PartitionKey) {
        if !self.effects.is_empty() {
            let Self { replicas, tickets, effects, .. } = self;
            carry_out(effects, tickets, replicas.get_mut(&key));
        }
    }

    /// Ends the waits whose time has run out.
    pub fn expire(&mut self) {
        let now = self.node.clock.monotonic();
        for key in std::mem::take(&mut self.awaited) {
            let Self { replicas, effects, .. } = self;
            let Some(replica) = replicas.get_mut(&key) else { continue };
            replica.partition.expire(now, &mut effects.decisions);
            replica.is_awaited = replica.partition.waiting() > 0;
            if replica.is_awaited {
                self.awaited.push(key);
            }
            self.apply_effects(key);
        }
    }
}

/// Gives a round's list back for the next round.
pub(super) fn keep_list(lists: &mut Vec<Vec<AppendBytes>>, mut list: Vec<AppendBytes>) {
    list.clear();
    if lists.len() < LISTS_MAX && list.capacity() <= LIST_BATCHES_MAX {
        lists.push(list);
    }
}

/// Carries out what a replica asks for. Where it is gone, its producers are answered still.
pub(super) fn carry_out(outbox: &mut Outbox, tickets: &mut Tickets, hosted: Option<&mut Hosted>) {
    let Some(hosted) = hosted else {
        outbox.effects.clear();
        for decision in outbox.decisions.drain(..) {
            if let Decision::Answer { ticket, answer } = decision {
                tickets.answer(ticket, answer.map_err(Declined::Refused));
            }
        }
        return;
    };
    hosted.replica.absorb(outbox);
    for effect in outbox.effects.drain(..) {
        match effect {
            Effect::Answer { ticket, answer } => tickets.answer(ticket, answer),
            Effect::Readable { bytes, committed } => hosted.arrived(bytes, committed),
            // Seen by whoever caused it (followers.rs).
            Effect::AlterIsr => {}
            Effect::SyncCovers(end) => hosted.extend_request(end),
            Effect::SyncEnds => hosted.end_request(),
        }
    }
}
