//! Nothing is truncated out of turn, and what is written down agrees with what is left.

use barnabas_base::{LeaderEpoch, Offset};
use barnabas_partition::{Acks, Cut};
use barnabas_storage::LogDir;
use barnabas_storage::journal::EntryKind;

use super::Bench;
use super::bench::{NOW, ROOT};
use crate::{Effect, TruncationVerdict};

/// A follower with records up to 30 in three segments, a request for a sync out, and checkpoints at 30.
fn follower() -> (Bench, LogDir) {
    let mut bench = Bench::leader();
    for _ in 0..3 {
        bench.append(10, None, Acks::Leader, 1);
        bench.write_back().unwrap();
    }
    bench.durable();
    bench.effects();
    bench.replica.partition.become_follower(LeaderEpoch(2), &mut bench.outbox.decisions);
    assert!(bench.replica.take_sync().is_some());
    let name = bench.replica.name.topic_partition.clone();
    let mut log_dir = LogDir::open(bench.files.disk().clone(), ROOT.as_ref()).unwrap();
    log_dir.set_recovery_point(name.clone(), Offset(30));
    log_dir.set_high_watermark(name.clone(), Offset(30));
    log_dir.set_cleaner_point(name, Some(Offset(5)));
    bench.effects();
    (bench, log_dir)
}

fn truncate(bench: &mut Bench, log_dir: &mut LogDir) -> bool {
    let Bench { replica, files, outbox, .. } = bench;
    replica.lower_checkpoints(log_dir).unwrap();
    replica.truncate(files, NOW, &mut outbox.effects).unwrap();
    replica.finish_truncation(files).unwrap()
}

#[test]
fn log_is_truncated_after_the_note_and_the_checkpoints() {
    let (mut bench, mut log_dir) = follower();
    let (cut, damage) = bench.replica.truncation_at(&mut bench.files, Cut::To(Offset(15))).unwrap();
    assert_eq!((cut, damage), (Cut::To(Offset(10)), None), "batches go as a whole");
    let note = bench.replica.want_truncation(cut, false, true).unwrap();
    assert!(matches!(note.kind, EntryKind::Truncate { end: Offset(10) }));
    assert!(!bench.replica.may_truncate());
    bench.replica.truncation_noted();
    assert!(bench.replica.may_truncate());
    assert!(!truncate(&mut bench, &mut log_dir));
    let replica = &bench.replica;
    assert_eq!((replica.log.end(), replica.partition.log_end()), (Offset(10), Offset(10)));
    assert!(replica.truncation.is_none() && replica.was_truncated && !replica.may_truncate());
    let name = &replica.name.topic_partition;
    let written = (log_dir.recovery_point(name), log_dir.high_watermark(name), log_dir.cleaner_point(name));
    assert_eq!(written, (Offset(10), Some(Offset(10)), Some(Offset(5))));
    assert_eq!(bench.effects(), [Effect::SyncEnds], "a sync that is under way covers nothing of it");
}

#[test]
fn log_that_restarts_has_its_start_in_the_checkpoints() {
    let (mut bench, mut log_dir) = follower();
    let note = bench.replica.want_truncation(Cut::StartAt(Offset(70)), false, true).unwrap();
    assert!(matches!(note.kind, EntryKind::Restart { at: Offset(70) }));
    bench.replica.truncation_noted();
    truncate(&mut bench, &mut log_dir);
    let replica = &bench.replica;
    assert_eq!((replica.log.start(), replica.log.end()), (Offset(70), Offset(70)));
    let name = &replica.name.topic_partition;
    assert_eq!((log_dir.log_start(name), log_dir.recovery_point(name)), (Some(Offset(70)), Offset(30)));
}

#[test]
fn without_a_journal_nothing_is_noted_first() {
    let (mut bench, mut log_dir) = follower();
    assert!(bench.replica.want_truncation(Cut::To(Offset(20)), false, false).is_none());
    assert!(bench.replica.may_truncate());
    truncate(&mut bench, &mut log_dir);
    assert_eq!(bench.replica.log.end(), Offset(20));
}

