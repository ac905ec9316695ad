//! Dead letters of a share group whose topic another broker leads than the one that holds the records.

use crate::harness::batch;
use crate::harness::cluster::{Cluster, GROUP, SETTINGS, comes_back, until};
use crate::harness::share::{REJECT, ShareMember, await_assignment, await_group_configs, set_group_configs};
use barnabas_wire::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{CreateTopicsRequest, FetchRequest, ProduceRequest, ResponseBody};
use barnabas_wire::records::batches;

const NAME: &str = "g";

/// One partition, on one broker.
fn create(cluster: &Cluster, name: &str, broker: i32, configs: &[(&str, &str)]) {
    let code = until("a topic is made", || {
        let assignment = CreatableReplicaAssignment { broker_ids: vec![broker], ..Default::default() };
        let config = |&(key, value): &(&str, &str)| CreatableTopicConfig {
            name: key.into(),
            value: Some(value.into()),
            ..Default::default()
        };
        let topic = CreatableTopic {
            name: name.into(),
            num_partitions: -1,
            replication_factor: -1,
            assignments: vec![assignment],
            configs: configs.iter().map(config).collect(),
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
        let ResponseBody::CreateTopics(response) = cluster.ask(broker, request, 7)? else {
            panic!("another response")
        };
        let code = response.topics[0].error_code;
        (!comes_back(code)).then_some(code)
    });
    assert!(matches!(code, 0 | 36), "{code}");
    until("its broker leads it", || (cluster.leader(name, 0)? == broker).then_some(()));
}

fn produce(cluster: &Cluster, topic: &str) {
    let code = until("records are written", || {
        let data = PartitionProduceData { records: Some(batch(&["one", "two"])), ..Default::default() };
        let data = TopicProduceData { name: topic.into(), partition_data: vec![data], ..Default::default() };
        let request =
            ProduceRequest { acks: -1, timeout_ms: 5_000, topic_data: vec![data], ..Default::default() };
        let ResponseBody::Produce(response) = cluster.ask(cluster.leader(topic, 0)?, request, 9)? else {
            panic!("another response")
        };
        let code = response.responses[0].partition_responses[0].error_code;
        (!comes_back(code)).then_some(code)
    });
    assert_eq!(code, 0);
}

/// The values in the topic.
fn values(cluster: &Cluster, topic: &str) -> Option<Vec<String>> {
    let partition = FetchPartition { partition_max_bytes: 1 << 20, ..Default::default() };
    let wanted = FetchTopic { topic: topic.into(), partitions: vec![partition], ..Default::default() };
    let request = FetchRequest {
        replica_id: -1,
        max_wait_ms: 10,
        max_bytes: 1 << 20,
        session_epoch: -1,
        topics: vec![wanted],
        ..Default::default()
    };
    let ResponseBody::Fetch(response) = cluster.ask(cluster.leader(topic, 0)?, request, 11)? else {
        panic!("another response")
    };
    let records = response.responses.first()?.partitions[0].records.clone().unwrap_or_default();
    let mut values = Vec::new();
    for batch in batches(records) {
        let records = batch.expect("a batch").records().expect("records");
        for record in &records {
            let value = record.expect("a record").value.unwrap_or_default().to_vec();
            values.push(String::from_utf8(value).expect("text"));
        }
    }
    Some(values)
}

#[test]
fn letters_go_to_the_leader_of_their_topic() {
    let cluster = Cluster::start(SETTINGS);
    create(&cluster, "orders", 1, &[]);
    create(&cluster, "dlq.orders", 2, &[("errors.deadletterqueue.group.enable", "true")]);
    let configs = [
        ("share.auto.offset.reset", "earliest"),
        ("errors.deadletterqueue.topic.name", "dlq.orders"),
        ("errors.deadletterqueue.copy.record.enable", "true"),
    ];
    set_group_configs(&mut cluster.client_of_leader("orders", 0), NAME, &configs);
    for node in cluster.nodes.values() {
        await_group_configs(&mut node.client(), NAME, &configs);
    }
    produce(&cluster, "orders");
    let coordinator = cluster.await_coordinator(GROUP, NAME);
    await_assignment(&mut cluster.nodes[&coordinator].client(), NAME, "orders");
    let mut member = ShareMember::joined(cluster.client_of_leader("orders", 0), NAME, "orders");
    assert_eq!(member.fetch_some(&[]), [(0, 1, 1)]);
    assert_eq!(member.fetch(&[(0, 1, REJECT)]), []);
    let found =
        until("the letters are there", || values(&cluster, "dlq.orders").filter(|values| values.len() >= 2));
    assert_eq!(found, ["one", "two"]);
    cluster.stop();
}
