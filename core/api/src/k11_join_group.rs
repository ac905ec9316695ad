//! # JoinGroup, key 11, versions 0–9
//!
//! Makes a client a member of a group. The answer comes when the group has gathered: it may be long.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//! | 1 | rebalance timeout (KIP-62) |
//! | 2 | throttle time in the answer |
//! | 3 | throttling by the client (KIP-219) |
//! | 4 | a new member is given its id first, by MEMBER_ID_REQUIRED (KIP-394) |
//! | 5 | static members (KIP-345) |
//! | 6 | flexible (KIP-482) |
//! | 7 | protocol type in the answer (KIP-559) |
//! | 8 | a reason for joining (KIP-800) |
//! | 9 | the leader may be told to skip the assignment (KIP-814) |
//!
//! ## Left out
//! - Nothing: what becomes of it is decided in barnabas_coordinator.
//!
//! Source: Kafka 4.4 `KafkaApis.handleJoinGroupRequest`, `JoinGroupResponse`.

use barnabas_wire::messages::{JoinGroupRequest, JoinGroupResponse};

use crate::groups::{ToShard, shard_here};
use crate::{Context, Plan};

/// Sends the request to the group's shard.
pub fn plan(
    request: JoinGroupRequest,
    version: i16,
    ctx: &Context<'_>,
) -> Plan<ToShard<JoinGroupRequest>, JoinGroupResponse> {
    match shard_here(&request.group_id, ctx) {
        Ok(shard) => Plan::Work(ToShard { shard, request }),
        Err(code) => {
            let refused = JoinGroupResponse {
                error_code: code.code(),
                generation_id: -1,
                member_id: request.member_id.clone(),
                ..JoinGroupResponse::default()
            };
            Plan::Answer(respond(refused, version))
        }
    }
}

/// The shard's answer in the words of the version: no protocol is an empty name before version 7, and none from then
/// on.
pub fn respond(mut response: JoinGroupResponse, version: i16) -> JoinGroupResponse {
    let name = response.protocol_name.take().filter(|name| !name.is_empty());
    response.protocol_name = if version >= 7 { name } else { Some(name.unwrap_or_default()) };
    response
}

#[cfg(test)]
mod tests;
