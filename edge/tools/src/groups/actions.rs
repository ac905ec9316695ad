//! What `consumer-groups`, `share-groups` and `streams-groups` do alike: the flags of their actions and which of them
//! go together, the groups and states that are named, deletions and refusals.
//!
//! As with Kafka's tools, a refusal of the cluster stands behind `Error:` on standard output, and the exit code is 0,
//! of `streams-groups` 1. Unlike there, it is 1 where no broker answers.
//!
//! Source: Kafka 4.3 `ConsumerGroupCommandOptions`, `ShareGroupCommandOptions`, `StreamsGroupCommandOptions`.

use super::listing::{Kind, list, states};
use super::offsets::delete_group;
use super::reset;
use crate::command_line::args::{
    GoesWith, check_goes_with, excludes, is_given, number, switch, text, texts, value, values,
};
use crate::command_line::connection::{cluster_config, command_config};
use crate::output::kafka_errors::{self, thrown};
use crate::output::table::{Layout, Table, is_json, output};
use crate::{ToolError, say};
use barnabas_client::{ClientError, Cluster};
use clap::{Arg, ArgMatches};
use std::time::Duration;

/// What differs between the tools.
pub struct GroupsTool {
    /// In Kafka's words: `consumer`, `share`, `streams`.
    pub kind: &'static str,
    /// Actions that work on several groups. The others work on one.
    pub with_all_groups: &'static [&'static str],
    /// The flags among [`reset::SCENARIOS`] that the tool has.
    pub scenarios: &'static [&'static str],
    /// The flags that name topics, and all topics of the group.
    pub topics: [&'static str; 2],
    /// Actions that take the second of `topics`.
    pub with_all_topics: &'static [&'static str],
    /// What `--timeout` is where it is left out.
    pub timeout_ms: u64,
    /// Whether a refusal of the cluster is a failure.
    pub fails_if_refused: bool,
}

const FLAGS: [GoesWith<'_>; 7] = [
    ("members", &["describe"]),
    ("offsets", &["describe"]),
    ("state", &["describe", "list"]),
    ("verbose", &["describe"]),
    ("dry-run", &[RESET]),
    ("execute", &[RESET]),
    ("export", &[RESET]),
];
const RESET: &str = "reset-offsets";
const DELETE_OFFSETS: &str = "delete-offsets";

impl GroupsTool {
    /// The flags that all of these tools have.
    pub fn flags(&self) -> Vec<Arg> {
        let [topic, all_topics] = self.topics;
        let timeout = format!("How long the tool may take for one request (default: {})", self.timeout_ms);
        let mut flags = vec![
            command_config(),
            values("group", "group", "A group; may be repeated where the action works on several"),
            switch("all-groups", "Instead of --group: all groups"),
            values(
                topic,
                "topic[:0,1]",
                "A topic, or partitions of it (with --reset-offsets, --delete-offsets)",
            ),
            switch(all_topics, "All topics for which the group has offsets (with --reset-offsets)"),
            switch("members", "With --describe: the members"),
            switch("offsets", "With --describe: offsets and lags (the default)"),
            Arg::new("state")
                .long("state")
                .value_name("states")
                .num_args(0..=1)
                .default_missing_value("")
                .help(
                    "With --describe: the state. With --list: the states too, or only groups of these states",
                ),
            switch("verbose", "With --describe: more columns"),
            value("timeout", "ms", "").help(timeout),
            output(),
        ];
        flags.extend(reset::flags(self.scenarios));
        flags
    }

    /// # Errors
    /// Flags that do not go with `action` or with each other; one that is missing.
    pub fn check(&self, matches: &ArgMatches, action: &str) -> Result<(), ToolError> {
        check_goes_with(matches, action, &[("all-groups", self.with_all_groups)])?;
        check_goes_with(matches, action, &FLAGS)?;
        let [topic, all_topics] = self.topics;
        check_goes_with(matches, action, &[(topic, &[RESET, DELETE_OFFSETS])])?;
        check_goes_with(matches, action, &[(all_topics, self.with_all_topics)])?;
        for scenario in self.scenarios {
            check_goes_with(matches, action, &[(scenario, &[RESET])])?;
        }
        self.check_groups(matches, action)?;
        let refused = |why: &str| Err(ToolError::Usage(why.to_owned()));
        excludes(matches, all_topics, &[topic])?;
        let names_topics = is_given(matches, topic) || is_given(matches, all_topics);
        match action {
            "describe" => {
                excludes(matches, "members", &["offsets", "state"])?;
                excludes(matches, "offsets", &["state"])?;
                if text(matches, "state").is_some_and(|states| !states.is_empty()) {
                    return refused("--state takes no value with --describe");
                }
            }
            DELETE_OFFSETS if !names_topics => {
                return refused(&format!("--delete-offsets needs --{topic}. Example: --{topic} orders"));
            }
            RESET if !names_topics && !is_given(matches, "from-file") => {
                return refused(&format!("--reset-offsets needs --{all_topics}, --{topic} or --from-file"));
            }
            _ => {}
        }
        Ok(())
    }

    fn check_groups(&self, matches: &ArgMatches, action: &str) -> Result<(), ToolError> {
        excludes(matches, "all-groups", &["group"])?;
        let groups = texts(matches, "group").count();
        let is_of_several = self.with_all_groups.contains(&action);
        match action {
            _ if is_of_several && groups == 0 && !matches.get_flag("all-groups") => Err(ToolError::Usage(
                format!("--{action} needs --group or --all-groups. Example: --group billing"),
            )),
            RESET | DELETE_OFFSETS if !is_of_several && groups != 1 => {
                Err(ToolError::Usage(format!("--{action} needs one --group. Example: --group billing")))
            }
            _ => Ok(()),
        }
    }

