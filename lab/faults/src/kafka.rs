//! One connection to a node that keeps several requests in flight, and the few requests that the rigs send.
//!
//! `edge/client` keeps one request in flight on a connection; what several do to the broker when it dies is what the
//! rigs are for, so they speak for themselves.

use crate::records::Identity;
use crate::{Trouble, trouble};
use barnabas_base::{ErrorCode, ProducerEpoch, ProducerId};
use barnabas_wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::fetch_response::PartitionData;
use barnabas_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{
    CreateTopicsRequest, FetchRequest, FindCoordinatorRequest, InitProducerIdRequest, ListOffsetsRequest,
    ProduceRequest, ProduceResponse, RequestHeader, ResponseHeader,
};
use barnabas_wire::{Message, Reader, Request, Writer};
use bytes::Bytes;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// For error codes that pass: a coordinator that loads, a partition that is not led yet.
const RETRY_FOR: Duration = Duration::from_secs(10);

pub const PRODUCE: i16 = 9;
const FETCH: i16 = 12;

/// A partition by its topic's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub topic: String,
    pub partition: i32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// What a fetch of one partition gave.
#[derive(Debug)]
pub struct Fetched {
    pub error: ErrorCode,
    pub log_start: i64,
    pub high_watermark: i64,
    pub records: Bytes,
}

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    correlation_id: i32,
}

impl Connection {
    pub fn open(port: u16) -> Result<Self, Trouble> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, correlation_id: 0 })
    }

    /// Sends without waiting for the answer.
    pub fn send<R: Request>(&mut self, request: &R, version: i16) -> Result<(), Trouble> {
        self.correlation_id = self.correlation_id.wrapping_add(1);
        let header = RequestHeader {
            request_api_key: R::KEY.number(),
            request_api_version: version,
            correlation_id: self.correlation_id,
            client_id: Some("faults".into()),
            ..RequestHeader::default()
        };
        let mut writer = Writer::with_capacity(256);
        let wrong = |error: barnabas_wire::EncodeError| Trouble(error.to_string());
        header.encode(&mut writer, R::KEY.request_header_version(version)).map_err(wrong)?;
        request.encode(&mut writer, version).map_err(wrong)?;
        let body = writer.finish().into_bytes();
        let mut frame = Vec::with_capacity(4 + body.len());
        frame.extend_from_slice(&(body.len() as u32).to_be_bytes());
        frame.extend_from_slice(&body);
        Ok(self.stream.write_all(&frame)?)
    }

    /// The next answer, which is to a request of this kind.
    pub fn receive<R: Request>(&mut self, version: i16) -> Result<R::Response, Trouble> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut frame)?;
        let mut reader = Reader::new(Bytes::from(frame));
        let garbled = |error: barnabas_wire::DecodeError| Trouble(format!("an answer: {error}"));
        ResponseHeader::decode(&mut reader, R::KEY.response_header_version(version)).map_err(garbled)?;
        R::Response::decode(&mut reader, version).map_err(garbled)
    }

    pub fn call<R: Request>(&mut self, request: &R, version: i16) -> Result<R::Response, Trouble> {
        self.send(request, version)?;
        self.receive::<R>(version)
    }

    /// A producer id of one's own.
    pub fn identity(&mut self) -> Result<Identity, Trouble> {
        let request = InitProducerIdRequest {
            transactional_id: None,
            transaction_timeout_ms: i32::MAX,
            ..Default::default()
        };
        patiently("a producer id", || {
            let answer = self.call(&request, 4)?;
            let identity =
                Identity { id: ProducerId(answer.producer_id), epoch: ProducerEpoch(answer.producer_epoch) };
            Ok((answer.error_code, identity))
        })
    }

    /// Makes a topic; the code that was answered.
    pub fn create_topic(
        &mut self,
        name: &str,
        partitions: i32,
        configs: &[(&str, &str)],
    ) -> Result<ErrorCode, Trouble> {
        let config = |&(key, value): &(&str, &str)| CreatableTopicConfig {
            name: key.into(),
            value: Some(value.into()),
            ..Default::default()
        };
        let topic = CreatableTopic {
            name: name.into(),
            num_partitions: partitions,
            replication_factor: 1,
            configs: configs.iter().map(config).collect(),
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
        let answer = self.call(&request, 7)?;
        let told = answer.topics.first().ok_or_else(|| Trouble("CreateTopics names no topic".to_owned()))?;
        Ok(ErrorCode::from_code(told.error_code))
    }

    /// Asks who coordinates a group, upon which the node makes `__consumer_offsets`.
    pub fn find_coordinator(&mut self, group: &str) -> Result<(), Trouble> {
        let request = FindCoordinatorRequest { coordinator_keys: vec![group.into()], ..Default::default() };
        patiently("a coordinator", || {
            let answer = self.call(&request, 4)?;
            let told = answer.coordinators.first();
            let told = told.ok_or_else(|| Trouble("FindCoordinator names none".to_owned()))?;
            Ok((told.error_code, ()))
        })
    }

    /// Sends one batch and waits: the base offset, or the code.
    pub fn produce(
        &mut self,
        place: &Place,
        acks: i16,
        records: Bytes,
    ) -> Result<Result<i64, ErrorCode>, Trouble> {
        let answer = self.call(&produce_request(acks, [(place, records)]), PRODUCE)?;
        let told =
            produced(&answer).next().ok_or_else(|| Trouble("Produce names no partition".to_owned()))?;
        Ok(told.1)
    }

    /// Where a partition ends (−1) or begins (−2).
    pub fn list_offset(&mut self, place: &Place, which: i64) -> Result<i64, Trouble> {
        let partition =
            ListOffsetsPartition { partition_index: place.partition, timestamp: which, ..Default::default() };
        let topic = ListOffsetsTopic {
            name: place.topic.as_str().into(),
            partitions: vec![partition],
            ..Default::default()
        };
        let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() };
        patiently(&format!("an offset of {place}"), || {
            let answer = self.call(&request, 7)?;
            let told = answer.topics.first().and_then(|topic| topic.partitions.first());
            let told = told.ok_or_else(|| Trouble("ListOffsets names no partition".to_owned()))?;
            Ok((told.error_code, told.offset))
        })
    }

    /// What lies from `from` on.
    pub fn fetch(&mut self, place: &Place, from: i64, bytes_max: i32) -> Result<Fetched, Trouble> {
        let told = self.fetched(place, from, bytes_max, false)?;
        Ok(Fetched {
            error: ErrorCode::from_code(told.error_code),
            log_start: told.log_start_offset,
            high_watermark: told.high_watermark,
            records: told.records.unwrap_or_default(),
        })
    }

    /// The same as it was told, of all records or of committed ones.
    pub fn fetched(
        &mut self,
        place: &Place,
        from: i64,
        bytes_max: i32,
        read_committed: bool,
    ) -> Result<PartitionData, Trouble> {
        let partition = FetchPartition {
            partition: place.partition,
            current_leader_epoch: -1,
            fetch_offset: from,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            partition_max_bytes: bytes_max,
            ..Default::default()
        };
        let topic = FetchTopic {
            topic: place.topic.as_str().into(),
            partitions: vec![partition],
            ..Default::default()
        };
        let request = FetchRequest {
            replica_id: -1,
            max_wait_ms: 0,
            min_bytes: 0,
            max_bytes: bytes_max,
            isolation_level: i8::from(read_committed),
            session_epoch: -1,
            topics: vec![topic],
            ..Default::default()
        };
        let mut answer = self.call(&request, FETCH)?;
        let told = answer.responses.pop().and_then(|mut topic| topic.partitions.pop());
        told.ok_or_else(|| Trouble("Fetch names no partition".to_owned()))
    }
}

