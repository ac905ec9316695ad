//! `metadata-quorum`, as Kafka's `kafka-metadata-quorum`: shows the metadata quorum, adds and removes its voters.
//!
//! What it prints is Kafka's, since scripts read it. Source: Kafka `MetadataQuorumCommand`,
//! `ToolsUtils.prettyPrintTable`.
//!
//! | file | answers |
//! |---|---|
//! | `metadata_quorum/describe.rs` | the quorum's state |
//! | `metadata_quorum/new_voter.rs` | which controller a properties file describes |

mod describe;
mod new_voter;

use crate::command_line::args::{
    GoesWith, action, action_of, check_goes_with, excludes, number, switch, text, value,
};
use crate::command_line::connection::{
    bootstrap_controller, bootstrap_server, cluster_config, cluster_config_without_file, command_config,
};
use crate::output::table::{is_json, output};
use crate::waiting::telling;
use crate::{ToolError, block_on, say};
use barnabas_base::{ErrorCode, Uuid};
use barnabas_client::Cluster;
use barnabas_wire::messages::add_raft_voter_request::Listener;
use barnabas_wire::messages::{AddRaftVoterRequest, RemoveRaftVoterRequest};
use clap::{Arg, ArgMatches};
use new_voter::NewVoter;

const TOOL: &str = "metadata-quorum";
const DESCRIBE: &str = "describe";
const ADD: &str = "add-controller";
const REMOVE: &str = "remove-controller";
const ACTIONS: &str = "describe|add-controller|remove-controller";
/// Which actions a flag belongs to.
const FLAGS: [GoesWith<'_>; 7] = [
    ("output", &[DESCRIBE]),
    ("status", &[DESCRIBE]),
    ("replication", &[DESCRIBE]),
    ("human-readable", &[DESCRIBE]),
    ("controller-id", &[REMOVE]),
    ("controller-directory-id", &[REMOVE]),
    ("dry-run", &[ADD, REMOVE]),
];
/// How long the new voter may take to catch up.
const TIMEOUT_MS: i32 = 60_000;

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server(),
        bootstrap_controller(),
        command_config().help(
            "A file with configs of the client. With add-controller: the server.properties of the controller to add",
        ),
        action(ACTIONS),
        switch("status", "With describe: the leader, the voters, the observers"),
        switch("replication", "With describe: the log end offset and lag of every replica"),
        switch("human-readable", "With --replication: times as how long ago"),
        value("controller-id", "id", "With remove-controller: the voter").short('i'),
        value("controller-directory-id", "id", "With remove-controller: the id of its metadata directory").short('d'),
        switch("dry-run", "With add-controller, remove-controller: say what would be done, and do nothing"),
        output(),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let action = action_of(matches, ACTIONS)?;
    check_goes_with(matches, action, &FLAGS)?;
    // Of a controller's own file nothing is meant for this client.
    let mut cluster = Cluster::new(if action == ADD {
        cluster_config_without_file(matches, "barnabas-metadata-quorum")?
    } else {
        cluster_config(matches, "barnabas-metadata-quorum")?
    });
    match action {
        ADD => add(&mut cluster, matches),
        REMOVE => remove(&mut cluster, matches),
        _ => describe(&mut cluster, matches),
    }
}

fn describe(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    excludes(matches, "status", &["replication", "human-readable"])?;
    let is_for_people = matches.get_flag("human-readable");
    match (matches.get_flag("status"), matches.get_flag("replication")) {
        (true, _) => block_on(describe::status(cluster, is_json(matches))),
        (_, true) => block_on(describe::replication(cluster, is_for_people, is_json(matches))),
        _ => Err(ToolError::Usage("describe takes exactly one of --status and --replication".to_owned())),
    }
}

fn add(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let file = text(matches, "command-config").ok_or_else(|| {
        ToolError::Usage(
            "add-controller needs --command-config: the server.properties of that controller".to_owned(),
        )
    })?;
    let voter = NewVoter::read(file)?;
    let is_dry = matches.get_flag("dry-run");
    if !is_dry {
        let listener = |(name, host, port): &(String, String, u16)| Listener {
            name: name.as_str().into(),
            host: host.as_str().into(),
            port: *port,
            ..Default::default()
        };
        let request = AddRaftVoterRequest {
            cluster_id: None,
            timeout_ms: TIMEOUT_MS,
            voter_id: voter.id,
            voter_directory_id: voter.directory,
            listeners: voter.listeners.iter().map(listener).collect(),
            ..Default::default()
        };
        let config = cluster.config().clone();
        let answer = block_on(async { Ok(telling(TOOL, config, cluster.ask_any(&request)).await?) })?;
        check("added", answer.error_code, answer.error_message.as_deref())?;
    }
    let done = if is_dry { "DRY RUN of adding" } else { "Added" };
    let endpoint = |(name, host, port): &(String, String, u16)| match host.contains(':') {
        true => format!("{name}://[{host}]:{port}"),
        false => format!("{name}://{host}:{port}"),
    };
    let endpoints: Vec<String> = voter.listeners.iter().map(endpoint).collect();
    say(&format!(
        "{done} controller {} with directory id {} and endpoints: {}",
        voter.id,
        voter.directory,
        endpoints.join(", ")
    ))
}

fn remove(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let id: Option<i32> = number(matches, "controller-id")?;
    let id = id.ok_or_else(|| ToolError::Usage("remove-controller needs --controller-id".to_owned()))?;
    if id < 0 {
        return Err(ToolError::Usage(format!("--controller-id takes a node's id, not {id}")));
    }
    let directory = text(matches, "controller-directory-id").unwrap_or_default();
    let parsed = Uuid::parse(directory).ok_or_else(|| {
        ToolError::Usage(format!("--controller-directory-id takes a directory's id, not '{directory}'"))
    })?;
    let is_dry = matches.get_flag("dry-run");
    if !is_dry {
        let request = RemoveRaftVoterRequest {
            // The node that is asked knows its own; the schema's default would be another one's.
            cluster_id: None,
            voter_id: id,
            voter_directory_id: parsed,
            ..RemoveRaftVoterRequest::default()
        };
        let config = cluster.config().clone();
        let answer = block_on(async { Ok(telling(TOOL, config, cluster.ask_any(&request)).await?) })?;
        check("removed", answer.error_code, answer.error_message.as_deref())?;
    }
    let done = if is_dry { "DRY RUN of removing" } else { "Removed" };
    say(&format!("{done}  KRaft controller {id} with directory id {directory}"))
}

fn check(done: &str, code: i16, message: Option<&str>) -> Result<(), ToolError> {
    if code == 0 {
        return Ok(());
    }
    let code = ErrorCode::from_code(code);
    Err(ToolError::Usage(format!("the voter was not {done}: {code} {}", message.unwrap_or_default())))
}
