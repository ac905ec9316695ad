//! `configs`, as Kafka's `kafka-configs`: shows and alters configurations of topics, brokers, brokers' loggers, groups and client metrics.
//!
//! Left out: users, clients and ips (quotas, SCRAM credentials), `--add-config-file`, `--bootstrap-controller`. Source: Kafka
//! `ConfigCommand`.

mod describe;

use crate::command_line::args::{switch, text, value};
use crate::command_line::connection::{bootstrap_server, cluster_config, command_config};
use crate::waiting::telling;
use crate::{ToolError, block_on, say};
use barnabas_base::BrokerId;
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;
use barnabas_wire::messages::describe_configs_response::DescribeConfigsResult;
use barnabas_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use barnabas_wire::messages::{DescribeConfigsRequest, IncrementalAlterConfigsRequest};
use clap::{Arg, ArgAction, ArgMatches};

const SET: i8 = 0;
const DELETE: i8 = 1;

/// Kinds of entities: the word of `--entity-type`, the resource type on the wire, the source of what was set for an entity by name.
#[derive(Debug, PartialEq, Eq)]
struct Kind {
    words: &'static str,
    wire: i8,
    /// `None`: everything counts as set.
    source: Option<i8>,
}

const TOPICS: &str = "topics";
const BROKERS: &str = "brokers";
const LOGGERS: &str = "broker-loggers";
const KINDS: [Kind; 5] = [
    Kind { words: TOPICS, wire: 2, source: Some(1) },
    Kind { words: BROKERS, wire: 4, source: Some(2) },
    Kind { words: LOGGERS, wire: 8, source: None },
    Kind { words: "client-metrics", wire: 16, source: Some(7) },
    Kind { words: "groups", wire: 32, source: Some(8) },
];
/// Of a broker's settings those of the cluster-wide default.
const DEFAULT_BROKER_SOURCE: i8 = 3;

impl Kind {
    fn one(&self) -> &'static str {
        self.words.strip_suffix('s').unwrap_or(self.words)
    }

    /// What is set for `entity` itself.
    fn source_of(&self, entity: &str) -> Option<i8> {
        if self.words == BROKERS && entity.is_empty() { Some(DEFAULT_BROKER_SOURCE) } else { self.source }
    }
}

pub fn flags() -> Vec<Arg> {
    let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.words).collect();
    vec![
        bootstrap_server().required(true),
        command_config(),
        switch("describe", "Show configurations").required_unless_present("alter").conflicts_with("alter"),
        switch("alter", "Change the configuration of an entity"),
        value("entity-type", "type", "The kind of entity").required(true).value_parser(kinds),
        value("entity-name", "name", "The topic, group or subscription, or the broker's id"),
        switch("entity-default", "The default of all brokers").conflicts_with("entity-name"),
        switch("all", "Show values too that were not set for the entity").conflicts_with("alter"),
        value("add-config", "key=value,…", "Keys to set; a value with commas in brackets: key=[a,b]")
            .action(ArgAction::Append)
            .requires("alter"),
        value("delete-config", "key,…", "Keys to remove").action(ArgAction::Append).requires("alter"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let word = text(matches, "entity-type").unwrap_or_default();
    let kind = KINDS.iter().find(|kind| kind.words == word);
    let kind = kind.ok_or_else(|| ToolError::Usage(format!("--entity-type: unknown type '{word}'")))?;
    let is_default = matches.get_flag("entity-default");
    if is_default && kind.words != BROKERS {
        return Err(ToolError::Usage(format!("--entity-default: only brokers have a default, not {word}")));
    }
    let entity = text(matches, "entity-name").or_else(|| is_default.then_some(""));
    let config = cluster_config(matches, "barnabas-configs")?;
    let mut cluster = Cluster::new(config.clone());
    if matches.get_flag("alter") {
        let entity = entity.ok_or_else(|| {
            ToolError::Usage("--alter takes an entity: --entity-name NAME or --entity-default".to_owned())
        })?;
        let change = change(matches)?;
        block_on(async {
            Ok(telling("configs", config, alter(&mut cluster, kind, entity, &change)).await?)
        })?;
        return say(&altered(kind, entity));
    }
    let is_all = matches.get_flag("all");
    let lines = block_on(async {
        Ok(telling("configs", config, describe::lines(&mut cluster, kind, entity, is_all)).await?)
    })?;
    lines.iter().try_for_each(|line| say(line))
}

fn altered(kind: &Kind, entity: &str) -> String {
    match entity {
        "" => format!("Completed updating default config for {} in the cluster.", kind.words),
        name => format!("Completed updating config for {} {name}.", kind.one()),
    }
}

/// Keys to set, with their values; keys to remove.
#[derive(Debug, Default, PartialEq, Eq)]
struct Change {
    set: Vec<(String, String)>,
    delete: Vec<String>,
}

fn change(matches: &ArgMatches) -> Result<Change, ToolError> {
    let words = |name: &str| matches.get_many::<String>(name).into_iter().flatten();
    let mut change = Change::default();
    for entry in words("add-config").flat_map(|word| entries(word)) {
        let Some((key, value)) = entry.split_once('=') else {
            return Err(ToolError::Usage(format!(
                "--add-config: '{entry}' is not in the format key=val. Example: --add-config retention.ms=3600000"
            )));
        };
        change.set.push((key.trim().to_owned(), value.replace(['[', ']'], "").trim().to_owned()));
    }
    let keys = words("delete-config").flat_map(|word| word.split(','));
    change.delete = keys.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()).collect();
    if change == Change::default() {
        return Err(ToolError::Usage("--alter takes --add-config or --delete-config".to_owned()));
    }
    Ok(change)
}

