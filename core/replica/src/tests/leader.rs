//! Roles by the image, and what they leave behind.

use std::sync::Arc;

use barnabas_base::{BrokerEpoch, BrokerId, DurationMs, LeaderEpoch, MonotonicMs, Offset, PartitionEpoch};
use barnabas_metadata::{Image, Partition as Registration, Placement};
use barnabas_partition::{Acks, FollowerFetch, FollowerRead};

use super::Bench;
use crate::{RoleChange, RoleView};

fn row(leader: i32, epoch: i32) -> Registration {
    let brokers = vec![BrokerId(1), BrokerId(2)];
    let placement = Placement { replicas: brokers.clone(), isr: brokers, ..Placement::default() };
    Registration {
        leader: BrokerId(leader),
        leader_epoch: LeaderEpoch(epoch),
        partition_epoch: PartitionEpoch(epoch),
        placement: Arc::new(placement),
    }
}

fn take(bench: &mut Bench, row: &Registration, now: u64) -> RoleChange {
    let view = RoleView {
        me: BrokerId(1),
        image: &Image::default(),
        row,
        min_in_sync: 1,
        lag_max: DurationMs(30_000),
        now: MonotonicMs(now),
    };
    bench.replica.take_role(&view, &mut bench.outbox)
}

#[test]
fn role_changes_are_remembered_and_older_images_ignored() {
    let mut bench = Bench::new();
    assert_eq!(take(&mut bench, &row(2, 1), 10), RoleChange::Follows);
    assert_eq!(take(&mut bench, &row(2, 0), 11), RoleChange::Nothing, "an older image changes nothing");
    assert!(!bench.replica.history.has_led && bench.replica.history.ceased_at.is_none());
    assert_eq!(take(&mut bench, &row(1, 2), 12), RoleChange::Leads);
    assert_eq!(take(&mut bench, &row(1, 2), 13), RoleChange::Nothing);
    assert!(bench.replica.history.has_led);
    assert_eq!(bench.replica.log.epochs().latest().map(|entry| entry.epoch), Some(LeaderEpoch(2)));
    assert_eq!(take(&mut bench, &row(2, 3), 14), RoleChange::Follows);
    assert_eq!(bench.replica.history.ceased_at, Some(MonotonicMs(14)));
}

#[test]
fn new_epoch_begins_behind_what_the_round_holds() {
    let mut bench = Bench::new();
    take(&mut bench, &row(1, 1), 1);
    bench.place(3, Acks::Leader, 1).unwrap();
    take(&mut bench, &row(1, 2), 2);
    let latest = bench.replica.log.epochs().latest().map(|entry| (entry.epoch, entry.start));
    assert_eq!(latest, Some((LeaderEpoch(2), Offset(3))));
}

#[test]
fn follower_is_shown_what_is_not_durable_and_told_the_bounds() {
    let mut bench = Bench::new();
    take(&mut bench, &row(1, 1), 1);
    bench.place(3, Acks::All, 1).unwrap();
    bench.finish_round();
    let fetch = FollowerFetch {
        broker: BrokerId(2),
        broker_epoch: BrokerEpoch(5),
        registered: Some(BrokerEpoch(5)),
        leader_epoch: Some(LeaderEpoch(1)),
        offset: Offset(0),
        last_epoch: None,
        log_start: Offset(0),
        now: MonotonicMs(2),
    };
    let (read, bounds) = bench.replica.follower_fetch(&fetch, &mut bench.outbox);
    assert_eq!(bounds.map(|bounds| (bounds.end, bounds.high_watermark)), Some((Offset(3), Offset(0))));
    assert_eq!(read, Ok(FollowerRead::Records(bounds.unwrap())));
    let stranger = FollowerFetch { broker: BrokerId(9), ..fetch };
    let (read, bounds) = bench.replica.follower_fetch(&stranger, &mut bench.outbox);
    assert!(read.is_err() && bounds.is_none());
}
