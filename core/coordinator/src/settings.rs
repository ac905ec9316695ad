//! Settings and topics as the coordinators need them, from the broker's configuration and the image.
//!
//! config.rs defines the settings of groups, transactions/config.rs and share_state/config.rs those of the others.

use std::sync::Arc;

use barnabas_base::{DurationMs, Map, Text};
use barnabas_metadata::config::{BrokerConfig, ConfigSource, group_number, keeps_topology_descriptions};
use barnabas_metadata::{Changes, Image, ResourceType, Values, features};

use crate::config::{
    ConsumerConfig, GroupConfig, GroupTimes, MigrationPolicy, PerGroup, ShareConfig, StreamsConfig,
    StreamsSettings,
};
use crate::framework::TransactionVersion;
use crate::share_state::ShareStateConfig;
use crate::transactions::TransactionConfig;

const MEMORY_KEY: &str = "groups.memory.max.bytes";
/// Where the key is not set, the bound is this part of the machine's memory, and no more than the key's default.
const MEMORY_PART: u64 = 8;
const MEMORY_LEAST: usize = 1 << 20;

/// Topics that were created, deleted or got more partitions.
#[derive(Debug)]
pub struct ChangedTopics {
    /// `None`: any.
    pub names: Option<Vec<Text>>,
    pub has_new: bool,
}

/// Between two images.
pub fn changed_topics(before: &Image, image: &Image, changes: &Changes) -> ChangedTopics {
    if changes.everything {
        return ChangedTopics { names: None, has_new: true };
    }
    let count = |image: &Image, name: &Text| {
        image.topics.by_name(name).map(|topic| (topic.id, topic.partition_count()))
    };
    let topics = changes.topics.values();
    let concerned = topics.filter(|topic| count(before, &topic.name) != count(image, &topic.name));
    let names: Vec<Text> = concerned.map(|topic| topic.name.clone()).collect();
    let has_new = names.iter().any(|name| before.topics.id_of(name) != image.topics.id_of(name));
    ChangedTopics { names: Some(names), has_new }
}

/// `memory_bytes`: of the machine.
pub fn group_config(config: &BrokerConfig, image: &Image, memory_bytes: u64) -> GroupConfig {
    let count = |key| usize::try_from(config.long(key)).unwrap_or(usize::MAX);
    let minutes = |key| DurationMs(config.long(key).saturating_mul(60_000));
    let millis = |key| DurationMs(config.long(key));
    GroupConfig {
        group_size_max: count("group.max.size"),
        initial_rebalance_delay: millis("group.initial.rebalance.delay.ms"),
        session_timeout_min: millis("group.min.session.timeout.ms"),
        session_timeout_max: millis("group.max.session.timeout.ms"),
        offset_metadata_max: count("offset.metadata.max.bytes"),
        offsets_retention: minutes("offsets.retention.minutes"),
        offsets_retention_check_interval: millis("offsets.retention.check.interval.ms"),
        commit_timeout: millis("offsets.commit.timeout.ms"),
        batch_bytes_max: count("message.max.bytes").saturating_sub(4096).max(4096),
        member_bytes_max: count("group.member.metadata.max.bytes"),
        group_bytes_max: count("group.memory.max.bytes"),
        groups_bytes_max: memory_bytes_max(config, memory_bytes),
        settling_heartbeat_interval: millis("group.settling.heartbeat.interval.ms"),
        consumer: consumer_config(config, image),
        streams: streams_config(config, image),
        share: share_config(config, image),
        ..GroupConfig::default()
    }
}

/// As [`group_config`].
pub fn transaction_config(config: &BrokerConfig, image: &Image, memory_bytes: u64) -> TransactionConfig {
    let millis = |key| DurationMs(config.long(key));
    let batch_bytes = usize::try_from(config.long("message.max.bytes")).unwrap_or(usize::MAX);
    TransactionConfig {
        version: TransactionVersion(image.features.level(features::name::TRANSACTION)),
        timeout_max: millis("transaction.max.timeout.ms"),
        id_expiration: millis("transactional.id.expiration.ms"),
        id_expiration_check_interval: millis("transaction.remove.expired.transaction.cleanup.interval.ms"),
        append_timeout: millis("request.timeout.ms"),
        busy_patience: millis("add.partitions.to.txn.retry.backoff.max.ms"),
        batch_bytes_max: batch_bytes.saturating_sub(4096).max(4096),
        memory_bytes_max: memory_bytes_max(config, memory_bytes),
        ..TransactionConfig::default()
    }
}

/// As [`group_config`].
pub fn share_state_config(config: &BrokerConfig, memory_bytes: u64) -> ShareStateConfig {
    let millis = |key| DurationMs(config.long(key));
    let batch_bytes = usize::try_from(config.long("message.max.bytes")).unwrap_or(usize::MAX);
    let updates = config.long("share.coordinator.snapshot.update.records.per.snapshot");
    ShareStateConfig {
        updates_per_snapshot: u32::try_from(updates).unwrap_or(u32::MAX),
        write_timeout: millis("share.coordinator.write.timeout.ms"),
        prune_interval: millis("share.coordinator.state.topic.prune.interval.ms"),
        cold_snapshot_interval: millis("share.coordinator.cold.partition.snapshot.interval.ms"),
        batch_bytes_max: batch_bytes.saturating_sub(4096).max(4096),
        memory_bytes_max: memory_bytes_max(config, memory_bytes),
        ..ShareStateConfig::default()
    }
}

