//! Each byte of a batch's header changes while the broker is stopped, those that the checksum does not cover included:
//! the damage is named by file, byte and offset, nothing is truncated, and another replica can repair the log.

use super::*;
use crate::disk::Disk;
use crate::scrub::{KnownEpochs, Scrubbed, SegmentScrub, segments};

const HEADER_BYTES: usize = 61;
/// Records of a batch, and batches of the log.
pub(super) const RECORDS: i32 = 5;
const BATCHES: i64 = 40;
pub(super) const END: Offset = Offset(RECORDS as i64 * BATCHES);

/// Which batch of which segment is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    LastOfActive,
    LastOfSealed,
    NextToLastOfActive,
    MiddleOfActive,
    MiddleOfSealed,
}

pub(super) const ALL: [Which; 5] = [
    Which::LastOfActive,
    Which::LastOfSealed,
    Which::NextToLastOfActive,
    Which::MiddleOfActive,
    Which::MiddleOfSealed,
];

/// Where a batch lies.
#[derive(Debug)]
pub(super) struct Place {
    pub file: PathBuf,
    pub position: u64,
    pub base: Offset,
}

/// A log of three leader epochs in several segments, after a clean stop; the batch in question, and all batches.
pub(super) fn stopped(which: Which) -> (Bench, Place, Vec<Bytes>) {
    stopped_in(LogConfig { segment_bytes: 3000, ..small_segments() }, which)
}

fn stopped_in(config: LogConfig, which: Which) -> (Bench, Place, Vec<Bytes>) {
    let mut bench = Bench::new(config);
    for at in 0..BATCHES {
        let base = at * i64::from(RECORDS);
        bench.append(batch(base, RECORDS, 40, 1000 + base, 4 * (at / 15) as i32)).unwrap();
    }
    bench.stop().unwrap();
    bench.reopen().unwrap();
    let batches = bench.read_all(10_000).unwrap();
    bench.stop().unwrap();
    bench.is_repairable = true;
    let last = bench.log.segments.len() - 1;
    assert!(last > 2);
    let at = if matches!(which, Which::LastOfSealed | Which::MiddleOfSealed) { 1 } else { last };
    let segment = bench.log.segments[at].base;
    let file = bench.path(&format!("{:020}.log", segment.get()));
    let bytes = bench.disk.contents(&file).unwrap();
    let mut places = Vec::new();
    let mut position = 0;
    while position < bytes.len() {
        let header = BatchHeader::parse(&bytes[position..]).unwrap();
        places.push(Place { file: file.clone(), position: position as u64, base: header.base_offset });
        position += header.size as usize;
    }
    assert!(places.len() > 3, "{}", places.len());
    let place = places.swap_remove(match which {
        Which::LastOfActive | Which::LastOfSealed => places.len() - 1,
        Which::NextToLastOfActive => places.len() - 2,
        Which::MiddleOfActive | Which::MiddleOfSealed => places.len() / 2,
    });
    (bench, place, batches)
}

pub(super) fn flip(bench: &Bench, place: &Place, byte: usize, mask: u8) {
    bench.disk.corrupt(&place.file, |bytes| bytes[place.position as usize + byte] ^= mask);
}

/// The first damage that the opening, the scrub or a reader of everything names, in this order.
fn named(bench: &mut Bench, opened: Opened) -> Option<StorageError> {
    let disk: Arc<dyn Disk> = Arc::new(bench.disk.clone());
    let dir = place().dir();
    let scrubbed = segments(&*disk, &dir).unwrap().into_iter().find_map(|listed| {
        let end = bench.log.recovery_point();
        let walk = SegmentScrub::open(&disk, &dir, listed, end, true).unwrap().unwrap();
        let epochs = KnownEpochs::read(&*disk, &dir, end).unwrap();
        match walk.with_epochs(epochs).step(1 << 20).unwrap() {
            Scrubbed::Damage(_, error) => Some(error),
            _ => None,
        }
    });
    opened.damaged.into_iter().next().or(scrubbed).or_else(|| bench.read_all(10_000).err())
}

fn check(which: Which, byte: usize, mask: u8) {
    check_in(LogConfig { segment_bytes: 3000, ..small_segments() }, which, byte, mask);
}

