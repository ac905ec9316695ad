//! # FetchSnapshot, key 59, versions 0–1
//!
//! Reads a piece of a metadata snapshot from the leader.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-630) |
//! | 1 | the replica's directory, the leader's address (KIP-853) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka `KafkaRaftClient.handleFetchSnapshotRequest`, `RaftUtil.singletonFetchSnapshotRequest`.

use barnabas_base::{BrokerId, ErrorCode, LeaderEpoch, Offset, Uuid};
use barnabas_wire::Str;
use barnabas_wire::messages::fetch_snapshot_request::{
    PartitionSnapshot, SnapshotId as SnapshotField, TopicSnapshot,
};
use barnabas_wire::messages::{
    FetchSnapshotRequest, FetchSnapshotResponse, fetch_snapshot_response as response,
};

use super::{Here, TOPIC, head_of, id_or_none, leader_address, nothing, topic};
use crate::raft::message::{FetchSnapshot, ReplicaKey, Request, Response, SnapshotFetched};
use crate::snapshot_id::SnapshotId;

/// # Errors
/// The answer: another cluster's, or not about the metadata log.
pub fn plan(request: &FetchSnapshotRequest, here: &Here) -> Result<Request, FetchSnapshotResponse> {
    if here.is_other_cluster(request.cluster_id.as_ref()) {
        return Err(refuse(ErrorCode::InconsistentClusterId));
    }
    let [topic] = request.topics.as_slice() else { return Err(refuse(ErrorCode::InvalidRequest)) };
    let [partition] = topic.partitions.as_slice() else { return Err(refuse(ErrorCode::InvalidRequest)) };
    if topic.name != *TOPIC || partition.partition != 0 {
        return Err(unknown(topic, partition));
    }
    let SnapshotField { end_offset, epoch, .. } = partition.snapshot_id;
    Ok(Request::FetchSnapshot(FetchSnapshot {
        replica: ReplicaKey { id: BrokerId(request.replica_id), directory: partition.replica_directory_id },
        epoch: LeaderEpoch(partition.current_leader_epoch),
        id: SnapshotId { end: Offset(end_offset), epoch: LeaderEpoch(epoch) },
        position: partition.position,
        bytes_max: request.max_bytes,
    }))
}

fn refuse(error: ErrorCode) -> FetchSnapshotResponse {
    FetchSnapshotResponse { error_code: error.code(), ..FetchSnapshotResponse::default() }
}

fn unknown(topic: &TopicSnapshot, partition: &PartitionSnapshot) -> FetchSnapshotResponse {
    let partition = response::PartitionSnapshot {
        index: partition.partition,
        error_code: ErrorCode::UnknownTopicOrPartition.code(),
        ..response::PartitionSnapshot::default()
    };
    of_partition(topic.name.clone(), partition)
}

fn of_partition(name: Str, partition: response::PartitionSnapshot) -> FetchSnapshotResponse {
    let topic =
        response::TopicSnapshot { name, partitions: vec![partition], ..response::TopicSnapshot::default() };
    FetchSnapshotResponse { topics: vec![topic], ..FetchSnapshotResponse::default() }
}

pub fn respond(answer: Response, here: &Here, version: i16) -> FetchSnapshotResponse {
    let fetched = match answer {
        Response::FetchSnapshot(fetched) => fetched,
        Response::Refused(error) => return refuse(error),
        _ => return refuse(ErrorCode::UnknownServerError),
    };
    let SnapshotFetched { head, id, size, position, bytes } = fetched;
    let mut partition = response::PartitionSnapshot {
        index: 0,
        error_code: head.error.code(),
        current_leader: response::LeaderIdAndEpoch {
            leader_id: id_or_none(head.leader),
            leader_epoch: head.epoch.get(),
            ..response::LeaderIdAndEpoch::default()
        },
        unaligned_records: Some(bytes),
        ..response::PartitionSnapshot::default()
    };
    if head.error == ErrorCode::None {
        let SnapshotId { end, epoch } = id;
        partition.snapshot_id = response::SnapshotId {
            end_offset: end.get(),
            epoch: epoch.get(),
            ..response::SnapshotId::default()
        };
        partition.size = size;
        partition.position = position;
    }
    let address = leader_address(&head, here).filter(|_| version >= 1);
    let endpoint = |(node_id, host, port): (i32, Str, u16)| response::NodeEndpoint {
        node_id,
        host,
        port,
        ..response::NodeEndpoint::default()
    };
    let mut answer = of_partition(topic(), partition);
    answer.node_endpoints = address.map(endpoint).into_iter().collect();
    answer
}

pub fn ask(fetch: &FetchSnapshot, here: &Here, version: i16) -> Option<FetchSnapshotRequest> {
    let SnapshotId { end, epoch } = fetch.id;
    let partition = PartitionSnapshot {
        partition: 0,
        current_leader_epoch: fetch.epoch.get(),
        snapshot_id: SnapshotField { end_offset: end.get(), epoch: epoch.get(), ..SnapshotField::default() },
        position: fetch.position,
        replica_directory_id: if version >= 1 { fetch.replica.directory } else { Uuid::ZERO },
        ..PartitionSnapshot::default()
    };
    let topic = TopicSnapshot { name: topic(), partitions: vec![partition], ..TopicSnapshot::default() };
    Some(FetchSnapshotRequest {
        cluster_id: Some(Str::from(&here.cluster_id)),
        replica_id: fetch.replica.id.get(),
        max_bytes: fetch.bytes_max,
        topics: vec![topic],
        ..FetchSnapshotRequest::default()
    })
}

pub fn read(answer: &FetchSnapshotResponse, here: &Here) -> Response {
    if answer.error_code != 0 {
        return Response::Refused(ErrorCode::from_code(answer.error_code));
    }
    let partition = answer.topics.first().and_then(|topic| topic.partitions.first());
    let Some(partition) = partition else { return nothing() };
    let nodes = answer.node_endpoints.iter();
    let addresses = nodes.map(|node| (node.node_id, here.endpoint(&node.host, node.port)));
    let leader = &partition.current_leader;
    let head = head_of(partition.error_code, leader.leader_id, leader.leader_epoch, addresses);
    let response::SnapshotId { end_offset, epoch, .. } = partition.snapshot_id;
    Response::FetchSnapshot(SnapshotFetched {
        head,
        id: SnapshotId { end: Offset(end_offset), epoch: LeaderEpoch(epoch) },
        size: partition.size,
        position: partition.position,
        bytes: partition.unaligned_records.clone().unwrap_or_default(),
    })
}
