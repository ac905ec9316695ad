//! Kafka's command-line tools by their names, without `.sh`. docs/TOOLS.md lists Kafka's flags and the
//! differences.
//!
//! One table names them. The binary finds a tool by the first word of its command line, or by the name of the link that
//! called it, and runs it by [`run`]. Each tool reaches the cluster through barnabas-client alone.

mod access;
mod asking;
mod cluster;
mod command_line;
mod console;
mod consuming;
mod error;
#[cfg(test)]
#[path = "../../client/src/fake_broker.rs"]
mod fake_broker;
mod groups;
mod output;
#[cfg(test)]
mod page;
mod partitions;
mod perf;

pub use command_line::completions::{completions_command, man_pages_command};
pub use error::ToolError;

use access::{acls, delegation_tokens};
use asking::{topic_lookup, waiting};
use barnabas_client::{ClientError, Trouble};
use clap::{Arg, ArgMatches, Command};
use cluster::{
    broker_api_versions, client_metrics, cluster_tool, configs, features, jmx, leader_election, log_dirs,
    metadata_quorum, topics,
};
use command_line::install_links;
use console::verifiable;
use groups::{application_reset, consumer_groups, groups_tool, share_groups, streams_groups};
use partitions::{
    delete_records, dump_log, get_offsets, reassign_partitions, replica_verification, transactions,
};
use perf::{doctor, hotspots, top};
use std::io::Write;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// One tool: its name, its flags, its work.
pub struct Tool {
    pub name: &'static str,
    pub about: &'static str,
    flags: fn() -> Vec<Arg>,
    run: fn(&ArgMatches) -> Result<(), ToolError>,
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All tools, in the order of their names.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "acls",
        about: "List, add and remove ACLs; say why an operation is allowed or denied",
        flags: acls::flags,
        run: acls::run,
    },
    Tool {
        name: "broker-api-versions",
        about: "Show which requests each node answers, in which versions",
        flags: broker_api_versions::flags,
        run: broker_api_versions::run,
    },
    Tool {
        name: "client-metrics",
        about: "Show and change which metrics clients push",
        flags: client_metrics::flags,
        run: client_metrics::run,
    },
    Tool {
        name: "cluster",
        about: "Show the cluster's id and nodes, and remove nodes from its registrations",
        flags: cluster_tool::flags,
        run: cluster_tool::run,
    },
    Tool {
        name: "configs",
        about: "Show and change configurations of topics, brokers, loggers, groups and client metrics",
        flags: configs::flags,
        run: configs::run,
    },
    Tool {
        name: "console-consumer",
        about: "Read a topic and write its records to standard output",
        flags: console::consumer::flags,
        run: console::consumer::run,
    },
    Tool {
        name: "console-producer",
        about: "Read lines from standard input and send them to a topic",
        flags: console::producer::flags,
        run: console::producer::run,
    },
    Tool {
        name: "console-share-consumer",
        about: "Read a topic as a member of a share group and write its records to standard output",
        flags: console::share_consumer::flags,
        run: console::share_consumer::run,
    },
    Tool {
        name: "consumer-groups",
        about: "List and describe consumer groups, reset and delete their offsets",
        flags: consumer_groups::flags,
        run: consumer_groups::run,
    },
    Tool {
        name: "consumer-perf-test",
        about: "Measure the throughput of a consumer",
        flags: perf::consumer::flags,
        run: perf::consumer::run,
    },
    Tool {
        name: "delegation-tokens",
        about: "Create, renew, expire and describe delegation tokens",
        flags: delegation_tokens::flags,
        run: delegation_tokens::run,
    },
    Tool {
        name: "delete-records",
        about: "Delete the records of partitions below offsets",
        flags: delete_records::flags,
        run: delete_records::run,
    },
    Tool {
        name: "doctor",
        about: "Find what is wrong with a cluster, with figures, and the command that mends it",
        flags: doctor::flags,
        run: doctor::run,
    },
    Tool {
        name: "dump-log",
        about: "Show the contents of segments, snapshots, indexes and the metadata log",
        flags: dump_log::flags,
        run: dump_log::run,
    },
    Tool {
        name: "e2e-latency",
        about: "Measure the latency of records, one at a time, from producer to consumer",
        flags: perf::e2e::flags,
        run: perf::e2e::run,
    },
    Tool {
        name: "features",
        about: "Show and change the cluster's feature levels",
        flags: features::flags,
        run: features::run,
    },
    Tool {
        name: "get-offsets",
        about: "Show offsets of partitions, the first, the last or by time",
        flags: get_offsets::flags,
        run: get_offsets::run,
    },
    Tool {
        name: "groups",
        about: "List groups of every kind",
        flags: groups_tool::flags,
        run: groups_tool::run,
    },
    Tool {
        name: "hotspots",
        about: "Show where a node's time goes, and what its bottleneck is",
        flags: hotspots::flags,
        run: hotspots::run,
    },
    Tool {
        name: "install-links",
        about: "Make links by the names of Kafka's tools: kafka-topics.sh and the others",
        flags: install_links::flags,
        run: install_links::run,
    },
    Tool {
        name: "jmx",
        about: "Say where the figures are that Kafka's nodes have in JMX",
        flags: jmx::flags,
        run: jmx::run,
    },
    Tool {
        name: "leader-election",
        about: "Elect preferred leaders, or leaders that are not in sync, which can lose records",
        flags: leader_election::flags,
        run: leader_election::run,
    },
    Tool {
        name: "log-dirs",
        about: "Show the replicas in each log directory",
        flags: log_dirs::flags,
        run: log_dirs::run,
    },
    Tool {
        name: "metadata-quorum",
        about: "Show the metadata quorum, add and remove its voters",
        flags: metadata_quorum::flags,
        run: metadata_quorum::run,
    },
    Tool {
        name: "producer-perf-test",
        about: "Measure the throughput and latency of a producer",
        flags: perf::producer::flags,
        run: perf::producer::run,
    },
    Tool {
        name: "reassign-partitions",
        about: "Move replicas between brokers and log directories",
        flags: reassign_partitions::flags,
        run: reassign_partitions::run,
    },
    Tool {
        name: "replica-verification",
        about: "Compare the replicas of topics, batch by batch",
        flags: replica_verification::flags,
        run: replica_verification::run,
    },
    Tool {
        name: "share-consumer-perf-test",
        about: "Measure the throughput of a share group's members",
        flags: perf::share_consumer::flags,
        run: perf::share_consumer::run,
    },
    Tool {
        name: "share-groups",
        about: "List and describe share groups, reset and delete their offsets",
        flags: share_groups::flags,
        run: share_groups::run,
    },
    Tool {
        name: "streams-application-reset",
        about: "Reset the offsets of a Streams application's input topics, and delete its internal topics",
        flags: application_reset::flags,
        run: application_reset::run,
    },
    Tool {
        name: "streams-groups",
        about: "List and describe the groups of Kafka Streams, reset and delete their offsets",
        flags: streams_groups::flags,
        run: streams_groups::run,
    },
    Tool {
        name: "top",
        about: "Show nodes, topics, groups, clients and hotspots of a cluster on one screen",
        flags: top::flags,
        run: top::run,
    },
    Tool {
        name: "topics",
        about: "Create, list, describe, enlarge and delete topics",
        flags: topics::flags,
        run: topics::run,
    },
    Tool {
        name: "transactions",
        about: "Show transactions and their producers, find hanging ones and abort them",
        flags: transactions::flags,
        run: transactions::run,
    },
    Tool {
        name: "verifiable-consumer",
        about: "Read a topic as a member of a group, and print what happens as JSON",
        flags: verifiable::consumer::flags,
        run: verifiable::consumer::run,
    },
    Tool {
        name: "verifiable-producer",
        about: "Send numbers to a topic, and print what became of each as JSON",
        flags: verifiable::producer::flags,
        run: verifiable::producer::run,
    },
];

