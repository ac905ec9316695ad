//! Records in and out: acks, pipelining, waiting fetches, restarts clean and not.

use crate::harness::{Client, TestNode, batch};
use barnabas_wire::ApiKey;
use barnabas_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{
    DeleteRecordsRequest, DeleteTopicsRequest, FetchRequest, FetchResponse, ListOffsetsRequest,
    ProduceRequest, ProduceResponse, ResponseBody,
};
use barnabas_wire::records::batches;
use bytes::Bytes;
use std::time::{Duration, Instant};

fn produce(topic: &str, partition: i32, acks: i16, records: Bytes) -> ProduceRequest {
    let data = PartitionProduceData { index: partition, records: Some(records), ..Default::default() };
    let topic = TopicProduceData { name: topic.into(), partition_data: vec![data], ..Default::default() };
    ProduceRequest { acks, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() }
}

fn produced(response: ResponseBody) -> Box<ProduceResponse> {
    let ResponseBody::Produce(response) = response else { panic!("another response") };
    response
}

fn base_offset(response: ResponseBody) -> i64 {
    let response = produced(response);
    let partition = &response.responses[0].partition_responses[0];
    assert_eq!(partition.error_code, 0, "{partition:?}");
    partition.base_offset
}

fn fetch(topic: &str, from: i64, wait_ms: i32, min_bytes: i32) -> FetchRequest {
    let partition = FetchPartition {
        partition: 0,
        fetch_offset: from,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    let topic = FetchTopic { topic: topic.into(), partitions: vec![partition], ..Default::default() };
    FetchRequest {
        replica_id: -1,
        max_wait_ms: wait_ms,
        min_bytes,
        max_bytes: 50 << 20,
        topics: vec![topic],
        session_epoch: -1,
        ..Default::default()
    }
}

fn fetched(response: ResponseBody) -> Box<FetchResponse> {
    let ResponseBody::Fetch(response) = response else { panic!("another response") };
    assert_eq!(response.error_code, 0);
    response
}

fn values(response: &FetchResponse) -> Vec<String> {
    let partition = &response.responses[0].partitions[0];
    assert_eq!(partition.error_code, 0, "{partition:?}");
    let records = partition.records.clone().unwrap_or_default();
    let mut values = Vec::new();
    for batch in batches(records) {
        let records = batch.expect("a batch").records().expect("records");
        for record in &records {
            let value = record.expect("a record").value.expect("a value");
            values.push(String::from_utf8(value.to_vec()).expect("text"));
        }
    }
    values
}

/// Everything in partition 0, from `from` on.
fn read_all(client: &mut Client, topic: &str, from: i64) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let response = fetched(client.call(fetch(topic, from + all.len() as i64, 0, 1), 11));
        let found = values(&response);
        if found.is_empty() {
            return all;
        }
        all.extend(found);
    }
}

fn list_end(topic: &str) -> ListOffsetsRequest {
    let partition = ListOffsetsPartition { partition_index: 0, timestamp: -1, ..Default::default() };
    let topic = ListOffsetsTopic { name: topic.into(), partitions: vec![partition], ..Default::default() };
    ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() }
}

fn listed(response: ResponseBody) -> i64 {
    let ResponseBody::ListOffsets(response) = response else { panic!("another response") };
    response.topics[0].partitions[0].offset
}

fn end_offset(client: &mut Client, topic: &str) -> i64 {
    listed(client.call(list_end(topic), 5))
}

#[test]
fn what_is_produced_is_fetched() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 3, &[]);
    for (acks, expected) in [(1, 0), (-1, 2)] {
        assert_eq!(base_offset(client.call(produce("t", 0, acks, batch(&["a", "b"])), 9)), expected);
    }
    // acks=0 is not answered; the next request's answer comes next.
    client.send(produce("t", 0, 0, batch(&["c"])), 9);
    assert_eq!(base_offset(client.call(produce("t", 0, -1, batch(&["d"])), 9)), 5);
    assert_eq!(read_all(&mut client, "t", 0), ["a", "b", "a", "b", "c", "d"]);
    assert_eq!(end_offset(&mut client, "t"), 6);
    assert!(node.stop().success());
}

#[test]
fn requests_of_a_connection_are_answered_in_order() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 4, &[]);
    let mut sent = Vec::new();
    for number in 0..100 {
        let acks = if number % 3 == 0 { -1 } else { 1 };
        sent.push(client.send(produce("t", number % 4, acks, batch(&["x"])), 9));
    }
    for (number, expected) in sent.into_iter().enumerate() {
        let (correlation_id, response) = client.receive(ApiKey::Produce, 9);
        assert_eq!(correlation_id, expected);
        assert_eq!(base_offset(response), number as i64 / 4);
    }
    assert!(node.stop().success());
}

