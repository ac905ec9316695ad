//! Transactions against a broker that answers as a test wants.

use super::*;
use crate::fake_broker::{fake_broker, nodes};
use crate::{ClusterConfig, Producer, ProducerConfig};
use barnabas_wire::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnTopicResult,
};
use barnabas_wire::messages::find_coordinator_response::Coordinator;
use barnabas_wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use barnabas_wire::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use barnabas_wire::messages::{
    EndTxnResponse, FindCoordinatorResponse, InitProducerIdResponse, MetadataResponse,
};
use barnabas_wire::records::{Entry, entries};
use barnabas_wire::{RequestBody, ResponseBody};
use std::sync::{Arc, Mutex, OnceLock};

/// What was asked, in words.
type Asked = Arc<Mutex<Vec<String>>>;

fn metadata(address: &str) -> MetadataResponse {
    let partition =
        |partition_index| MetadataResponsePartition { partition_index, leader_id: 1, ..Default::default() };
    let topic = MetadataResponseTopic {
        name: Some("t".into()),
        partitions: (0..2).map(partition).collect(),
        ..Default::default()
    };
    MetadataResponse { topics: vec![topic], ..nodes(&[(1, address)]) }
}

fn found(address: &str) -> FindCoordinatorResponse {
    let (host, port) = address.rsplit_once(':').expect("host:port");
    let port = port.parse().expect("a port");
    let found = Coordinator { node_id: 1, host: host.into(), port, ..Default::default() };
    FindCoordinatorResponse { coordinators: vec![found], ..Default::default() }
}

