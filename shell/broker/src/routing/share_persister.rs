//! Where the state of share-partitions is kept: each question to the shard of the share coordinator that looks after
//! the share-partition, wherever that is.
//!
//! A question to a shard of this node is a message to the worker that owns its partition of `__share_group_state`; one
//! to a shard that another broker leads goes there over a link (keys 83 to 87, share_persister/remote.rs).
//!
//! Errors that may pass (no topic yet, no leader, a shard that moves) are retried for a while before they are
//! returned. Requests for one share-partition reach the shard in the order in which they began, unless one is
//! retried: callers that need an order send one after the other.
//!
//! Asked by: partition_worker/share (read, write), requests/share/groups.rs (initialize, delete, summaries).
//! After: coordinator_worker.rs, core/coordinator/src/share_state/shard.rs, core/coordinator/src/share_state/retry.rs.
//!
//! # Source
//! Kafka 4.4 `DefaultStatePersister`, `PersisterStateManager`.

mod ends;
mod remote;

pub use ends::{ends_of, log_ends};

use crate::mailbox::{Command, PartitionKey, ShareStateAsk, ShareStateCommand};
use crate::node::Node;
use barnabas_api::share_state;
use barnabas_base::{BrokerId, ErrorCode, LeaderEpoch, Offset, name};
use barnabas_coordinator::{
    SharePartitionKey, ShareState, ShareStateDone, ShareStateOrder, ShareStateRequest, ShareStateResponse,
    ShareStateRetry, ShareStateSummary, ShareStateWork, StateBatch,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Share-partitions that are asked about at the same time for one request.
const AT_ONCE: usize = 100;

/// What a share-partition's leader writes down.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteState {
    /// As `read` gave it.
    pub state_epoch: i32,
    /// Of the partition's leader, who writes.
    pub leader_epoch: LeaderEpoch,
    pub start_offset: Offset,
    /// Records from the start offset on that are acknowledged or archived; −1: not known.
    pub delivery_complete_count: i32,
    /// What has changed since the last write. Batches may overlap older ones: the higher delivery count holds, then the
    /// higher state.
    pub batches: Vec<StateBatch>,
}

/// Sets a share-partition up: nothing of it is delivered. `start_offset` of [`Offset::NONE`]: its leader decides where
/// it begins.
///
/// # Errors
/// FENCED_STATE_EPOCH: it was set up again since. UNKNOWN_TOPIC_OR_PARTITION: there is no such partition (any more).
/// Else what stands in the way of the share coordinator.
pub async fn initialize(
    node: &Node,
    key: SharePartitionKey,
    state_epoch: i32,
    start_offset: Offset,
) -> Result<(), ErrorCode> {
    done(ask(node, ShareStateRequest::Initialize { key, state_epoch, start_offset }).await)
}

/// The state, for the leader of the partition; earlier leader epochs can no longer write. Its `state_epoch` is the
/// one that `write` has to pass. A start offset of [`Offset::NONE`]: the reader decides where to begin
/// (`share.auto.offset.reset`).
///
/// # Errors
/// FENCED_LEADER_EPOCH: the partition has a newer leader epoch. INVALID_REQUEST: it is not initialized. Else as for
/// [`initialize`].
pub async fn read(
    node: &Node,
    key: SharePartitionKey,
    leader_epoch: LeaderEpoch,
) -> Result<Arc<ShareState>, ErrorCode> {
    match ask(node, ShareStateRequest::Read { key, leader_epoch }).await {
        ShareStateResponse::Read(Ok(state)) => Ok(state),
        ShareStateResponse::Read(Err(refusal)) => Err(refusal.code),
        _ => Err(ErrorCode::UnknownServerError),
    }
}

/// Writes down what has changed; done when it is on disk.
///
/// # Errors
/// FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH: read the state again, or the partition has a newer leader.
/// INVALID_REQUEST: it is not initialized. Else as for [`initialize`].
pub async fn write(node: &Node, key: SharePartitionKey, write: WriteState) -> Result<(), ErrorCode> {
    let WriteState { state_epoch, leader_epoch, start_offset, delivery_complete_count, batches } = write;
    let request = ShareStateRequest::Write {
        key,
        state_epoch,
        leader_epoch,
        start_offset,
        delivery_complete_count,
        batches,
    };
    done(ask(node, request).await)
}

/// Ends a share-partition; also done where there is none.
///
/// # Errors
/// As for [`initialize`].
pub async fn delete(node: &Node, key: SharePartitionKey) -> Result<(), ErrorCode> {
    done(ask(node, ShareStateRequest::Delete { key }).await)
}

/// The position of a share-partition, without its batches. A start offset of [`Offset::NONE`]: no member has read
/// from it, or it is not initialized.
///
/// # Errors
/// As for [`initialize`].
pub async fn read_summary(node: &Node, key: SharePartitionKey) -> Result<ShareStateSummary, ErrorCode> {
    match ask(node, ShareStateRequest::ReadSummary { key }).await {
        ShareStateResponse::Summary(Ok(summary)) => Ok(summary),
        ShareStateResponse::Summary(Err(refusal)) => Err(refusal.code),
        _ => Err(ErrorCode::UnknownServerError),
    }
}

