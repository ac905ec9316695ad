//! `consumer-groups`, as Kafka's `kafka-consumer-groups`: lists and describes consumer groups, moves and deletes what
//! they have committed, deletes them.
//!
//! As with Kafka's tool, what the cluster refuses stands behind `Error:` on standard output, and the exit code is 0.
//! Unlike there, it is 1 where no broker answers.
//!
//! | file | answers |
//! |---|---|
//! | `consumer_groups/describe.rs` | how a group is shown |
//! | `consumer_groups/change.rs` | how offsets and groups are moved and deleted |
//!
//! Source: Kafka 4.3 `ConsumerGroupCommand`.

mod change;
mod describe;

use super::listing::{Kind, list, states};
use super::reset;
use crate::command_line::args::{
    GoesWith, check_goes_with, exactly_one, excludes, is_given, number, switch, text, texts, value, values,
};
use crate::command_line::connection::{bootstrap_server, cluster_config, command_config};
use crate::output::kafka_errors;
use crate::output::table::{Layout, Table, is_json, output};
use crate::{ToolError, block_on, say};
use barnabas_client::{ClientError, Cluster};
use clap::{Arg, ArgMatches};
use regex::Regex;
use std::time::Duration;

const ACTIONS: [&str; 6] =
    ["list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex"];
const FLAGS: [GoesWith<'_>; 19] = [
    ("all-groups", &["describe", "delete", "reset-offsets"]),
    ("members", &["describe"]),
    ("offsets", &["describe"]),
    ("state", &["describe", "list"]),
    ("verbose", &["describe"]),
    ("type", &["list"]),
    ("all-topics", &["reset-offsets"]),
    ("dry-run", &["reset-offsets"]),
    ("execute", &["reset-offsets"]),
    ("export", &["reset-offsets"]),
    ("to-offset", &["reset-offsets"]),
    ("from-file", &["reset-offsets"]),
    ("to-datetime", &["reset-offsets"]),
    ("by-duration", &["reset-offsets"]),
    ("to-earliest", &["reset-offsets"]),
    ("to-latest", &["reset-offsets"]),
    ("to-current", &["reset-offsets"]),
    ("shift-by", &["reset-offsets"]),
    ("topic", &["reset-offsets", "delete-offsets"]),
];
const STATES: [&str; 7] =
    ["PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling"];
/// What `--timeout` is where it is left out.
const TIMEOUT_MS: u64 = 5000;

pub fn flags() -> Vec<Arg> {
    let mut flags = vec![
        bootstrap_server(),
        command_config(),
        switch("list", "List all consumer groups"),
        switch("describe", "Show what a group has committed, how far it is behind, and who reads what"),
        switch("delete", "Delete groups without members, with all that they have committed"),
        switch("delete-offsets", "Delete what a group has committed for topics"),
        value("validate-regex", "expression", "Say whether an expression for topics is valid"),
        values("group", "group", "A group; may be repeated"),
        switch("all-groups", "All groups (with --describe, --delete, --reset-offsets)"),
        values(
            "topic",
            "topic[:0,1]",
            "A topic, or partitions of it (with --reset-offsets, --delete-offsets)",
        ),
        switch("all-topics", "All topics of which the group has committed offsets (with --reset-offsets)"),
        switch("members", "With --describe: the members"),
        switch("offsets", "With --describe: offsets and lags (the default)"),
        Arg::new("state")
            .long("state")
            .value_name("states")
            .num_args(0..=1)
            .default_missing_value("")
            .help("With --describe: the state. With --list: the states too, or only groups of these states"),
        Arg::new("type")
            .long("type")
            .value_name("types")
            .num_args(0..=1)
            .default_missing_value("")
            .help("With --list: the types too, or only groups of these types: classic, consumer"),
        switch("verbose", "With --describe: more columns"),
        value("timeout", "ms", "How long the tool may take for one question (default: 5000)"),
        output(),
    ];
    flags.extend(reset::flags());
    flags.extend(reset::more_flags());
    flags
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let action = exactly_one(matches, &ACTIONS)?;
    check(matches, action)?;
    if action == "validate-regex" {
        return validate(text(matches, action).unwrap_or_default());
    }
    let mut config = cluster_config(matches, "barnabas-consumer-groups")?;
    config.deadline = Duration::from_millis(number(matches, "timeout")?.unwrap_or(TIMEOUT_MS));
    let mut cluster = Cluster::new(config);
    let done = block_on(async {
        match action {
            "list" => list_groups(&mut cluster, matches).await,
            "describe" => describe::describe(&mut cluster, matches).await,
            "delete" => change::delete(&mut cluster, matches).await,
            "delete-offsets" => change::delete_offsets(&mut cluster, matches).await,
            _ => change::reset(&mut cluster, matches).await,
        }
    });
    refused("consumer", done)
}

