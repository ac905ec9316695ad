//! `topics`, as Kafka's `kafka-topics`: create, list, describe, enlarge, delete.
//!
//! `--topic` is an expression but with `--create`, as in Kafka. Unlike there, a name that a topic has means that topic
//! alone: `a.b` does not mean `a-b` too.
//!
//! Source: Kafka 4.3 `TopicCommand`, `TopicFilter`.

mod assignment;
mod describe;
mod row;
#[cfg(test)]
mod tests;

use crate::command_line::args::{
    GoesWith, check_goes_with, exactly_one, excludes, is_given, number, pairs, switch, text, texts, value,
};
use crate::command_line::connection::{bootstrap_server, cluster_config, command_config};
use crate::output::table::{is_json, output};
use crate::waiting::telling;
use crate::{ToolError, block_on, say, tell};
use barnabas_base::{ErrorCode, TopicId};
use barnabas_client::{Admin, ClientError, Cluster, ClusterConfig, NewTopic};
use clap::{Arg, ArgMatches};
use describe::Shown;
use regex::Regex;

const ACTIONS: [&str; 5] = ["create", "list", "describe", "alter", "delete"];
const OVERRIDES: &str = "topics-with-overrides";
/// Which actions a flag goes with.
const FLAGS: [GoesWith<'_>; 15] = [
    ("output", &["list", "describe"]),
    ("topic-id", &["describe"]),
    ("partitions", &["create", "alter"]),
    ("replication-factor", &["create"]),
    ("replica-assignment", &["create", "alter"]),
    ("if-exists", &["alter", "delete", "describe"]),
    ("if-not-exists", &["create"]),
    ("exclude-internal", &["list", "describe"]),
    ("partition-size-limit-per-response", &["describe"]),
    (OVERRIDES, &["describe"]),
    ("under-replicated-partitions", &["describe"]),
    ("under-min-isr-partitions", &["describe"]),
    ("at-min-isr-partitions", &["describe"]),
    ("unavailable-partitions", &["describe"]),
    ("config", &["create", "alter"]),
];

pub fn flags() -> Vec<Arg> {
    let mut flags = vec![
        bootstrap_server().required(true),
        command_config(),
        switch("create", "Create a topic"),
        switch("list", "List all topics"),
        switch("describe", "Describe a topic, or all of them"),
        switch("alter", "Raise a topic's number of partitions"),
        switch("delete", "Delete a topic"),
        value("topic", "name", "The topic; but with --create, an expression for several is taken too"),
        value("topic-id", "id", "With --describe: the topic's id instead of its name"),
        value("partitions", "n", "How many partitions; the cluster's num.partitions where it is left out"),
        value(
            "replication-factor",
            "n",
            "How many replicas; the cluster's default.replication.factor where it is left out",
        ),
        value(
            "replica-assignment",
            "1:2,2:3,…",
            "The brokers of each partition, the preferred leader first. With --alter, of all partitions",
        ),
        pairs("config", "A config of the new topic; may be repeated"),
        pairs("delete-config", "Not served, as in Kafka since 4.0: use configs --alter --delete-config"),
        switch("if-exists", "Do nothing if the topic is missing (with --alter, --describe, --delete)"),
        switch("if-not-exists", "Do nothing if the topic is there (with --create)"),
        switch("exclude-internal", "Leave out the cluster's own topics (with --list, --describe)"),
        switch(OVERRIDES, "With --describe: only topics that have configs of their own, without partitions"),
        value(
            "partition-size-limit-per-response",
            "n",
            "With --describe: partitions in one answer (default: 2000)",
        ),
        output(),
    ];
    flags.extend(row::REPORTS.iter().map(|report| switch(report.flag, report.help)));
    flags
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let action = exactly_one(matches, &ACTIONS)?;
    check(matches, action)?;
    let mut cluster = Cluster::new(cluster_config(matches, "barnabas-topics")?);
    block_on(async {
        match action {
            "create" => create(&mut cluster, matches).await,
            "list" => list(&mut cluster, matches).await,
            "describe" => describe(&mut cluster, matches).await,
            "alter" => alter(&mut cluster, matches).await,
            _ => delete(&mut cluster, matches).await,
        }
    })
}

