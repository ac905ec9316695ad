//! # ListPartitionReassignments, key 46, version 0
//!
//! Lists the partitions that are being given other replicas.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-455) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `ReplicationControlManager.listPartitionReassignments`.

use std::collections::BTreeMap;

use barnabas_base::{BrokerId, PartitionIndex, Set};
use barnabas_metadata::Partition;
use barnabas_wire::Str;
use barnabas_wire::messages::list_partition_reassignments_request::ListPartitionReassignmentsRequest;
use barnabas_wire::messages::list_partition_reassignments_response::{
    ListPartitionReassignmentsResponse, OngoingPartitionReassignment, OngoingTopicReassignment,
};

use crate::Context;

/// The answer.
pub fn answer(
    request: ListPartitionReassignmentsRequest,
    ctx: &Context<'_>,
) -> ListPartitionReassignmentsResponse {
    let mut topics: BTreeMap<String, Vec<OngoingPartitionReassignment>> = BTreeMap::new();
    let mut add = |name: &str, index: PartitionIndex, partition: &Partition| {
        if partition.is_reassigning() {
            topics.entry(name.to_owned()).or_default().push(ongoing(index, partition));
        }
    };
    match &request.topics {
        None => {
            for topic in ctx.image.topics.iter() {
                topic.partitions().for_each(|(index, partition)| add(&topic.name, index, partition));
            }
        }
        Some(wanted) => {
            let mut seen = Set::default();
            for wanted in wanted {
                for &index in &wanted.partition_indexes {
                    if !seen.insert((wanted.name.as_str(), index)) {
                        continue;
                    }
                    let index = PartitionIndex(index);
                    if let Some(partition) = ctx.image.topics.partition(&wanted.name, index) {
                        add(&wanted.name, index, partition);
                    }
                }
            }
        }
    }
    let topics = topics.into_iter().map(|(name, partitions)| OngoingTopicReassignment {
        name: Str::from(name),
        partitions,
        ..OngoingTopicReassignment::default()
    });
    ListPartitionReassignmentsResponse {
        topics: topics.collect(),
        error_message: None,
        ..ListPartitionReassignmentsResponse::default()
    }
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
