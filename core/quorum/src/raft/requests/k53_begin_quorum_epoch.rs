//! # BeginQuorumEpoch, key 53, versions 0–1
//!
//! A new leader tells the voters of itself.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-595) |
//! | 1 | the addressed voter, directory ids, the leader's addresses; flexible (KIP-853) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka `KafkaRaftClient.handleBeginQuorumEpochRequest`.

use barnabas_base::{BrokerId, ErrorCode, LeaderEpoch, Uuid};
use barnabas_wire::Str;
use barnabas_wire::messages::begin_quorum_epoch_request::{LeaderEndpoint, PartitionData, TopicData};
use barnabas_wire::messages::{
    BeginQuorumEpochRequest, BeginQuorumEpochResponse, begin_quorum_epoch_response as response,
};

use super::{Here, TOPIC, head_of, id_or_none, leader_address, nothing, topic};
use crate::raft::message::{BeginEpoch, ReplicaKey, Request, Response};
use crate::voters::VoterEndpoint;

/// # Errors
/// The answer: another cluster's, or not about the metadata log.
pub fn plan(request: &BeginQuorumEpochRequest, here: &Here) -> Result<Request, BeginQuorumEpochResponse> {
    if here.is_other_cluster(request.cluster_id.as_ref()) {
        return Err(refuse(ErrorCode::InconsistentClusterId));
    }
    let partition = partition_of(request).ok_or_else(|| refuse(ErrorCode::InvalidRequest))?;
    let to = ReplicaKey { id: BrokerId(request.voter_id), directory: partition.voter_directory_id };
    let endpoint = |endpoint: &LeaderEndpoint| VoterEndpoint {
        listener: endpoint.name.text(),
        host: endpoint.host.text(),
        port: endpoint.port,
    };
    Ok(Request::BeginEpoch(BeginEpoch {
        to: (request.voter_id >= 0).then_some(to),
        leader: BrokerId(partition.leader_id),
        epoch: LeaderEpoch(partition.leader_epoch),
        endpoints: request.leader_endpoints.iter().map(endpoint).collect(),
    }))
}

fn partition_of(request: &BeginQuorumEpochRequest) -> Option<&PartitionData> {
    let [topic] = request.topics.as_slice() else { return None };
    let [partition] = topic.partitions.as_slice() else { return None };
    (topic.topic_name == *TOPIC && partition.partition_index == 0).then_some(partition)
}

fn refuse(error: ErrorCode) -> BeginQuorumEpochResponse {
    BeginQuorumEpochResponse { error_code: error.code(), ..BeginQuorumEpochResponse::default() }
}

pub fn respond(answer: &Response, here: &Here, version: i16) -> BeginQuorumEpochResponse {
    let head = match answer {
        Response::BeginEpoch(head) => head,
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
    BeginQuorumEpochResponse {
        topics: vec![response::TopicData {
            topic_name: topic(),
            partitions: vec![partition],
            ..response::TopicData::default()
        }],
        node_endpoints: address.map(endpoint).into_iter().collect(),
        ..BeginQuorumEpochResponse::default()
    }
}

pub fn ask(begin: &BeginEpoch, here: &Here, version: i16) -> Option<BeginQuorumEpochRequest> {
    let to = begin.to.filter(|_| version >= 1);
    let endpoint = |endpoint: &VoterEndpoint| LeaderEndpoint {
        name: Str::from(&endpoint.listener),
        host: Str::from(&endpoint.host),
        port: endpoint.port,
        ..LeaderEndpoint::default()
    };
    let endpoints = begin.endpoints.iter().filter(|_| version >= 1).map(endpoint);
    let partition = PartitionData {
        partition_index: 0,
        voter_directory_id: to.map_or(Uuid::ZERO, |to| to.directory),
        leader_id: begin.leader.get(),
        leader_epoch: begin.epoch.get(),
        ..PartitionData::default()
    };
    let topic = TopicData { topic_name: topic(), partitions: vec![partition], ..TopicData::default() };
    Some(BeginQuorumEpochRequest {
        cluster_id: Some(Str::from(&here.cluster_id)),
        voter_id: id_or_none(to.map(|to| to.id)),
        topics: vec![topic],
        leader_endpoints: endpoints.collect(),
        ..BeginQuorumEpochRequest::default()
    })
}

pub fn read(answer: &BeginQuorumEpochResponse, here: &Here) -> Response {
    if answer.error_code != 0 {
        return Response::Refused(ErrorCode::from_code(answer.error_code));
    }
    let partition = answer.topics.first().and_then(|topic| topic.partitions.first());
    let Some(partition) = partition else { return nothing() };
    let nodes = answer.node_endpoints.iter();
    let addresses = nodes.map(|node| (node.node_id, here.endpoint(&node.host, node.port)));
    Response::BeginEpoch(head_of(
        partition.error_code,
        partition.leader_id,
        partition.leader_epoch,
        addresses,
    ))
}
