//! T: what a topic's settings and its records say.

mod growth;
mod spread;

pub use growth::{FULL_ON_A_DATE, NEVER_FITS};
pub use spread::{HOT_KEY, HOT_PARTITION, IDLE_PARTITIONS, NEVER_COMPACTED, compressed, samples, topic_rate};

use std::collections::BTreeMap;

use super::words::{alter_topic, bytes, span, tool};
use super::{Rule, limit};
use crate::facts::{Configs, Facts, Source, Topic, number, text};
use crate::report::{Report, Severity};

const MIB: f64 = 1_048_576.0;
/// More often than once in so many seconds, a segment is too short.
const ROLL_S: f64 = 60.0;
const HOUR_MS: i64 = 3_600_000;

pub const UNCLEAN_ALLOWED: Rule = Rule {
    id: "T3",
    name: "Unclean leader election allowed",
    severity: Severity::Warning,
    evidence: "DescribeConfigs: unclean.leader.election.enable",
    threshold: "true",
    limit: None,
    advice: "A replica that misses acknowledged records may become leader, and they are lost. Allow it only where availability matters more than data.",
    command: "barnabas configs … --alter --entity-type topics --entity-name NAME --delete-config unclean.leader.election.enable",
    judge: |facts, _, report| {
        each(facts, report, |topic, configs, report| {
            let key = "unclean.leader.election.enable";
            if text(configs, key) == Some("true") {
                let sentence = format!("{key}=true: acknowledged records can be lost");
                report.find(subject(topic), sentence, vec![without(facts, topic, configs, key, "false")]);
            }
        });
    },
};

pub const UNUSED: Rule = Rule {
    id: "T4",
    name: "A topic that takes no records any more",
    severity: Severity::Info,
    evidence: "ListOffsets: the newest timestamp of each partition",
    threshold: "the newest record is older than {} d; empty topics left out",
    limit: limit(30.0),
    advice: "A candidate: ask its owner, then delete it, or leave its bytes to retention.",
    command: "barnabas topics … --delete --topic NAME",
    judge: |facts, limit, report| {
        let sizes = sizes(facts);
        each(facts, report, |topic, _, report| {
            let Some(newest) = newest(topic, report) else { return };
            let age_ms = (facts.now_ms - newest) as f64;
            if !topic.is_internal && age_ms > limit * 86_400_000.0 {
                let held = sizes
                    .get(topic.name.as_str())
                    .map_or_else(String::new, |held| format!(" and holds {}", bytes(*held as f64)));
                let sentence = format!("its newest record is {} old{held}", span(age_ms));
                let line = tool(facts, "topics", &format!("--delete --topic {}", topic.name));
                report.find(subject(topic), sentence, vec![line]);
            }
        });
    },
};

pub const LARGE_RECORDS: Rule = Rule {
    id: "T8",
    name: "Large batches allowed",
    severity: Severity::Info,
    evidence: "DescribeConfigs: max.message.bytes of topics",
    threshold: "more than {} MiB",
    limit: limit(10.0),
    advice: "A large batch holds up all that share its connection and its partition, and every consumer needs the memory. Store the payload elsewhere and send its address, or compress.",
    command: "barnabas configs … --alter --entity-type topics --entity-name NAME --delete-config max.message.bytes",
    judge: |facts, limit, report| {
        each(facts, report, |topic, configs, report| {
            let key = "max.message.bytes";
            let Some(size) = number(configs, key).filter(|size| *size > limit * MIB) else { return };
            let sentence = format!("max.message.bytes allows batches of {}", bytes(size));
            report.find(subject(topic), sentence, vec![without(facts, topic, configs, key, "1048588")]);
        });
    },
};

pub const TINY_SEGMENTS: Rule = Rule {
    id: "T9",
    name: "Segments that end too soon",
    severity: Severity::Warning,
    evidence: "DescribeConfigs: segment.ms, segment.bytes; offsets at both looks, sizes by DescribeLogDirs",
    threshold: "more than one a minute and partition",
    limit: None,
    advice: "Each segment is three files and an entry in every search. Retention and compaction work on whole segments, and an hour is short enough for both.",
    command: "barnabas configs … --alter --entity-type topics --entity-name NAME --delete-config segment.ms",
    judge: |facts, _, report| {
        let sizes = sizes(facts);
        each(facts, report, |topic, configs, report| {
            let key = "segment.ms";
            if let Some(ms) = number(configs, key).filter(|ms| *ms < ROLL_S * 1000.0) {
                let sentence = format!("segment.ms ends a segment every {}", span(ms));
                report.find(subject(topic), sentence, vec![without(facts, topic, configs, key, "604800000")]);
            }
            let (Some(limit), Some(rate)) = (number(configs, "segment.bytes"), rate(facts, topic, &sizes))
            else {
                return;
            };
            if rate * ROLL_S > limit {
                let sentence = format!(
                    "segment.bytes is {}, and a partition takes {} a second: a segment every {}",
                    bytes(limit),
                    bytes(rate),
                    span(limit / rate * 1000.0)
                );
                let line = without(facts, topic, configs, "segment.bytes", "1073741824");
                report.find(subject(topic), sentence, vec![line]);
            }
        });
    },
};

