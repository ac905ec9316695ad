//! The lag of groups of every kind on the metrics page, beside what the Kafka protocol says of the same groups.

use crate::harness::share::{ACCEPT, ShareMember, set_group_configs};
use crate::harness::{Client, TestNode, free_port, now_ms};
use barnabas_base::TimestampMs;
use barnabas_wire::messages::describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestGroup;
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::streams_group_heartbeat_request::{Subtopology, Topology};
use barnabas_wire::messages::{
    ConsumerGroupHeartbeatRequest, DescribeShareGroupOffsetsRequest, FindCoordinatorRequest,
    OffsetCommitRequest, ProduceRequest, ResponseBody, StreamsGroupHeartbeatRequest,
};
use barnabas_wire::records::{BatchBuilder, BatchOptions};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Samples by name and labels.
fn page(port: u16, query: &str) -> HashMap<String, f64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    write!(stream, "GET /metrics{query} HTTP/1.1\r\n\r\n").expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    let samples = body.lines().filter(|line| !line.starts_with('#'));
    let sample = |line: &str| {
        let (series, value) = line.rsplit_once(' ').expect("a series and a value");
        (series.to_owned(), value.parse().expect("a number"))
    };
    samples.map(sample).collect()
}

/// `count` records of one batch each, written `age_ms` ago and a second later each.
fn produce(client: &mut Client, partition: i32, count: i64, age_ms: i64) {
    for number in 0..count {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        builder.push(TimestampMs(now_ms() - age_ms + number * 1_000), None, Some(b"v"), &[]);
        let records = Some(builder.build().expect("a batch"));
        let data = PartitionProduceData { index: partition, records, ..Default::default() };
        let topic = TopicProduceData { name: "t".into(), partition_data: vec![data], ..Default::default() };
        let request =
            ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() };
        let ResponseBody::Produce(response) = client.call(request, 9) else { panic!("another response") };
        assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
    }
}

