//! How soon members of a consumer group are told to beat next: soon while the group settles, then as the operator says.

mod rig;

use barnabas_coordinator::{GroupConfig, Request, Response};
use barnabas_wire::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
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