#[test]
fn a_fetch_waits_for_data_and_no_longer_than_it_said() {
    let mut node = TestNode::start();
    let (mut reader, mut writer) = (node.client(), node.client());
    writer.create_topic("t", 1, &[]);
    let asked = Instant::now();
    let response = fetched(reader.call(fetch("t", 0, 200, 1), 11));
    assert!(values(&response).is_empty());
    assert!(asked.elapsed() >= Duration::from_millis(200), "{:?}", asked.elapsed());

    let asked = Instant::now();
    reader.send(fetch("t", 0, 10_000, 1), 11);
    std::thread::sleep(Duration::from_millis(50));
    for acks in [1, -1] {
        base_offset(writer.call(produce("t", 0, acks, batch(&["late"])), 9));
        let (_, response) = reader.receive(ApiKey::Fetch, 11);
        assert_eq!(values(&fetched(response)), ["late"]);
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        let next = if acks == 1 { 1 } else { 2 };
        reader.send(fetch("t", next, 10_000, 1), 11);
    }
    // The fetch that still waits does not hold up the end.
    assert!(node.stop().success());
}

#[test]
fn fetch_session_goes_on_over_other_connections() {
    const SESSION_EPOCH_IS_OLD: i16 = 71;
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    let first = FetchRequest { session_epoch: 0, ..fetch("t", 0, 0, 0) };
    let session_id = fetched(client.call(first, 12)).session_id;
    assert!(session_id > 0);
    let next =
        |session_epoch| FetchRequest { session_id, session_epoch, topics: Vec::new(), ..fetch("t", 0, 0, 0) };
    for epoch in 1..=8 {
        let response = fetched(node.client().call(next(epoch), 12));
        assert_eq!((response.session_id, response.responses.len()), (session_id, 0), "nothing is new");
    }
    base_offset(client.call(produce("t", 0, 1, batch(&["a"])), 9));
    assert_eq!(values(&fetched(node.client().call(next(9), 12))), ["a"]);
    let ResponseBody::Fetch(repeated) = client.call(next(9), 12) else { panic!("another response") };
    assert_eq!(repeated.error_code, SESSION_EPOCH_IS_OLD);
    assert!(node.stop().success());
}

/// Kafka's consumers keep the end that ListOffsets told for the high watermark: one from before the Fetch makes a lag
/// below zero.
#[test]
fn offsets_listed_behind_a_waiting_fetch_are_not_older() {
    let mut node = TestNode::start();
    let (mut reader, mut writer) = (node.client(), node.client());
    writer.create_topic("t", 1, &[]);
    reader.send(fetch("t", 0, 10_000, 1), 11);
    reader.send(list_end("t"), 5);
    std::thread::sleep(Duration::from_millis(100));
    base_offset(writer.call(produce("t", 0, -1, batch(&["a", "b"])), 9));
    assert_eq!(values(&fetched(reader.receive(ApiKey::Fetch, 11).1)), ["a", "b"]);
    assert_eq!(listed(reader.receive(ApiKey::ListOffsets, 5).1), 2);
    assert!(node.stop().success());
}

#[test]
fn a_fetch_waits_for_as_many_bytes_as_it_asked_for() {
    let mut node = TestNode::start();
    let (mut reader, mut writer) = (node.client(), node.client());
    writer.create_topic("t", 1, &[]);
    reader.send(fetch("t", 0, 10_000, 300), 11);
    let asked = Instant::now();
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(20));
        base_offset(writer.call(produce("t", 0, -1, batch(&["sixty-odd bytes of header and a value"])), 9));
    }
    let (_, response) = reader.receive(ApiKey::Fetch, 11);
    let found = values(&fetched(response)).len();
    assert!((3..=5).contains(&found), "{found} records");
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert!(node.stop().success());
}

#[test]
fn acknowledged_records_survive_kill_and_clean_stop() {
    let mut node = TestNode::start();
    node.client().create_topic("t", 1, &[]);
    let mut expected: Vec<String> = Vec::new();
    for round in 0..4 {
        let mut client = node.client();
        assert_eq!(read_all(&mut client, "t", 0), expected, "round {round}");
        for number in 0..20 {
            let value = format!("{round}-{number}");
            let base = base_offset(client.call(produce("t", 0, -1, batch(&[&value])), 9));
            assert_eq!(base, expected.len() as i64);
            expected.push(value);
        }
        if round % 2 == 0 {
            node.kill()
        } else {
            assert!(node.stop().success())
        }
        node.launch();
    }
    let mut client = node.client();
    assert_eq!(read_all(&mut client, "t", 0), expected);
    assert_eq!(end_offset(&mut client, "t"), expected.len() as i64);
    assert!(node.stop().success());
}

