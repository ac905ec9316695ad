//! # ShareGroupDescribe, key 77, version 1
//!
//! Shows share groups (KIP-932): epochs, members and what they have.
//!
//! | version | what it added |
//! |---|---|
//! | 1 | the request, as it became final |
//!
//! ## Left out
//! - Authorization: every operation counts as authorized, and no group is hidden for its topics.
//!
//! Source: Kafka 4.4 `KafkaApis.handleShareGroupDescribe`, `GroupCoordinatorService.shareGroupDescribe`.

use std::collections::BTreeMap;

use barnabas_base::{ErrorCode, Map, PartitionIndex};
use barnabas_wire::Str;
use barnabas_wire::messages::share_group_describe_request::ShareGroupDescribeRequest;
use barnabas_wire::messages::share_group_describe_response::{DescribedGroup, ShareGroupDescribeResponse};

use crate::groups::{ToShard, shard_here};
use crate::{Context, Plan, authorized_operations, k76_share_group_heartbeat};

#[derive(Debug)]
pub struct Work {
    pub parts: Vec<ToShard<ShareGroupDescribeRequest>>,
    pub pending: Pending,
}

/// The answer as far as it is known: groups in the order of the request.
#[derive(Debug)]
pub struct Pending {
    with_operations: bool,
    groups: Vec<DescribedGroup>,
    places: Map<Str, usize>,
}

/// Splits a request by shard.
pub fn plan(request: ShareGroupDescribeRequest, ctx: &Context<'_>) -> Plan<Work, ShareGroupDescribeResponse> {
    let with_operations = request.include_authorized_operations;
    let is_enabled = k76_share_group_heartbeat::is_enabled(ctx);
    let mut pending = Pending { with_operations, groups: Vec::new(), places: Map::default() };
    let mut by_shard: BTreeMap<PartitionIndex, Vec<Str>> = BTreeMap::new();
    for group in request.group_ids {
        if pending.places.contains_key(&group) {
            continue;
        }
        pending.places.insert(group.clone(), pending.groups.len());
        let shard = if is_enabled { shard_here(&group, ctx) } else { Err(ErrorCode::UnsupportedVersion) };
        pending.groups.push(DescribedGroup {
            error_code: shard.err().unwrap_or_default().code(),
            group_id: group.clone(),
            authorized_operations: authorized_operations::NOT_ASKED,
            ..DescribedGroup::default()
        });
        if let Ok(shard) = shard {
            by_shard.entry(shard).or_default().push(group);
        }
    }
    let parts = by_shard.into_iter().map(|(shard, groups)| ToShard {
        shard,
        request: ShareGroupDescribeRequest { group_ids: groups, ..ShareGroupDescribeRequest::default() },
    });
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() { Plan::Answer(pending.respond()) } else { Plan::Work(Work { parts, pending }) }
}

impl Pending {
    /// Takes over one shard's answer.
    pub fn add(&mut self, response: ShareGroupDescribeResponse) {
        for mut group in response.groups {
            let Some(&place) = self.places.get(&group.group_id) else { continue };
            let shows = self.with_operations && group.error_code == 0;
            group.authorized_operations =
                if shows { authorized_operations::GROUP } else { authorized_operations::NOT_ASKED };
            self.groups[place] = group;
        }
    }

    /// The answer, once every shard's is in.
    pub fn respond(self) -> ShareGroupDescribeResponse {
        ShareGroupDescribeResponse { groups: self.groups, ..ShareGroupDescribeResponse::default() }
    }
}

#[cfg(test)]
mod tests;
