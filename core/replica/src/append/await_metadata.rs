//! Requests that arrive before the metadata that they rest on.
//!
//! When leadership moves, the old leader names the new one in its refusal (KIP-951). Clients and followers then reach
//! the new leader before the record of the election does. A refusal would cost a producer its backoff (100 ms by
//! default) and a follower its own (one second with Apache's), so such requests are held for a moment, until the image
//! has something new for the partition.
//!
//! A fetch names the leader epoch that it knows, so it is early if that epoch is newer than the image's. A batch names
//! none. It is held where this broker has a replica that it has not led before, or where the metadata log holds more
//! than the image shows. A producer that sends to a former leader is refused at once, as its metadata is old.
//!
//! Always true:
//! 1. no request is held for longer than [`APPEND_TIMEOUT`] or [`READ_TIMEOUT`]
//! 2. batches for one partition keep their order
//!
//! Neighbours: shell/broker/src/worker/partition_worker/appends/await_metadata.rs, which holds commands;
//! shell/broker/src/worker/partition_worker/lifecycle/changes.rs, which takes over roles.

use barnabas_base::{DurationMs, LeaderEpoch, MonotonicMs};
use barnabas_partition::{Acks, Append, ReplicaKey};

use crate::Replica;

/// How long a batch waits: as long as Kafka's producers would before they ask again.
pub const APPEND_TIMEOUT: DurationMs = DurationMs(100);
/// How long a fetch waits, which may be about other partitions as well.
pub const READ_TIMEOUT: DurationMs = DurationMs(50);

/// Requests that wait for the image.
#[derive(Debug)]
pub struct AwaitMetadata<T> {
    timeout: DurationMs,
    waiting: Vec<Waiting<T>>,
}

/// A request, and its partition as it was then.
#[derive(Debug)]
struct Waiting<T> {
    key: ReplicaKey,
    epoch: LeaderEpoch,
    until: MonotonicMs,
    request: T,
}

impl<T> AwaitMetadata<T> {
    pub fn new(timeout: DurationMs) -> Self {
        Self { timeout, waiting: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn hold(&mut self, replica: &Replica, now: MonotonicMs, request: T) {
        let until = now.plus(self.timeout);
        let epoch = replica.partition.leader_epoch();
        self.waiting.push(Waiting { key: replica.key, epoch, until, request });
    }

    /// When the first of them times out.
    pub fn due(&self) -> Option<MonotonicMs> {
        self.waiting.iter().map(|waiting| waiting.until).min()
    }

    /// Those that wait no more, in their order: timed out, or `epoch_of` says another epoch than when they came. It
    /// says none of a partition that serves nothing.
    pub fn take_due(
        &mut self,
        now: MonotonicMs,
        epoch_of: impl Fn(ReplicaKey) -> Option<LeaderEpoch>,
    ) -> Vec<T> {
        let is_due =
            |waiting: &mut Waiting<T>| waiting.until <= now || epoch_of(waiting.key) != Some(waiting.epoch);
        self.waiting.extract_if(.., is_due).map(|waiting| waiting.request).collect()
    }
}

impl Replica {
    /// Whether a batch may be ahead of this broker's metadata. One with `acks=0` does not wait: its producer learns
    /// nothing from a refusal and nothing from a delay.
    ///
    /// `forwards_for`: how long after it ceased to lead a broker forwards batches to the new leader. `knows_more`:
    /// whether the metadata log holds more than the image shows; asked only where it decides.
    pub fn append_awaits_metadata(
        &self,
        append: &Append,
        now: MonotonicMs,
        forwards_for: DurationMs,
        knows_more: impl FnOnce() -> bool,
    ) -> bool {
        let follows = !self.partition.is_leader() && !self.partition.is_failed();
        // What the metadata log has more is of other partitions, then.
        let has_ceased = self.history.ceased_at.is_some_and(|at| now.since(at) < forwards_for);
        append.acks != Acks::None && follows && !has_ceased && (!self.history.has_led || knows_more())
    }

    /// The epoch in which requests are served or refused. `None`: the partition has failed.
    pub fn serving_epoch(&self) -> Option<LeaderEpoch> {
        (!self.partition.is_failed()).then(|| self.partition.leader_epoch())
    }
}
