//! The language of the transaction talks. A command is a verb and `key=value` words; what is left out has a default.

use std::collections::BTreeMap;

use barnabas_base::{
    ConnectionNumber, DurationMs, ErrorCode, PartitionIndex, ProducerEpoch, ProducerId, TopicPartition,
};
use barnabas_coordinator::{
    AddOffsets, AddPartitions, BatchId, MarkerOutcome, TransactionCaller, TransactionConfig,
    TransactionEffect, TransactionRequest, TransactionVersion,
};
use barnabas_wire::Str;
use barnabas_wire::messages::{
    DescribeTransactionsRequest, EndTxnRequest, InitProducerIdRequest, ListTransactionsRequest,
    TransactionRecordValue,
};

use super::{Rig, hear};

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

    fn get(&self, name: &str) -> Option<&'a str> {
        self.named.get(name).copied()
    }

    fn number<N: std::str::FromStr>(&self, name: &str, default: N) -> N {
        self.get(name)
            .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
    }

    fn has(&self, name: &str) -> bool {
        self.named.contains_key(name)
    }

    fn list(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.get(name).unwrap_or_default().split(',').filter(|part| !part.is_empty())
    }

    fn id(&self) -> Str {
        match self.get("id").unwrap_or("x") {
            "-" => Str::default(),
            id => id.into(),
        }
    }

    fn producer(&self) -> ProducerId {
        ProducerId(self.number("p", 1000))
    }

    fn epoch(&self) -> ProducerEpoch {
        ProducerEpoch(self.number("epoch", 0))
    }

    fn partitions(&self) -> Vec<TopicPartition> {
        let partitions = self.list("partitions").map(|part| {
            let (topic, index) = part.rsplit_once('-').expect("topic-partition");
            TopicPartition::new(topic, PartitionIndex(index.parse().expect("a partition")))
        });
        partitions.collect()
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
        let rig = self.rig.get_or_insert_with(|| Rig::new(TransactionConfig::default()));
        let lines = tell(rig, &words);
        if lines.is_empty() { vec!["nothing".to_owned()] } else { lines }
    }
}

fn config(words: &Words<'_>) -> TransactionConfig {
    let standard = TransactionConfig::default();
    TransactionConfig {
        version: TransactionVersion(words.number("tv", standard.version.0)),
        id_expiration: DurationMs(words.number("expiration", standard.id_expiration.0)),
        id_expiration_check_interval: DurationMs(
            words.number("check", standard.id_expiration_check_interval.0),
        ),
        batch_bytes_max: words.number("batch-max", standard.batch_bytes_max),
        pending_batches_max: words.number("pending-max", standard.pending_batches_max),
        waiting_for_ids_max: words.number("waiting-max", standard.waiting_for_ids_max),
        ids_max: words.number("ids-max", standard.ids_max),
        memory_bytes_max: words.number("memory-max", standard.memory_bytes_max),
        busy_patience: DurationMs(words.number("patience", standard.busy_patience.0)),
        parked_max: words.number("parked-max", standard.parked_max),
        ..standard
    }
}

pub fn tell(rig: &mut Rig, words: &Words<'_>) -> Vec<String> {
    match words.verb {
        "slow-disk" => {
            rig.disk_is_quick = false;
            vec!["ok".to_owned()]
        }
        "slow-ids" => {
            rig.ids_are_quick = false;
            vec!["ok".to_owned()]
        }
        "ids" => heard(rig.supply()),
        "no-ids" => {
            let now = rig.now();
            let effects = rig.shard.supply(Err(ErrorCode::CoordinatorLoadInProgress), now);
            heard(rig.carry_out(effects))
        }
        "durable" => {
            let newest = rig.pending.keys().next_back().map_or(0, |batch| batch.0);
            heard(rig.durable(BatchId(words.number("to", newest))))
        }
        "fail" => heard(
            rig.fail(BatchId(words.number("batch", 0)), error(words.get("error").unwrap_or("replicas"))),
        ),
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
        "moves" => heard(rig.moves()),
        "tv" => {
            rig.config.version = TransactionVersion(words.number("to", 2));
            rig.shard.set_config(rig.config.clone());
            vec!["ok".to_owned()]
        }
        "bump" => bump(rig, words),
        "others-hold" => {
            rig.shard.others_hold(words.number("bytes", 0));
            vec!["ok".to_owned()]
        }
        "held" => vec![format!("{} bytes", rig.shard.room().held())],
        "stats" => vec![format!("{:?}", rig.shard.stats())],
        "markers" => markers(rig, words),
        _ => {
            let (version, request) = request(words);
            let connection = words.has("over").then(|| ConnectionNumber(words.number("over", 0)));
            let (ticket, effects) =
                rig.send_as(TransactionCaller { version, connection, room: None }, request);
            let mut lines = heard(effects);
            if rig.waiting.contains_key(&ticket) {
                lines.push(format!("#{} waits", ticket.0));
            }
            lines
        }
    }
}

