//! Clients and nodes that log in with tokens of an issuer: which tokens are taken, how keys are replaced, and what a
//! storm of strange tokens costs the issuer.

use crate::harness::cluster::{Cluster, eventually, metadata};
use crate::harness::quorum::{self, random_uuid};
use crate::harness::sasl::node;
use crate::harness::{Client, TestNode, binary, free_port};
use barnabas_harness::TempDir;
use barnabas_issuer::{CLIENT_ID, CLIENT_SECRET, Issuer, SigningKey, lasting, token};
use barnabas_sasl::Secret;
use barnabas_sasl::client::ClientLogin;
use barnabas_sasl::oauth::{CONFIRMATION, INVALID_TOKEN, client_message};
use barnabas_wire::messages::{MetadataRequest, SaslAuthenticateResponse};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const MODULE: &str = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required";
const VALIDATOR: &str = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler";

fn claims(user: &str) -> Value {
    json!({"sub": user, "aud": "kafka", "iss": "https://issuer"})
}

fn login(token: &str) -> ClientLogin {
    ClientLogin::Bearer { token: Secret::from(token), extensions: Vec::new() }
}

/// The answer to a token that is refused: first the reason as JSON, then 58.
fn refused(port: u16, token: &str) {
    let mut client = Client::try_connect(port).expect("connects");
    assert_eq!(client.handshake("OAUTHBEARER", 1).expect("an answer").error_code, 0);
    let first = client_message(&Secret::from(token), &[("traceId".to_owned(), "7".to_owned())]);
    let challenge = client.authenticate(&first, 2).expect("an answer");
    assert_eq!((challenge.error_code, &challenge.auth_bytes[..]), (0, INVALID_TOKEN.as_bytes()));
    let answer = client.authenticate(CONFIRMATION, 2).expect("an answer");
    assert_eq!((answer.error_code, answer.error_message.as_deref()), (58, Some(INVALID_TOKEN)));
    assert!(client.is_closed());
}

fn taken(port: u16, token: &str) -> SaslAuthenticateResponse {
    let mut client = Client::try_connect(port).expect("connects");
    let answer = client.log_in(&login(token)).expect("an answer");
    assert_eq!(answer.error_code, 0, "{answer:?}");
    assert!(client.try_call(MetadataRequest::default(), 12).is_some());
    answer
}

/// What a listener takes tokens with, besides the URL of the keys.
fn settings(listener: &str, url: &str, trust: Option<&Path>) -> Vec<String> {
    let trust = trust.map(|path| format!(" ssl.truststore.location=\"{}\"", path.display()));
    let prefix = format!("listener.name.{listener}.oauthbearer.");
    vec![
        format!("{prefix}sasl.jaas.config={MODULE}{};", trust.unwrap_or_default()),
        format!("{prefix}sasl.server.callback.handler.class={VALIDATOR}"),
        format!("{prefix}sasl.oauthbearer.jwks.endpoint.url={url}"),
        "sasl.oauthbearer.expected.audience=kafka".to_owned(),
        "sasl.oauthbearer.expected.issuer=https://issuer".to_owned(),
        format!("org.apache.kafka.sasl.oauthbearer.allowed.urls={url}"),
    ]
}

fn launched(url: &str, trust: Option<&Path>, more: &[&str]) -> (TestNode, u16) {
    let settings = settings("sasl", url, trust);
    let settings: Vec<&str> = settings.iter().map(String::as_str).chain(more.iter().copied()).collect();
    let (mut node, port) = node("OAUTHBEARER", &[], &settings);
    node.launch();
    (node, port)
}

fn write_keys(path: &Path, keys: &[&SigningKey]) {
    let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
    std::fs::write(path, json!({"keys": keys}).to_string()).expect("written");
}

