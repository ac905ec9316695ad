//! A thousand days without a violation, five hundred on which records may be lost and replicas still agree in the end; every mistake
//! noticed; the same seed, the same day.

use std::panic::{AssertUnwindSafe, catch_unwind};

use barnabas_base::{MonotonicMs, Offset};

use super::Random;
use super::client::Client;
use super::world::World;
use crate::planted::{self, Mistake};
use crate::producers::BATCHES_REMEMBERED;

const SEEDS: u64 = 1000;

#[test]
fn a_thousand_days_go_well() {
    let (mut acked, mut faults, mut epochs, mut cuts, mut heals) = (0, 0, 0, 0, 0);
    for seed in 0..SEEDS {
        let day = World::new(seed).run().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        acked += day.acked;
        faults += day.faults;
        epochs += day.leader_epochs;
        cuts += day.cuts;
        heals += day.heals;
    }
    println!(
        "{SEEDS} days: {acked} acknowledged, {faults} faults, {epochs} leader epochs, {cuts} cuts, {heals} healed"
    );
    assert!(acked > 20 * SEEDS as usize && epochs > 5 * SEEDS as i32 && cuts > SEEDS as usize);
    assert!(heals > SEEDS as usize / 2, "{heals} healed");
}

#[test]
fn replicas_agree_whatever_was_lost() {
    let mut cuts = 0;
    for seed in 0..SEEDS / 2 {
        let day = World::reckless(seed).run().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        cuts += day.cuts;
    }
    assert!(cuts > SEEDS as usize, "{cuts} cuts");
}

#[test]
fn the_same_seed_is_the_same_day() {
    for seed in 0..50 {
        let (one, two) = (World::new(seed).run(), World::new(seed).run());
        assert_eq!(one, two, "seed {seed}");
        assert_ne!(one, World::new(seed + 1000).run());
    }
}

/// A client that went on while its oldest batch had no answer, as simulated ones did, was refused that batch for good.
#[test]
fn a_client_stays_within_what_is_remembered_of_it() {
    let (mut client, mut random) = (Client::new(0), Random(1));
    let mut produce = |client: &mut Client| (0..200).for_each(|_| client.produce(&mut random));
    produce(&mut client);
    let sent = client.due(MonotonicMs(1000));
    assert_eq!(sent.len(), BATCHES_REMEMBERED);
    for (at, batch) in sent.iter().enumerate().skip(1) {
        client.answered(batch.base_sequence.0 as u64, Ok(Offset(at as i64)));
    }
    produce(&mut client);
    assert_eq!(client.due(MonotonicMs(1001)), [], "nothing new before the oldest is answered");
    assert_eq!(client.settled, Offset::ZERO, "the oldest may be sent again");
    assert_eq!(client.due(MonotonicMs(1200)), sent[..1]);
    client.answered(sent[0].base_sequence.0 as u64, Ok(Offset(0)));
    assert_eq!((client.in_flight.len(), client.settled), (0, Offset(BATCHES_REMEMBERED as i64 - 1)));
    produce(&mut client);
    assert_eq!(client.due(MonotonicMs(1201)).len(), BATCHES_REMEMBERED);
}

/// The first seed that notices, and what it saw: of a thousand other days than those that go well.
fn noticed(mistake: Mistake) -> Option<(u64, String)> {
    planted::plant(Some(mistake));
    let day = |seed| catch_unwind(AssertUnwindSafe(|| World::new(seed).run()));
    let noticed = (SEEDS..2 * SEEDS).find_map(|seed| match day(seed) {
        Ok(Ok(_)) => None,
        Ok(Err(why)) => Some((seed, why)),
        Err(_) => Some((seed, "an assertion".to_owned())),
    });
    planted::plant(None);
    noticed
}

#[test]
fn every_mistake_is_noticed() {
    let mut missed = Vec::new();
    for &mistake in Mistake::OF_REPLICAS {
        match noticed(mistake) {
            Some((seed, why)) => println!("{mistake:?}: seed {seed}: {why}"),
            None => missed.push(mistake),
        }
    }
    assert!(missed.is_empty(), "not noticed: {missed:?}");
}

/// `SEED=7 cargo test -p barnabas-partition one_day -- --ignored --nocapture` tells all of it.
#[test]
#[ignore = "for reading"]
#[allow(clippy::disallowed_methods, reason = "a test that is told what to tell")]
fn one_day() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let mut world = World::new(seed);
    world.is_told = true;
    println!("{:?}", world.run());
}
