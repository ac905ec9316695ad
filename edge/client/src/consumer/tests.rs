//! With one unreadable partition: the error that is reported, and that the others continue without loss or
//! duplicates.

use super::{Consumer, ConsumerConfig, StartAt};
use crate::fake_broker::{fake_broker, nodes};
use crate::{ClientError, Cluster, ClusterConfig};
use barnabas_base::{ErrorCode, Map, Offset, PartitionIndex, TimestampMs};
use barnabas_wire::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use barnabas_wire::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use barnabas_wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use barnabas_wire::messages::{
    FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse, MetadataResponse,
};
use barnabas_wire::records::{BatchBuilder, BatchOptions, Codec, Compression};
use barnabas_wire::{RequestBody, ResponseBody};
use bytes::Bytes;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

const APIS: &[(i16, i16)] = &[(1, 12), (2, 7), (3, 12)];
const WAIT: Duration = Duration::from_millis(20);

/// A partition of topic `t`: one record in each batch.
#[derive(Clone)]
struct Part {
    leader: i32,
    start: i64,
    /// An empty batch is damaged in its leader's log.
    log: Vec<Bytes>,
    /// Answered by its leader instead of records.
    error: ErrorCode,
}

impl Part {
    fn new(leader: i32, name: &str, records: i64) -> Self {
        let log = (0..records).map(|offset| batch(offset, &format!("{name}{offset}"))).collect();
        Self { leader, start: 0, log, error: ErrorCode::None }
    }
}

fn batch(offset: i64, value: &str) -> Bytes {
    let options = BatchOptions { base_offset: Offset(offset), ..Default::default() };
    let mut builder = BatchBuilder::new(options);
    builder.push(TimestampMs(1), None, Some(value.as_bytes()), &[]);
    builder.build().expect("a batch")
}

/// Two brokers, 1 and 2, with a fetch session each.
#[derive(Default)]
struct World {
    addresses: Vec<(i32, String)>,
    parts: Map<i32, Part>,
    sessions: Map<i32, Map<i32, i64>>,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<World>>);

impl Shared {
    async fn start(parts: &[Part]) -> (Self, Cluster) {
        let shared = Self::default();
        for (index, part) in parts.iter().enumerate() {
            shared.world().parts.insert(index as i32, part.clone());
        }
        for broker in [1, 2] {
            let world = shared.clone();
            let address = fake_broker(APIS, move |request| Some(world.world().answer(broker, request))).await;
            shared.world().addresses.push((broker, address));
        }
        let first = shared.world().addresses[0].1.clone();
        (shared, Cluster::new(ClusterConfig::new(&first, "test")))
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().expect("no test panics with it")
    }

    fn part(&self, index: i32, change: impl FnOnce(&mut Part)) {
        change(self.world().parts.get_mut(&index).expect("a partition"));
    }
}

impl World {
    fn answer(&mut self, broker: i32, request: RequestBody) -> ResponseBody {
        match request {
            RequestBody::Metadata(_) => self.metadata().into(),
            RequestBody::ListOffsets(request) => self.list_offsets(broker, &request).into(),
            RequestBody::Fetch(request) => self.fetch(broker, &request).into(),
            other => panic!("{other:?}"),
        }
    }

    fn metadata(&self) -> MetadataResponse {
        let brokers: Vec<(i32, &str)> = self.addresses.iter().map(|(id, at)| (*id, at.as_str())).collect();
        let partition = |(index, part): (&i32, &Part)| MetadataResponsePartition {
            partition_index: *index,
            leader_id: part.leader,
            ..Default::default()
        };
        let partitions = self.parts.iter().map(partition).collect();
        let topic = MetadataResponseTopic { name: Some("t".into()), partitions, ..Default::default() };
        MetadataResponse { topics: vec![topic], ..nodes(&brokers) }
    }

    /// The partition, if this broker leads it and answers for it.
    fn led(&self, broker: i32, index: i32) -> Result<&Part, ErrorCode> {
        let part = self.parts.get(&index).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        match part.error {
            _ if part.leader != broker => Err(ErrorCode::NotLeaderOrFollower),
            ErrorCode::None => Ok(part),
            error => Err(error),
        }
    }

