//! A topic's effective configuration, typed: made once when something changes, read on the hot path as plain fields.
//!
//! Levels, the first that is set decides: the topic's own config, the broker's dynamic one, the dynamic default of all
//! brokers, the broker's file, Kafka's default. [`BrokerConfig::topic_defaults`](super::BrokerConfig::topic_defaults)
//! holds all but the first; [`TopicConfig::with_overrides`] adds it.
//!
//! A text that is not a value of its key cannot get here (checked when it is set); should one be in an old metadata
//! log all the same, the level below it decides.

use super::value::{parse_bool, parse_list, parse_whole};
use super::{Kind, Properties, Resource, ValueError, check};
use barnabas_wire::records::RecordValidation;

/// What happens to old data. Neither: it is kept for ever, though `retention.bytes` and `.ms` are not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanupPolicy {
    pub delete: bool,
    pub compact: bool,
}

/// The codec that batches are stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// As the producer sent them.
    Producer,
    Uncompressed,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

/// Whose time a record carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampType {
    CreateTime,
    LogAppendTime,
}

/// The effective values. Units stand in the names; −1 means "no bound" where Kafka says so.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicConfig {
    pub cleanup_policy: CleanupPolicy,
    pub compression: Compression,
    /// −1: the codec's own.
    pub gzip_level: i32,
    pub lz4_level: i32,
    pub zstd_level: i32,
    pub delete_retention_ms: i64,
    pub file_delete_delay_ms: i64,
    pub flush_messages: i64,
    pub flush_ms: i64,
    pub index_interval_bytes: i32,
    pub max_compaction_lag_ms: i64,
    pub max_decompressed_message_bytes: i32,
    pub max_message_bytes: i32,
    pub timestamp_after_max_ms: i64,
    pub timestamp_before_max_ms: i64,
    pub timestamp_type: TimestampType,
    pub min_cleanable_dirty_ratio: f64,
    pub min_compaction_lag_ms: i64,
    pub min_insync_replicas: i32,
    pub preallocate: bool,
    pub remote_storage_enable: bool,
    /// −1: no bound.
    pub retention_bytes: i64,
    /// −1: for ever.
    pub retention_ms: i64,
    pub segment_bytes: i32,
    pub segment_index_bytes: i32,
    pub segment_jitter_ms: i64,
    pub segment_ms: i64,
    pub unclean_leader_election_enable: bool,
    /// The broker's `record.validation`: no topic key of Kafka's.
    pub record_validation: RecordValidation,
}

impl Default for TopicConfig {
    /// Kafka's defaults, as the table of topic keys has them.
    fn default() -> Self {
        let mut config = Self::zero();
        for key in Resource::Topic.keys() {
            if let Some(value) = key.default_value() {
                config.set(key.name, value);
            }
        }
        config
    }
}

