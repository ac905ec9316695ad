//! All that clients can ask of partition 0 of a topic, to be compared: what a move or a restart must not change.

use super::Client;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use barnabas_wire::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use barnabas_wire::messages::{
    DescribeProducersRequest, FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest, ResponseBody,
    describe_producers_request::TopicRequest,
};
use barnabas_wire::records::batches;

/// `(producer, epoch, last sequence, start of its open transaction)`.
type Producer = (i64, i32, i32, i64);

#[derive(Debug, PartialEq, Eq)]
pub struct Dump {
    /// Every byte of every batch.
    pub records: Vec<u8>,
    /// First and last offset, compression and newest timestamp of each batch: says what differs where the bytes do.
    pub batches: Vec<(i64, i64, String, i64)>,
    /// Base offsets of the batches that readers of committed records pass over. (Aborted transactions that compaction
    /// has left nothing of may be told or not.)
    pub aborted: Vec<i64>,
    pub start: i64,
    pub end: i64,
    pub last_stable: i64,
    /// Where a look-up by each batch's newest timestamp, and by the millisecond after, leads.
    pub times: Vec<(i64, i64)>,
    pub producers: Vec<Producer>,
    /// Where each leader epoch ends.
    pub epochs: Vec<(i32, i64)>,
}

impl Dump {
    pub fn take(client: &mut Client, topic: &str) -> Self {
        let offset =
            |client: &mut Client, timestamp, isolation| look_up(client, topic, timestamp, isolation).1;
        let start = offset(client, -2, 0);
        let (records, aborted) = fetch_all(client, topic, start);
        let mut found = Vec::new();
        for batch in batches(records.clone().into()) {
            let batch = batch.expect("a batch");
            batch.check_crc().expect("its checksum");
            let header = batch.header();
            let codec = format!("{:?}", header.attributes.codec().expect("a codec"));
            let (first, last) = (header.base_offset.get(), header.last_offset().get());
            found.push((first, last, codec, header.max_timestamp.0));
        }
        let mut times: Vec<i64> = found.iter().flat_map(|batch| [batch.3, batch.3 + 1]).collect();
        times.sort_unstable();
        times.dedup();
        let times = times.into_iter().map(|time| look_up(client, topic, time, 0)).collect();
        Self {
            batches: found,
            records,
            aborted,
            start,
            end: offset(client, -1, 0),
            last_stable: offset(client, -1, 1),
            times,
            producers: producers(client, topic),
            epochs: (0..4).map(|epoch| epoch_end(client, topic, epoch)).collect(),
        }
    }
}

/// Fails with what differs, and not with all that there is.
pub fn assert_same(now: &Dump, before: &Dump, when: &str) {
    let strays = |one: &Dump, other: &Dump| {
        let gone = one.batches.iter().filter(|batch| !other.batches.contains(batch));
        gone.take(3).cloned().collect::<Vec<_>>()
    };
    assert_eq!(
        (now.start, now.end, now.last_stable),
        (before.start, before.end, before.last_stable),
        "{when}"
    );
    assert_eq!((strays(now, before), strays(before, now)), (vec![], vec![]), "{when}: batches");
    assert_eq!((&now.aborted, &now.producers), (&before.aborted, &before.producers), "{when}");
    assert_eq!((&now.epochs, &now.times), (&before.epochs, &before.times), "{when}");
    assert!(now == before, "{when}: the bytes of the batches");
}

/// Timestamp and offset of the answer.
fn look_up(client: &mut Client, topic: &str, timestamp: i64, isolation_level: i8) -> (i64, i64) {
    let partition = ListOffsetsPartition { timestamp, ..Default::default() };
    let topic = ListOffsetsTopic { name: topic.into(), partitions: vec![partition], ..Default::default() };
    let request =
        ListOffsetsRequest { replica_id: -1, isolation_level, topics: vec![topic], ..Default::default() };
    let ResponseBody::ListOffsets(response) = client.call(request, 7) else { panic!("another response") };
    let found = &response.topics[0].partitions[0];
    assert_eq!(found.error_code, 0, "{found:?}");
    (found.timestamp, found.offset)
}

