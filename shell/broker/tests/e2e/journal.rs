//! The journal as a node's user meets it: files that come and go, starts after kills, damage, and the mode without it.

use crate::harness::three_dirs::eventually;
use crate::harness::{Client, TestNode, batch};
use barnabas_wire::ApiKey;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{
    DeleteTopicsRequest, DescribeLogDirsRequest, FetchRequest, MetadataRequest, ProduceRequest, ResponseBody,
};
use barnabas_wire::records::batches;
use bytes::Bytes;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const STORAGE_ERROR: i16 = 56;

fn request(topic: &str, acks: i16, parts: impl Iterator<Item = (i32, Bytes)>) -> ProduceRequest {
    let data = parts.map(|(index, records)| PartitionProduceData {
        index,
        records: Some(records),
        ..Default::default()
    });
    let topic = TopicProduceData { name: topic.into(), partition_data: data.collect(), ..Default::default() };
    ProduceRequest { acks, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() }
}

/// Error code and base offset for each partition asked for.
fn produce(client: &mut Client, topic: &str, acks: i16, parts: &[(i32, &[&str])]) -> Vec<(i16, i64)> {
    let parts = parts.iter().map(|(partition, values)| (*partition, batch(values)));
    let ResponseBody::Produce(response) = client.call(request(topic, acks, parts), 9) else {
        panic!("another response")
    };
    let mut answers = response.responses[0].partition_responses.clone();
    answers.sort_by_key(|answer| answer.index);
    answers.iter().map(|answer| (answer.error_code, answer.base_offset)).collect()
}

/// The values of a partition from `from` on, or the error code.
fn values(client: &mut Client, topic: &str, partition: i32, from: i64) -> Result<Vec<String>, i16> {
    let wanted =
        FetchPartition { partition, fetch_offset: from, partition_max_bytes: 8 << 20, ..Default::default() };
    let topic = FetchTopic { topic: topic.into(), partitions: vec![wanted], ..Default::default() };
    let request = FetchRequest {
        replica_id: -1,
        max_wait_ms: 100,
        max_bytes: 8 << 20,
        topics: vec![topic],
        session_epoch: -1,
        ..Default::default()
    };
    let ResponseBody::Fetch(response) = client.call(request, 12) else { panic!("another response") };
    let found = &response.responses[0].partitions[0];
    if found.error_code != 0 {
        return Err(found.error_code);
    }
    let mut values = Vec::new();
    for batch in batches(found.records.clone().unwrap_or_default()) {
        for record in &batch.expect("a batch").records().expect("records") {
            let value = record.expect("a record").value.expect("a value");
            values.push(String::from_utf8(value.to_vec()).expect("text"));
        }
    }
    Ok(values)
}

fn journal_files(data: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(data).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
    let mut names: Vec<String> = names.filter(|name| name.starts_with("barnabas-journal-")).collect();
    names.sort_unstable();
    names
}

fn segment(node: &TestNode, partition: &str) -> std::path::PathBuf {
    node.data().join(partition).join("00000000000000000000.log")
}

/// Changes one byte.
fn damage(path: &Path, at: u64) {
    let file = std::fs::File::options().read(true).write(true).open(path).expect("the file");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("a byte");
    file.write_all_at(&[byte[0] ^ 0x55], at).expect("changed");
}

#[test]
fn it_comes_with_the_first_record_and_goes_with_a_clean_stop() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 3, &[]);
    assert!(journal_files(&node.data()).is_empty());
    let answers = produce(&mut client, "t", -1, &[(0, &["a"]), (1, &["b", "c"]), (2, &["d"])]);
    assert_eq!(answers, [(0, 0), (0, 0), (0, 0)]);
    assert_eq!(journal_files(&node.data()).len(), 8);
    assert!(node.stop().success());
    // Kafka's files are all there is, and they hold everything.
    assert!(journal_files(&node.data()).is_empty());
    for partition in ["t-0", "t-1", "t-2"] {
        assert!(std::fs::metadata(segment(&node, partition)).expect("a segment").len() > 60);
    }
    node.launch();
    let mut client = node.client();
    assert_eq!(values(&mut client, "t", 1, 0), Ok(vec!["b".to_owned(), "c".to_owned()]));
    assert_eq!(produce(&mut client, "t", 1, &[(1, &["e"])]), [(0, 2)]);
    assert!(node.stop().success());
}

fn partition_dirs(data: &Path, prefix: &str) -> usize {
    let names = std::fs::read_dir(data).expect("readable").map(|entry| entry.expect("an entry").file_name());
    names.filter(|name| name.to_string_lossy().starts_with(prefix)).count()
}

