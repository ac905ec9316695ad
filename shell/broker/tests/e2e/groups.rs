//! Classic groups and committed offsets, over restarts.

use crate::harness::{Client, TestNode};
use barnabas_wire::messages::join_group_request::JoinGroupRequestProtocol;
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::offset_fetch_request::OffsetFetchRequestTopic;
use barnabas_wire::messages::sync_group_request::SyncGroupRequestAssignment;
use barnabas_wire::messages::{
    FindCoordinatorRequest, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, ListGroupsRequest,
    OffsetCommitRequest, OffsetFetchRequest, ResponseBody, SyncGroupRequest,
};
use bytes::Bytes;
use std::time::{Duration, Instant};

pub fn find_coordinator(client: &mut Client, group: &str) {
    find_coordinator_of(client, 0, group);
}

/// Asks until node 1 is the coordinator. `key_type`: 0 of a group, 1 of a transaction, 2 of a share group's state.
pub fn find_coordinator_of(client: &mut Client, key_type: i8, key: &str) {
    let asked = Instant::now();
    loop {
        let request =
            FindCoordinatorRequest { key_type, coordinator_keys: vec![key.into()], ..Default::default() };
        let ResponseBody::FindCoordinator(response) = client.call(request, 6) else {
            panic!("another response")
        };
        let found = &response.coordinators[0];
        if found.error_code == 0 {
            assert_eq!(found.node_id, 1);
            return;
        }
        assert_eq!(found.error_code, 15, "COORDINATOR_NOT_AVAILABLE");
        assert!(asked.elapsed() < Duration::from_secs(5));
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn join(client: &mut Client, group: &str, member: &str) -> Box<JoinGroupResponse> {
    let protocol = JoinGroupRequestProtocol {
        name: "range".into(),
        metadata: Bytes::from_static(b"subscription"),
        ..Default::default()
    };
    let request = JoinGroupRequest {
        group_id: group.into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        member_id: member.into(),
        protocol_type: "consumer".into(),
        protocols: vec![protocol],
        ..Default::default()
    };
    let ResponseBody::JoinGroup(response) = client.call(request, 5) else { panic!("another response") };
    response
}

fn join_until_member(client: &mut Client, group: &str) -> Box<JoinGroupResponse> {
    let first = join(client, group, "");
    assert_eq!(first.error_code, 79, "MEMBER_ID_REQUIRED");
    let joined = join(client, group, first.member_id.as_str());
    assert_eq!(joined.error_code, 0, "{joined:?}");
    joined
}

fn commit(client: &mut Client, group: &str, member: (&str, i32), topic: &str, offset: i64) -> i16 {
    let partition = OffsetCommitRequestPartition {
        partition_index: 0,
        committed_offset: offset,
        committed_metadata: Some("note".into()),
        ..Default::default()
    };
    let topic =
        OffsetCommitRequestTopic { name: topic.into(), partitions: vec![partition], ..Default::default() };
    let request = OffsetCommitRequest {
        group_id: group.into(),
        member_id: member.0.into(),
        generation_id_or_member_epoch: member.1,
        topics: vec![topic],
        ..Default::default()
    };
    let ResponseBody::OffsetCommit(response) = client.call(request, 7) else { panic!("another response") };
    response.topics[0].partitions[0].error_code
}

fn committed(client: &mut Client, group: &str, topic: &str) -> i64 {
    let topic =
        OffsetFetchRequestTopic { name: topic.into(), partition_indexes: vec![0], ..Default::default() };
    let request =
        OffsetFetchRequest { group_id: group.into(), topics: Some(vec![topic]), ..Default::default() };
    let ResponseBody::OffsetFetch(response) = client.call(request, 5) else { panic!("another response") };
    assert_eq!(response.error_code, 0, "{response:?}");
    response.topics[0].partitions[0].committed_offset
}

#[test]
fn a_group_joins_commits_and_finds_its_offsets_again() {
    let mut node = TestNode::start_with(&["group.initial.rebalance.delay.ms=0"]);
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    find_coordinator(&mut client, "g");
    let joined = join_until_member(&mut client, "g");
    let (member, generation) = (joined.member_id.as_str(), joined.generation_id);
    assert_eq!(joined.leader, joined.member_id);
    assert_eq!(joined.members.len(), 1);

    let assignment = SyncGroupRequestAssignment {
        member_id: member.into(),
        assignment: Bytes::from_static(b"everything"),
        ..Default::default()
    };
    let request = SyncGroupRequest {
        group_id: "g".into(),
        generation_id: generation,
        member_id: member.into(),
        assignments: vec![assignment],
        ..Default::default()
    };
    let ResponseBody::SyncGroup(synced) = client.call(request, 3) else { panic!("another response") };
    assert_eq!((synced.error_code, &synced.assignment[..]), (0, &b"everything"[..]));

    let request = HeartbeatRequest {
        group_id: "g".into(),
        generation_id: generation,
        member_id: member.into(),
        ..Default::default()
    };
    let ResponseBody::Heartbeat(alive) = client.call(request, 3) else { panic!("another response") };
    assert_eq!(alive.error_code, 0);

    assert_eq!(committed(&mut client, "g", "t"), -1);
    assert_eq!(commit(&mut client, "g", (member, generation), "t", 42), 0);
    assert_eq!(commit(&mut client, "g", (member, generation + 7), "t", 43), 22, "ILLEGAL_GENERATION");
    assert_eq!(committed(&mut client, "g", "t"), 42);

    // The node is killed; the offset was acknowledged.
    node.kill();
    node.launch();
    let mut client = node.client();
    find_coordinator(&mut client, "g");
    assert_eq!(committed(&mut client, "g", "t"), 42);
    assert_eq!(commit(&mut client, "g", (member, generation), "t", 44), 0, "the member is known still");
    let ResponseBody::ListGroups(listed) = client.call(ListGroupsRequest::default(), 3) else {
        panic!("another response")
    };
    assert_eq!(listed.groups.iter().map(|group| group.group_id.as_str()).collect::<Vec<_>>(), ["g"]);
    assert!(node.stop().success());
    node.launch();
    assert_eq!(committed(&mut node.client(), "g", "t"), 44);
    assert!(node.stop().success());
}
