//! Answers that grow with what the node has, and not with the request: they are made part by part, within the memory
//! budget, and many that are asked for at once wait for each other instead of adding up.

use crate::harness::patience::until;
use crate::harness::{Client, TestNode, now_ms};
use barnabas_base::{ProducerEpoch, ProducerId, Sequence, TimestampMs};
use barnabas_wire::RequestBody;
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use barnabas_wire::messages::*;
use barnabas_wire::records::{BatchBuilder, BatchOptions};

const MIB: u64 = 1 << 20;
/// Names are as long as they can be, so that few of them make a long answer.
const NAME_BYTES: usize = 30_000;
const NAMES: usize = 100;
const OFFSETS: i32 = 700;
const TALKERS: [&str; 3] = ["talker-1", "talker-2", "talker-3"];
/// Clients that ask for the same at once.
const CLIENTS: usize = 12;
/// Each answer takes 15 MiB, of which the clients' address gets one at a time.
const BUDGET: u64 = 32 * MIB;

fn name(number: usize) -> barnabas_wire::Str {
    format!("{number:0NAME_BYTES$}").into()
}

fn commit(client: &mut Client, group: barnabas_wire::Str, partitions: std::ops::Range<i32>, metadata: &str) {
    let partition = |partition_index| OffsetCommitRequestPartition {
        partition_index,
        committed_metadata: Some(metadata.into()),
        ..Default::default()
    };
    let topic = OffsetCommitRequestTopic {
        name: "t".into(),
        partitions: partitions.map(partition).collect(),
        ..Default::default()
    };
    let request = OffsetCommitRequest {
        group_id: group,
        generation_id_or_member_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    };
    until("a commit", || {
        let ResponseBody::OffsetCommit(answer) = client.call(request.clone(), 7) else { panic!("another") };
        let code = answer.topics[0].partitions[0].error_code;
        assert!([0, 14, 15, 16].contains(&code), "{code}");
        (code == 0).then_some(())
    });
}

/// Has the topics of the coordinators made.
fn find_coordinators(client: &mut Client) {
    for key_type in [0, 1] {
        let request =
            FindCoordinatorRequest { key_type, coordinator_keys: vec!["k".into()], ..Default::default() };
        until("a coordinator", || {
            let ResponseBody::FindCoordinator(found) = client.call(request.clone(), 4) else {
                panic!("another")
            };
            (found.coordinators[0].error_code == 0).then_some(())
        });
    }
}

fn add_groups(client: &mut Client, count: usize) {
    (0..count).for_each(|number| commit(client, name(number), 0..1, ""));
}

fn add_transactional_ids(client: &mut Client) {
    for number in 0..NAMES {
        let request = InitProducerIdRequest {
            transactional_id: Some(name(number)),
            transaction_timeout_ms: 60_000,
            ..Default::default()
        };
        until("a producer id", || {
            let ResponseBody::InitProducerId(answer) = client.call(request.clone(), 3) else {
                panic!("another")
            };
            assert!([0, 14, 15, 16].contains(&answer.error_code), "{}", answer.error_code);
            (answer.error_code == 0).then_some(())
        });
    }
}

/// Stable groups, of one member each with 900 kB of metadata.
fn add_talkers(client: &mut Client) {
    for group in TALKERS {
        let metadata = vec![7; 900_000].into();
        let request = JoinGroupRequest {
            group_id: group.into(),
            session_timeout_ms: 60_000,
            rebalance_timeout_ms: 1_000,
            protocol_type: "bytes".into(),
            protocols: vec![join_group_request::JoinGroupRequestProtocol {
                name: "p".into(),
                metadata,
                ..Default::default()
            }],
            ..Default::default()
        };
        let ResponseBody::JoinGroup(joined) = client.call(request, 3) else { panic!("another") };
        assert_eq!(joined.error_code, 0);
        let request = SyncGroupRequest {
            group_id: group.into(),
            generation_id: joined.generation_id,
            member_id: joined.member_id,
            ..Default::default()
        };
        let ResponseBody::SyncGroup(synced) = client.call(request, 2) else { panic!("another") };
        assert_eq!(synced.error_code, 0);
    }
}

/// The first error of an answer, and how many entries it has.
fn said(response: &ResponseBody) -> (i16, usize) {
    let first = |mut codes: Vec<i16>| {
        codes.retain(|code| *code != 0);
        codes.first().copied().unwrap_or_default()
    };
    match response {
        ResponseBody::ListGroups(said) => (said.error_code, said.groups.len()),
        ResponseBody::DescribeGroups(said) => {
            (first(said.groups.iter().map(|each| each.error_code).collect()), said.groups.len())
        }
        ResponseBody::OffsetFetch(said) => {
            (said.groups[0].error_code, said.groups[0].topics.iter().map(|each| each.partitions.len()).sum())
        }
        ResponseBody::ListTransactions(said) => (said.error_code, said.transaction_states.len()),
        other => panic!("{other:?}"),
    }
}

