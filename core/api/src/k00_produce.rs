//! # Produce, key 0, versions 0–13
//!
//! Puts record batches into partitions. This file checks the request as a whole, hands each partition's records to its
//! owner, and makes one answer of the results. The records themselves are judged by
//! `barnabas_wire::records::validate_produce` under the [`rules`] made here.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | message format 0 |
//! | 1 | throttle time in the answer |
//! | 2 | message format 1; log append time in the answer (KIP-32) |
//! | 3 | record batches (format 2), transactional id (KIP-98) |
//! | 4 | KAFKA_STORAGE_ERROR, which is NOT_LEADER_OR_FOLLOWER to clients that do not know it (KIP-112) |
//! | 5 | log start offset in the answer (KIP-107) |
//! | 6 | throttling by the client (KIP-219) |
//! | 7 | zstd (KIP-110) |
//! | 8 | errors of single records, error message (KIP-467) |
//! | 9 | flexible (KIP-482) |
//! | 10 | current leader and its address beside NOT_LEADER_OR_FOLLOWER (KIP-951), and beside what was handed on to it |
//! | 11 | TRANSACTION_ABORTABLE (KIP-890) |
//! | 12 | partitions join a transaction by being written to (KIP-890) |
//! | 13 | topic ids instead of names (KIP-516) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleProduceRequest`, `ReplicaManager.appendRecords`, `ProduceRequest`.

pub mod forwarding;

use std::sync::Arc;

use barnabas_base::{
    DurationMs, ErrorCode, Offset, PartitionIndex, ProducerEpoch, ProducerId, TimestampMs, TopicId,
    is_internal_topic,
};
use barnabas_metadata::Topic;
use barnabas_metadata::config::{Compression as CompressionType, TimestampType as TopicTime, TopicConfig};
use barnabas_security::Operation;
use barnabas_wire::Str;
use barnabas_wire::messages::produce_request::{ProduceRequest, TopicProduceData};
use barnabas_wire::messages::produce_response::{
    BatchIndexAndErrorMessage, NodeEndpoint, PartitionProduceResponse, ProduceResponse, TopicProduceResponse,
};
use barnabas_wire::records::{
    BatchOrigin, Codec, Compression, RecordError, RecordValidation, Refusal, Rules, TimestampType,
};
use bytes::Bytes;

use crate::{Context, Plan, Slot};

/// From this version on clients know TRANSACTION_ABORTABLE.
const ABORTABLE_SINCE: i16 = 11;
/// From this version on partitions join a transaction by being written to.
const JOINS_SINCE: i16 = 12;

/// Kafka's own admin client may write to internal topics.
const ADMIN_CLIENT: &str = "__admin_client";

/// How safe a batch must be before its producer hears of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acks {
    /// Never answered; an error closes the connection.
    None,
    Leader,
    All,
}

/// What the owners of partitions have to do.
#[derive(Debug)]
pub struct Work {
    pub acks: Acks,
    /// How long an answer may wait for `acks=all`.
    pub timeout: DurationMs,
    /// Of those parts that say so.
    pub transaction: Option<Transaction>,
    pub parts: Vec<Part>,
    /// Refused in `pending` already, as others lead these; the forwarding sets their results.
    pub elsewhere: Vec<Part>,
    /// Refused in `pending` already.
    pub unknown: Vec<Unknown>,
    pub pending: Pending,
}

/// Records for a partition that this node does not know, or not yet: it hears of a new topic later than the client
/// may, which sends them again then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    pub topic: TopicRef,
    pub partition: PartitionIndex,
    pub records: Bytes,
}

/// A topic as a request names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TopicRef {
    Name(Str),
    Id(TopicId),
}

/// Whose transaction batches of a request belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Without it no coordinator can be asked: only an open transaction goes on.
    pub transactional_id: Str,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    /// Partitions join the transaction by being written to, and the epoch rises with each transaction (KIP-890).
    pub bumps: bool,
}

/// One partition's records.
#[derive(Debug, Clone)]
pub struct Part {
    pub slot: Slot,
    pub topic: Arc<Topic>,
    pub partition: PartitionIndex,
    /// A slice of the request's frame.
    pub records: Bytes,
    pub is_transactional: bool,
    /// See [`is_repeatable`].
    pub is_repeatable: bool,
}

