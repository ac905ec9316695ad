//! `--reset-offsets`: which partitions, and the new offset of each.
//!
//! | file | answers |
//! |---|---|
//! | `reset/moment.rs` | which time a word names |
//! | `reset/csv.rs` | the lines of `--from-file` and `--export` |
//!
//! Source: Kafka 4.3 `GroupOffsetsResetter`.

mod csv;
mod moment;

use super::description::Partition;
use super::offsets::{EARLIEST, LATEST, offset_at};
use crate::command_line::args::{given, is_given, number, switch, text, texts, value};
use crate::output::table::{Layout, Table, is_json};
use crate::{ToolError, now_ms, say, tell};
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster};
use clap::{Arg, ArgMatches};
use std::collections::{BTreeMap, BTreeSet};

/// The new offsets of one group's partitions.
pub type Plan = BTreeMap<Partition, i64>;
/// The plan of each group.
pub type Plans = BTreeMap<String, Plan>;

/// Flags that name the new offsets; one of them is given.
pub const SCENARIOS: &[&str] = &[
    "to-offset",
    "shift-by",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "from-file",
];

/// How the new offsets are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scenario {
    Offset(i64),
    ShiftBy(i64),
    /// Milliseconds since 1970.
    Time(i64),
    Earliest,
    Latest,
    Current,
    /// The plans of a file.
    Planned(Plans),
}

/// The flags of `--reset-offsets`, with those of `scenarios` alone among [`SCENARIOS`].
pub fn flags(scenarios: &[&str]) -> Vec<Arg> {
    let flags = [
        switch("reset-offsets", "Reset the group's offsets; its members must be stopped"),
        switch("dry-run", "With --reset-offsets: only show the new offsets (the default)"),
        switch("execute", "With --reset-offsets: do it"),
        switch("export", "With --reset-offsets: print the offsets as lines for --from-file"),
        value("to-offset", "offset", "Reset to this offset"),
        value("from-file", "path", "Reset to the offsets of a file with lines topic,partition,offset"),
        value(
            "to-datetime",
            "datetime",
            "Reset to a time: YYYY-MM-DDTHH:mm:SS.sss, UTC or with a zone behind it",
        ),
        value("by-duration", "duration", "Reset to so long ago: PnDTnHnMnS. Example: PT30M"),
        switch("to-earliest", "Reset to the first offset"),
        switch("to-latest", "Reset to the end offset"),
        switch("to-current", "Reset to the current offset; partitions without one to their end offset"),
        value("shift-by", "number", "Shift the offset by so many, forwards or, below zero, back"),
    ];
    let is_known = |flag: &Arg| {
        let name = flag.get_id().as_str();
        !SCENARIOS.contains(&name) || scenarios.contains(&name)
    };
    flags.into_iter().filter(is_known).collect()
}

/// The scenario that `matches` names.
///
/// # Errors
/// None or several are named, or the value of one cannot be read.
pub fn read(matches: &ArgMatches, known: &[&'static str]) -> Result<Scenario, ToolError> {
    let flag = match given(matches, known)[..] {
        [one] => one,
        _ => {
            let known: Vec<String> = known.iter().map(|flag| format!("--{flag}")).collect();
            let known = known.join(", ");
            return Err(ToolError::Usage(format!("--reset-offsets needs exactly one of {known}")));
        }
    };
    let groups: Vec<&str> = texts(matches, "group").collect();
    named(matches, flag, &groups)
}

/// The scenario of this flag; `groups` are those of `--from-file`.
///
/// # Errors
/// Its value cannot be read.
pub fn named(matches: &ArgMatches, flag: &str, groups: &[&str]) -> Result<Scenario, ToolError> {
    let word = || text(matches, flag).unwrap_or_default();
    let whole = || number::<i64>(matches, flag).map(Option::unwrap_or_default);
    match flag {
        "to-offset" => Ok(Scenario::Offset(whole()?)),
        "shift-by" => Ok(Scenario::ShiftBy(whole()?)),
        "to-datetime" => moment::datetime(word()).map(Scenario::Time),
        "by-duration" => moment::duration(word()).map(|ms| Scenario::Time(now_ms().saturating_sub(ms))),
        "to-earliest" => Ok(Scenario::Earliest),
        "to-latest" => Ok(Scenario::Latest),
        "to-current" => Ok(Scenario::Current),
        _ => csv::load(word(), groups).map(Scenario::Planned),
    }
}

/// Whether it is to be done, not only shown. Warns, as Kafka's tools do, where neither is asked for.
pub fn is_executed(matches: &ArgMatches) -> Result<bool, ToolError> {
    let (is_dry, is_executed) = (is_given(matches, "dry-run"), is_given(matches, "execute"));
    if is_dry && is_executed {
        return Err(ToolError::Usage("--execute cannot be used together with --dry-run".to_owned()));
    }
    if !is_dry && !is_executed {
        tell("WARN: nothing is changed, since --execute is missing. Say --dry-run to keep it so");
    }
    Ok(is_executed)
}

/// The partitions that words like `orders` and `orders:0,2` name.
///
/// # Errors
/// A word that names none; the cluster's refusal.
pub async fn partitions<'a>(
    cluster: &mut Cluster,
    words: impl Iterator<Item = &'a str>,
) -> Result<Vec<Partition>, ToolError> {
    let mut found = BTreeSet::new();
    for word in words {
        match named_partitions(word)? {
            Some(named) => found.extend(named),
            None => found.extend(all_partitions(cluster, word).await?),
        }
    }
    Ok(found.into_iter().collect())
}

