//! # FindCoordinator, key 10, versions 0–6
//!
//! Tells which broker looks after a group, a transactional id or a share-partition: the leader of the partition of
//! `__consumer_offsets`, `__transaction_state` or `__share_group_state` that the name falls on. If that topic does not
//! exist, the broker auto-creates it.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | groups |
//! | 1 | transactions, error message, throttle time (KIP-98) |
//! | 2 | throttling by the client (KIP-219) |
//! | 3 | flexible (KIP-482) |
//! | 4 | several keys at once (KIP-699) |
//! | 5 | TRANSACTION_ABORTABLE (KIP-890) |
//! | 6 | share-partitions, by `group:topic id:partition` (KIP-932) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleFindCoordinatorRequest`.

use barnabas_base::{ErrorCode, name};
use barnabas_security::Operation;
use barnabas_wire::Str;
use barnabas_wire::messages::create_topics_request::CreateTopicsRequest;
use barnabas_wire::messages::find_coordinator_request::FindCoordinatorRequest;
use barnabas_wire::messages::find_coordinator_response::{Coordinator, FindCoordinatorResponse};

use crate::access::refusal;
use crate::auto_create::creation;
use crate::groups::{self, Shard};
use crate::{Context, Node, Plan, Refusal, share_state, transactions};

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;

/// From this version on, share-partitions may be asked for.
const SHARE_SINCE: i16 = 6;

/// The coordinators' topic has to be created; the answer goes out at once and the client asks again, as with Kafka.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// For the controller, in this node's own name.
    pub create: CreateTopicsRequest,
    pub response: FindCoordinatorResponse,
}

/// Makes the answer, and names the topic that is to be created.
pub fn plan(
    request: FindCoordinatorRequest,
    version: i16,
    ctx: &Context<'_>,
) -> Plan<Work, FindCoordinatorResponse> {
    let key_type = if version >= 1 { request.key_type } else { GROUP };
    let response = if version >= 4 {
        let coordinators = request.coordinator_keys.into_iter();
        FindCoordinatorResponse {
            coordinators: coordinators.map(|key| coordinator(key_type, key, version, ctx)).collect(),
            ..FindCoordinatorResponse::default()
        }
    } else {
        single(find(key_type, &request.key, version, ctx), version)
    };
    let topic = match key_type {
        GROUP => name::CONSUMER_OFFSETS,
        TRANSACTION => name::TRANSACTION_STATE,
        SHARE if version >= SHARE_SINCE => name::SHARE_GROUP_STATE,
        _ => return Plan::Answer(response),
    };
    if ctx.image.topics.by_name(topic).is_some() || is_denied(&response) {
        return Plan::Answer(response);
    }
    Plan::Work(Work { create: creation([topic].into_iter(), ctx), response })
}

/// Whether the client may know of none of the coordinators that it asks for.
fn is_denied(response: &FindCoordinatorResponse) -> bool {
    let codes = [
        ErrorCode::GroupAuthorizationFailed,
        ErrorCode::TransactionalIdAuthorizationFailed,
        ErrorCode::ClusterAuthorizationFailed,
    ];
    let is_denial = |code: i16| codes.iter().any(|denial| denial.code() == code);
    let coordinators = &response.coordinators;
    is_denial(response.error_code)
        || (!coordinators.is_empty() && coordinators.iter().all(|each| is_denial(each.error_code)))
}

/// Why the client may not ask for this coordinator.
fn denied(key_type: i8, key: &str, ctx: &Context<'_>) -> Option<ErrorCode> {
    match key_type {
        GROUP if !ctx.access.group(Operation::Describe, key) => Some(ErrorCode::GroupAuthorizationFailed),
        TRANSACTION if !ctx.access.transactional_id(Operation::Describe, key) => {
            Some(ErrorCode::TransactionalIdAuthorizationFailed)
        }
        SHARE if !ctx.access.cluster(Operation::ClusterAction) => Some(ErrorCode::ClusterAuthorizationFailed),
        _ => None,
    }
}

fn find(key_type: i8, key: &str, version: i16, ctx: &Context<'_>) -> Result<Node, Refusal> {
    let is_known = key_type != SHARE || version >= SHARE_SINCE;
    if let Some(code) = denied(key_type, key, ctx).filter(|_| is_known) {
        return Err(refusal(code));
    }
    let shard = match key_type {
        GROUP => groups::shard_of(key, ctx),
        TRANSACTION => transactions::shard_of(key, ctx),
        SHARE if version >= SHARE_SINCE && share_state::is_key(key) => share_state::shard_of(key, ctx),
        _ => return Err(ErrorCode::InvalidRequest.into()),
    };
    let unavailable =
        || Refusal::new(ErrorCode::CoordinatorNotAvailable, "The coordinator is not available yet.");
    let Some(Shard { leader, .. }) = shard else { return Err(unavailable()) };
    leader.node.ok_or_else(unavailable)
}

fn coordinator(key_type: i8, key: Str, version: i16, ctx: &Context<'_>) -> Coordinator {
    match find(key_type, &key, version, ctx) {
        Ok(node) => Coordinator {
            key,
            node_id: node.id.get(),
            host: node.host,
            port: node.port,
            ..Coordinator::default()
        },
        Err(refusal) => Coordinator {
            key,
            node_id: -1,
            port: -1,
            error_code: refusal.code.code(),
            error_message: refusal.text(),
            ..Coordinator::default()
        },
    }
}

fn single(found: Result<Node, Refusal>, version: i16) -> FindCoordinatorResponse {
    let mut response =
        FindCoordinatorResponse { node_id: -1, port: -1, ..FindCoordinatorResponse::default() };
    let message = match found {
        Ok(node) => {
            (response.node_id, response.host, response.port) = (node.id.get(), node.host, node.port);
            // Kafka says so in words too.
            Some(Str::from_static("NONE"))
        }
        Err(refusal) => {
            response.error_code = refusal.code.code();
            refusal.text()
        }
    };
    if version >= 1 {
        response.error_message = message;
    }
    response
}

#[cfg(test)]
mod tests;
