//! Markers on their way to the partitions whose transactions they end.
//!
//! A partition of `__consumer_offsets` gets its marker from its own shard of the group coordinator, in order with that shard's
//! records; any other one by an append. Both wait in the mailbox of the partition's owner, and are answered once they are safe.
//!
//! Not here: markers for partitions that another broker leads. They are told apart in [`place`], and are tried again until
//! there is a sender for them.
//!
//! Transaction path 4 of 5. Before: coordinator_worker.rs (the node's own transactions), dispatch/transactions.rs
//! (WriteTxnMarkers). After: partition_worker.rs.

use crate::mailbox::{AppendItem, AppendOutcome, Command, GroupCommand, PartitionKey, Standing};
use crate::node::Node;
use crate::owners::{self, Gathering};
use barnabas_base::{DurationMs, ErrorCode, Text, TimestampMs, TopicPartition, name};
use barnabas_coordinator::{EndTransaction, MarkerOrder, MarkerOutcome, Producer, Request, Response};
use barnabas_partition::{Acks, Origin};
use barnabas_wire::records::{BatchError, BatchOptions, EndTxnMarker, ReadyBatch, control_batch};
use tokio::sync::oneshot;

/// One marker for one partition that is led here.
#[derive(Debug, Clone, Copy)]
pub struct Marker {
    pub partition: PartitionKey,
    /// A partition of `__consumer_offsets`.
    pub is_of_groups: bool,
    pub end: EndTransaction,
}

/// The marker's batch.
///
/// # Errors
/// Only what the builder says.
pub fn batch(end: &EndTransaction, now: TimestampMs) -> Result<ReadyBatch, BatchError> {
    let options = BatchOptions {
        producer_id: end.producer.id,
        producer_epoch: end.producer.epoch,
        transactional: true,
        ..BatchOptions::default()
    };
    let marker = EndTxnMarker { commit: end.commit, coordinator_epoch: end.coordinator_epoch };
    control_batch(options, now, marker.control_type(), &marker.value()).and_then(ReadyBatch::from_bytes)
}

/// Markers that were sent, until their owners have spoken.
#[derive(Debug)]
pub struct Sent {
    /// The outcomes that are known, by the markers' order.
    outcomes: Vec<ErrorCode>,
    appended: Gathering<AppendOutcome>,
    by_groups: Vec<(usize, oneshot::Receiver<Response>)>,
}

/// Sends markers to their partitions' owners, now.
pub async fn send(node: &Node, markers: &[Marker]) -> Sent {
    // What nobody says anything of may have been written, or not.
    let mut outcomes = vec![ErrorCode::NotLeaderOrFollower; markers.len()];
    let (mut items, mut by_groups) = (Vec::new(), Vec::new());
    let now = node.clock.wall();
    for (at, marker) in markers.iter().enumerate() {
        if marker.is_of_groups {
            by_groups.push((at, ask_group_shard(node, marker).await));
            continue;
        }
        match batch(&marker.end, now) {
            Ok(batch) => items.push(AppendItem {
                slot: at as u32,
                partition: marker.partition,
                origin: Origin::Coordinator,
                standing: Standing::Marker(marker.end.version.0),
                batch,
            }),
            Err(error) => {
                tracing::error!(%error, "a marker could not be put into a batch: please report this");
                outcomes[at] = ErrorCode::UnknownServerError;
            }
        }
    }
    let patience = DurationMs(node.config.load().long("request.timeout.ms"));
    let deadline = node.clock.monotonic().plus(patience);
    let appended = owners::append(node, items, Acks::All, deadline).await;
    Sent { outcomes, appended, by_groups }
}

async fn ask_group_shard(node: &Node, marker: &Marker) -> oneshot::Receiver<Response> {
    let (reply, answer) = oneshot::channel();
    let nobody = Text::from("");
    let command = GroupCommand {
        shard: marker.partition,
        request: Request::EndTransaction(marker.end),
        version: 0,
        client_id: nobody.clone(),
        client_host: nobody,
        standing: Standing::Waived,
        reply,
    };
    node.owner(marker.partition).send(Command::Group(command)).await;
    answer
}

impl Sent {
    /// What became of each marker, in the order in which they were given.
    pub async fn outcomes(self) -> Vec<ErrorCode> {
        let Self { mut outcomes, appended, by_groups } = self;
        for outcome in appended.all().await {
            outcomes[outcome.slot as usize] = match outcome.result {
                Ok(_) => ErrorCode::None,
                Err(declined) => declined.code(),
            };
        }
        for (at, answer) in by_groups {
            if let Ok(Response::EndTransaction(code)) = answer.await {
                outcomes[at] = code;
            }
        }
        outcomes
    }
}

/// Writes the markers that a transaction coordinator of this node ordered.
pub async fn write_ordered(node: &Node, order: &MarkerOrder) -> Vec<(TopicPartition, MarkerOutcome)> {
    let end = EndTransaction {
        producer: Producer { id: order.producer_id, epoch: order.producer_epoch },
        commit: order.commit,
        coordinator_epoch: order.ticket.coordinator_epoch,
        version: order.version,
    };
    let (mut done, mut markers, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for partition in &order.partitions {
        match place(node, partition) {
            Ok(key) => {
                let is_of_groups = *partition.topic == *name::CONSUMER_OFFSETS;
                markers.push(Marker { partition: key, is_of_groups, end });
                names.push(partition.clone());
            }
            Err(outcome) => done.push((partition.clone(), outcome)),
        }
    }
    let outcomes = send(node, &markers).await.outcomes().await;
    done.extend(names.into_iter().zip(outcomes.into_iter().map(|code| match code {
        ErrorCode::None => MarkerOutcome::Written,
        code => MarkerOutcome::Failed(code),
    })));
    done
}

/// Where a partition is, if it is led here.
fn place(node: &Node, name: &TopicPartition) -> Result<PartitionKey, MarkerOutcome> {
    let image = node.image.load();
    let topic = image.topics.by_name(&name.topic).ok_or(MarkerOutcome::Gone)?;
    let state = topic.partition(name.partition).ok_or(MarkerOutcome::Gone)?;
    if state.leader != node.broker_id {
        return Err(MarkerOutcome::Failed(ErrorCode::LeaderNotAvailable));
    }
    Ok(PartitionKey { topic: topic.id, partition: name.partition })
}