#[test]
fn a_topic_comes_to_be_when_it_is_named() {
    use barnabas_wire::messages::MetadataRequest;
    use barnabas_wire::messages::metadata_request::MetadataRequestTopic;
    let mut node = TestNode::start_with(&["num.partitions=2"]);
    let mut client = node.client();
    let asked = Instant::now();
    loop {
        let topic = MetadataRequestTopic { name: Some("new".into()), ..Default::default() };
        let request = MetadataRequest {
            topics: Some(vec![topic]),
            allow_auto_topic_creation: true,
            ..Default::default()
        };
        let ResponseBody::Metadata(response) = client.call(request, 9) else { panic!("another response") };
        if response.topics[0].error_code == 0 {
            assert_eq!(response.topics[0].partitions.len(), 2);
            break;
        }
        assert!(asked.elapsed() < Duration::from_secs(5), "{response:?}");
    }
    assert_eq!(base_offset(client.call(produce("new", 1, -1, batch(&["a"])), 9)), 0);
    assert!(node.stop().success());
}

#[test]
fn a_producer_is_served_without_a_gap_while_its_connection_moves_to_the_owner() {
    let mut node = TestNode::start();
    node.client().create_topic("t", 1, &[]);
    // Several connections, so that some begin away from the partition's owner.
    let mut clients: Vec<Client> = (0..8).map(|_| node.client()).collect();
    let mut bases = Vec::new();
    for client in &mut clients {
        for _ in 0..200 {
            client.send(produce("t", 0, -1, batch(&["x"])), 9);
        }
        let own: Vec<i64> = (0..200).map(|_| base_offset(client.receive(ApiKey::Produce, 9).1)).collect();
        assert!(own.is_sorted(), "{own:?}");
        bases.extend(own);
    }
    bases.sort_unstable();
    assert_eq!(bases, (0..1600).collect::<Vec<i64>>());
    assert!(node.stop().success());
}

#[test]
fn partitions_are_spread_over_several_directories_and_found_again() {
    let directories = crate::harness::TempDir::new();
    let (one, two) = (directories.path().join("one"), directories.path().join("two"));
    let log_dirs = format!("log.dirs={},{}", one.display(), two.display());
    let mut node = TestNode::start_with(&[&log_dirs]);
    node.client().create_topic("t", 8, &[]);
    for partition in 0..8 {
        base_offset(node.client().call(produce("t", partition, -1, batch(&["here"])), 9));
    }
    let held = |directory: &std::path::Path| {
        let entries = std::fs::read_dir(directory).expect("a directory");
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
        names.filter(|name| name.starts_with("t-")).count()
    };
    // What is acknowledged lies in the journals, and after the kill goes into a partition's own files when that is
    // opened.
    node.kill();
    node.launch();
    for partition in 0..8 {
        assert_eq!(base_offset(node.client().call(produce("t", partition, -1, batch(&["again"])), 9)), 1);
    }
    assert!(node.stop().success());
    assert_eq!((held(&one), held(&two)), (4, 4));
}

#[test]
fn what_was_acknowledged_by_the_leader_alone_is_seen_at_once() {
    let mut node = TestNode::start();
    let (mut writer, mut reader) = (node.client(), node.client());
    writer.create_topic("t", 1, &[]);
    for number in 0..50 {
        assert_eq!(base_offset(writer.call(produce("t", 0, 1, batch(&["x"])), 9)), number);
        assert_eq!(end_offset(&mut reader, "t"), number + 1);
        assert_eq!(values(&fetched(reader.call(fetch("t", number, 0, 1), 11))), ["x"]);
    }
    assert!(node.stop().success());
}

/// Sends until the connection ends; returns how many were acknowledged.
fn produce_until_cut(mut client: Client, begun: &std::sync::Barrier) -> usize {
    let mut acknowledged = 0;
    let mut sent = 0;
    loop {
        while sent < acknowledged + 20 {
            if !client.try_send(produce("t", 0, -1, batch(&[&sent.to_string()])), 9) {
                return acknowledged;
            }
            sent += 1;
        }
        let Some((_, response)) = client.try_receive(ApiKey::Produce, 9) else { return acknowledged };
        let response = produced(response);
        let partition = &response.responses[0].partition_responses[0];
        if partition.error_code != 0 {
            return acknowledged;
        }
        assert_eq!(partition.base_offset, acknowledged as i64);
        acknowledged += 1;
        if acknowledged == 1 {
            begun.wait();
        }
    }
}

