//! `topics`, as Kafka's `kafka-topics`: create, list, describe, enlarge, delete.

use crate::{ToolError, block_on, bootstrap_server, number, pairs, say, switch, text, value};
use barnabas_base::ErrorCode;
use barnabas_client::{Admin, Cluster, ClusterConfig, NewTopic, TopicDescription};
use clap::{Arg, ArgMatches};

const ACTIONS: [&str; 5] = ["create", "list", "describe", "alter", "delete"];

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server(),
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
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let chosen: Vec<_> = ACTIONS.into_iter().filter(|action| matches.get_flag(action)).collect();
    let [action] = chosen[..] else {
        return Err(ToolError::Usage(
            "give exactly one of --create, --list, --describe, --alter, --delete".to_owned(),
        ));
    };
    let bootstrap = text(matches, "bootstrap-server").unwrap_or_default();
    let mut cluster = Cluster::new(ClusterConfig::new(bootstrap, "barnabas-topics"));
    block_on(async {
        let mut admin = Admin::new(&mut cluster);
        match action {
            "create" => create(&mut admin, matches).await,
            "list" => list(&mut admin, matches).await,
            "describe" => describe(&mut admin, matches).await,
            "alter" => alter(&mut admin, matches).await,
            _ => delete(&mut admin, matches).await,
        }
    })
}

fn named(matches: &ArgMatches) -> Result<&str, ToolError> {
    text(matches, "topic").ok_or_else(|| ToolError::Usage("--topic is needed for this".to_owned()))
}

async fn exists(admin: &mut Admin<'_>, name: &str) -> Result<bool, ToolError> {
    Ok(admin.list_topics().await?.iter().any(|topic| topic.0 == name))
}

async fn create(admin: &mut Admin<'_>, matches: &ArgMatches) -> Result<(), ToolError> {
    let name = named(matches)?;
    if matches.get_flag("if-not-exists") && exists(admin, name).await? {
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
        partitions: number(matches, "partitions")?,
        replication_factor: number(matches, "replication-factor")?,
        configs,
    };
    admin.create_topic(&topic).await?;
    say(&format!("Created topic {name}."))
}

async fn list(admin: &mut Admin<'_>, matches: &ArgMatches) -> Result<(), ToolError> {
    let leave_out = matches.get_flag("exclude-internal");
    for (name, is_internal) in admin.list_topics().await? {
        if !(leave_out && is_internal) && text(matches, "topic").is_none_or(|wanted| wanted == name) {
            say(&name)?;
        }
    }
    Ok(())
}

async fn describe(admin: &mut Admin<'_>, matches: &ArgMatches) -> Result<(), ToolError> {
    let names = match text(matches, "topic") {
        Some(name) if matches.get_flag("if-exists") && !exists(admin, name).await? => Vec::new(),
        Some(name) => vec![name.to_owned()],
        None => {
            let leave_out = matches.get_flag("exclude-internal");
            let topics = admin.list_topics().await?.into_iter();
            topics.filter(|topic| !(leave_out && topic.1)).map(|topic| topic.0).collect()
        }
    };
    for name in names {
        let described = admin.describe_topic(&name).await;
        if described.as_ref().is_err_and(|error| error.code() == Some(ErrorCode::UnknownTopicOrPartition)) {
            return Err(ToolError::Usage(format!(
                "topic '{name}' does not exist; --list shows those that do"
            )));
        }
        say_description(&described?)?;
    }
    Ok(())
}

fn say_description(topic: &TopicDescription) -> Result<(), ToolError> {
    let configs: Vec<String> = topic.configs.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let replicas = topic.partitions.first().map_or(0, |partition| partition.replicas.len());
    say(&format!(
        "Topic: {}\tTopicId: {}\tPartitionCount: {}\tReplicationFactor: {replicas}\tConfigs: {}",
        topic.name,
        topic.id,
        topic.partitions.len(),
        configs.join(",")
    ))?;
    let list = |nodes: &[i32]| nodes.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
    for partition in &topic.partitions {
        let leader = if partition.leader < 0 { "none".to_owned() } else { partition.leader.to_string() };
        say(&format!(
            "\tTopic: {}\tPartition: {}\tLeader: {leader}\tReplicas: {}\tIsr: {}",
            topic.name,
            partition.partition,
            list(&partition.replicas),
            list(&partition.isr)
        ))?;
    }
    Ok(())
}

async fn alter(admin: &mut Admin<'_>, matches: &ArgMatches) -> Result<(), ToolError> {
    let name = named(matches)?;
    if matches.get_flag("if-exists") && !exists(admin, name).await? {
        return Ok(());
    }
    let count: Option<i32> = number(matches, "partitions")?;
    let count = count.ok_or_else(|| ToolError::Usage("--alter needs --partitions".to_owned()))?;
    Ok(admin.create_partitions(name, count).await?)
}

async fn delete(admin: &mut Admin<'_>, matches: &ArgMatches) -> Result<(), ToolError> {
    let name = named(matches)?;
    if matches.get_flag("if-exists") && !exists(admin, name).await? {
        return Ok(());
    }
    Ok(admin.delete_topic(name).await?)
}
