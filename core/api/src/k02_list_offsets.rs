//! # ListOffsets, key 2, versions 0–11
//!
//! Finds offsets: the end, the beginning, the first record at or after a time, the newest record. Consumers start with
//! it, tools compute lag by it.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | a list of segment offsets per partition |
//! | 1 | one offset and its timestamp (KIP-79) |
//! | 2 | isolation level (KIP-98), throttle time in the answer |
//! | 3 | throttling by the client (KIP-219) |
//! | 4 | leader epochs, both ways (KIP-320) |
//! | 5 | OFFSET_NOT_AVAILABLE; before, it is answered as LEADER_NOT_AVAILABLE (KIP-207) |
//! | 6 | flexible (KIP-482) |
//! | 7 | −3, the record with the largest timestamp (KIP-734) |
//! | 8 | −4, the earliest offset on local disks (KIP-405) |
//! | 9 | −5, the newest offset in tiered storage (KIP-1005) |
//! | 10 | a timeout for searches in tiered storage (KIP-1075) |
//! | 11 | −6, the earliest offset not yet in tiered storage (KIP-1023) |
//!
//! ## Left out
//! - Version 0 answers one offset per partition, whatever number is asked for, and finds times by record, not by
//!   segment.
//! - Tiered storage: −5 and −6 answer offset −1, as Kafka does for a topic without it.
//!
//! Source: Kafka 4.4 `KafkaApis.handleListOffsetRequest`, `ReplicaManager.fetchOffset`,
//! `Partition.fetchOffsetForTimestamp`.

use std::sync::Arc;

use barnabas_base::{BrokerId, DurationMs, ErrorCode, LeaderEpoch, Map, Offset, PartitionIndex, TimestampMs};
use barnabas_metadata::Topic;
use barnabas_security::Operation;
use barnabas_wire::Str;
use barnabas_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsRequest};
use barnabas_wire::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse,
};

use crate::{Context, Plan, Slot};

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    Consumer {
        read_committed: bool,
    },
    /// Any replica may answer.
    Debugger,
    Follower(BrokerId),
}

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Latest,
    Earliest,
    EarliestLocal,
    /// The record with the largest timestamp.
    MaxTimestamp,
    /// In tiered storage.
    LatestTiered,
    /// Not yet in tiered storage.
    EarliestPendingUpload,
    /// The first record at or after this time.
    At(TimestampMs),
}

#[derive(Debug)]
pub struct Work {
    pub asker: Asker,
    pub timeout: DurationMs,
    pub parts: Vec<Part>,
    pub pending: Pending,
}

/// One partition's question.
#[derive(Debug, Clone)]
pub struct Part {
    pub slot: Slot,
    pub topic: Arc<Topic>,
    pub partition: PartitionIndex,
    pub leader_epoch: Option<LeaderEpoch>,
    pub target: Target,
}

/// Where a partition stands, as the asker may see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The offset after the last that the asker may read.
    pub readable_end: Offset,
    pub leader_epoch: LeaderEpoch,
    pub log_start: Offset,
    /// The epoch of the record at `log_start`, where it is known.
    pub log_start_epoch: Option<LeaderEpoch>,
    /// A new leader whose high watermark has not reached the start of its epoch yet.
    pub high_watermark_lags: bool,
}

/// What was found in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub timestamp: TimestampMs,
    pub offset: Offset,
    pub epoch: Option<LeaderEpoch>,
}

/// One partition's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Found(Found),
    Nothing,
    Refused(ErrorCode),
}

/// The answer as far as it is known.
#[derive(Debug)]
pub struct Pending {
    version: i16,
    topics: Vec<ListOffsetsTopicResponse>,
}

impl Part {
    /// The answer where no log has to be searched; `None` where one must.
    pub fn answer(&self, asker: Asker, bounds: &Bounds) -> Option<Outcome> {
        let at = |offset, epoch| Outcome::Found(Found { timestamp: TimestampMs::NONE, offset, epoch });
        let is_client = matches!(asker, Asker::Consumer { .. });
        match self.target {
            Target::Latest if is_client && bounds.high_watermark_lags => {
                Some(Outcome::Refused(ErrorCode::OffsetNotAvailable))
            }
            Target::Latest => Some(at(bounds.readable_end, Some(bounds.leader_epoch))),
            Target::Earliest | Target::EarliestLocal => Some(at(bounds.log_start, bounds.log_start_epoch)),
            Target::LatestTiered | Target::EarliestPendingUpload => {
                Some(at(Offset::NONE, Some(LeaderEpoch::NONE)))
            }
            Target::MaxTimestamp | Target::At(_) => None,
        }
    }

    /// The answer after the search: what lies beyond the readable end is as good as not there.
    pub fn answer_found(&self, asker: Asker, found: Option<Found>, bounds: &Bounds) -> Outcome {
        match found {
            Some(found) if found.offset < bounds.readable_end => Outcome::Found(found),
            _ if matches!(asker, Asker::Consumer { .. }) && bounds.high_watermark_lags => {
                Outcome::Refused(ErrorCode::OffsetNotAvailable)
            }
            _ => Outcome::Nothing,
        }
    }
}

