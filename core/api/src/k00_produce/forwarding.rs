//! Batches whose partition has just got another leader are forwarded to it, and their producers are answered with the
//! leader's acknowledgement.
//!
//! When leadership moves while both brokers live (a planned restart, a preferred leader that is back), a producer with
//! batches in flight would get NOT_LEADER_OR_FOLLOWER: most clients then wait before they send again
//! (`retry.backoff.ms`, 100 ms by default), and one that does not retry fails. So the former leader is a client of its
//! successor for a moment ([`FORWARD_FOR`]).
//!
//! Only batches with a producer id and outside of transactions ([`Part::is_repeatable`]): the new leader may have
//! replicated the batch already, and recognises it as a duplicate. A batch without a producer id might be written
//! twice.
//!
//! Always true:
//! 1. batches of one connection for one partition reach the new leader in their order: each waits until those before it
//!    are answered ([`Forwarding::is_turn_of`])
//! 2. a connection's batches for a partition are forwarded for [`FORWARD_FOR`] in each leader epoch. After that the
//!    producer is refused, so that a client that looks for the leader only beside errors (KIP-951) goes there too
//! 3. a forwarded batch is not forwarded again: no batch goes in circles ([`may_forward`])
//!
//! Neighbours: shell/broker/src/requests/produce/forwarding.rs, which sends;
//! shell/broker/src/requests/session/turns.rs, which waits.

use std::collections::VecDeque;

use barnabas_base::{
    BrokerId, DurationMs, ErrorCode, LeaderEpoch, Map, MonotonicMs, Offset, PartitionIndex, Text,
    TimestampMs, TopicId,
};
use barnabas_metadata::Image;
use barnabas_wire::messages::produce_request::{PartitionProduceData, ProduceRequest, TopicProduceData};
use barnabas_wire::messages::produce_response::{PartitionProduceResponse, ProduceResponse};
use bytes::Bytes;

use super::{Acks, Outcome, Part};
use crate::Slot;

/// What the other broker sees as the client id where batches are forwarded.
pub const FORWARDING_CLIENT_ID: &str = "batches-handed-on";
/// How long a partition's batches are forwarded to its new leader: far longer than a producer takes to go where an
/// acknowledgement sends it.
pub const FORWARD_FOR: DurationMs = DurationMs(500);
/// A client that keeps five requests in flight (a producer with an id does) may have more that it has not sent.
/// librdkafka takes those back when it is sent elsewhere, and waits (`retry.backoff.ms`) before it sends them there:
/// with so many in flight its answer does not name the new leader yet.
const BUSY: usize = 5;
/// The version from which on topics are named by their ids.
const TOPIC_IDS_SINCE: i16 = 13;
/// Partitions that a connection remembers: batches for others are not forwarded.
const REMEMBERED_MAX: usize = 1024;
/// They are forgotten so long after the last batch that was forwarded, if there are others: a producer that still sends
/// here by then has got the new leader's address often.
const REMEMBERED_FOR: DurationMs = DurationMs(60_000);

/// A partition by its topic's id.
pub type Key = (TopicId, PartitionIndex);

/// A batch as its producer sent it.
#[derive(Debug, Clone)]
pub struct Kept {
    slot: Slot,
    key: Key,
    topic: Text,
    /// A slice of the request's frame.
    records: Bytes,
}

impl Kept {
    /// `None`: it cannot be forwarded.
    pub fn of(part: &Part) -> Option<Self> {
        let key = (part.topic.id, part.partition);
        let topic = part.topic.name.clone();
        part.is_repeatable.then(|| Self { slot: part.slot, key, topic, records: part.records.clone() })
    }

    pub fn key(&self) -> Key {
        self.key
    }

    pub fn slot(&self) -> Slot {
        self.slot
    }
}

/// Whether batches of a request with this client id may be forwarded at all: there is another broker, and none has
/// forwarded them before.
pub fn may_forward(client_id: Option<&str>, image: &Image) -> bool {
    image.cluster.broker_count() > 1 && client_id != Some(FORWARDING_CLIENT_ID)
}

/// What one connection knows of its batches in flight.
#[derive(Debug, Default)]
pub struct Forwarding {
    begun: u64,
    /// Requests that are not answered yet, in their order, with the partitions of which they have batches that may be
    /// forwarded.
    in_flight: VecDeque<(u64, Vec<Key>)>,
    /// Until when a partition's batches are forwarded, in which epoch.
    until: Map<Key, (LeaderEpoch, MonotonicMs)>,
}

impl Forwarding {
    /// A request comes with batches for these partitions. Returns its number, for [`Forwarding::ended`].
    pub fn begin(&mut self, keys: Vec<Key>) -> u64 {
        let number = self.begun;
        self.begun += 1;
        self.in_flight.push_back((number, keys));
        number
    }

    /// The request is answered.
    pub fn ended(&mut self, number: u64) {
        self.in_flight.retain(|(known, _)| *known != number);
    }

    /// Whether no earlier request with a batch for one of these partitions is in flight.
    pub fn is_turn_of(&self, number: u64, keys: &[Key]) -> bool {
        let mut before = self.in_flight.iter().take_while(|(known, _)| *known < number);
        !before.any(|(_, theirs)| keys.iter().any(|key| theirs.contains(key)))
    }

