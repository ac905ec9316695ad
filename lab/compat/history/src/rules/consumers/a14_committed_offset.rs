//! A14, committed offset: a group's offset falls although nobody reset it, or passes a record that no member was given.

use crate::facts::{Commit, Facts, GROUPS_MAX};
use crate::rules::{Findings, Rule};
use std::collections::BTreeMap;

pub const RULE: Rule = Rule {
    id: "A14",
    anomaly: "committed offset falls, or ahead of delivery",
    unit: "commits and look-ups",
    is_fatal: true,
    check,
};

fn check(facts: &Facts, found: &mut Findings) {
    for (group, commits) in &facts.commits {
        let mut by_part: BTreeMap<u32, Vec<&Commit>> = BTreeMap::new();
        for commit in commits {
            found.judge();
            by_part.entry(commit.part).or_default().push(commit);
        }
        for (part, mut commits) in by_part {
            let name = format!("{} of {}", facts.part_name(part), facts.groups[*group]);
            falls(facts, found, &name, &mut commits);
            if *group < GROUPS_MAX {
                runs_ahead(facts, found, &name, *group, part, &commits);
            }
        }
    }
}

/// Whatever began after an offset had been stored or told is not below it.
fn falls(facts: &Facts, found: &mut Findings, name: &str, commits: &mut [&Commit]) {
    let mut by_end = commits.to_vec();
    by_end.sort_by_key(|commit| commit.ended);
    commits.sort_by_key(|commit| commit.invoked);
    let mut ended = by_end.into_iter().peekable();
    let mut floor: Option<&Commit> = None;
    for commit in commits.iter() {
        while let Some(before) = ended.next_if(|before| before.ended < commit.invoked) {
            if floor.is_none_or(|floor| before.offset > floor.offset) {
                floor = Some(before);
            }
        }
        if let Some(floor) = floor.filter(|floor| commit.offset < floor.offset) {
            found.find(&[], || {
                let verb = |commit: &Commit| if commit.is_read { "was told" } else { "committed" };
                format!(
                    "{name}: {} {} {} at {} ns, after {} {} {} at {} ns",
                    facts.client_name(commit.client),
                    verb(commit),
                    commit.offset,
                    commit.ended,
                    facts.client_name(floor.client),
                    verb(floor),
                    floor.offset,
                    floor.ended
                )
            });
        }
    }
}

/// Every record below the highest offset was given to some member.
fn runs_ahead(facts: &Facts, found: &mut Findings, name: &str, group: usize, part: u32, commits: &[&Commit]) {
    let highest = commits.iter().map(|commit| commit.offset).max().unwrap_or(0);
    let missed = facts.parts[part as usize]
        .between(0, highest)
        .find(|(_, slot)| slot.is_seen(true) && !slot.is_given_to(group));
    if let Some((offset, slot)) = missed.filter(|_| facts.keeps_all(part)) {
        let values: Vec<u64> = slot.value().into_iter().collect();
        found.find(&values, || {
            format!("{name}: {highest} is committed, and no member was given offset {offset}")
        });
    }
}
