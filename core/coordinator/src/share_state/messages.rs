//! Kafka's messages about one share-partition (keys 83 to 87), as a broker that is not the share coordinator sends them
//! and reads their answers.
//!
//! Each request holds one share-partition, since each has a shard of its own. An answer that lacks that part is
//! UNKNOWN_SERVER_ERROR.
//!
//! Neighbours: shell/broker/src/routing/share_persister/remote.rs, which sends and reads them.
//!
//! Not here: the coordinator's side of the same messages (core/api), the connection, retries.
//!
//! Source: Kafka 4.4 `PersisterStateManager`.

use std::sync::Arc;

use barnabas_base::{ErrorCode, LeaderEpoch, Offset, TimestampMs};
use barnabas_wire::Str;
use barnabas_wire::messages::{
    DeleteShareGroupStateResponse, InitializeShareGroupStateResponse, ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryResponse, WriteShareGroupStateResponse,
    delete_share_group_state_request as delete, initialize_share_group_state_request as initialize,
    read_share_group_state_request as read, read_share_group_state_response as read_said,
    read_share_group_state_summary_request as summary,
    read_share_group_state_summary_response as summary_said, write_share_group_state_request as write,
};

use super::request::{
    SharePartitionKey, ShareStateRefusal, ShareStateRequest, ShareStateResponse, ShareStateSummary,
};
use super::state::{ShareState, StateBatch};

/// From this version on WriteShareGroupState says how many records are done with.
const COUNT_SINCE: i16 = 1;

/// An answer without the part that was asked for.
const NO_PART: ShareStateRefusal = ShareStateRefusal { code: ErrorCode::UnknownServerError, why: None };

/// What became of an InitializeShareGroupState.
pub fn initialized(response: InitializeShareGroupStateResponse) -> ShareStateResponse {
    let mut parts = response.results.into_iter().flat_map(|topic| topic.partitions);
    done(parts.next().map(|part| part.error_code))
}

/// What became of a WriteShareGroupState.
pub fn written(response: WriteShareGroupStateResponse) -> ShareStateResponse {
    let mut parts = response.results.into_iter().flat_map(|topic| topic.partitions);
    done(parts.next().map(|part| part.error_code))
}

/// What became of a DeleteShareGroupState.
pub fn deleted(response: DeleteShareGroupStateResponse) -> ShareStateResponse {
    let mut parts = response.results.into_iter().flat_map(|topic| topic.partitions);
    done(parts.next().map(|part| part.error_code))
}

/// The state in the answer to a ReadShareGroupState.
pub fn state_read(response: ReadShareGroupStateResponse) -> ShareStateResponse {
    let mut parts = response.results.into_iter().flat_map(|topic| topic.partitions);
    ShareStateResponse::Read(parts.next().ok_or(NO_PART).and_then(state))
}

/// The position in the answer to a ReadShareGroupStateSummary.
pub fn summary_read(response: ReadShareGroupStateSummaryResponse) -> ShareStateResponse {
    let mut parts = response.results.into_iter().flat_map(|topic| topic.partitions);
    ShareStateResponse::Summary(parts.next().ok_or(NO_PART).and_then(summary_of))
}

fn done(code: Option<i16>) -> ShareStateResponse {
    ShareStateResponse::Done(code.ok_or(NO_PART).and_then(refused))
}

fn refused(code: i16) -> Result<(), ShareStateRefusal> {
    match ErrorCode::from_code(code) {
        ErrorCode::None => Ok(()),
        code => Err(code.into()),
    }
}

/// Sets a share-partition up.
pub fn initialize_request(
    key: &SharePartitionKey,
    state_epoch: i32,
    start_offset: Offset,
) -> initialize::InitializeShareGroupStateRequest {
    let partition = initialize::PartitionData {
        partition: key.partition.get(),
        state_epoch,
        start_offset: start_offset.get(),
        ..Default::default()
    };
    let topic = initialize::InitializeStateData {
        topic_id: key.topic,
        partitions: vec![partition],
        ..Default::default()
    };
    initialize::InitializeShareGroupStateRequest {
        group_id: Str::from(&key.group),
        topics: vec![topic],
        ..Default::default()
    }
}

