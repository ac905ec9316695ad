//! The short form: a few days, each the same the second time.

use std::panic::{AssertUnwindSafe, catch_unwind};

use barnabas_sim::{Mistake, World};

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
        let day = |seed| catch_unwind(AssertUnwindSafe(|| World::new(seed).with(mistake).run()));
        // A thousand days in a row, that of the rarest mistake among them: who serves any epoch harms nobody before day 1193.
        let noticed = (500..1500).find_map(|seed| match day(seed) {
            Ok(Ok(_)) => None,
            Ok(Err(why)) => Some((seed, why)),
            Err(_) => Some((seed, "an assertion".to_owned())),
        });
        let (seed, why) = noticed.unwrap_or_else(|| panic!("{mistake:?} is not noticed"));
        println!("{mistake:?}: seed {seed}: {why}");
    }
}

#[test]
fn the_same_seed_is_the_same_day() {
    for seed in 0..5 {
        assert_eq!(World::new(seed).run(), World::new(seed).run());
    }
}
