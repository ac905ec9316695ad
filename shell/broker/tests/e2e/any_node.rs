//! Whatever a client asks of the controller it may ask of any node, in any version: also in one that today's
//! controllers do not speak.

use crate::harness::quorum::{Three, create, describe_quorum, eventually, topics};
use crate::harness::{BROKER, Client, TOPIC};
use barnabas_wire::Request;
use barnabas_wire::messages::create_partitions_request::CreatePartitionsTopic;
use barnabas_wire::messages::delete_topics_request::DeleteTopicState;
use barnabas_wire::messages::update_features_request::FeatureUpdateKey;
use barnabas_wire::messages::{
    AlterConfigsRequest, AlterPartitionReassignmentsRequest, CreatePartitionsRequest, DeleteTopicsRequest,
    ElectLeadersRequest, IncrementalAlterConfigsRequest, ResponseBody, UpdateFeaturesRequest,
    alter_configs_request, alter_partition_reassignments_request, elect_leaders_request,
};
use std::ops::RangeInclusive;

fn versions<R: Request>() -> RangeInclusive<i16> {
    let versions = R::KEY.stable_versions();
    versions.min..=versions.max
}

fn delete(client: &mut Client, version: i16, name: &str) -> i16 {
    let mut request = DeleteTopicsRequest { timeout_ms: 20_000, ..Default::default() };
    if version < 6 {
        request.topic_names = vec![name.into()];
    } else {
        request.topics = vec![DeleteTopicState { name: Some(name.into()), ..Default::default() }];
    }
    let ResponseBody::DeleteTopics(response) = client.call(request, version) else { panic!("another") };
    assert_eq!(response.responses[0].name.as_deref(), Some(name), "version {version}");
    response.responses[0].error_code
}

fn grow(client: &mut Client, version: i16, name: &str, count: i32) -> i16 {
    let topic = CreatePartitionsTopic { name: name.into(), count, assignments: None, ..Default::default() };
    let request = CreatePartitionsRequest { topics: vec![topic], timeout_ms: 20_000, ..Default::default() };
    let ResponseBody::CreatePartitions(response) = client.call(request, version) else { panic!("another") };
    response.results[0].error_code
}

fn replace(client: &mut Client, version: i16, kind: i8, name: &str, (key, value): (&str, &str)) -> i16 {
    use alter_configs_request::{AlterConfigsResource, AlterableConfig};
    let config = AlterableConfig { name: key.into(), value: Some(value.into()), ..Default::default() };
    let resource = AlterConfigsResource {
        resource_type: kind,
        resource_name: name.into(),
        configs: vec![config],
        ..Default::default()
    };
    let request = AlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let ResponseBody::AlterConfigs(response) = client.call(request, version) else { panic!("another") };
    response.responses[0].error_code
}

/// The error of the request as a whole, or of its only feature.
fn set_feature(client: &mut Client, version: i16, feature: &str, level: i16, down: bool) -> i16 {
    let mut update =
        FeatureUpdateKey { feature: feature.into(), max_version_level: level, ..Default::default() };
    if version == 0 {
        update.allow_downgrade = down;
    } else if down {
        update.upgrade_type = 2;
    }
    let request = UpdateFeaturesRequest { feature_updates: vec![update], ..Default::default() };
    let ResponseBody::UpdateFeatures(response) = client.call(request, version) else { panic!("another") };
    let results = response.results.iter().map(|result| result.error_code);
    assert_eq!(response.results.len(), usize::from(version < 2 && response.error_code == 0));
    results.chain([response.error_code]).find(|code| *code != 0).unwrap_or(0)
}

#[test]
fn old_versions_pass_through_a_node_that_does_not_lead() {
    let cluster = Three::start();
    let follower = cluster.follower();
    let client = &mut cluster.client(follower);
    for version in versions::<barnabas_wire::messages::CreateTopicsRequest>() {
        assert_eq!(create(client, version, &format!("c{version}"), 1, 3), 0, "CreateTopics {version}");
        eventually("it is there", || topics(client).contains(&format!("c{version}")));
    }
    for version in versions::<DeleteTopicsRequest>() {
        let name = format!("c{version}");
        assert_eq!(delete(client, version, &name), 0, "DeleteTopics {version}");
        eventually("it is gone", || !topics(client).contains(&name));
        assert_eq!(delete(client, version, &name), 3, "DeleteTopics {version} of what is not there");
    }
    assert_eq!(create(client, 7, "t", 1, 3), 0);
    for version in versions::<CreatePartitionsRequest>() {
        assert_eq!(grow(client, version, "t", 2 + i32::from(version)), 0, "CreatePartitions {version}");
    }
    let me = follower.to_string();
    for version in versions::<IncrementalAlterConfigsRequest>() {
        let mut set =
            |kind, name: &str, (key, value)| client.alter_config(version, (kind, name), key, Some(value));
        assert_eq!(set(TOPIC, "t", ("retention.ms", "100000")), 0, "IncrementalAlterConfigs {version}");
        assert_eq!(set(BROKER, &me, ("log.cleaner.threads", "2")), 0, "of the broker itself");
    }
    for version in versions::<AlterConfigsRequest>() {
        let mut replace = |kind, name: &str, config| replace(client, version, kind, name, config);
        assert_eq!(replace(TOPIC, "t", ("retention.ms", "100001")), 0, "AlterConfigs {version}");
        assert_eq!(replace(BROKER, &me, ("log.cleaner.threads", "1")), 0, "of the broker itself");
    }
    for version in versions::<UpdateFeaturesRequest>() {
        let mut set = |level, down| set_feature(client, version, "group.version", level, down);
        assert_eq!(set(0, false), 95, "UpdateFeatures {version} does not go down unasked");
        assert_eq!(set(0, true), 0, "UpdateFeatures {version} down");
        assert_eq!(set(1, false), 0, "UpdateFeatures {version} up");
    }
    others(client);
    cluster.stop();
}

/// What has nothing to lose on the way.
fn others(client: &mut Client) {
    for version in versions::<ElectLeadersRequest>() {
        let asked = elect_leaders_request::TopicPartitions {
            topic: "t".into(),
            partitions: vec![0],
            ..Default::default()
        };
        let request = ElectLeadersRequest { topic_partitions: Some(vec![asked]), ..Default::default() };
        let ResponseBody::ElectLeaders(response) = client.call(request, version) else { panic!("another") };
        let code = response.replica_election_results[0].partition_result[0].error_code;
        assert!([0, 84].contains(&code), "ElectLeaders {version}: {code}");
    }
    for version in versions::<AlterPartitionReassignmentsRequest>() {
        use alter_partition_reassignments_request::{ReassignablePartition, ReassignableTopic};
        let partition = ReassignablePartition { replicas: Some(vec![1, 2, 3]), ..Default::default() };
        let topic = ReassignableTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
        let request = AlterPartitionReassignmentsRequest { topics: vec![topic], ..Default::default() };
        let ResponseBody::AlterPartitionReassignments(response) = client.call(request, version) else {
            panic!("another")
        };
        let code = response.responses[0].partitions[0].error_code;
        assert_eq!((response.error_code, code), (0, 0), "AlterPartitionReassignments {version}");
    }
    for version in 0..=2 {
        let described = describe_quorum(client, version);
        assert_eq!(described.topics[0].partitions[0].current_voters.len(), 3, "DescribeQuorum {version}");
    }
}
