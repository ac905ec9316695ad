//! A topic's effective settings, in the types of the crates that use them.
//!
//! The values come from core/metadata (broker settings, then the topic's own); this file only turns them around.

use crate::node::Node;
use barnabas_base::{DurationMs, Text};
use barnabas_metadata::config::TopicConfig;
use barnabas_metadata::{Image, Resource};
use barnabas_storage::{CleanupPolicy, CompactionConfig, LogConfig};
use std::sync::Arc;

/// Everything that is configured for a topic.
pub fn topic_config(node: &Node, image: &Image, topic: &Text) -> Arc<TopicConfig> {
    let config = node.cluster.config.load();
    match image.configs.of(&Resource::topic(topic.clone())) {
        None => Arc::clone(config.topic_defaults()),
        Some(values) => config.topic_config(values.iter().map(|(key, value)| (&**key, &**value))),
    }
}

/// What storage acts on.
pub fn log_config(node: &Node, image: &Image, topic: &Text) -> Arc<LogConfig> {
    let config = topic_config(node, image, topic);
    // Only sealed segments are compacted: where a record may wait no longer, the segment may not stay open longer
    // (Kafka `LogConfig.maxSegmentMs`).
    let segment_ms = match config.cleanup_policy.compact {
        true => config.segment_ms.min(config.max_compaction_lag_ms.max(1)),
        false => config.segment_ms,
    };
    let segment_bytes =
        u64::try_from(config.segment_bytes).unwrap_or(u64::MAX).min(node.log_dirs.file_bytes_max);
    Arc::new(LogConfig {
        segment_bytes: u32::try_from(segment_bytes).unwrap_or(u32::MAX >> 1),
        segment_ms: DurationMs(segment_ms),
        segment_jitter_ms: DurationMs(config.segment_jitter_ms),
        segment_index_bytes: u32::try_from(config.segment_index_bytes).unwrap_or(10 << 20),
        index_interval_bytes: u32::try_from(config.index_interval_bytes).unwrap_or(4096),
        retention_ms: DurationMs(config.retention_ms),
        retention_bytes: config.retention_bytes,
        cleanup: CleanupPolicy {
            delete: config.cleanup_policy.delete,
            compact: config.cleanup_policy.compact,
        },
        compaction: CompactionConfig {
            min_lag_ms: DurationMs(config.min_compaction_lag_ms),
            max_lag_ms: DurationMs(config.max_compaction_lag_ms),
            delete_retention_ms: DurationMs(config.delete_retention_ms),
            min_dirty_ratio: config.min_cleanable_dirty_ratio,
        },
        file_delete_delay_ms: DurationMs(config.file_delete_delay_ms),
        preallocate: config.preallocate,
    })
}

/// After how many records, and how long after the first, unsynced ones are to be synced with
/// `log.ack.durability=written`.
pub fn flush(node: &Node, image: &Image, topic: &Text) -> (i64, DurationMs) {
    let config = topic_config(node, image, topic);
    (config.flush_messages.max(1), DurationMs(config.flush_ms.max(0)))
}

/// How many in-sync replicas `acks=all` needs.
pub fn min_in_sync(node: &Node, image: &Image, topic: &Text) -> u16 {
    u16::try_from(topic_config(node, image, topic).min_insync_replicas).unwrap_or(1)
}
