//! The short form: a few days, each the same the second time. All mistakes, and thousands of days: `make sim`.

use barnabas_sim::{Climate, Fault, Faults, Mistake, World, hunt};

#[test]
fn days_go_well_whatever_goes_wrong() {
    let (mut acked, mut cuts, mut faults) = (0, 0, Faults::default());
    for seed in 0..60 {
        let day = World::new(seed).run().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        (acked, cuts) = (acked + day.acked, cuts + day.cuts);
        faults.add(&day.faults);
    }
    assert!(acked > 3000 && cuts > 30, "{acked} acknowledged, {cuts} cuts");
    // Only questions about transactions come twice. Disks that fill in the middle of a write-back are rarer than that.
    // Nothing is compacted.
    let elsewhere = [
        Fault::DoubledMessage,
        Fault::PostponedWriteBack,
        Fault::StoppedCleaning,
        Fault::FailedCleaning,
        Fault::MovedDirectory,
        Fault::FinishedMove,
        Fault::FailedOperation,
        Fault::RestoredFile,
        Fault::RottenFile,
    ];
    let expected = |fault: &&Fault| !elsewhere.contains(fault);
    for fault in Fault::ALL.iter().filter(expected) {
        assert!(faults.of(*fault) > 0, "{fault:?}: {}", faults.json());
    }
}

#[test]
fn mistakes_are_noticed_in_the_first_days() {
    for mistake in Mistake::SOON {
        let (seed, why) =
            hunt::among_brokers(mistake).unwrap_or_else(|| panic!("{mistake:?} is not noticed"));
        println!("{mistake:?}: seed {seed}: {why}");
    }
}

#[test]
fn the_same_seed_is_the_same_day() {
    for seed in 0..5 {
        assert_eq!(World::new(seed).run(), World::new(seed).run());
    }
}

#[test]
fn days_that_found_a_defect_go_well() {
    // A clean stop did not wait for syncs that were under way (19, 27). A start believed a changed leader epoch (82). A
    // changed last offset delta moved a truncation below the high watermark (433). A
    // full disk kept a log from being restarted (3228, 6700). Deleted records came back without epochs (7204, 7684).
    // A crash brought back records that the leader had deleted and so could not compare (21012). The largest
    // time was that of a deleted record (428), or of a damaged header that was mended since (925). A truncation that a
    // start could not carry out did not say how far the log was synced, and the next start cut it at damage (3241).
    for seed in [19, 27, 82, 433, 3_228, 6_700, 7_204, 7_684, 21_012, 428, 925, 3_241] {
        World::new(seed).run().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
    // A changed epoch of a deleted record that came back was believed (46). The replay of a restart brought deleted
    // records back (1991, 2377), and failed at a torn log that it was to empty (4707). A damaged batch that held the
    // start of the log was never repaired (5935). A follower with a full disk kept what its leader had deleted (7702).
    for seed in [46, 1_991, 2_377, 4_707, 5_935, 7_702] {
        let day = World::in_climate(seed, Climate::Retention).run();
        day.unwrap_or_else(|why| panic!("retention, seed {seed}: {why}"));
    }
}

#[test]
fn days_of_each_kind_go_well() {
    let kinds = [
        (Climate::Directories, Fault::FinishedMove),
        (Climate::Written, Fault::Killed),
        (Climate::Waiting, Fault::FullDisk),
        (Climate::Aside, Fault::RestoredFile),
        (Climate::Rot, Fault::RottenFile),
    ];
    for (climate, fault) in kinds {
        let mut faults = Faults::default();
        for seed in 0..20 {
            let day = World::in_climate(seed, climate).run();
            faults.add(&day.unwrap_or_else(|why| panic!("{climate:?}, seed {seed}: {why}")).faults);
        }
        assert!(faults.of(fault) > 0, "{climate:?}: {}", faults.json());
    }
    // A move began while a truncation waited for room, and its copy of what was truncated took the log's place.
    World::in_climate(75, Climate::Directories).run().unwrap();
}

/// A repair that waited for the batches of a round was forgotten (70, 91, 93, 103).
#[test]
fn days_of_repairs_aside_go_well() {
    for seed in [70, 91, 93, 103] {
        let day = World::in_climate(seed, Climate::Aside).run();
        day.unwrap_or_else(|why| panic!("aside, seed {seed}: {why}"));
    }
}

#[test]
fn days_of_compaction_go_well() {
    let (mut acked, mut committed, mut compactions, mut faults) = (0, 0, 0, Faults::default());
    for seed in 0..40 {
        let day = World::compacted(seed).run().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        (acked, committed) = (acked + day.acked, committed + day.committed);
        compactions += day.compactions;
        faults.add(&day.faults);
    }
    let sums = format!("{acked} acknowledged, {committed} committed, {compactions} segments compacted");
    assert!(acked > 1000 && committed > 20 && compactions > 400, "{sums}");
    for fault in [Fault::StoppedCleaning, Fault::FailedCleaning, Fault::DeletedSegments] {
        assert!(faults.of(fault) > 0, "{fault:?}: {}", faults.json());
    }
}

#[test]
fn days_of_compaction_that_found_a_defect_go_well() {
    // A start took the end of a segment that the power took for a hole that compaction had left.
    // A start repeated a truncation of a log that was compacted since (961). It took a loss for a hole before the first
    // checkpoints of a new directory (2340, 2706).
    for seed in [76, 81, 96, 961, 2_340, 2_706] {
        World::compacted(seed).run().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}
