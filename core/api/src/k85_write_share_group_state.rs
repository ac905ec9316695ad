//! # WriteShareGroupState, key 85, versions 0–1
//!
//! Writes down what has changed of share-partitions (KIP-932).
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//! | 1 | how many records are done with (KIP-1226) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleWriteShareGroupStateRequest`, `ShareCoordinatorService.writeState`.

use barnabas_base::{LeaderEpoch, Offset, PartitionIndex, TopicId};
use barnabas_wire::messages::write_share_group_state_response::{PartitionResult, WriteStateResult};
use barnabas_wire::messages::{WriteShareGroupStateRequest, WriteShareGroupStateResponse};

/// Records of which something is known.
pub use barnabas_wire::messages::write_share_group_state_request::StateBatch;

use crate::{Plan, Slot, share_partitions};

/// One share-partition of the request; its group is [`Work::group`].
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub slot: Slot,
    pub topic: TopicId,
    pub partition: PartitionIndex,
    pub state_epoch: i32,
    pub leader_epoch: LeaderEpoch,
    pub start_offset: Offset,
    pub delivery_complete_count: i32,
    pub batches: Vec<StateBatch>,
}

pub type Work = share_partitions::Work<Part, PartitionResult>;
pub type Pending = share_partitions::Pending<PartitionResult>;

/// Splits a request by share-partition.
pub fn plan(request: WriteShareGroupStateRequest) -> Plan<Work, WriteShareGroupStateResponse> {
    let asked = request.topics.into_iter().map(|topic| (topic.topic_id, topic.partitions));
    share_partitions::plan(&request.group_id, asked, |slot, topic, asked| {
        let result = PartitionResult { partition: asked.partition, ..Default::default() };
        let part = Part {
            slot,
            topic,
            partition: PartitionIndex(asked.partition),
            state_epoch: asked.state_epoch,
            leader_epoch: LeaderEpoch(asked.leader_epoch),
            start_offset: Offset(asked.start_offset),
            delivery_complete_count: asked.delivery_complete_count,
            batches: asked.state_batches,
        };
        (part, result)
    })
}

impl Pending {
    /// The answer, once all is in: what was not refused is done.
    pub fn respond(self) -> WriteShareGroupStateResponse {
        let topic = |topic_id, partitions| WriteStateResult { topic_id, partitions, ..Default::default() };
        WriteShareGroupStateResponse { results: self.by_topic(topic), ..Default::default() }
    }
}

#[cfg(test)]
mod tests;
