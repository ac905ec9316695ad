//! Which ACLs the flags mean, which flags do not go together, what is asked, and the advice over a cluster's ACLs.

use super::advice::Advice;
use super::patterns::{Pattern, binding, operation, pascal, resource};
use super::{ACTIONS, check_together, entries, flags, requests};
use crate::command_line::args::exactly_one;
use crate::fake_broker::{fake_broker, nodes};
use barnabas_client::{Cluster, ClusterConfig};
use barnabas_security::{Operation, ResourceType};
use barnabas_wire::RequestBody;
use barnabas_wire::messages::describe_acls_response::{AclDescription, DescribeAclsResource};
use barnabas_wire::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResponse, DescribeConfigsResult,
};
use barnabas_wire::messages::{DescribeAclsRequest, DescribeAclsResponse};
use clap::ArgMatches;
use std::sync::{Arc, Mutex, OnceLock};

fn matches(words: &str) -> ArgMatches {
    let words = ["acls", "--bootstrap-server", "h:1"].into_iter().chain(words.split_whitespace());
    clap::Command::new("acls").args(flags()).try_get_matches_from(words).expect("flags")
}

/// What is added or removed, a line for each ACL; or why the flags are refused.
fn wanted(words: &str) -> Result<Vec<String>, String> {
    let matches = matches(words);
    let read = || {
        let action = exactly_one(&matches, &ACTIONS)?;
        check_together(&matches, action)?;
        let wanted = entries::wanted(&matches)?;
        let lines = wanted
            .iter()
            .flat_map(|(pattern, entries)| entries.iter().map(move |entry| format!("{pattern} {entry}")));
        Ok(lines.collect())
    };
    read().map_err(|error: crate::ToolError| error.to_string())
}

fn line(kind: &str, name: &str, pattern: &str, entry: [&str; 4]) -> String {
    let [principal, host, operation, permission] = entry;
    format!(
        "ResourcePattern(resourceType={kind}, name={name}, patternType={pattern}) \
         (principal={principal}, host={host}, operation={operation}, permissionType={permission})"
    )
}

#[test]
fn entries_are_every_combination_of_what_is_named() {
    let words = "--add --allow-principal User:a --deny-principal User:b --deny-host 10.0.0.1 --operation Read \
                 --operation describeconfigs --topic t --resource-pattern-type prefixed";
    let expected = [
        line("TOPIC", "t", "PREFIXED", ["User:a", "*", "READ", "ALLOW"]),
        line("TOPIC", "t", "PREFIXED", ["User:a", "*", "DESCRIBE_CONFIGS", "ALLOW"]),
        line("TOPIC", "t", "PREFIXED", ["User:b", "10.0.0.1", "READ", "DENY"]),
        line("TOPIC", "t", "PREFIXED", ["User:b", "10.0.0.1", "DESCRIBE_CONFIGS", "DENY"]),
    ];
    assert_eq!(wanted(words).expect("complete"), expected);
    let all = wanted("--add --allow-principal User:a --cluster --user-principal User:x").expect("complete");
    let expected = [
        line("CLUSTER", "kafka-cluster", "LITERAL", ["User:a", "*", "ALL", "ALLOW"]),
        line("USER", "User:x", "LITERAL", ["User:a", "*", "ALL", "ALLOW"]),
    ];
    assert_eq!(all, expected);
}

#[test]
fn roles_are_kafkas_operations() {
    let both = "--add --allow-principal User:a --producer --consumer --idempotent --topic t --group g --transactional-id x";
    let allowed = |kind, name, operation| line(kind, name, "LITERAL", ["User:a", "*", operation, "ALLOW"]);
    let expected = [
        allowed("TOPIC", "t", "READ"),
        allowed("TOPIC", "t", "WRITE"),
        allowed("TOPIC", "t", "CREATE"),
        allowed("TOPIC", "t", "DESCRIBE"),
        allowed("GROUP", "g", "READ"),
        allowed("CLUSTER", "kafka-cluster", "IDEMPOTENT_WRITE"),
        allowed("TRANSACTIONAL_ID", "x", "WRITE"),
        allowed("TRANSACTIONAL_ID", "x", "DESCRIBE"),
    ];
    assert_eq!(wanted(both).expect("complete"), expected);
}

