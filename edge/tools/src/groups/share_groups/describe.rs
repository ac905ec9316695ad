//! How `share-groups --describe` shows groups: their offsets, members or states.

use super::super::description::assignment_text;
use super::answers::{described, starts};
use super::meant;
use crate::command_line::args::is_given;
use crate::output::table::{Layout, Table, cell, is_json, print_json};
use crate::{ToolError, say, tell};
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::share_group_describe_response::DescribedGroup;
use clap::ArgMatches;

/// What is shown of a group.
struct Shown {
    group: String,
    /// `None`: the state is not printed.
    state: Option<String>,
    table: Table,
    /// Printed instead of a table without rows.
    without_rows: Option<String>,
}

pub async fn describe(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let verbose = matches.get_flag("verbose");
    let mut all = Vec::new();
    for group in meant(cluster, matches).await? {
        let (told, coordinator) = described(cluster, &group).await?;
        let state = Some(told.group_state.to_string());
        all.push(if matches.get_flag("members") {
            Shown { group, state, table: members(&told, verbose), without_rows: None }
        } else if is_given(matches, "state") {
            Shown { group, state, table: states(&told, &coordinator, verbose), without_rows: None }
        } else {
            let table = offsets(cluster, &group, verbose).await?;
            let none = format!("\nShare group '{group}' has no offset information.");
            Shown { group, state: None, table, without_rows: Some(none) }
        });
    }
    if is_json(matches) {
        return print_json(all.iter().map(|shown| &shown.table));
    }
    all.iter().try_for_each(print)
}

fn print(shown: &Shown) -> Result<(), ToolError> {
    match shown.state.as_deref() {
        Some("Dead") => return say(&format!("\nError: Share group '{}' does not exist.", shown.group)),
        Some("Empty") => tell(&format!("\nShare group '{}' has no active members.", shown.group)),
        _ => {}
    }
    match &shown.without_rows {
        Some(words) if shown.table.is_empty() => say(words),
        None if shown.table.is_empty() => Ok(()),
        _ => {
            say("")?;
            shown.table.print_text()
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
        let topics = member.assignment.topic_partitions.iter();
        cells
            .push(assignment_text(topics.flat_map(|topic| {
                topic.partitions.iter().map(|&number| (topic.topic_name.as_str(), number))
            })));
        table.row(cells);
    }
    table
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
