//! `configs --describe`: the entities that are meant, and the lines about each of them, in Kafka's words.

use super::{BROKERS, Kind, LOGGERS, TOPICS, described};
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::ListConfigResourcesRequest;
use barnabas_wire::messages::describe_configs_response::DescribeConfigsResult;

/// About `entity`, or about all entities of the kind. The empty name is the brokers' default.
pub async fn lines(
    cluster: &mut Cluster,
    kind: &Kind,
    entity: Option<&str>,
    is_all: bool,
) -> Result<Vec<String>, ClientError> {
    let known = entities(cluster, kind).await?;
    let asked = match entity {
        // Groups and subscriptions may be configured before they exist.
        Some(name)
            if matches!(kind.words, TOPICS | BROKERS | LOGGERS)
                && !known.iter().any(|known| known == name) =>
        {
            let line = format!("The {} '{name}' doesn't exist and doesn't have dynamic config.", kind.one());
            return Ok(vec![line]);
        }
        Some(name) => vec![name.to_owned()],
        None => known,
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
    let mut names: Vec<String> = match kind.words {
        TOPICS => {
            let topics = cluster.refresh(None, false).await?.topics;
            topics.into_iter().filter_map(|topic| topic.name).map(|name| name.to_string()).collect()
        }
        BROKERS | LOGGERS => {
            let brokers = cluster.refresh(Some(&[]), false).await?.brokers;
            let mut ids: Vec<i32> = brokers.iter().map(|broker| broker.node_id).collect();
            ids.sort_unstable();
            let default = (kind.words == BROKERS).then(String::new);
            return Ok(ids.iter().map(ToString::to_string).chain(default).collect());
        }
        _ => {
            let request =
                ListConfigResourcesRequest { resource_types: vec![kind.wire], ..Default::default() };
            let answer = cluster.ask_any(&request).await?;
            answer.config_resources.iter().map(|found| found.resource_name.to_string()).collect()
        }
    };
    names.sort_unstable();
    Ok(names)
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
