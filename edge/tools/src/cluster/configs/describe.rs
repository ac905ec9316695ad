//! `configs --describe`: the entities that are meant, and the lines about each of them, in Kafka's words.
//!
//! Source: Kafka `ConfigCommand.describeResourceConfig`.

use super::entities::{BROKERS, GROUPS, Kind, METRICS, TOPICS};
use super::resources::described;
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::describe_configs_response::DescribeConfigsResult;
use barnabas_wire::messages::{ListConfigResourcesRequest, ListGroupsRequest};
use std::collections::BTreeSet;

/// About `entity`, or about all entities of the kind. The empty name is the brokers' default.
pub async fn lines(
    cluster: &mut Cluster,
    kind: &Kind,
    entity: Option<&str>,
    is_all: bool,
) -> Result<Vec<String>, ClientError> {
    let asked = match entity {
        // With --all the cluster itself says what is not there.
        Some(name) if is_all => vec![name.to_owned()],
        Some(name) => {
            if !entities(cluster, kind).await?.iter().any(|known| known == name) {
                let line =
                    format!("The {} '{name}' doesn't exist and doesn't have dynamic config.", kind.one());
                return Ok(vec![line]);
            }
            vec![name.to_owned()]
        }
        None => entities(cluster, kind).await?,
    };
    let mut lines = Vec::new();
    for entity in asked {
        let told = described(cluster, kind, &entity).await?;
        lines.extend(about(kind, &entity, &told, is_all));
    }
    Ok(lines)
}

/// All that there are of the kind.
async fn entities(cluster: &mut Cluster, kind: &Kind) -> Result<Vec<String>, ClientError> {
    match kind.words {
        TOPICS => {
            let topics = cluster.refresh(None, false).await?.topics;
            let names = topics.into_iter().filter_map(|topic| topic.name).map(|name| name.to_string());
            Ok(names.collect::<BTreeSet<String>>().into_iter().collect())
        }
        METRICS => Ok(configured(cluster, kind).await?.into_iter().collect()),
        GROUPS => groups(cluster, kind).await,
        _ => {
            let ids = cluster.nodes().await?;
            let default = (kind.words == BROKERS).then(String::new);
            Ok(ids.iter().map(ToString::to_string).chain(default).collect())
        }
    }
}

/// Those that have a configuration.
async fn configured(cluster: &mut Cluster, kind: &Kind) -> Result<BTreeSet<String>, ClientError> {
    let resource_types = kind.resource.iter().map(|resource| resource.wire).collect();
    let request = ListConfigResourcesRequest { resource_types, ..Default::default() };
    let answer = cluster.ask_any(&request).await?;
    match answer.error_code {
        0 => Ok(answer.config_resources.iter().map(|found| found.resource_name.to_string()).collect()),
        code => Err(ClientError::refused(format!("listing {}", kind.words), code, None)),
    }
}

/// Those that exist and, where the brokers list them, those that have a configuration.
async fn groups(cluster: &mut Cluster, kind: &Kind) -> Result<Vec<String>, ClientError> {
    let mut names = match configured(cluster, kind).await {
        Err(ClientError::Unsupported { .. }) => BTreeSet::new(),
        Err(error) if error.code() == Some(ErrorCode::ClusterAuthorizationFailed) => BTreeSet::new(),
        names => names?,
    };
    for node in cluster.nodes().await? {
        let answer = cluster.ask(node, &ListGroupsRequest::default()).await?;
        if answer.error_code != 0 {
            let what = format!("listing the groups of broker {node}");
            return Err(ClientError::refused(what, answer.error_code, None));
        }
        names.extend(answer.groups.iter().map(|group| group.group_id.to_string()));
    }
    Ok(names.into_iter().collect())
}

pub(super) fn about(kind: &Kind, entity: &str, told: &DescribeConfigsResult, is_all: bool) -> Vec<String> {
    let head = match (entity, is_all) {
        ("", _) => format!("Default configs for {} in the cluster are:", kind.words),
        (name, true) => format!("All configs for {} {name} are:", kind.one()),
        (name, false) => format!("Dynamic configs for {} {name} are:", kind.one()),
    };
    let source = kind.source_of(entity).filter(|_| !is_all);
    let is_meant = |found: i8| source.is_none_or(|source| found == source);
    let mut configs: Vec<_> = told.configs.iter().filter(|config| is_meant(config.config_source)).collect();
    configs.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    let shown = |value: Option<&str>| value.unwrap_or("null").to_owned();
    let rows = configs.into_iter().map(|config| {
        let synonyms = config.synonyms.iter().map(|synonym| {
            format!("{}:{}={}", source_name(synonym.source), &*synonym.name, shown(synonym.value.as_deref()))
        });
        let synonyms: Vec<String> = synonyms.collect();
        let (name, value) = (&*config.name, shown(config.value.as_deref()));
        format!("  {name}={value} sensitive={} synonyms={{{}}}", config.is_sensitive, synonyms.join(", "))
    });
    std::iter::once(head).chain(rows).collect()
}

/// Kafka's `ConfigEntry.ConfigSource`.
fn source_name(source: i8) -> &'static str {
    match source {
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
