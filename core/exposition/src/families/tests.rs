//! Compares docs/METRICS.md with the list of metrics that the page is written from.
//! `UPDATE_PAGES=1` rewrites the page.

use super::*;
use std::collections::HashSet;
use std::path::Path;

const HEAD: &str = "\
# Metrics

<!-- Written by core/exposition/src/families/tests.rs from core/exposition/src/families.rs. -->

`metrics.listener=127.0.0.1:9404` in the settings, and `GET /metrics` there answers with these, in the text that Prometheus reads. It is off
unless it is set. `barnabas hotspots --bootstrap-server …` shows where the time goes without it.

Where Kafka has a figure, its name is the one that the JMX exporter's sample configuration for Kafka gives it, so that dashboards made for that find it;
what differs from Kafka's meaning stands beside it. Quantiles (0.50 to 0.999) are of the last one to two minutes where the page is read that
often, else since it was last read, and at most an eighth too large; counts and sums are since the start of the process.

A page stays some hundred kilobytes with any number of topics, clients and groups: `metrics.topics.max` topics have series of their own (the others share
`(others)`, so that the sum over topics is the total), 64 client ids, and the 500 groups that are furthest behind. Nothing is per partition unless the query asks
for it. A topic's series end when it is deleted.

| query | effect |
|---|---|
| `families=PREFIX,…` | only metrics whose names, as the page shows them, begin with one of these |
| `buckets=all` | histograms of times with 23 bounds, every power of two from 16 µs to 69 s, instead of 10 |
| `topic=NAME` | also the topic's partitions: log sizes and offsets, replicas |
| `group=NAME` | also the group's lag by partition |
| `names=SET` | the names of another program, for dashboards made for that: see below |

| set | names and labels as | also |
|---|---|---|
| `jmx` | the JMX exporter's sample configuration for Kafka; the default | |
| `strimzi` | Strimzi's configuration of the JMX exporter: `kafka_server_raftmetrics_…` | partitions of all topics |
| `reporter` | Strimzi Metrics Reporter: `…bytesinpersec_total` | partitions of all topics |
| `confluent` | Confluent's jmx-monitoring-stacks: `…bytesinpersec` without a type, labels in lower case | partitions of all topics |
| `exporter` | kafka_exporter | nothing else: a second job of Prometheus beside one of the above |
| `lag-exporter` | Kafka Lag Exporter | nothing else |

`exporter` and `lag-exporter` open the logs of all partitions that the node leads, up to 10,000. A reader that prefers `application/openmetrics-text; version=1.0.0`, as Prometheus
does, gets OpenMetrics.

What clients push (KIP-714) follows the list: `barnabas_telemetry_` and the metric's name without `org.apache.kafka.`, a counter with `_total`, with
the labels `client_id`, `client_instance_id` and those of the metric. Units are the client's. At most `telemetry.series.max` series are kept; those of a
client go when nothing came from it for three push intervals. Name, type and meaning are the client's
([KIP-714](https://cwiki.apache.org/confluence/display/KAFKA/KIP-714%3A+Client+metrics+and+observability)).

What a request's time is cut into (`phase`), in the order of its way; of one request the phases add up to its whole time:

| phase | what happens |
|---|---|
| decide | the connection's worker reads and checks it, and sends its parts to the partitions' owners |
| queue | it waits in their mailboxes |
| read | records are read for a consumer |
| journal_wait | a batch waits, with its owner and then behind the round that is being written; what is large is written into its segment and synced in this time |
| sync | the synced write of the journal's round |
| replicate | it is on disk here, and not yet on every replica in sync |
| wait | for data to come, for a group's members, for the controller: nothing that a faster server would shorten |
| answer | the way back between threads |
| write | behind earlier answers of its connection, encoding, the socket |

| metric | type | labels | Kafka's name | meaning |
|---|---|---|---|---|
";

const ON_REQUEST_HEAD: &str = "
These are on the page only where its query asks for them, of at most 10,000 partitions:

| metric | query | type | labels | Kafka's name | meaning |
|---|---|---|---|---|---|
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for family in FAMILIES {
        let Family { name, kind, labels, kafka, help } = family;
        let kafka = if kafka.is_empty() { "–".to_owned() } else { format!("`{kafka}`") };
        let labels = if labels.is_empty() { "–" } else { labels };
        page.push_str(&format!("| `{name}` | {} | {labels} | {kafka} | {help} |\n", kind.word()));
    }
    page.push_str(ON_REQUEST_HEAD);
    for (query, Family { name, kind, labels, kafka, help }) in ON_REQUEST {
        let kafka = if kafka.is_empty() { "–".to_owned() } else { format!("`{kafka}`") };
        let labels = if labels.is_empty() { "–" } else { labels };
        page.push_str(&format!("| `{name}` | {query} | {} | {labels} | {kafka} | {help} |\n", kind.word()));
    }
    page
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test writes the page")]
fn the_page_is_as_the_list_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/METRICS.md");
    let page = page();
    if std::env::var_os("UPDATE_PAGES").is_some() {
        std::fs::write(&path, &page).expect("docs/METRICS.md can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/METRICS.md differs from the list: UPDATE_PAGES=1 cargo test -p barnabas-exposition the_page_is_as_the_list_says"
    );
}

#[test]
fn names_are_as_prometheus_wants_them() {
    let mut names = HashSet::new();
    for family in every() {
        let name = family.name;
        assert!(names.insert(name), "{name} twice");
        assert!(!name.starts_with(crate::text::PUSHED), "{name} may be a client's");
        assert!(
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
            "{name}"
        );
        assert_eq!(
            family.kind == Kind::Counter,
            name.ends_with("_total"),
            "{name}: counters, and they alone, end in _total"
        );
        assert!(
            !family.help.contains(['\n', '|']) && !family.help.ends_with('.') && family.help.len() > 3,
            "{name}"
        );
        let is_kafkas = name.starts_with("kafka_") && !is_of_another_program(name);
        assert_eq!(is_kafkas, !family.kafka.is_empty(), "{name}");
        for ending in ["_count", "_sum", "_bucket"] {
            let stem = name.strip_suffix(ending);
            let has_parts = |other: &Family| matches!(other.kind, Kind::Summary | Kind::Histogram);
            assert!(
                !stem.is_some_and(|stem| every().any(|other| other.name == stem && has_parts(other))),
                "{name} is part of another"
            );
        }
    }
}

/// What Kafka has no figure for: exporters ask a cluster for offsets, and one makes a counter of a percentage.
fn is_of_another_program(name: &str) -> bool {
    let programs =
        ["kafka_broker_info", "kafka_brokers", "kafka_topic_", "kafka_consumergroup_", "kafka_partition_"];
    programs.iter().any(|start| name.starts_with(start)) || name.ends_with("percent_total")
}

/// How the JMX exporter's sample configuration turns a name around: all in lower case, `PerSec` to `_total`.
#[test]
fn kafkas_names_are_turned_as_the_exporter_turns_them() {
    for family in every().filter(|family| !family.kafka.is_empty()) {
        let (domain, keys) = family.kafka.split_once(":type=").expect("a type");
        let named = keys.split_once(",name=").or_else(|| keys.split_once(",attribute="));
        let (kind, name) = named.expect("a name");
        let name = match (name.strip_suffix("PerSec"), name.strip_suffix("Percent")) {
            (Some(stem), _) => format!("{stem}_total"),
            (_, Some(stem)) => format!("{stem}_percent"),
            _ => name.to_owned(),
        };
        let turned = format!("{}_{kind}_{name}", domain.replace('.', "_")).to_lowercase().replace('-', "_");
        assert_eq!(family.name, turned);
    }
}