#[test]
fn good_token_is_served_and_every_other_is_refused() {
    let (dir, rsa, ec) =
        (TempDir::new(), SigningKey::generate("r", "RS256"), SigningKey::generate("e", "ES256"));
    let path = dir.path().join("jwks.json");
    write_keys(&path, &[&rsa, &ec]);
    let url = format!("file:{}", path.display());
    let (mut node, port) = launched(&url, None, &["connections.max.reauth.ms=100000"]);
    let life = |key: &SigningKey, seconds| {
        taken(port, &key.token(&lasting(&claims("alice"), seconds))).session_lifetime_ms
    };
    // The session ends with the token, or before.
    assert!((50_000..=60_000).contains(&life(&rsa, 60)));
    assert_eq!(life(&ec, 3600), 100_000);
    let good = lasting(&claims("alice"), 60);
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        ec.token(&claims)
    };
    let unsigned = token(&json!({"alg": "none"}), &good, b"");
    let foreign = SigningKey::generate("e", "ES256").token(&good);
    let late = lasting(&claims("alice"), 0);
    let expired =
        ec.token(&json!({"sub": "alice", "aud": "kafka", "iss": "https://issuer", "iat": 1, "exp": 2}));
    refused(port, &with("aud", json!("web")));
    eventually("the log names the claim", || node.log().contains("the claim aud is web, expected kafka"));
    // One line of log for each address and minute; what each reason says is in shell/oauth's tests.
    for token in [
        &unsigned,
        &foreign,
        &expired,
        &SigningKey::generate("new", "ES256").token(&good),
        &with("iss", json!("https://other")),
        &with("nbf", json!(late["iat"].as_u64().expect("a time") + 1000)),
        &with("sub", Value::Null),
    ] {
        refused(port, token);
        assert!(!node.log().contains(token.as_str()), "a token in the log");
    }
    assert!(node.log().contains("mechanism=OAUTHBEARER"));
    assert!(node.stop().success());
}

#[test]
fn key_is_replaced_without_a_restart_and_strangers_do_not_bother_the_issuer() {
    let (dir, issuer) = (TempDir::new(), Issuer::start(true));
    let (old, new) = (SigningKey::generate("old", "RS256"), SigningKey::generate("new", "ES256"));
    issuer.publish(&[&old]);
    let trust = dir.path().join("ca.pem");
    std::fs::write(&trust, &issuer.authority).expect("written");
    let (mut node, port) = launched(&issuer.url("jwks"), Some(&trust), &[]);
    let token = |key: &SigningKey| key.token(&lasting(&claims("alice"), 600));
    taken(port, &token(&old));
    assert_eq!(issuer.key_requests(), 1);
    // The first token of the new key is refused, as in Kafka, and brings its key.
    issuer.publish(&[&old, &new]);
    refused(port, &token(&new));
    eventually("the new key", || issuer.key_requests() == 2);
    let mut client = Client::try_connect(port).expect("connects");
    assert_eq!(client.log_in(&login(&token(&new))).expect("an answer").error_code, 0);
    // A storm of unknown keys: one request in ten seconds, whatever comes. The clients do not wait for the verdict.
    let begun = Instant::now();
    let stranger = SigningKey::generate("stranger", "ES256");
    for _ in 0..300 {
        let mut client = Client::try_connect(port).expect("connects");
        assert_eq!(client.handshake("OAUTHBEARER", 1).expect("an answer").error_code, 0);
        let first = client_message(&Secret::from(token(&stranger)), &[]);
        assert_eq!(client.authenticate(&first, 2).expect("an answer").auth_bytes, INVALID_TOKEN);
    }
    let most = 3 + begun.elapsed().as_secs() / 10;
    assert!(issuer.key_requests() <= most, "{} of {most}", issuer.key_requests());
    taken(port, &token(&old));
    assert!(node.stop().success());
}

#[test]
fn client_authenticates_again_before_its_token_ends() {
    let (dir, key) = (TempDir::new(), SigningKey::generate("e", "ES256"));
    let path = dir.path().join("jwks.json");
    write_keys(&path, &[&key]);
    let more = ["sasl.oauthbearer.clock.skew.seconds=0"];
    let (mut node, port) = launched(&format!("file:{}", path.display()), None, &more);
    let token = |user: &str, seconds| key.token(&lasting(&claims(user), seconds));
    let mut client = Client::logged_in(port, &login(&token("alice", 3)));
    let answer = client.log_in(&login(&token("alice", 600))).expect("an answer");
    assert!(answer.error_code == 0 && answer.session_lifetime_ms > 500_000, "{answer:?}");
    std::thread::sleep(Duration::from_secs(4));
    assert!(client.try_call(MetadataRequest::default(), 12).is_some());
    // Another user does not come by the same connection; a session without another token ends.
    let answer = client.log_in(&login(&token("bob", 600))).expect("an answer");
    assert_eq!(answer.error_code, 58);
    let mut client = Client::logged_in(port, &login(&token("alice", 2)));
    std::thread::sleep(Duration::from_secs(3));
    assert!(client.try_call(MetadataRequest::default(), 12).is_none());
    assert!(node.stop().success());
}

