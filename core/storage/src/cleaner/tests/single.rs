//! One thing each.

use std::sync::Arc;

use barnabas_base::{LeaderEpoch, Offset, TimestampMs};
use barnabas_wire::records::{BatchBuilder, BatchOptions, Codec, Compression};

use super::super::{CleanError, Replaced};
use super::rig::{Random, Rig, config, full_speed};
use crate::{AppendBytes, LogConfig};

fn keyed(rig: &mut Rig, count: usize) {
    for at in 0..count {
        rig.put(&format!("k{}", at % 5), Some(&[at as u8; 40]));
    }
}

#[test]
fn offsets_stay_and_reads_go_over_the_gaps() {
    let mut rig = Rig::new();
    keyed(&mut rig, 100);
    rig.roll();
    let end = rig.log.end();
    rig.clean(1 << 14).unwrap();
    rig.check().unwrap();
    assert_eq!(rig.log.end(), end);
    let (batches, found) = rig.found();
    assert_eq!(found.len(), 5, "{batches:?}");
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), [95, 96, 97, 98, 99]);
    for at in 0..100 {
        let read = rig.log.read(&mut rig.files, Offset(at), 1, end, true).unwrap();
        let first = barnabas_wire::records::batches(read.records).next().unwrap().unwrap();
        assert_eq!(first.header().last_offset().get(), at.max(95));
    }
}

/// A replica that copies the log learns where epochs begin (found by lab/sim, climate compaction).
#[test]
fn first_batch_of_an_epoch_stays_without_records() {
    let mut rig = Rig::new();
    for round in [&[(0, 0), (1, 0), (2, 3), (3, 3), (4, 3)][..], &[(5, 3), (6, 3)]] {
        for &(base, epoch) in round {
            let (base_offset, leader_epoch) = (Offset(base), LeaderEpoch(epoch));
            let options = BatchOptions { base_offset, leader_epoch, ..BatchOptions::default() };
            let mut builder = BatchBuilder::new(options);
            builder.push(rig.time(), Some(b"key"), Some(b"value"), &[]);
            let batch = AppendBytes::Whole(builder.build().unwrap());
            let now = rig.time();
            rig.log.append(&mut rig.files, &[batch], now).unwrap();
        }
        rig.roll();
        rig.clean(1 << 14).unwrap();
        let end = rig.log.end();
        let read = rig.log.read(&mut rig.files, Offset(0), 1 << 20, end, true).unwrap();
        let left = barnabas_wire::records::batches(read.records).map(|batch| *batch.unwrap().header());
        let left: Vec<_> = left.map(|header| (header.base_offset.get(), header.record_count)).collect();
        assert_eq!(left, [(2, 0), (end.get() - 1, 1)]);
    }
}

/// A broker takes compressed batches by their headers, however far they inflate.
#[test]
fn batch_that_inflates_beyond_64_mib_is_compacted() {
    let mut rig = Rig::new();
    rig.log.set_config(Arc::new(LogConfig { segment_bytes: 1 << 20, ..(*config()).clone() }));
    for (base, bytes) in [(0, 65 << 20), (1, 1)] {
        let compression = Compression::of(Codec::Zstd);
        let options = BatchOptions { base_offset: Offset(base), compression, ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options);
        builder.push(rig.time(), Some(b"key"), Some(&vec![0; bytes]), &[]);
        let batch = AppendBytes::Whole(builder.build().unwrap());
        let now = rig.time();
        rig.log.append(&mut rig.files, &[batch], now).unwrap();
    }
    rig.roll();
    rig.clean(1 << 14).unwrap();
    let read = rig.log.read(&mut rig.files, Offset(0), 1, Offset(2), true).unwrap();
    let left = barnabas_wire::records::batches(read.records).next().unwrap().unwrap();
    assert_eq!(left.header().base_offset, Offset(1));
}

#[test]
fn times_are_found_among_gaps() {
    let mut rig = Rig::new();
    keyed(&mut rig, 100);
    rig.clean(1 << 14).unwrap();
    let (_, found) = rig.found();
    for at in 0..100_i64 {
        let asked = rig.records[&at].timestamp;
        let is = rig.log.offset_for_timestamp(&mut rig.files, asked, Offset(0)).unwrap().unwrap();
        let should = found.iter().find(|(_, record)| record.timestamp >= asked).unwrap();
        assert_eq!((is.offset.get(), is.timestamp), (*should.0, should.1.timestamp), "{at}");
    }
    let later = TimestampMs(rig.now + 1);
    assert_eq!(rig.log.offset_for_timestamp(&mut rig.files, later, Offset(0)).unwrap(), None);
}

