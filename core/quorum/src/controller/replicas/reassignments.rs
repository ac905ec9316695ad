//! AlterPartitionReassignments: other replicas for a partition, in two steps, or the way back.
//!
//! First the new replicas are added to the old ones, as adding replicas. When all of them are in the ISR (the
//! leader's AlterPartition says so, [`crate::controller::partition_change`] sees it), the removing replicas go. A
//! reassignment that only changes the order, or removes replicas while others are in sync, completes at once.
//! Leadership moves first: to a staying replica as soon as the reassignment begins, else to the first new one in the
//! ISR (Kafka: at the end).
//!
//! Source: KIP-455, KIP-860; Kafka `ReplicationControlManager.alterPartitionReassignments`,
//! `PartitionReassignmentReplicas`, `PartitionReassignmentRevert`.

use barnabas_base::{BrokerId, ErrorCode, PartitionIndex};
use barnabas_metadata::{Partition, Topic};
use barnabas_wire::MetadataRecord;
use barnabas_wire::messages::alter_partition_reassignments_request::ReassignablePartition as Asked;
use barnabas_wire::messages::alter_partition_reassignments_response::{
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use barnabas_wire::messages::{AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse};

use crate::controller::partition_change::{Election, PartitionChange};
use crate::controller::topics::create_topics::check_assignment;
use crate::controller::{Case, Outcome, Refusal, Sentences, error_fields, limits};

pub(crate) fn alter(case: &Case<'_>, request: &AlterPartitionReassignmentsRequest) -> Outcome {
    let may_resize = request.allow_replication_factor_change;
    let named: usize = request.topics.iter().map(|topic| topic.partitions.len()).sum();
    if let Err(refusal) = limits::check_named(case.config, named, "partitions") {
        return Outcome::new(Vec::new(), refused(may_resize, &refusal));
    }
    let mut records = Vec::new();
    let mut sentences = Sentences::default();
    let topics = request.topics.iter().map(|asked| {
        let partitions = asked.partitions.iter().map(|partition| {
            let altered = alter_one(case, &asked.name, partition, may_resize);
            let (error_code, error_message) = sentences.fields(altered.as_ref().err());
            records.extend(altered.ok().flatten());
            ReassignablePartitionResponse {
                partition_index: partition.partition_index,
                error_code,
                error_message,
                ..ReassignablePartitionResponse::default()
            }
        });
        let partitions = partitions.collect();
        ReassignableTopicResponse {
            name: asked.name.clone(),
            partitions,
            ..ReassignableTopicResponse::default()
        }
    });
    let response = AlterPartitionReassignmentsResponse {
        responses: topics.collect(),
        allow_replication_factor_change: may_resize,
        error_message: None,
        ..AlterPartitionReassignmentsResponse::default()
    };
    Outcome::atomic(records, response, move |why| {
        refused(may_resize, &Refusal::new(ErrorCode::PolicyViolation, why)).into()
    })
}

fn refused(allow_replication_factor_change: bool, refusal: &Refusal) -> AlterPartitionReassignmentsResponse {
    let (error_code, error_message) = error_fields(Some(refusal));
    AlterPartitionReassignmentsResponse {
        error_code,
        error_message,
        allow_replication_factor_change,
        ..AlterPartitionReassignmentsResponse::default()
    }
}

fn alter_one(
    case: &Case<'_>,
    name: &str,
    asked: &Asked,
    may_resize: bool,
) -> Result<Option<MetadataRecord>, Refusal> {
    let unknown = |message: String| Refusal::new(ErrorCode::UnknownTopicOrPartition, message);
    let topic = case.image.topics.by_name(name);
    let topic = topic.ok_or_else(|| unknown(format!("Unable to find a topic named {name}.")))?;
    let index = PartitionIndex(asked.partition_index);
    let partition = topic.partition(index);
    let partition = partition.ok_or_else(|| unknown(format!("Unable to find partition {name}:{index}.")))?;
    let change = PartitionChange::new(case.electorate(), topic, index, partition);
    let change = match &asked.replicas {
        None => cancel(change, topic, index, partition)?,
        Some(replicas) => {
            let target = check_assignment(case.image, index.get(), replicas, None)?;
            if !may_resize {
                check_size(partition, target.len())?;
            }
            reassign(change, partition, target)
        }
    };
    Ok(change.build().map(MetadataRecord::from))
}

/// The replicas that a partition had before its reassignment, or would have after it, are as many as it is to have.
fn check_size(partition: &Partition, target: usize) -> Result<(), Refusal> {
    let stays = |replica: &&BrokerId| !partition.placement.removing.contains(replica);
    let current = partition.replicas().iter().filter(stays).count();
    if current == target {
        return Ok(());
    }
    let message = format!("The replication factor is changed from {current} to {target}");
    Err(Refusal::new(ErrorCode::InvalidReplicationFactor, message))
}

/// The target's replicas, then those that go.
fn reassign<'a>(
    mut change: PartitionChange<'a>,
    partition: &Partition,
    target: Vec<BrokerId>,
) -> PartitionChange<'a> {
    let current = partition.replicas();
    let mut removing: Vec<BrokerId> = current.iter().copied().filter(|id| !target.contains(id)).collect();
    let mut adding: Vec<BrokerId> = target.iter().copied().filter(|id| !current.contains(id)).collect();
    removing.sort_unstable();
    adding.sort_unstable();
    change.target_replicas = target;
    change.target_replicas.extend(&removing);
    // If the request adds and removes no replica, Kafka leaves a reassignment in progress as it is.
    if !removing.is_empty() {
        change.removing = removing;
    }
    if !adding.is_empty() {
        change.adding = adding;
    }
    // Others lead if they must, but not at the price of records: the old replicas are still there.
    change.election = Election::Online;
    change
}

/// Adding replicas go, removing replicas stay.
fn cancel<'a>(
    mut change: PartitionChange<'a>,
    topic: &Topic,
    index: PartitionIndex,
    partition: &Partition,
) -> Result<PartitionChange<'a>, Refusal> {
    if !partition.is_reassigning() {
        let message = "No partition reassignment is in progress.";
        return Err(Refusal::new(ErrorCode::NoReassignmentInProgress, message));
    }
    let adding = &partition.placement.adding;
    let stays = |id: &BrokerId| !adding.contains(id);
    change.target_replicas = partition.replicas().iter().copied().filter(stays).collect();
    change.target_isr = partition.isr().iter().copied().filter(stays).collect();
    if change.target_isr.is_empty() {
        let Some(&first) = change.target_replicas.first() else {
            let message = "Invalid replica assignment: addingReplicas contains all replicas.";
            return Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
        };
        if change.election != Election::Unclean {
            let message = format!(
                "Unable to revert partition assignment for {}:{index} because it would require an unclean leader \
                 election.",
                topic.name
            );
            return Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
        }
        change.target_isr = vec![first];
    }
    change.removing.clear();
    change.adding.clear();
    Ok(change)
}
