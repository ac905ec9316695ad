//! G: consumer groups that stand still, lose records, or have members without work.

mod pace;

pub use pace::{ACROSS_RACKS, FALLING_BEHIND, POISON, REBALANCES, SHARE_GROUPS};

use super::words::{alter_topic, count, percent, quoted, several, span, tool};
use super::{Rule, limit};
use crate::facts::{Committed, Facts, Group, GroupKind, Member, Offsets, Topic, number, text};
use crate::report::{Report, Severity};
use std::collections::{BTreeMap, BTreeSet};

pub const STUCK: Rule = Rule {
    id: "G3",
    name: "A group that stands still",
    severity: Severity::Warning,
    evidence: "OffsetFetch at both looks, the timestamp of the first unread record",
    threshold: "members, an unread record older than {} s, and no commit between the looks for any partition of its member",
    limit: limit(300.0),
    advice: "A member that polls and does not commit hangs in its work, or fails on the same record again and again. Look at the named member's log, and start it again.",
    command: "",
    judge: |facts, limit, report| {
        each(facts, report, |group, report| {
            let Some(members) = report.seen(&group.members) else { return };
            if members.is_empty() {
                return;
            }
            let (mut stuck, mut oldest, mut owners) = (Vec::new(), 0.0_f64, BTreeSet::new());
            let Some(rows) = report.seen(&group.committed) else { return };
            for row in rows {
                let Some(Some(unread_ms)) = report.seen(&row.oldest_unread_ms) else { continue };
                let age_ms = (facts.now_ms - unread_ms) as f64;
                if age_ms <= limit * 1000.0 || row.offset != row.offset_before {
                    continue;
                }
                let mut owns =
                    members.iter().filter(|m| m.assigned.contains(&(row.topic.clone(), row.partition)));
                // A member that goes on with other partitions is G7's.
                if owns.clone().any(|member| moves(member, rows)) {
                    continue;
                }
                oldest = oldest.max(age_ms);
                stuck.push(format!("{}-{}", row.topic, row.partition));
                owners.extend(owns.by_ref().map(|member| format!("{} at {}", member.client_id, member.host)));
            }
            if !stuck.is_empty() {
                let owners = if owners.is_empty() {
                    String::new()
                } else {
                    format!(", read by {}", several(&owners.into_iter().collect::<Vec<_>>()))
                };
                let sentence = format!(
                    "no commit in {:.0} s for {}{owners}; the oldest unread record is {} old",
                    facts.seconds,
                    several(&stuck),
                    span(oldest)
                );
                report.find(subject(group), sentence, Vec::new());
            }
        });
    },
};

/// Whether a member committed for any of its partitions between the looks.
fn moves(member: &Member, rows: &[Committed]) -> bool {
    let is_its = |row: &Committed| member.assigned.contains(&(row.topic.clone(), row.partition));
    rows.iter().any(|row| row.offset > row.offset_before && row.offset_before >= 0 && is_its(row))
}

pub const LOSING: Rule = Rule {
    id: "G4",
    name: "A group whose unread records retention will delete",
    severity: Severity::Critical,
    evidence: "OffsetFetch, the timestamp of the first unread record, retention.ms",
    threshold: "the oldest unread record is older than {} % of the retention",
    limit: limit(80.0),
    advice: "What retention deletes, the group never sees. Raise the retention first, then look for what holds the group up (G3).",
    command: "barnabas configs … --alter --entity-type topics --entity-name NAME --add-config retention.ms=…",
    judge: |facts, limit, report| {
        let Some(topics) = report.seen(&facts.topics) else { return };
        each(facts, report, |group, report| {
            let mut worst: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
            for row in report.seen(&group.committed).into_iter().flatten() {
                let Some(retention) = retention_ms(topics, row, report) else { continue };
                let Some(Some(unread_ms)) = report.seen(&row.oldest_unread_ms) else { continue };
                let age_ms = (facts.now_ms - unread_ms) as f64;
                if age_ms > retention * limit / 100.0 {
                    let known = worst.entry(&row.topic).or_insert((age_ms, retention));
                    known.0 = known.0.max(age_ms);
                }
            }
            for (topic, (age_ms, retention)) in worst {
                let sentence = format!(
                    "its oldest unread record of {topic} is {} old, {} of the retention of {}",
                    span(age_ms),
                    percent(age_ms / retention),
                    span(retention)
                );
                // Twice the retention, and room for what is late already.
                let wanted = (retention * 2.0).max(age_ms * 2.0);
                let line = alter_topic(facts, topic, &format!("--add-config retention.ms={wanted:.0}"));
                report.find(subject(group), sentence, vec![line]);
            }
        });
    },
};

/// The retention that deletes a partition's records by time; `None`: there is none, or it was not seen.
fn retention_ms(topics: &[Topic], row: &Committed, report: &mut Report) -> Option<f64> {
    let topic = topics.iter().find(|topic| topic.name == row.topic)?;
    let configs = report.seen(&topic.configs)?;
    let deletes = text(configs, "cleanup.policy").is_none_or(|policy| policy.contains("delete"));
    number(configs, "retention.ms").filter(|ms| deletes && *ms > 0.0)
}

