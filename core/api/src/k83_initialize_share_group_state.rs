//! # InitializeShareGroupState, key 83, version 0
//!
//! Sets share-partitions up: nothing of them is delivered (KIP-932). Group coordinators ask share coordinators.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleInitializeShareGroupStateRequest`, `ShareCoordinatorService.initializeState`.

use barnabas_base::{Offset, PartitionIndex, TopicId};
use barnabas_wire::messages::initialize_share_group_state_response::{
    InitializeStateResult, PartitionResult,
};
use barnabas_wire::messages::{InitializeShareGroupStateRequest, InitializeShareGroupStateResponse};

use crate::{Plan, Slot, share_partitions};

/// One share-partition of the request; its group is [`Work::group`].
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub slot: Slot,
    pub topic: TopicId,
    pub partition: PartitionIndex,
    pub state_epoch: i32,
    pub start_offset: Offset,
}

pub type Work = share_partitions::Work<Part, PartitionResult>;
pub type Pending = share_partitions::Pending<PartitionResult>;

/// Splits a request by share-partition.
pub fn plan(request: InitializeShareGroupStateRequest) -> Plan<Work, InitializeShareGroupStateResponse> {
    let asked = request.topics.into_iter().map(|topic| (topic.topic_id, topic.partitions));
    share_partitions::plan(&request.group_id, asked, |slot, topic, asked| {
        let result = PartitionResult { partition: asked.partition, ..Default::default() };
        let part = Part {
            slot,
            topic,
            partition: PartitionIndex(asked.partition),
            state_epoch: asked.state_epoch,
            start_offset: Offset(asked.start_offset),
        };
        (part, result)
    })
}

impl Pending {
    /// The answer, once all is in: what was not refused is done.
    pub fn respond(self) -> InitializeShareGroupStateResponse {
        let topic =
            |topic_id, partitions| InitializeStateResult { topic_id, partitions, ..Default::default() };
        InitializeShareGroupStateResponse { results: self.by_topic(topic), ..Default::default() }
    }
}

#[cfg(test)]
mod tests;
