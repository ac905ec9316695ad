//! A streams group and whoever is in it, for many steps in an order that chance decides: threads of three processes
//! come, go, die and come back, answers get lost, batches get lost, the broker starts again, topics come and grow,
//! internal topics are made at once or late, copies are asked for or not, targets are made at once or late.
//!
//! After every step: no active task is run by two threads, and no process runs a task twice, in whatever roles (what a
//! thread runs it has been given and has not said to have given up). In the end, when nothing goes wrong any more:
//! everybody comes to rest, every task is run, with as many copies as there are processes for, and a shard that is
//! loaded from the log says the same as the one that lived through it.
//!
//! The sequence follows from the seed. `STREAMS_SEEDS=10000 cargo test -p barnabas-coordinator --test streams_model`
//! looks longer. Two planted bugs show that the first sentence can fail.

// A test may read its environment.
#![allow(clippy::disallowed_methods)]

#[path = "streams_model/client.rs"]
mod client;
mod rig;
#[path = "streams_model/world.rs"]
mod world;

use world::World;

/// What is wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    None,
    /// A client says that it has given up what it has not.
    SaysItIsGone,
    /// The worker calls batches safe that get lost when it stops.
    CallsItSafe,
}

/// SplitMix64.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        (barnabas_base::split_mix_64(&mut self.0) % bound as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

fn run(seed: u64, bug: Bug) -> Result<(), String> {
    let mut world = World::new(seed, bug);
    for _ in 0..200 {
        world.step();
        world.check()?;
    }
    if bug == Bug::None { world.come_to_rest() } else { Ok(()) }
}

#[test]
fn nobody_runs_what_another_runs_and_all_come_to_rest() {
    let seeds = std::env::var("STREAMS_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(300);
    for seed in 0..seeds {
        let said = std::panic::catch_unwind(|| run(seed, Bug::None));
        match said {
            Ok(Ok(())) => {}
            Ok(Err(what)) => panic!("seed {seed}: {what}"),
            Err(_) => panic!("seed {seed} panics"),
        }
    }
}

#[test]
fn a_client_that_lies_is_found_out() {
    assert!((0..200).any(|seed| run(seed, Bug::SaysItIsGone).is_err()));
}

#[test]
fn a_worker_that_lies_is_found_out() {
    assert!((0..400).any(|seed| run(seed, Bug::CallsItSafe).is_err()));
}