/// Bytes a second of the fastest partition.
fn rate(facts: &Facts, topic: &Topic, sizes: &BTreeMap<&str, i64>) -> Option<f64> {
    let held = *sizes.get(topic.name.as_str())?;
    let offsets = topic.partitions.iter().filter_map(|p| Some((p.offsets.as_ref().ok()?, p.replicas.len())));
    let offsets: Vec<_> = offsets.collect();
    // Every replica holds the records: a record's bytes are the bytes of all by the records of all.
    let records: i64 = offsets.iter().map(|(o, replicas)| (o.end - o.start) * *replicas as i64).sum();
    let fastest = offsets.iter().map(|(offsets, _)| offsets.end - offsets.end_before).max()?;
    (records > 0 && facts.seconds > 0.0)
        .then(|| fastest as f64 / facts.seconds * held as f64 / records as f64)
}

pub const FUTURE: Rule = Rule {
    id: "T10",
    name: "Records from the future",
    severity: Severity::Warning,
    evidence: "ListOffsets: the newest timestamp; message.timestamp.type",
    threshold: "more than {} h ahead",
    limit: limit(1.0),
    advice: "Retention by time waits until these dates have passed, so the segments stay. Mend the clock or the unit of the producer; let the broker date the records until then.",
    command: "barnabas configs … --alter --entity-type topics --entity-name NAME --add-config message.timestamp.type=LogAppendTime",
    judge: |facts, limit, report| {
        each(facts, report, |topic, configs, report| {
            if text(configs, "message.timestamp.type") == Some("LogAppendTime") {
                return;
            }
            let Some(newest) = newest(topic, report) else { return };
            let ahead_ms = newest - facts.now_ms;
            if ahead_ms as f64 > limit * HOUR_MS as f64 {
                let sentence = format!("its newest record is dated {} ahead", span(ahead_ms as f64));
                let change = "--add-config message.timestamp.type=LogAppendTime";
                report.find(subject(topic), sentence, vec![alter_topic(facts, &topic.name, change)]);
            }
        });
    },
};

pub const FOR_EVER: Rule = Rule {
    id: "T13",
    name: "A topic that keeps everything for ever",
    severity: Severity::Info,
    evidence: "DescribeConfigs: retention.ms, retention.bytes, cleanup.policy",
    threshold: "no limit by time or bytes, and not compacted",
    limit: None,
    advice: "Its disk will be full one day. Set a retention, or compact by key.",
    command: "barnabas configs … --alter --entity-type topics --entity-name NAME --add-config retention.ms=604800000",
    judge: |facts, _, report| {
        each(facts, report, |topic, configs, report| {
            let is_endless = |key: &str| number(configs, key).is_some_and(|value| value < 0.0);
            let is_compacted = text(configs, "cleanup.policy").is_some_and(|policy| policy != "delete");
            // `__share_group_state` keeps what its coordinator does not delete.
            let is_endless = is_endless("retention.ms") && is_endless("retention.bytes");
            if is_endless && !is_compacted && !topic.is_internal {
                let sentence = "retention.ms and retention.bytes are -1: nothing is ever deleted".to_owned();
                let line = alter_topic(facts, &topic.name, "--add-config retention.ms=604800000");
                report.find(subject(topic), sentence, vec![line]);
            }
        });
    },
};

fn each(facts: &Facts, report: &mut Report, mut judge: impl FnMut(&Topic, &Configs, &mut Report)) {
    for topic in report.seen(&facts.topics).into_iter().flatten() {
        if let Some(configs) = report.seen(&topic.configs) {
            judge(topic, configs, report);
        }
    }
}

fn subject(topic: &Topic) -> String {
    format!("topic {}", topic.name)
}

/// The newest timestamp of all partitions; `None`: no record, or a partition that was not seen.
fn newest(topic: &Topic, report: &mut Report) -> Option<i64> {
    let mut newest = None;
    for partition in &topic.partitions {
        let offsets = report.seen(&partition.offsets)?;
        newest = newest.max(*report.seen(&offsets.newest_ms)?);
    }
    newest
}

/// Takes the topic's own value away; sets `value` where the value is the brokers'.
fn without(facts: &Facts, topic: &Topic, configs: &Configs, key: &str, value: &str) -> String {
    let is_own = configs.get(key).is_some_and(|config| config.source == Source::Topic);
    let change =
        if is_own { format!("--delete-config {key}") } else { format!("--add-config {key}={value}") };
    alter_topic(facts, &topic.name, &change)
}

/// Bytes of all replicas that were seen, by topic. A topic without bytes is not in it.
fn sizes(facts: &Facts) -> BTreeMap<&str, i64> {
    let dirs = facts.nodes.iter().filter_map(|node| node.dirs.as_ref().ok()).flatten();
    let mut sizes = BTreeMap::new();
    for replica in dirs.flat_map(|dir| &dir.replicas).filter(|replica| replica.bytes > 0) {
        *sizes.entry(replica.topic.as_str()).or_default() += replica.bytes;
    }
    sizes
}
