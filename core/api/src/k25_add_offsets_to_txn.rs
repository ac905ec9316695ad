//! # AddOffsetsToTxn, key 25, versions 0–4
//!
//! Adds a group's offsets to a transaction: the partition of `__consumer_offsets` that the group falls on.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-98) |
//! | 1 | throttling by the client (KIP-219) |
//! | 2 | PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588) |
//! | 3 | flexible (KIP-482) |
//! | 4 | TRANSACTION_ABORTABLE (KIP-890) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleAddOffsetsToTxnRequest`.

use barnabas_base::{ErrorCode, ProducerEpoch, ProducerId, TopicPartition, name};
use barnabas_wire::Str;
use barnabas_wire::messages::add_offsets_to_txn_request::AddOffsetsToTxnRequest;
use barnabas_wire::messages::add_offsets_to_txn_response::AddOffsetsToTxnResponse;

use crate::groups::{ToShard, shard_of};
use crate::transactions::{for_version, to_shard};
use crate::{Context, Plan};

/// For the transaction's shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    pub transactional_id: Str,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub partition: TopicPartition,
}

/// Finds both shards: the transaction's, which is asked, and the group's, whose partition is added.
pub fn plan(
    request: &AddOffsetsToTxnRequest,
    ctx: &Context<'_>,
) -> Plan<ToShard<Work>, AddOffsetsToTxnResponse> {
    let Some(group) = shard_of(&request.group_id, ctx) else {
        return Plan::Answer(refuse(ErrorCode::CoordinatorNotAvailable));
    };
    let work = Work {
        transactional_id: request.transactional_id.clone(),
        producer_id: ProducerId(request.producer_id),
        producer_epoch: ProducerEpoch(request.producer_epoch),
        partition: TopicPartition::new(name::CONSUMER_OFFSETS, group.partition),
    };
    to_shard(&request.transactional_id, work, ctx, refuse)
}

/// The answer, from the shard's.
pub fn respond(mut response: AddOffsetsToTxnResponse, version: i16) -> AddOffsetsToTxnResponse {
    response.error_code = for_version(response.error_code, version, 2);
    response
}

fn refuse(code: ErrorCode) -> AddOffsetsToTxnResponse {
    AddOffsetsToTxnResponse { error_code: code.code(), ..AddOffsetsToTxnResponse::default() }
}

#[cfg(test)]
mod tests;
