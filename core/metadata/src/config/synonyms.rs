//! Where a value comes from when it is not set under its own name.
//!
//! Source: Kafka 4.4 `ServerTopicConfigSynonyms`, `DynamicBrokerConfig.brokerConfigSynonyms`,
//! `GroupConfig.ALL_GROUP_CONFIG_SYNONYMS`.

/// How the broker key's number becomes the topic key's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Same,
    Minutes,
    Hours,
}

impl Unit {
    /// `value` in milliseconds; as it stands for [`Unit::Same`]. Saturates; less than nothing is −1, "no bound".
    pub fn to_ms(self, value: i64) -> i64 {
        match self {
            Self::Same => value,
            _ if value < 0 => -1,
            Self::Minutes => value.saturating_mul(60_000),
            Self::Hours => value.saturating_mul(3_600_000),
        }
    }
}

/// The broker keys that stand in for a topic key, the first one that is set decides.
pub fn topic_synonyms(topic_key: &str) -> &'static [(&'static str, Unit)] {
    const TABLE: &[(&str, &[(&str, Unit)])] = &[
        ("segment.bytes", &[("log.segment.bytes", Unit::Same)]),
        ("segment.ms", &[("log.roll.ms", Unit::Same), ("log.roll.hours", Unit::Hours)]),
        ("segment.jitter.ms", &[("log.roll.jitter.ms", Unit::Same), ("log.roll.jitter.hours", Unit::Hours)]),
        ("segment.index.bytes", &[("log.index.size.max.bytes", Unit::Same)]),
        ("flush.messages", &[("log.flush.interval.messages", Unit::Same)]),
        (
            "flush.ms",
            &[("log.flush.interval.ms", Unit::Same), ("log.flush.scheduler.interval.ms", Unit::Same)],
        ),
        ("retention.bytes", &[("log.retention.bytes", Unit::Same)]),
        (
            "retention.ms",
            &[
                ("log.retention.ms", Unit::Same),
                ("log.retention.minutes", Unit::Minutes),
                ("log.retention.hours", Unit::Hours),
            ],
        ),
        ("max.message.bytes", &[("message.max.bytes", Unit::Same)]),
        ("max.decompressed.message.bytes", &[("max.decompressed.message.bytes", Unit::Same)]),
        ("index.interval.bytes", &[("log.index.interval.bytes", Unit::Same)]),
        ("delete.retention.ms", &[("log.cleaner.delete.retention.ms", Unit::Same)]),
        ("min.compaction.lag.ms", &[("log.cleaner.min.compaction.lag.ms", Unit::Same)]),
        ("max.compaction.lag.ms", &[("log.cleaner.max.compaction.lag.ms", Unit::Same)]),
        ("file.delete.delay.ms", &[("log.segment.delete.delay.ms", Unit::Same)]),
        ("min.cleanable.dirty.ratio", &[("log.cleaner.min.cleanable.ratio", Unit::Same)]),
        ("cleanup.policy", &[("log.cleanup.policy", Unit::Same)]),
        ("unclean.leader.election.enable", &[("unclean.leader.election.enable", Unit::Same)]),
        ("min.insync.replicas", &[("min.insync.replicas", Unit::Same)]),
        ("compression.type", &[("compression.type", Unit::Same)]),
        ("compression.gzip.level", &[("compression.gzip.level", Unit::Same)]),
        ("compression.lz4.level", &[("compression.lz4.level", Unit::Same)]),
        ("compression.zstd.level", &[("compression.zstd.level", Unit::Same)]),
        ("preallocate", &[("log.preallocate", Unit::Same)]),
        ("message.timestamp.type", &[("log.message.timestamp.type", Unit::Same)]),
        ("message.timestamp.before.max.ms", &[("log.message.timestamp.before.max.ms", Unit::Same)]),
        ("message.timestamp.after.max.ms", &[("log.message.timestamp.after.max.ms", Unit::Same)]),
        ("local.retention.ms", &[("log.local.retention.ms", Unit::Same)]),
        ("local.retention.bytes", &[("log.local.retention.bytes", Unit::Same)]),
        ("remote.copy.lag.ms", &[("log.remote.copy.lag.ms", Unit::Same)]),
        ("remote.copy.lag.bytes", &[("log.remote.copy.lag.bytes", Unit::Same)]),
    ];
    TABLE.iter().find(|row| row.0 == topic_key).map_or(&[], |row| row.1)
}

/// The broker keys that say the same as `broker_key`, itself included, the first one that is set decides.
pub fn broker_synonyms(broker_key: &str) -> &'static [(&'static str, Unit)] {
    const FLUSH: &[(&str, Unit)] =
        &[("log.flush.interval.ms", Unit::Same), ("log.flush.scheduler.interval.ms", Unit::Same)];
    match broker_key {
        "log.roll.ms" | "log.roll.hours" => topic_synonyms("segment.ms"),
        "log.roll.jitter.ms" | "log.roll.jitter.hours" => topic_synonyms("segment.jitter.ms"),
        "log.retention.ms" | "log.retention.minutes" | "log.retention.hours" => {
            topic_synonyms("retention.ms")
        }
        "log.flush.interval.ms" => FLUSH,
        _ => &[],
    }
}

/// The broker key that stands in for a group key.
pub fn group_synonym(group_key: &str) -> Option<&'static str> {
    let below_group = match group_key {
        "share.auto.offset.reset" | "share.isolation.level" | "share.renew.acknowledge.enable" => {
            return None;
        }
        "streams.assignor.name" => "streams.assignors",
        _ => group_key,
    };
    let mut keys = crate::config::tables::broker_group_coordinators::KEYS.iter();
    keys.find(|key| key.name.strip_prefix("group.") == Some(below_group)).map(|key| key.name)
}
