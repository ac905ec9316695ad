//! Moves and deletes where share groups begin to read, and deletes groups.

use super::super::description::Partition;
use super::super::listing::is_missing;
use super::super::offsets::delete_group;
use super::super::reset::{self, Plan, Plans};
use super::answers::{alter, delete as delete_starts, described, starts};
use super::{SCENARIOS, all, meant};
use crate::command_line::args::{is_given, text, texts};
use crate::output::kafka_errors::{message, thrown};
use crate::output::table::{Layout, Table, is_json};
use crate::{ToolError, say};
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster};
use clap::ArgMatches;
use std::time::{SystemTime, UNIX_EPOCH};

pub async fn delete(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let known = all(cluster, &[]).await?;
    let (mut deleted, mut failed) = (Vec::new(), Vec::new());
    for group in meant(cluster, matches).await? {
        let state = known.iter().find(|row| row.group == group).map(|row| row.state.as_str());
        let obstacle = match state {
            None => Some((ErrorCode::GroupIdNotFound, format!("Group '{group}' is not a share group."))),
            Some("Empty") => None,
            Some(_) => Some((ErrorCode::NonEmptyGroup, format!("Share group '{group}' is not EMPTY."))),
        };
        let why = match obstacle {
            Some((code, why)) => Some(thrown(code, Some(&why))),
            None => match delete_group(cluster, &group).await {
                Ok(()) => None,
                Err(ClientError::Refused { code, message, .. }) => Some(thrown(code, Some(&message))),
                Err(error) => return Err(error.into()),
            },
        };
        match why {
            Some(why) => failed.push(format!("* Group '{group}' could not be deleted due to: {why}")),
            None => deleted.push(format!("'{group}'")),
        }
    }
    if failed.is_empty() {
        let deleted = deleted.join(", ");
        return say(&format!("Deletion of requested share groups ({deleted}) was successful."));
    }
    say("\nError: Deletion of some share groups failed:")?;
    failed.iter().try_for_each(|line| say(line))?;
    if deleted.is_empty() {
        return Ok(());
    }
    say(&format!("\nThese share groups were deleted successfully: {}", deleted.join(", ")))
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
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    let scenario = reset::read(matches, SCENARIOS, now)?;
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
    let partitions: Vec<Partition> = if matches.get_flag("all-topics") {
        current.keys().cloned().collect()
    } else {
        reset::partitions(cluster, texts(matches, "topic")).await?
    };
    let plan = reset::plan(cluster, group, &scenario, &partitions, &current).await?;
    if is_executed && !plan.is_empty() {
        alter(cluster, group, &plan).await?;
    }
    let plans = Plans::from([(group.to_owned(), plan)]);
    if is_given(matches, "export") {
        let mut lines = reset::export(&plans, true);
        lines.push(String::new());
        return lines.iter().try_for_each(|line| say(line));
    }
    reset::print(matches, &plans)
}
