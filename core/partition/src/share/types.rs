//! The words that go in and out of a [`SharePartition`](crate::SharePartition).

use barnabas_base::{DurationMs, ErrorCode, LeaderEpoch, Offset, ProducerId, Text};

use crate::Ticket;

/// How often a share partition's state was initialized. −1: unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub struct StateEpoch(pub i32);

/// What a group allows, of its own settings or of the broker's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareSettings {
    /// `share.record.lock.duration.ms`.
    pub lock: DurationMs,
    /// `share.delivery.count.limit`.
    pub deliveries_max: u16,
    /// `share.partition.max.record.locks`: from the first record that is not done to the last that was ever acquired.
    pub in_flight_max: i64,
    /// `share.renew.acknowledge.enable`.
    pub may_renew: bool,
    /// Records that are given up go through [`ShareEffect::DeadLetter`] first (KIP-1191).
    pub dead_letters: bool,
}

impl Default for ShareSettings {
    /// Kafka's.
    fn default() -> Self {
        Self {
            lock: DurationMs(30_000),
            deliveries_max: 5,
            in_flight_max: 2_000,
            may_renew: true,
            dead_letters: false,
        }
    }
}

/// What has become of a record. The numbers are those of the state topic.
///
/// # Source
/// Kafka 4.4 `RecordState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordState {
    Available = 0,
    Acquired = 1,
    Acknowledged = 2,
    /// On its way to the dead letters; not delivered any more.
    Archiving = 3,
    Archived = 4,
}

impl RecordState {
    pub fn from_code(code: i8) -> Option<Self> {
        Some(match code {
            0 => Self::Available,
            1 => Self::Acquired,
            2 => Self::Acknowledged,
            3 => Self::Archiving,
            4 => Self::Archived,
            _ => return None,
        })
    }

    pub fn code(self) -> i8 {
        self as i8
    }

    /// Nothing becomes of it any more: the start may pass it.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Acknowledged | Self::Archived)
    }
}

/// One state of a run of records, as it is written down. `last` is part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateBatch {
    pub first: Offset,
    pub last: Offset,
    pub state: RecordState,
    pub delivery_count: u16,
}

/// What was written down of a share partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenState {
    pub state_epoch: StateEpoch,
    /// Everything below is done. Where nothing was ever written: where the group is to begin.
    pub start: Offset,
    /// By offset, none overlapping another.
    pub batches: Vec<StateBatch>,
}

/// What is to be written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateWrite {
    pub state_epoch: StateEpoch,
    pub leader_epoch: LeaderEpoch,
    pub start: Offset,
    /// Records from `start` on that are done: for the lag (KIP-1226).
    pub delivery_complete: i32,
    pub batches: Vec<StateBatch>,
}

/// Names one [`StateWrite`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub u64);

/// How closely a fetch keeps to the records that it asks for (KIP-1206).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcquireMode {
    /// Whole batches of the log, a little more than asked for if need be.
    BatchOptimized,
    /// Never more than asked for.
    RecordLimit,
}

/// One share fetch of one member.
#[derive(Debug, Clone, Copy)]
pub struct Acquire<'a> {
    pub member: &'a Text,
    pub mode: AcquireMode,
    pub records_max: i64,
    /// About how many records one entry of the answer should have, as each is acknowledged by itself.
    pub batch_size: i64,
    /// Where the log was read: [`SharePartition::next_fetch_offset`](crate::SharePartition::next_fetch_offset).
    pub from: Offset,
}

/// A batch of the log, as far as a share partition looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchedBatch {
    pub base: Offset,
    pub last: Offset,
    pub producer_id: ProducerId,
    pub is_transactional: bool,
    /// It is the marker of an aborted transaction.
    pub is_abort: bool,
}

/// Records that a member holds now. `last` is part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acquired {
    pub first: Offset,
    pub last: Offset,
    pub delivery_count: u16,
}

impl Acquired {
    pub fn count(&self) -> i64 {
        self.first.count_to(self.last)
    }
}

/// What a member says of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckType {
    /// There is no such record: compacted away, or a marker.
    Gap,
    Accept,
    /// The record becomes available again.
    Release,
    /// The record is finished.
    Reject,
    /// Still being worked on (KIP-1222).
    Renew,
}

impl AckType {
    pub fn from_code(code: i8) -> Option<Self> {
        Some(match code {
            0 => Self::Gap,
            1 => Self::Accept,
            2 => Self::Release,
            3 => Self::Reject,
            4 => Self::Renew,
            _ => return None,
        })
    }
}

/// What a member says of a run of records: one word for all, or one for each. `last` is part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckBatch {
    pub first: Offset,
    pub last: Offset,
    pub types: Vec<AckType>,
}

impl AckBatch {
    pub(super) fn of(&self, offset: Offset) -> Option<AckType> {
        if self.types.len() == 1 {
            return self.types.first().copied();
        }
        usize::try_from(offset.since(self.first)).ok().and_then(|at| self.types.get(at).copied())
    }
}

/// Why records are dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadLetterCause {
    Rejected,
    DeliveryCountExceeded,
}

/// What the owner of the share partition must do, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShareEffect {
    /// Have this written down, after those before it; then [`SharePartition::written`](crate::SharePartition::written).
    Write(WriteId, StateWrite),
    /// Answer an acknowledgement, or a release.
    Answer(Ticket, Result<(), ShareRefusal>),
    /// Copy these records to the group's dead letters if that can be done; then
    /// [`SharePartition::dead_lettered`](crate::SharePartition::dead_lettered), in any case.
    DeadLetter { first: Offset, last: Offset, delivery_count: u16, cause: DeadLetterCause },
    /// There may be something for those who wait.
    Fetchable,
}

/// Why an acknowledgement was not taken. Nothing has changed after it, but for locks that were renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShareRefusal {
    #[error("{0}")]
    Request(&'static str),
    #[error("{0}")]
    RecordState(&'static str),
    /// It could not be written down.
    #[error("the state could not be written")]
    NotWritten(ErrorCode),
}

impl ShareRefusal {
    /// The code that Kafka's clients know it by.
    ///
    /// # Source
    /// Kafka 4.4 `SharePartition.fetchPersisterError`.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Request(_) => ErrorCode::InvalidRequest,
            Self::RecordState(_) => ErrorCode::InvalidRecordState,
            Self::NotWritten(code) => match code {
                ErrorCode::NotCoordinator
                | ErrorCode::CoordinatorNotAvailable
                | ErrorCode::CoordinatorLoadInProgress => ErrorCode::CoordinatorNotAvailable,
                ErrorCode::GroupIdNotFound | ErrorCode::UnknownTopicOrPartition => code,
                ErrorCode::FencedLeaderEpoch
                | ErrorCode::FencedStateEpoch
                | ErrorCode::NotLeaderOrFollower => ErrorCode::NotLeaderOrFollower,
                _ => ErrorCode::UnknownServerError,
            },
        }
    }

    /// The share partition has a new leader: it reads the state again.
    ///
    /// # Source
    /// Kafka 4.4 `SharePartitionManager.fencedSharePartitionHandler`.
    pub fn is_fenced(self) -> bool {
        matches!(
            self.code(),
            ErrorCode::NotLeaderOrFollower | ErrorCode::GroupIdNotFound | ErrorCode::UnknownTopicOrPartition
        )
    }
}

/// What was written down cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the written state of {first} to {last} does not follow offset {after}")]
pub struct BadState {
    pub first: Offset,
    pub last: Offset,
    pub after: Offset,
}
