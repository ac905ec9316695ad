//! The new process of a static member, after a crash that kept a part of what it had changed: one member has the
//! instance id, and goes on.

mod rig;

use barnabas_coordinator::{GroupConfig, Request, Response};
use barnabas_wire::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
};
use rig::{Logged, Rig};

const OLD: &str = "old-member";
const NEW: &str = "new-member";

/// Types of records that describe a member, as Kafka numbers them.
const MEMBER: i16 = 5;
const TARGET: i16 = 7;
const CURRENT: i16 = 8;

fn beat(rig: &mut Rig, member: &str, epoch: i32) -> ConsumerGroupHeartbeatResponse {
    let joins = epoch == 0;
    let request = ConsumerGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: member.into(),
        instance_id: Some("i".into()),
        member_epoch: epoch,
        rebalance_timeout_ms: if joins { 60_000 } else { -1 },
        subscribed_topic_names: joins.then(|| vec!["t".into()]),
        topic_partitions: joins.then(Vec::new),
        ..Default::default()
    };
    let Response::ConsumerGroupHeartbeat(answer) = rig.ask(1, Request::ConsumerGroupHeartbeat(request))
    else {
        panic!("another answer");
    };
    answer
}

/// A group in which a static member was replaced.
fn replaced() -> Rig {
    let mut rig = Rig::new(GroupConfig::default());
    rig.topic("t", 1, 2);
    assert_eq!(beat(&mut rig, OLD, 0).error_code, 0);
    assert_eq!(beat(&mut rig, OLD, -2).error_code, 0);
    assert_eq!(beat(&mut rig, NEW, 0).error_code, 0);
    rig
}

fn is_about(logged: &Logged, kind: i16, member: &str) -> bool {
    let Some(record) = logged.record() else { return false };
    record.key.starts_with(&kind.to_be_bytes())
        && record.key.windows(member.len()).any(|part| part == member.as_bytes())
}

fn is_tombstone(logged: &Logged) -> bool {
    logged.record().is_some_and(|record| record.value.is_none())
}

fn members(rig: &mut Rig) -> Vec<(String, i32, usize)> {
    let request = ConsumerGroupDescribeRequest { group_ids: vec!["g".into()], ..Default::default() };
    let Response::ConsumerGroupDescribe(described) = rig.ask(1, Request::ConsumerGroupDescribe(request))
    else {
        panic!("another answer");
    };
    let members = described.groups[0].members.iter().map(|member| {
        let partitions = member.assignment.topic_partitions.iter().map(|topic| topic.partitions.len());
        (member.member_id.to_string(), member.member_epoch, partitions.sum())
    });
    members.collect()
}

/// Whichever of the tombstones of the old member are lost, the new one has its place after a restart.
#[test]
fn a_member_that_was_replaced_does_not_come_back() {
    for lost in 1..8 {
        let mut rig = replaced();
        let kinds = [MEMBER, TARGET, CURRENT].into_iter().enumerate();
        let lost: Vec<i16> = kinds.filter(|(bit, _)| lost >> bit & 1 == 1).map(|(_, kind)| kind).collect();
        let before = rig.log.len();
        rig.log
            .retain(|logged| !(is_tombstone(logged) && lost.iter().any(|kind| is_about(logged, *kind, OLD))));
        assert_eq!(rig.log.len(), before - lost.len(), "{lost:?}");
        rig.restart();
        let known = members(&mut rig);
        assert_eq!(known.len(), 1, "{lost:?}: {known:?}");
        assert_eq!(known[0].0, NEW, "{lost:?}");
        let epoch = known[0].1;
        assert_eq!(beat(&mut rig, NEW, epoch).error_code, 0, "{lost:?}");
        rig.elapsed_ms += 2_000;
        let epoch = members(&mut rig)[0].1;
        assert_eq!(beat(&mut rig, NEW, epoch).error_code, 0, "{lost:?}");
        assert_eq!(members(&mut rig)[0].2, 2, "{lost:?}: it has all there is");
        // What was dropped is dropped in the log too.
        rig.restart();
        assert_eq!(members(&mut rig).len(), 1, "{lost:?}");
    }
}

/// The other half of the change is lost: the new member is not known, and comes again.
#[test]
fn a_member_whose_records_were_lost_joins_again() {
    let mut rig = replaced();
    rig.log.retain(|logged| ![MEMBER, TARGET, CURRENT].iter().any(|kind| is_about(logged, *kind, NEW)));
    rig.restart();
    assert_eq!(members(&mut rig), []);
    // A target holds for a second.
    rig.elapsed_ms += 2_000;
    assert_eq!(beat(&mut rig, NEW, 0).error_code, 0);
    assert_eq!(members(&mut rig)[0].2, 2);
}