/// Prints the cluster's refusal as Kafka's tools for groups print it. That is no failure to them.
pub fn refused(kind: &str, done: Result<(), ToolError>) -> Result<(), ToolError> {
    let why = match done {
        Err(ToolError::Client(error @ (ClientError::Refused { .. } | ClientError::Invalid(_)))) => {
            kafka_errors::of(&error)
        }
        done => return done,
    };
    say(&format!("\nError: Executing {kind} group command failed due to {why}"))
}

fn check(matches: &ArgMatches, action: &str) -> Result<(), ToolError> {
    check_goes_with(matches, action, &FLAGS)?;
    let refused = |why: &str| Err(ToolError::Usage(why.to_owned()));
    let is_named = is_given(matches, "group") || matches.get_flag("all-groups");
    excludes(matches, "all-groups", &["group"])?;
    match action {
        "describe" => {
            excludes(matches, "members", &["offsets", "state"])?;
            excludes(matches, "offsets", &["state"])?;
            if text(matches, "state").is_some_and(|states| !states.is_empty()) {
                return refused("--state takes no value with --describe");
            }
        }
        "delete-offsets" if texts(matches, "group").count() != 1 || !is_given(matches, "topic") => {
            return refused(
                "--delete-offsets needs one --group, and --topic. Example: --group billing --topic orders",
            );
        }
        "reset-offsets" => {
            excludes(matches, "all-topics", &["topic"])?;
            let is_scoped = ["all-topics", "topic", "from-file"].iter().any(|flag| is_given(matches, flag));
            if !is_scoped {
                return refused("--reset-offsets needs --all-topics, --topic or --from-file");
            }
        }
        _ => {}
    }
    match action {
        "describe" | "delete" | "reset-offsets" if !is_named => Err(ToolError::Usage(format!(
            "--{action} needs --group or --all-groups. Example: --group billing"
        ))),
        _ => Ok(()),
    }
}

/// Whether an expression is valid. Brokers read them with RE2/J's rules, which are those of this crate.
fn validate(expression: &str) -> Result<(), ToolError> {
    match Regex::new(expression) {
        Ok(_) => say(&format!("The regular expression `{expression}` is valid.")),
        Err(error) => {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            say(&format!("The regular expression `{expression}` is invalid: {why}."))
        }
    }
}

/// The groups that are meant.
async fn meant(cluster: &mut Cluster, matches: &ArgMatches) -> Result<Vec<String>, ClientError> {
    if matches.get_flag("all-groups") {
        let groups = list(cluster, &[], &[]).await?.into_iter();
        return Ok(groups.filter(|row| row.is_for_consumers()).map(|row| row.group).collect());
    }
    let mut named: Vec<String> = texts(matches, "group").map(str::to_owned).collect();
    named.sort();
    named.dedup();
    Ok(named)
}

async fn list_groups(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let (with_type, with_state) = (is_given(matches, "type"), is_given(matches, "state"));
    let wanted = text(matches, "state").filter(|list| !list.is_empty());
    let wanted = wanted.map(|list| states(list, &STATES)).transpose()?.unwrap_or_default();
    let kinds = text(matches, "type").filter(|list| !list.is_empty());
    let kinds = kinds.map(kinds_of).transpose()?.unwrap_or_default();
    let mut groups = list(cluster, &wanted, &kinds).await?;
    groups.retain(super::listing::Listed::is_for_consumers);
    if !with_type && !with_state && !is_json(matches) {
        return groups.iter().try_for_each(|row| say(&row.group));
    }
    let longest = groups.iter().map(|row| row.group.chars().count().max(15)).max().unwrap_or(15);
    let mut table = Table::new(Layout::Blanks).text("GROUP", longest + 10);
    if with_type {
        table = table.text("TYPE", 20);
    }
    if with_state {
        table = table.text("STATE", 20);
    }
    for row in groups {
        let kind = row.kind.map_or("Unknown", Kind::name).to_owned();
        let cells = [Some(row.group), with_type.then_some(kind), with_state.then_some(row.state)];
        table.row(cells.into_iter().flatten());
    }
    table.print(matches)
}

fn kinds_of(list: &str) -> Result<Vec<Kind>, ToolError> {
    let kind = |word| Kind::parse(word).filter(|kind| matches!(kind, Kind::Classic | Kind::Consumer));
    let kinds: Option<Vec<Kind>> = list.split(',').map(kind).collect();
    kinds.ok_or_else(|| {
        ToolError::Usage(format!("Invalid types list '{list}'. Valid types are: Consumer, Classic"))
    })
}

#[cfg(test)]
mod tests;
