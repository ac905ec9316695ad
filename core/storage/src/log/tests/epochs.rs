//! Leader epochs of a log, whichever way its records come.

use barnabas_base::EpochEntry;

use super::*;

/// A leader of epoch 8 wrote nothing, and follows one that has more of epoch 7. Were its epoch kept, followers whose
/// records are those of this log would be told to cut them off, again and again (found by lab/sim).
#[test]
fn older_records_displace_an_empty_epoch_however_written() {
    for is_staged in [true, false] {
        let mut bench = Bench::new(LogConfig::default());
        bench.append(batch(0, 4, 10, 1000, 7)).unwrap();
        assert!(bench.log.assign_epoch(LeaderEpoch(8), Offset(4)));
        bench.checkpoint().unwrap();
        let older = batch(4, 1, 10, 1000, 7);
        if is_staged {
            bench.log.stage(&mut bench.memory, &[AppendBytes::Whole(older)]).unwrap();
        } else {
            bench.append(older).unwrap();
        }
        let end_of_epoch = |log: &Log| log.epochs().end_offset_for(LeaderEpoch(7), log.end());
        assert_eq!(end_of_epoch(&bench.log), (LeaderEpoch(7), Offset(5)), "staged: {is_staged}");
        bench.log.assign_epoch(LeaderEpoch(9), Offset(5));
        bench.log.write_back_all(&mut bench.files, NOW).unwrap();
        assert_eq!(
            end_of_epoch(&bench.log),
            (LeaderEpoch(7), Offset(5)),
            "what is written back changes nothing"
        );
        assert_eq!(bench.log.epochs().latest().map(|entry| entry.epoch), Some(LeaderEpoch(9)));
        // The epoch file still names epoch 8.
        bench.sync().unwrap();
        bench.reopen().unwrap();
        assert_eq!(end_of_epoch(&bench.log), (LeaderEpoch(7), Offset(5)));
    }
}

/// The file of epochs is durable before the checkpoint that names the new start. A crash in between brings the deleted
/// records back: their epochs come from the batches, or an older tail elsewhere would pass for this log's.
#[test]
fn epochs_of_records_that_come_back_come_back_too() {
    for new_start in [5, 9] {
        let mut bench = Bench::new(LogConfig::default());
        for (at, epoch) in [(0, 0), (1, 0), (2, 0), (3, 1), (4, 1), (5, 1), (6, 1), (7, 3), (8, 3)] {
            bench.append(batch(at, 1, 10, 1000 + at, epoch)).unwrap();
        }
        bench.sync().unwrap();
        bench.checkpoint().unwrap();
        let before = bench.log.epochs().clone();
        assert!(bench.log.advance_start(Offset(new_start)));
        assert_ne!(*bench.log.epochs(), before);
        // The epochs alone.
        bench.log.checkpoint(&mut bench.files).unwrap();
        bench.reopen().unwrap();
        assert_eq!(bench.log.start(), Offset(0));
        assert_eq!(*bench.log.epochs(), before, "start {new_start}");
        let end = bench.log.end();
        assert_eq!(bench.log.epochs().end_offset_for(LeaderEpoch(0), end), (LeaderEpoch(0), Offset(3)));
    }
}

/// Records whose epochs are read from their batches again: a changed one is higher than what follows it, so it is not
/// believed, and the batches beside it bear that out. The new start lies in the segments, or in the journal.
#[test]
fn changed_epoch_of_a_record_that_comes_back_is_not_believed() {
    for new_start in [3, 7] {
        let mut bench = Bench::new(LogConfig::default());
        for at in 0..6 {
            bench.append(batch(at, 1, 10, 1000 + at, 2)).unwrap();
        }
        bench.sync().unwrap();
        bench.checkpoint().unwrap();
        for at in 6..9 {
            let bytes = AppendBytes::Whole(batch(at, 1, 10, 1000 + at, 2));
            bench.log.stage(&mut bench.memory, &[bytes]).unwrap();
        }
        assert!(bench.log.advance_start(Offset(new_start)));
        bench.log.checkpoint(&mut bench.files).unwrap();
        let file = bench.path("00000000000000000000.log");
        bench.disk.corrupt(&file, |bytes| bytes[12] ^= 0x40);
        bench.reopen().unwrap();
        assert_eq!((bench.log.start(), bench.log.end()), (Offset(0), Offset(6)));
        let first = EpochEntry { epoch: LeaderEpoch(2), start: Offset(0) };
        assert_eq!(bench.log.epochs().entries(), [first], "start {new_start}");
        let damage = bench.read_all(1000).unwrap_err();
        assert!(matches!(damage, StorageError::Damaged { offset: Offset(0), .. }), "{damage}");
    }
}
