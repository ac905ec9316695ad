//! Topics, their partitions and replicas, and replicas on the move.

use super::check_cluster;
use crate::http::call::{Answer, Call, Fields};
use crate::http::problem::Problem;
use crate::kafka::metadata;
use barnabas_client::Admin;
use barnabas_wire::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use barnabas_wire::messages::list_partition_reassignments_response::{
    OngoingPartitionReassignment, OngoingTopicReassignment,
};
use barnabas_wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use serde_json::{Value, json};

pub async fn list(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let topics = metadata::topics(&mut call.cluster).await?;
    let rows = topics.iter().map(|topic| document(call, topic)).collect();
    Ok(call.list("KafkaTopicList", &["topics"], rows))
}

pub async fn get(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let name = call.at.param("topic").to_owned();
    let topic = metadata::topic(&mut call.cluster, &name).await?;
    Ok(Answer::json(document(call, &topic)))
}

fn document(call: &Call, topic: &MetadataResponseTopic) -> Value {
    let name = topic.name.as_deref().unwrap_or_default();
    let replicas = topic.partitions.first().map_or(0, |row| row.replica_nodes.len());
    let counts = (topic.partitions.len(), replicas);
    written(call, name, topic.is_internal, counts)
}

fn written(call: &Call, name: &str, is_internal: bool, (partitions, replicas): (usize, usize)) -> Value {
    json!({
        "kind": "KafkaTopic",
        "metadata": call.metadata(&["topics", name], &format!("topic={name}")),
        "cluster_id": call.cluster.id(),
        "topic_name": name,
        "is_internal": is_internal,
        "replication_factor": replicas,
        "partitions_count": partitions,
        "partitions": call.related(&["topics", name, "partitions"]),
        "configs": call.related(&["topics", name, "configs"]),
        "partition_reassignments": call.related(&["topics", name, "partitions", "-", "reassignment"]),
    })
}

pub async fn create(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let fields = call.fields()?;
    let topic = new_topic(&fields)?;
    let validate_only = fields.is_true("validate_only")?;
    let name = topic.name.to_string();
    // From the answer itself: brokers may not know of the topic yet, and the caller may not describe it.
    let (partitions, replicas) = metadata::create_topic(&mut call.cluster, topic, validate_only).await?;
    let counts = (usize::try_from(partitions).unwrap_or(0), usize::try_from(replicas).unwrap_or(0));
    let location = call.at.url(call.cluster.id(), &["topics", &name]);
    Ok(Answer::created(location, Some(written(call, &name, false, counts))))
}

/// Confluent's proxy refuses an unknown field too, with 400 (confluentinc/kafka-rest#1071).
const NEW: &[&str] = &[
    "topic_name",
    "partitions_count",
    "replication_factor",
    "replicas_assignments",
    "configs",
    "validate_only",
];

fn new_topic(fields: &Fields) -> Result<CreatableTopic, Problem> {
    fields.only(NEW)?;
    let mut topic = CreatableTopic {
        name: fields.needed_text("topic_name")?.as_str().into(),
        num_partitions: fields.number("partitions_count")?.unwrap_or(-1),
        replication_factor: fields.number("replication_factor")?.unwrap_or(-1),
        ..Default::default()
    };
    for row in fields.objects("replicas_assignments")? {
        row.only(&["partition_id", "broker_ids"])?;
        let missing = || Problem::bad("replicas_assignments: partition_id is missing");
        topic.assignments.push(CreatableReplicaAssignment {
            partition_index: row.number("partition_id")?.ok_or_else(missing)?,
            broker_ids: row.numbers("broker_ids")?,
            ..Default::default()
        });
    }
    for row in fields.objects("configs")? {
        row.only(&["name", "value"])?;
        topic.configs.push(CreatableTopicConfig {
            name: row.needed_text("name")?.as_str().into(),
            value: row.text("value")?.as_deref().map(Into::into),
            ..Default::default()
        });
    }
    Ok(topic)
}

/// PATCH: more partitions.
pub async fn enlarge(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let name = call.at.param("topic").to_owned();
    let missing = || Problem::bad("partitions_count is missing");
    let count = call.fields_of(&["partitions_count"])?.number("partitions_count")?.ok_or_else(missing)?;
    let topic = metadata::topic(&mut call.cluster, &name).await?;
    Admin::new(&mut call.cluster).create_partitions(&name, count, None).await?;
    // The broker that is asked may not know of the new partitions yet.
    let replicas = topic.partitions.first().map_or(0, |row| row.replica_nodes.len());
    let counts = (usize::try_from(count).unwrap_or(0), replicas);
    Ok(Answer::json(written(call, &name, topic.is_internal, counts)))
}

pub async fn delete(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let name = call.at.param("topic").to_owned();
    Admin::new(&mut call.cluster).delete_topic(&name).await?;
    Ok(Answer::nothing())
}

pub async fn partitions(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let name = call.at.param("topic").to_owned();
    let topic = metadata::topic(&mut call.cluster, &name).await?;
    let rows = topic.partitions.iter().map(|row| partition_document(call, &name, row)).collect();
    Ok(call.list("KafkaPartitionList", &["topics", &name, "partitions"], rows))
}

pub async fn partition(call: &mut Call) -> Result<Answer, Problem> {
    let (name, row) = found_partition(call).await?;
    Ok(Answer::json(partition_document(call, &name, &row)))
}