#[test]
fn thousands_of_partitions_are_replayed_after_a_kill() {
    const PARTITIONS: i32 = 3000;
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("wide", PARTITIONS, &[]);
    for _ in 0..2 {
        let parts = (0..PARTITIONS).map(|partition| (partition, batch(&[&partition.to_string()])));
        let ResponseBody::Produce(response) = client.call(request("wide", -1, parts), 9) else {
            panic!("another response")
        };
        assert!(response.responses[0].partition_responses.iter().all(|answer| answer.error_code == 0));
    }
    node.kill();
    // And again, before anything of it was written back.
    for _ in 0..2 {
        node.launch();
        assert_eq!(
            partition_dirs(&node.data(), "wide-"),
            0,
            "nothing is written back before the first request"
        );
        node.kill();
    }
    node.launch();
    let mut client = node.client();
    for partition in 0..PARTITIONS {
        let expected = vec![partition.to_string(); 2];
        assert_eq!(values(&mut client, "wide", partition, 0), Ok(expected));
    }
    // A second kill finds everything in segments.
    node.kill();
    node.launch();
    let mut client = node.client();
    assert_eq!(values(&mut client, "wide", 2999, 0), Ok(vec!["2999".to_owned(); 2]));
    assert!(node.stop().success());
}

#[test]
fn a_large_append_and_what_surrounds_it_survive_a_kill() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    let large = "x".repeat(700 << 10);
    let mut expected = Vec::new();
    for round in 0..3 {
        for value in [&format!("before {round}"), &large, &format!("after {round}")] {
            let base = expected.len() as i64;
            assert_eq!(produce(&mut client, "t", -1, &[(0, &[value])]), [(0, base)]);
            expected.push(value.clone());
        }
        node.kill();
        node.launch();
        client = node.client();
        let mut found = Vec::new();
        while found.len() < expected.len() {
            let more = values(&mut client, "t", 0, found.len() as i64).expect("readable");
            assert!(!more.is_empty(), "{} of {}", found.len(), expected.len());
            found.extend(more);
        }
        assert_eq!(found, expected);
    }
    assert!(node.stop().success());
}

#[test]
fn a_journal_that_kafka_has_overtaken_is_not_replayed() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    produce(&mut client, "t", -1, &[(0, &["kept"])]);
    assert!(node.stop().success());
    node.launch();
    produce(&mut node.client(), "t", -1, &[(0, &["in the journal"])]);
    node.kill();
    // What Apache Kafka leaves when it stops cleanly; it knows nothing of the journal.
    std::fs::write(node.data().join(".kafka_cleanshutdown"), "{\"version\":0,\"brokerEpoch\":7}")
        .expect("written");
    node.launch();
    assert!(node.log().contains("is stale and was removed"), "{}", node.log());
    let mut client = node.client();
    assert_eq!(values(&mut client, "t", 0, 0), Ok(vec!["kept".to_owned()]));
    assert_eq!(produce(&mut client, "t", -1, &[(0, &["next"])]), [(0, 1)]);
    assert!(node.stop_expecting_trouble().success());
}

#[test]
fn without_it_appends_are_in_their_files_when_they_are_answered() {
    let mut node = TestNode::start_with(&["log.ack.durability=written"]);
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    client.create_topic("flushed", 1, &[("flush.messages", "1")]);
    for (acks, base) in [(-1, 0), (1, 1)] {
        assert_eq!(produce(&mut client, "t", acks, &[(0, &["a"])]), [(0, base)]);
        assert_eq!(produce(&mut client, "flushed", acks, &[(0, &["a"])]), [(0, base)]);
    }
    assert!(journal_files(&node.data()).is_empty());
    assert!(std::fs::metadata(segment(&node, "t-0")).expect("a segment").len() > 120);
    assert_eq!(values(&mut client, "flushed", 0, 0).map(|found| found.len()), Ok(2));
    node.kill();
    node.launch();
    assert_eq!(values(&mut node.client(), "t", 0, 0).map(|found| found.len()), Ok(2));
    assert!(node.stop().success());
}

