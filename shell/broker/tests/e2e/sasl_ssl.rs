//! SASL over TLS: who gets in by which mechanism, what the deadline counts, and nodes that know no other listener.

use crate::harness::cluster::{Cluster, eventually};
use crate::harness::quorum::{format, random_uuid};
use crate::harness::sasl::{jaas, plain, scram};
use crate::harness::tls::{Authority, TlsClient, data, node_keys, produce, tls};
use crate::harness::{Client, TempDir, TestNode, batch, binary, free_port};
use barnabas_sasl::client::ClientLogin;
use barnabas_sasl::scram::Mechanism;
use barnabas_tls::ClientTls;
use barnabas_wire::messages::create_topics_request::CreatableTopic;
use barnabas_wire::messages::{
    ApiVersionsRequest, CreateTopicsRequest, MetadataRequest, MetadataResponse, ResponseBody,
};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

fn trusting() -> ClientTls {
    tls(&[("ssl.truststore.location", data("ca.pem"))])
}

/// A node whose listener SECURE takes PLAIN and SCRAM over TLS.
fn launched(more: &[String]) -> (TestNode, u16) {
    let (mut node, port) = (TestNode::new(None, &[]), free_port());
    let mut overrides = node_keys();
    overrides.extend([
        std::format!(
            "listeners=PLAINTEXT://127.0.0.1:{},CONTROLLER://127.0.0.1:{},SECURE://127.0.0.1:{port}",
            node.port,
            node.controller_port
        ),
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL".to_owned(),
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512".to_owned(),
        std::format!(
            "listener.name.secure.plain.sasl.jaas.config={}",
            jaas("", &[("alice", "alice-secret")])
        ),
    ]);
    overrides.extend_from_slice(more);
    node.set_overrides(&overrides.iter().map(String::as_str).collect::<Vec<_>>());
    node.launch();
    (node, port)
}

fn add_scram(node: &TestNode, user: &str, password: &str) {
    let server = std::format!("127.0.0.1:{}", node.port);
    for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-512"] {
        let config = std::format!("{mechanism}=[iterations=4096,password={password}]");
        let words = ["configs", "--bootstrap-server", &server, "--alter", "--entity-type", "users"];
        let made = binary().args(words).args(["--entity-name", user, "--add-config", &config]).output();
        assert!(made.expect("runs").status.success());
    }
}

fn code(port: u16, tls: &ClientTls, login: &ClientLogin) -> i16 {
    let mut client = TlsClient::connect(port, tls).expect("connects");
    client.log_in(login).expect("an answer").error_code
}

#[test]
fn right_password_is_served_by_each_mechanism() {
    let (mut node, port) = launched(&[]);
    add_scram(&node, "zoe", "zoe-secret");
    node.client().create_topic("t", 1, &[]);
    let trust = trusting();
    for login in [
        plain("alice", "alice-secret"),
        scram(Mechanism::Sha256, "zoe", "zoe-secret"),
        scram(Mechanism::Sha512, "zoe", "zoe-secret"),
    ] {
        let mut client = TlsClient::logged_in(port, &trust, &login);
        assert_eq!(produce(&mut client, "t", batch(&["r"])), 0);
    }
    for login in [
        plain("alice", "wrong"),
        scram(Mechanism::Sha256, "zoe", "wrong"),
        scram(Mechanism::Sha512, "unknown", "zoe-secret"),
    ] {
        assert_eq!(code(port, &trust, &login), 58);
    }
    // TLS alone is no login.
    let mut stranger = TlsClient::connect(port, &trust).expect("connects");
    assert!(stranger.call(MetadataRequest::default(), 12).is_err());
    // Nor is a login without TLS read.
    let mut plain_client = Client::try_connect(port).expect("connects");
    assert!(plain_client.try_call(ApiVersionsRequest::default(), 0).is_none());
    eventually("the log names it", || node.log().contains("SASL_SSL where the listener has SASL"));
    let log = node.log();
    assert!(log.contains("Unexpected Kafka request of type Metadata during SASL handshake."), "{log}");
    for secret in ["alice-secret", "zoe-secret"] {
        assert!(!log.contains(secret), "{log}");
    }
    assert!(node.stop().success());
}

