//! A cluster of one broker in memory, as far as a bridge asks: topics of one partition, transactions, one group.
//!
//! Records of a transaction are stored when it commits, so every reader is a `read_committed` one.

use crate::fake_broker::{fake_broker, nodes};
use barnabas_base::{ErrorCode, Offset, TimestampMs};
use barnabas_wire::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnTopicResult,
};
use barnabas_wire::messages::create_topics_response::CreatableTopicResult;
use barnabas_wire::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use barnabas_wire::messages::find_coordinator_response::Coordinator;
use barnabas_wire::messages::join_group_response::JoinGroupResponseMember;
use barnabas_wire::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use barnabas_wire::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use barnabas_wire::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use barnabas_wire::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use barnabas_wire::messages::*;
use barnabas_wire::records::{BatchBuilder, BatchOptions, Entry, HeaderRef, entries};
use barnabas_wire::{RequestBody, ResponseBody};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Keys and newest versions.
const APIS: &[(i16, i16)] = &[
    (0, 11),
    (1, 12),
    (2, 7),
    (3, 12),
    (8, 8),
    (9, 7),
    (10, 4),
    (11, 7),
    (12, 4),
    (13, 4),
    (14, 5),
    (19, 7),
    (22, 5),
    (24, 3),
    (26, 4),
];

/// A record as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub value: Option<Bytes>,
    pub headers: Vec<(String, Bytes)>,
}

impl Stored {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.and_then(|(_, value)| std::str::from_utf8(value).ok())
    }
}

#[derive(Debug)]
struct Topic {
    batch_bytes_max: usize,
    records: Vec<Stored>,
}

#[derive(Debug, Default)]
pub struct World {
    topics: BTreeMap<String, Topic>,
    /// Of the open transaction.
    open: Vec<(String, Vec<Stored>)>,
    epoch: i16,
    /// How often each API was asked, by its name.
    pub asked: BTreeMap<&'static str, usize>,
    session: BTreeMap<String, i64>,
    pub committed: i64,
}

#[derive(Debug, Clone)]
pub struct Kafka {
    pub address: String,
    world: Arc<Mutex<World>>,
}

impl Kafka {
    /// `topics`: names, and the bytes of the largest batch. Others are made when they are asked for.
    pub async fn start(topics: &[(&str, usize)]) -> Self {
        let world = Arc::new(Mutex::new(World::default()));
        for (name, batch_bytes_max) in topics {
            let topic = Topic { batch_bytes_max: *batch_bytes_max, records: Vec::new() };
            world.lock().expect("no panic").topics.insert((*name).to_owned(), topic);
        }
        let address = Arc::new(OnceLock::<String>::new());
        let (known, answering) = (address.clone(), world.clone());
        let says = move |request| {
            let address = known.get().expect("known");
            Some(answering.lock().expect("no panic").answer(address, request))
        };
        address.set(fake_broker(APIS, says).await).expect("once");
        Self { address: address.get().expect("set").clone(), world }
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no panic")
    }

    pub fn put(&self, topic: &str, value: &str) {
        let record = Stored { value: Some(Bytes::copy_from_slice(value.as_bytes())), headers: Vec::new() };
        self.world().topics.get_mut(topic).expect("a topic").records.push(record);
    }

    pub fn records(&self, topic: &str) -> Vec<Stored> {
        self.world().topics.get(topic).map_or_else(Vec::new, |topic| topic.records.clone())
    }

    pub fn asked(&self, api: &str) -> usize {
        self.world().asked.get(api).copied().unwrap_or(0)
    }
}

