//! # ShareGroupHeartbeat, key 76, version 1
//!
//! Joins, keeps alive and leaves a share group (KIP-932).
//!
//! | version | what it added |
//! |---|---|
//! | 1 | the request, as it became final |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleShareGroupHeartbeat`.

use barnabas_base::ErrorCode;
use barnabas_metadata::features::name;
use barnabas_wire::Str;
use barnabas_wire::messages::{ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse};

use crate::groups::{ToShard, denied, shard_here};
use crate::{Context, Plan};

/// The longest id that a member may choose, in UTF-16 units: that of a UUID in hexadecimal digits.
const MEMBER_ID_MAX: usize = 36;

/// Whether the cluster has agreed on share groups.
///
/// # Source
/// Kafka 4.4 `KafkaApis.isShareGroupProtocolEnabled`.
pub fn is_enabled(ctx: &Context<'_>) -> bool {
    ctx.image.features.level(name::SHARE) >= 1
}

/// Sends the request to the group's shard.
pub fn plan(
    request: ShareGroupHeartbeatRequest,
    ctx: &Context<'_>,
) -> Plan<ToShard<ShareGroupHeartbeatRequest>, ShareGroupHeartbeatResponse> {
    let refuse = |code: ErrorCode, why: Option<&'static str>| {
        Plan::Answer(ShareGroupHeartbeatResponse {
            error_code: code.code(),
            error_message: why.map(Str::from_static),
            ..ShareGroupHeartbeatResponse::default()
        })
    };
    if !is_enabled(ctx) {
        return refuse(ErrorCode::UnsupportedVersion, None);
    }
    let topics = request.subscribed_topic_names.iter().flatten();
    if let Some(code) = denied(&request.group_id, topics, ctx) {
        return refuse(code, None);
    }
    if request.member_id.is_empty() || request.member_id.encode_utf16().count() > MEMBER_ID_MAX {
        return refuse(ErrorCode::InvalidRequest, Some("The member id is empty or too long."));
    }
    match shard_here(&request.group_id, ctx) {
        Ok(shard) => Plan::Work(ToShard { shard, request }),
        Err(code) => refuse(code, None),
    }
}

#[cfg(test)]
mod tests;
