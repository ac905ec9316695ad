use super::*;
use crate::testing::{Fixture, ORDERS, UNKNOWN, broker_config, carried, versions};

fn named(names: &[&str]) -> MetadataRequest {
    let topics =
        names.iter().map(|name| MetadataRequestTopic { name: Some((*name).into()), ..Default::default() });
    MetadataRequest { topics: Some(topics.collect()), allow_auto_topic_creation: true, ..Default::default() }
}

fn by_id(id: TopicId) -> MetadataRequest {
    let topic = MetadataRequestTopic { name: None, topic_id: id, ..Default::default() };
    MetadataRequest { topics: Some(vec![topic]), ..Default::default() }
}

fn ask(request: MetadataRequest, version: i16) -> (MetadataResponse, Option<CreateTopicsRequest>) {
    ask_on(&Fixture::new(), request, version)
}

fn ask_on(
    fixture: &Fixture,
    request: MetadataRequest,
    version: i16,
) -> (MetadataResponse, Option<CreateTopicsRequest>) {
    match plan(request, version, &fixture.ctx()) {
        Plan::Answer(response) => (response, None),
        Plan::Work(work) => (work.response, Some(work.create)),
    }
}

#[test]
fn every_version_shows_a_topic_in_its_words() {
    for version in versions::<MetadataResponse>() {
        let (response, create) = ask(named(&["orders"]), version);
        assert_eq!(create, None);
        let response = carried(response, version);
        let topic = &response.topics[0];
        assert_eq!(topic.topic_id, if version >= 10 { ORDERS } else { TopicId::ZERO });
        assert_eq!(topic.partitions.len(), 3);
        assert_eq!(topic.partitions[0].leader_epoch, if version >= 7 { 5 } else { -1 });
        let offline: &[i32] = if version >= 5 { &[3] } else { &[] };
        assert_eq!(topic.partitions[0].offline_replicas, offline);
    }
}

#[test]
fn brokers_are_those_that_the_client_can_reach() {
    let (response, _) = ask(named(&[]), 12);
    let brokers: Vec<_> = response.brokers.iter().map(|broker| (broker.node_id, &*broker.host)).collect();
    assert_eq!(
        brokers,
        [(1, "host-1"), (2, "host-2")],
        "not the fenced one, not the one without the listener"
    );
    assert_eq!((response.controller_id, response.topics.len()), (1, 0));
}

#[test]
fn version_0_leaves_out_dead_replicas_and_says_so() {
    let partition = |version| ask(named(&["orders"]), version).0.topics[0].partitions[0].clone();
    assert_eq!((partition(0).error_code, partition(0).replica_nodes), (9, vec![1]));
    assert_eq!((partition(1).error_code, partition(1).replica_nodes), (0, vec![1, 3]));
}

#[test]
fn a_partition_without_a_leader_is_an_error_of_the_partition() {
    let partition = ask(named(&["orders"]), 12).0.topics[0].partitions[2].clone();
    assert_eq!((partition.error_code, partition.leader_id, partition.leader_epoch), (5, -1, 5));
}

#[test]
fn replica_whose_log_cannot_be_opened_is_offline_and_leads_nothing() {
    let offline = Some([(ORDERS, PartitionIndex(0)), (ORDERS, PartitionIndex(1))].into());
    let fixture = Fixture { offline, ..Fixture::new() };
    let partitions = ask_on(&fixture, named(&["orders"]), 12).0.topics[0].partitions.clone();
    let seen = |at: usize| {
        (partitions[at].error_code, partitions[at].leader_id, &partitions[at].offline_replicas[..])
    };
    assert_eq!(seen(0), (5, -1, &[1, 3][..]));
    assert_eq!(seen(1), (0, 2, &[3][..]), "this node has no replica of it");
    assert_eq!(ask_on(&Fixture::new(), named(&["orders"]), 12).0.topics[0].partitions[0].leader_id, 1);
}

#[test]
fn leader_without_the_listener_has_its_own_error_from_version_6() {
    let mut fixture = Fixture::new();
    fixture.add(&[crate::testing::partition(ORDERS, 0, 4)]);
    let code = |version| ask_on(&fixture, named(&["orders"]), version).0.topics[0].partitions[0].error_code;
    assert_eq!((code(5), code(6)), (5, 72));
}

#[test]
fn all_topics_are_asked_for_by_none_in_version_0_and_by_null_later() {
    let count = |request, version| ask(request, version).0.topics.len();
    let null = || MetadataRequest { topics: None, ..Default::default() };
    assert_eq!(count(named(&[]), 0), 2);
    assert_eq!(count(named(&[]), 1), 0);
    assert_eq!(count(null(), 1), 2);
    assert_eq!(count(null(), 13), 2);
}

