//! Listeners with TLS: who gets in, what they may then do, and nodes that reach each other by TLS alone.
//!
//! Key stores of the nodes are keytool's (core/certificates/testdata);
//! certificates that are wrong in some way are made here.

use crate::harness::cluster::metadata;
use crate::harness::patience::until;
use crate::harness::quorum::{create, eventually, prepared, random_uuid};
use crate::harness::tls::{Authority, TlsClient as Client, data, node_keys, produce, tls};
use crate::harness::{TestNode, batch, free_port};
use barnabas_tls::ClientTls;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::metadata_response::MetadataResponsePartition;
use barnabas_wire::messages::{ApiVersionsRequest, FetchRequest, MetadataRequest, ResponseBody};
use std::sync::atomic::{AtomicBool, Ordering};

fn trusting() -> (&'static str, String) {
    ("ssl.truststore.location", data("ca.pem"))
}

/// With the EC key of keytool's PKCS#12 file.
fn own() -> ClientTls {
    tls(&[
        trusting(),
        ("ssl.keystore.location", data("ec.p12")),
        ("ssl.keystore.password", "storepass".to_owned()),
    ])
}

/// Key and chain of a client, of an authority that no node trusts.
fn foreign() -> ClientTls {
    let (key, chain) = Authority::new().issue("client");
    tls(&[trusting(), ("ssl.keystore.key", key), ("ssl.keystore.certificate.chain", chain)])
}

/// Whether a client gets as far as an answer: with TLS 1.3 a refusal comes after its own side is done.
fn is_served(port: u16, tls: &ClientTls) -> bool {
    Client::connect(port, tls).and_then(|mut client| client.call(ApiVersionsRequest::default(), 0)).is_ok()
}

fn fetched_bytes(client: &mut Client, topic: &str) -> usize {
    let partition =
        FetchPartition { partition: 0, partition_max_bytes: 32 << 20, ..FetchPartition::default() };
    let topic = FetchTopic { topic: topic.into(), partitions: vec![partition], ..Default::default() };
    let request =
        FetchRequest { max_wait_ms: 0, max_bytes: 32 << 20, topics: vec![topic], ..FetchRequest::default() };
    let ResponseBody::Fetch(response) = client.call(request, 11).expect("answered") else {
        panic!("another")
    };
    response.responses[0].partitions[0].records.as_ref().map_or(0, bytes::Bytes::len)
}

fn node_with(client_auth: &str, more: &[String]) -> (TestNode, u16) {
    let mut node = TestNode::new(None, &[]);
    let port = free_port();
    let mut overrides = node_keys();
    overrides.extend([
        format!(
            "listeners=PLAINTEXT://127.0.0.1:{},SSL://127.0.0.1:{port},CONTROLLER://127.0.0.1:{}",
            node.port, node.controller_port
        ),
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT".to_owned(),
        format!("ssl.client.auth={client_auth}"),
    ]);
    overrides.extend_from_slice(more);
    node.set_overrides(&overrides.iter().map(String::as_str).collect::<Vec<_>>());
    node.launch();
    (node, port)
}

#[test]
fn records_go_in_and_out_over_tls() {
    let (mut node, port) = node_with("none", &[]);
    assert_eq!(create(&mut node.client(), 7, "t", 1, 1), 0);
    let mut client = Client::connect(port, &tls(&[trusting()])).expect("connects");
    let value = "x".repeat(1 << 20);
    let records = batch(&[&value[..900_000]]);
    let sent = 3 * records.len();
    for _ in 0..3 {
        assert_eq!(produce(&mut client, "t", records.clone()), 0);
    }
    assert_eq!(fetched_bytes(&mut client, "t"), sent);
    let ResponseBody::Metadata(known) = client.call(MetadataRequest::default(), 9).expect("answered") else {
        panic!("another")
    };
    assert_eq!(known.brokers[0].port, i32::from(port), "clients of a listener are told of that listener");
    drop(client);
    assert!(node.stop().success());
}

