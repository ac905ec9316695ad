//! Configurations of topics and brokers: described with their origins, changed one key at a time.

use barnabas_base::BrokerId;
use barnabas_client::{ClientError, Cluster, check};
use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;
use barnabas_wire::messages::describe_configs_response::DescribeConfigsResourceResult;
use barnabas_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use barnabas_wire::messages::{DescribeConfigsRequest, IncrementalAlterConfigsRequest};

/// Whose configurations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    Topic(String),
    Broker(BrokerId),
    /// The dynamic defaults of all brokers.
    AllBrokers,
}

impl Resource {
    /// Kafka's `ConfigResource.Type`, and the name.
    fn wire(&self) -> (i8, String) {
        match self {
            Self::Topic(name) => (2, name.clone()),
            Self::Broker(id) => (4, id.to_string()),
            Self::AllBrokers => (4, String::new()),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Topic(name) => format!("topic {name}"),
            Self::Broker(id) => format!("broker {id}"),
            Self::AllBrokers => "the brokers' defaults".to_owned(),
        }
    }
}

/// One change. Kafka's `AlterConfigOp.OpType`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub name: String,
    pub operation: Operation,
    pub value: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Set = 0,
    Delete = 1,
    Append = 2,
    Subtract = 3,
}

impl Operation {
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "SET" => Some(Self::Set),
            "DELETE" => Some(Self::Delete),
            "APPEND" => Some(Self::Append),
            "SUBTRACT" => Some(Self::Subtract),
            _ => None,
        }
    }
}

/// The configurations of each resource, by name. Those of a broker come from that broker; all resources of one call are
/// topics, or one broker.
///
/// # Errors
/// A refusal, of the first resource that has one.
pub async fn describe(
    cluster: &mut Cluster,
    resources: &[Resource],
) -> Result<Vec<Vec<DescribeConfigsResourceResult>>, ClientError> {
    let asked = |resource: &Resource| {
        let (resource_type, name) = resource.wire();
        DescribeConfigsResource {
            resource_type,
            resource_name: name.as_str().into(),
            configuration_keys: None,
            ..Default::default()
        }
    };
    let request = DescribeConfigsRequest {
        resources: resources.iter().map(asked).collect(),
        include_synonyms: true,
        include_documentation: false,
        ..Default::default()
    };
    let answer = match resources {
        [Resource::Broker(node)] => cluster.ask(*node, &request).await?,
        _ => cluster.ask_any(&request).await?,
    };
    let mut described = Vec::new();
    for resource in resources {
        let (kind, name) = resource.wire();
        let is_meant = |told: &&_| {
            let told: &barnabas_wire::messages::describe_configs_response::DescribeConfigsResult = told;
            told.resource_type == kind && *told.resource_name == *name
        };
        let told = answer.results.iter().find(is_meant);
        let told =
            told.ok_or_else(|| ClientError::Invalid(format!("no answer about {}", resource.words())))?;
        check(resource.words(), told.error_code, told.error_message.as_deref())?;
        let mut configs = told.configs.clone();
        configs.sort_by(|one, other| one.name.cmp(&other.name));
        described.push(configs);
    }
    Ok(described)
}

/// # Errors
/// The refusal: `INVALID_CONFIG`, `TOPIC_AUTHORIZATION_FAILED` …
pub async fn alter(
    cluster: &mut Cluster,
    resource: &Resource,
    changes: &[Change],
    validate_only: bool,
) -> Result<(), ClientError> {
    let (resource_type, name) = resource.wire();
    let config = |change: &Change| AlterableConfig {
        name: change.name.as_str().into(),
        config_operation: change.operation as i8,
        value: change.value.as_deref().map(Into::into),
        ..Default::default()
    };
    let row = AlterConfigsResource {
        resource_type,
        resource_name: name.as_str().into(),
        configs: changes.iter().map(config).collect(),
        ..Default::default()
    };
    let request =
        IncrementalAlterConfigsRequest { resources: vec![row], validate_only, ..Default::default() };
    let answer = match resource {
        Resource::Broker(node) => cluster.ask(*node, &request).await?,
        _ => cluster.ask_controller(|_| request.clone()).await?,
    };
    let told = answer.responses.first();
    let told = told.ok_or_else(|| ClientError::Invalid("the answer names no resource".to_owned()))?;
    check(resource.words(), told.error_code, told.error_message.as_deref())
}

/// Kafka's `ConfigEntry.ConfigSource`.
pub fn source(number: i8) -> &'static str {
    match number {
        1 => "DYNAMIC_TOPIC_CONFIG",
        2 => "DYNAMIC_BROKER_CONFIG",
        3 => "DYNAMIC_DEFAULT_BROKER_CONFIG",
        4 => "STATIC_BROKER_CONFIG",
        5 => "DEFAULT_CONFIG",
        6 => "DYNAMIC_BROKER_LOGGER_CONFIG",
        7 => "DYNAMIC_CLIENT_METRICS_CONFIG",
        8 => "DYNAMIC_GROUP_CONFIG",
        _ => "UNKNOWN",
    }
}