/// A node's file: brokers by client credentials, controllers by a token in a file.
fn file(
    dir: &Path,
    id: i32,
    ports: [u16; 3],
    voters: &str,
    issuer: &Issuer,
    shared: &Path,
) -> std::path::PathBuf {
    let [clients, brokers, controllers] = ports;
    let (keys, tokens) = (issuer.url("jwks"), issuer.url("token"));
    let token = format!("file:{}", shared.join("token").display());
    let trust = format!("ssl.truststore.location=\"{}\"", shared.join("ca.pem").display());
    let handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler";
    let mut lines = vec![
        "process.roles=broker,controller".to_owned(),
        format!("node.id={id}"),
        format!(
            "listeners=PLAINTEXT://127.0.0.1:{clients},BROKERS://127.0.0.1:{brokers},CONTROLLER://127.0.0.1:{controllers}"
        ),
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,BROKERS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
            .to_owned(),
        "inter.broker.listener.name=BROKERS".to_owned(),
        "controller.listener.names=CONTROLLER".to_owned(),
        format!("controller.quorum.voters={voters}"),
        format!("log.dirs={}", dir.join("data").display()),
        "sasl.enabled.mechanisms=OAUTHBEARER".to_owned(),
        "sasl.mechanism.inter.broker.protocol=OAUTHBEARER".to_owned(),
        "sasl.mechanism.controller.protocol=OAUTHBEARER".to_owned(),
        format!("listener.name.brokers.oauthbearer.sasl.login.callback.handler.class={handler}"),
        format!("listener.name.brokers.oauthbearer.sasl.oauthbearer.token.endpoint.url={tokens}"),
        format!("sasl.oauthbearer.client.credentials.client.id={CLIENT_ID}"),
        format!("sasl.oauthbearer.client.credentials.client.secret={CLIENT_SECRET}"),
        format!("listener.name.controller.oauthbearer.sasl.login.callback.handler.class={handler}"),
        format!("listener.name.controller.oauthbearer.sasl.oauthbearer.token.endpoint.url={token}"),
        "offsets.topic.num.partitions=6".to_owned(),
        "auto.leader.rebalance.enable=false".to_owned(),
    ];
    for listener in ["brokers", "controller"] {
        lines.extend(settings(listener, &keys, None));
        lines.push(format!("listener.name.{listener}.oauthbearer.sasl.jaas.config={MODULE} {trust};"));
    }
    lines.push(format!("org.apache.kafka.sasl.oauthbearer.allowed.urls={keys},{tokens},{token}"));
    // Of a key that stands twice the last counts.
    let path = dir.join("server.properties");
    std::fs::write(&path, lines.join("\n")).expect("written");
    path
}

