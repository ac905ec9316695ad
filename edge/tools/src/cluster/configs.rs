//! `configs`, as Kafka's `kafka-configs`: shows and alters configurations of topics, brokers, brokers' loggers,
//! groups and client metrics, quotas of users, clients and addresses, and users' SCRAM credentials.
//!
//! | file | answers |
//! |---|---|
//! | `configs/entities.rs` | what the flags name |
//! | `configs/change.rs` | what is to be set and removed |
//! | `configs/resources.rs` | how a configuration is altered |
//! | `configs/describe.rs` | how a configuration is shown |
//! | `configs/quotas.rs` | how quotas are altered and shown |
//! | `configs/scram.rs` | how SCRAM credentials are altered and shown |
//!
//! Source: Kafka 4.3 `ConfigCommand`.

mod change;
mod describe;
mod entities;
mod quotas;
mod resources;
mod scram;

use crate::command_line::args::{exactly_one, excludes, switch, value, values};
use crate::command_line::connection::{
    bootstrap_controller, bootstrap_server, cluster_config, command_config,
};
use crate::waiting::telling;
use crate::{ToolError, block_on, say};
use barnabas_client::{ClientError, Cluster};
use change::Change;
use clap::{Arg, ArgAction, ArgMatches};
use entities::{Entities, KINDS, Kind};

const TOOL: &str = "configs";

pub fn flags() -> Vec<Arg> {
    let mut flags = vec![
        bootstrap_server(),
        bootstrap_controller(),
        command_config(),
        switch("describe", "Show configurations"),
        switch("alter", "Change the configuration of an entity"),
        switch("all", "With --describe: show values too that were not set for the entity"),
        values(
            "entity-type",
            "type",
            "The kind of entity: topics, brokers, broker-loggers, groups, client-metrics, users, clients or ips",
        ),
        values(
            "entity-name",
            "name",
            "The topic, group, subscription, user, client or address, or the broker's id",
        ),
        Arg::new("entity-default")
            .long("entity-default")
            .help("The default of all brokers, users, clients or addresses")
            .num_args(0)
            .default_missing_value("")
            .action(ArgAction::Append),
        value("add-config", "key=value,…", "Keys to set; a value with commas in brackets: key=[a,b]"),
        value("add-config-file", "path", "A properties file with keys to set"),
        values("delete-config", "key,…", "Keys to remove"),
    ];
    for kind in &KINDS {
        flags.push(value(kind.flag, kind.shown, kind.help));
        flags.extend(
            kind.default_flag.map(|flag| switch(flag, "The same as --entity-type with --entity-default")),
        );
    }
    flags
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let action = exactly_one(matches, &["describe", "alter"])?;
    excludes(matches, "describe", &["add-config", "add-config-file", "delete-config"])?;
    excludes(matches, "alter", &["all"])?;
    let config = cluster_config(matches, "barnabas-configs")?;
    let entities = Entities::read(matches)?;
    let mut cluster = Cluster::new(config.clone());
    if action == "describe" {
        entities.check_described(matches)?;
        let is_all = matches.get_flag("all");
        let lines =
            block_on(async { Ok(telling(TOOL, config, describe(&mut cluster, &entities, is_all)).await?) })?;
        return lines.iter().try_for_each(|line| say(line));
    }
    entities.check_altered()?;
    let change = Change::read(matches)?;
    block_on(async { Ok(telling(TOOL, config, alter(&mut cluster, &entities, &change)).await?) })?;
    say(&altered(entities.first(), entities.name().unwrap_or_default()))
}

async fn describe(
    cluster: &mut Cluster,
    entities: &Entities,
    is_all: bool,
) -> Result<Vec<String>, ClientError> {
    if entities.first().resource.is_some() {
        return describe::lines(cluster, entities.first(), entities.name(), is_all).await;
    }
    let mut lines = quotas::described(cluster, entities).await?;
    if let Some(users) = entities.users_alone() {
        lines.extend(scram::described(cluster, &users).await?);
    }
    Ok(lines)
}

async fn alter(cluster: &mut Cluster, entities: &Entities, change: &Change) -> Result<(), ClientError> {
    let name = entities.name().unwrap_or_default();
    if entities.first().resource.is_some() {
        return resources::alter(cluster, entities.first(), name, change).await;
    }
    match change.of_credentials(entities).map_err(|error| ClientError::Invalid(error.to_string()))? {
        true => scram::alter(cluster, name, change).await,
        false => quotas::alter(cluster, entities, change).await,
    }
}

fn altered(kind: &Kind, name: &str) -> String {
    match name {
        "" => format!("Completed updating default config for {} in the cluster.", kind.words),
        name => format!("Completed updating config for {} {name}.", kind.one()),
    }
}

#[cfg(test)]
mod tests;
