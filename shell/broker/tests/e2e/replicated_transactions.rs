//! Transactions in replicated partitions: every leader, however the one before ended, shows read_committed consumers
//! the same records and the same aborted transactions.
//!
//! The test is its own coordinator: it writes transactional batches and markers to the partition's leader.

use crate::harness::replicas::{Cluster, eventually, leaders, signal, until};
use crate::harness::txn::{Producer, end_offset, end_offset_if_known, read_up_to};
use crate::harness::{Client, batch};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::write_txn_markers_request::{WritableTxnMarker, WritableTxnMarkerTopic};
use barnabas_wire::messages::{ProduceRequest, ResponseBody, WriteTxnMarkersRequest};

/// Without verification at the coordinator.
const SETTINGS: &str = "transaction.partition.verification.enable=false";
/// Followers' results in the answer to a waiting fetch do not matter here.
const UNREPLICATED: &str = "unreplicated";
const COMMIT: bool = true;
const ABORT: bool = false;

/// A transactional producer that no coordinator knows.
fn producer(cluster: &Cluster, node: i32, id: i64) -> Producer {
    Producer { id, epoch: 0, ..Producer::new(&cluster.nodes[&node], "nobody's", 0) }
}

fn write(producer: &mut Producer, values: &[&str]) {
    assert_eq!(producer.write_as(11, "t", 0, values), 0);
}

/// Writes the marker that ends the producer's transaction.
fn end(producer: &mut Producer, commit: bool) {
    let topic = WritableTxnMarkerTopic { name: "t".into(), partition_indexes: vec![0], ..Default::default() };
    let marker = WritableTxnMarker {
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        transaction_result: commit,
        topics: vec![topic],
        ..Default::default()
    };
    let request = WriteTxnMarkersRequest { markers: vec![marker], ..Default::default() };
    let ResponseBody::WriteTxnMarkers(response) = producer.client.call(request, 1) else {
        panic!("another response")
    };
    assert_eq!(response.markers[0].topics[0].partitions[0].error_code, 0);
}

/// Written by the leader alone.
fn write_unreplicated(client: &mut Client) {
    let records = Some(batch(&[UNREPLICATED]));
    let data = PartitionProduceData { index: 0, records, ..Default::default() };
    let topic = TopicProduceData { name: "t".into(), partition_data: vec![data], ..Default::default() };
    let request =
        ProduceRequest { acks: 1, timeout_ms: 3_000, topic_data: vec![topic], ..Default::default() };
    let ResponseBody::Produce(response) = client.call(request, 11) else { panic!("another response") };
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
}

/// The leader that `asked` knows, once it is another one than `not`, and knows itself that it leads.
fn leader(cluster: &Cluster, asked: i32, not: i32) -> i32 {
    until("the partition is led", || {
        let leader = *leaders(&mut cluster.client(asked), "t").get(&0)?;
        if leader == not {
            return None;
        }
        end_offset_if_known(&mut cluster.client(leader), "t", 0).map(|_| leader)
    })
}

/// What every replica shows, leader or not.
fn check(cluster: &Cluster, ends: (i64, i64), committed: &[&str], all: &[&str]) {
    for node in cluster.nodes.keys() {
        let mut client = cluster.client(*node);
        let mut read = |committed, end| {
            let mut values = read_up_to(&mut client, "t", 0, committed, end);
            values.retain(|value| value != UNREPLICATED);
            values
        };
        assert_eq!(read(false, ends.1), all, "node {node}");
        assert_eq!(read(true, ends.0), committed, "node {node}");
    }
}

/// Where the log ends for readers of committed records, and for all others.
fn ends(cluster: &Cluster, leader: i32) -> (i64, i64) {
    let mut client = cluster.client(leader);
    (end_offset(&mut client, "t", 0, true), end_offset(&mut client, "t", 0, false))
}