async fn found_partition(call: &mut Call) -> Result<(String, MetadataResponsePartition), Problem> {
    check_cluster(call)?;
    let (name, index) = (call.at.param("topic").to_owned(), call.at.number("partition")?);
    let row = metadata::partition(&mut call.cluster, &name, index).await?;
    Ok((name, row))
}

fn partition_document(call: &Call, topic: &str, row: &MetadataResponsePartition) -> Value {
    let index = row.partition_index.to_string();
    let place = ["topics", topic, "partitions", &index];
    let below = |more: &[&str]| call.related(&[&place[..], more].concat());
    let leader = (row.leader_id >= 0).then(|| below(&["replicas", &row.leader_id.to_string()]));
    json!({
        "kind": "KafkaPartition",
        "metadata": call.metadata(&place, &format!("topic={topic}/partition={index}")),
        "cluster_id": call.cluster.id(),
        "topic_name": topic,
        "partition_id": row.partition_index,
        "leader": leader,
        "replicas": below(&["replicas"]),
        "reassignment": below(&["reassignment"]),
    })
}

pub async fn replicas(call: &mut Call) -> Result<Answer, Problem> {
    let (name, row) = found_partition(call).await?;
    let rows = row.replica_nodes.iter().map(|id| replica_document(call, &name, &row, *id)).collect();
    let index = row.partition_index.to_string();
    Ok(call.list("KafkaReplicaList", &["topics", &name, "partitions", &index, "replicas"], rows))
}

pub async fn replica(call: &mut Call) -> Result<Answer, Problem> {
    let id = call.at.number("broker")?;
    let (name, row) = found_partition(call).await?;
    if !row.replica_nodes.contains(&id) {
        return Err(Problem::not_found(format!("{name}-{} has no replica on {id}", row.partition_index)));
    }
    Ok(Answer::json(replica_document(call, &name, &row, id)))
}

pub fn replica_document(call: &Call, topic: &str, row: &MetadataResponsePartition, broker: i32) -> Value {
    let (index, id) = (row.partition_index.to_string(), broker.to_string());
    let name = format!("topic={topic}/partition={index}/replica={id}");
    json!({
        "kind": "KafkaReplica",
        "metadata": call.metadata(&["topics", topic, "partitions", &index, "replicas", &id], &name),
        "cluster_id": call.cluster.id(),
        "topic_name": topic,
        "partition_id": row.partition_index,
        "broker_id": broker,
        "is_leader": row.leader_id == broker,
        "is_in_sync": row.isr_nodes.contains(&broker),
        "broker": call.related(&["brokers", &id]),
    })
}

pub async fn reassignments(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let moving = metadata::reassignments(&mut call.cluster, None).await?;
    Ok(listed(call, &["topics", "-", "partitions", "-", "reassignment"], &moving))
}

pub async fn reassignments_of_topic(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let name = call.at.param("topic").to_owned();
    let topic = metadata::topic(&mut call.cluster, &name).await?;
    let indexes = topic.partitions.iter().map(|row| row.partition_index).collect();
    let moving = metadata::reassignments(&mut call.cluster, Some(vec![(name.clone(), indexes)])).await?;
    Ok(listed(call, &["topics", &name, "partitions", "-", "reassignment"], &moving))
}

fn listed(call: &Call, place: &[&str], moving: &[OngoingTopicReassignment]) -> Answer {
    let mut rows = Vec::new();
    for topic in moving {
        rows.extend(topic.partitions.iter().map(|row| moving_document(call, &topic.name, row)));
    }
    call.list("KafkaReassignmentList", place, rows)
}

pub async fn reassignment(call: &mut Call) -> Result<Answer, Problem> {
    let (name, row) = found_partition(call).await?;
    let index = row.partition_index;
    let moving = metadata::reassignments(&mut call.cluster, Some(vec![(name.clone(), vec![index])])).await?;
    let found = moving.iter().flat_map(|topic| &topic.partitions).find(|row| row.partition_index == index);
    let found = found.ok_or_else(|| Problem::not_found(format!("no replica of {name}-{index} moves")))?;
    Ok(Answer::json(moving_document(call, &name, found)))
}

fn moving_document(call: &Call, topic: &str, row: &OngoingPartitionReassignment) -> Value {
    let index = row.partition_index.to_string();
    let place = ["topics", topic, "partitions", &index];
    json!({
        "kind": "KafkaReassignment",
        "metadata": call.metadata(
            &[&place[..], &["reassignment"]].concat(),
            &format!("topic={topic}/partition={index}/reassignment"),
        ),
        "cluster_id": call.cluster.id(),
        "topic_name": topic,
        "partition_id": row.partition_index,
        "adding_replicas": row.adding_replicas,
        "removing_replicas": row.removing_replicas,
        "replicas": call.related(&[&place[..], &["replicas"]].concat()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_topic_with_a_misspelled_field_is_refused() {
        let topic = |text: &str| new_topic(&Fields::read(text.as_bytes()).expect("an object"));
        let sound = topic(r#"{"topic_name":"t","partitions_count":6,"validate_only":true}"#).expect("sound");
        assert_eq!(sound.num_partitions, 6);
        let refused = topic(r#"{"topic_name":"t","partition_count":6}"#).expect_err("no such field");
        assert_eq!(refused.status, 400);
        assert!(refused.detail.starts_with("unknown field 'partition_count'; "), "{}", refused.detail);
    }
}
