//! Markers on their way to the partitions whose transactions they end.
//!
//! A partition of `__consumer_offsets` gets its marker from its own shard of the group coordinator, in order with that
//! shard's records; any other one by an append. Both wait in the mailbox of the partition's owner, and are answered
//! once they are safe.
//!
//! Those for partitions that another broker leads go to it in a WriteTxnMarkers (markers/remote.rs). The shard that
//! ordered markers hears of each broker's as soon as that one has spoken, and orders those again that failed; a
//! partition that is gone needs none.
//!
//! Transaction path 4 of 5. Before: coordinator_worker.rs (the node's own transactions), requests/transactions.rs
//! (WriteTxnMarkers). After: partition_worker.rs.

mod remote;

use crate::mailbox::{
    AppendItem, AppendOutcome, Command, GroupCommand, PartitionKey, Standing, ToTransactionShard,
    TransactionCommand,
};
use crate::node::Node;
use crate::node::workers::repeated::Repeated;
use crate::routing::owners::led_under;
use crate::routing::owners::{self, Gathering};
use barnabas_base::{BrokerId, DurationMs, ErrorCode, Text, TopicPartition, name};
use barnabas_coordinator::{
    EndTransaction, MarkerOrder, MarkerOutcome, MarkerTicket, Producer, Request, Response, marker_batch,
};
use barnabas_partition::{Acks, Origin};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::oneshot;

/// One marker for one partition that is led here.
#[derive(Debug, Clone, Copy)]
pub struct Marker {
    pub partition: PartitionKey,
    /// A partition of `__consumer_offsets`.
    pub is_of_groups: bool,
    pub end: EndTransaction,
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
    // A marker without an outcome may or may not have been written.
    let mut outcomes = vec![ErrorCode::NotLeaderOrFollower; markers.len()];
    let (mut items, mut by_groups) = (Vec::new(), Vec::new());
    let now = node.clock.wall();
    for (at, marker) in markers.iter().enumerate() {
        if marker.is_of_groups {
            by_groups.push((at, ask_group_shard(node, marker).await));
            continue;
        }
        match marker_batch(&marker.end, now) {
            Ok(batch) => items.push(AppendItem {
                slot: at as u32,
                partition: marker.partition,
                origin: Origin::Coordinator,
                standing: Standing::Marker(marker.end.version.0),
                batch,
            }),
            Err(error) => {
                if let Some(unsaid) = node.workers.repeated.happened(Repeated::NoBatch) {
                    tracing::error!(%error, "a transaction marker could not be encoded. Please report this{unsaid}");
                }
                outcomes[at] = ErrorCode::UnknownServerError;
            }
        }
    }
    let patience = DurationMs(node.cluster.config.load().long("request.timeout.ms"));
    let deadline = node.clock.monotonic().plus(patience);
    let appended = owners::append(node, items, Acks::All, deadline).await;
    Sent { outcomes, appended, by_groups }
}

async fn ask_group_shard(node: &Node, marker: &Marker) -> oneshot::Receiver<Response> {
    let (reply, answer) = oneshot::channel();
    let empty = Text::from("");
    let command = GroupCommand {
        shard: marker.partition,
        request: Request::EndTransaction(marker.end),
        version: 0,
        client_id: empty.clone(),
        client_host: empty,
        connection: None,
        describable: None,
        standing: Standing::Waived,
        room: None,
        reply,
    };
    node.workers.owner(marker.partition).send(Command::Group(command)).await;
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

/// Where the partitions of an order are.
#[derive(Debug, Default)]
struct Placed {
    here: Vec<(TopicPartition, PartitionKey)>,
    remote: BTreeMap<BrokerId, Vec<TopicPartition>>,
    /// What is known without asking.
    known: Vec<(TopicPartition, MarkerOutcome)>,
}

/// Brings the markers that a transaction coordinator of this node ordered to where their partitions are led now, and
/// tells the coordinator what came of them. A coordinator that is no longer here orders nothing.
pub async fn bring_ordered(node: &Arc<Node>, shard: PartitionKey, order: MarkerOrder) {
    let coordinator_epoch = order.ticket.coordinator_epoch;
    if led_under(node, shard).is_none_or(|epoch| epoch.get() != coordinator_epoch.get()) {
        return;
    }
    let end = EndTransaction {
        producer: Producer { id: order.producer_id, epoch: order.producer_epoch },
        commit: order.commit,
        coordinator_epoch,
        version: order.version,
    };
    let Placed { here, remote, known } = place(node, order.partitions);
    let told =
        Told { node: node.clone(), shard, ticket: order.ticket, transactional_id: order.transactional_id };
    for (broker, partitions) in remote {
        let told = told.clone();
        tokio::task::spawn_local(async move {
            let outcomes = remote::bring(&told.node, shard, &end, broker, partitions).await;
            told.tell(outcomes.into_iter().map(outcome).collect()).await;
        });
    }
    let mut outcomes = known;
    if !here.is_empty() {
        let (names, markers): (Vec<TopicPartition>, Vec<Marker>) = here
            .into_iter()
            .map(|(name, partition)| {
                let is_of_groups = *name.topic == *name::CONSUMER_OFFSETS;
                (name, Marker { partition, is_of_groups, end })
            })
            .unzip();
        let codes = send(node, &markers).await.outcomes().await;
        outcomes.extend(names.into_iter().zip(codes).map(outcome));
    }
    if !outcomes.is_empty() {
        told.tell(outcomes).await;
    }
}

fn outcome((partition, code): (TopicPartition, ErrorCode)) -> (TopicPartition, MarkerOutcome) {
    let outcome = match code {
        ErrorCode::None => MarkerOutcome::Written,
        code => MarkerOutcome::Failed(code),
    };
    (partition, outcome)
}

/// Whom the outcomes of an order are for.
#[derive(Debug, Clone)]
struct Told {
    node: Arc<Node>,
    shard: PartitionKey,
    ticket: MarkerTicket,
    transactional_id: Text,
}

impl Told {
    async fn tell(&self, outcomes: Vec<(TopicPartition, MarkerOutcome)>) {
        let (ticket, transactional_id) = (self.ticket, self.transactional_id.clone());
        let what = ToTransactionShard::Markers { ticket, transactional_id, outcomes };
        let command = TransactionCommand { shard: self.shard, what };
        self.node.workers.owner(self.shard).send(Command::Transaction(command)).await;
    }
}

/// A partition that is not in the image is deleted: the leader of the transaction's coordinator has seen all of the
/// metadata from before the partition joined.
fn place(node: &Node, partitions: Vec<TopicPartition>) -> Placed {
    let image = node.cluster.image.load();
    let mut placed = Placed::default();
    for name in partitions {
        let topic = image.topics.by_name(&name.topic);
        let state = topic.and_then(|topic| Some((topic.id, topic.partition(name.partition)?.leader)));
        match state {
            None => placed.known.push((name, MarkerOutcome::Gone)),
            Some((_, BrokerId::NONE)) => {
                placed.known.push((name, MarkerOutcome::Failed(ErrorCode::LeaderNotAvailable)));
            }
            Some((topic, leader)) if leader == node.identity.broker_id => {
                let key = PartitionKey { topic, partition: name.partition };
                placed.here.push((name, key));
            }
            Some((_, leader)) => placed.remote.entry(leader).or_default().push(name),
        }
    }
    placed
}
