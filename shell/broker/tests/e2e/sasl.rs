//! Clients on a listener with SASL: who gets in, who does not, and what comes before, in between and after.

use crate::harness::sasl::{jaas, node, plain, scram};
use crate::harness::{Client, TestNode, metric};
use barnabas_sasl::Secret;
use barnabas_sasl::scram::Mechanism;
use barnabas_wire::messages::alter_user_scram_credentials_request::{
    ScramCredentialDeletion, ScramCredentialUpsertion,
};
use barnabas_wire::messages::{
    AlterUserScramCredentialsRequest, ApiVersionsRequest, MetadataRequest, ResponseBody,
};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

const ALICE: (&str, &str) = ("alice", "alice-secret");

fn is_served(client: &mut Client) -> bool {
    client.try_call(MetadataRequest::default(), 12).is_some()
}

fn launched(mechanisms: &str, more: &[&str]) -> (TestNode, u16) {
    let (mut node, sasl) = node(mechanisms, &[ALICE, ("bob", "bob-secret")], more);
    node.launch();
    (node, sasl)
}

#[test]
fn right_password_is_served_and_wrong_one_is_not() {
    let (mut node, sasl) = launched("PLAIN", &[]);
    let mut client = Client::logged_in(sasl, &plain("alice", "alice-secret"));
    assert!(is_served(&mut client));
    for (user, password) in [("alice", "wrong"), ("alice", "bob-secret"), ("nobody", "x")] {
        let mut client = Client::try_connect(sasl).expect("connects");
        let begun = Instant::now();
        let answer = client.log_in(&plain(user, password)).expect("an answer");
        assert!(begun.elapsed() >= Duration::from_millis(100), "held back");
        assert_eq!(answer.error_code, 58);
        let text = answer.error_message.expect("a reason");
        assert_eq!(text, "Authentication failed: Invalid username or password");
        assert!(client.is_closed());
    }
    let log = node.log();
    assert!(log.contains("authentication failed") && log.contains("user=\"alice\""), "{log}");
    for secret in ["alice-secret", "bob-secret"] {
        assert!(!log.contains(secret), "{log}");
    }
    assert!(node.stop().success());
}

#[test]
fn client_that_has_not_authenticated_is_not_served() {
    let (mut node, sasl) = launched("PLAIN", &[]);
    let mut client = Client::try_connect(sasl).expect("connects");
    assert!(!is_served(&mut client) && client.is_closed());
    // Nor between handshake and token.
    let mut client = Client::try_connect(sasl).expect("connects");
    assert_eq!(client.handshake("PLAIN", 1).expect("an answer").error_code, 0);
    assert!(!is_served(&mut client) && client.is_closed());
    // Nor is a token without a handshake read.
    let mut client = Client::try_connect(sasl).expect("connects");
    assert!(client.authenticate(b"\0alice\0alice-secret", 2).is_none() && client.is_closed());
    let log = node.log();
    assert!(log.contains("Unexpected Kafka request of type Metadata during SASL handshake."), "{log}");
    assert!(node.stop().success());
}

#[test]
fn versions_are_told_once_before_the_handshake() {
    let (mut node, sasl) = launched("PLAIN", &[]);
    let mut client = Client::try_connect(sasl).expect("connects");
    let request = || ApiVersionsRequest {
        client_software_name: "test".into(),
        client_software_version: "1".into(),
        ..Default::default()
    };
    // KIP-511: a version that is not served is answered, and the client asks again.
    client.send_raw(&[0, 0, 0, 10, 0, 18, 0, 99, 0, 0, 0, 9, 0xff, 0xff]);
    let refused = client.receive_frame().expect("an answer");
    assert_eq!(refused[4..6], 35i16.to_be_bytes());
    let ResponseBody::ApiVersions(answer) = client.call(request(), 3) else { panic!("another response") };
    let versions = |key| {
        let row = answer.api_keys.iter().find(|row| row.api_key == key).expect("advertised");
        (row.min_version, row.max_version)
    };
    assert_eq!((versions(17), versions(36)), ((0, 1), (0, 2)));
    assert!(client.try_call(request(), 3).is_none(), "a second one closes the connection");
    assert!(node.stop().success());
}