/// Asks for the whole state, as the partition's leader of this epoch.
pub fn read_request(key: &SharePartitionKey, leader_epoch: LeaderEpoch) -> read::ReadShareGroupStateRequest {
    let partition = read::PartitionData {
        partition: key.partition.get(),
        leader_epoch: leader_epoch.get(),
        ..Default::default()
    };
    let topic =
        read::ReadStateData { topic_id: key.topic, partitions: vec![partition], ..Default::default() };
    read::ReadShareGroupStateRequest {
        group_id: Str::from(&key.group),
        topics: vec![topic],
        ..Default::default()
    }
}

/// Writes down what has changed. `None`: the request is no [`ShareStateRequest::Write`].
pub fn write_request(request: ShareStateRequest, version: i16) -> Option<write::WriteShareGroupStateRequest> {
    let ShareStateRequest::Write {
        key,
        state_epoch,
        leader_epoch,
        start_offset,
        delivery_complete_count,
        batches,
    } = request
    else {
        return None;
    };
    let batch = |batch: StateBatch| write::StateBatch {
        first_offset: batch.first.get(),
        last_offset: batch.last.get(),
        delivery_state: batch.delivery_state,
        delivery_count: batch.delivery_count,
        ..Default::default()
    };
    let mut partition = write::PartitionData {
        partition: key.partition.get(),
        state_epoch,
        leader_epoch: leader_epoch.get(),
        start_offset: start_offset.get(),
        state_batches: batches.into_iter().map(batch).collect(),
        ..Default::default()
    };
    if version >= COUNT_SINCE {
        partition.delivery_complete_count = delivery_complete_count;
    }
    let topic =
        write::WriteStateData { topic_id: key.topic, partitions: vec![partition], ..Default::default() };
    Some(write::WriteShareGroupStateRequest {
        group_id: Str::from(&key.group),
        topics: vec![topic],
        ..Default::default()
    })
}

/// Ends a share-partition.
pub fn delete_request(key: &SharePartitionKey) -> delete::DeleteShareGroupStateRequest {
    let partition = delete::PartitionData { partition: key.partition.get(), ..Default::default() };
    let topic =
        delete::DeleteStateData { topic_id: key.topic, partitions: vec![partition], ..Default::default() };
    delete::DeleteShareGroupStateRequest {
        group_id: Str::from(&key.group),
        topics: vec![topic],
        ..Default::default()
    }
}

/// Asks for the position.
pub fn summary_request(key: &SharePartitionKey) -> summary::ReadShareGroupStateSummaryRequest {
    let partition = summary::PartitionData {
        partition: key.partition.get(),
        leader_epoch: LeaderEpoch::NONE.get(),
        ..Default::default()
    };
    let topic = summary::ReadStateSummaryData {
        topic_id: key.topic,
        partitions: vec![partition],
        ..Default::default()
    };
    summary::ReadShareGroupStateSummaryRequest {
        group_id: Str::from(&key.group),
        topics: vec![topic],
        ..Default::default()
    }
}

/// What the answer does not say (epochs of snapshots, times) is the coordinator's own business.
fn state(part: read_said::PartitionResult) -> Result<Arc<ShareState>, ShareStateRefusal> {
    refused(part.error_code)?;
    let batch = |batch: read_said::StateBatch| StateBatch {
        first: Offset(batch.first_offset),
        last: Offset(batch.last_offset),
        delivery_state: batch.delivery_state,
        delivery_count: batch.delivery_count,
    };
    Ok(Arc::new(ShareState {
        snapshot_epoch: 0,
        state_epoch: part.state_epoch,
        leader_epoch: LeaderEpoch::NONE,
        newest_leader_epoch: LeaderEpoch::NONE,
        start_offset: Offset(part.start_offset),
        delivery_complete_count: -1,
        batches: part.state_batches.into_iter().map(batch).collect(),
        created: TimestampMs(0),
        written: TimestampMs(0),
    }))
}

