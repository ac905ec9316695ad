//! C: the quorum, leadership, placement, feature levels and settings of a cluster.

mod plan;

use super::words::{alter_topic, count, percent, quoted, several, span, tool};
use super::{Rule, limit};
use crate::facts::{Config, Facts, Quorum, Source, Topic, Voter, text};
use crate::report::Severity;
use std::collections::{BTreeMap, BTreeSet};

pub const VOTERS: Rule = Rule {
    id: "C1",
    name: "Voters: an even number, or one alone",
    severity: Severity::Warning,
    evidence: "DescribeQuorum, racks of the brokers",
    threshold: "an even number of voters; one voter beside three brokers and more; all voters in one of several racks",
    limit: None,
    advice: "A quorum of 2n voters survives no more failures than one of 2n−1. Run three or five controllers, in different racks.",
    command: "barnabas metadata-quorum … --command-config CONTROLLER.properties add-controller",
    judge: |facts, _, report| {
        let Some(quorum) = report.seen(&facts.quorum) else { return };
        let voters = quorum.voters.len();
        let brokers = facts.alive().count();
        if voters % 2 == 0 || (voters == 1 && brokers >= 3) {
            let survives = voters.saturating_sub(1) / 2;
            let sentence = format!(
                "the metadata quorum has {}: it survives {}",
                count(voters, "voter"),
                count(survives, "failure")
            );
            report.find("cluster", sentence, voter_commands(facts, quorum));
        }
        let racks: Vec<&str> = quorum.voters.iter().filter_map(|voter| facts.rack(voter.id)).collect();
        let is_one = racks.len() == voters && racks.iter().collect::<BTreeSet<_>>().len() == 1;
        if voters > 1 && is_one && facts.racks().len() > 1 {
            let sentence = format!("all {voters} voters are in rack {}", racks[0]);
            report.find("cluster", sentence, Vec::new());
        }
    },
};

/// A node that is no voter becomes one, where there is such a node; else a voter leaves.
fn voter_commands(facts: &Facts, quorum: &Quorum) -> Vec<String> {
    // Without directory ids the voters stand in every node's settings (KRaft version 0).
    let is_dynamic = quorum.voters.iter().all(|voter| voter.directory != "AAAAAAAAAAAAAAAAAAAAAA");
    if !is_dynamic {
        return Vec::new();
    }
    // A broker alone follows the quorum too, and cannot vote.
    let may_vote = |observer: &Voter| {
        let known = facts.nodes.iter().find(|node| node.id == observer.id);
        known.is_none_or(|node| {
            let configs = node.configs.as_ref().ok();
            configs
                .and_then(|configs| text(configs, "process.roles"))
                .is_some_and(|r| r.contains("controller"))
        })
    };
    if quorum.observers.iter().any(may_vote) {
        let bootstrap = facts.connect.split(" --command-config").next().unwrap_or_default();
        return vec![format!(
            "barnabas metadata-quorum {bootstrap} --command-config CONTROLLER.properties add-controller"
        )];
    }
    let leaver = quorum.voters.iter().rfind(|voter| voter.id != quorum.leader);
    let leave = leaver.map(|voter| {
        let rest = format!(
            "remove-controller --controller-id {} --controller-directory-id {}",
            voter.id, voter.directory
        );
        tool(facts, "metadata-quorum", &rest)
    });
    leave.into_iter().collect()
}

pub const VOTER_LAG: Rule = Rule {
    id: "C2",
    name: "A voter lags behind the quorum's leader",
    severity: Severity::Warning,
    evidence: "DescribeQuorum: when a voter last had all that the leader had",
    threshold: "more than {} s ago, or not since the leader was elected",
    limit: limit(10.0),
    advice: "A voter that lags does not count when another fails. Look at that node: is it running, is its disk slow, is its network cut? Start it again where it is down.",
    command: "",
    judge: |facts, limit, report| {
        let Some(quorum) = report.seen(&facts.quorum) else { return };
        for voter in quorum.voters.iter().filter(|voter| voter.id != quorum.leader) {
            let sentence = match report.seen(&voter.behind_ms) {
                Some(Some(ms)) if *ms as f64 > limit * 1000.0 => {
                    format!("voter {} last caught up {} ago", voter.id, span(*ms as f64))
                }
                Some(None) => {
                    format!("voter {} has not caught up since node {} leads", voter.id, quorum.leader)
                }
                _ => continue,
            };
            report.find(format!("node {}", voter.id), sentence, Vec::new());
        }
    },
};

