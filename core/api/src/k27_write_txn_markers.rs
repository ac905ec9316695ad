//! # WriteTxnMarkers, key 27, versions 0–2
//!
//! Writes the markers that end transactions: sent by the transaction coordinator to the partitions' leaders, and by
//! administrators who abort a transaction that hangs.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-98) |
//! | 1 | flexible (KIP-482) |
//! | 2 | the version of the transaction (KIP-1228) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleWriteTxnMarkersRequest`.

use std::collections::BTreeMap;
use std::sync::Arc;

use barnabas_base::{
    CoordinatorEpoch, ErrorCode, Map, PartitionIndex, ProducerEpoch, ProducerId, Text, TopicPartition, name,
};
use barnabas_metadata::Topic;
use barnabas_wire::Str;
use barnabas_wire::messages::write_txn_markers_request::{
    WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest,
};
use barnabas_wire::messages::write_txn_markers_response::{
    WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
};

use crate::{Context, Plan};

#[derive(Debug)]
pub struct Work {
    pub parts: Vec<Part>,
    pub pending: Pending,
}

/// One marker for one partition that is led here.
#[derive(Debug, Clone)]
pub struct Part {
    pub topic: Arc<Topic>,
    pub partition: PartitionIndex,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub commit: bool,
    pub coordinator_epoch: CoordinatorEpoch,
    /// 0 where the request does not say.
    pub transaction_version: i16,
}

impl Part {
    /// A partition of `__consumer_offsets`: its shard of the group coordinator writes the marker, in order with its own
    /// records.
    pub fn is_of_groups(&self) -> bool {
        *self.topic.name == *name::CONSUMER_OFFSETS
    }
}

/// The answer as far as it is known: by producer, as the sender reads it, topic and partition.
#[derive(Debug, Default)]
pub struct Pending {
    results: BTreeMap<i64, BTreeMap<Text, BTreeMap<i32, ErrorCode>>>,
}

/// Finds the partitions that are led here.
pub fn plan(request: &WriteTxnMarkersRequest, ctx: &Context<'_>) -> Plan<Work, WriteTxnMarkersResponse> {
    let mut pending = Pending::default();
    let mut parts = Vec::new();
    for marker in &request.markers {
        // A marker without partitions has its place in the answer, too.
        pending.results.entry(marker.producer_id).or_default();
        for topic in &marker.topics {
            let known = ctx.image.topics.by_name(&topic.name);
            for index in &topic.partition_indexes {
                let partition = PartitionIndex(*index);
                let leader = known.and_then(|known| known.partition(partition)).map(|known| known.leader);
                let is_nobodys = marker.producer_id < 0 || marker.producer_epoch < 0;
                let code = match (known, leader) {
                    // No batch can say whose it is: Kafka fails while it builds one (but for ids below -1, which it
                    // writes).
                    (Some(_), Some(leader)) if leader == ctx.node && is_nobodys => {
                        ErrorCode::UnknownServerError
                    }
                    (Some(known), Some(leader)) if leader == ctx.node => {
                        parts.push(Part {
                            topic: Arc::clone(known),
                            partition,
                            producer_id: ProducerId(marker.producer_id),
                            producer_epoch: ProducerEpoch(marker.producer_epoch),
                            commit: marker.transaction_result,
                            coordinator_epoch: CoordinatorEpoch(marker.coordinator_epoch),
                            transaction_version: i16::from(marker.transaction_version),
                        });
                        continue;
                    }
                    (Some(_), Some(_)) => ErrorCode::NotLeaderOrFollower,
                    _ => ErrorCode::UnknownTopicOrPartition,
                };
                pending.set(marker.producer_id, topic.name.text(), *index, code);
            }
        }
    }
    if parts.is_empty() { Plan::Answer(pending.respond()) } else { Plan::Work(Work { parts, pending }) }
}

/// The answer to a client that may not write markers: the same for each partition.
pub(crate) fn refuse(request: &WriteTxnMarkersRequest, code: ErrorCode) -> WriteTxnMarkersResponse {
    let mut pending = Pending::default();
    for marker in &request.markers {
        pending.results.entry(marker.producer_id).or_default();
        for topic in &marker.topics {
            for index in &topic.partition_indexes {
                pending.set(marker.producer_id, topic.name.text(), *index, code);
            }
        }
    }
    pending.respond()
}

