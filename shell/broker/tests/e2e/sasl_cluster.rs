//! Three nodes whose listeners for brokers and for controllers ask for a login, and whose clients have another
//! listener.

use crate::harness::cluster::{Cluster, eventually, metadata};
use crate::harness::quorum::{format, random_uuid};
use crate::harness::sasl::{jaas, plain, token};
use crate::harness::{Client, TestNode, batch, free_port};
use barnabas_sasl::scram::Mechanism;
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{CreateDelegationTokenRequest, ProduceRequest, ResponseBody};
use std::collections::BTreeMap;

/// Where a node listens: clients, brokers, controllers.
#[derive(Clone, Copy)]
struct Ports {
    clients: u16,
    brokers: u16,
    controllers: u16,
}

/// A node's file. `own`: the password that it logs in to others with.
fn file(dir: &std::path::Path, id: i32, ports: Ports, voters: &str, own: &str) -> std::path::PathBuf {
    let Ports { clients, brokers, controllers } = ports;
    let own = std::format!(" username=\"node\" password=\"{own}\"");
    let module = jaas(&own, &[("node", "node-secret")]);
    let text = [
        "process.roles=broker,controller".to_owned(),
        std::format!("node.id={id}"),
        std::format!(
            "listeners=PLAINTEXT://127.0.0.1:{clients},BROKERS://127.0.0.1:{brokers},CONTROLLER://127.0.0.1:{controllers}"
        ),
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,BROKERS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
            .to_owned(),
        "inter.broker.listener.name=BROKERS".to_owned(),
        "controller.listener.names=CONTROLLER".to_owned(),
        std::format!("controller.quorum.voters={voters}"),
        std::format!("log.dirs={}", dir.join("data").display()),
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256".to_owned(),
        "sasl.mechanism.inter.broker.protocol=PLAIN".to_owned(),
        "sasl.mechanism.controller.protocol=PLAIN".to_owned(),
        std::format!("listener.name.brokers.plain.sasl.jaas.config={module}"),
        std::format!("listener.name.controller.plain.sasl.jaas.config={module}"),
        // Sessions are short: links log in again all the time.
        "connections.max.reauth.ms=4000".to_owned(),
        "delegation.token.secret.key=the-key".to_owned(),
        "offsets.topic.num.partitions=6".to_owned(),
        "auto.leader.rebalance.enable=false".to_owned(),
    ];
    let path = dir.join("server.properties");
    std::fs::write(&path, text.join("\n")).expect("written");
    path
}

fn start(passwords: [&str; 3]) -> (Cluster, BTreeMap<i32, Ports>) {
    let cluster = random_uuid();
    let port = || Ports { clients: free_port(), brokers: free_port(), controllers: free_port() };
    let ports: BTreeMap<i32, Ports> = (1..=3).map(|id| (id, port())).collect();
    let voters: Vec<String> =
        ports.iter().map(|(id, ports)| std::format!("{id}@127.0.0.1:{}", ports.controllers)).collect();
    let mut nodes = BTreeMap::new();
    for (&id, &of) in &ports {
        let mut node = TestNode::new(None, &[]);
        let own = passwords[id as usize - 1];
        let file = file(node.dir.path(), id, of, &voters.join(","), own);
        let (ok, said) = format(&file, &cluster, &[]);
        assert!(ok, "{said}");
        node.set_file(file.to_str().expect("a path"), (of.clients, of.controllers));
        nodes.insert(id, node);
    }
    nodes.values_mut().for_each(TestNode::launch_unawaited);
    (Cluster { nodes, alive: ports.keys().copied().collect() }, ports)
}

fn produce(client: &mut Client, topic: &str) {
    let partition =
        PartitionProduceData { index: 0, records: Some(batch(&["r"])), ..PartitionProduceData::default() };
    let topic =
        TopicProduceData { name: topic.into(), partition_data: vec![partition], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 20_000, topic_data: vec![topic], ..Default::default() };
    let ResponseBody::Produce(response) = client.call(request, 9) else { panic!("another response") };
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0, "{response:?}");
}

