//! Bytes of one of three replicas change, and no producer writes: the replica is repaired as soon as its broker knows,
//! and its broker knows of what changed while it was down without being asked to read it.

use crate::harness::replicas::{Cluster, append_patiently, eventually, leaders, metadata, until};
use crate::harness::{free_port, metric};
use barnabas_base::TopicId;
use barnabas_wire::messages::elect_leaders_request::TopicPartitions;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use barnabas_wire::messages::{ElectLeadersRequest, FetchRequest, ListOffsetsRequest, ResponseBody};
use barnabas_wire::records::batches;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

const TOPIC: &str = "idle";
const RECORDS: i64 = 40;
const RECORD_BYTES: usize = 20_000;
const DAMAGE: &[u8] = b"!damage!";
/// No round of the scrub is due in these tests but the first, which finds nothing.
const SETTINGS: &str = "auto.leader.rebalance.enable=false";
/// What the nodes say at WARN and ERROR of all that.
const EXPECTED: &[&str] = &["corrupt"];

/// Who leads partition 0, and who is in sync, as `node` knows.
fn state(cluster: &Cluster, node: i32) -> (i32, Vec<i32>) {
    let response = metadata(&mut cluster.client(node));
    let topic = response.topics.iter().find(|known| known.name.as_deref() == Some(TOPIC));
    let row = topic.and_then(|topic| topic.partitions.iter().find(|row| row.partition_index == 0));
    row.map_or((-1, Vec::new()), |row| (row.leader_id, row.isr_nodes.clone()))
}

/// The active segment, which is all there is.
fn segment(cluster: &Cluster, node: i32) -> PathBuf {
    let data = cluster.nodes[&node].dir.path().join("data");
    data.join(format!("{TOPIC}-0")).join("00000000000000000000.log")
}

const MIDDLE: u64 = RECORD_BYTES as u64 * RECORDS as u64 / 2;

fn damage(cluster: &Cluster, node: i32, position: u64) {
    let file = std::fs::File::options().write(true).open(segment(cluster, node)).expect("a segment");
    file.write_all_at(DAMAGE, position).expect("written");
}

fn is_damaged(cluster: &Cluster, node: i32) -> bool {
    let bytes = std::fs::read(segment(cluster, node)).unwrap_or_default();
    bytes.windows(DAMAGE.len()).any(|bytes| bytes == DAMAGE)
}

/// Partition 0 has records, and the node that leads it comes first.
fn filled() -> (Cluster, TopicId, [i32; 3]) {
    let cluster = Cluster::start_with(None, &["data"], SETTINGS);
    let topic = cluster.create(TOPIC);
    cluster.await_in_sync(TOPIC, 3);
    let leader = leaders(&mut cluster.client(1), TOPIC)[&0];
    let value = "x".repeat(RECORD_BYTES);
    (0..RECORDS).for_each(|_| append_patiently(&cluster, topic, 0, &value));
    (cluster, topic, [leader, 1 + leader % 3, 1 + (leader + 1) % 3])
}

/// Stops a node and starts it again once the others have noticed; `between` comes in between.
fn restart(cluster: &mut Cluster, node: i32, kills: bool, between: impl Fn(&Cluster)) {
    let asked = 1 + node % 3;
    let victim = cluster.nodes.get_mut(&node).expect("a node");
    if kills {
        victim.kill();
    } else {
        assert!(victim.stop_expecting_trouble().success());
    }
    eventually("it has left", || !state(cluster, asked).1.contains(&node));
    between(cluster);
    cluster.nodes.get_mut(&node).expect("a node").launch();
}

/// The code, and up to where records came that `node` has from `from` on: in sync or not, leader or not.
fn read(cluster: &Cluster, node: i32, topic: TopicId, from: i64) -> (i16, i64) {
    let wanted = FetchPartition { fetch_offset: from, partition_max_bytes: 4 << 20, ..Default::default() };
    let wanted = FetchTopic { topic_id: topic, partitions: vec![wanted], ..Default::default() };
    let request =
        FetchRequest { max_bytes: 8 << 20, session_epoch: -1, topics: vec![wanted], ..Default::default() };
    let ResponseBody::Fetch(response) = cluster.client(node).call(request, 17) else {
        panic!("another response")
    };
    let data = &response.responses[0].partitions[0];
    let mut next = from;
    for batch in batches(data.records.clone().unwrap_or_default()) {
        let batch = batch.expect("a batch");
        batch.check_crc().expect("only sound batches are served");
        next = batch.header().next_offset().get();
    }
    (data.error_code, next)
}

