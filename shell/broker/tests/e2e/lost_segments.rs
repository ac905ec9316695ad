//! Segments that vanished while the node was down, and partitions that are given up: what is refused, what the log
//! says, and that the way out which it names works.

use crate::harness::patience::eventually;
use crate::harness::{Client, TestNode, batch};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{FetchRequest, ProduceRequest, ResponseBody};
use barnabas_wire::records::batches;
use std::path::PathBuf;

const STORAGE_ERROR: i16 = 56;
const RECORDS: i64 = 20;

/// The base offset.
fn produce(client: &mut Client, partition: i32) -> Result<i64, i16> {
    let data = PartitionProduceData {
        index: partition,
        records: Some(batch(&[&"x".repeat(900)])),
        ..Default::default()
    };
    let topic = TopicProduceData { name: "t".into(), partition_data: vec![data], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() };
    let ResponseBody::Produce(answer) = client.call(request, 9) else { panic!("another response") };
    let answer = &answer.responses[0].partition_responses[0];
    if answer.error_code == 0 { Ok(answer.base_offset) } else { Err(answer.error_code) }
}

/// The offsets of the records from `from` on.
fn offsets(client: &mut Client, partition: i32, from: i64) -> Result<Vec<i64>, i16> {
    let (mut found, mut next) = (Vec::new(), from);
    loop {
        let wanted = FetchPartition {
            partition,
            fetch_offset: next,
            partition_max_bytes: 1 << 20,
            ..Default::default()
        };
        let topic = FetchTopic { topic: "t".into(), partitions: vec![wanted], ..Default::default() };
        let request = FetchRequest {
            replica_id: -1,
            max_bytes: 1 << 20,
            topics: vec![topic],
            session_epoch: -1,
            ..Default::default()
        };
        let ResponseBody::Fetch(answer) = client.call(request, 12) else { panic!("another response") };
        let answer = &answer.responses[0].partitions[0];
        if answer.error_code != 0 {
            return Err(answer.error_code);
        }
        let before = found.len();
        for batch in batches(answer.records.clone().unwrap_or_default()) {
            found.push(batch.expect("a batch").header().base_offset.get());
        }
        if found.len() == before {
            return Ok(found);
        }
        next = found[found.len() - 1] + 1;
    }
}

/// A node that was stopped cleanly, with segments of a few records.
fn written() -> TestNode {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 2, &[("internal.segment.bytes", "4000")]);
    for at in 0..RECORDS {
        assert_eq!((produce(&mut client, 0), produce(&mut client, 1)), (Ok(at), Ok(at)));
    }
    assert!(node.stop().success());
    node
}

/// The base offsets of partition 0's segments.
fn bases(node: &TestNode) -> Vec<i64> {
    let entries = std::fs::read_dir(node.data().join("t-0")).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
    let mut bases: Vec<i64> = names
        .filter_map(|name| name.strip_suffix(".log").map(|base| base.parse().expect("digits")))
        .collect();
    bases.sort_unstable();
    bases
}

fn remove_segment(node: &TestNode, base: i64) -> PathBuf {
    let name = format!("{base:020}");
    for ending in ["log", "index", "timeindex", "snapshot"] {
        let _ = std::fs::remove_file(node.data().join("t-0").join(format!("{name}.{ending}")));
    }
    node.data().join("t-0").join(format!("{name}.log"))
}

/// `at`: which segment vanishes.
fn vanished(at: usize) {
    let mut node = written();
    let bases = bases(&node);
    assert!(bases.len() > 4, "{bases:?}");
    let (from, to) = (bases[at], bases[at + 1]);
    let path = remove_segment(&node, from);
    node.launch();
    assert_eq!(offsets(&mut node.client(), 0, from), Err(STORAGE_ERROR));
    assert_eq!(offsets(&mut node.client(), 1, 0).map(|found| found.len()), Ok(RECORDS as usize));
    let said = format!("{} is damaged at byte 0 (offset {from}): it is missing", path.display());
    assert!(node.log().contains(&said), "{}", node.log());
    node.kill();
    // After a kill as well.
    node.launch();
    assert_eq!(offsets(&mut node.client(), 0, from), Err(STORAGE_ERROR));
    node.stop_expecting_trouble();
    // What the message says.
    std::fs::remove_file(node.data().join("barnabas-checkpoints")).expect("removed");
    node.launch();
    let start = if at == 0 { to } else { 0 };
    let left: Vec<i64> = (start..RECORDS).filter(|offset| !(from..to).contains(offset)).collect();
    assert_eq!(offsets(&mut node.client(), 0, start), Ok(left.clone()));
    assert!(node.log().contains(&format!("holds offsets {from} up to {to}")), "{}", node.log());
    // From then on it is known.
    node.kill();
    node.launch();
    assert_eq!(offsets(&mut node.client(), 0, start), Ok(left.clone()));
    assert!(node.stop_expecting_trouble().success());
    node.launch();
    assert_eq!(offsets(&mut node.client(), 0, start), Ok(left));
    assert_eq!(produce(&mut node.client(), 0), Ok(RECORDS));
    assert_eq!(node.log().matches("holds offsets").count(), 1, "said once");
    assert!(node.stop_expecting_trouble().success());
}

#[test]
fn a_first_segment_that_vanished_is_missed() {
    vanished(0);
}

#[test]
fn a_segment_that_vanished_in_the_middle_is_missed() {
    vanished(2);
}

