//! T: how a topic's records are spread over its partitions, and topics whose compaction never begins.

use super::{each, subject};
use crate::facts::{Facts, Offsets, RecordSample, Topic, number, text};
use crate::report::{Report, Severity};
use crate::rules::words::{alter_topic, bytes, percent, span};
use crate::rules::{Rule, limit};

const HOT_TIMES: f64 = 3.0;
const MIB: f64 = 1_048_576.0;
const DAY_MS: f64 = 86_400_000.0;
/// Keys of fewer records say nothing.
const KEYED_MIN: usize = 100;

pub const HOT_PARTITION: Rule = Rule {
    id: "T5",
    name: "A hot partition",
    severity: Severity::Warning,
    evidence: "offsets at both looks, sizes by DescribeLogDirs",
    threshold: "three times the mean of the topic's partitions, at more than {} MiB a second",
    limit: limit(1.0),
    advice: "One leader and one consumer do the work of several. Look for a hot key (T6) or a partitioner that sends everything to one place; keys that are spread more evenly mend it.",
    command: "",
    judge: |facts, limit, report| {
        let sizes = super::sizes(facts);
        each(facts, report, |topic, _, report| {
            let Some(fastest) = super::rate(facts, topic, &sizes) else { return };
            let mut written = Vec::new();
            for partition in &topic.partitions {
                let Some(offsets) = report.seen(&partition.offsets) else { return };
                written.push((offsets.end - offsets.end_before, partition.index));
            }
            let all: i64 = written.iter().map(|(records, _)| records).sum();
            let Some((most, index)) = written.iter().max().copied() else { return };
            let times = most as f64 * written.len() as f64 / (all.max(1)) as f64;
            if fastest > limit * MIB && times >= HOT_TIMES {
                let sentence = format!(
                    "partition {index} takes {} a second, {times:.1} times the mean of its {} partitions",
                    bytes(fastest),
                    written.len()
                );
                report.find(subject(topic), sentence, Vec::new());
            }
        });
    },
};

pub const HOT_KEY: Rule = Rule {
    id: "T6",
    name: "A hot key",
    severity: Severity::Warning,
    evidence: "up to 256 KiB that the topic's busiest partition took between the looks, read from its leader",
    threshold: "{} % of the topic's records, of a hundred sampled ones with keys and more",
    limit: limit(20.0),
    advice: "All records of a key go to one partition, so that more partitions do not help. Add a part to the key that spreads it, or a partitioner of your own for it.",
    command: "",
    judge: |facts, limit, report| {
        let topics = report.seen(&facts.topics);
        for sample in samples(facts, report) {
            let topic = topics.into_iter().flatten().find(|topic| topic.name == sample.topic);
            let Some(topic) = topic.filter(|topic| topic.partitions.len() > 1) else { continue };
            let Some(part) = part(topic, sample.partition) else { continue };
            let share = sample.same_key as f64 / sample.records.max(1) as f64 * part;
            if sample.keyed >= KEYED_MIN && share * 100.0 >= limit {
                let sentence = format!(
                    "one key has {} of {} sampled records of partition {}, about {} of the topic's",
                    sample.same_key,
                    sample.records,
                    sample.partition,
                    percent(share)
                );
                report.find(subject(topic), sentence, Vec::new());
            }
        }
    },
};

/// A partition's part of what its topic took between the looks.
fn part(topic: &Topic, index: i32) -> Option<f64> {
    let written = |offsets: &Offsets| (offsets.end - offsets.end_before) as f64;
    let seen = || topic.partitions.iter().filter_map(|p| Some((p.index, written(p.offsets.as_ref().ok()?))));
    let all: f64 = seen().map(|(_, written)| written).sum();
    let of_it = seen().find(|(known, _)| *known == index)?.1;
    (all > 0.0).then(|| of_it / all)
}

