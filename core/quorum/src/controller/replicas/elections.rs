//! ElectLeaders: preferred and unclean elections on request.
//!
//! Source: KIP-460; Kafka `ReplicationControlManager.electLeaders`.

use barnabas_base::{ErrorCode, PartitionIndex};
use barnabas_wire::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use barnabas_wire::messages::{ElectLeadersRequest, ElectLeadersResponse};
use barnabas_wire::{MetadataRecord, Str};

use crate::controller::impaired::Impairment;
use crate::controller::partition_change::{Election, PartitionChange};
use crate::controller::{Case, Outcome, Refusal, Sentences, error_fields, limits};

const PREFERRED: i8 = 0;
const UNCLEAN: i8 = 1;

pub(crate) fn elect(case: &Case<'_>, request: &ElectLeadersRequest) -> Outcome {
    let election = match request.election_type {
        PREFERRED => Election::Preferred,
        UNCLEAN => Election::Unclean,
        _ => {
            let error_code = ErrorCode::InvalidRequest.code();
            return Outcome::new(
                Vec::new(),
                ElectLeadersResponse { error_code, ..ElectLeadersResponse::default() },
            );
        }
    };
    let named = request.topic_partitions.iter().flatten().map(|topic| topic.partitions.len().max(1)).sum();
    if let Err(refusal) = limits::check_named(case.config, named, "partitions") {
        return Outcome::new(Vec::new(), refuse_all(request, &refusal));
    }
    let mut records = Vec::new();
    let mut sentences = Sentences::default();
    let replica_election_results = match &request.topic_partitions {
        None => everywhere(case, election, &mut records, &mut sentences),
        Some(topics) => topics
            .iter()
            .map(|topic| {
                let mut result = |&index: &i32| {
                    let refusal =
                        one(case, &topic.topic, PartitionIndex(index), election, &mut records).err();
                    partition_result(index, refusal.as_ref(), &mut sentences)
                };
                ReplicaElectionResult {
                    topic: topic.topic.clone(),
                    partition_result: topic.partitions.iter().map(&mut result).collect(),
                    ..ReplicaElectionResult::default()
                }
            })
            .collect(),
    };
    Outcome::new(
        records,
        ElectLeadersResponse { replica_election_results, ..ElectLeadersResponse::default() },
    )
}

/// Kafka has a result for each partition, and a code for the whole from version 1 on. The sentence stands once.
fn refuse_all(request: &ElectLeadersRequest, refusal: &Refusal) -> ElectLeadersResponse {
    let (error_code, error_message) = error_fields(Some(refusal));
    let first = request.topic_partitions.iter().flatten().take(1).map(|topic| ReplicaElectionResult {
        topic: topic.topic.clone(),
        partition_result: topic
            .partitions
            .iter()
            .take(1)
            .map(|&partition_id| PartitionResult {
                partition_id,
                error_code,
                error_message: error_message.clone(),
                ..PartitionResult::default()
            })
            .collect(),
        ..ReplicaElectionResult::default()
    });
    ElectLeadersResponse {
        error_code,
        replica_election_results: first.collect(),
        ..ElectLeadersResponse::default()
    }
}

/// All partitions; those that have the leader they should have are left out of the answer.
fn everywhere(
    case: &Case<'_>,
    election: Election,
    records: &mut Vec<MetadataRecord>,
    sentences: &mut Sentences,
) -> Vec<ReplicaElectionResult> {
    let of_topic = |topic: &std::sync::Arc<barnabas_metadata::Topic>| {
        let mut partition_results = Vec::new();
        for (index, _) in topic.partitions() {
            let refusal = one(case, &topic.name, index, election, records).err();
            if refusal.as_ref().is_none_or(|refusal| refusal.code != ErrorCode::ElectionNotNeeded) {
                partition_results.push(partition_result(index.get(), refusal.as_ref(), sentences));
            }
        }
        ReplicaElectionResult {
            topic: Str::from(&topic.name),
            partition_result: partition_results,
            ..ReplicaElectionResult::default()
        }
    };
    case.image.topics.iter().map(of_topic).collect()
}

fn one(
    case: &Case<'_>,
    topic: &str,
    index: PartitionIndex,
    election: Election,
    records: &mut Vec<MetadataRecord>,
) -> Result<(), Refusal> {
    let unknown = |what: String| Refusal::new(ErrorCode::UnknownTopicOrPartition, what);
    let topic =
        case.image.topics.by_name(topic).ok_or_else(|| unknown(format!("No such topic as {topic}")))?;
    let partition = topic
        .partition(index)
        .ok_or_else(|| unknown(format!("No such partition as {}-{index}", topic.name)))?;
    let settled = match election {
        Election::Preferred => partition.leader == partition.preferred_leader(),
        Election::Online | Election::Unimpaired | Election::Unclean => partition.leader.get() >= 0,
    };
    if settled {
        return Err(Refusal::new(
            ErrorCode::ElectionNotNeeded,
            "the partition has the leader it should have",
        ));
    }
    // Of all partitions of the cluster very many may need one: the others at the next request.
    limits::check_named(case.config, records.len() + 1, "elections")?;
    let mut change = PartitionChange::new(case.electorate(), topic, index, partition);
    change.election = election;
    if election == Election::Unclean {
        change.start_empty_if_lost();
    }
    let why = match change.preferred_impairment() {
        Impairment::Nothing => "no replica that may lead is alive",
        Impairment::NoRoom | Impairment::Full => {
            "the preferred replica's log directory has no room for producers, and a replica with room leads"
        }
        Impairment::Damage => "the preferred replica is damaged, and another one leads",
    };
    let Some(record) = change.build() else {
        return Err(match election {
            Election::Preferred => Refusal::new(ErrorCode::PreferredLeaderNotAvailable, why),
            _ => Refusal::new(ErrorCode::EligibleLeadersNotAvailable, "no replica that may lead is alive"),
        });
    };
    records.push(record.into());
    Ok(())
}

fn partition_result(
    partition_id: i32,
    refusal: Option<&Refusal>,
    sentences: &mut Sentences,
) -> PartitionResult {
    let (error_code, error_message) = sentences.fields(refusal);
    PartitionResult { partition_id, error_code, error_message, ..PartitionResult::default() }
}