pub const PREFERRED: Rule = Rule {
    id: "C3",
    name: "Leaders that are not the preferred replicas",
    severity: Severity::Info,
    evidence: "Metadata: leader and first replica of each partition",
    threshold: "more than {} % of the partitions whose preferred replica is in sync",
    limit: limit(10.0),
    advice: "After a restart leaders stay where they moved to, and the load with them, until the next election of preferred leaders.",
    command: "barnabas leader-election … --election-type preferred --all-topic-partitions",
    judge: |facts, limit, report| {
        let Some(topics) = report.seen(&facts.topics) else { return };
        let partitions = topics.iter().flat_map(|topic| &topic.partitions);
        let able = partitions.filter(|partition| {
            let first = partition.replicas.first();
            partition.replicas.len() > 1 && first.is_some_and(|first| partition.isr.contains(first))
        });
        let (mut all, mut others) = (0, 0);
        for partition in able {
            all += 1;
            others += usize::from(partition.leader != partition.replicas.first().copied());
        }
        let share = others as f64 / f64::from(all.max(1));
        if share * 100.0 > limit {
            let sentence = format!(
                "{others} of {all} partitions ({}) are led by another than their preferred replica",
                percent(share)
            );
            let line = tool(facts, "leader-election", "--election-type preferred --all-topic-partitions");
            report.find("cluster", sentence, vec![line]);
        }
    },
};

pub const UNEQUAL: Rule = Rule {
    id: "C4",
    name: "Nodes with unequal numbers of replicas or leaders",
    severity: Severity::Info,
    evidence: "Metadata: replicas and preferred leaders of each broker",
    threshold: "the largest is more than {} times the mean, and at least 5 above it",
    limit: limit(1.3),
    advice: "The fullest broker decides what the cluster can take. The printed plan moves as few replicas as make the numbers equal, and keeps the number of racks of each partition.",
    command: "echo '{…}' | barnabas reassign-partitions … --execute --additional --reassignment-json-file /dev/stdin",
    judge: plan::judge_unequal,
};

pub const ISR_FLAPS: Rule = Rule {
    id: "C7",
    name: "ISRs that shrink and expand again",
    severity: Severity::Warning,
    evidence: "metrics: isrshrinks_total and isrexpands_total between the two looks",
    threshold: "{} shrinks and as many expansions on one node",
    limit: limit(3.0),
    advice: "A follower falls behind and catches up again: its disk, its network or its CPU is at the limit. Look for D1, D14 and O1 of the node that left the ISRs.",
    command: "",
    judge: |facts, limit, report| {
        for node in facts.alive() {
            let Some(figures) = report.seen(&node.figures) else { continue };
            let flaps = figures.isr_shrinks.min(figures.isr_expands);
            if flaps >= limit {
                let (shrinks, expands, seconds) = (figures.isr_shrinks, figures.isr_expands, figures.seconds);
                let sentence =
                    format!("{shrinks:.0} ISR shrinks and {expands:.0} expansions in {seconds:.0} s");
                report.find(format!("node {}", node.id), sentence, Vec::new());
            }
        }
    },
};

pub const UNCLEAN: Rule = Rule {
    id: "C8",
    name: "Unclean leader elections happened",
    severity: Severity::Critical,
    evidence: "metrics: uncleanleaderelections_total since the start of a controller",
    threshold: "any",
    limit: None,
    advice: "The new leader was not in the ISR, so records that were acknowledged can be missing. Compare with the producers' own records; forbid it for topics that cannot lose any (T3).",
    command: "",
    judge: |facts, _, report| {
        if let Some(quorum) = report.seen(&facts.quorum)
            && !facts.alive().any(|node| node.id == quorum.leader)
        {
            report.not_seen("the controller is no broker: its metrics are not asked for");
        }
        let mut elections: f64 = 0.0;
        for node in facts.alive() {
            if let Some(figures) = report.seen(&node.figures) {
                elections = elections.max(figures.unclean_elections_total);
            }
        }
        if elections > 0.0 {
            let sentence = format!("{elections:.0} unclean leader elections since the controller started");
            report.find("cluster", sentence, Vec::new());
        }
    },
};

