//! Kafka's flags of the tools of `src/partitions`.

use super::Here::{But, No, Yes};
use super::OfKafka;

pub(super) const TABLES: &[OfKafka] = &[
    OfKafka {
        tool: "delete-records",
        flags: &[("bootstrap-server", Yes), ("command-config", Yes), ("offset-json-file", Yes)],
        notes: "Requests go out one partition at a time, in the order of the file. A partition that does not exist is looked up until `default.api.timeout.ms`, as in Kafka, and reported on standard error meanwhile.",
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
            ("max-message-size", But("without effect: batches of any size are read")),
            ("index-sanity-check", Yes),
            ("verify-index-only", Yes),
            ("key-decoder-class", No("no class of Java is run")),
            ("value-decoder-class", No("no class of Java is run")),
        ],
        notes: "Batches of message formats 0 and 1 are refused by name. A batch may inflate to 1 GiB. Ours: `barnabas-journal-NN`, a file of the journal, is shown by rounds and entries, with \
                `--deep-iteration` and the decoders by batches and records.",
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
        notes: "As with Kafka's tool, `--cancel` passes over reassignments that only add replicas; it names them on standard error. The current log directories of replicas are printed as `any`; Kafka's tool prints their paths. \
                A broker that is offline keeps its throttles, with a warning; Kafka's tool times out.",
    },
    OfKafka {
        tool: "replica-verification",
        flags: &[
            ("broker-list", Yes),
            ("fetch-size", Yes),
            ("max-wait-ms", Yes),
            ("topics-include", Yes),
            ("time", Yes),
            ("report-interval-ms", Yes),
        ],
        notes: "Brokers are asked one after the other. A replica that does not answer, or answers with an error, is reported on standard error once for each reason. Times are UTC.",
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
        notes: "Actions: `list`, `describe`, `describe-producers`, `abort`, `find-hanging`, `forceTerminateTransaction`. A partition that does not exist is looked up until `default.api.timeout.ms`, as in Kafka, and \
                reported on standard error meanwhile.",
    },
];
