//! A start that is refused leaves the disk as it was: nothing is formatted, made or locked for it.

use crate::harness::quorum::{format, prepared, random_uuid};
use crate::harness::{TempDir, TestNode, binary, free_port};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Everything below a directory: when it was last changed, and a file's contents.
fn everything(below: &Path) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let changed = |path: &Path| std::fs::metadata(path).expect("there").modified().expect("a time");
    for entry in std::fs::read_dir(below).expect("a directory").map(|entry| entry.expect("an entry")) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(everything(&path));
            found.insert(path.clone(), (changed(&path), Vec::new()));
        } else {
            let text = std::fs::read(&path).expect("read");
            found.insert(path.clone(), (changed(&path), text));
        }
    }
    found
}

/// Runs a node without a file that is refused; returns what it says.
fn refused(log_dirs: &str, overrides: &[&str]) -> String {
    let listeners =
        format!("listeners=PLAINTEXT://127.0.0.1:{},CONTROLLER://127.0.0.1:{}", free_port(), free_port());
    let log_dirs = format!("log.dirs={log_dirs}");
    let mut command = binary();
    command.arg("server");
    for text in [&*listeners, &log_dirs].into_iter().chain(overrides.iter().copied()) {
        command.args(["--override", text]);
    }
    let output = command.output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{overrides:?}: {said}");
    said
}

/// Overrides, and what the refusal names.
fn refusals(taken: u16) -> Vec<(Vec<String>, &'static str)> {
    let taken_by =
        |key: &str| format!("{key}=PLAINTEXT://127.0.0.1:{taken},CONTROLLER://127.0.0.1:{}", free_port());
    let one = |text: &str| vec![text.to_owned()];
    vec![
        (one("log.retention.hours=many"), "log.retention.hours"),
        (one("compression.type=bzip2"), "compression.type"),
        (one("log.roll.ms=0"), "Invalid value 0 for configuration log.roll.ms"),
        (one("log.retention.hours=0"), "log.retention.hours: 0 must be unlimited (-1), or at least 1"),
        (one("early.start.listeners=OTHER"), "early.start.listeners: contains listener OTHER"),
        (one("replica.lag.time.max.ms=100"), "replica.fetch.wait.max.ms"),
        (
            vec!["log.cleaner.threads=2".into(), "log.cleaner.dedupe.buffer.size=2097152".into()],
            "log.cleaner.threads=2",
        ),
        (one("log.cache.bytes=9000000000000000000"), "log.cache.bytes"),
        (one("log.journal.bytes=9000000000000000000"), "log.journal.bytes"),
        (one("max.connections.per.ip.overrides=somewhere"), "max.connections.per.ip.overrides"),
        (vec![taken_by("listeners")], "in use"),
        // An address for documentation, which no machine has (RFC 5737).
        (
            vec![format!(
                "listeners=PLAINTEXT://192.0.2.1:{},CONTROLLER://127.0.0.1:{}",
                free_port(),
                free_port()
            )],
            "No interface of this machine has this address",
        ),
        (
            vec![format!("listeners=PLAINTEXT://127.0.0.1:{},CONTROLLER://127.0.0.1:{taken}", free_port())],
            "in use",
        ),
        (vec![format!("metrics.listener=127.0.0.1:{taken}")], "metrics.listener"),
        (
            vec![format!(
                "listeners=SASL_SSL://127.0.0.1:{},CONTROLLER://127.0.0.1:{}",
                free_port(),
                free_port()
            )],
            "listener.security.protocol.map: holds no protocol for",
        ),
        (one("authorizer.class.name=kafka.security.authorizer.AclAuthorizer"), "authorizer.class.name"),
        (
            vec![
                "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer".to_owned(),
                "super.users=admin".to_owned(),
            ],
            "super.users",
        ),
        (one("create.topic.policy.class.name=org.example.TwoReplicas"), "create.topic.policy.class.name"),
        (
            one("listener.security.protocol.map=PLAINTEXT:SASL_SSL,CONTROLLER:PLAINTEXT"),
            "listener.name.plaintext.gssapi.sasl.jaas.config: is not set",
        ),
        // A listener with TLS that has no key.
        (one("listener.security.protocol.map=PLAINTEXT:SSL,CONTROLLER:PLAINTEXT"), "ssl.keystore"),
        (
            vec![format!(
                "listeners=PLAINTEXT://0.0.0.0:{},CONTROLLER://127.0.0.1:{}",
                free_port(),
                free_port()
            )],
            "Example: insecure.listeners.allowed=true",
        ),
        (one("amqp.listener=0.0.0.0:0"), "amqp.listener (0.0.0.0:"),
        (one("console.listener=0.0.0.0:0"), "console.listener (0.0.0.0:"),
        (one("security.inter.broker.protocol=SASL_SSL"), "inter.broker.listener.name: SASL_SSL is not among"),
    ]
}

#[test]
fn refused_start_makes_no_directory() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").port();
    let root = TempDir::new();
    let (absent, empty) = (root.path().join("absent"), root.path().join("empty"));
    std::fs::create_dir(&empty).expect("made");
    let before = everything(root.path());
    for (overrides, named) in refusals(taken) {
        let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
        for place in [absent.display().to_string(), format!("{},{}", empty.display(), absent.display())] {
            let said = refused(&place, &overrides);
            assert!(said.contains(named), "{overrides:?}: {said}");
            assert_eq!(everything(root.path()), before, "{overrides:?}");
        }
    }
    // The same directories are formatted by a start that nothing refuses.
    let log_dirs = format!("log.dirs={},{}", empty.display(), absent.display());
    let mut node = TestNode::start_with(&[&log_dirs]);
    assert!(node.stop().success());
    assert!([empty, absent].iter().all(|dir| dir.join("meta.properties").is_file()));
}

