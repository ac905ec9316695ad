//! Nodes of a cluster die and start again: what clients are told meanwhile, and whether a node that starts can be stopped.

use crate::harness::cluster::{Cluster, SETTINGS, eventually, metadata};
use crate::harness::{Client, TestNode};
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
