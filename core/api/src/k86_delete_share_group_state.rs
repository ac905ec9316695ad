//! # DeleteShareGroupState, key 86, version 0
//!
//! Ends share-partitions (KIP-932).
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleDeleteShareGroupStateRequest`, `ShareCoordinatorService.deleteState`.

use barnabas_base::{PartitionIndex, TopicId};
use barnabas_wire::messages::delete_share_group_state_response::{DeleteStateResult, PartitionResult};
use barnabas_wire::messages::{DeleteShareGroupStateRequest, DeleteShareGroupStateResponse};

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

/// Splits a request by share-partition.
pub fn plan(request: DeleteShareGroupStateRequest) -> Plan<Work, DeleteShareGroupStateResponse> {
    let asked = request.topics.into_iter().map(|topic| (topic.topic_id, topic.partitions));
    share_partitions::plan(&request.group_id, asked, |slot, topic, asked| {
        let result = PartitionResult { partition: asked.partition, ..Default::default() };
        let part = Part { slot, topic, partition: PartitionIndex(asked.partition) };
        (part, result)
    })
}

impl Pending {
    /// The answer, once all is in: what was not refused is done.
    pub fn respond(self) -> DeleteShareGroupStateResponse {
        let topic = |topic_id, partitions| DeleteStateResult { topic_id, partitions, ..Default::default() };
        DeleteShareGroupStateResponse { results: self.by_topic(topic), ..Default::default() }
    }
}

#[cfg(test)]
mod tests;