/// As [`read_summary`], of many, in their order.
pub async fn read_summaries(
    node: &Arc<Node>,
    keys: Vec<SharePartitionKey>,
) -> Vec<Result<ShareStateSummary, ErrorCode>> {
    let of = |node: Arc<Node>, key| async move { read_summary(&node, key).await };
    each(node, keys, of)
        .await
        .into_iter()
        .map(|summary| summary.unwrap_or(Err(ErrorCode::NotCoordinator)))
        .collect()
}

/// Carries out what a share group asks for, and says what came of each share-partition.
pub async fn carry_out(node: &Arc<Node>, order: ShareStateOrder) -> ShareStateDone {
    let ShareStateOrder { number, work } = order;
    let (keys, results) = match work {
        ShareStateWork::Initialize { state_epoch, starts } => {
            let keys = starts.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
            let of = move |node: Arc<Node>, (key, start): (SharePartitionKey, Offset)| async move {
                initialize(&node, key, state_epoch, start).await
            };
            (keys, each(node, starts, of).await)
        }
        ShareStateWork::Delete(keys) => {
            let of = |node: Arc<Node>, key| async move { delete(&node, key).await };
            (keys.clone(), each(node, keys, of).await)
        }
    };
    let codes = results.into_iter().map(|result| match result {
        Some(Ok(())) => ErrorCode::None,
        Some(Err(code)) => code,
        None => ErrorCode::NotCoordinator,
    });
    ShareStateDone { number, outcomes: keys.into_iter().zip(codes).collect() }
}

/// Does the same for each of many, [`AT_ONCE`] of them at a time. `None`: it was broken off.
async fn each<T, R: 'static, F: Future<Output = R> + 'static>(
    node: &Arc<Node>,
    items: Vec<T>,
    of: impl Fn(Arc<Node>, T) -> F,
) -> Vec<Option<R>> {
    let mut results = Vec::with_capacity(items.len());
    let mut items = items.into_iter();
    loop {
        let begun: Vec<_> = items
            .by_ref()
            .take(AT_ONCE)
            .map(|item| tokio::task::spawn_local(of(node.clone(), item)))
            .collect();
        if begun.is_empty() {
            return results;
        }
        for task in begun {
            results.push(task.await.ok());
        }
    }
}

fn done(response: ShareStateResponse) -> Result<(), ErrorCode> {
    match response {
        ShareStateResponse::Done(result) => result.map_err(|refusal| refusal.code),
        _ => Err(ErrorCode::UnknownServerError),
    }
}

/// Asks until there is an answer that counts.
async fn ask(node: &Node, request: ShareStateRequest) -> ShareStateResponse {
    let mut retry = ShareStateRetry::default();
    loop {
        let response = ask_once(node, request.clone()).await;
        let Some(pause) = retry.pause_after(&response) else { return response };
        tokio::time::sleep(Duration::from_millis(pause.0.unsigned_abs())).await;
    }
}

/// Sends the request to the shard's current leader, and returns any answer.
pub async fn ask_once(node: &Node, request: ShareStateRequest) -> ShareStateResponse {
    match place(node, &request) {
        Ok((_, BrokerId::NONE)) => request.refuse(ErrorCode::CoordinatorNotAvailable),
        Ok((shard, leader)) if leader == node.identity.broker_id => ask_shard(node, shard, request).await,
        Ok((_, leader)) => remote::ask(node, leader, request).await,
        Err(code) => request.refuse(code),
    }
}

/// Sends another broker's request to a shard of this node, and returns any answer: the other broker retries.
pub async fn ask_here(node: &Node, request: ShareStateRequest) -> ShareStateResponse {
    match place(node, &request) {
        Ok((shard, leader)) if leader == node.identity.broker_id => ask_shard(node, shard, request).await,
        Ok(_) => request.refuse(ErrorCode::NotCoordinator),
        Err(code) => request.refuse(code),
    }
}

async fn ask_shard(node: &Node, shard: PartitionKey, request: ShareStateRequest) -> ShareStateResponse {
    let (reply, answer) = oneshot::channel();
    let gone = request.refuse(ErrorCode::NotCoordinator);
    let command = ShareStateCommand { shard, ask: ShareStateAsk { request, reply } };
    node.workers.owner(shard).send(Command::ShareState(command)).await;
    // The worker has ended: the node is stopping.
    answer.await.unwrap_or(gone)
}

/// The shard that is to be asked, and who leads it. Where the topic is missing it is asked for.
fn place(node: &Node, request: &ShareStateRequest) -> Result<(PartitionKey, BrokerId), ErrorCode> {
    let image = node.cluster.image.load();
    let Some(topic) = image.topics.id_of(name::SHARE_GROUP_STATE) else {
        let create = share_state::creation(&image, &node.cluster.config.load(), node.identity.broker_id);
        node.peers.controller.auto_create(create, None);
        return Err(ErrorCode::CoordinatorNotAvailable);
    };
    let (partition, leader) = share_state::coordinated_by(&request.key().coordinator_key(), &image)?;
    Ok((PartitionKey { topic, partition }, leader))
}