/// One that was written down would have no effect, and neither would those after it: an old password would go on
/// working.
#[test]
fn change_of_logins_that_cannot_be_used_is_refused() {
    let (mut node, port) = launched(&[]);
    let server = std::format!("127.0.0.1:{}", node.port);
    let alter = |config: &str| {
        let words = ["configs", "--bootstrap-server", &server, "--alter", "--entity-type", "brokers"];
        let done = binary().args(words).args(["--entity-name", "1", "--add-config", config]).output();
        let done = done.expect("runs");
        (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    for (config, why) in [
        ("listener.name.secure.plain.sasl.jaas.config=rubbish", "plain.sasl.jaas.config"),
        ("listener.name.secure.sasl.enabled.mechanisms=[PLAIN,NONSENSE]", "NONSENSE"),
        ("listener.name.secure.sasl.enabled.mechanisms=[PLAIN,GSSAPI]", "gssapi.sasl.jaas.config"),
    ] {
        let (is_done, said) = alter(config);
        assert!(!is_done && said.contains("INVALID_REQUEST") && said.contains(why), "{config}: {said}");
    }
    let module = jaas("", &[("alice", "alice-new")]);
    let (is_done, said) = alter(&std::format!("listener.name.secure.plain.sasl.jaas.config={module}"));
    assert!(is_done, "{said}");
    let trust = trusting();
    eventually("the new password is taken", || code(port, &trust, &plain("alice", "alice-new")) == 0);
    assert_eq!(code(port, &trust, &plain("alice", "alice-secret")), 58);
    assert!(!node.log().contains("is not applied"), "{}", node.log());
    assert!(node.stop().success());
}

/// The principal is the login's, not the certificate's; a certificate is asked for only by the listener's own key.
#[test]
fn login_counts_and_not_the_certificate() {
    let authorizer = [
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer".to_owned(),
        "super.users=User:alice;User:ANONYMOUS".to_owned(),
        // KIP-684: does not count for SASL_SSL.
        "ssl.client.auth=required".to_owned(),
        // No rule matches: it would refuse every certificate on a listener of protocol SSL.
        "ssl.principal.mapping.rules=RULE:^nothing$/x/".to_owned(),
    ];
    let (mut node, port) = launched(&authorizer);
    add_scram(&node, "zoe", "zoe-secret");
    node.client().create_topic("t", 1, &[]);
    let own = tls(&[
        ("ssl.truststore.location", data("ca.pem")),
        ("ssl.keystore.location", data("ec.p12")),
        ("ssl.keystore.password", "storepass".to_owned()),
    ]);
    for trust in [&own, &trusting()] {
        let mut alice = TlsClient::logged_in(port, trust, &plain("alice", "alice-secret"));
        assert_eq!(produce(&mut alice, "t", batch(&["r"])), 0);
        let zoe = scram(Mechanism::Sha256, "zoe", "zoe-secret");
        let mut zoe = TlsClient::logged_in(port, trust, &zoe);
        assert_eq!(produce(&mut zoe, "t", batch(&["r"])), 29, "User:zoe may not write");
    }
    // A WARN names the super user ANONYMOUS.
    assert!(node.stop_expecting_trouble().success());

    let (mut node, port) = launched(&["listener.name.secure.ssl.client.auth=required".to_owned()]);
    assert_eq!(code(port, &own, &plain("alice", "alice-secret")), 0);
    let mut without = TlsClient::connect(port, &trusting()).expect("its own side is done");
    assert!(without.log_in(&plain("alice", "alice-secret")).is_err());
    assert!(node.stop().success());
}

#[test]
fn session_is_renewed_over_tls() {
    let (mut node, port) =
        launched(&["listener.name.secure.plain.connections.max.reauth.ms=3000".to_owned()]);
    let (trust, login) = (trusting(), plain("alice", "alice-secret"));
    let mut expires = TlsClient::logged_in(port, &trust, &login);
    let mut renewed = TlsClient::logged_in(port, &trust, &login);
    std::thread::sleep(Duration::from_millis(1600));
    let answer = renewed.log_in(&login).expect("an answer");
    assert_eq!((answer.error_code, answer.session_lifetime_ms), (0, 3000));
    std::thread::sleep(Duration::from_millis(1600));
    assert!(expires.call(MetadataRequest::default(), 12).is_err(), "its session is over");
    renewed.call(MetadataRequest::default(), 12).expect("served");
    assert!(node.stop().success());
}

/// The ten seconds begin when the connection is accepted: bytes of the handshake that trickle in do not lengthen them.
#[test]
fn deadline_of_the_login_counts_the_handshake() {
    let (mut node, port) = launched(&[]);
    let begun = std::time::Instant::now();
    let mut slow = TcpStream::connect(("127.0.0.1", port)).expect("connects");
    slow.set_read_timeout(Some(Duration::from_millis(1))).expect("a socket");
    let hello = [&[0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3][..], &[0; 200]].concat();
    let mut silent = TlsClient::connect(port, &trusting()).expect("connects");
    for byte in hello {
        // The node has closed it once a write fails.
        if slow.write_all(&[byte]).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(begun.elapsed() < Duration::from_secs(19), "before all bytes were sent");
    assert!(silent.call(ApiVersionsRequest::default(), 0).is_err(), "its time is over");
    let log = node.log();
    assert!(log.contains("the TLS handshake took more than 10 s"), "{log}");
    assert!(log.contains("the client did not authenticate within 10 s"), "{log}");
    assert!(node.stop().success());
}

#[test]
fn certificate_is_replaced_and_connections_are_kept() {
    let (ca, folder) = (Authority::new(), TempDir::new());
    let path = folder.path().join("node.pem");
    ca.write(&path, "127.0.0.1");
    let (mut node, port) = launched(&[
        std::format!("listener.name.secure.ssl.keystore.location={}", path.display()),
        "listener.name.secure.ssl.keystore.password=".to_owned(),
    ]);
    let (trust, login) = (tls(&[("ssl.truststore.certificates", ca.pem())]), plain("alice", "alice-secret"));
    let mut open = TlsClient::logged_in(port, &trust, &login);
    // Of an authority that the client does not know: new connections show it.
    Authority::new().write(&path, "127.0.0.1");
    eventually("the new certificate is in use", || TlsClient::connect(port, &trust).is_err());
    open.call(MetadataRequest::default(), 12).expect("a connection of before");
    assert_eq!(open.log_in(&login).expect("an answer").error_code, 0);
    ca.write(&path, "127.0.0.1");
    eventually("the authority is back", || TlsClient::connect(port, &trust).is_ok());
    open.call(MetadataRequest::default(), 12).expect("a connection of before");
    TlsClient::logged_in(port, &trust, &login);
    assert!(node.stop().success());
}

fn node_file(dir: &std::path::Path, id: i32, (clients, controllers): (u16, u16), voters: &str) -> String {
    let module = jaas(
        " username=\"node\" password=\"node-secret\"",
        &[("node", "node-secret"), ("alice", "alice-secret")],
    );
    let mut text = node_keys();
    text.extend([
        "process.roles=broker,controller".to_owned(),
        std::format!("node.id={id}"),
        std::format!("listeners=SASL_SSL://127.0.0.1:{clients},CONTROLLER://127.0.0.1:{controllers}"),
        "listener.security.protocol.map=SASL_SSL:SASL_SSL,CONTROLLER:SASL_SSL".to_owned(),
        "security.inter.broker.protocol=SASL_SSL".to_owned(),
        "controller.listener.names=CONTROLLER".to_owned(),
        std::format!("controller.quorum.voters={voters}"),
        std::format!("log.dirs={}", dir.join("data").display()),
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512".to_owned(),
        "sasl.mechanism.inter.broker.protocol=PLAIN".to_owned(),
        "sasl.mechanism.controller.protocol=PLAIN".to_owned(),
        std::format!("listener.name.sasl_ssl.plain.sasl.jaas.config={module}"),
        std::format!("listener.name.controller.plain.sasl.jaas.config={module}"),
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer".to_owned(),
        "super.users=User:node;User:alice".to_owned(),
        // Sessions are short: links log in again all the time.
        "connections.max.reauth.ms=4000".to_owned(),
        "auto.leader.rebalance.enable=false".to_owned(),
    ]);
    let path = dir.join("server.properties");
    std::fs::write(&path, text.join("\n")).expect("written");
    path.display().to_string()
}

fn alice(port: u16, trust: &ClientTls) -> Option<TlsClient> {
    let mut client = TlsClient::connect(port, trust).ok()?;
    let answer = client.log_in(&plain("alice", "alice-secret")).ok()?;
    (answer.error_code == 0).then_some(client)
}

fn known(port: u16, trust: &ClientTls) -> Option<MetadataResponse> {
    match alice(port, trust)?.call(MetadataRequest::default(), 12).ok()? {
        ResponseBody::Metadata(response) => Some(*response),
        other => panic!("{other:?}"),
    }
}

/// Leader and number of in-sync replicas of the only partition of "t".
fn partition(port: u16, trust: &ClientTls) -> Option<(i32, usize)> {
    let request = MetadataRequest { topics: None, ..MetadataRequest::default() };
    let ResponseBody::Metadata(response) = alice(port, trust)?.call(request, 12).ok()? else { return None };
    let topic = response.topics.into_iter().find(|topic| topic.name.as_deref() == Some("t"))?;
    topic.partitions.first().map(|partition| (partition.leader_id, partition.isr_nodes.len()))
}

#[test]
fn cluster_speaks_sasl_over_tls_alone() {
    let (cluster, trust) = (random_uuid(), trusting());
    let ports: BTreeMap<i32, (u16, u16)> = (1..=3).map(|id| (id, (free_port(), free_port()))).collect();
    let voters: Vec<String> =
        ports.iter().map(|(id, (_, controllers))| std::format!("{id}@127.0.0.1:{controllers}")).collect();
    let mut nodes = BTreeMap::new();
    for (&id, &of) in &ports {
        let mut node = TestNode::new(None, &[]);
        let file = node_file(node.dir.path(), id, of, &voters.join(","));
        let (ok, said) = format(std::path::Path::new(&file), &cluster, &[]);
        assert!(ok, "{said}");
        node.set_file(&file, of);
        nodes.insert(id, node);
    }
    nodes.values_mut().for_each(TestNode::launch_unawaited);
    let cluster = Cluster { nodes, alive: ports.keys().copied().collect() };
    for (clients, _) in ports.values() {
        eventually("all brokers are known", || {
            known(*clients, &trust).is_some_and(|known| known.brokers.len() == 3)
        });
    }
    let first = ports[&1].0;
    let topic = CreatableTopic {
        name: "t".into(),
        num_partitions: 1,
        replication_factor: 3,
        ..CreatableTopic::default()
    };
    let request =
        CreateTopicsRequest { topics: vec![topic], timeout_ms: 20_000, ..CreateTopicsRequest::default() };
    let answer = alice(first, &trust).expect("logs in").call(request, 7).expect("answered");
    let ResponseBody::CreateTopics(answer) = answer else { panic!("another answer") };
    assert_eq!(answer.topics[0].error_code, 0, "{answer:?}");
    eventually("all in sync", || partition(first, &trust).is_some_and(|(_, isr)| isr == 3));
    let leader = partition(first, &trust).expect("a partition").0;
    let begun = std::time::Instant::now();
    // Longer than a session.
    while begun.elapsed() < Duration::from_secs(9) {
        let mut client = alice(ports[&leader].0, &trust).expect("logs in");
        assert_eq!(produce(&mut client, "t", batch(&["r"])), 0);
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(partition(first, &trust), Some((leader, 3)));
    for (clients, controllers) in ports.values() {
        for port in [*clients, *controllers] {
            let mut stranger = TlsClient::connect(port, &trust).expect("connects");
            assert!(stranger.call(MetadataRequest::default(), 12).is_err());
            assert_eq!(code(port, &trust, &plain("node", "wrong")), 58);
        }
    }
    for node in cluster.nodes.values() {
        let log = node.log();
        assert!(![" fenced:", "shrank"].iter().any(|words| log.contains(words)), "{log}");
    }
    cluster.stop();
}
