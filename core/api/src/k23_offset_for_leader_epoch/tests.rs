use super::*;
use crate::testing::{Fixture, carried, versions};
use barnabas_wire::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};

fn request(topic: &str, partition: i32, current: i32) -> OffsetForLeaderEpochRequest {
    let partition = OffsetForLeaderPartition {
        partition,
        current_leader_epoch: current,
        leader_epoch: 4,
        ..OffsetForLeaderPartition::default()
    };
    let topic = OffsetForLeaderTopic {
        topic: topic.into(),
        partitions: vec![partition],
        ..OffsetForLeaderTopic::default()
    };
    OffsetForLeaderEpochRequest { topics: vec![topic], ..OffsetForLeaderEpochRequest::default() }
}

fn check(outcome: Outcome, version: i16, expect: (i16, i32, i64)) {
    let fixture = Fixture::new();
    let Plan::Work(mut work) = plan(request("orders", 0, 5), version, &fixture.ctx()) else {
        panic!("no work")
    };
    assert_eq!((work.parts[0].current, work.parts[0].epoch), (Some(LeaderEpoch(5)), LeaderEpoch(4)));
    work.pending.set(work.parts[0].slot, outcome);
    let response = carried(work.pending.respond(), version);
    let said = &response.topics[0].partitions[0];
    assert_eq!((said.error_code, said.leader_epoch, said.end_offset), expect, "version {version}");
}

#[test]
fn every_version_carries_the_end_of_an_epoch() {
    for version in versions::<OffsetForLeaderEpochResponse>() {
        let epoch = if version >= 1 { 3 } else { -1 };
        check(Ok(Some((LeaderEpoch(3), Offset(40)))), version, (0, epoch, 40));
        check(Ok(None), version, (0, -1, -1));
        check(Err(ErrorCode::FencedLeaderEpoch), version, (74, -1, -1));
    }
}

#[test]
fn what_cannot_be_answered_here_is_refused() {
    let fixture = Fixture::new();
    let code = |topic, partition| match plan(request(topic, partition, -1), 4, &fixture.ctx()) {
        Plan::Answer(response) => response.topics[0].partitions[0].error_code,
        Plan::Work(work) => {
            assert_eq!(work.parts[0].current, None);
            0
        }
    };
    assert_eq!([code("unknown", 0), code("orders", 3), code("orders", 1), code("orders", 0)], [3, 3, 6, 0]);
}
