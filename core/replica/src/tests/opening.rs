//! Producers are known again after a start and after a truncation.

use std::path::PathBuf;

use barnabas_base::{LeaderEpoch, Offset};
use barnabas_partition::Acks;
use barnabas_storage::{DiskError, DiskErrorKind, Faults, OpenFrom, OpenMode, StorageError, quarantine};

use super::Bench;
use super::bench::{NOW, batch, opening, place, unknown};
use crate::{Checkpointed, OpenError, OpenVerdict, Opening, Replica};

fn sequences(bench: &Bench) -> Vec<(i64, i32)> {
    let producers = bench.replica.partition.producers();
    let last = |batch: barnabas_partition::LastBatch| batch.last_sequence.0;
    producers.iter().map(|producer| (producer.producer_id.0, producer.last_batch.map_or(-1, last))).collect()
}

#[test]
fn reopened_replica_knows_its_producers_with_and_without_a_snapshot() {
    for with_snapshot in [false, true] {
        let mut bench = Bench::leader();
        bench.append(3, Some(0), Acks::All, 1);
        bench.append(2, Some(3), Acks::All, 2);
        bench.write_back().unwrap();
        if with_snapshot {
            let Bench { replica, files, outbox, .. } = &mut bench;
            replica.snapshot_producers(files, &mut outbox.effects).unwrap();
            assert_eq!(replica.upkeep.snapshot_at, Offset(5));
        }
        let bench = bench.reopen();
        assert_eq!(sequences(&bench), [(7, 4)]);
        assert_eq!((bench.replica.partition.log_end(), bench.replica.log.end()), (Offset(5), Offset(5)));
    }
}

#[test]
fn truncated_replica_forgets_what_went_and_follows_on() {
    let mut bench = Bench::leader();
    bench.append(3, Some(0), Acks::Leader, 1);
    bench.append(2, Some(3), Acks::Leader, 2);
    bench.write_back().unwrap();
    let Bench { replica, files, outbox, .. } = &mut bench;
    replica.partition.become_follower(LeaderEpoch(2), &mut outbox.decisions);
    replica.log.truncate_to(files, Offset(3), NOW).unwrap();
    replica.reload(files).unwrap();
    assert!(!replica.partition.is_leader());
    assert_eq!(replica.partition.leader_epoch(), LeaderEpoch(2));
    assert_eq!(replica.partition.log_end(), Offset(3));
    assert_eq!(replica.readers.promised_end, Offset(3));
    assert_eq!(sequences(&bench), [(7, 2)]);
}

#[test]
fn failed_disk_is_the_directorys_with_and_without_a_journal() {
    use OpenVerdict::{DirectoryFailed, Offline, Quarantine, Retry};
    let path = || PathBuf::from("/data/orders-0");
    let disk = |kind| StorageError::Disk(DiskError::new("sync", path(), kind));
    let damaged = StorageError::Damaged { file: path(), position: 0, offset: Offset(0), what: "test" };
    // What opening met, the verdict where the journal holds something of the partition, and where it does not.
    let table = [
        (StorageError::Full(path()), Retry, Retry),
        (disk(DiskErrorKind::Device), DirectoryFailed, DirectoryFailed),
        (disk(DiskErrorKind::ReadOnly), DirectoryFailed, DirectoryFailed),
        (StorageError::Failed(path()), DirectoryFailed, DirectoryFailed),
        (disk(DiskErrorKind::Denied), Quarantine, Offline),
        (damaged, Quarantine, Offline),
    ];
    for (error, with_journal, without) in table {
        let error = OpenError::Storage(error);
        assert_eq!((error.verdict(true), error.verdict(false)), (with_journal, without), "{error}");
    }
}

#[test]
fn sync_that_fails_while_a_log_is_opened_fails_its_directory() {
    let mut bench = Bench::leader();
    bench.append(3, None, Acks::Leader, 1);
    bench.write_back().unwrap();
    bench.replica.log.abandon_files(&mut bench.files);
    bench.disk.set_faults(Faults { syncs_until_error: Some(0), ..Faults::default() });
    let error = Replica::open(opening(Some(unknown()), None), &mut bench.files).unwrap_err();
    assert_eq!(error.verdict(false), OpenVerdict::DirectoryFailed, "{error}");
}

/// What the log holds below what was kept aside was synced: damage there is no torn tail.
#[test]
fn damage_below_what_was_kept_aside_is_not_cut() {
    let mut bench = Bench::leader();
    for _ in 0..2 {
        bench.append(2, None, Acks::Leader, 1);
    }
    bench.write_back().unwrap();
    let disk = bench.files.disk().clone();
    let dirty = bench.replica.log.close(&mut bench.files).unwrap();
    dirty.unwrap().sync(&*disk, None).unwrap();
    let name = place();
    let aside = quarantine::path(&name.root, &name.topic_partition, name.topic_id);
    let kept = disk.open(&aside, OpenMode::Create).unwrap();
    kept.write_at(0, &[&batch(4, 1, None)]).unwrap();
    assert_eq!(quarantine::goes_on_at(&*disk, &aside).unwrap(), Some(Offset(4)));
    let file = name.dir().join("00000000000000000000.log");
    let len = disk.stat(&file).unwrap().unwrap().len;
    bench.disk.corrupt(&file, |bytes| bytes[7] ^= 1);
    let refused = Replica::open(opening(Some(unknown()), None), &mut bench.files).unwrap_err();
    assert!(refused.is_damage(), "{refused}");
    assert_eq!(disk.stat(&file).unwrap().unwrap().len, len, "nothing was cut");
}

/// The last batch says after a clean stop that it begins one offset later. Beside other replicas the log ends where it
/// did, and is repaired.
#[test]
fn damaged_end_is_opened_only_beside_other_replicas() {
    let mut bench = Bench::leader();
    for _ in 0..2 {
        bench.append(10, None, Acks::Leader, 1);
        bench.write_back().unwrap();
    }
    let dirty = bench.replica.log.close(&mut bench.files).unwrap();
    dirty.unwrap().sync(&**bench.files.disk(), None).unwrap();
    let file = place().dir().join("00000000000000000010.log");
    bench.disk.corrupt(&file, |bytes| bytes[7] ^= 1);
    let from = OpenFrom { clean: true, recovery_point: Offset(20), ..OpenFrom::default() };
    let stopped = Checkpointed { from, ..unknown() };
    let refused = Replica::open(opening(Some(stopped), None), &mut bench.files).unwrap_err();
    assert!(refused.is_damage(), "{refused}");
    let beside = Opening { has_other_replicas: true, ..opening(Some(stopped), None) };
    let (mut replica, report) = Replica::open(beside, &mut bench.files).unwrap();
    assert_eq!((replica.log.end(), replica.partition.log_end()), (Offset(20), Offset(20)));
    let [StorageError::Damaged { file: named, position: 0, offset, .. }] = &report.log.damaged[..] else {
        panic!("{:?}", report.log.damaged)
    };
    assert_eq!((named, *offset), (&file, Offset(10)));
    assert_eq!(replica.note_damage(*offset, true), Some(Offset(10)));
}
