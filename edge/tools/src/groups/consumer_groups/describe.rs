//! How `consumer-groups --describe` shows groups: their offsets, members or states.

use super::super::description::{Described, Member, Partition, assignment_text, describe as describe_group};
use super::super::offsets::{LATEST, offset_at};
use crate::output::table::{Layout, MISSING, Table, cell, is_json, print_json};
use crate::{ToolError, say, tell};
use barnabas_client::{ClientError, Cluster, Committed};
use clap::ArgMatches;
use std::collections::{BTreeMap, BTreeSet};

/// What `member` shows where no member reads a partition.
const NO_MEMBER: [&str; 3] = [MISSING, MISSING, MISSING];

pub async fn describe(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let mut groups = Vec::new();
    for group in super::meant(cluster, matches).await? {
        groups.push(describe_group(cluster, &group).await?);
    }
    let verbose = matches.get_flag("verbose");
    let mut all = Vec::new();
    for group in &groups {
        // Nothing is printed before everything is known, as in Kafka's tool.
        let (table, is_shown) = if matches.get_flag("members") {
            (members(group, verbose), true)
        } else if super::is_given(matches, "state") {
            (state(group, verbose), true)
        } else {
            let committed = cluster.committed_offsets(&group.group).await?;
            let table = offsets(group, &rows(cluster, group, &committed).await?, verbose);
            let is_shown = !table.is_empty();
            (table, is_shown)
        };
        all.push((group, table, is_shown));
    }
    if is_json(matches) {
        return print_json(all.iter().map(|(_, table, _)| table));
    }
    all.iter().try_for_each(|(group, table, is_shown)| print(group, table, *is_shown))
}

fn print(group: &Described, table: &Table, is_shown: bool) -> Result<(), ToolError> {
    match group.state.as_str() {
        "Dead" => say(&format!("\nError: Consumer group '{}' does not exist.", group.group))?,
        "Empty" => tell(&format!("\nConsumer group '{}' has no active members.", group.group)),
        "PreparingRebalance" | "CompletingRebalance" | "Assigning" | "Reconciling" => {
            tell(&format!("\nWarning: Consumer group '{}' is rebalancing.", group.group));
        }
        _ => {}
    }
    if !is_shown || group.state == "Dead" {
        return Ok(());
    }
    say("")?;
    table.print_text()
}

/// A partition, its committed offset, its end offset, and the member that reads it.
struct Row<'a> {
    partition: &'a Partition,
    committed: Option<Committed>,
    end: Option<i64>,
    member: Option<&'a Member>,
}

/// First the partitions that members read, the members with most partitions first, then others with committed offsets.
async fn rows<'a>(
    cluster: &mut Cluster,
    group: &'a Described,
    committed: &'a BTreeMap<Partition, Committed>,
) -> Result<Vec<Row<'a>>, ClientError> {
    let mut members: Vec<&Member> = group.members.iter().collect();
    members.sort_by_key(|member| std::cmp::Reverse(member.assigned.len()));
    let assigned: BTreeSet<&Partition> = members.iter().flat_map(|member| &member.assigned).collect();
    let of_members = members
        .iter()
        .flat_map(|member| member.assigned.iter().map(move |partition| (partition, Some(*member))));
    let others = committed.keys().filter(|partition| !assigned.contains(partition)).map(|of| (of, None));
    let mut rows = Vec::new();
    for (partition, member) in of_members.chain(others) {
        let end = offset_at(cluster, partition, LATEST).await?;
        rows.push(Row { partition, committed: committed.get(partition).copied(), end, member });
    }
    Ok(rows)
}