/// Rewrites the only transactional id's last record under another epoch, and loads it: what thousands of transactions
/// come to.
fn bump(rig: &mut Rig, words: &Words<'_>) -> Vec<String> {
    let record = rig.log.last_mut().expect("a record");
    let value = record.value.clone().expect("a value");
    let (value, version) = TransactionRecordValue::decode_value(0, value).expect("a good value");
    let TransactionRecordValue::TransactionLog(mut value) = value;
    value.producer_epoch = words.number("to", 0);
    let value = TransactionRecordValue::TransactionLog(value).encode_value(version);
    record.value = Some(value.expect("a value that was read"));
    heard(rig.moves())
}

/// Answers what was ordered: all of it, or `partitions` of it; `order=n` another than the oldest; `keep`: it is
/// answered again later.
fn markers(rig: &mut Rig, words: &Words<'_>) -> Vec<String> {
    let at = words.number("order", 0usize);
    let Some(order) = rig.orders.get(at).cloned() else { return vec!["no markers are ordered".to_owned()] };
    let outcome = match words.get("outcome").unwrap_or("written") {
        "written" => MarkerOutcome::Written,
        "gone" => MarkerOutcome::Gone,
        other => MarkerOutcome::Failed(error(other)),
    };
    let partitions = if words.has("partitions") { words.partitions() } else { order.partitions.clone() };
    if !words.has("keep") {
        rig.orders[at].partitions.retain(|partition| !partitions.contains(partition));
        rig.orders.retain(|order| !order.partitions.is_empty());
    }
    let outcomes: Vec<_> = partitions.into_iter().map(|partition| (partition, outcome)).collect();
    heard(rig.answer_markers(order.ticket, &order.transactional_id, &outcomes))
}

fn error(name: &str) -> ErrorCode {
    match name {
        "storage" => ErrorCode::KafkaStorageError,
        "replicas" => ErrorCode::NotEnoughReplicas,
        "leader" => ErrorCode::NotLeaderOrFollower,
        "network" => ErrorCode::NetworkException,
        "epoch" => ErrorCode::InvalidProducerEpoch,
        "fenced" => ErrorCode::TransactionCoordinatorFenced,
        "corrupt" => ErrorCode::CorruptMessage,
        "unknown" => ErrorCode::UnknownTopicOrPartition,
        other => panic!("no such error: {other}"),
    }
}

fn request(words: &Words<'_>) -> (i16, TransactionRequest) {
    let (newest, request) = match words.verb {
        "init" => (
            5,
            TransactionRequest::InitProducerId(InitProducerIdRequest {
                transactional_id: Some(words.id()),
                transaction_timeout_ms: words.number("timeout", 60_000),
                producer_id: words.number("p", -1),
                producer_epoch: words.number("epoch", -1),
                enable2_pc: words.has("2pc"),
                keep_prepared_txn: words.has("keep"),
                ..Default::default()
            }),
        ),
        "add" | "verify" => (
            if words.verb == "add" { 3 } else { 5 },
            TransactionRequest::AddPartitions(AddPartitions {
                transactional_id: words.id(),
                producer_id: words.producer(),
                producer_epoch: words.epoch(),
                verify_only: words.verb == "verify",
                partitions: words.partitions(),
            }),
        ),
        "add-offsets" => (
            4,
            TransactionRequest::AddOffsets(AddOffsets {
                transactional_id: words.id(),
                producer_id: words.producer(),
                producer_epoch: words.epoch(),
                partition: TopicPartition::new(
                    "__consumer_offsets",
                    PartitionIndex(words.number("group", 0)),
                ),
            }),
        ),
        "commit" | "abort" => (
            5,
            TransactionRequest::EndTxn(EndTxnRequest {
                transactional_id: words.id(),
                producer_id: words.producer().get(),
                producer_epoch: words.epoch().get(),
                committed: words.verb == "commit",
                ..Default::default()
            }),
        ),
        "describe" => (
            0,
            TransactionRequest::Describe(DescribeTransactionsRequest {
                transactional_ids: vec![words.id()],
                ..Default::default()
            }),
        ),
        "list" => (
            2,
            TransactionRequest::List(ListTransactionsRequest {
                state_filters: words.list("states").map(Str::from).collect(),
                producer_id_filters: words.list("producers").map(|id| id.parse().expect("an id")).collect(),
                duration_filter: words.number("duration", -1),
                transactional_id_pattern: words.get("pattern").map(Str::from),
                ..Default::default()
            }),
        ),
        other => panic!("unknown request {other:?}"),
    };
    (words.number("v", newest), request)
}

fn heard(effects: Vec<TransactionEffect>) -> Vec<String> {
    effects.iter().flat_map(hear::effect).collect()
}
