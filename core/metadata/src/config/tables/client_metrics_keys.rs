//! The table of a client-metrics subscription's keys (KIP-714).
//!
//! Sorted by name (a test holds that). What the node does with each key: [`crate::config::status`].
//! Facts: Kafka 4.4 `ClientMetricsConfigs`. Sentences: ours.

use crate::config::key::{ConfigKey, int, list};

#[rustfmt::skip]
pub(crate) const KEYS: &[ConfigKey] = &[
    int("interval.ms", "300000")
        .doc("How often matching clients push their metrics."),
    list("match", "")
        .doc("Which clients are meant: name=regular expression, separated by commas."),
    list("metrics", "")
        .doc("Prefixes of the metrics that are asked for; `*` asks for all, empty for none."),
];