impl World {
    fn answer(&mut self, address: &str, request: RequestBody) -> ResponseBody {
        match request {
            RequestBody::Metadata(request) => self.metadata(address, &request).into(),
            RequestBody::CreateTopics(request) => self.create(&request).into(),
            RequestBody::FindCoordinator(_) => coordinator(address).into(),
            RequestBody::InitProducerId(_) => {
                self.count("InitProducerId");
                self.open.clear();
                self.epoch += 1;
                let producer_epoch = self.epoch;
                InitProducerIdResponse { producer_id: 7, producer_epoch, ..Default::default() }.into()
            }
            RequestBody::AddPartitionsToTxn(request) => added(&request).into(),
            RequestBody::Produce(request) => self.produce(&request).into(),
            RequestBody::EndTxn(request) => {
                for (topic, records) in std::mem::take(&mut self.open) {
                    if request.committed {
                        self.topics.get_mut(&topic).expect("a topic").records.extend(records);
                    }
                }
                EndTxnResponse::default().into()
            }
            RequestBody::ListOffsets(request) => self.list_offsets(&request).into(),
            RequestBody::Fetch(request) => self.fetch(&request).into(),
            other => self.of_the_group(other),
        }
    }

    fn count(&mut self, api: &'static str) {
        *self.asked.entry(api).or_default() += 1;
    }

    fn metadata(&mut self, address: &str, request: &MetadataRequest) -> MetadataResponse {
        let mut topics = Vec::new();
        for asked in request.topics.iter().flatten() {
            let name = asked.name.as_deref().unwrap_or_default().to_owned();
            if request.allow_auto_topic_creation {
                self.make(&name);
            }
            let error_code = match self.topics.contains_key(&name) {
                true => 0,
                false => ErrorCode::UnknownTopicOrPartition.code(),
            };
            let partition =
                MetadataResponsePartition { partition_index: 0, leader_id: 1, ..Default::default() };
            let name = Some(name.as_str().into());
            let partitions = vec![partition];
            topics.push(MetadataResponseTopic { name, error_code, partitions, ..Default::default() });
        }
        MetadataResponse { topics, ..nodes(&[(1, address)]) }
    }

    fn make(&mut self, name: &str) {
        let topic = || Topic { batch_bytes_max: usize::MAX, records: Vec::new() };
        self.topics.entry(name.to_owned()).or_insert_with(topic);
    }

    fn create(&mut self, request: &CreateTopicsRequest) -> CreateTopicsResponse {
        self.count("CreateTopics");
        let name = &request.topics[0].name;
        self.make(name);
        let topics = vec![CreatableTopicResult { name: name.clone(), ..Default::default() }];
        CreateTopicsResponse { topics, ..Default::default() }
    }

    fn produce(&mut self, request: &ProduceRequest) -> ProduceResponse {
        self.count("Produce");
        let mut responses = Vec::new();
        for sent in &request.topic_data {
            let name = sent.name.to_string();
            let bytes = sent.partition_data[0].records.clone().expect("records");
            let topic = self.topics.get_mut(&name).expect("a topic");
            let is_too_large = bytes.len() > topic.batch_bytes_max;
            if !is_too_large && request.transactional_id.is_some() {
                self.open.push((name, stored(bytes)));
            } else if !is_too_large {
                topic.records.extend(stored(bytes));
            }
            let error_code = if is_too_large { ErrorCode::MessageTooLarge.code() } else { 0 };
            let told = PartitionProduceResponse { error_code, ..Default::default() };
            let partition_responses = vec![told];
            let name = sent.name.clone();
            responses.push(TopicProduceResponse { name, partition_responses, ..Default::default() });
        }
        ProduceResponse { responses, ..Default::default() }
    }

    fn list_offsets(&self, request: &ListOffsetsRequest) -> ListOffsetsResponse {
        let topic = &request.topics[0];
        let end = self.topics.get(&*topic.name).map_or(0, |topic| topic.records.len() as i64);
        let offset = if topic.partitions[0].timestamp == -2 { 0 } else { end };
        let partitions = vec![ListOffsetsPartitionResponse { offset, ..Default::default() }];
        let name = topic.name.clone();
        let topic = ListOffsetsTopicResponse { name, partitions, ..Default::default() };
        ListOffsetsResponse { topics: vec![topic], ..Default::default() }
    }

