//! Resets and deletes committed offsets, and deletes groups with their internal topics.

use super::topology::{committed_of, described, input_topics, internal_topics, source_topics};
use super::{ALL_INTERNAL, INTERNAL, TOOL, all, meant};
use crate::command_line::args::{text, texts};
use crate::groups::actions::deletion;
use crate::groups::description::Partition;
use crate::groups::listing::is_missing;
use crate::groups::offset_deletion::delete_named;
use crate::groups::reset::{self, Plan, Plans, Scenario};
use crate::output::kafka_errors::{self, thrown};
use crate::{ToolError, say};
use barnabas_base::ErrorCode;
use barnabas_client::{Admin, ClientError, Cluster};
use clap::ArgMatches;
use std::collections::BTreeMap;

/// The least widths of the table of `--reset-offsets`.
const WIDTHS: [usize; 4] = [30, 30, 10, 15];

pub async fn delete(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let known = all(cluster, &[]).await?;
    let (mut outcome, mut internal) = (Vec::new(), BTreeMap::new());
    for group in meant(cluster, matches).await? {
        let state = known.iter().find(|row| row.group == group).map(|row| row.state.as_str());
        let failure = match state {
            None => Some(format!(
                "java.lang.IllegalArgumentException: Group '{group}' does not exist or is not a streams group."
            )),
            Some("Dead") => {
                Some(format!("java.lang.IllegalStateException: Streams group '{group}' group state is DEAD."))
            }
            Some("Empty") => {
                if matches.get_flag(ALL_INTERNAL) {
                    internal.insert(group.clone(), own_topics(cluster, &group).await?);
                }
                deletion(cluster, &group).await?
            }
            Some(_) => {
                let why = format!("Streams group '{group}' is not EMPTY.");
                Some(thrown(ErrorCode::NonEmptyGroup, Some(&why)))
            }
        };
        outcome.push((group, failure));
    }
    let deleted = outcome.iter().filter(|row| row.1.is_none()).map(|row| row.0.clone());
    let mut deleted: Vec<String> = deleted.collect();
    deleted.retain(|group| internal.get(group).is_some_and(|topics| !topics.is_empty()));
    let mut failures = Vec::new();
    for group in &deleted {
        if let Err(error) = delete_topics(cluster, &internal[group]).await {
            failures.push(format!(
                "* Internal topics of the streams group '{group}' could not be deleted due to: {}",
                kafka_errors::of(&error)
            ));
        }
    }
    TOOL.print_deletions(&outcome)?;
    if deleted.is_empty() {
        return Ok(());
    }
    if failures.is_empty() {
        return say(&format!(
            "Deletion of associated internal topics of the streams groups ('{}') was successful.",
            deleted.join("', '")
        ));
    }
    say("Deletion of some associated internal topics failed:")?;
    failures.iter().try_for_each(|line| say(line))
}

/// The internal topics of a group. What is not named as such a topic is not deleted, and is reported.
async fn own_topics(cluster: &mut Cluster, group: &str) -> Result<Vec<String>, ToolError> {
    let (topics, misnamed) = internal_topics(&described(cluster, group).await?.0);
    for topic in misnamed {
        say(&format!(
            "\nError: The internal topic '{topic}' is not inferred as internal and thus will not be deleted with the group \
             '{group}'."
        ))?;
    }
    Ok(topics)
}

/// Deletes all of them, or as many as can be: the first refusal is returned.
async fn delete_topics(cluster: &mut Cluster, topics: &[String]) -> Result<(), ClientError> {
    let mut first = Ok(());
    for topic in topics {
        let done = Admin::new(cluster).delete_topic(topic).await;
        first = first.and(done);
    }
    first
}

pub async fn delete_offsets(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let group = text(matches, "group").unwrap_or_default();
    let mut partitions = Vec::new();
    if matches.get_flag("all-input-topics") {
        let told = described(cluster, group).await.map_err(wrapped)?.0;
        let committed = cluster.committed_offsets(group).await.map_err(wrapped)?;
        partitions.extend(committed_of(&committed, &input_topics(&told)).into_keys());
    }
    delete_named(cluster, matches, group, texts(matches, "input-topic"), partitions).await
}

pub async fn reset(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let scenario = reset::read(matches, TOOL.scenarios)?;
    let is_executed = reset::is_executed(matches)?;
    let mut plans = Plans::new();
    for group in meant(cluster, matches).await? {
        let state = match described(cluster, &group).await {
            Ok((told, _)) => told.group_state.to_string(),
            // A commit makes it.
            Err(error) if is_missing(&error) => "Dead".to_owned(),
            Err(error) => return Err(wrapped(error).into()),
        };
        if !matches!(state.as_str(), "Empty" | "Dead") {
            say(&format!(
                "\nError: Assignments can only be reset if the group '{group}' is inactive, but the current state is {state}."
            ))?;
            plans.insert(group, Plan::new());
            continue;
        }
        let plan = plan(cluster, matches, &group, &scenario).await?;
        if is_executed {
            cluster.commit_offsets(&group, &plan).await?;
            delete_internal(cluster, matches, &group).await?;
        }
        plans.insert(group, plan);
    }
    reset::print_with(matches, &plans, WIDTHS)
}

async fn plan(
    cluster: &mut Cluster,
    matches: &ArgMatches,
    group: &str,
    scenario: &Scenario,
) -> Result<Plan, ToolError> {
    let committed = cluster.committed_offsets(group).await.map_err(wrapped)?;
    let partitions: Vec<Partition> = if matches.get_flag("all-input-topics") {
        let told = described(cluster, group).await.map_err(wrapped)?.0;
        committed_of(&committed, &input_topics(&told)).into_keys().collect()
    } else {
        let named = reset::partitions(cluster, texts(matches, "input-topic")).await?;
        let is_of_group = named.iter().all(|partition| committed.contains_key(partition));
        if !is_of_group {
            say(&format!("\nError: One or more topics are not part of the group '{group}'."))?;
        }
        if is_of_group { named } else { Vec::new() }
    };
    let current = match scenario {
        Scenario::Current | Scenario::ShiftBy(_) => {
            let told = described(cluster, group).await.map_err(wrapped)?.0;
            committed_of(&committed, &source_topics(&told))
        }
        _ => Plan::new(),
    };
    reset::plan_of(cluster, group, scenario, &current, partitions).await
}

async fn delete_internal(cluster: &mut Cluster, matches: &ArgMatches, group: &str) -> Result<(), ToolError> {
    let topics = if matches.get_flag(ALL_INTERNAL) {
        own_topics(cluster, group).await?
    } else {
        texts(matches, INTERNAL).map(str::to_owned).collect()
    };
    match delete_topics(cluster, &topics).await {
        Ok(()) => Ok(()),
        Err(error) if error.code() == Some(ErrorCode::UnknownTopicOrPartition) => say(&format!(
            "\nError: Deleting internal topics for group '{group}' failed because the topics do not exist."
        )),
        Err(error @ ClientError::Refused { .. }) => say(&format!(
            "\nError: Deleting internal topics for group '{group}' failed due to {}",
            kafka_errors::of(&error)
        )),
        Err(error) => Err(error.into()),
    }
}

/// A refusal in the words of an exception within another: so Kafka's tool prints it here.
fn wrapped(error: ClientError) -> ClientError {
    match error {
        ClientError::Refused { .. } => ClientError::Invalid(format!(
            "java.util.concurrent.ExecutionException: {}",
            kafka_errors::of(&error)
        )),
        other => other,
    }
}
