//! `consumer-groups`, as Kafka's `kafka-consumer-groups`: lists and describes consumer groups, resets and deletes
//! their committed offsets, deletes them.
//!
//! | file | answers |
//! |---|---|
//! | `consumer_groups/describe.rs` | what is shown of a group |
//! | `consumer_groups/change.rs` | resets and deletions |
//!
//! Source: Kafka 4.3 `ConsumerGroupCommand`.

mod change;
mod describe;

use super::actions::{GroupsTool, named_groups, wanted_states};
use super::listing::{Kind, Listed, list};
use super::reset;
use crate::command_line::args::{GoesWith, check_goes_with, exactly_one, is_given, switch, text, value};
use crate::command_line::connection::bootstrap_server;
use crate::output::table::{Layout, Table, is_json};
use crate::{ToolError, block_on, say};
use barnabas_client::{ClientError, Cluster};
use clap::{Arg, ArgMatches};
use regex::Regex;

const TOOL: GroupsTool = GroupsTool {
    kind: "consumer",
    with_all_groups: &["describe", "delete", "reset-offsets"],
    scenarios: reset::SCENARIOS,
    topics: ["topic", "all-topics"],
    with_all_topics: &["reset-offsets"],
    timeout_ms: 5_000,
    fails_if_refused: false,
};
const ACTIONS: [&str; 6] =
    ["list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex"];
const FLAGS: [GoesWith<'_>; 1] = [("type", &["list"])];
const STATES: [&str; 7] =
    ["PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling"];

pub fn flags() -> Vec<Arg> {
    let mut flags = vec![
        bootstrap_server(),
        switch("list", "List all consumer groups"),
        switch("describe", "Show a group's committed offsets, its lag and its members"),
        switch("delete", "Delete groups without members, and their committed offsets"),
        switch("delete-offsets", "Delete a group's committed offsets of topics"),
        value("validate-regex", "expression", "Say whether an expression for topics is valid"),
        Arg::new("type")
            .long("type")
            .value_name("types")
            .num_args(0..=1)
            .default_missing_value("")
            .help("With --list: the types too, or only groups of these types: classic, consumer"),
    ];
    flags.extend(TOOL.flags());
    flags
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let action = exactly_one(matches, &ACTIONS)?;
    check(matches, action)?;
    if action == "validate-regex" {
        return validate(text(matches, action).unwrap_or_default());
    }
    let mut cluster = TOOL.cluster(matches)?;
    TOOL.print_refusal(block_on(async {
        match action {
            "list" => list_groups(&mut cluster, matches).await,
            "describe" => describe::describe(&mut cluster, matches).await,
            "delete" => change::delete(&mut cluster, matches).await,
            "delete-offsets" => change::delete_offsets(&mut cluster, matches).await,
            _ => change::reset(&mut cluster, matches).await,
        }
    }))
}

fn check(matches: &ArgMatches, action: &str) -> Result<(), ToolError> {
    check_goes_with(matches, action, &FLAGS)?;
    TOOL.check(matches, action)
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
    Ok(named_groups(matches))
}

async fn list_groups(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let (with_type, with_state) = (is_given(matches, "type"), is_given(matches, "state"));
    let wanted = wanted_states(matches, &STATES)?;
    let kinds = text(matches, "type").filter(|list| !list.is_empty());
    let kinds = kinds.map(kinds_of).transpose()?.unwrap_or_default();
    let mut groups = list(cluster, &wanted, &kinds).await?;
    groups.retain(Listed::is_for_consumers);
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
