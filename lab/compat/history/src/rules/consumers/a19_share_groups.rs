//! A19, share groups (KIP-932): a record that a group was to have is lost to it, or given once more than it may be.
//!
//! Each record of a group is available, acquired, and in the end acknowledged (accepted, rejected) or archived, as it
//! was given as often as the group allows. So no delivery count passes the limit; and of a group that was said to have
//! come to the end of its topics everything that anybody reads there was given, and is settled or was given as often as
//! it may be. That a settled record is given once more, or settled by somebody else again, is no finding: a leader that
//! does not know yet that it is none may give it, and what is said of records below the start is taken and means
//! nothing (KIP-932).

use crate::facts::{Facts, ShareGroup, SharedRecord};
use crate::rules::{Findings, Rule};

pub const RULE: Rule = Rule {
    id: "A19",
    anomaly: "share group: lost, or given too often",
    unit: "records of share groups",
    is_fatal: true,
    check,
};

fn check(facts: &Facts, found: &mut Findings) {
    for (name, group) in &facts.share_groups {
        for (place, record) in &group.records {
            found.judge();
            let at = || format!("{name}: {}/{}", facts.part_name(place.0), place.1);
            given_too_often(facts, found, &at, record, group.limit);
        }
        if group.is_drained {
            lost(facts, found, name, group);
        }
    }
}

fn given_too_often(
    facts: &Facts,
    found: &mut Findings,
    at: &dyn Fn() -> String,
    record: &SharedRecord,
    limit: u32,
) {
    if let Some(given) = record.given.iter().find(|given| given.count > limit) {
        found.find(&[], || {
            let client = facts.client_name(given.client);
            format!("{} is given to {client} for the {}. time, {limit} are allowed", at(), given.count)
        });
    }
}

/// Somebody reads it, and the group is done with the topic.
fn lost(facts: &Facts, found: &mut Findings, name: &str, group: &ShareGroup) {
    for (number, part) in
        facts.parts.iter().enumerate().filter(|(_, part)| group.topics.contains(&part.topic))
    {
        for (offset, slot) in part.between(0, i64::MAX).filter(|(_, slot)| slot.is_seen(true)) {
            found.judge();
            let record = group.records.get(&(number as u32, offset));
            let word = match record {
                None => "never given",
                Some(record) if record.given.is_empty() => "never given",
                Some(record) if record.is_done(group.limit) => continue,
                Some(_) => "neither settled nor given as often as it may be",
            };
            let values: Vec<u64> = slot.value().into_iter().collect();
            found.find(&values, || format!("{name}: {}/{offset} is {word}", facts.part_name(number as u32)));
        }
    }
}
