//! What one request may ask of the controller, and what its answer may hold.
//! core/quorum/src/controller/refusal/limits.rs.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod world;

use barnabas_base::{PartitionIndex, Text};
use barnabas_metadata::MetadataVersion;
use barnabas_wire::messages::alter_configs_request::AlterConfigsResource as ReplacedResource;
use barnabas_wire::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use barnabas_wire::messages::alter_partition_request::{BrokerState, PartitionData, TopicData};
use barnabas_wire::messages::create_partitions_request::CreatePartitionsTopic;
use barnabas_wire::messages::create_topics_request::{CreatableReplicaAssignment, CreatableTopic};
use barnabas_wire::messages::delete_topics_request::DeleteTopicState;
use barnabas_wire::messages::elect_leaders_request::TopicPartitions;
use barnabas_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use barnabas_wire::messages::*;
use barnabas_wire::{RequestBody, Writer};
use world::{World, registration};

const POLICY_VIOLATION: i16 = 44;
const KEY: &str = "metadata.partitions.request.max";

fn world(settings: &[(&str, &str)]) -> World {
    let mut world = World::new(1);
    world.properties.extend(settings.iter().map(|(key, value)| (Text::from(*key), Text::from(*value))));
    world.format(MetadataVersion::LATEST);
    world.start().unwrap();
    world.sync();
    world
}

fn configs(count: usize) -> Vec<AlterableConfig> {
    let config = |at: usize| AlterableConfig {
        name: format!("key-{at}").into(),
        value: Some("1".into()),
        ..Default::default()
    };
    (0..count).map(config).collect()
}

/// Requests that name three things, each in the version that is given.
fn naming_three() -> Vec<(RequestBody, i16)> {
    let topic = |at: i32| format!("t{at}");
    let state = |at| DeleteTopicState { name: Some(topic(at).into()), ..Default::default() };
    let grown = |at| CreatePartitionsTopic { name: topic(at).into(), count: 2, ..Default::default() };
    let altered =
        |at| AlterConfigsResource { resource_type: 2, resource_name: topic(at).into(), ..Default::default() };
    let replaced =
        |at| ReplacedResource { resource_type: 2, resource_name: topic(at).into(), ..Default::default() };
    let moved = |partition_index| ReassignablePartition { partition_index, ..Default::default() };
    let moved = ReassignableTopic {
        name: topic(0).into(),
        partitions: (0..3).map(moved).collect(),
        ..Default::default()
    };
    let elected = TopicPartitions { topic: topic(0).into(), partitions: vec![0, 1, 2], ..Default::default() };
    vec![
        (DeleteTopicsRequest { topics: (0..3).map(state).collect(), ..Default::default() }.into(), 6),
        (
            DeleteTopicsRequest {
                topic_names: (0..3).map(|at| topic(at).into()).collect(),
                ..Default::default()
            }
            .into(),
            5,
        ),
        (CreatePartitionsRequest { topics: (0..3).map(grown).collect(), ..Default::default() }.into(), 3),
        (ElectLeadersRequest { topic_partitions: Some(vec![elected]), ..Default::default() }.into(), 2),
        (AlterPartitionReassignmentsRequest { topics: vec![moved], ..Default::default() }.into(), 1),
        (
            IncrementalAlterConfigsRequest { resources: (0..3).map(altered).collect(), ..Default::default() }
                .into(),
            1,
        ),
        (AlterConfigsRequest { resources: (0..3).map(replaced).collect(), ..Default::default() }.into(), 2),
    ]
}

