//! What members of groups can make a node hold is bounded, and comes back when they go.

use crate::harness::{Client, TestNode};
use barnabas_base::{TopicId, Uuid};
use barnabas_wire::messages::join_group_request::JoinGroupRequestProtocol;
use barnabas_wire::messages::leave_group_request::MemberIdentity;
use barnabas_wire::messages::{
    DeleteShareGroupStateRequest, FindCoordinatorRequest, InitProducerIdRequest,
    InitializeShareGroupStateRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, ResponseBody,
    delete_share_group_state_request, initialize_share_group_state_request,
};
use bytes::Bytes;
use std::time::{Duration, Instant};

const GROUP_MAX_SIZE_REACHED: i16 = 81;
const COORDINATOR_NOT_AVAILABLE: i16 = 15;
const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;

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

/// Asks until the coordinator is there: its topic is created, and its shard loaded.
fn once_there(mut ask: impl FnMut() -> i16) -> i16 {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let code = ask();
        if ![14, COORDINATOR_NOT_AVAILABLE, 16].contains(&code) || Instant::now() > until {
            return code;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn initialize(client: &mut Client, group: &str, topic_id: TopicId, partition: i32) -> i16 {
    use initialize_share_group_state_request::{InitializeStateData, PartitionData};
    let partitions = vec![PartitionData { partition, ..Default::default() }];
    let topics = vec![InitializeStateData { topic_id, partitions, ..Default::default() }];
    let request = InitializeShareGroupStateRequest { group_id: group.into(), topics, ..Default::default() };
    let ResponseBody::InitializeShareGroupState(answer) = client.call(request, 0) else {
        panic!("another response")
    };
    answer.results[0].partitions[0].error_code
}

fn end(client: &mut Client, group: &str, topic_id: TopicId) -> i16 {
    use delete_share_group_state_request::{DeleteStateData, PartitionData};
    let topics =
        vec![DeleteStateData { topic_id, partitions: vec![PartitionData::default()], ..Default::default() }];
    let request = DeleteShareGroupStateRequest { group_id: group.into(), topics, ..Default::default() };
    let ResponseBody::DeleteShareGroupState(answer) = client.call(request, 0) else {
        panic!("another response")
    };
    answer.results[0].partitions[0].error_code
}

fn init_producer(client: &mut Client, id: &str) -> i16 {
    let request = InitProducerIdRequest {
        transactional_id: Some(id.into()),
        transaction_timeout_ms: 60_000,
        ..Default::default()
    };
    let ResponseBody::InitProducerId(answer) = client.call(request, 3) else { panic!("another response") };
    answer.error_code
}

#[test]
fn share_state_and_transactional_ids_are_bounded() {
    let mut node = TestNode::start_with(&["groups.memory.max.bytes=4194304"]);
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    let topic = client.topic_id("t");
    let name = |kind: &str, number: usize| format!("{kind}{number:030000}");
    for (key_type, key) in [(1, "x"), (2, "g:AAAAAAAAAAAAAAAAAAAAAA:0")] {
        let coordinator_keys = vec![key.into()];
        let request = FindCoordinatorRequest { key_type, coordinator_keys, ..Default::default() };
        client.call(request, 6);
    }
    assert_eq!(once_there(|| init_producer(&mut client, "known")), 0);
    assert_eq!(once_there(|| initialize(&mut client, "known", topic, 0)), 0);
    let unknown = Uuid([9; 16]);
    assert_eq!(once_there(|| initialize(&mut client, "known", unknown, 0)), UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(once_there(|| initialize(&mut client, "known", topic, 1)), UNKNOWN_TOPIC_OR_PARTITION);

    // Share groups with ids of 30 kB, until the node holds as much as it may.
    let mut groups = Vec::new();
    for number in 0..400 {
        let group = name("group", number);
        match once_there(|| initialize(&mut client, &group, topic, 0)) {
            0 => groups.push(group),
            code => {
                assert_eq!(code, GROUP_MAX_SIZE_REACHED);
                break;
            }
        }
    }
    assert!((100..140).contains(&groups.len()), "4 MiB and no more: {}", groups.len());
    let rss = node.rss_bytes();
    for number in 0..1_000 {
        assert_eq!(initialize(&mut client, &name("more", number), topic, 0), GROUP_MAX_SIZE_REACHED);
        // Who only asks where a coordinator is leaves nothing.
        let coordinator_keys = vec![name("asked", number).into()];
        client.call(FindCoordinatorRequest { coordinator_keys, ..Default::default() }, 6);
    }
    for number in 0..1_000 {
        assert_eq!(init_producer(&mut client, &name("id", number)), COORDINATOR_NOT_AVAILABLE);
    }
    let more = node.rss_bytes().saturating_sub(rss);
    assert!(more < 20 << 20, "90 MB of names came, and {more} bytes stayed");
    // What is known goes on, and room that comes back is for everybody.
    assert_eq!(init_producer(&mut client, "known"), 0);
    assert_eq!(initialize(&mut client, "known", topic, 0), 0);
    assert_eq!(end(&mut client, &groups[0], topic), 0);
    assert_eq!(init_producer(&mut client, "new"), 0);
    assert!(node.stop_expecting_trouble().success());
    let log = node.log();
    let warned = log.lines().filter(|line| line.contains(" WARN ")).collect::<Vec<_>>();
    assert!(warned.iter().any(|line| line.contains("groups.memory.max.bytes allows 4194304")), "{warned:#?}");
    assert!(warned.len() < 10, "once a minute for each worker: {warned:#?}");
}
