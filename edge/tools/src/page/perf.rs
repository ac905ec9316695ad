//! Kafka's flags of the tools of `src/perf`.

use super::Here::{But, Yes};
use super::{NO_TRANSACTIONS, OfKafka};

pub(super) const TABLES: &[OfKafka] = &[
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
        notes: "Kafka's older command line, without flags, works too.",
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
        tool: "share-consumer-perf-test",
        flags: &[
            ("bootstrap-server", Yes),
            ("topic", Yes),
            ("group", Yes),
            ("fetch-size", Yes),
            ("command-property", Yes),
            ("socket-buffer-size", But("without effect: the system sizes the buffer")),
            ("consumer.config", Yes),
            ("command-config", Yes),
            ("print-metrics", But("this client's own counters, under Kafka's names")),
            ("show-detailed-stats", Yes),
            ("timeout", Yes),
            ("messages", Yes),
            ("num-records", Yes),
            ("reporting-interval", Yes),
            ("date-format", But("the commonest letters of Java's patterns; times are UTC")),
            ("hide-header", Yes),
            ("threads", But("members with connections of their own, on one thread")),
            ("show-consumer-stats", Yes),
        ],
        notes: "A member asks the leaders of its partitions one after the other.",
    },
];
