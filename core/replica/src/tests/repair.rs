//! A damaged replica takes over what is damaged from its leader. It gives data up only when the leader has served it
//! and the cluster does not count on it.

use std::sync::Arc;

use barnabas_base::{BrokerId, DurationMs, LeaderEpoch, MonotonicMs, Offset, PartitionEpoch};
use barnabas_metadata::{Partition as Registration, Placement};
use barnabas_partition::{Acks, Cut, FetchPosition};

use super::Bench;
use super::bench::{ROOT, batch, batch_of_epoch};
use crate::{BothDamaged, LOOK_AGAIN, RepairStep, RepairView};
use bytes::Bytes;

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
    RepairView {
        me: ME,
        row,
        known_by: Some(now),
        min_in_sync: 2,
        elr_enabled: true,
        lag_max: LAG_MAX,
        has_no_holes: true,
        now,
    }
}

/// The next step that is not one of the check.
fn step(bench: &mut Bench, view: &RepairView<'_>) -> RepairStep {
    loop {
        match bench.replica.repair_step(view, &mut bench.files).unwrap() {
            RepairStep::Check => {}
            step => return step,
        }
    }
}

/// What the leader has from the segment at offset 10 on, which is damaged here.
fn leaders(bases: &[i64]) -> Bytes {
    bases.iter().flat_map(|base| batch(*base, 10, None)).collect()
}

fn answer(bench: &mut Bench, asked: i64, records: Bytes) -> Option<BothDamaged> {
    bench.replica.take_again(Offset(asked), records, Offset(30), &mut bench.files).unwrap()
}

/// The leader has another batch where this log is damaged, and serves all that follows.
fn serve_all(bench: &mut Bench, view: &RepairView<'_>) {
    assert!(matches!(step(bench, view), RepairStep::Ask | RepairStep::Wait));
    assert_eq!(answer(bench, 10, batch(10, 9, None)), None);
    step(bench, view);
    assert_eq!(answer(bench, 10, leaders(&[10, 20])), None);
}

/// It may give up what was served, and tries once more before that; the leader has what it had.
fn try_again(bench: &mut Bench, view: &RepairView<'_>, at: i64) {
    assert!(matches!(step(bench, view), RepairStep::Ask | RepairStep::Wait), "nothing is given up yet");
    assert_eq!(answer(bench, at, batch(at, 9, None)), None);
}

fn flip(bench: &Bench, segment: i64, at: usize) {
    let path = std::path::Path::new(ROOT).join(format!("orders-0/{segment:020}.log"));
    bench.disk.corrupt(&path, |bytes| bytes[at] ^= 0x41);
}

/// A follower with three segments, damaged in the second, whose leader has answered it. A reader met it at offset 13.
fn damaged() -> Bench {
    let mut bench = Bench::leader();
    for _ in 0..3 {
        bench.append(10, None, Acks::Leader, 1);
        bench.write_back().unwrap();
    }
    bench.durable();
    bench.effects();
    flip(&bench, 10, 100);
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
        let step = step(&mut bench, &RepairView { elr_enabled, min_in_sync, ..view(&row) });
        let from = Offset(10);
        let expected = if refetches { RepairStep::Refetch { from } } else { RepairStep::FetchAside { from } };
        assert_eq!(step, expected, "isr={isr:?} elr={elr_enabled} min={min_in_sync}");
    }
}

#[test]
fn damaged_batch_is_mended_whether_or_not_it_counts() {
    for (isr, elr) in [(&[1, 2, 3][..], &[][..]), (&[2, 3], &[]), (&[1, 2], &[3])] {
        let mut bench = damaged();
        let (all, now) = (row(&[1, 2, 3], &[]), row(isr, elr));
        assert_eq!(step(&mut bench, &view(&all)), RepairStep::Refetch { from: Offset(10) });
        assert_eq!(answer(&mut bench, 10, leaders(&[10])), None);
        let mended = Some((Offset(10), Offset(20)));
        assert_eq!(step(&mut bench, &view(&now)), RepairStep::Repaired { mended }, "isr={isr:?}");
        bench.replica.forget_damage();
        let position = bench.replica.partition.fetch_position(bench.replica.log.epochs()).unwrap();
        assert_eq!(position.offset, Offset(30), "it fetches from its end again");
        let read = bench.replica.log.read(&mut bench.files, Offset(10), 1, Offset(30), true).unwrap();
        assert_eq!(read.records, batch(10, 10, None));
    }
}

