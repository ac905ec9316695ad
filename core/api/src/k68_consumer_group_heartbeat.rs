//! # ConsumerGroupHeartbeat, key 68, versions 0–1
//!
//! Joins, keeps alive and leaves a consumer group whose coordinator assigns (KIP-848).
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//! | 1 | subscription by a regular expression; the member chooses its own id (KIP-1082) |
//!
//! ## Left out
//! - Nothing. Expressions match only topics that the client may describe whose heartbeat has them resolved.
//!
//! Source: Kafka 4.4 `KafkaApis.handleConsumerGroupHeartbeat`.

use barnabas_metadata::features::name;
use barnabas_wire::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};

use crate::groups::{ToShard, denied, shard_here_if};
use crate::{Context, Plan};

/// Whether this broker looks after consumer groups at all: the cluster has agreed on them, and its setting allows it.
///
/// # Source
/// Kafka 4.4 `KafkaApis.isConsumerGroupProtocolEnabled`.
pub fn is_enabled(ctx: &Context<'_>) -> bool {
    let protocols = ctx.config.list("group.coordinator.rebalance.protocols");
    ctx.image.features.level(name::GROUP) >= 1
        && protocols.iter().any(|protocol| protocol.eq_ignore_ascii_case("consumer"))
}

/// Sends the request to the group's shard.
pub fn plan(
    request: ConsumerGroupHeartbeatRequest,
    ctx: &Context<'_>,
) -> Plan<ToShard<ConsumerGroupHeartbeatRequest>, ConsumerGroupHeartbeatResponse> {
    let topics = request.subscribed_topic_names.iter().flatten();
    let denied = denied(&request.group_id, topics, ctx).filter(|_| is_enabled(ctx));
    let shard = match denied {
        Some(code) => Err(code),
        None => shard_here_if(is_enabled(ctx), &request.group_id, ctx),
    };
    match shard {
        Ok(shard) => Plan::Work(ToShard { shard, request }),
        Err(code) => Plan::Answer(ConsumerGroupHeartbeatResponse {
            error_code: code.code(),
            ..ConsumerGroupHeartbeatResponse::default()
        }),
    }
}

#[cfg(test)]
mod tests;
