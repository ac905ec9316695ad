//! # Fetch, key 1, of `__cluster_metadata`, versions 12–18
//!
//! Reads the metadata log: voters and observers follow the quorum's leader with it. Of other topics, core/api's
//! `k01_fetch` speaks.
//!
//! | version | what it added for the quorum |
//! |---|---|
//! | 12 | the epoch of the last record, where the logs part, the snapshot to fetch instead, the leader (KIP-595, 630) |
//! | 13 | the topic by its id (KIP-516) |
//! | 15 | the replica in a tagged field (KIP-903) |
//! | 16 | the leader's address (KIP-951) |
//! | 17 | the replica's directory (KIP-853) |
//! | 18 | the high watermark that the replica knows (KIP-1166) |
//!
//! ## Left out
//! - Fetch sessions: a replica of the quorum does without, as Kafka's does.
//!
//! Source: Kafka `KafkaRaftClient.handleFetchRequest`, `buildFetchRequest`, `RaftUtil.singletonFetchResponse`.

use barnabas_base::{BrokerId, DurationMs, ErrorCode, LeaderEpoch, Offset, Uuid};
use barnabas_wire::Str;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic, ReplicaState};
use barnabas_wire::messages::fetch_response::{
    EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData,
    SnapshotId as SnapshotField,
};
use barnabas_wire::messages::{FetchRequest, FetchResponse};

use super::{Here, TOPIC, head_of, id_or_none, leader_address, nothing, topic};
use crate::raft::message::{Fetch, Fetched, FetchedContent, OffsetAndEpoch, ReplicaKey, Request, Response};
use crate::snapshot_id::SnapshotId;

/// # Errors
/// The answer: another cluster's, or not about the metadata log alone.
pub fn plan(request: &FetchRequest, here: &Here, version: i16) -> Result<Request, FetchResponse> {
    if here.is_other_cluster(request.cluster_id.as_ref()) {
        return Err(refuse(ErrorCode::InconsistentClusterId));
    }
    let partition = partition_of(request, version).ok_or_else(|| refuse(ErrorCode::InvalidRequest))?;
    let id = if version >= 15 { request.replica_state.replica_id } else { request.replica_id };
    Ok(Request::Fetch(Fetch {
        replica: ReplicaKey { id: BrokerId(id), directory: partition.replica_directory_id },
        epoch: LeaderEpoch(partition.current_leader_epoch),
        from: Offset(partition.fetch_offset),
        last_epoch: LeaderEpoch(partition.last_fetched_epoch),
        high_watermark: Offset(partition.high_watermark),
        max_wait: DurationMs(i64::from(request.max_wait_ms)),
        bytes_max: request.max_bytes,
    }))
}

fn partition_of(request: &FetchRequest, version: i16) -> Option<&FetchPartition> {
    let [topic] = request.topics.as_slice() else { return None };
    let [partition] = topic.partitions.as_slice() else { return None };
    let is_it = if version >= 13 { topic.topic_id == Uuid::METADATA_TOPIC } else { topic.topic == *TOPIC };
    (is_it && partition.partition == 0).then_some(partition)
}

fn refuse(error: ErrorCode) -> FetchResponse {
    FetchResponse { error_code: error.code(), ..FetchResponse::default() }
}

