//! # OffsetForLeaderEpoch, key 23, versions 0–4
//!
//! Returns the end offset of a leader epoch. Consumers use it after a change of leader, and
//! followers before they fetch, to find out whether their records are still part of the leader's
//! log.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request, between brokers (KIP-101) |
//! | 1 | the epoch itself in the answer (KIP-279) |
//! | 2 | the epoch that the client believes in (KIP-320), throttle time in the answer |
//! | 3 | who asks |
//! | 4 | flexible (KIP-482) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleOffsetForLeaderEpochRequest`, `ReplicaManager.lastOffsetForLeaderEpoch`.

use std::sync::Arc;

use barnabas_base::{ErrorCode, LeaderEpoch, Offset, PartitionIndex};
use barnabas_metadata::Topic;
use barnabas_security::Operation;
use barnabas_wire::messages::offset_for_leader_epoch_request::OffsetForLeaderEpochRequest;
use barnabas_wire::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderEpochResponse, OffsetForLeaderTopicResult,
};

use crate::{Context, Plan, Slot};

#[derive(Debug)]
pub struct Work {
    pub parts: Vec<Part>,
    pub pending: Pending,
}

/// One partition's question.
#[derive(Debug, Clone)]
pub struct Part {
    pub slot: Slot,
    pub topic: Arc<Topic>,
    pub partition: PartitionIndex,
    /// The epoch that the client believes to be the current one.
    pub current: Option<LeaderEpoch>,
    /// The epoch asked about.
    pub epoch: LeaderEpoch,
}

/// The largest epoch up to the one asked about, and where it ended; `None` where the log knows of none.
pub type Outcome = Result<Option<(LeaderEpoch, Offset)>, ErrorCode>;

/// The answer as far as it is known.
#[derive(Debug)]
pub struct Pending {
    version: i16,
    topics: Vec<OffsetForLeaderTopicResult>,
}

/// Splits a request by partition, after the checks that need no partition.
pub fn plan(
    request: OffsetForLeaderEpochRequest,
    version: i16,
    ctx: &Context<'_>,
) -> Plan<Work, OffsetForLeaderEpochResponse> {
    let mut parts = Vec::new();
    let mut topics = Vec::with_capacity(request.topics.len());
    let is_broker = ctx.access.holds_cluster(Operation::ClusterAction);
    for (at, topic) in request.topics.into_iter().enumerate() {
        let is_allowed = is_broker || ctx.access.topic(Operation::Describe, &topic.topic);
        let mut results = Vec::with_capacity(topic.partitions.len());
        for (place, asked) in topic.partitions.into_iter().enumerate() {
            let partition = PartitionIndex(asked.partition);
            let current =
                (asked.current_leader_epoch >= 0).then_some(LeaderEpoch(asked.current_leader_epoch));
            let checked = match is_allowed {
                true => ctx.led_partition_in(&topic.topic, partition, current),
                false => Err(ErrorCode::TopicAuthorizationFailed),
            };
            results.push(EpochEndOffset {
                error_code: checked.as_ref().err().copied().unwrap_or_default().code(),
                partition: asked.partition,
                leader_epoch: LeaderEpoch::NONE.get(),
                end_offset: Offset::NONE.get(),
                ..EpochEndOffset::default()
            });
            if let Ok(topic) = checked {
                parts.push(Part {
                    slot: Slot::new(at, place),
                    topic,
                    partition,
                    current,
                    epoch: LeaderEpoch(asked.leader_epoch),
                });
            }
        }
        topics.push(OffsetForLeaderTopicResult {
            topic: topic.topic,
            partitions: results,
            ..OffsetForLeaderTopicResult::default()
        });
    }
    let pending = Pending { version, topics };
    if parts.is_empty() { Plan::Answer(pending.respond()) } else { Plan::Work(Work { parts, pending }) }
}

impl Pending {
    /// Takes over one partition's result.
    pub fn set(&mut self, slot: Slot, outcome: Outcome) {
        let result = &mut self.topics[slot.topic()].partitions[slot.partition()];
        match outcome {
            Ok(None) => {}
            Ok(Some((epoch, end))) => {
                result.end_offset = end.get();
                if self.version >= 1 {
                    result.leader_epoch = epoch.get();
                }
            }
            Err(code) => result.error_code = code.code(),
        }
    }

    /// The answer, once every part's result is in.
    pub fn respond(self) -> OffsetForLeaderEpochResponse {
        OffsetForLeaderEpochResponse { topics: self.topics, ..OffsetForLeaderEpochResponse::default() }
    }
}

#[cfg(test)]
mod tests;
