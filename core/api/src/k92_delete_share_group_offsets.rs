//! # DeleteShareGroupOffsets, key 92, version 0
//!
//! Forgets how far a share group that has no members has come with topics.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-932) |
//!
//! ## Left out
//! - Authorization: everybody may read every group and topic.
//!
//! Source: Kafka 4.4 `KafkaApis.handleDeleteShareGroupOffsetsRequest`.

use barnabas_wire::messages::{DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse};

use crate::groups::{ToShard, shard_of_named_if};
use crate::{Context, Plan, k76_share_group_heartbeat};

/// Sends the request to the group's shard.
pub fn plan(
    request: DeleteShareGroupOffsetsRequest,
    ctx: &Context<'_>,
) -> Plan<ToShard<DeleteShareGroupOffsetsRequest>, DeleteShareGroupOffsetsResponse> {
    match shard_of_named_if(k76_share_group_heartbeat::is_enabled(ctx), &request.group_id, ctx) {
        Ok(shard) => Plan::Work(ToShard { shard, request }),
        Err(code) => {
            Plan::Answer(DeleteShareGroupOffsetsResponse { error_code: code.code(), ..Default::default() })
        }
    }
}

#[cfg(test)]
mod tests;
