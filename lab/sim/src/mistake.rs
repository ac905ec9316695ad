//! Mistakes that are planted one at a time to show that each invariant can fire: in what carries the core's decisions
//! out, and in what the core is told.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// What was appended counts as durable at once.
    SkipsTheSync,
    /// Segments that were not synced count as synced.
    SkipsTheSegmentSync,
    /// A recovery point is written down before what it names is synced.
    ChecksBeforeTheSync,
    /// The journal does not note a truncation first.
    TruncatesUnnoted,
    /// A start does not read the journal.
    ForgetsTheJournal,
    /// A time is searched behind the batch that has it.
    SearchesTimesLate,
    /// A start does not look at the rounds before the journal's replay point.
    ForgetsOlderRounds,
    /// The names of new segments are not synced with them.
    SkipsTheNames,
    /// The journal's orders to write back are answered before the segments are synced.
    AnswersOrdersEarly,
    /// A start that ends before it has registered leaves the mark of a clean stop.
    KeepsTheCleanMark,
    /// A clean stop does not wait for syncs that are under way.
    ClosesOverASync,
    /// A leader counts what it was given, durable or not.
    CountsTheUndurable,
    /// A follower asks from where its log ends, durable or not.
    FollowsUndurably,
    /// The high watermark follows the leader alone.
    LeadsAlone,
    /// It follows the replica that has come furthest.
    CountsTheFastest,
    /// A new leadership believes what the former one knew of its followers.
    KeepsFollowerEnds,
    /// Who leaves the in-sync replicas is not waited for as soon as the controller is asked.
    ShrinksBeforeTheAnswer,
    /// Who joins is not waited for until the controller has answered.
    ExpandsAfterTheAnswer,
    /// Silence of the controller is taken for a refusal, though it may have heard.
    ForgetsTheQuestion,
    /// Any life of a broker may join.
    ExpandsAnyLife,
    /// Who joins need not have reached the leader's own epoch, nor the high watermark.
    ExpandsWhoLags,
    /// A follower cuts its log at its high watermark, not where the logs part.
    TruncatesToHighWatermark,
    /// A follower cuts where the leader's epoch ends, though it does not know that epoch itself.
    TruncatesOnce,
    /// A follower takes an answer to a fetch from where it does not stand any more.
    BelievesLateAnswers,
    /// Consumers are shown all there is.
    ShowsEverything,
    /// A replica whose log is damaged gives it up while others count on it.
    HealsWhileItCounts,
    /// The controller admits replicas of which it was told that they are damaged.
    AdmitsTheDamaged,
    /// `min.insync.replicas` is taken for 1.
    LeadsBelowTheMinimum,
    /// A follower does not say of which epoch its last record is.
    AsksWithoutEpochs,
    /// Producers are answered when the leader has written.
    AnswersAtOnce,
    /// A follower's log is not cut where logs part.
    IgnoresCuts,
    /// A leader does not ask which epoch a follower follows.
    ServesAnyEpoch,
    /// A broker that lost its disk says that it knows what it had.
    ClaimsToKnow,
    /// A leader does not look at the epoch of a marker.
    MarksAnyEpoch,
    /// Markers leave before their decision is on every replica in sync.
    MarksEarly,
    /// A marker counts as written when its leader has it.
    MarksUnsafely,
    /// A leader lets a transaction begin without asking its coordinator.
    SkipsVerification,
    /// A leader lets a transaction begin on the coordinator's word, however old that is.
    KeepsOldWords,
    /// A new coordinator speaks before what it has read is on every replica in sync, as Kafka's does.
    LoadsTheUnsafe,
    /// A new coordinator passes over decisions.
    ForgetsDecisions,
    /// A new coordinator does not read the last that its log has.
    ForgetsTheLast,
    /// A new coordinator reads an abort that was decided as a commit.
    TurnsDecisions,
    /// A new group coordinator takes every marker for a commit.
    ShowsAbortedOffsets,
    /// A group coordinator does not bring a transaction's offsets to its successor.
    ForgetsPendingOffsets,
    /// An end that was asked for before is taken for a new one.
    EndsTwice,
    /// Who repeats what a coordinator knows is told so at once, as Kafka's does: it may have been replaced, and not
    /// have heard of it.
    AnswersFromMemory,
    /// Clients hear of what is not on every replica in sync.
    AnswersEarly,
    /// Compaction goes past the last stable offset.
    CleansTheUnstable,
    /// Compaction does not know which transactions were aborted.
    ForgetsTheAborted,
    /// Segments are compacted before the checkpoint says that the log is synced up to there.
    CleansUncheckpointed,
}

