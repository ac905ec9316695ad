//! What a shard of groups counts for operators.

/// How often what happened, since the shard was last asked.
///
/// # Source
/// Kafka 4.4 `GroupCoordinatorMetrics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupCounts {
    /// Offsets in commits that were taken, within transactions or not.
    pub offset_commits: u64,
    pub offset_expirations: u64,
    /// By OffsetDelete.
    pub offset_deletions: u64,
    /// Classic groups whose members all got an assignment.
    pub classic_rebalances: u64,
    /// Epochs of groups that were raised.
    pub consumer_rebalances: u64,
    pub share_rebalances: u64,
    pub streams_rebalances: u64,
}

impl GroupCounts {
    pub fn add(&mut self, other: &Self) {
        self.offset_commits += other.offset_commits;
        self.offset_expirations += other.offset_expirations;
        self.offset_deletions += other.offset_deletions;
        self.classic_rebalances += other.classic_rebalances;
        self.consumer_rebalances += other.consumer_rebalances;
        self.share_rebalances += other.share_rebalances;
        self.streams_rebalances += other.streams_rebalances;
    }
}
