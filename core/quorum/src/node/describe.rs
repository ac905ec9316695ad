//! DescribeQuorum: what `kafka-metadata-quorum` shows.
//!
//! Source: KIP-595, KIP-836, KIP-853; Kafka `KafkaRaftClient.handleDescribeQuorumRequest`.

use barnabas_base::{BrokerId, ErrorCode, name};
use barnabas_wire::Str;
use barnabas_wire::messages::describe_quorum_response::{
    Listener, Node as NodeField, PartitionData, ReplicaState, TopicData,
};
use barnabas_wire::messages::{DescribeQuorumRequest, DescribeQuorumResponse};

use super::{Node, Now};
use crate::voters::Voter;

impl Node {
    pub(super) fn describe_quorum(
        &self,
        request: &DescribeQuorumRequest,
        now: Now,
    ) -> DescribeQuorumResponse {
        let topics = request.topics.iter().map(|topic| TopicData {
            topic_name: topic.topic_name.clone(),
            partitions: topic
                .partitions
                .iter()
                .map(|partition| {
                    let index = partition.partition_index;
                    let known = topic.topic_name == *name::CLUSTER_METADATA && index == 0;
                    if known { self.describe_partition(now) } else { unknown_partition(index) }
                })
                .collect(),
            ..TopicData::default()
        });
        let nodes = self.raft.voters().iter().map(describe_node);
        DescribeQuorumResponse {
            topics: topics.collect(),
            nodes: nodes.collect(),
            ..DescribeQuorumResponse::default()
        }
    }

    fn describe_partition(&self, now: Now) -> PartitionData {
        let state = |id: BrokerId, directory| ReplicaState {
            replica_id: id.get(),
            replica_directory_id: directory,
            log_end_offset: self.raft.log_end().get(),
            last_fetch_timestamp: now.wall.0,
            last_caught_up_timestamp: now.wall.0,
            ..ReplicaState::default()
        };
        let me = self.raft.me();
        PartitionData {
            partition_index: 0,
            error_code: ErrorCode::None.code(),
            leader_id: me.get(),
            leader_epoch: self.raft.epoch().get(),
            high_watermark: self.raft.high_watermark().get(),
            current_voters: self.raft.voters().iter().map(|voter| state(voter.id, voter.directory)).collect(),
            observers: Vec::new(),
            ..PartitionData::default()
        }
    }
}

fn unknown_partition(index: i32) -> PartitionData {
    PartitionData {
        partition_index: index,
        error_code: ErrorCode::UnknownTopicOrPartition.code(),
        ..PartitionData::default()
    }
}

fn describe_node(voter: &Voter) -> NodeField {
    let listeners = voter.endpoints.iter().map(|endpoint| Listener {
        name: Str::from(&endpoint.listener),
        host: Str::from(&endpoint.host),
        port: endpoint.port,
        ..Listener::default()
    });
    NodeField { node_id: voter.id.get(), listeners: listeners.collect(), ..NodeField::default() }
}