#[test]
fn nodes_log_in_to_each_other_with_tokens_that_end() {
    let (shared, issuer) = (TempDir::new(), Issuer::start(true));
    let key = Arc::new(SigningKey::generate("k", "ES256"));
    issuer.publish(&[&key]);
    // Short: each link gets several.
    issuer.sign(key.clone(), claims("node"), 5);
    std::fs::write(shared.path().join("ca.pem"), &issuer.authority).expect("written");
    let of_controllers = key.token(&lasting(&claims("node"), 3600));
    std::fs::write(shared.path().join("token"), of_controllers).expect("written");
    let cluster = random_uuid();
    let ports: BTreeMap<i32, [u16; 3]> =
        (1..=3).map(|id| (id, [free_port(), free_port(), free_port()])).collect();
    let voters: Vec<String> = ports.iter().map(|(id, of)| format!("{id}@127.0.0.1:{}", of[2])).collect();
    let mut nodes = BTreeMap::new();
    for (&id, &of) in &ports {
        let mut node = TestNode::new(None, &[]);
        let file = file(node.dir.path(), id, of, &voters.join(","), &issuer, shared.path());
        let (ok, said) = quorum::format(&file, &cluster, &[]);
        assert!(ok, "{said}");
        node.set_file(file.to_str().expect("a path"), (of[0], of[2]));
        nodes.insert(id, node);
    }
    nodes.values_mut().for_each(TestNode::launch_unawaited);
    let mut cluster = Cluster { nodes, alive: ports.keys().copied().collect() };
    cluster.nodes.values_mut().for_each(TestNode::await_answer);
    for node in cluster.nodes.values() {
        eventually("all brokers are known", || {
            metadata(&mut node.client()).is_some_and(|known| known.brokers.len() == 3)
        });
    }
    cluster.create("t", 1);
    let begun = issuer.forms().len();
    eventually("tokens are replaced", || issuer.forms().len() >= begun + 6);
    cluster.await_in_sync();
    for of in ports.values() {
        let mut stranger = Client::try_connect(of[1]).expect("connects");
        assert!(metadata(&mut stranger).is_none());
    }
    for node in cluster.nodes.values() {
        let log = node.log();
        assert!(!log.contains(" fenced:") && !log.contains("s3cret"), "{log}");
    }
    cluster.stop();
}

/// The blocks of docs/SECURITY.md about OAUTHBEARER, with the names of this test in place of the page's.
fn guide(names: &[(&str, &str)]) -> Vec<String> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SECURITY.md"))
        .expect("a page");
    let section = page.split("## Tokens of an issuer (OAUTHBEARER)").nth(1).expect("a section");
    let section = section.split("\n## ").next().expect("its end");
    let mut blocks: Vec<String> = section.split("```\n").skip(1).step_by(2).map(str::to_owned).collect();
    for block in &mut blocks {
        names.iter().for_each(|(theirs, ours)| *block = block.replace(theirs, ours));
    }
    blocks
}

#[test]
fn guide_of_oauthbearer_lets_a_tool_log_in() {
    let (dir, issuer, key) =
        (TempDir::new(), Issuer::start(true), Arc::new(SigningKey::generate("k", "RS256")));
    issuer.publish(&[&key]);
    let claims = json!({"sub": "orders", "aud": ["kafka"], "iss": "https://id.example.com", "scope": "a"});
    issuer.sign(key, claims, 600);
    let trust = dir.path().join("ca.pem");
    std::fs::write(&trust, &issuer.authority).expect("written");
    let trusting = format!("required ssl.truststore.location=\"{}\";", trust.display());
    let file = dir.path().join("orders.properties");
    let (keys, tokens) = (issuer.url("jwks"), issuer.url("token"));
    let names = [
        ("https://id.example.com/keys", keys.as_str()),
        ("https://id.example.com/token", &tokens),
        ("required;", &trusting),
        (".sasl_ssl.", ".sasl."),
        ("=SASL_SSL", "=SASL_PLAINTEXT"),
        ("orders-service", CLIENT_ID),
        ("orders-secret", CLIENT_SECRET),
        ("orders.properties", file.to_str().expect("a path")),
    ];
    let blocks = guide(&names);
    let [listener, client, command] = blocks.as_slice() else { panic!("{blocks:?}") };
    let settings: Vec<&str> = listener.lines().collect();
    let (mut node, port) = node("PLAIN", &[], &settings);
    node.launch();
    let run = || {
        let command = command.replace("127.0.0.1:9092", &format!("127.0.0.1:{port}"));
        let output = binary().args(command.split_whitespace().skip(1)).output().expect("runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    std::fs::write(&file, client).expect("written");
    assert_eq!(run(), (true, String::new()));
    std::fs::write(&file, client.replace(CLIENT_SECRET, "wr0ng")).expect("written");
    let (is_success, said) = run();
    assert!(!is_success && said.contains("status 401: invalid_client") && !said.contains("wr0ng"), "{said}");
    assert!(node.stop().success());
}
