//! Finding records by time.

use super::*;

#[test]
fn the_first_record_with_at_least_that_time_is_found() {
    let mut bench = Bench::new(small_segments());
    // Timestamps that go up and down, three records to a batch.
    let mut records = Vec::new();
    let mut time = 5000i64;
    for at in 0..60i64 {
        time += [300, -200, 10, 500, -100][at as usize % 5];
        let base = bench.log.end().get();
        records.extend((0..3).map(|record| (base + record, time + record)));
        bench.append(batch(base, 3, 20, time, 4)).unwrap();
    }
    let check = |bench: &mut Bench| {
        let first = bench.log.start().get();
        let visible = || records.iter().filter(|(offset, _)| *offset >= first);
        for wanted in (4000..time + 1000).step_by(37) {
            let expected = visible().find(|(_, time)| *time >= wanted);
            let found = bench
                .log
                .offset_for_timestamp(&mut bench.files, TimestampMs(wanted), bench.log.start())
                .unwrap();
            assert_eq!(found.map(|found| (found.offset.get(), found.timestamp.0)), expected.copied());
            assert!(found.is_none_or(|found| found.leader_epoch == LeaderEpoch(4)));
        }
        let newest = visible().map(|(_, time)| *time).max().unwrap();
        let expected = visible().find(|(_, time)| *time == newest).copied();
        let found = bench.log.offset_of_max_timestamp(&mut bench.files).unwrap();
        assert_eq!(found.map(|found| (found.offset.get(), found.timestamp.0)), expected);
    };
    check(&mut bench);
    bench.log.advance_start(Offset(40));
    check(&mut bench);
    bench.stop().unwrap();
    bench.reopen().unwrap();
    check(&mut bench);
}

#[test]
fn an_empty_log_has_no_times() {
    let mut bench = Bench::new(small_segments());
    for _ in 0..2 {
        assert_eq!(bench.log.offset_of_max_timestamp(&mut bench.files).unwrap(), None);
        let found = bench.log.offset_for_timestamp(&mut bench.files, TimestampMs(0), Offset(0));
        assert_eq!(found.unwrap(), None);
        bench.fill(1, 10);
        bench.log.truncate_to(&mut bench.files, Offset(0), NOW).unwrap();
    }
}

/// The start may leave the batch behind that holds its segment's largest time (lab/sim, seed 428).
#[test]
fn largest_time_is_that_of_a_record_that_is_left() {
    let mut bench = Bench::new(small_segments());
    for (base, time) in [(0, 5000), (3, 4000), (6, 4500)] {
        bench.append(batch(base, 3, 20, time, 4)).unwrap();
    }
    let check = |bench: &mut Bench, start: i64, expected: Option<(i64, i64)>| {
        bench.log.advance_start(Offset(start));
        let found = bench.log.offset_of_max_timestamp(&mut bench.files).unwrap();
        assert_eq!(found.map(|found| (found.offset.get(), found.timestamp.0)), expected, "from {start}");
    };
    check(&mut bench, 0, Some((2, 5002)));
    check(&mut bench, 1, Some((2, 5002)));
    check(&mut bench, 3, Some((8, 4502)));
    bench.stop().unwrap();
    bench.reopen().unwrap();
    check(&mut bench, 4, Some((8, 4502)));
    check(&mut bench, 9, None);
}
