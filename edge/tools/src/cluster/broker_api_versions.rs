//! `broker-api-versions`, as Kafka's `kafka-broker-api-versions`: which requests each node answers, in which versions,
//! and which of these this program speaks.
//!
//! Source: Kafka 4.3 `BrokerApiVersionsCommand`, `NodeApiVersions.toString`.

use crate::command_line::connection::{bootstrap_server, cluster_config, command_config};
use crate::{ToolError, block_on, say};
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::ApiKey;
use barnabas_wire::messages::api_versions_response::ApiVersion;
use barnabas_wire::messages::{ApiVersionsRequest, ApiVersionsResponse};
use clap::{Arg, ArgMatches};
use std::collections::BTreeMap;

/// No key is larger; Kafka's own end at 94.
const KEY_MAX: i16 = 200;

pub fn flags() -> Vec<Arg> {
    vec![bootstrap_server().required(true), command_config()]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let mut cluster = Cluster::new(cluster_config(matches, "barnabas-broker-api-versions")?);
    block_on(print(&mut cluster))
}

/// ApiVersions, with the name and version of this client.
pub fn request() -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: "barnabas".into(),
        client_software_version: env!("CARGO_PKG_VERSION").into(),
        ..Default::default()
    }
}

/// # Errors
/// No node can be asked for the others, or standard output takes no more. A node that cannot be asked itself is named.
pub async fn print(cluster: &mut Cluster) -> Result<(), ToolError> {
    let racks: BTreeMap<i32, String> = if cluster.config().is_of_controllers {
        BTreeMap::new()
    } else {
        let known = cluster.refresh(Some(&[]), false).await?.brokers;
        let rack =
            |rack: &Option<barnabas_wire::Str>| rack.as_ref().map_or("null", |rack| rack.as_str()).to_owned();
        known.iter().map(|broker| (broker.node_id, rack(&broker.rack))).collect()
    };
    for node in cluster.nodes().await? {
        let rack = racks.get(&node.0).map_or("null", String::as_str);
        let name = format!("{} (id: {node} rack: {rack} isFenced: false)", cluster.address(node)?);
        let told = cluster.ask(node, &request()).await.and_then(|told| match told.error_code {
            0 => Ok(told),
            code => Err(ClientError::refused(format!("node {node}"), code, None)),
        });
        say(&match told {
            Ok(told) => format!("{name} -> {}", words(&told)),
            Err(error) => format!("{name} -> ERROR: {error}"),
        })?;
    }
    Ok(())
}

fn words(told: &ApiVersionsResponse) -> String {
    let theirs: BTreeMap<i16, &ApiVersion> = told.api_keys.iter().map(|row| (row.api_key, row)).collect();
    let keys = (0..=KEY_MAX).filter(|key| {
        theirs.contains_key(key) || ApiKey::from_number(*key).is_some_and(|known| known.on_broker())
    });
    let lines: Vec<String> = keys.map(|key| format!("\t{}", line(key, theirs.get(&key).copied()))).collect();
    format!("(\n{}\n)", lines.join(",\n"))
}

fn line(key: i16, theirs: Option<&ApiVersion>) -> String {
    let ours = ApiKey::from_number(key);
    let name = ours.map_or("UNKNOWN", ApiKey::name);
    let Some(theirs) = theirs else { return format!("{name}({key}): UNSUPPORTED") };
    let (min, max) = (theirs.min_version, theirs.max_version);
    let range = if min == max { min.to_string() } else { format!("{min} to {max}") };
    let usable = ours.map(|key| key.stable_versions()).map(|ours| match ours.max.min(max) {
        newest if newest >= ours.min.max(min) => format!(" [usable: {newest}]"),
        _ if ours.min > max => " [unusable: node too old]".to_owned(),
        _ => " [unusable: node too new]".to_owned(),
    });
    format!("{name}({key}): {range}{}", usable.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_is_usable_as_in_kafka() {
        let row = |min_version, max_version| ApiVersion { min_version, max_version, ..Default::default() };
        assert_eq!(line(18, Some(&row(0, 2))), "ApiVersions(18): 0 to 2 [usable: 2]");
        assert_eq!(line(47, Some(&row(0, 0))), "OffsetDelete(47): 0 [usable: 0]");
        assert_eq!(line(47, Some(&row(7, 9))), "OffsetDelete(47): 7 to 9 [unusable: node too new]");
        assert_eq!(line(47, None), "OffsetDelete(47): UNSUPPORTED");
        assert_eq!(line(199, Some(&row(0, 1))), "UNKNOWN(199): 0 to 1");
    }
}