impl Pending {
    /// Takes over what became of one part. The transaction coordinator does not expect what a group coordinator says
    /// while it loads or is elsewhere.
    pub fn add(&mut self, part: &Part, outcome: ErrorCode) {
        let code = match outcome {
            ErrorCode::CoordinatorNotAvailable
            | ErrorCode::CoordinatorLoadInProgress
            | ErrorCode::NotCoordinator => ErrorCode::NotLeaderOrFollower,
            other => other,
        };
        self.set(part.producer_id.get(), part.topic.name.clone(), part.partition.get(), code);
    }

    fn set(&mut self, producer: i64, topic: Text, index: i32, code: ErrorCode) {
        let topics = self.results.entry(producer).or_default();
        topics.entry(topic).or_default().insert(index, code);
    }

    /// The answer, once every part's outcome is in.
    pub fn respond(self) -> WriteTxnMarkersResponse {
        let markers = self.results.into_iter().map(|(producer_id, topics)| WritableTxnMarkerResult {
            producer_id,
            topics: topics.into_iter().map(|(name, partitions)| result(&name, partitions)).collect(),
            ..WritableTxnMarkerResult::default()
        });
        WriteTxnMarkersResponse { markers: markers.collect(), ..WriteTxnMarkersResponse::default() }
    }
}

fn result(name: &Text, partitions: BTreeMap<i32, ErrorCode>) -> WritableTxnMarkerTopicResult {
    let partitions = partitions.into_iter().map(|(partition_index, code)| WritableTxnMarkerPartitionResult {
        partition_index,
        error_code: code.code(),
        ..WritableTxnMarkerPartitionResult::default()
    });
    WritableTxnMarkerTopicResult {
        name: Str::from(name),
        partitions: partitions.collect(),
        ..WritableTxnMarkerTopicResult::default()
    }
}

/// From this version on a marker says which `transaction.version` it is of.
const TRANSACTION_VERSION_SINCE: i16 = 2;

/// A marker of one transaction for partitions that one broker leads: what a coordinator asks of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub commit: bool,
    pub coordinator_epoch: CoordinatorEpoch,
    pub transaction_version: i16,
    /// Those of one topic stand together.
    pub partitions: Vec<TopicPartition>,
}

/// The coordinator's request. An answer tells markers apart by their producers alone: no two of `asks` have the same.
pub fn request<'a>(asks: impl IntoIterator<Item = &'a Ask>, version: i16) -> WriteTxnMarkersRequest {
    let marker = |ask: &Ask| WritableTxnMarker {
        producer_id: ask.producer_id.get(),
        producer_epoch: ask.producer_epoch.get(),
        transaction_result: ask.commit,
        topics: topics(&ask.partitions),
        coordinator_epoch: ask.coordinator_epoch.get(),
        transaction_version: match version {
            TRANSACTION_VERSION_SINCE.. => i8::try_from(ask.transaction_version).unwrap_or(i8::MAX),
            _ => 0,
        },
        ..WritableTxnMarker::default()
    };
    WriteTxnMarkersRequest {
        markers: asks.into_iter().map(marker).collect(),
        ..WriteTxnMarkersRequest::default()
    }
}

fn topics(partitions: &[TopicPartition]) -> Vec<WritableTxnMarkerTopic> {
    let mut topics: Vec<WritableTxnMarkerTopic> = Vec::new();
    for partition in partitions {
        let index = partition.partition.get();
        match topics.last_mut() {
            Some(last) if *last.name == *partition.topic => last.partition_indexes.push(index),
            _ => topics.push(WritableTxnMarkerTopic {
                name: Str::from(&partition.topic),
                partition_indexes: vec![index],
                ..WritableTxnMarkerTopic::default()
            }),
        }
    }
    topics
}

/// What a broker says of each marker.
pub fn outcomes(response: WriteTxnMarkersResponse) -> Map<(ProducerId, TopicPartition), ErrorCode> {
    let mut outcomes = Map::default();
    for marker in response.markers {
        let producer = ProducerId(marker.producer_id);
        for topic in marker.topics {
            let name = topic.name.text();
            for partition in topic.partitions {
                let at = TopicPartition::new(name.clone(), PartitionIndex(partition.partition_index));
                outcomes.insert((producer, at), ErrorCode::from_code(partition.error_code));
            }
        }
    }
    outcomes
}

#[cfg(test)]
mod tests;
