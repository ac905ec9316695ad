//! All nodes of a cluster die and start again at once: what clients are told meanwhile.

use crate::harness::cluster::{Cluster, SETTINGS, metadata};
use crate::harness::{Client, TestNode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

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
                crate::harness::cluster::eventually("all brokers are known", || {
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
