//! Files that are not what was written: flipped, zeroed, truncated, missing.

use super::*;
use crate::disk::Disk;
use crate::scrub::{Scrubbed, SegmentScrub, segments};

#[derive(Debug, Clone, Copy)]
enum Damage {
    Flip(usize),
    Zero,
    Truncate(usize),
    Missing,
}

fn damage(bench: &Bench, name: &str, damage: Damage) {
    let path = bench.path(name);
    match damage {
        Damage::Missing => bench.files.disk().remove_file(&path).unwrap(),
        Damage::Flip(at) => bench.disk.corrupt(&path, |bytes| {
            let len = bytes.len();
            bytes[at % len] ^= 1 << (at % 8);
        }),
        Damage::Zero => bench.disk.corrupt(&path, |bytes| bytes.fill(0)),
        Damage::Truncate(by) => {
            bench.disk.corrupt(&path, |bytes| bytes.truncate(bytes.len().saturating_sub(by)))
        }
    }
}

fn all_damage() -> impl Iterator<Item = Damage> {
    let truncated = [1, 5, 8, 12, 50].map(Damage::Truncate);
    let flipped = (0..120).map(|at| Damage::Flip(at * 7));
    [Damage::Zero, Damage::Missing].into_iter().chain(truncated).chain(flipped)
}

/// Sixty batches in several segments, stopped or killed.
fn written(clean: bool) -> (Bench, Vec<Bytes>) {
    let mut bench = Bench::new(small_segments());
    bench.fill(60, 40);
    let batches = bench.read_all(1000).unwrap();
    bench.sync().unwrap();
    bench.checkpoint().unwrap();
    if clean {
        bench.stop().unwrap();
    }
    (bench, batches)
}

#[test]
fn damaged_indexes_never_change_what_is_read() {
    let (bench, _) = written(true);
    let indexes: Vec<String> = bench.names().into_iter().filter(|name| name.ends_with("index")).collect();
    for name in &indexes {
        for how in all_damage() {
            for clean in [true, false] {
                let (mut bench, batches) = written(clean);
                if !clean && bench.disk.contents(&bench.path(name)).is_none_or(|bytes| bytes.is_empty()) {
                    continue;
                }
                if bench.disk.contents(&bench.path(name)).is_some_and(|bytes| !bytes.is_empty()) {
                    damage(&bench, name, how);
                }
                bench.reopen().unwrap_or_else(|error| panic!("{name} {how:?}: {error}"));
                assert_eq!(bench.log.end(), Offset(60));
                assert_eq!(bench.read_all(200).unwrap(), batches, "{name} {how:?}");
                for at in 0..60 {
                    let found = bench
                        .log
                        .offset_for_timestamp(&mut bench.files, TimestampMs(1000 + at), Offset(0))
                        .unwrap();
                    assert_eq!(found.map(|found| found.offset), Some(Offset(at)), "{name} {how:?}");
                    let read = bench.log.read(&mut bench.files, Offset(at), 1, Offset(60), true).unwrap();
                    assert_eq!(read.records, batches[at as usize], "{name} {how:?}");
                }
            }
        }
    }
}

/// Damage to the last segment below the recovery point: an unclean start finds what shows in headers and sizes, a read
/// the rest.
#[test]
fn damage_below_the_recovery_point_is_named_and_never_served() {
    for how in all_damage() {
        let (mut bench, batches) = written(false);
        let name = format!("{:020}.log", bench.log.active_segment_base().get());
        let before = bench.disk.contents(&bench.path(&name)).unwrap();
        damage(&bench, &name, how);
        let damaged = bench.disk.contents(&bench.path(&name));
        let opened = bench.reopen();
        match opened.and_then(|opened| bench.read_all(100).map(|read| (opened, read))) {
            Err(StorageError::Damaged { file, .. }) => {
                assert!(file.starts_with(place().dir()), "{file:?}");
                // Nothing was cut.
                assert_eq!(bench.disk.contents(&bench.path(&name)), damaged, "{how:?}");
            }
            Err(other) => panic!("{how:?}: {other}"),
            // The leader epoch of a batch lies outside its checksum.
            Ok((opened, read)) => {
                assert_eq!(opened.cut, None, "{how:?}");
                let same = read
                    .iter()
                    .zip(&batches)
                    .all(|(read, written)| read[..12] == written[..12] && read[16..] == written[16..]);
                assert!(read.len() == batches.len() && same, "{how:?}");
                assert_eq!(damaged.map(|bytes| bytes.len()), Some(before.len()));
            }
        }
    }
}