#[test]
fn client_certificates_are_required_or_requested() {
    let (mut node, port) = node_with("required", &[]);
    assert!(is_served(port, &own()));
    assert!(!is_served(port, &tls(&[trusting()])), "no certificate");
    assert!(!is_served(port, &foreign()), "of an authority that is not trusted");
    // A client that trusts another authority does not speak to this node.
    assert!(Client::connect(port, &tls(&[("ssl.truststore.certificates", Authority::new().pem())])).is_err());
    // A client without TLS is named in the log.
    let mut plain = crate::harness::Client::try_connect(port).expect("connects");
    assert!(plain.try_call(ApiVersionsRequest::default(), 0).is_none());
    eventually("the log names it", || node.log().contains("security.protocol=SSL"));
    assert!(node.log().contains("the TLS handshake failed"), "{}", node.log());
    assert!(node.stop().success());

    let (mut node, port) = node_with("requested", &[]);
    assert!(is_served(port, &own()) && is_served(port, &tls(&[trusting()])));
    assert!(!is_served(port, &foreign()));
    assert!(node.stop().success());
}

#[test]
fn certificate_is_replaced_while_clients_connect() {
    let ca = Authority::new();
    let folder = crate::harness::TempDir::new();
    let renew = || ca.write(&folder.path().join("node.pem"), "127.0.0.1");
    renew();
    let keys =
        format!("listener.name.ssl.ssl.keystore.location={}", folder.path().join("node.pem").display());
    let more = [keys, "listener.name.ssl.ssl.keystore.password=".to_owned()];
    let (mut node, port) = node_with("none", &more);
    let (stop, trust) = (AtomicBool::new(false), tls(&[("ssl.truststore.certificates", ca.pem())]));
    let served = std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let mut served = 0;
            let mut open = Client::connect(port, &trust).expect("connects");
            while !stop.load(Ordering::Relaxed) {
                assert!(is_served(port, &trust), "a new connection");
                open.call(ApiVersionsRequest::default(), 0).expect("a connection of before");
                served += 1;
            }
            served
        });
        for renewed in 1..=2 {
            renew();
            eventually("the new certificate is in use", || {
                node.log().matches("new key or trust store in use").count() >= renewed
            });
        }
        stop.store(true, Ordering::Relaxed);
        serving.join().expect("served throughout")
    });
    assert!(served > 10, "{served}");
    assert!(node.stop().success());
}

/// By IncrementalAlterConfigs: the broker tries the stores before the controller writes their names down.
#[test]
fn certificate_is_replaced_by_dynamic_configuration() {
    let metrics = free_port();
    let (first, second, folder) = (Authority::new(), Authority::new(), crate::harness::TempDir::new());
    let at = |name: &str| folder.path().join(name).display().to_string();
    first.write(&folder.path().join("first.pem"), "127.0.0.1");
    second.write(&folder.path().join("second.pem"), "127.0.0.1");
    second.write(&folder.path().join("other-host.pem"), "elsewhere");
    std::fs::write(folder.path().join("half.pem"), second.issue("127.0.0.1").0).expect("writes");
    let more = [
        format!("listener.name.ssl.ssl.keystore.location={}", at("first.pem")),
        "listener.name.ssl.ssl.keystore.password=".to_owned(),
        format!("metrics.listener=127.0.0.1:{metrics}"),
    ];
    let (mut node, port) = node_with("none", &more);
    let [of_first, of_second] = [&first, &second].map(|ca| tls(&[("ssl.truststore.certificates", ca.pem())]));
    let mut open = Client::connect(port, &of_first).expect("connects");
    let mut admin = node.client();
    let mut alter = |value: Option<&str>| {
        admin.alter_config(1, (4, "1"), "listener.name.ssl.ssl.keystore.location", value)
    };
    // Another host name, no file, a key without its certificate.
    for name in ["other-host.pem", "none.pem", "half.pem"] {
        assert_eq!(alter(Some(&at(name))), 42, "{name}");
    }
    assert!(is_served(port, &of_first) && !is_served(port, &of_second));
    assert_eq!(alter(Some(&at("second.pem"))), 0);
    eventually("the second is in use", || is_served(port, &of_second));
    assert!(!is_served(port, &of_first));
    open.call(ApiVersionsRequest::default(), 0).expect("a connection of before");
    assert_eq!(alter(None), 0);
    eventually("the file's is in use again", || is_served(port, &of_first));
    let page = crate::harness::metrics_page(metrics).expect("a page");
    let row = page.lines().find(|line| {
        line.starts_with("barnabas_certificate_not_after_seconds{") && line.contains("store=\"keystore\"")
    });
    assert!(row.is_some_and(|row| row.contains("used_by=\"SSL\"")), "{page}");
    assert!(node.stop().success());
}