pub const FEATURES: Rule = Rule {
    id: "C9",
    name: "Features below what every node supports; versions mixed",
    severity: Severity::Info,
    evidence: "ApiVersions: finalized and supported feature levels of each node",
    threshold: "any; kraft.version left out",
    limit: None,
    advice: "An upgrade ends with its feature levels: until then what is new stays off. Raise them once no node will go back to the older version.",
    command: "barnabas features … upgrade --feature NAME=LEVEL",
    judge: |facts, _, report| {
        let mut nodes = Vec::new();
        for node in facts.alive() {
            nodes.extend(report.seen(&node.features));
        }
        let Some(first) = nodes.first() else { return };
        let mut behind = Vec::new();
        let mut mixed = Vec::new();
        for (name, newest) in &first.supported {
            let levels = nodes.iter().map(|node| node.supported.get(name).copied().unwrap_or(0));
            let level_min = levels.clone().min().unwrap_or(0);
            let now = first.finalized.get(name).copied().unwrap_or(0);
            if levels.clone().max() != Some(level_min) {
                mixed.push(format!("{name} up to {level_min} and up to {}", levels.max().unwrap_or(*newest)));
            } else if now < level_min && name != "kraft.version" {
                behind.push((name.clone(), now, level_min));
            }
        }
        if !mixed.is_empty() {
            let sentence = format!("nodes of different versions: they support {}", several(&mixed));
            report.find("cluster", sentence, Vec::new());
        }
        if !behind.is_empty() {
            // metadata.version first: others depend on it.
            behind.sort_by_key(|(name, ..)| name != "metadata.version");
            let words: Vec<String> =
                behind.iter().map(|(name, now, able)| format!("{name} is {now} of {able}")).collect();
            let upgrade = |(name, _, able): &(String, i16, i16)| {
                tool(facts, "features", &format!("upgrade --feature {name}={able}"))
            };
            let sentence = format!("features below what all nodes support: {}", several(&words));
            report.find("cluster", sentence, behind.iter().map(upgrade).collect());
        }
    },
};

const TOPIC_THROTTLES: [&str; 2] =
    ["leader.replication.throttled.replicas", "follower.replication.throttled.replicas"];
const BROKER_THROTTLES: [&str; 3] = [
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
];

pub const THROTTLE: Rule = Rule {
    id: "C10",
    name: "A replication throttle that was left behind",
    severity: Severity::Warning,
    evidence: "DescribeConfigs of topics and brokers, ListPartitionReassignments",
    threshold: "a throttle is set and no partition is being reassigned",
    limit: None,
    advice: "Throttles of a reassignment stay until `--verify` removes them. Replicas that fall behind later catch up no faster than that.",
    command: "barnabas configs … --alter --entity-type topics --entity-name NAME --delete-config leader.replication.throttled.replicas",
    judge: |facts, _, report| {
        let Some(reassigning) = report.seen(&facts.reassigning) else { return };
        if !reassigning.is_empty() {
            return;
        }
        for topic in report.seen(&facts.topics).into_iter().flatten() {
            let Some(configs) = report.seen(&topic.configs) else { continue };
            let keys = TOPIC_THROTTLES.into_iter().filter(|key| {
                configs.get(*key).is_some_and(|config| {
                    config.source == Source::Topic && config.value.as_deref().is_some_and(|v| !v.is_empty())
                })
            });
            let keys: Vec<&str> = keys.collect();
            if !keys.is_empty() {
                let sentence = format!("{} set, and nothing is being reassigned", keys.join(" and "));
                let line = alter_topic(facts, &topic.name, &format!("--delete-config {}", keys.join(",")));
                report.find(format!("topic {}", topic.name), sentence, vec![line]);
            }
        }
        for node in facts.alive() {
            let Some(configs) = report.seen(&node.configs) else { continue };
            let keys = BROKER_THROTTLES
                .into_iter()
                .filter(|key| configs.get(*key).is_some_and(|config| config.source == Source::DynamicBroker));
            let keys: Vec<&str> = keys.collect();
            if !keys.is_empty() {
                let sentence = format!("{} set, and nothing is being reassigned", keys.join(" and "));
                let rest = format!(
                    "--alter --entity-type brokers --entity-name {} --delete-config {}",
                    node.id,
                    keys.join(",")
                );
                report.find(format!("node {}", node.id), sentence, vec![tool(facts, "configs", &rest)]);
            }
        }
    },
};