fn check_in(config: LogConfig, which: Which, byte: usize, mask: u8) {
    let what = format!("{which:?}, byte {byte}, mask {mask:#x}");
    let (mut bench, damaged, batches) = stopped_in(config, which);
    flip(&bench, &damaged, byte, mask);
    let before = bench.disk.contents(&damaged.file).unwrap();
    let opened = bench.reopen().unwrap_or_else(|error| panic!("{what}: it is not opened: {error}"));
    assert_eq!(bench.log.end(), END, "{what}");
    assert_eq!(opened.cut, None, "{what}");
    let found = named(&mut bench, opened);
    let Some(StorageError::Damaged { file, position, offset, .. }) = found else {
        panic!("{what}: {found:?}");
    };
    assert_eq!((file, position), (damaged.file.clone(), damaged.position), "{what}");
    assert_eq!(offset, damaged.base, "{what}");
    // Everything in front of it is served, and nothing that was not written.
    for max_bytes in [1, 700, 10_000] {
        bench.log.forget_sound();
        bench.log.hints = [None; 2];
        let Err(error) = bench.read_all(max_bytes) else {
            panic!("{what}: reads of {max_bytes} find nothing")
        };
        let StorageError::Damaged { offset, .. } = error else { panic!("{what}: {error}") };
        assert!(offset <= damaged.base, "{what}, reads of {max_bytes}: {error}");
        let front = bench.log.read(&mut bench.files, Offset(0), max_bytes, END, true);
        assert!(front.is_ok_and(|read| batches[0][..] == read.records[..batches[0].len()]), "{what}");
    }
    assert_eq!(bench.disk.contents(&damaged.file).unwrap(), before, "{what}: nothing is truncated");
    // What a repair does.
    let base = bench.log.segment_base_of(offset);
    bench.log.give_up_segments(&mut bench.files, base, NOW).unwrap();
    for batch in batches.iter().filter(|batch| BatchHeader::parse(batch).unwrap().base_offset >= base) {
        bench.append(batch.clone()).unwrap();
    }
    assert_eq!(bench.read_all(10_000).unwrap(), batches, "{what}");
    bench.stop().unwrap();
    assert_eq!(bench.reopen().unwrap().damaged, [], "{what}");
}

fn check_bytes(which: Which, bytes: std::ops::Range<usize>) {
    for byte in bytes {
        for mask in [1, 2, 0x82] {
            check(which, byte, mask);
        }
    }
}

#[test]
fn changed_base_offset_of_the_last_batch_is_named() {
    check_bytes(Which::LastOfActive, 0..8);
}

#[test]
fn changed_base_offset_of_a_sealed_last_batch_is_named() {
    check_bytes(Which::LastOfSealed, 0..8);
}

#[test]
fn changed_base_offset_of_a_middle_batch_is_named() {
    check_bytes(Which::NextToLastOfActive, 0..8);
    check_bytes(Which::MiddleOfActive, 0..8);
    check_bytes(Which::MiddleOfSealed, 0..8);
}

/// No index entry lies between the damaged batch and the end of the log.
#[test]
fn changed_base_offset_behind_the_last_index_entry_is_named() {
    let config = || LogConfig { segment_bytes: 3000, index_interval_bytes: 4096, ..small_segments() };
    for which in [Which::LastOfActive, Which::NextToLastOfActive, Which::MiddleOfActive] {
        for (byte, mask) in (0..8).flat_map(|byte| [1, 2, 4, 0x82].map(|mask| (byte, mask))) {
            check_in(config(), which, byte, mask);
        }
    }
}

#[test]
fn changed_leader_epoch_of_a_batch_is_named() {
    ALL.into_iter().for_each(|which| check_bytes(which, 12..16));
}

