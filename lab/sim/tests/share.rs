//! Days of a share-partition whose leader and whose coordinator move.

use barnabas_sim::{ShareMistake, ShareWorld, hunt};

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
        let (seed, why) = hunt::in_shares(mistake).unwrap_or_else(|| panic!("{mistake:?} is not noticed"));
        println!("{mistake:?}: seed {seed}: {why}");
    }
}

#[test]
fn the_same_seed_is_the_same_day() {
    for seed in 0..5 {
        assert_eq!(ShareWorld::new(seed).run(), ShareWorld::new(seed).run());
    }
}
