//! Tools over TLS: topics, console-producer and console-consumer by SASL_SSL and by client certificates, and what they
//! say where the two sides do not fit.

use crate::harness::sasl::jaas;
use crate::harness::tls::{Authority, data};
use crate::harness::{TempDir, TestNode, binary, free_port};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Ports of listeners: SASL_SSL, and SSL with required client certificates.
struct Ports {
    sasl: u16,
    mutual: u16,
}

/// A node whose certificate, of `ca`, is for `host`.
fn launched(ca: &Authority, folder: &Path, host: &str) -> (TestNode, Ports) {
    let (store, trust) = (folder.join("node.pem"), folder.join("ca.pem"));
    ca.write(&store, host);
    std::fs::write(&trust, ca.pem()).expect("writes");
    let mut node = TestNode::new(None, &[]);
    let ports = Ports { sasl: free_port(), mutual: free_port() };
    let overrides = [
        format!(
            "listeners=PLAINTEXT://127.0.0.1:{},CONTROLLER://127.0.0.1:{},SASL_SSL://127.0.0.1:{},SSL://127.0.0.1:{}",
            node.port, node.controller_port, ports.sasl, ports.mutual
        ),
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL"
            .to_owned(),
        format!("ssl.keystore.location={}", store.display()),
        format!("ssl.truststore.location={}", trust.display()),
        "listener.name.ssl.ssl.client.auth=required".to_owned(),
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512".to_owned(),
        format!("listener.name.sasl_ssl.plain.sasl.jaas.config={}", jaas("", &[("alice", "alice-secret")])),
    ];
    node.set_overrides(&overrides.iter().map(String::as_str).collect::<Vec<_>>());
    node.launch();
    (node, ports)
}

/// A file of a client.
fn client(folder: &Path, name: &str, lines: &[String]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, lines.join("\n")).expect("writes");
    path.display().to_string()
}