#[test]
fn damage_past_the_recovery_point_is_cut_there() {
    for how in all_damage() {
        let mut bench = Bench::new(small_segments());
        bench.fill(20, 40);
        bench.sync().unwrap();
        bench.checkpoint().unwrap();
        bench.fill(20, 40);
        let batches = bench.read_all(1000).unwrap();
        let name = format!("{:020}.log", bench.log.active_segment_base().get());
        damage(&bench, &name, how);
        let opened = bench.reopen().unwrap_or_else(|error| panic!("{how:?}: {error}"));
        let read = bench.read_all(100).unwrap();
        assert!(read.len() >= 20, "{how:?}");
        if !matches!(how, Damage::Flip(_)) {
            assert_eq!(read, batches[..read.len()], "{how:?}");
        }
        if read.len() < 40 && !matches!(how, Damage::Missing | Damage::Truncate(_)) {
            let cut = opened.cut.unwrap();
            assert_eq!(cut.end, Offset(read.len() as i64), "{how:?}");
            assert!(cut.file.ends_with(&name));
        }
        // And it goes on.
        bench.fill(5, 40);
        bench.sync().unwrap();
        bench.checkpoint().unwrap();
        bench.reopen().unwrap();
        match bench.read_all(100) {
            // Nothing was known of the epochs there. The batches that follow show it.
            Err(StorageError::Damaged { what, .. }) if matches!(how, Damage::Flip(_)) => {
                assert_eq!(what, crate::segment::walker::WRONG_EPOCH, "{how:?}");
            }
            all => assert_eq!(all.unwrap().len(), read.len() + 5),
        }
    }
}

#[test]
fn a_clean_log_that_is_shorter_than_its_checkpoint_stops() {
    for how in [Damage::Missing, Damage::Truncate(1), Damage::Truncate(50)] {
        let (mut bench, _) = written(true);
        let name = format!("{:020}.log", bench.log.active_segment_base().get());
        damage(&bench, &name, how);
        let error = bench.reopen().unwrap_err();
        assert!(matches!(error, StorageError::Damaged { .. }), "{how:?}: {error}");
    }
}

#[test]
fn a_damaged_batch_in_a_sealed_segment_is_not_served() {
    let (mut bench, batches) = written(true);
    bench.reopen().unwrap();
    let path = bench.path("00000000000000000000.log");
    let size = batches[0].len();
    for (at, byte) in [(2 * size + 3, 0), (2 * size + 8, 0xff), (2 * size + 16, 9)] {
        let before = bench.disk.contents(&path).unwrap();
        bench.disk.corrupt(&path, |bytes| bytes[at] ^= byte | 0x40);
        let error = bench.read_all(1000).unwrap_err();
        assert!(matches!(error, StorageError::Damaged { .. }), "{at}: {error}");
        bench.disk.corrupt(&path, |bytes| *bytes = before);
    }
    assert_eq!(bench.read_all(1000).unwrap(), batches);
}

