//! A process cuts what it finds and is killed before it syncs that. The next one finds nothing to cut, goes on there,
//! and then the power goes: nothing of what was cut may come back beside what was written since.

use barnabas_base::{CoordinatorEpoch, ProducerEpoch, ProducerId, Sequence};

use super::*;
use crate::ProducerEntry;

/// What the first process leaves behind five batches that are vouched for.
#[derive(Debug, Clone, Copy)]
enum Left {
    /// A batch that is not whole, and whole ones behind it.
    Tail,
    /// A later segment, and nothing of what was before it.
    Segment,
    /// A producer snapshot of batches that are gone.
    Snapshot,
}

fn config(segment_bytes: u32) -> LogConfig {
    LogConfig { segment_bytes, index_interval_bytes: 200, ..LogConfig::default() }
}

fn other_batch(at: i64) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions { base_offset: Offset(at), ..BatchOptions::default() });
    builder.push(TimestampMs(1000 + at), None, Some(&[0xee; 100]), &[]);
    builder.build().unwrap()
}

fn entry() -> ProducerEntry {
    ProducerEntry {
        producer_id: ProducerId(9),
        epoch: ProducerEpoch(0),
        last_sequence: Sequence(0),
        last_offset: Offset(5),
        offset_delta: 0,
        timestamp: NOW,
        coordinator_epoch: CoordinatorEpoch(0),
        current_txn_first_offset: Offset::NONE,
    }
}

/// What a process that was cut off by the power has left.
fn leave(left: Left) -> Bench {
    let size = batch(0, 1, 100, 1000, 0).len();
    let segment_bytes = if matches!(left, Left::Segment) { 6 * size as u32 } else { 100_000 };
    let mut bench = Bench::new(config(segment_bytes));
    bench.fill(8, 100);
    if matches!(left, Left::Snapshot) {
        bench.log.write_producer_snapshot(&mut bench.files, Offset(6), &[entry()]).unwrap();
    }
    bench.sync().unwrap();
    let path = bench.log.path(Offset(0), crate::disk::file_pool::FileKind::Log);
    bench.disk.corrupt(&path, |bytes| match left {
        Left::Tail => bytes[5 * size + 70] ^= 1,
        Left::Segment | Left::Snapshot => bytes.truncate(5 * size),
    });
    bench
}

/// Opens the log as the next process does, with the recovery point that the last one has noted.
fn open(bench: &mut Bench, recovery_point: i64) -> Result<(), StorageError> {
    bench.files = FilePool::new(Arc::new(bench.disk.clone()), 8);
    let from = OpenFrom {
        recovery_point: Offset(recovery_point),
        is_ours: true,
        is_unsettled: true,
        ..OpenFrom::default()
    };
    (bench.log, _) = Log::open(&mut bench.files, place(), Arc::new(config(100_000)), from, NOW)?;
    Ok(())
}

/// The two lives after that, and a look.
fn story(left: Left, syncs: bool, seed: u64) {
    let mut bench = leave(left);
    bench.disk.kill();
    open(&mut bench, 5).unwrap();
    assert_eq!(bench.log.end(), Offset(5));
    bench.disk.kill();
    open(&mut bench, 5).unwrap();
    assert_eq!(bench.log.end(), Offset(5));
    assert!(bench.log.take_dirty().is_none(), "an opening that changes nothing waits for nothing");
    for at in 5..7 {
        bench.append(other_batch(at)).unwrap();
    }
    if syncs {
        assert_eq!(bench.sync().unwrap(), Offset(7));
    }
    bench.disk.crash(seed);
    open(&mut bench, if syncs { 7 } else { 5 }).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let end = bench.log.end();
    assert!(end <= Offset(7) && (end == Offset(7) || !syncs), "seed {seed}: the log ends at {end}");
    let found = bench.read_all(700).unwrap();
    for (at, bytes) in (5..).zip(found.iter().skip(5)) {
        assert_eq!(*bytes, other_batch(at), "seed {seed}: what was cut is back at {at}");
    }
    let snapshot = bench.log.read_producer_snapshot(&mut bench.files, end).unwrap();
    assert_eq!(snapshot, None, "seed {seed}");
}

const ALL: [(Left, bool); 5] = [
    (Left::Tail, false),
    (Left::Tail, true),
    (Left::Segment, false),
    (Left::Segment, true),
    (Left::Snapshot, true),
];

#[test]
fn what_a_killed_process_cut_does_not_come_back() {
    for (left, syncs) in ALL {
        (0..300).for_each(|seed| story(left, syncs, seed));
    }
}

#[cfg(planted)]
#[test]
fn planted_it_would_come_back_if_what_is_found_were_taken_for_synced() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let caught = |(left, syncs): &(Left, bool)| {
        (0..300).any(|seed| std::panic::catch_unwind(|| story(*left, *syncs, seed)).is_err())
    };
    let missed: Vec<_> = barnabas_base::planted::with("TakesFoundForSynced", || {
        ALL.into_iter().filter(|each| !caught(each)).collect()
    });
    std::panic::set_hook(hook);
    // A sync of the segment's file takes the tail with it.
    assert!(matches!(missed[..], [(Left::Tail, true)]), "{missed:?}");
}