/// What an unclean start reads again below the recovery point tells it nothing of epochs that their file does not know
/// better.
#[test]
fn changed_leader_epoch_is_named_after_an_unclean_stop() {
    for (damaged, byte) in (0..4).flat_map(|damaged| (12..16).map(move |byte| (damaged, byte))) {
        let mut bench = Bench::new(LogConfig::default());
        let mut positions = Vec::new();
        for at in 0..6 {
            positions.push(bench.log.size_bytes() as usize);
            bench.append(batch(at, 1, 40, 1000 + at, 4 * (at / 3) as i32)).unwrap();
        }
        bench.sync().unwrap();
        bench.checkpoint().unwrap();
        let epochs = bench.log.epochs().clone();
        bench.disk.crash(1);
        let file = bench.path("00000000000000000000.log");
        bench.disk.corrupt(&file, |bytes| bytes[positions[damaged] + byte] ^= 0x40);
        let opened = bench.reopen().unwrap();
        let what = format!("batch {damaged}, byte {byte}");
        assert_eq!(*bench.log.epochs(), epochs, "{what}");
        let found = named(&mut bench, opened);
        let is_it = |error: &StorageError| matches!(error, StorageError::Damaged { offset, .. } if *offset == Offset(damaged as i64));
        assert!(found.as_ref().is_some_and(is_it), "{what}: {found:?}");
    }
}

/// A batch that seems to reach over the ones behind it is not what a truncation goes by.
#[test]
fn truncation_beside_a_changed_last_offset_delta_keeps_what_lies_before_it() {
    for (damaged, byte) in (0..3).flat_map(|damaged| (23..27).map(move |byte| (damaged, byte))) {
        let mut bench = Bench::new(LogConfig::default());
        let mut position = 0;
        for at in 0..6 {
            if at == damaged {
                position = bench.log.size_bytes() as usize;
            }
            bench.append(batch(at, 1, 40, 1000 + at, 0)).unwrap();
        }
        let file = bench.path("00000000000000000000.log");
        bench.disk.corrupt(&file, |bytes| bytes[position + byte] ^= 0x40);
        let (end, damage) = bench.log.truncation_end(&mut bench.files, Offset(4)).unwrap();
        let what = format!("batch {damaged}, byte {byte}: {end}, {damage:?}");
        assert_eq!(end, Offset(4), "{what}");
        assert!(
            matches!(damage, Some(StorageError::Damaged { offset, .. }) if offset == Offset(damaged)),
            "{what}"
        );
    }
}

#[test]
fn every_other_byte_of_a_header_is_named() {
    for which in ALL {
        check_bytes(which, 8..12);
        check_bytes(which, 16..HEADER_BYTES);
    }
}

#[cfg(planted)]
#[test]
fn planted_log_would_end_elsewhere_if_its_last_batch_were_believed() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let caught = |byte: &usize| std::panic::catch_unwind(|| check(Which::LastOfActive, *byte, 1)).is_err();
    let missed: Vec<usize> = barnabas_base::planted::with("BelievesTheLastBatch", || {
        (0..8).filter(|byte| !caught(byte)).collect()
    });
    std::panic::set_hook(hook);
    assert_eq!(missed, [] as [usize; 0]);
}

/// A leader names the real end of a log whose last batch has another base offset: nothing is cut within that batch.
#[test]
fn truncation_beside_a_displaced_batch_keeps_to_the_batches() {
    for (byte, mask) in (0..8).flat_map(|byte| [1, 2, 0x40].map(|mask| (byte, mask))) {
        let (mut bench, damaged, batches) = stopped(Which::LastOfActive);
        bench.reopen().unwrap();
        // It changes while the broker runs, or the log's end was never checked.
        flip(&bench, &damaged, byte, mask);
        for target in damaged.base.get() - 3..END.get() {
            let found = bench.log.truncation_end(&mut bench.files, Offset(target)).unwrap();
            let (end, damage) = found;
            assert_eq!(
                end.get(),
                target / i64::from(RECORDS) * i64::from(RECORDS),
                "{byte}, {mask:#x}, to {target}"
            );
            assert_eq!(damage.is_some(), target >= damaged.base.get(), "{byte}, {mask:#x}, to {target}");
        }
        let (end, _) = bench.log.truncation_end(&mut bench.files, damaged.base).unwrap();
        bench.log.truncate_to(&mut bench.files, end, NOW).unwrap();
        assert_eq!(bench.log.end(), damaged.base);
        bench.append(batches.last().unwrap().clone()).unwrap();
        assert_eq!(bench.read_all(10_000).unwrap(), batches);
    }
}

