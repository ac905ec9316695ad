//! Groups of KIP-848 over the wire: one with a topic so large that its target is made beside the requests, over a
//! restart; one that subscribes by an expression.

use crate::harness::{Client, TestNode};
use barnabas_wire::messages::consumer_group_heartbeat_response::Assignment;
use barnabas_wire::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
    FindCoordinatorRequest, ResponseBody,
};
use std::time::{Duration, Instant};

/// Until `done`, with a coordinator that may have to be found or loaded first.
fn beat(
    client: &mut Client,
    request: &ConsumerGroupHeartbeatRequest,
    done: impl Fn(&ConsumerGroupHeartbeatResponse) -> bool,
) -> Box<ConsumerGroupHeartbeatResponse> {
    let asked = Instant::now();
    let mut request = request.clone();
    loop {
        assert!(asked.elapsed() < Duration::from_secs(20), "too long");
        let find = FindCoordinatorRequest { key: request.group_id.clone(), ..Default::default() };
        let ResponseBody::FindCoordinator(found) = client.call(find, 2) else { panic!("another response") };
        if found.error_code == 0 {
            let ResponseBody::ConsumerGroupHeartbeat(response) = client.call(request.clone(), 1) else {
                panic!("another response")
            };
            if done(&response) {
                return response;
            }
            assert!(matches!(response.error_code, 0 | 14 | 15 | 16), "{response:?}");
            if response.error_code == 0 {
                request.member_epoch = response.member_epoch;
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn join(group: &str) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: group.into(),
        member_id: "m".into(),
        rebalance_timeout_ms: 10_000,
        topic_partitions: Some(Vec::new()),
        ..Default::default()
    }
}

fn count(assignment: &Option<Assignment>) -> usize {
    let topics = assignment.iter().flat_map(|assignment| &assignment.topic_partitions);
    topics.map(|topic| topic.partitions.len()).sum()
}

#[test]
fn a_large_groups_target_is_made_beside_the_requests_and_outlives_a_restart() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("large", 6_000, &[]);
    let request =
        ConsumerGroupHeartbeatRequest { subscribed_topic_names: Some(vec!["large".into()]), ..join("g") };
    let first = beat(&mut client, &request, |told| told.error_code == 0);
    assert_eq!((first.member_epoch, count(&first.assignment)), (1, 0), "{first:?}");
    // The assignment is sent once it is complete; later heartbeats send only changes.
    let light = ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: "m".into(),
        member_epoch: 1,
        ..Default::default()
    };
    let told = beat(&mut client, &light, |told| told.member_epoch == 2);
    assert_eq!(count(&told.assignment), 6_000);
    assert!(node.stop().success());
    node.launch();
    let mut client = node.client();
    let light = ConsumerGroupHeartbeatRequest { member_epoch: 2, ..light };
    let told = beat(&mut client, &light, |told| told.error_code == 0);
    assert_eq!((told.member_epoch, told.assignment.is_some()), (2, false));
    let describe = ConsumerGroupDescribeRequest { group_ids: vec!["g".into()], ..Default::default() };
    let ResponseBody::ConsumerGroupDescribe(described) = client.call(describe, 1) else { panic!("another") };
    assert_eq!(described.groups[0].group_state, "Stable");
    assert!(node.stop().success());
}

#[test]
fn an_expression_finds_its_topics() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("logs-a", 2, &[]);
    client.create_topic("other", 2, &[]);
    let request =
        ConsumerGroupHeartbeatRequest { subscribed_topic_regex: Some("logs-.*".into()), ..join("r") };
    beat(&mut client, &request, |told| told.error_code == 0);
    let light = ConsumerGroupHeartbeatRequest {
        group_id: "r".into(),
        member_id: "m".into(),
        member_epoch: 1,
        ..Default::default()
    };
    let told = beat(&mut client, &light, |told| told.assignment.is_some());
    assert_eq!(count(&told.assignment), 2);
    let bad = ConsumerGroupHeartbeatRequest { subscribed_topic_regex: Some("(".into()), ..join("bad") };
    let told = beat(&mut client, &bad, |told| told.error_code == 128);
    assert!(told.error_message.is_some(), "INVALID_REGULAR_EXPRESSION");
    assert!(node.stop().success());
}
