//! A9, write cycle (G0): two transactions stand in one order in one partition and in the other order in another. Normal
//! in Kafka, which isolates no writes: told, never failed.

use crate::facts::{Facts, NONE};
use crate::rules::{Findings, Rule};
use std::collections::BTreeMap;

pub const RULE: Rule =
    Rule { id: "A9", anomaly: "write cycle", unit: "transactions", is_fatal: false, check };

fn check(facts: &Facts, found: &mut Findings) {
    found.judged = facts.txns.len() as u64;
    // Where each transaction's first record stands, by partition.
    let mut firsts: BTreeMap<u32, BTreeMap<i64, u32>> = BTreeMap::new();
    for (number, txn) in facts.txns.iter().enumerate() {
        let mut of_txn: BTreeMap<u32, i64> = BTreeMap::new();
        for send in
            txn.values.iter().filter_map(|value| facts.send(*value)).filter(|send| send.read_part != NONE)
        {
            let first = of_txn.entry(send.read_part).or_insert(send.read_at);
            *first = (*first).min(send.read_at);
        }
        for (part, offset) in of_txn {
            firsts.entry(part).or_default().insert(offset, number as u32);
        }
    }
    // Neighbours in one partition that are the other way round in the next one that has both.
    let places: Vec<(u32, BTreeMap<u32, i64>)> = firsts
        .iter()
        .map(|(part, by_offset)| (*part, by_offset.iter().map(|(offset, txn)| (*txn, *offset)).collect()))
        .collect();
    for (part, by_offset) in &firsts {
        let order: Vec<u32> = by_offset.values().copied().collect();
        for pair in order.windows(2) {
            let other = places.iter().find(|(other, place)| {
                other > part && matches!((place.get(&pair[0]), place.get(&pair[1])), (Some(one), Some(two)) if one > two)
            });
            if let Some((other, _)) = other {
                found.find(&[], || {
                    format!(
                        "two transactions stand crosswise in {} and {}",
                        facts.part_name(*part),
                        facts.part_name(*other)
                    )
                });
            }
        }
    }
}
