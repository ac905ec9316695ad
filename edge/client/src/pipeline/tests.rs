//! What is sent and when, and with one unwritable partition: the error that is reported, and that the others continue.

use super::{Delivery, PipelineConfig, PipelinedProducer, Record, Spread, Taken};
use crate::fake_broker::{fake_broker, nodes};
use barnabas_base::{ErrorCode, Sequence};
use barnabas_wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use barnabas_wire::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use barnabas_wire::messages::{InitProducerIdResponse, MetadataResponse, ProduceRequest, ProduceResponse};
use barnabas_wire::records::BatchHeader;
use barnabas_wire::{RequestBody, ResponseBody};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

const APIS: &[(i16, i16)] = &[(0, 9), (3, 12), (22, 4)];

/// What each of the three partitions answers.
type Codes = Arc<Mutex<[ErrorCode; 3]>>;

fn metadata(address: &str) -> ResponseBody {
    let partition =
        |partition_index| MetadataResponsePartition { partition_index, leader_id: 1, ..Default::default() };
    let partitions = [0, 1, 2].map(partition).to_vec();
    let topic = MetadataResponseTopic { name: Some("t".into()), partitions, ..Default::default() };
    MetadataResponse { topics: vec![topic], ..nodes(&[(1, address)]) }.into()
}

fn produced(request: &ProduceRequest, codes: &Codes) -> ResponseBody {
    let codes = codes.lock().expect("no test panics with it");
    let told = request.topic_data[0].partition_data.iter().map(|data| PartitionProduceResponse {
        index: data.index,
        error_code: codes[data.index as usize].code(),
        ..Default::default()
    });
    let topic =
        TopicProduceResponse { name: "t".into(), partition_responses: told.collect(), ..Default::default() };
    ProduceResponse { responses: vec![topic], ..Default::default() }.into()
}

async fn producer(codes: Codes) -> PipelinedProducer {
    let address = Arc::new(OnceLock::<String>::new());
    let known = address.clone();
    let says = move |request| {
        Some(match request {
            RequestBody::Metadata(_) => metadata(known.get().expect("known")),
            RequestBody::InitProducerId(_) => {
                InitProducerIdResponse { producer_id: 5, ..Default::default() }.into()
            }
            RequestBody::Produce(request) => produced(&request, &codes),
            other => panic!("{other:?}"),
        })
    };
    address.set(fake_broker(APIS, says).await).expect("once");
    let bootstrap = address.get().expect("set");
    let parsed = PipelineConfig::parse([("bootstrap.servers", bootstrap.as_str()), ("linger.ms", "0")]);
    let mut config = parsed.expect("a config").config;
    config.patience = Duration::ZERO;
    PipelinedProducer::new("t", config, Spread::Sticky).await.expect("a topic")
}

fn send(producer: &mut PipelinedProducer, partition: i32) {
    let record = Record { partition: Some(partition), value: Some(b"v"), ..Record::default() };
    assert_eq!(producer.send(&record, 0).expect("it fits"), Taken::Yes);
}

async fn delivery(producer: &mut PipelinedProducer) -> Delivery {
    loop {
        if let Some(delivery) = producer.next_delivery() {
            return delivery;
        }
        producer.turn(Duration::from_millis(20)).await.expect("no codec");
    }
}

async fn report(producer: &mut PipelinedProducer) -> String {
    loop {
        if let Some(trouble) = producer.next_trouble() {
            return trouble.words("t", "written");
        }
        producer.turn(Duration::from_millis(20)).await.expect("no codec");
    }
}

#[tokio::test]
async fn partition_that_fails_is_reported_and_others_go_on() {
    let codes = Codes::default();
    *codes.lock().expect("whole") =
        [ErrorCode::None, ErrorCode::NotEnoughReplicas, ErrorCode::MessageTooLarge];
    let mut producer = producer(codes.clone()).await;
    send(&mut producer, 1);
    let reported = report(&mut producer).await;
    assert_eq!(reported, "t-1 cannot be written, trying again: broker 1: NOT_ENOUGH_REPLICAS");
    for _ in 0..3 {
        send(&mut producer, 0);
        let delivered = delivery(&mut producer).await;
        assert_eq!((delivered.partition, delivered.error.is_none()), (0, true), "{delivered:?}");
    }
    send(&mut producer, 2);
    let refused = delivery(&mut producer).await;
    let error = refused.error.expect("it is too large");
    assert_eq!((refused.partition, error.code()), (2, Some(ErrorCode::MessageTooLarge)));
    assert_eq!(producer.next_trouble(), None, "it is known");
    codes.lock().expect("whole")[1] = ErrorCode::None;
    let delivered = delivery(&mut producer).await;
    assert_eq!((delivered.partition, delivered.error.is_none()), (1, true), "{delivered:?}");
    assert_eq!(report(&mut producer).await, "t-1 can be written again");
}

/// Three records of 6,000 bytes are a full batch and an open one behind it.
#[tokio::test]
async fn open_batch_behind_a_full_one_is_sent_without_a_linger() {
    let mut producer = producer(Codes::default()).await;
    let value = [b'v'; 6000];
    for mark in 0..3 {
        let record = Record { partition: Some(0), value: Some(&value), ..Record::default() };
        assert_eq!(producer.send(&record, mark).expect("it fits"), Taken::Yes);
    }
    assert_eq!(delivery(&mut producer).await.records, 2);
    let second = tokio::time::timeout(Duration::from_secs(20), delivery(&mut producer)).await;
    assert_eq!(second.expect("it is sent").records, 1);
}

