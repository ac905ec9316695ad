//! # ListPartitionReassignments, key 46, version 0
//!
//! Lists the partitions that are being given other replicas.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-455) |
//!
//! ## Left out
//! - An answer about named topics of more than `answer.bytes.max` bytes is refused with INVALID_REQUEST.
//!
//! Source: Kafka 4.4 `ReplicationControlManager.listPartitionReassignments`.

mod large;

use std::collections::BTreeMap;

use barnabas_base::{BrokerId, ErrorCode, PartitionIndex, Set};
use barnabas_metadata::Partition;
use barnabas_wire::Str;
use barnabas_wire::messages::list_partition_reassignments_request::{
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsTopics,
};
use barnabas_wire::messages::list_partition_reassignments_response::{
    ListPartitionReassignmentsResponse, OngoingPartitionReassignment, OngoingTopicReassignment,
};

use crate::{Context, TooLarge};
pub use large::{Large, large};

/// The answer.
pub fn answer(
    request: &ListPartitionReassignmentsRequest,
    ctx: &Context<'_>,
) -> ListPartitionReassignmentsResponse {
    let topics = match &request.topics {
        None => everywhere(ctx),
        Some(wanted) => of_these(wanted, ctx),
    };
    match topics {
        Ok(topics) => ListPartitionReassignmentsResponse {
            topics,
            error_message: None,
            ..ListPartitionReassignmentsResponse::default()
        },
        Err(large) => {
            let refusal = large.refusal(ErrorCode::RequestTimedOut);
            ListPartitionReassignmentsResponse {
                error_code: refusal.code.code(),
                error_message: refusal.text(),
                ..ListPartitionReassignmentsResponse::default()
            }
        }
    }
}

fn everywhere(ctx: &Context<'_>) -> Result<Vec<OngoingTopicReassignment>, TooLarge> {
    let mut topics = Vec::new();
    for topic in ctx.image.topics.iter() {
        let moving = topic.partitions().filter(|(_, partition)| partition.is_reassigning());
        let partitions =
            moving.map(|(index, partition)| counted(index, partition, ctx)).collect::<Result<Vec<_>, _>>()?;
        if !partitions.is_empty() {
            topics.push(of_topic(&topic.name, partitions, ctx)?);
        }
    }
    Ok(topics)
}

fn of_these(
    wanted: &[ListPartitionReassignmentsTopics],
    ctx: &Context<'_>,
) -> Result<Vec<OngoingTopicReassignment>, TooLarge> {
    let mut topics: BTreeMap<&str, Vec<OngoingPartitionReassignment>> = BTreeMap::new();
    let mut seen = Set::default();
    for wanted in wanted {
        let Some(topic) = ctx.image.topics.by_name(&wanted.name) else { continue };
        for &index in &wanted.partition_indexes {
            let index = PartitionIndex(index);
            let Some(partition) = topic.partition(index).filter(|partition| partition.is_reassigning())
            else {
                continue;
            };
            if seen.insert((topic.id, index)) {
                topics.entry(&topic.name).or_default().push(counted(index, partition, ctx)?);
            }
        }
    }
    topics.into_iter().map(|(name, partitions)| of_topic(name, partitions, ctx)).collect()
}

fn of_topic(
    name: &str,
    partitions: Vec<OngoingPartitionReassignment>,
    ctx: &Context<'_>,
) -> Result<OngoingTopicReassignment, TooLarge> {
    ctx.room.take(size_of::<OngoingTopicReassignment>() + 2 * name.len())?;
    let name = Str::from(name);
    Ok(OngoingTopicReassignment { name, partitions, ..OngoingTopicReassignment::default() })
}

fn counted(
    index: PartitionIndex,
    partition: &Partition,
    ctx: &Context<'_>,
) -> Result<OngoingPartitionReassignment, TooLarge> {
    let placement = &partition.placement;
    let ids = partition.replicas().len() + placement.adding.len() + placement.removing.len();
    ctx.room.take(size_of::<OngoingPartitionReassignment>() + ids * 2 * size_of::<i32>())?;
    Ok(ongoing(index, partition))
}

fn ongoing(index: PartitionIndex, partition: &Partition) -> OngoingPartitionReassignment {
    let numbers = |ids: &[BrokerId]| ids.iter().map(|id| id.get()).collect();
    OngoingPartitionReassignment {
        partition_index: index.get(),
        replicas: numbers(partition.replicas()),
        adding_replicas: numbers(&partition.placement.adding),
        removing_replicas: numbers(&partition.placement.removing),
        ..OngoingPartitionReassignment::default()
    }
}

#[cfg(test)]
mod tests;
