//! What members of groups can make a node hold is bounded, and comes back when they go.

use crate::harness::{Client, TestNode};
use barnabas_wire::messages::join_group_request::JoinGroupRequestProtocol;
use barnabas_wire::messages::leave_group_request::MemberIdentity;
use barnabas_wire::messages::{
    FindCoordinatorRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, ResponseBody,
};
use bytes::Bytes;
use std::time::{Duration, Instant};

const GROUP_MAX_SIZE_REACHED: i16 = 81;

/// A member of the classic protocol that says `bytes` bytes of itself. In version 3 it is one at once.
fn join(client: &mut Client, group: &str, member: &str, bytes: usize) -> Box<JoinGroupResponse> {
    let metadata = Bytes::from(vec![7; bytes]);
    let request = JoinGroupRequest {
        group_id: group.into(),
        session_timeout_ms: 60_000,
        rebalance_timeout_ms: 1_000,
        member_id: member.into(),
        protocol_type: "bytes".into(),
        protocols: vec![JoinGroupRequestProtocol { name: "p".into(), metadata, ..Default::default() }],
        ..Default::default()
    };
    let ResponseBody::JoinGroup(response) = client.call(request, 3) else { panic!("another response") };
    response
}

fn await_coordinator(client: &mut Client) {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let request = FindCoordinatorRequest { key: "g".into(), ..Default::default() };
        let ResponseBody::FindCoordinator(found) = client.call(request, 2) else {
            panic!("another response")
        };
        if found.error_code == 0 {
            return;
        }
        assert!(Instant::now() < until, "no coordinator");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn members_metadata_is_bounded_and_comes_back() {
    let settings = ["group.initial.rebalance.delay.ms=0", "groups.memory.max.bytes=4194304"];
    let mut node = TestNode::start_with(&settings);
    let mut client = node.client();
    await_coordinator(&mut client);
    // One member, 2 MB: more than group.member.metadata.max.bytes.
    assert_eq!(join(&mut client, "g", "", 2_000_000).error_code, GROUP_MAX_SIZE_REACHED);
    // Members of 900 kB, a group each, until the node holds as much as it may.
    let mut members = Vec::new();
    for number in 0..20 {
        let group = format!("g{number}");
        let joined = join(&mut client, &group, "", 900_000);
        if joined.error_code != 0 {
            assert_eq!(joined.error_code, GROUP_MAX_SIZE_REACHED);
            break;
        }
        members.push((group, joined.member_id.to_string()));
    }
    assert_eq!(members.len(), 4, "4 MiB and no more");
    // A known member says the same again, and is served; a small one finds room only once a large one has gone.
    let (group, member) = &members[0];
    assert_eq!(join(&mut client, group, member, 900_000).error_code, 0);
    assert_eq!(join(&mut client, "other", "", 900_000).error_code, GROUP_MAX_SIZE_REACHED);
    let leaving = vec![MemberIdentity { member_id: member.as_str().into(), ..Default::default() }];
    let leave = LeaveGroupRequest { group_id: group.as_str().into(), members: leaving, ..Default::default() };
    let ResponseBody::LeaveGroup(left) = client.call(leave, 3) else { panic!("another response") };
    assert_eq!(left.members[0].error_code, 0);
    assert_eq!(join(&mut client, "other", "", 900_000).error_code, 0, "what the member held has come back");
    assert!(node.stop_expecting_trouble().success());
    let log = node.log();
    let warned = log.lines().filter(|line| line.contains(" WARN ")).collect::<Vec<_>>();
    assert!(warned.iter().any(|line| line.contains("group.member.metadata.max.bytes")), "{warned:#?}");
    assert!(warned.len() < 5, "once a minute for each worker: {warned:#?}");
}