/// Codes and sentences wherever an answer has them.
fn refusals(response: ResponseBody) -> Vec<(i16, String)> {
    let pair = |code: i16, message: &Option<barnabas_wire::Str>| {
        (code, message.as_ref().map(ToString::to_string).unwrap_or_default())
    };
    match response {
        ResponseBody::DeleteTopics(all) => {
            all.responses.iter().map(|each| pair(each.error_code, &each.error_message)).collect()
        }
        ResponseBody::CreatePartitions(all) => {
            all.results.iter().map(|each| pair(each.error_code, &each.error_message)).collect()
        }
        ResponseBody::ElectLeaders(all) => {
            assert_eq!(all.error_code, POLICY_VIOLATION);
            let all = all.replica_election_results.iter().flat_map(|topic| &topic.partition_result);
            all.map(|each| pair(each.error_code, &each.error_message)).collect()
        }
        ResponseBody::AlterPartitionReassignments(all) => vec![pair(all.error_code, &all.error_message)],
        ResponseBody::IncrementalAlterConfigs(all) => {
            all.responses.iter().map(|each| pair(each.error_code, &each.error_message)).collect()
        }
        ResponseBody::AlterConfigs(all) => {
            all.responses.iter().map(|each| pair(each.error_code, &each.error_message)).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn request_that_names_too_many_is_refused_by_key() {
    let mut world = world(&[(KEY, "2")]);
    for (request, version) in naming_three() {
        let (key, before) = (request.key(), world.files.log_end());
        let refusals = refusals(world.answer(request, version));
        assert!(!refusals.is_empty(), "{key}");
        for (code, message) in &refusals {
            assert!(*code == POLICY_VIOLATION && message.contains(KEY), "{key}: {code} {message}");
        }
        assert_eq!(world.files.log_end(), before, "{key} leaves no record");
    }
}

#[test]
fn resource_with_too_many_configurations_is_refused() {
    let mut world = World::started(1);
    let before = world.files.log_end();
    let resource = AlterConfigsResource {
        resource_type: 32,
        resource_name: "g".into(),
        configs: configs(10_001),
        ..Default::default()
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let refusals = refusals(world.answer(request, 1));
    assert_eq!(refusals[0].0, POLICY_VIOLATION);
    assert!(refusals[0].1.contains("10001") && refusals[0].1.contains("10000"), "{}", refusals[0].1);
    assert_eq!(world.files.log_end(), before);
    let feature = update_features_request::FeatureUpdateKey {
        feature: "metadata.version".into(),
        max_version_level: 33,
        upgrade_type: 1,
        ..Default::default()
    };
    let request = UpdateFeaturesRequest { feature_updates: vec![feature; 1001], ..Default::default() };
    let ResponseBody::UpdateFeatures(response) = world.answer(request, 2) else { panic!("another") };
    assert_eq!(response.error_code, 42, "{:?}", response.error_message);
}

/// A name of 32 kB stands once in the request, and stood in the answer once for each of its partitions.
#[test]
fn long_name_of_many_partitions_leaves_the_answer_small() {
    let name = "n".repeat(32_767);
    let indexes = || 0..100_000;
    let elected = TopicPartitions {
        topic: name.as_str().into(),
        partitions: indexes().collect(),
        ..Default::default()
    };
    let moved = |partition_index| ReassignablePartition { partition_index, ..Default::default() };
    let moved = ReassignableTopic {
        name: name.as_str().into(),
        partitions: indexes().map(moved).collect(),
        ..Default::default()
    };
    let requests: [(RequestBody, i16); 2] = [
        (ElectLeadersRequest { topic_partitions: Some(vec![elected]), ..Default::default() }.into(), 2),
        (AlterPartitionReassignmentsRequest { topics: vec![moved], ..Default::default() }.into(), 1),
    ];
    let mut world = World::started(1);
    for (request, version) in requests {
        let key = request.key();
        let response = world.answer(request, version);
        let mut w = Writer::new();
        response.encode(&mut w, version).unwrap();
        assert!(w.len() > 100_000 * 7 && w.len() < (2 << 20), "{key}: {} bytes", w.len());
    }
}

#[test]
fn configurations_of_new_topics_stay_within_the_answer() {
    let mut world = world(&[("answer.bytes.max", "1048576")]);
    let topic = |at: usize| CreatableTopic {
        name: format!("t{at}").into(),
        num_partitions: 1,
        replication_factor: 1,
        ..Default::default()
    };
    let request = CreateTopicsRequest { topics: (0..1000).map(topic).collect(), ..Default::default() };
    let ResponseBody::CreateTopics(response) = world.answer(request, 7) else { panic!("another") };
    let (shown, left_out): (Vec<_>, Vec<_>) =
        response.topics.iter().partition(|topic| topic.configs.as_ref().is_some_and(|all| !all.is_empty()));
    assert!((50..500).contains(&shown.len()), "{}", shown.len());
    assert!(response.topics.iter().all(|topic| topic.error_code == 0));
    assert!(left_out.iter().all(|topic| topic.topic_config_error_code == 42));
    assert_eq!(world.image.topics.len(), 1000);
}

/// Of all partitions of a cluster, as many are elected by one request as it may name.
#[test]
fn election_of_all_partitions_comes_about_in_several_requests() {
    let mut world = world(&[(KEY, "2")]);
    let ResponseBody::BrokerRegistration(registered) = world.answer(registration(2, 1, &[2], None), 4) else {
        panic!("another")
    };
    let beat = |world: &mut World, want_fence| {
        let request = BrokerHeartbeatRequest {
            broker_id: 2,
            broker_epoch: registered.broker_epoch,
            current_metadata_offset: world.files.log_end().get(),
            want_fence,
            ..Default::default()
        };
        world.answer(request, 1);
    };
    beat(&mut world, false);
    for at in 0..5 {
        let assignment = CreatableReplicaAssignment { broker_ids: vec![2, 1], ..Default::default() };
        let topic = CreatableTopic {
            name: format!("t{at}").into(),
            num_partitions: -1,
            replication_factor: -1,
            assignments: vec![assignment],
            ..Default::default()
        };
        world.answer(CreateTopicsRequest { topics: vec![topic], ..Default::default() }, 7);
    }
    beat(&mut world, true);
    beat(&mut world, false);
    bring_into_sync(&mut world, registered.broker_epoch);
    let mut elect = || {
        let request = ElectLeadersRequest { topic_partitions: None, ..Default::default() };
        let ResponseBody::ElectLeaders(response) = world.answer(request, 2) else { panic!("another") };
        let all = response.replica_election_results.iter().flat_map(|topic| &topic.partition_result);
        let codes: Vec<i16> = all.map(|each| each.error_code).collect();
        let of = |code| codes.iter().filter(|other| **other == code).count();
        (of(0), of(POLICY_VIOLATION))
    };
    assert_eq!([elect(), elect(), elect(), elect()], [(2, 3), (2, 1), (1, 0), (0, 0)]);
}

/// Broker 1, which leads every partition, says that broker 2 has caught up.
fn bring_into_sync(world: &mut World, epoch_of_2: i64) {
    let image = world.image.clone();
    let epoch_of_1 = image.cluster.brokers().next().unwrap().epoch.get();
    for topic in image.topics.iter() {
        let partition = topic.partition(PartitionIndex(0)).unwrap();
        assert_eq!((partition.leader.get(), partition.isr().len()), (1, 1));
        let member =
            |(broker_id, broker_epoch)| BrokerState { broker_id, broker_epoch, ..Default::default() };
        let partition = PartitionData {
            leader_epoch: partition.leader_epoch.get(),
            partition_epoch: partition.partition_epoch.get(),
            new_isr_with_epochs: [(1, epoch_of_1), (2, epoch_of_2)].map(member).to_vec(),
            ..Default::default()
        };
        let topic = TopicData { topic_id: topic.id, partitions: vec![partition], ..Default::default() };
        let request = AlterPartitionRequest {
            broker_id: 1,
            broker_epoch: epoch_of_1,
            topics: vec![topic],
            ..Default::default()
        };
        let ResponseBody::AlterPartition(response) = world.answer(request, 3) else { panic!("another") };
        assert_eq!(response.error_code, 0);
    }
}
