//! Appends of one replica: an offset for each batch at once, one write for all batches of a round.
//!
//! A round takes one of three ways to disk:
//! - *journal*: the batches go into the log's memory and into the directory's journal. They are written back into
//!   segments later.
//! - *direct*: a round that is large, or that has a batch too large for the journal, goes straight into the segment,
//!   behind all that is in memory. Its producers are answered once the segment is synced and the journal holds a
//!   `Range` that says so. Until all of the replica is durable that way, its other rounds go direct too, so that none
//!   overtakes.
//! - *segment*: with `log.ack.durability=written` there is no journal. Producers are answered after the write, or after
//!   a sync where `flush.messages` asks for one, as in Kafka's `UnifiedLog.append`.
//!
//! Always true:
//! 1. entries of a replica reach the journal in the order of its log
//! 2. after a write that failed, no producer of the round is answered with an offset, and the replica serves nothing
//!    until it is opened again from its log
//! 3. every segment but the first begins with a producer snapshot, where that could be written
//!
//! Produce path, core: shell/broker/src/worker/partition_worker.rs gives a batch, core/partition its offset,
//! core/storage the bytes' place. What a journal's full queue holds back: await_journal.rs.
//! After: `write_back`, shell/broker/src/log_dirs/journal_thread.rs.

pub(crate) mod await_journal;
pub(crate) mod await_metadata;
pub(crate) mod batch_info;
pub(crate) mod fetch_append;
pub(crate) mod write_back;

use std::sync::Arc;

use barnabas_base::Offset;
use barnabas_partition::{Acks, Append, BatchInfo, BatchKind, BatchSequence, Guard, Origin, Placed, Refusal};
use barnabas_storage::journal::{Entry, EntryKind};
use barnabas_storage::{AppendBytes, StorageError, Writer};
use barnabas_wire::records::{BatchHeader, ReadyBatch};

use crate::{Effect, LogEvent, Outbox, Replica, RequestError, Surroundings, batch_info, batch_sequence};

/// A larger batch never goes through the journal: half of the journal's largest round.
const ENTRY_BYTES_MAX: usize = 2 << 20;

/// What is known of a batch's transaction beside its bytes (KIP-890).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TxnVerification {
    /// Nothing: the batch may go on with a transaction that is open, or is part of none.
    #[default]
    Open,
    /// The transaction coordinator was asked, and agreed: the batch may begin one.
    Verified(Verified),
    /// The coordinator is not asked (`transaction.partition.verification.enable=false`, and the broker's own records).
    Waived,
    /// It is a marker of this transaction version, which its bytes do not say.
    Marker(i16),
}

/// What the coordinator's agreement rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// The replica that gave out the guard ([`Replica::number`]): one that was opened since does not know it.
    pub replica: u64,
    pub guard: Guard,
}

/// In whose name a batch is appended, as the directory's room counts it.
fn writer(origin: Origin) -> Writer {
    match origin {
        Origin::Client => Writer::Producer,
        Origin::Coordinator => Writer::Coordinator,
    }
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// It has its offsets and waits for the end of the round. `opens_round`: the first batch that does.
    InRound { records: u64, bytes: usize, opens_round: bool },
    /// A retry of a batch that is in the log: there is nothing to write.
    Duplicate,
}

impl Replica {
    /// Gives a batch its offsets and keeps it for the round's write.
    ///
    /// `admit`: whether the directory has room for so many bytes of this writer; they count as used then, until an
    /// [`Effect::Released`] or [`Effect::WroteBack`] says otherwise.
    ///
    /// # Errors
    /// Nothing was kept of the batch. Effects are to be carried out even so.
    pub fn append(
        &mut self,
        batch: ReadyBatch,
        verification: TxnVerification,
        append: Append,
        admit: impl FnOnce(usize, Writer) -> bool,
        around: &mut Surroundings<'_>,
    ) -> Result<Appended, RequestError> {
        let bytes = batch.size_bytes();
        if !admit(bytes, writer(append.origin)) {
            return Err(RequestError::Full);
        }
        let appended = self.append_admitted(batch, verification, append, around);
        if !matches!(appended, Ok(Appended::InRound { .. })) {
            around.outbox.effects.push(Effect::Released(bytes as u64));
        }
        appended
    }

