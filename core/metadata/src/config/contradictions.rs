//! Settings of a broker each of which may be, but not with the other: named together, in one line. Beside them, values
//! that Kafka starts with although they do not do what they seem to.
//!
//! Only pairs of which at least one was set: defaults agree. Ids, listeners and directories are judged where they are
//! read (shell).
//!
//! Source: Kafka 4.4 `KafkaConfig.validateValues`, `GroupCoordinatorConfig`, `ShareGroupConfig`, which refuse all but
//! [`Contradiction::is_bearable`] ones. core/config compares with what Apache Kafka refuses, key by key.

use super::group_config::{BOUNDS, SESSIONS};
use super::value::parse_whole;
use super::{BrokerConfig, Kind, group_synonym};

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
    ("group.share.max.size", AtMost, "group.share.max.share.sessions"),
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
    found.extend(idle_before_the_answer(config));
    found.extend(retention(config));
    found.extend(heartbeats_too_rare(config));
    found.extend(no_replicas(config));
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
    let (bytes, threads) = (config.long(KEY), config.long(THREADS));
    if threads < 1 {
        return Some(Contradiction {
            key: THREADS,
            problem: format!("{threads} threads compact nothing"),
            example: format!("{THREADS}=1"),
            is_bearable: false,
        });
    }
    // More than 1 MiB, as in Kafka.
    (bytes / threads <= OF_EACH).then(|| Contradiction {
        key: KEY,
        problem: format!("{bytes} is no more than 1 MiB for each of {THREADS}={threads}"),
        example: format!("{KEY}={}", threads.saturating_mul(2 * OF_EACH)),
        is_bearable: false,
    })
}

/// An answer that is delayed after a failed login must leave before its connection counts as idle.
fn idle_before_the_answer(config: &BrokerConfig) -> Option<Contradiction> {
    const DELAY: &str = "connection.failed.authentication.delay.ms";
    const IDLE: &str = "connections.max.idle.ms";
    judge(config, DELAY, Below, IDLE).filter(|_| config.long(IDLE) >= 0)
}

/// Records are kept for a time, or for ever.
fn retention(config: &BrokerConfig) -> Option<Contradiction> {
    const KEYS: [&str; 3] = ["log.retention.ms", "log.retention.minutes", "log.retention.hours"];
    let key = KEYS.into_iter().find(|key| is_given(config, key))?;
    let value = parse_whole(Kind::Long, config.value(key)?)?;
    let (problem, is_bearable) = match value {
        0 => ("must be unlimited (-1), or at least 1", false),
        ..=-2 => ("is below 0: records are kept for ever, as with -1", true),
        _ => return None,
    };
    Some(Contradiction {
        key,
        problem: format!("{value} {problem}"),
        example: format!("{key}=-1"),
        is_bearable,
    })
}

/// One lost heartbeat must not fence a broker. Kafka logs an error and starts.
fn heartbeats_too_rare(config: &BrokerConfig) -> Option<Contradiction> {
    const INTERVAL: &str = "broker.heartbeat.interval.ms";
    const SESSION: &str = "broker.session.timeout.ms";
    let (interval, session) = (config.long(INTERVAL), config.long(SESSION));
    let is_judged = is_given(config, INTERVAL) || is_given(config, SESSION);
    (is_judged && interval.saturating_mul(2) > session).then(|| Contradiction {
        key: INTERVAL,
        problem: format!(
            "{interval} is more than half of {SESSION}={session}: one lost heartbeat fences the broker"
        ),
        example: format!("{SESSION}={}", interval.saturating_mul(2)),
        is_bearable: true,
    })
}

/// Kafka starts, and refuses each topic that counts on this default.
fn no_replicas(config: &BrokerConfig) -> Option<Contradiction> {
    const KEY: &str = "default.replication.factor";
    let replicas = config.long(KEY);
    (replicas < 1).then(|| Contradiction {
        key: KEY,
        problem: format!(
            "{replicas} is no number of replicas: a topic that names none itself cannot be created"
        ),
        example: format!("{KEY}=1"),
        is_bearable: true,
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
    fn what_kafka_refuses_is_refused() {
        assert_eq!(
            fatal(&[("log.retention.minutes", "0")]),
            "log.retention.minutes: 0 must be unlimited (-1), or at least 1"
        );
        assert_eq!(said(&[("log.retention.ms", "1"), ("log.retention.hours", "0")]), []);
        assert_eq!(fatal(&[("log.cleaner.threads", "0")]), "log.cleaner.threads: 0 threads compact nothing");
        assert_eq!(
            fatal(&[("connections.max.idle.ms", "100")]),
            "connection.failed.authentication.delay.ms: 100 contradicts connections.max.idle.ms=100, which must be more"
        );
        assert_eq!(said(&[("connections.max.idle.ms", "-1")]), []);
        assert_eq!(
            fatal(&[("group.share.max.share.sessions", "100")]),
            "group.share.max.size: 200 contradicts group.share.max.share.sessions=100, which must be at least as much"
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
        for (given, words) in [
            (
                ("broker.session.timeout.ms", "3999"),
                "broker.heartbeat.interval.ms: 2000 is more than half of broker.session.timeout.ms=3999",
            ),
            (("default.replication.factor", "0"), "default.replication.factor: 0 is no number of replicas"),
            (("log.retention.hours", "-5"), "log.retention.hours: -5 is below 0: records are kept for ever"),
        ] {
            let found = said(&[given]);
            assert!(
                matches!(found.as_slice(), [(true, text)] if text.starts_with(words)),
                "{found:?} is not {words}"
            );
        }
        assert_eq!(said(&[("broker.session.timeout.ms", "4000")]), []);
        for key in ["log.retention.ms", "log.retention.minutes", "log.retention.hours"] {
            assert_eq!(said(&[(key, "-1")]), []);
        }
        let found = said(&[("group.max.session.timeout.ms", "5000")]);
        assert!(
            matches!(found.as_slice(), [(true, text)] if text.ends_with("can join a group")),
            "{found:?}"
        );
    }
}