impl Mistake {
    /// Those that a day of transactions notices.
    pub const OF_TRANSACTIONS: [Self; 14] = [
        Self::LoadsTheUnsafe,
        Self::MarksAnyEpoch,
        Self::MarksEarly,
        Self::MarksUnsafely,
        Self::SkipsVerification,
        Self::KeepsOldWords,
        Self::ForgetsDecisions,
        Self::ForgetsTheLast,
        Self::TurnsDecisions,
        Self::ShowsAbortedOffsets,
        Self::ForgetsPendingOffsets,
        Self::EndsTwice,
        Self::AnswersFromMemory,
        Self::AnswersEarly,
    ];

    /// Those that a day of compaction notices.
    pub const OF_COMPACTION: [Self; 3] =
        [Self::CleansTheUnstable, Self::ForgetsTheAborted, Self::CleansUncheckpointed];

    /// Those of [`Mistake::ALL`] that one of the first days notices.
    pub const SOON: [Self; 21] = [
        Self::SkipsTheSync,
        Self::SkipsTheSegmentSync,
        Self::TruncatesUnnoted,
        Self::ForgetsTheJournal,
        Self::SkipsTheNames,
        Self::KeepsTheCleanMark,
        Self::ClosesOverASync,
        Self::CountsTheUndurable,
        Self::FollowsUndurably,
        Self::LeadsAlone,
        Self::CountsTheFastest,
        Self::ShrinksBeforeTheAnswer,
        Self::ExpandsAfterTheAnswer,
        Self::ExpandsWhoLags,
        Self::TruncatesToHighWatermark,
        Self::ShowsEverything,
        Self::HealsWhileItCounts,
        Self::LeadsBelowTheMinimum,
        Self::AsksWithoutEpochs,
        Self::AnswersAtOnce,
        Self::IgnoresCuts,
    ];

    /// Those of [`Mistake::OF_TRANSACTIONS`] that one of the first days notices.
    pub const SOON_OF_TRANSACTIONS: [Self; 11] = [
        Self::AnswersEarly,
        Self::EndsTwice,
        Self::ForgetsPendingOffsets,
        Self::ShowsAbortedOffsets,
        Self::TurnsDecisions,
        Self::ForgetsTheLast,
        Self::ForgetsDecisions,
        Self::SkipsVerification,
        Self::MarksUnsafely,
        Self::MarksEarly,
        Self::MarksAnyEpoch,
    ];

    /// Those that a day of brokers notices.
    pub const ALL: [Self; 33] = [
        Self::SkipsTheSync,
        Self::SkipsTheSegmentSync,
        Self::ChecksBeforeTheSync,
        Self::TruncatesUnnoted,
        Self::ForgetsTheJournal,
        Self::SearchesTimesLate,
        Self::ForgetsOlderRounds,
        Self::SkipsTheNames,
        Self::AnswersOrdersEarly,
        Self::KeepsTheCleanMark,
        Self::ClosesOverASync,
        Self::CountsTheUndurable,
        Self::FollowsUndurably,
        Self::LeadsAlone,
        Self::CountsTheFastest,
        Self::KeepsFollowerEnds,
        Self::ShrinksBeforeTheAnswer,
        Self::ExpandsAfterTheAnswer,
        Self::ForgetsTheQuestion,
        Self::ExpandsAnyLife,
        Self::ExpandsWhoLags,
        Self::TruncatesToHighWatermark,
        Self::TruncatesOnce,
        Self::BelievesLateAnswers,
        Self::ShowsEverything,
        Self::HealsWhileItCounts,
        Self::AdmitsTheDamaged,
        Self::LeadsBelowTheMinimum,
        Self::AsksWithoutEpochs,
        Self::AnswersAtOnce,
        Self::IgnoresCuts,
        Self::ServesAnyEpoch,
        Self::ClaimsToKnow,
    ];
}
