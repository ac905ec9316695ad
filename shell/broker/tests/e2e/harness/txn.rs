//! A transactional producer that says just what a test wants it to, and readers of both isolation levels.

use super::{Client, TestNode, now_ms};
use barnabas_base::{ProducerEpoch, ProducerId, Sequence, TimestampMs};
use barnabas_wire::messages::add_partitions_to_txn_request::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnTopic,
};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{
    DescribeTransactionsRequest, EndTxnRequest, FetchRequest, FindCoordinatorRequest, InitProducerIdRequest,
    ListOffsetsRequest, ProduceRequest, ResponseBody,
};
use barnabas_wire::records::{BatchBuilder, BatchOptions, batches};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(20);

/// One producer. `version` is the client's `transaction.version`: what it says in which versions.
#[derive(Debug)]
pub struct Producer {
    pub client: Client,
    pub transactional_id: String,
    pub version: i16,
    pub timeout_ms: i32,
    pub id: i64,
    pub epoch: i16,
    pub sequence: i32,
}

/// Asks again as long as the answer says so.
pub fn retried<T>(codes: &[i16], mut ask: impl FnMut() -> (i16, T)) -> (i16, T) {
    let asked = Instant::now();
    loop {
        let (code, said) = ask();
        if !codes.contains(&code) {
            return (code, said);
        }
        assert!(asked.elapsed() < PATIENCE, "still told {code}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Loading, not there yet, elsewhere, busy.
pub const LATER: [i16; 4] = [14, 15, 16, 51];

impl Producer {
    pub fn new(node: &TestNode, transactional_id: &str, version: i16) -> Self {
        let client = node.client();
        let transactional_id = transactional_id.to_owned();
        Self { client, transactional_id, version, timeout_ms: 60_000, id: -1, epoch: -1, sequence: 0 }
    }

    /// As [`Producer::new`], and holds its transactional id.
    pub fn ready(node: &TestNode, transactional_id: &str, version: i16) -> Self {
        let mut producer = Self::new(node, transactional_id, version);
        producer.find_coordinator();
        assert_eq!(producer.init(), 0);
        producer
    }

    /// The connection is another one; what is known stays.
    pub fn reconnect(&mut self, node: &TestNode) {
        self.client = node.client();
        self.find_coordinator();
    }

    pub fn find_coordinator(&mut self) {
        retried(&LATER, || {
            let request = FindCoordinatorRequest {
                key: self.transactional_id.as_str().into(),
                key_type: 1,
                ..Default::default()
            };
            let ResponseBody::FindCoordinator(response) = self.client.call(request, 2) else {
                panic!("another response")
            };
            (response.error_code, response.node_id)
        });
    }

    /// Retries until the answer is yes or no.
    pub fn init(&mut self) -> i16 {
        retried(&LATER, || (self.init_once(), ())).0
    }

    pub fn init_once(&mut self) -> i16 {
        let request = InitProducerIdRequest {
            transactional_id: Some(self.transactional_id.as_str().into()),
            transaction_timeout_ms: self.timeout_ms,
            ..Default::default()
        };
        let ResponseBody::InitProducerId(response) = self.client.call(request, 5) else {
            panic!("another response")
        };
        if response.error_code == 0 {
            (self.id, self.epoch, self.sequence) = (response.producer_id, response.producer_epoch, 0);
        }
        response.error_code
    }

    pub fn add(&mut self, topic: &str, partitions: &[i32]) -> i16 {
        retried(&LATER, || (self.add_once(topic, partitions), ())).0
    }

    pub fn addition(&self, topic: &str, partitions: &[i32]) -> AddPartitionsToTxnRequest {
        AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: self.transactional_id.as_str().into(),
            v3_and_below_producer_id: self.id,
            v3_and_below_producer_epoch: self.epoch,
            v3_and_below_topics: vec![AddPartitionsToTxnTopic {
                name: topic.into(),
                partitions: partitions.to_vec(),
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    pub fn add_once(&mut self, topic: &str, partitions: &[i32]) -> i16 {
        let request = self.addition(topic, partitions);
        let ResponseBody::AddPartitionsToTxn(response) = self.client.call(request, 3) else {
            panic!("another response")
        };
        let results = response.results_by_topic_v3_and_below.iter();
        let codes = results.flat_map(|topic| &topic.results_by_partition);
        codes.map(|partition| partition.partition_error_code).find(|code| *code != 0).unwrap_or(0)
    }

    pub fn batch(&self, values: &[&str]) -> Bytes {
        let mut builder = BatchBuilder::new(BatchOptions {
            producer_id: ProducerId(self.id),
            producer_epoch: ProducerEpoch(self.epoch),
            base_sequence: Sequence(self.sequence),
            transactional: true,
            ..BatchOptions::default()
        });
        for value in values {
            builder.push(TimestampMs(now_ms()), None, Some(value.as_bytes()), &[]);
        }
        builder.build().expect("a batch")
    }

    pub fn produce_version(&self) -> i16 {
        if self.version >= 2 { 12 } else { 11 }
    }

    pub fn request(&self, topic: &str, partition: i32, records: Bytes) -> ProduceRequest {
        let data = PartitionProduceData { index: partition, records: Some(records), ..Default::default() };
        let topic = TopicProduceData { name: topic.into(), partition_data: vec![data], ..Default::default() };
        ProduceRequest {
            transactional_id: Some(self.transactional_id.as_str().into()),
            acks: -1,
            timeout_ms: 10_000,
            topic_data: vec![topic],
            ..Default::default()
        }
    }

    /// Writes, once; the sequence goes on only if it was taken. One sequence for all partitions: a test writes to one
    /// of them, or sets it.
    pub fn write_as(&mut self, version: i16, topic: &str, partition: i32, values: &[&str]) -> i16 {
        let request = self.request(topic, partition, self.batch(values));
        let ResponseBody::Produce(response) = self.client.call(request, version) else {
            panic!("another response")
        };
        let code = response.responses[0].partition_responses[0].error_code;
        if code == 0 {
            self.sequence += values.len() as i32;
        }
        code
    }

    /// Writes as its version does, and retries on retriable errors.
    pub fn write(&mut self, topic: &str, partition: i32, values: &[&str]) -> i16 {
        if self.version < 2 {
            let added = self.add(topic, &[partition]);
            if added != 0 {
                return added;
            }
        }
        // Older clients get NOT_ENOUGH_REPLICAS while the coordinator is busy.
        let later = [14, 15, 16, 19, 51];
        retried(&later, || (self.write_as(self.produce_version(), topic, partition, values), ())).0
    }

    pub fn end(&mut self, commit: bool) -> i16 {
        retried(&LATER, || (self.end_once(commit), ())).0
    }

    pub fn end_once(&mut self, commit: bool) -> i16 {
        let request = EndTxnRequest {
            transactional_id: self.transactional_id.as_str().into(),
            producer_id: self.id,
            producer_epoch: self.epoch,
            committed: commit,
            ..Default::default()
        };
        let version = if self.version >= 2 { 5 } else { 4 };
        let ResponseBody::EndTxn(response) = self.client.call(request, version) else {
            panic!("another response")
        };
        if response.error_code == 0 && self.version >= 2 {
            (self.id, self.epoch, self.sequence) = (response.producer_id, response.producer_epoch, 0);
        }
        response.error_code
    }

    /// The transaction's state, as DescribeTransactions tells it.
    pub fn state(&mut self) -> String {
        let ids = vec![self.transactional_id.as_str().into()];
        let described = retried(&LATER, || {
            let request =
                DescribeTransactionsRequest { transactional_ids: ids.clone(), ..Default::default() };
            let ResponseBody::DescribeTransactions(response) = self.client.call(request, 0) else {
                panic!("another response")
            };
            let state = &response.transaction_states[0];
            (state.error_code, state.transaction_state.to_string())
        });
        described.1
    }

    pub fn wait_for(&mut self, state: &str) {
        let asked = Instant::now();
        while self.state() != state {
            assert!(asked.elapsed() < PATIENCE, "{} instead of {state}", self.state());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Where the log ends for a reader of this isolation level, by ListOffsets.
pub fn end_offset(client: &mut Client, topic: &str, partition: i32, committed: bool) -> i64 {
    offset_at(client, topic, partition, committed, -1)
}

/// As [`end_offset`] for all records. `None`: this one does not lead, or does not know yet how far the others are.
pub fn end_offset_if_known(client: &mut Client, topic: &str, partition: i32) -> Option<i64> {
    let (code, offset) = list_offset(client, topic, partition, false, -1);
    (code == 0).then_some(offset)
}

/// What ListOffsets says of this time, or of -1, the end, or -2, the beginning.
pub fn offset_at(client: &mut Client, topic: &str, partition: i32, committed: bool, timestamp: i64) -> i64 {
    // One that has just been elected: it does not know it yet, or not how far the others are.
    let (code, offset) = retried(&[6, 78], || list_offset(client, topic, partition, committed, timestamp));
    assert_eq!(code, 0);
    offset
}

/// The error, and the offset.
fn list_offset(
    client: &mut Client,
    topic: &str,
    partition: i32,
    committed: bool,
    timestamp: i64,
) -> (i16, i64) {
    let wanted = ListOffsetsPartition { partition_index: partition, timestamp, ..Default::default() };
    let topic = ListOffsetsTopic { name: topic.into(), partitions: vec![wanted], ..Default::default() };
    let request = ListOffsetsRequest {
        replica_id: -1,
        isolation_level: i8::from(committed),
        topics: vec![topic],
        ..Default::default()
    };
    let ResponseBody::ListOffsets(response) = client.call(request, 7) else { panic!("another response") };
    let found = &response.topics[0].partitions[0];
    (found.error_code, found.offset)
}

/// The values that a reader of this isolation level finds up to where the log ends for it, as a Java consumer does:
/// what lies between the first record of an aborted transaction and its marker is passed over.
pub fn read(client: &mut Client, topic: &str, partition: i32, committed: bool) -> Vec<String> {
    let end = end_offset(client, topic, partition, committed);
    read_up_to(client, topic, partition, committed, end)
}

/// A fetch of one partition, of up to 1 MiB.
fn fetch(topic: &str, partition: i32, committed: bool, fetch_offset: i64) -> FetchRequest {
    let wanted = FetchPartition {
        partition,
        current_leader_epoch: -1,
        fetch_offset,
        log_start_offset: -1,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    let topic = FetchTopic { topic: topic.into(), partitions: vec![wanted], ..Default::default() };
    FetchRequest {
        replica_id: -1,
        max_wait_ms: 100,
        min_bytes: 1,
        max_bytes: 1 << 20,
        isolation_level: i8::from(committed),
        session_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    }
}

/// As [`read`], up to an offset which the reader may see soon. Followers answer too.
pub fn read_up_to(
    client: &mut Client,
    topic: &str,
    partition: i32,
    committed: bool,
    end: i64,
) -> Vec<String> {
    let (mut next, mut values) = (0, Vec::new());
    let asked = Instant::now();
    while next < end {
        assert!(asked.elapsed() < PATIENCE, "read up to {next} of {end}");
        let request = fetch(topic, partition, committed, next);
        let ResponseBody::Fetch(response) = client.call(request, 11) else { panic!("another response") };
        let found = &response.responses[0].partitions[0];
        assert_eq!(found.error_code, 0);
        let mut aborted: Vec<(i64, i64)> = found
            .aborted_transactions
            .iter()
            .flatten()
            .map(|aborted| (aborted.first_offset, aborted.producer_id))
            .collect();
        aborted.sort_unstable();
        let mut skipped = BTreeSet::new();
        for batch in batches(found.records.clone().unwrap_or_default()) {
            let batch = batch.expect("a batch");
            let header = batch.header();
            let (base, last) = (header.base_offset.get(), header.next_offset().get());
            let producer = header.producer_id.get();
            aborted.retain(|(first, owner)| {
                let begins = *first <= base;
                if begins {
                    skipped.insert(*owner);
                }
                !begins
            });
            if header.attributes.is_control() {
                skipped.remove(&producer);
            } else if last > next
                && !(committed && header.attributes.is_transactional() && skipped.contains(&producer))
            {
                let records = batch.records().expect("records");
                for record in records.iter() {
                    let record = record.expect("a record");
                    if record.offset.get() >= next {
                        values
                            .push(String::from_utf8(record.value.expect("a value").to_vec()).expect("text"));
                    }
                }
            }
            next = next.max(last);
        }
    }
    values
}
