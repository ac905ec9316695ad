//! A quorum node: the quorum's member, the controller and the image in one, as the shell's quorum worker drives it.
//!
//! While it leads ([`Node::is_active`]), requests go to the controller, its records to the quorum and at once on top of
//! the working image, so that the next request sees them; answers and the image wait until the records are committed.
//! An image at a commit is the working image as it was then, so nothing is replayed twice. While it does not lead,
//! batches are replayed as they are committed (`following`), and requests are declined: they belong to the leader.
//!
//! Always true:
//! 1. no state and no answer that could still be lost leaves the node ([`Effect::Publish`], [`Effect::Respond`] come
//!    after the commit of what they rest on)
//! 2. images are published in the order of the log, each at most once, and none before this node knows all that was
//!    committed when it started
//! 3. effects are carried out in the order in which they are handed out; after a failed write the node is dropped
//!
//! Files: `start` (from files to a member), `active` (what a leader decides), `following` (what is committed, and the
//! way from one role to the other), `outlived` (whether the broker's disk is older than its death), `repair` (epochs
//! out of range at the start), `peers` (what members say to each other), `snapshots`, `stall` (a quorum
//! that makes no progress).
//!
//! Metadata path 2 of 4. Before: core/api. After: core/metadata. Shell: shell/broker/src/controller/quorum_worker.rs.

mod active;
mod describe;
mod difference;
mod following;
mod outlived;
mod peers;
mod repair;
mod snapshots;
mod stall;
mod start;

use std::collections::VecDeque;
use std::sync::Arc;

use barnabas_base::{BrokerId, DirectoryId, DurationMs, LeaderEpoch, MonotonicMs, Offset};
use barnabas_metadata::{Changes, Delta, Image};
use barnabas_wire::messages::NoOpRecord;
use barnabas_wire::{MetadataRecord, ResponseBody};
use bytes::Bytes;

use crate::QuorumError;
use crate::batches::EncodedBatch;
use crate::controller::ControllerSettings;
use crate::now::Now;
use crate::raft::message::{Request as PeerRequest, Response as PeerResponse};
use crate::raft::{self, LeaderAndEpoch, Raft, Read, RoleName};
use crate::snapshot::SnapshotTask;
use crate::snapshot_id::SnapshotId;
use crate::voters::{VoterEndpoint, Voters};
use active::Active;
use following::Loading;
use outlived::Outlived;

pub use crate::controller::LocalBroker;
pub use outlived::BrokerLife;
pub use repair::Repair;
pub use stall::{STALL_LOOK, Stall, StallLine};
pub use start::{Starting, Stored};

/// Names a request until its answer.
pub type Ticket = u64;

/// How this node is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// This node as a member of the quorum.
    pub raft: raft::Config,
    /// `controller.quorum.voters`; empty where voters are dynamic.
    pub static_voters: Voters,
    /// The broker in this process, if there is one: where this node is the only voter, it is registered at the start.
    pub local_broker: Option<LocalBroker>,
    pub controller: ControllerSettings,
    /// What the disk says of the broker's last life, if that was not stopped cleanly.
    pub broker_life: Option<BrokerLife>,
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
    /// This node leads no longer: what was asked of it may come about or not. NOT_CONTROLLER.
    Decline(Ticket),
    /// Write a snapshot in the background, then call [`Node::snapshot_written`].
    WriteSnapshot(Box<SnapshotTask>),
    /// A snapshot stands for everything below `log_start`: the log may begin there, and these snapshots may go.
    DeleteBefore {
        log_start: Offset,
        snapshots: Vec<SnapshotId>,
    },
    /// Cut the log off here, before what follows.
    Truncate(Offset),
    /// Empty the log: it begins where this snapshot ends. Before what follows.
    RestartLog(SnapshotId),
    /// Read this snapshot to the node ([`Node::load_piece`], [`Node::loaded`]) before anything else.
    LoadSnapshot(SnapshotId),
    /// Write this to the snapshot's unfinished file; at position 0, begin the file.
    SnapshotPiece {
        id: SnapshotId,
        position: i64,
        bytes: Bytes,
    },
    /// The unfinished file is whole: sync it, give it its name, call [`Node::snapshot_stored`].
    StoreSnapshot(SnapshotId),
    /// Say this to another member, and call [`Node::peer_answered`] with what came of it. `to` is below −1 where only
    /// an address is known.
    Send {
        to: barnabas_base::BrokerId,
        endpoint: VoterEndpoint,
        number: u64,
        request: PeerRequest,
    },
    /// Answer another member, once `read` has been read and put in.
    Answer {
        ticket: Ticket,
        response: PeerResponse,
        read: Option<Read>,
    },
    /// Another member leads, or none. Where it is reached: [`Node::leader_endpoints`].
    Leader(LeaderAndEpoch),
}

/// Why a request was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Declined {
    #[error("not an API of the controller")]
    NotForController,
    #[error("another node is the active controller, or none is")]
    NotActive,
}

/// A started node.
pub struct Node {
    settings: Settings,
    raft: Raft,
    /// Everything below `applied`: while this node leads, the whole log; else what is committed.
    delta: Delta,
    applied: Offset,
    /// Batches past the committed image: to be replayed once they are committed, or again when this node leads no
    /// longer.
    tail: VecDeque<EncodedBatch>,
    active: Option<Active>,
    /// A snapshot that is being read.
    loading: Option<Box<Loading>>,
    committed: Arc<Image>,
    /// What changed since the last image that was published.
    unpublished: Changes,
    /// Up to where images were published; `None` until the first.
    published: Option<Offset>,
    /// What the format tool left for the first leader to write.
    bootstrap: Vec<MetadataRecord>,
    effects: Vec<Effect>,
    snapshots: snapshots::Snapshots,
    last_append: MonotonicMs,
    log_start: Offset,
    outlived: Outlived,
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