#[test]
fn a_damaged_log_keeps_its_partition_offline_and_what_the_journal_held_of_it_is_kept() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 2, &[]);
    produce(&mut client, "t", -1, &[(0, &["a", "b"]), (1, &["a", "b"])]);
    assert!(node.stop().success());
    node.launch();
    produce(&mut node.client(), "t", -1, &[(0, &["c"]), (1, &["c"])]);
    node.kill();
    // In a header, which shows when the log is opened; what lies in records shows when they are read.
    damage(&segment(&node, "t-0"), 16);
    node.launch();
    let mut client = node.client();
    assert_eq!(values(&mut client, "t", 0, 0), Err(STORAGE_ERROR));
    assert_eq!(values(&mut client, "t", 1, 0).map(|found| found.len()), Ok(3));
    let kept = std::fs::read(&kept_aside(&node)[0]).expect("kept");
    assert!(kept.windows(1).any(|byte| byte == b"c"));
    // It stays so, since its log would have a hole.
    node.kill();
    node.launch();
    assert_eq!(values(&mut node.client(), "t", 0, 0), Err(STORAGE_ERROR));
    assert!(node.log().contains("barnabas-unreplayed-t-0"));
    node.stop_expecting_trouble();
}

/// What was kept aside of partition `t-0`.
fn kept_aside(node: &TestNode) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(node.data()).expect("a directory").flatten().map(|entry| entry.path());
    entries.filter(|path| path.to_string_lossy().contains("barnabas-unreplayed-t-0.")).collect()
}

/// Its topic was deleted while the file could not be removed (a directory that was offline, a copy that was put back).
#[test]
fn what_was_kept_aside_is_nothing_to_a_new_topic_of_the_same_name() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    produce(&mut client, "t", -1, &[(0, &["a", "b"])]);
    assert!(node.stop().success());
    node.launch();
    produce(&mut node.client(), "t", -1, &[(0, &["c"])]);
    node.kill();
    damage(&segment(&node, "t-0"), 16);
    node.launch();
    let mut client = node.client();
    assert_eq!(values(&mut client, "t", 0, 0), Err(STORAGE_ERROR));
    let aside = kept_aside(&node);
    assert_eq!(aside.len(), 1);
    let kept = std::fs::read(&aside[0]).expect("kept");
    let names = vec!["t".into()];
    let request = DeleteTopicsRequest { topic_names: names, timeout_ms: 10_000, ..Default::default() };
    let ResponseBody::DeleteTopics(response) = client.call(request, 5) else { panic!("another response") };
    assert_eq!(response.responses[0].error_code, 0);
    eventually("it goes with its topic", || kept_aside(&node).is_empty());
    std::fs::write(&aside[0], &kept).expect("put back");
    let complaints = |node: &TestNode| node.log().matches("stays offline").count();
    let of_the_old_one = complaints(&node);
    client.create_topic("t", 1, &[]);
    let news = |count: usize| (0..count).map(|number| format!("new {number}")).collect::<Vec<_>>();
    for life in 0..4 {
        let mut client = node.client();
        assert_eq!(values(&mut client, "t", 0, 0), Ok(news(life)), "life {life}");
        assert_eq!(produce(&mut client, "t", -1, &[(0, &[&format!("new {life}")])]), [(0, life as i64)]);
        match life % 2 {
            0 => node.kill(),
            _ => assert!(node.stop_expecting_trouble().success()),
        }
        node.launch();
        assert_eq!(std::fs::read(&aside[0]).expect("it stays for the operator"), kept);
    }
    assert_eq!(complaints(&node), of_the_old_one, "{}", node.log());
    node.stop_expecting_trouble();
}

#[test]
fn a_damaged_journal_takes_its_directory_offline() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    for _ in 0..5 {
        produce(&mut client, "t", -1, &[(0, &["a"])]);
    }
    node.kill();
    // Not the last round: what follows it proves that it was durable.
    damage(&node.data().join("barnabas-journal-00"), 4096 + 200);
    let output = node.command().output().expect("the node runs and ends");
    assert!(!output.status.success());
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(log.contains("barnabas-journal-00 is damaged at byte"), "{log}");
    // Nothing was changed: with the byte as it was, everything is there.
    damage(&node.data().join("barnabas-journal-00"), 4096 + 200);
    node.launch();
    assert_eq!(values(&mut node.client(), "t", 0, 0).map(|found| found.len()), Ok(5));
    assert!(node.stop().success());
}