    fn fetch(&mut self, request: &FetchRequest) -> FetchResponse {
        if request.session_epoch <= 0 {
            self.session.clear();
        }
        for topic in &request.topics {
            self.session.insert(topic.topic.to_string(), topic.partitions[0].fetch_offset);
        }
        let mut responses = Vec::new();
        for (name, offset) in &self.session {
            let Some(topic) = self.topics.get(name) else { continue };
            let from = usize::try_from(*offset).expect("an offset").min(topic.records.len());
            let Some(records) = batch(*offset, &topic.records[from..]) else { continue };
            let data = PartitionData { records: Some(records), ..Default::default() };
            let name = name.as_str().into();
            responses.push(FetchableTopicResponse {
                topic: name,
                partitions: vec![data],
                ..Default::default()
            });
        }
        FetchResponse { session_id: 7, responses, ..Default::default() }
    }

    fn of_the_group(&mut self, request: RequestBody) -> ResponseBody {
        match request {
            RequestBody::JoinGroup(request) => {
                let metadata = request.protocols[0].metadata.clone();
                let member =
                    JoinGroupResponseMember { member_id: "m".into(), metadata, ..Default::default() };
                JoinGroupResponse {
                    generation_id: 1,
                    protocol_name: Some("range".into()),
                    leader: "m".into(),
                    member_id: "m".into(),
                    members: vec![member],
                    ..Default::default()
                }
                .into()
            }
            RequestBody::SyncGroup(request) => {
                let assignment = request.assignments[0].assignment.clone();
                SyncGroupResponse { assignment, ..Default::default() }.into()
            }
            RequestBody::OffsetFetch(_) => OffsetFetchResponse::default().into(),
            RequestBody::Heartbeat(_) => HeartbeatResponse::default().into(),
            RequestBody::OffsetCommit(request) => {
                let topic = &request.topics[0];
                self.committed = topic.partitions[0].committed_offset;
                let partitions = vec![OffsetCommitResponsePartition::default()];
                let name = topic.name.clone();
                let topic = OffsetCommitResponseTopic { name, partitions, ..Default::default() };
                OffsetCommitResponse { topics: vec![topic], ..Default::default() }.into()
            }
            RequestBody::LeaveGroup(_) => {
                self.count("LeaveGroup");
                LeaveGroupResponse::default().into()
            }
            other => panic!("{other:?}"),
        }
    }
}

fn coordinator(address: &str) -> FindCoordinatorResponse {
    let (host, port) = address.rsplit_once(':').expect("host:port");
    let port = port.parse().expect("a port");
    let found = Coordinator { node_id: 1, host: host.into(), port, ..Default::default() };
    FindCoordinatorResponse { coordinators: vec![found], ..Default::default() }
}

fn added(request: &AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse {
    let topic = |topic: &add_partitions_to_txn_request::AddPartitionsToTxnTopic| {
        let partition =
            |index: &i32| AddPartitionsToTxnPartitionResult { partition_index: *index, ..Default::default() };
        let results_by_partition = topic.partitions.iter().map(partition).collect();
        let name = topic.name.clone();
        AddPartitionsToTxnTopicResult { name, results_by_partition, ..Default::default() }
    };
    let results_by_topic_v3_and_below = request.v3_and_below_topics.iter().map(topic).collect();
    AddPartitionsToTxnResponse { results_by_topic_v3_and_below, ..Default::default() }
}

fn stored(bytes: Bytes) -> Vec<Stored> {
    let mut found = Vec::new();
    for entry in entries(bytes) {
        let Ok(Entry::Batch(batch)) = entry else { panic!("no batch") };
        for record in &batch.records().expect("sound") {
            let record = record.expect("sound");
            let header = |(name, value): HeaderRef<'_>| {
                let name = String::from_utf8_lossy(name).into_owned();
                (name, Bytes::copy_from_slice(value.unwrap_or_default()))
            };
            found.push(Stored {
                value: record.value.map(Bytes::copy_from_slice),
                headers: record.headers().map(header).collect(),
            });
        }
    }
    found
}

fn batch(base: i64, records: &[Stored]) -> Option<Bytes> {
    let mut builder = BatchBuilder::new(BatchOptions { base_offset: Offset(base), ..Default::default() });
    for record in records {
        builder.push(TimestampMs(1), None, record.value.as_deref(), &[]);
    }
    (!records.is_empty()).then(|| builder.build().expect("a batch"))
}