/// The partitions of `topic:0,1`; `None`: the word is a topic alone.
///
/// # Errors
/// Behind the colon are no numbers.
pub fn named_partitions(word: &str) -> Result<Option<Vec<Partition>>, ToolError> {
    if !word.contains(':') {
        return Ok(None);
    }
    let parts: Vec<&str> = word.split(':').collect();
    let [topic, numbers] = parts[..] else {
        return Err(ToolError::Usage(format!(
            "Invalid topic arg '{word}', expected topic name and partitions. Example: orders:0,1"
        )));
    };
    let partition = |number: &str| match number.trim().parse() {
        Ok(number) => Ok((topic.to_owned(), number)),
        Err(_) => {
            Err(ToolError::Usage(format!("Invalid partition '{number}' specified in topic arg '{word}'")))
        }
    };
    numbers.split(',').map(partition).collect::<Result<Vec<_>, _>>().map(Some)
}

/// # Errors
/// The topic is not there, or may not be described.
pub async fn all_partitions(cluster: &mut Cluster, topic: &str) -> Result<Vec<Partition>, ClientError> {
    let known = cluster.topic(topic, false).await?;
    Ok(known.partitions.iter().map(|row| (topic.to_owned(), row.partition_index)).collect())
}

/// The new offsets of the partitions that `matches` names, or with `--all-topics` of all in `current`, the offsets now.
///
/// # Errors
/// A partition that does not exist, or that has no leader; a partition without a commit that is to be shifted.
pub async fn plan(
    cluster: &mut Cluster,
    matches: &ArgMatches,
    group: &str,
    scenario: &Scenario,
    current: &Plan,
) -> Result<Plan, ToolError> {
    let partitions: Vec<Partition> = if matches.get_flag("all-topics") {
        current.keys().cloned().collect()
    } else {
        partitions(cluster, texts(matches, "topic")).await?
    };
    plan_of(cluster, group, scenario, current, partitions).await
}

/// The new offsets of these partitions, or those that a file plans for the group.
///
/// # Errors
/// As [`plan`].
pub async fn plan_of(
    cluster: &mut Cluster,
    group: &str,
    scenario: &Scenario,
    current: &Plan,
    partitions: Vec<Partition>,
) -> Result<Plan, ToolError> {
    check_there(cluster, &partitions).await?;
    let mut plan = Plan::new();
    match scenario {
        Scenario::Planned(plans) => {
            let Some(wanted) = plans.get(group) else {
                say(&format!("\nError: No reset plan for group {group} found."))?;
                return Ok(plan);
            };
            for (partition, offset) in wanted {
                plan.insert(partition.clone(), within(cluster, partition, *offset).await?);
            }
        }
        _ => {
            for partition in partitions {
                let offset = target(cluster, scenario, &partition, current.get(&partition).copied()).await?;
                plan.insert(partition, offset);
            }
        }
    }
    Ok(plan)
}

