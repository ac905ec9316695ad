//! How `streams-groups --describe` shows groups: their lags, members or states.

use super::topology::{described, partitions_of, source_topics, with_description};
use super::{meant, nodes};
use crate::command_line::args::is_given;
use crate::groups::offsets::{EARLIEST, LATEST, offset_at};
use crate::output::table::{Layout, Table, cell, is_json, print_json};
use crate::{ToolError, say};
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::streams_group_describe_response::{Assignment, DescribedGroup, TaskIds};
use clap::ArgMatches;
use std::collections::BTreeSet;

pub async fn describe(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let verbose = matches.get_flag("verbose");
    let mut all = Vec::new();
    for group in meant(cluster, matches).await? {
        let (told, coordinator) = described(cluster, &group).await?;
        // As in Kafka's tool, a group without members has a state and nothing else to show.
        let has_members = told.group_state.as_str() != "Dead" && !told.members.is_empty();
        let (table, is_shown) = if matches.get_flag("members") {
            (members(&told, verbose), has_members)
        } else if is_given(matches, "state") {
            (states(&told, &coordinator, verbose), true)
        } else {
            (offsets(cluster, &told, verbose).await?, has_members)
        };
        all.push((told, table, is_shown));
    }
    if is_json(matches) {
        return print_json(all.iter().map(|(_, table, _)| table));
    }
    all.iter().filter(|shown| shown.2).try_for_each(|(told, table, _)| print(told, table))
}

/// Shows how each group's application describes its topology. A group without a description is a failure, once the
/// others are shown.
pub async fn topologies(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let mut has_failed = false;
    for group in meant(cluster, matches).await? {
        let told = with_description(cluster, &group).await?;
        match topology(&told) {
            Ok(text) => say(&text)?,
            Err(why) => {
                say(&format!("\nError: {why}"))?;
                has_failed = true;
            }
        }
    }
    if has_failed { Err(ToolError::Code(1)) } else { Ok(()) }
}

/// # Errors
/// Why there is none, in the words of Kafka's tool.
fn topology(told: &DescribedGroup) -> Result<String, String> {
    const NOT_STORED: i8 = 1;
    const ERROR: i8 = 2;
    let group = &*told.group_id;
    match (&told.topology_description, told.topology_description_status) {
        (Some(description), _) => Ok(nodes::shown(description)),
        (None, NOT_STORED) => Err(format!("No topology description is stored for streams group '{group}'.")),
        (None, ERROR) => Err(format!(
            "The broker failed to fetch the topology description for streams group '{group}'. See the broker logs for \
             details."
        )),
        (None, status) => Err(format!(
            "No topology description is available for streams group '{group}' (status: {status})."
        )),
    }
}

fn print(told: &DescribedGroup, table: &Table) -> Result<(), ToolError> {
    let group = &*told.group_id;
    match told.group_state.as_str() {
        "Dead" => say(&format!("\nError: Streams group '{group}' does not exist."))?,
        "Empty" => say(&format!("\nError: Streams group '{group}' has no active members."))?,
        _ => {}
    }
    table.print_text()
}

async fn offsets(cluster: &mut Cluster, told: &DescribedGroup, verbose: bool) -> Result<Table, ClientError> {
    let mut table = Table::new(Layout::Blanks).text("GROUP", 15).text("TOPIC", 15).number("PARTITION", 10);
    if verbose {
        table = table.number("CURRENT-OFFSET", 15).number("LEADER-EPOCH", 15).number("LOG-END-OFFSET", 15);
    }
    let mut table = table.number("OFFSET-LAG", if verbose { 15 } else { 0 });
    let tasks = told.members.iter().flat_map(|member| &member.assignment.active_tasks);
    let tasks: Vec<TaskIds> = tasks.cloned().collect();
    let read: BTreeSet<_> = partitions_of(told, &tasks);
    if read.is_empty() {
        return Ok(table);
    }
    let sources = source_topics(told);
    let committed = cluster.committed_offsets(&told.group_id).await?;
    for partition in read {
        let first = offset_at(cluster, &partition, EARLIEST).await?;
        let end = offset_at(cluster, &partition, LATEST).await?;
        let committed = committed.get(&partition).copied().filter(|_| sources.contains(&partition.0));
        let from = committed.map(|committed| committed.offset).or(first);
        let mut cells = vec![told.group_id.to_string(), partition.0, partition.1.to_string()];
        if verbose {
            cells.push(cell(committed.map(|committed| committed.offset)));
            cells.push(cell(committed.and_then(|committed| committed.leader_epoch)));
            cells.push(cell(end));
        }
        cells.push(cell(end.zip(from).map(|(end, from)| end - from)));
        table.row(cells);
    }
    Ok(table)
}

