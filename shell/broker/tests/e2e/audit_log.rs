//! The audit log: who logged in, who was denied, who changed what; and shadow mode, which only reports.

use crate::authorization::{AUTHORIZER, OPEN, allow, forwarded};
use crate::harness::patience::until;
use crate::harness::sasl::{node, plain};
use crate::harness::{Client, TempDir, TestNode, metric};
use barnabas_wire::messages::alter_user_scram_credentials_request::ScramCredentialUpsertion;
use barnabas_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use barnabas_wire::messages::{
    AlterUserScramCredentialsRequest, DeleteTopicsRequest, IncrementalAlterConfigsRequest, MetadataRequest,
    ResponseBody,
};
use bytes::Bytes;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const USERS: [(&str, &str); 2] = [("alice", "alice-secret"), ("bob", "bob-secret")];

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The first line in which all of these stand.
fn find(path: &Path, parts: &[(&str, &str)]) -> Value {
    let fits = |line: &Value| parts.iter().all(|(name, value)| line[*name] == *value);
    until(&format!("an audit line with {parts:?}"), || lines(path).into_iter().find(|line| fits(line)))
}

fn set(resource_type: i8, name: &str, key: &str, value: &str) -> IncrementalAlterConfigsRequest {
    let config = AlterableConfig { name: key.into(), value: Some(value.into()), ..Default::default() };
    let resource = AlterConfigsResource {
        resource_type,
        resource_name: name.into(),
        configs: vec![config],
        ..Default::default()
    };
    IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() }
}

fn set_scram_user(client: &mut Client, name: &str) {
    let upsertion = ScramCredentialUpsertion {
        name: name.into(),
        mechanism: 2,
        iterations: 4096,
        salt: Bytes::from_static(b"carol-secret"),
        salted_password: Bytes::from_static(&[b's'; 64]),
        ..Default::default()
    };
    let request = AlterUserScramCredentialsRequest { upsertions: vec![upsertion], ..Default::default() };
    client.call(request, 0);
}

