//! What a million partitions cost the controller. `cargo test --release -p barnabas-quorum --test density -- --ignored
//! --nocapture`
//!
//! Question: memory per partition, and the time to create, snapshot and read a million of them: as 1,000,000 topics and
//! as ten topics of 100,000. One broker, one directory. Left out on purpose: disk (files are kept in memory, and
//! counted apart).

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod world;

use barnabas_wire::Str;
use barnabas_wire::messages::CreateTopicsRequest;
use barnabas_wire::messages::create_topics_request::CreatableTopic;
use world::World;

fn rss_mb() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<f64>().unwrap() * 4096.0 / 1e6
}

/// Processor time of this process so far: what a busy machine does not distort as it does the clock.
fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()) * 10
}

fn measure(what: &str, topics: usize, partitions: i32, per_request: usize) {
    let mut world = World::started(1);
    let before = rss_mb();
    let started = cpu_ms();
    for first in (0..topics).step_by(per_request) {
        let topic = |at: usize| CreatableTopic {
            name: Str::from(format!("topic-{at:07}")),
            num_partitions: partitions,
            replication_factor: 1,
            ..CreatableTopic::default()
        };
        let topics = (first..topics.min(first + per_request)).map(topic).collect();
        world.answer(CreateTopicsRequest { topics, ..CreateTopicsRequest::default() }, 4);
        world.events.clear();
    }
    let created = cpu_ms() - started;
    let log: usize = world.files.log.iter().map(|batch| batch.bytes.len()).sum();
    let image_mb = rss_mb() - before - log as f64 / 1e6;
    let now = world.time();
    let started = cpu_ms();
    assert!(world.node().snapshot(now));
    world.carry_out();
    let snapshot = cpu_ms() - started;
    let size = world.files.snapshots.values().next_back().unwrap().len();
    world.events.clear();
    world.crash(0);
    let started = cpu_ms();
    world.start().unwrap();
    world.sync();
    let restarted = cpu_ms() - started;
    assert_eq!(world.image.topics.partition_count(), topics * partitions as usize);
    println!(
        r#"{{"what":"{what}","created_cpu_ms":{},"log_mb":{:.1},"image_mb":{image_mb:.0},"snapshot_cpu_ms":{},"snapshot_mb":{:.1},"restart_cpu_ms":{}}}"#,
        created,
        log as f64 / 1e6,
        snapshot,
        size as f64 / 1e6,
        restarted
    );
}

#[test]
#[ignore = "a measurement, for release builds"]
fn a_million_partitions() {
    if std::env::var("ONLY_TOPICS").is_err() {
        measure("one topic of 100,000 partitions", 1, 100_000, 1);
        measure("10 topics of 100,000 partitions", 10, 100_000, 1);
    }
    measure("1,000,000 topics, 1,000 per request", 1_000_000, 1, 1000);
}

#[test]
fn a_small_one_runs() {
    measure("small", 100, 3, 7);
}