#[test]
fn an_end_in_the_middle_of_producing_loses_nothing_acknowledged() {
    for clean in [true, false] {
        let mut node = TestNode::start();
        node.client().create_topic("t", 1, &[]);
        let client = node.client();
        let begun = std::sync::Arc::new(std::sync::Barrier::new(2));
        let producing = begun.clone();
        let producer = std::thread::spawn(move || produce_until_cut(client, &producing));
        begun.wait();
        std::thread::sleep(Duration::from_millis(100));
        if clean {
            assert!(node.stop().success())
        } else {
            node.kill()
        }
        let acknowledged = producer.join().expect("the producer");
        assert!(acknowledged > 0);
        node.launch();
        let found = read_all(&mut node.client(), "t", 0);
        assert!(found.len() >= acknowledged, "{} of {acknowledged}", found.len());
        assert!(found.iter().enumerate().all(|(number, value)| *value == number.to_string()));
        assert!(node.stop().success());
    }
}

/// Missing files are not an empty partition: the broker reports no end offset of 0, and writes nothing at 0 again.
/// The topic can be deleted and created again.
#[test]
fn a_partition_whose_files_are_gone_does_not_start_empty() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("lost", 1, &[]);
    assert_eq!(base_offset(client.call(produce("lost", 0, -1, batch(&["a", "b"])), 9)), 0);
    assert!(node.stop().success());
    std::fs::remove_dir_all(node.data().join("lost-0")).expect("it was there");
    node.launch();
    let mut client = node.client();
    let refused = produced(client.call(produce("lost", 0, -1, batch(&["c"])), 9));
    assert_eq!(refused.responses[0].partition_responses[0].error_code, 56);
    let deleted = client.call(
        DeleteTopicsRequest { topic_names: vec!["lost".into()], timeout_ms: 10_000, ..Default::default() },
        5,
    );
    let ResponseBody::DeleteTopics(deleted) = deleted else { panic!("another response") };
    assert_eq!(deleted.responses[0].error_code, 0);
    client.create_topic("lost", 1, &[]);
    assert_eq!(base_offset(client.call(produce("lost", 0, -1, batch(&["d"])), 9)), 0);
    assert!(node.stop_expecting_trouble().success());
    assert!(node.log().contains("lost-0 is missing"), "{}", node.log());
}

#[test]
fn records_that_were_deleted_stay_deleted_after_a_kill() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("trimmed", 1, &[]);
    for value in ["a", "b", "c"] {
        base_offset(client.call(produce("trimmed", 0, -1, batch(&[value])), 9));
    }
    let partition = DeleteRecordsPartition { partition_index: 0, offset: 2, ..Default::default() };
    let topic =
        DeleteRecordsTopic { name: "trimmed".into(), partitions: vec![partition], ..Default::default() };
    let answer = client
        .call(DeleteRecordsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() }, 2);
    let ResponseBody::DeleteRecords(answer) = answer else { panic!("another response") };
    assert_eq!(answer.topics[0].partitions[0].low_watermark, 2);
    node.kill();
    node.launch();
    let response = fetched(node.client().call(fetch("trimmed", 2, 1000, 1), 11));
    assert_eq!(response.responses[0].partitions[0].log_start_offset, 2);
    assert_eq!(values(&response), ["c"]);
    assert!(node.stop().success());
}

#[test]
fn of_two_copies_of_a_partition_the_one_that_the_metadata_log_names_is_served() {
    let other = crate::harness::TempDir::new();
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("twice", 1, &[]);
    assert_eq!(base_offset(client.call(produce("twice", 0, -1, batch(&["a", "b"])), 9)), 0);
    assert!(node.stop().success());
    let second = other.path().join("second");
    let dirs = format!("log.dirs={},{}", node.data().display(), second.display());
    node.set_overrides(&[&dirs]);
    node.launch();
    assert!(node.stop().success());
    let copy =
        std::process::Command::new("cp").arg("-r").arg(node.data().join("twice-0")).arg(&second).status();
    assert!(copy.expect("cp").success());
    node.launch();
    let mut client = node.client();
    assert_eq!(base_offset(client.call(produce("twice", 0, -1, batch(&["c"])), 9)), 2);
    assert!(node.stop_expecting_trouble().success());
    assert!(node.log().contains("is a second copy of the partition"), "{}", node.log());
    assert!(node.data().join("twice-0").exists() && !second.join("twice-0").exists());
    let names = std::fs::read_dir(&second).expect("listed").flatten().map(|entry| entry.file_name());
    let aside = names.filter(|name| name.to_string_lossy().starts_with("twice-0.")).count();
    assert_eq!(aside, 1, "nothing was deleted");
}