    fn append_admitted(
        &mut self,
        mut batch: ReadyBatch,
        verification: TxnVerification,
        append: Append,
        around: &mut Surroundings<'_>,
    ) -> Result<Appended, RequestError> {
        if self.rolls_with(&batch, around.now.wall) {
            self.close_segment(around);
            if self.partition.is_failed() {
                return Err(RequestError::Storage);
            }
        }
        let (bytes, segment_bytes) = (batch.size_bytes(), self.log.config().segment_bytes);
        if bytes > segment_bytes as usize {
            around.outbox.log(LogEvent::BatchTooLarge { bytes, segment_bytes });
            return Err(RequestError::Storage);
        }
        let mut info = batch_info(batch.header(), || batch.to_bytes());
        let append = Append { verified: self.is_verified(&mut info, verification)?, ..append };
        let placed = self.partition.append(&info, &append, &mut around.outbox.decisions)?;
        let Placed::Write { base, leader_epoch } = placed else { return Ok(Appended::Duplicate) };
        batch.number(base, leader_epoch);
        let opens_round = self.round.is_empty();
        let bytes_of = AppendBytes::Split { header: batch.raw_header(), body: batch.body().clone() };
        self.round.push(bytes_of, around.lists);
        self.round.tickets.push(append.ticket);
        if append.acks != Acks::All {
            self.readers.promised_end = self.partition.log_end();
        }
        let records = u64::try_from(batch.header().record_count).unwrap_or(0);
        Ok(Appended::InRound { records, bytes, opens_round })
    }

    /// Whether the coordinator's agreement counts for this batch ([`Append::verified`]). A marker's version is noted.
    fn is_verified(&self, batch: &mut BatchInfo, verification: TxnVerification) -> Result<bool, Refusal> {
        match verification {
            TxnVerification::Open => Ok(false),
            TxnVerification::Waived => Ok(true),
            // It was opened again: as if another broker led it now.
            TxnVerification::Verified(verified) if verified.replica != self.number => Err(Refusal::NotLeader),
            TxnVerification::Verified(verified) => self.partition.is_verified(batch, &verified.guard),
            TxnVerification::Marker(version) => {
                if let BatchKind::Marker(marker) = &mut batch.kind {
                    marker.transaction_version = version;
                }
                Ok(true)
            }
        }
    }

    /// Writes the round's batches, if there are any.
    pub fn finish_round(&mut self, around: &mut Surroundings<'_>) {
        if self.round.is_empty() {
            return;
        }
        let is_large = self.round.bytes as u64 > around.durability.journal_append_bytes_max;
        if !around.durability.acks_are_synced {
            self.write_and_answer(around);
        } else if self.journal.direct_from.is_some() || is_large {
            self.write_direct(around);
        } else {
            self.stage_round(around);
        }
    }

    /// Keeps the round's batches in the log's memory, and hands them to the journal.
    fn stage_round(&mut self, around: &mut Surroundings<'_>) {
        let batches = std::mem::take(&mut self.round.batches);
        let staged = match self.log.stage(around.memory, &batches) {
            Ok(staged) => staged,
            Err(error) => {
                self.round.batches = batches;
                return self.write_failed(&error, around.outbox);
            }
        };
        around.outbox.effects.push(Effect::Appended { batches: batches.len() });
        around.lists.keep(batches);
        self.round.bytes = 0;
        self.round.tickets.clear();
        self.readers.unannounced_bytes += staged.bytes as i64;
        self.upkeep.is_changed = true;
        let leader_epoch = self.partition.leader_epoch();
        for piece in staged.records {
            let records = AppendBytes::Whole(piece.bytes);
            let kind = EntryKind::Records { from: piece.from, end: piece.end, records };
            around.entries.push(Entry { partition: Arc::clone(&self.name), leader_epoch, kind });
        }
        self.note_aborted(around);
    }

