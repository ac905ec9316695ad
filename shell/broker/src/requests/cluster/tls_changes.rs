//! Changes of a listener's stores by IncrementalAlterConfigs: the broker that they are for tries them before the
//! controller writes them down, as Kafka's brokers do. What cannot be used is refused with INVALID_REQUEST.
//!
//! Source: Kafka `ConfigAdminManager.validateBrokerConfigChange`, `DynamicListenerConfig.validateReconfiguration`.

use crate::node::Node;
use barnabas_base::ErrorCode;
use barnabas_metadata::ResourceType;
use barnabas_metadata::config::BrokerConfig;
use barnabas_wire::messages::IncrementalAlterConfigsRequest;
use barnabas_wire::messages::incremental_alter_configs_request::AlterConfigsResource;
use barnabas_wire::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use std::sync::Arc;

/// AlterConfigOp.OpType.SET
const SET: i8 = 0;

/// Takes what cannot be used out of `request`, and returns the answers to it. Stores are read on a thread for blocking
/// work.
pub async fn refuse(
    node: Arc<Node>,
    request: &mut IncrementalAlterConfigsRequest,
) -> Vec<AlterConfigsResourceResponse> {
    let own = node.identity.broker_id.to_string();
    let is_of_stores = |resource: &AlterConfigsResource| {
        let is_of_listener = |name: &str| name.starts_with("listener.name.") && name.contains(".ssl.");
        resource.resource_type == ResourceType::Broker.code()
            && *resource.resource_name == *own
            && resource.configs.iter().any(|config| is_of_listener(&config.name))
    };
    let mut refused = Vec::new();
    let mut kept = Vec::new();
    for resource in std::mem::take(&mut request.resources) {
        let why = if is_of_stores(&resource) { tried(node.clone(), &resource).await } else { None };
        match why {
            None => kept.push(resource),
            Some(why) => refused.push(AlterConfigsResourceResponse {
                error_code: ErrorCode::InvalidRequest.code(),
                error_message: Some(why.into()),
                resource_type: resource.resource_type,
                resource_name: resource.resource_name,
                ..AlterConfigsResourceResponse::default()
            }),
        }
    }
    request.resources = kept;
    refused
}

/// Why the changes cannot be used.
async fn tried(node: Arc<Node>, resource: &AlterConfigsResource) -> Option<String> {
    let config = changed(&node.cluster.config.load(), resource);
    let now_s = node.clock.wall().0 / 1000;
    let checked = tokio::task::spawn_blocking(move || node.peers.tls.check(&config, now_s)).await;
    match checked {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(error) => Some(format!("the stores could not be tried: {error}")),
    }
}

/// The broker's configuration as it would be.
fn changed(config: &BrokerConfig, resource: &AlterConfigsResource) -> BrokerConfig {
    let mut dynamic = config.dynamic().clone();
    for change in &resource.configs {
        match &change.value {
            Some(value) if change.config_operation == SET => {
                dynamic.broker.insert(change.name.text(), value.text());
            }
            _ => drop(dynamic.broker.remove(&*change.name)),
        }
    }
    config.with_dynamic(dynamic)
}