#[test]
fn refused_start_leaves_a_formatted_directory_as_it_was() {
    let holder = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = holder.local_addr().expect("an address").port();
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 3, &[]);
    assert!(node.stop().success());
    let before = everything(&node.data());
    // The second directory is new: it would be formatted beside the first.
    let more = node.dir.path().join("more");
    for (overrides, named) in refusals(taken) {
        let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
        let said = refused(&format!("{},{}", node.data().display(), more.display()), &overrides);
        assert!(said.contains(named), "{overrides:?}: {said}");
        assert_eq!(everything(&node.data()), before, "{overrides:?}");
        assert!(!more.exists(), "{overrides:?}");
    }
    let said = refused(&node.data().display().to_string(), &["node.id=7"]);
    assert!(said.contains("node.id: is 7"), "{said}");
    assert_eq!(everything(&node.data()), before);
    node.launch();
    assert!(node.stop().success());
}

#[test]
fn second_start_names_the_directory_in_use_before_the_port() {
    let node = TestNode::start();
    let output = node.command().output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let wanted = format!("{} is in use by another process", node.data().display());
    assert!(!output.status.success() && said.contains(&wanted), "{said}");
    let mut node = node;
    assert!(node.stop().success());
}

#[test]
fn unformatted_directory_is_not_made_by_a_refused_start() {
    let ports = (free_port(), free_port());
    let voters = format!("controller.quorum.voters=1@127.0.0.1:{}", ports.1);
    let mut node = prepared(None, 1, "broker,controller", ports, &random_uuid(), &voters, &[]);
    std::fs::remove_dir_all(node.data()).expect("removed");
    let before = everything(node.dir.path());
    node.launch_unawaited();
    assert!(!node.wait().success());
    assert!(node.log().contains("it is not formatted"), "{}", node.log());
    let mut after = everything(node.dir.path());
    after.retain(|path, _| !path.ends_with("stderr.log"));
    assert_eq!(after, before);
    // A tool that refuses to format leaves it too.
    let (ok, said) = format(&node.dir.path().join("server.properties"), "no-id", &[]);
    assert!(!ok && said.contains("no-id"), "{said}");
    assert!(!node.data().exists());
}

#[test]
fn value_that_kafka_starts_with_is_warned_of() {
    let odd = ["default.replication.factor=0", "log.retention.hours=-5", "broker.session.timeout.ms=3000"];
    // The controllers' listener opens with the others.
    let mut node = TestNode::start_with(&[odd[0], odd[1], odd[2], "early.start.listeners=PLAINTEXT"]);
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    assert!(node.stop_expecting_trouble().success());
    for key in
        ["default.replication.factor: 0", "log.retention.hours: -5", "broker.heartbeat.interval.ms: 2000"]
    {
        let wanted = format!("WARN {key} is ");
        assert!(node.log().contains(&wanted), "{}", node.log());
    }
}

#[test]
fn misspelled_key_that_protects_refuses_the_start() {
    let root = TempDir::new();
    let place = root.path().join("data").display().to_string();
    let class = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
    for (given, meant) in [
        (format!("authorizer.class.nme={class}"), "authorizer.class.name"),
        (format!("authorizer.class={class}"), "authorizer.class.name"),
        (
            "listener.name.plaintext.ssl.client.atuh=required".to_owned(),
            "listener.name.plaintext.ssl.client.auth",
        ),
    ] {
        let said = refused(&place, &[&given]);
        assert!(said.contains(&format!("and {meant} would protect this node: correct the name")), "{said}");
    }
    assert!(!root.path().join("data").exists());
}

#[test]
fn protection_that_no_listener_uses_is_warned_of() {
    let mut node = TestNode::start_with(&["ssl.client.auth=required", "sasl.enabled.mechanisms=GSSAPI"]);
    assert!(node.stop_expecting_trouble().success());
    for part in [
        "ssl.client.auth is required and has no effect",
        "sasl.enabled.mechanisms is GSSAPI and has no effect",
    ] {
        assert!(node.log().contains(part), "{}", node.log());
    }
}

#[test]
fn setting_that_protects_nothing_is_warned_of() {
    let mut node =
        TestNode::start_with(&["super.users=User:admin", "security.providers=org.example.Provider"]);
    assert!(node.stop_expecting_trouble().success());
    for key in ["super.users", "security.providers"] {
        let wanted = format!("WARN {key} has no effect:");
        assert!(node.log().contains(&wanted), "{}", node.log());
    }
}

#[test]
fn keytab_that_has_no_key_of_the_broker_is_refused() {
    let root = TempDir::new();
    let keytab = root.path().join("kafka.keytab");
    let module = format!(
        "listener.name.plaintext.gssapi.sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required \
         useKeyTab=true storeKey=true keyTab=\"{}\" principal=\"kafka/localhost@EXAMPLE.COM\";",
        keytab.display()
    );
    let data = root.path().join("data").display().to_string();
    let start = || {
        let map = "listener.security.protocol.map=PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT";
        refused(&data, &[map, "sasl.enabled.mechanisms=GSSAPI", "sasl.kerberos.service.name=kafka", &module])
    };
    let said = start();
    assert!(said.contains("kafka.keytab cannot be read: No such file"), "{said}");
    std::fs::write(&keytab, [5, 2]).expect("written");
    let said = start();
    assert!(said.contains("has no key of kafka/localhost@EXAMPLE.COM"), "{said}");
    assert!(!root.path().join("data").exists());
}
