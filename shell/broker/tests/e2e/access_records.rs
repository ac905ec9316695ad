//! ACLs, client quotas and SCRAM credentials as the cluster keeps them: altered by the tool or by a client, told by any
//! broker, there after a restart.

use crate::harness::cluster::{Cluster, eventually};
use crate::harness::quorum::random_uuid;
use crate::harness::{Client, TestNode, binary, free_port};
use barnabas_wire::messages::{
    CreateAclsRequest, DeleteAclsRequest, DescribeUserScramCredentialsRequest, ResponseBody,
};
use std::collections::BTreeSet;

fn configs(node: &TestNode, words: &str) -> Result<Vec<String>, String> {
    let server = format!("127.0.0.1:{}", node.port);
    let arguments = ["configs", "--bootstrap-server", &server];
    let output = binary().args(arguments).args(words.split_whitespace()).output().expect("runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout).lines().map(str::to_owned).collect()),
        false => Err(text(&output.stderr)),
    }
}

fn told(node: &TestNode, words: &str) -> Vec<String> {
    configs(node, words).unwrap_or_else(|error| panic!("{words}: {error}"))
}

const ALICE: &str = "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=8192";

#[test]
fn quota_and_credential_live_from_the_first_alteration_to_the_last() {
    let mut node = TestNode::start();
    told(&node, "--alter --user alice --add-config producer_byte_rate=1000,request_percentage=12.5");
    told(&node, "--alter --user alice --client-defaults --add-config consumer_byte_rate=2000");
    told(&node, "--alter --user alice --add-config SCRAM-SHA-256=[iterations=8192,password=secret]");
    let quotas =
        "Quota configs for user-principal 'alice' are producer_byte_rate=1000.0, request_percentage=12.5";
    assert_eq!(told(&node, "--describe --user alice"), [quotas, ALICE]);
    let refused = configs(&node, "--alter --user alice --add-config producer_byte_rate=1.5").unwrap_err();
    assert!(
        refused.contains("INVALID_REQUEST: producer_byte_rate cannot be a fractional value"),
        "{refused}"
    );
    let refused = configs(&node, "--alter --user alice --delete-config SCRAM-SHA-512").unwrap_err();
    assert!(refused.contains("RESOURCE_NOT_FOUND"), "{refused}");

    told(&node, "--alter --user alice --delete-config producer_byte_rate,request_percentage");
    told(&node, "--alter --user alice --delete-config SCRAM-SHA-256");
    assert_eq!(told(&node, "--describe --user alice"), [""; 0]);
    assert!(node.stop().success());
}

#[test]
fn acl_without_an_authorizer_is_refused() {
    let mut node = TestNode::start();
    let mut client = node.client();
    let request = CreateAclsRequest { creations: vec![Default::default()], ..Default::default() };
    let ResponseBody::CreateAcls(response) = client.call(request, 3) else { panic!("another response") };
    assert_eq!(response.results.iter().map(|result| result.error_code).collect::<Vec<_>>(), [54]);
    let request = DeleteAclsRequest { filters: vec![Default::default()], ..Default::default() };
    let ResponseBody::DeleteAcls(response) = client.call(request, 3) else { panic!("another response") };
    assert_eq!(response.filter_results.iter().map(|result| result.error_code).collect::<Vec<_>>(), [54]);
    assert!(node.stop().success());
}

fn snapshots(node: &TestNode) -> BTreeSet<String> {
    let directory = std::fs::read_dir(node.data().join("__cluster_metadata-0")).expect("read");
    let names = directory.map(|entry| entry.expect("read").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".checkpoint")).collect()
}

fn users(client: &mut Client) -> Vec<(String, i32)> {
    let answer = client.call(DescribeUserScramCredentialsRequest::default(), 0);
    let ResponseBody::DescribeUserScramCredentials(response) = answer else { panic!("another response") };
    let users = response
        .results
        .iter()
        .flat_map(|user| user.credential_infos.iter().map(|info| (user.user.to_string(), info.iterations)));
    users.collect()
}