fn offsets(group: &Described, rows: &[Row<'_>], verbose: bool) -> Table {
    let mut table = Table::new(Layout::Blanks).text("GROUP", 15).text("TOPIC", 15).number("PARTITION", 10);
    if verbose {
        table = table.number("LEADER-EPOCH", 15);
    }
    let mut table = table
        .number("CURRENT-OFFSET", 15)
        .number("LOG-END-OFFSET", 15)
        .number("LAG", 15)
        .text("CONSUMER-ID", 15)
        .text("HOST", 15)
        .text("CLIENT-ID", 0);
    for row in rows {
        let offset = row.committed.map(|committed| committed.offset);
        let lag = row.end.zip(offset).map(|(end, offset)| end - offset);
        let [id, host, client] = row.member.map_or(NO_MEMBER.map(str::to_owned), |member| {
            [member.id.clone(), member.host.clone(), member.client.clone()]
        });
        let mut cells = vec![group.group.clone(), row.partition.0.clone(), row.partition.1.to_string()];
        if verbose {
            cells.push(cell(row.committed.and_then(|committed| committed.leader_epoch)));
        }
        cells.extend([cell(offset), cell(row.end), cell(lag), id, host, client]);
        table.row(cells);
    }
    table
}

fn members(group: &Described, verbose: bool) -> Table {
    let with_instance = group.members.iter().any(|member| !member.instance.is_empty());
    let has = |upgraded| group.members.iter().any(|member| member.is_upgraded == Some(upgraded));
    let with_upgraded = has(true) && has(false);
    let mut table = Table::new(Layout::Blanks).text("GROUP", 15).text("CONSUMER-ID", 15);
    if with_instance {
        table = table.text("GROUP-INSTANCE-ID", 17);
    }
    table = table.text("HOST", 15).text("CLIENT-ID", 15).number("#PARTITIONS", 15);
    if verbose {
        table = table.number("CURRENT-EPOCH", 15).text("CURRENT-ASSIGNMENT", 20);
        table = table.number("TARGET-EPOCH", 15).text("TARGET-ASSIGNMENT", 20);
        if with_upgraded {
            table = table.text("UPGRADED", 0);
        }
    }
    for member in &group.members {
        let mut cells = vec![group.group.clone(), member.id.clone()];
        if with_instance {
            cells.push(member.instance.clone());
        }
        cells.extend([member.host.clone(), member.client.clone(), member.assigned.len().to_string()]);
        if verbose {
            cells.extend([cell(member.epoch), assignment(&member.assigned)]);
            cells.extend([cell(group.target_epoch), assignment(&member.target)]);
            if with_upgraded {
                cells.push(cell(member.is_upgraded));
            }
        }
        table.row(cells);
    }
    table
}

fn assignment(partitions: &[Partition]) -> String {
    let text = assignment_text(partitions.iter().map(|(topic, number)| (topic.as_str(), *number)));
    if text.is_empty() { MISSING.to_owned() } else { text }
}

fn state(group: &Described, verbose: bool) -> Table {
    let assignor = if group.assignor.is_empty() { MISSING } else { group.assignor.as_str() };
    let mut table = Table::new(Layout::Blanks)
        .text("GROUP", 15)
        .text("COORDINATOR (ID)", 25)
        .text("ASSIGNMENT-STRATEGY", 20)
        .text("STATE", 20);
    if verbose {
        table = table.number("GROUP-EPOCH", 15).number("TARGET-ASSIGNMENT-EPOCH", 25);
    }
    let mut table = table.number("#MEMBERS", 0);
    let mut cells =
        vec![group.group.clone(), group.coordinator.clone(), assignor.to_owned(), group.state.clone()];
    if verbose {
        cells.extend([cell(group.epoch), cell(group.target_epoch)]);
    }
    cells.push(group.members.len().to_string());
    table.row(cells);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(topic: &str, number: i32) -> Partition {
        (topic.to_owned(), number)
    }

    fn group() -> Described {
        let member = Member {
            id: "one-1".to_owned(),
            client: "one".to_owned(),
            host: "/127.0.0.1".to_owned(),
            assigned: vec![partition("orders", 0), partition("orders", 2), partition("a", 1)],
            ..Member::default()
        };
        Described {
            group: "billing".to_owned(),
            state: "Stable".to_owned(),
            coordinator: "h:1  (1)".to_owned(),
            assignor: String::new(),
            epoch: None,
            target_epoch: None,
            members: vec![member],
        }
    }

    #[test]
    fn lag_is_unknown_without_a_commit_or_an_end() {
        let group = group();
        let of = partition("orders", 0);
        let row = |offset: Option<i64>, end, member| Row {
            partition: &of,
            committed: offset.map(|offset| Committed { offset, leader_epoch: Some(4) }),
            end,
            member,
        };
        let rows = [
            row(Some(3), Some(10), group.members.first()),
            row(None, Some(10), None),
            row(Some(3), None, None),
        ];
        let table = offsets(&group, &rows, true);
        assert_eq!(
            table.lines()[1..],
            [
                "billing         orders          0          4               3               10              7               one-1           /127.0.0.1      one",
                "billing         orders          0          -               -               10              -               -               -               -",
                "billing         orders          0          4               3               -               -               -               -               -",
            ]
        );
    }

    #[test]
    fn members_are_shown_with_their_assignment() {
        let lines = members(&group(), true).lines();
        let cells: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(cells, ["billing", "one-1", "/127.0.0.1", "one", "3", "-", "a:1;orders:0,2", "-", "-"]);
        assert!(!lines[0].contains("UPGRADED") && !lines[0].contains("INSTANCE"), "{}", lines[0]);
        let mut mixed = group();
        let other = Member { is_upgraded: Some(true), instance: "i".to_owned(), ..Member::default() };
        mixed.members[0].is_upgraded = Some(false);
        mixed.members.push(other);
        let lines = members(&mixed, true).lines();
        assert!(lines[0].ends_with("UPGRADED") && lines[0].contains("GROUP-INSTANCE-ID"), "{}", lines[0]);
        assert!(lines[1].ends_with("false") && lines[2].ends_with("true"), "{lines:?}");
    }

    #[test]
    fn a_classic_group_has_no_epochs() {
        let lines = state(&group(), true).lines();
        let cells: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(cells, ["billing", "h:1", "(1)", "-", "Stable", "-", "-", "1"]);
    }
}
