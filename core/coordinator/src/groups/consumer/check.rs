//! Whether a ConsumerGroupHeartbeat is sound in itself, before anybody looks at the group.
//!
//! # Source
//! Kafka 4.4 `GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid`; the order decides which error
//! wins.

use barnabas_base::ErrorCode;
use barnabas_wire::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};

use crate::GroupConfig;
use crate::groups::reconciled::{Refused, check_ids};

/// From this version on, the member chooses its id.
const OWN_ID_SINCE: i16 = 1;

/// The refusal in this API's words.
pub(crate) fn refusal(refused: Refused) -> ConsumerGroupHeartbeatResponse {
    ConsumerGroupHeartbeatResponse {
        error_code: refused.code.code(),
        error_message: Some(refused.why.into()),
        ..Default::default()
    }
}

fn invalid(why: &str) -> Result<(), Refused> {
    Err(Refused::new(ErrorCode::InvalidRequest, why))
}

pub(crate) fn check(
    request: &ConsumerGroupHeartbeatRequest,
    version: i16,
    config: &GroupConfig,
) -> Result<(), Refused> {
    let epoch = request.member_epoch;
    let needs_id = version >= OWN_ID_SINCE || epoch > 0 || epoch == -1;
    check_ids(&[
        ("MemberId", needs_id.then_some(&*request.member_id)),
        ("GroupId", Some(&*request.group_id)),
        ("InstanceId", request.instance_id.as_deref()),
        ("RackId", request.rack_id.as_deref()),
    ])?;
    match epoch {
        0 => check_join(request)?,
        -2 if request.instance_id.is_none() => {
            return invalid("InstanceId can't be null.");
        }
        ..-2 => return invalid("MemberEpoch is invalid."),
        _ => {}
    }
    match request.server_assignor.as_deref() {
        Some(assignor) if !config.consumer.assignors.iter().any(|known| known == assignor) => {
            let known: Vec<&str> = config.consumer.assignors.iter().map(|name| name.as_str()).collect();
            let why = format!(
                "ServerAssignor {assignor} is not supported. Supported assignors: {}.",
                known.join(", ")
            );
            Err(Refused::new(ErrorCode::UnsupportedAssignor, why))
        }
        _ => Ok(()),
    }
}

fn check_join(request: &ConsumerGroupHeartbeatRequest) -> Result<(), Refused> {
    if request.rebalance_timeout_ms == -1 {
        return invalid("RebalanceTimeoutMs must be provided in first request.");
    }
    if request.topic_partitions.as_ref().is_none_or(|partitions| !partitions.is_empty()) {
        return invalid("TopicPartitions must be empty when (re-)joining.");
    }
    if request.subscribed_topic_names.is_none() && request.subscribed_topic_regex.is_none() {
        return invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        );
    }
    Ok(())
}
