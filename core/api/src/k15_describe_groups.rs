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
//! - Authorization: every operation counts as authorized.
//!
//! Source: Kafka 4.4 `KafkaApis.handleDescribeGroupsRequest`, `GroupCoordinatorService.describeGroups`.

use std::collections::BTreeMap;

use barnabas_base::{Map, PartitionIndex};
use barnabas_wire::Str;
use barnabas_wire::messages::describe_groups_request::DescribeGroupsRequest;
use barnabas_wire::messages::describe_groups_response::{DescribeGroupsResponse, DescribedGroup};

use crate::groups::{ToShard, shard_here};
use crate::{Context, Plan, authorized_operations};

#[derive(Debug)]
pub struct Work {
    pub parts: Vec<ToShard<DescribeGroupsRequest>>,
    pub pending: Pending,
}

/// The answer as far as it is known: groups in the order of the request.
#[derive(Debug)]
pub struct Pending {
    version: i16,
    with_operations: bool,
    groups: Vec<DescribedGroup>,
    places: Map<Str, usize>,
}

/// Splits a request by shard.
pub fn plan(
    request: DescribeGroupsRequest,
    version: i16,
    ctx: &Context<'_>,
) -> Plan<Work, DescribeGroupsResponse> {
    let with_operations = version >= 3 && request.include_authorized_operations;
    let mut pending = Pending { version, with_operations, groups: Vec::new(), places: Map::default() };
    let mut by_shard: BTreeMap<PartitionIndex, Vec<Str>> = BTreeMap::new();
    for group in request.groups {
        if pending.places.contains_key(&group) {
            continue;
        }
        pending.places.insert(group.clone(), pending.groups.len());
        let shard = shard_here(&group, ctx);
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
        request: DescribeGroupsRequest { groups, ..DescribeGroupsRequest::default() },
    });
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() { Plan::Answer(pending.respond()) } else { Plan::Work(Work { parts, pending }) }
}

impl Pending {
    /// Takes over one shard's answer.
    pub fn add(&mut self, response: DescribeGroupsResponse) {
        for mut group in response.groups {
            let Some(&place) = self.places.get(&group.group_id) else { continue };
            let shows = self.with_operations && group.error_code == 0;
            group.authorized_operations =
                if shows { authorized_operations::GROUP } else { authorized_operations::NOT_ASKED };
            if self.version < 6 {
                group.error_message = None;
            }
            self.groups[place] = group;
        }
    }

    /// The answer, once every shard's is in.
    pub fn respond(self) -> DescribeGroupsResponse {
        DescribeGroupsResponse { groups: self.groups, ..DescribeGroupsResponse::default() }
    }
}

#[cfg(test)]
mod tests;
