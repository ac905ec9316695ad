//! What a leader has is written over what is damaged, and over nothing else.

use super::headers::{ALL, END, RECORDS, Which, flip, stopped};
use super::*;
use crate::disk::memory_disk::Faults;
use crate::scrub::Scrubbed;
use crate::{DamagedPlace, Mend};

/// The damaged places of the segment that holds `offset`.
fn places(bench: &Bench, offset: Offset) -> Vec<DamagedPlace> {
    let mut walk = bench.log.segment_check(&bench.files, offset, true).unwrap().unwrap();
    let mut found = Vec::new();
    loop {
        match walk.step(1 << 20).unwrap() {
            Scrubbed::Sound(_) => {}
            Scrubbed::Damage(_, error) => found.extend(DamagedPlace::of(&error)),
            Scrubbed::End(_) => return found,
        }
    }
}

/// What a leader with these batches sends from `offset` on, `count` batches of it.
fn answer(batches: &[Bytes], offset: Offset, count: usize) -> Vec<u8> {
    let ends_behind = |batch: &&Bytes| BatchHeader::parse(batch).unwrap().last_offset >= offset;
    batches.iter().filter(ends_behind).take(count).flat_map(|batch| batch.to_vec()).collect()
}

fn mend(bench: &mut Bench, place: DamagedPlace, fetched: &[u8]) -> Result<Mend, StorageError> {
    bench.log.mend(&mut bench.files, place, fetched, Offset(0))
}

/// Mends until nothing is damaged in the segment that holds `offset`.
fn mend_all(bench: &mut Bench, batches: &[Bytes], offset: Offset, what: &str) {
    for _ in 0..10 {
        let found = places(bench, offset);
        if found.is_empty() {
            return;
        }
        let mended = found.iter().filter(|place| {
            let done = mend(bench, **place, &answer(batches, place.offset, 5)).unwrap();
            matches!(done, Mend::Done { .. })
        });
        assert_ne!(mended.count(), 0, "{what}: {found:?}");
    }
    panic!("{what}: it is never whole");
}

fn damaged(which: Which, byte: usize, mask: u8) -> (Bench, super::headers::Place, Vec<Bytes>, Vec<u8>) {
    let (mut bench, place, batches) = stopped(which);
    let whole = bench.disk.contents(&place.file).unwrap();
    flip(&bench, &place, byte, mask);
    bench.reopen().unwrap();
    (bench, place, batches, whole)
}

#[test]
fn each_damaged_byte_of_a_batch_is_mended() {
    for which in ALL {
        for byte in 0..120 {
            let what = format!("{which:?}, byte {byte}");
            let (mut bench, place, batches, whole) = damaged(which, byte, 0x41);
            mend_all(&mut bench, &batches, place.base, &what);
            assert_eq!(bench.disk.contents(&place.file).unwrap(), whole, "{what}");
            assert_eq!(bench.read_all(10_000).unwrap(), batches, "{what}");
            // It was synced.
            bench.disk.crash(byte as u64);
            assert_eq!(bench.disk.contents(&place.file).unwrap(), whole, "{what}");
        }
    }
}

#[test]
fn batches_appended_after_a_mend_are_whole() {
    for which in ALL {
        let (mut bench, place, mut batches, _) = damaged(which, 30, 0x41);
        mend_all(&mut bench, &batches, place.base, "once");
        let behind = batch(END.get(), RECORDS, 40, 5000, 8);
        bench.append(behind.clone()).unwrap();
        batches.push(behind);
        assert_eq!(bench.read_all(10_000).unwrap(), batches, "{which:?}");
        bench.stop().unwrap();
        assert_eq!(bench.reopen().unwrap().damaged, [], "{which:?}");
        assert_eq!(bench.read_all(10_000).unwrap(), batches, "{which:?}");
    }
}

/// Retention and searches by time would go by it until the next start (lab/sim, seed 925).
#[test]
fn largest_time_of_a_damaged_header_is_forgotten_once_it_is_mended() {
    const MAX_TIMESTAMP: usize = 36;
    let mut named = 0;
    for which in ALL {
        let (mut bench, place, batches, _) = damaged(which, MAX_TIMESTAMP, 0x41);
        // The time index spares some from being read.
        named += usize::from(bench.log.offset_of_max_timestamp(&mut bench.files).is_err());
        mend_all(&mut bench, &batches, place.base, "once");
        let found = bench.log.offset_of_max_timestamp(&mut bench.files).unwrap().unwrap();
        let newest = END.plus(-1);
        assert_eq!((found.offset, found.timestamp.0), (newest, 1000 + newest.get()), "{which:?}");
    }
    assert!(named > 0, "no damaged time was read");
}

