//! Mistakes that a day of a share-partition can have planted, one at a time: each is noticed.

/// What is planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareMistake {
    /// The coordinator does not look at the leader's epoch.
    TakesAnyLeader,
    /// A coordinator that is loaded does not see the last record.
    ForgetsTheLast,
    /// Leaders are answered before what they wrote is safe.
    AnswersEarly,
    /// A leader tells members that it is done before it is written.
    TellsEarly,
    /// A new leader begins with nothing where the old one stood.
    ForgetsBatches,
}

impl ShareMistake {
    pub const ALL: [Self; 5] = [
        Self::TakesAnyLeader,
        Self::ForgetsTheLast,
        Self::AnswersEarly,
        Self::TellsEarly,
        Self::ForgetsBatches,
    ];
}
