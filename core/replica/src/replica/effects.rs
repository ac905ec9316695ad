//! What a step needs beside the replica, what a replica asks its caller to do, and why a request was not served.
//!
//! Effects are carried out before the next step of the same replica.
//!
//! Neighbours: shell/broker/src/worker/partition_worker/appends/rounds.rs carries them out.

use std::sync::Arc;

use barnabas_base::{ErrorCode, MonotonicMs, Offset, TimestampMs};
use barnabas_partition::{Acked, BatchSequence, Effect as Decision, Refusal, Ticket};
use barnabas_storage::journal::{Entry, JournalPartition};
use barnabas_storage::{FilePool, StorageError, TailMemory};

use crate::BatchLists;

/// What a step that writes needs beside the replica.
#[derive(Debug)]
pub struct Surroundings<'a> {
    pub now: Moment,
    pub durability: Durability,
    /// Of the replica's log directory.
    pub files: &'a mut FilePool,
    pub memory: &'a mut TailMemory,
    /// What the directory's journal writes next.
    pub entries: &'a mut Vec<Entry>,
    pub lists: &'a mut BatchLists,
    pub outbox: &'a mut Outbox,
}

/// Both clocks, read once for many steps.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub wall: TimestampMs,
    pub monotonic: MonotonicMs,
}

/// When an append counts as safe, by the broker's configuration.
#[derive(Debug, Clone, Copy)]
pub struct Durability {
    /// `log.ack.durability=synced`: there are journals. Otherwise it is `written`.
    pub acks_are_synced: bool,
    /// `log.journal.append.bytes.max`: a larger round goes straight into the segment.
    pub journal_append_bytes_max: u64,
}

/// What the steps of replicas push, in a place that is reused from step to step.
#[derive(Debug, Default)]
pub struct Outbox {
    /// What the partition decided: [`Replica::absorb`](crate::Replica::absorb) turns it into effects.
    pub decisions: Vec<Decision>,
    pub effects: Vec<Effect>,
}

impl Outbox {
    pub fn is_empty(&self) -> bool {
        self.decisions.is_empty() && self.effects.is_empty()
    }

    pub(crate) fn log(&mut self, event: LogEvent) {
        self.effects.push(Effect::Log(Box::new(event)));
    }
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Answer the producer that holds this ticket.
    Answer {
        ticket: Ticket,
        answer: Result<Acked, RequestError>,
    },
    /// A batch of the round is not written. Its producer will send it again, and the partition, opened from its log,
    /// may not remember that producer.
    NotWritten(BatchSequence),
    /// So many more bytes can be read: fetches that wait for them may go on.
    Readable {
        bytes: i64,
        committed: Committed,
    },
    /// The in-sync replicas should change: send AlterPartition
    /// ([`isr_change`](barnabas_partition::Partition::isr_change)).
    AlterIsr,
    /// The sync that was handed in, and has not begun, covers the files up to here.
    SyncCovers(Offset),
    /// The sync that was handed in covers no more than it did then: a new file was begun.
    SyncEnds,
    /// Hand what is unsynced to the committer ([`Replica::take_sync`](crate::Replica::take_sync)).
    Sync,
    /// Unsynced bytes that no producer waits for: ask again later whether they are to be synced
    /// ([`Replica::flush_step`](crate::Replica::flush_step)).
    FlushLater,
    /// So many batches are in the log now.
    Appended {
        batches: usize,
    },
    /// Among them large ones, which do not go through the journal.
    AppendedDirectly,
    /// So many bytes below `end` were written into the segment by an append. They are in memory too.
    WroteToSegment {
        end: Offset,
        bytes: u64,
    },
    /// So many bytes below `end` were written back from memory into segments. The room for them is used now. They are
    /// in memory still.
    WroteBack {
        end: Offset,
        bytes: u64,
    },
    /// The journal's order to write back is done.
    WriteBackDone(Arc<JournalPartition>),
    /// Room in the directory that was admitted for so many bytes is not needed any more, or is used.
    Released(u64),
    /// A write found no room, or no descriptor. The replica is as it was.
    NoRoom(Box<StorageError>),
    /// A write has failed for good: the directory goes offline with all its replicas.
    DirectoryFailed(Box<StorageError>),
    /// A read met this error: damage is to be noted, with the partition's owner and with the operator.
    ReadFailed(Box<StorageError>),
    /// Fetches of consumers may look again: the replica serves nothing more.
    WakeReaders,
    /// The state machine is ahead of the log: drop the replica, and open it again when it is next asked for.
    Reopen,
    /// More is durable, or a truncation is noted: fetch again for this follower.
    FollowOn,
    Log(Box<LogEvent>),
}

/// What an operator should read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogEvent {
    /// Debug: the producer was refused.
    BatchTooLarge { bytes: usize, segment_bytes: u32 },
    /// Warning: the next start reads more of the log.
    SnapshotNotWritten(StorageError),
    /// Error: records of an aborted transaction may be read.
    AbortedNotNoted(StorageError),
    /// Error: producers were refused.
    BatchesNotWritten(StorageError),
}

/// What more can be read by consumers with `isolation.level=read_committed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    Nothing,
    Bytes(i64),
    /// An open transaction ended. How many bytes lie behind it is not counted.
    Unknown,
}

/// Why a partition did not do what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestError {
    /// The partition's own refusal.
    Refused(Refusal),
    /// The topic is not known (any more).
    Unknown,
    /// Storage failed.
    Storage,
    /// The log directory has no room: it may have some soon.
    Full,
    /// What was asked for is damaged. Other offsets can be read.
    Damaged,
}

impl RequestError {
    /// The code that Kafka's clients know it by.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::Unknown => ErrorCode::UnknownTopicOrPartition,
            Self::Storage | Self::Full => ErrorCode::KafkaStorageError,
            // Clients retry KAFKA_STORAGE_ERROR for ever without a word; this one reaches the application, which may
            // seek past it.
            Self::Damaged => ErrorCode::CorruptMessage,
        }
    }
}

impl From<Refusal> for RequestError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