#[test]
fn nodes_log_in_to_each_other_and_replicate() {
    let (mut cluster, ports) = start(["node-secret"; 3]);
    cluster.nodes.values_mut().for_each(TestNode::await_answer);
    for node in cluster.nodes.values() {
        eventually("all brokers are known", || {
            metadata(&mut node.client()).is_some_and(|known| known.brokers.len() == 3)
        });
    }
    cluster.create("t", 1);
    let begun = std::time::Instant::now();
    // Longer than a session.
    while begun.elapsed() < std::time::Duration::from_secs(10) {
        produce(&mut cluster.client_of_leader("t", 0), "t");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    cluster.await_in_sync();
    // A stranger is not served where brokers are.
    for of in ports.values() {
        for port in [of.brokers, of.controllers] {
            let mut stranger = Client::try_connect(port).expect("connects");
            assert!(metadata(&mut stranger).is_none());
            Client::logged_in(port, &plain("node", "node-secret"));
        }
    }
    for node in cluster.nodes.values() {
        let log = node.log();
        let lost = [" fenced:", "shrank"];
        assert!(!lost.iter().any(|words| log.contains(words)), "{log}");
    }
    cluster.stop();
}

/// A broker forwards the request with the client's name; the token is good on every broker.
#[test]
fn token_that_one_broker_made_logs_in_at_all() {
    let (mut cluster, ports) = start(["node-secret"; 3]);
    cluster.nodes.values_mut().for_each(TestNode::await_answer);
    for made in ports.values() {
        let mut client = Client::logged_in(made.brokers, &plain("node", "node-secret"));
        let request = CreateDelegationTokenRequest { max_lifetime_ms: -1, ..Default::default() };
        let ResponseBody::CreateDelegationToken(made) = client.call(request, 3) else { panic!("another") };
        assert_eq!((made.error_code, made.principal_name.as_str()), (0, "node"));
        let login = token(Mechanism::Sha256, &made.token_id, &made.hmac);
        for of in ports.values() {
            eventually("the token is known", || {
                let mut client = Client::try_connect(of.brokers).expect("connects");
                client.log_in(&login).is_some_and(|answer| answer.error_code == 0)
            });
            let mut client = Client::logged_in(of.brokers, &login);
            assert!(metadata(&mut client).is_some());
            let request = CreateDelegationTokenRequest::default();
            let ResponseBody::CreateDelegationToken(more) = client.call(request, 3) else {
                panic!("another")
            };
            assert_eq!(more.error_code, 64, "a token makes no tokens");
        }
    }
    cluster.stop();
}

#[test]
fn node_with_a_wrong_password_stays_out() {
    let (mut cluster, _) = start(["node-secret", "node-secret", "wrong"]);
    for id in [1, 2] {
        cluster.nodes.get_mut(&id).expect("a node").await_answer();
    }
    eventually("two brokers", || {
        metadata(&mut cluster.nodes[&1].client()).is_some_and(|known| known.brokers.len() == 2)
    });
    eventually("it says why", || {
        let log = cluster.nodes[&3].log();
        log.contains(
            "the peer refused the login by PLAIN: Authentication failed: Invalid username or password",
        )
    });
    let log = cluster.nodes[&1].log() + &cluster.nodes[&2].log();
    assert!(log.contains("authentication failed") && log.contains("user=\"node\""), "{log}");
    assert!(!log.contains("node-secret") && !cluster.nodes[&3].log().contains("wrong\""), "{log}");
    let known = metadata(&mut cluster.nodes[&2].client()).expect("metadata");
    assert_eq!(known.brokers.len(), 2);
    for node in cluster.nodes.values_mut() {
        node.stop_expecting_trouble();
    }
}
