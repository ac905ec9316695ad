//! Deleting the front of a log while the disk has no room for small files.

use barnabas_base::{CoordinatorEpoch, ProducerEpoch, ProducerId};
use barnabas_wire::records::{ControlType, EndTxnMarker, control_batch};

use super::*;
use crate::AbortedTransaction;
use crate::disk::Disk;

/// How a process ends after it has deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is killed before the deleted files are removed, or after.
    Kill { removed: bool },
    /// The power goes.
    PowerCut { seed: u64 },
    /// There is room again, and it is stopped.
    Stop,
}

/// Sixty synced and checkpointed batches of epoch 0 that go by size, on a disk with `room` bytes left.
fn full(room: u64) -> Bench {
    let mut bench = Bench::new(LogConfig { retention_bytes: 2500, ..small_segments() });
    bench.fill(60, 40);
    bench.sync().unwrap();
    bench.checkpoint().unwrap();
    fill_up(&bench, room);
    bench
}

fn fill_up(bench: &Bench, room: u64) {
    let space = bench.dir.space().unwrap();
    bench.disk.set_capacity(space.total - space.free + room);
}

/// Returns the files that go later.
fn retain(bench: &mut Bench) -> Vec<PathBuf> {
    let end = bench.log.end();
    let delete = bench.log.delete_old_segments(&mut bench.files, NOW, end).unwrap();
    delete.map(|delete| delete.files).unwrap_or_default()
}

fn remove(bench: &Bench, paths: &[PathBuf]) {
    paths.iter().for_each(|path| bench.disk.remove_file(path).unwrap());
}

fn ends(bench: &mut Bench, end: End, deleted: &[PathBuf], room: u64) {
    match end {
        End::Kill { removed: false } => {}
        End::Kill { removed: true } => {
            remove(bench, deleted);
            // Others take what was freed.
            fill_up(bench, room);
        }
        End::PowerCut { seed } => bench.disk.crash(seed),
        End::Stop => {
            remove(bench, deleted);
            bench.disk.set_capacity(1 << 30);
            bench.stop().unwrap();
        }
    }
}

#[test]
fn log_opens_after_retention_on_a_full_disk() {
    let kills = [End::Stop, End::Kill { removed: false }, End::Kill { removed: true }];
    let all = || kills.into_iter().chain((0..20).map(|seed| End::PowerCut { seed }));
    let mut unsaid = 0;
    for (room, end) in (0..40).step_by(4).flat_map(|room| all().map(move |end| (room, end))) {
        let mut bench = full(room);
        let before = bench.read_all(1000).unwrap();
        let deleted = retain(&mut bench);
        assert!(!deleted.is_empty(), "a full disk keeps nothing from being deleted");
        unsaid += usize::from(bench.log.has_new_epochs());
        let start = bench.log.start().get() as usize;
        ends(&mut bench, end, &deleted, room);
        // Each start finds the disk as full as the one before it.
        for _ in 0..3 {
            bench.reopen().unwrap_or_else(|error| panic!("room {room}, {end:?}: {error}"));
            let found = bench.log.start().get() as usize;
            assert!(found == start || matches!(end, End::PowerCut { .. }) && found < start);
            assert_eq!(bench.read_all(1000).unwrap(), before[found..], "room {room}, {end:?}");
        }
    }
    assert!(unsaid > 0, "there was room for the epochs");
}

#[test]
fn log_opens_after_a_second_retention_on_a_full_disk() {
    let mut bench = full(0);
    let deleted = retain(&mut bench);
    remove(&bench, &deleted);
    bench.fill(30, 40);
    bench.sync().unwrap();
    fill_up(&bench, 0);
    bench.log.advance_start(Offset(70));
    let deleted = retain(&mut bench);
    assert!(bench.log.has_new_epochs());
    remove(&bench, &deleted);
    fill_up(&bench, 0);
    bench.reopen().unwrap();
    assert_eq!(bench.log.start(), bench.log.first_segment_base());
    // Once there is room the epochs say it, and no name is left.
    bench.disk.set_capacity(1 << 30);
    bench.log.checkpoint(&mut bench.files).unwrap();
    retain(&mut bench);
    assert!(!bench.names().iter().any(|name| name.ends_with(".deleted")), "{:?}", bench.names());
    bench.reopen().unwrap();
}

