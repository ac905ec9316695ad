//! # SyncGroup, key 14, versions 0–5
//!
//! Hands the leader's assignment to the group, and to each member its part of it.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//! | 1 | throttle time in the answer |
//! | 2 | throttling by the client (KIP-219) |
//! | 3 | static members (KIP-345) |
//! | 4 | flexible (KIP-482) |
//! | 5 | protocol type and name, both ways (KIP-559) |
//!
//! ## Left out
//! - Nothing: what becomes of it is decided in barnabas_coordinator.
//!
//! Source: Kafka 4.4 `KafkaApis.handleSyncGroupRequest`.

use barnabas_base::ErrorCode;
use barnabas_wire::messages::{SyncGroupRequest, SyncGroupResponse};

use crate::groups::{ToShard, shard_here};
use crate::{Context, Plan};

/// Sends the request to the group's shard.
pub fn plan(
    request: SyncGroupRequest,
    version: i16,
    ctx: &Context<'_>,
) -> Plan<ToShard<SyncGroupRequest>, SyncGroupResponse> {
    let refuse =
        |code: ErrorCode| SyncGroupResponse { error_code: code.code(), ..SyncGroupResponse::default() };
    if version >= 5 && (request.protocol_type.is_none() || request.protocol_name.is_none()) {
        return Plan::Answer(refuse(ErrorCode::InconsistentGroupProtocol));
    }
    match shard_here(&request.group_id, ctx) {
        Ok(shard) => Plan::Work(ToShard { shard, request }),
        Err(code) => Plan::Answer(refuse(code)),
    }
}

#[cfg(test)]
mod tests;
