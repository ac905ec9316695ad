//! What the survivors write when nodes of a cluster end: who is fenced, what lost replicas, which level it has.

use crate::harness::cluster::{Cluster, until};
use crate::harness::quorum::create;
use crate::harness::replicas::signal;
use barnabas_wire::messages::{ResponseBody, UnregisterBrokerRequest};
use std::collections::BTreeMap;

/// How long each node's log was before an event. Only lines after that count: the start of a cluster writes some of the
/// same lines.
struct Before(BTreeMap<i32, usize>);

impl Before {
    fn now(cluster: &Cluster) -> Self {
        Self(cluster.nodes.iter().map(|(&id, node)| (id, node.log().len())).collect())
    }

    fn written(&self, cluster: &Cluster, node: i32, level: &str, words: &[&str]) -> Option<String> {
        let log = cluster.nodes[&node].log();
        let is_it = |line: &&str| line.contains(level) && words.iter().all(|word| line.contains(word));
        log.get(self.0[&node]..)?.lines().find(is_it).map(str::to_owned)
    }

    fn await_line(&self, cluster: &Cluster, node: i32, level: &str, words: &[&str]) {
        until(&format!("{words:?} in the log of {node}"), || self.written(cluster, node, level, words));
    }
}

#[test]
fn killed_broker_is_named_by_the_survivors_at_warn() {
    let mut cluster = Cluster::start("");
    cluster.create("orders", 3);
    let before = Before::now(&cluster);
    cluster.kill(3);
    for survivor in [1, 2] {
        before.await_line(&cluster, survivor, " WARN ", &["broker 3 fenced:"]);
    }
    // Each survivor leads at least one of three partitions, or one of them leads all.
    until("the ISR is named", || {
        [1, 2].iter().find_map(|&node| {
            before.written(&cluster, node, " WARN ", &["in-sync replicas shrank: ", "orders-"])
        })
    });
    let before = Before::now(&cluster);
    cluster.launch(3);
    for survivor in [1, 2] {
        before.await_line(&cluster, survivor, " INFO ", &["broker 3 unfenced"]);
    }
    cluster.stop();
}

#[test]
fn frozen_broker_is_named_by_the_survivors_until_it_goes_on() {
    let cluster = Cluster::start("broker.session.timeout.ms=3000\nbroker.heartbeat.interval.ms=500");
    cluster.create("orders", 3);
    let frozen = &cluster.nodes[&3];
    let before = Before::now(&cluster);
    signal(frozen, "-STOP");
    for survivor in [1, 2] {
        before.await_line(&cluster, survivor, " WARN ", &["broker 3 fenced: the controller lost contact"]);
    }
    let before = Before::now(&cluster);
    signal(frozen, "-CONT");
    for survivor in [1, 2] {
        before.await_line(&cluster, survivor, " INFO ", &["broker 3 unfenced"]);
    }
    cluster.await_in_sync();
    cluster.stop();
}

#[test]
fn unregistered_broker_is_named_by_the_survivors() {
    let mut cluster = Cluster::start("");
    let before = Before::now(&cluster);
    cluster.kill(3);
    before.await_line(&cluster, 1, " WARN ", &["broker 3 fenced:"]);
    until("it is unregistered", || {
        let request = UnregisterBrokerRequest { broker_id: 3, ..Default::default() };
        match cluster.ask(1, request, 0)? {
            ResponseBody::UnregisterBroker(response) => (response.error_code == 0).then_some(()),
            other => panic!("{other:?}"),
        }
    });
    for survivor in [1, 2] {
        before.await_line(&cluster, survivor, " INFO ", &["broker 3 unregistered"]);
    }
    let before = Before::now(&cluster);
    cluster.launch(3);
    for survivor in [1, 2] {
        before.await_line(&cluster, survivor, " INFO ", &["broker 3 registered"]);
    }
    cluster.stop();
}

/// Nothing was led by it that another replica could lead: the controller fences it at once.
#[test]
fn clean_stop_of_a_broker_without_leaderships_logs_no_warning() {
    let mut cluster = Cluster::start("auto.leader.rebalance.enable=false");
    cluster.create("orders", 3);
    let before = Before::now(&cluster);
    cluster.kill(3);
    before.await_line(&cluster, 1, " WARN ", &["broker 3 fenced:"]);
    cluster.launch(3);
    cluster.await_in_sync();
    let before = Before::now(&cluster);
    let node = cluster.nodes.get_mut(&3).expect("a node");
    assert!(node.stop().success(), "{}", node.log());
    for survivor in [1, 2] {
        before.await_line(&cluster, survivor, " INFO ", &["broker 3 fenced after its controlled shutdown"]);
        let log = cluster.nodes[&survivor].log();
        assert_eq!(log.matches("broker 3 fenced: the controller lost contact").count(), 1, "{log}");
    }
    cluster.launch(3);
    cluster.stop();
}

#[test]
fn partition_below_its_minimum_and_a_lost_quorum_are_errors() {
    let mut cluster = Cluster::start("");
    cluster.create("orders", 3);
    let before = Before::now(&cluster);
    cluster.kill(2);
    before.await_line(&cluster, 1, " WARN ", &["broker 2 fenced:"]);
    cluster.kill(3);
    before.await_line(&cluster, 1, " ERROR ", &["the metadata quorum has had no leader"]);
    let restart = Before::now(&cluster);
    cluster.launch(3);
    restart.await_line(&cluster, 1, " INFO ", &["the metadata quorum makes progress again"]);
    let below = ["partitions below min.insync.replicas: ", "orders-"];
    cluster.kill(3);
    cluster.launch(3);
    cluster.launch(2);
    until("a minimum was missed", || {
        [1, 2, 3].iter().find_map(|&node| before.written(&cluster, node, " ERROR ", &below))
    });
    cluster.stop();
}

#[test]
fn partition_that_stays_without_a_leader_names_its_last_isr() {
    let mut cluster = Cluster::start("broker.session.timeout.ms=3000\nbroker.heartbeat.interval.ms=1000");
    assert_eq!(create(&mut cluster.nodes[&1].client(), 7, "alone", 3, 1), 0);
    let led_by_3 = |&partition: &i32| cluster.leader("alone", partition) == Some(3);
    let partition = until("a partition that 3 leads", || (0..3).find(led_by_3));
    let before = Before::now(&cluster);
    cluster.kill(3);
    let lost = format!("alone-{partition} (replicas [3], last in sync [3])");
    for survivor in [1, 2] {
        let at_once = ["partitions lost their leader: ", &lost];
        before.await_line(&cluster, survivor, " INFO ", &at_once);
        let alarm = ["partitions without a leader for 3 s: ", &lost];
        before.await_line(&cluster, survivor, " ERROR ", &alarm);
    }
    let before = Before::now(&cluster);
    cluster.launch(3);
    before.await_line(&cluster, 1, " INFO ", &["partitions have a leader again: ", "alone-"]);
    cluster.stop();
}