/// What all coordinators of the node may hold.
fn memory_bytes_max(config: &BrokerConfig, memory_bytes: u64) -> usize {
    let set = usize::try_from(config.long(MEMORY_KEY)).unwrap_or(usize::MAX);
    let is_default =
        config.levels(MEMORY_KEY).first().is_none_or(|level| level.source == ConfigSource::Default);
    if !is_default {
        return set;
    }
    usize::try_from(memory_bytes / MEMORY_PART).unwrap_or(usize::MAX).max(MEMORY_LEAST).min(set)
}

fn consumer_config(config: &BrokerConfig, image: &Image) -> ConsumerConfig {
    let standard = ConsumerConfig::default();
    let assignors = config.list("group.consumer.assignors").into_iter().filter_map(assignor).collect();
    ConsumerConfig {
        assignors: Some(assignors)
            .filter(|known: &Vec<Text>| !known.is_empty())
            .unwrap_or(standard.assignors),
        size_max: usize::try_from(config.long("group.consumer.max.size")).unwrap_or(usize::MAX),
        times: per_group(CONSUMER.of_broker(config), image, |own, times| {
            CONSUMER.of_group(own, config, times)
        }),
        regex_refresh_interval: DurationMs(config.long("group.consumer.regex.refresh.interval.ms")),
        migration: match config
            .value("group.consumer.migration.policy")
            .unwrap_or_default()
            .to_ascii_lowercase()
            .as_str()
        {
            "disabled" => MigrationPolicy::Disabled,
            "upgrade" => MigrationPolicy::Upgrade,
            "downgrade" => MigrationPolicy::Downgrade,
            _ => MigrationPolicy::Bidirectional,
        },
        assign_at_once_max: standard.assign_at_once_max,
    }
}

fn share_config(config: &BrokerConfig, image: &Image) -> ShareConfig {
    ShareConfig {
        size_max: usize::try_from(config.long("group.share.max.size")).unwrap_or(usize::MAX),
        times: per_group(SHARE.of_broker(config), image, |own, times| SHARE.of_group(own, config, times)),
    }
}

/// An assignor by its name, or by that of Kafka's class for it.
fn assignor(name: &str) -> Option<Text> {
    match name.rsplit('.').next().unwrap_or(name) {
        "uniform" | "UniformAssignor" => Some(Text::from("uniform")),
        "range" | "RangeAssignor" => Some(Text::from("range")),
        _ => None,
    }
}

/// What the broker says, and what groups say otherwise.
fn per_group<T: PartialEq>(standard: T, image: &Image, own_of: impl Fn(&Values, &T) -> T) -> PerGroup<T> {
    let groups = image.configs.of_kind(ResourceType::Group);
    let own = groups.map(|(resource, values)| (resource.name.clone(), own_of(values, &standard)));
    let own: Map<Text, T> = own.filter(|(_, own)| *own != standard).collect();
    PerGroup { standard, own: Arc::new(own) }
}

/// The keys of one kind's times: the broker's, and a group's own.
struct TimeKeys {
    session_timeout: (&'static str, &'static str),
    heartbeat_interval: (&'static str, &'static str),
    assignment_interval: (&'static str, &'static str),
}

const CONSUMER: TimeKeys = TimeKeys {
    session_timeout: ("group.consumer.session.timeout.ms", "consumer.session.timeout.ms"),
    heartbeat_interval: ("group.consumer.heartbeat.interval.ms", "consumer.heartbeat.interval.ms"),
    assignment_interval: ("group.consumer.assignment.interval.ms", "consumer.assignment.interval.ms"),
};

const SHARE: TimeKeys = TimeKeys {
    session_timeout: ("group.share.session.timeout.ms", "share.session.timeout.ms"),
    heartbeat_interval: ("group.share.heartbeat.interval.ms", "share.heartbeat.interval.ms"),
    assignment_interval: ("group.share.assignment.interval.ms", "share.assignment.interval.ms"),
};

const STREAMS: TimeKeys = TimeKeys {
    session_timeout: ("group.streams.session.timeout.ms", "streams.session.timeout.ms"),
    heartbeat_interval: ("group.streams.heartbeat.interval.ms", "streams.heartbeat.interval.ms"),
    assignment_interval: ("group.streams.assignment.interval.ms", "streams.assignment.interval.ms"),
};

