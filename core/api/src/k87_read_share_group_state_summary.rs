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
//! - The leader's epoch in the request is ignored, as in Kafka.
//!
//! Source: Kafka 4.4 `KafkaApis.handleReadShareGroupStateSummaryRequest`, `ShareCoordinatorService.readStateSummary`.

use barnabas_base::{PartitionIndex, TopicId};
use barnabas_wire::messages::read_share_group_state_summary_response::{
    PartitionResult, ReadStateSummaryResult,
};
use barnabas_wire::messages::{ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse};

use crate::{Plan, Slot, share_partitions};

/// One share-partition of the request; its group is [`Work::group`].
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub slot: Slot,
    pub topic: TopicId,
    pub partition: PartitionIndex,
}

pub type Work = share_partitions::Work<Part, PartitionResult>;
pub type Pending = share_partitions::Pending<PartitionResult>;

/// Where a share-partition stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    pub state_epoch: i32,
    pub leader_epoch: i32,
    /// −1: no member has read from it yet.
    pub start_offset: i64,
    /// −1: not known.
    pub delivery_complete_count: i32,
}

/// Splits a request by share-partition.
pub fn plan(request: ReadShareGroupStateSummaryRequest) -> Plan<Work, ReadShareGroupStateSummaryResponse> {
    let asked = request.topics.into_iter().map(|topic| (topic.topic_id, topic.partitions));
    share_partitions::plan(&request.group_id, asked, |slot, topic, asked| {
        let result = PartitionResult { partition: asked.partition, ..Default::default() };
        let part = Part { slot, topic, partition: PartitionIndex(asked.partition) };
        (part, result)
    })
}

impl Pending {
    /// Takes over where a share-partition stands.
    pub fn set_summary(&mut self, slot: Slot, summary: Summary) {
        let part = self.at(slot);
        part.state_epoch = summary.state_epoch;
        part.leader_epoch = summary.leader_epoch;
        part.start_offset = summary.start_offset;
        part.delivery_complete_count = summary.delivery_complete_count;
    }

    /// The answer, once all is in: what was not refused is done.
    pub fn respond(self) -> ReadShareGroupStateSummaryResponse {
        let topic =
            |topic_id, partitions| ReadStateSummaryResult { topic_id, partitions, ..Default::default() };
        ReadShareGroupStateSummaryResponse { results: self.by_topic(topic), ..Default::default() }
    }
}

#[cfg(test)]
mod tests;