fn added(request: &AddPartitionsToTxnRequest, code: i16) -> AddPartitionsToTxnResponse {
    let topic = |topic: &AddPartitionsToTxnTopic| AddPartitionsToTxnTopicResult {
        name: topic.name.clone(),
        results_by_partition: topic
            .partitions
            .iter()
            .map(|partition| AddPartitionsToTxnPartitionResult {
                partition_index: *partition,
                partition_error_code: code,
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    };
    let results_by_topic_v3_and_below = request.v3_and_below_topics.iter().map(topic).collect();
    AddPartitionsToTxnResponse { results_by_topic_v3_and_below, ..Default::default() }
}

/// Answers each partition with `code`, and notes its first sequence and number of records.
fn produced(request: &ProduceRequest, code: i16, asked: &mut Vec<String>) -> ProduceResponse {
    let mut responses = Vec::new();
    for topic in &request.topic_data {
        let mut partition_responses = Vec::new();
        for data in &topic.partition_data {
            for entry in entries(data.records.clone().expect("records")) {
                let Ok(Entry::Batch(batch)) = entry else { panic!("no batch") };
                let header = *batch.header();
                let plain = if header.attributes.is_transactional() { "" } else { " plain" };
                let (sequence, count) = (header.base_sequence.get(), header.last_offset_delta + 1);
                let place = format!("{}-{}", &*topic.name, data.index);
                asked.push(format!("produce {place} seq={sequence} records={count}{plain}"));
            }
            partition_responses.push(PartitionProduceResponse {
                index: data.index,
                error_code: code,
                ..Default::default()
            });
        }
        responses.push(TopicProduceResponse {
            name: topic.name.clone(),
            partition_responses,
            ..Default::default()
        });
    }
    ProduceResponse { responses, ..Default::default() }
}

/// A broker whose answers to Produce have `codes` one after the other, then none.
async fn cluster(codes: &'static [ErrorCode]) -> (Cluster, Asked) {
    let (address, asked) = (Arc::new(OnceLock::<String>::new()), Asked::default());
    let (known, noted) = (address.clone(), asked.clone());
    let says = move |request| -> Option<ResponseBody> {
        let address = known.get().expect("known");
        let mut asked = noted.lock().expect("no panic");
        Some(match request {
            RequestBody::Metadata(_) => metadata(address).into(),
            RequestBody::FindCoordinator(_) => found(address).into(),
            RequestBody::InitProducerId(request) => {
                // A producer that names itself gets its next epoch: KIP-360.
                let producer_epoch = if request.producer_id == 7 { request.producer_epoch + 1 } else { 3 };
                InitProducerIdResponse { producer_id: 7, producer_epoch, ..Default::default() }.into()
            }
            RequestBody::AddPartitionsToTxn(request) => {
                asked.push(format!("add epoch={}", request.v3_and_below_producer_epoch));
                added(&request, 0).into()
            }
            RequestBody::Produce(request) => {
                let so_far = asked.iter().filter(|line| *line == "answered").count();
                let code = codes.get(so_far).map_or(0, |code| code.code());
                let answer = produced(&request, code, &mut asked);
                asked.push("answered".to_owned());
                answer.into()
            }
            RequestBody::EndTxn(request) => {
                asked.push(format!("end committed={}", request.committed));
                EndTxnResponse::default().into()
            }
            other => panic!("{other:?}"),
        })
    };
    let apis: &[(i16, i16)] = &[(0, 13), (3, 12), (10, 4), (22, 5), (24, 5), (26, 5)];
    address.set(fake_broker(apis, says).await).expect("once");
    (Cluster::new(ClusterConfig::new(address.get().expect("set"), "test")), asked)
}

fn record(partition: i32) -> (&'static str, Outgoing) {
    ("t", Outgoing { partition: Some(partition), value: Some(vec![0; 100].into()), ..Outgoing::default() })
}

async fn started(cluster: &mut Cluster) -> TransactionalProducer {
    let config = TransactionConfig { batch_bytes_max: 300, ..TransactionConfig::new("x") };
    TransactionalProducer::start(cluster, config).await.expect("started")
}

fn taken(asked: &Asked) -> Vec<String> {
    let mut asked = asked.lock().expect("no panic");
    asked.retain(|line| line != "answered");
    std::mem::take(&mut asked)
}

#[tokio::test]
async fn transaction_is_added_written_in_order_and_committed() {
    let (mut cluster, asked) = cluster(&[]).await;
    let mut producer = started(&mut cluster).await;
    let records = [record(0), record(1), record(0), record(0)];
    producer.commit(&mut cluster, &records).await.expect("committed");
    producer.commit(&mut cluster, &[record(0)]).await.expect("committed");
    producer.commit(&mut cluster, &[]).await.expect("nothing to do");
    let wanted = [
        "add epoch=3",
        "produce t-0 seq=0 records=2",
        "produce t-1 seq=0 records=1",
        "produce t-0 seq=2 records=1",
        "end committed=true",
        "add epoch=3",
        "produce t-0 seq=3 records=1",
        "end committed=true",
    ];
    assert_eq!(taken(&asked), wanted);
}

#[tokio::test]
async fn records_together_are_one_batch_or_none_is_sent() {
    let (mut cluster, asked) = cluster(&[]).await;
    let config = ProducerConfig { batch_bytes_max: 300, ..ProducerConfig::default() };
    let mut producer = Producer::new(&mut cluster, "t", config).await.expect("a topic");
    let ((_, first), (_, second)) = (record(0), record(1));
    let large = Outgoing { value: Some(vec![0; 400].into()), ..first.clone() };
    for (records, is_sent) in [
        (vec![&first, &first], true),
        (vec![&first, &second], false),
        (vec![&first, &first, &first], false),
        (vec![&large], true),
        (vec![], true),
        (vec![&first], true),
    ] {
        let sent = producer.send_together(&mut cluster, &records).await.expect("written");
        assert_eq!(sent, is_sent, "{} records", records.len());
    }
    // Outside of transactions the newest Produce is used, which names topics by their ids.
    let wanted = [
        "produce -0 seq=0 records=2 plain",
        "produce -0 seq=2 records=1 plain",
        "produce -0 seq=3 records=1 plain",
    ];
    assert_eq!(taken(&asked), wanted);
}

#[tokio::test]
async fn batch_is_sent_again_with_its_sequence_and_a_duplicate_is_done() {
    let (mut cluster, asked) =
        cluster(&[ErrorCode::NotLeaderOrFollower, ErrorCode::DuplicateSequenceNumber]).await;
    let mut producer = started(&mut cluster).await;
    producer.commit(&mut cluster, &[record(1)]).await.expect("committed");
    let again = "produce t-1 seq=0 records=1";
    assert_eq!(taken(&asked), ["add epoch=3", again, again, "end committed=true"]);
}

#[tokio::test]
async fn error_that_no_try_cures_is_not_committed() {
    let (mut cluster, asked) = cluster(&[ErrorCode::InvalidProducerEpoch]).await;
    let mut producer = started(&mut cluster).await;
    let error = producer.commit(&mut cluster, &[record(0)]).await.expect_err("fenced");
    assert_eq!(error.code(), Some(ErrorCode::InvalidProducerEpoch));
    assert!(!taken(&asked).iter().any(|line| line.starts_with("end")));
}

#[tokio::test]
async fn refused_transaction_is_aborted_and_the_next_begins() {
    let (mut cluster, asked) = cluster(&[ErrorCode::None, ErrorCode::MessageTooLarge]).await;
    let mut producer = started(&mut cluster).await;
    producer.commit(&mut cluster, &[record(0)]).await.expect("committed");
    let error = producer.commit(&mut cluster, &[record(0)]).await.expect_err("too large");
    assert_eq!(error.code(), Some(ErrorCode::MessageTooLarge));
    producer.abort(&mut cluster).await.expect("aborted");
    producer.set_batch_bytes_max(0);
    producer.commit(&mut cluster, &[record(0), record(0)]).await.expect("committed");
    let wanted = [
        "end committed=false",
        "add epoch=4",
        "produce t-0 seq=0 records=1",
        "produce t-0 seq=1 records=1",
        "end committed=true",
    ];
    let asked = taken(&asked);
    let aborted = asked.iter().position(|line| line == "end committed=false");
    assert_eq!(asked[aborted.expect("an abort")..], wanted);
}
