//! The language of the talks.
//!
//! A command is a verb and `key=value` words; what is left out has a default. Member ids are written as `client~n`, the
//! n-th id that was given out.

mod consumer;
mod entry;
mod hear;
mod requests;
mod share;
mod streams;

use std::collections::BTreeMap;

use barnabas_base::{ConnectionNumber, DurationMs, ErrorCode, Text, Uuid};
use barnabas_coordinator::{
    BatchId, ConsumerConfig, Effect, GroupConfig, GroupTimes, MigrationPolicy, PerGroup, ShareConfig,
    StreamsConfig, StreamsSettings,
};

use crate::rig::Rig;

/// The words of one command.
pub struct Words<'a> {
    pub verb: &'a str,
    named: BTreeMap<&'a str, &'a str>,
}

impl<'a> Words<'a> {
    pub fn of(command: &'a str) -> Self {
        let mut words = command.split_whitespace();
        let verb = words.next().unwrap_or_default();
        let named = words.map(|word| word.split_once('=').unwrap_or((word, "true"))).collect();
        Self { verb, named }
    }

    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.named.get(name).copied()
    }

    pub fn text(&self, name: &str, default: &'a str) -> &'a str {
        self.get(name).unwrap_or(default)
    }

    pub fn number<N: std::str::FromStr>(&self, name: &str, default: N) -> N {
        self.get(name)
            .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
    }

    pub fn has(&self, name: &str) -> bool {
        self.named.contains_key(name)
    }
}

#[derive(Default)]
pub struct Speaker {
    rig: Option<Rig>,
}

impl Speaker {
    /// Says one thing; the lines that come back.
    pub fn say(&mut self, command: &str) -> Vec<String> {
        let words = Words::of(command);
        if words.verb == "shard" {
            self.rig = Some(Rig::new(config(&words)));
            return vec!["ok".to_owned()];
        }
        let rig = self.rig.get_or_insert_with(|| Rig::new(config(&Words::of("shard"))));
        let lines = tell(rig, &words);
        if lines.is_empty() { vec!["nothing".to_owned()] } else { lines }
    }
}

fn config(words: &Words<'_>) -> GroupConfig {
    let standard = GroupConfig::default();
    GroupConfig {
        group_size_max: words.number("max-size", standard.group_size_max),
        initial_rebalance_delay: DurationMs(words.number("delay", standard.initial_rebalance_delay.0)),
        offset_metadata_max: words.number("metadata-max", standard.offset_metadata_max),
        offsets_retention: DurationMs(words.number("retention", standard.offsets_retention.0)),
        offsets_retention_check_interval: DurationMs(
            words.number("check", standard.offsets_retention_check_interval.0),
        ),
        batch_bytes_max: words.number("batch-max", standard.batch_bytes_max),
        pending_batches_max: words.number("pending-max", standard.pending_batches_max),
        member_bytes_max: words.number("member-bytes", standard.member_bytes_max),
        group_bytes_max: words.number("group-bytes", standard.group_bytes_max),
        groups_bytes_max: words.number("groups-bytes", standard.groups_bytes_max),
        pending_members_max: words.number("pending-members-max", standard.pending_members_max),
        consumer: consumer(words),
        streams: streams_config(words),
        share: share(words),
        ..standard
    }
}

fn share(words: &Words<'_>) -> ShareConfig {
    let standard = ShareConfig::default();
    ShareConfig { size_max: words.number("share-max-size", standard.size_max), times: for_all(times(words)) }
}

fn for_all<T: Default>(standard: T) -> PerGroup<T> {
    PerGroup { standard, ..PerGroup::default() }
}

fn times(words: &Words<'_>) -> GroupTimes {
    let standard = GroupTimes::default();
    GroupTimes {
        session_timeout: DurationMs(words.number("session", standard.session_timeout.0)),
        // Off unless a talk is about it: all requests come at one time.
        assignment_interval: DurationMs(words.number("interval", 0)),
        ..standard
    }
}

fn consumer(words: &Words<'_>) -> ConsumerConfig {
    let standard = ConsumerConfig::default();
    ConsumerConfig {
        size_max: words.number("consumer-max-size", standard.size_max),
        times: for_all(times(words)),
        migration: match words.text("migration", "both") {
            "both" => MigrationPolicy::Bidirectional,
            "up" => MigrationPolicy::Upgrade,
            "down" => MigrationPolicy::Downgrade,
            "none" => MigrationPolicy::Disabled,
            other => panic!("no such policy: {other}"),
        },
        assign_at_once_max: words.number("at-once", standard.assign_at_once_max),
        ..standard
    }
}

