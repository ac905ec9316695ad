//! A2, unseen: after all is healed, the last reading does not come to the end of every partition.
//!
//! How long it may take is decided by whoever reads, who writes down how far it came. A partition that was written and
//! has no last reading is a finding too: nothing else would be worth much. So is what a group that reads the topic was
//! never given, and whatever else the run says did not get well.

use crate::facts::{Facts, State, shown};
use crate::rules::{Findings, Rule};
use std::collections::BTreeMap;

pub const RULE: Rule =
    Rule { id: "A2", anomaly: "unseen or stuck", unit: "last readings", is_fatal: true, check };

fn check(facts: &Facts, found: &mut Findings) {
    let mut come_to = BTreeMap::new();
    for last in &facts.finals {
        found.judge();
        let position = come_to.entry(last.part).or_insert(last.position);
        *position = (*position).max(last.position);
        if last.position < last.end {
            found.find(&[], || {
                let level = if last.is_committed { "read_committed" } else { "read_uncommitted" };
                let name = facts.part_name(last.part);
                format!("{name}: the last reading at {level} came to {} of {}", last.position, last.end)
            });
        }
    }
    let mut without = BTreeMap::new();
    for (value, send) in facts.sends().filter(|(_, send)| send.state == State::Ok) {
        match come_to.get(&send.part) {
            None => *without.entry(send.part).or_insert(0) += 1,
            Some(position) if send.offset >= *position => found.find(&[value], || {
                let name = facts.part_name(send.part);
                format!(
                    "{} was acknowledged at {name}/{}, the last reading came to {position}",
                    shown(value),
                    send.offset
                )
            }),
            Some(_) => {}
        }
    }
    for what in &facts.stuck {
        found.find(&[], || what.clone());
    }
    groups(facts, found);
    for (part, records) in without {
        found.find(&[], || {
            format!("{}: {records} acknowledged records and no last reading", facts.part_name(part))
        });
    }
}

/// Every group was given what anybody was given of its topics at read_committed.
fn groups(facts: &Facts, found: &mut Findings) {
    for (group, (topics, _)) in &facts.group_topics {
        for (number, part) in facts.parts.iter().enumerate().filter(|(_, part)| topics.contains(&part.topic))
        {
            found.judge();
            let mut missed =
                part.between(0, i64::MAX).filter(|(_, slot)| slot.is_seen(true) && !slot.is_given_to(*group));
            let Some((offset, slot)) = missed.next() else { continue };
            let values: Vec<u64> = slot.value().into_iter().collect();
            found.find(&values, || {
                let (group, name) = (&facts.groups[*group], facts.part_name(number as u32));
                format!("{group} was never given {name}/{offset} and {} others", missed.count())
            });
        }
    }
}
