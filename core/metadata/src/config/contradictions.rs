//! Settings of a broker each of which may be, but not with the other: named together, in one line.
//!
//! Only pairs of which at least one was set: defaults agree. Ids, listeners and directories are judged where they are
//! read (shell).
//!
//! Source: Kafka 4.4 `KafkaConfig.validateValues`, `GroupCoordinatorConfig`, `ShareGroupConfig`, which refuse all but
//! [`Contradiction::is_bearable`] ones.

use super::group_config::{BOUNDS, SESSIONS};
use super::{BrokerConfig, group_synonym};

/// Two settings that do not go together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    pub key: &'static str,
    /// Both values, the other key, and what was expected.
    pub problem: String,
    pub example: String,
    /// Kafka starts with them, and most things work: worth a warning.
    pub is_bearable: bool,
}

/// How a key's value is to stand to the other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    AtMost,
    Below,
}

use Order::{AtMost, Below};

/// Key, order, other key.
const PAIRS: &[(&str, Order, &str)] = &[
    ("broker.heartbeat.interval.ms", Below, "broker.session.timeout.ms"),
    ("log.cleaner.min.compaction.lag.ms", AtMost, "log.cleaner.max.compaction.lag.ms"),
    ("replica.fetch.wait.max.ms", AtMost, "replica.lag.time.max.ms"),
    ("replica.fetch.wait.max.ms", AtMost, "replica.socket.timeout.ms"),
];

/// The same, and what does not work then.
const BEARABLE: &[(&str, Order, &str, &str)] = &[
    (
        "group.min.session.timeout.ms",
        AtMost,
        "group.max.session.timeout.ms",
        "no consumer of the classic protocol can join a group",
    ),
    ("message.max.bytes", AtMost, "socket.request.max.bytes", "the largest batches cannot arrive"),
];

/// What of this broker's settings contradicts another.
pub fn contradictions(config: &BrokerConfig) -> Vec<Contradiction> {
    let mut found: Vec<Contradiction> =
        PAIRS.iter().filter_map(|&(key, order, other)| judge(config, key, order, other)).collect();
    for &(group_key, least, most) in BOUNDS {
        let Some(key) = group_synonym(group_key) else { continue };
        let bounds = [(least, key), (key, most), (least, most)].into_iter();
        let named = bounds.filter(|(low, high)| !low.is_empty() && !high.is_empty());
        found.extend(named.filter_map(|(low, high)| judge(config, low, AtMost, high)));
    }
    let sessions = SESSIONS.iter();
    found.extend(sessions.filter_map(|&(_, _, session, heartbeat)| judge(config, heartbeat, Below, session)));
    found.extend(no_connection_allowed(config));
    found.extend(cleaners_without_room(config));
    found.extend(BEARABLE.iter().filter_map(|&(key, order, other, consequence)| {
        let mut bearable = judge(config, key, order, other)?;
        bearable.problem = format!("{}: {consequence}", bearable.problem);
        bearable.is_bearable = true;
        Some(bearable)
    }));
    found
}

fn judge(
    config: &BrokerConfig,
    key: &'static str,
    order: Order,
    other: &'static str,
) -> Option<Contradiction> {
    if !is_given(config, key) && !is_given(config, other) {
        return None;
    }
    let (value, bound) = (config.long(key), config.long(other));
    let (is_sound, expected) = match order {
        AtMost => (value <= bound, "at least as much"),
        Below => (value < bound, "more"),
    };
    (!is_sound).then(|| Contradiction {
        key,
        problem: format!("{value} contradicts {other}={bound}, which must be {expected}"),
        example: format!("{other}={}", value.saturating_add(i64::from(order == Below))),
        is_bearable: false,
    })
}

fn no_connection_allowed(config: &BrokerConfig) -> Option<Contradiction> {
    const KEY: &str = "max.connections.per.ip";
    const OVERRIDES: &str = "max.connections.per.ip.overrides";
    let refuses_all = config.long(KEY) == 0 && config.list(OVERRIDES).is_empty();
    refuses_all.then(|| Contradiction {
        key: KEY,
        problem: format!("0 refuses every connection while {OVERRIDES} is empty"),
        example: format!("{OVERRIDES}=127.0.0.1:100"),
        is_bearable: false,
    })
}

