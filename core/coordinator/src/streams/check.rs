//! Whether a StreamsGroupHeartbeat is sound in itself, before anybody looks at the group.
//!
//! # Source
//! Kafka 4.4 `GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid` and its neighbours; the order decides which
//! error wins.

use std::collections::BTreeSet;

use barnabas_base::ErrorCode;
use barnabas_wire::messages::streams_group_heartbeat_request::Topology;
use barnabas_wire::messages::{StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse};

use crate::consumer::Refused;

/// The refusal in this API's words.
pub(crate) fn refusal(refused: Refused) -> StreamsGroupHeartbeatResponse {
    StreamsGroupHeartbeatResponse {
        error_code: refused.code.code(),
        error_message: Some(refused.why.into()),
        ..Default::default()
    }
}

fn invalid(why: impl Into<String>) -> Result<(), Refused> {
    Err(Refused::new(ErrorCode::InvalidRequest, why))
}

pub(crate) fn check(request: &StreamsGroupHeartbeatRequest) -> Result<(), Refused> {
    let is_blank = |text: &str| text.trim().is_empty();
    let topology = request.topology.as_ref();
    if topology.is_some_and(|all| all.subtopologies.iter().any(|each| !each.source_topic_regex.is_empty())) {
        return invalid("Source topics are named one by one; expressions are not supported.");
    }
    if is_blank(&request.member_id) {
        return invalid("The member id must not be empty.");
    }
    if is_blank(&request.group_id) {
        return invalid("The group id must not be empty.");
    }
    if request.instance_id.as_deref().is_some_and(is_blank) {
        return invalid("The instance id must not be empty.");
    }
    if request.rack_id.as_deref().is_some_and(is_blank) {
        return invalid("The rack must not be empty.");
    }
    match request.member_epoch {
        0 => check_join(request)?,
        -2 if request.instance_id.is_none() => {
            return invalid("Only a member with an instance id can leave for a moment.");
        }
        ..-2 => return invalid("There is no such member epoch."),
        _ => {}
    }
    let owned = [&request.active_tasks, &request.standby_tasks, &request.warmup_tasks];
    if owned.iter().any(|tasks| tasks.is_some()) && owned.iter().any(|tasks| tasks.is_none()) {
        return invalid("Who says what tasks it has says so of all three kinds.");
    }
    if request.member_epoch != 0 && topology.is_some() {
        return invalid("The topology is said by who joins, and by nobody else.");
    }
    Ok(())
}

fn check_join(request: &StreamsGroupHeartbeatRequest) -> Result<(), Refused> {
    if request.rebalance_timeout_ms == -1 {
        return invalid("Who joins must say its rebalance timeout.");
    }
    let owned = [&request.active_tasks, &request.standby_tasks, &request.warmup_tasks];
    if owned.iter().any(|tasks| tasks.as_ref().is_none_or(|tasks| !tasks.is_empty())) {
        return invalid("Who joins must have no tasks, and say so.");
    }
    match &request.topology {
        None => invalid("Who joins must say its topology."),
        Some(topology) => check_topology(topology),
    }
}

fn check_topology(topology: &Topology) -> Result<(), Refused> {
    let invalid = |why: String| Err(Refused::new(ErrorCode::StreamsInvalidTopology, why));
    if topology.epoch < 0 {
        return invalid("The topology's epoch must not be negative.".to_owned());
    }
    let mut seen = BTreeSet::new();
    for each in &topology.subtopologies {
        if !seen.insert(each.subtopology_id.as_str()) {
            return invalid(format!("There are two subtopologies {}.", each.subtopology_id));
        }
        if let Some(topic) = each.state_changelog_topics.iter().find(|topic| topic.partitions != 0) {
            let (name, count) = (&topic.name, topic.partitions);
            return invalid(format!("Changelog {name} must leave its {count} partitions to the broker."));
        }
        if let Some(topic) = each.repartition_source_topics.iter().find(|topic| topic.partitions < 0) {
            return invalid(format!("Repartition topic {} cannot have so few partitions.", topic.name));
        }
    }
    Ok(())
}
