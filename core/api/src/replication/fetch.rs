//! A follower's Fetch, versions 13–18: topics by id.
//!
//! | version | what a follower says with it |
//! |---|---|
//! | 13 | topic ids; the last epoch is always said, so that logs that part are told of in the answer |
//! | 15 | its broker epoch (KIP-903) |
//! | 17 | the directory of its replica, which only the metadata log's replicas fill (KIP-853) |
//! | 18 | the high watermark that it knows (KIP-1166) |
//!
//! The version is what the cluster's `metadata.version` allows (`MetadataVersion::fetch_version`).

use barnabas_base::{
    BrokerEpoch, BrokerId, DurationMs, ErrorCode, LeaderEpoch, Offset, PartitionIndex, Text, TopicId,
};
use barnabas_wire::Str;
use barnabas_wire::messages::fetch_request::{
    FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState,
};
use barnabas_wire::messages::fetch_response::{FetchResponse, PartitionData};
use bytes::Bytes;

use crate::k01_fetch::repairing;

/// Who follows, and how much it takes.
#[derive(Debug, Clone)]
pub struct Follower {
    pub broker: BrokerId,
    pub broker_epoch: BrokerEpoch,
    pub cluster_id: Text,
    /// `replica.fetch.wait.max.ms`.
    pub wait_max: DurationMs,
    /// `replica.fetch.min.bytes`.
    pub bytes_min: i32,
    /// `replica.fetch.response.max.bytes`.
    pub bytes_max: i32,
    /// `replica.fetch.max.bytes`.
    pub partition_bytes_max: i32,
}

/// One partition that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    pub topic: TopicId,
    pub partition: PartitionIndex,
    pub leader_epoch: LeaderEpoch,
    pub offset: Offset,
    pub last_epoch: Option<LeaderEpoch>,
    pub log_start: Offset,
    pub high_watermark: Offset,
}

/// What the leader says of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub topic: TopicId,
    pub partition: PartitionIndex,
    pub error: ErrorCode,
    pub high_watermark: Offset,
    pub log_start: Offset,
    /// Where the logs part: the largest epoch that both may know, and its end there.
    pub diverging: Option<(LeaderEpoch, Offset)>,
    /// Who leads, if the answer says so (KIP-951).
    pub current_leader: Option<(BrokerId, LeaderEpoch)>,
    /// Whole batches, but for the last, which may be cut off.
    pub records: Bytes,
}

/// The request. `session`: its id and epoch.
pub fn request(
    follower: &Follower,
    version: i16,
    session: (i32, i32),
    asks: impl IntoIterator<Item = Ask>,
    forgotten: impl IntoIterator<Item = (TopicId, PartitionIndex)>,
) -> FetchRequest {
    let mut topics: Vec<FetchTopic> = Vec::new();
    for ask in asks {
        let partition = asked(follower, version, &ask);
        match topics.last_mut() {
            Some(last) if last.topic_id == ask.topic => last.partitions.push(partition),
            _ => topics.push(FetchTopic {
                topic_id: ask.topic,
                partitions: vec![partition],
                ..FetchTopic::default()
            }),
        }
    }
    let mut forgotten_topics_data: Vec<ForgottenTopic> = Vec::new();
    for (topic_id, partition) in forgotten {
        match forgotten_topics_data.last_mut() {
            Some(last) if last.topic_id == topic_id => last.partitions.push(partition.get()),
            _ => forgotten_topics_data.push(ForgottenTopic {
                topic_id,
                partitions: vec![partition.get()],
                ..ForgottenTopic::default()
            }),
        }
    }
    let mut request = FetchRequest {
        cluster_id: Some(Str::from(&follower.cluster_id)),
        max_wait_ms: i32::try_from(follower.wait_max.0).unwrap_or(i32::MAX),
        min_bytes: follower.bytes_min,
        max_bytes: follower.bytes_max,
        session_id: session.0,
        session_epoch: session.1,
        topics,
        forgotten_topics_data,
        ..FetchRequest::default()
    };
    if version >= 15 {
        request.replica_state = ReplicaState {
            replica_id: follower.broker.get(),
            replica_epoch: follower.broker_epoch.get(),
            ..ReplicaState::default()
        };
    } else {
        request.replica_id = follower.broker.get();
    }
    request
}

/// A request for one partition that acknowledges nothing: a damaged replica that stays in the ISR asks so for what it
/// has to repair. It is answered at once, up to the leader's high watermark.
pub fn repair_request(follower: &Follower, ask: &Ask) -> FetchRequest {
    let mut partition = asked(follower, 0, ask);
    partition.log_start_offset = Offset::NONE.get();
    let topic = FetchTopic { topic_id: ask.topic, partitions: vec![partition], ..FetchTopic::default() };
    let mut request = FetchRequest {
        cluster_id: Some(Str::from(&follower.cluster_id)),
        max_wait_ms: 0,
        min_bytes: 0,
        max_bytes: follower.bytes_max,
        // No session.
        session_epoch: -1,
        topics: vec![topic],
        ..FetchRequest::default()
    };
    repairing::write(&mut request.unknown_tagged_fields, follower.broker);
    request
}

fn asked(follower: &Follower, version: i16, ask: &Ask) -> FetchPartition {
    let mut partition = FetchPartition {
        partition: ask.partition.get(),
        current_leader_epoch: ask.leader_epoch.get(),
        fetch_offset: ask.offset.get(),
        last_fetched_epoch: ask.last_epoch.unwrap_or(LeaderEpoch::NONE).get(),
        log_start_offset: ask.log_start.get(),
        partition_max_bytes: follower.partition_bytes_max,
        ..FetchPartition::default()
    };
    if version >= 18 {
        partition.high_watermark = ask.high_watermark.get();
    }
    partition
}

/// The answer's partitions.
pub fn answers(response: FetchResponse) -> impl Iterator<Item = Answer> {
    response.responses.into_iter().flat_map(|topic| {
        let id = topic.topic_id;
        topic.partitions.into_iter().map(move |partition| answer(id, partition))
    })
}

fn answer(topic: TopicId, data: PartitionData) -> Answer {
    let (diverging, leader) = (&data.diverging_epoch, &data.current_leader);
    Answer {
        topic,
        partition: PartitionIndex(data.partition_index),
        error: ErrorCode::from_code(data.error_code),
        high_watermark: Offset(data.high_watermark),
        log_start: Offset(data.log_start_offset),
        diverging: (diverging.epoch >= 0 && diverging.end_offset >= 0)
            .then_some((LeaderEpoch(diverging.epoch), Offset(diverging.end_offset))),
        current_leader: (leader.leader_id >= 0 && leader.leader_epoch >= 0)
            .then_some((BrokerId(leader.leader_id), LeaderEpoch(leader.leader_epoch))),
        records: data.records.unwrap_or_default(),
    }
}