/// Each thread of the cleaner needs a buffer of its own.
fn cleaners_without_room(config: &BrokerConfig) -> Option<Contradiction> {
    const KEY: &str = "log.cleaner.dedupe.buffer.size";
    const THREADS: &str = "log.cleaner.threads";
    const OF_EACH: i64 = 1 << 20;
    if !is_given(config, KEY) && !is_given(config, THREADS) {
        return None;
    }
    let (bytes, threads) = (config.long(KEY), config.long(THREADS).max(1));
    // More than 1 MiB, as in Kafka.
    (bytes / threads <= OF_EACH).then(|| Contradiction {
        key: KEY,
        problem: format!("{bytes} is no more than 1 MiB for each of {THREADS}={threads}"),
        example: format!("{KEY}={}", threads.saturating_mul(2 * OF_EACH)),
        is_bearable: false,
    })
}

fn is_given(config: &BrokerConfig, key: &str) -> bool {
    let dynamic = config.dynamic();
    config.given().get(key).is_some() || dynamic.broker.contains_key(key) || dynamic.default.contains_key(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StaticConfig;
    use barnabas_base::Text;

    fn said(given: &[(&str, &str)]) -> Vec<(bool, String)> {
        let given = given.iter().map(|(name, value)| (Text::from(*name), Text::from(*value))).collect();
        let (given, _) = StaticConfig::check(given).expect("each is sound by itself");
        let found = contradictions(&BrokerConfig::new(given));
        found.into_iter().map(|one| (one.is_bearable, format!("{}: {}", one.key, one.problem))).collect()
    }

    fn fatal(given: &[(&str, &str)]) -> String {
        match said(given).as_slice() {
            [(false, text)] => text.clone(),
            others => panic!("{others:?}"),
        }
    }

    #[test]
    fn defaults_agree() {
        assert_eq!(said(&[]), []);
        // Each key by itself, at its default.
        for key in crate::config::Resource::Broker.keys() {
            if let Some(value) =
                key.default_value().filter(|_| key.name != "broker.id" && key.name != "node.id")
            {
                assert_eq!(said(&[(key.name, value)]), [], "{}", key.name);
            }
        }
    }

    #[test]
    fn both_are_named() {
        assert_eq!(
            fatal(&[("replica.lag.time.max.ms", "100")]),
            "replica.fetch.wait.max.ms: 500 contradicts replica.lag.time.max.ms=100, which must be at least as much"
        );
        assert_eq!(
            fatal(&[("broker.session.timeout.ms", "1000"), ("broker.heartbeat.interval.ms", "1000")]),
            "broker.heartbeat.interval.ms: 1000 contradicts broker.session.timeout.ms=1000, which must be more"
        );
        assert!(
            fatal(&[("log.cleaner.max.compaction.lag.ms", "5"), ("log.cleaner.min.compaction.lag.ms", "6")])
                .contains("6 contradicts log.cleaner.max.compaction.lag.ms=5")
        );
        assert_eq!(
            fatal(&[("log.cleaner.threads", "2"), ("log.cleaner.dedupe.buffer.size", "2097152")]),
            "log.cleaner.dedupe.buffer.size: 2097152 is no more than 1 MiB for each of log.cleaner.threads=2"
        );
        assert!(
            fatal(&[("max.connections.per.ip", "0")]).contains("max.connections.per.ip.overrides is empty")
        );
    }

    #[test]
    fn groups_bounds_hold_for_what_the_broker_gives_them() {
        assert_eq!(
            fatal(&[("group.consumer.session.timeout.ms", "70000")]),
            "group.consumer.session.timeout.ms: 70000 contradicts group.consumer.max.session.timeout.ms=60000, which must be at \
             least as much"
        );
        assert!(fatal(&[("group.share.min.heartbeat.interval.ms", "6000")]).starts_with(
            "group.share.min.heartbeat.interval.ms: 6000 contradicts group.share.heartbeat.interval.ms=5000"
        ));
        assert!(
            fatal(&[
                ("group.streams.max.session.timeout.ms", "45000"),
                ("group.streams.heartbeat.interval.ms", "15000"),
                ("group.streams.min.session.timeout.ms", "1"),
                ("group.streams.session.timeout.ms", "9000")
            ])
            .starts_with(
                "group.streams.heartbeat.interval.ms: 15000 contradicts group.streams.session.timeout.ms=9000"
            )
        );
    }

    #[test]
    fn what_kafka_bears_is_a_warning() {
        let found = said(&[("message.max.bytes", "200000000")]);
        assert!(
            matches!(found.as_slice(), [(true, text)] if text.contains("socket.request.max.bytes=104857600")),
            "{found:?}"
        );
        let found = said(&[("group.max.session.timeout.ms", "5000")]);
        assert!(
            matches!(found.as_slice(), [(true, text)] if text.ends_with("can join a group")),
            "{found:?}"
        );
    }
}
