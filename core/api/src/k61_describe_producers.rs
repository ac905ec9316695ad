//! # DescribeProducers, key 61, version 0
//!
//! Shows the idempotent and transactional producers that partitions remember: for finding transactions that hang.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-664) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleDescribeProducersRequest`, `Partition.activeProducerState`.

use std::sync::Arc;

use barnabas_base::{
    CoordinatorEpoch, ErrorCode, Offset, PartitionIndex, ProducerEpoch, ProducerId, Sequence, TimestampMs,
    TopicId, check_topic_name,
};
use barnabas_metadata::Topic;
use barnabas_security::Operation;
use barnabas_wire::Str;
use barnabas_wire::messages::describe_producers_request::DescribeProducersRequest;
use barnabas_wire::messages::describe_producers_response::{
    DescribeProducersResponse, PartitionResponse, ProducerState, TopicResponse,
};

use crate::repeats::Places;
use crate::{AnswerRoom, Context, Plan, Refusal, Slot, TooLarge};

/// A producer in the answer, as a value and as written.
const PRODUCER_BYTES: usize = size_of::<ProducerState>() + 44;

#[derive(Debug)]
pub struct Work {
    pub parts: Vec<Part>,
    pub pending: Pending,
}

/// One partition to look at. Its number in [`Work::parts`] is that of its outcome.
#[derive(Debug, Clone)]
pub struct Part {
    pub topic: Arc<Topic>,
    pub partition: PartitionIndex,
}

/// One producer as a partition remembers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Producer {
    pub id: ProducerId,
    pub epoch: ProducerEpoch,
    pub last_sequence: Sequence,
    pub last_timestamp: TimestampMs,
    pub coordinator_epoch: CoordinatorEpoch,
    /// Where its open transaction begins.
    pub transaction_start: Option<Offset>,
}

pub type Outcome = Result<Vec<Producer>, ErrorCode>;

/// The answer as far as it is known.
#[derive(Debug)]
pub struct Pending {
    topics: Vec<TopicResponse>,
    places: Places<(TopicId, PartitionIndex), Slot>,
}

/// Splits a request by partition, after the checks that need no partition.
pub fn plan(request: DescribeProducersRequest, ctx: &Context<'_>) -> Plan<Work, DescribeProducersResponse> {
    let mut parts = Vec::new();
    let mut places = Places::default();
    let mut topics = Vec::with_capacity(request.topics.len());
    for (at, topic) in request.topics.into_iter().enumerate() {
        let mut answers = Vec::with_capacity(topic.partition_indexes.len());
        for (place, index) in topic.partition_indexes.into_iter().enumerate() {
            let partition = PartitionIndex(index);
            let mut answer = PartitionResponse { partition_index: index, ..PartitionResponse::default() };
            match check(&topic.name, partition, ctx) {
                Ok(topic) => {
                    if places.note((topic.id, partition), Slot::new(at, place)).is_some() {
                        parts.push(Part { topic, partition });
                    }
                }
                Err(refusal) => {
                    answer.error_code = refusal.code.code();
                    answer.error_message = refusal.text();
                }
            }
            answers.push(answer);
        }
        topics.push(TopicResponse { name: topic.name, partitions: answers, ..TopicResponse::default() });
    }
    let pending = Pending { topics, places };
    if parts.is_empty() { Plan::Answer(pending.respond()) } else { Plan::Work(Work { parts, pending }) }
}

fn check(topic: &Str, partition: PartitionIndex, ctx: &Context<'_>) -> Result<Arc<Topic>, Refusal> {
    check_topic_name(topic)
        .map_err(|error| Refusal::new(ErrorCode::InvalidTopicException, error.to_string()))?;
    if !ctx.access.topic(Operation::Read, topic) {
        return Err(ErrorCode::TopicAuthorizationFailed.into());
    }
    ctx.replica_here(topic, partition).map_err(Refusal::from)
}

impl Pending {
    /// What so many producers of the part with that number take in the answer, for each time that the request names its
    /// partition.
    pub fn bytes(&self, number: usize, producers: usize) -> usize {
        let times = self.places.of(number).len();
        times.saturating_mul(producers).saturating_mul(PRODUCER_BYTES)
    }

    /// The part with that number has no room in the answer.
    pub fn refuse(&mut self, number: usize, large: TooLarge) {
        for slot in self.places.of(number) {
            refuse(&mut self.topics[slot.topic()].partitions[slot.partition()], large);
        }
    }

    /// Takes over the result of the part with that number, for each time that the request names its partition.
    pub fn set(&mut self, number: usize, outcome: &Outcome, room: &AnswerRoom) {
        for slot in self.places.of(number) {
            let answer = &mut self.topics[slot.topic()].partitions[slot.partition()];
            match outcome {
                Ok(producers) => match room.take(producers.len() * PRODUCER_BYTES) {
                    Ok(()) => answer.active_producers = producers.iter().map(state).collect(),
                    Err(large) => refuse(answer, large),
                },
                Err(code) => answer.error_code = code.code(),
            }
        }
    }

    /// The answer, once every part's result is in.
    pub fn respond(self) -> DescribeProducersResponse {
        DescribeProducersResponse { topics: self.topics, ..DescribeProducersResponse::default() }
    }
}

fn refuse(answer: &mut PartitionResponse, large: TooLarge) {
    let refusal = large.refusal(ErrorCode::RequestTimedOut);
    answer.error_code = refusal.code.code();
    answer.error_message = refusal.text();
}

fn state(producer: &Producer) -> ProducerState {
    ProducerState {
        producer_id: producer.id.get(),
        producer_epoch: i32::from(producer.epoch.get()),
        last_sequence: producer.last_sequence.get(),
        last_timestamp: producer.last_timestamp.0,
        coordinator_epoch: producer.coordinator_epoch.get(),
        current_txn_start_offset: producer.transaction_start.unwrap_or(Offset::NONE).get(),
        ..ProducerState::default()
    }
}

#[cfg(test)]
mod tests;
