//! Metadata of brokers and topics, and the requests that change topics. Nothing is cached: an answer is as old as its
//! request.

use barnabas_base::{BrokerId, ErrorCode};
use barnabas_client::{ClientError, Cluster, check};
use barnabas_wire::Str;
use barnabas_wire::messages::create_topics_request::CreatableTopic;
use barnabas_wire::messages::list_partition_reassignments_request::ListPartitionReassignmentsTopics;
use barnabas_wire::messages::list_partition_reassignments_response::OngoingTopicReassignment;
use barnabas_wire::messages::metadata_request::MetadataRequestTopic;
use barnabas_wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use barnabas_wire::messages::{
    CreateTopicsRequest, ListPartitionReassignmentsRequest, MetadataRequest, MetadataResponse,
};
use std::collections::BTreeMap;
use std::time::Duration;

const TIMEOUT_MS: i32 = 15_000;
/// How long one broker may take to say which of its replicas are offline.
const OWN_WITHIN: Duration = Duration::from_secs(2);

/// About `topics`; about all where `None`. No topic is created by it.
///
/// # Errors
/// No node answers.
pub async fn ask(cluster: &mut Cluster, topics: Option<&[&str]>) -> Result<MetadataResponse, ClientError> {
    cluster.metadata(topics, false).await
}

/// As [`ask`], with what each broker says of its own replicas besides: a log that cannot be opened is not in the
/// metadata log, so that its broker alone knows that the replica is offline. A broker that does not answer adds
/// nothing.
///
/// # Errors
/// As [`ask`].
pub async fn ask_each(
    cluster: &mut Cluster,
    topics: Option<&[&str]>,
) -> Result<MetadataResponse, ClientError> {
    let mut answer = ask(cluster, topics).await?;
    let brokers: Vec<i32> = answer.brokers.iter().map(|broker| broker.node_id).collect();
    if brokers.len() < 2 {
        // It is the one that has answered.
        return Ok(answer);
    }
    let named = |name: &&str| MetadataRequestTopic { name: Some((*name).into()), ..Default::default() };
    let request = MetadataRequest {
        topics: topics.map(|names| names.iter().map(named).collect()),
        allow_auto_topic_creation: false,
        ..Default::default()
    };
    for broker in brokers {
        match cluster.ask_patiently(BrokerId(broker), &request, OWN_WITHIN).await {
            Ok(own) => take_own(&mut answer.topics, own.topics, broker),
            Err(error) => tracing::debug!(%error, broker, "a broker has not said which replicas are offline"),
        }
    }
    Ok(answer)
}

/// Takes over that replicas of `broker` are offline, and lead nothing, where `broker` itself says so.
fn take_own(topics: &mut [MetadataResponseTopic], own: Vec<MetadataResponseTopic>, broker: i32) {
    let is_offline = |row: &MetadataResponsePartition| row.offline_replicas.contains(&broker);
    let mut offline: BTreeMap<(Str, i32), i32> = BTreeMap::new();
    for topic in own {
        let Some(name) = topic.name else { continue };
        let rows = topic.partitions.iter().filter(|row| is_offline(row));
        offline.extend(rows.map(|row| ((name.clone(), row.partition_index), row.leader_id)));
    }
    if offline.is_empty() {
        return;
    }
    for topic in topics {
        let Some(name) = &topic.name else { continue };
        for row in &mut topic.partitions {
            let Some(leader) = offline.get(&(name.clone(), row.partition_index)) else { continue };
            if !is_offline(row) {
                row.offline_replicas.push(broker);
            }
            if row.leader_id == broker && *leader < 0 {
                row.leader_id = *leader;
            }
        }
    }
}

/// All topics that the caller may see, by name.
///
/// # Errors
/// As [`ask`].
pub async fn topics(cluster: &mut Cluster) -> Result<Vec<MetadataResponseTopic>, ClientError> {
    let mut topics = ask_each(cluster, None).await?.topics;
    topics.retain(|topic| topic.error_code == 0);
    topics.sort_by(|one, other| one.name.cmp(&other.name));
    topics.iter_mut().for_each(|topic| topic.partitions.sort_by_key(|row| row.partition_index));
    Ok(topics)
}

/// # Errors
/// The topic's error: `UNKNOWN_TOPIC_OR_PARTITION`, `TOPIC_AUTHORIZATION_FAILED` …
pub async fn topic(cluster: &mut Cluster, name: &str) -> Result<MetadataResponseTopic, ClientError> {
    named(name, ask(cluster, Some(&[name])).await?)
}

/// [`topic`] by [`ask_each`].
///
/// # Errors
/// As [`topic`].
pub async fn topic_each(cluster: &mut Cluster, name: &str) -> Result<MetadataResponseTopic, ClientError> {
    named(name, ask_each(cluster, Some(&[name])).await?)
}

fn named(name: &str, answer: MetadataResponse) -> Result<MetadataResponseTopic, ClientError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(leader_id: i32, offline_replicas: Vec<i32>) -> MetadataResponseTopic {
        let row = MetadataResponsePartition {
            leader_id,
            replica_nodes: vec![1, 2],
            offline_replicas,
            ..Default::default()
        };
        MetadataResponseTopic { name: Some("t".into()), partitions: vec![row], ..Default::default() }
    }

    #[test]
    fn broker_says_which_of_its_replicas_are_offline() {
        let seen = |own: MetadataResponseTopic, broker| {
            let mut topics = [topic(1, vec![2])];
            take_own(&mut topics, vec![own], broker);
            let row = &topics[0].partitions[0];
            (row.leader_id, row.offline_replicas.clone())
        };
        assert_eq!(seen(topic(-1, vec![1, 2]), 1), (-1, vec![2, 1]));
        assert_eq!(seen(topic(1, vec![2]), 1), (1, vec![2]));
        // Of another broker's replica it knows no better.
        assert_eq!(seen(topic(-1, vec![1]), 2), (1, vec![2]));
        assert_eq!(seen(topic(1, vec![2]), 2), (1, vec![2]), "named once");
    }
}
