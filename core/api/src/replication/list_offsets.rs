//! A follower's ListOffsets: where its leader's logs start and end, when it has nothing at the place that was asked
//! for.
//!
//! Every version names topics by name. With `replica_id` set, the leader returns the ends of its
//! log, not the offsets that consumers may see. The cluster's `metadata.version` determines the
//! request version (`MetadataVersion::list_offsets_version`).

use barnabas_base::{BrokerId, DurationMs, ErrorCode, LeaderEpoch, Offset, PartitionIndex, Text};
use barnabas_wire::Str;
use barnabas_wire::messages::list_offsets_request::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
};
use barnabas_wire::messages::list_offsets_response::ListOffsetsResponse;

/// Which end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The log start: timestamp −2.
    Start,
    /// The log end: timestamp −1.
    End,
}

/// One partition whose end is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub topic: Text,
    pub partition: PartitionIndex,
    pub leader_epoch: LeaderEpoch,
}

/// What the leader says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub topic: Text,
    pub partition: PartitionIndex,
    pub result: Result<Offset, ErrorCode>,
}

/// The request of follower `broker`. `wait_max`: how long a leader may look for an offset in tiered storage.
pub fn request(
    broker: BrokerId,
    end: End,
    wait_max: DurationMs,
    asks: impl IntoIterator<Item = Ask>,
) -> ListOffsetsRequest {
    let timestamp = match end {
        End::Start => -2,
        End::End => -1,
    };
    let mut topics: Vec<ListOffsetsTopic> = Vec::new();
    for ask in asks {
        let partition = ListOffsetsPartition {
            partition_index: ask.partition.get(),
            current_leader_epoch: ask.leader_epoch.get(),
            timestamp,
            ..ListOffsetsPartition::default()
        };
        match topics.last_mut() {
            Some(last) if *last.name == *ask.topic => last.partitions.push(partition),
            _ => topics.push(ListOffsetsTopic {
                name: Str::from(&ask.topic),
                partitions: vec![partition],
                ..ListOffsetsTopic::default()
            }),
        }
    }
    ListOffsetsRequest {
        replica_id: broker.get(),
        topics,
        timeout_ms: i32::try_from(wait_max.0).unwrap_or(i32::MAX),
        ..ListOffsetsRequest::default()
    }
}

/// The answer's partitions.
pub fn answers(response: ListOffsetsResponse) -> impl Iterator<Item = Answer> {
    response.topics.into_iter().flat_map(|topic| {
        let name = topic.name.text();
        topic.partitions.into_iter().map(move |partition| Answer {
            topic: name.clone(),
            partition: PartitionIndex(partition.partition_index),
            result: match ErrorCode::from_code(partition.error_code) {
                ErrorCode::None if partition.offset >= 0 => Ok(Offset(partition.offset)),
                ErrorCode::None => Err(ErrorCode::OffsetNotAvailable),
                code => Err(code),
            },
        })
    })
}