/// One batch for each of some partitions.
pub fn produce_request<'a>(
    acks: i16,
    batches: impl IntoIterator<Item = (&'a Place, Bytes)>,
) -> ProduceRequest {
    let topic = |(place, records): (&Place, Bytes)| TopicProduceData {
        name: place.topic.as_str().into(),
        partition_data: vec![PartitionProduceData {
            index: place.partition,
            records: Some(records),
            ..Default::default()
        }],
        ..Default::default()
    };
    let topic_data = batches.into_iter().map(topic).collect();
    ProduceRequest { acks, timeout_ms: 30_000, topic_data, ..Default::default() }
}

/// What each batch of a produce request was answered.
pub fn produced(answer: &ProduceResponse) -> impl Iterator<Item = (Place, Result<i64, ErrorCode>)> + '_ {
    answer.responses.iter().flat_map(|topic| {
        topic.partition_responses.iter().map(|partition| {
            let place = Place { topic: topic.name.to_string(), partition: partition.index };
            let told = match partition.error_code {
                0 => Ok(partition.base_offset),
                code => Err(ErrorCode::from_code(code)),
            };
            (place, told)
        })
    })
}

/// Asks until the code is 0 or does not pass.
pub fn patiently<T>(what: &str, mut ask: impl FnMut() -> Result<(i16, T), Trouble>) -> Result<T, Trouble> {
    let begun = Instant::now();
    loop {
        let (code, told) = ask()?;
        let code = ErrorCode::from_code(code);
        if code == ErrorCode::None {
            return Ok(told);
        }
        if !code.is_retriable() || code == ErrorCode::KafkaStorageError || begun.elapsed() > RETRY_FOR {
            return trouble(format!("{what}: {code}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
