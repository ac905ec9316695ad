//! Clients, partitions, a network that delays, repeats and loses, and a coordinator that moves. See
//! transaction_model.rs.

pub mod client;
mod judge;
pub mod offsets;
pub mod partition;
pub mod world;

/// xorshift64*: enough to be arbitrary.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % end
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A bug that is planted around the shard, to see that it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    None,
    /// One partition gets the other marker.
    MarkerFlipped,
    /// One partition gets no marker, and is reported to have one.
    MarkerForgotten,
    /// Markers leave before the decision is on disk.
    MarkerEarly,
    /// The end is answered before the decision is on disk.
    AnswerEarly,
    /// A refused end is answered with success.
    RefusalSwallowed,
    /// A client that starts is given the epoch before, which another client may have.
    EpochNotBumped,
    /// The next coordinator does not see the last record.
    RecordLost,
    /// The next coordinator reads the last epoch wrong.
    EpochBack,
    /// Partitions take batches of epochs that are over, and what was verified before the last marker. One of the two
    /// alone does no harm: the coordinator does not confirm old epochs.
    EpochsUnchecked,
    /// Partitions take the first batch without asking.
    Unverified,
    /// Partitions do not recognise batches that come again.
    DuplicatesAreNew,
    /// The next coordinator takes a commit for an abort.
    DecisionTurned,
    /// The group coordinator takes every marker for a commit.
    AbortedOffsetsShow,
    /// The next group coordinator does not see offsets whose transaction is open.
    PendingOffsetsLost,
}

impl Bug {
    pub const ALL: [Self; 14] = [
        Self::MarkerFlipped,
        Self::MarkerForgotten,
        Self::MarkerEarly,
        Self::AnswerEarly,
        Self::RefusalSwallowed,
        Self::EpochNotBumped,
        Self::RecordLost,
        Self::EpochBack,
        Self::EpochsUnchecked,
        Self::Unverified,
        Self::DuplicatesAreNew,
        Self::DecisionTurned,
        Self::AbortedOffsetsShow,
        Self::PendingOffsetsLost,
    ];
}
