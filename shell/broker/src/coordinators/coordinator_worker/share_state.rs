//! Shards of the share coordinator, as [`Host`](super::host::Host) sees them, and the deletion of what they need no
//! more.

use super::host::{Handled, Hosted, Step};
use crate::mailbox::{AskItem, PartitionKey, Question, ShareStateAsk, Standing};
use crate::node::Node;
use crate::routing::owners;
use barnabas_base::{ErrorCode, LeaderEpoch, MonotonicMs, Offset};
use barnabas_coordinator::{
    BatchId, Contents, LoadError, Now, Room, ShareStateEffect, ShareStateResponse, ShareStateShard, Ticket,
    share_state_config,
};
use bytes::Bytes;
use std::sync::Arc;

/// Records of the shard's own partition are to go.
#[derive(Debug)]
pub(super) struct Prune {
    before: Offset,
}

/// Begins to delete what a shard needs no more. What is not deleted now is asked for again later, with more.
pub(super) fn carry_out(node: &Arc<Node>, shard: PartitionKey, order: Prune) {
    let node = node.clone();
    tokio::task::spawn_local(async move {
        let question = Question::DeleteRecords(Some(order.before));
        let item = AskItem { slot: 0, partition: shard, leader_epoch: None, question };
        let outcomes = owners::ask(&node, vec![item]).await.all().await;
        for declined in outcomes.into_iter().filter_map(|outcome| outcome.result.err()) {
            let partition = shard.partition;
            tracing::debug!(%partition, code = ?declined.code(), "redundant share group state stays for now");
        }
    });
}

impl Hosted for ShareStateShard {
    const TOPIC: &'static str = barnabas_base::name::SHARE_GROUP_STATE;
    const LOADS_UNASKED: bool = false;
    const WANTS_PLACES: bool = true;
    type Command = ShareStateAsk;
    type Response = ShareStateResponse;
    type Effect = ShareStateEffect;
    type Order = Prune;

    fn create(node: &Node, _led_under: LeaderEpoch) -> Self {
        let mut shard = Self::new(share_state_config(&node.cluster.config.load(), node.workers.memory_bytes));
        shard.image_changed(&node.cluster.image.load());
        shard
    }

    fn set_config(&mut self, node: &Node) {
        self.set_config(share_state_config(&node.cluster.config.load(), node.workers.memory_bytes));
    }

    fn replay(&mut self, from: Offset, bytes: Bytes) -> Result<Offset, LoadError> {
        self.replay_batches(from, bytes)
    }

    fn activate(&mut self, now: Now) -> Vec<ShareStateEffect> {
        self.activate(now)
    }

    fn handle(&mut self, command: ShareStateAsk, ticket: Ticket, now: Now) -> Handled<Self> {
        let effects = self.handle(command.request, ticket, now);
        Handled { effects, reply: command.reply, standing: Standing::Waived }
    }

    fn room(&self) -> &Room {
        self.room()
    }

    fn others_hold(&mut self, bytes: usize) {
        self.others_hold(bytes);
    }

    fn durable(&mut self, through: BatchId, base: Offset, now: Now) -> Vec<ShareStateEffect> {
        self.durable(through, base, now)
    }

    fn failed(&mut self, batch: BatchId, error: ErrorCode, now: Now) -> Vec<ShareStateEffect> {
        self.failed(batch, error, now)
    }

    fn tick(&mut self, now: Now) -> Vec<ShareStateEffect> {
        self.tick(now)
    }

    fn next_deadline(&self) -> Option<MonotonicMs> {
        self.next_deadline()
    }

    fn unload(self) -> Vec<ShareStateEffect> {
        self.unload()
    }

    fn step(effect: ShareStateEffect) -> Step<Self> {
        match effect {
            ShareStateEffect::Append { batch, records } => Step::Append(batch, Contents::Records(records)),
            ShareStateEffect::Answer { ticket, response } => Step::Answer(ticket, response),
            ShareStateEffect::Prune { before } => Step::Order(Prune { before }),
        }
    }

    fn refuse(command: ShareStateAsk, error: ErrorCode) {
        let refusal = command.request.refuse(error);
        // The caller may be gone.
        let _ = command.reply.send(refusal);
    }

    fn refuse_while_loading(command: ShareStateAsk) {
        Self::refuse(command, ErrorCode::CoordinatorLoadInProgress);
    }
}
