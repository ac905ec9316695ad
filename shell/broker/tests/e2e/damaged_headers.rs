//! Three nodes are stopped, a byte of the header of one replica's last batch changes that the batch's checksum does not
//! cover, and all three are started again: the batch is named, and the replica is repaired from its leader.

use crate::harness::replicas::{Cluster, append_patiently, eventually, look_up, metadata, signal, until};
use crate::harness::{TestNode, batch, trouble};
use barnabas_base::TopicId;
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{ProduceRequest, ResponseBody};
use barnabas_wire::records::batches;
use bytes::Bytes;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const TOPIC: &str = "headers";
const SETTINGS: &str = "auto.leader.rebalance.enable=false\nmin.insync.replicas=2\nlog.segment.bytes=1048576";
/// What the nodes say at WARN and ERROR of all that: of the damage, and that they stop and start together.
const EXPECTED: &[&str] = &["corrupt", "in-sync replicas shrank", "below min.insync.replicas"];
const BATCHES: usize = 45;
const RECORDS: usize = 7;

fn folder(cluster: &Cluster, node: i32) -> PathBuf {
    cluster.nodes[&node].dir.path().join("data").join(format!("{TOPIC}-0"))
}

/// The segments of partition 0, oldest first.
fn segments(cluster: &Cluster, node: i32) -> Vec<PathBuf> {
    let names = std::fs::read_dir(folder(cluster, node)).expect("a folder").flatten();
    let mut paths: Vec<PathBuf> = names.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    paths.sort();
    paths
}

fn bytes(cluster: &Cluster, node: i32) -> Vec<u8> {
    segments(cluster, node).iter().flat_map(|path| std::fs::read(path).expect("a segment")).collect()
}

/// Appends a batch of several records until it is acknowledged.
fn append_batch(cluster: &Cluster, topic: TopicId, value: &str) {
    until("an acknowledgement", || {
        let (leader, _) = look_up(&cluster.ports(), topic, 0)?;
        let records = Some(batch(&[value; RECORDS]));
        let data = PartitionProduceData { index: 0, records, ..Default::default() };
        let data = TopicProduceData { topic_id: topic, partition_data: vec![data], ..Default::default() };
        let request =
            ProduceRequest { acks: -1, timeout_ms: 3_000, topic_data: vec![data], ..Default::default() };
        let response = cluster.client(leader).try_call(request, 13)?;
        let ResponseBody::Produce(response) = response else { panic!("another response") };
        (response.responses[0].partition_responses[0].error_code == 0).then_some(())
    });
}

/// Position, base offset and bytes of the last batch in a segment.
fn last_batch(segment: &Path) -> (u64, i64, Bytes) {
    let (mut position, mut found) = (0, None);
    for batch in batches(std::fs::read(segment).expect("a segment").into()) {
        let bytes = batch.expect("a batch").bytes().clone();
        let base = i64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"));
        let len = bytes.len() as u64;
        found = Some((position, base, bytes));
        position += len;
    }
    found.expect("a batch")
}

fn in_sync(cluster: &Cluster, node: i32) -> usize {
    let response = metadata(&mut cluster.client(node));
    let topic = response.topics.iter().find(|known| known.name.as_deref() == Some(TOPIC));
    let row = topic.and_then(|topic| topic.partitions.iter().find(|row| row.partition_index == 0));
    row.map_or(0, |row| row.isr_nodes.len())
}

/// Changes a byte.
fn flip(segment: &Path, position: u64, mask: u8) {
    let file = std::fs::File::options().read(true).write(true).open(segment).expect("a segment");
    let mut byte = [0];
    file.read_exact_at(&mut byte, position).expect("a byte");
    file.write_all_at(&[byte[0] ^ mask], position).expect("written");
}

/// Stops all nodes, and starts them all; `between` comes in between.
fn restart_all(cluster: &mut Cluster, between: impl FnOnce()) {
    cluster.nodes.values().for_each(|node| signal(node, "-TERM"));
    for node in cluster.nodes.values_mut() {
        assert!(node.wait().success(), "{}", node.log());
    }
    between();
    cluster.nodes.values_mut().for_each(TestNode::launch_unawaited);
    cluster.nodes.values_mut().for_each(TestNode::await_answer);
}

/// Changes byte `at` of the last batch of the segment that is `back` from the newest one.
fn is_named_and_repaired(back: usize, at: u64, mask: u8) {
    let mut cluster = Cluster::start_with(None, &["data"], SETTINGS);
    let topic = cluster.create(TOPIC);
    cluster.await_in_sync(TOPIC, 3);
    let value = "x".repeat(8_000);
    (0..BATCHES).for_each(|_| append_batch(&cluster, topic, &value));
    let (leader, _) = look_up(&cluster.ports(), topic, 0).expect("a leader");
    let damaged = 1 + leader % 3;
    // All of it is in segments.
    restart_all(&mut cluster, || ());
    cluster.await_in_sync(TOPIC, 3);
    let before = bytes(&cluster, damaged);
    let found = segments(&cluster, damaged);
    assert!(found.len() > 2);
    let segment = found[found.len() - 1 - back].clone();
    let (position, base, _) = last_batch(&segment);
    restart_all(&mut cluster, || flip(&segment, position + at, mask));
    let log = || cluster.nodes[&damaged].log();
    let named = format!("{} is damaged at byte {position} (offset {base})", segment.display());
    eventually("the batch is named", || log().contains(&named));
    eventually("the batch is mended", || log().contains("replica repaired: "));
    eventually("it is back in the ISR", || in_sync(&cluster, leader) == 3);
    // A stop of all nodes may leave a controller with metadata records that no majority has.
    let log = log();
    let of_partitions: Vec<&str> = log.lines().filter(|line| !line.contains("the metadata log")).collect();
    let log = of_partitions.join("\n");
    for wrong in ["diverges", "UNCLEAN", "cannot be opened", "is missing", "do not go on where"] {
        assert!(!log.contains(wrong), "{wrong}: {log}");
    }
    append_patiently(&cluster, topic, 0, "behind it");
    for node in cluster.nodes.values_mut() {
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
        let log = node.log();
        let mut trouble = trouble(&log);
        let is_expected = |line: &&str| EXPECTED.iter().any(|word| line.contains(word));
        assert_eq!(trouble.find(|line| !is_expected(line)), None);
    }
    let after = bytes(&cluster, damaged);
    assert!(after.starts_with(&before), "other bytes than before");
    assert!(after == bytes(&cluster, leader), "other bytes than on another node");
}

/// The lowest byte of the base offset.
#[test]
fn displaced_last_batch_is_named_and_repaired() {
    is_named_and_repaired(0, 7, 1);
}

#[test]
fn displaced_last_batch_of_a_sealed_segment_is_named_and_repaired() {
    is_named_and_repaired(1, 7, 1);
}

/// The lowest byte of the leader epoch.
#[test]
fn last_batch_of_another_epoch_is_named_and_repaired() {
    is_named_and_repaired(0, 15, 0x40);
}
