//! Resets and deletes start offsets, and deletes groups.

use super::super::actions::deletion;
use super::super::listing::is_missing;
use super::super::reset::{self, Plan, Plans};
use super::answers::{alter, delete as delete_starts, described, starts};
use super::{TOOL, all, meant};
use crate::command_line::args::{text, texts};
use crate::output::kafka_errors::{message, thrown};
use crate::output::table::{Layout, Table, is_json};
use crate::{ToolError, say};
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster};
use clap::ArgMatches;

pub async fn delete(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let known = all(cluster, &[]).await?;
    let mut outcome = Vec::new();
    for group in meant(cluster, matches).await? {
        let state = known.iter().find(|row| row.group == group).map(|row| row.state.as_str());
        let failure = match state {
            None => {
                let why = format!("Group '{group}' is not a share group.");
                Some(thrown(ErrorCode::GroupIdNotFound, Some(&why)))
            }
            Some("Empty") => deletion(cluster, &group).await?,
            Some(_) => {
                let why = format!("Share group '{group}' is not EMPTY.");
                Some(thrown(ErrorCode::NonEmptyGroup, Some(&why)))
            }
        };
        outcome.push((group, failure));
    }
    TOOL.print_deletions(&outcome)
}

pub async fn delete_offsets(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let group = text(matches, "group").unwrap_or_default();
    let topics: Vec<&str> = texts(matches, "topic").collect();
    let mut table = Table::new(Layout::Blanks).text("TOPIC", 15).text("STATUS", 0);
    match delete_starts(cluster, group, &topics).await {
        Ok(outcome) => {
            for (topic, (code, told)) in outcome {
                let status = match code.is_error() {
                    true => format!("Error: {}", message(code, Some(&told))),
                    false => "Successful".to_owned(),
                };
                table.row([topic, status]);
            }
        }
        Err(ClientError::Refused { code, message: told, .. }) => {
            let why = message(code, Some(&told));
            let is_expected = matches!(
                code,
                ErrorCode::InvalidGroupId
                    | ErrorCode::GroupIdNotFound
                    | ErrorCode::GroupAuthorizationFailed
                    | ErrorCode::NonEmptyGroup
            );
            say(&match is_expected {
                true => format!("\nError: {why}"),
                false => format!("\nError: Encounter some unknown error: {}", thrown(code, Some(&told))),
            })?;
            topics.iter().for_each(|topic| table.row([(*topic).to_owned(), format!("Error: {why}")]));
        }
        Err(error) => return Err(error.into()),
    }
    if !is_json(matches) {
        say("")?;
    }
    table.print(matches)
}

pub async fn reset(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let scenario = reset::read(matches, TOOL.scenarios)?;
    let is_executed = reset::is_executed(matches)?;
    let group = text(matches, "group").unwrap_or_default();
    match described(cluster, group).await {
        Ok((told, _)) if !matches!(&*told.group_state, "Empty" | "Dead") => {
            return Err(ToolError::Plain(format!("Share group '{group}' is not empty.")));
        }
        Ok(_) => {}
        // The offsets create it.
        Err(error) if is_missing(&error) => {}
        Err(error) => return Err(error.into()),
    }
    let current: Plan = match starts(cluster, group).await {
        Ok(starts) => {
            starts.into_iter().filter_map(|(of, start)| start.offset.map(|offset| (of, offset))).collect()
        }
        Err(error) if is_missing(&error) => Plan::new(),
        Err(error) => return Err(error.into()),
    };
    let plan = reset::plan(cluster, matches, group, &scenario, &current).await?;
    if is_executed && !plan.is_empty() {
        alter(cluster, group, &plan).await?;
    }
    reset::print(matches, &Plans::from([(group.to_owned(), plan)]))
}
