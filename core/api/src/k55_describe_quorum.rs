//! # DescribeQuorum, key 55, versions 0–2
//!
//! Shows the quorum of controllers: leader, epoch, high watermark, and how far every voter and observer has come.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-595) |
//! | 1 | when replicas last fetched and were last caught up (KIP-836) |
//! | 2 | directory ids, addresses, error messages (KIP-853) |
//!
//! ## Left out
//! - Nothing: everything is the quorum's.
//!
//! Source: Kafka 4.4 `KafkaRaftClient.handleDescribeQuorumRequest`, `DescribeQuorumResponse`.

use barnabas_base::Uuid;
use barnabas_wire::messages::describe_quorum_request::DescribeQuorumRequest;
use barnabas_wire::messages::describe_quorum_response::{
    DescribeQuorumResponse, PartitionData, ReplicaState, TopicData,
};

use crate::Refusal;

/// The answer to the client, from the quorum's or from the reason why there is none, in the words of the version.
pub fn respond(outcome: Result<DescribeQuorumResponse, Refusal>, version: i16) -> DescribeQuorumResponse {
    let mut response = outcome.unwrap_or_else(|refusal| DescribeQuorumResponse {
        error_code: refusal.code.code(),
        error_message: refusal.text(),
        ..DescribeQuorumResponse::default()
    });
    let partitions = response.topics.iter_mut().flat_map(|topic| &mut topic.partitions);
    for partition in partitions {
        if version < 2 {
            partition.error_message = PartitionData::default().error_message;
        }
        for replica in partition.current_voters.iter_mut().chain(&mut partition.observers) {
            trim(replica, version);
        }
    }
    // Who asked about something else is not told of nodes.
    let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
    if !partitions.clone().any(|partition| partition.error_code == 0) {
        response.nodes.clear();
    }
    if version < 2 {
        response.error_message = DescribeQuorumResponse::default().error_message;
        response.nodes.clear();
    }
    response
}

/// The quorum's refusal of one partition that is not the metadata log's: for the quorum to use.
pub fn refuse_partitions(request: &DescribeQuorumRequest, refusal: &Refusal) -> DescribeQuorumResponse {
    let topics = request.topics.iter().map(|topic| TopicData {
        topic_name: topic.topic_name.clone(),
        partitions: topic
            .partitions
            .iter()
            .map(|partition| PartitionData {
                partition_index: partition.partition_index,
                error_code: refusal.code.code(),
                error_message: refusal.text(),
                ..PartitionData::default()
            })
            .collect(),
        ..TopicData::default()
    });
    DescribeQuorumResponse { topics: topics.collect(), ..DescribeQuorumResponse::default() }
}

fn trim(replica: &mut ReplicaState, version: i16) {
    if version < 1 {
        replica.last_fetch_timestamp = -1;
        replica.last_caught_up_timestamp = -1;
    }
    if version < 2 {
        replica.replica_directory_id = Uuid::ZERO;
    }
}

#[cfg(test)]
mod tests;