pub const IDLE_PARTITIONS: Rule = Rule {
    id: "T7",
    name: "Many partitions that take nothing",
    severity: Severity::Info,
    evidence: "ListOffsets: the newest timestamp of each partition",
    threshold: "more than {} of a topic without a record of the last day, while others of it have some or all are empty",
    limit: limit(100.0),
    advice: "Each costs memory, files and a place in every failover and every metadata answer. Partitions cannot be taken away: create a topic with what `barnabas doctor size` computes, and move its clients there.",
    command: "",
    judge: |facts, limit, report| {
        each(facts, report, |topic, _, report| {
            let (mut idle, mut written) = (0, 0);
            for partition in &topic.partitions {
                let Some(newest) =
                    report.seen(&partition.offsets).and_then(|offsets| report.seen(&offsets.newest_ms))
                else {
                    return;
                };
                let is_idle = newest.is_none_or(|newest| (facts.now_ms - newest) as f64 > DAY_MS);
                idle += usize::from(is_idle);
                written += usize::from(newest.is_some());
            }
            // A topic that takes nothing any more is T4's.
            let is_unused = idle == topic.partitions.len() && written > 0;
            if !topic.is_internal && !is_unused && idle as f64 > limit {
                let all = topic.partitions.len();
                let sentence = format!("{idle} of {all} partitions took no record in the last day");
                report.find(subject(topic), sentence, Vec::new());
            }
        });
    },
};

pub const NEVER_COMPACTED: Rule = Rule {
    id: "T12",
    name: "Settings that keep compaction from its work",
    severity: Severity::Warning,
    evidence: "DescribeConfigs of compacted topics",
    threshold: "min.cleanable.dirty.ratio above 0.9; min.compaction.lag.ms or delete.retention.ms of more than {} d",
    limit: limit(30.0),
    advice: "A compacted topic should end near the size of its newest records. With these settings it keeps old ones, or tombstones, for long, and every new reader reads them all.",
    command: "barnabas configs … --alter --entity-type topics --entity-name NAME --delete-config min.compaction.lag.ms",
    judge: |facts, limit, report| {
        each(facts, report, |topic, configs, report| {
            if !text(configs, "cleanup.policy").is_some_and(|policy| policy.contains("compact")) {
                return;
            }
            let mut find = |key: &str, sentence: String, default: &str| {
                let line = super::without(facts, topic, configs, key, default);
                report.find(subject(topic), sentence, vec![line]);
            };
            let key = "min.cleanable.dirty.ratio";
            if let Some(ratio) = number(configs, key).filter(|ratio| *ratio > 0.9) {
                let sentence = format!("{key}={ratio}: compaction waits until {} are dirty", percent(ratio));
                find(key, sentence, "0.5");
            }
            for (key, kept, default) in [
                ("min.compaction.lag.ms", "records are not compacted for", "0"),
                ("delete.retention.ms", "tombstones are kept for", "86400000"),
            ] {
                if let Some(ms) = number(configs, key).filter(|ms| *ms > limit * DAY_MS) {
                    find(key, format!("{key}={ms:.0}: {kept} {}", span(ms)), default);
                }
            }
        });
    },
};

/// The command that [`alter_topic`] prints, where a topic's producers decide its codec.
pub fn compressed(facts: &Facts, topic: &str) -> String {
    alter_topic(facts, topic, "--add-config compression.type=lz4")
}

/// Records' traffic of a topic: bytes a second of all its partitions.
pub fn topic_rate(facts: &Facts, topic: &Topic, report: &mut Report) -> Option<f64> {
    let sizes = super::sizes(facts);
    let fastest = super::rate(facts, topic, &sizes)?;
    let mut written = Vec::new();
    for partition in &topic.partitions {
        let offsets = report.seen(&partition.offsets)?;
        written.push(offsets.end - offsets.end_before);
    }
    let most = written.iter().max().copied().filter(|most| *most > 0)?;
    Some(fastest * written.iter().sum::<i64>() as f64 / most as f64)
}

/// The samples that were read; what was not is a gap.
pub fn samples<'a>(facts: &'a Facts, report: &mut Report) -> Vec<&'a RecordSample> {
    let all = report.seen(&facts.samples).map(Vec::as_slice).unwrap_or_default();
    all.iter().filter_map(|sample| report.seen(sample)).collect()
}