    /// Takes out the batches for one broker, at most one of each partition. Batches without a leader that takes them
    /// are dropped; their producers keep the refusal.
    pub fn next(
        &mut self,
        left: &mut Vec<Kept>,
        image: &Image,
        now: MonotonicMs,
    ) -> Option<(BrokerId, Vec<Kept>)> {
        let mut leader_of = |(topic, partition): Key| {
            let state = image.topics.by_id(topic)?.partition(partition)?;
            // This broker may have been elected itself by now: then it is its own client.
            let is_there = image.cluster.broker(state.leader).is_some_and(|known| !known.fenced);
            (is_there && self.goes_on((topic, partition), state.leader_epoch, now)).then_some(state.leader)
        };
        left.retain(|batch| leader_of(batch.key).is_some());
        let leader = leader_of(left.first()?.key)?;
        let mut batches: Vec<Kept> = Vec::new();
        left.retain(|batch| {
            let goes =
                leader_of(batch.key) == Some(leader) && batches.iter().all(|other| other.key != batch.key);
            if goes {
                batches.push(batch.clone());
            }
            !goes
        });
        Some((leader, batches))
    }

    /// Whether a batch for this partition is forwarded now.
    fn goes_on(&mut self, key: Key, epoch: LeaderEpoch, now: MonotonicMs) -> bool {
        let known = &mut self.until;
        if known.len() >= REMEMBERED_MAX && !known.contains_key(&key) {
            known.retain(|_, (_, until)| now < until.plus(REMEMBERED_FOR));
            if known.len() >= REMEMBERED_MAX {
                return false;
            }
        }
        let (of, until) = known.entry(key).or_insert((epoch, now.plus(FORWARD_FOR)));
        if *of != epoch {
            (*of, *until) = (epoch, now.plus(FORWARD_FOR));
        }
        now < *until
    }

    /// One of its batches was not taken: those behind it are not forwarded either, or they would come without it.
    pub fn give_up(&mut self, key: Key, now: MonotonicMs) {
        if let Some((_, until)) = self.until.get_mut(&key) {
            *until = now.min(*until);
        }
    }

    /// What the leader's answer says of one batch that was sent to it.
    pub fn verdict(&mut self, response: &ProduceResponse, batch: &Kept, now: MonotonicMs) -> Verdict {
        let Some(answer) = answer_to(response, batch) else { return Verdict::Silent };
        match ErrorCode::from_code(answer.error_code) {
            ErrorCode::None => {
                let time = answer.log_append_time_ms;
                let append_time = (time >= 0).then_some(TimestampMs(time));
                let (base, log_start) = (Offset(answer.base_offset), Offset(answer.log_start_offset));
                Verdict::Acked(match self.in_flight.len() >= BUSY {
                    true => Outcome::Appended { base, append_time, log_start },
                    false => Outcome::AppendedElsewhere { base, append_time, log_start },
                })
            }
            // The image of one of the two brokers lacks an election yet.
            ErrorCode::NotLeaderOrFollower
            | ErrorCode::UnknownTopicOrPartition
            | ErrorCode::UnknownTopicId => Verdict::Early,
            ErrorCode::TopicAuthorizationFailed
            | ErrorCode::ClusterAuthorizationFailed
            | ErrorCode::TransactionalIdAuthorizationFailed => {
                self.give_up(batch.key, now);
                Verdict::Denied
            }
            code => {
                self.give_up(batch.key, now);
                Verdict::Refused(Outcome::refused(code))
            }
        }
    }
}

/// See [`Forwarding::verdict`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Acked(Outcome),
    Refused(Outcome),
    /// To be sent again in a moment.
    Early,
    /// The answer does not name it: its producer keeps the refusal.
    Silent,
    /// The new leader does not let this broker write. The producer was authorised here: it keeps its refusal, which
    /// names the leader, and goes there itself.
    Denied,
}

/// The request that forwards batches, at most one of each partition.
pub fn request(batches: &[Kept], acks: Acks, timeout_ms: i32, version: i16) -> ProduceRequest {
    let acks = match acks {
        Acks::None => 0,
        Acks::Leader => 1,
        Acks::All => -1,
    };
    let topic_data = topics(batches, version >= TOPIC_IDS_SINCE);
    ProduceRequest { acks, timeout_ms, topic_data, ..ProduceRequest::default() }
}

fn topics(batches: &[Kept], by_id: bool) -> Vec<TopicProduceData> {
    let mut topics: Vec<(TopicId, TopicProduceData)> = Vec::new();
    for batch in batches {
        let (id, partition) = batch.key;
        let partition = PartitionProduceData {
            index: partition.get(),
            records: Some(batch.records.clone()),
            ..PartitionProduceData::default()
        };
        match topics.iter_mut().find(|(known, _)| *known == id) {
            Some((_, topic)) => topic.partition_data.push(partition),
            None => {
                let topic = TopicProduceData {
                    name: if by_id { Default::default() } else { (&batch.topic).into() },
                    topic_id: if by_id { id } else { Default::default() },
                    partition_data: vec![partition],
                    ..TopicProduceData::default()
                };
                topics.push((id, topic));
            }
        }
    }
    topics.into_iter().map(|(_, topic)| topic).collect()
}

fn answer_to<'a>(response: &'a ProduceResponse, batch: &Kept) -> Option<&'a PartitionProduceResponse> {
    let (id, partition) = batch.key;
    let mut topics = response.responses.iter();
    let topic = topics.find(|topic| topic.topic_id == id || *topic.name == *batch.topic)?;
    topic.partition_responses.iter().find(|answer| answer.index == partition.get())
}

#[cfg(test)]
mod tests;