impl TopicConfig {
    /// These values with those of `overrides` over them.
    #[must_use]
    pub fn with_overrides<'a>(&self, overrides: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut config = self.clone();
        let mut internal_segment_bytes = None;
        for (name, value) in overrides {
            if name == "internal.segment.bytes" {
                internal_segment_bytes = Some(value);
            } else {
                config.set(name, value);
            }
        }
        // A key of Kafka's own tests. It overrides segment.bytes in any order (Kafka
        // `LogConfig.segmentSize`).
        if let Some(value) = internal_segment_bytes {
            config.set("internal.segment.bytes", value);
        }
        config
    }

    fn zero() -> Self {
        Self {
            cleanup_policy: CleanupPolicy { delete: true, compact: false },
            compression: Compression::Producer,
            gzip_level: 0,
            lz4_level: 0,
            zstd_level: 0,
            delete_retention_ms: 0,
            file_delete_delay_ms: 0,
            flush_messages: 0,
            flush_ms: 0,
            index_interval_bytes: 0,
            max_compaction_lag_ms: 0,
            max_decompressed_message_bytes: 0,
            max_message_bytes: 0,
            timestamp_after_max_ms: 0,
            timestamp_before_max_ms: 0,
            timestamp_type: TimestampType::CreateTime,
            min_cleanable_dirty_ratio: 0.0,
            min_compaction_lag_ms: 0,
            min_insync_replicas: 1,
            preallocate: false,
            remote_storage_enable: false,
            retention_bytes: -1,
            retention_ms: -1,
            segment_bytes: 0,
            segment_index_bytes: 0,
            segment_jitter_ms: 0,
            segment_ms: 0,
            unclean_leader_election_enable: false,
            record_validation: RecordValidation::Header,
        }
    }

    /// Takes over one value; a key that has no field here, or a text that is no value, changes nothing.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        match name {
            "cleanup.policy" => {
                let has = |policy| parse_list(value).any(|entry| entry == policy);
                self.cleanup_policy = CleanupPolicy { delete: has("delete"), compact: has("compact") };
            }
            "compression.type" => set(&mut self.compression, Compression::parse(value)),
            "message.timestamp.type" => set(&mut self.timestamp_type, TimestampType::parse(value)),
            "min.cleanable.dirty.ratio" => {
                set(&mut self.min_cleanable_dirty_ratio, value.trim().parse().ok())
            }
            "preallocate" => set(&mut self.preallocate, parse_bool(value)),
            "remote.storage.enable" => set(&mut self.remote_storage_enable, parse_bool(value)),
            "unclean.leader.election.enable" => {
                set(&mut self.unclean_leader_election_enable, parse_bool(value))
            }
            _ => {
                if let Some(field) = self.long(name) {
                    set(field, parse_whole(Kind::Long, value));
                } else if let Some(field) = self.int(name) {
                    set(field, value.trim().parse().ok());
                }
            }
        }
    }

    fn int(&mut self, name: &str) -> Option<&mut i32> {
        Some(match name {
            "compression.gzip.level" => &mut self.gzip_level,
            "compression.lz4.level" => &mut self.lz4_level,
            "compression.zstd.level" => &mut self.zstd_level,
            "index.interval.bytes" => &mut self.index_interval_bytes,
            "max.decompressed.message.bytes" => &mut self.max_decompressed_message_bytes,
            "max.message.bytes" => &mut self.max_message_bytes,
            "min.insync.replicas" => &mut self.min_insync_replicas,
            "segment.bytes" | "internal.segment.bytes" => &mut self.segment_bytes,
            "segment.index.bytes" => &mut self.segment_index_bytes,
            _ => return None,
        })
    }

    fn long(&mut self, name: &str) -> Option<&mut i64> {
        Some(match name {
            "delete.retention.ms" => &mut self.delete_retention_ms,
            "file.delete.delay.ms" => &mut self.file_delete_delay_ms,
            "flush.messages" => &mut self.flush_messages,
            "flush.ms" => &mut self.flush_ms,
            "max.compaction.lag.ms" => &mut self.max_compaction_lag_ms,
            "message.timestamp.after.max.ms" => &mut self.timestamp_after_max_ms,
            "message.timestamp.before.max.ms" => &mut self.timestamp_before_max_ms,
            "min.compaction.lag.ms" => &mut self.min_compaction_lag_ms,
            "retention.bytes" => &mut self.retention_bytes,
            "retention.ms" => &mut self.retention_ms,
            "segment.jitter.ms" => &mut self.segment_jitter_ms,
            "segment.ms" => &mut self.segment_ms,
            _ => return None,
        })
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

impl Compression {
    /// Reads a value of `compression.type`.
    pub fn parse(value: &str) -> Option<Self> {
        Some(match value.trim() {
            "producer" => Self::Producer,
            "uncompressed" => Self::Uncompressed,
            "gzip" => Self::Gzip,
            "snappy" => Self::Snappy,
            "lz4" => Self::Lz4,
            "zstd" => Self::Zstd,
            _ => return None,
        })
    }
}

impl TimestampType {
    /// Reads a value of `message.timestamp.type`.
    pub fn parse(value: &str) -> Option<Self> {
        Some(match value.trim() {
            "CreateTime" => Self::CreateTime,
            "LogAppendTime" => Self::LogAppendTime,
            _ => return None,
        })
    }
}

/// Why a set of topic configs is refused: error code `INVALID_CONFIG`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopicConfigRefusal {
    #[error("Unknown topic config name: {name}{suggestion}")]
    Unknown { name: String, suggestion: String },
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error(
        "conflict in topic configs: min.compaction.lag.ms ({least}) is above max.compaction.lag.ms ({most})"
    )]
    CompactionLags { least: i64, most: i64 },
    #[error("remote.storage.enable cannot be true: tiered storage is switched off on this broker")]
    TieredStorage,
}

/// Checks a topic's own configs, all that it will have, over the broker's `defaults`.
///
/// # Source
/// Kafka `LogConfig.validate`.
pub fn validate_topic_configs(
    overrides: &Properties,
    defaults: &TopicConfig,
) -> Result<(), TopicConfigRefusal> {
    for (name, value) in overrides {
        let Some(key) = Resource::Topic.key(name) else {
            let suggestion = super::nearest(Resource::Topic, name);
            let suggestion = suggestion.map_or_else(String::new, |key| format!("; did you mean {key}?"));
            return Err(TopicConfigRefusal::Unknown { name: name.to_string(), suggestion });
        };
        check(key, value)?;
    }
    let all = defaults.with_overrides(overrides.iter().map(|(name, value)| (&**name, &**value)));
    let (least, most) = (all.min_compaction_lag_ms, all.max_compaction_lag_ms);
    if least > most {
        return Err(TopicConfigRefusal::CompactionLags { least, most });
    }
    if all.remote_storage_enable {
        return Err(TopicConfigRefusal::TieredStorage);
    }
    Ok(())
}