impl TimeKeys {
    fn of_broker(&self, config: &BrokerConfig) -> GroupTimes {
        let millis = |(key, _): (&'static str, _)| DurationMs(config.long(key));
        GroupTimes {
            session_timeout: millis(self.session_timeout),
            heartbeat_interval: millis(self.heartbeat_interval),
            assignment_interval: millis(self.assignment_interval),
        }
    }

    fn of_group(&self, own: &Values, config: &BrokerConfig, standard: &GroupTimes) -> GroupTimes {
        let millis = |(_, key): (_, &str), standard| number(own, key, config).map_or(standard, DurationMs);
        GroupTimes {
            session_timeout: millis(self.session_timeout, standard.session_timeout),
            heartbeat_interval: millis(self.heartbeat_interval, standard.heartbeat_interval),
            assignment_interval: millis(self.assignment_interval, standard.assignment_interval),
        }
    }
}

/// A number that a group says. `None`: it says none.
fn number(own: &Values, key: &str, config: &BrokerConfig) -> Option<i64> {
    group_number(key, own.get(key)?, config)
}

fn streams_config(config: &BrokerConfig, image: &Image) -> StreamsConfig {
    let count = |key| usize::try_from(config.long(key)).unwrap_or(usize::MAX);
    let tags = config.list("group.streams.rack.aware.assignment.tags").into_iter().map(Text::from);
    let settings = StreamsSettings {
        times: STREAMS.of_broker(config),
        initial_rebalance_delay: DurationMs(config.long("group.streams.initial.rebalance.delay.ms")),
        standby_replicas: count("group.streams.num.standby.replicas"),
        task_offset_interval: DurationMs(config.long("group.streams.task.offset.interval.ms")),
        acceptable_recovery_lag: config.long("group.streams.acceptable.recovery.lag"),
        rack_tags: Arc::new(tags.collect()),
    };
    StreamsConfig {
        size_max: count("group.streams.max.size"),
        settings: per_group(settings, image, |own, settings| own_streams_settings(config, own, settings)),
        keeps_descriptions: keeps_topology_descriptions(config),
    }
}

/// As [`TimeKeys::of_group`], of a streams group.
fn own_streams_settings(config: &BrokerConfig, own: &Values, standard: &StreamsSettings) -> StreamsSettings {
    let number = |key: &str| number(own, key, config).map(|number| number.max(0));
    let millis = |key: &str, standard: DurationMs| {
        number(key).map_or(standard, |number| DurationMs(number.min(i64::from(i32::MAX))))
    };
    let standbys = number("streams.num.standby.replicas");
    let tags = own.get("streams.rack.aware.assignment.tags");
    let tags = tags.map(|tags| tags.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(Text::from));
    StreamsSettings {
        times: STREAMS.of_group(own, config, &standard.times),
        initial_rebalance_delay: millis(
            "streams.initial.rebalance.delay.ms",
            standard.initial_rebalance_delay,
        ),
        standby_replicas: standbys
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(standard.standby_replicas),
        task_offset_interval: millis("streams.task.offset.interval.ms", standard.task_offset_interval),
        acceptable_recovery_lag: number("streams.acceptable.recovery.lag")
            .unwrap_or(standard.acceptable_recovery_lag),
        rack_tags: tags.map_or_else(|| Arc::clone(&standard.rack_tags), |tags| Arc::new(tags.collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_metadata::config::{Properties, Resource, StaticConfig};

    #[test]
    fn keys_of_times_are_kafkas_and_a_groups_own_win() {
        let config = BrokerConfig::new(StaticConfig::check(Properties::new()).expect("settings").0);
        for keys in [CONSUMER, SHARE, STREAMS] {
            let standard = keys.of_broker(&config);
            assert_eq!(standard, GroupTimes::default());
            let own = [
                (keys.session_timeout.1, "50000"),
                (keys.heartbeat_interval.1, "6000"),
                (keys.assignment_interval.1, "2000"),
            ];
            assert!(own.iter().all(|(key, _)| Resource::Group.key(key).is_some()), "{own:?}");
            let own: Values =
                own.into_iter().map(|(key, value)| (Text::from(key), Text::from(value))).collect();
            let times = GroupTimes {
                session_timeout: DurationMs(50_000),
                heartbeat_interval: DurationMs(6_000),
                assignment_interval: DurationMs(2_000),
            };
            assert_eq!(keys.of_group(&own, &config, &standard), times);
            assert_eq!(keys.of_group(&Values::default(), &config, &times), times);
        }
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn bound_is_an_eighth_of_the_memory_unless_it_is_set() {
        let config = |text: &str| {
            let lines = text.split_whitespace().filter_map(|line| line.split_once('='));
            let given = lines.map(|(name, value)| (Text::from(name), Text::from(value))).collect();
            BrokerConfig::new(StaticConfig::check(given).expect("settings").0)
        };
        let max = |config: &BrokerConfig, memory| memory_bytes_max(config, memory) as u64;
        assert_eq!(max(&config(""), 1024 * MIB), 128 * MIB);
        assert_eq!(max(&config(""), 64 * 1024 * MIB), 256 * MIB);
        assert_eq!(max(&config("groups.memory.max.bytes=268435456"), 1024 * MIB), 256 * MIB);
    }
}
