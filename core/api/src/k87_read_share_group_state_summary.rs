//! # ReadShareGroupStateSummary, key 87, versions 0–1
//!
//! Tells where share-partitions begin (KIP-932).
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//! | 1 | how many records are done with (KIP-1226) |
//!
//! ## Left out
//! - Authorization: everybody counts as a broker. The leader's epoch in the request is for nobody, as in Kafka.
//!
//! Source: Kafka 4.4 `KafkaApis.handleReadShareGroupStateSummaryRequest`, `ShareCoordinatorService.readStateSummary`.

use barnabas_base::{ErrorCode, PartitionIndex, Text, TopicId};
use barnabas_wire::Str;
use barnabas_wire::messages::read_share_group_state_summary_response::{
    PartitionResult, ReadStateSummaryResult,
};
use barnabas_wire::messages::{ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse};

use crate::{Plan, Slot};

/// One share-partition of the request; its group is [`Work::group`].
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub slot: Slot,
    pub topic: TopicId,
    pub partition: PartitionIndex,
}

#[derive(Debug)]
pub struct Work {
    pub group: Text,
    pub parts: Vec<Part>,
    pub pending: Pending,
}

/// Where a share-partition stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    pub state_epoch: i32,
    pub leader_epoch: i32,
    /// −1: nobody has begun to read.
    pub start_offset: i64,
    /// −1: not known.
    pub delivery_complete_count: i32,
}

/// The answer as far as it is known, in the order of the request.
#[derive(Debug)]
pub struct Pending {
    results: Vec<ReadStateSummaryResult>,
}

/// Splits a request by share-partition. A request without a group, or with a topic that names no partition, is answered with
/// nothing.
pub fn plan(request: ReadShareGroupStateSummaryRequest) -> Plan<Work, ReadShareGroupStateSummaryResponse> {
    let is_empty = request.topics.iter().any(|topic| topic.partitions.is_empty());
    if request.topics.is_empty() || is_empty || request.group_id.is_empty() {
        return Plan::Answer(ReadShareGroupStateSummaryResponse::default());
    }
    let (mut parts, mut results) = (Vec::new(), Vec::with_capacity(request.topics.len()));
    for (topic_at, topic) in request.topics.into_iter().enumerate() {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for (at, partition) in topic.partitions.into_iter().enumerate() {
            partitions.push(PartitionResult { partition: partition.partition, ..Default::default() });
            parts.push(Part {
                slot: Slot::new(topic_at, at),
                topic: topic.topic_id,
                partition: PartitionIndex(partition.partition),
            });
        }
        results.push(ReadStateSummaryResult { topic_id: topic.topic_id, partitions, ..Default::default() });
    }
    Plan::Work(Work { group: request.group_id.text(), parts, pending: Pending { results } })
}

impl Pending {
    /// Takes over that a share-partition was refused.
    pub fn refuse(&mut self, slot: Slot, code: ErrorCode, why: Option<&'static str>) {
        let part = self.part(slot);
        part.error_code = code.code();
        part.error_message = why.map(Str::from_static);
    }

    /// Takes over where a share-partition stands.
    pub fn set_summary(&mut self, slot: Slot, summary: Summary) {
        let part = self.part(slot);
        part.state_epoch = summary.state_epoch;
        part.leader_epoch = summary.leader_epoch;
        part.start_offset = summary.start_offset;
        part.delivery_complete_count = summary.delivery_complete_count;
    }

    /// The answer, once all is in: what was not refused is done.
    pub fn respond(self) -> ReadShareGroupStateSummaryResponse {
        ReadShareGroupStateSummaryResponse { results: self.results, ..Default::default() }
    }

    fn part(&mut self, slot: Slot) -> &mut PartitionResult {
        &mut self.results[slot.topic()].partitions[slot.partition()]
    }
}

#[cfg(test)]
mod tests;