    fn list_offsets(&self, broker: i32, request: &ListOffsetsRequest) -> ListOffsetsResponse {
        let topic = &request.topics[0];
        let told = topic.partitions.iter().map(|asked| {
            let offset = self.led(broker, asked.partition_index).map(|part| match asked.timestamp {
                -2 => part.start,
                _ => part.start + part.log.len() as i64,
            });
            ListOffsetsPartitionResponse {
                partition_index: asked.partition_index,
                error_code: offset.err().unwrap_or_default().code(),
                offset: offset.unwrap_or(-1),
                ..Default::default()
            }
        });
        let partitions = told.collect();
        let topic = ListOffsetsTopicResponse { name: "t".into(), partitions, ..Default::default() };
        ListOffsetsResponse { topics: vec![topic], ..Default::default() }
    }

    fn fetch(&mut self, broker: i32, request: &FetchRequest) -> FetchResponse {
        let mut session = self.sessions.remove(&broker).unwrap_or_default();
        if request.session_epoch == 0 {
            session.clear();
        }
        for forgotten in request.forgotten_topics_data.iter().flat_map(|topic| &topic.partitions) {
            session.remove(forgotten).expect("it is in the session");
        }
        for asked in request.topics.iter().flat_map(|topic| &topic.partitions) {
            session.insert(asked.partition, asked.fetch_offset);
        }
        let mut partitions = Vec::new();
        for (index, offset) in &session {
            let found = self.led(broker, *index).and_then(|part| {
                let at = offset - part.start;
                let at = usize::try_from(at).map_err(|_| ErrorCode::OffsetOutOfRange)?;
                if at > part.log.len() {
                    Err(ErrorCode::OffsetOutOfRange)
                } else if part.log.get(at).is_some_and(Bytes::is_empty) {
                    Err(ErrorCode::CorruptMessage)
                } else {
                    Ok(part.log.get(at).cloned())
                }
            });
            let error_code = found.as_ref().err().copied().unwrap_or_default().code();
            let records = found.unwrap_or_default();
            if error_code != 0 || records.is_some() {
                let partition_index = *index;
                partitions.push(PartitionData { partition_index, error_code, records, ..Default::default() });
            }
        }
        self.sessions.insert(broker, session);
        partitions.sort_by_key(|data| data.partition_index);
        let topic = FetchableTopicResponse { topic: "t".into(), partitions, ..Default::default() };
        let responses = if topic.partitions.is_empty() { Vec::new() } else { vec![topic] };
        FetchResponse { session_id: 7, responses, ..Default::default() }
    }
}

fn consumer(partitions: i32) -> Consumer {
    let config = ConsumerConfig { wait_max: WAIT, patience: Duration::ZERO, ..Default::default() };
    let mut consumer = Consumer::new("t", config);
    consumer.assign((0..partitions).map(|index| (PartitionIndex(index), StartAt::Earliest)));
    consumer
}

/// Polls until `wanted` records and reports have come.
async fn read(consumer: &mut Consumer, cluster: &mut Cluster, wanted: usize) -> (Vec<String>, Vec<String>) {
    let (mut values, mut reports) = (Vec::new(), Vec::new());
    while values.len() + reports.len() < wanted {
        if let Some(record) = consumer.poll(cluster, WAIT).await.expect("curable") {
            values.push(String::from_utf8(record.value.expect("a value").to_vec()).expect("text"));
        }
        while let Some(trouble) = consumer.next_trouble() {
            reports.push(trouble.words("t", "read"));
        }
    }
    values.sort();
    reports.sort();
    (values, reports)
}

