//! `process.roles` against what a node's directory was formatted for: a node without the role runs no controller.

use crate::harness::quorum::{eventually, prepared, properties, random_uuid, topics};
use crate::harness::{Client, TestNode, batch, binary, free_port};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{ProduceRequest, ResponseBody};
use std::net::TcpStream;

fn standalone(ports: (u16, u16), more: &str) -> TestNode {
    prepared(None, 1, "broker,controller", ports, &random_uuid(), more, &["--standalone"])
}

fn says(node: &TestNode, level: &str, wanted: &str) {
    let level = format!(" {level} ");
    eventually(wanted, || node.log().lines().any(|line| line.contains(&level) && line.contains(wanted)));
}

#[test]
fn broker_in_the_only_voters_directory_runs_no_controller() {
    let ports = (free_port(), free_port());
    let bootstrap = format!("controller.quorum.bootstrap.servers=127.0.0.1:{}", ports.1);
    let mut node = standalone(ports, &bootstrap);
    node.launch();
    node.client().create_topic("kept", 1, &[]);
    assert!(node.stop().success());

    properties(node.dir.path(), 1, "broker", ports, &bootstrap);
    node.launch_unawaited();
    says(&node, "ERROR", "node 1 is the only voter of the metadata quorum. A broker runs no controller");
    says(&node, "WARN", "still looking for the leader of the metadata quorum");
    for port in [ports.0, ports.1] {
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "it serves on {port}");
    }
    assert!(node.stop_expecting_trouble().success(), "{}", node.log());

    properties(node.dir.path(), 1, "broker,controller", ports, &bootstrap);
    node.launch();
    assert_eq!(topics(&mut node.client()), ["kept"]);
    assert!(node.stop_expecting_trouble().success());
}

#[test]
fn controller_in_a_brokers_directory_says_what_it_lacks() {
    let ports = (free_port(), free_port());
    let other = format!("controller.quorum.bootstrap.servers=127.0.0.1:{}", free_port());
    let mut node = prepared(None, 1, "broker", ports, &random_uuid(), &other, &[]);
    let own = format!("controller.quorum.bootstrap.servers=127.0.0.1:{}", ports.1);
    properties(node.dir.path(), 1, "broker,controller", ports, &own);
    node.launch_unawaited();
    says(&node, "ERROR", "knows no voters and controller.quorum.bootstrap.servers names this node alone");
    assert!(node.stop_expecting_trouble().success(), "{}", node.log());
}

/// A partition has a directory once its first record is written back.
fn produce(client: &mut Client, topic: &str) {
    let data = PartitionProduceData { index: 0, records: Some(batch(&["a"])), ..Default::default() };
    let topic = TopicProduceData { name: topic.into(), partition_data: vec![data], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() };
    let ResponseBody::Produce(response) = client.call(request, 9) else { panic!("another response") };
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0, "{response:?}");
}

#[test]
fn controller_alone_says_that_partitions_are_not_served() {
    let ports = (free_port(), free_port());
    let bootstrap = format!("controller.quorum.bootstrap.servers=127.0.0.1:{}", ports.1);
    let mut node = standalone(ports, &bootstrap);
    node.launch();
    let mut client = node.client();
    client.create_topic("kept", 1, &[]);
    produce(&mut client, "kept");
    assert!(node.stop().success());
    assert!(node.data().join("kept-0").exists(), "the stop writes back what the journal holds");
    properties(node.dir.path(), 1, "controller", ports, &bootstrap);
    node.launch_unawaited();
    says(&node, "WARN", "holds partitions (kept-0 and perhaps more), and process.roles=controller");
    eventually("the controller serves", || TcpStream::connect(("127.0.0.1", ports.1)).is_ok());
    assert!(node.stop_expecting_trouble().success(), "{}", node.log());
}

#[test]
fn role_without_its_listeners_or_quorum_is_refused() {
    let ports = (free_port(), free_port());
    let node = standalone(ports, "");
    let (file, controller) = (node.dir.path().join("server.properties"), ports.1);
    let said = |text: &str| {
        std::fs::write(&file, text).expect("written");
        let output = binary().arg("server").arg(&file).output().expect("runs");
        assert!(!output.status.success(), "{text}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let base = format!(
        "process.roles=broker\nnode.id=1\ncontroller.listener.names=CONTROLLER\nlog.dirs={}\n",
        node.data().display()
    );
    let broker = format!("{base}listeners=PLAINTEXT://127.0.0.1:{}\n", ports.0);
    assert!(
        said(&broker)
            .contains("controller.quorum.bootstrap.servers: is not set, nor is controller.quorum.voters")
    );
    let both = format!(
        "{base}listeners=PLAINTEXT://127.0.0.1:{},CONTROLLER://127.0.0.1:{controller}\n\
         controller.quorum.bootstrap.servers=127.0.0.1:{controller}\n",
        ports.0
    );
    assert!(said(&both).contains("process.roles is broker alone, but CONTROLLER://"));
}
