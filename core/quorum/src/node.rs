//! A quorum node: the quorum's member, the controller and the image in one, as the shell's quorum worker drives it.
//!
//! Requests go to the controller, its records to the quorum and at once on top of the working image, so that the next
//! request sees them; answers and the image wait until the records are committed. An image at a commit is the working
//! image as it was then, so nothing is replayed twice.
//!
//! Always true:
//! 1. nobody outside sees a state or an answer that could still be lost ([`Effect::Publish`], [`Effect::Respond`] come
//!    after the commit of what they rest on)
//! 2. images are published in the order of the log, each at most once
//! 3. effects are carried out in the order in which they are handed out; after a failed write the node is dropped
//!
//! Metadata path 2 of 4. Before: core/api. After: core/metadata. Shell: shell/broker/src/quorum_worker.rs.

mod describe;
mod snapshots;
mod start;

use std::collections::VecDeque;
use std::sync::Arc;

use barnabas_base::{DirectoryId, DurationMs, LeaderEpoch, MonotonicMs, Offset, TimestampMs};
use barnabas_metadata::{Changes, Delta, Image, Provenance};
use barnabas_wire::messages::NoOpRecord;
use barnabas_wire::{MetadataRecord, RequestBody, ResponseBody};

use crate::QuorumError;
use crate::batches::EncodedBatch;
use crate::controller::{Asked, Controller, ControllerSettings, Outcome};
use crate::raft::{self, Raft};
use crate::snapshot::{SnapshotId, SnapshotTask};
use crate::voters::{Voter, Voters};

pub use start::{LocalBroker, Starting, Stored};

/// Names a request until its answer.
pub type Ticket = u64;

/// The time, by both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    pub wall: TimestampMs,
    pub monotonic: MonotonicMs,
}

/// How this node is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// This node as a voter: id, the metadata directory's id, controller listeners.
    pub me: Voter,
    /// `controller.quorum.voters`; empty where voters are dynamic.
    pub static_voters: Voters,
    /// The broker in this process, if there is one: registered when the node starts to lead.
    pub local_broker: Option<LocalBroker>,
    pub controller: ControllerSettings,
    /// `metadata.max.idle.interval.ms`; zero or less: never.
    pub idle_interval: DurationMs,
    /// `metadata.log.max.record.bytes.between.snapshots`
    pub snapshot_bytes: u64,
    /// `metadata.log.max.snapshot.interval.ms`; zero or less: never.
    pub snapshot_interval: DurationMs,
}

/// What the shell must do, in this order.
#[derive(Debug)]
pub enum Effect {
    /// Write this to `quorum-state` (beside, sync, rename, sync the directory) before what follows.
    WriteQuorumState(String),
    /// Append to `__cluster_metadata-0`, sync, then call [`Node::synced`] with the end. Several may be synced at once.
    Append(EncodedBatch),
    /// The cluster is now this, up to `image.provenance.end`.
    Publish {
        image: Arc<Image>,
        changes: Box<Changes>,
    },
    Respond {
        ticket: Ticket,
        response: ResponseBody,
    },
    /// Write a snapshot in the background, then call [`Node::snapshot_written`].
    WriteSnapshot(Box<SnapshotTask>),
    /// A snapshot stands for everything below `log_start`: the log may begin there, and these snapshots may go.
    DeleteBefore {
        log_start: Offset,
        snapshots: Vec<SnapshotId>,
    },
}

/// A request that this node cannot answer: it belongs elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an API of the controller")]
pub struct NotForController;

struct Pending {
    end: Offset,
    image: Arc<Image>,
    changes: Changes,
}

struct Waiting {
    end: Offset,
    ticket: Ticket,
    response: ResponseBody,
}

/// A started node: it leads a quorum of one.
pub struct Node {
    settings: Settings,
    raft: Raft,
    controller: Controller,
    delta: Delta,
    pending: VecDeque<Pending>,
    waiting: VecDeque<Waiting>,
    effects: Vec<Effect>,
    snapshots: snapshots::Snapshots,
    committed: Arc<Image>,
    last_append: MonotonicMs,
    log_start: Offset,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("raft", &self.raft).finish_non_exhaustive()
    }
}

