//! Mistakes in replication that tests plant, one at a time, to show that the simulation notices them. Outside of tests there are none.

/// See `sim/`, `fetcher/sim.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code, reason = "one of them stands in a test's worker"))]
pub(crate) enum Mistake {
    /// The high watermark follows the leader alone.
    AcksBeforeTheIsr,
    /// It follows the replica that has come furthest.
    CountsTheFastest,
    /// It follows what the leader has been given, not what is durable.
    CountsTheUndurable,
    /// It moves on below `min.insync.replicas`.
    IgnoresTheMinimum,
    /// A leader answers whatever leader epoch is named.
    SkipsTheEpochCheck,
    /// A leader does not compare a follower's last epoch with its own.
    SkipsDivergence,
    /// A new leadership believes what the former one knew of its followers.
    KeepsFollowerEnds,
    /// Who leaves the in-sync replicas is not waited for as soon as the controller is asked.
    ShrinksBeforeTheAnswer,
    /// Who joins is not waited for until the controller has answered.
    ExpandsAfterTheAnswer,
    /// A question to the controller that failed is forgotten, though it may have been heard.
    ForgetsTheQuestion,
    /// Any life of a broker may join.
    ExpandsAnyLife,
    /// Who joins need not have reached the leader's own epoch, nor the high watermark.
    ExpandsWhoLags,
    /// A follower asks from where its log ends, durable or not.
    FetchesAtLogEnd,
    /// A follower cuts its log at its high watermark, not where the logs part.
    TruncatesToHighWatermark,
    /// A follower cuts where the leader's epoch ends, though it does not know that epoch itself.
    TruncatesOnce,
    /// A follower takes an answer to an older question for one to its last.
    BelievesLateAnswers,
    /// A follower does not note producers.
    ForgetsProducers,
    /// An older word of the controller is taken.
    TakesOldWords,
    /// Consumers are shown all there is.
    ShowsEverything,
    /// A replica whose log is damaged cuts it while others count on it.
    HealsWhileItCounts,
    /// A fetcher asks for partitions whose records are on their way to the disk.
    AsksForTheBusy,
    /// A fetcher takes an answer about what was followed before for one about what is followed now.
    BelievesAnyAnswer,
    /// A fetcher does not tell the leader what it asks for no more.
    ForgetsToForget,
    /// A fetcher goes on with a session though nobody answered its last request.
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
    /// What sim/ notices.
    pub const OF_REPLICAS: &[Self] = &[
        Self::AcksBeforeTheIsr,
        Self::CountsTheFastest,
        Self::CountsTheUndurable,
        Self::IgnoresTheMinimum,
        Self::SkipsTheEpochCheck,
        Self::SkipsDivergence,
        Self::KeepsFollowerEnds,
        Self::ShrinksBeforeTheAnswer,
        Self::ExpandsAfterTheAnswer,
        Self::ForgetsTheQuestion,
        Self::ExpandsAnyLife,
        Self::ExpandsWhoLags,
        Self::FetchesAtLogEnd,
        Self::TruncatesToHighWatermark,
        Self::TruncatesOnce,
        Self::BelievesLateAnswers,
        Self::ForgetsProducers,
        Self::TakesOldWords,
        Self::ShowsEverything,
        Self::HealsWhileItCounts,
    ];

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
