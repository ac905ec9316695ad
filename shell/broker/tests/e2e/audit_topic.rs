//! The audit log's topic: every broker's lines are in it, wherever it is led, and writing it makes no further lines.

use crate::harness::cluster::{Cluster, SETTINGS};
use crate::harness::patience::eventually;
use crate::harness::three_dirs::values;
use crate::harness::{Client, TestNode, free_port, metric};
use barnabas_base::Uuid;
use barnabas_wire::messages::{MetadataRequest, ResponseBody};
use serde_json::Value;

/// What partition 0 of `audit` holds; nothing while it cannot be read here.
fn lines(client: &mut Client) -> Vec<Value> {
    let all = MetadataRequest { topics: None, ..Default::default() };
    let ResponseBody::Metadata(known) = client.call(all, 12) else { panic!("another") };
    let topic = known.topics.iter().find(|topic| topic.name.as_deref() == Some("audit"));
    let id = topic.map_or(Uuid::ZERO, |topic| topic.topic_id);
    let read = values(client, id, 0).unwrap_or_default();
    read.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn has_change(lines: &[Value], node: i32, to: &str) -> bool {
    lines.iter().any(|line| line["node"] == node && line["changes"][0]["to"] == to)
}

#[test]
fn audit_topic_has_the_lines_and_makes_none() {
    let port = free_port();
    let metrics = format!("metrics.listener=127.0.0.1:{port}");
    let mut node = TestNode::start_with(&["audit.topic=audit", &metrics]);
    let mut client = node.client();
    client.create_topic("orders", 1, &[]);
    client.alter_config(1, (2, "orders"), "retention.ms", Some("2000"));
    eventually("both lines are in the topic", || lines(&mut client).len() == 2);
    let found = lines(&mut client);
    assert_eq!((&found[0]["request"], &found[0]["resource"]), (&"CreateTopics".into(), &"orders".into()));
    assert!(has_change(&found, 1, "2000"), "{found:?}");
    assert_eq!(metric(port, "barnabas_audit_topic_lines_total"), Some(2.0));
    client.alter_config(1, (2, "orders"), "retention.ms", Some("3000"));
    eventually("the third line is in the topic", || lines(&mut client).len() == 3);
    // The node has created the topic and written to it, and noted neither.
    assert_eq!(metric(port, "barnabas_audit_events_total"), Some(3.0));
    assert_eq!(metric(port, "barnabas_audit_topic_dropped_total"), Some(0.0));
    // Lines that a stop finds in the queue are written before the partitions are closed.
    client.alter_config(1, (2, "orders"), "retention.ms", Some("4000"));
    assert!(node.stop().success());
    node.launch();
    let mut client = node.client();
    eventually("the topic can be read again", || lines(&mut client).len() >= 3);
    assert!(node.stop().success());
}

#[test]
fn lines_of_all_brokers_reach_the_topic_wherever_it_is_led() {
    let more =
        "audit.topic=audit\naudit.log.events=changes\ndefault.replication.factor=3\nmin.insync.replicas=1";
    let mut cluster = Cluster::start(&format!("{SETTINGS}\n{more}"));
    cluster.create("orders", 1);
    eventually("the topic is led", || cluster.leader("audit", 0).is_some());
    let change = |cluster: &Cluster, node: i32, value: &str| {
        let mut client = cluster.nodes[&node].client();
        assert_eq!(client.alter_config(1, (2, "orders"), "retention.ms", Some(value)), 0);
    };
    (1..=3).for_each(|node| change(&cluster, node, &format!("{node}000")));
    eventually("each broker's line is there", || {
        let found = lines(&mut cluster.client_of_leader("audit", 0));
        (1..=3).all(|node| has_change(&found, node, &format!("{node}000")))
    });
    let before = cluster.leader("audit", 0).expect("a leader");
    cluster.kill(before);
    let other = if before == 1 { 2 } else { 1 };
    eventually("another broker leads", || cluster.leader("audit", 0).is_some_and(|leader| leader != before));
    eventually("a change is taken", || {
        let mut client = cluster.nodes[&other].client();
        client.alter_config(1, (2, "orders"), "retention.ms", Some("9000")) == 0
    });
    eventually("its line is with the new leader", || {
        has_change(&lines(&mut cluster.client_of_leader("audit", 0)), other, "9000")
    });
    cluster.launch(before);
    cluster.await_in_sync();
    for node in cluster.nodes.values_mut() {
        assert!(node.stop_expecting_trouble().success());
    }
}

#[test]
fn audit_topic_that_cannot_be_one_refuses_the_start() {
    for (topic, named) in [("__audit", "brokers keep for themselves"), ("a b", "audit.topic")] {
        let node = TestNode::new(None, &[&format!("audit.topic={topic}")]);
        let output = node.command().output().expect("runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(named), "{said}");
    }
}
