//! A damaged replica gives data up only when the cluster does not count on it.

use std::sync::Arc;

use barnabas_base::{BrokerId, DurationMs, LeaderEpoch, MonotonicMs, Offset, PartitionEpoch};
use barnabas_metadata::{Partition as Registration, Placement};
use barnabas_partition::{Acks, Cut};

use super::Bench;
use crate::{RepairStep, RepairView};

const ME: BrokerId = BrokerId(1);
const LEADER: BrokerId = BrokerId(2);
const EPOCH: LeaderEpoch = LeaderEpoch(2);
const LAG_MAX: DurationMs = DurationMs(30_000);

fn brokers(numbers: &[i32]) -> Vec<BrokerId> {
    numbers.iter().map(|&number| BrokerId(number)).collect()
}

fn row(isr: &[i32], elr: &[i32]) -> Registration {
    let placement = Placement {
        replicas: brokers(&[1, 2, 3]),
        isr: brokers(isr),
        elr: brokers(elr),
        ..Placement::default()
    };
    Registration {
        leader: LEADER,
        leader_epoch: EPOCH,
        partition_epoch: PartitionEpoch(0),
        placement: Arc::new(placement),
    }
}

fn view(row: &Registration) -> RepairView<'_> {
    at(row, 100)
}

/// By an image that is the newest.
fn at(row: &Registration, ms: u64) -> RepairView<'_> {
    let now = MonotonicMs(ms);
    RepairView { me: ME, row, known_by: Some(now), min_in_sync: 2, elr_enabled: true, lag_max: LAG_MAX, now }
}

/// A follower with three segments, damaged in the second at offset 13, whose leader has answered it.
fn damaged() -> Bench {
    let mut bench = Bench::leader();
    for _ in 0..3 {
        bench.append(10, None, Acks::Leader, 1);
        bench.write_back().unwrap();
    }
    bench.durable();
    bench.effects();
    let Bench { replica, outbox, .. } = &mut bench;
    assert_eq!(replica.log.segment_count(), 3);
    replica.partition.become_follower(EPOCH, &mut outbox.decisions);
    replica.following = Some((LEADER, EPOCH));
    replica.partition.follow_high_watermark(Offset(30), &mut outbox.decisions);
    assert_eq!(replica.note_damage(Offset(13), true), Some(Offset(13)));
    bench.effects();
    bench
}

#[test]
fn damage_is_news_once_and_only_beside_other_replicas() {
    let mut bench = Bench::leader();
    bench.append(10, None, Acks::Leader, 1);
    let replica = &mut bench.replica;
    assert_eq!(replica.note_damage(Offset(5), false), None, "there is no other replica to fetch from");
    assert_eq!(replica.note_damage(Offset(5), true), Some(Offset(5)));
    assert_eq!(replica.note_damage(Offset(7), true), None);
    assert_eq!(replica.note_damage(Offset(-3), true), Some(Offset(0)), "not before the log starts");
}

#[test]
fn replica_stays_in_sync_where_leaving_costs_more() {
    // ISR, whether the cluster has the ELR, min.insync.replicas, whether it begins to fetch again.
    let table: [(&[i32], bool, u16, bool); 7] = [
        (&[1], true, 1, false),
        (&[1], false, 1, false),
        (&[1, 2], true, 2, false),
        (&[1, 2], false, 2, true),
        (&[1, 2], true, 1, true),
        (&[1, 2, 3], true, 2, true),
        // No more replicas than there are can be asked for.
        (&[1, 2, 3], true, 9, false),
    ];
    for (isr, elr_enabled, min_in_sync, refetches) in table {
        let (mut bench, row) = (damaged(), row(isr, &[]));
        let step = bench.replica.repair_step(&RepairView { elr_enabled, min_in_sync, ..view(&row) });
        let expected = if refetches { RepairStep::Refetch { from: Offset(13) } } else { RepairStep::Wait };
        assert_eq!(step, expected, "isr={isr:?} elr={elr_enabled} min={min_in_sync}");
    }
}

#[test]
fn data_is_given_up_only_out_of_isr_and_elr() {
    let table: [(&[i32], &[i32], bool); 3] =
        [(&[1, 2, 3], &[], false), (&[2, 3], &[1], false), (&[2, 3], &[], true)];
    for (isr, elr, gives_up) in table {
        let mut bench = damaged();
        let replica = &mut bench.replica;
        let all = row(&[1, 2, 3], &[]);
        assert_eq!(replica.repair_step(&view(&all)), RepairStep::Refetch { from: Offset(13) });
        replica.partition.seen_behind();
        let now = row(isr, elr);
        let step = replica.repair_step(&view(&now));
        let base = replica.log.segment_base_of(Offset(13));
        let expected = if gives_up {
            RepairStep::GiveUp { from: Offset(13), to: base, cut: Cut::To(base) }
        } else if elr.is_empty() {
            RepairStep::Wait
        } else {
            RepairStep::FetchOn
        };
        assert_eq!(step, expected, "isr={isr:?} elr={elr:?}");
        assert_eq!(base, Offset(10), "whole segments go");
    }
}

