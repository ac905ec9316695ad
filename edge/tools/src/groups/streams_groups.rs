//! `streams-groups`, as Kafka's `kafka-streams-groups`: lists and describes the groups of Kafka Streams (KIP-1071),
//! resets and deletes their committed offsets, deletes them and their internal topics.
//!
//! | file | answers |
//! |---|---|
//! | `streams_groups/topology.rs` | a group as its coordinator describes it, and which topics are its own |
//! | `streams_groups/describe.rs` | what is shown of a group |
//! | `streams_groups/nodes.rs` | its topology, node by node |
//! | `streams_groups/change.rs` | resets and deletions |
//!
//! Source: Kafka 4.4 `StreamsGroupCommand`, `StreamsGroupCommandOptions`.

mod change;
mod describe;
mod nodes;
mod topology;

pub use topology::is_internal_name;

use super::actions::{GroupsTool, list_of, meant_of};
use super::listing::{Kind, Listed, list};
use super::reset;
use crate::command_line::args::{check_goes_with, exactly_one, excludes, is_given, switch, values};
use crate::command_line::connection::bootstrap_server;
use crate::output::table::is_json;
use crate::{ToolError, block_on};
use barnabas_client::{ClientError, Cluster};
use clap::{Arg, ArgMatches};

const TOOL: GroupsTool = GroupsTool {
    kind: "streams",
    with_all_groups: &["describe", "delete", "reset-offsets"],
    scenarios: reset::SCENARIOS,
    topics: ["input-topic", "all-input-topics"],
    with_all_topics: &["reset-offsets", "delete-offsets"],
    timeout_ms: 30_000,
    fails_if_refused: true,
};
const ACTIONS: [&str; 5] = ["list", "describe", "delete", "reset-offsets", "delete-offsets"];
const STATES: [&str; 6] = ["Stable", "Dead", "Empty", "Assigning", "Reconciling", "NotReady"];
const TOPOLOGY: &str = "topology";
const INTERNAL: &str = "delete-internal-topic";
const ALL_INTERNAL: &str = "delete-all-internal-topics";

pub fn flags() -> Vec<Arg> {
    let mut flags = vec![
        bootstrap_server().required(true),
        switch("list", "List all streams groups"),
        switch("describe", "Show a group's lags, its members or its state"),
        switch("delete", "Delete groups without members, and their committed offsets"),
        switch("delete-offsets", "Delete a group's committed offsets of input topics"),
        switch(TOPOLOGY, "With --describe: the topology, node by node, if the brokers keep descriptions"),
        values(INTERNAL, "topic", "With --reset-offsets --execute: delete this internal topic"),
        switch(
            ALL_INTERNAL,
            "With --delete, or with --reset-offsets --execute: delete all internal topics of the group",
        ),
    ];
    flags.extend(TOOL.flags());
    flags
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let action = exactly_one(matches, &ACTIONS)?;
    check(matches, action)?;
    let mut cluster = TOOL.cluster(matches)?;
    TOOL.print_refusal(block_on(async {
        match action {
            "list" => list_of(&mut cluster, matches, Kind::Streams, &STATES).await,
            "describe" if is_given(matches, TOPOLOGY) => describe::topologies(&mut cluster, matches).await,
            "describe" => describe::describe(&mut cluster, matches).await,
            "delete" => change::delete(&mut cluster, matches).await,
            "delete-offsets" => change::delete_offsets(&mut cluster, matches).await,
            _ => change::reset(&mut cluster, matches).await,
        }
    }))
}

fn check(matches: &ArgMatches, action: &str) -> Result<(), ToolError> {
    TOOL.check(matches, action)?;
    let refused = |why: &str| Err(ToolError::Usage(why.to_owned()));
    check_goes_with(matches, action, &[(TOPOLOGY, &["describe"])])?;
    excludes(matches, TOPOLOGY, &["members", "offsets", "state"])?;
    if is_given(matches, TOPOLOGY) && is_json(matches) {
        return refused("--topology is shown as text: leave out --output json");
    }
    let is_executed = is_given(matches, "execute");
    match action {
        "reset-offsets" if !is_executed && !is_given(matches, "dry-run") => {
            refused("--reset-offsets needs --execute or --dry-run")
        }
        "reset-offsets" if is_executed => Ok(()),
        _ if is_given(matches, INTERNAL) => {
            refused("--delete-internal-topic goes with --reset-offsets --execute")
        }
        _ if action != "delete" && is_given(matches, ALL_INTERNAL) => {
            refused("--delete-all-internal-topics goes with --delete, and with --reset-offsets --execute")
        }
        _ => Ok(()),
    }
}

async fn all(cluster: &mut Cluster, states: &[&str]) -> Result<Vec<Listed>, ClientError> {
    list(cluster, states, &[Kind::Streams]).await
}

async fn meant(cluster: &mut Cluster, matches: &ArgMatches) -> Result<Vec<String>, ClientError> {
    meant_of(cluster, matches, Kind::Streams).await
}

#[cfg(test)]
mod tests;
