//! G.

use super::Case;
use crate::rules::tests::build::{NOW_MS, group_of, member, partition, set};

pub const CASES: &[Case] = &[
    Case {
        id: "G3",
        plant: |facts| {
            let row = &mut group_of(facts).committed.as_mut().expect("offsets")[1];
            (row.offset, row.oldest_unread_ms) = (row.offset_before, Ok(Some(NOW_MS - 400_000)));
        },
        sentences: &[
            "group billing: no commit in 10 s for orders-1, read by app at /10.0.0.9; the oldest unread record is 7 min old",
        ],
        commands: &[],
    },
    Case {
        id: "G4",
        plant: |facts| {
            set(facts, "orders", "retention.ms", "3600000");
            let row = &mut group_of(facts).committed.as_mut().expect("offsets")[2];
            row.oldest_unread_ms = Ok(Some(NOW_MS - 3_240_000));
        },
        sentences: &[
            "group billing: its oldest unread record of orders is 54 min old, 90 % of the retention of 60 min",
        ],
        commands: &[
            "barnabas configs --bootstrap-server h:1 --alter --entity-type topics --entity-name orders --add-config retention.ms=7200000",
        ],
    },
    Case {
        id: "G6",
        plant: |facts| group_of(facts).members.as_mut().expect("members").push(member("m4", None)),
        sentences: &["group billing: 1 of 4 members have no partition: the group reads 3 partitions"],
        commands: &["barnabas topics --bootstrap-server h:1 --alter --topic orders --partitions 4"],
    },
    Case {
        id: "G8",
        plant: |facts| {
            partition(facts, "orders", 0).offsets.as_mut().expect("offsets").start = 995;
            let row = &mut group_of(facts).committed.as_mut().expect("offsets")[1];
            (row.offset, row.offset_before) = (1200, 1200);
        },
        sentences: &[
            "group billing: committed offsets outside the log: orders-0 lost 5 records below 995, orders-1 is 200 beyond the end 1000",
        ],
        commands: &[
            "barnabas consumer-groups --bootstrap-server h:1 --group billing --topic orders --reset-offsets --to-earliest --execute",
        ],
    },
    Case {
        id: "G10",
        plant: |facts| {
            let members = (0..12).map(|at| member(&format!("m{at}"), Some(at % 3)));
            group_of(facts).members = Ok(members.collect());
        },
        sentences: &["group billing: 12 members with the assignor range: all stop when one comes or goes"],
        commands: &[],
    },
];
