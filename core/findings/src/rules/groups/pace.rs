//! G, N: how fast groups read, how often they rebalance, and from where.

use super::{each, moves, offsets, subject};
use crate::facts::{Committed, Facts, Group, GroupKind, Member, text};
use crate::report::Severity;
use crate::rules::words::{count, percent, quoted, several, span, tool};
use crate::rules::{Rule, limit};
use std::collections::{BTreeMap, BTreeSet};

/// A group that reads so much less than is written falls behind, and not by chance.
const SLOWER: f64 = 1.1;
const ACKNOWLEDGED_MIN: f64 = 10.0;

pub const REBALANCES: Rule = Rule {
    id: "G1",
    name: "Groups that rebalance again and again",
    severity: Severity::Warning,
    evidence: "metrics: rebalances of all groups that a node coordinates, between the two looks",
    threshold: "{} and more between the two looks",
    limit: limit(3.0),
    advice: "Members come and go: a rolling deployment, a crash loop, session.timeout.ms or max.poll.interval.ms too short for the work. Static members (group.instance.id) and group.protocol=consumer make it cheap.",
    command: "",
    judge: |facts, limit, report| {
        for node in facts.alive() {
            let Some(figures) = report.seen(&node.figures) else { continue };
            if figures.rebalances < limit {
                continue;
            }
            let unstable = facts.groups.iter().flatten().filter(|group| is_in_rebalance(group));
            let names: Vec<String> = unstable.map(|group| group.name.clone()).collect();
            let now = if names.is_empty() { String::new() } else { format!("; now: {}", several(&names)) };
            let sentence = format!(
                "{:.0} rebalances of its groups in {:.0} s{now}",
                figures.rebalances, figures.seconds
            );
            report.find(format!("node {}", node.id), sentence, Vec::new());
        }
    },
};

fn is_in_rebalance(group: &Group) -> bool {
    let state = group.state.to_ascii_lowercase();
    ["preparingrebalance", "completingrebalance", "assigning", "reconciling"].contains(&state.as_str())
}

pub const FALLING_BEHIND: Rule = Rule {
    id: "G5",
    name: "A group that falls behind",
    severity: Severity::Warning,
    evidence: "OffsetFetch and ListOffsets at both looks, the timestamp of the first unread record",
    threshold: "it reads, a tenth less than is written, and its oldest unread record is older than {} s",
    limit: limit(60.0),
    advice: "The lag grows until retention ends it (G4). More members with as many partitions, or less work for each record; the figure of members needed assumes that they are equally fast.",
    command: "barnabas topics … --alter --topic NAME --partitions N",
    judge: |facts, limit, report| {
        let Some(topics) = report.seen(&facts.topics) else { return };
        each(facts, report, |group, report| {
            let members = report.seen(&group.members).map_or(0, Vec::len);
            let mut paces: BTreeMap<&str, Pace> = BTreeMap::new();
            for row in
                report.seen(&group.committed).into_iter().flatten().filter(|row| row.offset_before >= 0)
            {
                let Some(offsets) = offsets(topics, row, report) else { continue };
                let oldest = report.seen(&row.oldest_unread_ms).copied().flatten();
                let pace = paces.entry(&row.topic).or_default();
                pace.written += (offsets.end - offsets.end_before) as f64;
                pace.read += (row.offset - row.offset_before) as f64;
                pace.lag += (offsets.end - row.offset).max(0) as f64;
                pace.age_ms = pace.age_ms.max(oldest.map_or(0.0, |oldest| (facts.now_ms - oldest) as f64));
            }
            for (topic, pace) in paces.into_iter().filter(|_| members > 0) {
                if pace.read > 0.0 && pace.written > pace.read * SLOWER && pace.age_ms > limit * 1000.0 {
                    let partitions =
                        topics.iter().find(|known| known.name == topic).map_or(0, |t| t.partitions.len());
                    let (sentence, commands) = pace.told(facts, topic, members, partitions);
                    report.find(subject(group), sentence, commands);
                }
            }
        });
    },
};

/// Records of a topic between the looks.
#[derive(Default)]
struct Pace {
    written: f64,
    read: f64,
    lag: f64,
    /// Of the oldest unread record.
    age_ms: f64,
}

impl Pace {
    fn told(&self, facts: &Facts, topic: &str, members: usize, partitions: usize) -> (String, Vec<String>) {
        let Self { written, read, lag, age_ms } = self;
        let seconds = facts.seconds.max(f64::EPSILON);
        let needed = (members as f64 * written / read).ceil();
        let sentence = format!(
            "{topic} takes {:.0} records a second and the group reads {:.0}: {lag:.0} are unread, the oldest is {} old, and {needed:.0} members instead of {members} would keep up",
            written / seconds,
            read / seconds,
            span(*age_ms)
        );
        let has_too_few = (partitions as f64) < needed;
        let line = tool(facts, "topics", &format!("--alter --topic {topic} --partitions {needed:.0}"));
        (sentence, has_too_few.then_some(line).into_iter().collect())
    }
}

