//! The cluster and its brokers.

use super::check_cluster;
use super::topics::replica_document;
use crate::http::call::{Answer, Call};
use crate::http::problem::Problem;
use crate::kafka::metadata;
use barnabas_wire::messages::MetadataResponse;
use barnabas_wire::messages::metadata_response::MetadataResponseBroker;
use serde_json::{Value, json};

pub async fn list(call: &mut Call) -> Result<Answer, Problem> {
    let known = metadata::ask(&mut call.cluster, Some(&[])).await?;
    let own = json!({ "self": format!("{}/clusters", call.at.base), "next": null });
    let document = document(call, &known);
    Ok(Answer::json(json!({ "kind": "KafkaClusterList", "metadata": own, "data": [document] })))
}

pub async fn get(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let known = metadata::ask(&mut call.cluster, Some(&[])).await?;
    Ok(Answer::json(document(call, &known)))
}

fn document(call: &Call, known: &MetadataResponse) -> Value {
    let mut document = json!({
        "kind": "KafkaCluster",
        "metadata": call.metadata(&[], ""),
        "cluster_id": call.cluster.id(),
        "acls": call.related(&["acls"]),
        "brokers": call.related(&["brokers"]),
        "broker_configs": call.related(&["broker-configs"]),
        "consumer_groups": call.related(&["consumer-groups"]),
        "topics": call.related(&["topics"]),
        "partition_reassignments": call.related(&["topics", "-", "partitions", "-", "reassignment"]),
    });
    if known.controller_id >= 0 {
        document["controller"] = call.related(&["brokers", &known.controller_id.to_string()]);
    }
    document
}

pub async fn brokers(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let mut known = metadata::ask(&mut call.cluster, Some(&[])).await?;
    known.brokers.sort_by_key(|broker| broker.node_id);
    let rows = known.brokers.iter().map(|broker| broker_document(call, broker)).collect();
    Ok(call.list("KafkaBrokerList", &["brokers"], rows))
}

pub async fn broker(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let id = call.at.number("broker")?;
    let known = metadata::ask(&mut call.cluster, Some(&[])).await?;
    let found = known.brokers.iter().find(|broker| broker.node_id == id);
    let found = found.ok_or_else(|| no_broker(id))?;
    Ok(Answer::json(broker_document(call, found)))
}

fn broker_document(call: &Call, broker: &MetadataResponseBroker) -> Value {
    let id = broker.node_id.to_string();
    json!({
        "kind": "KafkaBroker",
        "metadata": call.metadata(&["brokers", &id], &format!("broker={id}")),
        "cluster_id": call.cluster.id(),
        "broker_id": broker.node_id,
        "host": &*broker.host,
        "port": broker.port,
        "rack": broker.rack.as_deref(),
        "configs": call.related(&["brokers", &id, "configs"]),
        "partition_replicas": call.related(&["brokers", &id, "partition-replicas"]),
    })
}

pub fn no_broker(id: i32) -> Problem {
    Problem::not_found(format!("no broker has the id {id}, or it does not run"))
}

/// The replicas of all topics on one broker.
pub async fn replicas(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let id = call.at.number("broker")?;
    let known = metadata::ask(&mut call.cluster, None).await?;
    if !known.brokers.iter().any(|broker| broker.node_id == id) {
        return Err(no_broker(id));
    }
    let mut rows = Vec::new();
    for topic in known.topics.iter().filter(|topic| topic.error_code == 0) {
        let name = topic.name.as_deref().unwrap_or_default();
        let here = topic.partitions.iter().filter(|row| row.replica_nodes.contains(&id));
        rows.extend(here.map(|row| replica_document(call, name, row, id)));
    }
    Ok(call.list("KafkaReplicaList", &["brokers", &id.to_string(), "partition-replicas"], rows))
}
