//! # InitializeShareGroupState, key 83, version 0
//!
//! Sets share-partitions up: nothing of them is delivered (KIP-932). Group coordinators ask share coordinators.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request |
//!
//! ## Left out
//! - Authorization: everybody counts as a broker.
//!
//! Source: Kafka 4.4 `KafkaApis.handleInitializeShareGroupStateRequest`, `ShareCoordinatorService.initializeState`.

use barnabas_base::{ErrorCode, Offset, PartitionIndex, Text, TopicId};
use barnabas_wire::Str;
use barnabas_wire::messages::initialize_share_group_state_response::{
    InitializeStateResult, PartitionResult,
};
use barnabas_wire::messages::{InitializeShareGroupStateRequest, InitializeShareGroupStateResponse};

use crate::share_partitions::Results;
use crate::{Plan, Slot};

/// One share-partition of the request; its group is [`Work::group`].
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub slot: Slot,
    pub topic: TopicId,
    pub partition: PartitionIndex,
    pub state_epoch: i32,
    pub start_offset: Offset,
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
pub fn plan(request: InitializeShareGroupStateRequest) -> Plan<Work, InitializeShareGroupStateResponse> {
    let asked = request.topics.into_iter().map(|topic| (topic.topic_id, topic.partitions));
    let split = Results::split(&request.group_id, asked, |slot, topic, asked| {
        let result = PartitionResult { partition: asked.partition, ..Default::default() };
        let part = Part {
            slot,
            topic,
            partition: PartitionIndex(asked.partition),
            state_epoch: asked.state_epoch,
            start_offset: Offset(asked.start_offset),
        };
        (part, result)
    });
    let Some((parts, results)) = split else {
        return Plan::Answer(InitializeShareGroupStateResponse::default());
    };
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
    pub fn respond(self) -> InitializeShareGroupStateResponse {
        let topic =
            |topic_id, partitions| InitializeStateResult { topic_id, partitions, ..Default::default() };
        InitializeShareGroupStateResponse { results: self.results.map(topic), ..Default::default() }
    }
}

#[cfg(test)]
mod tests;