/// Its directory is also the metadata log's, so that the node cannot go on: who came during the start is not told a
/// word of an image that nothing stands behind.
#[test]
fn a_start_that_ends_with_a_damaged_journal_serves_no_client() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    for _ in 0..3 {
        produce(&mut client, "t", -1, &[(0, &["a"])]);
    }
    node.kill();
    damage(&node.data().join("barnabas-journal-00"), 4096 + 200);
    let (port, has_ended) = (node.port, Arc::new(AtomicBool::new(false)));
    node.launch_unawaited();
    let knocking = std::thread::spawn({
        let has_ended = has_ended.clone();
        move || {
            let mut answers = Vec::new();
            while !has_ended.load(Ordering::Acquire) {
                let Ok(mut client) = Client::try_connect(port) else { continue };
                if client.try_send(MetadataRequest::default(), 12) {
                    answers.extend(client.try_receive(ApiKey::Metadata, 12));
                }
            }
            answers
        }
    });
    let status = node.wait();
    has_ended.store(true, Ordering::Release);
    let answers = knocking.join().expect("it ends");
    assert!(!status.success());
    assert!(node.log().contains("barnabas-journal-00 is damaged at byte"), "{}", node.log());
    assert!(answers.is_empty(), "{answers:?}");
}

fn describe_sizes(client: &mut Client) -> i64 {
    let request = DescribeLogDirsRequest { topics: None, ..Default::default() };
    let ResponseBody::DescribeLogDirs(response) = client.call(request, 4) else { panic!("another response") };
    let topics = response.results.iter().flat_map(|dir| &dir.topics);
    topics.flat_map(|topic| &topic.partitions).map(|partition| partition.partition_size).sum()
}

fn delete_topic(client: &mut Client, name: &str) {
    let request =
        DeleteTopicsRequest { topic_names: vec![name.into()], timeout_ms: 10_000, ..Default::default() };
    let ResponseBody::DeleteTopics(response) = client.call(request, 5) else { panic!("another response") };
    assert_eq!(response.responses[0].error_code, 0);
}

#[test]
fn kills_in_a_row_before_any_write_back_lose_and_double_nothing() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("kept", 40, &[]);
    client.create_topic("gone", 5, &[]);
    let mut expected: Vec<Vec<String>> = vec![Vec::new(); 40];
    let mut produced = |client: &mut Client, partition: i32, value: String| {
        let base = expected[partition as usize].len() as i64;
        assert_eq!(produce(client, "kept", -1, &[(partition, &[&value])]), [(0, base)]);
        expected[partition as usize].push(value);
    };
    for partition in 0..40 {
        produced(&mut client, partition, format!("first {partition}"));
    }
    produce(&mut client, "gone", -1, &[(0, &["a"]), (4, &["b"])]);
    let before = describe_sizes(&mut client);
    for life in 0..4 {
        node.kill();
        node.launch();
        client = node.client();
        if life == 0 {
            assert_eq!(describe_sizes(&mut client), before, "what waits is counted");
            delete_topic(&mut client, "gone");
        }
        // Some are opened in each life, some in none.
        for partition in (life..30).step_by(3) {
            produced(&mut client, partition, format!("life {life} of {partition}"));
        }
        assert_eq!(partition_dirs(&node.data(), "kept-"), 0, "life {life}: nothing is written back yet");
    }
    for (partition, expected) in (0..40).zip(&expected) {
        assert_eq!(values(&mut client, "kept", partition, 0).as_ref(), Ok(expected), "partition {partition}");
    }
    // A topic of the same name has nothing of the old one.
    client.create_topic("gone", 5, &[]);
    assert_eq!(produce(&mut client, "gone", -1, &[(4, &["new"])]), [(0, 0)]);
    node.kill();
    node.launch();
    // Everything is written back by a clean stop, whether it was opened or not.
    assert!(node.stop().success());
    assert!(journal_files(&node.data()).is_empty());
    assert_eq!(partition_dirs(&node.data(), "kept-"), 40);
    node.launch();
    client = node.client();
    for (partition, expected) in (0..40).zip(&expected) {
        assert_eq!(values(&mut client, "kept", partition, 0).as_ref(), Ok(expected), "partition {partition}");
    }
    assert_eq!(values(&mut client, "gone", 4, 0), Ok(vec!["new".to_owned()]));
    assert_eq!(values(&mut client, "gone", 0, 0), Ok(Vec::new()));
    assert!(node.stop().success());
}

#[test]
fn a_folder_that_comes_back_gets_what_the_journal_held_for_it() {
    for large in [false, true] {
        let mut node = TestNode::start();
        let mut client = node.client();
        client.create_topic("t", 1, &[]);
        produce(&mut client, "t", -1, &[(0, &["a"])]);
        assert!(node.stop().success());
        node.launch();
        let value = if large { "x".repeat(700 << 10) } else { "b".to_owned() };
        assert_eq!(produce(&mut node.client(), "t", -1, &[(0, &[&value])]), [(0, 1)]);
        node.kill();
        let (folder, away) = (node.data().join("t-0"), node.data().join("away"));
        std::fs::rename(&folder, &away).expect("away");
        node.launch();
        assert_eq!(values(&mut node.client(), "t", 0, 0), Err(STORAGE_ERROR));
        assert!(aside_of(&node), "it is kept");
        node.kill();
        // Still away: nothing changes.
        node.launch();
        assert_eq!(values(&mut node.client(), "t", 0, 0), Err(STORAGE_ERROR));
        node.kill();
        std::fs::rename(&away, &folder).expect("back");
        node.launch();
        let mut client = node.client();
        assert_eq!(values(&mut client, "t", 0, 0).map(|found| found.len()), Ok(2), "large: {large}");
        assert!(!aside_of(&node), "it was taken in");
        assert_eq!(produce(&mut client, "t", -1, &[(0, &["c"])]), [(0, 2)]);
        node.stop_expecting_trouble();
    }
}