pub fn respond(answer: Response, here: &Here, version: i16) -> FetchResponse {
    let fetched = match answer {
        Response::Fetch(fetched) => fetched,
        Response::Refused(error) => return refuse(error),
        _ => return refuse(ErrorCode::UnknownServerError),
    };
    let Fetched { head, log_start, high_watermark, content } = fetched;
    let mut partition = PartitionData {
        partition_index: 0,
        error_code: head.error.code(),
        high_watermark: high_watermark.unwrap_or(Offset::NONE).get(),
        log_start_offset: log_start.get(),
        current_leader: LeaderIdAndEpoch {
            leader_id: id_or_none(head.leader),
            leader_epoch: head.epoch.get(),
            ..LeaderIdAndEpoch::default()
        },
        ..PartitionData::default()
    };
    match content {
        FetchedContent::Records(bytes) => partition.records = Some(bytes),
        FetchedContent::Diverging(OffsetAndEpoch { offset, epoch }) => {
            let end =
                EpochEndOffset { epoch: epoch.get(), end_offset: offset.get(), ..EpochEndOffset::default() };
            partition.diverging_epoch = end;
        }
        FetchedContent::Snapshot(SnapshotId { end, epoch }) => {
            let id = SnapshotField { end_offset: end.get(), epoch: epoch.get(), ..SnapshotField::default() };
            partition.snapshot_id = id;
        }
    }
    let by_id = version >= 13;
    let topic = FetchableTopicResponse {
        topic: if by_id { Str::default() } else { topic() },
        topic_id: if by_id { Uuid::METADATA_TOPIC } else { Uuid::ZERO },
        partitions: vec![partition],
        ..FetchableTopicResponse::default()
    };
    let address = leader_address(&head, here).filter(|_| version >= 16);
    let endpoint = |(node_id, host, port): (i32, Str, u16)| NodeEndpoint {
        node_id,
        host,
        port: i32::from(port),
        ..NodeEndpoint::default()
    };
    FetchResponse {
        responses: vec![topic],
        node_endpoints: address.map(endpoint).into_iter().collect(),
        ..FetchResponse::default()
    }
}

pub fn ask(fetch: &Fetch, here: &Here, version: i16) -> Option<FetchRequest> {
    if version < 12 {
        return None;
    }
    let (by_id, in_tag) = (version >= 13, version >= 15);
    let default = FetchPartition::default();
    let partition = FetchPartition {
        partition: 0,
        current_leader_epoch: fetch.epoch.get(),
        fetch_offset: fetch.from.get(),
        last_fetched_epoch: fetch.last_epoch.get(),
        replica_directory_id: if version >= 17 { fetch.replica.directory } else { Uuid::ZERO },
        high_watermark: if version >= 18 { fetch.high_watermark.get() } else { default.high_watermark },
        ..default
    };
    let topic = FetchTopic {
        topic: if by_id { Str::default() } else { topic() },
        topic_id: if by_id { Uuid::METADATA_TOPIC } else { Uuid::ZERO },
        partitions: vec![partition],
        ..FetchTopic::default()
    };
    let replica = fetch.replica.id.get();
    let mut request = FetchRequest {
        cluster_id: Some(Str::from(&here.cluster_id)),
        max_wait_ms: i32::try_from(fetch.max_wait.0).unwrap_or(i32::MAX),
        max_bytes: fetch.bytes_max,
        topics: vec![topic],
        ..FetchRequest::default()
    };
    if in_tag {
        request.replica_state = ReplicaState { replica_id: replica, ..ReplicaState::default() };
    } else {
        request.replica_id = replica;
    }
    Some(request)
}

pub fn read(answer: &FetchResponse, here: &Here) -> Response {
    if answer.error_code != 0 {
        return Response::Refused(ErrorCode::from_code(answer.error_code));
    }
    let partition = answer.responses.first().and_then(|topic| topic.partitions.first());
    let Some(partition) = partition else { return nothing() };
    let nodes = answer.node_endpoints.iter();
    let addresses = nodes.filter_map(|node| {
        let port = u16::try_from(node.port).ok()?;
        Some((node.node_id, here.endpoint(&node.host, port)))
    });
    let PartitionData { current_leader, diverging_epoch, snapshot_id, .. } = partition;
    let head =
        head_of(partition.error_code, current_leader.leader_id, current_leader.leader_epoch, addresses);
    let content = if diverging_epoch.epoch >= 0 && diverging_epoch.end_offset >= 0 {
        let offset = Offset(diverging_epoch.end_offset);
        FetchedContent::Diverging(OffsetAndEpoch { offset, epoch: LeaderEpoch(diverging_epoch.epoch) })
    } else if snapshot_id.epoch >= 0 && snapshot_id.end_offset >= 0 {
        let end = Offset(snapshot_id.end_offset);
        FetchedContent::Snapshot(SnapshotId { end, epoch: LeaderEpoch(snapshot_id.epoch) })
    } else {
        FetchedContent::Records(partition.records.clone().unwrap_or_default())
    };
    let high_watermark = (partition.high_watermark >= 0).then_some(Offset(partition.high_watermark));
    Response::Fetch(Fetched { head, log_start: Offset(partition.log_start_offset), high_watermark, content })
}