#[test]
fn logins_denials_and_changes_are_in_the_audit_log() {
    let dir = TempDir::new();
    let path = dir.path().join("audit.log");
    let file = format!("audit.log.file={}", path.display());
    let more = [AUTHORIZER, "super.users=User:alice;User:ANONYMOUS", &file];
    let (mut node, sasl) = node("PLAIN", &USERS, &more);
    node.launch();

    let mut alice = Client::logged_in(sasl, &plain("alice", "alice-secret"));
    let login = find(&path, &[("event", "login"), ("principal", "User:alice")]);
    assert_eq!((&login["mechanism"], &login["host"]), (&"PLAIN".into(), &"127.0.0.1".into()), "{login}");
    assert_eq!((&login["listener"], &login["outcome"]), (&"SASL".into(), &"success".into()), "{login}");
    assert!(login["time"].as_str().is_some_and(|time| time.ends_with('Z')) && login["node"] == 1, "{login}");
    let mode = std::fs::metadata(&path).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let mut mallory = Client::try_connect(sasl).expect("connects");
    mallory.log_in(&plain("bob", "wrong")).expect("an answer");
    let failed = find(&path, &[("event", "login_failed"), ("principal", "User:bob")]);
    assert!(failed["outcome"] == "failure" && failed["reason"].is_string(), "{failed}");

    alice.create_topic("orders", 2, &[("retention.ms", "1000")]);
    let created = find(&path, &[("event", "change"), ("request", "CreateTopics"), ("resource", "orders")]);
    assert_eq!((&created["principal"], &created["outcome"]), (&"User:alice".into(), &"success".into()));
    assert!(created["changes"].as_array().is_some_and(|all| all.len() >= 3), "{created}");

    alice.call(set(2, "orders", "retention.ms", "2000"), 1);
    let altered = find(&path, &[("request", "IncrementalAlterConfigs")]);
    let expected = serde_json::json!([{"name": "retention.ms", "from": "1000", "to": "2000"}]);
    assert_eq!(altered["changes"], expected, "{altered}");
    let name = "listener.name.sasl.plain.sasl.jaas.config";
    let jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required user_alice=\"alice-secret\" \
                user_bob=\"bob-secret\";";
    alice.call(set(4, "1", name, jaas), 1);
    let secret = find(&path, &[("resource_type", "BROKER")]);
    assert_eq!(secret["changes"][0]["to"], "[hidden]", "{secret}");

    set_scram_user(&mut alice, "carol");
    find(&path, &[("resource_type", "SCRAM_CREDENTIAL"), ("resource", "carol"), ("outcome", "success")]);

    let mut bob = Client::logged_in(sasl, &plain("bob", "bob-secret"));
    let request = DeleteTopicsRequest { topic_names: vec!["orders".into()], ..Default::default() };
    bob.call(request, 5);
    let denied = find(&path, &[("event", "denied"), ("principal", "User:bob"), ("operation", "DELETE")]);
    assert_eq!(
        (&denied["resource"], &denied["request"]),
        (&"orders".into(), &"DeleteTopics".into()),
        "{denied}"
    );
    find(&path, &[("event", "change"), ("principal", "User:bob"), ("outcome", "TOPIC_AUTHORIZATION_FAILED")]);

    assert!(node.stop_expecting_trouble().success());
    let text = std::fs::read_to_string(&path).expect("the file");
    for secret in ["alice-secret", "bob-secret", "carol-secret", "ssssssss"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn forwarded_change_names_the_client_and_the_broker() {
    let dir = TempDir::new();
    let path = dir.path().join("audit.log");
    let file = format!("audit.log.file={}", path.display());
    let mut node = TestNode::start_with(&[OPEN[0], OPEN[1], &file]);
    let mut controller = node.controller();
    assert_eq!(forwarded(&mut controller, "alice", "t"), (0, Some(0)));
    let change = find(&path, &[("event", "change"), ("resource", "t")]);
    assert_eq!(
        (&change["principal"], &change["host"]),
        (&"User:alice".into(), &"10.0.0.7".into()),
        "{change}"
    );
    assert_eq!((&change["via"], &change["client_id"]), (&"User:ANONYMOUS".into(), &"c".into()), "{change}");
    assert!(node.stop_expecting_trouble().success());
}

#[test]
fn audit_log_keeps_what_was_there_and_its_bounds() {
    let dir = TempDir::new();
    let path = dir.path().join("audit.log");
    let file = format!("audit.log.file={}", path.display());
    let bounds = ["audit.log.file.bytes.max=4096", "audit.log.files.max=2", "audit.log.events=changes"];
    std::fs::write(&path, "{\"before\":true}\n").expect("written");
    let mut node = TestNode::start_with(&[&file, bounds[0], bounds[1], bounds[2]]);
    let mut client = node.client();
    client.create_topic("first", 1, &[]);
    find(&path, &[("resource", "first")]);
    assert_eq!(lines(&path)[0]["before"], true);
    for round in 0..40 {
        client.call(set(2, "first", "retention.ms", &format!("{}", 1000 + round)), 1);
    }
    assert!(node.stop().success());
    let before = dir.path().join("audit.log.1");
    for file in [&path, &before] {
        let bytes = std::fs::metadata(file).expect("there").len();
        assert!((1..=4096).contains(&bytes), "{bytes}");
    }
    assert!(!dir.path().join("audit.log.2").exists());
    assert_eq!(lines(&path).last().expect("a line")["changes"][0]["to"], "1039");
}

#[test]
fn audit_log_that_cannot_be_written_refuses_the_start() {
    let dir = TempDir::new();
    let missing = format!("audit.log.file={}", dir.path().join("none/audit.log").display());
    let folder = format!("audit.log.file={}", dir.path().display());
    let there = format!("audit.log.file={}", dir.path().join("audit.log").display());
    for (overrides, named) in [
        (vec![&*missing], "is no directory: create it"),
        (vec![&*folder], "is no file"),
        (vec![&*there, "audit.log.events=login"], "is none of logins, failed-logins, denials, changes"),
    ] {
        let node = TestNode::new(None, &overrides);
        let output = node.command().output().expect("runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(named), "{said}");
        assert!(!node.data().exists());
    }
}

#[test]
fn shadow_mode_answers_as_without_acls_and_reports() {
    let dir = TempDir::new();
    let path = dir.path().join("audit.log");
    let file = format!("audit.log.file={}", path.display());
    let port = crate::harness::free_port();
    let metrics = format!("metrics.listener=127.0.0.1:{port}");
    let shadow = [AUTHORIZER, "super.users=User:admin", "authorizer.shadow=true", &file, &metrics];
    let mut node = TestNode::start_with(&shadow);
    assert!(node.log().contains("authorizer.shadow is true: no request is denied"), "{}", node.log());
    let mut client = node.client();
    // ACLs can be made before they are enforced.
    client.create_topic("orders", 1, &[]);
    allow(&mut client, &[(2, "orders", 3, "User:alice", 3)]);
    let all =
        MetadataRequest { topics: None, include_topic_authorized_operations: true, ..Default::default() };
    let ResponseBody::Metadata(told) = client.call(all, 12) else { panic!("another response") };
    let topic = told.topics.iter().find(|topic| topic.name.as_deref() == Some("orders")).expect("it is seen");
    // READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
    assert_eq!(topic.topic_authorized_operations, 0b1101_1111_1000);
    for (operation, resource) in [("CREATE", "orders"), ("ALTER", "kafka-cluster")] {
        let line =
            find(&path, &[("event", "would_be_denied"), ("operation", operation), ("resource", resource)]);
        assert_eq!(
            (&line["outcome"], &line["principal"]),
            (&"success".into(), &"User:ANONYMOUS".into()),
            "{line}"
        );
    }
    client.create_topic("ended", 1, &[]);
    let request = DeleteTopicsRequest { topic_names: vec!["ended".into()], ..Default::default() };
    let ResponseBody::DeleteTopics(response) = client.call(request, 5) else { panic!("another response") };
    assert_eq!(response.responses[0].error_code, 0);
    find(&path, &[("event", "would_be_denied"), ("operation", "DELETE"), ("resource", "ended")]);
    let log = node.log();
    assert!(log.contains("would be denied: no ACL allows it. To allow it: barnabas acls --add"), "{log}");
    assert!(metric(port, "barnabas_audit_events_total").is_some_and(|events| events >= 3.0));
    assert_eq!(metric(port, "barnabas_audit_events_dropped_total"), Some(0.0));
    assert!(node.stop_expecting_trouble().success());

    // The same ACLs, enforced.
    node.set_overrides(&[shadow[0], shadow[1]]);
    node.launch();
    assert!(client_denied(&mut node.client()));
    assert!(node.stop_expecting_trouble().success());
}

fn client_denied(client: &mut Client) -> bool {
    let request = DeleteTopicsRequest { topic_names: vec!["orders".into()], ..Default::default() };
    let ResponseBody::DeleteTopics(response) = client.call(request, 5) else { panic!("another response") };
    response.responses[0].error_code == 29
}