#[test]
fn a_tail_of_zeros_is_cut() {
    for zeros in [1, 11, 12, 60, 61, 800, 5000] {
        let (mut bench, batches) = written(false);
        let path = bench.path(&format!("{:020}.log", bench.log.active_segment_base().get()));
        bench.disk.corrupt(&path, |bytes| bytes.resize(bytes.len() + zeros, 0));
        let opened = bench.reopen().unwrap();
        // Up to the end of a block they may be what a direct write filled it with: nothing was lost.
        let is_padding = zeros < 4096;
        assert_eq!(opened.cut.map(|cut| cut.bytes), (!is_padding).then_some(zeros as u64));
        assert!(bench.log.take_dirty().is_some(), "the cut is synced before anything rests on it");
        let len = bench.disk.contents(&path).unwrap().len();
        assert_eq!(len as u64, u64::from(bench.log.segments.last().unwrap().size));
        assert_eq!(bench.read_all(100).unwrap(), batches);
    }
}

#[test]
fn zeros_in_a_sealed_segment_are_padding_only_where_no_batch_is_missing() {
    let (mut bench, batches) = written(false);
    bench.log.roll(&mut bench.files, NOW).unwrap();
    bench.sync().unwrap();
    bench.checkpoint().unwrap();
    let sealed = bench.log.segments[bench.log.segments.len() - 2];
    let path = bench.path(&format!("{:020}.log", sealed.base.get()));
    let before = bench.disk.contents(&path).unwrap();
    // The segment was sealed and not synced as such: it still has what filled its last block.
    bench.disk.corrupt(&path, |bytes| bytes.resize(4096, 0));
    assert_eq!(bench.reopen().unwrap().cut, None);
    assert_eq!(bench.read_all(100).unwrap(), batches);
    assert_eq!(bench.disk.contents(&path).unwrap(), before);
    // Its last batch became zeros: nothing is cut on that word.
    let last = batches.last().unwrap().len();
    bench.disk.corrupt(&path, |bytes| {
        let from = bytes.len() - last;
        bytes[from..].fill(0);
    });
    let served = bench.reopen().and_then(|_| bench.read_all(100));
    assert!(matches!(served, Err(StorageError::Damaged { .. })), "{served:?}");
    assert_eq!(bench.disk.contents(&path).unwrap().len(), before.len());
}

#[test]
fn epochs_are_found_again_in_the_batches() {
    for how in [Damage::Zero, Damage::Missing, Damage::Truncate(3), Damage::Flip(0), Damage::Flip(2)] {
        let mut bench = Bench::new(small_segments());
        for at in 0..30 {
            bench.append(batch(at, 1, 40, 1000, (at / 7) as i32)).unwrap();
        }
        let epochs = bench.log.epochs().clone();
        bench.stop().unwrap();
        damage(&bench, "leader-epoch-checkpoint", how);
        bench.reopen().unwrap();
        assert_eq!(bench.log.epochs(), &epochs, "{how:?}");
    }
}

#[test]
fn leftovers_of_interrupted_work_go_in_kafkas_order() {
    let (mut bench, batches) = written(true);
    let disk = bench.files.disk().clone();
    let copy = |from: &str, to: &str| {
        let bytes = bench.disk.contents(&bench.path(from)).unwrap();
        disk.open(&bench.path(to), crate::OpenMode::Truncate).unwrap().write_at(0, &[&bytes]).unwrap();
    };
    let bases: Vec<i64> = bench
        .names()
        .iter()
        .filter_map(|name| name.strip_suffix(".log").map(|base| base.parse().unwrap()))
        .collect();
    let name = |base: i64, suffix: &str| format!("{base:020}{suffix}");
    // Half deleted, an unfinished compaction with a swap file that came of it, an index without a segment.
    copy(&name(bases[0], ".log"), &name(5, ".log.deleted"));
    copy(&name(bases[2], ".log"), &name(bases[2], ".log.cleaned"));
    copy(&name(bases[3], ".log"), &name(bases[3], ".log.swap"));
    copy(&name(bases[0], ".index"), &name(7, ".index"));
    // A finished compaction that was about to take the first segment's place.
    copy(&name(bases[0], ".log"), &name(bases[0], ".log.swap"));
    copy(&name(bases[0], ".index"), &name(bases[0], ".index.swap"));
    let opened = bench.reopen().unwrap();
    assert!(opened.removed.len() >= 4, "{opened:?}");
    assert_eq!(bench.read_all(300).unwrap(), batches);
    for name in bench.names() {
        assert!(![".deleted", ".cleaned", ".swap"].iter().any(|end| name.ends_with(end)), "{name}");
    }
    assert!(!bench.names().contains(&name(7, ".index")));
}