/// The tool of this name, also with Kafka's `kafka-` in front or `.sh` behind.
pub fn find(name: &str) -> Option<&'static Tool> {
    let name = name.strip_prefix("kafka-").unwrap_or(name);
    let name = name.strip_suffix(".sh").unwrap_or(name);
    TOOLS.iter().find(|tool| tool.name == name)
}

impl Tool {
    /// The tool's flags as a subcommand. `called` stands in its usage line: `barnabas topics`, `kafka-topics`.
    fn command(&self, called: &str) -> Command {
        Command::new(self.name)
            .bin_name(called.to_owned())
            .about(self.about)
            .version(env!("CARGO_PKG_VERSION"))
            .display_name("barnabas")
            .args((self.flags)())
            // As with Kafka's tools, a flag may be cut short while one flag alone begins so.
            .infer_long_args(true)
            .arg_required_else_help(true)
    }
}

/// Runs `tool`, typed as `called`, with the words behind its name. Errors go to standard error; the exit code is
/// Kafka's (0 or 1).
pub fn run(tool: &Tool, called: &str, words: impl IntoIterator<Item = String>) -> ExitCode {
    let command = tool.command(called);
    let words = std::iter::once(tool.name.to_owned()).chain(words);
    let matches = match command.try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) => {
            // Help is no error. If standard error is closed, there is no way to report anything.
            let is_help = !error.use_stderr();
            drop(error.print());
            return if is_help { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
    };
    exit_code(tool.name, (tool.run)(&matches))
}

