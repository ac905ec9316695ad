//! The four kinds of groups, each with records of its own.

/// Which protocol a group is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GroupKind {
    /// Also a group that has offsets and never had members.
    Classic,
    Consumer,
    Share,
    Streams,
}

impl GroupKind {
    pub const ALL: [Self; 4] = [Self::Classic, Self::Consumer, Self::Share, Self::Streams];

    /// Kafka's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Consumer => "consumer",
            Self::Share => "share",
            Self::Streams => "streams",
        }
    }

    /// Kafka's words for the states that such a group can be in.
    pub const fn states(self) -> &'static [&'static str] {
        match self {
            Self::Classic => &["PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty"],
            Self::Consumer => &["Empty", "Assigning", "Reconciling", "Stable", "Dead"],
            Self::Share => &["Empty", "Stable", "Dead"],
            Self::Streams => &["Empty", "NotReady", "Assigning", "Reconciling", "Stable", "Dead"],
        }
    }
}
