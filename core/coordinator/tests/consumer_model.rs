//! A consumer group and its members, for many steps in an order that chance decides: members of both protocols
//! come, go, die and come back, answers get lost, batches get lost, the broker starts again, topics come, grow and go,
//! targets are made at once or late.
//!
//! After every step: no partition is read by two (what a client reads it has been given and has not said to have given
//! up). In the end, when nothing goes wrong any more: everybody comes to rest, every partition of a topic that somebody
//! subscribes to is read, and a shard that is loaded from the log says the same as the one that lived through it.
//!
//! The sequence follows from the seed. `CONSUMER_SEEDS=10000 cargo test -p barnabas-coordinator --test consumer_model`
//! looks longer. Two planted bugs show that the first sentence can fail.

// A test may read its environment.
#![allow(clippy::disallowed_methods)]

#[path = "consumer_model/client.rs"]
mod client;
mod group_model;
mod rig;
#[path = "consumer_model/world.rs"]
mod world;

use client::Client;
use group_model::{Bug, World, check_seeds, is_found};

#[test]
fn nobody_reads_what_another_reads_and_all_come_to_rest() {
    check_seeds::<World<Client>>("CONSUMER_SEEDS");
}

#[test]
fn a_client_that_lies_is_found_out() {
    assert!(is_found::<World<Client>>(Bug::SaysItIsGone, 200));
}

#[test]
fn a_worker_that_lies_is_found_out() {
    assert!(is_found::<World<Client>>(Bug::CallsItSafe, 400));
}
