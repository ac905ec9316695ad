//! D, T, W, S: what topics and clients send.

use super::Case;
use crate::facts::{Client, Facts, Histogram, RecordSample};
use crate::rules::tests::build::{figures_of, grow, healthy, partition, sample, set, topic};
use crate::rules::tests::findings;

fn sampled(facts: &mut Facts, sample: RecordSample) {
    facts.samples = Ok(vec![Ok(sample)]);
}

pub const CASES: &[Case] = &[
    Case {
        id: "D7",
        plant: |facts| {
            // 100 of 1000 records in 10 s: a hundredth of what it holds each second.
            grow(facts, 1000);
            let dir = &mut facts.nodes[0].dirs.as_mut().expect("dirs")[0];
            dir.bytes.as_mut().expect("room").usable = 1_000_000_000_000;
        },
        sentences: &[
            "node 2: /data is full in 13 h 53 min at the rate of the last 10 s (orders 9.5 MiB a second)",
            "node 3: /data is full in 13 h 53 min at the rate of the last 10 s (orders 9.5 MiB a second)",
            "node 1: /data is full in 27 h 46 min at the rate of the last 10 s (orders 9.5 MiB a second)",
        ],
        commands: &[
            "barnabas configs --bootstrap-server h:1 --alter --entity-type topics --entity-name orders --add-config retention.bytes=401000000000",
            "barnabas configs --bootstrap-server h:1 --alter --entity-type topics --entity-name orders --add-config retention.bytes=401000000000",
            "barnabas configs --bootstrap-server h:1 --alter --entity-type topics --entity-name orders --add-config retention.bytes=801000000000",
        ],
    },
    Case {
        id: "D8",
        plant: |facts| {
            facts.nodes.truncate(1);
            grow(facts, 1000);
            set(facts, "orders", "retention.ms", "259200000");
        },
        sentences: &[
            "node 1: at the rate of the last 10 s retention keeps 2.4 TiB in /data, 259 % of its 931 GiB (orders 2.4 TiB)",
        ],
        commands: &[
            "barnabas configs --bootstrap-server h:1 --alter --entity-type topics --entity-name orders --add-config retention.bytes=800000000000",
        ],
    },
    Case {
        id: "T5",
        plant: |facts| {
            let mut hot = topic("orders", 8);
            for partition in &mut hot.partitions[1..] {
                let offsets = partition.offsets.as_mut().expect("offsets");
                offsets.end_before = offsets.end;
            }
            facts.topics = Ok(vec![hot]);
            grow(facts, 100_000);
        },
        sentences: &[
            "topic orders: partition 0 takes 119 MiB a second, 8.0 times the mean of its 8 partitions",
        ],
        commands: &[],
    },
    Case {
        id: "T6",
        plant: |facts| sampled(facts, RecordSample { same_key: 150, ..sample() }),
        sentences: &[
            "topic orders: one key has 150 of 200 sampled records of partition 0, about 25 % of the topic's",
        ],
        commands: &[],
    },
    Case {
        id: "T7",
        plant: |facts| {
            let mut idle = topic("idle", 150);
            for partition in &mut idle.partitions[10..] {
                partition.offsets.as_mut().expect("offsets").newest_ms = Ok(None);
            }
            facts.topics.as_mut().expect("topics").push(idle);
        },
        sentences: &["topic idle: 140 of 150 partitions took no record in the last day"],
        commands: &[],
    },
    Case {
        id: "T12",
        plant: |facts| {
            set(facts, "orders", "cleanup.policy", "compact");
            set(facts, "orders", "min.cleanable.dirty.ratio", "0.95");
            set(facts, "orders", "min.compaction.lag.ms", "5184000000");
        },
        sentences: &[
            "topic orders: min.cleanable.dirty.ratio=0.95: compaction waits until 95 % are dirty",
            "topic orders: min.compaction.lag.ms=5184000000: records are not compacted for 60 d",
        ],
        commands: &[
            "barnabas configs --bootstrap-server h:1 --alter --entity-type topics --entity-name orders --delete-config min.cleanable.dirty.ratio",
            "barnabas configs --bootstrap-server h:1 --alter --entity-type topics --entity-name orders --delete-config min.compaction.lag.ms",
        ],
    },
    Case {
        id: "W2",
        plant: |facts| {
            grow(facts, 1000);
            sampled(facts, RecordSample { deflated_bytes: 40_000, ..sample() });
        },
        sentences: &[
            "topic orders: 9.5 MiB a second are not compressed, and lz4 would leave 40 %: 5.7 MiB a second less, on each replica",
        ],
        commands: &[
            "barnabas configs --bootstrap-server h:1 --alter --entity-type topics --entity-name orders --add-config compression.type=lz4",
        ],
    },
    Case {
        id: "W3",
        plant: |facts| figures_of(facts, 0).produced_weakly = Ok(500.0),
        sentences: &[
            "node 1: 500 of 2000 batches came with acks=0 or 1 (25 %): min.insync.replicas does not hold for them",
        ],
        commands: &[],
    },
    Case {
        id: "W4",
        plant: |facts| sampled(facts, RecordSample { batches_without_id: 8, ..sample() }),
        sentences: &["topic orders: 8 of 10 sampled batches have no producer id"],
        commands: &[],
    },
    Case {
        id: "W5",
        plant: |facts| {
            let row = |api: &str, version, number| (api.to_owned(), version, number);
            figures_of(facts, 1).versions =
                vec![row("Produce", 3, 7.0), row("Fetch", 9, 40.0), row("Fetch", 10, 9.0)];
        },
        sentences: &["node 2: requests in 10 s: 7 Produce of version 3, 40 Fetch of version 9"],
        commands: &[],
    },
    Case {
        id: "W7",
        plant: |facts| {
            figures_of(facts, 0).fetch_bytes = Histogram(vec![(256.0, 1800.0), (65_536.0, 2000.0)])
        },
        sentences: &["node 1: half of the answers to consumers have at most 256 B, at 200 a second"],
        commands: &[],
    },
    Case {
        id: "W10",
        plant: |facts| figures_of(facts, 2).produce_refused = 100.0,
        sentences: &["node 3: 100 of 2000 batches were refused (5 %)"],
        commands: &[],
    },
    Case {
        id: "W13",
        plant: |facts| {
            let client = |id: &str, write_seconds: f64| Client {
                id: id.to_owned(),
                busy_seconds: 4.0,
                write_seconds,
                ..Client::default()
            };
            figures_of(facts, 0).clients = vec![client("slow", 3.0), client("fast", 0.1)];
        },
        sentences: &[
            "client slow: its answers waited 3.0 s at the socket of node 1, 75 % of its requests' time",
        ],
        commands: &[],
    },
    Case {
        id: "W15",
        plant: |facts| figures_of(facts, 0).apis = vec![("InitProducerId".to_owned(), 200.0)],
        sentences: &["node 1: 20.0 producers a second ask for an id"],
        commands: &[],
    },
    Case {
        id: "S2",
        plant: |facts| figures_of(facts, 0).denied = Ok(30.0),
        sentences: &["node 1: 180 requests a minute ask for what their principal may not do"],
        commands: &[],
    },
];

/// A topic that retention ends before, and a replica that Metadata does not know, fill nothing.
#[test]
fn growth_ends_where_retention_holds_it() {
    let mut facts = healthy();
    grow(&mut facts, 1000);
    assert_eq!(findings(&facts, "D7").len(), 3);
    set(&mut facts, "orders", "retention.bytes", "2000000000");
    for id in ["D7", "D8"] {
        assert_eq!(findings(&facts, id), []);
    }
    set(&mut facts, "orders", "retention.bytes", "-1");
    partition(&mut facts, "orders", 0).index = 77;
    assert_eq!(findings(&facts, "D7"), []);
}
