//! `share-groups`, as Kafka's `kafka-share-groups`: lists and describes share groups, resets and deletes their
//! start offsets, deletes them.
//!
//! | file | answers |
//! |---|---|
//! | `share_groups/answers.rs` | the requests to a share group's coordinator |
//! | `share_groups/describe.rs` | what is shown of a group |
//! | `share_groups/change.rs` | resets and deletions |
//!
//! Source: Kafka 4.3 `ShareGroupCommand`.

mod answers;
mod change;
mod describe;

use super::actions::{GroupsTool, list_of, meant_of};
use super::listing::{Kind, Listed, list};
use crate::command_line::args::{exactly_one, switch};
use crate::command_line::connection::bootstrap_server;
use crate::{ToolError, block_on};
use barnabas_client::{ClientError, Cluster};
use clap::{Arg, ArgMatches};

const TOOL: GroupsTool = GroupsTool {
    kind: "share",
    with_all_groups: &["describe", "delete"],
    scenarios: &["to-offset", "to-datetime", "to-earliest", "to-latest", "to-current", "from-file"],
    topics: ["topic", "all-topics"],
    with_all_topics: &["reset-offsets"],
    timeout_ms: 5_000,
    fails_if_refused: false,
};
const ACTIONS: [&str; 5] = ["list", "describe", "delete", "reset-offsets", "delete-offsets"];
const STATES: [&str; 3] = ["Stable", "Dead", "Empty"];

pub fn flags() -> Vec<Arg> {
    let mut flags = vec![
        bootstrap_server().required(true),
        switch("list", "List all share groups"),
        switch("describe", "Show a group's start offsets, its members or its state"),
        switch("delete", "Delete groups without members"),
        switch("delete-offsets", "Delete a group's start offsets of topics"),
    ];
    flags.extend(TOOL.flags());
    flags
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let action = exactly_one(matches, &ACTIONS)?;
    TOOL.check(matches, action)?;
    let mut cluster = TOOL.cluster(matches)?;
    TOOL.print_refusal(block_on(async {
        match action {
            "list" => list_of(&mut cluster, matches, Kind::Share, &STATES).await,
            "describe" => describe::describe(&mut cluster, matches).await,
            "delete" => change::delete(&mut cluster, matches).await,
            "delete-offsets" => change::delete_offsets(&mut cluster, matches).await,
            _ => change::reset(&mut cluster, matches).await,
        }
    }))
}

async fn all(cluster: &mut Cluster, states: &[&str]) -> Result<Vec<Listed>, ClientError> {
    list(cluster, states, &[Kind::Share]).await
}

async fn meant(cluster: &mut Cluster, matches: &ArgMatches) -> Result<Vec<String>, ClientError> {
    meant_of(cluster, matches, Kind::Share).await
}

#[cfg(test)]
mod tests;
