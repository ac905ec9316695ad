//! # ShareGroupDescribe, key 77, version 1
//!
//! Shows share groups (KIP-932): epochs, members and what they have.
//!
//! | version | what it added |
//! |---|---|
//! | 1 | the request, as it became final |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleShareGroupDescribe`, `GroupCoordinatorService.shareGroupDescribe`.

use barnabas_base::ErrorCode;
use barnabas_security::Operation;
use barnabas_wire::messages::share_group_describe_request::ShareGroupDescribeRequest;
use barnabas_wire::messages::share_group_describe_response::{DescribedGroup, ShareGroupDescribeResponse};
use barnabas_wire::{Message, Str};

use crate::described_groups::Described;
use crate::groups::{ToShard, shard_of_named_if};
use crate::{Access, AnswerRoom, Context, Plan, k76_share_group_heartbeat};

#[derive(Debug)]
pub struct Work {
    pub parts: Vec<ToShard<ShareGroupDescribeRequest>>,
    pub pending: Pending,
}

/// The answer as far as it is known: groups in the order of the request.
#[derive(Debug)]
pub struct Pending {
    groups: Described<DescribedGroup>,
}

/// Splits a request by shard.
pub fn plan(request: ShareGroupDescribeRequest, ctx: &Context<'_>) -> Plan<Work, ShareGroupDescribeResponse> {
    let is_enabled = k76_share_group_heartbeat::is_enabled(ctx);
    let shard_of = |group: &Str| match is_enabled && !ctx.access.group(Operation::Describe, group) {
        true => Err(ErrorCode::GroupAuthorizationFailed),
        false => shard_of_named_if(is_enabled, group, ctx),
    };
    let (by_shard, groups) =
        Described::split(request.group_ids, request.include_authorized_operations, shard_of);
    let pending = Pending { groups };
    let part = |(shard, group_ids)| ToShard {
        shard,
        request: ShareGroupDescribeRequest { group_ids, ..Default::default() },
    };
    let parts: Vec<_> = by_shard.into_iter().map(part).collect();
    if parts.is_empty() { Plan::Answer(pending.respond()) } else { Plan::Work(Work { parts, pending }) }
}

impl Pending {
    /// Takes over one shard's answer.
    pub fn add(&mut self, response: ShareGroupDescribeResponse, room: &AnswerRoom, access: &Access<'_>) {
        self.groups.add(response.groups, ShareGroupDescribeResponse::VERSIONS.max, room, access);
    }

    /// The answer, once every shard's is in.
    pub fn respond(self) -> ShareGroupDescribeResponse {
        ShareGroupDescribeResponse { groups: self.groups.into_groups(), ..Default::default() }
    }
}

#[cfg(test)]
mod tests;
