//! Bounds, times, ends of epochs and deletions, from memory and from segments alike.

use barnabas_base::{LeaderEpoch, Offset, TimestampMs};
use barnabas_partition::{Acks, Isolation, Refusal};

use super::Bench;
use super::bench::NOW;
use crate::{Effect, QueryError, Search};

/// Records 0 to 5 in segments, 5 to 8 in memory; all durable.
fn leader() -> Bench {
    let mut bench = Bench::leader();
    bench.append(5, None, Acks::Leader, 1);
    bench.write_back().unwrap();
    bench.append(3, None, Acks::Leader, 2);
    bench.durable();
    bench.effects();
    bench
}

#[test]
fn list_bounds_are_what_a_client_may_read() {
    let bench = leader();
    let bounds = bench.replica.list_bounds(Isolation::ReadUncommitted, Some(LeaderEpoch(1)), false).unwrap();
    assert_eq!((bounds.log_start, bounds.readable_end), (Offset(0), Offset(8)));
    assert_eq!((bounds.leader_epoch, bounds.log_start_epoch), (LeaderEpoch(1), Some(LeaderEpoch(1))));
    assert!(!bounds.high_watermark_lags);
    let unknown = bench.replica.list_bounds(Isolation::ReadUncommitted, Some(LeaderEpoch(9)), false);
    assert!(matches!(unknown, Err(Refusal::UnknownEpoch { .. })), "{unknown:?}");
}

#[test]
fn follower_answers_bounds_to_a_debugger_only() {
    let mut bench = leader();
    bench.replica.partition.become_follower(LeaderEpoch(2), &mut bench.outbox.decisions);
    let list = |from_any| bench.replica.list_bounds(Isolation::LogEnd, None, from_any);
    assert_eq!(list(false), Err(Refusal::NotLeader));
    assert_eq!(list(true).unwrap().readable_end, Offset(8));
}

#[test]
fn time_is_found_in_segments_and_in_memory() {
    let Bench { mut replica, mut files, .. } = leader();
    let mut at = |offset| replica.time_at(Offset(offset), &mut files).unwrap();
    assert_eq!([at(0), at(4), at(6)], [Some(NOW); 3], "of the batch's first record");
    assert_eq!(at(8), None);
    let found = replica.timed_batch(Search::ByTime(TimestampMs(NOW.0 + 3), Offset(0)), &mut files).unwrap();
    let found = found.unwrap().look(usize::MAX).unwrap().unwrap();
    assert_eq!((found.offset, found.timestamp), (Offset(3), TimestampMs(NOW.0 + 3)));
    assert!(replica.timed_batch(Search::Nothing, &mut files).unwrap().is_none());
    let later = replica.timed_batch(Search::ByTime(TimestampMs(NOW.0 + 5), Offset(0)), &mut files).unwrap();
    assert!(later.is_none());
}

#[test]
fn end_of_an_epoch_is_the_log_end_or_where_the_next_began() {
    let mut bench = leader();
    bench.replica.log.assign_epoch(LeaderEpoch(4), Offset(8));
    let end = |epoch| bench.replica.epoch_end(LeaderEpoch(epoch), Some(LeaderEpoch(1)));
    assert_eq!(end(1), Ok((LeaderEpoch(1), Offset(8))));
    assert_eq!(end(3), Ok((LeaderEpoch(1), Offset(8))));
    assert_eq!(end(4), Ok((LeaderEpoch(4), Offset(8))));
    assert!(bench.replica.epoch_end(LeaderEpoch(1), Some(LeaderEpoch(0))).is_err());
}

#[test]
fn deleted_records_are_written_back_first() {
    let mut bench = leader();
    let start = bench.step(|replica, around| replica.delete_records(Some(Offset(6)), around)).unwrap();
    assert_eq!(start, Offset(6));
    assert!(bench.effects().iter().any(|effect| matches!(effect, Effect::WroteBack { end: Offset(8), .. })));
    assert_eq!((bench.replica.log.start(), bench.replica.log.segment_end()), (Offset(6), Offset(8)));
    assert!(bench.replica.upkeep.is_changed);
    let beyond = bench.step(|replica, around| replica.delete_records(Some(Offset(9)), around));
    assert!(matches!(beyond, Err(QueryError::Refused(_))), "{beyond:?}");
    assert_eq!(bench.replica.log.start(), Offset(6));
}