/// Runs `barnabas completions`; `program` is the binary's own command line.
pub fn completions(program: Command, matches: &ArgMatches) -> ExitCode {
    exit_code("completions", command_line::completions::completions(program, matches))
}

/// Runs `barnabas man-pages`; `program` is the binary's own command line.
pub fn man_pages(program: Command, matches: &ArgMatches) -> ExitCode {
    exit_code("man-pages", command_line::completions::man_pages(program, matches))
}

fn exit_code(name: &str, done: Result<(), ToolError>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of our output has closed the pipe (`| head`): that is an end, not a failure.
        Err(ToolError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        // As a shell shows what a signal ended.
        Err(ToolError::Stopped(signal)) => ExitCode::from(128 + signal),
        Err(ToolError::Code(code)) => ExitCode::from(code),
        Err(ToolError::Reported) => ExitCode::FAILURE,
        Err(ToolError::Plain(words)) => {
            tell(&words);
            ExitCode::FAILURE
        }
        Err(error) => {
            tell(&format!("{name}: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints the help of `tool`, typed as `called`.
pub fn help(tool: &Tool, called: &str) -> ExitCode {
    // Where standard output is closed, the help has no reader.
    drop(tool.command(called).print_long_help());
    ExitCode::SUCCESS
}

/// Milliseconds since 1970.
fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// A line on standard output.
fn say(line: &str) -> Result<(), ToolError> {
    writeln!(std::io::stdout(), "{line}").map_err(ToolError::Output)
}

/// Writes a line to standard error. If that fails, only the exit code reports the error.
fn tell(line: &str) {
    #[cfg(test)]
    TOLD.with_borrow_mut(|lines| lines.push(line.to_owned()));
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Says what keeps partitions of `topic` from being read or written (`done`), while the tool tries again.
///
/// # Errors
/// A broker refuses the login or the certificate: the tool ends, as Kafka's do.
fn say_trouble(tool: &str, trouble: &Trouble, topic: &str, done: &str) -> Result<(), ClientError> {
    match &trouble.why {
        Some(why) if trouble.is_refusal => Err(ClientError::Invalid(why.clone())),
        _ => {
            tell(&format!("{tool}: {}", trouble.words(topic, done)));
            Ok(())
        }
    }
}

#[cfg(test)]
thread_local! {
    /// The lines that the test on this thread wrote to standard error.
    static TOLD: std::cell::RefCell<Vec<String>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Runs a tool's work on a runtime of its own.
fn block_on<T>(work: impl Future<Output = Result<T, ToolError>>) -> Result<T, ToolError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ToolError::Runtime)?;
    runtime.block_on(work)
}
