//! The bytes of every kind of record that a share group and the share coordinator write, as they stand in
//! `tests/golden/share_records.txt` and `tests/golden/share_state_records.txt` (key, value, both in hex; `-` for a
//! tombstone). Apache's `GroupCoordinatorRecordSerde` and `ShareCoordinatorRecordSerde` of Kafka 4.4.0 read each of
//! them and write the same bytes again.

// A test may read and write its files.
#![allow(clippy::disallowed_methods)]

mod page;
mod rig;
#[allow(dead_code)]
mod speech;

use barnabas_base::{LeaderEpoch, MonotonicMs, Offset, PartitionIndex, TimestampMs, Uuid};
use barnabas_coordinator::{
    Now, SharePartitionKey, ShareStateConfig, ShareStateEffect, ShareStateRequest, ShareStateShard,
    StateBatch, Ticket,
};
use rig::Rig;

const TALK: [&str; 11] = [
    "topic name=t partitions=4",
    "topic name=logs id=2 partitions=2",
    "share-hb member=a names=t,logs rack=r",
    "share-hb member=b names=t",
    "share-hb member=a epoch=2",
    "share-hb member=b epoch=-1",
    "share-hb member=a epoch=-1",
    "share-alter topics=t partition=1 offset=7",
    "slow-share",
    "share-delete-offsets topics=logs",
    "delete-groups groups=g",
];

#[test]
fn records_of_groups_are_kafkas_to_the_byte() {
    let mut config = barnabas_coordinator::GroupConfig::default();
    config.share.times.standard.assignment_interval = barnabas_base::DurationMs(0);
    let mut rig = Rig::new(config);
    for command in TALK {
        speech::tell(&mut rig, &speech::Words::of(command));
    }
    rig.share_done(barnabas_base::ErrorCode::None);
    speech::tell(&mut rig, &speech::Words::of("delete-groups groups=g"));
    rig.share_done(barnabas_base::ErrorCode::None);
    page::check("share_records.txt", rig.log.iter().filter_map(rig::Logged::record));
}

#[test]
fn records_of_state_are_kafkas_to_the_byte() {
    let mut rig = Rig::new(barnabas_coordinator::GroupConfig::default());
    rig.topic("t", 1, 2);
    let config = ShareStateConfig { updates_per_snapshot: 1, ..ShareStateConfig::default() };
    let mut shard = ShareStateShard::new(config);
    shard.image_changed(&rig.image);
    let now = Now { wall: TimestampMs(1_700_000_000_000), mono: MonotonicMs(1) };
    shard.activate(now);
    let mut topic = [0; 16];
    topic[15] = 1;
    let key = SharePartitionKey { group: "g".into(), topic: Uuid(topic), partition: PartitionIndex(1) };
    let write = |first: i64| ShareStateRequest::Write {
        key: key.clone(),
        state_epoch: 3,
        leader_epoch: LeaderEpoch(5),
        start_offset: Offset(first),
        delivery_complete_count: 4,
        batches: vec![
            StateBatch {
                first: Offset(first),
                last: Offset(first + 9),
                delivery_state: 2,
                delivery_count: 1,
            },
            StateBatch {
                first: Offset(first + 10),
                last: Offset(first + 300),
                delivery_state: 0,
                delivery_count: 2,
            },
        ],
    };
    let requests = [
        ShareStateRequest::Initialize { key: key.clone(), state_epoch: 3, start_offset: Offset(-1) },
        ShareStateRequest::Read { key: key.clone(), leader_epoch: LeaderEpoch(5) },
        write(100),
        write(105),
        ShareStateRequest::Delete { key: key.clone() },
    ];
    let (mut log, mut tickets) = (Vec::new(), 0);
    for request in requests {
        tickets += 1;
        for effect in shard.handle(request, Ticket(tickets), now) {
            if let ShareStateEffect::Append { batch, records } = effect {
                let base = Offset(log.len() as i64);
                log.extend(records);
                shard.durable(batch, base, now);
            }
        }
    }
    assert_eq!(log.len(), 5);
    page::check("share_state_records.txt", log.iter());
}
