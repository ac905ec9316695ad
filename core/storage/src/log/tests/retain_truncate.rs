//! Giving records up, from either end.

use super::*;
use barnabas_base::DurationMs;

#[test]
fn truncation_leaves_what_lies_below() {
    for target in 0..60 {
        let mut bench = Bench::new(small_segments());
        bench.fill(60, 40);
        let before = bench.read_all(1000).unwrap();
        bench.sync().unwrap();
        let (dropped, delete) = bench.log.truncate_to(&mut bench.files, Offset(target), NOW).unwrap();
        assert!(dropped);
        assert_eq!(bench.log.end(), Offset(target));
        assert_eq!(bench.log.recovery_point(), Offset(target));
        assert_eq!(bench.read_all(1000).unwrap(), before[..target as usize]);
        for path in delete.into_iter().flat_map(|delete| delete.files) {
            bench.files.disk().remove_file(&path).unwrap();
        }
        bench.fill(10, 50);
        assert_eq!(bench.read_all(300).unwrap()[..target as usize], before[..target as usize]);
        bench.sync().unwrap();
        bench.checkpoint().unwrap();
        bench.stop().unwrap();
        assert_eq!(bench.reopen().unwrap(), Opened::default());
        assert_eq!(bench.read_all(300).unwrap().len(), target as usize + 10);
    }
}

#[test]
fn a_sync_from_before_a_truncation_counts_for_nothing() {
    let mut bench = Bench::new(small_segments());
    bench.fill(5, 10);
    let dirty = bench.log.take_dirty().unwrap();
    bench.log.truncate_to(&mut bench.files, Offset(2), NOW).unwrap();
    bench.append(batch(2, 3, 10, 0, 1)).unwrap();
    assert_eq!(bench.log.mark_synced(dirty.ticket), Offset(0));
    assert_eq!(bench.sync().unwrap(), Offset(5));
}

#[test]
fn log_restarts_at_any_offset() {
    let mut bench = Bench::new(small_segments());
    bench.fill(30, 40);
    bench.sync().unwrap();
    let delete = bench.log.truncate_fully_and_start_at(&mut bench.files, Offset(100), NOW).unwrap();
    assert!(!delete.unwrap().files.is_empty());
    assert_eq!((bench.log.start(), bench.log.end()), (Offset(100), Offset(100)));
    bench.fill(2, 10);
    bench.sync().unwrap();
    bench.checkpoint().unwrap();
    bench.reopen().unwrap();
    assert_eq!((bench.log.start(), bench.log.end()), (Offset(100), Offset(102)));
    assert!(!bench.names().iter().any(|name| name.ends_with(".deleted")));
}

/// A log of sixty batches with an unwritten leader epoch, on a disk with `room` bytes left.
fn nearly_full(room: u64) -> Bench {
    let mut bench = Bench::new(small_segments());
    bench.fill(60, 40);
    bench.sync().unwrap();
    bench.append(batch(60, 1, 10, 0, 9)).unwrap();
    let space = bench.dir.space().unwrap();
    bench.disk.set_capacity(space.total - space.free + room);
    bench
}

#[test]
fn truncation_on_a_full_disk_goes_on_once_there_is_room() {
    let mut delayed = 0;
    for (room, target) in (0..300).step_by(10).flat_map(|room| [7, 31, 58].map(|target| (room, target))) {
        let mut bench = nearly_full(room);
        let before = bench.read_all(1000).unwrap();
        let tried = bench.log.truncate_to(&mut bench.files, Offset(target), NOW);
        bench.disk.set_capacity(1 << 30);
        if let Err(error) = tried {
            assert!(error.is_passing(), "{error}");
            delayed += 1;
            bench.log.truncate_to(&mut bench.files, Offset(target), NOW).unwrap();
        }
        assert_eq!(bench.log.end(), Offset(target));
        bench.fill(3, 40);
        bench.sync().unwrap();
        bench.checkpoint().unwrap();
        bench.stop().unwrap();
        bench.reopen().unwrap();
        let after = bench.read_all(1000).unwrap();
        assert_eq!(after.len(), target as usize + 3, "room {room}, target {target}");
        assert_eq!(after[..target as usize], before[..target as usize]);
    }
    assert!(delayed > 0);
}

