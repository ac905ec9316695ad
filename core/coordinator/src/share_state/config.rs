//! The settings that concern the state of share groups, as values.

use barnabas_base::DurationMs;

/// Defaults are Kafka 4.4's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareStateConfig {
    /// `share.coordinator.snapshot.update.records.per.snapshot`.
    pub updates_per_snapshot: u32,
    /// `share.coordinator.write.timeout.ms`: how long an answer waits for its records to be safe.
    pub write_timeout: DurationMs,
    /// `share.coordinator.state.topic.prune.interval.ms`.
    pub prune_interval: DurationMs,
    /// `share.coordinator.cold.partition.snapshot.interval.ms`.
    pub cold_snapshot_interval: DurationMs,
    /// What one batch of records may weigh: a little less than `max.message.bytes` of `__share_group_state`.
    pub batch_bytes_max: usize,
    /// Batches that may wait for the disk at the same time in one shard.
    pub pending_batches_max: usize,
    /// `groups.memory.max.bytes`: what all coordinators of the node may hold.
    pub memory_bytes_max: usize,
}

impl Default for ShareStateConfig {
    fn default() -> Self {
        Self {
            updates_per_snapshot: 500,
            write_timeout: DurationMs(5_000),
            prune_interval: DurationMs(300_000),
            cold_snapshot_interval: DurationMs(300_000),
            batch_bytes_max: 1_000_000,
            pending_batches_max: 10_000,
            memory_bytes_max: 256 << 20,
        }
    }
}