async fn target(
    cluster: &mut Cluster,
    scenario: &Scenario,
    partition: &Partition,
    current: Option<i64>,
) -> Result<i64, ToolError> {
    match (scenario, current) {
        (Scenario::Offset(offset), _) => within(cluster, partition, *offset).await,
        (Scenario::ShiftBy(by), Some(offset)) => within(cluster, partition, offset.saturating_add(*by)).await,
        (Scenario::ShiftBy(_), None) => Err(ToolError::Usage(format!(
            "Cannot shift offset for partition {}-{} since there is no current committed offset",
            partition.0, partition.1
        ))),
        (Scenario::Time(ms), _) => match offset_at(cluster, partition, *ms).await? {
            Some(offset) => Ok(offset),
            None => {
                say(&format!(
                    "\nWarn: Partition {} from topic {} is empty. Falling back to latest known offset.",
                    partition.1, partition.0
                ))?;
                edge(cluster, partition, LATEST).await
            }
        },
        (Scenario::Earliest, _) => edge(cluster, partition, EARLIEST).await,
        (Scenario::Current, Some(offset)) => Ok(offset),
        (Scenario::Latest | Scenario::Current | Scenario::Planned(_), _) => {
            edge(cluster, partition, LATEST).await
        }
    }
}

async fn edge(cluster: &mut Cluster, partition: &Partition, timestamp: i64) -> Result<i64, ToolError> {
    let missing = || {
        let words = format!("The partitions \"{}-{}\" have no leader", partition.0, partition.1);
        ClientError::refused("offsets", ErrorCode::LeaderNotAvailable.code(), Some(&words))
    };
    Ok(offset_at(cluster, partition, timestamp).await?.ok_or_else(missing)?)
}

/// `offset`, or the end of the partition that is nearer to it where the partition does not reach so far.
async fn within(cluster: &mut Cluster, partition: &Partition, offset: i64) -> Result<i64, ToolError> {
    let (first, end) = (edge(cluster, partition, EARLIEST).await?, edge(cluster, partition, LATEST).await?);
    let (taken, is, what) = match offset {
        offset if offset > end => (end, "higher", "latest"),
        offset if offset < first => (first, "lower", "earliest"),
        offset => return Ok(offset),
    };
    tell(&format!(
        "WARN New offset ({offset}) is {is} than {what} offset for topic partition {}-{}. Value will be set to {taken}.",
        partition.0, partition.1
    ));
    Ok(taken)
}

/// # Errors
/// A partition that does not exist.
async fn check_there(cluster: &mut Cluster, partitions: &[Partition]) -> Result<(), ClientError> {
    let mut missing = Vec::new();
    for partition in partitions {
        let known = cluster.topic(&partition.0, false).await?;
        if !known.partitions.iter().any(|row| row.partition_index == partition.1) {
            missing.push(format!("{}-{}", partition.0, partition.1));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let words = format!("The partitions \"{}\" do not exist", missing.join(","));
    Err(ClientError::refused("offsets", ErrorCode::UnknownTopicOrPartition.code(), Some(&words)))
}

/// Prints the plans as Kafka's tools print them: as a table, or with `--export` as lines for `--from-file`.
///
/// # Errors
/// Standard output takes no more.
pub fn print(matches: &ArgMatches, plans: &Plans) -> Result<(), ToolError> {
    print_with(matches, plans, [15, 15, 10, 0])
}

/// [`print`] with these columns at the least.
///
/// # Errors
/// As [`print`].
pub fn print_with(matches: &ArgMatches, plans: &Plans, widths: [usize; 4]) -> Result<(), ToolError> {
    if is_given(matches, "export") {
        csv::export(plans).iter().try_for_each(|line| say(line))?;
        // Kafka's tool ends its lines, and the last one once more.
        return say("");
    }
    let mut table = Table::new(Layout::Blanks)
        .text("GROUP", widths[0])
        .text("TOPIC", widths[1])
        .number("PARTITION", widths[2])
        .number("NEW-OFFSET", widths[3]);
    for (group, plan) in plans {
        for ((topic, partition), offset) in plan {
            table.row([group.clone(), topic.clone(), partition.to_string(), offset.to_string()]);
        }
    }
    if is_json(matches) {
        return table.print(matches);
    }
    say("")?;
    if plans.is_empty() { Ok(()) } else { table.print(matches) }
}

#[cfg(test)]
mod tests;
