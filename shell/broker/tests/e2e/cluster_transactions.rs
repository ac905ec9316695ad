//! Transactions over three brokers: who coordinates is another broker than who leads, and dies.
//!
//! Committed records are there, once; aborted or undecided ones are not; every answer holds, whichever broker is
//! killed.

use crate::harness::cluster::{
    Cluster, GROUP, SETTINGS, TRANSACTION, ask, comes_back, committed, eventually, leaders, until,
};
use crate::harness::now_ms;
use crate::harness::txn::read;
use barnabas_base::{ProducerEpoch, ProducerId, Sequence, TimestampMs};
use barnabas_wire::messages::add_offsets_to_txn_request::AddOffsetsToTxnRequest;
use barnabas_wire::messages::add_partitions_to_txn_request::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnTopic,
};
use barnabas_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use barnabas_wire::messages::{
    EndTxnRequest, InitProducerIdRequest, ListOffsetsRequest, ProduceRequest, ResponseBody,
};
use barnabas_wire::records::{BatchBuilder, BatchOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const COMMIT: bool = true;
const ABORT: bool = false;
const PARTITIONS: i32 = 6;

/// A producer that retries as a client does, whichever broker dies.
struct Txn<'a> {
    id: &'a str,
    /// Of the client: `transaction.version`.
    version: i16,
    producer_id: i64,
    epoch: i16,
    /// By partition.
    sequences: BTreeMap<i32, i32>,
}

impl<'a> Txn<'a> {
    fn begin(cluster: &Cluster, id: &'a str, version: i16) -> Self {
        let mut txn = Self { id, version, producer_id: -1, epoch: -1, sequences: BTreeMap::new() };
        txn.init(cluster);
        txn
    }

    fn coordinator(&self, cluster: &Cluster) -> i32 {
        cluster.await_coordinator(TRANSACTION, self.id)
    }

    /// Asks the current coordinator, until it answers yes or no.
    fn coordinated(&self, cluster: &Cluster, what: &str, mut attempt: impl FnMut(i32) -> Option<i16>) -> i16 {
        until(what, || attempt(cluster.coordinator(TRANSACTION, self.id)?).filter(|code| !comes_back(*code)))
    }

    fn init(&mut self, cluster: &Cluster) {
        let (mut id, mut epoch) = (-1, -1);
        let code = self.coordinated(cluster, "a producer id", |node| {
            let request = InitProducerIdRequest {
                transactional_id: Some(self.id.into()),
                transaction_timeout_ms: 60_000,
                ..Default::default()
            };
            let ResponseBody::InitProducerId(response) = cluster.ask(node, request, 5)? else {
                panic!("another response")
            };
            (id, epoch) = (response.producer_id, response.producer_epoch);
            Some(response.error_code)
        });
        assert_eq!(code, 0);
        (self.producer_id, self.epoch) = (id, epoch);
        self.sequences.clear();
    }

    fn add(&self, cluster: &Cluster, partition: i32) {
        let code = self.coordinated(cluster, "a partition is added", |node| {
            let topic = AddPartitionsToTxnTopic {
                name: "t".into(),
                partitions: vec![partition],
                ..Default::default()
            };
            let request = AddPartitionsToTxnRequest {
                v3_and_below_transactional_id: self.id.into(),
                v3_and_below_producer_id: self.producer_id,
                v3_and_below_producer_epoch: self.epoch,
                v3_and_below_topics: vec![topic],
                ..Default::default()
            };
            let ResponseBody::AddPartitionsToTxn(response) = cluster.ask(node, request, 3)? else {
                panic!("another response")
            };
            Some(response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)
        });
        assert_eq!(code, 0);
    }

    /// Writes one record of "t", once, however often that takes.
    fn write(&mut self, cluster: &Cluster, partition: i32, value: &str) {
        if self.version < 2 {
            self.add(cluster, partition);
        }
        let code = until("a record is written", || {
            let node = cluster.leader("t", partition)?;
            let code = self.write_once(cluster, node, partition, value)?;
            (!comes_back(code)).then_some(code)
        });
        // DUPLICATE_SEQUENCE_NUMBER: the first try was taken.
        assert!([0, 46].contains(&code), "told {code}");
        *self.sequences.entry(partition).or_default() += 1;
    }