pub const POISON: Rule = Rule {
    id: "G7",
    name: "A partition at which a member does not get past a record",
    severity: Severity::Warning,
    evidence: "OffsetFetch at both looks, the timestamp of the first unread record, assignments",
    threshold: "no commit for it between the looks, an unread record older than {} s, while the member commits for another partition",
    limit: limit(300.0),
    advice: "The record cannot be handled, or an open transaction holds a reader of committed records (W11). Look at the record at that offset; stop the group and step over it, or send it to a dead-letter topic.",
    command: "barnabas consumer-groups … --group NAME --topic TOPIC:N --reset-offsets --shift-by 1 --execute",
    judge: |facts, limit, report| {
        each(facts, report, |group, report| {
            let Some(members) = report.seen(&group.members) else { return };
            let Some(rows) = report.seen(&group.committed) else { return };
            for row in rows.iter().filter(|row| row.offset == row.offset_before) {
                let Some(Some(unread_ms)) = report.seen(&row.oldest_unread_ms) else { continue };
                let age_ms = (facts.now_ms - unread_ms) as f64;
                let Some(owner) = owner(members, row).filter(|owner| moves(owner, rows)) else { continue };
                if age_ms > limit * 1000.0 {
                    let (place, offset) = (format!("{}:{}", row.topic, row.partition), row.offset);
                    let sentence = format!(
                        "{} at {} stays at offset {offset} of {}-{} and goes on with other partitions; that record is {} old",
                        owner.client_id,
                        owner.host,
                        row.topic,
                        row.partition,
                        span(age_ms)
                    );
                    let name = quoted(&group.name);
                    let rest =
                        format!("--group {name} --topic {place} --reset-offsets --shift-by 1 --execute");
                    report.find(subject(group), sentence, vec![tool(facts, "consumer-groups", &rest)]);
                }
            }
        });
    },
};

fn owner<'a>(members: &'a [Member], row: &Committed) -> Option<&'a Member> {
    members.iter().find(|member| member.assigned.contains(&(row.topic.clone(), row.partition)))
}

pub const SHARE_GROUPS: Rule = Rule {
    id: "G11",
    name: "Share groups that reject records or run out of time",
    severity: Severity::Warning,
    evidence: "metrics: acknowledgements of share groups by type, acquisition locks that ended",
    threshold: "more than {} % of ten records and more",
    limit: limit(1.0),
    advice: "Rejected records are gone, or in the dead-letter topic where the group has one. A record whose lock ends is handed out again: give members more time, or fewer records at once.",
    command: "barnabas configs … --alter --entity-type groups --entity-name NAME --add-config share.record.lock.duration.ms=60000",
    judge: |facts, limit, report| {
        let groups = facts.groups.iter().flatten().filter(|group| group.kind == GroupKind::Share);
        let names: Vec<&str> = groups.map(|group| group.name.as_str()).collect();
        for node in facts.alive() {
            let Some(figures) = report.seen(&node.figures) else { continue };
            let shared = figures.shared;
            let all = shared.acknowledged + shared.lock_timeouts;
            if all < ACKNOWLEDGED_MIN || (shared.rejected + shared.lock_timeouts) / all * 100.0 <= limit {
                continue;
            }
            let sentence = format!(
                "of {all:.0} records {:.0} were rejected ({}) and the locks of {:.0} ended ({})",
                shared.rejected,
                percent(shared.rejected / all),
                shared.lock_timeouts,
                percent(shared.lock_timeouts / all)
            );
            let line = |name: &&str| {
                let rest = format!(
                    "--alter --entity-type groups --entity-name {} --add-config share.record.lock.duration.ms=60000",
                    quoted(name)
                );
                tool(facts, "configs", &rest)
            };
            // Whose locks ended is not known: none of several is named.
            let is_slow = shared.lock_timeouts > 0.0 && names.len() == 1;
            let commands = names.iter().filter(|_| is_slow).map(line).collect();
            report.find(format!("node {}", node.id), sentence, commands);
        }
    },
};

pub const ACROSS_RACKS: Rule = Rule {
    id: "N9",
    name: "Consumers that read across racks",
    severity: Severity::Info,
    evidence: "ConsumerGroupDescribe: racks of members; Metadata: racks of leaders; DescribeConfigs: replica.selector.class",
    threshold: "members with client.rack read from leaders in other racks, and the brokers select no replica for them",
    limit: None,
    advice: "They say where they are, and the brokers do not use it. With the selector they read from a replica in their own rack: no traffic between racks, and shorter ways.",
    command: "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector",
    judge: |facts, _, report| {
        let Some(topics) = report.seen(&facts.topics) else { return };
        if facts.racks().len() < 2 {
            return;
        }
        let mut without = BTreeSet::new();
        for node in facts.alive() {
            let Some(configs) = report.seen(&node.configs) else { continue };
            if text(configs, "replica.selector.class").is_none_or(str::is_empty) {
                without.insert(node.id);
            }
        }
        let leader = |(topic, index): &(String, i32)| {
            let topic = topics.iter().find(|known| known.name == *topic)?;
            topic.partitions.iter().find(|partition| partition.index == *index)?.leader
        };
        each(facts, report, |group, report| {
            let (mut all, mut far) = (0, 0);
            for member in report.seen(&group.members).into_iter().flatten() {
                let Some(rack) = member.rack.as_deref() else { continue };
                for leader in
                    member.assigned.iter().filter_map(leader).filter(|leader| without.contains(leader))
                {
                    all += 1;
                    far += usize::from(facts.rack(leader).is_some_and(|known| known != rack));
                }
            }
            if far > 0 {
                let words = count(all, "partition");
                let sentence =
                    format!("members with client.rack read {far} of {words} from a leader in another rack");
                report.find(subject(group), sentence, Vec::new());
            }
        });
    },
};
