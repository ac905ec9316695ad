//! A3, duplicate: one value at two offsets. Every value is sent once, by idempotent and transactional producers. And a
//! record that a consume–transform–produce transaction moved twice, both visible.

use crate::facts::{Facts, NONE, shown};
use crate::rules::{Findings, Rule};
use std::collections::HashMap;

pub const RULE: Rule = Rule { id: "A3", anomaly: "duplicate", unit: "records read", is_fatal: true, check };

fn check(facts: &Facts, found: &mut Findings) {
    found.judged = facts.sends().filter(|(_, send)| send.read_part != NONE).count() as u64;
    for (value, first, second) in &facts.twice {
        found.find(&[*value], || {
            let (one, other) = (facts.part_name(first.0), facts.part_name(second.0));
            format!("{} stands at {one}/{} and at {other}/{}", shown(*value), first.1, second.1)
        });
    }
    let mut copies: HashMap<u64, u64> = HashMap::new();
    let is_visible = |value: u64| facts.send(value).is_some_and(|send| send.seen_committed != u64::MAX);
    for (source, copy) in facts.moved.iter().filter(|(_, copy)| is_visible(*copy)) {
        found.judge();
        if let Some(first) = copies.insert(*source, *copy) {
            found.find(&[*source, first, *copy], || {
                format!("{} was moved twice, as {} and as {}", shown(*source), shown(first), shown(*copy))
            });
        }
    }
}