/// Many clients ask at once; each gets all of it, and the node stays within its budget.
fn ask_at_once(node: &TestNode, request: &RequestBody, version: i16, entries: usize) {
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| node.client()).collect();
    node.peak_bytes();
    let before = node.rss_bytes();
    std::thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| {
                let response = client.call(request.clone(), version);
                assert_eq!(said(&response), (0, entries), "{}", request.key());
            });
        }
    });
    let held = node.peak_bytes().saturating_sub(before);
    println!("{}: held {} MiB", request.key(), held / MIB);
    assert!(held < BUDGET + 16 * MIB, "{}: {held}", request.key());
}

#[test]
fn long_answers_wait_for_memory_instead_of_adding_up() {
    let budget = format!("queued.max.request.bytes={BUDGET}");
    let mut node = TestNode::start_with(&[
        &budget,
        "log.cache.bytes=1048576",
        "group.initial.rebalance.delay.ms=0",
        "offsets.topic.num.partitions=1",
        "transaction.state.log.num.partitions=1",
    ]);
    let mut client = node.client();
    client.create_topic("t", OFFSETS, &[]);
    find_coordinators(&mut client);
    add_groups(&mut client, NAMES);
    add_transactional_ids(&mut client);
    let metadata = "m".repeat(4_000);
    (0..OFFSETS / 100).for_each(|at| commit(&mut client, "all".into(), at * 100..(at + 1) * 100, &metadata));
    add_talkers(&mut client);
    let all = OffsetFetchRequestGroup { group_id: "all".into(), topics: None, ..Default::default() };
    ask_at_once(&node, &ListGroupsRequest::default().into(), 5, NAMES + 1 + TALKERS.len());
    let groups = TALKERS.map(Into::into).to_vec();
    let describe = DescribeGroupsRequest { groups, ..Default::default() };
    ask_at_once(&node, &describe.into(), 5, TALKERS.len());
    let fetch = OffsetFetchRequest { groups: vec![all], ..Default::default() };
    ask_at_once(&node, &fetch.into(), 8, OFFSETS as usize);
    let list = ListTransactionsRequest { duration_filter: -1, ..Default::default() };
    ask_at_once(&node, &list.into(), 1, NAMES);
    assert!(node.stop().success());
}

/// Each of the partitions remembers all of the producers.
fn add_producers(client: &mut Client, partitions: i32, producers: i64) {
    for producer in 0..producers {
        let mut builder = BatchBuilder::new(BatchOptions {
            producer_id: ProducerId(1_000_000 + producer),
            producer_epoch: ProducerEpoch(0),
            base_sequence: Sequence(0),
            ..BatchOptions::default()
        });
        builder.push(TimestampMs(now_ms()), None, Some(b"x"), &[]);
        let records = builder.build().expect("a batch");
        let data = |index| produce_request::PartitionProduceData {
            index,
            records: Some(records.clone()),
            ..Default::default()
        };
        let topic = produce_request::TopicProduceData {
            name: "wide".into(),
            partition_data: (0..partitions).map(data).collect(),
            ..Default::default()
        };
        let request =
            ProduceRequest { acks: 1, timeout_ms: 30_000, topic_data: vec![topic], ..Default::default() };
        let ResponseBody::Produce(answer) = client.call(request, 9) else { panic!("another") };
        assert!(answer.responses[0].partition_responses.iter().all(|each| each.error_code == 0));
    }
}

