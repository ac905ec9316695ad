//! A11, internal poll skip: inside one poll, a partition's records go back or leave out one that is there.

use super::a12_consumer_skip::look_at_steps;
use crate::facts::Facts;
use crate::rules::{Findings, Rule};

pub const RULE: Rule =
    Rule { id: "A11", anomaly: "internal poll skip", unit: "records polled", is_fatal: true, check };

fn check(facts: &Facts, found: &mut Findings) {
    look_at_steps(facts, found, true);
}
