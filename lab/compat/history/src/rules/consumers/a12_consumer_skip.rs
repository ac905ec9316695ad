//! A12, external poll skip: from one poll of a consumer to its next, a partition's records go back or leave out one
//! that is there. A new assignment begins anew: Kafka allows both across it.
//!
//! Offsets that no reader of the same isolation was ever given (control records, aborted ones) are no skip.

use crate::facts::{Facts, Step, shown};
use crate::rules::{Findings, Rule};

pub const RULE: Rule =
    Rule { id: "A12", anomaly: "external poll skip", unit: "records polled", is_fatal: true, check };

fn check(facts: &Facts, found: &mut Findings) {
    look_at_steps(facts, found, false);
}

/// Both rules' work: the steps inside one poll, or between two.
pub fn look_at_steps(facts: &Facts, found: &mut Findings, is_inside: bool) {
    found.judged = facts.stepped;
    for step in facts.steps.iter().filter(|step| step.is_inside == is_inside) {
        let says = |what: String| {
            let (client, part) = (facts.client_name(step.client), facts.part_name(step.part));
            format!("{client} was given {part}/{} after {}{what}", step.to, step.from)
        };
        if step.to <= step.from {
            found.find(&[], || says(String::new()));
        } else if let Some((offset, value)) = left_out(facts, step) {
            let values: Vec<u64> = value.into_iter().collect();
            let named = value.map_or_else(|| "a tombstone".into(), shown);
            found.find(&values, || says(format!(", without {offset}, where {named} stands")));
        }
    }
}

fn left_out(facts: &Facts, step: &Step) -> Option<(i64, Option<u64>)> {
    if !facts.keeps_all(step.part) {
        return None;
    }
    facts.parts[step.part as usize]
        .between(step.from + 1, step.to)
        .find(|(_, slot)| slot.is_seen(step.is_committed))
        .map(|(offset, slot)| (offset, slot.value()))
}
