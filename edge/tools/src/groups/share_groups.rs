//! `share-groups`, as Kafka's `kafka-share-groups`: lists and describes share groups, moves and deletes where they
//! begin to read, deletes them.
//!
//! | file | answers |
//! |---|---|
//! | `share_groups/answers.rs` | what the coordinator says and does |
//! | `share_groups/describe.rs` | how a group is shown |
//! | `share_groups/change.rs` | how offsets and groups are moved and deleted |
//!
//! Source: Kafka 4.3 `ShareGroupCommand`.

mod answers;
mod change;
mod describe;

use super::consumer_groups::refused;
use super::listing::{Kind, Listed, list, states};
use super::reset;
use crate::command_line::args::{
    GoesWith, check_goes_with, exactly_one, excludes, is_given, number, switch, text, texts, value, values,
};
use crate::command_line::connection::{bootstrap_server, cluster_config, command_config};
use crate::output::table::{Layout, Table, is_json, output};
use crate::{ToolError, block_on, say};
use barnabas_client::{ClientError, Cluster};
use clap::{Arg, ArgMatches};
use std::time::Duration;

const ACTIONS: [&str; 5] = ["list", "describe", "delete", "reset-offsets", "delete-offsets"];
const FLAGS: [GoesWith<'_>; 16] = [
    ("all-groups", &["describe", "delete"]),
    ("members", &["describe"]),
    ("offsets", &["describe"]),
    ("state", &["describe", "list"]),
    ("verbose", &["describe"]),
    ("all-topics", &["reset-offsets"]),
    ("dry-run", &["reset-offsets"]),
    ("execute", &["reset-offsets"]),
    ("export", &["reset-offsets"]),
    ("to-offset", &["reset-offsets"]),
    ("from-file", &["reset-offsets"]),
    ("to-datetime", &["reset-offsets"]),
    ("to-earliest", &["reset-offsets"]),
    ("to-latest", &["reset-offsets"]),
    ("to-current", &["reset-offsets"]),
    ("topic", &["reset-offsets", "delete-offsets"]),
];
const STATES: [&str; 3] = ["Stable", "Dead", "Empty"];
const TIMEOUT_MS: u64 = 5000;
/// Of the ways to move a consumer group these are for share groups.
const SCENARIOS: &[&str] =
    &["to-offset", "to-datetime", "to-earliest", "to-latest", "to-current", "from-file"];

pub fn flags() -> Vec<Arg> {
    let mut flags = vec![
        bootstrap_server().required(true),
        command_config(),
        switch("list", "List all share groups"),
        switch("describe", "Show where a group begins to read, its members or its state"),
        switch("delete", "Delete groups without members"),
        switch("delete-offsets", "Delete where a group begins to read topics"),
        values("group", "group", "A group; with --describe and --delete it may be repeated"),
        switch("all-groups", "All share groups (with --describe, --delete)"),
        values(
            "topic",
            "topic[:0,1]",
            "A topic, or partitions of it (with --reset-offsets, --delete-offsets)",
        ),
        switch("all-topics", "All topics that the group reads (with --reset-offsets)"),
        switch("members", "With --describe: the members"),
        switch("offsets", "With --describe: offsets and lags (the default)"),
        Arg::new("state")
            .long("state")
            .value_name("states")
            .num_args(0..=1)
            .default_missing_value("")
            .help("With --describe: the state. With --list: the states too, or only groups of these states"),
        switch("verbose", "With --describe: more columns"),
        value("timeout", "ms", "How long the tool may take for one question (default: 5000)"),
        output(),
    ];
    flags.extend(reset::flags());
    let known = |arg: &Arg| {
        let name = arg.get_id().as_str();
        name == "export" || SCENARIOS.contains(&name)
    };
    flags.extend(reset::more_flags().into_iter().filter(known));
    flags
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let action = exactly_one(matches, &ACTIONS)?;
    check(matches, action)?;
    let mut config = cluster_config(matches, "barnabas-share-groups")?;
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
    refused("share", done)
}

fn check(matches: &ArgMatches, action: &str) -> Result<(), ToolError> {
    check_goes_with(matches, action, &FLAGS)?;
    excludes(matches, "all-groups", &["group"])?;
    let refused = |why: String| Err(ToolError::Usage(why));
    let groups = texts(matches, "group").count();
    match action {
        "describe" | "delete" if groups == 0 && !matches.get_flag("all-groups") => {
            return refused(format!("--{action} needs --group or --all-groups. Example: --group jobs"));
        }
        "reset-offsets" | "delete-offsets" if groups != 1 => {
            return refused(format!("--{action} needs one --group. Example: --group jobs"));
        }
        "delete-offsets" if !is_given(matches, "topic") => {
            return refused("--delete-offsets needs --topic. Example: --topic orders".to_owned());
        }
        _ => {}
    }
    match action {
        "describe" => {
            excludes(matches, "members", &["offsets", "state"])?;
            excludes(matches, "offsets", &["state"])?;
            match text(matches, "state") {
                Some(states) if !states.is_empty() => {
                    refused("--state takes no value with --describe".to_owned())
                }
                _ => Ok(()),
            }
        }
        "reset-offsets" => {
            excludes(matches, "all-topics", &["topic"])?;
            match ["all-topics", "topic", "from-file"].iter().any(|flag| is_given(matches, flag)) {
                true => Ok(()),
                false => refused("--reset-offsets needs --all-topics, --topic or --from-file".to_owned()),
            }
        }
        _ => Ok(()),
    }
}

async fn all(cluster: &mut Cluster, states: &[&str]) -> Result<Vec<Listed>, ClientError> {
    list(cluster, states, &[Kind::Share]).await
}

/// The groups that are meant.
async fn meant(cluster: &mut Cluster, matches: &ArgMatches) -> Result<Vec<String>, ClientError> {
    if matches.get_flag("all-groups") {
        return Ok(all(cluster, &[]).await?.into_iter().map(|row| row.group).collect());
    }
    let mut named: Vec<String> = texts(matches, "group").map(str::to_owned).collect();
    named.sort();
    named.dedup();
    Ok(named)
}

async fn list_groups(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let wanted = text(matches, "state").filter(|list| !list.is_empty());
    let wanted = wanted.map(|list| states(list, &STATES)).transpose()?.unwrap_or_default();
    let groups = all(cluster, &wanted).await?;
    if !is_given(matches, "state") && !is_json(matches) {
        return groups.iter().try_for_each(|row| say(&row.group));
    }
    let mut table = Table::new(Layout::Blanks).text("GROUP", 15).text("STATE", 0);
    groups.into_iter().for_each(|row| table.row([row.group, row.state]));
    table.print(matches)
}

#[cfg(test)]
mod tests;
