//! # DescribeQuorum, key 55, versions 0–2
//!
//! What `kafka-metadata-quorum` shows: leader, epoch, high watermark, how far every voter and observer has come. The
//! words of each version are chosen by core/api's `k55_describe_quorum`, which stands before this.
//!
//! ## Left out
//! - Nothing.
//!
//! Source: KIP-595, KIP-836, KIP-853; Kafka `KafkaRaftClient.handleDescribeQuorumRequest`.

use barnabas_base::ErrorCode;
use barnabas_wire::Str;
use barnabas_wire::messages::describe_quorum_response::{
    Listener, Node as NodeField, PartitionData, ReplicaState, TopicData,
};
use barnabas_wire::messages::{DescribeQuorumRequest, DescribeQuorumResponse};

use super::TOPIC;
use crate::now::Now;
use crate::raft::Raft;
use crate::raft::describe::{Described, ReplicaView};
use crate::voters::Voter;

/// Only the leader knows: others refuse.
///
/// Kafka takes a request for the metadata partition and nothing else (`RequestUtil.hasValidTopicPartition`): named
/// again and again, it would list all voters each time.
pub fn respond(request: &DescribeQuorumRequest, raft: &Raft, now: Now) -> DescribeQuorumResponse {
    let partitions: usize = request.topics.iter().map(|topic| topic.partitions.len()).sum();
    let is_alone = request.topics.len() == 1 && partitions == 1;
    let topics = request.topics.iter().map(|topic| TopicData {
        topic_name: topic.topic_name.clone(),
        partitions: topic
            .partitions
            .iter()
            .map(|partition| {
                let index = partition.partition_index;
                if !is_alone || topic.topic_name != *TOPIC || index != 0 {
                    return refuse(index, ErrorCode::UnknownTopicOrPartition);
                }
                raft.describe(now)
                    .map_or_else(|| refuse(index, ErrorCode::NotLeaderOrFollower), partition_data)
            })
            .collect(),
        ..TopicData::default()
    });
    let topics: Vec<TopicData> = topics.collect();
    let nodes = if raft.leads() { raft.voters().iter().map(node).collect() } else { Vec::new() };
    DescribeQuorumResponse { topics, nodes, ..DescribeQuorumResponse::default() }
}

fn refuse(index: i32, error: ErrorCode) -> PartitionData {
    PartitionData { partition_index: index, error_code: error.code(), ..PartitionData::default() }
}

fn partition_data(described: Described) -> PartitionData {
    PartitionData {
        partition_index: 0,
        error_code: ErrorCode::None.code(),
        leader_id: described.leader.get(),
        leader_epoch: described.epoch.get(),
        high_watermark: described.high_watermark.get(),
        current_voters: described.voters.iter().map(replica).collect(),
        observers: described.observers.iter().map(replica).collect(),
        ..PartitionData::default()
    }
}

fn replica(view: &ReplicaView) -> ReplicaState {
    ReplicaState {
        replica_id: view.key.id.get(),
        replica_directory_id: view.key.directory,
        log_end_offset: view.log_end.get(),
        last_fetch_timestamp: view.last_fetch.0,
        last_caught_up_timestamp: view.last_caught_up.0,
        ..ReplicaState::default()
    }
}

fn node(voter: &Voter) -> NodeField {
    let listeners = voter.endpoints.iter().map(|endpoint| Listener {
        name: Str::from(&endpoint.listener),
        host: Str::from(&endpoint.host),
        port: endpoint.port,
        ..Listener::default()
    });
    NodeField { node_id: voter.id.get(), listeners: listeners.collect(), ..NodeField::default() }
}
