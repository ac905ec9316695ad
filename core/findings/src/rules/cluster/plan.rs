//! C4: how many replicas each broker has, and which moves make the numbers equal.

use crate::facts::Facts;
use crate::report::Report;
use crate::rules::words::{count, reassign};
use std::collections::BTreeMap;

/// A plan with more moves than this is a project of its own: the rest comes with the next run.
const MOVES_MAX: usize = 500;
const ABOVE_MEAN: f64 = 5.0;

struct Row {
    topic: String,
    partition: i32,
    replicas: Vec<i32>,
    is_changed: bool,
}

pub fn judge_unequal(facts: &Facts, limit: f64, report: &mut Report) {
    let Some(topics) = report.seen(&facts.topics) else { return };
    let brokers: Vec<i32> = facts.alive().map(|node| node.id).collect();
    if brokers.len() < 2 {
        return;
    }
    let rows = topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| Row {
            topic: topic.name.clone(),
            partition: partition.index,
            replicas: partition.replicas.clone(),
            is_changed: false,
        })
    });
    let mut rows: Vec<Row> = rows.collect();
    let replicas = |row: &Row| row.replicas.clone();
    let leaders = |row: &Row| row.replicas.first().copied().into_iter().collect();
    let words: Vec<String> =
        [("replicas", tally(&brokers, &rows, replicas)), ("leaders", tally(&brokers, &rows, leaders))]
            .into_iter()
            .filter_map(|(what, tally)| unequal(what, &tally, limit))
            .collect();
    if words.is_empty() {
        return;
    }
    even_replicas(facts, &brokers, &mut rows);
    even_leaders(&brokers, &mut rows);
    let plan: Vec<(String, i32, Vec<i32>)> = rows
        .into_iter()
        .filter(|row| row.is_changed)
        .map(|row| (row.topic, row.partition, row.replicas))
        .collect();
    let changed = count(plan.len(), "partition");
    let commands = if plan.is_empty() { Vec::new() } else { vec![reassign(facts, &plan)] };
    report.find("cluster", format!("{}; the plan changes {changed}", words.join("; ")), commands);
}

fn tally(brokers: &[i32], rows: &[Row], of: impl Fn(&Row) -> Vec<i32>) -> BTreeMap<i32, usize> {
    let mut tally: BTreeMap<i32, usize> = brokers.iter().map(|broker| (*broker, 0)).collect();
    for broker in rows.iter().flat_map(of) {
        if let Some(number) = tally.get_mut(&broker) {
            *number += 1;
        }
    }
    tally
}

fn unequal(what: &str, tally: &BTreeMap<i32, usize>, limit: f64) -> Option<String> {
    let mean = tally.values().sum::<usize>() as f64 / tally.len() as f64;
    let (broker, most) = tally.iter().max_by_key(|(_, number)| **number)?;
    let is_unequal = *most as f64 > mean * limit && *most as f64 - mean >= ABOVE_MEAN;
    is_unequal.then(|| format!("broker {broker} has {most} {what}, the mean is {mean:.1}"))
}

/// Moves replicas from the fullest broker to the emptiest that may take one.
fn even_replicas(facts: &Facts, brokers: &[i32], rows: &mut [Row]) {
    for _ in 0..MOVES_MAX {
        let tally = tally(brokers, rows, |row| row.replicas.clone());
        let Some((from, most)) = tally.iter().max_by_key(|(_, number)| **number) else { return };
        let mut others: Vec<(i32, usize)> = tally.iter().map(|(broker, number)| (*broker, *number)).collect();
        others.sort_by_key(|(_, number)| *number);
        let moved = others.iter().filter(|(_, number)| number + 1 < *most).any(|(to, _)| {
            let row = rows.iter_mut().find(|row| may_move(facts, row, *from, *to));
            let place = row.and_then(|row| Some((row.replicas.iter().position(|r| r == from)?, row)));
            place
                .map(|(at, row)| {
                    row.replicas[at] = *to;
                    row.is_changed = true;
                })
                .is_some()
        });
        if !moved {
            return;
        }
    }
}

/// Whether the move keeps the number of the partition's racks.
fn may_move(facts: &Facts, row: &Row, from: i32, to: i32) -> bool {
    if !row.replicas.contains(&from) || row.replicas.contains(&to) {
        return false;
    }
    let (old, new) = (facts.rack(from), facts.rack(to));
    let mut rest =
        row.replicas.iter().filter(|replica| **replica != from).map(|replica| facts.rack(*replica));
    old == new || rest.all(|rack| rack != new)
}

/// Puts another replica first where the first one's broker has more leaders than that one's.
fn even_leaders(brokers: &[i32], rows: &mut [Row]) {
    let mut tally = tally(brokers, rows, |row| row.replicas.first().copied().into_iter().collect());
    for row in rows {
        let Some(first) = row.replicas.first().copied() else { continue };
        let number = |broker: &i32| tally.get(broker).copied();
        let least =
            row.replicas.iter().enumerate().filter_map(|(at, broker)| Some((number(broker)?, at))).min();
        let (Some((fewest, at)), Some(most)) = (least, number(&first)) else { continue };
        if fewest + 1 < most {
            let new = row.replicas[at];
            row.replicas.swap(0, at);
            row.is_changed = true;
            *tally.entry(first).or_default() -= 1;
            *tally.entry(new).or_default() += 1;
        }
    }
}
