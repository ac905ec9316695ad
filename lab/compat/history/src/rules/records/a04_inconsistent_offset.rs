//! A4, inconsistent offset: two values at one offset, over sends and polls of all clients; and a value that nobody
//! sent.

use crate::facts::{Facts, State, shown};
use crate::rules::{Findings, Rule};

pub const RULE: Rule =
    Rule { id: "A4", anomaly: "inconsistent offset", unit: "records", is_fatal: true, check };

fn check(facts: &Facts, found: &mut Findings) {
    for conflict in &facts.conflicts {
        let values: Vec<u64> = [conflict.one, conflict.other].into_iter().flatten().collect();
        found.find(&values, || {
            let named = |value: Option<u64>| value.map_or_else(|| "a tombstone".into(), shown);
            format!(
                "{}/{} holds {}, and {} as {} saw",
                facts.part_name(conflict.part),
                conflict.offset,
                named(conflict.one),
                named(conflict.other),
                facts.client_name(conflict.client)
            )
        });
    }
    for (value, send) in facts.sends() {
        found.judge();
        if send.state == State::Never {
            found.find(&[value], || {
                let name = facts.part_name(send.read_part);
                format!("{} was read at {name}/{}, and nobody sent it", shown(value), send.read_at)
            });
        }
    }
}
