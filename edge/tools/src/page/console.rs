//! Kafka's flags of the tools of `src/console`.

use super::Here::{But, No, Yes};
use super::{OfKafka, STDERR};

pub(super) const TABLES: &[OfKafka] = &[
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
];