#[test]
fn a_follower_that_leads_knows_what_is_open_and_what_was_aborted() {
    let mut cluster = Cluster::start_with(None, &["data"], SETTINGS);
    cluster.create("t");
    cluster.await_in_sync("t", 3);
    let first = leader(&cluster, 1, -1);
    let [mut one, mut two, mut three] = [1001, 1002, 1003].map(|id| producer(&cluster, first, id));
    write(&mut one, &["a1", "a2"]);
    end(&mut one, ABORT);
    write(&mut two, &["b"]);
    write(&mut three, &["c"]);
    end(&mut three, COMMIT);
    write(&mut one, &["a3"]);
    assert_eq!(ends(&cluster, first), (3, 7));
    check(&cluster, (3, 7), &[], &["a1", "a2", "b", "c", "a3"]);

    // In the middle of two transactions.
    cluster.nodes.get_mut(&first).expect("there").kill();
    let asked = 1 + first % 3;
    let second = leader(&cluster, asked, first);
    assert_eq!(ends(&cluster, second), (3, 7));
    for producer in [&mut one, &mut two] {
        producer.client = cluster.client(second);
    }
    write(&mut one, &["a4"]);
    end(&mut two, ABORT);
    assert_eq!(ends(&cluster, second), (6, 9), "the first one's is open still");
    end(&mut one, COMMIT);
    write(&mut two, &["d"]);
    cluster.nodes.get_mut(&first).expect("there").launch();
    cluster.await_in_sync("t", 3);
    let all = ["a1", "a2", "b", "c", "a3", "a4", "d"];
    assert_eq!(ends(&cluster, second), (10, 11));
    check(&cluster, (10, 11), &["c", "a3", "a4"], &all);

    // All at once: what none of them has in segments yet comes back from their journals.
    for node in cluster.nodes.values_mut() {
        node.kill();
    }
    cluster.nodes.values_mut().for_each(crate::harness::TestNode::launch_unawaited);
    cluster.nodes.values_mut().for_each(crate::harness::TestNode::await_answer);
    cluster.await_in_sync("t", 3);
    let third = leader(&cluster, 1, -1);
    eventually("it knows how far the others are", || ends(&cluster, third) == (10, 11));
    check(&cluster, (10, 11), &["c", "a3", "a4"], &all);
    two.client = cluster.client(third);
    end(&mut two, ABORT);
    assert_eq!(ends(&cluster, third), (12, 12));
    check(&cluster, (12, 12), &["c", "a3", "a4"], &all);
    cluster.stop();
}

#[test]
fn what_is_replayed_behind_a_cut_keeps_its_aborted_transactions() {
    let mut cluster = Cluster::start_with(None, &["data"], SETTINGS);
    cluster.create("t");
    cluster.await_in_sync("t", 3);
    let first = leader(&cluster, 1, -1);
    let [mut one, mut two] = [1001, 1002].map(|id| producer(&cluster, first, id));
    write(&mut one, &["a"]);
    let others: Vec<i32> = (1..=3).filter(|node| *node != first).collect();
    for other in &others {
        signal(&cluster.nodes[other], "-STOP");
    }
    // The first may go with the answers to the fetches that wait already.
    for _ in 0..3 {
        write_unreplicated(&mut cluster.client(first));
    }
    cluster.nodes.get_mut(&first).expect("there").kill();
    for other in &others {
        signal(&cluster.nodes[other], "-CONT");
    }
    let second = leader(&cluster, others[0], first);
    for producer in [&mut one, &mut two] {
        producer.client = cluster.client(second);
    }
    // One that began before the cut, one that lies behind it.
    end(&mut one, ABORT);
    write(&mut two, &["b"]);
    end(&mut two, ABORT);
    write(&mut two, &["c"]);
    end(&mut two, COMMIT);
    cluster.nodes.get_mut(&first).expect("there").launch();
    cluster.await_in_sync("t", 3);
    assert!(cluster.nodes[&first].log().contains("truncated the log from offset 4 to"));
    let ends = ends(&cluster, second);
    assert_eq!(ends.0, ends.1);
    check(&cluster, ends, &["c"], &["a", "b", "c"]);

    // Its journal holds the cut and all that was fetched since.
    cluster.nodes.get_mut(&first).expect("there").kill();
    cluster.nodes.get_mut(&first).expect("there").launch();
    cluster.await_in_sync("t", 3);
    assert!(cluster.nodes[&first].log().contains(", 1 were replayed"), "{}", cluster.nodes[&first].log());
    check(&cluster, ends, &["c"], &["a", "b", "c"]);
    cluster.stop();
}
