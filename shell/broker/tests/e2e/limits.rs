//! A few bytes of a request ask for very much metadata: the node refuses it, names the key, and goes on.

use crate::harness::{Client, TestNode};
use barnabas_wire::messages::create_topics_request::CreatableTopic;
use barnabas_wire::messages::metadata_request::MetadataRequestTopic;
use barnabas_wire::messages::{CreateTopicsRequest, FindCoordinatorRequest, MetadataRequest, ResponseBody};
use std::time::{Duration, Instant};

const POLICY_VIOLATION: i16 = 44;

fn topics(client: &mut Client) -> usize {
    let request = MetadataRequest { topics: None, ..MetadataRequest::default() };
    let ResponseBody::Metadata(response) = client.call(request, 12) else { panic!("another response") };
    response.topics.len()
}

/// Names topics that do not exist, as a producer or a consumer does.
fn name_topics(client: &mut Client, names: impl Iterator<Item = String>) {
    let topic =
        |name: String| MetadataRequestTopic { name: Some(name.into()), ..MetadataRequestTopic::default() };
    let request = MetadataRequest {
        topics: Some(names.map(topic).collect()),
        allow_auto_topic_creation: true,
        ..MetadataRequest::default()
    };
    assert!(client.try_call(request, 12).is_some());
}

#[test]
fn metadata_request_for_20000_topics_creates_a_hundred() {
    let mut node = TestNode::start();
    let mut client = node.client();
    let since = Instant::now();
    name_topics(&mut client, (0..20_000).map(|number| format!("t{number}")));
    let by = since + Duration::from_secs(60);
    while topics(&mut client) < 100 && Instant::now() < by {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(topics(&mut client), 100);
    assert!(node.log().contains("auto.create.topics.request.max"), "{}", node.log());
    // The rest is created when the client asks again, and coordinators' topics are not counted.
    let request =
        FindCoordinatorRequest { coordinator_keys: vec!["g".into()], ..FindCoordinatorRequest::default() };
    assert!(client.try_call(request, 4).is_some());
    let by = Instant::now() + Duration::from_secs(60);
    while topics(&mut client) < 251 && Instant::now() < by {
        name_topics(&mut client, (0..150).map(|number| format!("a{number}")));
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(topics(&mut client), 251);
    assert!(node.stop().success());
}

/// The threads for long work are made with their first job.
fn has_threads_for_long_work(node: &TestNode) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{}/task", node.pid())).expect("proc");
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.into_iter().any(|name| name.starts_with("unpack-"))
}

#[test]
fn metadata_of_many_names_is_looked_up_off_the_worker() {
    let mut node = TestNode::start_with(&["auto.create.topics.enable=false"]);
    let mut client = node.client();
    name_topics(&mut client, (0..1_000).map(|number| format!("t{number}")));
    assert!(!has_threads_for_long_work(&node));
    name_topics(&mut client, (0..5_000).map(|number| format!("t{number}")));
    assert!(has_threads_for_long_work(&node));
    assert!(node.stop().success());
}

fn create(client: &mut Client, name: &str, partitions: i32) -> (i16, String) {
    let topic = CreatableTopic {
        name: name.into(),
        num_partitions: partitions,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 60_000, ..Default::default() };
    let ResponseBody::CreateTopics(response) = client.call(request, 7) else { panic!("another response") };
    let message = response.topics[0].error_message.as_ref().map(ToString::to_string);
    (response.topics[0].error_code, message.unwrap_or_default())
}

#[test]
fn partitions_stop_at_the_clusters_limit() {
    let mut node = TestNode::start_with(&["metadata.partitions.max=150000"]);
    let mut client = node.client();
    let (code, message) = create(&mut client, "million", 1_000_000);
    assert!(code == POLICY_VIOLATION && message.contains("metadata.partitions.request.max"), "{message}");
    assert_eq!(create(&mut client, "large", 100_000).0, 0);
    let (code, message) = create(&mut client, "more", 100_000);
    assert!(code == POLICY_VIOLATION && message.contains("metadata.partitions.max"), "{message}");
    assert_eq!(create(&mut client, "small", 1).0, 0);
    // The limit is raised while the node runs.
    assert_eq!(client.alter_config(1, (4, ""), "metadata.partitions.max", Some("300000")), 0);
    assert_eq!(create(&mut client, "more", 100_000).0, 0);
    assert!(node.stop().success());
}
