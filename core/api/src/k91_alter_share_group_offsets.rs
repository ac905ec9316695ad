//! # AlterShareGroupOffsets, key 91, version 0
//!
//! Moves the start of share-partitions of a group that has no members; the group is founded if there is none.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-932) |
//!
//! ## Left out
//! - Authorization: everybody may read every group and topic.
//!
//! Source: Kafka 4.4 `KafkaApis.handleAlterShareGroupOffsetsRequest`.

use barnabas_wire::messages::{AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse};

use crate::groups::{ToShard, shard_of_named_if};
use crate::{Context, Plan, k76_share_group_heartbeat};

/// Sends the request to the group's shard.
pub fn plan(
    request: AlterShareGroupOffsetsRequest,
    ctx: &Context<'_>,
) -> Plan<ToShard<AlterShareGroupOffsetsRequest>, AlterShareGroupOffsetsResponse> {
    match shard_of_named_if(k76_share_group_heartbeat::is_enabled(ctx), &request.group_id, ctx) {
        Ok(shard) => Plan::Work(ToShard { shard, request }),
        Err(code) => {
            Plan::Answer(AlterShareGroupOffsetsResponse { error_code: code.code(), ..Default::default() })
        }
    }
}

#[cfg(test)]
mod tests;
