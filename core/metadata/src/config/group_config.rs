//! Which configurations a group or a client-metrics subscription may have, beyond type and range of each key.
//!
//! Source: Kafka 4.4 `GroupConfig.validate`, `ClientMetricsConfigs.validate`. Not checked here: `match`
//! (core/telemetry's `check_match`), which needs regular expressions.

use super::status::{TOPOLOGY_PLUG_IN, is_built_in_plug_in};
use super::value::{parse_list, parse_whole};
use super::{BrokerConfig, Kind, Properties, Resource, ValueError, check, nearest};

/// Why a group's or a subscription's configs are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupConfigRefusal {
    #[error("Unknown {kind} config name: {name}{suggestion}")]
    Unknown { kind: &'static str, name: String, suggestion: String },
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error("{key} must be greater than or equal to {bound}")]
    TooSmall { key: &'static str, bound: &'static str },
    #[error("{key} must be less than or equal to {bound}")]
    TooLarge { key: &'static str, bound: &'static str },
    #[error("{key} must be in the range {least} to {most} inclusive.")]
    Range { key: &'static str, least: i64, most: i64 },
    #[error("{session} must be greater than {heartbeat}")]
    SessionTooShort { session: &'static str, heartbeat: &'static str },
    #[error("{key} must not contain duplicate tag keys.")]
    Duplicate { key: &'static str },
    #[error("{key} '{value}' is none of this cluster's: {known}")]
    Assignor { key: &'static str, value: String, known: String },
    #[error("{key} must not start with '__'")]
    InternalTopic { key: &'static str },
}

/// A group's key, and the broker's bounds for it: none, where `""`.
pub(super) const BOUNDS: &[(&str, &str, &str)] = &[
    (
        "consumer.assignment.interval.ms",
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
    ),
    (
        "consumer.heartbeat.interval.ms",
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    (
        "consumer.session.timeout.ms",
        "group.consumer.min.session.timeout.ms",
        "group.consumer.max.session.timeout.ms",
    ),
    (
        "share.assignment.interval.ms",
        "group.share.min.assignment.interval.ms",
        "group.share.max.assignment.interval.ms",
    ),
    (
        "share.delivery.count.limit",
        "group.share.min.delivery.count.limit",
        "group.share.max.delivery.count.limit",
    ),
    (
        "share.heartbeat.interval.ms",
        "group.share.min.heartbeat.interval.ms",
        "group.share.max.heartbeat.interval.ms",
    ),
    (
        "share.partition.max.record.locks",
        "group.share.min.partition.max.record.locks",
        "group.share.max.partition.max.record.locks",
    ),
    (
        "share.record.lock.duration.ms",
        "group.share.min.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
    ),
    ("share.session.timeout.ms", "group.share.min.session.timeout.ms", "group.share.max.session.timeout.ms"),
    (
        "streams.assignment.interval.ms",
        "group.streams.min.assignment.interval.ms",
        "group.streams.max.assignment.interval.ms",
    ),
    (
        "streams.heartbeat.interval.ms",
        "group.streams.min.heartbeat.interval.ms",
        "group.streams.max.heartbeat.interval.ms",
    ),
    ("streams.num.standby.replicas", "", "group.streams.max.standby.replicas"),
    ("streams.num.warmup.replicas", "", "group.streams.max.warmup.replicas"),
    (
        "streams.session.timeout.ms",
        "group.streams.min.session.timeout.ms",
        "group.streams.max.session.timeout.ms",
    ),
    ("streams.task.offset.interval.ms", "group.streams.min.task.offset.interval.ms", ""),
];

/// Session timeout, heartbeat interval; the broker's keys are the same behind `group.`.
pub(super) const SESSIONS: &[(&str, &str, &str, &str)] = &[
    (
        "consumer.session.timeout.ms",
        "consumer.heartbeat.interval.ms",
        "group.consumer.session.timeout.ms",
        "group.consumer.heartbeat.interval.ms",
    ),
    (
        "share.session.timeout.ms",
        "share.heartbeat.interval.ms",
        "group.share.session.timeout.ms",
        "group.share.heartbeat.interval.ms",
    ),
    (
        "streams.session.timeout.ms",
        "streams.heartbeat.interval.ms",
        "group.streams.session.timeout.ms",
        "group.streams.heartbeat.interval.ms",
    ),
];

/// A number of a group's own configs, limited to the broker's bounds as they are now. `None`: it is no number.
///
/// # Source
/// Kafka 4.4 `GroupConfig.fromProps`: a value outside of bounds that were set later counts as the nearest bound.
pub fn group_number(key: &str, value: &str, broker: &BrokerConfig) -> Option<i64> {
    let value = value.trim().parse::<i64>().ok()?;
    let bounds = BOUNDS.iter().find(|(bounded, ..)| *bounded == key);
    let bound = |name: &'static str, none: i64| if name.is_empty() { none } else { broker.long(name) };
    let (least, most) = bounds
        .map_or((i64::MIN, i64::MAX), |&(_, least, most)| (bound(least, i64::MIN), bound(most, i64::MAX)));
    Some(value.max(least).min(most.max(least)))
}

/// Checks a group's own configs, all that it will have.
pub fn validate_group_configs(own: &Properties, broker: &BrokerConfig) -> Result<(), GroupConfigRefusal> {
    check_each(Resource::Group, "group", own)?;
    let number = |key: &str| own.get(key).and_then(|value| parse_whole(Kind::Long, value));
    for &(key, least, most) in BOUNDS {
        let Some(value) = number(key) else { continue };
        if !least.is_empty() && value < broker.long(least) {
            return Err(GroupConfigRefusal::TooSmall { key, bound: least });
        }
        if !most.is_empty() && value > broker.long(most) {
            return Err(GroupConfigRefusal::TooLarge { key, bound: most });
        }
    }
    for &(session, heartbeat, broker_session, broker_heartbeat) in SESSIONS {
        let (own_session, own_heartbeat) = (number(session), number(heartbeat));
        if own_session.is_none() && own_heartbeat.is_none() {
            continue;
        }
        let timeout = own_session.unwrap_or_else(|| broker.long(broker_session));
        if timeout <= own_heartbeat.unwrap_or_else(|| broker.long(broker_heartbeat)) {
            return Err(GroupConfigRefusal::SessionTooShort { session, heartbeat });
        }
    }
    check_names(own, broker)
}

fn check_names(own: &Properties, broker: &BrokerConfig) -> Result<(), GroupConfigRefusal> {
    let key = "streams.rack.aware.assignment.tags";
    if let Some(tags) = own.get(key) {
        let mut tags: Vec<&str> = parse_list(tags).collect();
        let given = tags.len();
        tags.sort_unstable();
        tags.dedup();
        if tags.len() < given {
            return Err(GroupConfigRefusal::Duplicate { key });
        }
    }
    let key = "streams.assignor.name";
    let known = broker.list("group.streams.assignors");
    if let Some(value) = own.get(key).filter(|value| !known.contains(&value.trim())) {
        return Err(GroupConfigRefusal::Assignor { key, value: value.to_string(), known: known.join(", ") });
    }
    let key = "errors.deadletterqueue.topic.name";
    if own.get(key).is_some_and(|topic| topic.trim().starts_with("__")) {
        return Err(GroupConfigRefusal::InternalTopic { key });
    }
    Ok(())
}

/// Whether the coordinator asks streams groups for descriptions of their topologies, and keeps them.
pub fn keeps_topology_descriptions(broker: &BrokerConfig) -> bool {
    broker.value(TOPOLOGY_PLUG_IN).is_some_and(is_built_in_plug_in)
}

/// Checks a client-metrics subscription's configs, all that it will have.
pub fn validate_client_metrics_configs(own: &Properties) -> Result<(), GroupConfigRefusal> {
    const LEAST_MS: i64 = 100;
    const MOST_MS: i64 = 3_600_000;
    check_each(Resource::ClientMetrics, "client metrics", own)?;
    let key = "interval.ms";
    let interval = own.get(key).and_then(|value| parse_whole(Kind::Int, value));
    if interval.is_some_and(|interval| !(LEAST_MS..=MOST_MS).contains(&interval)) {
        return Err(GroupConfigRefusal::Range { key, least: LEAST_MS, most: MOST_MS });
    }
    Ok(())
}

fn check_each(resource: Resource, kind: &'static str, own: &Properties) -> Result<(), GroupConfigRefusal> {
    for (name, value) in own {
        let Some(key) = resource.key(name) else {
            let suggestion = nearest(resource, name);
            let suggestion = suggestion.map_or_else(String::new, |key| format!("; did you mean {key}?"));
            return Err(GroupConfigRefusal::Unknown { kind, name: name.to_string(), suggestion });
        };
        check(key, value)?;
    }
    Ok(())
}
