//! Mistakes in fetchers and in share partitions that tests plant, one at a time, to show that they would be noticed.
//! Outside of tests there are none. Mistakes of replicas are planted around this crate, by lab/sim.

/// See `fetcher/sim.rs`, `share/tests/model.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// A fetcher asks for partitions whose records are on their way to the disk.
    AsksForTheBusy,
    /// A fetcher takes an answer about what was followed before for one about what is followed now.
    BelievesAnyAnswer,
    /// A fetcher does not tell the leader what it asks for no more.
    ForgetsToForget,
    /// A fetcher continues a session although its last request had no answer.
    KeepsTheSession,
    /// A share partition's start passes what is not written down yet.
    PassesTheUnwritten,
    /// It does not count how often a record is delivered.
    ForgetsDeliveries,
    /// It delivers a record however often it was.
    DeliversForEver,
    /// What could not be written down counts all the same.
    KeepsTheUnwritten,
    /// Records are delivered that another member holds.
    TakesWhatIsHeld,
    /// More is in flight than allowed.
    IgnoresTheLimit,
    /// Records of aborted transactions are delivered.
    DeliversTheAborted,
    /// Whose lock has ended is not looked for.
    ForgetsTheFreed,
    /// Anybody may acknowledge anybody's records.
    BelievesAnyMember,
    /// What is gone from the log stays in flight.
    KeepsWhatIsGone,
}

#[cfg(test)]
impl Mistake {
    /// What share/tests.rs notices.
    pub const OF_SHARES: &[Self] = &[
        Self::PassesTheUnwritten,
        Self::ForgetsDeliveries,
        Self::DeliversForEver,
        Self::KeepsTheUnwritten,
        Self::TakesWhatIsHeld,
        Self::IgnoresTheLimit,
        Self::DeliversTheAborted,
        Self::ForgetsTheFreed,
        Self::BelievesAnyMember,
        Self::KeepsWhatIsGone,
    ];

    /// What fetcher/sim.rs notices.
    pub const OF_FETCHERS: &[Self] =
        &[Self::AsksForTheBusy, Self::BelievesAnyAnswer, Self::ForgetsToForget, Self::KeepsTheSession];
}

barnabas_base::planted!(Mistake);
