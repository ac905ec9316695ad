//! Groups over three brokers whose coordinators die: what was committed is there, and who is a member stays one.

use crate::harness::cluster::{Cluster, GROUP, SETTINGS, comes_back, committed, leaders, until};
use barnabas_wire::messages::join_group_request::JoinGroupRequestProtocol;
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::sync_group_request::SyncGroupRequestAssignment;
use barnabas_wire::messages::{
    HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, OffsetCommitRequest, ResponseBody,
    SyncGroupRequest, SyncGroupResponse,
};
use bytes::Bytes;
use std::time::Instant;

const PARTITIONS: i32 = 6;

fn commit(cluster: &Cluster, group: &str, offset: i64) {
    let code = until("an offset is committed", || {
        let partition = OffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
        let topic =
            OffsetCommitRequestTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
        let request = OffsetCommitRequest {
            group_id: group.into(),
            generation_id_or_member_epoch: -1,
            topics: vec![topic],
            ..Default::default()
        };
        let node = cluster.coordinator(GROUP, group)?;
        let ResponseBody::OffsetCommit(response) = cluster.ask(node, request, 7)? else {
            panic!("another response")
        };
        let code = response.topics[0].partitions[0].error_code;
        (!comes_back(code)).then_some(code)
    });
    assert_eq!(code, 0);
}

#[test]
fn committed_offsets_outlive_their_coordinators() {
    let mut cluster = Cluster::start(SETTINGS);
    cluster.create("t", PARTITIONS);
    let groups: Vec<String> = (0..12).map(|number| format!("g{number}")).collect();
    cluster.await_coordinator(GROUP, "g0");
    assert_eq!(leaders(&cluster, "__consumer_offsets", 6).len(), 3);
    let replicas = |cluster: &Cluster| {
        let known = cluster.metadata();
        let topic = known.topics.iter().find(|topic| topic.name.as_deref() == Some("__consumer_offsets"));
        topic.expect("it is there").partitions.iter().map(|row| row.replica_nodes.len()).min()
    };
    assert_eq!(replicas(&cluster), Some(3));
    for round in 0..4 {
        cluster.await_in_sync();
        for group in &groups {
            commit(&cluster, group, round);
        }
        let victim = cluster.await_coordinator(GROUP, "g0");
        let killed = Instant::now();
        cluster.kill(victim);
        for group in &groups {
            assert_eq!(committed(&cluster, group), round, "{group}");
        }
        println!("all groups found their offsets {:?} after the kill", killed.elapsed());
        for group in &groups {
            commit(&cluster, group, round + 100);
        }
        cluster.launch(victim);
        for group in &groups {
            assert_eq!(committed(&cluster, group), round + 100, "{group}");
        }
    }
    cluster.stop();
}

fn join(cluster: &Cluster, member: &str) -> JoinGroupResponse {
    until("an answer to a join", || {
        let protocol = JoinGroupRequestProtocol {
            name: "range".into(),
            metadata: Bytes::from_static(b"subscription"),
            ..Default::default()
        };
        let request = JoinGroupRequest {
            group_id: "g".into(),
            session_timeout_ms: 30_000,
            rebalance_timeout_ms: 30_000,
            member_id: member.into(),
            protocol_type: "consumer".into(),
            protocols: vec![protocol],
            ..Default::default()
        };
        let node = cluster.coordinator(GROUP, "g")?;
        let ResponseBody::JoinGroup(joined) = cluster.ask(node, request, 5)? else {
            panic!("another response")
        };
        (!comes_back(joined.error_code)).then_some(*joined)
    })
}

fn sync(cluster: &Cluster, joined: &JoinGroupResponse, assignments: &[&'static [u8]]) -> SyncGroupResponse {
    until("an assignment", || {
        let assignment = |bytes: &&'static [u8]| SyncGroupRequestAssignment {
            member_id: joined.member_id.clone(),
            assignment: Bytes::from_static(bytes),
            ..Default::default()
        };
        let request = SyncGroupRequest {
            group_id: "g".into(),
            generation_id: joined.generation_id,
            member_id: joined.member_id.clone(),
            assignments: assignments.iter().map(assignment).collect(),
            ..Default::default()
        };
        let node = cluster.coordinator(GROUP, "g")?;
        let ResponseBody::SyncGroup(synced) = cluster.ask(node, request, 3)? else {
            panic!("another response")
        };
        (!comes_back(synced.error_code)).then_some(*synced)
    })
}

fn heartbeat(cluster: &Cluster, joined: &JoinGroupResponse) -> i16 {
    until("a heartbeat's answer", || {
        let request = HeartbeatRequest {
            group_id: "g".into(),
            generation_id: joined.generation_id,
            member_id: joined.member_id.clone(),
            ..Default::default()
        };
        let node = cluster.coordinator(GROUP, "g")?;
        let ResponseBody::Heartbeat(alive) = cluster.ask(node, request, 3)? else {
            panic!("another response")
        };
        (!comes_back(alive.error_code)).then_some(alive.error_code)
    })
}

/// A member joins, and gets its assignment; then the coordinator dies, and the next one knows it still.
#[test]
fn a_classic_groups_member_is_known_to_the_next_coordinator() {
    let mut cluster = Cluster::start(SETTINGS);
    cluster.create("t", PARTITIONS);
    let first = join(&cluster, "");
    assert_eq!(first.error_code, 79, "MEMBER_ID_REQUIRED");
    let joined = join(&cluster, &first.member_id);
    assert_eq!(joined.error_code, 0);
    assert_eq!(sync(&cluster, &joined, &[b"everything"]).error_code, 0);
    for _ in 0..2 {
        cluster.await_in_sync();
        let victim = cluster.await_coordinator(GROUP, "g");
        cluster.kill(victim);
        let code = heartbeat(&cluster, &joined);
        assert_eq!(code, 0, "it need not join again");
        assert_eq!(&sync(&cluster, &joined, &[]).assignment[..], b"everything");
        cluster.launch(victim);
    }
    cluster.await_in_sync();
    cluster.stop();
}
