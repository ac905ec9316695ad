//! Shards of the group coordinator, as [`Host`](super::host::Host) sees them.

use super::host::{Handled, Hosted, Step};
use super::random::Randoms;
use crate::mailbox::{Command, GroupCommand, PartitionKey};
use crate::node::Node;
use crate::routing::share_persister;
use barnabas_base::{ErrorCode, LeaderEpoch, MonotonicMs, Offset};
use barnabas_coordinator::{
    BatchId, Caller, Contents, Effect, GroupShard, Job, LoadError, Now, Response, Room, ShareStateOrder,
    Ticket, group_config,
};
use bytes::Bytes;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    static RANDOMS: RefCell<Randoms> = RefCell::default();
}

/// What a shard asks of others.
#[derive(Debug)]
pub(super) enum GroupOrder {
    Compute(Box<Job>),
    ShareState(ShareStateOrder),
}

/// Begins to bring an order to the share coordinator; what comes of it arrives in the mailbox of the shard's worker.
pub(super) fn carry_out(node: &Arc<Node>, shard: PartitionKey, order: ShareStateOrder) {
    let node = node.clone();
    tokio::task::spawn_local(async move {
        let done = share_persister::carry_out(&node, order).await;
        node.workers.owner(shard).send(Command::GroupShareStateDone(shard, done)).await;
    });
}

impl Hosted for GroupShard {
    const TOPIC: &'static str = barnabas_base::name::CONSUMER_OFFSETS;
    const LOADS_UNASKED: bool = false;
    const WANTS_PLACES: bool = false;
    type Command = GroupCommand;
    type Response = Response;
    type Effect = Effect;
    type Order = GroupOrder;

    fn create(node: &Node, _led_under: LeaderEpoch) -> Self {
        let mut shard = Self::new(group_config(
            &node.cluster.config.load(),
            &node.cluster.image.load(),
            node.workers.memory_bytes,
        ));
        shard.image_changed(&node.cluster.image.load(), None, true);
        shard
    }

    fn set_config(&mut self, node: &Node) {
        self.set_config(group_config(
            &node.cluster.config.load(),
            &node.cluster.image.load(),
            node.workers.memory_bytes,
        ));
    }

    fn replay(&mut self, _from: Offset, bytes: Bytes) -> Result<Offset, LoadError> {
        self.replay_batches(bytes)
    }

    fn activate(&mut self, now: Now) -> Vec<Effect> {
        self.activate(now)
    }

    fn handle(&mut self, command: GroupCommand, ticket: Ticket, now: Now) -> Handled<Self> {
        let caller = Caller {
            client_id: &command.client_id,
            client_host: &command.client_host,
            version: command.version,
            connection: command.connection,
            random: RANDOMS.with_borrow_mut(Randoms::next),
            room: command.room,
        };
        let mut effects = self.handle(&caller, command.request, ticket, now);
        if let Some(describable) = command.describable {
            for effect in &mut effects {
                if let Effect::Compute(job) = effect {
                    job.show_only(describable.clone());
                }
            }
        }
        Handled { effects, reply: command.reply, standing: command.standing }
    }

    fn room(&self) -> &Room {
        self.room()
    }

    fn others_hold(&mut self, bytes: usize) {
        self.others_hold(bytes);
    }

    fn durable(&mut self, through: BatchId, _base: Offset, now: Now) -> Vec<Effect> {
        self.durable(through, now)
    }

    fn failed(&mut self, batch: BatchId, error: ErrorCode, now: Now) -> Vec<Effect> {
        self.failed(batch, error, now)
    }

    fn tick(&mut self, now: Now) -> Vec<Effect> {
        self.tick(now)
    }

    fn next_deadline(&self) -> Option<MonotonicMs> {
        self.next_deadline()
    }

    fn unload(self) -> Vec<Effect> {
        self.unload()
    }

    fn step(effect: Effect) -> Step<Self> {
        match effect {
            Effect::Append { batch, records } => Step::Append(batch, Contents::Records(records)),
            Effect::AppendInTransaction { batch, producer, records } => {
                Step::Append(batch, Contents::InTransaction(producer, records))
            }
            Effect::AppendMarker { batch, end } => Step::Append(batch, Contents::Marker(end)),
            Effect::Compute(job) => Step::Order(GroupOrder::Compute(job)),
            Effect::ShareState(order) => Step::Order(GroupOrder::ShareState(order)),
            Effect::Answer { ticket, response } => Step::Answer(ticket, response),
        }
    }

    fn refuse(command: GroupCommand, error: ErrorCode) {
        let refusal = command.request.refuse(error);
        // A connection that is gone does not hear its answer.
        let _ = command.reply.send(refusal);
    }

    fn refuse_while_loading(command: GroupCommand) {
        let refusal = command.request.refuse_while_loading();
        let _ = command.reply.send(refusal);
    }
}
