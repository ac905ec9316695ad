//! How soon members of a consumer, share or streams group are told to beat next: soon while the group settles, then as the operator says.

mod rig;

use barnabas_coordinator::{GroupConfig, Request, Response};
use barnabas_wire::messages::streams_group_heartbeat_request::{Subtopology, Topology};
use barnabas_wire::messages::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
};
use rig::Rig;

const AS_CONFIGURED: i32 = 5_000;

fn beat(rig: &mut Rig, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse {
    let Response::ConsumerGroupHeartbeat(answer) = rig.ask(1, Request::ConsumerGroupHeartbeat(request))
    else {
        panic!("another answer");
    };
    assert_eq!(answer.error_code, 0, "{:?}", answer.error_message);
    answer
}

fn joins(rig: &mut Rig, member: &str) -> i32 {
    let request = ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: member.into(),
        rebalance_timeout_ms: 60_000,
        subscribed_topic_names: Some(vec!["t".into()]),
        topic_partitions: Some(Vec::new()),
        ..Default::default()
    };
    beat(rig, request).heartbeat_interval_ms
}

fn stays(rig: &mut Rig, member: &str, epoch: i32) -> i32 {
    let request = ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: member.into(),
        member_epoch: epoch,
        rebalance_timeout_ms: -1,
        ..Default::default()
    };
    beat(rig, request).heartbeat_interval_ms
}

#[test]
fn members_beat_sooner_while_the_group_settles() {
    let mut rig = Rig::new(GroupConfig::default());
    rig.topic("t", 1, 2);
    assert!(joins(&mut rig, "a") < AS_CONFIGURED, "the group has just changed");
    rig.elapsed_ms += 20_000;
    assert_eq!(stays(&mut rig, "a", 1), AS_CONFIGURED, "nothing happens");
    assert!(joins(&mut rig, "b") < AS_CONFIGURED, "it waits for what the first one has");
    rig.elapsed_ms += 20_000;
    assert!(stays(&mut rig, "a", 1) < AS_CONFIGURED, "it is to give up a partition");
}

/// An application that reads `topic`; `epoch` 0: joins.
fn streams(rig: &mut Rig, member: &str, epoch: i32, topic: &str) -> (i32, i32) {
    let subtopology =
        Subtopology { subtopology_id: "0".into(), source_topics: vec![topic.into()], ..Default::default() };
    let joins = epoch == 0;
    let request = StreamsGroupHeartbeatRequest {
        group_id: "s".into(),
        member_id: member.into(),
        member_epoch: epoch,
        rebalance_timeout_ms: if joins { 60_000 } else { -1 },
        topology: joins.then(|| Topology { subtopologies: vec![subtopology], ..Default::default() }),
        active_tasks: joins.then(Vec::new),
        standby_tasks: joins.then(Vec::new),
        warmup_tasks: joins.then(Vec::new),
        process_id: joins.then(|| member.into()),
        ..Default::default()
    };
    let Response::StreamsGroupHeartbeat(answer) =
        rig.ask(1, Request::StreamsGroupHeartbeat(Box::new(request)))
    else {
        panic!("another answer");
    };
    let response = answer.response;
    assert_eq!(response.error_code, 0, "{:?}", response.error_message);
    (response.member_epoch, response.heartbeat_interval_ms)
}

fn at_once() -> GroupConfig {
    let mut config = GroupConfig::default();
    config.streams.settings.initial_rebalance_delay = barnabas_base::DurationMs(0);
    config
}

#[test]
fn members_of_a_streams_group_beat_sooner_while_it_settles() {
    let mut rig = Rig::new(at_once());
    rig.topic("t", 1, 2);
    let (epoch, interval) = streams(&mut rig, "a", 0, "t");
    assert!(interval < AS_CONFIGURED, "the group has just changed");
    rig.elapsed_ms += 20_000;
    assert_eq!(streams(&mut rig, "a", epoch, "t").1, AS_CONFIGURED, "nothing happens");
    assert!(streams(&mut rig, "b", 0, "t").1 < AS_CONFIGURED, "it waits for what the first one has");
    rig.elapsed_ms += 20_000;
    assert!(streams(&mut rig, "a", epoch, "t").1 < AS_CONFIGURED, "it is to give up a task");
}

#[test]
fn an_application_whose_topics_are_missing_does_not_beat_sooner_for_ever() {
    let mut rig = Rig::new(at_once());
    let (epoch, _) = streams(&mut rig, "a", 0, "nowhere");
    rig.elapsed_ms += 20_000;
    assert_eq!(streams(&mut rig, "a", epoch, "nowhere").1, AS_CONFIGURED);
}

fn shares(rig: &mut Rig, member: &str, epoch: i32) -> i32 {
    let request = ShareGroupHeartbeatRequest {
        group_id: "q".into(),
        member_id: member.into(),
        member_epoch: epoch,
        subscribed_topic_names: (epoch == 0).then(|| vec!["t".into()]),
        ..Default::default()
    };
    let Response::ShareGroupHeartbeat(answer) = rig.ask(1, Request::ShareGroupHeartbeat(request)) else {
        panic!("another answer");
    };
    assert_eq!(answer.error_code, 0, "{:?}", answer.error_message);
    answer.heartbeat_interval_ms
}

/// Whoever joins within the assignment interval of others is told of its partitions when it beats next.
#[test]
fn members_of_a_share_group_beat_sooner_while_it_settles() {
    let mut rig = Rig::new(GroupConfig::default());
    assert!(shares(&mut rig, "a", 0) < AS_CONFIGURED, "the group has just changed");
    assert!(shares(&mut rig, "b", 0) < AS_CONFIGURED, "its target is not made yet");
    rig.elapsed_ms += 20_000;
    assert!(shares(&mut rig, "a", 1) <= AS_CONFIGURED);
    assert_eq!(shares(&mut rig, "a", 2), AS_CONFIGURED, "nothing happens");
}