impl Node {
    /// Reads what is there of the metadata log. See [`Starting`].
    pub fn start(settings: Settings, stored: Stored) -> Result<Starting, QuorumError> {
        Starting::new(settings, stored)
    }

    /// Takes a request of the controller's. The answer comes as [`Effect::Respond`], once what it says is safe.
    ///
    /// `random` draws 16 random bytes: for topic ids.
    ///
    /// # Errors
    /// In the outer result, what stops the node. In the inner one, a request that is not the controller's.
    pub fn handle(
        &mut self,
        ticket: Ticket,
        request: RequestBody,
        asked: Asked,
        now: Now,
        random: &mut dyn FnMut() -> [u8; 16],
    ) -> Result<Result<(), NotForController>, QuorumError> {
        if let RequestBody::DescribeQuorum(request) = &request {
            let response = self.describe_quorum(request, now);
            self.answer(ticket, self.raft.high_watermark(), response.into());
            return Ok(Ok(()));
        }
        let next = self.raft.log_end();
        let outcome = self.controller.handle(self.delta.image(), &request, &asked, next, now, random);
        let Some(outcome) = outcome else { return Ok(Err(NotForController)) };
        self.carry_out(ticket, outcome, now)?;
        Ok(Ok(()))
    }

    fn carry_out(&mut self, ticket: Ticket, outcome: Outcome, now: Now) -> Result<(), QuorumError> {
        let Outcome { records, atomic, response, refused } = outcome;
        let response = if records.is_empty() {
            response
        } else {
            match self.append(&records, atomic, now) {
                Ok(()) => response,
                // Nothing was written: the request asks for more than the cluster's level can do at once, or for a
                // name that no record can carry.
                Err(error @ (QuorumError::TooLarge { .. } | QuorumError::Encode(_))) => {
                    refused(&error.to_string())
                }
                Err(error) => return Err(error),
            }
        };
        // An answer without records of its own may still rest on records that are not committed yet.
        self.answer(ticket, self.raft.log_end(), response);
        Ok(())
    }

    fn answer(&mut self, ticket: Ticket, end: Offset, response: ResponseBody) {
        if end <= self.raft.high_watermark() {
            self.effects.push(Effect::Respond { ticket, response });
        } else {
            self.waiting.push_back(Waiting { end, ticket, response });
        }
    }

    /// Writes records to the log and puts them on top of the working image.
    fn append(&mut self, records: &[MetadataRecord], atomic: bool, now: Now) -> Result<(), QuorumError> {
        let version = self.delta.image().metadata_version();
        self.append_at(records, version, atomic, now)
    }

    fn append_at(
        &mut self,
        records: &[MetadataRecord],
        version: barnabas_metadata::MetadataVersion,
        atomic: bool,
        now: Now,
    ) -> Result<(), QuorumError> {
        let base = self.raft.log_end();
        self.raft.append(records, version, atomic, now)?;
        for record in records {
            let replayed = self.delta.replay(record);
            replayed.map_err(|source| QuorumError::Replay { offset: base, source })?;
        }
        self.last_append = now.monotonic;
        self.appended(now.wall);
        Ok(())
    }

    /// Notes the state after an append, to be published when it is committed.
    fn appended(&mut self, timestamp: TimestampMs) {
        let end = self.raft.log_end();
        let last_epoch = self.raft.epoch();
        self.delta.advance(Provenance { end, last_epoch, last_timestamp: timestamp });
        let (image, changes) = self.delta.take();
        self.pending.push_back(Pending { end, image: Arc::new(image), changes });
        self.collect();
    }

    /// The log is on disk up to `end`.
    ///
    /// # Errors
    /// What stops the node.
    pub fn synced(&mut self, end: Offset, now: Now) -> Result<(), QuorumError> {
        self.raft.synced(end, now)?;
        self.collect();
        self.maybe_snapshot(now);
        Ok(())
    }