/// What a node knows of the only partition of "t".
fn partition(node: &TestNode) -> Option<MetadataResponsePartition> {
    // Without `topics: None` the request asks for no topic at all.
    let known = metadata(&mut crate::harness::Client::try_connect(node.port).ok()?)?;
    let topic = known.topics.into_iter().find(|topic| topic.name.as_deref() == Some("t"))?;
    topic.partitions.into_iter().next()
}

/// The place of its leader among the nodes.
fn leader(node: &TestNode) -> Option<usize> {
    usize::try_from(partition(node)?.leader_id).ok()?.checked_sub(1)
}

#[test]
fn nodes_reach_each_other_by_tls_alone() {
    let id = random_uuid();
    let ports: Vec<(i32, u16, u16, u16)> =
        (1..=3).map(|node| (node, free_port(), free_port(), free_port())).collect();
    let voters: Vec<String> =
        ports.iter().map(|(node, _, _, port)| format!("{node}@127.0.0.1:{port}")).collect();
    let node = |&(node, plain, tls, controller): &(i32, u16, u16, u16)| {
        let more = format!(
            "{}\nssl.client.auth=required\ncontroller.quorum.voters={}\ninter.broker.listener.name=SSL\n\
             listeners=PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{tls},CONTROLLER://127.0.0.1:{controller}\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:SSL",
            node_keys().join("\n"),
            voters.join(",")
        );
        prepared(None, node, "broker,controller", (plain, controller), &id, &more, &[])
    };
    let mut nodes: Vec<TestNode> = ports.iter().map(node).collect();
    nodes.iter_mut().for_each(TestNode::launch_unawaited);
    nodes.iter_mut().for_each(TestNode::await_answer);
    eventually("a replicated topic", || create(&mut nodes[0].client(), 7, "t", 1, 3) == 0);
    let (_, _, tls_port, _) = ports[0];
    let mut written = 0;
    let mut write = |port: u16, count: usize| {
        for _ in 0..count {
            eventually("acked by all", || {
                let mut client = Client::connect(port, &own()).expect("connects");
                produce(&mut client, "t", batch(&["value"])) == 0
            });
            written += 1;
        }
        written
    };
    eventually("the first node leads or hands on", || {
        ports.iter().any(|(_, _, port, _)| {
            Client::connect(*port, &own())
                .is_ok_and(|mut client| produce(&mut client, "t", batch(&["a"])) == 0)
        })
    });
    let first = until("a leader", || leader(&nodes[0]));
    write(ports[first].2, 20);
    nodes[first].kill();
    let other = (first + 1) % 3;
    let second = until("another leader", || leader(&nodes[other]).filter(|now| *now != first));
    let total = write(ports[second].2, 20);
    nodes[first].launch();
    eventually("it is in sync again", || {
        partition(&nodes[first]).is_some_and(|partition| partition.isr_nodes.len() == 3)
    });
    assert_eq!(total, 40);
    assert_ne!(tls_port, 0);
    for node in &mut nodes {
        assert!(node.stop_expecting_trouble().success());
    }
}
