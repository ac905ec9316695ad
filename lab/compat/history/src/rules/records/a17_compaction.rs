//! A17, compaction: the last acknowledged value of a key is gone, or a deleted key shows an older value again.

use crate::facts::{Facts, State, shown};
use crate::rules::{Findings, Rule};
use std::collections::BTreeMap;

pub const RULE: Rule = Rule { id: "A17", anomaly: "compaction loses", unit: "keys", is_fatal: true, check };

fn check(facts: &Facts, found: &mut Findings) {
    // The acknowledged record with the highest offset, by key.
    let mut newest: BTreeMap<(u32, &str), (i64, u64)> = BTreeMap::new();
    for (part, key, value) in &facts.keyed {
        if let Some(send) =
            facts.send(*value).filter(|send| send.state == State::Ok && !facts.keeps_all(*part))
        {
            let entry = newest.entry((*part, key)).or_insert((send.offset, *value));
            *entry = (*entry).max((send.offset, *value));
        }
    }
    // Without a last reading there is nothing to compare with; A2 says so.
    newest.retain(|(part, _), _| facts.finals.iter().any(|last| last.part == *part));
    for ((part, key), (offset, value)) in newest {
        found.judge();
        let is_tombstone = facts.send(value).is_some_and(|send| send.is_tombstone);
        let name = || format!("{}: key {key}, {} at {offset}", facts.part_name(part), shown(value));
        match facts.last_of_key.get(&(part, key.to_owned())) {
            // One whose end nobody knows may have come later.
            Some((read, _)) if *read >= offset => {}
            None if is_tombstone => {}
            Some((read, Some(older))) => {
                let what = if is_tombstone { "was deleted there, and" } else { "was acknowledged last," };
                found.find(&[value, *older], || {
                    format!("{} {what} {} at {read} is read", name(), shown(*older))
                });
            }
            Some((read, None)) => {
                found.find(&[value], || {
                    format!("{} was acknowledged last, a tombstone at {read} is read", name())
                });
            }
            None => found.find(&[value], || format!("{} was acknowledged last, nothing is read", name())),
        }
    }
}
