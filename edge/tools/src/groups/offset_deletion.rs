//! `--delete-offsets`: deletes what a group has committed for partitions, and shows what became of each.
//!
//! Source: Kafka 4.3 `ConsumerGroupCommand.deleteOffsets`, `StreamsGroupCommand.deleteOffsets`.

use super::description::Partition;
use super::offsets::delete as delete_committed;
use super::reset;
use crate::output::kafka_errors::{message, thrown};
use crate::output::table::{Layout, MISSING, Table};
use crate::{ToolError, say};
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster};
use clap::ArgMatches;
use std::collections::BTreeMap;

/// Deletes the offsets of `partitions`, and of those that words name: `topic`, or `topic:0,1`. A topic that is refused
/// is a line of the table.
///
/// # Errors
/// As [`delete_partitions`]; a word that names no partition.
pub async fn delete_named<'a>(
    cluster: &mut Cluster,
    matches: &ArgMatches,
    group: &str,
    words: impl Iterator<Item = &'a str>,
    mut partitions: Vec<Partition>,
) -> Result<(), ToolError> {
    let mut outcome = BTreeMap::new();
    for word in words {
        if let Some(named) = reset::named_partitions(word)? {
            partitions.extend(named);
            continue;
        }
        match reset::all_partitions(cluster, word).await {
            Ok(all) => partitions.extend(all),
            Err(ClientError::Refused { code, message, .. }) => {
                outcome.insert((word.to_owned(), -1), Some(thrown(code, Some(&message))));
            }
            Err(error) => return Err(error.into()),
        }
    }
    delete_partitions(cluster, matches, group, &partitions, outcome).await
}

/// `outcome`: what is known already, of topics that could not be looked up; their partition is −1.
///
/// # Errors
/// The coordinator does not answer; standard output takes no more.
async fn delete_partitions(
    cluster: &mut Cluster,
    matches: &ArgMatches,
    group: &str,
    partitions: &[Partition],
    mut outcome: BTreeMap<Partition, Option<String>>,
) -> Result<(), ToolError> {
    let deleted = delete_committed(cluster, group, partitions).await;
    let (top, codes) = match deleted {
        Ok(codes) => (codes.values().copied().find(|code| code.is_error()), codes),
        Err(ClientError::Refused { code, .. }) => {
            (Some(code), partitions.iter().map(|partition| (partition.clone(), code)).collect())
        }
        Err(error) => return Err(error.into()),
    };
    outcome.extend(
        codes.into_iter().map(|(partition, code)| (partition, code.is_error().then(|| thrown(code, None)))),
    );
    say(&match top {
        None => format!("Request succeeded for deleting offsets from group {group}."),
        Some(code) => format!("\nError: {}", summary(code)),
    })?;
    say("")?;
    outcome_table(&outcome).print(matches)
}

fn summary(code: ErrorCode) -> String {
    match code {
        ErrorCode::InvalidGroupId
        | ErrorCode::GroupIdNotFound
        | ErrorCode::GroupAuthorizationFailed
        | ErrorCode::NonEmptyGroup => message(code, None),
        ErrorCode::GroupSubscribedToTopic
        | ErrorCode::TopicAuthorizationFailed
        | ErrorCode::UnknownTopicOrPartition => {
            "Encountered some partition-level error, see the follow-up details.".to_owned()
        }
        other => format!("Encountered some unknown error: {}", other.name()),
    }
}

fn outcome_table(outcome: &BTreeMap<Partition, Option<String>>) -> Table {
    let mut table = Table::new(Layout::Blanks).text("TOPIC", 15).number("PARTITION", 10).text("STATUS", 15);
    for ((topic, partition), failure) in outcome {
        let partition = if *partition < 0 { MISSING.to_owned() } else { partition.to_string() };
        let status = failure.as_ref().map_or_else(|| "Successful".to_owned(), |why| format!("Error: {why}"));
        table.row([topic.clone(), partition, status]);
    }
    table
}