    /// Turns the quorum's effects into the shell's.
    fn collect(&mut self) {
        for effect in self.raft.take_effects() {
            match effect {
                raft::Effect::Persist { state, kraft_version } => {
                    self.effects.push(Effect::WriteQuorumState(state.to_text(kraft_version)));
                }
                raft::Effect::Append(batch) => {
                    self.snapshots.appended(batch.bytes.len());
                    self.effects.push(Effect::Append(batch));
                }
                raft::Effect::Committed(end) => self.committed(end),
                // It leads alone: there is nobody to send to, to answer or to follow.
                raft::Effect::Leader(_)
                | raft::Effect::Send { .. }
                | raft::Effect::Answer { .. }
                | raft::Effect::Truncate(_)
                | raft::Effect::SnapshotPiece { .. }
                | raft::Effect::StoreSnapshot(_)
                | raft::Effect::RestartLog(_) => {}
            }
        }
    }

    fn committed(&mut self, end: Offset) {
        let mut newest: Option<Pending> = None;
        while self.pending.front().is_some_and(|pending| pending.end <= end) {
            let Some(next) = self.pending.pop_front() else { break };
            newest = Some(match newest {
                None => next,
                Some(mut before) => {
                    before.changes.merge(next.changes);
                    Pending { changes: before.changes, ..next }
                }
            });
        }
        if let Some(Pending { image, changes, .. }) = newest {
            self.committed = image.clone();
            self.effects.push(Effect::Publish { image, changes: Box::new(changes) });
        }
        while self.waiting.front().is_some_and(|waiting| waiting.end <= end) {
            let Some(Waiting { ticket, response, .. }) = self.waiting.pop_front() else { break };
            self.effects.push(Effect::Respond { ticket, response });
        }
    }

    /// Time has passed. To be called at [`Node::next_tick`], or more often.
    ///
    /// # Errors
    /// What stops the node.
    pub fn tick(&mut self, now: Now) -> Result<(), QuorumError> {
        let records = self.controller.tick(self.delta.image(), now);
        if !records.is_empty() {
            self.append(&records, false, now)?;
        } else if self.idle_at().is_some_and(|at| at <= now.monotonic) {
            self.append(&[NoOpRecord::default().into()], false, now)?;
        }
        self.maybe_snapshot(now);
        Ok(())
    }

    /// When [`Node::tick`] has something to do.
    pub fn next_tick(&self) -> Option<MonotonicMs> {
        let snapshot = self.snapshots.due_at(&self.settings);
        [self.idle_at(), self.controller.next_tick(), snapshot].into_iter().flatten().min()
    }

    /// When a NoOpRecord must show that the quorum is alive. Kafka writes one each half second, so that observers'
    /// offsets advance and brokers can tell a slow controller from a dead one. A quorum of one has no observer: it
    /// writes one [`IDLE_FACTOR_ALONE`] times as rarely, which the metadata tools still see advance, and which wakes
    /// neither disk nor processor noticeably.
    fn idle_at(&self) -> Option<MonotonicMs> {
        let interval = self.settings.idle_interval;
        let wait = DurationMs(interval.0.saturating_mul(IDLE_FACTOR_ALONE));
        (interval.0 > 0).then(|| self.last_append.plus(wait))
    }

    /// What is to be done now. Empty when there is nothing.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// The state that is committed: the last that was published.
    pub fn image(&self) -> &Arc<Image> {
        &self.committed
    }

    /// The state that the next request is decided on, not all of it committed yet.
    pub fn working_image(&self) -> &Image {
        self.delta.image()
    }

    pub fn epoch(&self) -> LeaderEpoch {
        self.raft.epoch()
    }

    pub fn high_watermark(&self) -> Offset {
        self.raft.high_watermark()
    }

    pub fn log_end(&self) -> Offset {
        self.raft.log_end()
    }

    /// The level of `kraft.version`, which ApiVersions shows among the finalized features.
    pub fn kraft_version(&self) -> i16 {
        self.raft.kraft_version()
    }

    pub fn directory(&self) -> DirectoryId {
        self.raft.directory()
    }
}

/// How much more rarely than `metadata.max.idle.interval.ms` a quorum of one writes a NoOpRecord: 30 s at Kafka's 500 ms.
pub const IDLE_FACTOR_ALONE: i64 = 60;