/// The end itself is wrong, one offset too far, and the leader ends where the log really does.
#[test]
fn truncation_of_a_displaced_end_cuts_no_batch() {
    let (mut bench, damaged, batches) = stopped(Which::LastOfActive);
    bench.reopen().unwrap();
    assert_eq!(damaged.base.get() & 1, 1, "the flipped bit takes it back");
    bench.disk.corrupt(&damaged.file, |bytes| bytes[damaged.position as usize + 7] += 1);
    bench.log.segment_end = END.plus(1);
    let (end, damage) = bench.log.truncation_end(&mut bench.files, END).unwrap();
    let Some(StorageError::Damaged { position, offset, .. }) = damage else { panic!("{damage:?}") };
    assert_eq!((end, position, offset), (END, damaged.position, damaged.base));
    let before = bench.disk.contents(&damaged.file).unwrap();
    bench.log.truncate_to(&mut bench.files, end, NOW).unwrap();
    assert_eq!((bench.log.end(), bench.disk.contents(&damaged.file).unwrap()), (END, before));
    let mut scanned = 0;
    bench.log.scan_headers(&mut bench.files, Offset(0), END, &mut |_| scanned += 1).unwrap();
    assert_eq!(scanned, batches.len(), "the states of producers are rebuilt from all of them");
}

/// Nothing can repair it: the partition is refused, by the right name.
#[test]
fn damaged_end_stops_a_log_without_other_replicas() {
    for byte in 0..8 {
        let (mut bench, damaged, _) = stopped(Which::LastOfActive);
        bench.is_repairable = false;
        flip(&bench, &damaged, byte, 1);
        let error = bench.reopen().expect_err("it ends elsewhere");
        let StorageError::Damaged { file, position, offset, .. } = error else { panic!("{error}") };
        assert_eq!((file, position, offset), (damaged.file, damaged.position, damaged.base), "byte {byte}");
    }
}

/// An index entry points at the batch whose base offset was lowered: no reader gets past it, wherever it begins.
#[test]
fn lowered_base_offset_of_an_indexed_batch_is_never_skipped() {
    const COUNT: i64 = 120;
    let mut bench =
        Bench::new(LogConfig { segment_bytes: 1 << 20, index_interval_bytes: 300, ..LogConfig::default() });
    for at in 0..COUNT {
        bench.append(batch(at, 1, 40, 1000 + at, 4)).unwrap();
    }
    bench.stop().unwrap();
    let file = bench.path("00000000000000000000.log");
    let size = bench.disk.contents(&file).unwrap().len() / COUNT as usize;
    for (at, mask) in (0..COUNT).flat_map(|at| [1, 2, 4, 8, 16, 32].map(|mask| (at, mask))) {
        if at & mask == 0 {
            continue;
        }
        let flip = |bench: &Bench| {
            bench.disk.corrupt(&file, |bytes| bytes[at as usize * size + 7] ^= mask as u8);
        };
        bench.reopen().unwrap();
        flip(&bench);
        for from in (at & !15)..=at {
            bench.log.forget_sound();
            bench.log.hints = [None; 2];
            let mut next = Offset(from);
            let error = loop {
                match bench.log.read(&mut bench.files, next, 300, Offset(COUNT), true) {
                    Ok(read) => {
                        let first = BatchHeader::parse(&read.records).unwrap().base_offset;
                        assert_eq!(first, next, "batch {at}, mask {mask}, from {from}");
                        next = read.next_offset;
                        assert!(next <= Offset(at), "batch {at}, mask {mask}, from {from}: it is skipped");
                    }
                    Err(error) => break error,
                }
            };
            let is_it = matches!(error, StorageError::Damaged { offset, .. } if offset <= Offset(at));
            assert!(is_it, "batch {at}, mask {mask}, from {from}: {error}");
        }
        let opened = Opened::default();
        let found = named(&mut bench, opened);
        assert!(
            matches!(found, Some(StorageError::Damaged { offset, .. }) if offset == Offset(at)),
            "{found:?}"
        );
        flip(&bench);
        bench.stop().unwrap();
    }
}