fn summary_of(part: summary_said::PartitionResult) -> Result<ShareStateSummary, ShareStateRefusal> {
    refused(part.error_code)?;
    Ok(ShareStateSummary {
        state_epoch: part.state_epoch,
        leader_epoch: LeaderEpoch(part.leader_epoch),
        start_offset: Offset(part.start_offset),
        delivery_complete_count: part.delivery_complete_count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{PartitionIndex, Uuid};

    fn key() -> SharePartitionKey {
        SharePartitionKey { group: "g".into(), topic: Uuid([3; 16]), partition: PartitionIndex(4) }
    }

    fn write(version: i16) -> write::PartitionData {
        let batch = StateBatch { first: Offset(7), last: Offset(9), delivery_state: 2, delivery_count: 5 };
        let request = ShareStateRequest::Write {
            key: key(),
            state_epoch: 1,
            leader_epoch: LeaderEpoch(2),
            start_offset: Offset(6),
            delivery_complete_count: 3,
            batches: vec![batch],
        };
        let request = write_request(request, version).expect("it is a write");
        let [topic] = &request.topics[..] else { panic!("{request:?}") };
        assert_eq!((&*request.group_id, topic.topic_id), ("g", Uuid([3; 16])));
        topic.partitions[0].clone()
    }

    #[test]
    fn write_counts_done_records_from_version_1_on() {
        let part = write(1);
        assert_eq!((part.partition, part.state_epoch, part.leader_epoch), (4, 1, 2));
        assert_eq!((part.start_offset, part.delivery_complete_count), (6, 3));
        let batch = &part.state_batches[0];
        assert_eq!((batch.first_offset, batch.last_offset), (7, 9));
        assert_eq!((batch.delivery_state, batch.delivery_count), (2, 5));
        assert_eq!(write(0).delivery_complete_count, -1, "the schema's default");
    }

    #[test]
    fn summary_request_has_no_leader_epoch() {
        let topic = &summary_request(&key()).topics[0];
        assert_eq!((topic.partitions[0].partition, topic.partitions[0].leader_epoch), (4, -1));
        assert_eq!(read_request(&key(), LeaderEpoch(8)).topics[0].partitions[0].leader_epoch, 8);
    }

    #[test]
    fn answer_without_its_part_is_an_unknown_error() {
        let unknown = ErrorCode::UnknownServerError;
        for answer in [
            initialized(Default::default()),
            written(Default::default()),
            deleted(Default::default()),
            state_read(Default::default()),
            summary_read(Default::default()),
        ] {
            let code = match answer {
                ShareStateResponse::Done(result) => result.unwrap_err().code,
                ShareStateResponse::Read(result) => result.unwrap_err().code,
                ShareStateResponse::Summary(result) => result.unwrap_err().code,
            };
            assert_eq!(code, unknown);
        }
    }

    #[test]
    fn state_is_read_unless_it_is_refused() {
        let part = |error_code| read_said::PartitionResult {
            error_code,
            state_epoch: 5,
            start_offset: 11,
            state_batches: vec![read_said::StateBatch {
                first_offset: 12,
                last_offset: 13,
                delivery_state: 4,
                delivery_count: 1,
                ..Default::default()
            }],
            ..Default::default()
        };
        let answer = |error_code| {
            let topic =
                read_said::ReadStateResult { partitions: vec![part(error_code)], ..Default::default() };
            state_read(ReadShareGroupStateResponse { results: vec![topic], ..Default::default() })
        };
        let ShareStateResponse::Read(Ok(state)) = answer(0) else { panic!("{:?}", answer(0)) };
        assert_eq!((state.state_epoch, state.start_offset), (5, Offset(11)));
        let batch = StateBatch { first: Offset(12), last: Offset(13), delivery_state: 4, delivery_count: 1 };
        assert_eq!(state.batches, [batch]);
        let fenced = ErrorCode::FencedLeaderEpoch;
        assert_eq!(answer(fenced.code()), ShareStateResponse::Read(Err(fenced.into())));
    }
}
