//! A1, lost write: an acknowledged record that nobody was ever given, although later ones of its partition were.
//!
//! Of transactions, those whose commit was acknowledged, at read_committed; one seen in part is A7's.

use crate::facts::{Facts, State, shown};
use crate::rules::{Findings, Rule};

pub const RULE: Rule =
    Rule { id: "A1", anomaly: "lost write", unit: "acknowledged records", is_fatal: true, check };

fn check(facts: &Facts, found: &mut Findings) {
    for (value, send) in facts.sends() {
        if send.state != State::Ok || send.offset < 0 || !facts.keeps_all(send.part) {
            continue;
        }
        let part = &facts.parts[send.part as usize];
        let (is_seen, highest) = match facts.txn_of(send) {
            None => (send.seen != u64::MAX, part.highest),
            Some(txn) if txn.state == State::Ok => (send.seen_committed != u64::MAX, part.highest_committed),
            Some(_) => continue,
        };
        found.judge();
        if !is_seen && send.offset <= highest {
            found.find(&[value], || {
                format!(
                    "{} was acknowledged at {}/{}, consumers came to offset {highest}, and nobody was given it",
                    shown(value),
                    facts.part_name(send.part),
                    send.offset
                )
            });
        }
    }
}