#[test]
fn repair_forgets_the_damage_and_an_order_ends_with_the_log() {
    let (mut bench, mut log_dir) = follower();
    let replica = &mut bench.replica;
    replica.journal.write_back = Some((replica.name.clone(), Offset(30)));
    replica.note_damage(Offset(23), true);
    replica.want_truncation(Cut::To(Offset(20)), true, false);
    assert!(truncate(&mut bench, &mut log_dir), "it was a repair");
    let replica = &bench.replica;
    assert_eq!(replica.repair.damaged_from(), None);
    assert_eq!(replica.journal.write_back.as_ref().map(|(_, end)| *end), Some(Offset(20)));
}

#[test]
fn bytes_in_memory_alone_are_given_back() {
    let (mut bench, mut log_dir) = follower();
    let Bench { replica, outbox, .. } = &mut bench;
    let leadership = barnabas_partition::Leadership { epoch: LeaderEpoch(3), ..Default::default() };
    replica.partition.become_leader(&leadership, &mut outbox.decisions);
    bench.append(10, None, Acks::Leader, 2);
    let unwritten = bench.replica.log.staged_bytes();
    let Bench { replica, files, outbox, .. } = &mut bench;
    replica.partition.become_follower(LeaderEpoch(4), &mut outbox.decisions);
    replica.want_truncation(Cut::To(Offset(30)), false, false);
    replica.lower_checkpoints(&mut log_dir).unwrap();
    let truncated = replica.truncate(files, NOW, &mut outbox.effects).unwrap();
    assert!(unwritten > 0 && truncated.dropped_bytes == unwritten);
}

#[test]
fn truncation_waits_while_the_disk_is_full() {
    let (mut bench, mut log_dir) = follower();
    bench.replica.want_truncation(Cut::To(Offset(20)), false, true);
    bench.replica.truncation_noted();
    bench.disk.set_capacity(0);
    for _ in 0..2 {
        let error = bench.replica.lower_checkpoints(&mut log_dir).unwrap_err();
        assert_eq!(TruncationVerdict::of(&error), TruncationVerdict::Retry, "{error}");
        assert!(bench.replica.may_truncate());
        assert_eq!(bench.replica.log.end(), Offset(30), "nothing is lost");
    }
    bench.disk.set_capacity(u64::MAX);
    truncate(&mut bench, &mut log_dir);
    assert_eq!(bench.replica.log.end(), Offset(20));
    drop(log_dir);
    let name = bench.replica.name.topic_partition.clone();
    let written = LogDir::open(bench.files.disk().clone(), ROOT.as_ref()).unwrap();
    assert_eq!(written.recovery_point(&name), Offset(20), "the files name it too");
}

#[test]
fn truncation_is_not_done_before_its_state_is_read() {
    let (mut bench, mut log_dir) = follower();
    bench.replica.want_truncation(Cut::To(Offset(20)), false, false);
    let Bench { replica, files, outbox, disk, .. } = &mut bench;
    replica.lower_checkpoints(&mut log_dir).unwrap();
    replica.truncate(files, NOW, &mut outbox.effects).unwrap();
    disk.set_faults(barnabas_storage::Faults { read_error: true, ..Default::default() });
    replica.finish_truncation(files).unwrap_err();
    assert!(replica.truncation.is_some(), "it neither fetches nor changes its role");
    disk.set_faults(barnabas_storage::Faults::default());
    let Bench { replica, files, outbox, .. } = &mut bench;
    replica.lower_checkpoints(&mut log_dir).unwrap();
    let again = replica.truncate(files, NOW, &mut outbox.effects).unwrap();
    assert!(again.delete.is_none() && again.dropped_bytes == 0, "the log is truncated once");
    assert!(!replica.finish_truncation(files).unwrap());
    assert!(bench.replica.truncation.is_none());
    assert_eq!(bench.replica.partition.log_end(), Offset(20));
}

#[test]
#[should_panic(expected = "the journal notes a truncation before anything else")]
fn checkpoints_before_the_note_are_a_bug() {
    let (mut bench, mut log_dir) = follower();
    bench.replica.want_truncation(Cut::To(Offset(20)), false, true);
    let _ = bench.replica.lower_checkpoints(&mut log_dir);
}

#[test]
#[should_panic(expected = "checkpoints are lowered before the log is truncated")]
fn truncation_before_the_checkpoints_is_a_bug() {
    let (mut bench, _) = follower();
    bench.replica.want_truncation(Cut::To(Offset(20)), false, false);
    let Bench { replica, files, outbox, .. } = &mut bench;
    let _ = replica.truncate(files, NOW, &mut outbox.effects);
}
