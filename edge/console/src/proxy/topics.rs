//! Brokers, topics, partitions and their offsets; making a topic, as Strimzi's bridge does.

use super::media;
use crate::http::call::{Answer, Call};
use crate::http::problem::Problem;
use crate::kafka::{configs, metadata, offsets};
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::create_topics_request::CreatableTopic;
use barnabas_wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use hyper::StatusCode;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const NO_TOPIC: u32 = 40_401;
const NO_PARTITION: u32 = 40_402;

/// # Errors
/// 40401: there is no such topic; the caller may not describe it.
pub async fn found(cluster: &mut Cluster, name: &str) -> Result<MetadataResponseTopic, Problem> {
    metadata::topic(cluster, name).await.map_err(|error| no_topic(error, name))
}

fn no_topic(error: ClientError, name: &str) -> Problem {
    match error.code() {
        Some(code @ ErrorCode::UnknownTopicOrPartition) => {
            let detail = format!("Topic {} not found", name.escape_debug());
            Problem { kafka: Some(code), ..Problem::coded(NO_TOPIC, detail) }
        }
        _ => error.into(),
    }
}

/// # Errors
/// 40402: the topic has no such partition.
pub fn partition_of(
    topic: &MetadataResponseTopic,
    index: i32,
) -> Result<&MetadataResponsePartition, Problem> {
    let name = topic.name.as_deref().unwrap_or_default();
    let missing = || {
        let kafka = Some(ErrorCode::UnknownTopicOrPartition);
        Problem {
            kafka,
            ..Problem::coded(NO_PARTITION, format!("Partition {index} of topic {name} not found"))
        }
    };
    topic.partitions.iter().find(|row| row.partition_index == index).ok_or_else(missing)
}

pub async fn brokers(call: &mut Call) -> Result<Answer, Problem> {
    let ids: Vec<i32> = call.cluster.nodes().await?.into_iter().map(|node| node.get()).collect();
    media::answer(&call.headers, &json!({ "brokers": ids }))
}

pub async fn list(call: &mut Call) -> Result<Answer, Problem> {
    let topics = metadata::topics(&mut call.cluster).await?;
    let names: Vec<Value> =
        topics.iter().filter_map(|topic| topic.name.as_deref()).map(Value::from).collect();
    media::answer(&call.headers, &Value::from(names))
}

pub async fn get(call: &mut Call) -> Result<Answer, Problem> {
    let name = call.at.param("topic").to_owned();
    let topic = found(&mut call.cluster, &name).await?;
    let described = configs::describe(&mut call.cluster, &[configs::Resource::Topic(name.clone())]).await?;
    let configs: Map<String, Value> = described
        .into_iter()
        .flatten()
        .map(|config| (config.name.to_string(), config.value.as_deref().map(str::to_owned).into()))
        .collect();
    let partitions: Vec<Value> = topic.partitions.iter().map(document).collect();
    media::answer(&call.headers, &json!({ "name": name, "configs": configs, "partitions": partitions }))
}

fn document(row: &MetadataResponsePartition) -> Value {
    let replica = |id: &i32| json!({ "broker": id, "leader": *id == row.leader_id, "in_sync": row.isr_nodes.contains(id) });
    json!({
        "partition": row.partition_index,
        "leader": row.leader_id,
        "replicas": row.replica_nodes.iter().map(replica).collect::<Vec<_>>(),
    })
}

pub async fn partitions(call: &mut Call) -> Result<Answer, Problem> {
    let name = call.at.param("topic").to_owned();
    let topic = found(&mut call.cluster, &name).await?;
    let rows: Vec<Value> = topic.partitions.iter().map(document).collect();
    media::answer(&call.headers, &Value::from(rows))
}

pub async fn partition(call: &mut Call) -> Result<Answer, Problem> {
    let (name, index) = (call.at.param("topic").to_owned(), call.at.number("partition")?);
    let topic = found(&mut call.cluster, &name).await?;
    let row = document(partition_of(&topic, index)?);
    media::answer(&call.headers, &row)
}

pub async fn offsets(call: &mut Call) -> Result<Answer, Problem> {
    let (name, index) = (call.at.param("topic").to_owned(), call.at.number("partition")?);
    let topic = found(&mut call.cluster, &name).await?;
    partition_of(&topic, index)?;
    let mut at = async |timestamp| {
        let wanted = BTreeSet::from([(name.clone(), index)]);
        let listed = offsets::list(&mut call.cluster, &wanted, timestamp).await?;
        let offset = listed.into_values().next().unwrap_or(Err(ErrorCode::UnknownTopicOrPartition));
        offset.map_err(|code| Problem::refused(format!("{name}-{index}"), code.code(), None))
    };
    let (beginning, end) = (at(offsets::EARLIEST).await?, at(offsets::LATEST).await?);
    media::answer(&call.headers, &json!({ "beginning_offset": beginning, "end_offset": end }))
}

/// `POST /admin/topics` of Strimzi's bridge.
pub async fn create(call: &mut Call) -> Result<Answer, Problem> {
    let fields = call.fields_of(&["topic_name", "partitions_count", "replication_factor"])?;
    let topic = CreatableTopic {
        name: fields.needed_text("topic_name")?.as_str().into(),
        num_partitions: fields.number("partitions_count")?.unwrap_or(-1),
        replication_factor: fields.number("replication_factor")?.unwrap_or(-1),
        ..Default::default()
    };
    metadata::create_topic(&mut call.cluster, topic, false).await?;
    Ok(Answer::of(StatusCode::CREATED))
}