#[test]
fn unknown_mechanism_is_refused_with_those_that_there_are() {
    let (mut node, sasl) = launched("PLAIN,SCRAM-SHA-512", &[]);
    for asked in ["GSSAPI", "OAUTHBEARER", "", "plain"] {
        let mut client = Client::try_connect(sasl).expect("connects");
        let answer = client.handshake(asked, 1).expect("an answer");
        let names: Vec<&str> = answer.mechanisms.iter().map(|name| name.as_str()).collect();
        assert_eq!((answer.error_code, names), (33, vec!["PLAIN", "SCRAM-SHA-512"]));
        assert!(client.is_closed());
    }
    assert!(node.stop().success());
}

#[test]
fn tokens_follow_the_oldest_handshake_without_header() {
    let (mut node, sasl) = launched("PLAIN", &[]);
    let mut client = Client::try_connect(sasl).expect("connects");
    assert_eq!(client.handshake("PLAIN", 0).expect("an answer").error_code, 0);
    assert_eq!(client.raw_token(b"\0alice\0alice-secret").expect("an answer").len(), 0);
    assert!(is_served(&mut client));
    let mut client = Client::try_connect(sasl).expect("connects");
    assert_eq!(client.handshake("PLAIN", 0).expect("an answer").error_code, 0);
    assert!(client.raw_token(b"\0alice\0wrong").is_none());
    assert!(node.stop().success());
}

#[test]
fn login_out_of_place_is_an_illegal_state() {
    let (mut node, sasl) = launched("PLAIN", &[]);
    // On a listener without SASL.
    let mut client = node.client();
    assert_eq!(client.handshake("PLAIN", 1).expect("an answer").error_code, 34);
    let answer = client.authenticate(b"x", 2).expect("an answer");
    assert_eq!(answer.error_code, 34);
    // After the login: a token without handshake, and a handshake within a second of the last.
    let mut client = Client::logged_in(sasl, &plain("alice", "alice-secret"));
    assert_eq!(client.authenticate(b"x", 2).expect("an answer").error_code, 34);
    assert_eq!(client.log_in(&plain("alice", "alice-secret")).expect("an answer").error_code, 0);
    assert_eq!(client.handshake("PLAIN", 1).expect("an answer").error_code, 34);
    assert!(is_served(&mut client));
    assert!(node.stop().success());
}

#[test]
fn session_that_is_over_ends_with_its_connection_unless_renewed() {
    let port = crate::harness::free_port();
    let metrics = format!("metrics.listener=127.0.0.1:{port}");
    let (mut node, sasl) =
        launched("PLAIN", &[&metrics, "listener.name.sasl.plain.connections.max.reauth.ms=3000"]);
    let login = plain("alice", "alice-secret");
    let mut first = Client::try_connect(sasl).expect("connects");
    let answer = first.log_in(&login).expect("an answer");
    assert_eq!((answer.error_code, answer.session_lifetime_ms), (0, 3000));
    let mut renewed = Client::logged_in(sasl, &login);
    std::thread::sleep(Duration::from_millis(1600));
    assert!(is_served(&mut first));
    let answer = renewed.log_in(&login).expect("an answer");
    assert_eq!((answer.error_code, answer.session_lifetime_ms), (0, 3000));
    std::thread::sleep(Duration::from_millis(1600));
    assert!(!is_served(&mut first), "its session is over");
    assert!(is_served(&mut renewed));
    // The end is no obstacle to a handshake.
    std::thread::sleep(Duration::from_millis(3100));
    assert_eq!(renewed.log_in(&login).expect("an answer").error_code, 0);
    assert!(is_served(&mut renewed));
    assert_eq!(metric(port, "barnabas_expired_connections_killed_total"), Some(1.0));
    assert_eq!(metric(port, "barnabas_reauthentications_total{result=\"success\"}"), Some(2.0));
    assert!(node.stop().success());
}

