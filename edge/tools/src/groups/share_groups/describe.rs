//! How `share-groups --describe` shows groups: their offsets, members or states.

use super::answers::{described, starts};
use super::{is_given, meant};
use crate::output::table::{Layout, Table, cell, is_json};
use crate::{ToolError, say, tell};
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::share_group_describe_response::{Assignment, DescribedGroup};
use clap::ArgMatches;
use serde_json::Value;
use std::collections::BTreeMap;

/// What is shown of a group.
struct Shown {
    group: String,
    state: String,
    table: Table,
    /// Whether the table is left out, and the words that stand for it.
    instead: Option<String>,
    says_state: bool,
}

pub async fn describe(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let verbose = matches.get_flag("verbose");
    let mut all = Vec::new();
    for group in meant(cluster, matches).await? {
        let (told, coordinator) = described(cluster, &group).await?;
        let state = told.group_state.to_string();
        let shown = if matches.get_flag("members") {
            let instead = told.members.is_empty().then(String::new);
            Shown { group, state, table: members(&told, verbose), instead, says_state: true }
        } else if is_given(matches, "state") {
            Shown {
                group,
                state,
                table: states(&told, &coordinator, verbose),
                instead: None,
                says_state: true,
            }
        } else {
            let table = offsets(cluster, &group, verbose).await?;
            let none = format!("\nShare group '{group}' has no offset information.");
            let instead = (table.lines().len() == 1).then_some(none);
            Shown { group, state, table, instead, says_state: false }
        };
        all.push(shown);
    }
    if is_json(matches) {
        let rows = all.iter().flat_map(|shown| match shown.table.json() {
            Value::Array(rows) => rows,
            other => vec![other],
        });
        return say(&Value::Array(rows.collect()).to_string());
    }
    all.iter().try_for_each(print)
}

fn print(shown: &Shown) -> Result<(), ToolError> {
    match shown.state.as_str() {
        "Dead" if shown.says_state => {
            return say(&format!("\nError: Share group '{}' does not exist.", shown.group));
        }
        "Empty" if shown.says_state => {
            tell(&format!("\nShare group '{}' has no active members.", shown.group));
        }
        _ => {}
    }
    match &shown.instead {
        Some(words) if words.is_empty() => Ok(()),
        Some(words) => say(words),
        None => {
            say("")?;
            shown.table.lines().iter().try_for_each(|line| say(line))
        }
    }
}

async fn offsets(cluster: &mut Cluster, group: &str, verbose: bool) -> Result<Table, ClientError> {
    let mut table = Table::new(Layout::Blanks).text("GROUP", 15).text("TOPIC", 15).number("PARTITION", 10);
    if verbose {
        table = table.number("LEADER-EPOCH", 13);
    }
    let mut table = table.number("START-OFFSET", 13).number("LAG", 0);
    for ((topic, partition), start) in starts(cluster, group).await? {
        let mut cells = vec![group.to_owned(), topic, partition.to_string()];
        if verbose {
            cells.push(cell(start.leader_epoch));
        }
        cells.extend([cell(start.offset), cell(start.lag)]);
        table.row(cells);
    }
    Ok(table)
}

fn members(told: &DescribedGroup, verbose: bool) -> Table {
    let mut table = Table::new(Layout::Blanks)
        .text("GROUP", 15)
        .text("CONSUMER-ID", 15)
        .text("HOST", 15)
        .text("CLIENT-ID", 15)
        .number("#PARTITIONS", 12);
    if verbose {
        table = table.number("MEMBER-EPOCH", 13);
    }
    let mut table = table.text("ASSIGNMENT", 0);
    let mut members: Vec<_> = told.members.iter().collect();
    members.sort_by(|one, other| one.member_id.cmp(&other.member_id));
    for member in members {
        let partitions: usize =
            member.assignment.topic_partitions.iter().map(|topic| topic.partitions.len()).sum();
        let mut cells = vec![
            told.group_id.to_string(),
            member.member_id.to_string(),
            member.client_host.to_string(),
            member.client_id.to_string(),
            partitions.to_string(),
        ];
        if verbose {
            cells.push(member.member_epoch.to_string());
        }
        cells.push(assignment(&member.assignment));
        table.row(cells);
    }
    table
}

/// `jobs:0,1;orders:3`.
fn assignment(assignment: &Assignment) -> String {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for topic in &assignment.topic_partitions {
        topics.entry(&topic.topic_name).or_default().extend(&topic.partitions);
    }
    let topic = |(topic, mut numbers): (&str, Vec<i32>)| {
        numbers.sort_unstable();
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        format!("{topic}:{}", numbers.join(","))
    };
    topics.into_iter().map(topic).collect::<Vec<_>>().join(";")
}

fn states(told: &DescribedGroup, coordinator: &str, verbose: bool) -> Table {
    let mut table =
        Table::new(Layout::Blanks).text("GROUP", 15).text("COORDINATOR (ID)", 25).text("STATE", 15);
    if verbose {
        table = table.number("GROUP-EPOCH", 12).number("ASSIGNMENT-EPOCH", 17);
    }
    let mut table = table.number("#MEMBERS", 0);
    let mut cells = vec![told.group_id.to_string(), coordinator.to_owned(), told.group_state.to_string()];
    if verbose {
        cells.extend([told.group_epoch.to_string(), told.assignment_epoch.to_string()]);
    }
    cells.push(told.members.len().to_string());
    table.row(cells);
    table
}
