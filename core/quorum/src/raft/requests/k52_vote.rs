//! # Vote, key 52, versions 0–2
//!
//! Asks a member for its vote, or whether it would give it.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-595) |
//! | 1 | who is asked, directory ids, the leader's address (KIP-853) |
//! | 2 | pre-votes (KIP-996) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka `KafkaRaftClient.handleVoteRequest`, `RaftUtil.singletonVoteRequest`.

use barnabas_base::{BrokerId, ErrorCode, LeaderEpoch, Offset, Uuid};
use barnabas_wire::Str;
use barnabas_wire::messages::vote_request::{PartitionData, TopicData};
use barnabas_wire::messages::{VoteRequest, VoteResponse, vote_response};

use super::{Here, TOPIC, head_of, id_or_none, leader_address, nothing, topic};
use crate::raft::message::{OffsetAndEpoch, ReplicaKey, Request, Response, Vote};

/// # Errors
/// The answer: another cluster's, or not about the metadata log.
pub fn plan(request: &VoteRequest, here: &Here) -> Result<Request, VoteResponse> {
    if here.is_other_cluster(request.cluster_id.as_ref()) {
        return Err(refuse(ErrorCode::InconsistentClusterId));
    }
    let partition = partition_of(request).ok_or_else(|| refuse(ErrorCode::InvalidRequest))?;
    let to = ReplicaKey { id: BrokerId(request.voter_id), directory: partition.voter_directory_id };
    let candidate =
        ReplicaKey { id: BrokerId(partition.replica_id), directory: partition.replica_directory_id };
    let last = OffsetAndEpoch {
        offset: Offset(partition.last_offset),
        epoch: LeaderEpoch(partition.last_offset_epoch),
    };
    Ok(Request::Vote(Vote {
        to: (request.voter_id >= 0).then_some(to),
        candidate,
        epoch: LeaderEpoch(partition.replica_epoch),
        last,
        pre_vote: partition.pre_vote,
    }))
}

fn partition_of(request: &VoteRequest) -> Option<&PartitionData> {
    let [topic] = request.topics.as_slice() else { return None };
    let [partition] = topic.partitions.as_slice() else { return None };
    (topic.topic_name == *TOPIC && partition.partition_index == 0).then_some(partition)
}

fn refuse(error: ErrorCode) -> VoteResponse {
    VoteResponse { error_code: error.code(), ..VoteResponse::default() }
}

pub fn respond(response: &Response, here: &Here, version: i16) -> VoteResponse {
    let (head, granted) = match response {
        Response::Vote { head, granted } => (head, *granted),
        Response::Refused(error) => return refuse(*error),
        _ => return refuse(ErrorCode::UnknownServerError),
    };
    let partition = vote_response::PartitionData {
        partition_index: 0,
        error_code: head.error.code(),
        leader_id: id_or_none(head.leader),
        leader_epoch: head.epoch.get(),
        vote_granted: granted,
        ..vote_response::PartitionData::default()
    };
    let address = leader_address(head, here).filter(|_| version >= 1);
    let endpoint = |(node_id, host, port): (i32, Str, u16)| vote_response::NodeEndpoint {
        node_id,
        host,
        port,
        ..vote_response::NodeEndpoint::default()
    };
    VoteResponse {
        topics: vec![vote_response::TopicData {
            topic_name: topic(),
            partitions: vec![partition],
            ..vote_response::TopicData::default()
        }],
        node_endpoints: address.map(endpoint).into_iter().collect(),
        ..VoteResponse::default()
    }
}

pub fn ask(vote: &Vote, here: &Here, version: i16) -> Option<VoteRequest> {
    if vote.pre_vote && version < 2 {
        return None;
    }
    let to = vote.to.filter(|_| version >= 1);
    let directory = |id: Uuid| if version >= 1 { id } else { Uuid::ZERO };
    let partition = PartitionData {
        partition_index: 0,
        replica_epoch: vote.epoch.get(),
        replica_id: vote.candidate.id.get(),
        replica_directory_id: directory(vote.candidate.directory),
        voter_directory_id: to.map_or(Uuid::ZERO, |to| to.directory),
        last_offset_epoch: vote.last.epoch.get(),
        last_offset: vote.last.offset.get(),
        pre_vote: vote.pre_vote,
        ..PartitionData::default()
    };
    let topic = TopicData { topic_name: topic(), partitions: vec![partition], ..TopicData::default() };
    Some(VoteRequest {
        cluster_id: Some(Str::from(&here.cluster_id)),
        voter_id: id_or_none(to.map(|to| to.id)),
        topics: vec![topic],
        ..VoteRequest::default()
    })
}

pub fn read(response: &VoteResponse, here: &Here) -> Response {
    if response.error_code != 0 {
        return Response::Refused(ErrorCode::from_code(response.error_code));
    }
    let partition = response.topics.first().and_then(|topic| topic.partitions.first());
    let Some(partition) = partition else { return nothing() };
    let nodes = response.node_endpoints.iter();
    let addresses = nodes.map(|node| (node.node_id, here.endpoint(&node.host, node.port)));
    let head = head_of(partition.error_code, partition.leader_id, partition.leader_epoch, addresses);
    Response::Vote { head, granted: partition.vote_granted }
}
