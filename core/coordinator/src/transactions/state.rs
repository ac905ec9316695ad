//! The states of a transaction, their numbers in the log, and which may follow which.

/// Where a transactional id stands.
///
/// `PrepareEpochFence` and `Dead` have numbers and names in Kafka and are never in its log: the one means that an abort
/// with a new epoch is on its way, the other a tombstone. Here both are a change under way, so neither is ever a state.
///
/// # Source
/// Kafka 4.4 `TransactionState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TransactionState {
    /// No transaction since the producer came.
    Empty,
    /// Partitions have been added.
    Ongoing,
    /// To be committed: decided, and not to be turned back.
    PrepareCommit,
    /// To be aborted: decided, and not to be turned back.
    PrepareAbort,
    /// Every partition has its commit marker.
    CompleteCommit,
    /// Every partition has its abort marker.
    CompleteAbort,
    /// The transactional id is being forgotten.
    Dead,
    /// The producer is being fenced.
    PrepareEpochFence,
}

impl TransactionState {
    pub const ALL: [Self; 8] = [
        Self::Empty,
        Self::Ongoing,
        Self::PrepareCommit,
        Self::PrepareAbort,
        Self::CompleteCommit,
        Self::CompleteAbort,
        Self::Dead,
        Self::PrepareEpochFence,
    ];

    /// Its number in records.
    pub const fn number(self) -> i8 {
        self as i8
    }

    /// The state that a record's number means; `None` where it means none that may stand in a record.
    pub fn of_record(number: i8) -> Option<Self> {
        let known = Self::ALL.into_iter().find(|state| state.number() == number)?;
        (!matches!(known, Self::Dead | Self::PrepareEpochFence)).then_some(known)
    }

    /// As clients see and filter it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::PrepareCommit => "PrepareCommit",
            Self::PrepareAbort => "PrepareAbort",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
            Self::Dead => "Dead",
            Self::PrepareEpochFence => "PrepareEpochFence",
        }
    }

    /// Decided, and not every marker is known to be written.
    pub const fn is_prepared(self) -> bool {
        matches!(self, Self::PrepareCommit | Self::PrepareAbort)
    }

    /// No transaction is open.
    pub const fn is_idle(self) -> bool {
        matches!(self, Self::Empty | Self::CompleteCommit | Self::CompleteAbort)
    }

    pub(crate) fn may_follow(self, previous: Self) -> bool {
        match self {
            Self::Empty => previous.is_idle(),
            Self::Ongoing => previous.is_idle() || previous == Self::Ongoing,
            Self::PrepareCommit => previous == Self::Ongoing,
            // Version 2 allows to abort what was never begun, as the client cannot know (KIP-890).
            Self::PrepareAbort => previous.is_idle() || previous == Self::Ongoing,
            // Written again before version 2, when the client asks again.
            Self::CompleteCommit => matches!(previous, Self::PrepareCommit | Self::CompleteCommit),
            Self::CompleteAbort => matches!(previous, Self::PrepareAbort | Self::CompleteAbort),
            Self::Dead => previous.is_idle(),
            Self::PrepareEpochFence => previous == Self::Ongoing,
        }
    }
}
