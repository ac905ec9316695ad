//! Resets and deletes committed offsets, and deletes groups.

use super::super::actions::deletion;
use super::super::description::describe;
use super::super::listing::{Kind, is_missing, list};
use super::super::offset_deletion::delete_named;
use super::super::reset::{self, Plan, Plans, Scenario};
use super::{TOOL, meant};
use crate::command_line::args::{text, texts};
use crate::output::kafka_errors::message;
use crate::{ToolError, say};
use barnabas_client::{ClientError, Cluster};
use clap::ArgMatches;

pub async fn delete(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let mut outcome = Vec::new();
    for group in meant(cluster, matches).await? {
        let failure = deletion(cluster, &group).await?;
        outcome.push((group, failure));
    }
    TOOL.print_deletions(&outcome)
}

pub async fn delete_offsets(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let group = text(matches, "group").unwrap_or_default();
    delete_named(cluster, matches, group, texts(matches, "topic"), Vec::new()).await
}

pub async fn reset(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let scenario = reset::read(matches, reset::SCENARIOS)?;
    let is_executed = reset::is_executed(matches)?;
    let streams: Vec<String> =
        list(cluster, &[], &[Kind::Streams]).await?.into_iter().map(|row| row.group).collect();
    let mut plans = Plans::new();
    for group in meant(cluster, matches).await? {
        let plan = match obstacle(cluster, &group, &streams).await? {
            Some(why) => {
                say(&format!("\nError: {why}"))?;
                Plan::new()
            }
            None => {
                let plan = plan(cluster, matches, &group, &scenario).await.map_err(bare)?;
                if is_executed {
                    cluster.commit_offsets(&group, &plan).await.map_err(ToolError::from).map_err(bare)?;
                }
                plan
            }
        };
        plans.insert(group, plan);
    }
    reset::print(matches, &plans)
}

/// A refusal in the words of its message alone: so Kafka's tool prints it here.
fn bare(error: ToolError) -> ToolError {
    match error {
        ToolError::Client(ClientError::Refused { code, message: told, .. }) => {
            ToolError::Client(ClientError::Invalid(message(code, Some(&told))))
        }
        ToolError::Usage(why) => ToolError::Client(ClientError::Invalid(why)),
        other => other,
    }
}

/// Why the offsets of a group cannot be moved. A group that is not there can: the commit creates it.
async fn obstacle(
    cluster: &mut Cluster,
    group: &str,
    streams: &[String],
) -> Result<Option<String>, ClientError> {
    if streams.iter().any(|known| known == group) {
        return Ok(Some(format!(
            "Group '{group}' is a streams group. Use kafka-streams-groups.sh to reset its offsets."
        )));
    }
    match describe(cluster, group).await {
        Ok(known) if matches!(known.state.as_str(), "Empty" | "Dead") => Ok(None),
        Ok(known) => Ok(Some(format!(
            "Assignments can only be reset if the group '{group}' is inactive, but the current state is {}.",
            known.state
        ))),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn plan(
    cluster: &mut Cluster,
    matches: &ArgMatches,
    group: &str,
    scenario: &Scenario,
) -> Result<Plan, ToolError> {
    let current: Plan = cluster
        .committed_offsets(group)
        .await?
        .into_iter()
        .map(|(partition, committed)| (partition, committed.offset))
        .collect();
    reset::plan(cluster, matches, group, scenario, &current).await
}
