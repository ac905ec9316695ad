//! Nodes of a cluster die and start again: what clients are told meanwhile, whether a node that starts can be stopped,
//! and what such a start leaves.

use crate::harness::cluster::{Cluster, SETTINGS, eventually, metadata};
use crate::harness::quorum::create;
use crate::harness::replicas::signal;
use crate::harness::{Client, TestNode};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// librdkafka forgets every broker by an answer without brokers, and may never ask one again.
#[test]
fn metadata_always_names_a_broker() {
    let mut cluster = Cluster::start(SETTINGS);
    let ports: Vec<u16> = cluster.nodes.values().map(|node| node.port).collect();
    for _ in 0..3 {
        let counts = Mutex::new(Vec::new());
        let is_over = AtomicBool::new(false);
        let ask = |port: u16| {
            while !is_over.load(Ordering::Relaxed) {
                let Ok(mut client) = Client::try_connect(port) else { continue };
                while let Some(answer) = metadata(&mut client) {
                    counts.lock().expect("counts").push(answer.brokers.len());
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            }
        };
        cluster.nodes.values_mut().for_each(TestNode::kill);
        std::thread::scope(|scope| {
            for port in &ports {
                let ask = &ask;
                scope.spawn(move || ask(*port));
            }
            cluster.nodes.values_mut().for_each(TestNode::launch_unawaited);
            cluster.nodes.values_mut().for_each(TestNode::await_answer);
            for node in cluster.nodes.values() {
                eventually("all brokers are known", || {
                    metadata(&mut node.client()).is_some_and(|known| known.brokers.len() == 3)
                });
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let counts = counts.into_inner().expect("counts");
        assert!(counts.iter().any(|count| *count > 0), "nothing was asked");
        assert!(
            !counts.contains(&0),
            "{} answers of {} without a broker",
            counts.iter().filter(|count| **count == 0).count(),
            counts.len()
        );
    }
    for node in cluster.nodes.values_mut() {
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
    }
}

/// A supervisor sends SIGTERM once.
#[test]
fn node_that_still_starts_stops_when_it_is_asked_once() {
    let mut cluster = Cluster::start(SETTINGS);
    for round in 0..12 {
        let node = cluster.nodes.get_mut(&(1 + round % 3)).expect("a node");
        let sees_leader = |node: &TestNode| node.log().matches("leads the metadata quorum").count();
        let before = sees_leader(node);
        node.kill();
        node.launch_unawaited();
        eventually("the node has seen a leader", || sees_leader(node) > before);
        std::thread::sleep(Duration::from_millis(5 * round as u64));
        // Waits for its end.
        node.stop_expecting_trouble();
        node.launch();
    }
    for node in cluster.nodes.values_mut() {
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
    }
}

/// Nothing was written by a start that found no leader: the broker's replicas are as good as after its clean stop
/// (KIP-966).
#[test]
fn start_that_ends_early_causes_no_unclean_election() {
    let mut cluster = Cluster::start(SETTINGS);
    // One in-sync replica is enough, so no other one becomes eligible.
    assert_eq!(create(&mut cluster.nodes[&1].client(), 7, "t", 6, 3), 0);
    cluster.await_in_sync();
    for id in [3, 2, 1] {
        let node = cluster.nodes.get_mut(&id).expect("a node");
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
    }
    let node = cluster.nodes.get_mut(&1).expect("a node");
    let mut ends = Vec::new();
    for ends_by_kill in [false, true, false] {
        node.launch_unawaited();
        eventually("it looks for a leader", || {
            TcpStream::connect(("127.0.0.1", node.controller_port)).is_ok()
        });
        std::thread::sleep(Duration::from_millis(300));
        if ends_by_kill {
            node.kill();
        } else {
            ends.push(node.stop_expecting_trouble());
        }
    }
    let lines = node.log().matches("stopped by SIGTERM while it looked for").count();
    cluster.nodes.values_mut().for_each(TestNode::launch_unawaited);
    cluster.nodes.values_mut().for_each(TestNode::await_answer);
    cluster.await_in_sync();
    for node in cluster.nodes.values_mut() {
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
        assert!(!node.log().contains("unclean election"), "{}", node.log());
    }
    assert!(ends.iter().all(|end| end.success()) && lines == 2, "{ends:?} {lines}");
}

/// Brokers register one by one, and partitions are without a leader for a moment meanwhile.
#[test]
fn restart_of_all_nodes_logs_no_error() {
    let mut cluster = Cluster::start(SETTINGS);
    cluster.create("t", 6);
    assert_eq!(create(&mut cluster.nodes[&1].client(), 7, "alone", 6, 1), 0);
    for is_kill in [false, true, false, true] {
        cluster.await_in_sync();
        std::thread::scope(|scope| {
            for node in cluster.nodes.values_mut() {
                scope.spawn(move || match is_kill {
                    true => node.kill(),
                    false => assert!(node.stop_expecting_trouble().success(), "{}", node.log()),
                });
            }
        });
        cluster.nodes.values_mut().for_each(TestNode::launch_unawaited);
        cluster.nodes.values_mut().for_each(TestNode::await_answer);
        for node in cluster.nodes.values() {
            eventually("every partition is led", || {
                metadata(&mut node.client()).is_some_and(|known| {
                    let mut rows = known.topics.iter().flat_map(|topic| &topic.partitions);
                    known.brokers.len() == 3 && rows.all(|row| row.leader_id >= 0)
                })
            });
        }
    }
    cluster.await_in_sync();
    // Before the last stops: the node that stops last may be without a quorum for long.
    for node in cluster.nodes.values() {
        assert!(!node.log().contains(" ERROR "), "{}", node.log());
    }
    for node in cluster.nodes.values_mut() {
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
    }
}

/// From the moment of its first line on, a signal is a clean end.
#[test]
fn signal_right_after_the_first_line_stops_cleanly() {
    let mut node = TestNode::start();
    assert!(node.stop().success(), "{}", node.log());
    for round in 1..=5 {
        let lines =
            |node: &TestNode, words: &str| node.log().lines().filter(|line| line.contains(words)).count();
        let (starts, stops) = (lines(&node, "starts; configuration="), lines(&node, "stopped"));
        node.launch_unawaited();
        eventually("its first line", || lines(&node, "starts; configuration=") > starts);
        assert!(node.stop().success(), "round {round}: {}", node.log());
        assert!(lines(&node, "stopped") > stops, "round {round}: {}", node.log());
    }
}

#[test]
fn signals_that_stop_nothing_write_a_line() {
    let mut node = TestNode::start();
    for name in ["QUIT", "USR1", "USR2"] {
        signal(&node, &format!("-{name}"));
        eventually("a line of it", || node.log().contains(&format!("SIG{name}")));
    }
    assert!(node.log().contains("SIGQUIT: the node goes on. node=1 "), "{}", node.log());
    assert!(metadata(&mut node.client()).is_some());
    assert!(node.stop().success(), "{}", node.log());
}

/// A supervisor that signals the process and its group.
#[test]
fn second_signal_leaves_the_stop_as_it_was() {
    let mut cluster = Cluster::start(SETTINGS);
    cluster.kill(2);
    cluster.kill(3);
    let node = cluster.nodes.get_mut(&1).expect("a node");
    // Without a controller the stop waits for one, for three seconds.
    signal(node, "-TERM");
    eventually("it stops", || node.log().contains("stopping by SIGTERM"));
    std::thread::sleep(Duration::from_millis(2300));
    assert!(node.stop_expecting_trouble().success(), "{}", node.log());
    let waits = "SIGTERM again: the node has been stopping for 2 s and waits for the controller";
    assert!(node.log().contains(waits), "{}", node.log());
}