#[test]
fn credential_survives_a_restart_and_a_snapshot() {
    let mut node = TestNode::start_with(&["metadata.log.max.record.bytes.between.snapshots=2000"]);
    told(&node, "--alter --user alice --add-config SCRAM-SHA-256=[iterations=8192,password=secret]");
    told(&node, "--alter --user bob --add-config producer_byte_rate=1000");
    let alice = [("alice".to_owned(), 8192)];
    assert_eq!(users(&mut node.client()), alice);
    assert!(node.stop().success());
    node.launch();
    assert_eq!(users(&mut node.client()), alice, "from the log");

    // Snapshots follow a growing log; a start replays the log from the newest snapshot on.
    let before = snapshots(&node);
    let mut value = 1;
    eventually("a snapshot was taken", || {
        value += 1;
        node.client().create_topic(&format!("t{value}"), 5, &[]);
        snapshots(&node).difference(&before).count() > 0
    });
    node.kill();
    node.launch();
    assert_eq!(users(&mut node.client()), alice, "from the snapshot");
    let bob = ["Quota configs for user-principal 'bob' are producer_byte_rate=1000.0"];
    assert_eq!(told(&node, "--describe --user bob"), bob);
    // The password is in no file and no line of the log.
    assert!(!node.log().contains("secret"));
    assert!(node.stop_expecting_trouble().success());
}

#[test]
fn any_broker_forwards_to_the_controller_and_tells_what_it_decided() {
    let cluster = Cluster::start("");
    for (id, node) in &cluster.nodes {
        told(node, &format!("--alter --user user{id} --add-config producer_byte_rate=1000"));
        told(node, &format!("--alter --user user{id} --add-config SCRAM-SHA-512=[password=secret]"));
    }
    let names: Vec<_> = (1..=3).map(|id| (format!("user{id}"), 4096)).collect();
    for node in cluster.nodes.values() {
        eventually("the broker's image has them", || users(&mut node.client()) == names);
        eventually("the broker's image has them", || told(node, "--describe --entity-type users").len() == 6);
    }
    cluster.stop();
}

#[test]
fn cluster_begins_with_the_credentials_that_format_was_given() {
    let credential = "SCRAM-SHA-256=[name=alice,password=secret,iterations=8192]";
    let (port, controller) = (free_port(), free_port());
    let mut node = TestNode::of_file("", port);
    let settings = format!(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n\
         listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\nlog.dirs={}\n",
        node.data().display()
    );
    let file = node.dir.path().join("server.properties");
    std::fs::write(&file, settings).expect("written");
    let file = file.display().to_string();
    let format = |more: &[&str]| {
        let mut command = binary();
        command.args(["storage", "format", "--standalone", "-t", &random_uuid(), "-c", &file]);
        command.args(more).output().expect("runs")
    };
    let refused = format(&["-S", credential, "--add-scram", "SCRAM-SHA-1=[name=a,password=secret]"]);
    assert!(!refused.status.success());
    let old = format(&["-S", credential, "--release-version", "3.5-IV1"]);
    assert!(String::from_utf8_lossy(&old.stderr).contains("3.5-IV2"), "{old:?}");
    let scram = node.dir.path().join("users.scram");
    let missing = format(&["--add-scram-file", &scram.display().to_string()]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot be read"), "{missing:?}");
    std::fs::write(&scram, "\n").expect("written");
    let empty = format(&["--add-scram-file", &scram.display().to_string()]);
    assert!(String::from_utf8_lossy(&empty.stderr).contains("holds no credential"), "{empty:?}");
    std::fs::write(&scram, "SCRAM-SHA-512=[name=bob,password=secret]\n\nSCRAM-SHA-512=[name=eve,password=x]")
        .expect("written");
    let done = format(&["-S", credential, "--add-scram-file", &scram.display().to_string()]);
    assert!(done.status.success(), "{done:?}");
    node.set_file(&file, (port, controller));
    node.launch();
    let all = [("alice".to_owned(), 8192), ("bob".to_owned(), 4096), ("eve".to_owned(), 4096)];
    assert_eq!(users(&mut node.client()), all);
    node.kill();
    node.launch();
    assert_eq!(users(&mut node.client()), all);
    assert!(node.stop_expecting_trouble().success());
}