fn tool(port: u16, words: &str) -> Command {
    let mut command = binary();
    let address = format!("127.0.0.1:{port}");
    let mut words = words.split_whitespace();
    command.arg(words.next().expect("a tool")).args(["--bootstrap-server", &address]).args(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(port: u16, words: &str, input: &str) -> (Option<i32>, String, String) {
    let mut child = tool(port, words).spawn().expect("runs");
    // A tool that ends early closes its end.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    let Output { status, stdout, stderr } = child.wait_with_output().expect("ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (status.code(), text(&stdout), text(&stderr))
}

fn goes_round(port: u16, file: &str, topic: &str) {
    let (code, _, err) = run(port, &format!("topics --create --topic {topic} --command-config {file}"), "");
    assert_eq!(code, Some(0), "{err}");
    let (code, _, err) =
        run(port, &format!("console-producer --topic {topic} --command-config {file}"), "one\ntwo\n");
    assert_eq!(code, Some(0), "{err}");
    let words = format!(
        "console-consumer --topic {topic} --from-beginning --max-messages 2 --timeout-ms 20000 --command-config {file}"
    );
    let (code, out, err) = run(port, &words, "");
    assert_eq!((code, out.as_str()), (Some(0), "one\ntwo\n"), "{err}");
}

fn trusting(path: &Path) -> String {
    format!("ssl.truststore.location={}", path.join("ca.pem").display())
}

fn login(password: &str) -> Vec<String> {
    vec![
        "security.protocol=SASL_SSL".to_owned(),
        "sasl.mechanism=PLAIN".to_owned(),
        format!("sasl.jaas.config={}", jaas(&format!(" username=\"alice\" password=\"{password}\""), &[])),
    ]
}

#[test]
fn records_go_round_by_login_and_by_certificate() {
    let (ca, folder) = (Authority::new(), TempDir::new());
    let path = folder.path();
    let (mut node, ports) = launched(&ca, path, "127.0.0.1");
    let mut lines = login("alice-secret");
    lines.push(trusting(path));
    lines.push("ssl.enabled.protocols=TLSv1.3".to_owned());
    goes_round(ports.sasl, &client(path, "login.properties", &lines), "by-login");

    // Key and certificates in the file of the client itself.
    let (key, chain) = ca.issue("alice");
    let inline = |text: &str| text.trim_end().replace('\n', "\\n");
    let lines = [
        "security.protocol=SSL".to_owned(),
        format!("ssl.truststore.certificates={}", inline(&ca.pem())),
        format!("ssl.keystore.key={}", inline(&key)),
        format!("ssl.keystore.certificate.chain={}", inline(&chain)),
        "ssl.enabled.protocols=TLSv1.2".to_owned(),
        "ssl.cipher.suites=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384".to_owned(),
    ];
    goes_round(ports.mutual, &client(path, "certificate.properties", &lines), "by-certificate");
    assert!(node.stop().success());
}

#[test]
fn refusal_says_what_does_not_fit() {
    let (ca, folder) = (Authority::new(), TempDir::new());
    let path = folder.path();
    let (mut node, ports) = launched(&ca, path, "broker1.example.com");
    let said = |port: u16, name: &str, lines: &[String]| {
        let file = client(path, name, lines);
        // Where a broker closes a connection without a word, it is tried again for so long.
        let mut text = std::fs::read_to_string(&file).expect("written");
        text.push_str("\nrequest.timeout.ms=1500\ndefault.api.timeout.ms=1500\n");
        std::fs::write(&file, text).expect("writes");
        let (code, out, err) = run(port, &format!("topics --list --command-config {file}"), "");
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(!err.contains("alice-secret"), "{err}");
        err
    };
    let with = |lines: Vec<String>, more: &[String]| [lines, more.to_vec()].concat();
    let unchecked = "ssl.endpoint.identification.algorithm=".to_owned();

    let err = said(ports.sasl, "host", &with(login("alice-secret"), &[trusting(path)]));
    assert!(
        err.contains("is for DnsName(\"broker1.example.com\")") || err.contains("broker1.example.com"),
        "{err}"
    );
    assert!(err.contains("not for the host 127.0.0.1"), "{err}");

    let other = format!("ssl.truststore.location={}", data("ca.pem"));
    let err = said(ports.sasl, "authority", &with(login("alice-secret"), &[other]));
    assert!(err.contains("an authority that is not trusted") && err.contains("ssl.truststore"), "{err}");

    let trusted = [trusting(path), unchecked];
    let err = said(ports.sasl, "password", &with(login("wrong"), &trusted));
    assert!(err.contains("authentication failed for user alice by PLAIN"), "{err}");

    let err = said(node.port, "plain-listener", &with(login("alice-secret"), &trusted));
    assert!(err.contains("Does its listener have TLS?"), "{err}");

    let err = said(ports.sasl, "plain-client", &["security.protocol=PLAINTEXT".to_owned()]);
    assert!(err.contains("security.protocol=SSL or SASL_SSL"), "{err}");

    let ssl = vec!["security.protocol=SSL".to_owned()];
    let err = said(ports.mutual, "no-certificate", &with(ssl.clone(), &trusted));
    assert!(err.contains("asks for a client certificate") && err.contains("ssl.keystore.location"), "{err}");

    let (key, chain) = Authority::new().issue("stranger");
    let inline = |text: &str| text.trim_end().replace('\n', "\\n");
    let foreign = [
        format!("ssl.keystore.key={}", inline(&key)),
        format!("ssl.keystore.certificate.chain={}", inline(&chain)),
    ];
    let err = said(ports.mutual, "foreign", &with(with(ssl, &trusted), &foreign));
    assert!(err.contains("does not trust the authority of our certificate"), "{err}");

    let missing = "ssl.truststore.location=/nowhere/ca.pem".to_owned();
    let err = said(ports.sasl, "missing", &with(login("alice-secret"), &[missing]));
    assert!(err.contains("ssl.truststore.location: "), "{err}");
    assert!(node.log().contains("is not for the advertised host 127.0.0.1"));
    assert!(node.stop_expecting_trouble().success());
}
