//! Batches whose partition has just got another leader are handed on to it, and their producers hear of it with the
//! acknowledgement.
//!
//! When leadership moves while both brokers live (a planned restart, a preferred leader that is back), nothing is
//! wrong, and yet who has batches under way would be told NOT_LEADER_OR_FOLLOWER: most clients then wait before they
//! send again (`retry.backoff.ms`, 100 ms by default), and one that does not retry fails. So the former leader is a
//! client of its successor for a moment ([`FORWARD_FOR`]).
//!
//! Only batches with a producer id and outside of transactions ([`Part::is_repeatable`]): the new leader may have
//! replicated the batch already, and recognises it as a duplicate. A batch without a producer id might be written
//! twice.
//!
//! Always true:
//! 1. batches of one connection for one partition reach the new leader in their order: each waits until those before it
//!    are answered
//! 2. a connection's batches for a partition are handed on for [`FORWARD_FOR`] in each leader epoch. After that the
//!    producer is refused, so that one goes to the leader too that looks for it beside errors alone (KIP-951)
//! 3. what was handed on is not handed on again: no batch goes in circles
//!
//! Neighbours: produce.rs, which asks; session/forwarding.rs, the state; node/peers/broker_links.rs, the connections;
//! server/stop.rs, which waits until producers have gone.

use crate::mailbox::PartitionKey;
use crate::node::Node;
use crate::node::peers::broker_links::FORWARDING_CLIENT_ID as CLIENT_ID;
use crate::node::peers::broker_links::Purpose;
use crate::requests::call::Call;
use crate::requests::session::forwarding::Turn;
use crate::routing::broker_requests::{is_there, while_there};
use barnabas_api::Slot;
use barnabas_api::k00_produce::{Outcome, Part, Pending};
use barnabas_base::{BrokerId, ErrorCode, MonotonicMs, Offset, Text, TimestampMs};
use barnabas_partition::Acks;
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::produce_response::PartitionProduceResponse;
use barnabas_wire::messages::{ProduceRequest, ProduceResponse};
use bytes::Bytes;
use std::time::Duration;

/// A client that keeps five requests under way (a producer with an id does) may have more that it has not sent.
/// librdkafka takes those back when it is sent elsewhere, and waits (`retry.backoff.ms`) before it sends them there:
/// with so many under way it hears later where to go.
const BUSY: usize = 5;
/// Before a leader is asked again that has not heard of its election yet.
const AGAIN: Duration = Duration::from_millis(2);
/// On top of what a request may take at the leader.
const WAY: Duration = Duration::from_secs(5);
/// The version from which on topics are told by their ids.
const TOPIC_IDS_SINCE: i16 = 13;

/// A batch as its producer sent it.
#[derive(Debug, Clone)]
pub struct Kept {
    slot: Slot,
    key: PartitionKey,
    topic: Text,
    /// A slice of the request's frame.
    records: Bytes,
}

impl Kept {
    /// `None`: it cannot be handed on.
    pub fn of(part: &Part) -> Option<Self> {
        let key = PartitionKey { topic: part.topic.id, partition: part.partition };
        let topic = part.topic.name.clone();
        part.is_repeatable.then(|| Self { slot: part.slot, key, topic, records: part.records.clone() })
    }

    pub fn key(&self) -> PartitionKey {
        self.key
    }

    pub fn slot(&self) -> Slot {
        self.slot
    }
}

/// Whether batches of this request may be handed on at all: there is another broker, and none has handed them on
/// before.
pub fn may_forward(call: &Call, image: &barnabas_metadata::Image) -> bool {
    image.cluster.broker_count() > 1 && call.client.client_id.as_deref() != Some(CLIENT_ID)
}

/// Forwards batches to their new leaders and sets their outcomes. Batches without a new leader stay refused.
pub async fn forward(
    call: &Call,
    turn: &Turn,
    (acks, deadline): (Acks, MonotonicMs),
    mut left: Vec<Kept>,
    pending: &mut Pending,
) {
    let keys: Vec<PartitionKey> = left.iter().map(|batch| batch.key).collect();
    turn.comes(&keys).await;
    let node = &call.session.node;
    while let Some((leader, batches)) = next(call, &mut left) {
        let response = match send(node, leader, (acks, deadline), &batches).await {
            Ok(response) => response,
            Err(why) => {
                tracing::debug!(%leader, why, "batches were not handed on: their producers are told who leads");
                let now = node.clock.monotonic();
                batches.iter().for_each(|batch| call.session.forwarding.give_up(batch.key, now));
                continue;
            }
        };
        node.note_forwarded();
        let moment = call.moment();
        let context = call.context(&moment);
        let mut is_early = false;
        for batch in batches {
            let Some(answer) = answer_to(&response, &batch) else { continue };
            match ErrorCode::from_code(answer.error_code) {
                ErrorCode::None => {
                    node.workers.meter.batches_forwarded.one();
                    let append_time =
                        (answer.log_append_time_ms >= 0).then_some(TimestampMs(answer.log_append_time_ms));
                    let (base, log_start) = (Offset(answer.base_offset), Offset(answer.log_start_offset));
                    if call.session.forwarding.under_way() >= BUSY {
                        let done = Outcome::Appended { base, append_time, log_start };
                        pending.set(batch.slot, done, &context);
                        continue;
                    }
                    pending.set(
                        batch.slot,
                        Outcome::AppendedElsewhere { base, append_time, log_start },
                        &context,
                    );
                }
                // One of the two brokers has not heard of an election yet.
                ErrorCode::NotLeaderOrFollower
                | ErrorCode::UnknownTopicOrPartition
                | ErrorCode::UnknownTopicId => {
                    is_early = true;
                    left.push(batch);
                }
                code => {
                    call.session.forwarding.give_up(batch.key, node.clock.monotonic());
                    pending.set(batch.slot, Outcome::refused(code), &context);
                }
            }
        }
        if is_early {
            tokio::time::sleep(AGAIN).await;
        }
    }
}

