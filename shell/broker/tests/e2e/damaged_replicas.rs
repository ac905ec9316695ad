//! A byte changes in a sealed segment of one of three replicas: the replica is repaired from another one, clients
//! notice nothing, and every acknowledged record is there.

use crate::harness::replicas::{
    Cluster, PARTITIONS, Producers, append_patiently, eventually, judge, leaders,
};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const TOPIC: &str = "whole";
const SETTINGS: &str =
    "log.scrub.interval.ms=1000\nlog.segment.bytes=1048576\nauto.leader.rebalance.enable=false";
const FIRST: &str = "00000000000000000000.log";

fn folder(cluster: &Cluster, node: i32) -> PathBuf {
    cluster.nodes[&node].dir.path().join("data").join(format!("{TOPIC}-0"))
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |known| known.len())
}

/// All segments of partition 0, one behind the other.
fn bytes(cluster: &Cluster, node: i32) -> Vec<u8> {
    let names = std::fs::read_dir(folder(cluster, node)).expect("a folder").flatten();
    let mut names: Vec<PathBuf> = names.map(|entry| entry.path()).collect();
    names.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    names.sort();
    names.iter().flat_map(|path| std::fs::read(path).expect("a segment")).collect()
}

/// Partition 0 has some segments on every node.
fn fill(cluster: &Cluster, topic: barnabas_base::TopicId) {
    let value = "x".repeat(100_000);
    (0..35).for_each(|_| append_patiently(cluster, topic, 0, &value));
    for node in cluster.nodes.keys() {
        eventually("the first segment is written back", || {
            size(&folder(cluster, *node).join(FIRST)) > 900_000
                && std::fs::read_dir(folder(cluster, *node)).is_ok_and(|names| {
                    let is_log = |path: &Path| path.extension().is_some_and(|extension| extension == "log");
                    names.flatten().filter(|entry| is_log(&entry.path())).count() > 2
                })
        });
    }
}

fn damage(cluster: &Cluster, node: i32) {
    let file = std::fs::File::options().write(true).open(folder(cluster, node).join(FIRST));
    file.expect("a segment").write_all_at(b"!damage!", 450_000).expect("written");
}

/// Stops all, and compares what lies in their files.
fn judge_files(mut cluster: Cluster) {
    for node in cluster.nodes.values_mut() {
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
        let log = node.log();
        let mut trouble = crate::harness::trouble(&log);
        assert_eq!(trouble.find(|line| !line.contains("damage") && !line.contains("corrupt")), None);
    }
    let first = bytes(&cluster, 1);
    assert!(first.len() > 3_000_000);
    for other in [2, 3] {
        assert!(bytes(&cluster, other) == first, "node {other} has other bytes than node 1");
    }
}

/// Damages partition 0 on its leader, or on another node; returns who led it before and after it was healed.
fn heals(at_leader: bool) -> (i32, i32) {
    let cluster = Cluster::start_with(None, &["data"], SETTINGS);
    let topic = cluster.create(TOPIC);
    cluster.await_in_sync(TOPIC, 3);
    let leader = leaders(&mut cluster.client(1), TOPIC)[&0];
    fill(&cluster, topic);
    let damaged = if at_leader { leader } else { 1 + leader % 3 };
    let producers = Producers::start(&cluster, topic);
    damage(&cluster, damaged);
    let log = || cluster.nodes[&damaged].log();
    eventually("what is damaged is mended", || log().contains("replica repaired: "));
    std::thread::sleep(Duration::from_secs(1));
    cluster.await_in_sync(TOPIC, 3);
    let all = producers.stop();
    assert_eq!(all.len(), PARTITIONS as usize);
    let after = leaders(&mut cluster.client(1), TOPIC)[&0];
    judge(&cluster, TOPIC, topic, &all);
    judge_files(cluster);
    (leader, after)
}

#[test]
fn a_damaged_follower_is_made_whole_from_its_leader() {
    let (before, after) = heals(false);
    assert_eq!(before, after, "the leader stays");
}

#[test]
fn a_damaged_leader_is_replaced_and_made_whole() {
    let (before, after) = heals(true);
    assert_ne!(before, after, "another one leads");
}
