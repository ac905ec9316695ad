//! docs/TOOLS.md: every flag of Kafka's tools, and which of them are here. `UPDATE_PAGES=1` writes the page.
//!
//! The flags are those that Apache Kafka 4.3.1's tools list with `--help`.

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
a client's configs for those that read or write; a key that no client knows is warned of. All take `security.protocol`, the `ssl.*` keys, `sasl.mechanism` (PLAIN,
SCRAM-SHA-256, SCRAM-SHA-512) and `sasl.jaas.config` (PlainLoginModule, ScramLoginModule, also with `tokenauth=true`).

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
];

const TAIL: &str = "\
## storage

`barnabas storage` is `kafka-storage`: `format` with all of its flags, `info` and `random-uuid`. Not here: `version-mapping` and
`feature-dependencies`.

## Tools that are not here

Apache Kafka's own serve: {missing}. `kafka-jmx` has nothing to ask: there is no JMX.
";

struct OfKafka {
    tool: &'static str,
    flags: &'static [(&'static str, Here)],
    /// What differs besides flags.
    notes: &'static str,
}

const STDERR: &str = "its deprecation is said on standard error";
const NO_TRANSACTIONS: &str = "refused with a sentence: this producer has no transactions yet";

const OF_KAFKA: &[OfKafka] = &[
    OfKafka {
        tool: "acls",
        flags: &[
            ("bootstrap-server", Yes),
            ("bootstrap-controller", Yes),
            ("command-config", Yes),
            ("add", Yes),
            (
                "remove",
                But(
                    "the answer is read from standard input, also where that is no terminal; Kafka's tool fails there",
                ),
            ),
            ("list", Yes),
            ("topic", Yes),
            ("group", Yes),
            ("cluster", Yes),
            ("transactional-id", Yes),
            ("delegation-token", Yes),
            ("user-principal", Yes),
            ("resource-pattern-type", Yes),
            ("operation", But("in any case, with or without underscores")),
            ("allow-principal", Yes),
            ("deny-principal", Yes),
            ("allow-host", Yes),
            ("deny-host", Yes),
            ("principal", Yes),
            ("producer", Yes),
            ("consumer", Yes),
            ("idempotent", Yes),
            ("force", Yes),
        ],
        notes: "Resources and ACLs are listed in order; Kafka's tool lists them in the order of a hash map. `--explain User:alice Read topic:orders 10.0.0.1` says which ACL allows or denies it, or \
                which one is missing; `--who-can Write topic:orders` lists principals; `--shadowed` lists ACLs that another one makes useless; `--without-resource` lists those of topics and groups \
                that do not exist. They judge what DescribeAcls answers, so they work with Apache Kafka's brokers too. RESOURCE is topic:NAME, group:NAME, cluster, transactional-id:ID, \
                delegation-token:ID or user:PRINCIPAL.",
    },
    OfKafka {
        tool: "broker-api-versions",
        flags: &[("bootstrap-server", Yes), ("command-config", Yes)],
        notes: "",
    },
    OfKafka {
        tool: "client-metrics",
        flags: &[
            ("bootstrap-server", Yes),
            ("command-config", Yes),
            ("list", Yes),
            ("describe", Yes),
            ("alter", Yes),
            ("delete", Yes),
            ("name", Yes),
            ("generate-name", Yes),
            ("metrics", Yes),
            ("interval", Yes),
            ("match", Yes),
        ],
        notes: "",
    },
    OfKafka {
        tool: "cluster",
        flags: &[
            ("bootstrap-server", Yes),
            ("bootstrap-controller", Yes),
            ("command-config", Yes),
            ("config", But(STDERR)),
            ("id", Yes),
            ("include-fenced-brokers", Yes),
        ],
        notes: "Actions: `cluster-id`, `list-endpoints`, `api-versions`, `unregister`, `unregister-controller`.",
    },
    OfKafka {
        tool: "configs",
        flags: &[
            ("bootstrap-server", Yes),
            ("bootstrap-controller", Yes),
            ("command-config", Yes),
            ("describe", Yes),
            ("alter", Yes),
            ("all", But("refused together with `--alter`, where Kafka's tool ignores it")),
            ("entity-type", Yes),
            ("entity-name", Yes),
            ("entity-default", Yes),
            ("add-config", But("keys may have colons, as our loggers' names have")),
            ("add-config-file", But("refused together with `--describe`, where Kafka's tool ignores it")),
            ("delete-config", Yes),
            ("topic", Yes),
            ("client", Yes),
            ("client-defaults", Yes),
            ("user", Yes),
            ("user-defaults", Yes),
            ("broker", Yes),
            ("broker-defaults", Yes),
            ("broker-logger", Yes),
            ("ip", Yes),
            ("ip-defaults", Yes),
            ("client-metrics", Yes),
            ("group", Yes),
        ],
        notes: "Two mechanisms of one user are altered by two commands: Kafka's brokers and ours refuse a user that stands twice in a request.",
    },
    OfKafka {
        tool: "console-consumer",
        flags: &[
            ("bootstrap-server", Yes),
            ("topic", Yes),
            ("include", But("the topics that match when it begins; with `--group`, one topic")),
            ("partition", But("a partition that the topic does not have is an error; Kafka's tool waits")),
            ("offset", Yes),
            ("from-beginning", Yes),
            ("group", But("as a classic member with the range assignor, whatever `group.protocol` says")),
            ("max-messages", Yes),
            ("timeout-ms", Yes),
            ("isolation-level", Yes),
            ("formatter", But("DefaultMessageFormatter and NoOpMessageFormatter; no class of Java is run")),
            ("formatter-property", But("`\\t` and `\\n` in separators are read as tab and newline")),
            ("formatter-config", Yes),
            ("property", But(STDERR)),
            ("key-deserializer", But("Kafka's for strings, bytes, shorts, integers, longs and UUIDs")),
            ("value-deserializer", But("the same")),
            ("skip-message-on-error", Yes),
            ("command-property", But("`auto.offset.reset=by_duration` is refused")),
            ("command-config", Yes),
            ("consumer-property", But(STDERR)),
            ("consumer.config", But(STDERR)),
            ("enable-systest-events", No("it is for Kafka's own system tests")),
        ],
        notes: "A partition that cannot be read is tried again as in Kafka's client, and reported on standard error once for each reason; the others go on. So it is with \
                CORRUPT_MESSAGE and with records that cannot be read, at which Kafka's tool ends. A missing topic is named, and whether the cluster created it. Exit code: 0 after \
                `--max-messages` and, with an error on standard error, after `--timeout-ms`, as in Kafka; 1 after an error that no later try can cure, where Kafka's tool ends with 0; \
                130 and 143 after SIGINT and SIGTERM.",
    },
    OfKafka {
        tool: "console-producer",
        flags: &[
            ("bootstrap-server", Yes),
            ("topic", Yes),
            ("sync", Yes),
            ("request-required-acks", Yes),
            (
                "compression-codec",
                But("left out, `compression.type` of the configs holds; Kafka's tool sets it to none"),
            ),
            ("batch-size", Yes),
            ("max-partition-memory-bytes", But(STDERR)),
            (
                "message-send-max-retries",
                But("default: until `delivery.timeout.ms`; Kafka's tool retries three times"),
            ),
            ("retry-backoff-ms", Yes),
            ("request-timeout-ms", But("default 30000, Kafka's 1500")),
            (
                "max-block-ms",
                But(
                    "for the topic as a whole, before the first line is sent; Kafka's tool waits so long for each line",
                ),
            ),
            ("max-memory-bytes", Yes),
            ("metadata-expiry-ms", Yes),
            ("socket-buffer-size", But("default: the system's, Kafka's 102400")),
            ("timeout", But("default 5, Kafka's 1000; lines go out at once where no further one is there")),
            ("line-reader", But("LineMessageReader; no class of Java is run")),
            ("reader-property", But("`\\t` and `\\n` in separators are read as tab and newline")),
            ("reader-config", Yes),
            ("property", But(STDERR)),
            ("command-property", Yes),
            ("command-config", Yes),
            ("producer-property", But(STDERR)),
            ("producer.config", But(STDERR)),
        ],
        notes: "A line that is given up is named on standard error, with the error; the others go on. Exit code, as in Kafka: 0 then, but 1 with `--sync`, after a line that cannot be \
                read, and where no broker is found. A topic that is not found in `max.block.ms` is exit code 1 too, where Kafka's tool ends with 0.",
    },
    OfKafka {
        tool: "consumer-groups",
        flags: &[
            ("bootstrap-server", Yes),
            ("command-config", Yes),
            ("list", Yes),
            ("describe", Yes),
            ("delete", Yes),
            ("reset-offsets", Yes),
            ("delete-offsets", Yes),
            ("validate-regex", But("the words behind `is invalid:` are ours")),
            ("group", Yes),
            ("all-groups", Yes),
            ("topic", Yes),
            ("all-topics", Yes),
            ("offsets", Yes),
            ("members", Yes),
            ("state", Yes),
            ("type", Yes),
            ("verbose", Yes),
            ("dry-run", Yes),
            ("execute", Yes),
            ("export", Yes),
            ("to-offset", Yes),
            ("to-datetime", Yes),
            ("by-duration", Yes),
            ("to-earliest", Yes),
            ("to-latest", Yes),
            ("to-current", Yes),
            ("shift-by", Yes),
            ("from-file", Yes),
            ("timeout", Yes),
        ],
        notes: "Rows are in the order of names and numbers. What the cluster refuses stands behind `Error:` in the output and the exit code is 0, as in Kafka; without Java's stack trace. Exit \
                code 1 where no broker answers: Kafka's tool ends with 0 there too.",
    },
    OfKafka {
        tool: "consumer-perf-test",
        flags: &[
            ("bootstrap-server", Yes),
            ("topic", Yes),
            ("include", But("the topics that match when it begins; not with `--group`")),
            ("num-records", Yes),
            ("messages", Yes),
            (
                "group",
                But(
                    "left out, it reads without a group, and `rebalance.time.ms` is the time to find the topic",
                ),
            ),
            ("fetch-size", Yes),
            ("from-latest", Yes),
            ("socket-buffer-size", Yes),
            ("command-property", Yes),
            ("command-config", Yes),
            ("consumer.config", Yes),
            ("print-metrics", But("this client's own counters, under Kafka's names")),
            ("show-detailed-stats", Yes),
            ("timeout", Yes),
            ("reporting-interval", Yes),
            ("date-format", But("the commonest letters of Java's patterns; times are UTC")),
            ("hide-header", Yes),
        ],
        notes: "A partition that cannot be read is tried again, and reported on standard error once for each reason; the others go on. With fewer records than asked for after \
                `--timeout`, a warning stands in the output and the exit code is 0, as in Kafka.",
    },
    OfKafka {
        tool: "delegation-tokens",
        flags: &[
            ("bootstrap-server", Yes),
            ("command-config", Yes),
            ("create", Yes),
            ("renew", Yes),
            ("expire", Yes),
            (
                "describe",
                But(
                    "without `--owner-principal`: the tokens of the user who logs in; Kafka's tool shows none",
                ),
            ),
            ("owner-principal", Yes),
            ("renewer-principal", Yes),
            ("max-life-time-period", Yes),
            ("renew-time-period", Yes),
            ("expiry-time-period", Yes),
            ("hmac", Yes),
        ],
        notes: "Times are UTC. A token logs in by SCRAM: `ScramLoginModule required username=TOKENID password=HMAC tokenauth=true`.",
    },
    OfKafka {
        tool: "delete-records",
        flags: &[("bootstrap-server", Yes), ("command-config", Yes), ("offset-json-file", Yes)],
        notes: "Partitions are asked one after the other, in the order of the file.",
    },
    OfKafka {
        tool: "dump-log",
        flags: &[
            ("files", Yes),
            ("print-data-log", Yes),
            ("deep-iteration", Yes),
            ("skip-record-metadata", Yes),
            ("offsets-decoder", Yes),
            ("transaction-log-decoder", Yes),
            ("cluster-metadata-decoder", Yes),
            ("share-group-state-decoder", Yes),
            ("remote-log-metadata-decoder", No("there is no tiered storage yet")),
            ("max-bytes", Yes),
            ("max-message-size", But("and not needed")),
            ("index-sanity-check", Yes),
            ("verify-index-only", Yes),
            ("key-decoder-class", No("no class of Java is run")),
            ("value-decoder-class", No("no class of Java is run")),
        ],
        notes: "Batches of message formats 0 and 1 are refused by name. The journal is not shown yet.",
    },
    OfKafka {
        tool: "e2e-latency",
        flags: &[
            ("bootstrap-server", Yes),
            ("topic", Yes),
            ("num-records", Yes),
            ("producer-acks", Yes),
            ("record-size", Yes),
            ("command-config", Yes),
            ("record-key-size", Yes),
            ("record-header-key-size", Yes),
            ("record-header-size", Yes),
            ("num-headers", Yes),
        ],
        notes: "Kafka's old way, without flags, is taken too.",
    },
    OfKafka {
        tool: "features",
        flags: &[
            ("bootstrap-server", Yes),
            ("bootstrap-controller", Yes),
            ("command-config", Yes),
            ("node-id", Yes),
            ("metadata", But("its deprecation is said in the output, as in Kafka")),
            ("release-version", Yes),
            ("feature", Yes),
            ("unsafe", Yes),
            ("dry-run", Yes),
        ],
        notes: "Actions: `describe`, `upgrade`, `downgrade`, `disable`, `version-mapping`, `feature-dependencies`.",
    },
    OfKafka {
        tool: "get-offsets",
        flags: &[
            ("bootstrap-server", Yes),
            ("command-config", Yes),
            ("topic-partitions", Yes),
            ("topic", Yes),
            ("partitions", Yes),
            ("time", Yes),
            ("exclude-internal-topics", Yes),
        ],
        notes: "",
    },
    OfKafka {
        tool: "groups",
        flags: &[
            ("bootstrap-server", Yes),
            ("command-config", Yes),
            ("list", Yes),
            ("group-type", Yes),
            ("protocol", Yes),
            ("consumer", Yes),
            ("share", Yes),
            ("streams", Yes),
        ],
        notes: "",
    },
    OfKafka {
        tool: "leader-election",
        flags: &[
            ("bootstrap-server", Yes),
            ("command-config", Yes),
            ("admin.config", But(STDERR)),
            ("election-type", Yes),
            ("topic", Yes),
            ("partition", Yes),
            ("all-topic-partitions", Yes),
            ("path-to-json-file", Yes),
        ],
        notes: "",
    },
    OfKafka {
        tool: "log-dirs",
        flags: &[
            ("bootstrap-server", Yes),
            ("command-config", Yes),
            ("describe", Yes),
            ("topic-list", Yes),
            ("broker-list", Yes),
        ],
        notes: "",
    },
    OfKafka {
        tool: "metadata-quorum",
        flags: &[
            ("bootstrap-server", Yes),
            ("bootstrap-controller", Yes),
            ("command-config", But("with `add-controller` it is the controller's own file alone")),
            ("status", Yes),
            ("replication", Yes),
            ("human-readable", Yes),
            ("controller-id", Yes),
            ("controller-directory-id", Yes),
            ("dry-run", Yes),
        ],
        notes: "Actions: `describe`, `add-controller`, `remove-controller`.",
    },
    OfKafka {
        tool: "producer-perf-test",
        flags: &[
            ("bootstrap-server", Yes),
            ("topic", Yes),
            ("num-records", Yes),
            ("record-size", Yes),
            ("payload-file", Yes),
            ("payload-delimiter", Yes),
            ("payload-monotonic", Yes),
            (
                "throughput",
                But("latency counts from when a record was due; `--closed-loop` counts as Kafka's tool does"),
            ),
            ("command-property", Yes),
            ("command-config", Yes),
            ("producer-props", Yes),
            ("producer.config", Yes),
            ("print-metrics", But("this client's own counters, under Kafka's names")),
            ("transactional-id", But(NO_TRANSACTIONS)),
            ("transaction-duration-ms", But(NO_TRANSACTIONS)),
            ("warmup-records", Yes),
            ("reporting-interval", Yes),
        ],
        notes: "What keeps a partition from being written is reported on standard error. Records that were given up are counted, and the exit code is then 1; Kafka's tool prints each \
                error and ends with 0.",
    },
    OfKafka {
        tool: "reassign-partitions",
        flags: &[
            ("bootstrap-server", Yes),
            ("bootstrap-controller", Yes),
            ("command-config", Yes),
            ("generate", Yes),
            ("execute", Yes),
            ("verify", Yes),
            ("cancel", Yes),
            ("list", Yes),
            ("reassignment-json-file", Yes),
            ("topics-to-move-json-file", Yes),
            ("broker-list", Yes),
            ("disable-rack-aware", Yes),
            ("throttle", Yes),
            ("replica-alter-log-dirs-throttle", Yes),
            ("timeout", Yes),
            ("preserve-throttles", Yes),
            ("additional", Yes),
            ("disallow-replication-factor-change", Yes),
        ],
        notes: "`--cancel` cancels reassignments too that only add replicas; Kafka's tool passes them over. The current directories of replicas are written as `any`. A broker that is not there keeps its throttles, with a warning; Kafka's tool waits for it.",
    },
    OfKafka {
        tool: "share-groups",
        flags: &[
            ("bootstrap-server", Yes),
            ("command-config", Yes),
            ("list", Yes),
            ("describe", Yes),
            ("delete", Yes),
            ("reset-offsets", Yes),
            ("delete-offsets", Yes),
            ("group", Yes),
            ("all-groups", Yes),
            ("topic", Yes),
            ("all-topics", Yes),
            ("offsets", Yes),
            ("members", Yes),
            ("state", Yes),
            ("verbose", Yes),
            ("dry-run", Yes),
            ("execute", Yes),
            ("export", Yes),
            ("to-offset", Yes),
            ("to-datetime", Yes),
            ("to-earliest", Yes),
            ("to-latest", Yes),
            ("to-current", Yes),
            ("from-file", Yes),
            ("timeout", Yes),
        ],
        notes: "Exit codes as with `consumer-groups`.",
    },
    OfKafka {
        tool: "topics",
        flags: &[
            ("bootstrap-server", Yes),
            ("command-config", Yes),
            ("list", Yes),
            ("create", Yes),
            ("delete", Yes),
            ("alter", Yes),
            ("describe", Yes),
            ("topic", But("a name that a topic has means that topic alone: `a.b` does not mean `a-b` too")),
            ("topic-id", Yes),
            ("config", Yes),
            ("delete-config", But("warned of, and without effect, as in Kafka")),
            ("partitions", Yes),
            ("replication-factor", Yes),
            ("replica-assignment", Yes),
            ("under-replicated-partitions", Yes),
            ("unavailable-partitions", Yes),
            ("under-min-isr-partitions", Yes),
            ("at-min-isr-partitions", Yes),
            ("topics-with-overrides", Yes),
            ("if-exists", Yes),
            ("if-not-exists", Yes),
            ("exclude-internal", Yes),
            ("partition-size-limit-per-response", Yes),
        ],
        notes: "Topics are described in the order of their names. Kafka's warning of names with periods and underscores is not printed: no metric here confuses them.",
    },
    OfKafka {
        tool: "transactions",
        flags: &[
            ("bootstrap-server", Yes),
            ("command-config", Yes),
            ("duration-filter", Yes),
            ("transactional-id-pattern", Yes),
            ("transactional-id", Yes),
            ("transactionalId", Yes),
            ("topic", Yes),
            ("partition", Yes),
            ("broker-id", Yes),
            ("start-offset", Yes),
            ("producer-id", Yes),
            ("producer-epoch", Yes),
            ("coordinator-epoch", Yes),
            ("max-transaction-timeout", Yes),
        ],
        notes: "Actions: `list`, `describe`, `describe-producers`, `abort`, `find-hanging`, `forceTerminateTransaction`.",
    },
];

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
        let known = OF_KAFKA.iter().find(|known| known.tool == tool.name);
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
    for known in OF_KAFKA {
        let taken: BTreeSet<String> = taken(known.tool).into_iter().map(|(flag, _)| flag).collect();
        let mut seen = BTreeSet::new();
        for (flag, here) in known.flags {
            assert!(seen.insert(flag), "{}: --{flag} stands twice", known.tool);
            let is_said_to_be_taken = !matches!(here, No(_));
            assert_eq!(taken.contains(*flag), is_said_to_be_taken, "{} --{flag}", known.tool);
        }
    }
}
