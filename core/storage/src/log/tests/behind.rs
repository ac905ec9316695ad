//! Sound batches behind a damaged one are served, from whichever offset a reader begins; and nothing else is.

use super::headers::{Place, RECORDS, flip};
use super::*;

const BATCHES: i64 = 60;
const END: Offset = Offset(RECORDS as i64 * BATCHES);

/// One segment, in which several batches share an index entry, out of memory; the place of each batch, and its bytes.
fn stopped() -> (Bench, Vec<(Place, Bytes)>) {
    let mut bench = Bench::new(LogConfig { index_interval_bytes: 4096, ..LogConfig::default() });
    for at in 0..BATCHES {
        let base = at * i64::from(RECORDS);
        bench.append(batch(base, RECORDS, 40, 1000 + base, 0)).unwrap();
    }
    let mut batches = Vec::new();
    let (mut position, file) = (0, bench.path("00000000000000000000.log"));
    for bytes in bench.read_all(100_000).unwrap() {
        let base = BatchHeader::parse(&bytes).unwrap().base_offset;
        let place = Place { file: file.clone(), position, base };
        position += bytes.len() as u64;
        batches.push((place, bytes));
    }
    bench.stop().unwrap();
    bench.reopen().unwrap();
    (bench, batches)
}

/// Reads from each offset by itself, and demands that all but those of `damaged` are served. Returns how many of the
/// damaged ones are refused.
fn read_each(bench: &mut Bench, batches: &[(Place, Bytes)], damaged: &[usize], what: &str) -> usize {
    let mut refused = 0;
    for max_bytes in [1, 5000] {
        for offset in 0..END.get() {
            bench.log.forget_sound();
            bench.log.hints = [None; 2];
            let at = (offset / i64::from(RECORDS)) as usize;
            match bench.log.read(&mut bench.files, Offset(offset), max_bytes, END, true) {
                Ok(read) => {
                    let own = &batches[at].1;
                    let is_right = read.records.starts_with(own);
                    // The leader epoch of a batch lies outside its checksum.
                    let is_known = damaged.contains(&at) && read.records[16..own.len()] == own[16..];
                    assert!(
                        is_right || is_known,
                        "{what}: another batch for {offset}: {:?}",
                        BatchHeader::parse(&read.records)
                    );
                }
                Err(StorageError::Damaged { .. }) if damaged.contains(&at) => refused += 1,
                Err(error) => panic!("{what}: {offset}, reads of {max_bytes}: {error}"),
            }
        }
    }
    refused
}

#[test]
fn batches_behind_a_damaged_one_are_served() {
    for at in [0, 7, 30, BATCHES as usize - 2] {
        for byte in 0..70 {
            for mask in [0x01, 0xff] {
                let what = format!("batch {at}, byte {byte}, mask {mask:#x}");
                let (mut bench, batches) = stopped();
                flip(&bench, &batches[at].0, byte, mask);
                let refused = read_each(&mut bench, &batches, &[at], &what);
                let is_epoch = (12..16).contains(&byte);
                assert!(is_epoch || refused == 2 * RECORDS as usize, "{what}: {refused} refused");
            }
        }
    }
}

#[test]
fn batches_between_damaged_ones_are_served() {
    // A byte of the length, the base offset, the payload and the magic. Beside a header that cannot be read at all a
    // batch is not believed that another such header hides.
    let apart: &[usize] = &[5, 8, 9, 20];
    for (byte, damaged) in [(10, [5, 7, 8, 20].as_slice()), (6, apart), (65, apart), (16, apart)] {
        let what = format!("byte {byte}");
        let (mut bench, batches) = stopped();
        damaged.iter().for_each(|at| flip(&bench, &batches[*at].0, byte, 0x11));
        assert_eq!(read_each(&mut bench, &batches, damaged, &what), 2 * 4 * RECORDS as usize, "{what}");
    }
}

/// A record's value is a batch that would fit; the length of the batch around it has changed.
#[test]
pub(super) fn batch_in_a_value_is_not_taken_for_one() {
    let mut bench = Bench::new(LogConfig::default());
    bench.append(batch(0, 5, 40, 1000, 0)).unwrap();
    let mut builder = BatchBuilder::new(BatchOptions { base_offset: Offset(5), ..BatchOptions::default() });
    let inner = batch(6, 2, 40, 1000, 0);
    (0..3).for_each(|_| builder.push(TimestampMs(1000), None, Some(&inner), &[]));
    let outer = builder.build().unwrap();
    let behind = batch(8, 5, 40, 1000, 0);
    let position = bench.read_all(1000).unwrap()[0].len() as u64;
    for bytes in [&outer, &behind] {
        bench.append(bytes.clone()).unwrap();
    }
    bench.stop().unwrap();
    bench.reopen().unwrap();
    let place = Place { file: bench.path("00000000000000000000.log"), position, base: Offset(5) };
    flip(&bench, &place, 10, 0x01);
    for offset in 5..13 {
        bench.log.hints = [None; 2];
        match bench.log.read(&mut bench.files, Offset(offset), 1, Offset(13), true) {
            Ok(read) => assert!(offset >= 8 && read.records == behind, "{offset}: another batch"),
            Err(error) => assert!(offset < 8, "{offset}: {error}"),
        }
    }
}

/// What was found sound is compared again once the check has expired, and not before.
#[test]
pub(super) fn damage_after_the_first_read_is_found_when_checks_expire() {
    let (mut bench, batches) = stopped();
    assert_eq!(bench.read_all(100_000).unwrap().len(), batches.len());
    flip(&bench, &batches[7].0, 80, 0x01);
    // Readers at the same time share a check.
    assert_eq!(bench.read_all(100_000).unwrap().len(), batches.len());
    bench.files.expire_checks();
    let found = bench.read_all(100_000);
    assert!(matches!(found, Err(StorageError::Damaged { offset: Offset(35), .. })), "{found:?}");
    assert_eq!(read_each(&mut bench, &batches, &[7], "expired"), 2 * RECORDS as usize);
}