/// Takes out the batches for one broker. Batches without a leader are dropped; their producers keep the refusal.
fn next(call: &Call, left: &mut Vec<Kept>) -> Option<(BrokerId, Vec<Kept>)> {
    let node = &call.session.node;
    let (image, now) = (node.cluster.image.load_full(), node.clock.monotonic());
    let leader_of = |key: PartitionKey| {
        let state = image.topics.by_id(key.topic)?.partition(key.partition)?;
        // It may have been elected itself by now: then it is its own client.
        let is_there = is_there(node, state.leader);
        (is_there && call.session.forwarding.goes_on(key, state.leader_epoch, now)).then_some(state.leader)
    };
    left.retain(|batch| leader_of(batch.key).is_some());
    let leader = leader_of(left.first()?.key)?;
    let mut batches: Vec<Kept> = Vec::new();
    // A second one for the same partition goes with the next request.
    left.retain(|batch| {
        let goes = leader_of(batch.key) == Some(leader) && batches.iter().all(|other| other.key != batch.key);
        if goes {
            batches.push(batch.clone());
        }
        !goes
    });
    Some((leader, batches))
}

async fn send(
    node: &Node,
    leader: BrokerId,
    (acks, deadline): (Acks, MonotonicMs),
    batches: &[Kept],
) -> Result<ProduceResponse, &'static str> {
    let to = (leader, Purpose::ProduceForwarding);
    let Some(link) = node.peers.broker_links.to(node, to.0, to.1) else {
        return Err("it has no listener for brokers");
    };
    let _counted = node.peers.broker_links.awaited(to.1).begin();
    let left = deadline.since(node.clock.monotonic()).0.max(0);
    let patience = Duration::from_millis(left.unsigned_abs()) + WAY;
    let (acks, timeout_ms) =
        (if acks == Acks::All { -1 } else { 1 }, i32::try_from(left).unwrap_or(i32::MAX));
    let batches = batches.to_vec();
    let make = move |version| {
        let topic_data = topics(&batches, version >= TOPIC_IDS_SINCE);
        Some(ProduceRequest { acks, timeout_ms, topic_data, ..ProduceRequest::default() })
    };
    match while_there(node, to, link.send_with(patience, make)).await {
        Some(Ok(response)) => Ok(response),
        Some(Err(error)) => {
            tracing::debug!(%leader, %error, "a new leader did not take what was handed on");
            Err("it did not answer")
        }
        None => Err("it is gone"),
    }
}

fn topics(batches: &[Kept], by_id: bool) -> Vec<TopicProduceData> {
    let mut topics: Vec<(PartitionKey, TopicProduceData)> = Vec::new();
    for batch in batches {
        let partition = PartitionProduceData {
            index: batch.key.partition.get(),
            records: Some(batch.records.clone()),
            ..PartitionProduceData::default()
        };
        match topics.iter_mut().find(|(key, _)| key.topic == batch.key.topic) {
            Some((_, topic)) => topic.partition_data.push(partition),
            None => {
                let topic = TopicProduceData {
                    name: if by_id { Default::default() } else { (&batch.topic).into() },
                    topic_id: if by_id { batch.key.topic } else { Default::default() },
                    partition_data: vec![partition],
                    ..TopicProduceData::default()
                };
                topics.push((batch.key, topic));
            }
        }
    }
    topics.into_iter().map(|(_, topic)| topic).collect()
}

fn answer_to<'a>(response: &'a ProduceResponse, batch: &Kept) -> Option<&'a PartitionProduceResponse> {
    let topic = response
        .responses
        .iter()
        .find(|topic| topic.topic_id == batch.key.topic || *topic.name == *batch.topic)?;
    topic.partition_responses.iter().find(|answer| answer.index == batch.key.partition.get())
}
