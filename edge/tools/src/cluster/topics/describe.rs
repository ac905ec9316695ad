//! `topics --describe`: asks what the cluster knows of topics, and hands it on in Kafka's words.
//!
//! Partitions come from DescribeTopicPartitions, page by page; from a broker that does not have it they come from
//! Metadata, which tells no eligible leader replicas (`N/A`). All topics' ongoing reassignments are asked for once,
//! configs with each lot of topics.
//!
//! Source: Kafka 4.4 `TopicCommand.TopicService.describeTopic`, `KafkaAdminClient.describeTopics`; KIP-966.

use super::row::{Partition, Reassignment, Report, Topic};
use crate::{ToolError, say};
use barnabas_base::{ErrorCode, Map, Set};
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;
use barnabas_wire::messages::describe_topic_partitions_request::{Cursor, TopicRequest};
use barnabas_wire::messages::describe_topic_partitions_response::{
    DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use barnabas_wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use barnabas_wire::messages::{
    DescribeConfigsRequest, DescribeTopicPartitionsRequest, ListPartitionReassignmentsRequest,
};
use serde_json::Value;

/// Topics that are asked for, and kept, at once.
const TOPICS_AT_ONCE: usize = 500;
/// Partitions in one answer; Kafka's `--partition-size-limit-per-response`.
pub const PARTITIONS_PER_ANSWER: i32 = 2000;
/// A topic's own configs, in a describe.
const RESOURCE_TOPIC: i8 = 2;
/// DescribeConfigs: the value is Kafka's default (Kafka `ConfigSource.DEFAULT_CONFIG`).
const SOURCE_DEFAULT: i8 = 5;
const MIN_ISR: &str = "min.insync.replicas";

/// Who lives, and which partitions get other replicas.
pub struct Moment {
    pub alive: Set<i32>,
    pub reassignments: Map<(String, i32), Reassignment>,
}

/// What of the topics is shown.
pub struct Shown {
    /// Only partitions that one of these shows, without their topics. None: all.
    pub reports: Vec<&'static Report>,
    /// Only topics that have configs of their own, without their partitions.
    pub overridden: bool,
    pub partitions_per_answer: i32,
    /// Whether a topic that is not there is left out without an error.
    pub may_be_gone: bool,
    /// As JSON, not in Kafka's lines.
    pub is_json: bool,
}

/// Describes `names`, which are in order.
pub async fn describe(cluster: &mut Cluster, names: &[String], shown: &Shown) -> Result<(), ToolError> {
    let moment = moment(cluster).await?;
    let mut objects = Vec::new();
    for names in names.chunks(TOPICS_AT_ONCE) {
        for topic in topics(cluster, names, &moment, shown).await? {
            let has_line = shown.reports.is_empty() && (!shown.overridden || !topic.configs.is_empty());
            let is_shown = |partition: &&Partition| {
                let is_reported = |report: &&'static Report| (report.shows)(partition, topic.min_isr);
                !shown.overridden && (shown.reports.is_empty() || shown.reports.iter().any(is_reported))
            };
            let partitions: Vec<&Partition> = topic.partitions.iter().filter(is_shown).collect();
            if shown.is_json {
                if has_line || !partitions.is_empty() {
                    objects.push(topic.json(partitions.iter().map(|partition| partition.json()).collect()));
                }
                continue;
            }
            if has_line {
                say(&topic.words())?;
            }
            partitions.iter().try_for_each(|partition| say(&partition.words(&topic.name)))?;
        }
    }
    if shown.is_json { say(&Value::from(objects).to_string()) } else { Ok(()) }
}

async fn moment(cluster: &mut Cluster) -> Result<Moment, ToolError> {
    let nodes = cluster.refresh(Some(&[]), false).await?.brokers;
    let request = ListPartitionReassignmentsRequest { timeout_ms: 60_000, ..Default::default() };
    let mut reassignments = Map::default();
    match cluster.ask_any(&request).await {
        Ok(answer) => match ErrorCode::from_code(answer.error_code) {
            ErrorCode::None => {
                for topic in &answer.topics {
                    for row in &topic.partitions {
                        let reassignment = Reassignment {
                            replicas: row.replicas.clone(),
                            adding: row.adding_replicas.clone(),
                            removing: row.removing_replicas.clone(),
                        };
                        reassignments.insert((topic.name.to_string(), row.partition_index), reassignment);
                    }
                }
            }
            // As in Kafka: who may not see them describes topics all the same.
            ErrorCode::ClusterAuthorizationFailed => {}
            _ => {
                let why = answer.error_message.as_deref();
                Err(ClientError::refused("listing reassignments", answer.error_code, why))?;
            }
        },
        Err(ClientError::Unsupported { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(Moment { alive: nodes.iter().map(|node| node.node_id).collect(), reassignments })
}

/// Those of `names` that are there.
pub async fn topics(
    cluster: &mut Cluster,
    names: &[String],
    moment: &Moment,
    shown: &Shown,
) -> Result<Vec<Topic>, ToolError> {
    let may_be_gone = shown.may_be_gone;
    let told = match told(cluster, names, shown.partitions_per_answer).await {
        Err(ClientError::Unsupported { .. }) => told_by_metadata(cluster, names).await?,
        told => told?,
    };
    let mut topics = Vec::with_capacity(told.len());
    for topic in told {
        let name = topic.name.as_deref().unwrap_or_default().to_owned();
        match ErrorCode::from_code(topic.error_code) {
            ErrorCode::None => {}
            ErrorCode::UnknownTopicOrPartition if may_be_gone => continue,
            ErrorCode::UnknownTopicOrPartition => return Err(super::missing(&name)),
            _ => Err(ClientError::refused(format!("topic {name}"), topic.error_code, None))?,
        }
        let row = |row: &DescribeTopicPartitionsResponsePartition| Partition {
            partition: row.partition_index,
            leader: Some(row.leader_id).filter(|leader| moment.alive.contains(leader)),
            replicas: row.replica_nodes.clone(),
            isr: row.isr_nodes.clone(),
            reassignment: moment.reassignments.get(&(name.clone(), row.partition_index)).cloned(),
            elr: row.eligible_leader_replicas.clone(),
            last_known_elr: row.last_known_elr.clone(),
        };
        let mut partitions: Vec<Partition> = topic.partitions.iter().map(row).collect();
        partitions.sort_by_key(|partition| partition.partition);
        topics.push(Topic { id: topic.topic_id, name, partitions, configs: Vec::new(), min_isr: 0 });
    }
    configure(cluster, topics, may_be_gone).await
}

/// Page after page.
async fn told(
    cluster: &mut Cluster,
    names: &[String],
    partitions_per_answer: i32,
) -> Result<Vec<DescribeTopicPartitionsResponseTopic>, ClientError> {
    let mut topics: Vec<DescribeTopicPartitionsResponseTopic> = Vec::new();
    let mut from = (String::new(), 0);
    loop {
        // What the pages before have told is not asked for again.
        let left = names.iter().filter(|name| **name >= from.0);
        let topic = |name: &String| TopicRequest { name: name.as_str().into(), ..Default::default() };
        let cursor =
            || Cursor { topic_name: from.0.as_str().into(), partition_index: from.1, ..Default::default() };
        let request = DescribeTopicPartitionsRequest {
            topics: left.map(topic).collect(),
            response_partition_limit: partitions_per_answer,
            cursor: (!from.0.is_empty()).then(cursor),
            ..Default::default()
        };
        let answer = cluster.ask_any(&request).await?;
        for topic in answer.topics {
            match topics.last_mut().filter(|last| last.name == topic.name) {
                Some(last) => last.partitions.extend(topic.partitions),
                None => topics.push(topic),
            }
        }
        let Some(next) = answer.next_cursor else { return Ok(topics) };
        let next = (next.topic_name.to_string(), next.partition_index);
        if next <= from {
            let what =
                format!("a page of topics is to go on at {}-{}, not behind what was told", next.0, next.1);
            return Err(ClientError::Invalid(what));
        }
        from = next;
    }
}

async fn told_by_metadata(
    cluster: &mut Cluster,
    names: &[String],
) -> Result<Vec<DescribeTopicPartitionsResponseTopic>, ClientError> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let row = |row: MetadataResponsePartition| DescribeTopicPartitionsResponsePartition {
        partition_index: row.partition_index,
        leader_id: row.leader_id,
        replica_nodes: row.replica_nodes,
        isr_nodes: row.isr_nodes,
        eligible_leader_replicas: None,
        last_known_elr: None,
        ..Default::default()
    };
    let topic = |topic: MetadataResponseTopic| DescribeTopicPartitionsResponseTopic {
        error_code: topic.error_code,
        name: topic.name,
        topic_id: topic.topic_id,
        partitions: topic.partitions.into_iter().map(row).collect(),
        ..Default::default()
    };
    Ok(cluster.refresh(Some(&names), false).await?.topics.into_iter().map(topic).collect())
}

/// Adds each topic's configs.
async fn configure(
    cluster: &mut Cluster,
    mut topics: Vec<Topic>,
    may_be_gone: bool,
) -> Result<Vec<Topic>, ToolError> {
    let resource = |topic: &Topic| DescribeConfigsResource {
        resource_type: RESOURCE_TOPIC,
        resource_name: topic.name.as_str().into(),
        configuration_keys: None,
        ..Default::default()
    };
    let resources: Vec<_> = topics.iter().map(resource).collect();
    if resources.is_empty() {
        return Ok(topics);
    }
    let request = DescribeConfigsRequest { resources, ..Default::default() };
    let mut answer: Map<String, _> = Map::default();
    for told in cluster.ask_any(&request).await?.results {
        answer.insert(told.resource_name.to_string(), told);
    }
    let mut gone = Vec::new();
    for topic in &mut topics {
        let what = format!("configs of topic {}", topic.name);
        let told = answer.get(&topic.name);
        let told = told.ok_or_else(|| ClientError::Invalid(format!("{what} are not in the answer")))?;
        match ErrorCode::from_code(told.error_code) {
            ErrorCode::None => {}
            ErrorCode::UnknownTopicOrPartition if may_be_gone => {
                gone.push(topic.name.clone());
                continue;
            }
            _ => Err(ClientError::refused(what.as_str(), told.error_code, told.error_message.as_deref()))?,
        }
        let min_isr = told.configs.iter().find(|config| config.name == *MIN_ISR);
        let min_isr = min_isr.and_then(|config| config.value.as_deref()?.parse().ok());
        topic.min_isr =
            min_isr.ok_or_else(|| ClientError::Invalid(format!("{what} lack {MIN_ISR}, a number")))?;
        let own = told.configs.iter().filter(|config| config.config_source != SOURCE_DEFAULT);
        let own =
            own.map(|config| (config.name.to_string(), config.value.as_deref().unwrap_or("null").to_owned()));
        topic.configs = own.collect();
    }
    topics.retain(|topic| !gone.contains(&topic.name));
    Ok(topics)
}
