//! `reassign-partitions`, as Kafka's `kafka-reassign-partitions`: proposes replicas for topics, moves replicas between
//! brokers and log directories, throttles the moves and shows their progress.
//!
//! | file | answers |
//! |---|---|
//! | `reassign_partitions/plan.rs` | reads and writes plans |
//! | `reassign_partitions/proposal.rs` | `--generate`: which replicas are proposed |
//! | `reassign_partitions/execution.rs` | `--execute`, `--cancel`, `--list` |
//! | `reassign_partitions/verification.rs` | `--verify` |
//! | `reassign_partitions/log_dirs.rs` | moves between log directories |
//! | `reassign_partitions/throttles.rs` | the configs that throttle a reassignment |
//!
//! Source: Kafka 4.3 `ReassignPartitionsCommand`.

mod execution;
mod log_dirs;
mod plan;
mod proposal;
mod throttles;
mod verification;

use crate::command_line::args::{GoesWith, check_goes_with, exactly_one, is_given, switch, text, value};
use crate::command_line::connection::{
    bootstrap_controller, bootstrap_server, cluster_config, command_config,
};
use crate::output::kafka_errors;
use crate::waiting::telling;
use crate::{ToolError, block_on, say};
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::ListPartitionReassignmentsRequest;
use clap::{Arg, ArgMatches};
use plan::Partition;
use std::collections::BTreeMap;

const TOOL: &str = "reassign-partitions";
const ACTIONS: [&str; 5] = ["generate", "execute", "verify", "cancel", "list"];
const FILE: &str = "reassignment-json-file";
const TOPICS: &str = "topics-to-move-json-file";
const BROKERS: &str = "broker-list";
const FLAGS: [GoesWith<'_>; 10] = [
    (FILE, &["execute", "verify", "cancel"]),
    (TOPICS, &["generate"]),
    (BROKERS, &["generate"]),
    ("disable-rack-aware", &["generate"]),
    ("additional", &["execute"]),
    ("throttle", &["execute"]),
    ("replica-alter-log-dirs-throttle", &["execute"]),
    ("timeout", &["execute", "cancel"]),
    ("preserve-throttles", &["verify", "cancel"]),
    ("disallow-replication-factor-change", &["execute"]),
];
const TIMEOUT_MS: i32 = 60_000;

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server(),
        bootstrap_controller(),
        command_config(),
        switch("generate", "Propose replicas for the partitions of topics; nothing is moved"),
        switch("execute", "Start the reassignment of a file"),
        switch(
            "verify",
            "Show how far the reassignment of a file has come; when all is done, remove its throttles",
        ),
        switch("cancel", "Cancel the reassignment of a file"),
        switch("list", "List all reassignments that are under way"),
        value(
            FILE,
            "path",
            r#"{"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "any"]}], "version": 1}"#,
        ),
        value(TOPICS, "path", r#"With --generate: {"topics": [{"topic": "orders"}], "version": 1}"#),
        value(BROKERS, "ids", "With --generate: the brokers that may get replicas, with commas between"),
        switch("disable-rack-aware", "With --generate: without regard to racks"),
        value(
            "throttle",
            "bytes/s",
            "With --execute: the throttle of replication for these partitions, on each broker",
        ),
        value(
            "replica-alter-log-dirs-throttle",
            "bytes/s",
            "With --execute: the throttle of moves between log directories, on each broker",
        ),
        value("timeout", "ms", "How long a move between log directories may take to begin (default: 10000)"),
        switch("preserve-throttles", "With --verify, --cancel: leave the throttles as they are"),
        switch(
            "additional",
            "With --execute: beside reassignments that are under way; also to change their throttle",
        ),
        switch("disallow-replication-factor-change", "With --execute: refuse another number of replicas"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let action = exactly_one(matches, &ACTIONS)?;
    check(matches, action)?;
    let config = cluster_config(matches, "barnabas-reassign-partitions")?;
    if config.is_of_controllers && action != "cancel" {
        return Err(ToolError::Usage(format!("--bootstrap-controller goes with cancel, not with {action}")));
    }
    let mut cluster = Cluster::new(config);
    let done = block_on(async {
        match action {
            "generate" => proposal::generate(&mut cluster, matches).await,
            "execute" => execution::execute(&mut cluster, matches).await,
            "verify" => verification::verify(&mut cluster, matches).await,
            "cancel" => execution::cancel(&mut cluster, matches).await,
            _ => execution::list(&mut cluster).await,
        }
    });
    match done {
        Err(ToolError::Client(error @ (ClientError::Refused { .. } | ClientError::Invalid(_)))) => {
            say(&format!("Error: {}", kafka_errors::of(&error)))?;
            Err(ToolError::Reported)
        }
        Err(ToolError::Plain(words)) => {
            say(&words)?;
            Err(ToolError::Reported)
        }
        done => done,
    }
}

fn check(matches: &ArgMatches, action: &str) -> Result<(), ToolError> {
    check_goes_with(matches, action, &FLAGS)?;
    let needed: &[&str] = match action {
        "generate" => &[TOPICS, BROKERS],
        "list" => &[],
        _ => &[FILE],
    };
    match needed.iter().find(|flag| !is_given(matches, flag)) {
        Some(flag) => Err(ToolError::Usage(format!("--{action} needs --{flag}"))),
        None => Ok(()),
    }
}

/// The text of the file that `flag` names.
fn file(matches: &ArgMatches, flag: &str) -> Result<String, ToolError> {
    let path = text(matches, flag).unwrap_or_default();
    std::fs::read_to_string(path).map_err(|error| ToolError::Usage(format!("{path} cannot be read: {error}")))
}

/// A partition that is being reassigned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Ongoing {
    replicas: Vec<i32>,
    adding: Vec<i32>,
    removing: Vec<i32>,
}

