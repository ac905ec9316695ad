//! # EndTxn, key 26, versions 0–5
//!
//! Commits or aborts a transaction.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-98) |
//! | 1 | throttling by the client (KIP-219) |
//! | 2 | PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588) |
//! | 3 | flexible (KIP-482) |
//! | 4 | TRANSACTION_ABORTABLE (KIP-890) |
//! | 5 | the producer id and epoch of the next transaction (KIP-890) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleEndTxnRequest`.

use barnabas_base::ErrorCode;
use barnabas_wire::messages::end_txn_request::EndTxnRequest;
use barnabas_wire::messages::end_txn_response::EndTxnResponse;

use crate::groups::ToShard;
use crate::transactions::{for_version, to_shard};
use crate::{Context, Plan};

/// Finds the transaction's shard.
pub fn plan(request: EndTxnRequest, ctx: &Context<'_>) -> Plan<ToShard<EndTxnRequest>, EndTxnResponse> {
    let id = request.transactional_id.clone();
    to_shard(&id, request, ctx, refuse)
}

/// The answer, from the shard's.
pub fn respond(mut response: EndTxnResponse, version: i16) -> EndTxnResponse {
    response.error_code = for_version(response.error_code, version, 2);
    response
}

fn refuse(code: ErrorCode) -> EndTxnResponse {
    EndTxnResponse { error_code: code.code(), ..EndTxnResponse::default() }
}

#[cfg(test)]
mod tests;
