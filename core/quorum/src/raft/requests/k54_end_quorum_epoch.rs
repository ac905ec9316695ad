//! # EndQuorumEpoch, key 54, versions 0–1
//!
//! A leader that stops leading tells the voters, and names those that should be next.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-595) |
//! | 1 | successors with directory ids, the leader's addresses; flexible (KIP-853) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka `KafkaRaftClient.handleEndQuorumEpochRequest`, `EndQuorumEpochRequest.preferredCandidates`.

use barnabas_base::{BrokerId, DirectoryId, ErrorCode, LeaderEpoch};
use barnabas_wire::Str;
use barnabas_wire::messages::end_quorum_epoch_request::{
    LeaderEndpoint, PartitionData, ReplicaInfo, TopicData,
};
use barnabas_wire::messages::{
    EndQuorumEpochRequest, EndQuorumEpochResponse, end_quorum_epoch_response as response,
};

use super::{Here, TOPIC, head_of, id_or_none, leader_address, nothing, topic};
use crate::raft::message::{EndEpoch, ReplicaKey, Request, Response};
use crate::voters::VoterEndpoint;

/// # Errors
/// The answer: another cluster's, or not about the metadata log.
pub fn plan(request: &EndQuorumEpochRequest, here: &Here) -> Result<Request, EndQuorumEpochResponse> {
    if here.is_other_cluster(request.cluster_id.as_ref()) {
        return Err(refuse(ErrorCode::InconsistentClusterId));
    }
    let partition = partition_of(request).ok_or_else(|| refuse(ErrorCode::InvalidRequest))?;
    let endpoint = |endpoint: &LeaderEndpoint| VoterEndpoint {
        listener: endpoint.name.text(),
        host: endpoint.host.text(),
        port: endpoint.port,
    };
    Ok(Request::EndEpoch(EndEpoch {
        leader: BrokerId(partition.leader_id),
        epoch: LeaderEpoch(partition.leader_epoch),
        successors: successors(partition),
        endpoints: request.leader_endpoints.iter().map(endpoint).collect(),
    }))
}

fn successors(partition: &PartitionData) -> Vec<ReplicaKey> {
    let of_v0 = partition.preferred_successors.iter();
    let of_v0 = of_v0.map(|&id| ReplicaKey { id: BrokerId(id), directory: DirectoryId::ZERO });
    let of_v1 = partition.preferred_candidates.iter().map(|candidate| ReplicaKey {
        id: BrokerId(candidate.candidate_id),
        directory: candidate.candidate_directory_id,
    });
    if partition.preferred_candidates.is_empty() { of_v0.collect() } else { of_v1.collect() }
}

fn partition_of(request: &EndQuorumEpochRequest) -> Option<&PartitionData> {
    let [topic] = request.topics.as_slice() else { return None };
    let [partition] = topic.partitions.as_slice() else { return None };
    (topic.topic_name == *TOPIC && partition.partition_index == 0).then_some(partition)
}

fn refuse(error: ErrorCode) -> EndQuorumEpochResponse {
    EndQuorumEpochResponse { error_code: error.code(), ..EndQuorumEpochResponse::default() }
}

pub fn respond(answer: &Response, here: &Here, version: i16) -> EndQuorumEpochResponse {
    let head = match answer {
        Response::EndEpoch(head) => head,
        Response::Refused(error) => return refuse(*error),
        _ => return refuse(ErrorCode::UnknownServerError),
    };
    let partition = response::PartitionData {
        partition_index: 0,
        error_code: head.error.code(),
        leader_id: id_or_none(head.leader),
        leader_epoch: head.epoch.get(),
        ..response::PartitionData::default()
    };
    let address = leader_address(head, here).filter(|_| version >= 1);
    let endpoint = |(node_id, host, port): (i32, Str, u16)| response::NodeEndpoint {
        node_id,
        host,
        port,
        ..response::NodeEndpoint::default()
    };
    EndQuorumEpochResponse {
        topics: vec![response::TopicData {
            topic_name: topic(),
            partitions: vec![partition],
            ..response::TopicData::default()
        }],
        node_endpoints: address.map(endpoint).into_iter().collect(),
        ..EndQuorumEpochResponse::default()
    }
}

pub fn ask(end: &EndEpoch, here: &Here, version: i16) -> Option<EndQuorumEpochRequest> {
    let endpoint = |endpoint: &VoterEndpoint| LeaderEndpoint {
        name: Str::from(&endpoint.listener),
        host: Str::from(&endpoint.host),
        port: endpoint.port,
        ..LeaderEndpoint::default()
    };
    let candidate = |key: &ReplicaKey| ReplicaInfo {
        candidate_id: key.id.get(),
        candidate_directory_id: key.directory,
        ..ReplicaInfo::default()
    };
    let is_v1 = version >= 1;
    let partition = PartitionData {
        partition_index: 0,
        leader_id: end.leader.get(),
        leader_epoch: end.epoch.get(),
        preferred_successors: end.successors.iter().filter(|_| !is_v1).map(|key| key.id.get()).collect(),
        preferred_candidates: end.successors.iter().filter(|_| is_v1).map(candidate).collect(),
        ..PartitionData::default()
    };
    let topic = TopicData { topic_name: topic(), partitions: vec![partition], ..TopicData::default() };
    Some(EndQuorumEpochRequest {
        cluster_id: Some(Str::from(&here.cluster_id)),
        topics: vec![topic],
        leader_endpoints: end.endpoints.iter().filter(|_| is_v1).map(endpoint).collect(),
        ..EndQuorumEpochRequest::default()
    })
}

pub fn read(answer: &EndQuorumEpochResponse, here: &Here) -> Response {
    if answer.error_code != 0 {
        return Response::Refused(ErrorCode::from_code(answer.error_code));
    }
    let partition = answer.topics.first().and_then(|topic| topic.partitions.first());
    let Some(partition) = partition else { return nothing() };
    let nodes = answer.node_endpoints.iter();
    let addresses = nodes.map(|node| (node.node_id, here.endpoint(&node.host, node.port)));
    Response::EndEpoch(head_of(partition.error_code, partition.leader_id, partition.leader_epoch, addresses))
}
