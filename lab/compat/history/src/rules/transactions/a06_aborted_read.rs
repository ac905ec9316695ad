//! A6, aborted read (G1a): read_committed gave a record whose transaction never was to be committed, or anybody gave
//! one whose sending had surely failed.
//!
//! A transaction that was aborted after a commit of unknown end may have been committed: not judged.

use crate::facts::{Facts, State, shown};
use crate::rules::{Findings, Rule};

pub const RULE: Rule =
    Rule { id: "A6", anomaly: "aborted read", unit: "records not committed", is_fatal: true, check };

fn check(facts: &Facts, found: &mut Findings) {
    for (value, send) in facts.sends() {
        let (is_void, seen, why) = match facts.txn_of(send) {
            None => (send.state == State::Fail, send.seen, "its sending had failed"),
            Some(txn) => (
                txn.commit_invoked == u64::MAX,
                send.seen_committed,
                "nobody asked to commit its transaction",
            ),
        };
        if !is_void {
            continue;
        }
        found.judge();
        if seen != u64::MAX {
            found.find(&[value], || {
                let name = facts.part_name(send.read_part);
                format!("{} was read at {name}/{}, and {why}", shown(value), send.read_at)
            });
        }
    }
}
