//! C, T: how many replicas a topic has, where they are, and how many must have a record.

use super::Rule;
use super::words::{alter_topic, count, reassign, several};
use crate::facts::{Facts, Partition, Topic, number};
use crate::report::{Report, Severity};
use std::collections::{BTreeMap, BTreeSet};

/// Replicas that a plan gives, where there are so many brokers.
const REPLICAS: usize = 3;

pub const ONE_RACK: Rule = Rule {
    id: "C5",
    name: "All replicas of a partition in one rack",
    severity: Severity::Warning,
    evidence: "Metadata: racks of the replicas",
    threshold: "any, where the brokers are in several racks",
    limit: None,
    advice: "The rack's failure takes every replica. The printed plan moves one replica into another rack.",
    command: "echo '{…}' | barnabas reassign-partitions … --execute --additional --reassignment-json-file /dev/stdin",
    judge: |facts, _, report| {
        let Some(topics) = report.seen(&facts.topics) else { return };
        if facts.racks().len() < 2 {
            return;
        }
        let mut load = load(facts, topics);
        for topic in topics {
            let crowded: Vec<&Partition> =
                topic.partitions.iter().filter(|p| is_in_one_rack(facts, p)).collect();
            let plan = crowded.iter().filter_map(|partition| {
                let rack = facts.rack(*partition.replicas.first()?);
                let new = least(&load, |broker| facts.rack(broker) != rack)?;
                *load.entry(new).or_default() += 1;
                let mut replicas = partition.replicas.clone();
                *replicas.last_mut()? = new;
                Some((topic.name.clone(), partition.index, replicas))
            });
            let plan: Vec<_> = plan.collect();
            if let Some(rack) = crowded.first().and_then(|p| facts.rack(*p.replicas.first()?)) {
                let words = count(crowded.len(), "partition");
                let sentence = format!("{words} with all replicas in rack {rack}");
                report.find(format!("topic {}", topic.name), sentence, vec![reassign(facts, &plan)]);
            }
        }
    },
};

fn is_in_one_rack(facts: &Facts, partition: &Partition) -> bool {
    let racks: BTreeSet<Option<&str>> = partition.replicas.iter().map(|node| facts.rack(*node)).collect();
    partition.replicas.len() > 1 && racks.len() == 1 && !racks.contains(&None)
}

pub const UNDER_REPLICATED: Rule = Rule {
    id: "C6",
    name: "Partitions without a leader, under their minimum ISR, or under-replicated",
    severity: Severity::Warning,
    evidence: "Metadata at both looks: leader, ISR, replicas; min.insync.replicas",
    threshold: "at both looks; reassigned partitions left out",
    limit: None,
    advice: "Start the node that is missing. Where it runs and stays out of the ISR: look at its disk (D1, D9, D12), its network, and for a throttle (C10).",
    command: "",
    judge: |facts, _, report| {
        let Some(topics) = report.seen(&facts.topics) else { return };
        let moving = report.seen(&facts.reassigning).cloned().unwrap_or_default();
        let mut missing: BTreeMap<i32, Vec<String>> = BTreeMap::new();
        for topic in topics {
            let configs = report.seen(&topic.configs);
            let minimum = configs.and_then(|configs| number(configs, "min.insync.replicas"));
            let (mut leaderless, mut under) = (Vec::new(), Vec::new());
            for partition in topic.partitions.iter().filter(|partition| partition.was_under_replicated) {
                let name = format!("{}-{}", topic.name, partition.index);
                if moving.contains(&(topic.name.clone(), partition.index)) {
                    continue;
                }
                if partition.leader.is_none() {
                    leaderless.push(name.clone());
                } else if minimum.is_some_and(|minimum| (partition.isr.len() as f64) < minimum) {
                    under.push(name.clone());
                }
                for node in partition.replicas.iter().filter(|node| !partition.isr.contains(node)) {
                    missing.entry(*node).or_default().push(name.clone());
                }
            }
            let subject = format!("topic {}", topic.name);
            if !leaderless.is_empty() {
                let sentence = format!("no leader: {}. They take and give no records", several(&leaderless));
                report.find_as(Severity::Critical, subject.clone(), sentence, Vec::new());
            }
            if !under.is_empty() {
                let sentence = format!(
                    "fewer replicas in sync than min.insync.replicas={}: {}. They refuse acks=all",
                    minimum.unwrap_or_default(),
                    several(&under)
                );
                report.find_as(Severity::Critical, subject, sentence, Vec::new());
            }
        }
        for (node, partitions) in missing {
            let is_alive = facts.alive().any(|known| known.id == node);
            let why = if is_alive { "it runs and lags" } else { "it is down or fenced" };
            let words = count(partitions.len(), "partition");
            let sentence = format!("missing from the ISR of {words} ({}): {why}", several(&partitions));
            report.find(format!("node {node}"), sentence, Vec::new());
        }
    },
};

