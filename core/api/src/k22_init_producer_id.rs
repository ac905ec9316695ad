//! # InitProducerId, key 22, versions 0–5
//!
//! Gives a producer the id and epoch under which its batches are recognised when it sends them again. The Java producer
//! asks for one before its first batch.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-98) |
//! | 1 | throttling by the client (KIP-219) |
//! | 2 | flexible (KIP-482) |
//! | 3 | the id and epoch that the producer has already (KIP-360) |
//! | 4 | PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588) |
//! | 5 | TRANSACTION_ABORTABLE (KIP-890) |
//!
//! ## Left out
//! - Two-phase commit (version 6, KIP-939), which Kafka does not offer by default either.
//!
//! Source: Kafka 4.4 `KafkaApis.handleInitProducerIdRequest`, `TransactionCoordinator.handleInitProducerId`.

use barnabas_base::{ErrorCode, ProducerEpoch, ProducerId};
use barnabas_security::{Operation, ResourceType};
use barnabas_wire::messages::init_producer_id_request::InitProducerIdRequest;
use barnabas_wire::messages::init_producer_id_response::InitProducerIdResponse;

use crate::groups::ToShard;
use crate::transactions::{for_version, to_shard};
use crate::{Context, Plan};

/// Who gives the id and the epoch.
#[derive(Debug, PartialEq)]
pub enum Work {
    /// Allocate a new producer id, with epoch 0.
    Fresh,
    /// The shard of the transactional id knows.
    Transactional(ToShard<InitProducerIdRequest>),
}

/// Answers, or says who does.
pub fn plan(request: InitProducerIdRequest, ctx: &Context<'_>) -> Plan<Work, InitProducerIdResponse> {
    if let Some(code) = denied(&request, ctx) {
        return Plan::Answer(refuse(code));
    }
    let has_id = ProducerId(request.producer_id) != ProducerId::NONE;
    let has_epoch = ProducerEpoch(request.producer_epoch) != ProducerEpoch::NONE;
    if has_id != has_epoch {
        return Plan::Answer(refuse(ErrorCode::InvalidRequest));
    }
    let Some(id) = request.transactional_id.clone() else {
        // Without a transactional id the producer's old id and epoch mean nothing: it always gets a new one.
        return Plan::Work(Work::Fresh);
    };
    match to_shard(&id, request, ctx, refuse) {
        Plan::Answer(response) => Plan::Answer(response),
        Plan::Work(asked) => Plan::Work(Work::Transactional(asked)),
    }
}

/// Why the client gets no id. Without a transactional id it needs WRITE on any topic (KIP-679), or the older
/// IDEMPOTENT_WRITE on the cluster.
fn denied(request: &InitProducerIdRequest, ctx: &Context<'_>) -> Option<ErrorCode> {
    let Some(id) = &request.transactional_id else {
        let is_allowed = ctx.access.any(Operation::Write, ResourceType::Topic)
            || ctx.access.cluster(Operation::IdempotentWrite);
        return (!is_allowed).then_some(ErrorCode::ClusterAuthorizationFailed);
    };
    let may = |operation| ctx.access.transactional_id(operation, id);
    let is_allowed = may(Operation::Write) && (!request.enable2_pc || may(Operation::TwoPhaseCommit));
    (!is_allowed).then_some(ErrorCode::TransactionalIdAuthorizationFailed)
}

/// The answer, from the shard's.
pub fn respond_transactional(mut response: InitProducerIdResponse, version: i16) -> InitProducerIdResponse {
    response.error_code = for_version(response.error_code, version, 4);
    response
}

/// The answer, once there is an id or it is clear that there is none.
pub fn respond(outcome: Result<ProducerId, ErrorCode>) -> InitProducerIdResponse {
    match outcome {
        Ok(id) => InitProducerIdResponse {
            producer_id: id.get(),
            producer_epoch: 0,
            ..InitProducerIdResponse::default()
        },
        Err(code) => refuse(code),
    }
}

fn refuse(code: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse {
        error_code: code.code(),
        producer_id: ProducerId::NONE.get(),
        producer_epoch: ProducerEpoch::NONE.get(),
        ..InitProducerIdResponse::default()
    }
}

#[cfg(test)]
mod tests;