/// Reads all that `node` has. Returns where an error stopped it.
fn read_all(cluster: &Cluster, node: i32, topic: TopicId) -> Option<i64> {
    let mut from = 0;
    while from < RECORDS {
        match read(cluster, node, topic, from) {
            (0, next) if next > from => from = next,
            _ => return Some(from),
        }
    }
    None
}

/// Nothing is produced, and in the end all three have all of it.
fn await_repair(cluster: Cluster, topic: TopicId, node: i32) {
    eventually("the damaged batch is mended", || cluster.nodes[&node].log().contains("replica repaired: "));
    eventually("it is back in the ISR", || state(&cluster, node).1.len() == 3 && !is_damaged(&cluster, node));
    for node in 1..=3 {
        until("all records", || read_all(&cluster, node, topic).is_none().then_some(()));
    }
    cluster.stop_expecting(EXPECTED);
}

fn changed_while_down(kills: bool) {
    let (mut cluster, topic, [_, follower, _]) = filled();
    if kills {
        // What it has is in its segment.
        restart(&mut cluster, follower, false, |_| {});
        cluster.await_in_sync(TOPIC, 3);
    }
    restart(&mut cluster, follower, kills, |cluster| damage(cluster, follower, MIDDLE));
    await_repair(cluster, topic, follower);
}

#[test]
fn replica_damaged_while_stopped_is_repaired_unasked() {
    changed_while_down(false);
}

#[test]
fn replica_damaged_after_a_kill_is_repaired_unasked() {
    changed_while_down(true);
}

/// The follower's segment is damaged while it runs, and has nothing of it in memory.
fn damaged_follower() -> (Cluster, TopicId, i32) {
    let (mut cluster, topic, [_, follower, _]) = filled();
    restart(&mut cluster, follower, false, |_| {});
    cluster.await_in_sync(TOPIC, 3);
    damage(&cluster, follower, MIDDLE);
    (cluster, topic, follower)
}

#[test]
fn idle_follower_is_repaired_once_a_consumer_met_damage() {
    let (cluster, topic, follower) = damaged_follower();
    assert!(read_all(&cluster, follower, topic).is_some(), "the damage is met");
    await_repair(cluster, topic, follower);
}

#[test]
fn idle_leader_hands_over_once_a_consumer_met_damage() {
    let (cluster, topic, leader) = damaged_leader(MIDDLE);
    assert!(read_all(&cluster, leader, topic).is_some(), "the damage is met");
    eventually("another one leads", || ![-1, leader].contains(&state(&cluster, leader).0));
    await_repair(cluster, topic, leader);
}

#[test]
fn idle_leader_hands_over_once_a_time_search_met_damage() {
    // The first batch is as old as what is searched.
    let (cluster, topic, leader) = damaged_leader(1000);
    let partition = ListOffsetsPartition { timestamp: 1, current_leader_epoch: -1, ..Default::default() };
    let asked = ListOffsetsTopic { name: TOPIC.into(), partitions: vec![partition], ..Default::default() };
    let request = ListOffsetsRequest { replica_id: -1, topics: vec![asked], ..Default::default() };
    let ResponseBody::ListOffsets(response) = cluster.client(leader).call(request, 7) else {
        panic!("another response")
    };
    assert_ne!(response.topics[0].partitions[0].error_code, 0, "{response:?}");
    eventually("another one leads", || ![-1, leader].contains(&state(&cluster, leader).0));
    await_repair(cluster, topic, leader);
}

/// The leader's segment is damaged while it runs, and has nothing of it in memory.
fn damaged_leader(position: u64) -> (Cluster, TopicId, i32) {
    let (mut cluster, topic, [leader, ..]) = filled();
    restart(&mut cluster, leader, false, |_| {});
    cluster.await_in_sync(TOPIC, 3);
    let partitions = TopicPartitions { topic: TOPIC.into(), partitions: vec![0], ..Default::default() };
    let request = ElectLeadersRequest {
        topic_partitions: Some(vec![partitions]),
        timeout_ms: 20_000,
        ..Default::default()
    };
    cluster.client(leader).call(request, 2);
    eventually("it leads again", || (1..=3).all(|node| state(&cluster, node).0 == leader));
    damage(&cluster, leader, position);
    (cluster, topic, leader)
}

