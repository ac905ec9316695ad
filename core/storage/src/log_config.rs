//! The settings of a topic that storage acts on. Shared by all logs of the topic.

use barnabas_base::DurationMs;

/// Kafka's topic settings of the same names; units in the field names.
#[derive(Debug, Clone, PartialEq)]
pub struct LogConfig {
    /// `segment.bytes`
    pub segment_bytes: u32,
    /// `segment.ms`
    pub segment_ms: DurationMs,
    /// `segment.jitter.ms`: up to this much is taken off `segment_ms`, differently for each segment.
    pub segment_jitter_ms: DurationMs,
    /// `segment.index.bytes`
    pub segment_index_bytes: u32,
    /// `index.interval.bytes`
    pub index_interval_bytes: u32,
    /// `retention.ms`; negative: no limit.
    pub retention_ms: DurationMs,
    /// `retention.bytes`; negative: no limit.
    pub retention_bytes: i64,
    /// `cleanup.policy`
    pub cleanup: CleanupPolicy,
    pub compaction: CompactionConfig,
    /// `file.delete.delay.ms`
    pub file_delete_delay_ms: DurationMs,
    /// `preallocate`
    pub preallocate: bool,
}

/// `cleanup.policy`: each of the two on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanupPolicy {
    pub delete: bool,
    pub compact: bool,
}

/// When compaction has work, and how long it keeps tombstones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompactionConfig {
    /// `min.compaction.lag.ms`
    pub min_lag_ms: DurationMs,
    /// `max.compaction.lag.ms`
    pub max_lag_ms: DurationMs,
    /// `delete.retention.ms`
    pub delete_retention_ms: DurationMs,
    /// `min.cleanable.dirty.ratio`
    pub min_dirty_ratio: f64,
}

impl Default for CompactionConfig {
    /// Kafka's defaults.
    fn default() -> Self {
        Self {
            min_lag_ms: DurationMs(0),
            max_lag_ms: DurationMs(i64::MAX),
            delete_retention_ms: DurationMs(24 * 60 * 60 * 1000),
            min_dirty_ratio: 0.5,
        }
    }
}

impl Default for LogConfig {
    /// Kafka's defaults.
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 30,
            segment_ms: DurationMs(7 * 24 * 60 * 60 * 1000),
            segment_jitter_ms: DurationMs(0),
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            retention_ms: DurationMs(7 * 24 * 60 * 60 * 1000),
            retention_bytes: -1,
            cleanup: CleanupPolicy { delete: true, compact: false },
            compaction: CompactionConfig::default(),
            file_delete_delay_ms: DurationMs(60_000),
            preallocate: false,
        }
    }
}
