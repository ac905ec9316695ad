//! # ConsumerGroupDescribe, key 69, versions 0–1
//!
//! Shows consumer groups (KIP-848): epochs, members, what they have and what they are to have.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//! | 1 | which protocol each member speaks (KIP-1099) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleConsumerGroupDescribe`, `GroupCoordinatorService.consumerGroupDescribe`.

use barnabas_base::ErrorCode;
use barnabas_security::Operation;
use barnabas_wire::messages::consumer_group_describe_request::ConsumerGroupDescribeRequest;
use barnabas_wire::messages::consumer_group_describe_response::{
    ConsumerGroupDescribeResponse, DescribedGroup,
};
use barnabas_wire::{Message, Str};

use crate::described_groups::Described;
use crate::groups::{ToShard, shard_of_named_if};
use crate::{Access, AnswerRoom, Context, Plan, k68_consumer_group_heartbeat};

#[derive(Debug)]
pub struct Work {
    pub parts: Vec<ToShard<ConsumerGroupDescribeRequest>>,
    pub pending: Pending,
}

/// The answer as far as it is known: groups in the order of the request.
#[derive(Debug)]
pub struct Pending {
    groups: Described<DescribedGroup>,
}

/// Splits a request by shard.
pub fn plan(
    request: ConsumerGroupDescribeRequest,
    ctx: &Context<'_>,
) -> Plan<Work, ConsumerGroupDescribeResponse> {
    let is_enabled = k68_consumer_group_heartbeat::is_enabled(ctx);
    let shard_of = |group: &Str| match is_enabled && !ctx.access.group(Operation::Describe, group) {
        true => Err(ErrorCode::GroupAuthorizationFailed),
        false => shard_of_named_if(is_enabled, group, ctx),
    };
    let (by_shard, groups) =
        Described::split(request.group_ids, request.include_authorized_operations, shard_of);
    let pending = Pending { groups };
    let part = |(shard, group_ids)| ToShard {
        shard,
        request: ConsumerGroupDescribeRequest { group_ids, ..Default::default() },
    };
    let parts: Vec<_> = by_shard.into_iter().map(part).collect();
    if parts.is_empty() { Plan::Answer(pending.respond()) } else { Plan::Work(Work { parts, pending }) }
}

impl Pending {
    /// Takes over one shard's answer.
    pub fn add(&mut self, response: ConsumerGroupDescribeResponse, room: &AnswerRoom, access: &Access<'_>) {
        self.groups.add(response.groups, ConsumerGroupDescribeResponse::VERSIONS.max, room, access);
    }

    /// The answer, once every shard's is in.
    pub fn respond(self) -> ConsumerGroupDescribeResponse {
        ConsumerGroupDescribeResponse { groups: self.groups.into_groups(), ..Default::default() }
    }
}

#[cfg(test)]
mod tests;
