//! Questions about share-partitions to shards that another broker leads (keys 83 to 87), one share-partition at a time,
//! several under way on one connection. They arrive in the order in which they are sent.
//!
//! After a lost connection it is unknown whether a request was executed, and each may be sent again: a repeated
//! write has the same outcome, as the writer waits for one answer before the next write.
//!
//! Source: Kafka 4.4 `PersisterStateManager`.

use crate::node::Node;
use crate::node::peers::broker_links::Purpose;
use crate::routing::broker_requests::{patience, while_there};
use barnabas_base::{BrokerId, ErrorCode, LeaderEpoch, Offset, TimestampMs};
use barnabas_coordinator::{
    SharePartitionKey, ShareState, ShareStateRefusal, ShareStateRequest, ShareStateResponse,
    ShareStateSummary, StateBatch,
};
use barnabas_net::links::{Link, LinkError};
use barnabas_wire::messages::{
    delete_share_group_state_request as delete, initialize_share_group_state_request as initialize,
    read_share_group_state_request as read, read_share_group_state_response as read_said,
    read_share_group_state_summary_request as summary,
    read_share_group_state_summary_response as summary_said, write_share_group_state_request as write,
};
use barnabas_wire::{Request, Str};
use std::sync::Arc;

/// From this version on WriteShareGroupState says how many records are done with.
const COUNT_SINCE: i16 = 1;

/// Sends the request to the broker that leads the shard, and returns any answer. NETWORK_EXCEPTION: unknown outcome.
pub async fn ask(node: &Node, broker: BrokerId, request: ShareStateRequest) -> ShareStateResponse {
    let Some(link) = node.peers.broker_links.to(node, broker, Purpose::ShareState) else {
        return request.refuse(ErrorCode::CoordinatorNotAvailable);
    };
    let _counted = node.peers.broker_links.awaited(Purpose::ShareState).begin();
    let unheard = request.refuse(ErrorCode::NetworkException);
    match while_there(node, (broker, Purpose::ShareState), ask_over(node, link, request)).await {
        Some(Ok(said)) => said,
        Some(Err(error)) => {
            tracing::debug!(%error, "a share coordinator did not answer");
            unheard
        }
        None => unheard,
    }
}

async fn ask_over(
    node: &Node,
    link: Link,
    request: ShareStateRequest,
) -> Result<ShareStateResponse, LinkError> {
    match request {
        ShareStateRequest::Initialize { key, state_epoch, start_offset } => done(
            send(node, &link, move |_| initialize_request(&key, state_epoch, start_offset)).await,
            |said| {
                let part = said.results.into_iter().next()?.partitions.into_iter().next()?;
                Some(part.error_code)
            },
        ),
        ShareStateRequest::Read { key, leader_epoch } => {
            send(node, &link, move |_| read_request(&key, leader_epoch)).await.map(|said| {
                let part =
                    said.results.into_iter().next().and_then(|topic| topic.partitions.into_iter().next());
                ShareStateResponse::Read(part.ok_or(NOTHING_SAID).and_then(state))
            })
        }
        write @ ShareStateRequest::Write { .. } => {
            done(send(node, &link, move |version| write_request(write, version)).await, |said| {
                let part = said.results.into_iter().next()?.partitions.into_iter().next()?;
                Some(part.error_code)
            })
        }
        ShareStateRequest::Delete { key } => {
            done(send(node, &link, move |_| delete_request(&key)).await, |said| {
                let part = said.results.into_iter().next()?.partitions.into_iter().next()?;
                Some(part.error_code)
            })
        }
        ShareStateRequest::ReadSummary { key } => {
            send(node, &link, move |_| summary_request(&key)).await.map(|said| {
                let part =
                    said.results.into_iter().next().and_then(|topic| topic.partitions.into_iter().next());
                ShareStateResponse::Summary(part.ok_or(NOTHING_SAID).and_then(summary_of))
            })
        }
    }
}

/// An answer without the part that was asked for.
const NOTHING_SAID: ShareStateRefusal = ShareStateRefusal { code: ErrorCode::UnknownServerError, why: None };

async fn send<R: Request + Send + 'static>(
    node: &Node,
    link: &Link,
    make: impl FnOnce(i16) -> R + Send + 'static,
) -> Result<R::Response, LinkError> {
    link.send_with(patience(node), |version| Some(make(version))).await
}

fn done<S>(
    said: Result<S, LinkError>,
    code: impl FnOnce(S) -> Option<i16>,
) -> Result<ShareStateResponse, LinkError> {
    said.map(|said| ShareStateResponse::Done(code(said).ok_or(NOTHING_SAID).and_then(refused)))
}

fn refused(code: i16) -> Result<(), ShareStateRefusal> {
    match ErrorCode::from_code(code) {
        ErrorCode::None => Ok(()),
        code => Err(code.into()),
    }
}

fn initialize_request(
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

fn read_request(key: &SharePartitionKey, leader_epoch: LeaderEpoch) -> read::ReadShareGroupStateRequest {
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

/// What is no write makes an empty request.
fn write_request(request: ShareStateRequest, version: i16) -> write::WriteShareGroupStateRequest {
    let ShareStateRequest::Write {
        key,
        state_epoch,
        leader_epoch,
        start_offset,
        delivery_complete_count,
        batches,
    } = request
    else {
        return write::WriteShareGroupStateRequest::default();
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
    write::WriteShareGroupStateRequest {
        group_id: Str::from(&key.group),
        topics: vec![topic],
        ..Default::default()
    }
}

fn delete_request(key: &SharePartitionKey) -> delete::DeleteShareGroupStateRequest {
    let partition = delete::PartitionData { partition: key.partition.get(), ..Default::default() };
    let topic =
        delete::DeleteStateData { topic_id: key.topic, partitions: vec![partition], ..Default::default() };
    delete::DeleteShareGroupStateRequest {
        group_id: Str::from(&key.group),
        topics: vec![topic],
        ..Default::default()
    }
}

fn summary_request(key: &SharePartitionKey) -> summary::ReadShareGroupStateSummaryRequest {
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
