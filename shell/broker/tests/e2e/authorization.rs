//! ACLs in force: what a client without authentication may do where an authorizer is configured, from the moment on at
//! which an ACL was made; and clients for which a broker asks, by Envelope.

use crate::harness::patience::{eventually, until};
use crate::harness::{Client, TestNode, batch};
use barnabas_base::TopicId;
use barnabas_wire::messages::create_acls_request::AclCreation;
use barnabas_wire::messages::create_topics_request::CreatableTopic;
use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{
    ConsumerGroupHeartbeatRequest, CreateAclsRequest, CreateTopicsRequest, DefaultPrincipalData,
    DescribeAclsRequest, DescribeConfigsRequest, EnvelopeRequest, FindCoordinatorRequest, MetadataRequest,
    ProduceRequest, RequestHeader, ResponseBody,
};
use barnabas_wire::{ApiKey, Message, RequestBody, Writer, decode_response, encode_request};
use bytes::Bytes;

pub const AUTHORIZER: &str = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer";
/// Resources without ACLs are open, so that the first ACLs can be made.
pub const OPEN: [&str; 2] = [AUTHORIZER, "allow.everyone.if.no.acl.found=true"];

const READ: i8 = 3;
const WRITE: i8 = 4;
const CREATE: i8 = 5;
const ALL: i8 = 2;
const ALTER: i8 = 7;
const DESCRIBE: i8 = 8;

/// (resource type, name, pattern, principal, operation), all of them ALLOW.
pub type Allowed<'a> = (i8, &'a str, i8, &'a str, i8);

pub fn allow(client: &mut Client, acls: &[Allowed<'_>]) {
    let creation = |(resource_type, name, pattern, principal, operation): &Allowed<'_>| AclCreation {
        resource_type: *resource_type,
        resource_name: (*name).into(),
        resource_pattern_type: *pattern,
        principal: (*principal).into(),
        host: "*".into(),
        operation: *operation,
        permission_type: 3,
        ..Default::default()
    };
    let request = CreateAclsRequest { creations: acls.iter().map(creation).collect(), ..Default::default() };
    let ResponseBody::CreateAcls(response) = client.call(request, 3) else { panic!("another response") };
    assert!(response.results.iter().all(|result| result.error_code == 0), "{response:?}");
}

fn produce(client: &mut Client, topic: &str) -> i16 {
    let data = PartitionProduceData { index: 0, records: Some(batch(&["v"])), ..Default::default() };
    let topic = TopicProduceData { name: topic.into(), partition_data: vec![data], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() };
    let ResponseBody::Produce(response) = client.call(request, 9) else { panic!("another response") };
    response.responses[0].partition_responses[0].error_code
}

fn topics(client: &mut Client) -> Vec<String> {
    let request = MetadataRequest { topics: None, ..Default::default() };
    let ResponseBody::Metadata(response) = client.call(request, 12) else { panic!("another response") };
    let mut names: Vec<String> =
        response.topics.iter().filter_map(|topic| topic.name.as_ref()).map(|name| name.to_string()).collect();
    names.sort();
    names
}

fn create(name: &str) -> CreateTopicsRequest {
    let topic =
        CreatableTopic { name: name.into(), num_partitions: 1, replication_factor: 1, ..Default::default() };
    CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() }
}

