//! # StreamsGroupDescribe, key 89, versions 0–1
//!
//! Shows streams groups (KIP-1071): epochs, topology, members, the tasks that they have and are to have.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//! | 1 | the assignor; a description of the topology, if it is asked for (KIP-1331) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleStreamsGroupDescribe`, `GroupCoordinatorService.streamsGroupDescribe`.

use barnabas_base::ErrorCode;
use barnabas_security::Operation;
use barnabas_wire::messages::streams_group_describe_request::StreamsGroupDescribeRequest;
use barnabas_wire::messages::streams_group_describe_response::{
    DescribedGroup, StreamsGroupDescribeResponse,
};
use barnabas_wire::{Message, Str};

use crate::described_groups::Described;
use crate::groups::{ToShard, shard_of_named_if};
use crate::{Access, AnswerRoom, Context, Plan, k88_streams_group_heartbeat};

#[derive(Debug)]
pub struct Work {
    pub parts: Vec<ToShard<StreamsGroupDescribeRequest>>,
    pub pending: Pending,
}

/// The answer as far as it is known: groups in the order of the request.
#[derive(Debug)]
pub struct Pending {
    groups: Described<DescribedGroup>,
}

/// Splits a request by shard.
pub fn plan(
    request: StreamsGroupDescribeRequest,
    ctx: &Context<'_>,
) -> Plan<Work, StreamsGroupDescribeResponse> {
    let is_enabled = k88_streams_group_heartbeat::is_enabled(ctx);
    let shard_of = |group: &Str| match is_enabled && !ctx.access.group(Operation::Describe, group) {
        true => Err(ErrorCode::GroupAuthorizationFailed),
        false => shard_of_named_if(is_enabled, group, ctx),
    };
    let include_topology_description = request.include_topology_description;
    let (by_shard, groups) =
        Described::split(request.group_ids, request.include_authorized_operations, shard_of);
    let pending = Pending { groups };
    let part = |(shard, group_ids)| ToShard {
        shard,
        request: StreamsGroupDescribeRequest {
            group_ids,
            include_topology_description,
            ..Default::default()
        },
    };
    let parts: Vec<_> = by_shard.into_iter().map(part).collect();
    if parts.is_empty() { Plan::Answer(pending.respond()) } else { Plan::Work(Work { parts, pending }) }
}

impl Pending {
    /// Takes over one shard's answer.
    pub fn add(&mut self, response: StreamsGroupDescribeResponse, room: &AnswerRoom, access: &Access<'_>) {
        self.groups.add(response.groups, StreamsGroupDescribeResponse::VERSIONS.max, room, access);
    }

    /// The answer, once every shard's is in.
    pub fn respond(self) -> StreamsGroupDescribeResponse {
        StreamsGroupDescribeResponse { groups: self.groups.into_groups(), ..Default::default() }
    }
}

#[cfg(test)]
mod tests;