/// Puts these bytes beside the first segment, under the name of one that is to take its place.
fn swap_in(bench: &Bench, bytes: &[u8]) -> std::path::PathBuf {
    let swap = bench.path("00000000000000000000.log.swap");
    let file = bench.files.disk().open(&swap, crate::OpenMode::Truncate).unwrap();
    file.write_at(0, &[bytes]).unwrap();
    swap
}

#[test]
fn nothing_gives_way_to_a_swap_file_that_says_nothing() {
    for junk in [&b""[..], b"what no broker wrote", &[0; 4096]] {
        let (mut bench, batches) = written(true);
        swap_in(&bench, junk);
        bench.reopen().unwrap();
        assert_eq!(bench.read_all(300).unwrap(), batches);
        assert!(!bench.names().iter().any(|name| name.ends_with(".swap")));
    }
}

/// Another segment's bytes, sound in themselves.
#[test]
fn nothing_gives_way_to_another_segments_copy() {
    let (mut bench, batches) = written(true);
    let other = bench.names().into_iter().filter(|name| name.ends_with(".log")).nth(2).unwrap();
    let bytes = bench.disk.contents(&bench.path(&other)).unwrap();
    swap_in(&bench, &bytes);
    bench.reopen().unwrap();
    assert_eq!(bench.read_all(300).unwrap(), batches);
}

#[test]
fn what_gave_way_to_a_damaged_swap_file_is_kept() {
    let (mut bench, _) = written(true);
    let log = bench.path("00000000000000000000.log");
    let mut bytes = bench.disk.contents(&log).unwrap();
    bytes[80] ^= 1;
    let swap = swap_in(&bench, &bytes);
    let gone = bench.path("00000000000000000000.log.deleted");
    bench.files.disk().rename(&log, &gone).unwrap();
    let error = bench.reopen().unwrap_err();
    assert!(matches!(&error, StorageError::Damaged { file, .. } if *file == swap), "{error}");
    assert!(bench.disk.contents(&gone).is_some());
}

#[test]
fn segment_that_left_only_its_indexes_is_missed() {
    let bases = |bench: &Bench| -> Vec<i64> {
        let names = bench.names();
        names.iter().filter_map(|name| name.strip_suffix(".log")?.parse().ok()).collect()
    };
    let count = bases(&written(true).0).len();
    assert!(count > 3);
    for clean in [true, false] {
        for at in 0..count {
            let (mut bench, _) = written(clean);
            let base = bases(&bench)[at];
            bench.files.disk().remove_file(&bench.path(&format!("{base:020}.log"))).unwrap();
            let is_left = |bench: &Bench| {
                let index = bench.disk.contents(&bench.path(&format!("{base:020}.index")));
                index.is_some_and(|bytes| !bytes.is_empty())
            };
            let was_left = is_left(&bench);
            let error = bench.reopen().expect_err("a segment is missing");
            assert!(matches!(error, StorageError::Damaged { .. }), "clean={clean} {base}: {error}");
            assert_eq!(is_left(&bench), was_left, "clean={clean} {base}: nothing was removed");
        }
    }
}

#[test]
fn a_partition_that_vanished_is_missed() {
    let (mut bench, _) = written(true);
    crate::remove_dir(&**bench.files.disk(), &place().dir()).unwrap();
    let error = bench.reopen().unwrap_err();
    assert!(matches!(error, StorageError::Damaged { .. }), "{error}");
}

