//! Configurations of topics, brokers, loggers, groups and client metrics on the wire.
//!
//! Source: Kafka `ConfigCommand.alterResourceConfig`, `getResourceConfig`.

use super::change::Change;
use super::entities::{Kind, LOGGERS};
use crate::asking::alter_configs::{self, changes};
use barnabas_base::BrokerId;
use barnabas_client::{ClientError, Cluster, check};
use barnabas_wire::messages::DescribeConfigsRequest;
use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;
use barnabas_wire::messages::describe_configs_response::DescribeConfigsResult;

/// # Errors
/// The cluster's refusal; a logger that is not there.
pub async fn alter(
    cluster: &mut Cluster,
    kind: &Kind,
    entity: &str,
    change: &Change,
) -> Result<(), ClientError> {
    if kind.words == LOGGERS {
        let known = described(cluster, kind, entity).await?.configs;
        let keys = change.set.iter().map(|(key, _)| key).chain(&change.delete);
        let is_missing = |key: &&String| !known.iter().any(|logger| *logger.name == **key);
        let missing: Vec<&str> = keys.filter(is_missing).map(String::as_str).collect();
        if !missing.is_empty() {
            let why = format!("broker {entity} has no such loggers: {}", missing.join(", "));
            return Err(ClientError::Invalid(why));
        }
    }
    let delete = change.delete.iter().map(|key| (key.as_str(), None));
    let set = change.set.iter().map(|(key, value)| (key.as_str(), Some(value.as_str())));
    let changes = changes(wire(kind), entity, delete.chain(set));
    let node = broker_of(cluster, kind, entity).await?;
    alter_configs::alter(cluster, node, &name(kind, entity), vec![changes]).await
}

fn wire(kind: &Kind) -> i8 {
    kind.resource.as_ref().map_or(0, |resource| resource.wire)
}

/// The node that answers for itself, and for its loggers; `None`: any.
async fn broker_of(
    cluster: &mut Cluster,
    kind: &Kind,
    entity: &str,
) -> Result<Option<BrokerId>, ClientError> {
    if !kind.is_of_brokers() || entity.is_empty() {
        return Ok(None);
    }
    let nodes = cluster.nodes().await?;
    let found = nodes.into_iter().find(|node| node.to_string() == entity);
    let node = if cluster.config().is_of_controllers { "controller" } else { "broker" };
    found.map(Some).ok_or_else(|| ClientError::Invalid(format!("there is no {node} {entity}")))
}

/// # Errors
/// The cluster's refusal.
pub async fn described(
    cluster: &mut Cluster,
    kind: &Kind,
    entity: &str,
) -> Result<DescribeConfigsResult, ClientError> {
    let resource = DescribeConfigsResource {
        resource_type: wire(kind),
        resource_name: entity.into(),
        configuration_keys: None,
        ..Default::default()
    };
    let request =
        DescribeConfigsRequest { resources: vec![resource], include_synonyms: true, ..Default::default() };
    let answer = match broker_of(cluster, kind, entity).await? {
        Some(broker) => cluster.ask(broker, &request).await?,
        None => cluster.ask_any(&request).await?,
    };
    let told = answer.results.into_iter().next();
    let told = told.ok_or_else(|| ClientError::Invalid("the answer names no resource".to_owned()))?;
    check(name(kind, entity), told.error_code, told.error_message.as_deref())?;
    Ok(told)
}

/// `topic orders`; of a default `topic` alone.
fn name(kind: &Kind, entity: &str) -> String {
    format!("{} {entity}", kind.one()).trim_end().to_owned()
}
