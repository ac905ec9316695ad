//! # DescribeGroups, key 15, versions 0–6
//!
//! Shows groups: state, protocol, members and what they are assigned.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//! | 1 | throttle time in the answer |
//! | 2 | throttling by the client (KIP-219) |
//! | 3 | authorized operations (KIP-430) |
//! | 4 | static members (KIP-345) |
//! | 5 | flexible (KIP-482) |
//! | 6 | GROUP_ID_NOT_FOUND and a message; before, such a group is called Dead (KIP-1043) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleDescribeGroupsRequest`, `GroupCoordinatorService.describeGroups`.

use barnabas_base::ErrorCode;
use barnabas_security::Operation;
use barnabas_wire::Str;
use barnabas_wire::messages::describe_groups_request::DescribeGroupsRequest;
use barnabas_wire::messages::describe_groups_response::{DescribeGroupsResponse, DescribedGroup};

use crate::described_groups::Described;
use crate::groups::{ToShard, shard_here};
use crate::{Access, AnswerRoom, Context, Plan};

#[derive(Debug)]
pub struct Work {
    pub parts: Vec<ToShard<DescribeGroupsRequest>>,
    pub pending: Pending,
}

/// The answer as far as it is known: groups in the order of the request.
#[derive(Debug)]
pub struct Pending {
    version: i16,
    groups: Described<DescribedGroup>,
}

/// Splits a request by shard.
pub fn plan(
    request: DescribeGroupsRequest,
    version: i16,
    ctx: &Context<'_>,
) -> Plan<Work, DescribeGroupsResponse> {
    let with_operations = version >= 3 && request.include_authorized_operations;
    let shard_of = |group: &Str| match ctx.access.group(Operation::Describe, group) {
        true => shard_here(group, ctx),
        false => Err(ErrorCode::GroupAuthorizationFailed),
    };
    let (by_shard, groups) = Described::split(request.groups, with_operations, shard_of);
    let pending = Pending { version, groups };
    let part =
        |(shard, groups)| ToShard { shard, request: DescribeGroupsRequest { groups, ..Default::default() } };
    let parts: Vec<_> = by_shard.into_iter().map(part).collect();
    if parts.is_empty() { Plan::Answer(pending.respond()) } else { Plan::Work(Work { parts, pending }) }
}

impl Pending {
    /// Takes over one shard's answer.
    pub fn add(&mut self, response: DescribeGroupsResponse, room: &AnswerRoom, access: &Access<'_>) {
        let mut groups = response.groups;
        if self.version < 6 {
            groups.iter_mut().for_each(|group| group.error_message = None);
        }
        self.groups.add(groups, self.version, room, access);
    }

    /// The answer, once every shard's is in.
    pub fn respond(self) -> DescribeGroupsResponse {
        DescribeGroupsResponse { groups: self.groups.into_groups(), ..Default::default() }
    }
}

#[cfg(test)]
mod tests;
