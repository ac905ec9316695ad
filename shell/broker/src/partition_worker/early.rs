//! Requests that come before the metadata log does: who asks knows of an election that this broker has yet to hear of.
//!
//! When leadership moves, the old leader names the new one in its very answer (KIP-951), and clients and followers are there at once:
//! often before the record of the election is. To refuse them would cost a producer its backoff (100 ms by default) and a follower its
//! own (Apache's waits a second), with everybody who waits for that follower. So they are kept for a moment, in their order, until the
//! image says something new of the partition.
//!
//! Who asks for an epoch that is not known here has certainly heard of it elsewhere. A batch names no epoch: it waits where this broker
//! has a replica that it has not led before, or where the metadata log has more than what is published; who sends to a former leader
//! only does not know better: the batch is handed on at once, or its producer told (dispatch/handing_on.rs).
//!
//! Always true:
//! 1. nothing waits longer than [`APPEND_PATIENCE`], [`READ_PATIENCE`]
//! 2. batches for one partition keep their order
//!
//! Neighbours: changes.rs, which gives roles; followers.rs and reads.rs, whose refusals are kept back here.

use super::PartitionWorker;
use crate::dispatch::handing_on;
use crate::mailbox::{AppendItem, Declined, PartitionKey, ReadCommand, ReadOutcome};
use barnabas_base::{DurationMs, LeaderEpoch, MonotonicMs};
use barnabas_partition::{Acks, Refusal, Ticket};

/// How long a batch waits: as long as Kafka's producers would before they ask again.
const APPEND_PATIENCE: DurationMs = DurationMs(100);
/// How long a fetch waits, which may be about other partitions as well.
const READ_PATIENCE: DurationMs = DurationMs(50);

/// What waits for the image.
#[derive(Debug, Default)]
pub(super) struct Early {
    appends: Vec<EarlyAppend>,
    reads: Vec<EarlyRead>,
}

/// A partition as it was when its request came.
#[derive(Debug, Clone, Copy)]
struct Before {
    key: PartitionKey,
    epoch: LeaderEpoch,
    until: MonotonicMs,
}

#[derive(Debug)]
struct EarlyAppend {
    before: Before,
    item: AppendItem,
    ticket: Ticket,
    acks: Acks,
    deadline: MonotonicMs,
}

#[derive(Debug)]
struct EarlyRead {
    before: Before,
    command: ReadCommand,
}

impl Early {
    fn is_empty(&self) -> bool {
        self.appends.is_empty() && self.reads.is_empty()
    }

    /// When the first of them has waited long enough.
    pub fn due(&self) -> Option<MonotonicMs> {
        let appends = self.appends.iter().map(|early| early.before.until);
        appends.chain(self.reads.iter().map(|early| early.before.until)).min()
    }
}

impl PartitionWorker {
    /// Keeps a batch back that comes before its partition's election does. Returns it if it does not.
    pub(super) fn hold_early(
        &mut self,
        item: AppendItem,
        ticket: Ticket,
        acks: Acks,
        deadline: MonotonicMs,
    ) -> Option<AppendItem> {
        // Nobody else leads anything: costs nothing on a node alone.
        if self.following.is_idle() || acks == Acks::None || self.closed {
            return Some(item);
        }
        let Some(replica) = self.replicas.get(&item.partition) else { return Some(item) };
        let follows = !replica.partition.is_leader() && !replica.partition.is_failed();
        let now = self.node.clock.monotonic();
        // What the metadata log has more is of other partitions, then.
        let has_ceased = replica.history.ceased_at.is_some_and(|at| now.since(at) < handing_on::FOR);
        let hears_more = || self.node.controller.knows_more(&self.node.image.load());
        if !follows || has_ceased || replica.history.has_led && !hears_more() {
            return Some(item);
        }
        let epoch = replica.partition.leader_epoch();
        let until = now.plus(APPEND_PATIENCE);
        let before = Before { key: item.partition, epoch, until };
        self.early.appends.push(EarlyAppend { before, item, ticket, acks, deadline });
        None
    }

    /// Keeps a fetch back that names an epoch which is not known here yet. Returns it if it does not.
    pub(super) fn hold_early_read(
        &mut self,
        command: ReadCommand,
        outcomes: &[ReadOutcome],
    ) -> Option<ReadCommand> {
        let is_early = |outcome: &ReadOutcome| {
            matches!(outcome.result, Err(Declined::Refused(Refusal::UnknownEpoch { .. })))
        };
        if command.was_early || self.closed {
            return Some(command);
        }
        let Some(at) = outcomes.iter().position(is_early) else { return Some(command) };
        let key = command.items[at].partition;
        let Some(replica) = self.replicas.get(&key) else { return Some(command) };
        let epoch = replica.partition.leader_epoch();
        let until = self.node.clock.monotonic().plus(READ_PATIENCE);
        let command = ReadCommand { was_early: true, ..command };
        self.early.reads.push(EarlyRead { before: Before { key, epoch, until }, command });
        None
    }

    /// Goes on with what has waited long enough, or for whose partition the image has said something new.
    pub(super) fn take_early(&mut self) {
        if self.early.is_empty() {
            return;
        }
        let now = self.node.clock.monotonic();
        let Self { early, replicas, .. } = self;
        let is_due = |before: &Before| {
            let waits = replicas.get(&before.key).is_some_and(|replica| {
                replica.partition.leader_epoch() == before.epoch && !replica.partition.is_failed()
            });
            !waits || before.until <= now || self.closed
        };
        let appends: Vec<EarlyAppend> = early.appends.extract_if(.., |early| is_due(&early.before)).collect();
        let reads: Vec<EarlyRead> = early.reads.extract_if(.., |early| is_due(&early.before)).collect();
        for EarlyAppend { item, ticket, acks, deadline, .. } in appends {
            self.append_item(item, ticket, acks, deadline);
        }
        for EarlyRead { command, .. } in reads {
            self.read(command);
        }
    }
}
