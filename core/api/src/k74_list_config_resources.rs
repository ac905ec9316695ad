//! # ListConfigResources, key 74, versions 0–1
//!
//! Lists the resources that have, or can have, a configuration.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | client-metrics subscriptions (KIP-714) |
//! | 1 | every kind of resource, and which ones are wanted (KIP-1142) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleListConfigResources`.

use barnabas_base::ErrorCode;
use barnabas_metadata::ResourceType;
use barnabas_wire::Str;
use barnabas_wire::messages::list_config_resources_request::ListConfigResourcesRequest;
use barnabas_wire::messages::list_config_resources_response::{ConfigResource, ListConfigResourcesResponse};

use crate::Context;

const VERSION_0: &[ResourceType] = &[ResourceType::ClientMetrics];
const VERSION_1: &[ResourceType] = &[
    ResourceType::Group,
    ResourceType::ClientMetrics,
    ResourceType::BrokerLogger,
    ResourceType::Broker,
    ResourceType::Topic,
];

/// The answer.
pub fn answer(
    request: &ListConfigResourcesRequest,
    version: i16,
    ctx: &Context<'_>,
) -> ListConfigResourcesResponse {
    let known = if version == 0 { VERSION_0 } else { VERSION_1 };
    let is_known = |code: &i8| known.iter().any(|kind| kind.code() == *code);
    if !request.resource_types.iter().all(is_known) {
        return ListConfigResourcesResponse {
            error_code: ErrorCode::UnsupportedVersion.code(),
            ..ListConfigResourcesResponse::default()
        };
    }
    let is_wanted = |kind: &&ResourceType| {
        request.resource_types.is_empty() || request.resource_types.contains(&kind.code())
    };
    let resources = known
        .iter()
        .filter(is_wanted)
        .flat_map(|kind| names(*kind, ctx).into_iter().map(|name| (*kind, name)));
    let resources = resources.map(|(kind, name)| ConfigResource {
        resource_name: name,
        // Version 0 knows one kind and does not name it.
        resource_type: if version >= 1 { kind.code() } else { ConfigResource::default().resource_type },
        ..ConfigResource::default()
    });
    ListConfigResourcesResponse {
        config_resources: resources.collect(),
        ..ListConfigResourcesResponse::default()
    }
}

fn names(kind: ResourceType, ctx: &Context<'_>) -> Vec<Str> {
    let image = ctx.image;
    match kind {
        ResourceType::Topic => image.topics.iter().map(|topic| Str::from(&topic.name)).collect(),
        ResourceType::Broker | ResourceType::BrokerLogger => {
            let here = image.cluster.brokers().filter(|broker| ctx.node_of(broker).is_some());
            here.map(|broker| Str::from(broker.id.to_string())).collect()
        }
        ResourceType::ClientMetrics | ResourceType::Group => {
            image.configs.of_kind(kind).map(|(resource, _)| Str::from(&resource.name)).collect()
        }
    }
}

#[cfg(test)]
mod tests;