/// What became of one partition's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Appended {
        base: Offset,
        /// Under LogAppendTime.
        append_time: Option<TimestampMs>,
        log_start: Offset,
    },
    /// By the leader, to whom it was handed on. The answer names that one, though nothing is wrong (KIP-951 names it
    /// with errors alone): librdkafka goes there from then on; others do not look.
    AppendedElsewhere { base: Offset, append_time: Option<TimestampMs>, log_start: Offset },
    Refused {
        refusal: Refusal,
        /// [`Offset::NONE`] where it is not known.
        log_start: Offset,
    },
}

impl Outcome {
    /// Refused with nothing to say but the code.
    pub fn refused(code: ErrorCode) -> Self {
        let refusal = Refusal { code, message: String::new(), record_errors: Vec::new() };
        Self::Refused { refusal, log_start: Offset::NONE }
    }
}

/// What goes back to the producer.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Respond(ProduceResponse),
    /// `acks=0` and all went well.
    Nothing,
    /// `acks=0` and something did not: closing is the only way to say so.
    Close,
}

/// Where a request's batches go. As in [`Work`].
#[derive(Debug, Default)]
struct Split {
    parts: Vec<Part>,
    elsewhere: Vec<Part>,
    unknown: Vec<Unknown>,
}

/// The answer as far as it is known.
#[derive(Debug, Clone)]
pub struct Pending {
    acks: Acks,
    version: i16,
    topics: Vec<TopicProduceResponse>,
    endpoints: Vec<NodeEndpoint>,
    failed: bool,
}

/// Splits a request by partition, after the checks that need no partition.
pub fn plan(request: ProduceRequest, version: i16, ctx: &Context<'_>) -> Plan<Work, Reply> {
    let acks = match request.acks {
        0 => Some(Acks::None),
        1 => Some(Acks::Leader),
        -1 => Some(Acks::All),
        _ => None,
    };
    let mut pending = Pending {
        acks: acks.unwrap_or(Acks::Leader),
        version,
        topics: request.topic_data.iter().map(|topic| skeleton(topic, version)).collect(),
        endpoints: Vec::new(),
        failed: false,
    };
    let transaction = match transaction(&request, version, ctx) {
        Ok(transaction) => transaction,
        Err(code) => {
            pending.refuse_all(code);
            return Plan::Answer(pending.respond());
        }
    };
    let count = request.topic_data.iter().map(|topic| topic.partition_data.len()).sum();
    let mut split = Split { parts: Vec::with_capacity(count), ..Split::default() };
    for (at, topic) in request.topic_data.into_iter().enumerate() {
        pending.split_topic(at, topic, acks.is_some(), ctx, &mut split);
    }
    let Split { parts, elsewhere, unknown } = split;
    if parts.is_empty() && elsewhere.is_empty() && unknown.is_empty() {
        return Plan::Answer(pending.respond());
    }
    let timeout = DurationMs(i64::from(request.timeout_ms.max(0)));
    Plan::Work(Work { acks: pending.acks, timeout, transaction, parts, elsewhere, unknown, pending })
}

/// What a topic demands of the batches in a Produce request of this version. The records of an internal topic are
/// always read: a coordinator could not load what cannot be read.
pub fn rules(name: &str, topic: &TopicConfig, version: i16, now: TimestampMs) -> Rules {
    let of = |codec, level: Option<i32>| Some(Compression { codec, level });
    Rules {
        produce_version: version,
        origin: BatchOrigin::Client,
        now,
        timestamp_type: match topic.timestamp_type {
            TopicTime::CreateTime => TimestampType::CreateTime,
            TopicTime::LogAppendTime => TimestampType::LogAppendTime,
        },
        timestamp_before_max: DurationMs(topic.timestamp_before_max_ms),
        timestamp_after_max: DurationMs(topic.timestamp_after_max_ms),
        message_bytes_max: usize::try_from(topic.max_message_bytes).unwrap_or(0),
        record_bytes_max: usize::try_from(topic.max_decompressed_message_bytes).unwrap_or(0),
        segment_bytes: usize::try_from(topic.segment_bytes).unwrap_or(0),
        compression: match topic.compression {
            CompressionType::Producer => None,
            CompressionType::Uncompressed => of(Codec::None, None),
            CompressionType::Gzip => of(Codec::Gzip, (topic.gzip_level >= 0).then_some(topic.gzip_level)),
            CompressionType::Snappy => of(Codec::Snappy, None),
            CompressionType::Lz4 => of(Codec::Lz4, Some(topic.lz4_level)),
            CompressionType::Zstd => of(Codec::Zstd, Some(topic.zstd_level)),
        },
        is_compacted: topic.cleanup_policy.compact,
        validation: match topic.record_validation {
            RecordValidation::Header if is_internal_topic(name) => RecordValidation::Structure,
            validation => validation,
        },
    }
}

