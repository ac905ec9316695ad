//! # DeleteGroups, key 42, versions 0–3
//!
//! Deletes groups that have no members, with their offsets.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-229) |
//! | 1 | throttling by the client (KIP-219) |
//! | 2 | flexible (KIP-482) |
//! | 3 | a message, GROUP_DELETION_FAILED (KIP-1331) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleDeleteGroupsRequest`, `GroupCoordinatorService.deleteGroups`.

use std::collections::BTreeMap;

use barnabas_base::{ErrorCode, PartitionIndex, Set};
use barnabas_security::Operation;
use barnabas_wire::Str;
use barnabas_wire::messages::delete_groups_request::DeleteGroupsRequest;
use barnabas_wire::messages::delete_groups_response::{DeletableGroupResult, DeleteGroupsResponse};

use crate::groups::{ToShard, shard_here};
use crate::{Context, Plan};

#[derive(Debug)]
pub struct Work {
    pub parts: Vec<ToShard<DeleteGroupsRequest>>,
    pub pending: Pending,
}

/// The answer as far as it is known.
#[derive(Debug)]
pub struct Pending {
    version: i16,
    results: Vec<DeletableGroupResult>,
}

/// Splits a request by shard.
pub fn plan(
    request: DeleteGroupsRequest,
    version: i16,
    ctx: &Context<'_>,
) -> Plan<Work, DeleteGroupsResponse> {
    let mut pending = Pending { version, results: Vec::new() };
    let mut by_shard: BTreeMap<PartitionIndex, Vec<Str>> = BTreeMap::new();
    let mut seen = Set::default();
    for group in request.groups_names {
        if !seen.insert(group.clone()) {
            continue;
        }
        let shard = match ctx.access.group(Operation::Delete, &group) {
            true => shard_here(&group, ctx),
            false => Err(ErrorCode::GroupAuthorizationFailed),
        };
        match shard {
            Ok(shard) => by_shard.entry(shard).or_default().push(group),
            Err(code) => pending.results.push(DeletableGroupResult {
                group_id: group,
                error_code: code.code(),
                ..DeletableGroupResult::default()
            }),
        }
    }
    let parts = by_shard.into_iter().map(|(shard, groups_names)| ToShard {
        shard,
        request: DeleteGroupsRequest { groups_names, ..DeleteGroupsRequest::default() },
    });
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() { Plan::Answer(pending.respond()) } else { Plan::Work(Work { parts, pending }) }
}

impl Pending {
    /// Takes over one shard's answer.
    pub fn add(&mut self, response: DeleteGroupsResponse) {
        self.results.extend(response.results);
    }

    /// The answer, once every shard's is in.
    pub fn respond(mut self) -> DeleteGroupsResponse {
        if self.version < 3 {
            for result in &mut self.results {
                result.error_message = None;
                if result.error_code == ErrorCode::GroupDeletionFailed.code() {
                    result.error_code = ErrorCode::UnknownServerError.code();
                }
            }
        }
        DeleteGroupsResponse { results: self.results, ..DeleteGroupsResponse::default() }
    }
}

#[cfg(test)]
mod tests;