#[test]
fn topics_by_id_are_known_from_version_12() {
    let (response, _) = ask(by_id(ORDERS), 12);
    assert_eq!(response.topics[0].name.as_deref(), Some("orders"));
    let (response, _) = ask(by_id(UNKNOWN), 12);
    assert_eq!((response.topics[0].error_code, &response.topics[0].name), (100, &None));
    carried(response, 12);
    for version in [10, 11] {
        let (response, _) = ask(by_id(ORDERS), version);
        assert_eq!(response.topics[0].error_code, 42);
        carried(response, version);
    }
}

#[test]
fn an_unknown_topic_is_created_if_all_agree() {
    let created = |fixture: &Fixture, request, version| {
        let (response, create) = ask_on(fixture, request, version);
        assert_eq!(response.topics[0].error_code, 3);
        create.is_some()
    };
    let fixture = Fixture::new();
    assert!(created(&fixture, named(&["new"]), 3), "older versions cannot say no");
    assert!(created(&fixture, named(&["new"]), 4));
    assert!(!created(&fixture, MetadataRequest { allow_auto_topic_creation: false, ..named(&["new"]) }, 4));
    let fixture =
        Fixture { config: broker_config(&[("auto.create.topics.enable", "false")]), ..Fixture::new() };
    assert!(!created(&fixture, named(&["new"]), 4));
}

#[test]
fn a_created_topic_leaves_the_numbers_to_the_controller() {
    let create = ask(named(&["new", "new", "bad name"]), 9).1.unwrap();
    assert_eq!(create.topics.len(), 1);
    let topic = &create.topics[0];
    assert_eq!((&*topic.name, topic.num_partitions, topic.replication_factor), ("new", -1, -1));
    let fixture = Fixture { config: broker_config(&[("num.partitions", "7")]), ..Fixture::new() };
    let create = ask_on(&fixture, named(&["new"]), 9).1.unwrap();
    assert_eq!(create.topics[0].num_partitions, 7);
}

#[test]
fn an_impossible_name_is_refused_and_not_created() {
    let (response, create) = ask(named(&["bad name"]), 9);
    assert_eq!((response.topics[0].error_code, create), (17, None));
}

#[test]
fn an_internal_topic_gets_what_its_settings_say() {
    let create = ask(named(&["__consumer_offsets"]), 9).1.unwrap();
    let topic = &create.topics[0];
    assert_eq!((topic.num_partitions, topic.replication_factor), (50, 3));
    let configs: Vec<_> = topic.configs.iter().map(|config| &*config.name).collect();
    assert_eq!(configs, ["cleanup.policy", "compression.type", "segment.bytes"]);
}

#[test]
fn internal_topic_has_at_most_one_replica_per_node_by_default() {
    use crate::testing::broker;
    let replicas = |given: &[(&str, &str)]| {
        let mut alone = Fixture {
            config: broker_config(given),
            image: barnabas_metadata::Image::default(),
            ..Fixture::new()
        };
        alone.add(&[broker(1, false, "PLAINTEXT")]);
        ask_on(&alone, named(&["__consumer_offsets"]), 9).1.unwrap().topics[0].replication_factor
    };
    assert_eq!(replicas(&[]), 1);
    assert_eq!(replicas(&[("offsets.topic.replication.factor", "3")]), 3, "Kafka's controller refuses that");
    // One of three that has not heard of the others yet.
    let voters = "1@a:1,2@b:1,3@c:1";
    assert_eq!(replicas(&[("controller.quorum.voters", voters)]), 3);
    assert_eq!(replicas(&[("controller.quorum.bootstrap.servers", "a:1,b:1")]), 2);
}

#[test]
fn operations_are_shown_when_asked_for() {
    let request = |cluster, topic| MetadataRequest {
        include_cluster_authorized_operations: cluster,
        include_topic_authorized_operations: topic,
        ..named(&["orders"])
    };
    let operations = |version, cluster, topic| {
        let response = carried(ask(request(cluster, topic), version).0, version);
        (response.cluster_authorized_operations, response.topics[0].topic_authorized_operations)
    };
    assert_eq!(operations(8, true, true), (8096, 3576), "as Kafka without an authorizer");
    assert_eq!(operations(8, false, false), (i32::MIN, i32::MIN));
    assert_eq!(operations(11, false, true).0, i32::MIN);
}
