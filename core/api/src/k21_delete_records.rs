//! # DeleteRecords, key 21, versions 0–2
//!
//! Deletes the records of partitions below an offset, by moving the start of their logs.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-107) |
//! | 1 | throttling by the client (KIP-219) |
//! | 2 | flexible (KIP-482) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleDeleteRecordsRequest`, `ReplicaManager.deleteRecords`,
//! `Partition.deleteRecordsOnLeader`.

use std::sync::Arc;

use barnabas_base::{DurationMs, ErrorCode, Offset, PartitionIndex, is_internal_topic};
use barnabas_metadata::config::TopicConfig;
use barnabas_metadata::{Resource, Topic};
use barnabas_security::Operation;
use barnabas_wire::messages::delete_records_request::DeleteRecordsRequest;
use barnabas_wire::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsResponse, DeleteRecordsTopicResult,
};

use crate::{Context, Plan, Slot};

#[derive(Debug)]
pub struct Work {
    /// How long the answer may wait for the followers.
    pub timeout: DurationMs,
    pub parts: Vec<Part>,
    pub pending: Pending,
}

/// One partition's share.
#[derive(Debug, Clone)]
pub struct Part {
    pub slot: Slot,
    pub topic: Arc<Topic>,
    pub partition: PartitionIndex,
    /// `None`: everything below the high watermark.
    pub below: Option<Offset>,
}

/// The lowest log start of all replicas, once it has reached what was asked for.
pub type Outcome = Result<Offset, ErrorCode>;

/// The answer as far as it is known.
#[derive(Debug)]
pub struct Pending {
    topics: Vec<DeleteRecordsTopicResult>,
}

/// Splits a request by partition, after the checks that need no partition.
pub fn plan(request: DeleteRecordsRequest, ctx: &Context<'_>) -> Plan<Work, DeleteRecordsResponse> {
    let mut parts = Vec::new();
    let mut topics = Vec::with_capacity(request.topics.len());
    for (at, topic) in request.topics.into_iter().enumerate() {
        let mut results = Vec::with_capacity(topic.partitions.len());
        for (place, partition) in topic.partitions.into_iter().enumerate() {
            let index = PartitionIndex(partition.partition_index);
            let checked = check(&topic.name, index, partition.offset, ctx);
            results.push(DeleteRecordsPartitionResult {
                partition_index: partition.partition_index,
                low_watermark: Offset::NONE.get(),
                error_code: checked.as_ref().err().copied().unwrap_or_default().code(),
                ..DeleteRecordsPartitionResult::default()
            });
            if let Ok((topic, below)) = checked {
                parts.push(Part { slot: Slot::new(at, place), topic, partition: index, below });
            }
        }
        topics.push(DeleteRecordsTopicResult {
            name: topic.name,
            partitions: results,
            ..DeleteRecordsTopicResult::default()
        });
    }
    let pending = Pending { topics };
    if parts.is_empty() {
        return Plan::Answer(pending.respond());
    }
    Plan::Work(Work { timeout: DurationMs(i64::from(request.timeout_ms.max(0))), parts, pending })
}

fn check(
    topic: &str,
    partition: PartitionIndex,
    offset: i64,
    ctx: &Context<'_>,
) -> Result<(Arc<Topic>, Option<Offset>), ErrorCode> {
    const HIGH_WATERMARK: i64 = -1;
    if !ctx.access.topic(Operation::Delete, topic) {
        return Err(ErrorCode::TopicAuthorizationFailed);
    }
    ctx.known_partition(topic, partition)?;
    if is_internal_topic(topic) {
        return Err(ErrorCode::InvalidTopicException);
    }
    let topic = ctx.led_partition(topic, partition)?;
    let config = topic_config(&topic, ctx);
    if config.cleanup_policy.compact && !config.cleanup_policy.delete {
        return Err(ErrorCode::PolicyViolation);
    }
    match offset {
        HIGH_WATERMARK => Ok((topic, None)),
        0.. => Ok((topic, Some(Offset(offset)))),
        _ => Err(ErrorCode::OffsetOutOfRange),
    }
}

fn topic_config(topic: &Topic, ctx: &Context<'_>) -> Arc<TopicConfig> {
    let own = ctx.image.configs.of(&Resource::topic(topic.name.clone()));
    let own = own.iter().flat_map(|values| values.iter()).map(|(key, value)| (&**key, &**value));
    ctx.config.topic_config(own)
}

impl Pending {
    /// Takes over one partition's result.
    pub fn set(&mut self, slot: Slot, outcome: Outcome) {
        let result = &mut self.topics[slot.topic()].partitions[slot.partition()];
        match outcome {
            Ok(low_watermark) => result.low_watermark = low_watermark.get(),
            Err(code) => result.error_code = code.code(),
        }
    }

    /// The answer, once every part's result is in.
    pub fn respond(self) -> DeleteRecordsResponse {
        DeleteRecordsResponse { topics: self.topics, ..DeleteRecordsResponse::default() }
    }
}

#[cfg(test)]
mod tests;
