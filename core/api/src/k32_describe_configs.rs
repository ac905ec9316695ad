//! # DescribeConfigs, key 32, versions 0–4
//!
//! Shows the configuration of topics, brokers, groups and client-metrics subscriptions: what is in force, and why.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-133) |
//! | 1 | where a value comes from, synonyms (KIP-226) |
//! | 2 | throttling by the client (KIP-219) |
//! | 3 | types and documentation (KIP-569) |
//! | 4 | flexible (KIP-482) |
//!
//! ## Left out
//! - An answer of more than `answer.bytes.max` bytes: the resources that have no place in it are refused with
//!   INVALID_REQUEST.
//! - Documentation is in our own words.
//!
//! Source: Kafka 4.4 `ConfigHelper.describeConfigs`.

use barnabas_base::{ErrorCode, Set, check_topic_name};
use barnabas_metadata::config::ConfigSource;
use barnabas_metadata::{Resource, ResourceType};
use barnabas_security::Operation;
use barnabas_wire::Str;
use barnabas_wire::messages::describe_configs_request::{DescribeConfigsRequest, DescribeConfigsResource};
use barnabas_wire::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResponse, DescribeConfigsResult, DescribeConfigsSynonym,
};

use crate::access::refusal;
use crate::altered::denied;
use crate::described::{
    Entry, Synonym, broker_default_entries, broker_entries, client_metrics_entries, group_entries,
    logger_entries, topic_entries,
};
use crate::{Context, Refusal};

mod large;

pub use large::{Large, large};

/// The answer.
pub fn answer(request: &DescribeConfigsRequest, version: i16, ctx: &Context<'_>) -> DescribeConfigsResponse {
    let shape = Shape::of(request, version);
    let results = request.resources.iter().map(|resource| describe(resource, shape, ctx));
    DescribeConfigsResponse { results: results.collect(), ..DescribeConfigsResponse::default() }
}

/// The refusal for a client that may not read this node's metrics through DescribeConfigs (a resource type of our own,
/// outside Kafka's). They show all clients' names and the node's paths: they want what a broker's configuration wants.
///
/// # Source
/// Kafka 4.4 `ConfigHelper.handleDescribeConfigsRequest`, for `BROKER`.
pub fn metrics_refusal(ctx: &Context<'_>) -> Option<Refusal> {
    denied(Operation::DescribeConfigs, ResourceType::Broker, "", ctx).map(refusal)
}

/// What of an entry goes into the answer.
#[derive(Debug, Clone, Copy)]
struct Shape {
    version: i16,
    synonyms: bool,
    documentation: bool,
}

fn describe(resource: &DescribeConfigsResource, shape: Shape, ctx: &Context<'_>) -> DescribeConfigsResult {
    let mut result = DescribeConfigsResult {
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
        ..DescribeConfigsResult::default()
    };
    match entries(resource, ctx) {
        Ok(entries) => {
            let keys = resource.configuration_keys.as_ref().filter(|keys| !keys.is_empty());
            let keys: Option<Set<&str>> = keys.map(|keys| keys.iter().map(Str::as_str).collect());
            let wanted = |entry: &Entry| keys.as_ref().is_none_or(|keys| keys.contains(&*entry.name));
            result.configs = entries.into_iter().filter(wanted).map(|entry| shape.show(entry)).collect();
        }
        Err(refusal) => {
            result.error_code = refusal.code.code();
            result.error_message = refusal.text();
        }
    }
    result
}

fn entries(resource: &DescribeConfigsResource, ctx: &Context<'_>) -> Result<Vec<Entry>, Refusal> {
    let name = resource.resource_name.as_str();
    let invalid = |message: &str| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    let kind = ResourceType::from_code(resource.resource_type);
    if let Some(code) = kind.and_then(|kind| denied(Operation::DescribeConfigs, kind, name, ctx)) {
        return Err(refusal(code));
    }
    let own = kind.and_then(|kind| ctx.image.configs.of(&Resource::new(kind, name)));
    let own = |key: &str| own.and_then(|values| values.get(key)).map(|value| &**value);
    match kind {
        Some(ResourceType::Topic) => {
            check_topic_name(name)
                .map_err(|error| Refusal::new(ErrorCode::InvalidTopicException, error.to_string()))?;
            if ctx.image.topics.by_name(name).is_none() {
                return Err(ErrorCode::UnknownTopicOrPartition.into());
            }
            Ok(topic_entries(&own, ctx.config))
        }
        Some(ResourceType::Broker) if name.is_empty() => Ok(broker_default_entries(ctx.config)),
        Some(ResourceType::Broker) => match name.parse::<i32>() {
            Err(_) => invalid(&format!("Broker id must be an integer, but it is: {name}")),
            Ok(id) if id != ctx.node.get() => invalid(&format!(
                "Unexpected broker id, expected {} or empty string, but received {name}",
                ctx.node
            )),
            Ok(_) => Ok(broker_entries(ctx.config)),
        },
        Some(ResourceType::ClientMetrics) if name.is_empty() => {
            invalid("A client-metrics subscription has a name that is not empty.")
        }
        Some(ResourceType::ClientMetrics) => Ok(client_metrics_entries(&own)),
        Some(ResourceType::Group) if name.is_empty() => invalid("A group has a name that is not empty."),
        Some(ResourceType::Group) => Ok(group_entries(&own, ctx.config)),
        Some(ResourceType::BrokerLogger) if name.is_empty() => invalid("Broker id must not be empty"),
        Some(ResourceType::BrokerLogger) => match name.parse::<i32>() {
            Err(_) => invalid(&format!("Broker id must be an integer, but it is: {name}")),
            Ok(id) if id != ctx.node.get() => {
                invalid(&format!("Unexpected broker id, expected {} but received {name}", ctx.node))
            }
            Ok(_) => Ok(logger_entries((ctx.loggers)())),
        },
        None => invalid(&format!("There is no resource type {}.", resource.resource_type)),
    }
}

impl Shape {
    fn of(request: &DescribeConfigsRequest, version: i16) -> Self {
        Self {
            version,
            synonyms: version >= 1 && request.include_synonyms,
            documentation: version >= 3 && request.include_documentation,
        }
    }

    fn show(self, entry: Entry) -> DescribeConfigsResourceResult {
        let bare = DescribeConfigsResourceResult::default();
        DescribeConfigsResourceResult {
            name: Str::from(entry.name),
            value: entry.value.map(Str::from),
            read_only: entry.read_only,
            is_default: self.version == 0 && entry.source == ConfigSource::Default,
            config_source: if self.version >= 1 { entry.source as i8 } else { bare.config_source },
            is_sensitive: entry.is_sensitive,
            synonyms: if self.synonyms {
                entry.synonyms.into_iter().map(synonym).collect()
            } else {
                Vec::new()
            },
            config_type: if self.version >= 3 { entry.kind } else { bare.config_type },
            documentation: match self {
                Self { documentation: true, .. } => Some(Str::from_static(entry.doc)),
                Self { version: 3.., .. } => None,
                _ => bare.documentation.clone(),
            },
            ..bare
        }
    }
}

fn synonym(synonym: Synonym) -> DescribeConfigsSynonym {
    DescribeConfigsSynonym {
        name: Str::from(synonym.name),
        value: synonym.value.map(Str::from),
        source: synonym.source as i8,
        ..DescribeConfigsSynonym::default()
    }
}

#[cfg(test)]
mod tests;