#[test]
fn acl_counts_from_its_creation_on_and_after_a_restart() {
    let mut node = TestNode::start_with(&OPEN);
    let mut client = node.client();
    client.create_topic("closed", 1, &[]);
    client.create_topic("open", 1, &[]);
    assert_eq!((produce(&mut client, "open"), produce(&mut client, "closed")), (0, 0));

    // Others' ACLs close the topic to a connection that has just written to it.
    allow(&mut client, &[(2, "closed", 3, "User:alice", READ)]);
    assert_eq!((produce(&mut client, "open"), produce(&mut client, "closed")), (0, 29));
    assert_eq!(topics(&mut client), ["open"]);
    let denied = node.log();
    let line = denied.lines().find(|line| line.contains("denied:")).expect("a line for the denial");
    for part in ["User:ANONYMOUS", "127.0.0.1", "WRITE", "TOPIC", "closed", "Produce", "barnabas acls --add"]
    {
        assert!(line.contains(part), "{part}: {line}");
    }

    allow(&mut client, &[(2, "closed", 3, "User:ANONYMOUS", WRITE)]);
    assert_eq!(produce(&mut client, "closed"), 0);
    assert_eq!(topics(&mut client), ["closed", "open"]);
    let every = DescribeAclsRequest {
        resource_type_filter: 1,
        pattern_type_filter: 1,
        operation: 1,
        permission_type: 1,
        resource_name_filter: None,
        principal_filter: None,
        host_filter: None,
        ..Default::default()
    };
    let ResponseBody::DescribeAcls(told) = client.call(every, 3) else { panic!("another response") };
    assert_eq!(told.resources.iter().map(|resource| resource.acls.len()).collect::<Vec<_>>(), [2]);

    // Without the setting, a resource without ACLs is closed.
    assert!(node.stop_expecting_trouble().success());
    node.set_overrides(&[AUTHORIZER]);
    node.launch();
    let mut client = node.client();
    assert_eq!((produce(&mut client, "open"), produce(&mut client, "closed")), (29, 0));
    assert_eq!(topics(&mut client), ["closed"]);
    let ResponseBody::CreateTopics(response) = client.call(create("new"), 7) else { panic!("another") };
    assert_eq!(response.topics[0].error_code, 29);
    assert!(node.stop_expecting_trouble().success());
}

#[test]
fn super_user_may_do_everything() {
    let mut node = TestNode::start_with(&[AUTHORIZER, "super.users=User:admin;User:ANONYMOUS"]);
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    assert_eq!(produce(&mut client, "t"), 0);
    assert!(node.stop_expecting_trouble().success());
    assert!(node.log().contains("super.users names User:ANONYMOUS"), "{}", node.log());
}

/// The topics that a group's only member is assigned, by its next heartbeats.
fn assigned(client: &mut Client, request: &ConsumerGroupHeartbeatRequest) -> Option<Vec<TopicId>> {
    let find = FindCoordinatorRequest { key: request.group_id.clone(), ..Default::default() };
    let ResponseBody::FindCoordinator(_) = client.call(find, 2) else { panic!("another response") };
    let ResponseBody::ConsumerGroupHeartbeat(response) = client.call(request.clone(), 1) else {
        panic!("another response")
    };
    let topics = response.assignment?.topic_partitions;
    let ids: Vec<TopicId> = topics.iter().map(|topic| topic.topic_id).collect();
    (!ids.is_empty()).then_some(ids)
}

#[test]
fn expression_matches_only_topics_that_its_member_may_describe() {
    let settings = [AUTHORIZER, OPEN[1], "group.consumer.regex.refresh.interval.ms=10000"];
    let mut node = TestNode::start_with(&settings);
    let mut client = node.client();
    client.create_topic("hidden", 1, &[]);
    client.create_topic("seen", 1, &[]);
    let (hidden, seen) = (client.topic_id("hidden"), client.topic_id("seen"));
    allow(&mut client, &[(2, "hidden", 3, "User:alice", READ), (2, "__", 4, "User:alice", READ)]);
    let join = ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: "m".into(),
        rebalance_timeout_ms: 10_000,
        topic_partitions: Some(Vec::new()),
        subscribed_topic_regex: Some(".*".into()),
        ..Default::default()
    };
    // Each heartbeat joins again: its answer has the whole assignment.
    assert_eq!(until("an assignment", || assigned(&mut client, &join)), [seen]);
    allow(&mut client, &[(2, "hidden", 3, "User:ANONYMOUS", DESCRIBE)]);
    eventually("the other topic is matched after the interval", || {
        let ids = assigned(&mut client, &join).unwrap_or_default();
        ids.contains(&hidden) && ids.contains(&seen)
    });
    assert!(node.stop_expecting_trouble().success());
}