#[test]
fn indexes_are_those_that_a_recovery_makes() {
    let mut random = Random(5);
    let mut rig = Rig::new();
    for _ in 0..200 {
        rig.write(&mut random).unwrap();
    }
    rig.clean(1 << 14).unwrap();
    let indexes = |rig: &Rig| -> Vec<(String, Vec<u8>)> {
        let names = rig.names().into_iter().filter(|name| name.ends_with("index"));
        names.map(|name| (name.clone(), rig.disk.contents(&rig.path(&name)).unwrap())).collect()
    };
    rig.log.close(&mut rig.files).unwrap();
    let ours = indexes(&rig);
    for name in
        rig.names().into_iter().filter(|name| name.ends_with(".index") || name.ends_with(".timeindex"))
    {
        rig.files.disk().remove_file(&rig.path(&name)).unwrap();
    }
    rig.reopen().unwrap();
    rig.log.close(&mut rig.files).unwrap();
    assert_eq!(indexes(&rig), ours);
}

#[test]
fn a_tombstone_goes_after_its_time_and_not_before() {
    let mut rig = Rig::new();
    rig.put("gone", Some(b"a"));
    rig.put("gone", None);
    keyed(&mut rig, 60);
    rig.clean(1 << 14).unwrap();
    assert!(rig.found().1.contains_key(&1), "it is first seen");
    keyed(&mut rig, 60);
    rig.clean(1 << 14).unwrap();
    assert!(rig.found().1.contains_key(&1), "its time has not come");
    rig.now += 600;
    keyed(&mut rig, 60);
    rig.clean(1 << 14).unwrap();
    assert!(!rig.found().1.contains_key(&1));
    rig.check().unwrap();
}

#[test]
fn records_that_are_too_young_stay_untouched() {
    let mut rig = Rig::new();
    keyed(&mut rig, 60);
    let mut config = (**rig.log.config()).clone();
    config.compaction.min_lag_ms = barnabas_base::DurationMs(1_000_000);
    rig.log.set_config(config.into());
    rig.sync().unwrap();
    let debt = rig.debt();
    assert_eq!((debt.dirty_bytes, debt.first_uncleanable), (0, Offset(0)));
    assert!(debt.held_back_bytes > 0);
    rig.now += 2_000_000;
    assert!(rig.debt().dirty_bytes > 0);
}

/// A client sent it so: nothing is damaged, and no replica has a better copy.
#[test]
fn batch_that_makes_no_sense_is_not_called_damaged() {
    let mut rig = Rig::new();
    keyed(&mut rig, 5);
    rig.put_rubbish();
    rig.put("k0", Some(b"later"));
    rig.roll();
    let (end, names) = (rig.log.end(), rig.names());
    let error = rig.clean(1 << 14).unwrap_err();
    assert!(matches!(error, CleanError::Unreadable { .. }), "{error}");
    assert!(error.to_string().contains("as it was produced"), "{error}");
    assert_eq!((rig.log.end(), rig.names()), (end, names), "the log is as it was");
}

#[test]
fn what_is_too_old_is_overdue() {
    let mut rig = Rig::new();
    keyed(&mut rig, 60);
    rig.sync().unwrap();
    assert!(!rig.debt().is_overdue);
    let mut config = (**rig.log.config()).clone();
    config.compaction.max_lag_ms = barnabas_base::DurationMs(1_000);
    rig.log.set_config(config.into());
    assert!(!rig.debt().is_overdue);
    rig.now += 2_000;
    assert!(rig.debt().is_overdue);
}

#[test]
fn nothing_past_the_recovery_point_is_cleaned() {
    let mut rig = Rig::new();
    keyed(&mut rig, 60);
    let debt = rig.debt();
    assert_eq!((debt.dirty_bytes, debt.first_uncleanable), (0, Offset(0)));
    rig.sync().unwrap();
    assert!(rig.debt().dirty_bytes > 0);
}

/// The damage is in a dirty segment; what lies before it is not touched either.
fn clean_damaged() -> Result<(), CleanError> {
    let mut rig = Rig::new();
    keyed(&mut rig, 60);
    rig.sync().unwrap();
    let name = rig.names().into_iter().find(|name| name.ends_with(".log")).unwrap();
    rig.disk.corrupt(&rig.path(&name), |bytes| bytes[90] ^= 1);
    let before = rig.names();
    let cleaned = rig.clean(1 << 14);
    let checkpoints = |name: &String| name.ends_with("checkpoint");
    let mut after = rig.names();
    after.retain(|name| !checkpoints(name));
    let mut expected = before;
    expected.retain(|name| !checkpoints(name));
    if cleaned.is_err() {
        assert_eq!(after, expected);
    }
    cleaned
}

#[test]
fn damage_is_named_and_nothing_is_dropped() {
    let error = clean_damaged().unwrap_err();
    assert!(error.to_string().contains("is damaged at byte 0: its checksum is wrong"), "{error}");
}