fn commit(client: &mut Client, group: &str, member: (&str, i32), offsets: &[(i32, i64)]) {
    let partitions = offsets.iter().map(|&(partition_index, committed_offset)| {
        OffsetCommitRequestPartition { partition_index, committed_offset, ..Default::default() }
    });
    let topic =
        OffsetCommitRequestTopic { name: "t".into(), partitions: partitions.collect(), ..Default::default() };
    let request = OffsetCommitRequest {
        group_id: group.into(),
        member_id: member.0.into(),
        generation_id_or_member_epoch: member.1,
        topics: vec![topic],
        ..Default::default()
    };
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let find = FindCoordinatorRequest { key: group.into(), ..Default::default() };
        client.call(find, 2);
        let ResponseBody::OffsetCommit(response) = client.call(request.clone(), 9) else {
            panic!("another response")
        };
        let codes: Vec<i16> = response.topics[0].partitions.iter().map(|each| each.error_code).collect();
        if codes.iter().all(|code| *code == 0) {
            return;
        }
        assert!(codes.iter().all(|code| matches!(code, 14..=16)) && Instant::now() < until, "{codes:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A member of a consumer group, and the epoch that it is in.
fn join_consumer(client: &mut Client, group: &str) -> i32 {
    let request = ConsumerGroupHeartbeatRequest {
        group_id: group.into(),
        member_id: "m".into(),
        rebalance_timeout_ms: 10_000,
        subscribed_topic_names: Some(vec!["t".into()]),
        topic_partitions: Some(Vec::new()),
        ..Default::default()
    };
    let ResponseBody::ConsumerGroupHeartbeat(response) = client.call(request, 1) else {
        panic!("another response")
    };
    assert_eq!(response.error_code, 0, "{response:?}");
    response.member_epoch
}

fn join_streams(client: &mut Client, group: &str) -> i32 {
    let subtopology =
        Subtopology { subtopology_id: "0".into(), source_topics: vec!["t".into()], ..Default::default() };
    let request = StreamsGroupHeartbeatRequest {
        group_id: group.into(),
        member_id: "m".into(),
        rebalance_timeout_ms: 10_000,
        topology: Some(Topology { subtopologies: vec![subtopology], ..Default::default() }),
        active_tasks: Some(Vec::new()),
        standby_tasks: Some(Vec::new()),
        warmup_tasks: Some(Vec::new()),
        process_id: Some("p".into()),
        ..Default::default()
    };
    let ResponseBody::StreamsGroupHeartbeat(response) = client.call(request, 1) else {
        panic!("another response")
    };
    assert_eq!(response.error_code, 0, "{response:?}");
    response.member_epoch
}

/// The lag that DescribeShareGroupOffsets tells of partition 0.
fn told(client: &mut Client, group: &str) -> i64 {
    let group =
        DescribeShareGroupOffsetsRequestGroup { group_id: group.into(), topics: None, ..Default::default() };
    let request = DescribeShareGroupOffsetsRequest { groups: vec![group], ..Default::default() };
    let ResponseBody::DescribeShareGroupOffsets(response) = client.call(request, 1) else {
        panic!("another response")
    };
    let mut partitions = response.groups[0].topics.iter().flat_map(|topic| &topic.partitions);
    partitions.find(|each| each.partition_index == 0).expect("partition 0").lag
}

/// A group of each kind, and how far it has come. The share group's member goes on with its records.
fn lagging_groups(node: &TestNode, client: &mut Client) -> ShareMember {
    commit(client, "classic", ("", -1), &[(0, 4), (1, 5)]);
    commit(client, "at the end", ("", -1), &[(0, 10), (1, 5)]);
    commit(client, "past", ("", -1), &[(0, 99)]);
    let epoch = join_consumer(client, "consumer");
    commit(client, "consumer", ("m", epoch), &[(0, 9), (1, 1)]);
    let epoch = join_streams(client, "streams");
    commit(client, "streams", ("m", epoch), &[(0, 0), (1, 0)]);
    set_group_configs(client, "share", &[("share.auto.offset.reset", "earliest")]);
    let mut member = ShareMember::join(node.client(), "share", "t");
    let acquired = member.fetch_some(&[]);
    assert_eq!((acquired[0].0, acquired.last().expect("records").1), (0, 9));
    // What is done behind the first record that is not does not count (KIP-1226).
    member.fetch(&[(0, 1, ACCEPT), (5, 6, ACCEPT)]);
    member
}

fn of_group(page: &HashMap<String, f64>, name: &str, group: &str, protocol: &str) -> f64 {
    let series = format!("{name}{{group=\"{group}\",protocol=\"{protocol}\"}}");
    *page.get(&series).unwrap_or_else(|| panic!("no {series}"))
}

fn check_records(page: &HashMap<String, f64>, share: f64) {
    let of = |name: &str, group: &str, protocol: &str| of_group(page, name, group, protocol);
    let lag = |group: &str, protocol: &str| of("barnabas_group_lag", group, protocol);
    assert_eq!(lag("classic", "classic"), 6.0);
    assert_eq!(lag("at the end", "classic"), 0.0);
    assert_eq!(lag("past", "classic"), 0.0);
    assert_eq!(lag("consumer", "consumer"), 5.0);
    assert_eq!(of("barnabas_group_lag_max_partition", "consumer", "consumer"), 4.0);
    assert_eq!(of("barnabas_group_lag_read_committed", "consumer", "consumer"), 5.0);
    assert_eq!(lag("streams", "streams"), 15.0);
    assert_eq!(lag("share", "share"), share);
    assert_eq!(page["barnabas_groups_lag{protocol=\"classic\"}"], 6.0);
    assert_eq!(page["barnabas_groups_lagging{protocol=\"classic\"}"], 1.0);
    assert_eq!(page["barnabas_groups_lag{protocol=\"streams\"}"], 15.0);
    assert_eq!(page["barnabas_groups_lag_unlisted"], 0.0);
    assert_eq!(page["barnabas_group_partitions_unknown"], 0.0);
}

fn check_times(page: &HashMap<String, f64>) {
    let of = |name: &str, group: &str, protocol: &str| of_group(page, name, group, protocol);
    // In time: the record that is to be read next, of the partition where that is oldest.
    let seconds = |group: &str, protocol: &str| of("barnabas_group_lag_seconds", group, protocol);
    let near = |seconds: f64, age: f64| (age - 0.1..age + 30.0).contains(&seconds);
    assert!(near(seconds("classic", "classic"), 96.0), "{}", seconds("classic", "classic"));
    assert_eq!(seconds("at the end", "classic"), 0.0);
    assert!(near(seconds("consumer", "consumer"), 499.0), "{}", seconds("consumer", "consumer"));
    assert!(near(seconds("streams", "streams"), 500.0), "{}", seconds("streams", "streams"));
    assert!(near(seconds("share", "share"), 98.0), "{}", seconds("share", "share"));

    let partition = |name: &str, partition: i32| {
        page[&format!("{name}{{group=\"consumer\",topic=\"t\",partition=\"{partition}\"}}")]
    };
    assert_eq!(partition("barnabas_group_partition_lag", 0), 1.0);
    assert_eq!(partition("barnabas_group_partition_lag", 1), 4.0);
    assert!(near(partition("barnabas_group_partition_lag_seconds", 0), 91.0));
    assert!(near(partition("barnabas_group_partition_lag_seconds", 1), 499.0));

    let count = |protocol: &str| {
        page[&format!("kafka_server_group_coordinator_metrics_group_count{{protocol=\"{protocol}\"}}")]
    };
    assert_eq!(["classic", "consumer", "share", "streams"].map(count), [3.0, 1.0, 1.0, 1.0]);
    let state = |kind: &str, state: &str| {
        page[&format!("kafka_server_group_coordinator_metrics_{kind}_group_count{{state=\"{state}\"}}")]
    };
    assert_eq!((state("classic", "Empty"), state("consumer", "Stable")), (3.0, 1.0));
    assert_eq!(page["kafka_server_group_coordinator_metrics_offset_count"], 9.0);
}

/// The page tells it of groups that no client has asked for since the start.
fn await_lag(port: u16) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let page = self::page(port, "?group=classic");
        if page.get("barnabas_group_lag{group=\"classic\",protocol=\"classic\"}") == Some(&6.0)
            && page.get("barnabas_groups_lag{protocol=\"streams\"}") == Some(&15.0)
        {
            break;
        }
        assert!(Instant::now() < until, "{page:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn the_page_tells_the_lag_that_the_protocol_tells() {
    let port = free_port();
    let listener = format!("metrics.listener=127.0.0.1:{port}");
    let mut node = TestNode::start_with(&[&listener, "group.streams.initial.rebalance.delay.ms=0"]);
    let mut client = node.client();
    client.create_topic("t", 2, &[]);
    produce(&mut client, 0, 10, 100_000);
    produce(&mut client, 1, 5, 500_000);

    let _member = lagging_groups(&node, &mut client);
    let page = self::page(port, "?group=consumer");
    let share = told(&mut client, "share");
    assert_eq!(share, 6);
    check_records(&page, share as f64);
    check_times(&page);

    // After a restart no client has asked for the groups; the page finds them all the same.
    assert!(node.stop().success());
    node.launch();
    await_lag(port);
    assert!(node.stop().success());
}

/// Thousands of groups: the page stays as large as it may be, and says what it leaves out.
#[test]
fn any_number_of_groups_has_five_hundred_series() {
    let port = free_port();
    let listener = format!("metrics.listener=127.0.0.1:{port}");
    let mut node = TestNode::start_with(&[&listener]);
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    produce(&mut client, 0, 3, 1_000);
    commit(&mut client, "first", ("", -1), &[(0, 0)]);
    for number in 0..2_000 {
        commit(&mut client, &format!("group-{number:05}"), ("", -1), &[(0, if number < 5 { 1 } else { 3 })]);
    }
    let page = self::page(port, "");
    let shown = page.keys().filter(|series| series.starts_with("barnabas_group_lag{")).count();
    assert_eq!(shown, 500);
    assert_eq!(page["barnabas_groups_lag_unlisted"], 1501.0);
    assert_eq!(page["barnabas_groups_lag_unknown"], 0.0);
    assert_eq!(page["barnabas_groups_lag{protocol=\"classic\"}"], 13.0);
    assert_eq!(page["barnabas_groups_lagging{protocol=\"classic\"}"], 6.0);
    assert_eq!(page["barnabas_group_lag{group=\"first\",protocol=\"classic\"}"], 3.0);
    assert_eq!(page["barnabas_group_lag{group=\"group-00004\",protocol=\"classic\"}"], 2.0);
    assert!(node.stop().success());
}