#[test]
fn new_epochs_are_durable_with_the_next_sync_and_the_checkpoint_waits_for_none() {
    for seed in 0..20 {
        let mut bench = Bench::new(LogConfig::default());
        bench.fill(3, 10);
        bench.sync().unwrap();
        let before = bench.disk.syncs();
        assert!(!bench.log.note_epochs_ahead(&mut bench.files).unwrap());
        // A second time before the sync: the file that has the name is the one that is synced.
        let end = bench.log.end().get();
        bench.append(batch(end, 1, 10, 1000, 5)).unwrap();
        assert!(bench.log.has_new_epochs());
        assert!(!bench.log.note_epochs_ahead(&mut bench.files).unwrap());
        assert_eq!(bench.disk.syncs(), before, "noting them is no sync");
        bench.sync().unwrap();
        let synced = bench.disk.syncs();
        assert!(bench.log.note_epochs_ahead(&mut bench.files).unwrap());
        assert_eq!(bench.log.checkpoint(&mut bench.files).unwrap(), bench.log.end());
        assert_eq!(bench.disk.syncs(), synced, "nor is the checkpoint");
        let path = bench.path("leader-epoch-checkpoint");
        let written = bench.disk.contents(&path);
        bench.disk.crash(seed);
        assert_eq!(bench.disk.contents(&path), written, "seed {seed}");
        assert!(written.is_some_and(|text| text.ends_with(b"0 0\n5 3\n")));
    }
}

#[test]
fn a_checkpoint_that_does_not_wait_for_the_next_sync_makes_new_epochs_durable_itself() {
    for seed in 0..20 {
        let mut bench = Bench::new(LogConfig::default());
        bench.fill(3, 10);
        bench.sync().unwrap();
        assert!(!bench.log.note_epochs_ahead(&mut bench.files).unwrap());
        assert_eq!(bench.log.checkpoint(&mut bench.files).unwrap(), bench.log.end());
        let path = bench.path("leader-epoch-checkpoint");
        let written = bench.disk.contents(&path);
        bench.disk.crash(seed);
        assert_eq!(bench.disk.contents(&path), written, "seed {seed}");
        assert!(written.is_some_and(|text| text.ends_with(b"0 0\n")));
    }
}

/// Base offsets lie outside of checksums. Where the opening and the reader cannot tell, since they begin with that
/// batch, the scrub can.
#[test]
fn changed_base_offset_is_never_served() {
    for clean in [true, false] {
        let (bench, batches) = written(clean);
        let segments: Vec<String> = bench.names().into_iter().filter(|name| name.ends_with(".log")).collect();
        let size = batches[0].len();
        for name in &segments {
            let path = bench.path(name);
            let bytes = bench.disk.contents(&path).unwrap();
            for (at, bit) in (0..bytes.len() / size).flat_map(|at| (0..64).map(move |bit| (at, bit))) {
                let mut again = written(clean).0;
                again.disk.corrupt(&path, |bytes| bytes[at * size + 7 - bit / 8] ^= 1 << (bit % 8));
                let opened = again.reopen();
                for max_bytes in [1, 300, 10_000] {
                    let what = format!("{name}, batch {at}, bit {bit}, {clean}, reads of {max_bytes}");
                    match opened.clone().and_then(|_| again.read_all(max_bytes)) {
                        Err(error) => {
                            assert!(matches!(error, StorageError::Damaged { .. }), "{what}: {error}")
                        }
                        Ok(read) => {
                            assert!(read.iter().all(|read| batches.contains(read)), "{what}");
                            assert!(scrub_finds_damage(&again), "{what}");
                        }
                    }
                }
            }
        }
    }
}

fn scrub_finds_damage(bench: &Bench) -> bool {
    let disk: Arc<dyn Disk> = Arc::new(bench.disk.clone());
    let dir = place().dir();
    segments(&*disk, &dir).unwrap().into_iter().any(|listed| {
        let walk = SegmentScrub::open(&disk, &dir, listed, bench.log.recovery_point(), true).unwrap();
        matches!(walk.unwrap().step(1 << 20).unwrap(), Scrubbed::Damage(..))
    })
}
