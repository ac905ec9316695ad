//! TLS of a listener while the node runs: by AlterConfigs as by IncrementalAlterConfigs, settings beside the stores,
//! and lists of revoked certificates.

use crate::harness::patience::eventually;
use crate::harness::tls::{Authority, TlsClient as Client, tls};
use crate::harness::{TempDir, TestNode, free_port, metrics_page};
use barnabas_tls::ClientTls;
use barnabas_wire::messages::alter_configs_request::{AlterConfigsResource, AlterableConfig};
use barnabas_wire::messages::{AlterConfigsRequest, ApiVersionsRequest, ResponseBody};
use std::path::Path;

const KEY_STORE: &str = "listener.name.ssl.ssl.keystore.location";

/// A node with keys of `ca`, and the port of its listener with TLS.
fn node_of(ca: &Authority, folder: &Path, more: &[String]) -> (TestNode, u16) {
    ca.write(&folder.join("node.pem"), "127.0.0.1");
    std::fs::write(folder.join("ca.pem"), ca.pem()).expect("writes");
    let mut node = TestNode::new(None, &[]);
    let port = free_port();
    let mut overrides = vec![
        format!(
            "listeners=PLAINTEXT://127.0.0.1:{},SSL://127.0.0.1:{port},CONTROLLER://127.0.0.1:{}",
            node.port, node.controller_port
        ),
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT".to_owned(),
        format!("{KEY_STORE}={}", folder.join("node.pem").display()),
        format!("ssl.truststore.location={}", folder.join("ca.pem").display()),
    ];
    overrides.extend_from_slice(more);
    node.set_overrides(&overrides.iter().map(String::as_str).collect::<Vec<_>>());
    node.launch();
    (node, port)
}

fn is_served(port: u16, tls: &ClientTls) -> bool {
    Client::connect(port, tls).and_then(|mut client| client.call(ApiVersionsRequest::default(), 0)).is_ok()
}

/// The code of an AlterConfigs that leaves broker 1 with these configurations alone.
fn replace(node: &TestNode, configs: &[(&str, &str)]) -> i16 {
    let of = |(name, value): &(&str, &str)| AlterableConfig {
        name: (*name).into(),
        value: Some((*value).into()),
        ..Default::default()
    };
    let resource = AlterConfigsResource {
        resource_type: 4,
        resource_name: "1".into(),
        configs: configs.iter().map(of).collect(),
        ..Default::default()
    };
    let request = AlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let ResponseBody::AlterConfigs(answer) = node.client().call(request, 2) else { panic!("another answer") };
    answer.responses[0].error_code
}

#[test]
fn alter_configs_takes_only_stores_that_open() {
    let (ca, folder) = (Authority::new(), TempDir::new());
    let (mut node, port) = node_of(&ca, folder.path(), &[]);
    let second = Authority::new();
    second.write(&folder.path().join("second.pem"), "127.0.0.1");
    let [of_first, of_second] = [&ca, &second].map(|ca| tls(&[("ssl.truststore.certificates", ca.pem())]));
    assert_eq!(replace(&node, &[(KEY_STORE, "/nowhere/node.pem")]), 42);
    assert_eq!(replace(&node, &[("listener.name.ssl.ssl.truststore.location", "/nowhere")]), 42);
    assert!(is_served(port, &of_first));
    let at = folder.path().join("second.pem").display().to_string();
    assert_eq!(replace(&node, &[(KEY_STORE, &at)]), 0);
    eventually("the second is in use", || is_served(port, &of_second));
    // What is not named is unset.
    assert_eq!(replace(&node, &[]), 0);
    eventually("the file's is in use again", || is_served(port, &of_first));
    assert!(node.stop().success());
}

#[test]
fn client_certificates_are_required_while_the_node_runs() {
    let (ca, folder) = (Authority::new(), TempDir::new());
    let (mut node, port) = node_of(&ca, folder.path(), &[]);
    let alone = tls(&[("ssl.truststore.certificates", ca.pem())]);
    let (key, chain) = ca.issue("client");
    let own = tls(&[
        ("ssl.truststore.certificates", ca.pem()),
        ("ssl.keystore.key", key),
        ("ssl.keystore.certificate.chain", chain),
    ]);
    let mut open = Client::connect(port, &alone).expect("nothing is asked for");
    open.call(ApiVersionsRequest::default(), 0).expect("answered");
    let mut admin = node.client();
    let mut alter =
        |key: &str, value| admin.alter_config(1, (4, "1"), &format!("listener.name.ssl.{key}"), value);
    assert_eq!(alter("ssl.client.auth", Some("required")), 0);
    eventually("a certificate is asked for", || !is_served(port, &alone));
    assert!(is_served(port, &own));
    open.call(ApiVersionsRequest::default(), 0).expect("a connection of before");
    assert_eq!(alter("ssl.cipher.suites", Some("TLS_RSA_WITH_AES_128_CBC_SHA")), 42, "not spoken here");
    assert_eq!(alter("ssl.principal.mapping.rules", Some("RULE:[/x/")), 42, "no pattern");
    assert_eq!(alter("ssl.engine.factory.class", Some("com.example.Mine")), 42);
    assert_eq!(alter("ssl.client.auth", None), 0);
    eventually("nothing is asked for again", || is_served(port, &alone));
    assert!(node.stop().success());
}

#[test]
fn revoked_certificate_is_refused_once_its_list_says_so() {
    let (ca, folder, metrics) = (Authority::new(), TempDir::new(), free_port());
    let list = folder.path().join("revoked.pem");
    std::fs::write(&list, ca.revoke(&[])).expect("writes");
    let more = [
        "listener.name.ssl.ssl.client.auth=required".to_owned(),
        format!("ssl.crl.location={}", list.display()),
        format!("metrics.listener=127.0.0.1:{metrics}"),
    ];
    let (mut node, port) = node_of(&ca, folder.path(), &more);
    let numbered = |serial| {
        let (key, chain) = ca.issue_numbered("client", serial);
        tls(&[
            ("ssl.truststore.certificates", ca.pem()),
            ("ssl.keystore.key", key),
            ("ssl.keystore.certificate.chain", chain),
        ])
    };
    let (one, two) = (numbered(1001), numbered(1002));
    assert!(is_served(port, &one) && is_served(port, &two));
    let page = metrics_page(metrics).expect("a page");
    assert!(page.contains("barnabas_revocation_list_next_update_seconds{used_by=\"SSL\",issuer="), "{page}");
    std::fs::write(&list, ca.revoke(&[1002])).expect("writes");
    eventually("the second is refused", || !is_served(port, &two));
    assert!(is_served(port, &one), "with a session of its own");
    assert!(node.log().contains("is revoked, by a list of ssl.crl.location"), "{}", node.log());
    let page = metrics_page(metrics).expect("a page");
    let refused =
        page.lines().find_map(|line| line.strip_prefix("barnabas_certificates_refused_revoked_total "));
    assert!(refused.is_some_and(|count| count.trim() != "0"), "{page}");
    assert!(node.stop().success());
}

#[test]
fn certificate_for_another_host_is_a_warning() {
    let (ca, folder) = (Authority::new(), TempDir::new());
    let (mut node, _) = node_of(&ca, folder.path(), &["ssl.allow.san.changes=true".to_owned()]);
    let says =
        "listener SSL: the certificate of CN=rcgen self signed cert is not for the advertised host 127.0.0.1";
    assert!(!node.log().contains("is not for the advertised host"));
    ca.write(&folder.path().join("node.pem"), "broker1.example.com");
    eventually("the node says so", || node.log().contains(says));
    assert!(node.stop_expecting_trouble().success());
}