pub const IDLE_MEMBERS: Rule = Rule {
    id: "G6",
    name: "Members without work",
    severity: Severity::Info,
    evidence: "DescribeGroups, ConsumerGroupDescribe: assignments of a stable group",
    threshold: "any member without a partition, beside others that have one",
    limit: None,
    advice: "A partition has one reader in a group. Give the topic as many partitions as the group needs members, or run fewer members.",
    command: "barnabas topics … --alter --topic NAME --partitions N",
    judge: |facts, _, report| {
        let topics = report.seen(&facts.topics).cloned();
        each(facts, report, |group, report| {
            let Some(members) = report.seen(&group.members) else { return };
            let idle = members.iter().filter(|member| member.assigned.is_empty()).count();
            let read = members.iter().flat_map(|member| &member.assigned);
            let names: BTreeSet<&str> = read.clone().map(|(topic, _)| topic.as_str()).collect();
            if idle == 0 || names.is_empty() || !group.state.eq_ignore_ascii_case("stable") {
                return;
            }
            let sentence = format!(
                "{idle} of {} have no partition: the group reads {}",
                count(members.len(), "member"),
                count(read.count(), "partition")
            );
            let names: Vec<&str> = names.into_iter().collect();
            let commands = match (&names[..], &topics) {
                ([name], Some(topics)) => {
                    let topic = topics.iter().find(|topic| topic.name == *name);
                    let wanted = members.len().max(topic.map_or(0, |topic| topic.partitions.len()));
                    vec![tool(facts, "topics", &format!("--alter --topic {name} --partitions {wanted}"))]
                }
                _ => Vec::new(),
            };
            report.find(subject(group), sentence, commands);
        });
    },
};

pub const OUT_OF_RANGE: Rule = Rule {
    id: "G8",
    name: "A committed offset that is not in the log",
    severity: Severity::Warning,
    evidence: "OffsetFetch, ListOffsets",
    threshold: "below the start of the log, or beyond its end",
    limit: None,
    advice: "Below the start, records were deleted before the group read them. The member follows auto.offset.reset: with latest it skips everything. Choose the place yourself while the group is stopped.",
    command: "barnabas consumer-groups … --group NAME --topic TOPIC --reset-offsets --to-earliest --execute",
    judge: |facts, _, report| {
        let Some(topics) = report.seen(&facts.topics) else { return };
        each(facts, report, |group, report| {
            let mut off: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            for row in report.seen(&group.committed).into_iter().flatten() {
                let Some(offsets) = offsets(topics, row, report) else { continue };
                // The commit of the first look and the log's ends are some moments apart.
                let (before, after) = (row.offset_before.min(row.offset), row.offset.max(row.offset_before));
                let words = if after < offsets.start {
                    format!("{} lost {} records below {}", place(row), offsets.start - after, offsets.start)
                } else if before > offsets.end {
                    format!("{} is {} beyond the end {}", place(row), before - offsets.end, offsets.end)
                } else {
                    continue;
                };
                off.entry(&row.topic).or_default().push(words);
            }
            for (topic, words) in off {
                let rest = format!(
                    "--group {} --topic {topic} --reset-offsets --to-earliest --execute",
                    quoted(&group.name)
                );
                let sentence = format!("committed offsets outside the log: {}", several(&words));
                report.find(subject(group), sentence, vec![tool(facts, "consumer-groups", &rest)]);
            }
        });
    },
};

fn offsets(topics: &[Topic], row: &Committed, report: &mut Report) -> Option<Offsets> {
    let topic = topics.iter().find(|topic| topic.name == row.topic)?;
    let partition = topic.partitions.iter().find(|partition| partition.index == row.partition)?;
    report.seen(&partition.offsets).cloned()
}

fn place(row: &Committed) -> String {
    format!("{}-{}", row.topic, row.partition)
}

pub const EAGER: Rule = Rule {
    id: "G10",
    name: "A large group that stops for every rebalance",
    severity: Severity::Info,
    evidence: "DescribeGroups: assignor and number of members",
    threshold: "more than {} members with an eager assignor",
    limit: limit(10.0),
    advice: "With range, roundrobin and sticky, every member gives up all partitions whenever one comes or goes. Set group.protocol=consumer (KIP-848) in the members, or the cooperative-sticky assignor.",
    command: "",
    judge: |facts, limit, report| {
        each(facts, report, |group, report| {
            let Some(members) = report.seen(&group.members) else { return };
            let is_eager = matches!(group.assignor.as_str(), "range" | "roundrobin" | "sticky");
            if group.kind == GroupKind::Classic && is_eager && members.len() as f64 > limit {
                let sentence = format!(
                    "{} with the assignor {}: all stop when one comes or goes",
                    count(members.len(), "member"),
                    group.assignor
                );
                report.find(subject(group), sentence, Vec::new());
            }
        });
    },
};

/// Groups of consumers, of both protocols.
fn each(facts: &Facts, report: &mut Report, mut judge: impl FnMut(&Group, &mut Report)) {
    for group in report.seen(&facts.groups).into_iter().flatten() {
        if matches!(group.kind, GroupKind::Classic | GroupKind::Consumer) {
            judge(group, report);
        }
    }
}

fn subject(group: &Group) -> String {
    format!("group {}", group.name)
}