#[test]
fn two_damaged_segments_are_mended_one_after_the_other() {
    let (mut bench, all) = (damaged(), row(&[1, 2, 3], &[]));
    flip(&bench, 0, 70);
    assert_eq!(bench.replica.note_damage(Offset(4), true), Some(Offset(4)));
    assert_eq!(step(&mut bench, &view(&all)), RepairStep::Refetch { from: Offset(0) });
    // The leader is damaged there itself: the other segment is mended even so.
    let both = BothDamaged { own: Offset(0), leaders: Offset(0) };
    assert_eq!(bench.replica.leader_is_damaged(Offset(0)), Some(both));
    assert_eq!(step(&mut bench, &view(&all)), RepairStep::Ask);
    answer(&mut bench, 10, leaders(&[10, 20]));
    assert_eq!(step(&mut bench, &view(&all)), RepairStep::Ask);
    assert_eq!(bench.replica.repair.damaged_from(), Some(Offset(0)));
    assert_eq!(bench.replica.partition.asks_again_from(), Some(Offset(0)), "the sweep begins");
    assert_eq!(bench.replica.leader_is_damaged(Offset(0)), None, "it was said");
    // Another leader has it.
    let epoch = LeaderEpoch(3);
    let Bench { replica, outbox, .. } = &mut bench;
    replica.partition.become_follower(epoch, &mut outbox.decisions);
    replica.partition.follow_high_watermark(Offset(30), &mut outbox.decisions);
    replica.following = Some((BrokerId(3), epoch));
    let all = Registration { leader_epoch: epoch, ..all };
    assert_eq!(step(&mut bench, &view(&all)), RepairStep::Refetch { from: Offset(0) });
    assert_eq!(step(&mut bench, &view(&all)), RepairStep::Wait);
    answer(&mut bench, 0, leaders(&[0]));
    let mended = Some((Offset(0), Offset(20)));
    assert_eq!(step(&mut bench, &view(&all)), RepairStep::Repaired { mended });
}

#[test]
fn nothing_is_given_up_before_the_leader_has_served_it() {
    let out = row(&[2, 3], &[]);
    // What the leader sends in place of the batch at offset 20.
    let mut rotten = batch(20, 10, None).to_vec();
    rotten[80] ^= 1;
    for bad in [Bytes::new(), rotten.into()] {
        let mut bench = damaged();
        step(&mut bench, &view(&out));
        assert_eq!(step(&mut bench, &view(&out)), RepairStep::Ask);
        answer(&mut bench, 10, batch(10, 9, None));
        let late = at(&out, 1_000_000);
        assert_eq!(step(&mut bench, &late), RepairStep::Wait, "the sweep begins where it asks");
        let news = answer(&mut bench, 10, [batch(10, 10, None), bad.clone()].concat().into());
        assert_eq!(news, None);
        assert_eq!(step(&mut bench, &late), RepairStep::Ask);
        let both = BothDamaged { own: Offset(10), leaders: Offset(20) };
        let news = match bad.is_empty() {
            true => bench.replica.leader_is_damaged(Offset(20)),
            false => answer(&mut bench, 20, bad.clone()),
        };
        assert_eq!(news, Some(both));
        for _ in 0..3 {
            assert_eq!(step(&mut bench, &late), RepairStep::Wait);
            assert_eq!(bench.replica.leader_is_damaged(Offset(20)), None);
        }
        answer(&mut bench, 20, leaders(&[20]));
        assert_eq!(step(&mut bench, &late), RepairStep::Ask, "back to where the damage is");
        try_again(&mut bench, &late, 10);
        assert!(matches!(step(&mut bench, &late), RepairStep::GiveUp { .. }));
    }
}

