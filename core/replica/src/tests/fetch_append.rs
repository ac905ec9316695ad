//! What of a leader's answer a follower appends.

use barnabas_base::{BrokerId, LeaderEpoch, Offset};
use bytes::Bytes;

use super::Bench;
use super::bench::{batch, batch_of_epoch};
use crate::{Effect, Misfit, NotApplied};

const EPOCH: LeaderEpoch = LeaderEpoch(1);

fn follower() -> Bench {
    let mut bench = Bench::new();
    bench.replica.partition.become_follower(EPOCH, &mut bench.outbox.decisions);
    bench.replica.following = Some((BrokerId(2), EPOCH));
    bench.effects();
    bench
}

fn joined(batches: &[Bytes]) -> Bytes {
    batches.concat().into()
}

fn apply(bench: &mut Bench, records: Bytes) -> Result<(), NotApplied> {
    bench.step(|replica, around| replica.apply_fetched(records, |_| true, around))
}

#[test]
fn batches_join_the_round_and_what_is_there_is_skipped() {
    let mut bench = follower();
    assert_eq!(apply(&mut bench, joined(&[batch(0, 2, None), batch(2, 3, None)])), Ok(()));
    assert_eq!(bench.replica.partition.log_end(), Offset(5));
    assert_eq!(apply(&mut bench, joined(&[batch(2, 3, None), batch(5, 1, None)])), Ok(()));
    assert_eq!((bench.replica.partition.log_end(), bench.replica.round.batches.len()), (Offset(6), 3));
    bench.finish_round();
    assert_eq!(bench.journal(), ["records 0..6"]);
}

#[test]
fn gap_that_compaction_left_is_kept() {
    let mut bench = follower();
    assert_eq!(apply(&mut bench, joined(&[batch(0, 2, None), batch(7, 1, None)])), Ok(()));
    assert_eq!(bench.replica.partition.log_end(), Offset(8));
}

#[test]
fn damaged_batch_is_named_and_what_came_before_is_kept() {
    let mut bench = follower();
    let mut bytes = joined(&[batch(0, 2, None), batch(2, 3, None)]).to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    let applied = apply(&mut bench, bytes.into());
    assert!(matches!(applied, Err(NotApplied::Damaged { at: Offset(2), .. })), "{applied:?}");
    assert_eq!(bench.replica.partition.log_end(), Offset(2));
}

#[test]
fn batch_that_does_not_fit_is_refused_for_good() {
    let mut bench = follower();
    apply(&mut bench, batch(0, 4, None)).unwrap();
    // It begins inside of what is here, and ends behind it.
    let inside = apply(&mut bench, batch(2, 5, None));
    assert_eq!(inside, Err(NotApplied::Never(Misfit::NoSuccessor)));
    let large = apply(&mut bench, batch(4, 40, None));
    assert_eq!(large, Err(NotApplied::Never(Misfit::LargerThanASegment)));
    assert_eq!(bench.replica.partition.log_end(), Offset(4));
}

#[test]
fn batch_of_a_newer_epoch_waits_for_the_image() {
    let mut bench = follower();
    let records = joined(&[batch_of_epoch(0, 2, 1), batch_of_epoch(2, 2, 2), batch_of_epoch(4, 2, 2)]);
    assert_eq!(apply(&mut bench, records), Ok(()));
    assert_eq!(bench.replica.partition.log_end(), Offset(2));
}

#[test]
fn batch_without_room_comes_later() {
    let mut bench = follower();
    let records = joined(&[batch(0, 2, None), batch(2, 3, None)]);
    let mut left = 1;
    let applied = bench.step(|replica, around| {
        let admit = |_| {
            left -= 1;
            left >= 0
        };
        replica.apply_fetched(records, admit, around)
    });
    assert_eq!(applied, Err(NotApplied::Later));
    assert_eq!(bench.replica.partition.log_end(), Offset(2));
}

#[test]
fn segment_that_cannot_be_closed_gives_the_room_back() {
    let mut bench = follower();
    bench.durability.acks_are_synced = false;
    apply(&mut bench, batch(0, 12, None)).unwrap();
    bench.finish_round();
    apply(&mut bench, batch(12, 2, None)).unwrap();
    bench.effects();
    bench.disk.set_capacity(0);
    let last = batch(14, 12, None);
    let bytes = last.len() as u64;
    assert_eq!(apply(&mut bench, last), Err(NotApplied::Later));
    assert!(bench.effects().contains(&Effect::Released(bytes)));
    assert!(bench.replica.partition.is_failed());
}

#[test]
fn leaders_start_counts_below_the_high_watermark_and_in_segments() {
    let mut bench = follower();
    apply(&mut bench, joined(&[batch(0, 5, None), batch(5, 5, None)])).unwrap();
    bench.finish_round();
    bench.step(|replica, around| replica.apply_marks(Offset(10), Offset(5), around));
    assert_eq!(bench.replica.partition.log_start(), Offset(0), "nothing is durable here yet");
    bench.step(|replica, around| replica.journal_durable(Offset(10), around.outbox));
    bench.step(|replica, around| replica.follow_start(around));
    let replica = &bench.replica;
    assert_eq!((replica.partition.log_start(), replica.log.start()), (Offset(5), Offset(5)));
    assert!(replica.log.segment_end() >= Offset(5), "the start never lies in memory alone");
}

/// What lies below may be of another epoch than the leader's was.
#[test]
fn leaders_start_counts_on_a_full_disk() {
    let mut bench = follower();
    for base in [0, 5] {
        apply(&mut bench, batch(base, 5, None)).unwrap();
        bench.finish_round();
    }
    bench.step(|replica, around| replica.journal_durable(Offset(10), around.outbox));
    bench.disk.set_capacity(0);
    bench.step(|replica, around| replica.apply_marks(Offset(10), Offset(7), around));
    let replica = &bench.replica;
    assert_eq!((replica.partition.log_start(), replica.log.start()), (Offset(7), Offset(7)));
    assert_eq!((replica.log.segment_end(), replica.log.end()), (Offset(0), Offset(10)));
    bench.disk.set_capacity(1 << 30);
    bench.write_back().unwrap();
    assert_eq!((bench.replica.log.start(), bench.replica.log.segment_end()), (Offset(7), Offset(10)));
}
