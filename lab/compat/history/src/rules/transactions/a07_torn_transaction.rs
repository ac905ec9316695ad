//! A7, torn transaction (G1b): one part of a transaction is visible, another never is, although the reading went past
//! it. The offsets that a consume–transform–produce transaction stores are a part of it.

use crate::facts::{Facts, Send, State, shown};
use crate::rules::{Findings, Rule};
use std::collections::HashSet;

pub const RULE: Rule =
    Rule { id: "A7", anomaly: "torn transaction", unit: "transactions seen", is_fatal: true, check };

fn check(facts: &Facts, found: &mut Findings) {
    moved(facts, found);
    for txn in &facts.txns {
        let sends: Vec<(u64, &Send)> =
            txn.values.iter().filter_map(|value| Some((*value, facts.send(*value)?))).collect();
        let Some((shown_one, _)) = sends.iter().find(|(_, send)| send.seen_committed != u64::MAX) else {
            continue;
        };
        found.judge();
        let missing = sends.iter().find(|(_, send)| {
            send.state == State::Ok
                && send.seen_committed == u64::MAX
                && facts.keeps_all(send.part)
                && send.offset <= facts.parts[send.part as usize].highest_committed
        });
        if let Some((missing, send)) = missing {
            found.find(&[*shown_one, *missing], || {
                format!(
                    "transaction {} of {}: {} is visible, {} at {}/{} is not",
                    txn.number,
                    facts.client_name(txn.client),
                    shown(*shown_one),
                    shown(*missing),
                    facts.part_name(send.part),
                    send.offset
                )
            });
        }
    }
}

/// Whatever lies below the offset of a group that moves has a visible copy.
fn moved(facts: &Facts, found: &mut Findings) {
    // Where no reading came as far as a copy, A2 says so.
    let is_visible = |value: u64| {
        facts.send(value).is_some_and(|send| {
            send.seen_committed != u64::MAX
                || (send.state == State::Ok
                    && send.offset > facts.parts[send.part as usize].highest_committed)
        })
    };
    let copied: HashSet<u64> =
        facts.moved.iter().filter(|(_, copy)| is_visible(*copy)).map(|(source, _)| *source).collect();
    for (group, _) in facts.group_topics.iter().filter(|(_, (_, moves))| *moves) {
        let mut stored = std::collections::BTreeMap::new();
        for commit in facts.commits.get(group).into_iter().flatten() {
            let highest = stored.entry(commit.part).or_insert(commit.offset);
            *highest = (*highest).max(commit.offset);
        }
        for (part, highest) in stored {
            let values =
                facts.parts[part as usize].between(0, highest).filter(|(_, slot)| slot.is_seen(true));
            for (offset, value) in values.filter_map(|(offset, slot)| Some((offset, slot.value()?))) {
                found.judge();
                if !copied.contains(&value) {
                    found.find(&[value], || {
                        let (group, name) = (&facts.groups[*group], facts.part_name(part));
                        format!(
                            "{group} stored {highest} for {name}, and nobody sees a copy of {} at {offset}",
                            shown(value)
                        )
                    });
                }
            }
        }
    }
}
