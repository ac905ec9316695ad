//! The binary: says which command runs, and nothing about how.

mod config;
mod controller;
mod coordinators;
mod log_dirs;
mod mailbox;
mod node;
mod requests;
mod routing;
mod server;
mod upkeep;
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
    let matches = match config::args::command().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) => {
            // Wrong flags are 1, as of Kafka's tools. Where standard error is closed, the code is all that can be said.
            let is_help = !error.use_stderr();
            drop(error.print());
            return if is_help { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
    };
    let done = match matches.subcommand() {
        Some(("server", matches)) => server::run(matches),
        Some(("storage", matches)) => controller::storage_tool::run(matches),
        Some(("security", matches)) => config::security_init::run(matches),
        Some(("config", matches)) => config::explain::run(matches),
        Some(("console", matches)) => barnabas_console::run(matches),
        Some(("bridge", matches)) => {
            barnabas_bridge::run(matches).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
        Some(("version", _)) => config::version::print(),
        Some(("completions", matches)) => {
            return barnabas_tools::completions(config::args::command(), matches);
        }
        Some(("man-pages", matches)) => return barnabas_tools::man_pages(config::args::command(), matches),
        _ => return ExitCode::FAILURE,
    };
    done.unwrap_or_else(|error| {
        // Where standard error takes nothing, the exit code is all that can be said.
        let _ = writeln!(std::io::stderr(), "barnabas: {error}");
        ExitCode::FAILURE
    })
}
