//! # ListGroups, key 16, versions 0–5
//!
//! Lists the groups that this broker looks after.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//! | 1 | throttle time in the answer |
//! | 2 | throttling by the client (KIP-219) |
//! | 3 | flexible (KIP-482) |
//! | 4 | states, and a filter by them (KIP-518) |
//! | 5 | types, and a filter by them (KIP-848) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleListGroupsRequest`, `GroupCoordinatorService.listGroups`.

use barnabas_base::{ErrorCode, PartitionIndex};
use barnabas_security::{Operation, ResourceType};
use barnabas_wire::messages::list_groups_request::ListGroupsRequest;
use barnabas_wire::messages::list_groups_response::ListGroupsResponse;
use barnabas_wire::{Message, Str};

use crate::groups::shards_here;
use crate::repeats::once;
use crate::{Access, AnswerRoom, Context, Plan};

#[derive(Debug)]
pub struct Work {
    /// The same request for each of them.
    pub shards: Vec<PartitionIndex>,
    pub request: ListGroupsRequest,
    pub pending: Pending,
}

/// The answer as far as it is known.
#[derive(Debug)]
pub struct Pending {
    version: i16,
    /// The client may see all groups.
    sees_all: bool,
    response: ListGroupsResponse,
}

/// Asks every shard that is here.
pub fn plan(
    mut request: ListGroupsRequest,
    version: i16,
    ctx: &Context<'_>,
) -> Plan<Work, ListGroupsResponse> {
    // Every shard gets a copy.
    once(&mut request.states_filter);
    once(&mut request.types_filter);
    let shards = shards_here(ctx);
    let sees_all = ctx.access.holds_cluster(Operation::Describe);
    let pending = Pending { version, sees_all, response: ListGroupsResponse::default() };
    if shards.is_empty() {
        Plan::Answer(pending.respond())
    } else {
        Plan::Work(Work { shards, request, pending })
    }
}

impl Pending {
    /// Takes over a part of the list, without the groups that the client may not describe. A shard that moved away
    /// meanwhile is left out. Returns whether there is to be a list at all.
    pub fn add(&mut self, mut response: ListGroupsResponse, room: &AnswerRoom, access: &Access<'_>) -> bool {
        let sees = |group: &str| access.sees(Operation::Describe, ResourceType::Group, group);
        response.groups.retain(|group| self.sees_all || sees(&group.group_id));
        if let Err(large) = room.take_struct(&response, ListGroupsResponse::VERSIONS.max) {
            self.response.error_code = large.code(ErrorCode::CoordinatorLoadInProgress).code();
            return false;
        }
        match ErrorCode::from_code(response.error_code) {
            ErrorCode::None => self.response.groups.extend(response.groups),
            ErrorCode::NotCoordinator => {}
            code => self.response.error_code = code.code(),
        }
        self.response.error_code == 0
    }

    /// The answer, once every shard's is in.
    pub fn respond(mut self) -> ListGroupsResponse {
        if self.response.error_code != 0 {
            self.response.groups.clear();
        }
        for group in &mut self.response.groups {
            if self.version < 4 {
                group.group_state = Str::default();
            }
            if self.version < 5 {
                group.group_type = Str::default();
            }
        }
        self.response
    }
}

#[cfg(test)]
mod tests;