    /// Writes the round's batches into the segment, behind all that is in memory.
    fn write_direct(&mut self, around: &mut Surroundings<'_>) {
        match self.write_back_all(around) {
            Ok(()) => {}
            // The journal has its room already, whatever the segments lack.
            Err(error) if error.is_passing() && self.fits_journal() => return self.stage_round(around),
            Err(error) => return self.write_failed(&error, around.outbox),
        }
        let from = self.log.end();
        if self.write_to_segment(around) {
            self.journal.direct_from.get_or_insert(from);
            around.outbox.effects.extend([Effect::AppendedDirectly, Effect::Sync]);
        }
    }

    /// Whether each of the round's batches fits into a round of the journal, and no large append is under way.
    fn fits_journal(&self) -> bool {
        self.journal.direct_from.is_none()
            && self.round.batches.iter().all(|batch| batch.len() <= ENTRY_BYTES_MAX)
    }

    /// `log.ack.durability=written`: producers are answered once the bytes are in the page cache.
    fn write_and_answer(&mut self, around: &mut Surroundings<'_>) {
        let before = self.log.end();
        if !self.write_to_segment(around) {
            return;
        }
        let end = self.log.end();
        let flush = &mut self.flush;
        flush.unflushed += end.get() - before.get();
        flush.unflushed_since.get_or_insert(around.now.monotonic);
        flush.is_awaited |= flush.unflushed >= flush.messages_max;
        if flush.is_awaited {
            around.outbox.effects.push(Effect::Sync);
            return;
        }
        self.partition.synced(end, &mut around.outbox.decisions);
        around.outbox.effects.push(Effect::FlushLater);
    }

    /// Writes the round's batches into the segment. `false`: they are not there, and their producers are answered so.
    fn write_to_segment(&mut self, around: &mut Surroundings<'_>) -> bool {
        let batches = std::mem::take(&mut self.round.batches);
        let bytes = std::mem::take(&mut self.round.bytes) as u64;
        // Kept in memory for readers near the end, as what goes through the journal is.
        let written = self.log.append_kept(around.files, around.memory, &batches, around.now.wall);
        around.outbox.effects.push(Effect::Released(bytes));
        let appended = match written {
            Ok(appended) => appended,
            Err(error) => {
                self.round.batches = batches;
                self.write_failed(&error, around.outbox);
                return false;
            }
        };
        let effects = &mut around.outbox.effects;
        effects.push(Effect::Appended { batches: batches.len() });
        effects.push(Effect::WroteToSegment { end: appended.end, bytes: appended.bytes });
        self.note_written(&appended, batches.len(), effects);
        self.round.tickets.clear();
        around.lists.keep(batches);
        self.note_aborted(around);
        self.snapshot_if_due(around);
        true
    }

    /// The round's markers are in the log: the transaction index beside the segment is written now, to be synced with
    /// them.
    fn note_aborted(&mut self, around: &mut Surroundings<'_>) {
        // The markers of this round are among the decisions, if they have not been absorbed yet.
        self.absorb(around.outbox);
        for entry in self.round.aborted.drain(..) {
            if let Err(error) = self.log.append_aborted(around.files, entry) {
                around.outbox.log(LogEvent::AbortedNotNoted(error));
            }
        }
    }

    /// A new segment begins with the next batch, or might: writes what came before it, and then the state of producers
    /// there, as Kafka does, so that every segment has a snapshot at its beginning.
    pub(crate) fn close_segment(&mut self, around: &mut Surroundings<'_>) {
        self.finish_round(around);
        if self.partition.is_failed() {
            return;
        }
        // So that the segment is as full as it will be, and the next batch begins the next one.
        let _ = self.write_back_all(around);
        if let Err(error) = self.snapshot_producers(around.files, &mut around.outbox.effects) {
            // The next start pays for it: it reads further back.
            around.outbox.log(LogEvent::SnapshotNotWritten(error));
        }
    }

