//! kill −9 of all nodes at once while producers write with acks=all: whichever two come back first, a replica that has
//! all acknowledged records is elected, and not uncleanly.

use crate::harness::replicas::{
    Cluster, PARTITIONS, Producers, append_patiently, consume, eventually, judge, leaders,
};
use crate::harness::{TestNode, free_port};
use barnabas_wire::records::crc32c;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

/// Every order in which two of three nodes come back.
const ORDERS: [[i32; 2]; 6] = [[1, 2], [2, 1], [1, 3], [3, 1], [2, 3], [3, 2]];
const UNCLEAN: &str = "kafka_controller_controllerstats_uncleanleaderelections_total";

fn kill_all(cluster: &mut Cluster) {
    std::thread::scope(|scope| {
        for node in cluster.nodes.values_mut() {
            scope.spawn(|| node.kill());
        }
    });
}

fn start_all(cluster: &mut Cluster) {
    cluster.nodes.values_mut().for_each(TestNode::launch_unawaited);
    cluster.nodes.values_mut().for_each(TestNode::await_answer);
}

/// With pages of metrics from the next start on; their ports, by node.
fn meter(cluster: &Cluster) -> Vec<(i32, u16)> {
    let metered = |(id, node): (&i32, &TestNode)| {
        let (path, port) = (node.dir.path().join("server.properties"), free_port());
        let text = std::fs::read_to_string(&path).expect("a file");
        std::fs::write(&path, format!("{text}metrics.listener=127.0.0.1:{port}\n")).expect("written");
        (*id, port)
    };
    cluster.nodes.iter().map(metered).collect()
}

/// The node's count of unclean elections since its start.
fn unclean_elections(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("asked");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("a page");
    let line = page.lines().find(|line| line.starts_with(UNCLEAN)).expect("the counter");
    line.rsplit(' ').next().expect("a value").to_owned()
}

#[test]
fn leaders_after_a_kill_of_all_are_elected_cleanly() {
    let mut cluster = Cluster::start_with(
        None,
        &["data"],
        "broker.session.timeout.ms=3000\nbroker.heartbeat.interval.ms=1000",
    );
    let topic = cluster.create("t");
    cluster.await_in_sync("t", 3);
    let producers = Producers::start(&cluster, topic);
    producers.await_more(500);
    let meters = meter(&cluster);
    for order in ORDERS {
        kill_all(&mut cluster);
        for id in order {
            cluster.nodes.get_mut(&id).expect("a node").launch_unawaited();
        }
        for id in order {
            cluster.nodes.get_mut(&id).expect("a node").await_answer();
        }
        eventually("the two lead everything", || {
            let led = leaders(&mut cluster.client(order[0]), "t");
            led.len() == PARTITIONS as usize && led.values().all(|leader| order.contains(leader))
        });
        producers.await_more(200);
        let late = (1..=3).find(|id| !order.contains(id)).expect("a third");
        cluster.nodes.get_mut(&late).expect("a node").launch();
        cluster.await_in_sync("t", 3);
        producers.await_more(200);
        for (id, port) in &meters {
            assert_eq!(unclean_elections(*port), "0", "node {id} after the start of {order:?}");
        }
    }
    let all = producers.stop();
    judge(&cluster, "t", topic, &all);
    for node in cluster.nodes.values_mut() {
        assert!(node.stop().success(), "{}", node.log());
        assert!(!node.log().contains("unclean election"), "{}", node.log());
        assert!(!node.log().contains(" ERROR "), "{}", node.log());
    }
}

fn cut_last_segment(folder: &Path) {
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "log"));
    files.sort();
    let file = std::fs::File::options().write(true).open(files.last().expect("a segment")).expect("opened");
    file.set_len(100).expect("cut");
}