/// Which flags go together.
fn check(matches: &ArgMatches, action: &str) -> Result<(), ToolError> {
    let refused = |why: &str| Err(ToolError::Usage(why.to_owned()));
    check_goes_with(matches, action, &FLAGS)?;
    if is_given(matches, "delete-config") {
        tell(
            "topics: WARN --delete-config is not served. Use: barnabas configs --alter --topic NAME --delete-config KEY",
        );
    }
    if matches!(action, "create" | "alter" | "delete") && text(matches, "topic").is_none() {
        return refused(&format!("--{action} needs --topic. Example: --topic orders"));
    }
    match action {
        "create" => excludes(matches, "replica-assignment", &["partitions", "replication-factor"]),
        "alter" if is_given(matches, "config") => refused(
            "--config goes with create, not with alter. Use: barnabas configs --alter --topic NAME --add-config key=value",
        ),
        "alter" if text(matches, "partitions").is_none() => {
            refused("--alter needs --partitions: how many the topic is to have. Example: --partitions 6")
        }
        "describe" => {
            let is_named = text(matches, "topic").or(text(matches, "topic-id")).is_some();
            if matches.get_flag("if-exists") && !is_named {
                return refused("--if-exists needs --topic or --topic-id");
            }
            let reports: Vec<&str> = row::REPORTS.iter().map(|report| report.flag).collect();
            excludes(matches, OVERRIDES, &reports)
        }
        _ => Ok(()),
    }
}

