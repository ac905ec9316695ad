//! What the journal holds is written back into segments, and the journal is answered once that is synced.
//!
//! The journal orders a write-back when it wants to use a file again. The order is answered when the segments are
//! synced up to its end, or when the replica is gone. With large appends it is the other way round: they are in
//! segments first, and the journal is handed a `Range` once that is synced.
//!
//! Always true:
//! 1. an order to write back is answered once, when the segments are synced up to its end
//! 2. a `Range` is handed in only when the log is synced up to its end
//! 3. what the cache of recent batches forgets is in segments
//!
//! Neighbours: `append`, which stages; core/storage's `Log::write_back`;
//! shell/broker/src/worker/partition_worker/appends/journaled.rs, which takes the orders.

use std::sync::Arc;

use barnabas_base::{DurationMs, MonotonicMs, Offset};
use barnabas_storage::journal::{Entry, EntryKind, JournalPartition};
use barnabas_storage::{StorageError, SyncTicket};

use crate::{Effect, Outbox, Replica, Surroundings};

/// How long unsynced bytes that no producer waits for stay so, with `log.ack.durability=written`, unless `flush.ms` is
/// shorter.
const FLUSH_PAUSE: DurationMs = DurationMs(10_000);

/// What becomes of bytes that no producer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushStep {
    /// Everything is synced.
    Nothing,
    Sync,
    Later,
}

impl Replica {
    /// Writes what is in memory below `end` into segments, in the page cache. Returns how many bytes that was.
    ///
    /// # Errors
    /// A full disk, with the log unchanged; or the directory has failed. An effect reports either to the caller too.
    pub fn write_back(&mut self, end: Offset, around: &mut Surroundings<'_>) -> Result<u64, StorageError> {
        if self.log.segment_end() >= end {
            return Ok(0);
        }
        match self.log.write_back(around.files, end, around.now.wall) {
            Ok(written) => {
                let effects = &mut around.outbox.effects;
                effects.push(Effect::WroteBack { end: written.end, bytes: written.bytes });
                self.note_in_files(written.end, written.rolled, effects);
                Ok(written.bytes)
            }
            Err(error) if error.is_passing() => {
                around.outbox.effects.push(Effect::NoRoom(Box::new(error.clone())));
                Err(error)
            }
            Err(error) => {
                self.directory_failed(error.clone(), around.outbox);
                Err(error)
            }
        }
    }

    /// Writes all that is in memory into segments: before what works on segments alone.
    ///
    /// # Errors
    /// As [`Replica::write_back`].
    pub fn write_back_all(&mut self, around: &mut Surroundings<'_>) -> Result<(), StorageError> {
        self.write_back(self.log.end(), around).map(|_| ())
    }

    /// Carries out the journal's order. Returns how many bytes that was.
    ///
    /// # Errors
    /// As [`Replica::write_back`]. On a full disk the order is to be given again later.
    pub fn write_back_as_ordered(
        &mut self,
        order: Arc<JournalPartition>,
        end: Offset,
        around: &mut Surroundings<'_>,
    ) -> Result<u64, StorageError> {
        let end = end.min(self.log.end());
        let bytes = self.write_back(end, around)?;
        self.journal.write_back = Some((order, end));
        self.snapshot_if_due(around);
        self.settle_write_back(around.outbox);
        Ok(bytes)
    }

    /// Answers the journal's order once the segments are synced that far; asks for the sync before.
    pub fn settle_write_back(&mut self, outbox: &mut Outbox) {
        let synced = self.log.recovery_point();
        if let Some((order, _)) = self.journal.write_back.take_if(|(_, end)| *end <= synced) {
            outbox.effects.push(Effect::WriteBackDone(order));
        }
        outbox.effects.push(Effect::Sync);
    }

    /// The committer has synced what this replica handed in, up to `end`.
    pub fn synced(&mut self, ticket: SyncTicket, end: Offset, around: &mut Surroundings<'_>) {
        self.sync.is_in_flight = false;
        self.sync.forget_covered(&mut around.outbox.effects);
        let before = self.log.recovery_point();
        self.upkeep.is_changed |= self.log.mark_synced_to(ticket, end) > before;
        if around.durability.acks_are_synced {
            self.note_ranges(around.entries);
            self.settle_write_back(around.outbox);
        } else {
            self.flushed(around.now.monotonic, around.outbox);
        }
    }

    /// Hands the journal a `Range` for large appends that are synced now.
    pub fn note_ranges(&mut self, entries: &mut Vec<Entry>) {
        let synced = self.log.recovery_point();
        let Some(from) = self.journal.direct_from.as_mut().filter(|from| **from < synced) else { return };
        let kind = EntryKind::Range { from: *from, end: synced };
        *from = synced;
        let (partition, leader_epoch) = (Arc::clone(&self.name), self.partition.leader_epoch());
        entries.push(Entry { partition, leader_epoch, kind });
    }

    /// With `log.ack.durability=written`: a sync is done, and producers that waited for it are answered.
    fn flushed(&mut self, now: MonotonicMs, outbox: &mut Outbox) {
        let synced = self.log.recovery_point();
        let left = self.log.end().get() - synced.get();
        self.flush.unflushed = left;
        self.flush.unflushed_since = (left > 0).then_some(now);
        if !self.flush.is_awaited {
            return;
        }
        self.flush.is_awaited = left > 0;
        self.partition.synced(synced, &mut outbox.decisions);
        self.follow_on(outbox);
        outbox.effects.push(Effect::Sync);
    }

    /// Whether bytes that no producer waits for have waited long enough: `flush.ms`, ten seconds at most.
    pub fn flush_step(&self, now: MonotonicMs) -> FlushStep {
        match self.flush.unflushed_since {
            None => FlushStep::Nothing,
            Some(since) if now >= since.plus(self.flush.after.min(FLUSH_PAUSE)) => FlushStep::Sync,
            Some(_) => FlushStep::Later,
        }
    }
}
