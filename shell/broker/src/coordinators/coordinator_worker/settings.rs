//! What the coordinators are told of settings and topics.

use crate::mailbox::ImageChange;
use crate::node::Node;
use barnabas_base::{DurationMs, Map, Text};
use barnabas_coordinator::{
    ConsumerConfig, ConsumerTimes, GroupConfig, MigrationPolicy, ShareConfig, ShareTimes, StreamsConfig,
    StreamsSettings,
};
use barnabas_metadata::config::BrokerConfig;
use barnabas_metadata::{Image, ResourceType};
use std::sync::Arc;

/// Topics that were created, deleted or got more partitions.
pub(super) struct ChangedTopics {
    /// `None`: any.
    pub names: Option<Vec<Text>>,
    pub has_new: bool,
}

pub(super) fn changed_topics(change: &ImageChange) -> ChangedTopics {
    if change.changes.everything {
        return ChangedTopics { names: None, has_new: true };
    }
    let count = |image: &Image, name: &Text| {
        image.topics.by_name(name).map(|topic| (topic.id, topic.partition_count()))
    };
    let topics = change.changes.topics.values();
    let concerned =
        topics.filter(|topic| count(&change.before, &topic.name) != count(&change.image, &topic.name));
    let names: Vec<Text> = concerned.map(|topic| topic.name.clone()).collect();
    let has_new =
        names.iter().any(|name| change.before.topics.id_of(name) != change.image.topics.id_of(name));
    ChangedTopics { names: Some(names), has_new }
}

pub(super) fn group_config(node: &Node) -> GroupConfig {
    let config = node.cluster.config.load();
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
        groups_bytes_max: super::memory::bytes_max(&config, node.workers.memory_bytes),
        settling_heartbeat_interval: millis("group.settling.heartbeat.interval.ms"),
        consumer: consumer_config(&config, &node.cluster.image.load()),
        streams: streams_config(&config, &node.cluster.image.load()),
        share: share_config(&config, &node.cluster.image.load()),
        ..GroupConfig::default()
    }
}