/// The transaction that the request's batches belong to: at most one producer's, and under the name that the request
/// gives.
///
/// # Source
/// Kafka `KafkaApis.handleProduceRequest`: who names no transactional id may write to none.
fn transaction(
    request: &ProduceRequest,
    version: i16,
    ctx: &Context<'_>,
) -> Result<Option<Transaction>, ErrorCode> {
    let (mut found, mut is_allowed) = (None, false);
    let partitions = request.topic_data.iter().flat_map(|topic| &topic.partition_data);
    for records in partitions.filter_map(|partition| partition.records.as_deref()) {
        if !is_transactional(records) {
            continue;
        }
        let Some(transactional_id) = &request.transactional_id else {
            return Err(ErrorCode::TransactionalIdAuthorizationFailed);
        };
        is_allowed = is_allowed || ctx.access.transactional_id(Operation::Write, transactional_id);
        if !is_allowed {
            return Err(ErrorCode::TransactionalIdAuthorizationFailed);
        }
        let Some(producer) = in_transaction(records) else { continue };
        if found.get_or_insert((producer, transactional_id)).0 != producer {
            return Err(ErrorCode::InvalidProducerIdMapping);
        }
    }
    Ok(found.map(|((producer_id, producer_epoch), transactional_id)| Transaction {
        transactional_id: transactional_id.clone(),
        producer_id,
        producer_epoch,
        bumps: version >= JOINS_SINCE,
    }))
}

/// Whether the first batch is of an idempotent producer outside a transaction. The partition's leader finds a repeated
/// batch of such a producer by its sequence number and does not write it twice, and no transaction coordinator has to
/// verify it.
///
/// # Source
/// KIP-98; Kafka `ProducerStateEntry.findDuplicateBatch`.
fn is_repeatable(records: &[u8]) -> bool {
    const MAGIC_AT: usize = 16;
    const PRODUCER_AT: usize = 43;
    let id = records.get(PRODUCER_AT..).and_then(|rest| rest.first_chunk());
    records.get(MAGIC_AT) == Some(&2)
        && !is_transactional(records)
        && id.is_some_and(|id| ProducerId(i64::from_be_bytes(*id)).is_some())
}

/// Whether the first batch says so: clients send one batch per partition.
fn is_transactional(records: &[u8]) -> bool {
    const MAGIC_AT: usize = 16;
    const ATTRIBUTES_LOW_AT: usize = 22;
    const TRANSACTIONAL: u8 = 0x10;
    records.get(MAGIC_AT) == Some(&2)
        && records.get(ATTRIBUTES_LOW_AT).is_some_and(|low| low & TRANSACTIONAL != 0)
}

/// Whose transaction the first batch is part of.
fn in_transaction(records: &[u8]) -> Option<(ProducerId, ProducerEpoch)> {
    const PRODUCER_AT: usize = 43;
    if !is_transactional(records) {
        return None;
    }
    let (id, rest) = records.get(PRODUCER_AT..)?.split_first_chunk()?;
    let producer =
        (ProducerId(i64::from_be_bytes(*id)), ProducerEpoch(i16::from_be_bytes(*rest.first_chunk()?)));
    producer.0.is_some().then_some(producer)
}