#[test]
fn data_is_kept_until_the_leader_sees_the_replica_behind() {
    let (mut bench, out) = (damaged(), row(&[2, 3], &[]));
    let late = at(&out, 100_000);
    assert_eq!(bench.replica.repair_step(&view(&out)), RepairStep::Refetch { from: Offset(13) });
    assert_eq!(bench.replica.repair_step(&late), RepairStep::Wait);
    bench.replica.partition.seen_behind();
    assert!(matches!(bench.replica.repair_step(&late), RepairStep::GiveUp { .. }));
}

#[test]
fn replica_that_was_not_in_sync_waits_for_the_lag_time() {
    let (mut bench, out) = (damaged(), row(&[2, 3], &[]));
    bench.replica.repair_step(&view(&out));
    bench.replica.partition.seen_behind();
    assert_eq!(bench.replica.repair_step(&at(&out, 30_099)), RepairStep::Wait);
    assert!(matches!(bench.replica.repair_step(&at(&out, 30_100)), RepairStep::GiveUp { .. }));
}

#[test]
fn data_is_kept_until_the_image_is_known_to_be_new_enough() {
    let (all, out) = (row(&[1, 2, 3], &[]), row(&[2, 3], &[]));
    // Whether it was in sync, and by when the image must be known: the leader has seen it behind at 200.
    for (was_in_sync, needed) in [(true, 200), (false, 30_100)] {
        let mut bench = damaged();
        let replica = &mut bench.replica;
        let first = if was_in_sync { &all } else { &out };
        assert_eq!(replica.repair_step(&view(first)), RepairStep::Refetch { from: Offset(13) });
        replica.partition.seen_behind();
        assert_eq!(replica.repair_step(&RepairView { known_by: None, ..at(&out, 200) }), RepairStep::Wait);
        let known = |ms: u64| RepairView { known_by: Some(MonotonicMs(ms)), ..at(&out, 1_000_000) };
        for old in [0, 100, needed - 1] {
            assert_eq!(replica.repair_step(&known(old)), RepairStep::Wait, "known by {old}");
        }
        assert!(matches!(replica.repair_step(&known(needed)), RepairStep::GiveUp { .. }));
    }
}

#[test]
fn old_image_or_a_leader_without_an_answer_changes_nothing() {
    let (mut bench, row) = (damaged(), row(&[2, 3], &[]));
    let newer = Registration { leader_epoch: LeaderEpoch(3), ..row.clone() };
    assert_eq!(bench.replica.repair_step(&view(&newer)), RepairStep::Wait);
    bench.replica.following = None;
    assert_eq!(bench.replica.repair_step(&view(&row)), RepairStep::Wait);
    assert_eq!(bench.replica.partition.asks_again_from(), None);
}

#[test]
fn damage_that_was_deleted_is_repaired() {
    let (mut bench, row) = (damaged(), row(&[2, 3], &[]));
    let Bench { replica, outbox, .. } = &mut bench;
    replica.partition.advance_log_start(Offset(20), &mut outbox.decisions);
    assert_eq!(replica.repair_step(&view(&row)), RepairStep::Repaired);
    replica.forget_damage();
    assert_eq!(replica.repair_step(&view(&row)), RepairStep::Wait);
}

#[test]
fn replica_out_of_sync_never_looks_caught_up() {
    let (mut bench, out, all) = (damaged(), row(&[2, 3], &[]), row(&[1, 2, 3], &[]));
    let Bench { replica, outbox, .. } = &mut bench;
    // Another leader, which has not answered yet.
    let epoch = LeaderEpoch(3);
    replica.partition.become_follower(epoch, &mut outbox.decisions);
    replica.following = Some((LEADER, epoch));
    let [out, all] = [out, all].map(|row| Registration { leader_epoch: epoch, ..row });
    // One that is in sync may be waited for.
    assert_eq!(replica.repair_step(&view(&all)), RepairStep::Wait);
    assert_eq!(replica.repair_step(&view(&out)), RepairStep::Refetch { from: Offset(13) });
    let position = replica.partition.fetch_position(replica.log.epochs()).unwrap();
    assert_eq!(position.offset, Offset(13));
}

#[test]
fn replica_that_is_needed_fetches_on() {
    // ISR and ELR: one of two in sync, and one that may be elected.
    for (isr, elr) in [(&[1, 2][..], &[][..]), (&[2], &[1, 3])] {
        let (mut bench, out, needed) = (damaged(), row(&[2, 3], &[]), row(isr, elr));
        let replica = &mut bench.replica;
        assert_eq!(replica.repair_step(&view(&out)), RepairStep::Refetch { from: Offset(13) });
        replica.partition.seen_behind();
        assert_eq!(replica.repair_step(&at(&needed, 40_000)), RepairStep::FetchOn, "isr={isr:?} elr={elr:?}");
        let position = replica.partition.fetch_position(replica.log.epochs()).unwrap();
        assert_eq!(position.offset, Offset(30), "it may come into the ISR");
        assert_eq!(replica.repair_step(&at(&needed, 40_000)), RepairStep::Wait);
        // It is needed no more, and begins from the start.
        let late = at(&out, 50_000);
        assert_eq!(replica.repair_step(&late), RepairStep::Refetch { from: Offset(13) });
        assert_eq!(replica.repair_step(&late), RepairStep::Wait, "this leader has yet to see it behind");
    }
}
