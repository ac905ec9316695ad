//! # AllocateProducerIds, key 67, version 0
//!
//! Gives a broker a block of producer ids that no other broker has. On the controllers' listener only.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-730) |
//!
//! ## Left out
//! - Nothing.
//!
//! What is decided: core/quorum's `controller/producer_ids.rs`.
//!
//! Source: Kafka 4.4 `ControllerApis.handleAllocateProducerIdsRequest`.

use barnabas_base::ErrorCode;
use barnabas_wire::messages::AllocateProducerIdsResponse;

/// The answer of a controller that decides nothing.
pub fn refuse(code: ErrorCode) -> AllocateProducerIdsResponse {
    AllocateProducerIdsResponse { error_code: code.code(), ..AllocateProducerIdsResponse::default() }
}