#[test]
fn log_that_restarts_on_a_full_disk_goes_on_once_there_is_room() {
    let mut delayed = 0;
    for room in 0..300 {
        let mut bench = nearly_full(room);
        let tried = bench.log.truncate_fully_and_start_at(&mut bench.files, Offset(100), NOW);
        bench.disk.set_capacity(1 << 30);
        if let Err(error) = tried {
            assert!(error.is_passing(), "{error}");
            delayed += 1;
            bench.log.truncate_fully_and_start_at(&mut bench.files, Offset(100), NOW).unwrap();
        }
        bench.fill(2, 10);
        bench.sync().unwrap();
        bench.checkpoint().unwrap();
        bench.stop().unwrap();
        bench.reopen().unwrap();
        assert_eq!((bench.log.start(), bench.log.end()), (Offset(100), Offset(102)));
    }
    // Where it begins is written with the directory's checkpoints; what goes needs no room.
    assert_eq!(delayed, 0);
}

#[test]
fn retention_by_size_keeps_at_least_what_was_asked_for() {
    let mut bench = Bench::new(LogConfig { retention_bytes: 2500, ..small_segments() });
    bench.fill(60, 40);
    assert_eq!(bench.log.delete_old_segments(&mut bench.files, NOW, Offset(60)).unwrap(), None, "unsynced");
    bench.sync().unwrap();
    let size = bench.log.size_bytes();
    let segments = bench.log.segment_count();
    let delete = bench.log.delete_old_segments(&mut bench.files, NOW, Offset(60)).unwrap().unwrap();
    assert!(bench.log.size_bytes() >= 2500 && bench.log.size_bytes() < 3500, "{}", bench.log.size_bytes());
    assert!(bench.log.size_bytes() < size && bench.log.segment_count() < segments);
    assert_eq!(bench.log.start(), bench.log.first_segment_base());
    assert_eq!(delete.due, NOW.plus(DurationMs(60_000)));
    assert!(delete.files.iter().all(|path| bench.files.disk().stat(path).unwrap().is_some()));
    assert_eq!(bench.log.delete_old_segments(&mut bench.files, NOW, Offset(60)).unwrap(), None);
    assert_eq!(bench.read_all(500).unwrap().len() as i64, 60 - bench.log.start().get());
}

#[test]
fn retention_by_time_goes_by_records_and_never_past_the_high_watermark() {
    let mut bench =
        Bench::new(LogConfig { retention_ms: DurationMs(100), retention_bytes: -1, ..small_segments() });
    bench.fill(60, 40); // at 1000 to 1059
    bench.sync().unwrap();
    let now = TimestampMs(1130);
    bench.log.delete_old_segments(&mut bench.files, now, Offset(12)).unwrap();
    assert!(bench.log.start() > Offset(0) && bench.log.start() <= Offset(12), "{}", bench.log.start());
    bench.log.delete_old_segments(&mut bench.files, now, Offset(60)).unwrap();
    let start = bench.log.start();
    assert!(start > Offset(12) && start <= Offset(30), "{start}");
    // When all of it is old, the active segment goes too, and an empty one says where the log ends.
    bench.log.delete_old_segments(&mut bench.files, NOW, Offset(60)).unwrap();
    assert_eq!((bench.log.start(), bench.log.end(), bench.log.size_bytes()), (Offset(60), Offset(60), 0));
    bench.stop().unwrap();
    bench.reopen().unwrap();
    assert_eq!((bench.log.start(), bench.log.end()), (Offset(60), Offset(60)));
    bench.fill(1, 10);
}