#[test]
fn damage_in_front_of_what_was_served_is_swept_too() {
    let (mut bench, out) = (damaged(), row(&[2, 3], &[]));
    step(&mut bench, &view(&out));
    serve_all(&mut bench, &view(&out));
    flip(&bench, 0, 70);
    assert_eq!(bench.replica.note_damage(Offset(4), true), Some(Offset(4)));
    let late = at(&out, 1_000_000);
    assert_eq!(step(&mut bench, &late), RepairStep::Ask);
    answer(&mut bench, 0, batch(0, 9, None));
    for _ in 0..3 {
        assert_eq!(step(&mut bench, &late), RepairStep::Wait, "the first segment was not served");
    }
    answer(&mut bench, 0, leaders(&[0, 10, 20]));
    try_again(&mut bench, &late, 0);
    let _ = step(&mut bench, &late);
    answer(&mut bench, 10, batch(10, 9, None));
    assert_eq!(step(&mut bench, &late), RepairStep::Ask, "back to the first");
    let to = Offset(0);
    let step = step(&mut bench, &late);
    assert_eq!(step, RepairStep::GiveUp { from: to, to, cut: Cut::StartAt(to) });
}

#[test]
fn sweep_stays_below_the_leaders_high_watermark() {
    let (mut bench, out) = (damaged(), row(&[2, 3], &[]));
    step(&mut bench, &view(&out));
    step(&mut bench, &view(&out));
    answer(&mut bench, 10, batch(10, 9, None));
    assert_eq!(step(&mut bench, &view(&out)), RepairStep::Wait);
    bench.replica.take_again(Offset(10), leaders(&[10]), Offset(20), &mut bench.files).unwrap();
    assert_eq!(step(&mut bench, &view(&out)), RepairStep::Wait);
    assert_eq!(bench.replica.partition.asks_again_from(), Some(Offset(10)), "it would catch up at 20");
    bench.replica.take_again(Offset(10), leaders(&[10]), Offset(21), &mut bench.files).unwrap();
    assert_eq!(step(&mut bench, &view(&out)), RepairStep::Ask);
    assert_eq!(bench.replica.partition.asks_again_from(), Some(Offset(20)));
}

#[test]
fn damage_that_is_not_there_is_repaired() {
    let mut bench = damaged();
    flip(&bench, 10, 100);
    let mended = None;
    assert_eq!(step(&mut bench, &view(&row(&[1, 2, 3], &[]))), RepairStep::Repaired { mended });
}