/// The node that was killed with the others has lost a part of what it had acknowledged: a node that has it leads.
#[test]
fn damaged_replica_is_not_left_to_lead() {
    let settings = "log.segment.bytes=1048576\nauto.leader.rebalance.enable=false\nbroker.session.timeout.ms=3000\nbroker.heartbeat.interval.ms=1000";
    let mut cluster = Cluster::start_with(None, &["data"], settings);
    let topic = cluster.create("t");
    cluster.await_in_sync("t", 3);
    let value = |number: usize| format!("{number}{}", "x".repeat(100_000));
    (0..35).for_each(|number| append_patiently(&cluster, topic, 0, &value(number)));
    // Nothing of it is in the journals any more.
    for node in cluster.nodes.values_mut() {
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
    }
    start_all(&mut cluster);
    cluster.await_in_sync("t", 3);
    let damaged = leaders(&mut cluster.client(1), "t")[&0];
    kill_all(&mut cluster);
    cut_last_segment(&cluster.nodes[&damaged].data().join("t-0"));
    let node = cluster.nodes.get_mut(&damaged).expect("a node");
    // So that it is likely to be elected first.
    node.launch_unawaited();
    eventually("it looks for a leader", || TcpStream::connect(("127.0.0.1", node.controller_port)).is_ok());
    cluster.nodes.iter_mut().filter(|(id, _)| **id != damaged).for_each(|(_, node)| node.launch_unawaited());
    cluster.nodes.values_mut().for_each(TestNode::await_answer);
    append_patiently(&cluster, topic, 0, &value(35));
    let other = damaged % 3 + 1;
    eventually("another one leads", || {
        leaders(&mut cluster.client(other), "t").get(&0).is_some_and(|led| *led != damaged)
    });
    let found = consume(&cluster, "t", topic, 0);
    for number in 0..36 {
        assert!(found.values().any(|found| *found == value(number)), "{number} is lost");
    }
    for node in cluster.nodes.values_mut() {
        node.stop_expecting_trouble();
        assert!(!node.log().contains("unclean election"), "{}", node.log());
    }
    let log = cluster.nodes[&damaged].log();
    assert!(log.contains("partition cannot be opened and stays offline"), "{log}");
}

/// Says in the words of `barnabas-last-life` that the node knew the metadata log until then.
fn restore_to(node: &TestNode, seen_ms: i64) {
    let file = node.data().join("barnabas-last-life");
    let text = std::fs::read_to_string(&file).expect("it was noted");
    let epoch = text.lines().nth(2).and_then(|line| line.split(' ').next()).expect("a broker epoch");
    let body = format!("{epoch} {seen_ms}\n");
    let text = format!("barnabas-last-life 0\n{:08x}\n{body}", crc32c(body.as_bytes()));
    std::fs::write(&file, text).expect("written");
}

/// A disk that is older than its broker's death lacks what was acknowledged since: the metadata log tells (here by the
/// clock alone, since no records say that a controller is active).
#[test]
fn disk_of_an_earlier_moment_is_not_eligible() {
    let settings = "metadata.max.idle.interval.ms=0\nauto.leader.rebalance.enable=false\nbroker.session.timeout.ms=3000\nbroker.heartbeat.interval.ms=1000";
    let mut cluster = Cluster::start_with(None, &["data"], settings);
    let topic = cluster.create("t");
    cluster.await_in_sync("t", 3);
    append_patiently(&cluster, topic, 0, "first");
    kill_all(&mut cluster);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time");
    restore_to(&cluster.nodes[&1], now.as_millis() as i64 - 600_000);
    for id in [1, 2] {
        cluster.nodes.get_mut(&id).expect("a node").launch_unawaited();
    }
    for id in [1, 2] {
        cluster.nodes.get_mut(&id).expect("a node").await_answer();
    }
    eventually("what 3 led is given to others", || cluster.nodes[&2].log().contains("broker 3 fenced"));
    // By the order in which they register, 2 is eligible or none is.
    let led = leaders(&mut cluster.client(2), "t");
    assert!(led.values().all(|leader| *leader != 1), "{led:?}");
    let older = "the log directories of this broker are older than its last registration";
    let (log, other) = (cluster.nodes[&1].log(), cluster.nodes[&2].log());
    assert!(log.contains(older) && !other.contains(older), "{log}\n{other}");
}
