//! # ReadShareGroupState, key 84, version 0
//!
//! Gives the state of share-partitions to the leader of their partitions, whose epoch fences those before it (KIP-932).
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleReadShareGroupStateRequest`, `ShareCoordinatorService.readState`.

use barnabas_base::{LeaderEpoch, PartitionIndex, Set, TopicId};
use barnabas_wire::messages::read_share_group_state_response::{PartitionResult, ReadStateResult};
use barnabas_wire::messages::{ReadShareGroupStateRequest, ReadShareGroupStateResponse};

/// Records of which something is known.
pub use barnabas_wire::messages::read_share_group_state_response::StateBatch;

use crate::{Plan, Slot, share_partitions};

/// One share-partition of the request; its group is [`Work::group`].
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub slot: Slot,
    pub topic: TopicId,
    pub partition: PartitionIndex,
    pub leader_epoch: LeaderEpoch,
}

pub type Work = share_partitions::Work<Part, PartitionResult>;
pub type Pending = share_partitions::Pending<PartitionResult>;

/// Splits a request by share-partition.
pub fn plan(request: ReadShareGroupStateRequest) -> Plan<Work, ReadShareGroupStateResponse> {
    // Each is answered once, as in Kafka's map of futures: a state may hold many batches.
    let mut seen = Set::default();
    let topics = request.topics.into_iter().filter_map(|mut topic| {
        let is_empty = topic.partitions.is_empty();
        topic.partitions.retain(|asked| seen.insert((topic.topic_id, asked.partition)));
        (is_empty || !topic.partitions.is_empty()).then_some((topic.topic_id, topic.partitions))
    });
    let topics: Vec<_> = topics.collect();
    share_partitions::plan(&request.group_id, topics.into_iter(), |slot, topic, asked| {
        let result = PartitionResult { partition: asked.partition, ..Default::default() };
        let part = Part {
            slot,
            topic,
            partition: PartitionIndex(asked.partition),
            leader_epoch: LeaderEpoch(asked.leader_epoch),
        };
        (part, result)
    })
}

impl Pending {
    /// Takes over the state of a share-partition. `start_offset` of −1: no member has read from it
    /// yet.
    pub fn set_state(
        &mut self,
        slot: Slot,
        state_epoch: i32,
        start_offset: i64,
        state_batches: Vec<StateBatch>,
    ) {
        let part = self.at(slot);
        (part.state_epoch, part.start_offset, part.state_batches) =
            (state_epoch, start_offset, state_batches);
    }

    /// The answer, once all is in: what was not refused is done.
    pub fn respond(self) -> ReadShareGroupStateResponse {
        let topic = |topic_id, partitions| ReadStateResult { topic_id, partitions, ..Default::default() };
        ReadShareGroupStateResponse { results: self.by_topic(topic), ..Default::default() }
    }
}

#[cfg(test)]
mod tests;