/// Twice over: what everybody reads, and with which transactions left out.
fn fetch_all(client: &mut Client, topic: &str, start: i64) -> (Vec<u8>, Vec<i64>) {
    let (mut all, mut aborted, mut at) = (Vec::new(), Vec::new(), start);
    for isolation_level in [0, 1] {
        at = start;
        loop {
            let wanted =
                FetchPartition { fetch_offset: at, partition_max_bytes: 1 << 20, ..Default::default() };
            let topic = FetchTopic { topic: topic.into(), partitions: vec![wanted], ..Default::default() };
            let request = FetchRequest {
                max_bytes: 1 << 20,
                isolation_level,
                topics: vec![topic],
                ..Default::default()
            };
            let ResponseBody::Fetch(response) = client.call(request, 11) else { panic!("another response") };
            let found = &response.responses[0].partitions[0];
            assert_eq!(found.error_code, 0, "at {at} of {start}..: {found:?}");
            let records = found.records.clone().unwrap_or_default();
            let last = batches(records.clone()).last();
            let Some(last) = last else { break };
            at = last.expect("a batch").header().next_offset().get();
            match isolation_level {
                0 => all.extend_from_slice(&records),
                _ => {
                    let told = found.aborted_transactions.iter().flatten();
                    let told = told.map(|each| (each.first_offset, each.producer_id)).collect();
                    aborted.extend(passed_over(records, told));
                }
            }
        }
    }
    assert!(at >= start);
    (all, aborted)
}

/// As a consumer with `isolation.level=read_committed` does it: `(first offset, producer)` of each aborted transaction,
/// until its marker.
fn passed_over(records: bytes::Bytes, mut told: Vec<(i64, i64)>) -> Vec<i64> {
    told.sort_unstable();
    let (mut hidden, mut found) = (std::collections::BTreeSet::new(), Vec::new());
    for batch in batches(records) {
        let batch = batch.expect("a batch");
        let header = batch.header();
        let producer = header.producer_id.get();
        let begun = told.iter().take_while(|(first, _)| *first <= header.last_offset().get()).count();
        hidden.extend(told.drain(..begun).map(|(_, producer)| producer));
        if header.attributes.is_control() {
            hidden.remove(&producer);
        } else if header.attributes.is_transactional() && hidden.contains(&producer) {
            found.push(header.base_offset.get());
        }
    }
    found
}

fn producers(client: &mut Client, topic: &str) -> Vec<Producer> {
    let topic = TopicRequest { name: topic.into(), partition_indexes: vec![0], ..Default::default() };
    let request = DescribeProducersRequest { topics: vec![topic], ..Default::default() };
    let ResponseBody::DescribeProducers(response) = client.call(request, 0) else {
        panic!("another response")
    };
    let found = &response.topics[0].partitions[0];
    assert_eq!(found.error_code, 0, "{found:?}");
    let row = |it: &barnabas_wire::messages::describe_producers_response::ProducerState| {
        (it.producer_id, it.producer_epoch, it.last_sequence, it.current_txn_start_offset)
    };
    let mut producers: Vec<Producer> = found.active_producers.iter().map(row).collect();
    producers.sort_unstable();
    producers
}

fn epoch_end(client: &mut Client, topic: &str, leader_epoch: i32) -> (i32, i64) {
    let partition = OffsetForLeaderPartition { current_leader_epoch: -1, leader_epoch, ..Default::default() };
    let topic =
        OffsetForLeaderTopic { topic: topic.into(), partitions: vec![partition], ..Default::default() };
    let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: vec![topic], ..Default::default() };
    let ResponseBody::OffsetForLeaderEpoch(response) = client.call(request, 4) else {
        panic!("another response")
    };
    let found = &response.topics[0].partitions[0];
    assert_eq!(found.error_code, 0, "{found:?}");
    (found.leader_epoch, found.end_offset)
}