#[test]
fn reauthentication_keeps_principal_and_mechanism() {
    let (mut node, sasl) = launched("PLAIN,SCRAM-SHA-256", &[]);
    let login = plain("alice", "alice-secret");
    let mut client = Client::logged_in(sasl, &login);
    let answer = client.log_in(&plain("bob", "bob-secret")).expect("an answer");
    assert_eq!(answer.error_code, 58);
    let text = answer.error_message.expect("a reason");
    assert_eq!(text, "Cannot change principals during re-authentication from User.alice: User.bob");
    assert!(client.is_closed());
    let mut client = Client::logged_in(sasl, &login);
    assert_eq!(client.handshake("SCRAM-SHA-256", 1).expect("an answer").error_code, 0);
    assert!(client.authenticate(b"n,,n=alice,r=x", 2).is_none(), "closed without an answer");
    // A wrong password ends a connection that was served.
    let mut client = Client::logged_in(sasl, &login);
    assert_eq!(client.log_in(&plain("alice", "wrong")).expect("an answer").error_code, 58);
    assert!(client.is_closed());
    assert!(node.stop().success());
}

#[test]
fn requests_pipelined_with_the_last_token_are_served() {
    let (mut node, sasl) = launched("PLAIN", &[]);
    let mut client = Client::try_connect(sasl).expect("connects");
    assert_eq!(client.handshake("PLAIN", 1).expect("an answer").error_code, 0);
    let token = barnabas_wire::messages::SaslAuthenticateRequest {
        auth_bytes: bytes::Bytes::from_static(b"\0alice\0alice-secret"),
        ..Default::default()
    };
    client.send(token, 2);
    client.send(MetadataRequest::default(), 12);
    client.receive(barnabas_wire::ApiKey::SaslAuthenticate, 2);
    client.receive(barnabas_wire::ApiKey::Metadata, 12);
    assert!(node.stop().success());
}

#[test]
fn frames_before_the_login_are_small() {
    let (mut node, sasl) = launched("PLAIN", &[]);
    for bytes in [
        (512 * 1024 + 1i32).to_be_bytes().to_vec(),
        (-1i32).to_be_bytes().to_vec(),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        [&[0, 0, 0, 9][..], &[0x60, 0x82, 1, 2, 3, 4, 5, 6, 7]].concat(),
        [&[0, 0, 0, 2][..], &[0, 17]].concat(),
        [&[0, 0, 0, 8][..], &[0, 17, 0, 9, 0, 0, 0, 1]].concat(),
    ] {
        let mut stream = TcpStream::connect(("127.0.0.1", sasl)).expect("connects");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
        stream.write_all(&bytes).expect("sends");
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)), "{bytes:?}");
    }
    let mut good = Client::logged_in(sasl, &plain("alice", "alice-secret"));
    assert!(is_served(&mut good));
    let log = node.log();
    for said in [
        "sasl.server.max.receive.size",
        "speaks HTTP",
        "Set security.protocol=SASL_PLAINTEXT at",
        "GSSAPI token",
    ] {
        assert!(log.contains(said), "{said}: {log}");
    }
    assert!(node.stop().success());
}

#[test]
fn silent_client_is_gone_after_the_deadline() {
    let (mut node, sasl) = launched("PLAIN", &[]);
    let mut client = Client::try_connect(sasl).expect("connects");
    assert_eq!(client.handshake("PLAIN", 1).expect("an answer").error_code, 0);
    let begun = Instant::now();
    assert!(client.is_closed());
    assert!(begun.elapsed() < Duration::from_secs(19), "before the test's own patience ends");
    assert!(node.log().contains("the client did not authenticate within 10 s"));
    assert!(node.stop().success());
}

