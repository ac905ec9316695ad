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
//! - Authorization: everybody counts as a broker.
//!
//! Source: Kafka 4.4 `KafkaApis.handleWriteShareGroupStateRequest`, `ShareCoordinatorService.writeState`.

use barnabas_base::{ErrorCode, LeaderEpoch, Offset, PartitionIndex, Text, TopicId};
use barnabas_wire::Str;
use barnabas_wire::messages::write_share_group_state_response::{PartitionResult, WriteStateResult};
use barnabas_wire::messages::{WriteShareGroupStateRequest, WriteShareGroupStateResponse};

/// Records of which something is known.
pub use barnabas_wire::messages::write_share_group_state_request::StateBatch;

use crate::share_partitions::Results;
use crate::{Plan, Slot};

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

#[derive(Debug)]
pub struct Work {
    pub group: Text,
    pub parts: Vec<Part>,
    pub pending: Pending,
}

/// The answer as far as it is known, in the order of the request.
#[derive(Debug)]
pub struct Pending {
    results: Results<PartitionResult>,
}

/// Splits a request by share-partition. A request without a group, or with a topic that names no partition, is answered with
/// nothing.
pub fn plan(request: WriteShareGroupStateRequest) -> Plan<Work, WriteShareGroupStateResponse> {
    let asked = request.topics.into_iter().map(|topic| (topic.topic_id, topic.partitions));
    let split = Results::split(&request.group_id, asked, |slot, topic, asked| {
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
    });
    let Some((parts, results)) = split else { return Plan::Answer(WriteShareGroupStateResponse::default()) };
    Plan::Work(Work { group: request.group_id.text(), parts, pending: Pending { results } })
}

impl Pending {
    /// Takes over that a share-partition was refused.
    pub fn refuse(&mut self, slot: Slot, code: ErrorCode, why: Option<&'static str>) {
        let part = self.results.at(slot);
        part.error_code = code.code();
        part.error_message = why.map(Str::from_static);
    }

    /// The answer, once all is in: what was not refused is done.
    pub fn respond(self) -> WriteShareGroupStateResponse {
        let topic = |topic_id, partitions| WriteStateResult { topic_id, partitions, ..Default::default() };
        WriteShareGroupStateResponse { results: self.results.map(topic), ..Default::default() }
    }
}

#[cfg(test)]
mod tests;
