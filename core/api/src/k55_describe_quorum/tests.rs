use super::*;
use crate::testing::{carried, versions};
use barnabas_base::ErrorCode;
use barnabas_wire::messages::describe_quorum_request;
use barnabas_wire::messages::describe_quorum_response::Node;

#[test]
fn every_version_carries_the_quorum_in_its_words() {
    for version in versions::<DescribeQuorumResponse>() {
        let voter = ReplicaState {
            replica_id: 1,
            replica_directory_id: Uuid([4; 16]),
            log_end_offset: 7,
            last_fetch_timestamp: 8,
            last_caught_up_timestamp: 9,
            ..ReplicaState::default()
        };
        let partition = PartitionData {
            leader_id: 1,
            high_watermark: 7,
            current_voters: vec![voter],
            error_message: Some("NONE".into()),
            ..PartitionData::default()
        };
        let topic = TopicData {
            topic_name: "__cluster_metadata".into(),
            partitions: vec![partition],
            ..TopicData::default()
        };
        let of_quorum = DescribeQuorumResponse {
            topics: vec![topic],
            nodes: vec![Node { node_id: 1, ..Node::default() }],
            error_message: Some("NONE".into()),
            ..DescribeQuorumResponse::default()
        };
        let response = carried(respond(Ok(of_quorum), version), version);
        let voter = &response.topics[0].partitions[0].current_voters[0];
        assert_eq!(
            (voter.log_end_offset, voter.last_fetch_timestamp),
            (7, if version >= 1 { 8 } else { -1 })
        );
        assert_eq!(
            (voter.replica_directory_id.is_zero(), response.nodes.len()),
            (version < 2, usize::from(version >= 2))
        );
    }
}

#[test]
fn refusal_is_encoded_in_every_version() {
    for version in versions::<DescribeQuorumResponse>() {
        let refusal = Refusal::new(ErrorCode::NotLeaderOrFollower, "no leader");
        let response = carried(respond(Err(refusal), version), version);
        assert_eq!(
            (response.error_code, response.error_message.as_deref() == Some("no leader")),
            (6, version >= 2)
        );
    }
}

#[test]
fn other_topics_are_refused_one_by_one() {
    let partition = describe_quorum_request::PartitionData { partition_index: 3, ..Default::default() };
    let topic = describe_quorum_request::TopicData {
        topic_name: "orders".into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let request = DescribeQuorumRequest { topics: vec![topic], ..DescribeQuorumRequest::default() };
    let response = refuse_partitions(&request, &ErrorCode::UnknownTopicOrPartition.into());
    assert_eq!(
        (response.topics[0].partitions[0].partition_index, response.topics[0].partitions[0].error_code),
        (3, 3)
    );
}