pub const INTERNAL_SINGLE: Rule = Rule {
    id: "C13",
    name: "An internal topic with one replica",
    severity: Severity::Warning,
    evidence: "Metadata: replicas of internal topics",
    threshold: "one replica, where there are three brokers and more",
    limit: None,
    advice: "When its broker stops, groups cannot commit and transactions cannot end. Set offsets.topic.replication.factor and transaction.state.log.replication.factor to 3 for new clusters; the printed plan mends this one.",
    command: "echo '{…}' | barnabas reassign-partitions … --execute --additional --reassignment-json-file /dev/stdin",
    judge: |facts, _, report| single(facts, report, |topic, brokers| topic.is_internal && brokers >= 3),
};

pub const SINGLE: Rule = Rule {
    id: "T1",
    name: "A topic with one replica",
    severity: Severity::Warning,
    evidence: "Metadata: replicas of the partitions",
    threshold: "one replica, where there are two brokers and more",
    limit: None,
    advice: "The partition is offline while its broker is, and lost with its disk.",
    command: "echo '{…}' | barnabas reassign-partitions … --execute --additional --reassignment-json-file /dev/stdin",
    judge: |facts, _, report| single(facts, report, |topic, brokers| !topic.is_internal && brokers >= 2),
};

fn single(facts: &Facts, report: &mut Report, is_meant: fn(&Topic, usize) -> bool) {
    let Some(topics) = report.seen(&facts.topics) else { return };
    let brokers = facts.alive().count();
    let mut load = load(facts, topics);
    for topic in topics.iter().filter(|topic| is_meant(topic, brokers)) {
        let alone = topic.partitions.iter().filter(|partition| partition.replicas.len() == 1);
        let plan = alone.map(|partition| {
            let mut replicas = partition.replicas.clone();
            while replicas.len() < REPLICAS.min(brokers) {
                let is_new_rack =
                    |broker: i32| replicas.iter().all(|known| facts.rack(*known) != facts.rack(broker));
                let is_new = |broker: i32| !replicas.contains(&broker);
                let next = least(&load, |broker| is_new(broker) && is_new_rack(broker))
                    .or_else(|| least(&load, is_new));
                let Some(next) = next else { break };
                *load.entry(next).or_default() += 1;
                replicas.push(next);
            }
            (topic.name.clone(), partition.index, replicas)
        });
        let plan: Vec<_> = plan.collect();
        if !plan.is_empty() {
            let words = count(plan.len(), "partition");
            let sentence = format!("{words} with one replica, in a cluster of {brokers} brokers");
            report.find(format!("topic {}", topic.name), sentence, vec![reassign(facts, &plan)]);
        }
    }
}

/// How many replicas each broker has.
fn load(facts: &Facts, topics: &[Topic]) -> BTreeMap<i32, usize> {
    let mut load: BTreeMap<i32, usize> = facts.alive().map(|node| (node.id, 0)).collect();
    for replica in topics.iter().flat_map(|topic| &topic.partitions).flat_map(|partition| &partition.replicas)
    {
        load.entry(*replica).and_modify(|number| *number += 1);
    }
    load
}

/// The broker with the fewest replicas, of those that may take one.
fn least(load: &BTreeMap<i32, usize>, may: impl Fn(i32) -> bool) -> Option<i32> {
    load.iter()
        .filter(|(broker, _)| may(**broker))
        .min_by_key(|(_, number)| **number)
        .map(|(broker, _)| *broker)
}

pub const MINIMUM: Rule = Rule {
    id: "T2",
    name: "min.insync.replicas that is one, or as large as the replication factor",
    severity: Severity::Warning,
    evidence: "DescribeConfigs of topics, Metadata",
    threshold: "1 with three replicas and more; the replication factor, or more",
    limit: None,
    advice: "With 1, acks=all is acknowledged by the leader alone when the others lag, and lost with it. With as many as there are replicas, one restart stops the producers.",
    command: "barnabas configs … --alter --entity-type topics --entity-name NAME --add-config min.insync.replicas=2",
    judge: |facts, _, report| {
        for topic in report.seen(&facts.topics).into_iter().flatten() {
            let Some(configs) = report.seen(&topic.configs) else { continue };
            let Some(minimum) = number(configs, "min.insync.replicas") else { continue };
            let factor = topic.replication_factor();
            let wanted = match factor {
                0..=2 if minimum > 1.0 => 1,
                3.. if minimum <= 1.0 => 2,
                3.. if minimum >= factor as f64 => factor - 1,
                _ => continue,
            };
            let sentence = format!("min.insync.replicas is {minimum} with {}", count(factor, "replica"));
            let change = format!("--add-config min.insync.replicas={wanted}");
            let line = alter_topic(facts, &topic.name, &change);
            report.find(format!("topic {}", topic.name), sentence, vec![line]);
        }
    },
};
