//! The metadata quorum: who leads, who votes, who follows and how far behind.

use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster, check};
use barnabas_wire::messages::DescribeQuorumRequest;
use barnabas_wire::messages::describe_quorum_request::{PartitionData as Asked, TopicData};
use barnabas_wire::messages::describe_quorum_response::PartitionData;

const TOPIC: &str = "__cluster_metadata";

/// # Errors
/// `CLUSTER_AUTHORIZATION_FAILED`; the quorum has no leader.
pub async fn describe(cluster: &mut Cluster) -> Result<PartitionData, ClientError> {
    let partitions = vec![Asked { partition_index: 0, ..Default::default() }];
    let topics = vec![TopicData { topic_name: TOPIC.into(), partitions, ..Default::default() }];
    let request = DescribeQuorumRequest { topics, ..Default::default() };
    let answer = cluster.ask_any(&request).await?;
    let what = "describing the quorum";
    check(what, answer.error_code, answer.error_message.as_deref())?;
    let told = answer.topics.into_iter().flat_map(|topic| topic.partitions).next();
    let told =
        told.ok_or_else(|| ClientError::refused(what, ErrorCode::UnknownTopicOrPartition.code(), None))?;
    check(what, told.error_code, told.error_message.as_deref())?;
    Ok(told)
}