/// What a producer is told whose partition's place in its transaction could not be verified.
///
/// What older clients would not try again is told in a word that they do, and that makes them ask for no metadata.
///
/// # Source
/// Kafka 4.4 `ReplicaManager.handleProduceAppend`, `AddPartitionsToTxnManager`.
pub fn unverified(code: ErrorCode, version: i16) -> Outcome {
    let said = |code, message: String| Outcome::Refused {
        refusal: Refusal { code, message, record_errors: Vec::new() },
        log_start: Offset::NONE,
    };
    match crate::transactions::unverified(code, version >= ABORTABLE_SINCE) {
        ErrorCode::InvalidTxnState => {
            said(ErrorCode::InvalidTxnState, "Partition was not added to the transaction".to_owned())
        }
        ErrorCode::ConcurrentTransactions if version >= JOINS_SINCE => {
            Outcome::refused(ErrorCode::ConcurrentTransactions)
        }
        code @ (ErrorCode::ConcurrentTransactions
        | ErrorCode::NetworkException
        | ErrorCode::CoordinatorLoadInProgress
        | ErrorCode::CoordinatorNotAvailable
        | ErrorCode::NotCoordinator) => {
            let message = format!("Unable to verify the partition has been added to the transaction: {code}");
            said(ErrorCode::NotEnoughReplicas, message)
        }
        code => Outcome::refused(code),
    }
}

fn nothing_yet(index: i32) -> PartitionProduceResponse {
    PartitionProduceResponse {
        index,
        base_offset: -1,
        log_append_time_ms: -1,
        log_start_offset: -1,
        ..PartitionProduceResponse::default()
    }
}

fn skeleton(topic: &TopicProduceData, version: i16) -> TopicProduceResponse {
    TopicProduceResponse {
        name: if version <= 12 { topic.name.clone() } else { Str::default() },
        topic_id: if version >= 13 { topic.topic_id } else { TopicId::ZERO },
        partition_responses: topic
            .partition_data
            .iter()
            .map(|partition| nothing_yet(partition.index))
            .collect(),
        ..TopicProduceResponse::default()
    }
}

impl Pending {
    /// Sends the partitions of one topic to their owners, or refuses them.
    fn split_topic(
        &mut self,
        at: usize,
        topic: TopicProduceData,
        acks_are_valid: bool,
        ctx: &Context<'_>,
        split: &mut Split,
    ) {
        let topics = &ctx.image.topics;
        let known =
            if self.version >= 13 { topics.by_id(topic.topic_id) } else { topics.by_name(&topic.name) };
        let name = if self.version >= 13 { known.map(|known| &*known.name) } else { Some(&*topic.name) };
        let is_denied = name.is_some_and(|name| !ctx.access.topic(Operation::Write, name));
        let is_admin = ctx.client.client_id.as_deref() == Some(ADMIN_CLIENT);
        for (place, data) in topic.partition_data.into_iter().enumerate() {
            let slot = Slot::new(at, place);
            let partition = PartitionIndex(data.index);
            if is_denied {
                self.refuse(slot, ErrorCode::TopicAuthorizationFailed);
                continue;
            }
            let here = known.and_then(|known| Some((known, known.partition(partition)?)));
            let Some((known, state)) = here else {
                let is_unknown_id = known.is_none() && self.version >= 13;
                let code = if is_unknown_id {
                    ErrorCode::UnknownTopicId
                } else {
                    ErrorCode::UnknownTopicOrPartition
                };
                self.refuse(slot, code);
                if let Some(records) = data.records.filter(|_| acks_are_valid && self.acks != Acks::None) {
                    let topic = match self.version {
                        13.. => TopicRef::Id(topic.topic_id),
                        _ => TopicRef::Name(topic.name.clone()),
                    };
                    split.unknown.push(Unknown { topic, partition, records });
                }
                continue;
            };
            if !acks_are_valid {
                self.refuse(slot, ErrorCode::InvalidRequiredAcks);
            } else if is_internal_topic(&known.name) && !is_admin {
                self.refuse(slot, ErrorCode::InvalidTopicException);
            } else {
                let records = data.records.unwrap_or_default();
                let is_transactional = in_transaction(&records).is_some();
                let is_repeatable = is_repeatable(&records);
                let topic = Arc::clone(known);
                let part = Part { slot, topic, partition, records, is_transactional, is_repeatable };
                if state.leader == ctx.node || ctx.may_lead_soon(state) {
                    split.parts.push(part);
                    continue;
                }
                let code = ctx.not_leader(state);
                self.set(slot, Outcome::refused(code), ctx);
                if is_repeatable && code == ErrorCode::NotLeaderOrFollower && self.acks != Acks::None {
                    split.elsewhere.push(part);
                }
            }
        }
    }

