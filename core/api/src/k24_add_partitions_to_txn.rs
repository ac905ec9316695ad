//! # AddPartitionsToTxn, key 24, versions 0–5
//!
//! Adds partitions to a transaction. Clients send it up to version 3; from version 4 on it goes between brokers, for
//! many transactions at once, and may only ask whether the partitions are in them.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-98) |
//! | 1 | throttling by the client (KIP-219) |
//! | 2 | PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588) |
//! | 3 | flexible (KIP-482) |
//! | 4 | many transactions, verification, only between brokers (KIP-890) |
//! | 5 | TRANSACTION_ABORTABLE; the client behind it follows `transaction.version` 2 (KIP-890) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleAddPartitionsToTxnRequest`.

use barnabas_base::{
    ErrorCode, PartitionIndex, ProducerEpoch, ProducerId, TopicPartition, is_internal_topic,
};
use barnabas_security::Operation;
use barnabas_wire::Str;
use barnabas_wire::messages::add_partitions_to_txn_request::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction,
};
use barnabas_wire::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResponse, AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
};

use crate::groups::ToShard;
use crate::transactions::{for_version, shard_here};
use crate::{Context, Plan};

/// From this version on it comes from brokers.
pub const BROKERS_SINCE: i16 = 4;

/// The oldest version in which a broker may say that partitions join a transaction of `transaction.version` 2.
pub const JOINS_SINCE: i16 = 5;

#[derive(Debug)]
pub struct Work {
    pub parts: Vec<ToShard<Part>>,
    pub pending: Pending,
}

/// One transaction for its shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Handed back with the result.
    pub place: usize,
    pub transactional_id: Str,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub verify_only: bool,
    pub partitions: Vec<TopicPartition>,
}

/// The answer as far as it is known: transactions in the order of the request.
#[derive(Debug)]
pub struct Pending {
    version: i16,
    results: Vec<AddPartitionsToTxnResult>,
}

/// Splits a request by shard. A transaction of which one partition cannot be added is not asked about at all.
pub fn plan(
    request: AddPartitionsToTxnRequest,
    version: i16,
    ctx: &Context<'_>,
) -> Plan<Work, AddPartitionsToTxnResponse> {
    if version >= BROKERS_SINCE && !ctx.access.cluster(Operation::ClusterAction) {
        return Plan::Answer(AddPartitionsToTxnResponse {
            error_code: ErrorCode::ClusterAuthorizationFailed.code(),
            ..AddPartitionsToTxnResponse::default()
        });
    }
    let mut pending = Pending { version, results: Vec::new() };
    let mut parts = Vec::new();
    for transaction in transactions(request, version) {
        let id = &transaction.transactional_id;
        if version < BROKERS_SINCE && !ctx.access.transactional_id(Operation::Write, id) {
            let code = ErrorCode::TransactionalIdAuthorizationFailed;
            pending.results.push(result(&transaction, |_, _| code));
            continue;
        }
        let refusals = refusals(&transaction.topics, version, ctx);
        let shard = shard_here(&transaction.transactional_id, ctx);
        let place = pending.results.len();
        pending.results.push(match (&refusals, shard) {
            (Some(refusals), _) => result(&transaction, |topic, index| refusals(topic, index)),
            (None, shard) => result(&transaction, |_, _| shard.err().unwrap_or_default()),
        });
        if let (None, Ok(shard)) = (refusals, shard) {
            parts.push(ToShard { shard, request: part(place, transaction) });
        }
    }
    if parts.is_empty() { Plan::Answer(pending.respond()) } else { Plan::Work(Work { parts, pending }) }
}

impl Pending {
    /// Takes over one transaction's result, by its part's place.
    pub fn add(&mut self, place: usize, result: AddPartitionsToTxnResult) {
        if let Some(known) = self.results.get_mut(place) {
            *known = result;
        }
    }

    /// The answer, once every part's result is in.
    pub fn respond(mut self) -> AddPartitionsToTxnResponse {
        let topics = self.results.iter_mut().flat_map(|result| &mut result.topic_results);
        for partition in topics.flat_map(|topic| &mut topic.results_by_partition) {
            partition.partition_error_code = for_version(partition.partition_error_code, self.version, 2);
        }
        let mut response = AddPartitionsToTxnResponse::default();
        if self.version >= BROKERS_SINCE {
            response.results_by_transaction = self.results;
        } else {
            let results = self.results.into_iter().flat_map(|result| result.topic_results);
            response.results_by_topic_v3_and_below = results.collect();
        }
        response
    }
}

/// A client's request is one of one transaction.
fn transactions(request: AddPartitionsToTxnRequest, version: i16) -> Vec<AddPartitionsToTxnTransaction> {
    if version >= BROKERS_SINCE {
        return request.transactions;
    }
    vec![AddPartitionsToTxnTransaction {
        transactional_id: request.v3_and_below_transactional_id,
        producer_id: request.v3_and_below_producer_id,
        producer_epoch: request.v3_and_below_producer_epoch,
        topics: request.v3_and_below_topics,
        ..AddPartitionsToTxnTransaction::default()
    }]
}

