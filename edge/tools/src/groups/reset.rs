//! Where `--reset-offsets` moves a group: which partitions, and to which offset of each.
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
use crate::output::table::{Layout, Table};
use crate::{ToolError, say, tell};
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster};
use clap::{Arg, ArgMatches};
use std::collections::{BTreeMap, BTreeSet};

pub use csv::export;

/// The new offsets of one group's partitions.
pub type Plan = BTreeMap<Partition, i64>;
/// The plan of each group.
pub type Plans = BTreeMap<String, Plan>;

/// Flags that say where to move to; one of them is given.
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

/// Where to move to.
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

/// The flags of those [`SCENARIOS`] that every tool has.
pub fn flags() -> Vec<Arg> {
    vec![
        switch("reset-offsets", "Move what the group has committed; its members must be stopped"),
        switch("dry-run", "With --reset-offsets: only show where to (the default)"),
        switch("execute", "With --reset-offsets: do it"),
        value(
            "to-datetime",
            "datetime",
            "Move to a time: YYYY-MM-DDTHH:mm:SS.sss, UTC or with a zone behind it",
        ),
        switch("to-earliest", "Move to the first offset"),
        switch("to-latest", "Move behind the last offset"),
    ]
}

/// The flags that tools for consumers and streams have besides.
pub fn more_flags() -> Vec<Arg> {
    vec![
        switch("export", "With --reset-offsets: print the offsets as lines for --from-file"),
        value("to-offset", "offset", "Move to this offset"),
        value("from-file", "path", "Move to the offsets of a file with lines topic,partition,offset"),
        value("by-duration", "duration", "Move to so long ago: PnDTnHnMnS. Example: PT30M"),
        switch("to-current", "Move to what is committed; partitions without a commit to their end"),
        value("shift-by", "number", "Move by so many offsets, forwards or, below zero, back"),
    ]
}

/// The scenario that `matches` names.
///
/// # Errors
/// None or several are named, or the value of one cannot be read. `now_ms`: milliseconds since 1970.
pub fn read(matches: &ArgMatches, known: &[&'static str], now_ms: i64) -> Result<Scenario, ToolError> {
    let flag = match given(matches, known)[..] {
        [one] => one,
        _ => {
            let known: Vec<String> = known.iter().map(|flag| format!("--{flag}")).collect();
            let known = known.join(", ");
            return Err(ToolError::Usage(format!("--reset-offsets needs exactly one of {known}")));
        }
    };
    let word = || text(matches, flag).unwrap_or_default();
    let whole = || number::<i64>(matches, flag).map(Option::unwrap_or_default);
    match flag {
        "to-offset" => Ok(Scenario::Offset(whole()?)),
        "shift-by" => Ok(Scenario::ShiftBy(whole()?)),
        "to-datetime" => moment::datetime(word()).map(Scenario::Time),
        "by-duration" => moment::duration(word()).map(|ms| Scenario::Time(now_ms.saturating_sub(ms))),
        "to-earliest" => Ok(Scenario::Earliest),
        "to-latest" => Ok(Scenario::Latest),
        "to-current" => Ok(Scenario::Current),
        _ => {
            let groups: Vec<&str> = texts(matches, "group").collect();
            csv::load(word(), &groups).map(Scenario::Planned)
        }
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

/// Where the partitions of `group` are moved to. `current`: what is committed.
///
/// # Errors
/// A partition that does not exist, or that has no leader; a partition without a commit that is to be shifted.
pub async fn plan(
    cluster: &mut Cluster,
    group: &str,
    scenario: &Scenario,
    partitions: &[Partition],
    current: &Plan,
) -> Result<Plan, ToolError> {
    check_there(cluster, partitions).await?;
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
                let offset = target(cluster, scenario, partition, current.get(partition).copied()).await?;
                plan.insert(partition.clone(), offset);
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

/// Prints the plans as Kafka's tools print them.
///
/// # Errors
/// Standard output takes no more.
pub fn print(matches: &ArgMatches, plans: &Plans) -> Result<(), ToolError> {
    let mut table = Table::new(Layout::Blanks)
        .text("GROUP", 15)
        .text("TOPIC", 15)
        .number("PARTITION", 10)
        .number("NEW-OFFSET", 0);
    for (group, plan) in plans {
        for ((topic, partition), offset) in plan {
            table.row([group.clone(), topic.clone(), partition.to_string(), offset.to_string()]);
        }
    }
    if crate::output::table::is_json(matches) {
        return table.print(matches);
    }
    say("")?;
    if plans.is_empty() { Ok(()) } else { table.print(matches) }
}

#[cfg(test)]
mod tests;
