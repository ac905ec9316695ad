//! D: when a log directory is full, and whether what retention keeps fits at all. Both from the traffic between the
//! two looks, as if it went on.

use crate::facts::{Dir, Facts, Room, Topic, number, text};
use crate::report::{Report, Severity};
use crate::rules::words::{alter_topic, bytes, percent, span};
use crate::rules::{Rule, limit};
use std::collections::BTreeMap;

/// Of a directory, what the printed settings leave to records.
const FILL: f64 = 0.8;
const DAY_S: f64 = 86_400.0;
/// Topics that a finding names.
const SHOWN: usize = 3;

pub const FULL_ON_A_DATE: Rule = Rule {
    id: "D7",
    name: "A log directory that will be full",
    severity: Severity::Warning,
    evidence: "DescribeLogDirs, offsets at both looks, retention of the topics",
    threshold: "in less than {} d at the rate between the two looks; critical under 24 h",
    limit: limit(7.0),
    advice: "At the limit producers are refused. The printed settings let the topics that grow fastest end where the directory is four fifths full; add a disk or move replicas where nothing may be deleted.",
    command: "barnabas configs … --alter --entity-type topics --entity-name NAME --add-config retention.bytes=NUMBER",
    judge: |facts, limit, report| {
        each(facts, report, |facts, subject, (path, room), kept, report| {
            let Some(seconds) = full_after(kept, room.usable as f64) else { return };
            if seconds > limit * DAY_S {
                return;
            }
            let severity = if seconds < DAY_S { Severity::Critical } else { Severity::Warning };
            let rate: f64 = kept.iter().map(Kept::growth).sum();
            let mut growing: Vec<&Kept> = kept.iter().filter(|kept| kept.growth() > 0.0).collect();
            growing.sort_by(|one, other| other.growth().total_cmp(&one.growth()));
            let named = growing.iter().take(SHOWN);
            let words: Vec<String> = named
                .clone()
                .map(|kept| format!("{} {} a second", kept.topic, bytes(kept.growth())))
                .collect();
            let sentence = format!(
                "{path} is full in {} at the rate of the last {:.0} s ({})",
                span(seconds * 1000.0),
                facts.seconds,
                words.join(", ")
            );
            // Each gets the part of the room that is its part of the growth.
            let room = room.usable as f64 * FILL;
            let end = |kept: &&Kept| {
                kept.limited(facts, (kept.held + room * kept.growth() / rate) / kept.held.max(1.0))
            };
            report.find_as(severity, subject, sentence, named.map(end).collect());
        });
    },
};

pub const NEVER_FITS: Rule = Rule {
    id: "D8",
    name: "Retention that does not fit",
    severity: Severity::Warning,
    evidence: "DescribeLogDirs, offsets at both looks, retention of the topics",
    threshold: "what retention keeps at the rate between the two looks is more than {} % of the directory",
    limit: limit(85.0),
    advice: "The directory fills before the first record is old enough. The printed settings make the largest topics fit; a larger disk or a shorter retention.ms does too.",
    command: "barnabas configs … --alter --entity-type topics --entity-name NAME --add-config retention.bytes=NUMBER",
    judge: |facts, limit, report| {
        each(facts, report, |facts, subject, (path, room), kept, report| {
            let total = room.total as f64;
            // Topics without a limit are T13's.
            let finite: Vec<&Kept> = kept.iter().filter(|kept| kept.end.is_finite()).collect();
            let sum: f64 = finite.iter().map(|kept| kept.end).sum();
            if sum / total * 100.0 <= limit {
                return;
            }
            let mut largest = finite;
            largest.sort_by(|one, other| other.end.total_cmp(&one.end));
            largest.truncate(SHOWN);
            let words: Vec<String> =
                largest.iter().map(|kept| format!("{} {}", kept.topic, bytes(kept.end))).collect();
            let sentence = format!(
                "at the rate of the last {:.0} s retention keeps {} in {path}, {} of its {} ({})",
                facts.seconds,
                bytes(sum),
                percent(sum / total),
                bytes(total),
                words.join(", ")
            );
            let commands = largest
                .iter()
                .map(|kept| kept.limited(facts, FILL * total / sum * kept.end / kept.held.max(1.0)));
            report.find(subject, sentence, commands.collect());
        });
    },
};

/// What a topic has in one log directory, and what it will have.
struct Kept<'a> {
    topic: &'a str,
    held: f64,
    rate: f64,
    /// Where retention holds it; infinite: nowhere.
    end: f64,
    partitions: f64,
}