#[cfg(planted)]
#[test]
fn planted_cleaning_without_checksums_is_noticed() {
    let blind = barnabas_base::planted::with("SkipsChecksums", clean_damaged);
    assert!(!matches!(blind, Err(CleanError::Damaged { what, .. }) if what.contains("checksum")));
}

/// Between reading and swapping the log is truncated within what was read, and gets batches of the same sizes.
fn swap_after_truncation() -> Replaced {
    let mut rig = Rig::new();
    keyed(&mut rig, 60);
    rig.sync().unwrap();
    let mut cleaning = rig.begin(1 << 14).unwrap().unwrap();
    let replacement = cleaning.next_group(&mut full_speed).unwrap().unwrap();
    let now = rig.time();
    rig.log.truncate_to(&mut rig.files, Offset(2), now).unwrap();
    while rig.log.end() < Offset(60) {
        rig.put("other", Some(&[9; 37]));
    }
    rig.sync().unwrap();
    rig.swap(&replacement).unwrap()
}

#[test]
fn a_log_that_was_cut_in_the_meantime_is_left_alone() {
    assert_eq!(swap_after_truncation(), Replaced::Stale);
}

#[cfg(planted)]
#[test]
fn planted_swap_after_a_truncation_is_noticed() {
    let fooled = barnabas_base::planted::with("IgnoresTruncation", swap_after_truncation);
    assert!(matches!(fooled, Replaced::Done(_)), "the sizes alone do not tell");
}

/// A cleaning that was given up left a file behind that sorts before this one's.
fn crash_beside_a_stranger() -> Result<(), String> {
    for seed in 0..60 {
        let mut rig = Rig::new();
        keyed(&mut rig, 60);
        rig.sync().unwrap();
        rig.checkpoint().unwrap();
        let mut cleaning = rig.begin(1 << 14).unwrap().unwrap();
        let replacement = cleaning.next_group(&mut full_speed).unwrap().unwrap();
        let names = ["00000000000000000001.log.cleaned", "00000000000000000000.txnindex.swap"];
        let stranger = rig.path(names[seed as usize % 2]);
        rig.files.disk().open(&stranger, crate::OpenMode::Create).unwrap();
        let dir = stranger.parent().unwrap();
        rig.files.disk().sync_dir(dir).unwrap();
        let replaced = rig.swap(&replacement).map_err(|error| error.to_string())?;
        assert!(matches!(replaced, Replaced::Done(_)));
        let later = rig.names().iter().any(|name| name.ends_with(".cleaned") || name.ends_with(".swap"));
        if later {
            return Err("something is left that the next start takes for half a cleaning".to_owned());
        }
        rig.disk.crash(seed);
        rig.reopen().map_err(|error| error.to_string())?;
        rig.check()?;
    }
    Ok(())
}

#[test]
fn what_an_earlier_cleaning_left_undoes_nothing() {
    crash_beside_a_stranger().unwrap();
}

#[cfg(planted)]
#[test]
fn planted_stranger_beside_a_cleaning_is_noticed() {
    let fooled = barnabas_base::planted::with("LeavesStrangers", crash_beside_a_stranger);
    assert!(fooled.is_err());
}

#[test]
fn a_segment_that_retention_took_is_left_alone() {
    let mut rig = Rig::new();
    keyed(&mut rig, 60);
    rig.sync().unwrap();
    let mut cleaning = rig.begin(1 << 14).unwrap().unwrap();
    let replacement = cleaning.next_group(&mut full_speed).unwrap().unwrap();
    let (end, now) = (rig.log.end(), rig.time());
    rig.log.advance_start(Offset(40));
    rig.log.delete_old_segments(&mut rig.files, now, end).unwrap().unwrap();
    assert_eq!(rig.swap(&replacement).unwrap(), Replaced::Stale);
    // The rest is unreadable now, or belongs to the next compaction.
    assert!(matches!(cleaning.next_group(&mut full_speed), Ok(_) | Err(CleanError::Gone(_))));
}

#[test]
fn memory_forgets_what_was_compacted() {
    let mut rig = Rig::new();
    let mut random = Random(8);
    for _ in 0..80 {
        rig.write(&mut random).unwrap();
    }
    rig.clean(1 << 14).unwrap();
    // Whatever is still in memory of the log lies past what was swapped.
    let clean_to = rig.dir.cleaner_point(&super::rig::place().topic_partition).unwrap();
    let kept = rig.log.cached_bytes();
    rig.log.forget_below(clean_to);
    assert_eq!(rig.log.cached_bytes(), kept);
}

#[cfg(planted)]
#[test]
fn planted_mistake_of_epoch_starts_is_noticed() {
    let test =
        || barnabas_base::planted::with("ForgetsEpochStarts", first_batch_of_an_epoch_stays_without_records);
    assert!(std::panic::catch_unwind(test).is_err(), "ForgetsEpochStarts is not noticed");
}
