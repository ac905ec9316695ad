//! When the journal's orders are answered, and when unsynced bytes are synced.

use std::sync::Arc;

use barnabas_base::{DurationMs, MonotonicMs, Offset};
use barnabas_partition::Acks;

use super::Bench;
use crate::{Durability, Effect, FlushStep};

fn staged(batches: i32) -> Bench {
    let mut bench = Bench::leader();
    for _ in 0..batches {
        bench.place(2, Acks::All, 1).unwrap();
        bench.finish_round();
    }
    bench.effects();
    bench
}

fn order(bench: &mut Bench, end: i64) -> u64 {
    let name = Arc::clone(&bench.replica.name);
    bench.step(|replica, around| replica.write_back_as_ordered(name, Offset(end), around)).unwrap()
}

fn is_done(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::WriteBackDone(_)))
}

#[test]
fn order_is_answered_once_and_after_the_sync() {
    let mut bench = staged(3);
    let bytes = order(&mut bench, 4);
    let effects = bench.effects();
    assert!(bytes > 0 && effects.contains(&Effect::WroteBack { end: Offset(4), bytes }));
    assert!(effects.contains(&Effect::Sync) && !is_done(&effects));
    assert_eq!(bench.replica.log.segment_end(), Offset(4), "whole batches up to the order's end");
    bench.sync();
    assert!(is_done(&bench.effects()));
    bench.place(2, Acks::All, 1).unwrap();
    bench.finish_round();
    order(&mut bench, 2);
    assert!(is_done(&bench.effects()), "what is synced already is answered at once");
    bench.step(|replica, around| replica.settle_write_back(around.outbox));
    assert!(!is_done(&bench.effects()));
}

#[test]
fn order_beyond_the_log_ends_with_it() {
    let mut bench = staged(1);
    order(&mut bench, 100);
    bench.sync();
    assert!(is_done(&bench.effects()));
}

#[test]
fn order_on_a_full_disk_changes_nothing() {
    let mut bench = staged(2);
    bench.disk.set_capacity(0);
    let name = Arc::clone(&bench.replica.name);
    let refused = bench.step(|replica, around| replica.write_back_as_ordered(name, Offset(4), around));
    assert!(refused.unwrap_err().is_passing());
    assert!(matches!(&bench.effects()[..], [Effect::NoRoom(_)]));
    assert!(bench.replica.journal.write_back.is_none());
    assert_eq!(bench.replica.log.end(), Offset(4));
    bench.disk.set_capacity(1 << 30);
    order(&mut bench, 4);
    bench.sync();
    assert!(is_done(&bench.effects()));
}

#[test]
fn bytes_that_no_producer_waits_for_are_synced_in_time() {
    let table = [(0, FlushStep::Later), (499, FlushStep::Later), (500, FlushStep::Sync)];
    for (after, step) in table {
        let mut bench = Bench::leader();
        assert_eq!(bench.replica.flush_step(MonotonicMs(1)), FlushStep::Nothing);
        bench.durability = Durability { acks_are_synced: false, journal_append_bytes_max: 500 };
        bench.replica.flush.after = DurationMs(500);
        bench.place(2, Acks::Leader, 1).unwrap();
        bench.finish_round();
        assert_eq!(bench.replica.flush_step(MonotonicMs(1 + after)), step, "after {after} ms");
        bench.sync();
        assert_eq!(bench.replica.flush_step(MonotonicMs(1 + after)), FlushStep::Nothing);
    }
    // `flush.ms` is endless by default; ten seconds are ours.
    let mut bench = Bench::leader();
    bench.durability = Durability { acks_are_synced: false, journal_append_bytes_max: 500 };
    bench.place(2, Acks::Leader, 1).unwrap();
    bench.finish_round();
    assert_eq!(bench.replica.flush_step(MonotonicMs(10_000)), FlushStep::Later);
    assert_eq!(bench.replica.flush_step(MonotonicMs(10_001)), FlushStep::Sync);
}

#[test]
fn follower_goes_on_when_its_records_are_durable() {
    let mut bench = staged(1);
    let Bench { replica, outbox, .. } = &mut bench;
    replica.journal_durable(Offset(2), outbox);
    assert!(!bench.effects().contains(&Effect::FollowOn), "it leads");
    let mut bench = staged(1);
    let Bench { replica, outbox, .. } = &mut bench;
    replica.partition.become_follower(barnabas_base::LeaderEpoch(2), &mut outbox.decisions);
    replica.following = Some((barnabas_base::BrokerId(2), barnabas_base::LeaderEpoch(2)));
    replica.want_truncation(barnabas_partition::Cut::To(Offset(1)), false, true);
    replica.journal_durable(Offset(2), outbox);
    assert!(replica.may_truncate(), "its note was in that round");
    assert!(bench.effects().contains(&Effect::FollowOn));
}