/// What only the active controller does.
async fn decided<T>(
    config: ClusterConfig,
    work: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ToolError> {
    Ok(telling("topics", config, work).await?)
}

async fn create(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let name = text(matches, "topic").unwrap_or_default();
    let mut configs = Vec::new();
    for word in texts(matches, "config") {
        let pair = word.split_once('=');
        let (key, value) =
            pair.ok_or_else(|| ToolError::Usage(format!("--config takes key=value, not '{word}'")))?;
        configs.push((key.trim().to_owned(), value.trim().to_owned()));
    }
    let topic = NewTopic {
        name: name.to_owned(),
        partitions: at_least_one(matches, "partitions")?,
        replication_factor: at_least_one(matches, "replication-factor")?,
        configs,
        assignments: assignment::read(matches)?.unwrap_or_default(),
    };
    let created = decided(cluster.config().clone(), Admin::new(cluster).create_topic(&topic)).await;
    match created {
        Err(ToolError::Client(error))
            if error.code() == Some(ErrorCode::TopicAlreadyExists) && matches.get_flag("if-not-exists") =>
        {
            Ok(())
        }
        created => {
            created?;
            say(&format!("Created topic {name}."))
        }
    }
}

/// A number that Kafka's tool refuses below 1, before it asks the cluster.
fn at_least_one<T>(matches: &ArgMatches, flag: &str) -> Result<Option<T>, ToolError>
where
    T: std::str::FromStr + PartialOrd + From<i8> + std::fmt::Display,
{
    match number::<T>(matches, flag)? {
        Some(given) if given < T::from(1) => Err(ToolError::Usage(format!(
            "--{flag} takes a number from 1 on, not {given}; leave it out for the cluster's default"
        ))),
        given => Ok(given),
    }
}

/// The topics that `--topic` means, in order; all where it is left out.
async fn meant(cluster: &mut Cluster, matches: &ArgMatches) -> Result<Vec<String>, ToolError> {
    let leave_out = matches.get_flag("exclude-internal");
    let topics = Admin::new(cluster).list_topics().await?.into_iter();
    let names =
        topics.filter(|(_, is_internal)| !(leave_out && *is_internal)).map(|(name, _)| name).collect();
    match text(matches, "topic") {
        Some(wanted) => chosen(wanted, names),
        None => Ok(names),
    }
}

/// Those of `names` that `wanted` means: the one that is called so, else those that match it as an expression.
fn chosen(wanted: &str, names: Vec<String>) -> Result<Vec<String>, ToolError> {
    if names.iter().any(|name| name == wanted) {
        return Ok(vec![wanted.to_owned()]);
    }
    let quotes: &[char] = &['"', '\''];
    let expression = wanted.replace(',', "|").replace(' ', "");
    let expression = expression.trim_matches(quotes);
    let regex = Regex::new(&format!("^(?:{expression})$"));
    let regex =
        regex.map_err(|error| ToolError::Usage(format!("--topic '{wanted}' is no expression: {error}")))?;
    Ok(names.into_iter().filter(|name| regex.is_match(name)).collect())
}

/// # Errors
/// No topic is meant, unless `--if-exists` is given.
fn check_there(matches: &ArgMatches, found: &[String]) -> Result<(), ToolError> {
    match text(matches, "topic").filter(|topic| !topic.is_empty()) {
        Some(topic) if found.is_empty() && !matches.get_flag("if-exists") => Err(missing(topic)),
        _ => Ok(()),
    }
}

fn missing(topic: &str) -> ToolError {
    ToolError::Usage(format!(
        "topic '{topic}' does not exist, or you may not describe it; --list shows those that you may"
    ))
}

async fn list(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let names = meant(cluster, matches).await?;
    if is_json(matches) {
        return say(&serde_json::Value::from(names).to_string());
    }
    names.iter().try_for_each(|name| say(name))
}

async fn describe(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let shown = Shown {
        reports: row::REPORTS.iter().filter(|report| matches.get_flag(report.flag)).collect(),
        overridden: matches.get_flag(OVERRIDES),
        partitions_per_answer: at_least_one(matches, "partition-size-limit-per-response")?
            .unwrap_or(describe::PARTITIONS_PER_ANSWER),
        // A topic that goes while it is described was there.
        may_be_gone: text(matches, "topic").is_none() || matches.get_flag("if-exists"),
        is_json: is_json(matches),
    };
    let names = match text(matches, "topic-id") {
        Some(id) => with_id(cluster, id, matches.get_flag("if-exists")).await?,
        None => {
            let names = meant(cluster, matches).await?;
            check_there(matches, &names)?;
            names
        }
    };
    describe::describe(cluster, &names, &shown).await
}

async fn with_id(cluster: &mut Cluster, id: &str, may_be_gone: bool) -> Result<Vec<String>, ToolError> {
    let parsed = TopicId::parse(id);
    let parsed =
        parsed.ok_or_else(|| ToolError::Usage(format!("--topic-id takes a topic's id, not '{id}'")))?;
    let topics = cluster.refresh(None, false).await?.topics;
    let found = topics.into_iter().find(|topic| topic.topic_id == parsed).and_then(|topic| topic.name);
    match found {
        None if !may_be_gone => Err(ToolError::Usage(format!("no topic has the id {id}"))),
        found => Ok(found.map(|name| name.to_string()).into_iter().collect()),
    }
}

async fn alter(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let count: i32 = at_least_one(matches, "partitions")?.unwrap_or_default();
    let assignments = assignment::read(matches)?;
    let names = meant(cluster, matches).await?;
    check_there(matches, &names)?;
    for name in &names {
        let existing = cluster.topic(name, false).await?.partitions.len();
        // The first of them are those of partitions that are there.
        let of_new = assignments.as_ref().map(|all| all.get(existing..).unwrap_or_default());
        let config = cluster.config().clone();
        decided(config, Admin::new(cluster).create_partitions(name, count, of_new)).await?;
    }
    Ok(())
}

/// All are tried; the first refusal is what the tool ends with.
async fn delete(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let names = meant(cluster, matches).await?;
    check_there(matches, &names)?;
    let mut ended = Ok(());
    for name in &names {
        let config = cluster.config().clone();
        let deleted = decided(config, Admin::new(cluster).delete_topic(name)).await;
        ended = ended.and(deleted);
    }
    ended
}
