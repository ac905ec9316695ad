//! # AlterReplicaLogDirs, key 34, versions 0–2
//!
//! Moves partitions of this broker from one of its log directories to another, while they are read and written.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-113) |
//! | 1 | throttling by the client (KIP-219) |
//! | 2 | flexible (KIP-482) |
//!
//! ## Left out
//! - Nothing.
//!
//! A partition that is not here is refused, and begins in the directory that was named once it is made. Naming the
//! directory that a partition lies in ends a move of it.
//!
//! Source: Kafka 4.4 `KafkaApis.handleAlterReplicaLogDirsRequest`, `ReplicaManager.alterReplicaLogDirs`; KIP-1066 for
//! cordoned directories.

use std::collections::BTreeMap;

use barnabas_base::{ErrorCode, PartitionIndex, TopicId, TopicPartition};
use barnabas_wire::Str;
use barnabas_wire::messages::AlterReplicaLogDirsRequest;
use barnabas_wire::messages::alter_replica_log_dirs_response::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult, AlterReplicaLogDirsResponse,
};

use crate::{Context, Slot};

/// One of this broker's log directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Directory {
    pub is_online: bool,
    pub is_cordoned: bool,
}

#[derive(Debug)]
pub struct Work {
    pub parts: Vec<Part>,
    /// Partitions that are not here, and the directory (by its place) in which they shall begin.
    pub preferred: Vec<(TopicPartition, usize)>,
    pub pending: Pending,
}

/// One partition to move, or to leave where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub slot: Slot,
    pub topic: TopicId,
    pub partition: TopicPartition,
    /// By its place among the directories.
    pub directory: usize,
}

/// The answer as far as it is known.
#[derive(Debug)]
pub struct Pending {
    topics: Vec<AlterReplicaLogDirTopicResult>,
}

/// Splits a request by partition, after the checks that need no partition.
///
/// `named` finds the directory of a path. `is_too_long`: a copy in the making would have too long a name.
pub fn plan(
    request: AlterReplicaLogDirsRequest,
    directories: &[Directory],
    named: impl Fn(&str) -> Option<usize>,
    is_too_long: impl Fn(&TopicPartition) -> bool,
    ctx: &Context<'_>,
) -> Work {
    // A partition that is named twice goes to the directory that is named last, as in Kafka's map.
    let mut wanted: BTreeMap<Str, BTreeMap<i32, Option<usize>>> = BTreeMap::new();
    for dir in request.dirs {
        let place = named(&dir.path);
        for topic in dir.topics {
            let partitions = wanted.entry(topic.name).or_default();
            partitions.extend(topic.partitions.into_iter().map(|partition| (partition, place)));
        }
    }
    let mut work = Work { parts: Vec::new(), preferred: Vec::new(), pending: Pending { topics: Vec::new() } };
    for (at, (topic, partitions)) in wanted.into_iter().enumerate() {
        let mut results = Vec::with_capacity(partitions.len());
        for (place, (index, directory)) in partitions.into_iter().enumerate() {
            let partition = TopicPartition { topic: topic.text(), partition: PartitionIndex(index) };
            let checked = check(&partition, directory, directories, &is_too_long);
            let code = match checked.map(|directory| (directory, here(&partition, ctx))) {
                Err(code) => code,
                Ok((directory, Ok(topic))) => {
                    work.parts.push(Part { slot: Slot::new(at, place), topic, partition, directory });
                    ErrorCode::None
                }
                Ok((directory, Err(code))) => {
                    work.preferred.push((partition, directory));
                    code
                }
            };
            results.push(AlterReplicaLogDirPartitionResult {
                partition_index: index,
                error_code: code.code(),
                ..AlterReplicaLogDirPartitionResult::default()
            });
        }
        work.pending.topics.push(AlterReplicaLogDirTopicResult {
            topic_name: topic,
            partitions: results,
            ..AlterReplicaLogDirTopicResult::default()
        });
    }
    work
}

fn check(
    partition: &TopicPartition,
    directory: Option<usize>,
    directories: &[Directory],
    is_too_long: &impl Fn(&TopicPartition) -> bool,
) -> Result<usize, ErrorCode> {
    if is_too_long(partition) {
        return Err(ErrorCode::InvalidTopicException);
    }
    let place = directory.ok_or(ErrorCode::LogDirNotFound)?;
    match directories.get(place) {
        None => Err(ErrorCode::LogDirNotFound),
        Some(directory) if !directory.is_online => Err(ErrorCode::KafkaStorageError),
        Some(directory) if directory.is_cordoned => Err(ErrorCode::InvalidReplicaAssignment),
        Some(_) => Ok(place),
    }
}

/// The partition's topic, if this node holds a replica of it.
///
/// # Errors
/// UNKNOWN_TOPIC_OR_PARTITION; REPLICA_NOT_AVAILABLE for a partition of other brokers, which Kafka keeps from the time
/// before NOT_LEADER_OR_FOLLOWER.
fn here(partition: &TopicPartition, ctx: &Context<'_>) -> Result<TopicId, ErrorCode> {
    let (topic, state) = ctx.known_partition(&partition.topic, partition.partition)?;
    if state.has_replica(ctx.node) { Ok(topic.id) } else { Err(ErrorCode::ReplicaNotAvailable) }
}

impl Pending {
    /// What became of one partition that was to be moved.
    pub fn refuse(&mut self, slot: Slot, code: ErrorCode) {
        self.topics[slot.topic()].partitions[slot.partition()].error_code = code.code();
    }

    pub fn respond(self) -> AlterReplicaLogDirsResponse {
        AlterReplicaLogDirsResponse { results: self.topics, ..AlterReplicaLogDirsResponse::default() }
    }
}

#[cfg(test)]
mod tests;