/// All reassignments that are under way.
async fn ongoing(cluster: &mut Cluster) -> Result<BTreeMap<Partition, Ongoing>, ClientError> {
    let request =
        ListPartitionReassignmentsRequest { timeout_ms: TIMEOUT_MS, topics: None, ..Default::default() };
    let answer = telling(TOOL, cluster.config().clone(), cluster.ask_controller(|_| request.clone())).await?;
    if answer.error_code != 0 {
        return Err(ClientError::refused(
            "reassignments",
            answer.error_code,
            answer.error_message.as_deref(),
        ));
    }
    let mut found = BTreeMap::new();
    for topic in &answer.topics {
        for row in &topic.partitions {
            let ongoing = Ongoing {
                replicas: row.replicas.clone(),
                adding: row.adding_replicas.clone(),
                removing: row.removing_replicas.clone(),
            };
            found.insert((topic.name.to_string(), row.partition_index), ongoing);
        }
    }
    Ok(found)
}

/// The replicas of all partitions of `topics`.
///
/// # Errors
/// A topic does not exist.
async fn replicas_of(
    cluster: &mut Cluster,
    topics: &[&str],
) -> Result<BTreeMap<Partition, Vec<i32>>, ClientError> {
    let mut found = BTreeMap::new();
    if topics.is_empty() {
        return Ok(found);
    }
    let known = cluster.refresh(Some(topics), false).await?;
    for topic in &known.topics {
        let name = topic.name.as_ref().map(ToString::to_string).unwrap_or_default();
        match ErrorCode::from_code(topic.error_code) {
            ErrorCode::None => {}
            ErrorCode::UnknownTopicOrPartition => {
                let why = format!("Topic {name} not found.");
                return Err(ClientError::refused(name, topic.error_code, Some(&why)));
            }
            _ => return Err(ClientError::refused(name, topic.error_code, None)),
        }
        for row in &topic.partitions {
            found.insert((name.clone(), row.partition_index), row.replica_nodes.clone());
        }
    }
    Ok(found)
}

/// `1,2,3`.
fn ids<'a>(ids: impl IntoIterator<Item = &'a i32>) -> String {
    ids.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// `orders-0`.
fn name((topic, number): &Partition) -> String {
    format!("{topic}-{number}")
}

/// The ending of a noun that counts `count` things.
fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests;
