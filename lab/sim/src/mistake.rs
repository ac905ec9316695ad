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
}

impl Mistake {
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
