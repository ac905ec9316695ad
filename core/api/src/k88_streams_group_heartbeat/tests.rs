use super::*;
use crate::testing::{Fixture, broker_config, carried, versions};
use barnabas_wire::messages::streams_group_heartbeat_request::{Subtopology, TopicInfo};
use barnabas_wire::messages::streams_group_heartbeat_response::Status;

fn request(group: &str) -> StreamsGroupHeartbeatRequest {
    StreamsGroupHeartbeatRequest { group_id: group.into(), ..Default::default() }
}

fn with_topic(topic: &str) -> StreamsGroupHeartbeatRequest {
    let changelog = TopicInfo { name: topic.into(), ..Default::default() };
    let subtopology = Subtopology { state_changelog_topics: vec![changelog], ..Default::default() };
    let topology = Topology { subtopologies: vec![subtopology], ..Default::default() };
    StreamsGroupHeartbeatRequest { topology: Some(topology), ..request("b") }
}

/// "b" is looked after here, "a" by node 2.
#[test]
fn it_goes_to_the_groups_shard() {
    let fixture = Fixture::with_groups();
    let Plan::Work(work) = plan(request("b"), &fixture.ctx()) else { panic!("no work") };
    assert_eq!((work.shard.get(), work.request), (0, request("b")));
    for version in versions::<StreamsGroupHeartbeatResponse>() {
        let Plan::Answer(response) = plan(request("a"), &fixture.ctx()) else { panic!("no answer") };
        assert_eq!(carried(response, version).error_code, 16, "NOT_COORDINATOR");
    }
}

/// Kafka `StreamsGroupHeartbeatRequestTest`: a client looks for the coordinator again, which creates the topic.
#[test]
fn before_the_offsets_topic_exists_no_broker_is_the_coordinator() {
    let fixture = Fixture::new();
    let Plan::Answer(response) = plan(request("b"), &fixture.ctx()) else { panic!("no topic, no shard") };
    assert_eq!(response.error_code, 16, "NOT_COORDINATOR");
}

#[test]
fn where_there_are_no_such_groups_it_is_unsupported() {
    let mut fixture = Fixture::with_groups();
    fixture.config = broker_config(&[("group.coordinator.rebalance.protocols", "classic,consumer")]);
    let Plan::Answer(response) = plan(request("b"), &fixture.ctx()) else { panic!("no answer") };
    assert_eq!(response.error_code, 35, "UNSUPPORTED_VERSION");
}

#[test]
fn a_topology_has_topics_of_its_own() {
    let fixture = Fixture::with_groups();
    for topic in ["__consumer_offsets", "a b", ""] {
        let Plan::Answer(response) = plan(with_topic(topic), &fixture.ctx()) else { panic!("no answer") };
        assert_eq!(response.error_code, 130, "STREAMS_INVALID_TOPOLOGY");
    }
    assert!(matches!(plan(with_topic("app-store-changelog"), &fixture.ctx()), Plan::Work(_)));
}

#[test]
fn failed_topic_creation_is_in_the_status() {
    let status = |detail: &str| Status { status_code: 3, status_detail: detail.into(), ..Default::default() };
    let response =
        || StreamsGroupHeartbeatResponse { status: Some(vec![status("missing")]), ..Default::default() };
    let result = |name: &str, error_code: i16| CreatableTopicResult {
        name: name.into(),
        error_code,
        error_message: None,
        ..Default::default()
    };
    let detail = |created: Result<Vec<CreatableTopicResult>, String>| {
        let response = respond(response(), &created);
        response.status.expect("a status")[0].status_detail.to_string()
    };
    assert_eq!(detail(Ok(vec![result("t", 0), result("u", 36)])), "missing");
    let said = detail(Ok(vec![result("t", 44), result("u", 38)]));
    assert_eq!(said, "missing; Creation failed: t (POLICY_VIOLATION), u (INVALID_REPLICATION_FACTOR).");
    assert_eq!(detail(Err("busy".to_owned())), "missing; Creation failed: busy.");
}