    fn write_once(&self, cluster: &Cluster, node: i32, partition: i32, value: &str) -> Option<i16> {
        let mut builder = BatchBuilder::new(BatchOptions {
            producer_id: ProducerId(self.producer_id),
            producer_epoch: ProducerEpoch(self.epoch),
            base_sequence: Sequence(self.sequences.get(&partition).copied().unwrap_or(0)),
            transactional: true,
            ..BatchOptions::default()
        });
        builder.push(TimestampMs(now_ms()), None, Some(value.as_bytes()), &[]);
        let records = Some(builder.build().expect("a batch"));
        let data = PartitionProduceData { index: partition, records, ..Default::default() };
        let topic = TopicProduceData { name: "t".into(), partition_data: vec![data], ..Default::default() };
        let request = ProduceRequest {
            transactional_id: Some(self.id.into()),
            acks: -1,
            timeout_ms: 5_000,
            topic_data: vec![topic],
            ..Default::default()
        };
        let version = if self.version >= 2 { 12 } else { 11 };
        let ResponseBody::Produce(response) = cluster.ask(node, request, version)? else {
            panic!("another response")
        };
        Some(response.responses[0].partition_responses[0].error_code)
    }

    fn end(&mut self, cluster: &Cluster, commit: bool) {
        let mut after = (self.producer_id, self.epoch);
        let code = self.coordinated(cluster, "the transaction ends", |node| {
            let request = EndTxnRequest {
                transactional_id: self.id.into(),
                producer_id: self.producer_id,
                producer_epoch: self.epoch,
                committed: commit,
                ..Default::default()
            };
            let version = if self.version >= 2 { 5 } else { 4 };
            let ResponseBody::EndTxn(response) = cluster.ask(node, request, version)? else {
                panic!("another response")
            };
            if response.error_code == 0 && self.version >= 2 {
                after = (response.producer_id, response.producer_epoch);
            }
            Some(response.error_code)
        });
        assert_eq!(code, 0);
        if self.version >= 2 {
            (self.producer_id, self.epoch) = after;
            self.sequences.clear();
        }
    }

    /// A group's offset of partition 0 of "t", as part of the transaction.
    fn commit_offset(&self, cluster: &Cluster, group: &str, offset: i64) {
        if self.version < 2 {
            let code = self.coordinated(cluster, "offsets are added", |node| {
                let request = AddOffsetsToTxnRequest {
                    transactional_id: self.id.into(),
                    producer_id: self.producer_id,
                    producer_epoch: self.epoch,
                    group_id: group.into(),
                    ..Default::default()
                };
                let ResponseBody::AddOffsetsToTxn(response) = cluster.ask(node, request, 3)? else {
                    panic!("another response")
                };
                Some(response.error_code)
            });
            assert_eq!(code, 0);
        }
        let code = until("offsets are committed", || {
            let partition =
                TxnOffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
            let topic = TxnOffsetCommitRequestTopic {
                name: "t".into(),
                partitions: vec![partition],
                ..Default::default()
            };
            let request = TxnOffsetCommitRequest {
                transactional_id: self.id.into(),
                group_id: group.into(),
                producer_id: self.producer_id,
                producer_epoch: self.epoch,
                topics: vec![topic],
                ..Default::default()
            };
            let version = if self.version >= 2 { 5 } else { 3 };
            let node = cluster.coordinator(GROUP, group)?;
            let ResponseBody::TxnOffsetCommit(response) = cluster.ask(node, request, version)? else {
                panic!("another response")
            };
            let code = response.topics[0].partitions[0].error_code;
            (!comes_back(code)).then_some(code)
        });
        assert_eq!(code, 0);
    }
}

/// Waits until no transaction is open on a partition of "t", and gives what is committed.
fn values(cluster: &Cluster, partition: i32) -> Vec<String> {
    let node = until("the last stable offset reaches the end", || {
        let node = cluster.leader("t", partition)?;
        let of = |committed| end_offset(cluster, node, partition, committed);
        (of(true)? == of(false)?).then_some(node)
    });
    read(&mut cluster.nodes[&node].client(), "t", partition, true)
}

/// `None`: unknown so far, since the partition has just got its leader.
fn end_offset(cluster: &Cluster, node: i32, partition: i32, committed: bool) -> Option<i64> {
    let wanted = ListOffsetsPartition { partition_index: partition, timestamp: -1, ..Default::default() };
    let topic = ListOffsetsTopic { name: "t".into(), partitions: vec![wanted], ..Default::default() };
    let request = ListOffsetsRequest {
        replica_id: -1,
        isolation_level: i8::from(committed),
        topics: vec![topic],
        ..Default::default()
    };
    let ResponseBody::ListOffsets(response) = cluster.ask(node, request, 7)? else {
        panic!("another response")
    };
    let found = &response.topics[0].partitions[0];
    (found.error_code == 0).then_some(found.offset)
}

