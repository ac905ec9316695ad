//! A node that is killed in each phase of a transaction, and starts again: answers hold, decisions are carried out
//! without a request, open transactions continue or time out.

use crate::harness::txn::{LATER, PATIENCE, Producer, end_offset, read, retried};
use crate::harness::{Client, TestNode};
use barnabas_base::ErrorCode;
use barnabas_wire::messages::add_offsets_to_txn_request::AddOffsetsToTxnRequest;
use barnabas_wire::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use barnabas_wire::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use barnabas_wire::messages::update_features_request::FeatureUpdateKey;
use barnabas_wire::messages::{
    EndTxnRequest, FindCoordinatorRequest, OffsetFetchRequest, ResponseBody, UpdateFeaturesRequest,
};
use std::time::{Duration, Instant};

const COMMIT: bool = true;
const ABORT: bool = false;

fn kill(node: &mut TestNode) -> Client {
    node.kill();
    node.launch();
    node.client()
}

fn wait_until_stable(client: &mut Client, topic: &str, partition: i32) {
    let asked = Instant::now();
    while end_offset(client, topic, partition, true) < end_offset(client, topic, partition, false) {
        assert!(asked.elapsed() < PATIENCE, "the last stable offset stands still");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_was_open_goes_on_after_a_kill() {
    for version in [0, 2] {
        let mut node = TestNode::start();
        node.client().create_topic("t", 1, &[]);
        let mut producer = Producer::ready(&node, "payments", version);
        kill(&mut node);
        // Nothing but an id was given out.
        producer.reconnect(&node);
        assert_eq!(producer.write("t", 0, &["a"]), 0);
        kill(&mut node);
        // It is open.
        producer.reconnect(&node);
        assert_eq!(producer.state(), "Ongoing");
        assert_eq!(producer.write("t", 0, &["b"]), 0);
        assert_eq!(producer.end(COMMIT), 0);
        producer.wait_for("CompleteCommit");
        let mut client = kill(&mut node);
        // It is over.
        producer.reconnect(&node);
        assert_eq!(producer.state(), "CompleteCommit");
        assert_eq!(read(&mut client, "t", 0, true), ["a", "b"]);
        assert_eq!(producer.write("t", 0, &["c"]), 0);
        assert_eq!(producer.end(ABORT), 0);
        wait_until_stable(&mut client, "t", 0);
        assert_eq!(read(&mut client, "t", 0, true), ["a", "b"]);
        assert!(node.stop().success());
    }
}

/// Without a journal of its own the next start writes back what the last one left there, and no partition follows it
/// meanwhile.
#[test]
fn what_was_aborted_stays_so_where_the_next_start_empties_the_journal() {
    for version in [0, 2] {
        let mut node = TestNode::start();
        node.client().create_topic("t", 1, &[]);
        let mut producer = Producer::ready(&node, "payments", version);
        for (word, commit) in [("a", COMMIT), ("b", ABORT), ("c", COMMIT), ("d", ABORT)] {
            assert_eq!(producer.write("t", 0, &[word]), 0);
            assert_eq!(producer.end(commit), 0);
            producer.wait_for(if commit { "CompleteCommit" } else { "CompleteAbort" });
        }
        node.kill();
        node.set_overrides(&["log.ack.durability=written"]);
        node.launch();
        let mut client = node.client();
        wait_until_stable(&mut client, "t", 0);
        assert_eq!(read(&mut client, "t", 0, true), ["a", "c"]);
        assert_eq!(read(&mut client, "t", 0, false), ["a", "b", "c", "d"]);
        assert!(node.stop().success());
    }
}

#[test]
fn what_was_decided_is_carried_out_after_a_kill_without_a_request() {
    let mut node = TestNode::start();
    node.client().create_topic("t", 8, &[]);
    let (mut expected, mut found_prepared) = (vec![Vec::new(); 8], 0);
    let mut producer = Producer::ready(&node, "payments", 2);
    for round in 0..12 {
        let commit = round % 3 != 2;
        for partition in 0..8 {
            producer.sequence = 0;
            let word = format!("{round}-{partition}");
            assert_eq!(producer.write("t", partition, &[&word]), 0);
            if commit {
                expected[partition as usize].push(word);
            }
        }
        assert_eq!(producer.end(commit), 0);
        // The answer rests on the decision; most of its markers are not written yet.
        let mut client = kill(&mut node);
        let is_stable = |client: &mut Client, partition| {
            end_offset(client, "t", partition, true) == end_offset(client, "t", partition, false)
        };
        found_prepared += usize::from((0..8).any(|partition| !is_stable(&mut client, partition)));
        for partition in 0..8 {
            wait_until_stable(&mut client, "t", partition);
        }
        producer.reconnect(&node);
        producer.wait_for(if commit { "CompleteCommit" } else { "CompleteAbort" });
    }
    let mut client = node.client();
    for (partition, expected) in expected.iter().enumerate() {
        assert_eq!(read(&mut client, "t", partition as i32, true), *expected, "partition {partition}");
    }
    println!("{found_prepared} of 12 kills fell between the decision and its end");
    assert!(node.stop().success());
}

#[test]
fn whose_time_ran_out_while_the_node_was_away_is_aborted() {
    let mut node = TestNode::start();
    node.client().create_topic("t", 1, &[]);
    let mut producer = Producer::new(&node, "payments", 2);
    producer.timeout_ms = 700;
    producer.find_coordinator();
    assert_eq!(producer.init(), 0);
    assert_eq!(producer.write("t", 0, &["a"]), 0);
    node.kill();
    std::thread::sleep(Duration::from_millis(800));
    node.launch();
    let mut client = node.client();
    // No request reaches the coordinator.
    wait_until_stable(&mut client, "t", 0);
    assert_eq!(read(&mut client, "t", 0, true), [""; 0]);
    producer.reconnect(&node);
    // Its marker may be read before the record that says that it is there.
    producer.wait_for("CompleteAbort");
    assert_eq!(producer.end(COMMIT), 90, "PRODUCER_FENCED");
    assert!(node.stop().success());
}

#[test]
fn an_answer_that_was_lost_in_a_kill_is_given_again() {
    let mut node = TestNode::start();
    node.client().create_topic("t", 1, &[]);
    let mut producer = Producer::ready(&node, "payments", 2);
    for round in 0..6 {
        assert_eq!(producer.write("t", 0, &[&round.to_string()]), 0);
        let before = (producer.id, producer.epoch);
        assert_eq!(producer.end(COMMIT), 0);
        let after = (producer.id, producer.epoch);
        kill(&mut node);
        // As a client does that never heard of it.
        (producer.id, producer.epoch) = before;
        producer.reconnect(&node);
        assert_eq!(producer.end(COMMIT), 0);
        assert_eq!((producer.id, producer.epoch), after);
    }
    let mut client = node.client();
    wait_until_stable(&mut client, "t", 0);
    assert_eq!(read(&mut client, "t", 0, true), ["0", "1", "2", "3", "4", "5"]);
    assert!(node.stop().success());
}

/// Kills at any moment, under a producer that goes on as a client does: what it does not know it asks again.
#[test]
fn transactions_are_whole_whenever_the_node_is_killed() {
    const KILLS: u64 = 12;
    let mut node = TestNode::start();
    node.client().create_topic("t", 4, &[]);
    let mut producer = Producer::ready(&node, "payments", 2);
    let (mut committed, mut aborted) = (Vec::new(), 0);
    let mut seed = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    for kill in 0..KILLS {
        let (pid, delay) = (node.pid(), Duration::from_micros(500 + random(600_000)));
        let killer = std::thread::spawn(move || {
            std::thread::sleep(delay);
            let killed = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status();
            assert!(killed.expect("kill").success());
        });
        let mut number = 0;
        // Until it is killed.
        let (word, wish) = loop {
            let (word, wish) = (format!("{kill}.{number}"), number % 3 != 2);
            number += 1;
            match try_transaction(&mut producer, &word, wish) {
                Some(()) if wish => committed.push(word),
                Some(()) => aborted += 1,
                None => break (word, wish),
            }
        };
        killer.join().expect("killed");
        node.kill();
        node.launch();
        producer.reconnect(&node);
        // The same end again: it was done, or is done now, or there was nothing to end.
        match producer.end(wish) {
            0 if wish => committed.push(word),
            0 => aborted += 1,
            // Nothing was begun, or it was aborted meanwhile: a client starts again.
            48 | 90 => assert_eq!(producer.init(), 0),
            other => panic!("told {other}"),
        }
    }
    let mut client = node.client();
    let mut of_transactions = std::collections::BTreeMap::<String, usize>::new();
    for partition in 0..4 {
        wait_until_stable(&mut client, "t", partition);
        let found = read(&mut client, "t", partition, true);
        let order: Vec<(u64, u64)> = found.iter().map(|word| place(word)).collect();
        assert!(order.is_sorted(), "partition {partition}: {found:?}");
        found.into_iter().for_each(|word| *of_transactions.entry(word).or_default() += 1);
    }
    // A transaction that was cut off before all of it was written may have been committed as far as it went; every
    // other is whole.
    for word in &committed {
        let parts = of_transactions.remove(word).unwrap_or_default();
        assert!(parts == 4 || is_cut_off(word, &committed), "{word} is there in {parts} partitions of 4");
    }
    assert!(of_transactions.is_empty(), "aborted, and read: {of_transactions:?}");
    println!("{} committed, {aborted} aborted over {KILLS} kills", committed.len());
    assert!(node.stop().success());
}

fn place(word: &str) -> (u64, u64) {
    let (kill, number) = word.split_once('.').expect("a place");
    (kill.parse().expect("a number"), number.parse().expect("a number"))
}

/// Whether it was the last one before its kill.
fn is_cut_off(word: &str, all: &[String]) -> bool {
    let (kill, number) = place(word);
    all.iter().map(|other| place(other)).all(|(other, last)| other != kill || last <= number)
}

/// One record in each partition, then the end. `None`: the node was killed.
fn try_transaction(producer: &mut Producer, word: &str, commit: bool) -> Option<()> {
    for partition in 0..4 {
        producer.sequence = 0;
        loop {
            let request = producer.request("t", partition, producer.batch(&[word]));
            if !producer.client.try_send(request, 12) {
                return None;
            }
            let (_, response) = producer.client.try_receive(barnabas_wire::ApiKey::Produce, 12)?;
            let ResponseBody::Produce(response) = response else { panic!("another response") };
            match response.responses[0].partition_responses[0].error_code {
                0 => break,
                19 | 51 => {}
                other => panic!("told {other}"),
            }
        }
    }
    loop {
        let request = EndTxnRequest {
            transactional_id: producer.transactional_id.as_str().into(),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            committed: commit,
            ..Default::default()
        };
        if !producer.client.try_send(request, 5) {
            return None;
        }
        let (_, response) = producer.client.try_receive(barnabas_wire::ApiKey::EndTxn, 5)?;
        let ResponseBody::EndTxn(response) = response else { panic!("another response") };
        match response.error_code {
            0 => {
                (producer.id, producer.epoch) = (response.producer_id, response.producer_epoch);
                return Some(());
            }
            51 => {}
            other => panic!("told {other}"),
        }
    }
}

/// Offsets of a group within a transaction.
struct Offsets<'a> {
    group: &'a str,
}

impl Offsets<'_> {
    fn find_coordinator(&self, client: &mut Client) {
        retried(&LATER, || {
            let request = FindCoordinatorRequest { key: self.group.into(), ..Default::default() };
            let ResponseBody::FindCoordinator(response) = client.call(request, 2) else {
                panic!("another response")
            };
            (response.error_code, ())
        });
    }

    fn add(&self, producer: &mut Producer) -> i16 {
        retried(&LATER, || {
            let request = AddOffsetsToTxnRequest {
                transactional_id: producer.transactional_id.as_str().into(),
                producer_id: producer.id,
                producer_epoch: producer.epoch,
                group_id: self.group.into(),
                ..Default::default()
            };
            let ResponseBody::AddOffsetsToTxn(response) = producer.client.call(request, 3) else {
                panic!("another response")
            };
            (response.error_code, ())
        })
        .0
    }

    fn commitment(&self, producer: &Producer, offset: i64) -> TxnOffsetCommitRequest {
        let partition = TxnOffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
        let topic = TxnOffsetCommitRequestTopic {
            name: "t".into(),
            partitions: vec![partition],
            ..Default::default()
        };
        TxnOffsetCommitRequest {
            transactional_id: producer.transactional_id.as_str().into(),
            group_id: self.group.into(),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            topics: vec![topic],
            ..Default::default()
        }
    }

    fn commit(&self, producer: &mut Producer, version: i16, offset: i64) -> i16 {
        retried(&LATER, || {
            let request = self.commitment(producer, offset);
            let ResponseBody::TxnOffsetCommit(response) = producer.client.call(request, version) else {
                panic!("another response")
            };
            (response.topics[0].partitions[0].error_code, ())
        })
        .0
    }

    fn fetch(&self, client: &mut Client, require_stable: bool) -> (i16, i64) {
        retried(&LATER, || {
            let topic = OffsetFetchRequestTopics {
                name: "t".into(),
                partition_indexes: vec![0],
                ..Default::default()
            };
            let group = OffsetFetchRequestGroup {
                group_id: self.group.into(),
                topics: Some(vec![topic]),
                ..Default::default()
            };
            let request = OffsetFetchRequest { groups: vec![group], require_stable, ..Default::default() };
            let ResponseBody::OffsetFetch(response) = client.call(request, 8) else {
                panic!("another response")
            };
            let group = &response.groups[0];
            if group.error_code != 0 {
                return (group.error_code, (group.error_code, -1));
            }
            let partition = &group.topics[0].partitions[0];
            (0, (partition.error_code, partition.committed_offset))
        })
        .1
    }

    /// Markers follow the answer to EndTxn.
    fn fetch_decided(&self, client: &mut Client) -> i64 {
        let unstable = ErrorCode::UnstableOffsetCommit.code();
        retried(&[unstable], || self.fetch(client, true)).1
    }
}

