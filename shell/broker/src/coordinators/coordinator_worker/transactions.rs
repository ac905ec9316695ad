//! Shards of the transaction coordinator, as [`Host`](super::host::Host) sees them, and what they ask of others:
//! markers and producer ids. Both are brought by tasks of the worker's thread, and what came of them arrives in its
//! mailbox.

use super::host::{Handled, Hosted, Step};
use crate::coordinators::markers;
use crate::mailbox::{
    Command, PartitionKey, Standing, ToTransactionShard, TransactionAsk, TransactionCommand,
};
use crate::node::Node;
use barnabas_base::{CoordinatorEpoch, ErrorCode, LeaderEpoch, MonotonicMs, Offset};
use barnabas_coordinator::{
    BatchId, Contents, LoadError, MarkerOrder, Now, Room, Ticket, TransactionEffect, TransactionResponse,
    TransactionShard, transaction_config,
};
use bytes::Bytes;
use std::sync::Arc;

/// Producer ids brought at once.
const IDS: usize = 8;

/// What a shard asks of others.
#[derive(Debug)]
pub(super) enum Order {
    Markers(MarkerOrder),
    ProducerIds,
}

/// Begins what a shard asked for.
pub(super) fn carry_out(node: &Arc<Node>, shard: PartitionKey, order: Order) {
    let node = node.clone();
    tokio::task::spawn_local(async move {
        match order {
            Order::Markers(order) => markers::bring_ordered(&node, shard, order).await,
            Order::ProducerIds => {
                let what = ToTransactionShard::ProducerIds(producer_ids(&node).await);
                node.workers
                    .owner(shard)
                    .send(Command::Transaction(TransactionCommand { shard, what }))
                    .await;
            }
        }
    });
}

async fn producer_ids(node: &Node) -> Result<Vec<barnabas_base::ProducerId>, ErrorCode> {
    let mut ids = Vec::with_capacity(IDS);
    while ids.len() < IDS {
        match node.peers.producer_ids.next(node).await {
            Ok(id) => ids.push(id),
            Err(error) if ids.is_empty() => return Err(error),
            Err(_) => break,
        }
    }
    Ok(ids)
}

impl Hosted for TransactionShard {
    const TOPIC: &'static str = barnabas_base::name::TRANSACTION_STATE;
    const LOADS_UNASKED: bool = true;
    const WANTS_PLACES: bool = false;
    type Command = TransactionAsk;
    type Response = TransactionResponse;
    type Effect = TransactionEffect;
    type Order = Order;

    fn create(node: &Node, led_under: LeaderEpoch) -> Self {
        Self::new(
            transaction_config(
                &node.cluster.config.load(),
                &node.cluster.image.load(),
                node.workers.memory_bytes,
            ),
            CoordinatorEpoch(led_under.get()),
        )
    }

    fn set_config(&mut self, node: &Node) {
        self.set_config(transaction_config(
            &node.cluster.config.load(),
            &node.cluster.image.load(),
            node.workers.memory_bytes,
        ));
    }

    fn replay(&mut self, from: Offset, bytes: Bytes) -> Result<Offset, LoadError> {
        self.replay_batches(from, bytes)
    }

    fn activate(&mut self, now: Now) -> Vec<TransactionEffect> {
        self.activate(now)
    }

    fn handle(&mut self, command: TransactionAsk, ticket: Ticket, now: Now) -> Handled<Self> {
        let effects = self.handle(command.caller, command.request, ticket, now);
        Handled { effects, reply: command.reply, standing: Standing::Waived }
    }

    fn room(&self) -> &Room {
        self.room()
    }

    fn others_hold(&mut self, bytes: usize) {
        self.others_hold(bytes);
    }

    fn durable(&mut self, through: BatchId, _base: Offset, now: Now) -> Vec<TransactionEffect> {
        self.durable(through, now)
    }

    fn failed(&mut self, batch: BatchId, error: ErrorCode, now: Now) -> Vec<TransactionEffect> {
        self.failed(batch, error, now)
    }

    fn tick(&mut self, now: Now) -> Vec<TransactionEffect> {
        self.tick(now)
    }

    fn next_deadline(&self) -> Option<MonotonicMs> {
        self.next_deadline()
    }

    fn unload(self) -> Vec<TransactionEffect> {
        self.unload()
    }

    fn step(effect: TransactionEffect) -> Step<Self> {
        match effect {
            TransactionEffect::Append { batch, records } => Step::Append(batch, Contents::Records(records)),
            TransactionEffect::Answer { ticket, response } => Step::Answer(ticket, response),
            TransactionEffect::WriteMarkers(order) => Step::Order(Order::Markers(order)),
            TransactionEffect::AllocateProducerIds => Step::Order(Order::ProducerIds),
        }
    }

    fn refuse(command: TransactionAsk, error: ErrorCode) {
        let refusal = command.request.refuse(error);
        // The caller may be gone.
        let _ = command.reply.send(refusal);
    }

    fn refuse_while_loading(command: TransactionAsk) {
        Self::refuse(command, ErrorCode::CoordinatorLoadInProgress);
    }
}
