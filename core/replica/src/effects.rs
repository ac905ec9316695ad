//! What a replica asks its caller to do, and why a request was not served.
//!
//! Effects are carried out in their order, before the next step of the same replica.
//!
//! Neighbours: shell/broker/src/partition_worker/rounds.rs carries them out.

use barnabas_base::{ErrorCode, Offset};
use barnabas_partition::{Acked, Effect as Decision, Refusal, Ticket};

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
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Answer the producer that holds this ticket.
    Answer { ticket: Ticket, answer: Result<Acked, RequestError> },
    /// So many more bytes can be read: fetches that wait for them may go on.
    Readable { bytes: i64, committed: Committed },
    /// The in-sync replicas should change: send AlterPartition
    /// ([`isr_change`](barnabas_partition::Partition::isr_change)).
    AlterIsr,
    /// The sync that was handed in, and has not begun, covers the files up to here.
    SyncCovers(Offset),
    /// The sync that was handed in covers no more than it did then: a new file was begun.
    SyncEnds,
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
            // Clients retry KAFKA_STORAGE_ERROR for ever without a word; this one reaches the application, which may seek past it.
            Self::Damaged => ErrorCode::CorruptMessage,
        }
    }
}

impl From<Refusal> for RequestError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
