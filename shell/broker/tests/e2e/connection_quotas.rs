//! Quotas on new connections: an address over its quota is refused service, and a listener over its rate makes new
//! connections wait. And the limits on their number, which change while the node runs.

use crate::harness::cluster::eventually;
use crate::harness::{Client, TestNode, binary, free_port, metric};
use barnabas_wire::messages::alter_client_quotas_request::{EntityData, EntryData, OpData};
use barnabas_wire::messages::{
    AlterClientQuotasRequest, ApiVersionsRequest, DescribeClientQuotasRequest, ResponseBody,
};

/// Three windows of a second: what a rate allows in two seconds is free at once.
const WINDOWS: &str = "quota.window.num=3";
const SERVER: &str = "kafka_server_socket_server_metrics";
const COUNT: usize = 24;

fn configs(node: &TestNode, words: &str) -> String {
    let server = format!("127.0.0.1:{}", node.port);
    let arguments = ["configs", "--bootstrap-server", &server];
    let output = binary().args(arguments).args(words.split_whitespace()).output().expect("runs");
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Of so many new connections from this address, those that get an answer; the others are closed.
fn answered(node: &TestNode) -> usize {
    let mut clients: Vec<Client> = (0..COUNT).map(|_| node.client()).collect();
    clients.iter_mut().filter_map(|client| client.try_call(ApiVersionsRequest::default(), 0)).count()
}

/// By a connection that is open already: new ones may be refused.
fn set_quota(client: &mut Client, address: Option<&str>, per_second: Option<f64>) {
    let entity =
        EntityData { entity_type: "ip".into(), entity_name: address.map(Into::into), ..Default::default() };
    let op = OpData {
        key: "connection_creation_rate".into(),
        value: per_second.unwrap_or_default(),
        remove: per_second.is_none(),
        ..OpData::default()
    };
    let entry = EntryData { entity: vec![entity], ops: vec![op], ..EntryData::default() };
    let request = AlterClientQuotasRequest { entries: vec![entry], ..AlterClientQuotasRequest::default() };
    let ResponseBody::AlterClientQuotas(response) = client.call(request, 1) else {
        panic!("another response")
    };
    assert_eq!(response.entries[0].error_code, 0, "{:?}", response.entries[0].error_message);
}

#[test]
fn address_over_its_quota_gets_no_service() {
    let metrics = free_port();
    let mut node = TestNode::start_with(&[WINDOWS, &format!("metrics.listener=127.0.0.1:{metrics}")]);
    let mut client = node.client();
    assert_eq!(answered(&node), COUNT, "no quota");

    set_quota(&mut client, Some("127.0.0.1"), Some(2.0));
    let served = answered(&node);
    assert!(served < COUNT, "all of {COUNT} were served");
    let refused = || metric(metrics, "barnabas_connections_refused_total");
    assert!(refused().is_some_and(|count| count >= (COUNT - served) as f64), "{:?}", refused());
    let waits = format!("{SERVER}_ip_connection_accept_throttle_time{{listener=\"PLAINTEXT\"}}");
    assert!(metric(metrics, &waits).is_some_and(|wait| wait > 0.0), "{:?}", metric(metrics, &waits));
    let rate = format!("{SERVER}_connection_accept_rate{{ip=\"127.0.0.1\"}}");
    assert!(metric(metrics, &rate).is_some(), "the rate of the address is shown");

    // Its own quota counts, not the default.
    set_quota(&mut client, None, Some(1.0));
    set_quota(&mut client, Some("127.0.0.1"), Some(1000.0));
    assert_eq!(answered(&node), COUNT);
    set_quota(&mut client, Some("127.0.0.1"), None);
    assert!(answered(&node) < COUNT, "the default applies");
    set_quota(&mut client, None, None);
    assert_eq!(answered(&node), COUNT, "no quota any more");
    assert!(node.stop().success());
}

/// The node's own bound is for addresses without a quota.
#[test]
fn quota_of_an_address_replaces_the_nodes_own_bound() {
    let mut node = TestNode::start_with(&[WINDOWS, "connections.per.ip.second.max=8"]);
    let mut client = node.client();
    set_quota(&mut client, Some("127.0.0.1"), Some(1000.0));
    assert_eq!(answered(&node), COUNT);
    assert!(node.stop().success());
}

#[test]
fn quota_of_an_address_is_set_and_shown_by_the_tool() {
    let mut node = TestNode::start();
    configs(
        &node,
        "--alter --entity-type ips --entity-name 10.1.2.3 --add-config connection_creation_rate=7",
    );
    configs(&node, "--alter --ip-defaults --add-config connection_creation_rate=900");
    let told = configs(&node, "--describe --entity-type ips");
    let mut told: Vec<&str> = told.lines().collect();
    told.sort_unstable();
    let expected = [
        "Quota configs for ip '10.1.2.3' are connection_creation_rate=7.0",
        "Quota configs for the default ip are connection_creation_rate=900.0",
    ];
    assert_eq!(told, expected);
    configs(&node, "--alter --ip 10.1.2.3 --delete-config connection_creation_rate");
    configs(&node, "--alter --ip-defaults --delete-config connection_creation_rate");
    let all = DescribeClientQuotasRequest::default();
    let ResponseBody::DescribeClientQuotas(response) = node.client().call(all, 1) else {
        panic!("another response")
    };
    assert_eq!(response.entries.map(|entries| entries.len()), Some(0));
    assert!(node.stop().success());
}

/// They wait, and are served.
#[test]
fn connections_over_the_rate_of_a_listener_wait() {
    let metrics = free_port();
    let mut node = TestNode::start_with(&[WINDOWS, &format!("metrics.listener=127.0.0.1:{metrics}")]);
    let waits = format!("{SERVER}_connection_accept_throttle_time{{listener=\"PLAINTEXT\"}}");
    assert_eq!(answered(&node), COUNT);
    assert_eq!(metric(metrics, &waits), Some(0.0), "none has waited");
    let rate = "listener.name.plaintext.max.connection.creation.rate";
    configs(&node, &format!("--alter --broker-defaults --add-config {rate}=10"));
    eventually("connections wait", || {
        assert_eq!(answered(&node), COUNT);
        metric(metrics, &waits).is_some_and(|wait| wait > 0.0)
    });
    configs(&node, &format!("--alter --broker-defaults --delete-config {rate}"));
    assert_eq!(answered(&node), COUNT);
    assert!(node.stop().success());
}

/// So many more connections than are open are served. Those of a look before may still be closing.
fn free_places(node: &TestNode, expected: usize) {
    eventually("so many more are served", || answered(node) == expected);
}

#[test]
fn changed_numbers_of_connections_are_in_force_at_once() {
    let mut node = TestNode::start();
    // They were there before the limits, and stay.
    let mut kept: Vec<Client> = (0..6).map(|_| node.client()).collect();
    let mut answers =
        || kept.iter_mut().all(|client| client.try_call(ApiVersionsRequest::default(), 0).is_some());
    assert!(answers());
    free_places(&node, COUNT);
    for key in ["max.connections", "listener.name.plaintext.max.connections", "max.connections.per.ip"] {
        configs(&node, &format!("--alter --broker-defaults --add-config {key}=9"));
        free_places(&node, 3);
        // More are open than may be, as the tool's own connection was.
        configs(&node, &format!("--alter --broker-defaults --add-config {key}=8"));
        free_places(&node, 2);
        assert!(answers(), "{key}");
        configs(&node, &format!("--alter --broker-defaults --delete-config {key}"));
        free_places(&node, COUNT);
    }
    let (all, own) = ("max.connections.per.ip=7", "max.connections.per.ip.overrides=127.0.0.1:10");
    configs(&node, &format!("--alter --broker-defaults --add-config {all}"));
    configs(&node, &format!("--alter --broker-defaults --add-config {own}"));
    free_places(&node, 4);
    assert!(node.stop().success());
}
