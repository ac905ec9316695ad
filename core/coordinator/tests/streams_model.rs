//! A streams group and its members, for many steps in an order that chance decides: threads of three processes
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
mod group_model;
mod rig;
#[path = "streams_model/world.rs"]
mod world;

use client::Client;
use group_model::{Bug, World, check_seeds, is_found};

#[test]
fn nobody_runs_what_another_runs_and_all_come_to_rest() {
    check_seeds::<World<Client>>("STREAMS_SEEDS");
}

#[test]
fn a_client_that_lies_is_found_out() {
    assert!(is_found::<World<Client>>(Bug::SaysItIsGone, 200));
}

#[test]
fn a_worker_that_lies_is_found_out() {
    assert!(is_found::<World<Client>>(Bug::CallsItSafe, 400));
}
