//! Topic settings that Kafka calls internal: Kafka Streams makes its repartition topics with a small
//! `internal.segment.bytes`, and purges them with DeleteRecords.

use crate::harness::three_dirs::{eventually, produce};
use crate::harness::{Client, TestNode};
use barnabas_wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use barnabas_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;
use barnabas_wire::messages::{
    CreateTopicsRequest, DeleteRecordsRequest, DescribeConfigsRequest, ResponseBody,
};

const KEY: &str = "internal.segment.bytes";

fn described(client: &mut Client, topic: &str) -> Option<String> {
    let resource = DescribeConfigsResource {
        resource_type: 2,
        resource_name: topic.into(),
        configuration_keys: None,
        ..Default::default()
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    let ResponseBody::DescribeConfigs(response) = client.call(request, 4) else { panic!("another") };
    let configs = &response.results[0].configs;
    let found = configs.iter().find(|config| config.name == *KEY);
    found.map(|config| config.value.as_ref().expect("a value").to_string())
}

/// Makes a topic; what the answer says of the key.
fn create(client: &mut Client, topic: &str, configs: &[(&str, &str)]) -> Option<String> {
    let config = |&(name, value): &(&str, &str)| CreatableTopicConfig {
        name: name.into(),
        value: Some(value.into()),
        ..Default::default()
    };
    let topic = CreatableTopic {
        name: topic.into(),
        num_partitions: 1,
        replication_factor: 1,
        configs: configs.iter().map(config).collect(),
        ..Default::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    let ResponseBody::CreateTopics(response) = client.call(request, 7) else { panic!("another") };
    assert_eq!(response.topics[0].error_code, 0, "{response:?}");
    let configs = response.topics[0].configs.as_ref().expect("configs");
    let found = configs.iter().find(|config| config.name == *KEY);
    found.map(|config| config.value.as_ref().expect("a value").to_string())
}

fn segments(node: &TestNode, topic: &str) -> usize {
    let Ok(entries) = std::fs::read_dir(node.data().join(format!("{topic}-0"))) else { return 0 };
    entries.flatten().filter(|entry| entry.path().extension().is_some_and(|end| end == "log")).count()
}

#[test]
fn repartition_topic_is_purged_segment_by_segment() {
    let mut node = TestNode::start_with(&["log.retention.check.interval.ms=200"]);
    let mut client = node.client();
    // As Kafka describes it: where it is set, and nowhere else.
    assert_eq!(create(&mut client, "plain", &[]), None);
    assert_eq!(described(&mut client, "plain"), None);
    let configs =
        [("cleanup.policy", "delete"), ("retention.ms", "-1"), (KEY, "2000"), ("segment.bytes", "52428800")];
    assert_eq!(create(&mut client, "repartition", &configs).as_deref(), Some("2000"));
    assert_eq!(described(&mut client, "repartition").as_deref(), Some("2000"));
    for number in 0..40 {
        assert_eq!(produce(&mut client, "repartition", 0, &format!("{number} {}", "x".repeat(900))), 0);
    }
    eventually("the segments are small", || segments(&node, "repartition") >= 10);
    let partition =
        DeleteRecordsPartition { partition_index: 0, offset: 38, ..DeleteRecordsPartition::default() };
    let topic = DeleteRecordsTopic {
        name: "repartition".into(),
        partitions: vec![partition],
        ..DeleteRecordsTopic::default()
    };
    let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    let ResponseBody::DeleteRecords(response) = client.call(request, 2) else { panic!("another") };
    assert_eq!(response.topics[0].partitions[0].error_code, 0);
    eventually("the segments before it go", || segments(&node, "repartition") <= 3);
    assert!(node.stop().success());
}
