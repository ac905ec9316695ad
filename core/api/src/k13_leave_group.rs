//! # LeaveGroup, key 13, versions 0–5
//!
//! Takes members out of a group.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//! | 1 | throttle time in the answer |
//! | 2 | throttling by the client (KIP-219) |
//! | 3 | several members, static ones by their instance id (KIP-345) |
//! | 4 | flexible (KIP-482) |
//! | 5 | a reason for leaving (KIP-800) |
//!
//! ## Left out
//! - Nothing: what becomes of it is decided in barnabas_coordinator.
//!
//! Source: Kafka 4.4 `KafkaApis.handleLeaveGroupRequest`, `LeaveGroupResponse`.

use barnabas_wire::messages::{LeaveGroupRequest, LeaveGroupResponse};

use crate::groups::{ToShard, shard_here};
use crate::{Context, Plan};

/// Sends the request to the group's shard.
pub fn plan(
    request: LeaveGroupRequest,
    ctx: &Context<'_>,
) -> Plan<ToShard<LeaveGroupRequest>, LeaveGroupResponse> {
    match shard_here(&request.group_id, ctx) {
        Ok(shard) => Plan::Work(ToShard { shard, request }),
        Err(code) => {
            Plan::Answer(LeaveGroupResponse { error_code: code.code(), ..LeaveGroupResponse::default() })
        }
    }
}

/// The shard's answer in the words of the version: before version 3 there is one member, and its error is the answer's.
pub fn respond(mut response: LeaveGroupResponse, version: i16) -> LeaveGroupResponse {
    if version < 3 {
        let members = std::mem::take(&mut response.members);
        if let (0, Some(member)) = (response.error_code, members.first()) {
            response.error_code = member.error_code;
        }
    }
    response
}

#[cfg(test)]
mod tests;