#[test]
fn compacted_topics_are_not_deleted_by_age() {
    let cleanup = crate::CleanupPolicy { delete: false, compact: true };
    let mut bench = Bench::new(LogConfig {
        retention_ms: DurationMs(100),
        retention_bytes: 10,
        cleanup,
        ..small_segments()
    });
    bench.fill(60, 40);
    bench.sync().unwrap();
    assert_eq!(bench.log.delete_old_segments(&mut bench.files, NOW, Offset(60)).unwrap(), None);
    // But what lies below the start goes.
    assert!(bench.log.advance_start(Offset(30)));
    assert!(!bench.log.advance_start(Offset(20)));
    assert!(bench.log.delete_old_segments(&mut bench.files, NOW, Offset(60)).unwrap().is_some());
    assert!(bench.log.first_segment_base() <= Offset(30) && bench.log.first_segment_base() > Offset(15));
    assert_eq!(bench.log.start(), Offset(30));
    bench.sync().unwrap();
    bench.checkpoint().unwrap();
    bench.reopen().unwrap();
    assert_eq!(bench.log.start(), Offset(30));
    let read = bench.log.read(&mut bench.files, Offset(29), 100, Offset(60), true);
    assert!(matches!(read, Err(StorageError::OffsetOutOfRange { .. })));
}

#[test]
fn retention_after_a_restart_asks_the_files() {
    let mut bench = Bench::new(LogConfig { retention_ms: DurationMs(100), ..small_segments() });
    bench.fill(60, 40);
    bench.stop().unwrap();
    bench.reopen().unwrap();
    // A time index that lies about the first segment's age does not cost it.
    let path = bench.path("00000000000000000000.timeindex");
    bench.disk.corrupt(&path, |bytes| {
        for entry in bytes.chunks_mut(12) {
            entry[..8].copy_from_slice(&5i64.to_be_bytes());
        }
    });
    assert_eq!(bench.log.delete_old_segments(&mut bench.files, TimestampMs(1100), Offset(60)).unwrap(), None);
    assert!(
        bench.log.delete_old_segments(&mut bench.files, TimestampMs(1130), Offset(60)).unwrap().is_some()
    );
}

/// Records were deleted up to the middle of a batch, the crash took the batch out of the segment, and the journal
/// brings it back.
#[test]
fn an_empty_log_begins_within_a_batch() {
    for (staged, value_bytes) in [(false, 10), (true, 10), (true, 800)] {
        let mut bench = Bench::new(small_segments());
        bench.fill(30, 40);
        bench.log.truncate_fully_and_start_at(&mut bench.files, Offset(102), NOW).unwrap();
        let wrong = batch(98, 4, 10, 1000, 0);
        assert!(matches!(bench.append(wrong), Err(StorageError::OutOfOrder { .. })), "it ends before");
        let batches = [batch(100, 5, value_bytes / 5, 1000, 0), batch(105, 1, 10, 1000, 0)];
        if staged {
            let parts: Vec<AppendBytes> = batches.iter().cloned().map(AppendBytes::from).collect();
            bench.log.stage(&mut bench.memory, &parts).unwrap();
            bench.log.write_back_all(&mut bench.files, NOW).unwrap();
        } else {
            for bytes in &batches {
                bench.append(bytes.clone()).unwrap();
            }
        }
        let again = batch(105, 2, 10, 1000, 0);
        assert!(
            matches!(bench.append(again), Err(StorageError::OutOfOrder { .. })),
            "only where it is empty"
        );
        bench.sync().unwrap();
        bench.checkpoint().unwrap();
        for _ in 0..2 {
            assert_eq!((bench.log.start(), bench.log.end()), (Offset(102), Offset(106)));
            assert_eq!(bench.log.first_segment_base(), Offset(100));
            assert_eq!(bench.read_all(300).unwrap(), batches);
            bench.reopen().unwrap();
        }
    }
}

/// The kill came after a roll whose names were never synced.
#[test]
fn a_new_segments_name_is_synced_by_the_process_that_finds_it() {
    let mut bench = Bench::new(small_segments());
    bench.fill(5, 40);
    bench.sync().unwrap();
    bench.checkpoint().unwrap();
    bench.log.roll(&mut bench.files, NOW).unwrap();
    bench.reopen().unwrap();
    bench.fill(2, 40);
    assert_eq!(bench.sync().unwrap(), Offset(7));
    bench.disk.crash(1);
    for seed in 0..8 {
        bench.disk.crash(seed);
    }
    bench.reopen().unwrap();
    assert_eq!(bench.log.end(), Offset(7));
}
