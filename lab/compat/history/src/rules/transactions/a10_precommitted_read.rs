//! A10, precommitted read: a transaction polls what it wrote itself, or anybody at read_committed is given a record
//! before its transaction's commit was asked for.

use crate::facts::{Facts, shown};
use crate::rules::{Findings, Rule};

pub const RULE: Rule = Rule {
    id: "A10",
    anomaly: "precommitted read",
    unit: "transactional records read",
    is_fatal: true,
    check,
};

fn check(facts: &Facts, found: &mut Findings) {
    for (number, txn) in facts.txns.iter().enumerate() {
        let own = |value: &&u64| facts.send(**value).is_some_and(|send| send.txn as usize == number);
        for value in txn.reads.iter().filter(own) {
            found.find(&[*value], || {
                let client = facts.client_name(txn.client);
                format!(
                    "transaction {} of {client} polled {}, which it wrote itself",
                    txn.number,
                    shown(*value)
                )
            });
        }
    }
    for (value, send) in facts.sends().filter(|(_, send)| send.seen_committed != u64::MAX) {
        let Some(txn) = facts.txn_of(send) else { continue };
        found.judge();
        // One whose commit nobody asked for is A6's.
        if txn.commit_invoked != u64::MAX && send.seen_committed < txn.commit_invoked {
            found.find(&[value], || {
                let early = txn.commit_invoked - send.seen_committed;
                format!("{} was read {early} ns before its transaction's commit was asked for", shown(value))
            });
        }
    }
}
