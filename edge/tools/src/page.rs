//! docs/TOOLS.md: every flag of Kafka's tools, and which of them are here. `UPDATE_PAGES=1` writes the page.
//!
//! The flags are those that Apache Kafka 4.3.1's tools list with `--help`.

mod access;
mod cluster;
mod console;
mod groups;
mod partitions;
mod perf;

use crate::TOOLS;
use std::collections::BTreeSet;
use std::path::Path;

/// What becomes of a flag of Kafka's.
enum Here {
    Yes,
    /// Taken, with this difference.
    But(&'static str),
    /// Not taken, for this reason.
    No(&'static str),
}

use Here::{But, No, Yes};

const HEAD: &str = "\
# Command-line tools

<!-- Written by edge/tools/src/page.rs, which also checks it against the tools' own tables of flags. -->

`barnabas TOOL` is Kafka's tool of that name: `barnabas topics` is `kafka-topics.sh`. A link named `kafka-topics` or `kafka-topics.sh` does the same. Apache Kafka's own tools work
unchanged with a Barnabas cluster, and these tools with an Apache Kafka cluster. The lists are those of Apache Kafka 4.3.1.

In all tools: `--help` and `--version`. A flag may be cut short while no other flag begins so. Errors go to standard error, in one line each, with exit code 1. Flags that Kafka's tool
refuses to take together are refused. `--command-config` takes `client.id`, `request.timeout.ms`, `default.api.timeout.ms` and `retry.backoff.ms` for tools that administer, and all of
a client's configs for those that read or write; an unknown key is reported with a warning. All take `security.protocol`, the `ssl.*` keys, `sasl.mechanism` (PLAIN,
SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI) and `sasl.jaas.config` (PlainLoginModule, ScramLoginModule, also with `tokenauth=true`, OAuthBearerLoginModule, Krb5LoginModule).

";

/// Kafka's tools that talk to a cluster or read its files.
const OF_APACHE: &[&str] = &[
    "acls",
    "broker-api-versions",
    "client-metrics",
    "cluster",
    "configs",
    "console-consumer",
    "console-producer",
    "console-share-consumer",
    "consumer-groups",
    "consumer-perf-test",
    "delegation-tokens",
    "delete-records",
    "dump-log",
    "e2e-latency",
    "features",
    "get-offsets",
    "groups",
    "jmx",
    "leader-election",
    "log-dirs",
    "metadata-quorum",
    "metadata-shell",
    "producer-perf-test",
    "reassign-partitions",
    "replica-verification",
    "share-consumer-perf-test",
    "share-groups",
    "streams-application-reset",
    "streams-groups",
    "topics",
    "transactions",
    "verifiable-consumer",
    "verifiable-producer",
    "verifiable-share-consumer",
];

const TAIL: &str = "\
## storage

`barnabas storage` is `kafka-storage`: `format` with all of its flags and `--add-scram-file`, `info` and `random-uuid`. Not here: `version-mapping` and
`feature-dependencies`.

## Tools that are not here

Apache Kafka's own serve: {missing}.
";

struct OfKafka {
    tool: &'static str,
    flags: &'static [(&'static str, Here)],
    /// What differs besides flags.
    notes: &'static str,
}

const STDERR: &str = "deprecated, with a warning on standard error";
const NO_TRANSACTIONS: &str = "refused by name: this producer has no transactions yet";

/// The tables of all tools.
fn of_kafka() -> impl Iterator<Item = &'static OfKafka> {
    [access::TABLES, cluster::TABLES, console::TABLES, groups::TABLES, partitions::TABLES, perf::TABLES]
        .into_iter()
        .flatten()
}

/// The flags that a tool takes, with their texts; those without a long name left out.
fn taken(tool: &str) -> Vec<(String, String)> {
    let tool = TOOLS.iter().find(|known| known.name == tool).expect("a tool");
    let flags = (tool.flags)().into_iter();
    let flag = |arg: clap::Arg| {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        arg.get_long().map(|long| (long.to_owned(), help))
    };
    flags.filter_map(flag).collect()
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for tool in TOOLS {
        let known = of_kafka().find(|known| known.tool == tool.name);
        page += &format!("## {}\n\n", tool.name);
        if let Some(known) = known {
            page += "| flag of Kafka's | here |\n|---|---|\n";
            for (flag, here) in known.flags {
                let words = match here {
                    Yes => "yes".to_owned(),
                    But(what) => format!("yes; {what}"),
                    No(why) => format!("**no**: {why}"),
                };
                page += &format!("| `--{flag}` | {words} |\n");
            }
            page += "\n";
        }
        let own = taken(tool.name);
        let own = own.iter().filter(|(flag, _)| {
            known.is_none_or(|known| known.flags.iter().all(|(theirs, _)| theirs != flag))
        });
        let own: Vec<String> = own.map(|(flag, _)| format!("`--{flag}`")).collect();
        match (known, own.is_empty()) {
            (None, _) => page += &format!("Ours. Flags: {}.\n\n", own.join(", ")),
            (Some(_), false) => page += &format!("Ours besides: {}.\n\n", own.join(", ")),
            _ => {}
        }
        if let Some(notes) = known.map(|known| known.notes).filter(|notes| !notes.is_empty()) {
            page += &format!("{notes}\n\n");
        }
    }
    let is_missing = |name: &&&str| TOOLS.iter().all(|tool| tool.name != **name);
    let missing = OF_APACHE.iter().filter(is_missing).map(|name| format!("`kafka-{name}`"));
    page + &TAIL.replace("{missing}", &missing.collect::<Vec<_>>().join(", "))
}

#[test]
fn page_is_as_the_tables_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/TOOLS.md");
    let page = page();
    if std::env::var_os("UPDATE_PAGES").is_some() {
        std::fs::write(&path, &page).expect("docs/TOOLS.md can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/TOOLS.md differs from the tables: UPDATE_PAGES=1 cargo test -p barnabas-tools page_is_as_the_tables_say"
    );
}

#[test]
fn tables_say_what_the_tools_take() {
    for known in of_kafka() {
        let taken: BTreeSet<String> = taken(known.tool).into_iter().map(|(flag, _)| flag).collect();
        let mut seen = BTreeSet::new();
        for (flag, here) in known.flags {
            assert!(seen.insert(flag), "{}: --{flag} stands twice", known.tool);
            let is_said_to_be_taken = !matches!(here, No(_));
            assert_eq!(taken.contains(*flag), is_said_to_be_taken, "{} --{flag}", known.tool);
        }
    }
}