#[test]
fn offsets_count_once_their_transaction_is_committed() {
    for version in [1, 2] {
        let mut node = TestNode::start();
        let mut client = node.client();
        client.create_topic("t", 1, &[]);
        let offsets = Offsets { group: "g" };
        offsets.find_coordinator(&mut client);
        let mut producer = Producer::ready(&node, "payments", version);
        let commit_version = if version >= 2 { 5 } else { 3 };
        let commit = |producer: &mut Producer, offset| {
            if version < 2 {
                // First without having said so.
                assert_eq!(offsets.commit(producer, 3, offset), 48, "INVALID_TXN_STATE");
                assert_eq!(offsets.commit(producer, 4, offset), 120, "TRANSACTION_ABORTABLE");
                assert_eq!(offsets.add(producer), 0);
            }
            assert_eq!(offsets.commit(producer, commit_version, offset), 0);
        };
        commit(&mut producer, 7);
        assert_eq!(offsets.fetch(&mut client, false), (0, -1));
        assert_eq!(offsets.fetch(&mut client, true).0, 88, "UNSTABLE_OFFSET_COMMIT");
        let mut client = kill(&mut node);
        producer.reconnect(&node);
        assert_eq!(offsets.fetch(&mut client, true).0, 88);
        assert_eq!(producer.end(COMMIT), 0);
        assert_eq!(offsets.fetch_decided(&mut client), 7);
        commit(&mut producer, 9);
        assert_eq!(producer.end(ABORT), 0);
        assert_eq!(offsets.fetch_decided(&mut client), 7);
        commit(&mut producer, 11);
        assert_eq!(producer.end(COMMIT), 0);
        // Killed between the decision and its marker, perhaps.
        let mut client = kill(&mut node);
        assert_eq!(offsets.fetch_decided(&mut client), 11);
        // A producer that lost the id commits nothing.
        producer.reconnect(&node);
        let mut heir = Producer::ready(&node, "payments", version);
        assert_eq!(offsets.commit(&mut producer, commit_version, 99), 47, "INVALID_PRODUCER_EPOCH");
        commit(&mut heir, 12);
        assert_eq!(heir.end(COMMIT), 0);
        assert_eq!(offsets.fetch_decided(&mut client), 12);
        assert!(node.stop().success());
    }
}

