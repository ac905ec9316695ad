//! Brokers whose principal has CLUSTER_ACTION and CREATE on the cluster and no more, under StandardAuthorizer: they
//! register, replicate, create internal topics, and do not turn a producer's refusal into a denial.

use crate::harness::cluster::{GROUP, until};
use crate::harness::quorum::{format, random_uuid};
use crate::harness::replicas::{Cluster, PARTITIONS, append, eventually, leaders, metadata};
use crate::harness::sasl::{jaas, plain};
use crate::harness::{Client, TestNode, free_port};
use crate::produce_forwarding::{Producer, led_by};
use barnabas_wire::messages::create_acls_request::AclCreation;
use barnabas_wire::messages::{CreateAclsRequest, FindCoordinatorRequest, ResponseBody};
use std::collections::BTreeMap;
use std::path::Path;

const CREATE: i8 = 5;
const CLUSTER_ACTION: i8 = 9;
const NOT_LEADER_OR_FOLLOWER: i16 = 6;
/// Elections after which the machine may be too busy for a batch to come in time.
const ATTEMPTS: i32 = 8;
/// Clients of the listener without a login may do everything. The brokers may not.
const SETTINGS: &str = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:ANONYMOUS
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,BROKERS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.mechanism.controller.protocol=PLAIN
replica.lag.time.max.ms=3000
offsets.topic.num.partitions=6
auto.leader.rebalance.enable=false
";

fn file(dir: &Path, cluster: &str, lines: &str) -> String {
    let users = [("broker", "broker-secret"), ("admin", "admin-secret")];
    let module = jaas(" username=\"broker\" password=\"broker-secret\"", &users);
    let text = std::format!(
        "{SETTINGS}{lines}log.dirs={}\nlistener.name.brokers.plain.sasl.jaas.config={module}\n\
         listener.name.controller.plain.sasl.jaas.config={module}\n",
        dir.join("data").display()
    );
    let path = dir.join("server.properties");
    std::fs::write(&path, text).expect("written");
    let (ok, said) = format(&path, cluster, &[]);
    assert!(ok, "{said}");
    path.to_str().expect("a path").to_owned()
}

/// What the brokers need, by a super user at the controller: there is no broker yet.
fn allow_brokers(controller: u16) {
    let creation = |operation| AclCreation {
        resource_type: 4,
        resource_name: "kafka-cluster".into(),
        resource_pattern_type: 3,
        principal: "User:broker".into(),
        host: "*".into(),
        operation,
        permission_type: 3,
        ..Default::default()
    };
    let mut admin = until("the admin logs in", || {
        let mut client = Client::try_connect(controller).ok()?;
        let answer = client.log_in(&plain("admin", "admin-secret"))?;
        (answer.error_code == 0).then_some(client)
    });
    eventually("the ACLs are made", || {
        let creations = [CLUSTER_ACTION, CREATE].map(creation).into();
        let request = CreateAclsRequest { creations, ..Default::default() };
        let ResponseBody::CreateAcls(response) = admin.call(request, 3) else { panic!("another response") };
        response.results.iter().all(|result| result.error_code == 0)
    });
}

/// A controller and three brokers.
fn start() -> (TestNode, Cluster) {
    let id = random_uuid();
    let port = free_port();
    let voters = std::format!("controller.quorum.voters=9@127.0.0.1:{port}\n");
    let mut controller = TestNode::new(None, &[]);
    let lines = std::format!(
        "process.roles=controller\nnode.id=9\nlisteners=CONTROLLER://127.0.0.1:{port}\n{voters}"
    );
    let text = file(controller.dir.path(), &id, &lines);
    controller.set_file(&text, (port, port));
    controller.launch_unawaited();
    allow_brokers(port);
    let mut nodes = BTreeMap::new();
    for number in 1..=3 {
        let mut node = TestNode::new(None, &[]);
        let (clients, brokers) = (node.port, node.controller_port);
        let lines = std::format!(
            "process.roles=broker\nnode.id={number}\n\
             listeners=PLAINTEXT://127.0.0.1:{clients},BROKERS://127.0.0.1:{brokers}\n\
             inter.broker.listener.name=BROKERS\n{voters}"
        );
        let text = file(node.dir.path(), &id, &lines);
        node.set_file(&text, (clients, brokers));
        node.launch_unawaited();
        nodes.insert(number, node);
    }
    nodes.values_mut().for_each(TestNode::await_answer);
    for node in nodes.values() {
        eventually("all brokers are known", || metadata(&mut node.client()).brokers.len() == 3);
    }
    (controller, Cluster::of(nodes, id))
}

#[test]
fn brokers_with_cluster_action_and_create_serve_their_clients() {
    let (mut controller, cluster) = start();
    let topic = cluster.create("t");
    cluster.await_in_sync("t", 3);
    let leader = leaders(&mut cluster.client(1), "t")[&0];
    assert!(matches!(append(&mut cluster.client(leader), topic, 0, "v"), Some(Ok(0))));
    // A broker creates the coordinators' topic in its own name.
    until("a coordinator", || {
        let coordinator_keys = vec!["g".into()];
        let request = FindCoordinatorRequest { key_type: GROUP, coordinator_keys, ..Default::default() };
        let ResponseBody::FindCoordinator(response) = cluster.client(2).call(request, 6) else {
            panic!("another response")
        };
        (response.coordinators[0].error_code == 0).then_some(())
    });
    cluster.await_in_sync("t", 3);
    let logs: Vec<String> = cluster.nodes.values().chain([&controller]).map(TestNode::log).collect();
    for log in &logs {
        let denied: Vec<&str> = log.lines().filter(|line| line.contains("denied:")).collect();
        assert!(denied.is_empty(), "{denied:?}");
    }
    cluster.stop_expecting(&["super.users names User:ANONYMOUS"]);
    assert!(controller.stop_expecting_trouble().success());
}

/// A broker that may not write does not forward; the producer keeps its refusal and learns who leads.
#[test]
fn producer_is_not_denied_for_what_its_former_leader_may_not_write() {
    let (mut controller, cluster) = start();
    let topic = cluster.create("t");
    let mut producer = Producer::of(&cluster, topic);
    producer.send();
    assert_eq!(producer.answer().error_code, 0);
    let has_tried = || {
        let log = cluster.nodes[&2].log();
        log.lines().any(|line| line.contains("denied:") && line.contains("User:broker"))
    };
    let mut attempts = 0;
    while !has_tried() {
        attempts += 1;
        assert!(attempts <= ATTEMPTS, "what is sent just after the election is forwarded");
        led_by(&cluster, &[2, 1, 3]);
        (0..2).for_each(|_| producer.send());
        for _ in 0..2 {
            let answer = producer.answer();
            let got = (answer.error_code, answer.current_leader.leader_id);
            assert_eq!(got, (NOT_LEADER_OR_FOLLOWER, 2), "{answer:?}");
            producer.back();
        }
        led_by(&cluster, &[1, 2, 3]);
    }
    assert_eq!(leaders(&mut cluster.client(1), "t").len(), PARTITIONS as usize);
    cluster.stop_expecting(&["super.users names User:ANONYMOUS"]);
    assert!(controller.stop_expecting_trouble().success());
}
