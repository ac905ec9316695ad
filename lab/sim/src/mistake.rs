//! Mistakes in what carries the core's decisions out, planted one at a time to show that each invariant can fire. Mistakes in the core
//! itself are planted where it stands: core/partition `sim`.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// What was appended counts as durable at once.
    SkipsTheSync,
    /// `min.insync.replicas` is taken for 1.
    LeadsBelowTheMinimum,
    /// A follower does not say of which epoch its last record is.
    AsksWithoutEpochs,
    /// A start does not read what producers have written.
    ForgetsProducers,
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
    /// A leader takes the marker of a coordinator that has been replaced.
    MarksForOldCoordinators,
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
    /// Who repeats what a coordinator knows is told so at once, as Kafka's does: it may have been replaced, and not have heard of it.
    AnswersFromMemory,
    /// Clients hear of what is not on every replica in sync.
    AnswersEarly,
}

impl Mistake {
    /// Those that a day of transactions notices.
    pub const OF_TRANSACTIONS: [Self; 16] = [
        Self::LoadsTheUnsafe,
        Self::ForgetsProducers,
        Self::MarksAnyEpoch,
        Self::MarksForOldCoordinators,
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

    pub const ALL: [Self; 8] = [
        Self::SkipsTheSync,
        Self::LeadsBelowTheMinimum,
        Self::AsksWithoutEpochs,
        Self::ForgetsProducers,
        Self::AnswersAtOnce,
        Self::IgnoresCuts,
        Self::ServesAnyEpoch,
        Self::ClaimsToKnow,
    ];
}
