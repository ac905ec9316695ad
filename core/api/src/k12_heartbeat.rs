//! # Heartbeat, key 12, versions 0–4
//!
//! Keeps a member's session alive. REBALANCE_IN_PROGRESS tells the member to rejoin.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//! | 1 | throttle time in the answer |
//! | 2 | throttling by the client (KIP-219) |
//! | 3 | static members (KIP-345) |
//! | 4 | flexible (KIP-482) |
//!
//! ## Left out
//! - Nothing: what becomes of it is decided in barnabas_coordinator.
//!
//! Source: Kafka 4.4 `KafkaApis.handleHeartbeatRequest`.

use barnabas_wire::messages::{HeartbeatRequest, HeartbeatResponse};

use crate::groups::{ToShard, shard_here};
use crate::{Context, Plan};

/// Sends the request to the group's shard.
pub fn plan(
    request: HeartbeatRequest,
    ctx: &Context<'_>,
) -> Plan<ToShard<HeartbeatRequest>, HeartbeatResponse> {
    match shard_here(&request.group_id, ctx) {
        Ok(shard) => Plan::Work(ToShard { shard, request }),
        Err(code) => {
            Plan::Answer(HeartbeatResponse { error_code: code.code(), ..HeartbeatResponse::default() })
        }
    }
}

#[cfg(test)]
mod tests;
