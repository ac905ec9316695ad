//! W: what the requests and the records of clients show.

use super::{OURS, each};
use crate::facts::{Figures, Topic, number};
use crate::report::Severity;
use crate::rules::topics::{compressed, samples, topic_rate};
use crate::rules::words::{bytes, percent, several};
use crate::rules::{Rule, limit};

/// A smaller saving is not worth a changed setting.
const PAYS: f64 = 0.7;
const PRODUCES_MIN: f64 = 20.0;
const MIB: f64 = 1_048_576.0;
/// Versions that were the newest ones before Kafka 2.1: without zstd.
const OLD: &[(&str, i32)] = &[("Produce", 6), ("Fetch", 9)];
const FETCHES_PER_S: f64 = 100.0;
/// Of the time between the looks: a client that holds answers for less disturbs no other.
const WRITING_MIN: f64 = 0.1;

pub const NOT_COMPRESSED: Rule = Rule {
    id: "W2",
    name: "Records that compression would shrink",
    severity: Severity::Info,
    evidence: "up to 256 KiB that the topic's busiest partition took between the looks, compressed by lz4 here; sizes by DescribeLogDirs",
    threshold: "lz4 makes less than 70 % of them, at more than {} MiB a second that are not compressed",
    limit: limit(1.0),
    advice: "Set compression.type=lz4 or zstd in the producers: disk, network, page cache and replication all get less. The printed setting lets the broker compress until then, at its cost.",
    command: "barnabas configs … --alter --entity-type topics --entity-name NAME --add-config compression.type=lz4",
    judge: |facts, limit, report| {
        let topics = report.seen(&facts.topics);
        for sample in samples(facts, report) {
            let topic = topics.into_iter().flatten().find(|topic| topic.name == sample.topic);
            let Some(rate) = topic.and_then(|topic| topic_rate(facts, topic, report)) else { continue };
            let (plain, all) = (sample.plain_bytes as f64, sample.bytes as f64);
            let (ratio, of_rate) =
                (sample.deflated_bytes as f64 / plain.max(1.0), rate * plain / all.max(1.0));
            if plain > 0.0 && ratio < PAYS && of_rate > limit * MIB {
                let sentence = format!(
                    "{} a second are not compressed, and lz4 would leave {}: {} a second less, on each replica",
                    bytes(of_rate),
                    percent(ratio),
                    bytes(of_rate * (1.0 - ratio))
                );
                report.find(
                    format!("topic {}", sample.topic),
                    sentence,
                    vec![compressed(facts, &sample.topic)],
                );
            }
        }
    },
};

pub const WEAK_ACKS: Rule = Rule {
    id: "W3",
    name: "Producers that do not wait for the replicas",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_produce_partitions_weak_acks_total; min.insync.replicas of topics, else of the node",
    threshold: "more than {} % of the partitions of Produce requests, where min.insync.replicas is 2 or more",
    limit: limit(1.0),
    advice: "With acks=0 or 1 a record is acknowledged by the leader alone, and lost with it, whatever min.insync.replicas says. Set acks=all, the default since Kafka 3.0.",
    command: "",
    judge: |facts, limit, report| {
        let asks = |topic: &Topic| {
            let minimum =
                topic.configs.as_ref().ok().and_then(|configs| number(configs, "min.insync.replicas"));
            !topic.is_internal && minimum.is_some_and(|minimum| minimum >= 2.0)
        };
        let by_topics = facts.topics.as_ref().ok().map(|topics| topics.iter().any(asks));
        each(facts, report, |node, figures, report| {
            let Some(weak) = report.seen(&figures.produced_weakly).copied() else { return };
            let of_node =
                node.configs.as_ref().ok().and_then(|configs| number(configs, "min.insync.replicas"));
            let is_asked = by_topics.unwrap_or(of_node.is_some_and(|minimum| minimum >= 2.0));
            let share = weak / figures.produced.max(1.0);
            if is_asked && share * 100.0 > limit {
                let sentence = format!(
                    "{weak:.0} of {:.0} batches came with acks=0 or 1 ({}): min.insync.replicas does not hold for them",
                    figures.produced,
                    percent(share)
                );
                report.find(format!("node {}", node.id), sentence, Vec::new());
            }
        });
    },
};

pub const NOT_IDEMPOTENT: Rule = Rule {
    id: "W4",
    name: "Producers without idempotence",
    severity: Severity::Info,
    evidence: "up to 256 KiB that the topic's busiest partition took between the looks: producer ids of the batches",
    threshold: "more than {} % of the sampled batches have none",
    limit: limit(50.0),
    advice: "A retry of such a producer can write its records twice, and with several requests in flight out of order. Set enable.idempotence=true with acks=all, the defaults since Kafka 3.0.",
    command: "",
    judge: |facts, limit, report| {
        for sample in samples(facts, report) {
            let (some, all) = (sample.batches_without_id, sample.batches);
            if some as f64 / all.max(1) as f64 * 100.0 > limit {
                let sentence = format!("{some} of {all} sampled batches have no producer id");
                report.find(format!("topic {}", sample.topic), sentence, Vec::new());
            }
        }
    },
};