impl Kept<'_> {
    /// Bytes a second by which it grows now.
    fn growth(&self) -> f64 {
        if self.end > self.held { self.rate } else { 0.0 }
    }

    /// A limit by bytes for each partition, `times` what they hold now on average.
    fn limited(&self, facts: &Facts, times: f64) -> String {
        let of_each = (self.held * times / self.partitions.max(1.0)).max(1.0);
        alter_topic(facts, self.topic, &format!("--add-config retention.bytes={of_each:.0}"))
    }
}

/// Seconds until the topics of a directory have used the free bytes; `None`: they end before.
fn full_after(kept: &[Kept<'_>], free: f64) -> Option<f64> {
    let mut ends: Vec<(f64, f64)> =
        kept.iter().filter(|kept| kept.growth() > 0.0).map(|k| ((k.end - k.held) / k.rate, k.rate)).collect();
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut rate: f64 = ends.iter().map(|(_, rate)| rate).sum();
    let (mut now, mut free) = (0.0, free);
    for (end, of_topic) in ends {
        let used = rate * (end - now);
        if used >= free {
            return Some(now + free / rate);
        }
        (now, free, rate) = (end, free - used, rate - of_topic);
    }
    None
}

fn each(
    facts: &Facts,
    report: &mut Report,
    mut judge: impl FnMut(&Facts, String, (&str, Room), &[Kept<'_>], &mut Report),
) {
    let Some(topics) = report.seen(&facts.topics) else { return };
    let topics: BTreeMap<&str, &Topic> = topics.iter().map(|topic| (topic.name.as_str(), topic)).collect();
    for node in facts.alive() {
        for dir in report.seen(&node.dirs).into_iter().flatten() {
            if let Some(room) = dir.bytes.filter(|room| room.total > 0) {
                let kept = kept(facts, dir, &topics, report);
                judge(facts, format!("node {}", node.id), (&dir.path, room), &kept, report);
            }
        }
    }
}

fn kept<'a>(
    facts: &Facts,
    dir: &'a Dir,
    topics: &BTreeMap<&str, &Topic>,
    report: &mut Report,
) -> Vec<Kept<'a>> {
    let mut all: BTreeMap<&str, Kept<'a>> = BTreeMap::new();
    for replica in &dir.replicas {
        // It was deleted, or created after Metadata was asked for.
        let Some(topic) = topics.get(replica.topic.as_str()) else { continue };
        let Some((rate, end)) = future(facts, topic, replica.partition, replica.bytes as f64, report) else {
            continue;
        };
        let none = Kept { topic: &replica.topic, held: 0.0, rate: 0.0, end: 0.0, partitions: 0.0 };
        let kept = all.entry(&replica.topic).or_insert(none);
        kept.held += replica.bytes as f64;
        kept.rate += rate;
        kept.end += end;
        kept.partitions += 1.0;
    }
    all.into_values().collect()
}

/// Bytes a second of a replica, and where retention holds it. `None`: nothing is deleted by age or size, or nothing
/// was written.
fn future(facts: &Facts, topic: &Topic, index: i32, held: f64, report: &mut Report) -> Option<(f64, f64)> {
    let configs = report.seen(&topic.configs)?;
    if !text(configs, "cleanup.policy")?.contains("delete") {
        return None;
    }
    let partition = topic.partitions.iter().find(|partition| partition.index == index)?;
    let offsets = report.seen(&partition.offsets)?;
    let (written, all) = ((offsets.end - offsets.end_before) as f64, (offsets.end - offsets.start) as f64);
    if written <= 0.0 || all <= 0.0 || facts.seconds <= 0.0 {
        return None;
    }
    let rate = written / facts.seconds * held / all;
    let limit = |key: &str| number(configs, key).filter(|limit| *limit >= 0.0).unwrap_or(f64::INFINITY);
    let by_time = rate * limit("retention.ms") / 1000.0;
    Some((rate, by_time.min(limit("retention.bytes"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(rate: f64, end: f64) -> Kept<'static> {
        Kept { topic: "t", held: 0.0, rate, end, partitions: 1.0 }
    }

    #[test]
    fn directory_is_full_when_its_topics_have_used_the_free_bytes() {
        assert_eq!(full_after(&[kept(10.0, f64::INFINITY)], 100.0), Some(10.0));
        assert_eq!(full_after(&[kept(10.0, 90.0)], 100.0), None);
        // The first ends after 5 s with 50 bytes, the second has used 25 by then and 25 of 75 more are free.
        assert_eq!(full_after(&[kept(10.0, 50.0), kept(5.0, 500.0)], 100.0), Some(10.0));
        assert_eq!(full_after(&[], 0.0), None);
    }
}