    /// The log is on disk up to `end`.
    ///
    /// # Errors
    /// What stops the node.
    pub fn synced(&mut self, end: Offset, now: Now) -> Result<(), QuorumError> {
        self.raft.synced(end, now)?;
        self.collect(now)?;
        self.maybe_snapshot(now);
        Ok(())
    }

    /// Turns the quorum's effects into the shell's, and follows it into its role.
    fn collect(&mut self, now: Now) -> Result<(), QuorumError> {
        for effect in self.raft.take_effects() {
            match effect {
                raft::Effect::Persist { state, kraft_version } => {
                    self.effects.push(Effect::WriteQuorumState(state.to_text(kraft_version)));
                }
                raft::Effect::Append(batch) => {
                    self.snapshots.appended(batch.bytes.len());
                    self.tail.push_back(batch.clone());
                    self.effects.push(Effect::Append(batch.clone()));
                    // What the quorum itself writes.
                    if self.active.is_some() && batch.base >= self.applied {
                        self.apply_as_leader(&batch)?;
                    }
                }
                raft::Effect::Committed(end) => self.committed(end)?,
                raft::Effect::Leader(leader) => self.effects.push(Effect::Leader(leader)),
                raft::Effect::Truncate(end) => self.truncated(end)?,
                raft::Effect::RestartLog(id) => self.restart_log(id),
                raft::Effect::Send { to, endpoint, number, request } => {
                    self.effects.push(Effect::Send { to, endpoint, number, request });
                }
                raft::Effect::Answer { ticket, response, read } => {
                    self.effects.push(Effect::Answer { ticket, response, read });
                }
                raft::Effect::SnapshotPiece { id, position, bytes } => {
                    self.effects.push(Effect::SnapshotPiece { id, position, bytes });
                }
                raft::Effect::StoreSnapshot(id) => self.effects.push(Effect::StoreSnapshot(id)),
            }
        }
        match (self.active.is_some(), self.raft.leads()) {
            (false, true) => self.activate(now)?,
            (true, false) => self.deactivate()?,
            _ => {}
        }
        self.publish_if_ready();
        Ok(())
    }

    /// Time has passed. To be called at [`Node::next_tick`], or more often.
    ///
    /// # Errors
    /// What stops the node.
    pub fn tick(&mut self, now: Now) -> Result<(), QuorumError> {
        self.raft.tick(now)?;
        self.collect(now)?;
        let image = self.delta.image();
        let records =
            self.active.as_mut().map(|active| active.controller.tick(image, now)).unwrap_or_default();
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
        let controller = self.active.as_ref().and_then(|active| active.controller.next_tick());
        [self.idle_at(), controller, snapshot, self.raft.next_tick()].into_iter().flatten().min()
    }

    /// When a NoOpRecord must show that the quorum is alive. Kafka writes one each half second, so that observers'
    /// offsets advance and brokers can tell a slow controller from a dead one. A quorum of one without followers
    /// writes one [`IDLE_FACTOR_ALONE`] times as rarely: the metadata tools still see it advance, and it wakes
    /// neither disk nor processor noticeably.
    fn idle_at(&self) -> Option<MonotonicMs> {
        self.active.as_ref()?;
        let interval = self.settings.idle_interval;
        let factor = if self.raft.is_followed() { 1 } else { IDLE_FACTOR_ALONE };
        let wait = DurationMs(interval.0.saturating_mul(factor));
        (interval.0 > 0).then(|| self.last_append.plus(wait))
    }

    /// What is to be done now. Empty when there is nothing.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// The state that is committed, as far as it was read here.
    pub fn image(&self) -> &Arc<Image> {
        &self.committed
    }

    /// The state that the next request is decided on, not all of it committed yet.
    pub fn working_image(&self) -> &Image {
        self.delta.image()
    }

    /// Whether the broker of this node lived on after what its disk knows ([`Settings::broker_life`]). To be asked with
    /// the first image.
    pub fn has_outlived_disk(&self) -> bool {
        self.outlived.is_so()
    }

    /// Whether this node is the active controller.
    pub fn is_active(&self) -> bool {
        self.active.is_some()
    }

    /// Whether this node is the only voter, so that it can lead by itself.
    pub fn is_alone(&self) -> bool {
        self.raft.is_alone()
    }

    pub fn epoch(&self) -> LeaderEpoch {
        self.raft.epoch()
    }

    pub fn leader(&self) -> LeaderAndEpoch {
        self.raft.leader_and_epoch()
    }

    /// Where the leader listens; empty where that is not known.
    pub fn leader_endpoints(&self) -> Vec<VoterEndpoint> {
        self.raft.leader_endpoints()
    }

    pub fn voters(&self) -> &Voters {
        self.raft.voters()
    }

    pub fn role(&self) -> RoleName {
        self.raft.role()
    }

    /// Whom this node voted for in its epoch.
    pub fn voted(&self) -> Option<BrokerId> {
        self.raft.voted().map(|voter| voter.id)
    }

    pub fn high_watermark(&self) -> Offset {
        self.raft.high_watermark()
    }

    /// The image that was published last holds all that was committed by this moment. `None`: no such moment is known.
    pub fn known_by(&self, now: Now) -> Option<MonotonicMs> {
        let (end, at) = self.raft.known_by(now)?;
        self.published.is_some_and(|published| published >= end).then_some(at)
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

/// How much more rarely than `metadata.max.idle.interval.ms` a quorum of one writes a NoOpRecord: 30 s at Kafka's 500
/// ms.
pub const IDLE_FACTOR_ALONE: i64 = 60;
