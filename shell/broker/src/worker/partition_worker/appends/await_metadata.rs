//! Batches and fetches that arrive before the metadata that they rest on: held here until core/replica's
//! `await_metadata` says so.
//!
//! Neighbours: changes.rs, which gives roles; followers.rs and reads.rs, whose refusals are kept back here;
//! core/replica/src/append/await_metadata.rs.

use crate::mailbox::{AppendItem, Declined, ReadCommand, ReadOutcome};
use crate::worker::partition_worker::PartitionWorker;
use barnabas_api::k00_produce::forwarding::FORWARD_FOR;
use barnabas_base::MonotonicMs;
use barnabas_partition::{Append, Refusal};
use barnabas_replica::{APPEND_TIMEOUT, AwaitMetadata, READ_TIMEOUT};

/// What waits for the image.
#[derive(Debug)]
pub struct Early {
    appends: AwaitMetadata<(AppendItem, Append)>,
    reads: AwaitMetadata<ReadCommand>,
}

impl Default for Early {
    fn default() -> Self {
        Self { appends: AwaitMetadata::new(APPEND_TIMEOUT), reads: AwaitMetadata::new(READ_TIMEOUT) }
    }
}

impl Early {
    fn is_empty(&self) -> bool {
        self.appends.is_empty() && self.reads.is_empty()
    }

    /// When the first of them has waited long enough.
    pub fn due(&self) -> Option<MonotonicMs> {
        self.appends.due().into_iter().chain(self.reads.due()).min()
    }
}

impl PartitionWorker {
    /// Holds a batch that comes before its partition's election does. Returns it if it does not.
    pub fn hold_early(&mut self, item: AppendItem, append: &Append) -> Option<AppendItem> {
        // Costs nothing on a node alone: no other broker leads anything.
        if self.following.is_idle() || self.closed {
            return Some(item);
        }
        let Some(replica) = self.replicas.get(&item.partition) else { return Some(item) };
        let now = self.node.clock.monotonic();
        let knows_more = || self.node.peers.controller.knows_more(&self.node.cluster.image.load());
        if !replica.append_awaits_metadata(append, now, FORWARD_FOR, knows_more) {
            return Some(item);
        }
        self.early.appends.hold(replica, now, (item, *append));
        None
    }

    /// Holds a fetch that names an epoch which is not known here yet. Returns it if it does not.
    pub fn hold_early_read(&mut self, command: ReadCommand, outcomes: &[ReadOutcome]) -> Option<ReadCommand> {
        let is_early = |outcome: &ReadOutcome| {
            matches!(outcome.result, Err(Declined::Refused(Refusal::UnknownEpoch { .. })))
        };
        if command.was_early || self.closed {
            return Some(command);
        }
        let Some(at) = outcomes.iter().position(is_early) else { return Some(command) };
        let Some(replica) = self.replicas.get(&command.items[at].partition) else { return Some(command) };
        let now = self.node.clock.monotonic();
        self.early.reads.hold(replica, now, ReadCommand { was_early: true, ..command });
        None
    }

    /// Goes on with what has waited long enough, or for whose partition the image has something new.
    pub fn take_early(&mut self) {
        if self.early.is_empty() {
            return;
        }
        let now = self.node.clock.monotonic();
        let Self { early, replicas, closed, .. } = self;
        let epoch_of = |key: crate::mailbox::PartitionKey| {
            replicas.get(&key).filter(|_| !*closed).and_then(|replica| replica.serving_epoch())
        };
        let appends = early.appends.take_due(now, epoch_of);
        let reads = early.reads.take_due(now, epoch_of);
        for (item, append) in appends {
            // A refusal has reached the ticket.
            let _ = self.place(item, append);
        }
        for command in reads {
            self.read(command);
        }
    }
}