/// Why the transaction is not asked about, partition by partition; `None` if nothing is in the way.
fn refusals<'a>(
    topics: &[AddPartitionsToTxnTopic],
    version: i16,
    ctx: &'a Context<'_>,
) -> Option<impl Fn(&str, i32) -> ErrorCode + use<'a>> {
    let refusal = move |topic: &str, index: i32| {
        let known = ctx.image.topics.by_name(topic);
        // Only those versions come from clients.
        let is_denied = || is_internal_topic(topic) || !ctx.access.topic(Operation::Write, topic);
        if version < BROKERS_SINCE && is_denied() {
            ErrorCode::TopicAuthorizationFailed
        } else if known.is_none_or(|known| known.partition(PartitionIndex(index)).is_none()) {
            ErrorCode::UnknownTopicOrPartition
        } else {
            ErrorCode::OperationNotAttempted
        }
    };
    let is_refused = |topic: &AddPartitionsToTxnTopic| {
        topic.partitions.iter().any(|index| refusal(&topic.name, *index) != ErrorCode::OperationNotAttempted)
    };
    topics.iter().any(is_refused).then_some(refusal)
}

/// What a partition's leader asks of another broker's coordinator. The answer tells transactions apart by their ids
/// alone: no two of `parts` have the same.
pub fn request<'a>(parts: impl IntoIterator<Item = &'a Part>) -> AddPartitionsToTxnRequest {
    let transaction = |part: &Part| AddPartitionsToTxnTransaction {
        transactional_id: part.transactional_id.clone(),
        producer_id: part.producer_id.get(),
        producer_epoch: part.producer_epoch.get(),
        verify_only: part.verify_only,
        topics: topics(&part.partitions),
        ..AddPartitionsToTxnTransaction::default()
    };
    AddPartitionsToTxnRequest {
        transactions: parts.into_iter().map(transaction).collect(),
        ..AddPartitionsToTxnRequest::default()
    }
}

fn topics(partitions: &[TopicPartition]) -> Vec<AddPartitionsToTxnTopic> {
    let mut topics: Vec<AddPartitionsToTxnTopic> = Vec::new();
    for partition in partitions {
        let index = partition.partition.get();
        match topics.last_mut() {
            Some(last) if *last.name == *partition.topic => last.partitions.push(index),
            _ => topics.push(AddPartitionsToTxnTopic {
                name: Str::from(&partition.topic),
                partitions: vec![index],
                ..AddPartitionsToTxnTopic::default()
            }),
        }
    }
    topics
}

/// What another broker's coordinator said of each transaction.
///
/// # Errors
/// What it says of all of them.
///
/// # Source
/// Kafka 4.4 `AddPartitionsToTxnManager.AddPartitionsToTxnHandler.onComplete`.
pub fn results(response: AddPartitionsToTxnResponse) -> Result<Vec<AddPartitionsToTxnResult>, ErrorCode> {
    match ErrorCode::from_code(response.error_code) {
        ErrorCode::None => Ok(response.results_by_transaction),
        // Clients do not expect a broker that is not allowed to speak to another.
        ErrorCode::ClusterAuthorizationFailed => Err(ErrorCode::InvalidTxnState),
        other => Err(other),
    }
}

fn part(place: usize, transaction: AddPartitionsToTxnTransaction) -> Part {
    let partitions = transaction.topics.iter().flat_map(|topic| {
        let name = topic.name.text();
        topic.partitions.iter().map(move |index| TopicPartition::new(name.clone(), PartitionIndex(*index)))
    });
    Part {
        place,
        partitions: partitions.collect(),
        transactional_id: transaction.transactional_id,
        producer_id: ProducerId(transaction.producer_id),
        producer_epoch: ProducerEpoch(transaction.producer_epoch),
        verify_only: transaction.verify_only,
    }
}

fn result(
    transaction: &AddPartitionsToTxnTransaction,
    of: impl Fn(&str, i32) -> ErrorCode,
) -> AddPartitionsToTxnResult {
    let topics = transaction.topics.iter().map(|topic| {
        let partition = |index: &i32| AddPartitionsToTxnPartitionResult {
            partition_index: *index,
            partition_error_code: of(&topic.name, *index).code(),
            ..AddPartitionsToTxnPartitionResult::default()
        };
        AddPartitionsToTxnTopicResult {
            name: topic.name.clone(),
            results_by_partition: topic.partitions.iter().map(partition).collect(),
            ..AddPartitionsToTxnTopicResult::default()
        }
    });
    AddPartitionsToTxnResult {
        transactional_id: transaction.transactional_id.clone(),
        topic_results: topics.collect(),
        ..AddPartitionsToTxnResult::default()
    }
}

#[cfg(test)]
mod tests;
