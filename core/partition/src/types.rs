//! The words that go in and out of a [`Partition`](crate::Partition): batches, tickets, effects, refusals.

use barnabas_base::{
    BrokerEpoch, BrokerId, CoordinatorEpoch, ErrorCode, LeaderEpoch, MonotonicMs, Offset, ProducerEpoch,
    ProducerId, Sequence, TimestampMs,
};

/// What a partition needs to know of one batch: its header's words, not its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchInfo {
    /// Offsets that the batch takes: its last offset delta + 1.
    pub offsets: i32,
    pub max_timestamp: TimestampMs,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub base_sequence: Sequence,
    pub is_transactional: bool,
    pub kind: BatchKind,
}

/// What a batch holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchKind {
    Data,
    /// The end of a producer's transaction on this partition.
    Marker(Marker),
    /// A control batch that is no marker, or a marker's batch that compaction has emptied: takes offsets, nothing more.
    OtherControl,
}

/// A transaction's end, as its control record says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    pub outcome: Outcome,
    pub coordinator_epoch: CoordinatorEpoch,
    /// The transaction version that WriteTxnMarkers names; 0 if it is unknown (old coordinators, the log itself).
    /// From 2 on a marker has a higher epoch than the records that it ends (KIP-890).
    pub transaction_version: i16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Commit,
    Abort,
}

/// Who hands a batch in, and so what is checked of it.
///
/// # Source
/// Kafka `AppendOrigin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A Produce request: sequences and epochs are checked, retries recognised.
    Client,
    /// A coordinator of this broker (group or transaction records, markers): epochs are checked, sequences are not.
    Coordinator,
}

/// How safe a batch must be before its producer hears of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acks {
    /// `acks=0`: never answered.
    None,
    /// `acks=1`: answered once the leader has written it.
    Leader,
    /// `acks=all`: answered once the high watermark has passed it.
    All,
}

/// Names one append that waits. Chosen by the caller; must not wait twice at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// One append: whose, how safe, until when.
#[derive(Debug, Clone, Copy)]
pub struct Append {
    pub origin: Origin,
    pub acks: Acks,
    pub ticket: Ticket,
    /// When the wait ends with [`Refusal::TimedOut`].
    pub deadline: MonotonicMs,
    /// The leader epoch that the sender believes in, if it says one.
    pub leader_epoch: Option<LeaderEpoch>,
    /// Whether the transaction coordinator has confirmed that this partition is part of the producer's transaction.
    pub verified: bool,
    /// An earlier batch of the producer was refused and has not come again
    /// ([`RefusedBatches`](crate::RefusedBatches)).
    pub follows_refused: bool,
}

/// When the transaction coordinator verified that a producer's transaction may begin on a partition. The
/// verification expires with the next marker of that transaction: a late batch of an ended transaction must not open
/// another one, which nothing would end.
///
/// # Source
/// KIP-890; Kafka `VerificationGuard`, `VerificationStateEntry`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    pub(crate) leader_epoch: LeaderEpoch,
    /// The log's end when the coordinator was asked.
    pub(crate) at: Offset,
    /// The producer counts from 0 in each transaction (`transaction.version` 2).
    pub(crate) starts_at_zero: bool,
}

/// What [`Partition::append`](crate::Partition::append) decided. The answer to the ticket follows as an [`Effect`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placed {
    /// New: the batch is to be written at `base`, under `leader_epoch`.
    Write { base: Offset, leader_epoch: LeaderEpoch },
    /// A retry of a batch that is remembered: not to be written again.
    Duplicate { base: Offset },
}

/// What the owner of the partition must do beside, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Complete the ticket.
    Answer { ticket: Ticket, answer: Result<Acked, Refusal> },
    /// Write the aborted transaction into the segment's transaction index.
    Aborted(AbortedTxn),
    /// The high watermark has moved here: fetches that wait for it may go on.
    HighWatermark(Offset),
    /// The last stable offset has moved here: read_committed fetches that wait for it may go on.
    LastStable(Offset),
    /// The log begins here now: storage notes it and drops what lies wholly below.
    LogStart(Offset),
    /// The in-sync replicas should be others: the controller is to be asked for
    /// [`Partition::isr_change`](crate::Partition::isr_change).
    AlterIsr,
}

/// A batch that is as safe as its producer asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acked {
    pub base: Offset,
    pub log_start: Offset,
    /// For a retry: the first copy's newest timestamp, which the answer carries under LogAppendTime.
    pub duplicate_timestamp: Option<TimestampMs>,
}

/// A transaction that was rolled back: what the transaction index keeps, and what Fetch hands to consumers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTxn {
    pub producer_id: ProducerId,
    pub first: Offset,
    /// The marker's offset.
    pub last: Offset,
    /// The last stable offset once this transaction is decided.
    pub last_stable: Offset,
}

