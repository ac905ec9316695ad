//! `topics`, as Kafka's `kafka-topics`: create, list, describe, enlarge, delete.
//!
//! Left out: `--topic` as a regular expression, `--topic-id`, `--replica-assignment`, `--topics-with-overrides`,
//! `--partition-size-limit-per-response`, `--command-config`. Source: Kafka `TopicCommand`.

mod describe;
mod row;
#[cfg(test)]
mod tests;

use crate::command_line::args::{number, pairs, switch, text, value};
use crate::command_line::connection::{bootstrap_server, cluster_config, command_config};
use crate::waiting::telling;
use crate::{ToolError, block_on, say};
use barnabas_client::{Admin, ClientError, Cluster, ClusterConfig, NewTopic};
use clap::{Arg, ArgMatches};

const ACTIONS: [&str; 5] = ["create", "list", "describe", "alter", "delete"];

pub fn flags() -> Vec<Arg> {
    let mut flags = vec![
        bootstrap_server().required(true),
        command_config(),
        switch("create", "Create a topic"),
        switch("list", "List all topics"),
        switch("describe", "Describe a topic, or all of them"),
        switch("alter", "Raise a topic's number of partitions"),
        switch("delete", "Delete a topic"),
        value("topic", "name", "The topic"),
        value("partitions", "n", "How many partitions; the node's num.partitions where it is left out"),
        value(
            "replication-factor",
            "n",
            "How many replicas; the node's default.replication.factor where it is left out",
        ),
        pairs("config", "A config of the new topic; may be repeated"),
        switch("if-exists", "Do nothing if the topic is missing (with --alter, --describe, --delete)"),
        switch("if-not-exists", "Do nothing if the topic is there (with --create)"),
        switch("exclude-internal", "Leave out the cluster's own topics (with --list, --describe)"),
    ];
    let others = ACTIONS.into_iter().filter(|action| *action != "describe");
    let report = |report: &row::Report| switch(report.flag, report.help).conflicts_with_all(others.clone());
    flags.extend(row::REPORTS.iter().map(report));
    flags
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let chosen: Vec<_> = ACTIONS.into_iter().filter(|action| matches.get_flag(action)).collect();
    let [action] = chosen[..] else {
        return Err(ToolError::Usage(
            "give exactly one of --create, --list, --describe, --alter, --delete".to_owned(),
        ));
    };
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

fn named(matches: &ArgMatches) -> Result<&str, ToolError> {
    text(matches, "topic").ok_or_else(|| ToolError::Usage("--topic is needed for this".to_owned()))
}

async fn exists(cluster: &mut Cluster, name: &str) -> Result<bool, ToolError> {
    Ok(Admin::new(cluster).list_topics().await?.iter().any(|topic| topic.0 == name))
}

/// What only the active controller does.
async fn decided<T>(
    config: ClusterConfig,
    work: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ToolError> {
    Ok(telling("topics", config, work).await?)
}

async fn create(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let name = named(matches)?;
    if matches.get_flag("if-not-exists") && exists(cluster, name).await? {
        return Ok(());
    }
    let mut configs = Vec::new();
    for word in matches.get_many::<String>("config").into_iter().flatten() {
        let pair = word.split_once('=');
        let (key, value) =
            pair.ok_or_else(|| ToolError::Usage(format!("--config takes key=value, not '{word}'")))?;
        configs.push((key.to_owned(), value.to_owned()));
    }
    let topic = NewTopic {
        name: name.to_owned(),
        partitions: at_least_one(matches, "partitions")?,
        replication_factor: at_least_one(matches, "replication-factor")?,
        configs,
    };
    decided(cluster.config().clone(), Admin::new(cluster).create_topic(&topic)).await?;
    say(&format!("Created topic {name}."))
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

/// All topics, or those that are not the cluster's own.
async fn listed(cluster: &mut Cluster, matches: &ArgMatches) -> Result<Vec<String>, ToolError> {
    let leave_out = matches.get_flag("exclude-internal");
    let topics = Admin::new(cluster).list_topics().await?.into_iter();
    Ok(topics.filter(|(_, is_internal)| !(leave_out && *is_internal)).map(|(name, _)| name).collect())
}

async fn list(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let wanted = text(matches, "topic");
    for name in
        listed(cluster, matches).await?.iter().filter(|name| wanted.is_none_or(|wanted| wanted == **name))
    {
        say(name)?;
    }
    Ok(())
}

async fn describe(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let (names, may_be_gone) = match text(matches, "topic") {
        Some(name) => (vec![name.to_owned()], matches.get_flag("if-exists")),
        None => (listed(cluster, matches).await?, true),
    };
    describe::describe(cluster, &names, may_be_gone, matches).await
}

async fn alter(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let name = named(matches)?;
    if matches.get_flag("if-exists") && !exists(cluster, name).await? {
        return Ok(());
    }
    let count: Option<i32> = at_least_one(matches, "partitions")?;
    let count = count.ok_or_else(|| ToolError::Usage("--alter needs --partitions".to_owned()))?;
    decided(cluster.config().clone(), Admin::new(cluster).create_partitions(name, count)).await
}

async fn delete(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let name = named(matches)?;
    if matches.get_flag("if-exists") && !exists(cluster, name).await? {
        return Ok(());
    }
    decided(cluster.config().clone(), Admin::new(cluster).delete_topic(name)).await
}