/// Splits a request by partition, after the checks that need no partition.
pub fn plan(request: ListOffsetsRequest, version: i16, ctx: &Context<'_>) -> Plan<Work, ListOffsetsResponse> {
    const DEBUGGER: i32 = -2;
    let asker = match request.replica_id {
        DEBUGGER => Asker::Debugger,
        id if id >= 0 => Asker::Follower(BrokerId(id)),
        _ => Asker::Consumer { read_committed: request.isolation_level == 1 },
    };
    let mut times: Map<(Str, i32), u32> = Map::default();
    for topic in &request.topics {
        for partition in &topic.partitions {
            *times.entry((topic.name.clone(), partition.partition_index)).or_default() += 1;
        }
    }
    let mut topics = Vec::with_capacity(request.topics.len());
    let mut parts = Vec::new();
    for (at, topic) in request.topics.into_iter().enumerate() {
        let mut answers = Vec::with_capacity(topic.partitions.len());
        for partition in &topic.partitions {
            let mut answer = nothing(partition.partition_index);
            let count = times.remove(&(topic.name.clone(), partition.partition_index));
            // What is asked twice is answered once, and in vain.
            let Some(count) = count else { continue };
            let (is_twice, place) = (count > 1, answers.len());
            match check(&topic.name, partition, is_twice, asker, version, ctx) {
                Err(code) => answer.error_code = code.code(),
                Ok((known, target)) => parts.push(Part {
                    slot: Slot::new(at, place),
                    topic: known,
                    partition: PartitionIndex(partition.partition_index),
                    leader_epoch: current_epoch(partition),
                    target,
                }),
            }
            answers.push(answer);
        }
        topics.push(ListOffsetsTopicResponse {
            name: topic.name,
            partitions: answers,
            ..ListOffsetsTopicResponse::default()
        });
    }
    let pending = Pending { version, topics };
    if parts.is_empty() {
        return Plan::Answer(pending.respond());
    }
    let timeout = if request.timeout_ms > 0 {
        i64::from(request.timeout_ms)
    } else {
        ctx.config.long("remote.list.offsets.request.timeout.ms")
    };
    Plan::Work(Work { asker, timeout: DurationMs(timeout), parts, pending })
}

fn check(
    topic: &Str,
    partition: &ListOffsetsPartition,
    is_twice: bool,
    asker: Asker,
    version: i16,
    ctx: &Context<'_>,
) -> Result<(Arc<Topic>, Target), ErrorCode> {
    if !ctx.access.topic(Operation::Describe, topic) {
        return Err(ErrorCode::TopicAuthorizationFailed);
    }
    if is_twice {
        return Err(ErrorCode::InvalidRequest);
    }
    let target = target(partition.timestamp, version).ok_or(ErrorCode::UnsupportedVersion)?;
    let index = PartitionIndex(partition.partition_index);
    match asker {
        Asker::Debugger => Ok((ctx.known_partition(topic, index)?.0, target)),
        Asker::Consumer { .. } | Asker::Follower(_) => {
            Ok((ctx.led_partition_in(topic, index, current_epoch(partition))?, target))
        }
    }
}

fn current_epoch(partition: &ListOffsetsPartition) -> Option<LeaderEpoch> {
    (partition.current_leader_epoch >= 0).then_some(LeaderEpoch(partition.current_leader_epoch))
}

/// `None` for a sentinel that the version does not have.
fn target(timestamp: i64, version: i16) -> Option<Target> {
    Some(match timestamp {
        0.. => Target::At(TimestampMs(timestamp)),
        -1 => Target::Latest,
        -2 => Target::Earliest,
        -3 if version >= 7 => Target::MaxTimestamp,
        -4 if version >= 8 => Target::EarliestLocal,
        -5 if version >= 9 => Target::LatestTiered,
        -6 if version >= 11 => Target::EarliestPendingUpload,
        _ => return None,
    })
}

fn nothing(partition: i32) -> ListOffsetsPartitionResponse {
    ListOffsetsPartitionResponse {
        partition_index: partition,
        timestamp: -1,
        offset: -1,
        leader_epoch: -1,
        ..ListOffsetsPartitionResponse::default()
    }
}

impl Pending {
    /// Takes over one partition's answer.
    pub fn set(&mut self, slot: Slot, outcome: Outcome) {
        let version = self.version;
        let answer = &mut self.topics[slot.topic()].partitions[slot.partition()];
        match outcome {
            Outcome::Nothing => {}
            Outcome::Refused(ErrorCode::OffsetNotAvailable) if version < 5 => {
                answer.error_code = ErrorCode::LeaderNotAvailable.code();
            }
            Outcome::Refused(code) => answer.error_code = code.code(),
            Outcome::Found(found) if version == 0 => answer.old_style_offsets = vec![found.offset.get()],
            Outcome::Found(found) => {
                answer.timestamp = found.timestamp.0;
                answer.offset = found.offset.get();
                if version >= 4 {
                    answer.leader_epoch = found.epoch.unwrap_or(LeaderEpoch::NONE).get();
                }
            }
        }
    }

    /// The answer, once every part's result is in.
    pub fn respond(self) -> ListOffsetsResponse {
        ListOffsetsResponse { topics: self.topics, ..ListOffsetsResponse::default() }
    }
}

#[cfg(test)]
mod tests;