#[test]
fn flags_that_do_not_go_together_are_refused_in_kafkas_words() {
    for (words, expected) in [
        ("--list --add", "give exactly one of --list, --add"),
        ("--add --topic t --list --allow-principal User:a", "give exactly one of"),
        ("--list --allow-principal User:a", "--list cannot be used together with --allow-principal"),
        ("--add --principal User:a", "The --principal option is only available if --list is set"),
        ("--add --producer --group g", "With --producer you must specify a --topic"),
        (
            "--add --producer --topic t --operation Read",
            "--producer cannot be used together with --operation",
        ),
        ("--add --idempotent --topic t", "The --idempotent option is only available if --producer is set"),
        ("--add --consumer --topic t", "With --consumer you must specify a --topic and a --group"),
        ("--add --consumer --topic t --group g --cluster", "With --consumer you must specify"),
        ("--add --allow-principal User:a", "You must provide at least one resource: --topic <topic>"),
        (
            "--add --allow-principal a --topic t",
            "expected a string in format principalType:principalName but got a.",
        ),
        (
            "--add --allow-principal User:a --topic t --operation Fly",
            "no operation is called 'Fly': TOPIC supports [",
        ),
        (
            "--add --allow-principal User:a --group g --operation Write",
            "ResourceType GROUP only supports operations [READ, DESCRIBE, DELETE, DESCRIBE_CONFIGS, ALTER_CONFIGS, ALL]",
        ),
        ("--who-can Read topic:t --topic t", "--who-can cannot be used together with --topic"),
    ] {
        let refused = wanted(words).expect_err(words);
        assert!(refused.starts_with(expected), "{words}: {refused}");
    }
}

#[test]
fn operations_and_resources_are_read_in_any_case() {
    assert_eq!(operation("describeConfigs"), Some(Operation::DescribeConfigs));
    assert_eq!(operation("TWO_PHASE_COMMIT"), Some(Operation::TwoPhaseCommit));
    assert_eq!(operation("Fly"), None);
    assert_eq!(pascal(Operation::TwoPhaseCommit), "TwoPhaseCommit");
    assert_eq!(resource("Topic:a:b"), Some((ResourceType::Topic, "a:b".to_owned())));
    assert_eq!(resource("transactional_id:x"), Some((ResourceType::TransactionalId, "x".to_owned())));
    assert_eq!(resource("user:User:a"), Some((ResourceType::User, "User:a".to_owned())));
    assert_eq!(resource("cluster"), Some((ResourceType::Cluster, "kafka-cluster".to_owned())));
    for wrong in ["topic", "topic:", "cluster:other", "orders", "planet:earth"] {
        assert_eq!(resource(wrong), None, "{wrong}");
    }
}

