//! T.

use super::Case;
use crate::rules::tests::build::{NOW_MS, partition, set};

pub const CASES: &[Case] = &[
    Case {
        id: "T1",
        plant: |facts| {
            let second = partition(facts, "orders", 1);
            (second.replicas, second.isr) = (vec![2], vec![2]);
        },
        sentences: &["topic orders: 1 partition with one replica, in a cluster of 3 brokers"],
        commands: &[
            r#"echo '{"version":1,"partitions":[{"topic":"orders","partition":1,"replicas":[2,1,3]}]}' | barnabas reassign-partitions --bootstrap-server h:1 --execute --additional --reassignment-json-file /dev/stdin"#,
        ],
    },
    Case {
        id: "T2",
        plant: |facts| set(facts, "orders", "min.insync.replicas", "1"),
        sentences: &["topic orders: min.insync.replicas is 1 with 3 replicas"],
        commands: &[
            "barnabas configs --bootstrap-server h:1 --alter --entity-type topics --entity-name orders --add-config min.insync.replicas=2",
        ],
    },
    Case {
        id: "T3",
        plant: |facts| set(facts, "orders", "unclean.leader.election.enable", "true"),
        sentences: &["topic orders: unclean.leader.election.enable=true: acknowledged records can be lost"],
        commands: &[
            "barnabas configs --bootstrap-server h:1 --alter --entity-type topics --entity-name orders --delete-config unclean.leader.election.enable",
        ],
    },
    Case {
        id: "T4",
        plant: |facts| {
            for index in 0..3 {
                let offsets = partition(facts, "orders", index).offsets.as_mut().expect("offsets");
                offsets.newest_ms = Ok(Some(NOW_MS - 40 * 86_400_000));
            }
        },
        sentences: &["topic orders: its newest record is 40 d old and holds 2.9 MiB"],
        commands: &["barnabas topics --bootstrap-server h:1 --delete --topic orders"],
    },
    Case {
        id: "T8",
        plant: |facts| set(facts, "orders", "max.message.bytes", "20971520"),
        sentences: &["topic orders: max.message.bytes allows batches of 20 MiB"],
        commands: &[
            "barnabas configs --bootstrap-server h:1 --alter --entity-type topics --entity-name orders --delete-config max.message.bytes",
        ],
    },
    Case {
        id: "T9",
        plant: |facts| {
            set(facts, "orders", "segment.ms", "10000");
            set(facts, "orders", "segment.bytes", "100000");
        },
        // 3,000,000 bytes of three replicas of 3,000 records: 333 bytes a record, 100 records in 10 s.
        sentences: &[
            "topic orders: segment.ms ends a segment every 10 s",
            "topic orders: segment.bytes is 98 KiB, and a partition takes 3.3 KiB a second: a segment every 30 s",
        ],
        commands: &[
            "barnabas configs --bootstrap-server h:1 --alter --entity-type topics --entity-name orders --delete-config segment.ms",
            "barnabas configs --bootstrap-server h:1 --alter --entity-type topics --entity-name orders --delete-config segment.bytes",
        ],
    },
    Case {
        id: "T10",
        plant: |facts| {
            let offsets = partition(facts, "orders", 2).offsets.as_mut().expect("offsets");
            offsets.newest_ms = Ok(Some(NOW_MS + 3 * 3_600_000));
        },
        sentences: &["topic orders: its newest record is dated 3 h 0 min ahead"],
        commands: &[
            "barnabas configs --bootstrap-server h:1 --alter --entity-type topics --entity-name orders --add-config message.timestamp.type=LogAppendTime",
        ],
    },
    Case {
        id: "T13",
        plant: |facts| set(facts, "orders", "retention.ms", "-1"),
        sentences: &["topic orders: retention.ms and retention.bytes are -1: nothing is ever deleted"],
        commands: &[
            "barnabas configs --bootstrap-server h:1 --alter --entity-type topics --entity-name orders --add-config retention.ms=604800000",
        ],
    },
];
