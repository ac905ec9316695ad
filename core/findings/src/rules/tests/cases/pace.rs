//! G, N: how groups read.

use super::Case;
use crate::facts::{Facts, GroupKind, Shared};
use crate::rules::tests::build::{NOW_MS, figures_of, group_of, healthy};
use crate::rules::tests::findings;

/// The group reads half of what is written to each partition.
fn slow(facts: &mut Facts) {
    for row in group_of(facts).committed.as_mut().expect("offsets") {
        (row.offset_before, row.offset) = (850, 900);
        row.oldest_unread_ms = Ok(Some(NOW_MS - 90_000));
    }
}

/// One member has partitions 0 and 1, and stays at 1.
fn stay(facts: &mut Facts) {
    let group = group_of(facts);
    let members = group.members.as_mut().expect("members");
    members.remove(1);
    members[0].assigned.push(("orders".to_owned(), 1));
    let row = &mut group.committed.as_mut().expect("offsets")[1];
    (row.offset, row.oldest_unread_ms) = (row.offset_before, Ok(Some(NOW_MS - 400_000)));
}

pub const CASES: &[Case] = &[
    Case {
        id: "G1",
        plant: |facts| {
            figures_of(facts, 0).rebalances = 7.0;
            group_of(facts).state = "PreparingRebalance".to_owned();
        },
        sentences: &["node 1: 7 rebalances of its groups in 10 s; now: billing"],
        commands: &[],
    },
    Case {
        id: "G5",
        plant: slow,
        sentences: &[
            "group billing: orders takes 30 records a second and the group reads 15: 300 are unread, the oldest is 90 s old, and 6 members instead of 3 would keep up",
        ],
        commands: &["barnabas topics --bootstrap-server h:1 --alter --topic orders --partitions 6"],
    },
    Case {
        id: "G7",
        plant: stay,
        sentences: &[
            "group billing: app at /10.0.0.9 stays at offset 900 of orders-1 and goes on with other partitions; that record is 7 min old",
        ],
        commands: &[
            "barnabas consumer-groups --bootstrap-server h:1 --group billing --topic orders:1 --reset-offsets --shift-by 1 --execute",
        ],
    },
    Case {
        id: "G11",
        plant: |facts| {
            figures_of(facts, 0).shared = Shared { acknowledged: 90.0, rejected: 9.0, lock_timeouts: 10.0 };
            group_of(facts).kind = GroupKind::Share;
        },
        sentences: &["node 1: of 100 records 9 were rejected (9 %) and the locks of 10 ended (10 %)"],
        commands: &[
            "barnabas configs --bootstrap-server h:1 --alter --entity-type groups --entity-name billing --add-config share.record.lock.duration.ms=60000",
        ],
    },
    Case {
        id: "N9",
        plant: |facts| {
            let members = group_of(facts).members.as_mut().expect("members");
            members.iter_mut().for_each(|member| member.rack = Some("r1".to_owned()));
        },
        sentences: &[
            "group billing: members with client.rack read 2 of 3 partitions from a leader in another rack",
        ],
        commands: &[],
    },
];

/// One partition that stays is G7's where its member goes on, and G3's where it does not.
#[test]
fn standing_still_is_of_the_member_or_of_the_partition() {
    let mut facts = healthy();
    stay(&mut facts);
    let found = |facts: &Facts, id: &str| findings(facts, id).len();
    assert_eq!((found(&facts, "G3"), found(&facts, "G7")), (0, 1));
    let rows = group_of(&mut facts).committed.as_mut().expect("offsets");
    rows.iter_mut().for_each(|row| row.offset = row.offset_before);
    assert_eq!((found(&facts, "G3"), found(&facts, "G7")), (1, 0));
}
