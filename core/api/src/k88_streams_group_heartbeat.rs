//! # StreamsGroupHeartbeat, key 88, versions 0–1
//!
//! Joins, keeps alive and leaves a streams group: the coordinator has its internal topics made and assigns its tasks
//! (KIP-1071).
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//! | 1 | the recovery lag as a long; client tags that are missed; topology descriptions (KIP-1331) |
//!
//! ## Left out
//! - Nothing.
//! - Warm-up tasks are never assigned, as in Kafka 4.4; rack tags are asked for and not looked at.
//!
//! Source: Kafka 4.4 `KafkaApis.handleStreamsGroupHeartbeat`.

use std::collections::BTreeSet;

use barnabas_base::{ErrorCode, check_topic_name, is_internal_topic};
use barnabas_metadata::features::name;
use barnabas_security::Operation;
use barnabas_wire::messages::create_topics_request::{CreatableTopic, CreateTopicsRequest};
use barnabas_wire::messages::create_topics_response::CreatableTopicResult;
use barnabas_wire::messages::streams_group_heartbeat_request::Topology;
use barnabas_wire::messages::{StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse};

use crate::groups::{ToShard, denied, shard_here};
use crate::{Access, Context, Plan};

/// `StreamsGroupHeartbeatResponse.Status` MISSING_INTERNAL_TOPICS.
const MISSING_INTERNAL_TOPICS: i8 = 3;

/// Topics whose creation failed that a sentence names.
const NAMED_MAX: usize = 3;

/// Whether this broker looks after streams groups at all: the cluster has agreed on them, and its setting allows it.
///
/// # Source
/// Kafka 4.4 `KafkaApis.isStreamsGroupProtocolEnabled`.
pub fn is_enabled(ctx: &Context<'_>) -> bool {
    let protocols = ctx.config.list("group.coordinator.rebalance.protocols");
    ctx.image.features.level(name::STREAMS) >= 1
        && protocols.iter().any(|protocol| protocol.eq_ignore_ascii_case("streams"))
}

/// Sends the request to the group's shard.
pub fn plan(
    request: StreamsGroupHeartbeatRequest,
    ctx: &Context<'_>,
) -> Plan<ToShard<StreamsGroupHeartbeatRequest>, StreamsGroupHeartbeatResponse> {
    if !is_enabled(ctx) {
        return refused(ErrorCode::UnsupportedVersion, None);
    }
    if let Some(code) = denied(&request.group_id, [], ctx) {
        return refused(code, None);
    }
    if let Some(topology) = &request.topology {
        let names = topic_names(topology);
        if let Some(why) = bad_topics(&names) {
            return refused(ErrorCode::StreamsInvalidTopology, Some(why));
        }
        if !names.iter().all(|name| ctx.access.topic(Operation::Describe, name)) {
            return refused(ErrorCode::TopicAuthorizationFailed, None);
        }
    }
    match shard_here(&request.group_id, ctx) {
        Ok(shard) => Plan::Work(ToShard { shard, request }),
        Err(code) => refused(code, None),
    }
}

fn refused<W>(code: ErrorCode, why: Option<String>) -> Plan<W, StreamsGroupHeartbeatResponse> {
    Plan::Answer(StreamsGroupHeartbeatResponse {
        error_code: code.code(),
        error_message: why.map(Into::into),
        // As Kafka's refusals: an empty list, not a null one.
        status: Some(Vec::new()),
        ..StreamsGroupHeartbeatResponse::default()
    })
}

fn topic_names(topology: &Topology) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for each in &topology.subtopologies {
        let infos = each.repartition_source_topics.iter().chain(&each.state_changelog_topics);
        let plain = each.source_topics.iter().chain(&each.repartition_sink_topics);
        names.extend(plain.chain(infos.map(|info| &info.name)).map(|name| name.as_str()));
    }
    names
}

/// What is wrong with the names of a topology's topics.
fn bad_topics(names: &BTreeSet<&str>) -> Option<String> {
    let joined = |names: Vec<&str>| names.join(",");
    let internal: Vec<&str> = names.iter().copied().filter(|name| is_internal_topic(name)).collect();
    if !internal.is_empty() {
        return Some(format!(
            "Use of Kafka internal topics {} in a Kafka Streams topology is prohibited.",
            joined(internal)
        ));
    }
    let bad: Vec<&str> = names.iter().copied().filter(|name| check_topic_name(name).is_err()).collect();
    (!bad.is_empty()).then(|| format!("Topic names {} are not valid topic names.", joined(bad)))
}

/// Says in `response` why the client may not have these internal topics made; `true`: it may.
pub fn may_create(
    response: &mut StreamsGroupHeartbeatResponse,
    topics: &[CreatableTopic],
    access: &Access<'_>,
) -> bool {
    if access.holds_cluster(Operation::Create) {
        return true;
    }
    let denied = topics.iter().filter(|topic| !access.topic(Operation::Create, &topic.name));
    let denied: Vec<&str> = denied.map(|topic| topic.name.as_str()).collect();
    if denied.is_empty() {
        return true;
    }
    let missing = response.status.iter_mut().flatten();
    for status in missing.filter(|status| status.status_code == MISSING_INTERNAL_TOPICS).take(1) {
        let why = format!("; Unauthorized to CREATE on topics {}.", denied.join(", "));
        status.status_detail = format!("{}{why}", status.status_detail).into();
    }
    false
}

/// The CreateTopics request for a group's internal topics.
pub fn creation(topics: Vec<CreatableTopic>, ctx: &Context<'_>) -> CreateTopicsRequest {
    CreateTopicsRequest {
        topics,
        timeout_ms: ctx.config.int("request.timeout.ms"),
        ..CreateTopicsRequest::default()
    }
}

/// The answer, after the missing internal topics were requested. It names those whose creation
/// failed. A topic that another member created in the meantime counts as created.
pub fn respond(
    mut response: StreamsGroupHeartbeatResponse,
    created: &Result<Vec<CreatableTopicResult>, String>,
) -> StreamsGroupHeartbeatResponse {
    let failures: Vec<String> = match created {
        Err(why) => vec![why.clone()],
        Ok(results) => {
            let failed = results.iter().filter(|result| {
                result.error_code != 0 && result.error_code != ErrorCode::TopicAlreadyExists.code()
            });
            let worded = failed.map(|result| {
                let standard = || ErrorCode::from_code(result.error_code).name().to_owned();
                let why = result.error_message.as_deref().map_or_else(standard, ToOwned::to_owned);
                format!("{} ({why})", result.name)
            });
            worded.collect()
        }
    };
    let Some(status) = response
        .status
        .iter_mut()
        .flatten()
        .find(|status| status.status_code == MISSING_INTERNAL_TOPICS && !failures.is_empty())
    else {
        return response;
    };
    let shown = failures.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    let more = match failures.len().checked_sub(NAMED_MAX) {
        None | Some(0) => String::new(),
        Some(more) => format!(" and {more} more"),
    };
    status.status_detail = format!("{}; Creation failed: {shown}{more}.", status.status_detail).into();
    response
}

#[cfg(test)]
mod tests;