#[test]
fn refusals_of_an_address_take_longer_and_longer() {
    let (mut node, sasl) = launched("PLAIN", &["connection.failed.authentication.delay.ms=1"]);
    let took = || {
        let mut client = Client::try_connect(sasl).expect("connects");
        let begun = Instant::now();
        assert_eq!(client.log_in(&plain("alice", "wrong")).expect("an answer").error_code, 58);
        begun.elapsed()
    };
    let all: Vec<Duration> = (0..14).map(|_| took()).collect();
    assert!(all[13] >= Duration::from_millis(1600), "{all:?}");
    // The right password is not held up.
    let begun = Instant::now();
    Client::logged_in(sasl, &plain("alice", "alice-secret"));
    assert!(begun.elapsed() < Duration::from_millis(1500));
    let log = node.log();
    assert_eq!(log.lines().filter(|line| line.contains("authentication failed")).count(), 1, "{log}");
    assert!(node.stop().success());
}

#[test]
fn users_of_plain_change_while_the_node_runs() {
    let (mut node, sasl) = launched("PLAIN", &[]);
    let mut alice = Client::logged_in(sasl, &plain("alice", "alice-secret"));
    let mut bob = Client::logged_in(sasl, &plain("bob", "bob-secret"));
    let users = jaas("", &[("bob", "new-secret")]);
    let key = "listener.name.sasl.plain.sasl.jaas.config";
    assert_eq!(node.client().alter_config(1, (4, "1"), key, Some(&users)), 0);
    crate::harness::patience::eventually("the new password", || {
        let mut client = Client::try_connect(sasl).expect("connects");
        client.log_in(&plain("bob", "new-secret")).is_some_and(|answer| answer.error_code == 0)
    });
    let mut client = Client::try_connect(sasl).expect("connects");
    assert_eq!(client.log_in(&plain("bob", "bob-secret")).expect("an answer").error_code, 58);
    // Who was deleted is gone within 10 s, who has a new password stays.
    let begun = Instant::now();
    while is_served(&mut alice) {
        assert!(begun.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(is_served(&mut bob));
    assert!(node.stop().success());
}

/// Sets or deletes (`None`) a password, as kafka-configs does.
fn set_scram(client: &mut Client, mechanism: Mechanism, user: &str, password: Option<&str>) {
    let (name, code) = (user.into(), mechanism.code());
    let mut request = AlterUserScramCredentialsRequest::default();
    match password {
        None => request.deletions.push(ScramCredentialDeletion {
            name,
            mechanism: code,
            ..ScramCredentialDeletion::default()
        }),
        Some(password) => {
            let salt = format!("salt of {user}").into_bytes();
            let salted = mechanism.salted_password(&Secret::from(password), &salt, 4096);
            request.upsertions.push(ScramCredentialUpsertion {
                name,
                mechanism: code,
                iterations: 4096,
                salt: salt.into(),
                salted_password: bytes::Bytes::copy_from_slice(salted.bytes()),
                ..ScramCredentialUpsertion::default()
            });
        }
    }
    let ResponseBody::AlterUserScramCredentials(answer) = client.call(request, 0) else { panic!("another") };
    assert_eq!(answer.results[0].error_code, 0, "{answer:?}");
}

#[test]
fn scram_users_of_the_metadata_log_are_served_at_once() {
    let (mut node, sasl) = launched("SCRAM-SHA-256,SCRAM-SHA-512", &[]);
    let mut admin = node.client();
    for mechanism in [Mechanism::Sha256, Mechanism::Sha512] {
        let log_in = |user: &str, password: &str| {
            let mut client = Client::try_connect(sasl).expect("connects");
            client.log_in(&scram(mechanism, user, password)).expect("an answer").error_code
        };
        assert_eq!(log_in("zoe", "zoe-secret"), 58);
        set_scram(&mut admin, mechanism, "zoe", Some("zoe-secret"));
        assert_eq!((log_in("zoe", "zoe-secret"), log_in("zoe", "wrong"), log_in("nobody", "x")), (0, 58, 58));
        set_scram(&mut admin, mechanism, "zoe", Some("next"));
        assert_eq!((log_in("zoe", "next"), log_in("zoe", "zoe-secret")), (0, 58));
        let mut client = Client::logged_in(sasl, &scram(mechanism, "zoe", "next"));
        assert!(is_served(&mut client));
        set_scram(&mut admin, mechanism, "zoe", None);
        assert_eq!(log_in("zoe", "next"), 58);
        // Who was deleted is gone within 10 s.
        let begun = Instant::now();
        while is_served(&mut client) {
            assert!(begun.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    let log = node.log();
    assert!(log.contains("its user or token was deleted"), "{log}");
    for secret in ["zoe-secret", "c2FsdCBvZiB6b2U"] {
        assert!(!log.contains(secret), "{log}");
    }
    assert!(node.stop().success());
}

/// The challenge to a user that does not exist is the same each time, and looks like that of one who does.
#[test]
fn scram_challenge_does_not_tell_whether_the_user_exists() {
    let (mut node, sasl) = launched("SCRAM-SHA-256", &[]);
    set_scram(&mut node.client(), Mechanism::Sha256, "zoe", Some("zoe-secret"));
    let salt = |user: &str| {
        let mut client = Client::try_connect(sasl).expect("connects");
        assert_eq!(client.handshake("SCRAM-SHA-256", 1).expect("an answer").error_code, 0);
        let answer = client.authenticate(format!("n,,n={user},r=abc").as_bytes(), 2).expect("an answer");
        assert_eq!(answer.error_code, 0, "{answer:?}");
        let text = String::from_utf8(answer.auth_bytes.to_vec()).expect("text");
        assert!(text.starts_with("r=abc") && text.ends_with(",i=4096"), "{text}");
        text.split(",s=").nth(1).expect("a salt").to_owned()
    };
    assert_eq!(salt("nobody"), salt("nobody"));
    assert_ne!(salt("nobody"), salt("nemo"));
    assert_eq!(salt("zoe"), salt("zoe"));
    assert!(node.stop().success());
}

/// Apache's producer ends with a SaslAuthenticationException; a batch that was tried for two minutes more would not.
#[test]
fn tool_whose_login_is_refused_later_ends_at_once() {
    let (mut node, sasl) = launched("PLAIN", &[]);
    let path = node.dir.path().join("alice.properties");
    let module = jaas(" username=\"alice\" password=\"alice-secret\"", &[]);
    let text = format!("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={module}\n");
    std::fs::write(&path, text).expect("written");
    let tool = |name: &str, port: u16, words: &[&str]| {
        let mut command = crate::harness::binary();
        command.args([name, "--bootstrap-server", &format!("127.0.0.1:{port}")]).args(words);
        command
    };
    let path = path.display().to_string();
    let mut producer = tool("console-producer", sasl, &["--topic", "t", "--command-config", &path])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    let mut lines = producer.stdin.take().expect("piped");
    lines.write_all(b"one\n").expect("a line");
    let words = ["--topic", "t", "--from-beginning", "--max-messages", "1"];
    let read = tool("console-consumer", node.port, &words).output().expect("runs");
    assert_eq!(String::from_utf8_lossy(&read.stdout), "one\n", "{read:?}");
    // The users of PLAIN change while the node runs; open connections go on, so they are cut.
    let users = format!("listener.name.sasl.plain.sasl.jaas.config={}", jaas("", &[("alice", "another")]));
    let words = ["--alter", "--entity-type", "brokers", "--entity-name", "1", "--add-config", &users];
    let altered = tool("configs", node.port, &words).output().expect("runs");
    assert!(altered.status.success(), "{altered:?}");
    let mut client = Client::try_connect(sasl).expect("connects");
    assert_eq!(client.log_in(&plain("alice", "another")).map(|answer| answer.error_code), Some(0));
    node.kill();
    node.launch();
    let begun = Instant::now();
    lines.write_all(b"two\n").expect("a line");
    while producer.try_wait().expect("a child").is_none() && begun.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(50));
    }
    // Where it did not end by itself, its code says so.
    let _ = producer.kill();
    let output = producer.wait_with_output().expect("ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.lines().last().is_some_and(|line| line.contains("no login at ")), "{said}");
    drop(lines);
    assert!(node.stop_expecting_trouble().success());
}