/// Over a connection that was given up, when the next transaction is open and has committed its own.
#[test]
fn offsets_that_come_late_do_not_get_into_the_next_transaction() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    let offsets = Offsets { group: "g" };
    offsets.find_coordinator(&mut client);
    let mut producer = Producer::ready(&node, "payments", 1);
    assert_eq!(offsets.add(&mut producer), 0);
    let mut given_up = std::mem::replace(&mut producer.client, node.client());
    assert_eq!(offsets.commit(&mut producer, 3, 7), 0);
    assert_eq!(producer.end(COMMIT), 0);
    producer.wait_for("CompleteCommit");
    assert_eq!(offsets.add(&mut producer), 0);
    assert_eq!(offsets.commit(&mut producer, 3, 9), 0);
    given_up.send(offsets.commitment(&producer, 7), 3);
    assert!(given_up.is_closed());
    assert_eq!(producer.end(COMMIT), 0);
    assert_eq!(offsets.fetch_decided(&mut client), 9);
    assert!(node.stop().success());
}

#[test]
fn the_clusters_transaction_version_is_honoured() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 1, &[]);
    let mut producer = Producer::new(&node, "payments", 2);
    producer.timeout_ms = 300;
    producer.find_coordinator();
    let mut set = |level: i8| {
        let update = FeatureUpdateKey {
            feature: "transaction.version".into(),
            max_version_level: i16::from(level),
            upgrade_type: if level == 2 { 1 } else { 2 },
            ..Default::default()
        };
        let request =
            UpdateFeaturesRequest { timeout_ms: 10_000, feature_updates: vec![update], ..Default::default() };
        let ResponseBody::UpdateFeatures(response) = client.call(request, 1) else {
            panic!("another response")
        };
        assert_eq!(response.error_code, 0, "{response:?}");
    };
    set(0);
    // The coordinator's own aborts follow the cluster: before version 2 they fence by one epoch, and the client may not
    // go on under it; what the client itself asks follows the request's version.
    assert_eq!(producer.init(), 0);
    producer.version = 0;
    assert_eq!(producer.write("t", 0, &["a"]), 0);
    let epoch = producer.epoch;
    producer.wait_for("CompleteAbort");
    assert_eq!(producer.end(COMMIT), 90);
    assert_eq!(producer.init(), 0);
    assert!(producer.epoch > epoch);
    set(2);
    producer.version = 2;
    assert_eq!(producer.write("t", 0, &["b"]), 0);
    assert_eq!(producer.end(COMMIT), 0);
    let mut client = node.client();
    wait_until_stable(&mut client, "t", 0);
    assert_eq!(read(&mut client, "t", 0, true), ["b"]);
    assert!(node.stop().success());
}
