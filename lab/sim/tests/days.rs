//! The short form: a few days, each the same the second time.

use barnabas_sim::{Fault, Faults, Mistake, World, hunt};

#[test]
fn a_few_days_go_well() {
    let (mut acked, mut cuts) = (0, 0);
    for seed in 0..60 {
        let day = World::new(seed).run().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        (acked, cuts) = (acked + day.acked, cuts + day.cuts);
    }
    assert!(acked > 3000 && cuts > 30, "{acked} acknowledged, {cuts} cuts");
}

#[test]
fn every_mistake_is_noticed() {
    for mistake in Mistake::ALL {
        let (seed, why) =
            hunt::among_brokers(mistake).unwrap_or_else(|| panic!("{mistake:?} is not noticed"));
        println!("{mistake:?}: seed {seed}: {why}");
    }
}

#[test]
fn everything_goes_wrong_at_some_time() {
    let mut faults = Faults::default();
    for seed in 0..60 {
        faults.add(&World::new(seed).run().unwrap_or_else(|why| panic!("seed {seed}: {why}")).faults);
    }
    // Only questions about transactions come twice.
    let expected = |fault: &&Fault| **fault != Fault::DoubledMessage;
    for fault in Fault::ALL.iter().filter(expected) {
        assert!(faults.of(*fault) > 0, "{fault:?}: {}", faults.json());
    }
}

#[test]
fn the_same_seed_is_the_same_day() {
    for seed in 0..5 {
        assert_eq!(World::new(seed).run(), World::new(seed).run());
    }
}