/// Out of the ISR it would be eligible to lead, which promises all acknowledged records: it stays, is repaired beside
/// its fetches, and forgets the damage.
#[test]
fn one_of_two_in_sync_is_repaired_where_it_is() {
    let (mut cluster, topic, follower) = damaged_follower();
    let leader = state(&cluster, follower).0;
    let third = 6 - leader - follower;
    assert!(cluster.nodes.get_mut(&third).expect("a node").stop_expecting_trouble().success());
    eventually("the third has left", || !state(&cluster, follower).1.contains(&third));
    assert!(read_all(&cluster, follower, topic).is_some(), "the damage is met");
    eventually("it is repaired", || cluster.nodes[&follower].log().contains("replica repaired: "));
    eventually("the bytes are mended", || !is_damaged(&cluster, follower));
    assert!(state(&cluster, leader).1.contains(&follower), "it is one of two");
    let noted = cluster.nodes[&follower].dir.path().join("data").join("barnabas-scrub");
    eventually("the note is gone", || {
        !std::fs::read_to_string(&noted).unwrap_or_default().contains(&format!("damaged {TOPIC}-0"))
    });
    cluster.nodes.get_mut(&third).expect("a node").launch();
    await_repair(cluster, topic, follower);
}

/// The third replica comes back while the repair goes on or is done, and nothing else happens.
#[test]
fn idle_repair_goes_on_when_another_replica_is_back() {
    let (mut cluster, topic, follower) = damaged_follower();
    let third = 6 - state(&cluster, follower).0 - follower;
    assert!(cluster.nodes.get_mut(&third).expect("a node").stop_expecting_trouble().success());
    eventually("the third has left", || !state(&cluster, follower).1.contains(&third));
    assert!(read_all(&cluster, follower, topic).is_some(), "the damage is met");
    let named = "the replica of this broker is corrupt";
    eventually("it is known", || cluster.nodes[&follower].log().contains(named));
    let log = cluster.nodes[&follower].log();
    let line = log.lines().find(|line| line.contains(named)).expect("it is there");
    assert!(line.contains("it is repaired from the leader"), "{line}");
    cluster.nodes.get_mut(&third).expect("a node").launch();
    await_repair(cluster, topic, follower);
}

/// All are stopped, bytes of a replica outside of the ISR change, and all start: nothing is produced after that. While
/// two are up it is one of two in sync, and waits for the third.
#[test]
fn damaged_while_all_were_stopped_is_repaired_idle() {
    let (mut cluster, topic, [leader, follower, third]) = filled();
    for node in [third, follower, leader] {
        let node = cluster.nodes.get_mut(&node).expect("a node");
        assert!(node.stop_expecting_trouble().success());
    }
    damage(&cluster, follower, MIDDLE);
    let metrics = free_port();
    let properties = cluster.nodes[&follower].dir.path().join("server.properties");
    let mut settings = std::fs::read_to_string(&properties).expect("settings");
    settings.push_str(&format!("metrics.listener=127.0.0.1:{metrics}\n"));
    std::fs::write(&properties, settings).expect("written");
    for node in [leader, follower] {
        cluster.nodes.get_mut(&node).expect("a node").launch_unawaited();
    }
    eventually("the damage is known", || {
        cluster.nodes[&follower].log().contains("the replica of this broker is corrupt")
            && metric(metrics, "barnabas_partitions_leadership_impaired") == Some(1.0)
    });
    eventually("two are in sync", || state(&cluster, leader).1.len() == 2);
    cluster.nodes.get_mut(&third).expect("a node").launch();
    eventually("it is repaired", || {
        metric(metrics, "barnabas_partitions_leadership_impaired") == Some(0.0)
            && metric(metrics, "barnabas_damage_found_total") == Some(1.0)
    });
    await_repair(cluster, topic, follower);
}