#[test]
fn a_transaction_spans_partitions_of_three_brokers() {
    let cluster = Cluster::start(SETTINGS);
    cluster.create("t", PARTITIONS);
    assert_eq!(leaders(&cluster, "t", PARTITIONS).len(), 3);
    let mut expected = vec![Vec::new(); PARTITIONS as usize];
    for (id, version) in [("old", 0), ("new", 2)] {
        let mut txn = Txn::begin(&cluster, id, version);
        assert_eq!(leaders(&cluster, "__transaction_state", 6).len(), 3);
        // A group that another broker looks after than the transaction.
        let coordinator = txn.coordinator(&cluster);
        let group = (0..)
            .map(|number| format!("g{number}"))
            .find(|group| cluster.await_coordinator(GROUP, group) != coordinator);
        let group = group.expect("one of them");
        for round in 0..9_i64 {
            let commit = round % 3 != 2;
            let begun = Instant::now();
            for partition in 0..PARTITIONS {
                let word = format!("{id}-{round}-{partition}");
                txn.write(&cluster, partition, &word);
                if commit {
                    expected[partition as usize].push(word);
                }
            }
            txn.commit_offset(&cluster, &group, round);
            txn.end(&cluster, commit);
            println!("{id} {round}: {:?}", begun.elapsed());
            assert_eq!(committed(&cluster, &group), if commit { round } else { round - 1 });
        }
    }
    for partition in 0..PARTITIONS {
        assert_eq!(values(&cluster, partition), expected[partition as usize], "partition {partition}");
    }
    cluster.stop();
}

#[test]
fn the_coordinators_broker_is_killed_within_transactions() {
    let mut cluster = Cluster::start(SETTINGS);
    cluster.create("t", PARTITIONS);
    let mut expected = vec![Vec::new(); PARTITIONS as usize];
    for (id, version) in [("old", 0), ("new", 2)] {
        let mut txn = Txn::begin(&cluster, id, version);
        for round in 0..4 {
            cluster.await_in_sync();
            let commit = round != 1;
            let victim = txn.coordinator(&cluster);
            for partition in 0..PARTITIONS {
                // In the first two rounds halfway through, then between the decision's answer and most of its markers.
                if round < 2 && partition == PARTITIONS / 2 {
                    cluster.kill(victim);
                }
                let word = format!("{id}-{round}-{partition}");
                txn.write(&cluster, partition, &word);
                if commit {
                    expected[partition as usize].push(word);
                }
            }
            let asked = Instant::now();
            txn.end(&cluster, commit);
            if round >= 2 {
                cluster.kill(victim);
            }
            for partition in 0..PARTITIONS {
                assert_eq!(
                    values(&cluster, partition),
                    expected[partition as usize],
                    "{id} {round} {partition}"
                );
            }
            println!("{id} {round}: ended on all partitions after {:?}", asked.elapsed());
            cluster.launch(victim);
        }
    }
    cluster.await_in_sync();
    for partition in 0..PARTITIONS {
        assert_eq!(values(&cluster, partition), expected[partition as usize], "partition {partition}");
    }
    cluster.stop();
}

/// Kills at any moment, of any broker, under a producer that goes on as a client does.
#[test]
fn transactions_are_whole_whichever_broker_is_killed() {
    const KILLS: u64 = 6;
    let mut cluster = Cluster::start(SETTINGS);
    cluster.create("t", PARTITIONS);
    let mut seed = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let mut expected = vec![Vec::new(); PARTITIONS as usize];
    let mut txns = [Txn::begin(&cluster, "old", 0), Txn::begin(&cluster, "new", 2)];
    let mut number = 0;
    for _ in 0..KILLS {
        let victim = 1 + random(3) as i32;
        let (pid, delay) = (cluster.nodes[&victim].pid(), Duration::from_millis(random(1_500)));
        let killer = std::thread::spawn(move || {
            std::thread::sleep(delay);
            let killed = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status();
            assert!(killed.expect("kill").success());
        });
        let mut goes_on = true;
        while goes_on {
            goes_on = !killer.is_finished();
            let txn = &mut txns[number % 2];
            let is_committed = number % 3 != 2;
            for partition in 0..PARTITIONS {
                let word = format!("{number}-{partition}");
                txn.write(&cluster, partition, &word);
                if is_committed {
                    expected[partition as usize].push(word);
                }
            }
            txn.end(&cluster, is_committed);
            number += 1;
        }
        killer.join().expect("killed");
        cluster.kill(victim);
        cluster.launch(victim);
        cluster.await_in_sync();
    }
    println!("{number} transactions over {KILLS} kills");
    for partition in 0..PARTITIONS {
        assert_eq!(values(&cluster, partition), expected[partition as usize], "partition {partition}");
    }
    cluster.stop();
}

