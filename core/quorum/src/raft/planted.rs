//! Mistakes of a quorum member that the simulation plants, one at a time, to show that its invariants notice them.
//! Outside of tests there are none.

/// See `core/quorum/tests/sim`. Mistakes of disk and shell are planted there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// A vote is given whatever was voted before in the epoch.
    VotesTwice,
    /// A vote is given to a log that is behind.
    IgnoresLogEnd,
    /// The high watermark moves over an older epoch's records before one of the leader's own is on a majority.
    CommitsOldEpoch,
    /// The leader counts what is in its log but not on its disk.
    CountsUnsynced,
    /// A follower fetches on, and so acknowledges, before its disk has what it fetched.
    FetchesUnsynced,
    /// A log that diverges is not truncated.
    KeepsDivergingLog,
    /// Half of the voters are enough to lead.
    HalfIsMajority,
    /// A candidate stays in its epoch when it asks again.
    SameEpochAgain,
    /// Answers of older epochs are taken for this one's.
    BelievesOldAnswers,
    /// A leader does not look whether a follower's log agrees with its own.
    SkipsDivergence,
    /// A change of voters begins while another is not committed.
    ChangesTwiceAtOnce,
    /// A change of voters begins before the leader has committed anything of its epoch (the bug of Raft's single-server
    /// changes of 2015).
    ChangesBeforeCommit,
    /// Observers' fetches move the high watermark.
    CountsObservers,
    /// Voters who left the log by truncation are kept.
    KeepsTruncatedVoters,
    /// A node that led an epoch goes on leading it after a restart.
    LeadsAfterRestart,
    /// The leader's high watermark is believed before it is known that the logs agree.
    CommitsBeforeAgreement,
    /// The records of an answered Fetch are taken for all that its leader had.
    TakesPartForAll,
    /// The end of a fetched log is believed to be safe, whatever the leader says.
    CommitsAllFetched,
}

barnabas_base::planted!(Mistake);