pub const OLD_CLIENTS: Rule = Rule {
    id: "W5",
    name: "Clients of an old protocol",
    severity: Severity::Info,
    evidence: "metrics: requests by API and version",
    threshold: "any Produce below version 7 or Fetch below version 10: clients from before Kafka 2.1 of 2018",
    limit: None,
    advice: "They cannot read or write zstd, and the next major version of Kafka may leave their requests out, as 4.0 did with those before 0.10. Upgrade the clients.",
    command: "",
    judge: |facts, _, report| {
        each(facts, report, |node, figures, report| {
            let is_old =
                |api: &str, version: i32| OLD.iter().any(|(known, last)| *known == api && version <= *last);
            let old = figures
                .versions
                .iter()
                .filter(|(api, version, number)| *number > 0.0 && is_old(api, *version));
            let words: Vec<String> =
                old.map(|(api, version, number)| format!("{number:.0} {api} of version {version}")).collect();
            if !words.is_empty() {
                let sentence = format!("requests in {:.0} s: {}", figures.seconds, several(&words));
                report.find(format!("node {}", node.id), sentence, Vec::new());
            }
        });
    },
};

pub const TINY_FETCHES: Rule = Rule {
    id: "W7",
    name: "Tiny answers to Fetch",
    severity: Severity::Info,
    evidence: "metrics: barnabas_fetch_bytes between the two looks",
    threshold: "half of the answers to consumers have at most {} bytes, at more than 100 a second and node",
    limit: limit(1024.0),
    advice: "Each answer costs the node and the consumer as much as a large one. Let consumers wait for more: fetch.min.bytes=65536, and fetch.max.wait.ms bounds the wait.",
    command: "",
    judge: |facts, limit, report| {
        each(facts, report, |node, figures, report| {
            let rate = figures.fetch_bytes.count() / figures.seconds;
            let Some(median) = figures.fetch_bytes.quantile(0.5) else { return };
            if rate > FETCHES_PER_S && median <= limit {
                let sentence = format!(
                    "half of the answers to consumers have at most {}, at {rate:.0} a second",
                    bytes(median)
                );
                report.find(format!("node {}", node.id), sentence, Vec::new());
            }
        });
    },
};

pub const REFUSED: Rule = Rule {
    id: "W10",
    name: "Batches that are refused",
    severity: Severity::Warning,
    evidence: "metrics: failedproducerequests_total and totalproducerequests_total between the two looks",
    threshold: "more than {} % of twenty batches and more",
    limit: limit(1.0),
    advice: "Sequence gaps, too few replicas in sync (C6), a full disk (D9), records without a key in a compacted topic, batches above max.message.bytes, or a producer that still asks the old leader. Its log names the error.",
    command: "",
    judge: |facts, limit, report| {
        each(facts, report, |node, figures, report| {
            let Figures { produced, produce_refused: refused, .. } = *figures;
            let share = refused / produced.max(1.0);
            if produced >= PRODUCES_MIN && share * 100.0 > limit {
                let sentence =
                    format!("{refused:.0} of {produced:.0} batches were refused ({})", percent(share));
                report.find(format!("node {}", node.id), sentence, Vec::new());
            }
        });
    },
};

pub const DOES_NOT_READ: Rule = Rule {
    id: "W13",
    name: "A client that does not read its answers",
    severity: Severity::Warning,
    evidence: "metrics: barnabas_client_phase_seconds_total, phase write beside the others without wait",
    threshold: "more than {} % of its requests' time, and a tenth of the time between the looks",
    limit: limit(50.0),
    advice: "Its answers wait at the socket and hold request memory (O4). The client is short of CPU, stops for garbage collection, or its network is slow.",
    command: "",
    judge: |facts, limit, report| {
        each(facts, report, |node, figures, report| {
            for client in figures.clients.iter().filter(|client| client.id != OURS) {
                let share = client.write_seconds / client.busy_seconds.max(f64::EPSILON);
                if share * 100.0 > limit && client.write_seconds > figures.seconds * WRITING_MIN {
                    let sentence = format!(
                        "its answers waited {:.1} s at the socket of node {}, {} of its requests' time",
                        client.write_seconds,
                        node.id,
                        percent(share)
                    );
                    report.find(format!("client {}", client.id), sentence, Vec::new());
                }
            }
        });
    },
};

pub const NEW_PRODUCERS: Rule = Rule {
    id: "W15",
    name: "A new producer for each message",
    severity: Severity::Warning,
    evidence: "metrics: InitProducerId requests between the two looks",
    threshold: "more than {} a second and node",
    limit: limit(5.0),
    advice: "Each new producer takes an id that every partition remembers for producer.id.expiration.ms, and opens its own connections. Keep one producer open in each process.",
    command: "",
    judge: |facts, limit, report| {
        each(facts, report, |node, figures, report| {
            let asked =
                figures.apis.iter().filter(|(name, _)| name == "InitProducerId").map(|(_, count)| count);
            let rate = asked.sum::<f64>() / figures.seconds;
            if rate > limit {
                let sentence = format!("{rate:.1} producers a second ask for an id");
                report.find(format!("node {}", node.id), sentence, Vec::new());
            }
        });
    },
};