#[test]
fn several_batches_under_one_hole_are_mended_together() {
    for to_end in [false, true] {
        let (mut bench, place, batches) = stopped(Which::MiddleOfSealed);
        let whole = bench.disk.contents(&place.file).unwrap();
        bench.disk.corrupt(&place.file, |bytes| {
            let from = place.position as usize + 8;
            let to = if to_end { bytes.len() } else { from + batches[0].len() * 3 / 2 };
            bytes[from..to].fill(0);
        });
        bench.reopen().unwrap();
        let found = places(&bench, place.base)[0];
        assert_eq!(
            mend(&mut bench, found, &answer(&batches, found.offset, 1)),
            Ok(Mend::Unfit),
            "too little"
        );
        mend_all(&mut bench, &batches, place.base, "a hole");
        assert_eq!(bench.disk.contents(&place.file).unwrap(), whole);
    }
}

#[test]
fn batches_that_do_not_fit_change_nothing() {
    let value = |base: i64, records, bytes, epoch| batch(base, records, bytes, 1000 + base, epoch);
    // By its body: the header is right, and by its header: nothing shows where it ends.
    for byte in [100, 16] {
        let (mut bench, place, _, _) = damaged(Which::MiddleOfSealed, byte, 0x41);
        let (base, epoch) = (place.base.get(), bench.log.epochs().epoch_at(place.base).unwrap().0);
        let found = places(&bench, place.base)[0];
        let before = bench.disk.contents(&place.file).unwrap();
        let wrong = [
            ("another length", value(base, RECORDS, 41, epoch)),
            ("fewer records", value(base, RECORDS - 1, 40, epoch)),
            ("another base offset", value(base + 1, RECORDS, 40, epoch)),
            ("an older leader epoch", value(base, RECORDS, 40, epoch - 1)),
            ("a newer leader epoch", value(base, RECORDS, 40, epoch + 1)),
            ("past the segment", value(base, 1000, 40, epoch)),
            ("nothing", Bytes::new()),
            ("no batch", Bytes::from_static(&[7; 100])),
        ];
        for (what, fetched) in wrong {
            assert_eq!(mend(&mut bench, found, &fetched), Ok(Mend::Unfit), "{what}, byte {byte}");
            assert_eq!(bench.disk.contents(&place.file).unwrap(), before, "{what}, byte {byte}");
        }
    }
}

#[test]
fn sound_batches_are_never_overwritten() {
    let (mut bench, place, batches) = stopped(Which::MiddleOfSealed);
    bench.reopen().unwrap();
    let segment = bench.log.segment_base_of(place.base);
    let at = DamagedPlace { segment, position: place.position, offset: place.base };
    assert_eq!(mend(&mut bench, at, &answer(&batches, place.base, 3)), Ok(Mend::Sound));
    // The same offsets and length in another batch: of two sound ones, this log's own stays.
    let epoch = bench.log.epochs().epoch_at(place.base).unwrap().0;
    let other = batch(place.base.get(), RECORDS, 40, 9000, epoch);
    assert_eq!(mend(&mut bench, at, &other), Ok(Mend::Unfit));
    assert_eq!(bench.read_all(10_000).unwrap(), batches);
}

#[test]
fn torn_overwrite_is_damage_that_is_mended_again() {
    for written in [1, 40, 90] {
        let (mut bench, place, batches, whole) = damaged(Which::MiddleOfSealed, 16, 0xff);
        // So much of the overwrite reached the disk.
        bench.disk.corrupt(&place.file, |bytes| {
            let from = place.position as usize;
            bytes[from..from + 200].fill(0xee);
            bytes[from..from + written].copy_from_slice(&whole[from..from + written]);
        });
        bench.reopen().unwrap();
        assert_ne!(places(&bench, place.base), [], "{written} bytes");
        mend_all(&mut bench, &batches, place.base, "torn");
        assert_eq!(bench.disk.contents(&place.file).unwrap(), whole);
    }
}

#[test]
fn failed_sync_of_a_mend_is_final() {
    let (mut bench, place, batches, _) = damaged(Which::MiddleOfSealed, 100, 0x41);
    let found = places(&bench, place.base)[0];
    let fetched = answer(&batches, found.offset, 2);
    bench.disk.set_faults(Faults { syncs_until_error: Some(0), ..Faults::default() });
    assert!(matches!(mend(&mut bench, found, &fetched), Err(StorageError::Disk(_))));
    bench.disk.set_faults(Faults::default());
    flip(&bench, &place, 100, 0x41);
    assert!(matches!(mend(&mut bench, found, &fetched), Err(StorageError::Failed(_))));
}

#[cfg(planted)]
#[test]
fn planted_mistakes_of_mends_and_checks_are_noticed() {
    let tests: [(&str, fn()); 5] = [
        ("MendsWithoutSync", each_damaged_byte_of_a_batch_is_mended),
        ("OverwritesSoundBatches", sound_batches_are_never_overwritten),
        ("MendsWithAnyEpoch", batches_that_do_not_fit_change_nothing),
        ("ChecksOnce", super::behind::damage_after_the_first_read_is_found_when_checks_expire),
        ("BelievesValuesThatLookLikeBatches", super::behind::batch_in_a_value_is_not_taken_for_one),
    ];
    for (mistake, test) in tests {
        let passed = std::panic::catch_unwind(|| barnabas_base::planted::with(mistake, test));
        assert!(passed.is_err(), "{mistake} is not noticed");
    }
}