    fn refuse(&mut self, slot: Slot, code: ErrorCode) {
        self.failed = true;
        self.partition(slot).error_code = code.code();
    }

    fn refuse_all(&mut self, code: ErrorCode) {
        self.failed = true;
        for partition in self.topics.iter_mut().flat_map(|topic| &mut topic.partition_responses) {
            partition.error_code = code.code();
        }
    }

    fn partition(&mut self, slot: Slot) -> &mut PartitionProduceResponse {
        &mut self.topics[slot.topic()].partition_responses[slot.partition()]
    }

    /// Takes over one partition's result, instead of one that was taken over before: a batch that is refused here may
    /// be handed on. With NOT_LEADER_OR_FOLLOWER the answer names the leader of `ctx`'s image.
    pub fn set(&mut self, slot: Slot, outcome: Outcome, ctx: &Context<'_>) {
        let version = self.version;
        let partition = self.partition(slot);
        *partition = nothing_yet(partition.index);
        match outcome {
            Outcome::Appended { base, append_time, log_start } => {
                partition.base_offset = base.get();
                partition.log_append_time_ms = append_time.unwrap_or(TimestampMs::NONE).0;
                partition.log_start_offset = log_start.get();
            }
            Outcome::AppendedElsewhere { base, append_time, log_start } => {
                partition.base_offset = base.get();
                partition.log_append_time_ms = append_time.unwrap_or(TimestampMs::NONE).0;
                partition.log_start_offset = log_start.get();
                if version >= 10 {
                    self.name_leader(slot, ctx);
                }
            }
            Outcome::Refused { refusal, log_start } => {
                partition.error_code = match refusal.code {
                    // Both are tried again.
                    ErrorCode::KafkaStorageError if version <= 3 => ErrorCode::NotLeaderOrFollower.code(),
                    code => code.code(),
                };
                partition.log_start_offset = log_start.get();
                if version >= 8 {
                    partition.record_errors = refusal.record_errors.into_iter().map(record_error).collect();
                    partition.error_message =
                        (!refusal.message.is_empty()).then(|| Str::from(refusal.message));
                }
                self.failed = true;
                if version >= 10 && refusal.code == ErrorCode::NotLeaderOrFollower {
                    self.name_leader(slot, ctx);
                }
            }
        }
    }

    fn name_leader(&mut self, slot: Slot, ctx: &Context<'_>) {
        let topic = &self.topics[slot.topic()];
        let index = PartitionIndex(topic.partition_responses[slot.partition()].index);
        let topics = &ctx.image.topics;
        let known =
            if self.version >= 13 { topics.by_id(topic.topic_id) } else { topics.by_name(&topic.name) };
        let Some(state) = known.and_then(|topic| topic.partition(index)) else { return };
        let leader = ctx.leader_of(state);
        self.partition(slot).current_leader = (&leader).into();
        leader.tell_address(&mut self.endpoints);
    }

    /// The answer, once every part's result is in.
    pub fn respond(self) -> Reply {
        match (self.acks, self.failed) {
            (Acks::None, true) => Reply::Close,
            (Acks::None, false) => Reply::Nothing,
            _ => Reply::Respond(ProduceResponse {
                responses: self.topics,
                node_endpoints: self.endpoints,
                ..ProduceResponse::default()
            }),
        }
    }
}

fn record_error(error: RecordError) -> BatchIndexAndErrorMessage {
    BatchIndexAndErrorMessage {
        batch_index: error.index,
        batch_index_error_message: Some(Str::from(error.message)),
        ..BatchIndexAndErrorMessage::default()
    }
}

#[cfg(test)]
mod tests;
