//! Days of a share-partition whose leader and whose coordinator move.

use std::panic::{AssertUnwindSafe, catch_unwind};

use barnabas_sim::{ShareMistake, ShareWorld};

const SEEDS: u64 = 300;

#[test]
fn records_are_given_and_settled_whoever_leads() {
    let (mut delivered, mut settled, mut leaders, mut moves) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let day = ShareWorld::new(seed).run().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        (delivered, settled) = (delivered + day.delivered, settled + day.settled);
        (leaders, moves) = (leaders + day.leaders, moves + day.moves);
    }
    println!("{SEEDS} days: {delivered} given, {settled} settled, {leaders} leaders, {moves} moves");
    assert!(delivered > settled && settled > 50 * SEEDS as usize, "{delivered}, {settled}");
    assert!(leaders > 3 * SEEDS as usize && moves > SEEDS as usize, "{leaders}, {moves}");
}

#[test]
fn every_mistake_is_noticed() {
    for mistake in ShareMistake::ALL {
        let day = |seed: u64| catch_unwind(AssertUnwindSafe(|| ShareWorld::new(seed).with(mistake).run()));
        let noticed = (0..1000).find_map(|seed| match day(seed) {
            Ok(Ok(_)) => None,
            Ok(Err(why)) => Some((seed, why)),
            Err(_) => Some((seed, "an assertion".to_owned())),
        });
        let (seed, why) = noticed.unwrap_or_else(|| panic!("{mistake:?} is not noticed"));
        println!("{mistake:?}: seed {seed}: {}", why.chars().take(200).collect::<String>());
    }
}

#[test]
fn the_same_seed_is_the_same_day() {
    for seed in 0..5 {
        assert_eq!(ShareWorld::new(seed).run(), ShareWorld::new(seed).run());
    }
}
