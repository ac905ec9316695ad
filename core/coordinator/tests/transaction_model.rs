//! Transactions from end to end, at random: clients (some of them zombies of each other) that write, commit offsets and
//! end transactions, partitions with core/partition's rules, the group coordinator's real shard behind one of them, a
//! network that delays, repeats, reorders and loses every message, a disk that loses batches, a coordinator that moves
//! with what it had on its way half written.
//!
//! Held throughout (rules A6, A7, A10, A13 of the histories, and what they rest on):
//! - a transaction is committed or aborted, everywhere alike; what its client is told is what happened
//! - markers say what is on disk; a decision is never turned; epochs never go back
//! - no producer writes under an epoch after a later one was given out
//! - a request that comes again is answered alike
//! - a group's offset is the last that a transaction committed, and is unstable while one is open
//! - in the end nothing is open
//!
//! The sequence follows from the seed. `MODEL_SEEDS=10000 cargo test -p barnabas-coordinator --test transaction_model`
//! looks longer. Each planted bug ([`model::Bug`]) is found.

// A test may read its environment.
#![allow(clippy::disallowed_methods)]

mod model;
mod rig;
mod transactions;

use model::Bug;
use model::world::World;

const STEPS: usize = 1_500;

fn run(seed: u64, version: i16, bug: Bug) -> World {
    let mut world = World::new(seed, version, bug);
    for _ in 0..STEPS {
        world.step();
        if !world.found.is_empty() {
            return world;
        }
    }
    world.check();
    world.heal();
    world.check();
    world.check_end();
    world
}

fn seeds() -> u64 {
    std::env::var("MODEL_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(150)
}

fn holds(version: i16) {
    let (mut committed, mut aborted) = (0, 0);
    for seed in 1..=seeds() {
        let world = run(seed, version, Bug::None);
        assert!(world.found.is_empty(), "seed {seed}, version {version}: {:#?}", world.found);
        let ends = world.told_ends();
        committed += ends.0;
        aborted += ends.1;
    }
    println!("version {version}: {committed} commits and {aborted} aborts were told");
    // The clients are clever enough to get anywhere.
    assert!(committed as u64 > seeds() && aborted as u64 > seeds() / 4, "{committed} and {aborted}");
}

#[test]
fn version_2_holds() {
    holds(2);
}

#[test]
fn version_1_holds() {
    holds(1);
}

#[test]
fn version_0_holds() {
    holds(0);
}

#[test]
fn every_planted_bug_is_found() {
    for bug in Bug::ALL {
        let found = (1..=300).find(|seed| !run(*seed, 2, bug).found.is_empty());
        println!("{bug:?}: seed {found:?}");
        assert!(found.is_some(), "{bug:?} was not found");
    }
}

#[test]
fn the_same_seed_goes_the_same_way() {
    let (a, b) = (run(7, 2, Bug::None), run(7, 2, Bug::None));
    assert_eq!(a.rig.log, b.rig.log);
    assert_eq!(a.rig.elapsed_ms, b.rig.elapsed_ms);
}