#[tokio::test]
async fn partition_that_fails_is_reported_and_others_go_on() {
    let bad = |error| Part { error, ..Part::new(1, "b", 1) };
    let parts = [
        Part::new(1, "a", 3),
        bad(ErrorCode::KafkaStorageError),
        bad(ErrorCode::CorruptMessage),
        bad(ErrorCode::NotLeaderOrFollower),
        Part { leader: -1, ..Part::new(1, "c", 1) },
    ];
    let (world, mut cluster) = Shared::start(&parts).await;
    let mut consumer = consumer(5);
    let (values, reports) = read(&mut consumer, &mut cluster, 7).await;
    assert_eq!(values, ["a0", "a1", "a2"]);
    let standing = [
        "t-1 cannot be read, trying again: broker 1: KAFKA_STORAGE_ERROR",
        "t-2 cannot be read, trying again: broker 1: CORRUPT_MESSAGE",
        "t-3 cannot be read, trying again: broker 1: NOT_LEADER_OR_FOLLOWER",
        "t-4 cannot be read, trying again: LEADER_NOT_AVAILABLE",
    ];
    assert_eq!(reports, standing);
    let told: Vec<_> = consumer.standing_troubles().iter().map(|one| one.words("t", "read")).collect();
    assert_eq!(told, standing);

    // More for the one that works; the others are known.
    world.part(0, |part| part.log.push(batch(3, "a3")));
    assert_eq!(read(&mut consumer, &mut cluster, 1).await, (vec!["a3".to_owned()], Vec::new()));
    world.part(1, |part| part.error = ErrorCode::None);
    world.part(4, |part| part.leader = 2);
    let (values, reports) = read(&mut consumer, &mut cluster, 4).await;
    assert_eq!(values, ["b0", "c0"]);
    assert_eq!(reports, ["t-1 can be read again", "t-4 can be read again"]);
}

#[tokio::test]
async fn damaged_records_hold_up_their_partition_alone() {
    let mut damaged = Part::new(1, "b", 3);
    let mut bytes = damaged.log[1].to_vec();
    *bytes.last_mut().expect("bytes") ^= 1;
    damaged.log[1] = bytes.into();
    let (world, mut cluster) = Shared::start(&[damaged, Part::new(1, "a", 3)]).await;
    let mut consumer = consumer(2);
    let (values, reports) = read(&mut consumer, &mut cluster, 5).await;
    assert_eq!(values, ["a0", "a1", "a2", "b0"]);
    assert!(
        reports[0].starts_with(
            "t-0 cannot be read, trying again: broker 1: its records cannot be read: at offset 1: "
        ),
        "{reports:?}"
    );
    world.part(0, |part| part.log[1] = batch(1, "b1"));
    let (values, reports) = read(&mut consumer, &mut cluster, 3).await;
    assert_eq!(
        (values, reports),
        (vec!["b1".to_owned(), "b2".to_owned()], vec!["t-0 can be read again".to_owned()])
    );
}

/// A batch with one record of `bytes` zeros: about a ten-thousandth of that.
fn shrunk(offset: i64, bytes: usize) -> Bytes {
    let compression = Compression { codec: Codec::Zstd, level: None };
    let options = BatchOptions { base_offset: Offset(offset), compression, ..Default::default() };
    let mut builder = BatchBuilder::new(options);
    builder.push(TimestampMs(1), None, Some(&vec![0; bytes]), &[]);
    builder.build().expect("a batch")
}

#[tokio::test]
async fn batch_that_shrank_a_thousandfold_is_read() {
    const BYTES: usize = 65 << 20;
    let part = Part { log: vec![shrunk(0, BYTES), batch(1, "next")], ..Part::new(1, "a", 0) };
    let (_world, mut cluster) = Shared::start(&[part]).await;
    let mut consumer = consumer(1);
    let patience = Duration::from_secs(60);
    let record = consumer.poll(&mut cluster, patience).await.expect("curable").expect("a record");
    assert_eq!(record.value.map(|value| value.len()), Some(BYTES));
    let next = consumer.poll(&mut cluster, patience).await.expect("curable").expect("a record");
    assert_eq!(next.value.as_deref(), Some(&b"next"[..]));
}

#[tokio::test]
async fn batch_above_the_limit_ends_reading_with_its_place() {
    let log = vec![batch(0, "a0"), shrunk(1, 100_000), batch(2, "a2")];
    let (_world, mut cluster) = Shared::start(&[Part { log, ..Part::new(1, "a", 0) }]).await;
    let config = ConsumerConfig { wait_max: WAIT, inflated_bytes_max: 50_000, ..Default::default() };
    let mut consumer = Consumer::new("t", config);
    consumer.assign([(PartitionIndex(0), StartAt::Earliest)]);
    let patience = Duration::from_secs(60);
    let first = consumer.poll(&mut cluster, patience).await.expect("sound").expect("a record");
    assert_eq!(first.value.as_deref(), Some(&b"a0"[..]));
    let error = consumer.poll(&mut cluster, patience).await.expect_err("too large");
    let words = "records of t-0 cannot be read at offset 1: their batch inflates to more than 50000 bytes, which is \
                 max.decompressed.batch.bytes of this consumer. Raise it, or read on behind the batch, at offset 2";
    assert_eq!(error.to_string(), words);
    assert!(!error.is_retriable());
}