fn streams_config(words: &Words<'_>) -> StreamsConfig {
    StreamsConfig {
        size_max: words.number("streams-max-size", StreamsConfig::default().size_max),
        settings: for_all(StreamsSettings {
            times: times(words),
            initial_rebalance_delay: DurationMs(words.number("first-delay", 0)),
            standby_replicas: words.number("standbys", 0),
            rack_tags: std::sync::Arc::new(words.get("tags").map(Text::from).into_iter().collect()),
            ..StreamsSettings::default()
        }),
        keeps_descriptions: words.has("keeps-descriptions"),
    }
}

pub fn tell(rig: &mut Rig, words: &Words<'_>) -> Vec<String> {
    if arrange(rig, words) {
        return vec!["ok".to_owned()];
    }
    match words.verb {
        "durable" => {
            let newest = rig.pending.keys().next_back().map_or(0, |batch| batch.0);
            heard(rig.durable(BatchId(words.number("to", newest))))
        }
        "fail" => {
            let error = match words.text("error", "storage") {
                "storage" => ErrorCode::KafkaStorageError,
                "replicas" => ErrorCode::NotEnoughReplicas,
                "size" => ErrorCode::RecordListTooLarge,
                "epoch" => ErrorCode::InvalidProducerEpoch,
                other => panic!("no such error: {other}"),
            };
            heard(rig.fail(BatchId(words.number("batch", 0)), error))
        }
        "wait" => {
            let mut lines = Vec::new();
            rig.wait(DurationMs(words.number("ms", 0)), |at, effects| {
                let said = heard(effects);
                if !said.is_empty() {
                    lines.push(format!("at {at} ms"));
                    lines.extend(said);
                }
            });
            lines
        }
        "topic-deleted" => {
            let topic = Text::from(words.text("topic", "t"));
            let now = rig.now();
            let effects = rig.shard.topics_deleted(&[(topic, requests::topic_id(words))], now);
            heard(rig.carry_out(effects))
        }
        "run-jobs" => heard(rig.run_jobs()),
        "share-done" => heard(rig.share_done(share::named_error(words))),
        "restart" => heard(rig.restart()),
        "stats" => vec![format!("{:?}", rig.shard.stats())],
        _ => {
            let (client, version, request) = requests::request(words);
            rig.connection = words.has("over").then(|| ConnectionNumber(words.number("over", 0)));
            let (ticket, effects) = rig.send(client, version, request);
            let mut lines = heard(effects);
            if rig.waiting.contains_key(&ticket) {
                lines.push(format!("#{} waits", ticket.0));
            }
            lines
        }
    }
}

/// Changes what surrounds the shard; `false`: the words are about the shard.
fn arrange(rig: &mut Rig, words: &Words<'_>) -> bool {
    match words.verb {
        "slow-disk" => rig.disk_is_quick = false,
        "slow-jobs" => rig.jobs_are_quick = false,
        "slow-share" => rig.share_is_quick = false,
        "topic" => {
            rig.topic(words.text("name", "t"), words.number("id", 1), words.number("partitions", 3));
        }
        "topic-gone" => rig.delete_topic(words.text("name", "t")),
        "set" => {
            rig.config = GroupConfig { group_size_max: words.number("max-size", 1), ..rig.config.clone() };
            let streams = &mut rig.config.streams.settings.standard;
            streams.standby_replicas = words.number("standbys", 0);
            let interval = streams.times.assignment_interval.0;
            streams.times.assignment_interval = DurationMs(words.number("interval", interval));
            rig.shard.set_config(rig.config.clone());
        }
        _ => return false,
    }
    true
}

fn heard(effects: Vec<Effect>) -> Vec<String> {
    effects.iter().flat_map(hear::effect).collect()
}

/// `client-00000000-0000-4000-8000-00000000000n` ↔ `client~n`.
pub fn short_id(id: &str) -> String {
    let Some(at) = id.len().checked_sub(37) else { return id.to_owned() };
    match (id.get(..at), id.get(at..).and_then(|rest| rest.strip_prefix("-00000000-0000-4000-8000-"))) {
        (Some(name), Some(number)) => match u64::from_str_radix(number, 16) {
            Ok(number) => format!("{name}~{number}"),
            Err(_) => id.to_owned(),
        },
        _ => id.to_owned(),
    }
}

pub fn long_id(id: &str) -> String {
    match id.split_once('~') {
        Some((name, number)) => {
            let number: u64 = number.parse().expect("a number after ~");
            format!("{name}-00000000-0000-4000-8000-{number:012x}")
        }
        None => id.to_owned(),
    }
}

pub fn short_topic_id(id: Uuid) -> String {
    if id.is_zero() { String::new() } else { format!(" id={}", id.0[15]) }
}
