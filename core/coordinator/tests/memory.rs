//! What groups hold is counted, whatever a client says under ever new names.

mod rig;

use barnabas_coordinator::{GroupConfig, Request, Response};
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::sync_group_request::SyncGroupRequestAssignment;
use barnabas_wire::messages::{
    ConsumerGroupHeartbeatRequest, HeartbeatRequest, LeaveGroupRequest, OffsetCommitRequest,
    SyncGroupRequest, TxnOffsetCommitRequest,
};
use rig::Rig;

const LONG: usize = 32_000;

/// The name of a new group.
fn group(number: usize) -> String {
    format!("{number:0LONG$}")
}

fn beat(group: String, member_epoch: i32) -> Request {
    Request::ConsumerGroupHeartbeat(ConsumerGroupHeartbeatRequest {
        group_id: group.into(),
        member_id: "m".into(),
        member_epoch,
        rebalance_timeout_ms: 60_000,
        subscribed_topic_names: Some(vec!["t".into()]),
        topic_partitions: Some(Vec::new()),
        ..Default::default()
    })
}

fn commit(group: String, generation: i32, partitions: usize) -> Request {
    let partitions = vec![OffsetCommitRequestPartition::default(); partitions];
    let topic = OffsetCommitRequestTopic { name: "t".into(), partitions, ..Default::default() };
    let generation_id_or_member_epoch = generation;
    Request::OffsetCommit(OffsetCommitRequest {
        group_id: group.into(),
        generation_id_or_member_epoch,
        topics: vec![topic],
        ..Default::default()
    })
}

#[test]
fn refused_requests_for_new_groups_leave_nothing() {
    let mut rig = Rig::new(GroupConfig::default());
    let sync = |group: String| {
        let assignments = vec![SyncGroupRequestAssignment { member_id: "m".into(), ..Default::default() }];
        let member_id = "m".into();
        Request::SyncGroup(SyncGroupRequest {
            group_id: group.into(),
            member_id,
            assignments,
            ..Default::default()
        })
    };
    let transactional = |group: String| {
        Request::TxnOffsetCommit(TxnOffsetCommitRequest {
            group_id: group.into(),
            generation_id_or_member_epoch: 7,
            ..Default::default()
        })
    };
    type Make = fn(String) -> Request;
    let kinds: [(i16, Make); 7] = [
        (5, sync),
        (5, transactional),
        (4, |group| Request::Heartbeat(HeartbeatRequest { group_id: group.into(), ..Default::default() })),
        (5, |group| Request::LeaveGroup(LeaveGroupRequest { group_id: group.into(), ..Default::default() })),
        (5, |group| commit(group, 7, 1)),
        (5, |group| commit(group, -1, 0)),
        (1, |group| beat(group, 7)),
    ];
    for (at, (version, kind)) in kinds.into_iter().enumerate() {
        for number in 0..20 {
            rig.send("c", version, kind(group(number)));
        }
        assert_eq!(rig.shard.room().held(), 0, "kind {at}");
    }
}

#[test]
fn ever_new_groups_are_refused_at_the_bound() {
    let groups_bytes_max = 1 << 20;
    let mut rig = Rig::new(GroupConfig { groups_bytes_max, ..GroupConfig::default() });
    rig.topic("t", 1, 1);
    let mut codes = Vec::new();
    for number in 0..100 {
        let Response::ConsumerGroupHeartbeat(answer) = rig.ask(1, beat(group(number), 0)) else {
            panic!("another answer")
        };
        codes.push(answer.error_code);
        assert!(rig.shard.room().held() <= groups_bytes_max + 3 * LONG, "over by one group at most");
    }
    let taken = codes.iter().take_while(|code| **code == 0).count();
    assert!((14..=18).contains(&taken), "64 KB each: {taken}");
    assert!(codes[taken..].iter().all(|code| *code == 81), "{codes:?}");
    let Response::OffsetCommit(answer) = rig.ask(5, commit("o".into(), -1, 1)) else {
        panic!("another answer")
    };
    assert_eq!(answer.topics[0].partitions[0].error_code, 28, "INVALID_COMMIT_OFFSET_SIZE");
}

#[test]
fn clients_ids_count_as_members_bytes() {
    let group_bytes_max = 1 << 20;
    let mut rig = Rig::new(GroupConfig { group_bytes_max, ..GroupConfig::default() });
    rig.topic("t", 1, 1);
    let client = "c".repeat(LONG);
    for number in 0..200 {
        let Request::ConsumerGroupHeartbeat(mut request) = beat("g".into(), 0) else { unreachable!() };
        request.member_id = format!("m{number}").into();
        rig.send(&client, 1, Request::ConsumerGroupHeartbeat(request));
    }
    assert!(rig.shard.stats().members <= 33, "{} members of 32 KB", rig.shard.stats().members);
}
