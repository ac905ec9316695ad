//! Share groups from end to end, over the wire: members, their partitions and their state, over a kill.

use crate::harness::{Client, TestNode};
use barnabas_base::TopicId;
use barnabas_wire::ResponseBody;
use barnabas_wire::messages::alter_share_group_offsets_request::{
    AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
};
use barnabas_wire::messages::describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestGroup;
use barnabas_wire::messages::{
    AlterShareGroupOffsetsRequest, DeleteGroupsRequest, DeleteTopicsRequest,
    DescribeShareGroupOffsetsRequest, FindCoordinatorRequest, ReadShareGroupStateRequest,
    ShareGroupDescribeRequest, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse,
    WriteShareGroupStateRequest, delete_topics_request, read_share_group_state_request,
    write_share_group_state_request,
};
use std::time::{Duration, Instant};

const GROUP: &str = "g";

fn heartbeat(
    client: &mut Client,
    member: &str,
    epoch: i32,
    names: Option<&[&str]>,
) -> ShareGroupHeartbeatResponse {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let request = ShareGroupHeartbeatRequest {
            group_id: GROUP.into(),
            member_id: member.into(),
            member_epoch: epoch,
            subscribed_topic_names: names.map(|names| names.iter().map(|name| (*name).into()).collect()),
            ..Default::default()
        };
        let ResponseBody::ShareGroupHeartbeat(response) = client.call(request, 1) else {
            panic!("no heartbeat")
        };
        // COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR: the topic is being made.
        if !matches!(response.error_code, 15 | 16) || Instant::now() > until {
            return *response;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// How many partitions a member was given.
fn given(response: &ShareGroupHeartbeatResponse) -> usize {
    assert_eq!(response.error_code, 0, "{:?}", response.error_message);
    let assignment = response.assignment.as_ref().expect("an assignment");
    assignment.topic_partitions.iter().map(|topic| topic.partitions.len()).sum()
}

/// Start, error and lag of each share-partition.
fn offsets(client: &mut Client) -> Vec<(i32, i64, i16, i64)> {
    let group = DescribeShareGroupOffsetsRequestGroup { group_id: GROUP.into(), ..Default::default() };
    let group = DescribeShareGroupOffsetsRequestGroup { topics: None, ..group };
    let request = DescribeShareGroupOffsetsRequest { groups: vec![group], ..Default::default() };
    let ResponseBody::DescribeShareGroupOffsets(response) = client.call(request, 1) else {
        panic!("no offsets")
    };
    let topics = response.groups[0].topics.iter();
    let mut all: Vec<_> = topics
        .flat_map(|topic| &topic.partitions)
        .map(|each| (each.partition_index, each.start_offset, each.error_code, each.lag))
        .collect();
    all.sort_unstable();
    all
}

fn write(client: &mut Client, topic: TopicId, state_epoch: i32, start_offset: i64) -> i16 {
    use write_share_group_state_request::{PartitionData, StateBatch, WriteStateData};
    let batch = StateBatch {
        first_offset: start_offset,
        last_offset: start_offset + 4,
        delivery_state: 2,
        delivery_count: 1,
        ..Default::default()
    };
    let partition = PartitionData {
        state_epoch,
        start_offset,
        delivery_complete_count: 5,
        state_batches: vec![batch],
        ..Default::default()
    };
    let topics = vec![WriteStateData { topic_id: topic, partitions: vec![partition], ..Default::default() }];
    let request = WriteShareGroupStateRequest { group_id: GROUP.into(), topics, ..Default::default() };
    let ResponseBody::WriteShareGroupState(response) = client.call(request, 1) else { panic!("no write") };
    response.results[0].partitions[0].error_code
}

/// State epoch, start offset and how many batches there are.
fn read(client: &mut Client, topic: TopicId) -> (i16, i32, i64, usize) {
    use read_share_group_state_request::{PartitionData, ReadStateData};
    let partitions = vec![PartitionData::default()];
    let topics = vec![ReadStateData { topic_id: topic, partitions, ..Default::default() }];
    let request = ReadShareGroupStateRequest { group_id: GROUP.into(), topics, ..Default::default() };
    let ResponseBody::ReadShareGroupState(response) = client.call(request, 0) else { panic!("no read") };
    let part = &response.results[0].partitions[0];
    (part.error_code, part.state_epoch, part.start_offset, part.state_batches.len())
}

#[test]
fn members_share_partitions_and_their_state_outlives_a_kill() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 4, &[]);
    let topic = client.topic_id("t");
    client.call(FindCoordinatorRequest { coordinator_keys: vec![GROUP.into()], ..Default::default() }, 6);

    // What a member is to read comes with the first answer; the second one shares.
    let a = heartbeat(&mut client, "a", 0, Some(&["t"]));
    assert_eq!((given(&a), a.member_epoch), (4, 2));
    std::thread::sleep(Duration::from_millis(1_100));
    let b = heartbeat(&mut client, "b", 0, Some(&["t"]));
    assert_eq!(given(&b), 2);
    assert_eq!(given(&heartbeat(&mut client, "a", 2, None)), 2);

    let (_, epoch, start, batches) = read(&mut client, topic);
    assert_eq!((epoch, start, batches), (2, -1, 0));
    assert_eq!(write(&mut client, topic, 2, 10), 0);
    assert_eq!(write(&mut client, topic, 1, 10), 124, "FENCED_STATE_EPOCH");

    node.kill();
    node.launch();
    let mut client = node.client();
    assert_eq!(read(&mut client, topic), (0, 2, 10, 1));
    let request = ShareGroupDescribeRequest { group_ids: vec![GROUP.into()], ..Default::default() };
    let ResponseBody::ShareGroupDescribe(response) = client.call(request, 1) else { panic!("no group") };
    assert_eq!((&*response.groups[0].group_state, response.groups[0].members.len()), ("Stable", 2));

    // The members leave; an administrator moves the start offset, and deletes the group.
    for (member, epoch) in [("a", 3), ("b", 3)] {
        assert_eq!(heartbeat(&mut client, member, epoch, None).error_code, 0);
        assert_eq!(heartbeat(&mut client, member, -1, None).error_code, 0);
    }
    let partition = AlterShareGroupOffsetsRequestPartition { start_offset: 3, ..Default::default() };
    let named = AlterShareGroupOffsetsRequestTopic {
        topic_name: "t".into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let alter =
        AlterShareGroupOffsetsRequest { group_id: GROUP.into(), topics: vec![named], ..Default::default() };
    let ResponseBody::AlterShareGroupOffsets(response) = client.call(alter, 0) else { panic!("not altered") };
    assert_eq!((response.error_code, response.responses[0].partitions[0].error_code), (0, 0));
    assert_eq!(write(&mut client, topic, 2, 10), 124, "the former leader writes no more");
    let now = offsets(&mut client);
    assert_eq!(
        now.iter().map(|each| (each.1, each.2)).collect::<Vec<_>>(),
        [(3, 0), (-1, 0), (-1, 0), (-1, 0)]
    );
    let delete = DeleteGroupsRequest { groups_names: vec![GROUP.into()], ..Default::default() };
    let ResponseBody::DeleteGroups(response) = client.call(delete, 2) else { panic!("not deleted") };
    assert_eq!(response.results[0].error_code, 0);
    assert_eq!(read(&mut client, topic).0, 42, "INVALID_REQUEST: there is no such state any more");
    assert_eq!(offsets(&mut client), []);
    assert!(node.stop().success());
}

#[test]
fn what_a_deleted_topic_had_is_forgotten() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    client.call(FindCoordinatorRequest { coordinator_keys: vec![GROUP.into()], ..Default::default() }, 6);
    assert_eq!(given(&heartbeat(&mut client, "a", 0, Some(&["t"]))), 1);
    let topics =
        vec![delete_topics_request::DeleteTopicState { name: Some("t".into()), ..Default::default() }];
    client.call(DeleteTopicsRequest { topics, timeout_ms: 10_000, ..Default::default() }, 6);
    let until = Instant::now() + Duration::from_secs(10);
    while !offsets(&mut client).is_empty() {
        assert!(Instant::now() < until, "the group still has offsets");
        std::thread::sleep(Duration::from_millis(20));
    }
    // A new group of the same name is initialized again.
    client.create_topic("t", 2, &[]);
    std::thread::sleep(Duration::from_millis(1_100));
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let answer = heartbeat(&mut client, "a", 0, Some(&["t"]));
        if given(&answer) == 2 {
            break;
        }
        assert!(Instant::now() < until, "{answer:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(node.stop().success());
}
