//! Whether a StreamsGroupHeartbeat is sound in itself, before anybody looks at the group.
//!
//! # Source
//! Kafka 4.4 `GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid` and its neighbours; the order
//! decides which error wins.

use std::collections::BTreeSet;

use barnabas_base::ErrorCode;
use barnabas_wire::messages::streams_group_heartbeat_request::{TaskIds, Topology};
use barnabas_wire::messages::{StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse};

use crate::groups::reconciled::{Refused, check_ids};
use crate::request::empty_streams_heartbeat;

/// The refusal in this API's words.
pub(crate) fn refusal(refused: Refused) -> StreamsGroupHeartbeatResponse {
    StreamsGroupHeartbeatResponse {
        error_code: refused.code.code(),
        error_message: Some(refused.why.into()),
        ..empty_streams_heartbeat()
    }
}

fn invalid(why: impl Into<String>) -> Result<(), Refused> {
    Err(Refused::new(ErrorCode::InvalidRequest, why))
}

pub(crate) fn check(request: &StreamsGroupHeartbeatRequest) -> Result<(), Refused> {
    let topology = request.topology.as_ref();
    if topology.is_some_and(|all| all.subtopologies.iter().any(|each| !each.source_topic_regex.is_empty())) {
        return invalid("Regular expressions for source topics are not supported yet.");
    }
    check_ids(&[
        ("MemberId", Some(&*request.member_id)),
        ("GroupId", Some(&*request.group_id)),
        ("InstanceId", request.instance_id.as_deref()),
        ("RackId", request.rack_id.as_deref()),
    ])?;
    match request.member_epoch {
        0 => check_join(request)?,
        -2 if request.instance_id.is_none() => {
            return invalid("InstanceId can't be null.");
        }
        epoch @ ..-2 => {
            return invalid(format!("MemberEpoch is {epoch}, but must be greater than or equal to -2."));
        }
        _ => {}
    }
    let owned = [&request.active_tasks, &request.standby_tasks, &request.warmup_tasks];
    if owned.iter().any(|tasks| tasks.is_some()) && owned.iter().any(|tasks| tasks.is_none()) {
        return invalid("If one task-type is non-null, all must be non-null.");
    }
    if request.member_epoch != 0 && topology.is_some() {
        return invalid("Topology can only be provided when (re-)joining.");
    }
    Ok(())
}

fn check_join(request: &StreamsGroupHeartbeatRequest) -> Result<(), Refused> {
    if request.rebalance_timeout_ms == -1 {
        return invalid("RebalanceTimeoutMs must be provided in first request.");
    }
    let owned = [
        ("ActiveTasks", &request.active_tasks),
        ("StandbyTasks", &request.standby_tasks),
        ("WarmupTasks", &request.warmup_tasks),
    ];
    let is_empty_list = |tasks: &Option<Vec<TaskIds>>| tasks.as_ref().is_some_and(Vec::is_empty);
    if let Some((role, _)) = owned.iter().find(|(_, tasks)| !is_empty_list(tasks)) {
        return invalid(format!("{role} must be empty when (re-)joining."));
    }
    match &request.topology {
        None => invalid("Topology must be non-null when (re-)joining."),
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
            return invalid(format!(
                "Changelog topic {name} must have an undefined partition count, but it is set to {count}."
            ));
        }
        if let Some(topic) = each.repartition_source_topics.iter().find(|topic| topic.partitions < 0) {
            return invalid(format!("Repartition topic {} cannot have so few partitions.", topic.name));
        }
    }
    Ok(())
}