/// Splits at commas outside brackets.
fn entries(word: &str) -> Vec<&str> {
    let (mut entries, mut from, mut is_bracketed) = (Vec::new(), 0, false);
    for (at, letter) in word.char_indices() {
        match letter {
            '[' => is_bracketed = true,
            ']' => is_bracketed = false,
            ',' if !is_bracketed => {
                entries.push(&word[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    entries.push(&word[from..]);
    entries.into_iter().map(str::trim).filter(|entry| !entry.is_empty()).collect()
}

async fn alter(cluster: &mut Cluster, kind: &Kind, entity: &str, change: &Change) -> Result<(), ClientError> {
    if !change.delete.is_empty() {
        let known = described(cluster, kind, entity).await?;
        let source = kind.source_of(entity);
        let is_set = |key: &&String| {
            let mut found = known.configs.iter();
            found.any(|config| {
                *config.name == **key && source.is_none_or(|source| config.config_source == source)
            })
        };
        let unset: Vec<&str> = change.delete.iter().filter(|key| !is_set(key)).map(String::as_str).collect();
        if !unset.is_empty() {
            return Err(ClientError::Invalid(format!("Invalid config(s): {}", unset.join(","))));
        }
    }
    let set = change.set.iter().map(|(key, value)| (key, SET, Some(value.as_str().into())));
    let delete = change.delete.iter().map(|key| (key, DELETE, None));
    let configs = set.chain(delete).map(|(key, config_operation, value)| AlterableConfig {
        name: key.as_str().into(),
        config_operation,
        value,
        ..Default::default()
    });
    let resource = AlterConfigsResource {
        resource_type: kind.wire,
        resource_name: entity.into(),
        configs: configs.collect(),
        ..Default::default()
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let answer = match broker_of(cluster, kind, entity).await? {
        Some(broker) => cluster.ask(broker, &request).await?,
        None => cluster.ask_any(&request).await?,
    };
    for told in &answer.responses {
        check(kind, entity, told.error_code, told.error_message.as_deref())?;
    }
    Ok(())
}

/// The broker that answers for itself, and for its loggers; `None`: any.
async fn broker_of(
    cluster: &mut Cluster,
    kind: &Kind,
    entity: &str,
) -> Result<Option<BrokerId>, ClientError> {
    if !matches!(kind.words, BROKERS | LOGGERS) || entity.is_empty() {
        return Ok(None);
    }
    let known = cluster.refresh(Some(&[]), false).await?.brokers;
    let found = known.iter().find(|broker| broker.node_id.to_string() == entity);
    let id = found.map(|broker| BrokerId(broker.node_id));
    id.map(Some).ok_or_else(|| ClientError::Invalid(format!("--entity-name: there is no broker '{entity}'")))
}

async fn described(
    cluster: &mut Cluster,
    kind: &Kind,
    entity: &str,
) -> Result<DescribeConfigsResult, ClientError> {
    let resource = DescribeConfigsResource {
        resource_type: kind.wire,
        resource_name: entity.into(),
        configuration_keys: None,
        ..Default::default()
    };
    let request =
        DescribeConfigsRequest { resources: vec![resource], include_synonyms: true, ..Default::default() };
    let answer = match broker_of(cluster, kind, entity).await? {
        Some(broker) => cluster.ask(broker, &request).await?,
        None => cluster.ask_any(&request).await?,
    };
    let told = answer.results.into_iter().next();
    let told = told.ok_or_else(|| ClientError::Invalid("the answer names no resource".to_owned()))?;
    check(kind, entity, told.error_code, told.error_message.as_deref())?;
    Ok(told)
}

fn check(kind: &Kind, entity: &str, code: i16, why: Option<&str>) -> Result<(), ClientError> {
    if code == 0 {
        return Ok(());
    }
    Err(ClientError::refused(format!("{} {entity}", kind.one()).trim_end(), code, why))
}

#[cfg(test)]
mod tests;