fn consumer_config(config: &BrokerConfig, image: &Image) -> ConsumerConfig {
    let standard = ConsumerConfig::default();
    let millis = |key| DurationMs(config.long(key));
    let times = ConsumerTimes {
        session_timeout: millis("group.consumer.session.timeout.ms"),
        heartbeat_interval: millis("group.consumer.heartbeat.interval.ms"),
        assignment_interval: millis("group.consumer.assignment.interval.ms"),
    };
    let assignors = config.list("group.consumer.assignors").into_iter().filter_map(assignor).collect();
    ConsumerConfig {
        assignors: Some(assignors)
            .filter(|known: &Vec<Text>| !known.is_empty())
            .unwrap_or(standard.assignors),
        size_max: usize::try_from(config.long("group.consumer.max.size")).unwrap_or(usize::MAX),
        times,
        of_groups: Arc::new(own_times(config, image, times)),
        regex_refresh_interval: millis("group.consumer.regex.refresh.interval.ms"),
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
    let millis = |key| DurationMs(config.long(key));
    let times = ShareTimes {
        session_timeout: millis("group.share.session.timeout.ms"),
        heartbeat_interval: millis("group.share.heartbeat.interval.ms"),
        assignment_interval: millis("group.share.assignment.interval.ms"),
    };
    ShareConfig {
        size_max: usize::try_from(config.long("group.share.max.size")).unwrap_or(usize::MAX),
        times,
        of_groups: Arc::new(own_share_times(config, image, times)),
    }
}

/// As [`own_times`], of share groups.
fn own_share_times(config: &BrokerConfig, image: &Image, standard: ShareTimes) -> Map<Text, ShareTimes> {
    let mut own = Map::default();
    for (resource, values) in image.configs.of_kind(ResourceType::Group) {
        let value = |key: &str, least: &'static str, most: &'static str, standard: DurationMs| {
            let said = values.iter().find(|(name, _)| name.as_str() == key);
            let said = said.and_then(|(_, value)| value.trim().parse::<i64>().ok());
            let (least, most) = (config.long(least), config.long(most));
            said.map_or(standard, |said| DurationMs(said.max(least).min(most.max(least))))
        };
        let times = ShareTimes {
            session_timeout: value(
                "share.session.timeout.ms",
                "group.share.min.session.timeout.ms",
                "group.share.max.session.timeout.ms",
                standard.session_timeout,
            ),
            heartbeat_interval: value(
                "share.heartbeat.interval.ms",
                "group.share.min.heartbeat.interval.ms",
                "group.share.max.heartbeat.interval.ms",
                standard.heartbeat_interval,
            ),
            assignment_interval: value(
                "share.assignment.interval.ms",
                "group.share.min.assignment.interval.ms",
                "group.share.max.assignment.interval.ms",
                standard.assignment_interval,
            ),
        };
        if times != standard {
            own.insert(resource.name.clone(), times);
        }
    }
    own
}

/// An assignor by its name, or by that of Kafka's class for it.
fn assignor(name: &str) -> Option<Text> {
    match name.rsplit('.').next().unwrap_or(name) {
        "uniform" | "UniformAssignor" => Some(Text::from("uniform")),
        "range" | "RangeAssignor" => Some(Text::from("range")),
        _ => None,
    }
}

/// What groups say of themselves, within the broker's bounds as they are now.
///
/// # Source
/// Kafka 4.4 `GroupConfig.fromProps`, which holds a value that a later bound leaves out at that bound.
fn own_times(config: &BrokerConfig, image: &Image, standard: ConsumerTimes) -> Map<Text, ConsumerTimes> {
    let mut own = Map::default();
    for (resource, values) in image.configs.of_kind(ResourceType::Group) {
        let said = |key: &str| values.iter().find(|(name, _)| name.as_str() == key).map(|(_, value)| value);
        let value = |key: &str, least: &'static str, most: &'static str, standard: DurationMs| {
            within(said(key), config.long(least), config.long(most)).map_or(standard, DurationMs)
        };
        let times = ConsumerTimes {
            session_timeout: value(
                "consumer.session.timeout.ms",
                "group.consumer.min.session.timeout.ms",
                "group.consumer.max.session.timeout.ms",
                standard.session_timeout,
            ),
            heartbeat_interval: value(
                "consumer.heartbeat.interval.ms",
                "group.consumer.min.heartbeat.interval.ms",
                "group.consumer.max.heartbeat.interval.ms",
                standard.heartbeat_interval,
            ),
            assignment_interval: value(
                "consumer.assignment.interval.ms",
                "group.consumer.min.assignment.interval.ms",
                "group.consumer.max.assignment.interval.ms",
                standard.assignment_interval,
            ),
        };
        if times != standard {
            own.insert(resource.name.clone(), times);
        }
    }
    own
}

/// A number that a group says, held at the broker's bounds. `None`: it says none.
fn within(said: Option<&Text>, least: i64, most: i64) -> Option<i64> {
    let said = said?.trim().parse::<i64>().ok()?;
    Some(said.max(least).min(most.max(least)))
}

fn streams_config(config: &BrokerConfig, image: &Image) -> StreamsConfig {
    let millis = |key| DurationMs(config.long(key));
    let count = |key| usize::try_from(config.long(key)).unwrap_or(usize::MAX);
    let tags = config.list("group.streams.rack.aware.assignment.tags").into_iter().map(Text::from);
    let settings = StreamsSettings {
        session_timeout: millis("group.streams.session.timeout.ms"),
        heartbeat_interval: millis("group.streams.heartbeat.interval.ms"),
        assignment_interval: millis("group.streams.assignment.interval.ms"),
        initial_rebalance_delay: millis("group.streams.initial.rebalance.delay.ms"),
        standby_replicas: count("group.streams.num.standby.replicas"),
        task_offset_interval: millis("group.streams.task.offset.interval.ms"),
        acceptable_recovery_lag: config.long("group.streams.acceptable.recovery.lag"),
        rack_tags: Arc::new(tags.collect()),
    };
    let mut own = Map::default();
    for (resource, values) in image.configs.of_kind(ResourceType::Group) {
        let said = |key: &str| values.iter().find(|(name, _)| name.as_str() == key).map(|(_, value)| value);
        let ours = own_streams_settings(config, said, &settings);
        if ours != settings {
            own.insert(resource.name.clone(), ours);
        }
    }
    StreamsConfig { size_max: count("group.streams.max.size"), settings, of_groups: Arc::new(own) }
}

/// As [`own_times`], of a streams group.
fn own_streams_settings<'a>(
    config: &BrokerConfig,
    said: impl Fn(&str) -> Option<&'a Text>,
    standard: &StreamsSettings,
) -> StreamsSettings {
    let bounded = |key: &str, least: &'static str, most: &'static str, standard: DurationMs| {
        within(said(key), config.long(least), config.long(most)).map_or(standard, DurationMs)
    };
    let plain = |key: &str, least: i64, most: i64| within(said(key), least, most);
    let standbys =
        plain("streams.num.standby.replicas", 0, config.long("group.streams.max.standby.replicas"));
    let tags = said("streams.rack.aware.assignment.tags");
    let tags = tags.map(|tags| tags.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(Text::from));
    StreamsSettings {
        session_timeout: bounded(
            "streams.session.timeout.ms",
            "group.streams.min.session.timeout.ms",
            "group.streams.max.session.timeout.ms",
            standard.session_timeout,
        ),
        heartbeat_interval: bounded(
            "streams.heartbeat.interval.ms",
            "group.streams.min.heartbeat.interval.ms",
            "group.streams.max.heartbeat.interval.ms",
            standard.heartbeat_interval,
        ),
        assignment_interval: bounded(
            "streams.assignment.interval.ms",
            "group.streams.min.assignment.interval.ms",
            "group.streams.max.assignment.interval.ms",
            standard.assignment_interval,
        ),
        initial_rebalance_delay: plain("streams.initial.rebalance.delay.ms", 0, i64::from(i32::MAX))
            .map_or(standard.initial_rebalance_delay, DurationMs),
        standby_replicas: standbys
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(standard.standby_replicas),
        task_offset_interval: plain(
            "streams.task.offset.interval.ms",
            config.long("group.streams.min.task.offset.interval.ms"),
            i64::from(i32::MAX),
        )
        .map_or(standard.task_offset_interval, DurationMs),
        acceptable_recovery_lag: plain("streams.acceptable.recovery.lag", 0, i64::MAX)
            .unwrap_or(standard.acceptable_recovery_lag),
        rack_tags: tags.map_or_else(|| Arc::clone(&standard.rack_tags), |tags| Arc::new(tags.collect())),
    }
}
