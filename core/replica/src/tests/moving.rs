//! A replica moves to another directory while it is appended to; a log that was truncated does not.

use std::path::Path;
use std::sync::Arc;

use barnabas_base::{LeaderEpoch, Offset, Uuid};
use barnabas_partition::{Acks, Cut};
use barnabas_storage::{DiskError, DiskErrorKind, FilePool, LogDir, LogPlace, StorageError};

use super::Bench;
use super::bench::{NOW, opening, place, unknown};
use crate::{CopyVerdict, Effect, Fits, LogCopy, MoveBegins, Opening, Replica};

const OTHER: &str = "/other";

fn copy_of(bench: &Bench) -> (LogCopy, LogDir) {
    let disk = Arc::new(bench.disk.clone());
    let log_dir = LogDir::open(disk.clone(), Path::new(OTHER)).unwrap();
    let place = LogPlace { root: Arc::from(Path::new(OTHER)), future: Some(Uuid([5; 16])), ..place() };
    bench.files.disk().create_dir(&place.dir()).unwrap();
    (LogCopy::new(place, FilePool::new(disk, 8)), log_dir)
}

/// Two batches in segments and one in memory, all durable in the journal.
fn leader() -> Bench {
    let mut bench = Bench::leader();
    bench.append(10, Some(0), Acks::Leader, 1);
    bench.append(10, Some(10), Acks::Leader, 2);
    bench.write_back().unwrap();
    bench.append(10, Some(20), Acks::Leader, 3);
    bench.durable();
    bench.effects();
    bench
}

/// Copies all that is durable, a batch at a time. Returns the pieces that it took.
fn copy_durable(bench: &mut Bench, copy: &mut LogCopy) -> usize {
    let Bench { replica, files, .. } = bench;
    for pieces in 1.. {
        let piece = replica.read_durable_piece(copy.end(), 1, true, files).unwrap();
        assert_eq!(copy.put(&piece, NOW).unwrap(), Fits::Yes);
        if copy.has_caught_up(&piece) {
            return pieces;
        }
    }
    unreachable!("it catches up")
}

#[test]
fn move_begins_with_a_copy_unless_there_is_nothing_to_copy() {
    assert_eq!(Bench::leader().replica.begin_move(1), MoveBegins::Empty);
    let mut bench = leader();
    assert_eq!(bench.replica.begin_move(0), MoveBegins::There);
    bench.replica.was_truncated = true;
    let bytes = bench.replica.log.size_bytes();
    assert_eq!(bench.replica.begin_move(1), MoveBegins::ToCopy { bytes });
    assert!(bench.replica.may_finish_move(1) && !bench.replica.may_finish_move(0));
}

#[test]
fn only_what_is_durable_is_copied_before_the_last_step() {
    let mut bench = leader();
    bench.append(5, Some(30), Acks::Leader, 4);
    let (mut copy, _) = copy_of(&bench);
    assert_eq!(copy_durable(&mut bench, &mut copy), 3);
    assert_eq!(copy.end(), Some(Offset(30)));
    let Bench { replica, files, .. } = &mut bench;
    assert!(replica.catch_up(&mut copy, files, NOW).unwrap());
    assert_eq!(copy.end(), Some(Offset(35)));
}

#[test]
fn replica_goes_on_in_the_other_directory() {
    let mut bench = leader();
    let (mut copy, mut log_dir) = copy_of(&bench);
    bench.replica.begin_move(1);
    copy_durable(&mut bench, &mut copy);
    let name = bench.replica.name.clone();
    bench.replica.journal.write_back = Some((name.clone(), Offset(30)));
    let unwritten = bench.replica.log.staged_bytes();
    let Bench { replica, files, outbox, .. } = &mut bench;
    assert!(replica.catch_up(&mut copy, files, NOW).unwrap());
    copy.promote(&mut log_dir, replica.partition.high_watermark()).unwrap();
    let left = replica.move_to(1, copy.log.take().unwrap(), files, outbox);
    assert_eq!((left.directory, left.unwritten_bytes, left.order), (0, unwritten, Some(name)));
    assert!(unwritten > 0, "some of it was in memory alone");
    replica.moved(outbox);
    bench.effects();
    bench.files = copy.files;
    // The next append waits for the `Range` of the new journal.
    bench.step(|replica, around| replica.note_ranges(around.entries));
    bench.place(1, Acks::All, 9).unwrap();
    bench.finish_round();
    assert_eq!(bench.journal()[0], "range 0..30");
    assert!(!bench.effects().iter().any(|effect| matches!(effect, Effect::Answer { .. })));
    assert_eq!((bench.replica.directory, bench.replica.log.end()), (1, Offset(31)));
    let next = Opening {
        place: LogPlace { root: Arc::from(Path::new(OTHER)), ..place() },
        ..opening(Some(unknown()), None)
    };
    let (found, _) = Replica::open(next, &mut bench.files).unwrap();
    assert_eq!(found.log.end(), Offset(31));
    assert_eq!(found.partition.producers().len(), 1);
}

#[test]
fn truncated_replica_is_not_moved() {
    let mut bench = leader();
    bench.replica.begin_move(1);
    bench.replica.partition.become_follower(LeaderEpoch(2), &mut bench.outbox.decisions);
    bench.replica.want_truncation(Cut::To(Offset(20)), false, false);
    assert!(!bench.replica.may_finish_move(1));
}

#[test]
fn move_that_begins_before_a_truncation_is_carried_out_is_over() {
    let mut bench = leader();
    bench.replica.partition.become_follower(LeaderEpoch(2), &mut bench.outbox.decisions);
    bench.replica.want_truncation(Cut::To(Offset(20)), false, false);
    bench.replica.begin_move(1);
    let (_, mut log_dir) = copy_of(&bench);
    let Bench { replica, files, outbox, .. } = &mut bench;
    replica.lower_checkpoints(&mut log_dir).unwrap();
    replica.truncate(files, NOW, &mut outbox.effects).unwrap();
    replica.finish_truncation(files).unwrap();
    assert!(replica.truncation.is_none());
    assert!(!replica.may_finish_move(1), "the copy may have what is truncated");
    replica.begin_move(1);
    assert!(replica.may_finish_move(1));
}

#[test]
fn copy_that_the_log_does_not_go_on_from_is_begun_again() {
    let mut bench = leader();
    let (mut copy, _) = copy_of(&bench);
    copy_durable(&mut bench, &mut copy);
    let Bench { replica, files, .. } = &mut bench;
    let early = replica.read_durable_piece(Some(Offset(10)), 1, true, files).unwrap();
    assert_eq!(copy.put(&early, NOW).unwrap(), Fits::No);
}

#[test]
fn error_of_a_move_says_what_becomes_of_it() {
    let read_only = StorageError::Disk(DiskError::new("write", OTHER, DiskErrorKind::ReadOnly));
    let full = StorageError::Full(OTHER.into());
    let damaged =
        StorageError::BadFile { file: OTHER.into(), what: String::new(), remedy: "restore it from a copy" };
    assert_eq!(CopyVerdict::of(&full, false), CopyVerdict::Retry);
    assert_eq!(CopyVerdict::of(&read_only, true), CopyVerdict::DirectoryFailed);
    assert_eq!(CopyVerdict::of(&damaged, false), CopyVerdict::Over);
    assert_eq!(CopyVerdict::of(&damaged, true), CopyVerdict::BeginAgain);
}