/// A cluster with these ACLs: resource type, name, pattern, principal, host, operation, permission.
type Row = (i8, &'static str, i8, &'static str, &'static str, i8, i8);

async fn cluster(rows: &'static [Row]) -> (Cluster, Arc<Mutex<Vec<DescribeAclsRequest>>>) {
    let (address, asked) = (Arc::new(OnceLock::<String>::new()), Arc::new(Mutex::new(Vec::new())));
    let (known, seen) = (address.clone(), asked.clone());
    let says = move |request| match request {
        RequestBody::Metadata(_) => Some(nodes(&[(1, known.get().expect("known"))]).into()),
        RequestBody::DescribeAcls(request) => {
            seen.lock().expect("no panic").push(*request);
            let told = rows.iter().map(|row| DescribeAclsResource {
                resource_type: row.0,
                resource_name: row.1.into(),
                pattern_type: row.2,
                acls: vec![AclDescription {
                    principal: row.3.into(),
                    host: row.4.into(),
                    operation: row.5,
                    permission_type: row.6,
                    ..Default::default()
                }],
                ..Default::default()
            });
            Some(DescribeAclsResponse { resources: told.collect(), ..Default::default() }.into())
        }
        RequestBody::DescribeConfigs(_) => {
            let config = DescribeConfigsResourceResult {
                name: "super.users".into(),
                value: Some("User:admin".into()),
                ..Default::default()
            };
            let told = DescribeConfigsResult { configs: vec![config], ..Default::default() };
            Some(DescribeConfigsResponse { results: vec![told], ..Default::default() }.into())
        }
        other => panic!("{other:?}"),
    };
    address.set(fake_broker(&[(3, 12), (29, 3), (32, 4)], says).await).expect("once");
    (Cluster::new(ClusterConfig::new(address.get().expect("set"), "test")), asked)
}

const ROWS: &[Row] = &[
    (2, "orders", 3, "User:alice", "*", 3, 3),
    (2, "ord", 4, "User:bob", "10.0.0.1", 4, 3),
    (2, "*", 3, "User:bob", "*", 8, 2),
    (2, "ord", 4, "User:alice", "*", 2, 3),
];

async fn advice(action: &str, words: &str) -> Vec<String> {
    let matches = matches(&format!("--{action} {words}"));
    let (mut cluster, _) = cluster(ROWS).await;
    Advice::read(&matches, action).expect("read").lines(&mut cluster).await.expect("answered")
}

#[tokio::test]
async fn filter_without_resource_asks_for_any_name_principal_and_host() {
    let (mut cluster, asked) = cluster(ROWS).await;
    let listed = requests::described(&mut cluster, &[]).await.expect("answered");
    assert_eq!(listed.len(), 3);
    let request = asked.lock().expect("no panic").pop().expect("one");
    let names = (&request.resource_name_filter, &request.principal_filter, &request.host_filter);
    assert_eq!(names, (&None, &None, &None));
    let numbers = [
        request.resource_type_filter,
        request.pattern_type_filter,
        request.operation,
        request.permission_type,
    ];
    assert_eq!(numbers, [1; 4]);
    let pattern = Pattern { resource_type: 2, name: "t".to_owned(), pattern_type: 2 };
    requests::described(&mut cluster, &[pattern]).await.expect("answered");
    let request = asked.lock().expect("no panic").pop().expect("one");
    assert_eq!((request.resource_name_filter.as_deref(), request.pattern_type_filter), (Some("t"), 2));
    assert_eq!((request.principal_filter, request.host_filter), (None, None));
}

#[tokio::test]
async fn explanation_names_the_deciding_acl_or_the_missing_one() {
    let allowed = advice("explain", "User:alice read topic:orders 10.0.0.9").await;
    assert_eq!(allowed[0], "ALLOWED: User:alice, READ on TOPIC:orders from 10.0.0.9");
    assert!(allowed[1].contains("name=orders, patternType=LITERAL"), "{allowed:?}");
    let denied = advice("explain", "User:bob describe topic:orders").await;
    assert!(denied[0].starts_with("DENIED: User:bob, DESCRIBE on TOPIC:orders from any host"), "{denied:?}");
    let removal = "barnabas acls --bootstrap-server h:1 --remove --deny-principal User:bob --operation Describe --topic '*'";
    assert!(denied[1].ends_with(removal), "{denied:?}");
    assert!(denied[2].starts_with("ACLs of single hosts were not counted"), "{denied:?}");
    let missing = advice("explain", "User:carl Write topic:orders 10.0.0.1").await;
    let addition = "barnabas acls --bootstrap-server h:1 --add --allow-principal User:carl --operation Write --topic orders";
    assert!(missing[1].ends_with(addition), "{missing:?}");
    // What the broker does not list is not set.
    assert_eq!(missing.len(), 2, "{missing:?}");
    let admin = advice("explain", "User:admin Alter cluster 10.0.0.1").await;
    assert_eq!(admin[1], "The principal is one of super.users: no ACL counts.");
}

#[tokio::test]
async fn who_can_lists_principals_with_their_hosts() {
    let lines = advice("who-can", "Write topic:orders").await;
    assert_eq!(lines[..2], ["WRITE on TOPIC:orders", "Allowed:"]);
    assert!(lines[2].starts_with("\tUser:alice from * by "), "{lines:?}");
    assert!(lines[3].starts_with("\tUser:bob from 10.0.0.1 by "), "{lines:?}");
    assert_eq!(lines[4], "Super users may do everything: User:admin");
}

#[tokio::test]
async fn shadowed_acls_are_shown_with_the_one_that_covers_them() {
    let lines = advice("shadowed", "").await;
    let (mut cluster, _) = cluster(ROWS).await;
    let acls = requests::acls(&mut cluster, &[]).await.expect("answered");
    let acls: Vec<_> = acls.values().collect();
    let expected = format!("{}\n\thas no effect because of\n\t{}", binding(acls[0]), binding(acls[3]));
    assert_eq!(lines, [expected]);
}

#[test]
fn listed_acls_are_rows_of_a_table() {
    let pattern = Pattern { resource_type: 2, name: "orders".to_owned(), pattern_type: 3 };
    let entry = |principal: &str| super::Entry {
        principal: principal.to_owned(),
        host: "*".to_owned(),
        operation: 3,
        permission: 3,
    };
    let listed = [(pattern, [entry("User:a"), entry("User:b")].into())].into();
    let table = super::table(&listed, |entry| entry.principal == "User:b");
    assert_eq!(table.lines()[1..], ["TOPIC orders LITERAL User:b * READ ALLOW"]);
}
