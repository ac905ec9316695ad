//! A replica leaves a broker and comes back, and kill −9 ends the broker in between: before its directory is renamed,
//! between that and the journal's removal, or after both. The partition is online on every replica then, with each
//! acknowledged record once.
//!
//! `BARNABAS_RETURN_ROUNDS` sets the number of kills; the short form is a handful.

use crate::harness::replicas::{
    Acknowledged, Cluster, PARTITIONS, Producers, append_patiently, consume, order_reassignment, reassign,
};
use crate::harness::{TestNode, now_ms};
use barnabas_base::{TopicId, split_mix_64};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const TOPIC: &str = "returns";
/// What a start says that finds entries of an earlier stay.
const LEFT: &str = "left this broker before the unclean stop";

/// The folders of the topic that are on their way out.
fn renamed(node: &TestNode) -> BTreeSet<String> {
    let names = std::fs::read_dir(node.data()).expect("listed").flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(TOPIC) && name.ends_with("-delete")).collect()
}

/// Kills a node that is about to be without its replicas: at once, when a folder is renamed, or a little later.
fn kill_while_it_leaves(mut node: TestNode, chance: &mut u64) -> TestNode {
    let before = renamed(&node);
    match split_mix_64(chance) % 4 {
        0 => std::thread::sleep(Duration::from_millis(split_mix_64(chance) % 20)),
        when => {
            let until = Instant::now() + Duration::from_secs(60);
            while renamed(&node) == before {
                assert!(Instant::now() < until, "no folder was renamed within a minute");
            }
            let later = if when == 1 { split_mix_64(chance) % 40 } else { 0 };
            std::thread::sleep(Duration::from_millis(later));
        }
    }
    node.kill();
    node
}

/// Moves all replicas of a broker away and back.
fn leave_and_come_back(cluster: &mut Cluster, victim: i32, chance: &mut u64) {
    let others: Vec<i32> = (1..=3).filter(|node| *node != victim).collect();
    let all = [others[0], others[1], victim];
    let node = cluster.nodes.remove(&victim).expect("there");
    let mut node = std::thread::scope(|scope| {
        let killed = scope.spawn(|| kill_while_it_leaves(node, chance));
        order_reassignment(cluster, others[0], TOPIC, &others);
        killed.join().expect("no panic")
    });
    // Half of the time the start knows already that the replicas are back.
    let is_back_before = split_mix_64(chance).is_multiple_of(2);
    if is_back_before {
        reassign(cluster, &others, TOPIC, &others);
        order_reassignment(cluster, others[0], TOPIC, &all);
    }
    node.launch();
    cluster.nodes.insert(victim, node);
    if !is_back_before {
        reassign(cluster, &others, TOPIC, &others);
    }
    reassign(cluster, &all, TOPIC, &all);
    cluster.await_in_sync(TOPIC, 3);
}

/// Each acknowledged record is in its partition once.
fn judge_once(cluster: &Cluster, topic: TopicId, all: &[Acknowledged]) {
    for one in all {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for value in consume(cluster, TOPIC, topic, one.partition).into_values() {
            *counts.entry(value).or_default() += 1;
        }
        let is_once = |value: &String| counts.get(value) == Some(&1);
        let others: Vec<_> = one.records.iter().filter(|(_, value)| !is_once(value)).collect();
        assert!(others.is_empty(), "partition {}: {others:?}", one.partition);
    }
}

#[test]
fn replica_that_returns_after_a_kill_is_online_and_whole() {
    let rounds = std::env::var("BARNABAS_RETURN_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    let mut chance = now_ms() as u64;
    println!("seed {chance}");
    let mut cluster = Cluster::start();
    let topic = cluster.create(TOPIC);
    cluster.await_in_sync(TOPIC, 3);
    // So large that it goes straight into segments: what the journal holds after that needs it.
    let front = "v".repeat(600_000);
    (0..PARTITIONS).for_each(|partition| append_patiently(&cluster, topic, partition, &front));
    let producers = Producers::start(&cluster, topic);
    producers.await_more(100);
    for round in 0..rounds {
        leave_and_come_back(&mut cluster, 1 + round % 3, &mut chance);
        producers.await_more(50);
    }
    let all = producers.stop();
    let count: usize = all.iter().map(|one| one.records.len()).sum();
    let left: usize = cluster.nodes.values().map(|node| node.log().matches(LEFT).count()).sum();
    println!(
        "{count} records acknowledged through {rounds} kills; {left} times a start found an earlier stay"
    );
    cluster.judge_on_all(TOPIC, topic, &all);
    judge_once(&cluster, topic, &all);
    cluster.stop_expecting(&["the local directory was renamed to"]);
}