/// Why something was not done. Nothing has changed after it, but for what [`Refusal::TimedOut`] says.
///
/// Two codes of Kafka's are never answered: UNKNOWN_PRODUCER_ID (a producer that is not remembered may begin with any
/// sequence since KAFKA-7190) and NOT_ENOUGH_REPLICAS_AFTER_APPEND (the high watermark stands still below the minimum,
/// so such an append times out; KIP-966).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("this broker does not lead the partition")]
    NotLeader,
    #[error("the partition's log directory has failed")]
    Offline,
    #[error("leader epoch {asked} is older than {current}")]
    FencedEpoch { asked: LeaderEpoch, current: LeaderEpoch },
    #[error("leader epoch {asked} is newer than {current}")]
    UnknownEpoch { asked: LeaderEpoch, current: LeaderEpoch },
    #[error("{in_sync} in-sync replicas, {needed} needed")]
    TooFewReplicas { in_sync: u16, needed: u16 },
    /// The batch is in the log, but not yet as safe as was asked for.
    #[error("the batch was not safe in time")]
    TimedOut,
    #[error("sequence {sequence} of producer {producer_id} does not follow {last}")]
    SequenceGap { producer_id: ProducerId, sequence: Sequence, last: Sequence },
    /// Clients take the code for success without an offset.
    #[error("sequence {sequence} of producer {producer_id} was appended before")]
    LongSince { producer_id: ProducerId, sequence: Sequence },
    #[error("epoch {epoch} of producer {producer_id} is older than {current}")]
    OldProducerEpoch { producer_id: ProducerId, epoch: ProducerEpoch, current: ProducerEpoch },
    #[error("coordinator epoch {epoch} is older than {current} for producer {producer_id}")]
    OldCoordinator { producer_id: ProducerId, epoch: CoordinatorEpoch, current: CoordinatorEpoch },
    #[error("the batch does not fit the state of producer {producer_id}'s transaction")]
    TxnState { producer_id: ProducerId },
    #[error("offset {asked} is outside [{start}, {end}]")]
    OutOfRange { asked: Offset, start: Offset, end: Offset },
    /// A new leader does not yet know how far its high watermark reaches.
    #[error("the high watermark is not known yet")]
    OffsetNotAvailable,
    #[error("broker {0} is not a replica of the partition")]
    UnknownReplica(BrokerId),
    /// A fetch from a former life of a broker: what it says of its log may not be true any more.
    #[error("broker {broker} is registered at epoch {registered}, and asks as of {asked}")]
    StaleReplica { broker: BrokerId, asked: BrokerEpoch, registered: BrokerEpoch },
}

impl Refusal {
    /// The code that Kafka's clients know it by.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::NotLeader => ErrorCode::NotLeaderOrFollower,
            Self::Offline => ErrorCode::KafkaStorageError,
            Self::FencedEpoch { .. } => ErrorCode::FencedLeaderEpoch,
            Self::UnknownEpoch { .. } => ErrorCode::UnknownLeaderEpoch,
            Self::TooFewReplicas { .. } => ErrorCode::NotEnoughReplicas,
            Self::TimedOut => ErrorCode::RequestTimedOut,
            Self::SequenceGap { .. } => ErrorCode::OutOfOrderSequenceNumber,
            Self::LongSince { .. } => ErrorCode::DuplicateSequenceNumber,
            Self::OldProducerEpoch { .. } => ErrorCode::InvalidProducerEpoch,
            Self::OldCoordinator { .. } => ErrorCode::TransactionCoordinatorFenced,
            Self::TxnState { .. } => ErrorCode::InvalidTxnState,
            Self::OutOfRange { .. } => ErrorCode::OffsetOutOfRange,
            Self::OffsetNotAvailable => ErrorCode::OffsetNotAvailable,
            Self::UnknownReplica(_) => ErrorCode::UnknownLeaderEpoch,
            Self::StaleReplica { .. } => ErrorCode::NotLeaderOrFollower,
        }
    }
}

/// Which records a reader may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Everything in the log: followers.
    LogEnd,
    /// Up to the high watermark.
    ReadUncommitted,
    /// Up to the first transaction that is undecided.
    ReadCommitted,
}

/// From where to where a reader may read, and what its answer says beside the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub log_start: Offset,
    /// Where reading must stop.
    pub end: Offset,
    pub high_watermark: Offset,
    pub last_stable: Offset,
    pub log_end: Offset,
}

impl Bounds {
    /// Whether a fetch may begin at `offset`: inside the log or at its very end, even beyond what it may read yet.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`], code 1.
    pub fn check(&self, offset: Offset) -> Result<(), Refusal> {
        if (self.log_start..=self.log_end).contains(&offset) {
            return Ok(());
        }
        Err(Refusal::OutOfRange { asked: offset, start: self.log_start, end: self.log_end })
    }
}

/// What is known of one producer: what snapshots keep and DescribeProducers tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerState {
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub coordinator_epoch: CoordinatorEpoch,
    /// The newest timestamp of its last batch, or its last marker's.
    pub last_timestamp: TimestampMs,
    /// Where its open transaction begins.
    pub txn_first: Option<Offset>,
    pub last_batch: Option<LastBatch>,
}

/// The last batch of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastBatch {
    pub last_sequence: Sequence,
    pub last_offset: Offset,
    /// Last offset − first offset.
    pub offset_delta: i32,
}

/// Where a log stands when it is opened: all of it is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnds {
    pub log_start: Offset,
    pub log_end: Offset,
    /// From the checkpoint; cut to the log's range.
    pub high_watermark: Offset,
}
