//! A8, circular flow (G1c, realtime and process): what was read must have been written before, in some one order that
//! agrees with which operation had ended before which other one began.
//!
//! Such an order exists exactly when every operation can be given a point between its beginning and its end so that
//! each reader's comes after its writers'. The earliest possible points are found by going through the transactions
//! that read in the order of what they read; one that cannot be reached that way is on a circle.

use crate::facts::{Facts, NONE, shown};
use crate::rules::{Findings, Rule};

pub const RULE: Rule = Rule { id: "A8", anomaly: "circular flow", unit: "reads", is_fatal: true, check };

fn check(facts: &Facts, found: &mut Findings) {
    let earliest = earliest_points(facts, found);
    for (value, send) in facts.sends().filter(|(_, send)| send.seen_committed != u64::MAX) {
        found.judge();
        let written = earliest.get(send.txn as usize).map_or(send.invoked, |point| send.invoked.max(*point));
        if send.seen_committed < written {
            found.find(&[value], || {
                format!(
                    "{} was read at {} ns by a poll that had ended {} ns before it could have been written",
                    shown(value),
                    send.seen_committed,
                    written - send.seen_committed
                )
            });
        }
    }
}

/// For each transaction, before which moment it cannot have taken effect.
fn earliest_points(facts: &Facts, found: &mut Findings) -> Vec<u64> {
    let mut points: Vec<u64> =
        facts.txns.iter().map(|txn| if txn.begun == u64::MAX { 0 } else { txn.begun }).collect();
    let mut waits = vec![0_u32; points.len()];
    let mut readers: Vec<Vec<u32>> = vec![Vec::new(); points.len()];
    for (reader, txn) in facts.txns.iter().enumerate() {
        for value in &txn.reads {
            match facts.send(*value) {
                Some(send) if send.txn != NONE && send.txn as usize != reader => {
                    readers[send.txn as usize].push(reader as u32);
                    waits[reader] += 1;
                }
                Some(send) => points[reader] = points[reader].max(send.invoked),
                None => {}
            }
        }
    }
    let mut ready: Vec<usize> = (0..points.len()).filter(|txn| waits[*txn] == 0).collect();
    while let Some(writer) = ready.pop() {
        for reader in std::mem::take(&mut readers[writer]) {
            let reader = reader as usize;
            points[reader] = points[reader].max(points[writer]);
            waits[reader] -= 1;
            if waits[reader] == 0 {
                ready.push(reader);
            }
        }
    }
    for (at, txn) in facts.txns.iter().enumerate() {
        let name = || format!("transaction {} of {}", txn.number, facts.client_name(txn.client));
        if waits[at] > 0 {
            found.find(&txn.reads, || format!("{} read, by way of others, what depends on itself", name()));
        } else if points[at] > txn.ended {
            found.find(&txn.reads, || format!("{} ended before something that it read was begun", name()));
        }
    }
    points
}