#[test]
fn retention_and_deletion_of_records_are_no_loss() {
    use barnabas_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
    let mut node = written();
    for kills in [true, false] {
        node.launch();
        let mut client = node.client();
        let offset = if kills { 7 } else { 13 };
        let partition = DeleteRecordsPartition { partition_index: 0, offset, ..Default::default() };
        let topic =
            DeleteRecordsTopic { name: "t".into(), partitions: vec![partition], ..Default::default() };
        let request = barnabas_wire::messages::DeleteRecordsRequest {
            topics: vec![topic],
            timeout_ms: 1000,
            ..Default::default()
        };
        client.call(request, 2);
        assert_eq!(offsets(&mut client, 0, offset), Ok((offset..RECORDS).collect()));
        if kills {
            node.kill();
        } else {
            assert!(node.stop().success());
        }
    }
    node.launch();
    assert_eq!(offsets(&mut node.client(), 0, 13), Ok((13..RECORDS).collect()));
    assert!(node.stop().success());
}

#[test]
fn a_partition_is_given_up_on_the_operators_word() {
    let mut node = written();
    let first = node.data().join("t-0").join("00000000000000000000.log");
    let whole = std::fs::read(&first).expect("a segment");
    std::fs::write(&first, &whole[..100]).expect("cut short");
    remove_segment(&node, bases(&node)[2]);
    node.launch();
    assert_eq!(offsets(&mut node.client(), 0, 0), Err(STORAGE_ERROR));
    node.stop_expecting_trouble();
    // To remove the directory alone does not help.
    let dir = node.data().join("t-0");
    let aside = node.data().with_file_name("aside");
    std::fs::rename(&dir, &aside).expect("moved away");
    node.launch();
    assert_eq!(offsets(&mut node.client(), 0, 0), Err(STORAGE_ERROR));
    assert!(node.log().contains("create an empty file barnabas-abandon-t-0 in"), "{}", node.log());
    node.stop_expecting_trouble();
    std::fs::rename(&aside, &dir).expect("put back");
    let told = node.data().join("barnabas-abandon-t-0");
    std::fs::write(&told, "").expect("written");
    node.launch();
    await_begun(&node);
    assert_eq!(offsets(&mut node.client(), 0, 0), Ok(vec![]));
    assert_eq!(produce(&mut node.client(), 0), Ok(0));
    assert!(!told.exists() && node.log().contains("the partition starts empty"), "{}", node.log());
    assert_eq!(offsets(&mut node.client(), 1, 0).map(|found| found.len()), Ok(RECORDS as usize));
    let entries = std::fs::read_dir(node.data()).expect("a directory").flatten();
    let mut strays = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with("-stray"));
    let stray = strays.next().expect("put aside").path().join("00000000000000000000.log");
    assert_eq!(std::fs::read(stray).expect("kept").len(), 100);
    node.kill();
    node.launch();
    assert_eq!(offsets(&mut node.client(), 0, 0), Ok(vec![0]));
    assert!(node.stop_expecting_trouble().success());
    // And where its files are gone.
    std::fs::rename(&dir, &aside).expect("moved away");
    std::fs::write(&told, "").expect("written");
    node.launch();
    await_begun(&node);
    assert_eq!(produce(&mut node.client(), 0), Ok(0));
    assert!(node.stop_expecting_trouble().success());
}

/// An abandoned partition begins once the journal has its removal. Until then clients are to retry.
fn await_begun(node: &TestNode) {
    eventually("it begins", || offsets(&mut node.client(), 0, 0) != Err(STORAGE_ERROR));
}

/// A folder from elsewhere, or one with another partition's `partition.metadata`: the journal's batches are kept,
/// and the partition does not start empty in the place of records that no other replica has.
fn a_foreign_folder(end: impl Fn(&mut TestNode)) {
    let mut node = TestNode::start();
    node.client().create_topic("t", 1, &[]);
    for at in 0..5 {
        assert_eq!(produce(&mut node.client(), 0), Ok(at));
    }
    assert!(node.stop().success());
    node.launch();
    for at in 5..10 {
        assert_eq!(produce(&mut node.client(), 0), Ok(at));
    }
    end(&mut node);
    let metadata = node.data().join("t-0/partition.metadata");
    let own = std::fs::read_to_string(&metadata).expect("partition.metadata");
    std::fs::write(&metadata, "version: 0\ntopic_id: gmTyNkbDRWqmoHl3e6EX7Q").expect("is written");
    node.launch();
    assert_eq!(produce(&mut node.client(), 0), Err(STORAGE_ERROR), "it does not start empty");
    assert!(node.log().contains("a topic that is not known"), "{}", node.log());
    node.stop_expecting_trouble();
    let stray = std::fs::read_dir(node.data()).expect("lists").map(|entry| entry.expect("an entry").path());
    let stray = stray.into_iter().find(|path| path.to_string_lossy().ends_with("-stray"));
    let folder = node.data().join("t-0");
    if let Some(stray) = stray {
        std::fs::rename(stray, &folder).expect("is put back");
    }
    std::fs::write(folder.join("partition.metadata"), own).expect("is written");
    node.launch();
    assert_eq!(offsets(&mut node.client(), 0, 0), Ok((0..10).collect()));
}

#[test]
fn a_folder_of_an_unknown_topic_takes_no_records_with_it() {
    a_foreign_folder(TestNode::kill);
}

#[test]
fn nor_does_it_after_a_clean_stop() {
    a_foreign_folder(|node| assert!(node.stop().success()));
}