fn aside_of(node: &TestNode) -> bool {
    let entries = std::fs::read_dir(node.data()).expect("a directory").flatten();
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().contains("barnabas-unreplayed-"))
}

#[test]
fn a_journal_file_that_was_cut_off_takes_its_directory_offline() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    produce(&mut client, "t", -1, &[(0, &["a"])]);
    produce(&mut client, "t", -1, &[(0, &["b"])]);
    let noted = || std::fs::read_to_string(node.data().join("barnabas-checkpoints")).unwrap_or_default();
    let begun = std::time::Instant::now();
    while !noted().contains(" journal 1") {
        assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{}", noted());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    node.kill();
    let path = node.data().join("barnabas-journal-00");
    let whole = std::fs::read(&path).expect("a file");
    for (len, said) in [(8192, "8192 bytes long, and its files are"), (0, "ends in filling 0")] {
        std::fs::File::options().write(true).open(&path).expect("a file").set_len(len).expect("cut");
        let output = node.command().output().expect("the node runs and ends");
        assert!(!output.status.success());
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(log.contains(said), "{log}");
    }
    std::fs::write(&path, whole).expect("put back");
    node.launch();
    assert_eq!(values(&mut node.client(), "t", 0, 0).map(|found| found.len()), Ok(2));
    assert!(node.stop().success());
}

#[test]
fn a_deletion_that_a_kill_cut_off_leaves_no_stray() {
    for is_remade in [false, true] {
        let mut node = TestNode::start();
        let mut client = node.client();
        client.create_topic("t", 1, &[]);
        produce(&mut client, "t", -1, &[(0, &["old"])]);
        assert!(node.stop().success());
        let (folder, copy) = (node.data().join("t-0"), node.data().join("copy"));
        node.launch();
        client = node.client();
        // As it was before the deletion, which the node is killed too early to carry out.
        assert!(
            std::process::Command::new("cp").arg("-r").args([&folder, &copy]).status().expect("cp").success()
        );
        delete_topic(&mut client, "t");
        if is_remade {
            client.create_topic("t", 1, &[]);
        }
        eventually("it is put aside", || !folder.exists());
        node.kill();
        std::fs::rename(&copy, &folder).expect("put back");
        node.launch();
        client = node.client();
        if is_remade {
            assert_eq!(produce(&mut client, "t", -1, &[(0, &["new"])]), [(0, 0)]);
            assert_eq!(values(&mut client, "t", 0, 0), Ok(vec!["new".to_owned()]));
        }
        eventually("it goes", || partition_dirs(&node.data(), "t-0.") == 0 && !folder.exists());
        assert!(node.stop().success());
    }
}

#[test]
fn a_small_ring_survives_more_kills_than_it_has_files() {
    let mut node = TestNode::start_with(&["log.journal.bytes=12582912"]);
    node.client().create_topic("t", 30, &[]);
    let mut expected: Vec<Vec<String>> = vec![Vec::new(); 30];
    let mut most = 0;
    for life in 0..12 {
        let mut client = node.client();
        for partition in (life % 3..30).step_by(3) {
            let expected = &mut expected[partition as usize];
            let value = format!("{life} of {partition}");
            let answers = produce(&mut client, "t", -1, &[(partition, &[&value])]);
            assert_eq!(answers, [(0, expected.len() as i64)]);
            expected.push(value);
        }
        node.kill();
        most = most.max(journal_files(&node.data()).len());
        node.launch();
    }
    assert!((4..=6).contains(&most), "{most} files: longer for a while, and no more than twice as long");
    let mut client = node.client();
    for (partition, expected) in (0..30).zip(&expected) {
        assert_eq!(values(&mut client, "t", partition, 0).as_ref(), Ok(expected), "partition {partition}");
    }
    assert!(node.stop().success());
    assert!(journal_files(&node.data()).is_empty());
}
