//! # AlterPartitionReassignments, key 45, versions 0–1
//!
//! Gives partitions other replicas, or calls that off. The tool that moves partitions between log directories asks for it first, with the
//! replicas that they have.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-455) |
//! | 1 | the number of replicas may be held fixed (KIP-860) |
//!
//! ## Left out
//! - Other replicas than a partition has: there is one broker, so that there are none. Such a wish is refused as Kafka refuses brokers
//!   that it does not know.
//!
//! Source: Kafka 4.4 `ReplicationControlManager.alterPartitionReassignments`, `changePartitionReassignment`.

use barnabas_base::{ErrorCode, PartitionIndex, check_topic_name};
use barnabas_metadata::Partition;
use barnabas_wire::Str;
use barnabas_wire::messages::alter_partition_reassignments_request::{
    AlterPartitionReassignmentsRequest, ReassignablePartition,
};
use barnabas_wire::messages::alter_partition_reassignments_response::{
    AlterPartitionReassignmentsResponse, ReassignablePartitionResponse, ReassignableTopicResponse,
};

use crate::{Context, Refusal};

/// The answer: nobody else has to be asked, as nothing can change.
pub fn answer(
    request: AlterPartitionReassignmentsRequest,
    ctx: &Context<'_>,
) -> AlterPartitionReassignmentsResponse {
    let allow_replication_factor_change = request.allow_replication_factor_change;
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|asked| {
            let refusal = reassign(&topic.name, asked, ctx).err();
            ReassignablePartitionResponse {
                partition_index: asked.partition_index,
                error_code: refusal.as_ref().map_or(0, |refusal| refusal.code.code()),
                error_message: refusal.as_ref().and_then(Refusal::text),
                ..ReassignablePartitionResponse::default()
            }
        });
        let partitions = partitions.collect();
        ReassignableTopicResponse { name: topic.name, partitions, ..ReassignableTopicResponse::default() }
    });
    AlterPartitionReassignmentsResponse {
        responses: topics.collect(),
        allow_replication_factor_change,
        error_message: None,
        ..AlterPartitionReassignmentsResponse::default()
    }
}

fn reassign(topic: &Str, asked: &ReassignablePartition, ctx: &Context<'_>) -> Result<(), Refusal> {
    let known = check_topic_name(topic).ok().and_then(|()| ctx.image.topics.by_name(topic));
    let unknown = |message: String| Refusal::new(ErrorCode::UnknownTopicOrPartition, message);
    let known =
        known.ok_or_else(|| unknown(format!("Unable to find a topic named {topic}.", topic = &**topic)))?;
    let index = asked.partition_index;
    let partition = known.partition(PartitionIndex(index));
    let partition =
        partition.ok_or_else(|| unknown(format!("Unable to find partition {}:{index}.", &**topic)))?;
    match &asked.replicas {
        None if partition.is_reassigning() => {
            Err(Refusal::new(ErrorCode::InvalidRequest, "a reassignment cannot be called off here"))
        }
        None => Err(ErrorCode::NoReassignmentInProgress.into()),
        Some(replicas) => check_replicas(partition, replicas, ctx),
    }
}

fn check_replicas(partition: &Partition, replicas: &[i32], ctx: &Context<'_>) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
    if replicas.is_empty() {
        return refuse("The manual partition assignment includes an empty replica list.".into());
    }
    let mut sorted = replicas.to_vec();
    sorted.sort_unstable();
    for (at, &id) in sorted.iter().enumerate() {
        if ctx.image.cluster.broker(id.into()).is_none() {
            return refuse(format!(
                "The manual partition assignment includes broker {id}, but no such broker is registered."
            ));
        }
        if at > 0 && sorted[at - 1] == id {
            return refuse(format!(
                "The manual partition assignment includes the broker {id} more than once."
            ));
        }
    }
    let is_same = partition.replicas().iter().map(|id| id.get()).eq(replicas.iter().copied());
    if is_same { Ok(()) } else { refuse("this version cannot give a partition other replicas".into()) }
}

#[cfg(test)]
mod tests;
