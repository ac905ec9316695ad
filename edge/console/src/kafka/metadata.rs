//! Metadata of brokers and topics, and the requests that change topics. Nothing is cached: an answer is as old as its
//! request.

use barnabas_base::{BrokerId, ErrorCode};
use barnabas_client::{ClientError, Cluster, check};
use barnabas_wire::messages::create_topics_request::CreatableTopic;
use barnabas_wire::messages::list_partition_reassignments_request::ListPartitionReassignmentsTopics;
use barnabas_wire::messages::list_partition_reassignments_response::OngoingTopicReassignment;
use barnabas_wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use barnabas_wire::messages::{CreateTopicsRequest, ListPartitionReassignmentsRequest, MetadataResponse};

const TIMEOUT_MS: i32 = 15_000;

/// About `topics`; about all where `None`. No topic is created by it.
///
/// # Errors
/// No node answers.
pub async fn ask(cluster: &mut Cluster, topics: Option<&[&str]>) -> Result<MetadataResponse, ClientError> {
    cluster.metadata(topics, false).await
}

/// All topics that the caller may see, by name.
///
/// # Errors
/// As [`ask`].
pub async fn topics(cluster: &mut Cluster) -> Result<Vec<MetadataResponseTopic>, ClientError> {
    let mut topics = ask(cluster, None).await?.topics;
    topics.retain(|topic| topic.error_code == 0);
    topics.sort_by(|one, other| one.name.cmp(&other.name));
    topics.iter_mut().for_each(|topic| topic.partitions.sort_by_key(|row| row.partition_index));
    Ok(topics)
}

/// # Errors
/// The topic's error: `UNKNOWN_TOPIC_OR_PARTITION`, `TOPIC_AUTHORIZATION_FAILED` …
pub async fn topic(cluster: &mut Cluster, name: &str) -> Result<MetadataResponseTopic, ClientError> {
    let answer = ask(cluster, Some(&[name])).await?;
    let missing = || ClientError::refused(name, ErrorCode::UnknownTopicOrPartition.code(), None);
    let mut topic = answer.topics.into_iter().next().ok_or_else(missing)?;
    check(format!("topic {name}"), topic.error_code, None)?;
    topic.partitions.sort_by_key(|row| row.partition_index);
    Ok(topic)
}

/// # Errors
/// As [`topic`]; `UNKNOWN_TOPIC_OR_PARTITION` where the topic has no such partition.
pub async fn partition(
    cluster: &mut Cluster,
    name: &str,
    index: i32,
) -> Result<MetadataResponsePartition, ClientError> {
    let topic = topic(cluster, name).await?;
    let found = topic.partitions.into_iter().find(|row| row.partition_index == index);
    let code = ErrorCode::UnknownTopicOrPartition.code();
    found.ok_or_else(|| ClientError::refused(format!("partition {name}-{index}"), code, None))
}

/// Creates a topic, given in the request's own type. Returns how many partitions and replicas it has; −1 where an old
/// broker does not say.
///
/// # Errors
/// The cluster's refusal: `TOPIC_ALREADY_EXISTS`, `INVALID_CONFIG` …
pub async fn create_topic(
    cluster: &mut Cluster,
    topic: CreatableTopic,
    validate_only: bool,
) -> Result<(i32, i16), ClientError> {
    let what = format!("topic {}", &*topic.name);
    let request = CreateTopicsRequest {
        topics: vec![topic],
        timeout_ms: TIMEOUT_MS,
        validate_only,
        ..Default::default()
    };
    let tries = cluster.tries(format!("creating {what}"));
    loop {
        let asked = cluster.ask_controller(|_| request.clone()).await;
        let created = asked.and_then(|answer| match answer.topics.first() {
            Some(told) => check(what.clone(), told.error_code, told.error_message.as_deref())
                .map(|()| (told.num_partitions, told.replication_factor)),
            None => Err(ClientError::Invalid("the answer names no topic".to_owned())),
        });
        match created {
            Ok(counts) => return Ok(counts),
            // A request that was lost may have been carried out.
            Err(error) if error.code() == Some(ErrorCode::NotController) => tries.after(error).await?,
            Err(error) => return Err(error),
        }
    }
}

/// Moves of replicas that are under way; of all topics where `None`.
///
/// # Errors
/// The cluster's refusal.
pub async fn reassignments(
    cluster: &mut Cluster,
    topics: Option<Vec<(String, Vec<i32>)>>,
) -> Result<Vec<OngoingTopicReassignment>, ClientError> {
    let named = |(name, partition_indexes): (String, Vec<i32>)| ListPartitionReassignmentsTopics {
        name: name.as_str().into(),
        partition_indexes,
        ..Default::default()
    };
    let request = ListPartitionReassignmentsRequest {
        timeout_ms: TIMEOUT_MS,
        topics: topics.map(|topics| topics.into_iter().map(named).collect()),
        ..Default::default()
    };
    let answer = cluster.ask_controller(|_| request.clone()).await?;
    check("listing reassignments", answer.error_code, answer.error_message.as_deref())?;
    Ok(answer.topics)
}

/// The broker as it can be asked; `None`: no broker has this id.
///
/// # Errors
/// No node answers.
pub async fn broker(cluster: &mut Cluster, id: i32) -> Result<Option<BrokerId>, ClientError> {
    let nodes = cluster.nodes().await?;
    Ok(nodes.into_iter().find(|node| node.get() == id))
}
