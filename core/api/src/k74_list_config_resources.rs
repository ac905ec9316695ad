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

mod large;

use barnabas_base::{ErrorCode, Set, Text};
use barnabas_metadata::ResourceType;
use barnabas_wire::Str;
use barnabas_wire::messages::list_config_resources_request::ListConfigResourcesRequest;
use barnabas_wire::messages::list_config_resources_response::{ConfigResource, ListConfigResourcesResponse};

use crate::Context;
pub use large::{Large, large};

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
    let Some(kinds) = wanted(request, version) else {
        return ListConfigResourcesResponse {
            error_code: ErrorCode::UnsupportedVersion.code(),
            ..ListConfigResourcesResponse::default()
        };
    };
    let entries = |kind| names(kind, None, ctx).map(move |name| entry(kind, &name, version));
    ListConfigResourcesResponse {
        config_resources: kinds.into_iter().flat_map(entries).collect(),
        ..ListConfigResourcesResponse::default()
    }
}

/// The kinds to list, in the order of the answer; `None` where one is named that the version does not know.
fn wanted(request: &ListConfigResourcesRequest, version: i16) -> Option<Vec<ResourceType>> {
    let known = if version == 0 { VERSION_0 } else { VERSION_1 };
    let types: Set<i8> = request.resource_types.iter().copied().collect();
    if !types.iter().all(|code| known.iter().any(|kind| kind.code() == *code)) {
        return None;
    }
    let is_wanted = |kind: &&ResourceType| types.is_empty() || types.contains(&kind.code());
    Some(known.iter().filter(is_wanted).copied().collect())
}

fn entry(kind: ResourceType, name: &str, version: i16) -> ConfigResource {
    ConfigResource {
        resource_name: Str::from(name),
        // Version 0 knows one kind and does not name it.
        resource_type: if version >= 1 { kind.code() } else { ConfigResource::default().resource_type },
        ..ConfigResource::default()
    }
}

/// The names of one kind in their order (brokers by number), those after `last`.
fn names<'a>(
    kind: ResourceType,
    last: Option<&Text>,
    ctx: &'a Context<'_>,
) -> Box<dyn Iterator<Item = Text> + 'a> {
    let image = ctx.image;
    let from = last.cloned().unwrap_or_default();
    let last = last.cloned();
    let is_left = move |name: &Text| last.as_ref().is_none_or(|last| name > last);
    match kind {
        ResourceType::Topic => {
            Box::new(image.topics.iter_from(&from).map(|topic| topic.name.clone()).filter(is_left))
        }
        ResourceType::Broker | ResourceType::BrokerLogger => {
            let last = from.parse::<i32>().ok();
            let here = image.cluster.brokers().filter(|broker| ctx.node_of(broker).is_some());
            let left = here.filter(move |broker| last.is_none_or(|last| broker.id.get() > last));
            Box::new(left.map(|broker| Text::from(broker.id.to_string())))
        }
        ResourceType::ClientMetrics | ResourceType::Group => {
            let of_kind = image.configs.of_kind_from(kind, from);
            Box::new(of_kind.map(|(resource, _)| resource.name.clone()).filter(is_left))
        }
    }
}

fn count(kind: ResourceType, ctx: &Context<'_>) -> usize {
    match kind {
        ResourceType::Topic => ctx.image.topics.len(),
        _ => names(kind, None, ctx).count(),
    }
}

#[cfg(test)]
mod tests;