/// A broker that answers nothing, and whose connections stay: its partitions are led by others once it is fenced, and
/// the markers that it was asked to write go there at once, not when the patience for its answer ends (35 s).
#[test]
fn a_silent_broker_holds_up_no_transaction_once_it_is_fenced() {
    let settings = format!("{SETTINGS}\nbroker.session.timeout.ms=3000\nbroker.heartbeat.interval.ms=500");
    let mut cluster = Cluster::start(&settings);
    cluster.create("t", PARTITIONS);
    let mut expected = vec![Vec::new(); PARTITIONS as usize];
    for (id, version) in [("old", 0), ("new", 2)] {
        cluster.await_in_sync();
        let mut txn = Txn::begin(&cluster, id, version);
        for partition in 0..PARTITIONS {
            txn.write(&cluster, partition, id);
            expected[partition as usize].push(id.to_owned());
        }
        let coordinator = txn.coordinator(&cluster);
        let silent = leaders(&cluster, "t", PARTITIONS).into_iter().find(|leader| *leader != coordinator);
        let silent = silent.expect("another broker leads some");
        let signal = |cluster: &Cluster, name: &str| {
            let pid = cluster.nodes[&silent].pid().to_string();
            assert!(std::process::Command::new("kill").args([name, &pid]).status().expect("kill").success());
        };
        signal(&cluster, "-STOP");
        cluster.alive.remove(&silent);
        let asked = Instant::now();
        txn.end(&cluster, COMMIT);
        for partition in 0..PARTITIONS {
            assert_eq!(values(&cluster, partition), expected[partition as usize], "{id} {partition}");
        }
        let took = asked.elapsed();
        println!("{id}: ended on all partitions after {took:?}");
        // An election more, where it was the active controller.
        assert!(took < Duration::from_secs(15), "{took:?}");
        signal(&cluster, "-CONT");
        cluster.alive.insert(silent);
        // Its own word, too: it has heard of what happened meanwhile.
        eventually("it is back", || cluster.metadata().brokers.len() == 3);
    }
    cluster.await_in_sync();
    for partition in 0..PARTITIONS {
        assert_eq!(values(&cluster, partition), expected[partition as usize], "partition {partition}");
    }
    cluster.stop();
}

#[test]
fn abandoned_transaction_is_aborted_by_the_next_coordinator() {
    let mut cluster = Cluster::start(SETTINGS);
    cluster.create("t", PARTITIONS);
    let mut txn = Txn::begin(&cluster, "lost", 2);
    for partition in 0..PARTITIONS {
        txn.write(&cluster, partition, "never");
    }
    let victim = txn.coordinator(&cluster);
    cluster.kill(victim);
    // Its heir does not know how it stands, and fences it.
    let mut heir = Txn::begin(&cluster, "lost", 2);
    for partition in 0..PARTITIONS {
        assert_eq!(values(&cluster, partition), [""; 0]);
        heir.write(&cluster, partition, "once");
    }
    heir.end(&cluster, COMMIT);
    let told = txn.coordinated(&cluster, "it answers", |node| {
        let request = EndTxnRequest {
            transactional_id: "lost".into(),
            producer_id: txn.producer_id,
            producer_epoch: txn.epoch,
            committed: ABORT,
            ..Default::default()
        };
        let ResponseBody::EndTxn(told) = cluster.ask(node, request, 5)? else { panic!("another response") };
        Some(told.error_code)
    });
    assert_eq!(told, 90, "PRODUCER_FENCED");
    for partition in 0..PARTITIONS {
        assert_eq!(values(&cluster, partition), ["once"]);
    }
    cluster.launch(victim);
    cluster.await_in_sync();
    cluster.stop();
}

#[test]
fn no_producer_id_is_given_out_twice() {
    let mut cluster = Cluster::start(SETTINGS);
    let mut all = BTreeSet::new();
    let mut count = 0;
    let take = |cluster: &Cluster, node: i32, all: &mut BTreeSet<i64>, count: usize| {
        let mut client = cluster.nodes[&node].client();
        let mut taken = 0;
        while taken < count {
            let request = InitProducerIdRequest { transactional_id: None, ..Default::default() };
            let Some(ResponseBody::InitProducerId(response)) = ask(&mut client, request, 5) else {
                panic!("no answer")
            };
            if comes_back(response.error_code) {
                continue;
            }
            assert_eq!(response.error_code, 0);
            assert!(all.insert(response.producer_id), "{} was given out before", response.producer_id);
            taken += 1;
        }
    };
    // Blocks are of 1000.
    for node in 1..=3 {
        take(&cluster, node, &mut all, 700);
        count += 700;
    }
    for node in 1..=3 {
        take(&cluster, node, &mut all, 700);
        count += 700;
    }
    // A coordinator that takes over gives none of the old ones.
    for victim in 1..=3 {
        cluster.kill(victim);
        for node in (1..=3).filter(|&node| node != victim) {
            take(&cluster, node, &mut all, 400);
            count += 400;
        }
        cluster.launch(victim);
        take(&cluster, victim, &mut all, 400);
        count += 400;
        cluster.await_in_sync();
        eventually("all are back", || cluster.metadata().brokers.len() == 3);
    }
    assert_eq!(all.len(), count);
    cluster.stop();
}
