//! `client-metrics`, as Kafka's `kafka-client-metrics`: shows and changes the metrics that clients push (KIP-714).
//!
//! Source: Kafka 4.3 `ClientMetricsCommand`.

use crate::asking::alter_configs::{alter, changes};
use crate::command_line::args::{GoesWith, check_goes_with, exactly_one, is_given, switch, text, value};
use crate::command_line::connection::{bootstrap_server, cluster_config, command_config};
use crate::output::kafka_errors::message;
use crate::output::table::{Layout, Table, is_json, output};
use crate::{ToolError, block_on, say};
use barnabas_base::Uuid;
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;
use barnabas_wire::messages::{DescribeConfigsRequest, ListConfigResourcesRequest};
use clap::{Arg, ArgMatches};

const ACTIONS: [&str; 4] = ["list", "describe", "alter", "delete"];
const FLAGS: [GoesWith<'_>; 5] = [
    ("name", &["describe", "alter", "delete"]),
    ("generate-name", &["alter"]),
    ("metrics", &["alter"]),
    ("interval", &["alter"]),
    ("match", &["alter"]),
];
/// The type of these resources.
const CLIENT_METRICS: i8 = 16;
/// The key that each flag sets.
const KEYS: [(&str, &str); 3] = [("metrics", "metrics"), ("interval", "interval.ms"), ("match", "match")];

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server().required(true),
        command_config(),
        switch("list", "List the resources"),
        switch("describe", "Show the configs of a resource, or of all"),
        switch("alter", "Change a resource, or create it"),
        switch("delete", "Delete a resource"),
        value("name", "name", "The resource"),
        switch("generate-name", "With --alter: a new id as the name"),
        value("metrics", "m1,m2", "Prefixes of the metrics' names; empty: none, '*': all"),
        value("interval", "ms", "Between two pushes; empty: the default"),
        value(
            "match",
            "k1=v1,k2=v2",
            "Which clients: client_id, client_instance_id, client_software_name, client_software_version, client_source_address, client_source_port",
        ),
        output(),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let action = exactly_one(matches, &ACTIONS)?;
    check_goes_with(matches, action, &FLAGS)?;
    let is_named = is_given(matches, "name") || matches.get_flag("generate-name");
    if matches!(action, "alter" | "delete") && !is_named {
        return Err(ToolError::Plain(format!(
            "A client metrics resource name must be specified with --{action}."
        )));
    }
    let mut cluster = Cluster::new(cluster_config(matches, "barnabas-client-metrics")?);
    let done = block_on(async {
        match action {
            "list" => list(&mut cluster, matches).await,
            "describe" => describe(&mut cluster, matches).await,
            "alter" => change(&mut cluster, matches).await,
            _ => delete(&mut cluster, matches).await,
        }
    });
    match done {
        Err(ToolError::Client(ClientError::Refused { code, message: told, .. })) => {
            let why = message(code, Some(&told));
            say(&format!("Error while executing client metrics command : {why}"))?;
            Err(ToolError::Reported)
        }
        done => done,
    }
}

async fn names(cluster: &mut Cluster) -> Result<Vec<String>, ClientError> {
    let request = |version: i16| ListConfigResourcesRequest {
        resource_types: if version >= 1 { vec![CLIENT_METRICS] } else { Vec::new() },
        ..Default::default()
    };
    let told = cluster.ask_any_with(request).await?;
    if told.error_code != 0 {
        return Err(ClientError::refused("client metrics", told.error_code, None));
    }
    let mut names: Vec<String> =
        told.config_resources.iter().map(|row| row.resource_name.to_string()).collect();
    names.sort();
    Ok(names)
}

async fn list(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let names = names(cluster).await?;
    if !is_json(matches) {
        // Kafka's tool prints the names as one block.
        return say(&names.join("\n"));
    }
    let mut table = Table::new(Layout::Blanks).text("NAME", 0);
    names.into_iter().for_each(|name| table.row([name]));
    table.print(matches)
}

async fn describe(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let known = names(cluster).await?;
    let wanted = match text(matches, "name") {
        Some(name) if !known.iter().any(|known| known == name) => {
            return say(&format!(
                "The client metric resource {name} doesn't exist and doesn't have dynamic config."
            ));
        }
        Some(name) => vec![name.to_owned()],
        None => known,
    };
    let mut table = Table::new(Layout::Blanks).text("NAME", 0).text("KEY", 0).text("VALUE", 0);
    for name in wanted {
        let configs = configs(cluster, &name).await?;
        if !is_json(matches) {
            say(&format!("Client metrics configs for {name} are:"))?;
        }
        for (key, value) in configs {
            if is_json(matches) {
                table.row([name.clone(), key, value]);
            } else {
                say(&format!("  {key}={value}"))?;
            }
        }
    }
    if is_json(matches) { table.print(matches) } else { Ok(()) }
}

async fn configs(cluster: &mut Cluster, name: &str) -> Result<Vec<(String, String)>, ClientError> {
    let resource = DescribeConfigsResource {
        resource_type: CLIENT_METRICS,
        resource_name: name.into(),
        ..Default::default()
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    let told = cluster.ask_any(&request).await?;
    let row = told.results.into_iter().next();
    let row = row.ok_or_else(|| ClientError::Invalid("the answer names no resource".to_owned()))?;
    if row.error_code != 0 {
        return Err(ClientError::refused(name, row.error_code, row.error_message.as_deref()));
    }
    let mut configs: Vec<(String, String)> = row
        .configs
        .iter()
        .map(|config| (config.name.to_string(), config.value.as_deref().unwrap_or_default().to_owned()))
        .collect();
    configs.sort();
    Ok(configs)
}

async fn change(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let name = match text(matches, "name") {
        Some(name) => name.to_owned(),
        None => {
            let mut bytes = [0; 16];
            getrandom::fill(&mut bytes)
                .map_err(|error| ToolError::Plain(format!("no random bytes: {error}")))?;
            Uuid::from_random(bytes).to_string()
        }
    };
    let given = KEYS.iter().filter_map(|(flag, key)| text(matches, flag).map(|value| (*key, value)));
    // An empty value stands for the default.
    let configs = given.map(|(key, value)| (key, Some(value).filter(|value| !value.is_empty())));
    alter(cluster, None, &name, vec![changes(CLIENT_METRICS, &name, configs)]).await?;
    say(&format!("Altered client metrics config for {name}."))
}

async fn delete(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let name = text(matches, "name").unwrap_or_default();
    // A resource exists as long as it has configs.
    let known = configs(cluster, name).await?;
    let deletions = known.iter().map(|(key, _)| (key.as_str(), None));
    alter(cluster, None, name, vec![changes(CLIENT_METRICS, name, deletions)]).await?;
    say(&format!("Deleted client metrics config for {name}."))
}