/// An answer takes 2 MiB while it is made and until it is written. Twelve clients that read late ask for twelve each:
/// an answer waits for its room, and no partition is refused.
#[test]
fn producers_are_described_once_the_answer_has_room() {
    const PARTITIONS: i32 = 64;
    const PRODUCERS: i64 = 300;
    const PIPELINED: usize = 12;
    let mut node = TestNode::start_with(&["queued.max.request.bytes=16777216", "log.cache.bytes=1048576"]);
    let mut client = node.client();
    client.create_topic("wide", PARTITIONS, &[]);
    add_producers(&mut client, PARTITIONS, PRODUCERS);
    let topic = describe_producers_request::TopicRequest {
        name: "wide".into(),
        partition_indexes: (0..PARTITIONS).collect(),
        ..Default::default()
    };
    let request = DescribeProducersRequest { topics: vec![topic], ..Default::default() };
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| node.client()).collect();
    for client in &mut clients {
        (0..PIPELINED).for_each(|_| _ = client.send(request.clone(), 0));
    }
    until("first answers", || clients.iter().all(Client::has_answer).then_some(()));
    // Others are answered meanwhile.
    (0..100).for_each(|_| _ = client.call(ApiVersionsRequest::default(), 0));
    let receive = |client: &mut Client| {
        let (_, answer) = client.receive(barnabas_wire::ApiKey::DescribeProducers, 0);
        let ResponseBody::DescribeProducers(answer) = answer else { panic!("another") };
        let partitions = &answer.topics[0].partitions;
        let refused = partitions.iter().filter(|each| each.error_code != 0).count();
        let producers: usize = partitions.iter().map(|each| each.active_producers.len()).sum();
        assert_eq!((refused, producers), (0, (i64::from(PARTITIONS) * PRODUCERS) as usize));
    };
    std::thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| (0..PIPELINED).for_each(|_| receive(client)));
        }
    });
    assert!(node.stop().success());
}

/// One worker and one shard: others have their turn between the parts of a list, and a list that is too long ends where
/// it becomes so.
#[test]
fn lists_leave_others_their_turn_and_end_where_they_are_too_long() {
    const GROUPS: usize = 600;
    const INVALID_REQUEST: i16 = 42;
    let mut node = TestNode::new(
        Some("taskset -pc 0 $$ >/dev/null"),
        &["answer.bytes.max=134217728", "log.cache.bytes=1048576", "offsets.topic.num.partitions=1"],
    );
    node.launch();
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    find_coordinators(&mut client);
    add_groups(&mut client, GROUPS);
    let mut other = node.client();
    client.send(ListGroupsRequest::default(), 5);
    let mut answers = 0;
    while !client.has_answer() {
        other.call(ApiVersionsRequest::default(), 0);
        answers += 1;
    }
    let (_, listed) = client.receive(barnabas_wire::ApiKey::ListGroups, 5);
    println!("{answers} others answered");
    assert_eq!(said(&listed), (0, GROUPS));
    assert!(answers >= 5, "{answers}");
    assert!(node.stop().success());

    node.set_overrides(&["answer.bytes.max=1048576", "log.cache.bytes=1048576"]);
    node.launch();
    let mut client = node.client();
    until("the groups are loaded", || {
        let describe = DescribeGroupsRequest { groups: vec![name(0)], ..Default::default() };
        (said(&client.call(describe, 5)) == (0, 1)).then_some(())
    });
    node.peak_bytes();
    let before = node.rss_bytes();
    assert_eq!(said(&client.call(ListGroupsRequest::default(), 5)), (INVALID_REQUEST, 0));
    let held = node.peak_bytes().saturating_sub(before);
    println!("held {held}");
    assert!(held < 8 * MIB, "the names alone are 18 MB: {held}");
    assert!(node.stop().success());
}

/// The answer is as long as the node has partitions, and a request for it takes 21 bytes.
#[test]
fn directories_of_many_partitions_are_described_one_answer_at_a_time() {
    const PARTITIONS: i32 = 10_000;
    const PIPELINED: usize = 8;
    let mut node = TestNode::start_with(&["queued.max.request.bytes=16777216", "log.cache.bytes=1048576"]);
    let mut client = node.client();
    client.create_topic("many", PARTITIONS, &[]);
    let ask = || DescribeLogDirsRequest { topics: None, ..Default::default() };
    client.call(ask(), 4);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| node.client()).collect();
    node.peak_bytes();
    let before = node.rss_bytes();
    for client in &mut clients {
        (0..PIPELINED).for_each(|_| _ = client.send(ask(), 4));
    }
    // Others are answered meanwhile.
    for _ in 0..20 {
        client.call(ApiVersionsRequest::default(), 0);
    }
    std::thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| {
                for _ in 0..PIPELINED {
                    let (_, answer) = client.receive(barnabas_wire::ApiKey::DescribeLogDirs, 4);
                    let ResponseBody::DescribeLogDirs(answer) = answer else { panic!("another response") };
                    let topic = answer.results[0].topics.iter().find(|topic| topic.name == *"many");
                    assert_eq!(
                        (answer.error_code, topic.map(|topic| topic.partitions.len())),
                        (0, Some(10_000))
                    );
                }
            });
        }
    });
    let held = node.peak_bytes().saturating_sub(before);
    println!("held {held}");
    assert!(held < 32 * MIB, "{held}");
    assert!(node.stop().success());
}
