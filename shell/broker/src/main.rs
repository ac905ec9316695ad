//! The binary: says which command runs, and nothing about how.

mod args;
mod broker_requests;
mod brokers_gone;
mod cleaner;
mod cluster_events;
mod committer;
mod coordinator_worker;
mod dead_letters;
mod descriptors;
mod directories;
mod explain;
mod exporter;
mod failed_directories;
mod format;
mod full;
mod hindrances;
mod housekeeping;
mod in_force;
mod journal_thread;
mod log_lines;
mod logging;
mod mailbox;
mod markers;
mod moves;
mod node;
mod node_config;
mod owners;
mod partition_worker;
mod producer_id_blocks;
mod properties;
mod publisher;
mod put_aside;
mod quorum_worker;
mod replay;
mod replica;
mod requests;
mod scrub;
mod seldom;
mod server;
mod settings;
mod share_persister;
mod shutdown;
mod storage_tool;
mod tickets;
mod topic_settings;
mod version;
mod worker;

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().collect();
    // Called by a link named as Kafka's tool: `kafka-topics`, `kafka-topics.sh`.
    let called = words.first().and_then(|path| path.rsplit('/').next()).unwrap_or_default().to_owned();
    if let Some(tool) = called.starts_with("kafka-").then(|| barnabas_tools::find(&called)).flatten() {
        return barnabas_tools::run(tool, &called, words.drain(1..));
    }
    if called.starts_with("kafka-storage") {
        words.insert(1, "storage".to_owned());
    }
    let word = |at: usize| words.get(at).map(String::as_str).unwrap_or_default();
    if let Some(tool) = barnabas_tools::find(word(1)) {
        return barnabas_tools::run(tool, &format!("barnabas {}", tool.name), words.drain(2..));
    }
    if let ("help", Some(tool)) = (word(1), barnabas_tools::find(word(2))) {
        return barnabas_tools::help(tool, &format!("barnabas {}", tool.name));
    }
    let matches = args::command().get_matches_from(words);
    let done = match matches.subcommand() {
        Some(("server", matches)) => server::run(matches),
        Some(("storage", matches)) => storage_tool::run(matches),
        Some(("config", matches)) => explain::run(matches),
        Some(("version", _)) => version::print(),
        _ => return ExitCode::FAILURE,
    };
    done.unwrap_or_else(|error| {
        // Where standard error takes nothing, the exit code is all that can be said.
        let _ = writeln!(std::io::stderr(), "barnabas: {error}");
        ExitCode::FAILURE
    })
}