    /// The cluster, with the deadline of `--timeout`.
    ///
    /// # Errors
    /// As [`cluster_config`]; a timeout that is no number.
    pub fn cluster(&self, matches: &ArgMatches) -> Result<Cluster, ToolError> {
        let mut config = cluster_config(matches, &format!("barnabas-{}-groups", self.kind))?;
        config.deadline = Duration::from_millis(number(matches, "timeout")?.unwrap_or(self.timeout_ms));
        Ok(Cluster::new(config))
    }

    /// Prints the cluster's refusal as Kafka's tools print it. To most of them that is no failure.
    ///
    /// # Errors
    /// `done`'s own, where it is no refusal.
    pub fn print_refusal(&self, done: Result<(), ToolError>) -> Result<(), ToolError> {
        let why = match done {
            Err(ToolError::Client(error @ (ClientError::Refused { .. } | ClientError::Invalid(_)))) => {
                kafka_errors::of(&error)
            }
            done => return done,
        };
        say(&format!("\nError: Executing {} group command failed due to {why}", self.kind))?;
        if self.fails_if_refused { Err(ToolError::Code(1)) } else { Ok(()) }
    }

    /// Prints which groups were deleted, and why the others were not.
    ///
    /// # Errors
    /// Standard output takes no more.
    pub fn print_deletions(&self, outcome: &[(String, Option<String>)]) -> Result<(), ToolError> {
        let kind = self.kind;
        let deleted: Vec<String> = outcome
            .iter()
            .filter(|(_, failure)| failure.is_none())
            .map(|(group, _)| format!("'{group}'"))
            .collect();
        let deleted = deleted.join(", ");
        let mut failures =
            outcome.iter().filter_map(|(group, failure)| Some((group, failure.as_ref()?))).peekable();
        if failures.peek().is_none() {
            return say(&format!("Deletion of requested {kind} groups ({deleted}) was successful."));
        }
        say(&format!("\nError: Deletion of some {kind} groups failed:"))?;
        for (group, why) in failures {
            say(&format!("* Group '{group}' could not be deleted due to: {why}"))?;
        }
        if deleted.is_empty() {
            return Ok(());
        }
        let end = if kind == "streams" { "." } else { "" };
        say(&format!("\nThese {kind} groups were deleted successfully: {deleted}{end}"))
    }
}

/// The groups of a kind that are meant: those that are named, or all.
///
/// # Errors
/// No broker lists its groups.
pub async fn meant_of(
    cluster: &mut Cluster,
    matches: &ArgMatches,
    kind: Kind,
) -> Result<Vec<String>, ClientError> {
    if matches.get_flag("all-groups") {
        return Ok(list(cluster, &[], &[kind]).await?.into_iter().map(|row| row.group).collect());
    }
    Ok(named_groups(matches))
}

/// `--list` of share and streams groups: names, or with `--state` a table.
///
/// # Errors
/// A state that groups of that kind do not have; no broker lists its groups.
pub async fn list_of(
    cluster: &mut Cluster,
    matches: &ArgMatches,
    kind: Kind,
    valid: &[&str],
) -> Result<(), ToolError> {
    let groups = list(cluster, &wanted_states(matches, valid)?, &[kind]).await?;
    if !is_given(matches, "state") && !is_json(matches) {
        return groups.iter().try_for_each(|row| say(&row.group));
    }
    let mut table = Table::new(Layout::Blanks).text("GROUP", 15).text("STATE", 0);
    groups.into_iter().for_each(|row| table.row([row.group, row.state]));
    table.print(matches)
}

/// The groups of `--group`, each once and in order.
pub fn named_groups(matches: &ArgMatches) -> Vec<String> {
    let mut named: Vec<String> = texts(matches, "group").map(str::to_owned).collect();
    named.sort();
    named.dedup();
    named
}

/// The states of `--state`; none where it has no value.
///
/// # Errors
/// A word that is none of `valid`.
pub fn wanted_states<'a>(matches: &ArgMatches, valid: &[&'a str]) -> Result<Vec<&'a str>, ToolError> {
    let wanted = text(matches, "state").filter(|list| !list.is_empty());
    Ok(wanted.map(|list| states(list, valid)).transpose()?.unwrap_or_default())
}

/// Deletes a group. `Some`: the coordinator's refusal, in the words of Kafka's tools.
///
/// # Errors
/// The coordinator does not answer.
pub async fn deletion(cluster: &mut Cluster, group: &str) -> Result<Option<String>, ClientError> {
    match delete_group(cluster, group).await {
        Ok(()) => Ok(None),
        Err(ClientError::Refused { code, message, .. }) => Ok(Some(thrown(code, Some(&message)))),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::command_line::args::exactly_one;

    /// The refusal of a command line, by a tool's own flags and rules.
    pub fn checked(
        flags: Vec<Arg>,
        actions: &[&str],
        check: impl Fn(&ArgMatches, &str) -> Result<(), ToolError>,
        words: &str,
    ) -> Result<(), String> {
        let words = ["groups", "--bootstrap-server", "h:1"].into_iter().chain(words.split_whitespace());
        let matches = clap::Command::new("groups").args(flags).try_get_matches_from(words);
        let matches = matches.map_err(|error| error.to_string())?;
        let action = exactly_one(&matches, actions).map_err(|error| error.to_string())?;
        check(&matches, action).map_err(|error| error.to_string())
    }
}