/// A broker that refuses the first batch takes the one behind it as the beginning, where both are under way.
#[tokio::test]
async fn first_batch_is_under_way_alone() {
    let (sequences, address) = (Arc::new(Mutex::new(Vec::new())), Arc::new(OnceLock::<String>::new()));
    let (seen, known) = (sequences.clone(), address.clone());
    let says = move |request| match request {
        RequestBody::Metadata(_) => Some(metadata(known.get().expect("known"))),
        RequestBody::InitProducerId(_) => {
            Some(InitProducerIdResponse { producer_id: 5, ..Default::default() }.into())
        }
        RequestBody::Produce(request) => {
            let records = request.topic_data[0].partition_data[0].records.as_ref().expect("records");
            let mut seen = seen.lock().expect("whole");
            seen.push(BatchHeader::parse(records).expect("a batch").base_sequence);
            let mut codes = [ErrorCode::None; 3];
            if seen.len() == 1 {
                codes[0] = ErrorCode::NotEnoughReplicas;
            }
            Some(produced(&request, &Arc::new(Mutex::new(codes))))
        }
        other => panic!("{other:?}"),
    };
    address.set(fake_broker(APIS, says).await).expect("once");
    let bootstrap = address.get().expect("set");
    let properties = [("bootstrap.servers", bootstrap.as_str()), ("linger.ms", "0")];
    let config = PipelineConfig::parse(properties).expect("a config").config;
    let mut producer = PipelinedProducer::new("t", config, Spread::Sticky).await.expect("a topic");
    // Two full batches, and an open one that nothing but the answer brings back.
    let value = [b'v'; 6000];
    for mark in 0..5 {
        let record = Record { partition: Some(0), value: Some(&value), ..Record::default() };
        assert_eq!(producer.send(&record, mark).expect("it fits"), Taken::Yes);
    }
    for records in [2, 2, 1] {
        let delivered = delivery(&mut producer).await;
        assert_eq!((delivered.records, delivered.error.is_none()), (records, true), "{delivered:?}");
    }
    assert_eq!(*sequences.lock().expect("whole"), [0, 0, 2, 4].map(Sequence));
}

/// Broker 1, which led partition 0, does not answer; by the metadata that partition 1's error asks for, broker 2 leads
/// both. It must not get the second batch of partition 0 before the first.
#[tokio::test]
async fn new_leader_gets_the_first_batch_first() {
    let (has_moved, sequences) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let addresses = Arc::new(OnceLock::<[String; 2]>::new());
    let says = |node: i32| {
        let (has_moved, sequences, addresses) = (has_moved.clone(), sequences.clone(), addresses.clone());
        move |request| match request {
            RequestBody::Metadata(_) => {
                let leader_of_0 = if has_moved.load(Ordering::Relaxed) { 2 } else { 1 };
                let partition = |partition_index, leader_id| MetadataResponsePartition {
                    partition_index,
                    leader_id,
                    ..Default::default()
                };
                let partitions = vec![partition(0, leader_of_0), partition(1, 2)];
                let topic =
                    MetadataResponseTopic { name: Some("t".into()), partitions, ..Default::default() };
                let [first, second] = addresses.get().expect("known");
                Some(MetadataResponse { topics: vec![topic], ..nodes(&[(1, first), (2, second)]) }.into())
            }
            RequestBody::InitProducerId(_) => {
                Some(InitProducerIdResponse { producer_id: 5, ..Default::default() }.into())
            }
            RequestBody::Produce(_) if node == 1 => None,
            RequestBody::Produce(request) => {
                let mut codes = [ErrorCode::None; 3];
                if !has_moved.swap(true, Ordering::Relaxed) {
                    codes[1] = ErrorCode::NotLeaderOrFollower;
                }
                for data in request.topic_data[0].partition_data.iter().filter(|data| data.index == 0) {
                    let header =
                        BatchHeader::parse(data.records.as_ref().expect("records")).expect("a batch");
                    sequences.lock().expect("whole").push(header.base_sequence);
                }
                Some(produced(&request, &Arc::new(Mutex::new(codes))))
            }
            other => panic!("{other:?}"),
        }
    };
    let brokers = [fake_broker(APIS, says(1)).await, fake_broker(APIS, says(2)).await];
    addresses.set(brokers).expect("once");
    let bootstrap = &addresses.get().expect("set")[0];
    let properties =
        [("bootstrap.servers", bootstrap.as_str()), ("linger.ms", "0"), ("request.timeout.ms", "600")];
    let config = PipelineConfig::parse(properties).expect("a config").config;
    let mut producer = PipelinedProducer::new("t", config, Spread::Sticky).await.expect("a topic");
    send(&mut producer, 0);
    producer.turn(Duration::from_millis(20)).await.expect("no codec");
    send(&mut producer, 1);
    assert_eq!(delivery(&mut producer).await.partition, 1);
    send(&mut producer, 0);
    for _ in 0..2 {
        let delivered = delivery(&mut producer).await;
        assert_eq!((delivered.partition, delivered.error.is_none()), (0, true), "{delivered:?}");
    }
    assert_eq!(*sequences.lock().expect("whole"), [Sequence(0), Sequence(1)]);
}