#[tokio::test]
async fn corrupt_message_is_reported_with_its_offset() {
    let mut damaged = Part::new(1, "b", 3);
    damaged.log[2] = Bytes::new();
    let (_world, mut cluster) = Shared::start(&[damaged]).await;
    let (values, reports) = read(&mut consumer(1), &mut cluster, 3).await;
    assert_eq!(values, ["b0", "b1"]);
    let named = "t-0 cannot be read, trying again: broker 1: CORRUPT_MESSAGE: encountered corrupt message when \
                 fetching offset 2";
    assert_eq!(reports, [named]);
}

#[tokio::test]
async fn dead_broker_holds_up_its_partitions_alone() {
    let (world, mut cluster) = Shared::start(&[Part::new(1, "a", 2), Part::new(2, "b", 2)]).await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let dead = gone.local_addr().expect("bound").to_string();
    drop(gone);
    let alive = std::mem::replace(&mut world.world().addresses[1].1, dead.clone());
    let mut consumer = consumer(2);
    let (values, reports) = read(&mut consumer, &mut cluster, 3).await;
    assert_eq!(values, ["a0", "a1"]);
    let begin = format!("t-1 cannot be read, trying again: broker 2: no broker answers at {dead}: ");
    assert!(reports[0].starts_with(&begin), "{reports:?}");
    world.world().addresses[1].1 = alive;
    let (values, reports) = read(&mut consumer, &mut cluster, 3).await;
    assert_eq!(
        (values.as_slice(), reports.as_slice()),
        (&["b0".to_owned(), "b1".to_owned()][..], &["t-1 can be read again".to_owned()][..])
    );
}

#[tokio::test]
async fn leader_that_moves_is_followed_without_a_gap() {
    let (world, mut cluster) = Shared::start(&[Part::new(1, "a", 2)]).await;
    let mut consumer = consumer(1);
    assert_eq!(read(&mut consumer, &mut cluster, 2).await.0, ["a0", "a1"]);
    world.part(0, |part| {
        part.leader = 2;
        part.log.push(batch(2, "a2"));
    });
    let (values, reports) = read(&mut consumer, &mut cluster, 3).await;
    assert_eq!(values, ["a2"]);
    let moved = "t-0 cannot be read, trying again: broker 1: NOT_LEADER_OR_FOLLOWER";
    assert_eq!(reports, ["t-0 can be read again", moved]);
    assert_eq!(consumer.positions().collect::<Vec<_>>(), [(PartitionIndex(0), Offset(3))]);
}

#[tokio::test]
async fn position_out_of_the_log_is_reset_as_configured() {
    let (world, mut cluster) = Shared::start(&[Part::new(1, "a", 3)]).await;
    world.part(0, |part| part.start = 10);
    let start = [(PartitionIndex(0), StartAt::Offset(Offset(5)))];
    let mut consumer = consumer(0);
    consumer.config.reset = Some(StartAt::Latest);
    consumer.assign(start);
    let (_, reports) = read(&mut consumer, &mut cluster, 2).await;
    let outside = "t-0 cannot be read, trying again: broker 1: OFFSET_OUT_OF_RANGE";
    assert_eq!(reports, ["t-0 can be read again", outside]);
    assert_eq!(consumer.positions().collect::<Vec<_>>(), [(PartitionIndex(0), Offset(13))]);

    let mut consumer = self::consumer(0);
    consumer.config.reset = None;
    consumer.assign(start);
    let error = loop {
        match consumer.poll(&mut cluster, WAIT).await {
            Ok(record) => assert!(record.is_none()),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), Some(ErrorCode::OffsetOutOfRange));
}

#[tokio::test]
async fn refusal_that_no_later_try_cures_is_an_error() {
    let refused = Part { error: ErrorCode::TopicAuthorizationFailed, ..Part::new(1, "a", 1) };
    let (_world, mut cluster) = Shared::start(&[refused]).await;
    let mut consumer = consumer(1);
    let error = loop {
        if let Err(error) = consumer.poll(&mut cluster, WAIT).await {
            break error;
        }
    };
    assert!(
        matches!(error, ClientError::Refused { code: ErrorCode::TopicAuthorizationFailed, .. }),
        "{error}"
    );
}