fn members(told: &DescribedGroup, verbose: bool) -> Table {
    let mut table = Table::new(Layout::Blanks).text("GROUP", 15);
    if verbose {
        // Kafka's tool pads this column by 15 and leaves out the blank behind it.
        table = table.number("TARGET-ASSIGNMENT-EPOCH", 25).number("TOPOLOGY-EPOCH", 14);
    }
    table = table.text("MEMBER", 15);
    if verbose {
        table = table.text("MEMBER-PROTOCOL", 15).number("MEMBER-EPOCH", 15);
    }
    let mut table = table.text("PROCESS", 15).text("CLIENT-ID", 15).text("ASSIGNMENTS", 0);
    let topology_epoch = told.topology.as_ref().map_or(0, |topology| topology.epoch);
    for member in &told.members {
        let mut cells = vec![told.group_id.to_string()];
        if verbose {
            cells.extend([told.assignment_epoch.to_string(), topology_epoch.to_string()]);
        }
        cells.push(member.member_id.to_string());
        if verbose {
            let protocol = if member.is_classic { "classic" } else { "streams" };
            cells.extend([protocol.to_owned(), member.member_epoch.to_string()]);
        }
        let mut tasks = tasks(&member.assignment, "");
        if verbose {
            tasks += &self::tasks(&member.target_assignment, "TARGET-");
        }
        cells.extend([member.process_id.to_string(), member.client_id.to_string(), tasks]);
        table.row(cells);
    }
    table
}

/// `ACTIVE: 0:[0,1]; 1:[2]; STANDBY: 1:[0]; `, each kind where it has tasks.
fn tasks(assignment: &Assignment, before: &str) -> String {
    let kind = |name: &str, tasks: &[TaskIds]| {
        let task = |task: &TaskIds| {
            let numbers: Vec<String> = task.partitions.iter().map(ToString::to_string).collect();
            format!("{}:[{}]; ", &*task.subtopology_id, numbers.join(","))
        };
        let tasks: String = tasks.iter().map(task).collect();
        if tasks.is_empty() { tasks } else { format!("{before}{name}: {tasks}") }
    };
    kind("ACTIVE", &assignment.active_tasks)
        + &kind("STANDBY", &assignment.standby_tasks)
        + &kind("WARMUP", &assignment.warmup_tasks)
}

fn states(told: &DescribedGroup, coordinator: &str, verbose: bool) -> Table {
    let mut table =
        Table::new(Layout::Blanks).text("GROUP", 15).text("COORDINATOR (ID)", 25).text("STATE", 25);
    if verbose {
        table = table.number("GROUP-EPOCH", 15).number("TARGET-ASSIGNMENT-EPOCH", 25);
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

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_wire::messages::streams_group_describe_response::Member;

    fn group() -> DescribedGroup {
        let task = |id: &str, partitions: &[i32]| TaskIds {
            subtopology_id: id.into(),
            partitions: partitions.to_vec(),
            ..Default::default()
        };
        let member = Member {
            member_id: "one".into(),
            process_id: "process".into(),
            client_id: "client".into(),
            member_epoch: 5,
            assignment: Assignment {
                active_tasks: vec![task("0", &[0, 1]), task("1", &[2])],
                standby_tasks: vec![task("1", &[0])],
                ..Default::default()
            },
            ..Default::default()
        };
        DescribedGroup {
            assignment_epoch: 4,
            members: vec![member],
            ..super::super::topology::tests::group()
        }
    }

    #[test]
    fn members_are_shown_with_their_tasks() {
        assert_eq!(
            members(&group(), false).lines(),
            [
                "GROUP           MEMBER          PROCESS         CLIENT-ID       ASSIGNMENTS",
                "app             one             process         client          ACTIVE: 0:[0,1]; 1:[2]; STANDBY: 1:[0]; ",
            ]
        );
        let verbose = members(&group(), true).lines();
        assert_eq!(
            verbose[1],
            "app             4                         3              one             streams         5               process         client          ACTIVE: 0:[0,1]; 1:[2]; STANDBY: 1:[0]; "
        );
    }

    #[test]
    fn group_without_a_description_says_why() {
        let topology = |status: i8| {
            let told = DescribedGroup { topology_description_status: status, ..group() };
            topology(&told).expect_err("no description")
        };
        assert_eq!(topology(1), "No topology description is stored for streams group 'app'.");
        assert!(topology(2).starts_with("The broker failed to fetch the topology description"));
        assert!(topology(0).ends_with("(status: 0)."));
    }

    #[test]
    fn state_is_shown_with_its_coordinator() {
        assert_eq!(
            states(&group(), "h:1 (1)", false).lines()[1],
            "app             h:1 (1)                   Stable                    1"
        );
    }
}