#[test]
fn data_is_given_up_only_out_of_isr_and_elr() {
    let table: [(&[i32], &[i32], bool); 3] =
        [(&[1, 2, 3], &[], false), (&[2, 3], &[1], false), (&[2, 3], &[], true)];
    for (isr, elr, gives_up) in table {
        let mut bench = damaged();
        let all = row(&[1, 2, 3], &[]);
        assert_eq!(step(&mut bench, &view(&all)), RepairStep::Refetch { from: Offset(10) });
        serve_all(&mut bench, &view(&all));
        let now = row(isr, elr);
        if gives_up {
            try_again(&mut bench, &view(&now), 10);
        }
        let step = step(&mut bench, &view(&now));
        let base = bench.replica.log.segment_base_of(Offset(13));
        let expected = if gives_up {
            RepairStep::GiveUp { from: Offset(10), to: base, cut: Cut::To(base) }
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
fn replica_that_was_not_in_sync_waits_for_the_lag_time() {
    let (mut bench, out) = (damaged(), row(&[2, 3], &[]));
    assert_eq!(step(&mut bench, &view(&out)), RepairStep::Refetch { from: Offset(13) });
    serve_all(&mut bench, &view(&out));
    assert_eq!(step(&mut bench, &at(&out, 30_099)), RepairStep::Wait);
    try_again(&mut bench, &at(&out, 30_100), 10);
    assert!(matches!(step(&mut bench, &at(&out, 30_100)), RepairStep::GiveUp { .. }));
}

#[test]
fn data_is_kept_until_the_image_is_known_to_be_new_enough() {
    let (all, out) = (row(&[1, 2, 3], &[]), row(&[2, 3], &[]));
    // Whether it was in sync, and by when the image must be known: the leader has seen it behind at 200.
    for (was_in_sync, needed) in [(true, 200), (false, 30_100)] {
        let mut bench = damaged();
        let first = if was_in_sync { &all } else { &out };
        assert!(matches!(step(&mut bench, &view(first)), RepairStep::Refetch { .. }));
        serve_all(&mut bench, &at(&out, 200));
        let unknown = RepairView { known_by: None, ..at(&out, 200) };
        assert_eq!(step(&mut bench, &unknown), RepairStep::Wait);
        let known = |ms: u64| RepairView { known_by: Some(MonotonicMs(ms)), ..at(&out, 1_000_000) };
        for old in [0, 100, needed - 1] {
            assert_eq!(step(&mut bench, &known(old)), RepairStep::Wait, "known by {old}");
        }
        try_again(&mut bench, &known(needed), 10);
        assert!(matches!(step(&mut bench, &known(needed)), RepairStep::GiveUp { .. }));
    }
}

#[test]
fn old_image_or_a_leader_without_an_answer_changes_nothing() {
    let (mut bench, row) = (damaged(), row(&[2, 3], &[]));
    let newer = Registration { leader_epoch: LeaderEpoch(3), ..row.clone() };
    assert_eq!(step(&mut bench, &view(&newer)), RepairStep::Wait);
    bench.replica.following = None;
    assert_eq!(step(&mut bench, &view(&row)), RepairStep::Wait);
    assert_eq!(bench.replica.partition.asks_again_from(), None);
}

#[test]
fn damage_that_was_deleted_is_repaired() {
    let (mut bench, row) = (damaged(), row(&[2, 3], &[]));
    let Bench { replica, outbox, .. } = &mut bench;
    replica.partition.advance_log_start(Offset(20), &mut outbox.decisions);
    assert_eq!(step(&mut bench, &view(&row)), RepairStep::Repaired { mended: None });
    bench.replica.forget_damage();
    assert_eq!(step(&mut bench, &view(&row)), RepairStep::Wait);
}

/// The scrub names the batch's base, which lies below the start (found by lab/sim).
#[test]
fn damaged_batch_that_holds_the_start_is_mended() {
    let (mut bench, row) = (damaged(), row(&[2, 3], &[]));
    bench.replica.forget_damage();
    let Bench { replica, outbox, .. } = &mut bench;
    replica.partition.advance_log_start(Offset(14), &mut outbox.decisions);
    bench.effects();
    assert!(bench.replica.log.advance_start(Offset(14)) || bench.replica.log.start() == Offset(14));
    bench.replica.log.forget_below(Offset(30));
    bench.replica.log.forget_sound();
    assert_eq!(bench.replica.note_damage(Offset(10), true), Some(Offset(14)));
    assert_eq!(step(&mut bench, &view(&row)), RepairStep::Refetch { from: Offset(14) });
    assert!(matches!(step(&mut bench, &view(&row)), RepairStep::Ask | RepairStep::Wait));
    assert_eq!(answer(&mut bench, 14, leaders(&[10])), None);
    let mended = Some((Offset(10), Offset(20)));
    assert_eq!(step(&mut bench, &view(&row)), RepairStep::Repaired { mended });
    let read = bench.replica.log.read(&mut bench.files, Offset(14), 1, Offset(30), true).unwrap();
    assert_eq!(read.records, batch(10, 10, None));
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
    assert_eq!(step(&mut bench, &view(&all)), RepairStep::Wait);
    assert!(matches!(step(&mut bench, &view(&out)), RepairStep::Refetch { .. }));
    let position = bench.replica.partition.fetch_position(bench.replica.log.epochs()).unwrap();
    assert!(position.offset < Offset(14), "{position:?}");
}

#[test]
fn replica_that_is_needed_fetches_on() {
    // ISR and ELR: one of two in sync, and one that may be elected.
    for (isr, elr) in [(&[1, 2][..], &[][..]), (&[2], &[1, 3])] {
        let (mut bench, out, needed) = (damaged(), row(&[2, 3], &[]), row(isr, elr));
        assert!(matches!(step(&mut bench, &view(&out)), RepairStep::Refetch { .. }));
        serve_all(&mut bench, &view(&out));
        assert_eq!(step(&mut bench, &at(&needed, 40_000)), RepairStep::FetchOn, "isr={isr:?} elr={elr:?}");
        let position = bench.replica.partition.fetch_position(bench.replica.log.epochs()).unwrap();
        assert_eq!(position.offset, Offset(30), "it may come into the ISR");
        let from = Offset(10);
        assert_eq!(step(&mut bench, &at(&needed, 40_000)), RepairStep::FetchAside { from });
        // It is needed no more, and begins from the start.
        let late = at(&out, 50_000);
        assert_eq!(step(&mut bench, &late), RepairStep::Refetch { from: Offset(10) });
        assert_eq!(step(&mut bench, &late), RepairStep::Wait, "this leader has yet to see it behind");
    }
}

/// Rows in which the cluster needs the replica: one of two in sync, and one that may be elected.
const NEEDED: [(&[i32], &[i32]); 2] = [(&[1, 2], &[]), (&[2], &[1, 3])];

fn take_aside(bench: &mut Bench, from: i64, records: Bytes) -> Option<BothDamaged> {
    let asked = bench.replica.aside_position(Offset(from)).expect("it was asked for");
    assert_eq!((asked.offset, asked.leader_epoch), (Offset(from), EPOCH));
    bench.replica.take_aside(&asked, records, &mut bench.files).unwrap()
}

/// The bytes of a segment, as they lie on the disk.
fn file(bench: &Bench, segment: i64) -> Vec<u8> {
    let path = std::path::Path::new(ROOT).join(format!("orders-0/{segment:020}.log"));
    let mut file = Vec::new();
    bench.disk.corrupt(&path, |bytes| file.extend_from_slice(bytes));
    file
}

fn fetches_from(bench: &Bench) -> Offset {
    bench.replica.partition.fetch_position(bench.replica.log.epochs()).unwrap().offset
}

#[test]
fn needed_replica_is_mended_and_fetches_from_its_end() {
    for (isr, elr) in NEEDED {
        let (mut bench, needed) = (damaged(), row(isr, elr));
        let from = Offset(10);
        assert_eq!(step(&mut bench, &view(&needed)), RepairStep::FetchAside { from }, "isr={isr:?}");
        assert_eq!(fetches_from(&bench), Offset(30));
        assert_eq!(take_aside(&mut bench, 10, leaders(&[10, 20])), None);
        let mended = Some((Offset(10), Offset(20)));
        assert_eq!(step(&mut bench, &view(&needed)), RepairStep::Repaired { mended }, "isr={isr:?}");
        assert_eq!(fetches_from(&bench), Offset(30));
        assert_eq!(file(&bench, 10), batch(10, 10, None));
    }
}

/// What was mended counts once the batches of the round are written: until then the repair is not over (lab/sim,
/// climate aside, seed 70).
#[test]
fn repair_that_waits_for_a_round_is_not_forgotten() {
    let (mut bench, needed) = (damaged(), row(&[1, 2], &[]));
    assert_eq!(step(&mut bench, &view(&needed)), RepairStep::FetchAside { from: Offset(10) });
    let more = batch_of_epoch(30, 2, 2);
    bench.step(|replica, around| replica.apply_fetched(more, |_| true, around)).unwrap();
    assert_eq!(take_aside(&mut bench, 10, leaders(&[10])), None);
    for _ in 0..2 {
        assert_eq!(step(&mut bench, &view(&needed)), RepairStep::Wait);
        assert!(bench.replica.repair.is_under_way());
    }
    bench.finish_round();
    bench.durable();
    let mended = Some((Offset(10), Offset(20)));
    assert_eq!(step(&mut bench, &view(&needed)), RepairStep::Repaired { mended });
}

#[cfg(planted)]
#[test]
fn planted_forgotten_repair_is_noticed() {
    let test = repair_that_waits_for_a_round_is_not_forgotten;
    let passed = std::panic::catch_unwind(|| barnabas_base::planted::with("ForgetsTheMended", test));
    assert!(passed.is_err(), "it is not noticed");
}

#[test]
fn answer_aside_counts_only_for_what_was_asked() {
    let (mut bench, needed) = (damaged(), row(&[1, 2], &[]));
    assert_eq!(bench.replica.aside_position(Offset(10)), None, "nothing was asked");
    assert_eq!(step(&mut bench, &view(&needed)), RepairStep::FetchAside { from: Offset(10) });
    let asked = bench.replica.aside_position(Offset(10)).unwrap();
    let elsewhere = FetchPosition { offset: Offset(20), ..asked };
    let before = FetchPosition { leader_epoch: LeaderEpoch(1), ..asked };
    for wrong in [elsewhere, before] {
        assert_eq!(bench.replica.leader_is_damaged_aside(&wrong), None);
        let taken = bench.replica.take_aside(&wrong, leaders(&[10]), &mut bench.files);
        assert_eq!(taken.unwrap(), None);
        assert_eq!(step(&mut bench, &view(&needed)), RepairStep::FetchAside { from: Offset(10) });
    }
    // It leads itself meanwhile.
    bench.replica.following = None;
    assert_eq!(bench.replica.take_aside(&asked, leaders(&[10]), &mut bench.files).unwrap(), None);
    assert_ne!(file(&bench, 10), batch(10, 10, None));
}

#[test]
fn needed_replica_with_a_damaged_leader_asks_again_later() {
    let (mut bench, needed) = (damaged(), row(&[1, 2], &[]));
    assert_eq!(step(&mut bench, &view(&needed)), RepairStep::FetchAside { from: Offset(10) });
    let asked = bench.replica.aside_position(Offset(10)).unwrap();
    let both = BothDamaged { own: Offset(10), leaders: Offset(10) };
    assert_eq!(bench.replica.leader_is_damaged_aside(&asked), Some(both));
    let from = Offset(10);
    for turn in 0..3 {
        let at_ms = 100 + turn * LOOK_AGAIN.0 as u64;
        assert_eq!(step(&mut bench, &at(&needed, at_ms)), RepairStep::Wait, "it was tried");
        let later = at(&needed, at_ms + LOOK_AGAIN.0 as u64);
        assert_eq!(step(&mut bench, &later), RepairStep::FetchAside { from });
        assert_eq!(bench.replica.leader_is_damaged_aside(&asked), None, "it was said");
    }
    // Batches that do not fit change nothing, whole ones everything.
    let late = at(&needed, 1_000_000);
    assert_eq!(step(&mut bench, &late), RepairStep::FetchAside { from });
    assert_eq!(take_aside(&mut bench, 10, batch(10, 9, None)), None);
    assert_eq!(step(&mut bench, &late), RepairStep::Wait);
    let later = at(&needed, 2_000_000);
    assert_eq!(step(&mut bench, &later), RepairStep::FetchAside { from });
    assert_eq!(take_aside(&mut bench, 10, leaders(&[10])), None);
    let mended = Some((Offset(10), Offset(20)));
    assert_eq!(step(&mut bench, &later), RepairStep::Repaired { mended });
}

#[test]
fn another_leader_is_asked_aside_at_once() {
    let (mut bench, needed) = (damaged(), row(&[1, 2], &[]));
    step(&mut bench, &view(&needed));
    let asked = bench.replica.aside_position(Offset(10)).unwrap();
    bench.replica.leader_is_damaged_aside(&asked);
    assert_eq!(step(&mut bench, &view(&needed)), RepairStep::Wait);
    let epoch = LeaderEpoch(3);
    let Bench { replica, outbox, .. } = &mut bench;
    replica.partition.become_follower(epoch, &mut outbox.decisions);
    replica.following = Some((BrokerId(3), epoch));
    let needed = Registration { leader_epoch: epoch, ..row(&[1, 3], &[]) };
    assert_eq!(step(&mut bench, &view(&needed)), RepairStep::Wait, "they may part");
    bench.replica.partition.follow_high_watermark(Offset(30), &mut bench.outbox.decisions);
    assert_eq!(step(&mut bench, &view(&needed)), RepairStep::FetchAside { from: Offset(10) });
    let taken = bench.replica.take_aside(&asked, leaders(&[10]), &mut bench.files);
    assert_eq!(taken.unwrap(), None, "the former leader's answer");
    assert_eq!(step(&mut bench, &view(&needed)), RepairStep::FetchAside { from: Offset(10) });
}

/// An operator copies the sound file back while the replica waits.
#[test]
fn restored_bytes_are_noticed_and_kept() {
    // The leader is damaged, and the replica is out of sync or needed.
    for needed in [row(&[2, 3], &[]), row(&[1, 2], &[])] {
        let mut bench = damaged();
        match step(&mut bench, &view(&needed)) {
            RepairStep::FetchAside { from } => {
                let asked = bench.replica.aside_position(from).unwrap();
                bench.replica.leader_is_damaged_aside(&asked);
            }
            _ => {
                step(&mut bench, &view(&needed));
                bench.replica.leader_is_damaged(Offset(10));
            }
        }
        step(&mut bench, &view(&needed));
        flip(&bench, 10, 100);
        assert_eq!(step(&mut bench, &view(&needed)), RepairStep::Wait, "it is not looked at each time");
        let later = at(&needed, 100 + LOOK_AGAIN.0 as u64);
        assert_eq!(step(&mut bench, &later), RepairStep::Repaired { mended: None });
    }
}

#[test]
fn restored_segments_are_not_given_up_though_the_leader_served_them() {
    let (mut bench, out) = (damaged(), row(&[2, 3], &[]));
    step(&mut bench, &view(&out));
    serve_all(&mut bench, &view(&out));
    flip(&bench, 10, 100);
    assert_eq!(step(&mut bench, &at(&out, 30_100)), RepairStep::Repaired { mended: None });
}

#[test]
fn segments_that_do_not_fit_are_all_remembered_for_the_next_leader() {
    let (mut bench, out) = (damaged(), row(&[2, 3], &[]));
    flip(&bench, 0, 70);
    bench.replica.note_damage(Offset(4), true);
    step(&mut bench, &view(&out));
    step(&mut bench, &view(&out));
    answer(&mut bench, 0, batch(0, 9, None));
    step(&mut bench, &view(&out));
    answer(&mut bench, 10, batch(10, 9, None));
    step(&mut bench, &view(&out));
    let epoch = LeaderEpoch(3);
    let Bench { replica, outbox, .. } = &mut bench;
    replica.partition.become_follower(epoch, &mut outbox.decisions);
    replica.following = Some((BrokerId(3), epoch));
    let out = Registration { leader_epoch: epoch, ..out };
    step(&mut bench, &view(&out));
    step(&mut bench, &view(&out));
    answer(&mut bench, 0, leaders(&[0]));
    assert_eq!(step(&mut bench, &view(&out)), RepairStep::Ask, "the second is damaged still");
    answer(&mut bench, 10, leaders(&[10]));
    let mended = Some((Offset(0), Offset(20)));
    // What was mended is read again once the leader has answered.
    assert_eq!(step(&mut bench, &view(&out)), RepairStep::Repaired { mended });
}