#[test]
fn log_opens_after_it_restarted_on_a_full_disk() {
    for (room, offset) in (0..60).flat_map(|room| [30, 100].map(|offset| (room, Offset(offset)))) {
        let mut bench = full(room);
        let delete = bench.log.truncate_fully_and_start_at(&mut bench.files, offset, NOW).unwrap();
        let files = delete.map(|delete| delete.files).unwrap_or_default();
        remove(&bench, &files);
        fill_up(&bench, room);
        // The caller has lowered the checkpoint before (core/replica's truncation.rs).
        let name = place().topic_partition;
        let checkpointed = bench.dir.recovery_point(&name).min(offset);
        bench.disk.set_capacity(1 << 30);
        bench.dir.set_recovery_point(name, checkpointed);
        bench.dir.write_checkpoints().unwrap();
        fill_up(&bench, room);
        bench.reopen().unwrap_or_else(|error| panic!("room {room}, at {offset}: {error}"));
        assert_eq!((bench.log.start(), bench.log.end()), (offset, offset));
    }
}

#[test]
fn lost_segment_is_noticed_after_retention_on_a_full_disk() {
    let mut bench = full(0);
    let deleted = retain(&mut bench);
    assert!(bench.log.has_new_epochs());
    remove(&bench, &deleted);
    let lost = format!("{:020}.log", bench.log.first_segment_base().get());
    let bytes = bench.disk.contents(&bench.path(&lost)).unwrap();
    bench.disk.remove_file(&bench.path(&lost)).unwrap();
    assert!(matches!(bench.reopen(), Err(StorageError::Damaged { .. })));
    // Put back, as the error says: what retention deleted before is not taken for lost.
    bench.disk.set_capacity(1 << 30);
    let file = bench.disk.open(&bench.path(&lost), crate::disk::OpenMode::Create).unwrap();
    file.write_at(0, &[&bytes]).unwrap();
    bench.reopen().unwrap();
}

/// An aborted transaction of producer 1, of one batch and its marker.
fn abort_one(bench: &mut Bench) -> AbortedTransaction {
    let first_offset = bench.log.end();
    let options = |bench: &Bench| BatchOptions {
        base_offset: bench.log.end(),
        producer_id: ProducerId(1),
        producer_epoch: ProducerEpoch(0),
        transactional: true,
        ..BatchOptions::default()
    };
    let mut builder = BatchBuilder::new(options(bench));
    builder.push(NOW, None, Some(b"in doubt"), &[]);
    bench.append(builder.build().unwrap()).unwrap();
    let marker = EndTxnMarker { commit: false, coordinator_epoch: CoordinatorEpoch(0) };
    let bytes = control_batch(options(bench), NOW, ControlType::Abort, &marker.value()).unwrap();
    bench.append(bytes).unwrap();
    let aborted = AbortedTransaction {
        producer_id: ProducerId(1),
        first_offset,
        last_offset: first_offset.plus(1),
        last_stable_offset: first_offset.plus(2),
    };
    bench.log.append_aborted(&mut bench.files, aborted).unwrap();
    aborted
}

/// A process is killed, power takes the entry of a transaction that lies past the recovery point out of the index, and
/// the next process finds the disk full. Returns in how many cases it could not open the log.
fn starts_with_a_short_transaction_index() -> usize {
    let mut refused = 0;
    for room in 0..80 {
        let mut bench = Bench::new(LogConfig::default());
        let mut all = vec![abort_one(&mut bench)];
        bench.sync().unwrap();
        bench.checkpoint().unwrap();
        let index = bench.path("00000000000000000000.txnindex");
        let short = bench.disk.contents(&index).unwrap().len();
        all.push(abort_one(&mut bench));
        bench.disk.corrupt(&index, |bytes| bytes.truncate(short));
        fill_up(&bench, room);
        refused += usize::from(bench.reopen().is_err());
        bench.disk.set_capacity(1 << 30);
        bench.reopen().unwrap();
        let end = bench.log.end();
        let found = bench.log.aborted_transactions(&mut bench.files, Offset(0), end).unwrap();
        assert_eq!(found, all, "room {room}");
    }
    refused
}

#[test]
fn aborted_transactions_outlive_a_start_on_a_full_disk() {
    let refused = starts_with_a_short_transaction_index();
    assert!(refused > 0 && refused < 80, "{refused}");
}

#[cfg(planted)]
#[test]
fn planted_mistakes_on_full_disks_are_noticed() {
    let tests: [(&str, fn()); 2] = [
        ("EmptiesTheIndexFirst", || drop(starts_with_a_short_transaction_index())),
        ("DeletesWithoutAName", log_opens_after_retention_on_a_full_disk),
    ];
    for (mistake, test) in tests {
        let passed = std::panic::catch_unwind(|| barnabas_base::planted::with(mistake, test));
        assert!(passed.is_err(), "{mistake} is not noticed");
    }
}