pub const FENCED: Rule = Rule {
    id: "C11",
    name: "A broker that is registered and fenced",
    severity: Severity::Warning,
    evidence: "DescribeCluster with fenced brokers, Metadata",
    threshold: "any",
    limit: None,
    advice: "A broker that is down is started again. One that is gone for good is unregistered, after its replicas were moved.",
    command: "barnabas cluster unregister … --id N",
    judge: |facts, _, report| {
        let fenced: Vec<i32> = facts.nodes.iter().filter(|node| node.is_fenced).map(|node| node.id).collect();
        if fenced.is_empty() {
            return;
        }
        let Some(topics) = report.seen(&facts.topics) else { return };
        for id in fenced {
            let holds = |topic: &Topic| topic.partitions.iter().filter(|p| p.replicas.contains(&id)).count();
            let replicas: usize = topics.iter().map(holds).sum();
            let (sentence, commands) = if replicas == 0 {
                let line = tool(facts, "cluster", &format!("unregister --id {id}"));
                (format!("broker {id} is registered, fenced and holds no replica"), vec![line])
            } else {
                let words = count(replicas, "replica");
                (
                    format!("broker {id} is fenced: {words} of it serve nothing until it runs again"),
                    Vec::new(),
                )
            };
            report.find(format!("node {id}"), sentence, commands);
        }
    },
};

/// Keys that differ between nodes on purpose.
const OF_THE_NODE: &[&str] = &[
    "advertised.listeners",
    "amqp.listener",
    "amqp.security.protocol",
    "audit.log.file",
    "broker.id",
    "broker.rack",
    "console.advertised.url",
    "console.hosts",
    "console.listener",
    "console.read.only",
    "console.schema.registry.basic.auth.user.info",
    "console.schema.registry.url",
    "console.schemas.dir",
    "console.security.protocol",
    "controller.quorum.bootstrap.servers",
    "cordoned.log.dirs",
    "listeners",
    "log.dir",
    "log.dirs",
    "log.file",
    "metadata.log.dir",
    "metrics.listener",
    "mq.listener",
    "mq.security.protocol",
    "node.id",
    "process.roles",
];

pub const SETTINGS_DIFFER: Rule = Rule {
    id: "C12",
    name: "Nodes whose settings differ",
    severity: Severity::Info,
    evidence: "DescribeConfigs of every broker: keys that one of them sets",
    threshold: "any, but for keys that belong to a node: its id, rack, role, addresses, directories, and ssl.*",
    limit: None,
    advice: "A setting of one node alone shows when that node leads, and hides when it does not. Set it for all or for none.",
    command: "barnabas configs … --alter --entity-type brokers --entity-name N --delete-config KEY",
    judge: |facts, _, report| {
        let mut nodes = Vec::new();
        for node in facts.alive() {
            if let Some(configs) = report.seen(&node.configs) {
                nodes.push((node.id, configs));
            }
        }
        let is_set = |config: &Config| matches!(config.source, Source::Static | Source::DynamicBroker);
        let keys = nodes.iter().flat_map(|(_, configs)| configs.iter());
        let keys: BTreeSet<&str> =
            keys.filter(|(_, config)| is_set(config)).map(|(key, _)| key.as_str()).collect();
        let is_shared =
            |key: &&str| !OF_THE_NODE.contains(key) && !key.contains("ssl.") && !key.starts_with("listener.");
        for key in keys.into_iter().filter(is_shared) {
            let mut values: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
            for (id, configs) in &nodes {
                let value = configs.get(key).and_then(|config| config.value.as_deref());
                values.entry(value.unwrap_or_default()).or_default().push(*id);
            }
            if values.len() > 1 {
                let words: Vec<String> =
                    values.iter().map(|(value, ids)| format!("{} on {ids:?}", quoted(value))).collect();
                let sentence = format!("{key} differs between the nodes: {}", several(&words));
                let dynamic = nodes.iter().filter(|(_, configs)| {
                    configs.get(key).is_some_and(|config| config.source == Source::DynamicBroker)
                });
                let line = |(id, _): &(i32, _)| {
                    let rest =
                        format!("--alter --entity-type brokers --entity-name {id} --delete-config {key}");
                    tool(facts, "configs", &rest)
                };
                report.find(format!("setting {key}"), sentence, dynamic.map(line).collect());
            }
        }
    },
};