    /// Writes the state of producers down where a start would have to read much of the log for it.
    pub(crate) fn snapshot_if_due(&mut self, around: &mut Surroundings<'_>) {
        if self.round.is_empty() && self.log.snapshot_is_due(self.partition.producer_count()) {
            self.close_segment(around);
        }
    }

    /// The round's batches are not in the log: their producers are answered so, and the partition forgets them.
    ///
    /// The state machine has given out offsets that the log does not have. The replica fails, with all requests that
    /// wait in it, and is built again from the log ([`Effect::Reopen`]): retries find there what was written. An error
    /// that leaves the log in doubt fails the directory.
    pub(crate) fn write_failed(&mut self, error: &StorageError, outbox: &mut Outbox) {
        self.refuse_round(RequestError::Storage, outbox);
        if !leaves_log_as_it_was(error) {
            return self.directory_failed(error.clone(), outbox);
        }
        match error.is_passing() {
            true => outbox.effects.push(Effect::NoRoom(Box::new(error.clone()))),
            false => outbox.log(LogEvent::BatchesNotWritten(error.clone())),
        }
        self.partition.fail(&mut outbox.decisions);
        self.absorb(outbox);
        outbox.effects.extend([Effect::WakeReaders, Effect::Reopen]);
    }

    /// Serves nothing more: the directory has failed, or the replica is closed for good. Producers of the round are
    /// answered with `error`, those whose batches are in the log as of a failed directory.
    pub fn fail(&mut self, error: RequestError, outbox: &mut Outbox) {
        self.refuse_round(error, outbox);
        self.partition.fail(&mut outbox.decisions);
        self.absorb(outbox);
    }

    /// The round's batches are not written: their producers are answered so, and the room for them is given back.
    fn refuse_round(&mut self, error: RequestError, outbox: &mut Outbox) {
        let refused = |ticket| Effect::Answer { ticket, answer: Err(error) };
        outbox.effects.extend(self.round.tickets.drain(..).map(refused));
        let sequences = self.round.batches.drain(..).filter_map(|batch| sequence_of(&batch));
        outbox.effects.extend(sequences.map(Effect::NotWritten));
        self.round.aborted.clear();
        match std::mem::take(&mut self.round.bytes) {
            0 => {}
            bytes => outbox.effects.push(Effect::Released(bytes as u64)),
        }
    }

    /// The directory takes no more writes: nor does this replica.
    pub(crate) fn directory_failed(&mut self, error: StorageError, outbox: &mut Outbox) {
        self.log.fail();
        self.fail(RequestError::Storage, outbox);
        outbox.effects.push(Effect::DirectoryFailed(Box::new(error)));
    }

    /// The journal's round that holds everything below `end` is durable: so is that.
    pub fn journal_durable(&mut self, end: Offset, outbox: &mut Outbox) {
        if self.partition.is_failed() {
            return;
        }
        let end = end.min(self.partition.log_end());
        self.partition.synced(end, &mut outbox.decisions);
        if end == self.partition.log_end() {
            self.journal.direct_from = None;
        }
        self.follow_on(outbox);
    }

    /// More is durable, or a truncation is noted: a follower may fetch again.
    pub(crate) fn follow_on(&mut self, outbox: &mut Outbox) {
        if self.following.is_some() {
            self.truncation_noted();
            outbox.effects.push(Effect::FollowOn);
        }
    }
}

fn sequence_of(batch: &AppendBytes) -> Option<BatchSequence> {
    let header = match batch {
        AppendBytes::Whole(bytes) => &bytes[..],
        AppendBytes::Split { header, .. } => header,
    };
    BatchHeader::parse(header).ok().map(|header| batch_sequence(&header))
}

fn leaves_log_as_it_was(error: &StorageError) -> bool {
    matches!(
        error,
        StorageError::Full(_)
            | StorageError::Exhausted(_)
            | StorageError::OutOfOrder { .. }
            | StorageError::NotBatches(_)
            | StorageError::TooLargeForSegment { .. }
    )
}