/// The code and the number of configs of the metrics that a broker gives through DescribeConfigs.
fn metrics(client: &mut Client) -> (i16, usize) {
    let resource = DescribeConfigsResource { resource_type: 98, ..Default::default() };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    let ResponseBody::DescribeConfigs(response) = client.call(request, 4) else { panic!("another response") };
    (response.results[0].error_code, response.results[0].configs.len())
}

#[test]
fn metrics_in_band_need_describe_configs_on_the_cluster() {
    const DESCRIBE_CONFIGS: i8 = 10;
    let mut node = TestNode::start_with(&[AUTHORIZER, "super.users=User:admin"]);
    let mut controller = node.controller();
    for client in [&mut node.client(), &mut controller] {
        assert_eq!(metrics(client), (31, 0));
    }
    assert!(node.stop_expecting_trouble().success());

    let mut node = TestNode::start_with(&OPEN);
    let mut client = node.client();
    for (operation, expected) in [(DESCRIBE, false), (DESCRIBE_CONFIGS, true)] {
        allow(
            &mut client,
            &[
                (4, "kafka-cluster", 3, "User:ANONYMOUS", operation),
                (4, "kafka-cluster", 3, "User:ANONYMOUS", ALTER),
            ],
        );
        assert_eq!(metrics(&mut client).0 == 0, expected);
    }
    assert!(node.stop_expecting_trouble().success());
}

/// What a controller answers to a broker's Envelope: the code of the Envelope, and of the topic in it.
pub fn forwarded(client: &mut Client, principal: &str, topic: &str) -> (i16, Option<i16>) {
    let header = RequestHeader {
        request_api_key: ApiKey::CreateTopics.number(),
        request_api_version: 7,
        client_id: Some("c".into()),
        ..Default::default()
    };
    let mut w = Writer::new();
    w.int16(0);
    let data = DefaultPrincipalData { r#type: "User".into(), name: principal.into(), ..Default::default() };
    data.encode(&mut w, 0).expect("written");
    let body: RequestBody = create(topic).into();
    let request = EnvelopeRequest {
        request_data: encode_request(&header, &body).expect("written").into_bytes(),
        request_principal: Some(w.into_bytes()),
        client_host_address: Bytes::from_static(&[10, 0, 0, 7]),
        ..Default::default()
    };
    let ResponseBody::Envelope(response) = client.call(request, 0) else { panic!("another response") };
    let inner = response.response_data.map(|data| {
        let (_, body) = decode_response(data, ApiKey::CreateTopics, 7).expect("a response");
        let ResponseBody::CreateTopics(created) = body else { panic!("another response") };
        created.topics[0].error_code
    });
    (response.error_code, inner)
}

#[test]
fn forwarded_request_is_authorized_in_the_name_of_its_client() {
    let mut node = TestNode::start_with(&OPEN);
    let mut client = node.client();
    let mut controller = node.controller();
    allow(
        &mut client,
        &[(4, "kafka-cluster", 3, "User:ANONYMOUS", ALL), (2, "private-", 4, "User:alice", CREATE)],
    );
    assert_eq!(forwarded(&mut controller, "bob", "private-1"), (0, Some(29)));
    assert_eq!(forwarded(&mut controller, "alice", "private-1"), (0, Some(0)));
    assert_eq!(topics(&mut client), [""; 0], "ANONYMOUS is none of the two");
    assert!(node.log().contains("10.0.0.7"), "{}", node.log());
    assert!(node.stop_expecting_trouble().success());
}

#[test]
fn client_without_cluster_action_speaks_for_no_other() {
    let mut node = TestNode::start_with(&[AUTHORIZER, "super.users=User:admin"]);
    let mut controller = node.controller();
    assert_eq!(forwarded(&mut controller, "admin", "t"), (31, None));
    assert!(node.stop().success());
}
