//! The metadata quorum's thread: drives core/quorum's node, writes its log, its state file and its snapshots.
//!
//! One thread that may block: it takes every request that waits, appends what the controller decided or a leader sent,
//! syncs once for all of it, publishes the new image and answers. What goes to other members goes through links
//! (peers.rs); requests to the controller come in through handle.rs, which knows whether this node is the active one. A
//! failed write or sync ends the node: the quorum's promises rest on this log. A full disk does not: what makes the
//! cluster larger is refused at once, and a reserve (files.rs) carries deletions and settings through until there is
//! room again.
//!
//! Always true:
//! 1. an answer goes out after the image that it speaks of is published
//! 2. nothing is published that is not on disk
//!
//! Neighbours: node/cluster/known_by.rs, which is set here.
//!
//! Metadata path 1 of 4. Before: requests/cluster/admin.rs. After: core/quorum/src/node.rs, publisher.rs.

mod figures;
mod loading;
mod peers;
mod reserve;
#[cfg(test)]
mod tests;

use crate::controller::publisher;
use crate::log_dirs::directories::Directory;
use crate::log_dirs::full::{Impairs, Room};
use crate::node::Node;
use crate::node::cluster_events;
use crate::node::peers::controller::{Message, Reply, Requests};
use barnabas_base::{DurationMs, MonotonicMs, Offset};
use barnabas_metadata::events::APART;
use barnabas_metadata_log::{MetadataError, MetadataFiles};
use barnabas_quorum::batches::EncodedBatch;
use barnabas_quorum::controller::Asked;
use barnabas_quorum::node::{Declined, STALL_LOOK, Stall, StallLine};
use barnabas_quorum::raft::message::Response as PeerResponse;
use barnabas_quorum::voters::KnownVoters;
use barnabas_quorum::{Effect, Node as Quorum, Now, SnapshotTask};
use barnabas_storage::StorageError;
use barnabas_wire::RequestBody;
use figures::Watching;
use peers::Peers;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a full disk is left alone before it is tried again.
const FULL_PAUSE: Duration = Duration::from_millis(500);
/// Requests that are decided before one sync.
const ROUND_MAX: usize = 512;
/// How long a leader that stops waits for the others to hear of it: they need not wait for a timeout then.
const RESIGN_PATIENCE: Duration = Duration::from_millis(300);

/// Begins to drive a quorum that has read its past, and starts the thread. The first image of a node that leads alone
/// is published when this returns; others have one once they have found their leader.
///
/// # Errors
/// The first records cannot be written; the system gives no thread.
pub fn start(
    quorum: Quorum,
    files: MetadataFiles,
    requests: Requests,
    node: Arc<Node>,
) -> Result<JoinHandle<()>, Box<dyn std::error::Error>> {
    let shared = &node.peers.controller.shared;
    shared.was_cut.store(files.cut.is_some(), Ordering::Relaxed);
    let peers = Peers::new(node.peers.links.clone(), node.peers.controller.here(), shared.sender(), &node);
    let mut worker = QuorumWorker {
        voters: KnownVoters::new(quorum.voters()),
        quorum,
        files,
        peers,
        node,
        replies: HashMap::new(),
        peer_replies: HashMap::new(),
        next_ticket: 0,
        watching: Watching::default(),
        left_to_others: false,
        stall: Stall::default(),
    };
    worker.settle()?;
    worker.retake_reserve()?;
    let thread = std::thread::Builder::new().name("quorum".to_owned());
    Ok(thread.spawn(move || worker.run(&requests.receiver))?)
}

struct QuorumWorker {
    quorum: Quorum,
    files: MetadataFiles,
    peers: Peers,
    node: Arc<Node>,
    replies: HashMap<u64, oneshot::Sender<Reply>>,
    peer_replies: HashMap<u64, oneshot::Sender<PeerResponse>>,
    next_ticket: u64,
    watching: Watching,
    voters: KnownVoters,
    /// It has resigned for want of room, and has had none since.
    left_to_others: bool,
    stall: Stall,
}

impl QuorumWorker {
    fn run(mut self, receiver: &Receiver<Message>) {
        match self.work(receiver) {
            Ok(done) => {
                if let Err(error) = self.files.close() {
                    tracing::error!(%error, "the metadata log was not closed cleanly; the next start recovers it");
                }
                // The caller may have stopped waiting.
                let _ = done.send(());
            }
            // Only on the way out: until then the thread waits for room.
            Err(MetadataError::Storage(error)) if error.is_passing() => {
                tracing::warn!(%error, "the metadata log is stopped with unwritten records, because \
                    writes fail; their requests were not acknowledged");
            }
            Err(error) => {
                tracing::error!(%error, "the metadata quorum failed; the node stops");
                self.node.shutdown.failed("the metadata log has failed");
            }
        }
    }

    fn work(&mut self, receiver: &Receiver<Message>) -> Result<oneshot::Sender<()>, MetadataError> {
        loop {
            let mut stopping = None;
            let due = self.quorum.next_tick();
            let mut next = self.wait(receiver, due);
            for _ in 0..ROUND_MAX {
                match next {
                    None => break,
                    Some(Message::Stop(done)) => {
                        stopping = Some(done);
                        break;
                    }
                    Some(message) => self.take(message)?,
                }
                next = receiver.try_recv().ok();
            }
            let now = self.now();
            if due.is_some_and(|at| at <= now.monotonic) {
                self.quorum.tick(now)?;
            }
            self.settle()?;
            self.write_events();
            let idle_ms =
                u64::try_from(self.node.cluster.config.load().long("metadata.max.idle.interval.ms"))
                    .unwrap_or(0);
            match self.stall.look(&self.quorum, idle_ms, self.node.clock.monotonic()) {
                Some(StallLine::Error(line)) => tracing::error!("{line}"),
                Some(StallLine::Info(line)) => tracing::info!("{line}"),
                None => {}
            }
            if self.is_full() && stopping.is_none() {
                self.retake_reserve()?;
            }
            if stopping.is_none() {
                self.leave_to_others()?;
            }
            if let Some(done) = stopping {
                self.resign(receiver)?;
                return Ok(done);
            }
        }
    }

    fn write_events(&self) {
        let session_ms = self.node.cluster.config.load().long("broker.session.timeout.ms");
        let patience = DurationMs(session_ms.max(0));
        let image = self.node.cluster.image.load();
        let now = self.node.clock.monotonic();
        let lines = self.node.peers.controller.events().due(now, &image, patience);
        lines.iter().for_each(cluster_events::write);
    }

    /// If room runs short, this controller resigns, so that one with room can lead before this one can write nothing
    /// at all. Once in each shortage: if no controller has room, the next leader stays.
    fn leave_to_others(&mut self) -> Result<(), MetadataError> {
        let now = self.node.clock.monotonic();
        let here = |directory: &&Directory| self.node.peers.controller.lies_in(directory.id);
        let room = self.node.log_dirs.directories.iter().find(here).map(|directory| &directory.room);
        let is_short = self.is_full() || room.is_some_and(Room::is_short);
        // Figures may show room where writes find none: it counts once that has not been so for a while.
        if !self.is_full() && room.is_none_or(|room| room.impairs(now) == Impairs::Nothing) {
            self.left_to_others = false;
        }
        if !is_short || self.left_to_others || !self.quorum.is_active() || self.quorum.is_alone() {
            return Ok(());
        }
        self.left_to_others = true;
        tracing::info!("the disk of this controller's metadata log is nearly full; it resigns leadership");
        self.quorum.resign(self.now())?;
        self.settle()
    }

    /// Leads no longer, and lets the others know, so that one of them leads at once.
    fn resign(&mut self, receiver: &Receiver<Message>) -> Result<(), MetadataError> {
        if !self.quorum.is_active() || self.quorum.is_alone() {
            return Ok(());
        }
        let asked = barnabas_clock::now();
        self.quorum.resign(self.now())?;
        self.settle()?;
        while let Some(left) = RESIGN_PATIENCE.checked_sub(barnabas_clock::since(asked))
            && !self.peers.are_idle()
        {
            if let Ok(message @ Message::PeerAnswered { .. }) = receiver.recv_timeout(left) {
                self.take(message)?;
                self.settle()?;
            }
        }
        Ok(())
    }

    /// The next message; `None` when the quorum's own time has come.
    fn wait(&self, receiver: &Receiver<Message>, due: Option<MonotonicMs>) -> Option<Message> {
        let MonotonicMs(now) = self.node.clock.monotonic();
        let sleep = due.map_or(60_000, |MonotonicMs(at)| at.saturating_sub(now));
        let mut sleep = Duration::from_millis(sleep.min(60_000));
        if self.is_full() {
            sleep = sleep.min(FULL_PAUSE);
        }
        if self.node.peers.controller.events().are_waiting() {
            sleep = sleep.min(Duration::from_millis(APART.0.unsigned_abs()));
        }
        if !self.quorum.is_alone() {
            sleep = sleep.min(Duration::from_millis(STALL_LOOK.0.unsigned_abs()));
        }
        receiver.recv_timeout(sleep).ok()
    }

    fn take(&mut self, message: Message) -> Result<(), MetadataError> {
        let now = self.now();
        match message {
            Message::Request { body, asked, reply } => self.take_request(body, asked, reply, now)?,
            Message::PeerAsked { request, reply } => {
                self.next_ticket += 1;
                self.peer_replies.insert(self.next_ticket, reply);
                self.quorum.peer_asked(self.next_ticket, *request, now)?;
            }
            Message::PeerAnswered { from, number, response } => {
                self.peers.answered();
                let response = response.map(|response| *response);
                self.quorum.peer_answered(from, number, response, now)?;
            }
            Message::PeerGone(peer) => self.quorum.peer_is_gone(peer, now)?,
            Message::BrokerGone { id, epoch } => self.quorum.broker_is_gone(id, epoch, now)?,
            Message::SnapshotWritten { id, size } => self.quorum.snapshot_written(id, size),
            // Alone it would only lead again.
            Message::Resign if self.quorum.is_alone() => {}
            Message::Resign => self.quorum.resign(now)?,
            Message::Stop(_) => unreachable!("the loop keeps it"),
        }
        Ok(())
    }

    fn take_request(
        &mut self,
        body: Box<RequestBody>,
        asked: Asked,
        reply: Option<oneshot::Sender<Reply>>,
        now: Now,
    ) -> Result<(), MetadataError> {
        if !self.quorum.is_active() {
            if let Some(reply) = reply {
                // Who asked may have stopped waiting.
                drop(reply.send(Reply::Back(body)));
            }
            return Ok(());
        }
        self.next_ticket += 1;
        let ticket = self.next_ticket;
        if let Some(reply) = reply {
            self.replies.insert(ticket, reply);
        }
        let mut random = || crate::log_dirs::directories::random_uuid().0;
        match self.quorum.handle(ticket, *body, asked, now, &mut random)? {
            Ok(()) => {}
            // Dropping the reply tells the asker; dispatch sends only what the controller knows.
            Err(Declined::NotForController | Declined::NotActive) => drop(self.replies.remove(&ticket)),
        }
        Ok(())
    }

    /// Carries out effects until there are none: one sync for all that was appended.
    fn settle(&mut self) -> Result<(), MetadataError> {
        loop {
            let Offset(end) = self.quorum.log_end();
            self.node.peers.controller.shared.log_end.store(end, Ordering::Release);
            self.watching.look(&self.quorum, &self.node.peers.controller.shared.figures);
            if let Some(line) = self.voters.look(self.quorum.voters()) {
                tracing::info!("{line}");
            }
            let effects = self.quorum.take_effects();
            if effects.is_empty() {
                if let Some(at) = self.quorum.known_by(self.now()) {
                    self.node.cluster.known_by.set(at);
                }
                return Ok(());
            }
            let mut appended: Option<Offset> = None;
            for effect in effects {
                if let Effect::Append(batch) = effect {
                    self.append(&batch)?;
                    appended = Some(batch.end);
                } else {
                    self.carry_out(effect)?;
                }
            }
            if let Some(end) = appended {
                self.files.sync()?;
                if let Some(Offset(synced)) = self.files.recovery_point()? {
                    self.node.peers.controller.shared.recovery_point.store(synced, Ordering::Release);
                }
                self.quorum.synced(end, self.now())?;
            }
        }
    }

    fn append(&mut self, batch: &EncodedBatch) -> Result<(), MetadataError> {
        self.with_room(|worker| worker.files.append(batch, worker.node.clock.wall()))
    }

    /// On a full disk, writes into the reserve. When that is used up as well, waits for room; brokers continue with
    /// the metadata that they have. CreateTopics is refused meanwhile (handle.rs); other requests wait.
    fn with_room(
        &mut self,
        mut write: impl FnMut(&mut Self) -> Result<(), StorageError>,
    ) -> Result<(), MetadataError> {
        loop {
            let written = write(self);
            self.node.peers.controller.shared.waits_for_room.store(false, Ordering::Relaxed);
            match written {
                Ok(()) => return Ok(()),
                Err(error) if error.is_passing() => {
                    if !self.node.peers.controller.shared.is_full.swap(true, Ordering::Relaxed) {
                        tracing::error!(
                            %error,
                            "writes to the metadata log fail; topics and partitions cannot be created \
                             until they succeed"
                        );
                        self.files.release_reserve()?;
                    } else if self.node.shutdown.is_wanted() {
                        return Err(error.into());
                    } else {
                        self.node.peers.controller.shared.waits_for_room.store(true, Ordering::Relaxed);
                        std::thread::sleep(FULL_PAUSE);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn is_full(&self) -> bool {
        self.node.peers.controller.shared.is_full.load(Ordering::Relaxed)
    }

    /// Takes the reserve (again). Where there is no room for it, the disk counts as full.
    fn retake_reserve(&mut self) -> Result<(), MetadataError> {
        let is_full = !self.files.take_reserve()?;
        let was_full = self.node.peers.controller.shared.is_full.swap(is_full, Ordering::Relaxed);
        match (was_full, is_full) {
            (false, true) => tracing::error!(
                "the disk of the metadata log is full; topics and partitions cannot be created until \
                 there is free space"
            ),
            (true, false) => tracing::info!("there is free space for the metadata log again"),
            _ => {}
        }
        Ok(())
    }

    fn carry_out(&mut self, effect: Effect) -> Result<(), MetadataError> {
        match effect {
            Effect::WriteQuorumState(text) => self.with_room(|worker| worker.files.write_state(&text))?,
            Effect::Append(_) => unreachable!("appended by the caller"),
            Effect::Publish { image, changes } => {
                self.node
                    .peers
                    .controller
                    .shared
                    .kraft_version
                    .store(self.quorum.kraft_version(), Ordering::Relaxed);
                let has_outlived_disk = self.quorum.has_outlived_disk();
                let shared = &self.node.peers.controller.shared;
                shared.has_outlived_disk.store(has_outlived_disk, Ordering::Release);
                self.node.identity.follow_broker_epoch(&image);
                publisher::publish(&self.node, image, changes);
                self.node.peers.controller.published();
            }
            Effect::Respond { ticket, response } => match self.replies.remove(&ticket) {
                // A connection that is gone does not hear its answer.
                Some(reply) => drop(reply.send(Reply::Answer(response))),
                None => crate::node::peers::controller::log_unheard(
                    &response,
                    self.node.peers.controller.events(),
                ),
            },
            Effect::Decline(ticket) => {
                if let Some(reply) = self.replies.remove(&ticket) {
                    drop(reply.send(Reply::LeadershipLost));
                }
            }
            Effect::Leader(_) => self.peers.led(&self.quorum, &self.node),
            Effect::Send { to, endpoint, number, request } => self.peers.send(to, &endpoint, number, request),
            Effect::Answer { ticket, response, read } => self.answer_peer(ticket, response, read)?,
            Effect::Truncate(_)
            | Effect::RestartLog(_)
            | Effect::LoadSnapshot(_)
            | Effect::SnapshotPiece { .. }
            | Effect::StoreSnapshot(_) => self.change_log(effect)?,
            Effect::WriteSnapshot(task) => self.write_snapshot(task),
            Effect::DeleteBefore { log_start, snapshots } => {
                match self.files.delete_before(log_start, &snapshots, self.node.clock.wall()) {
                    Err(error) if error.is_passing() => {
                        tracing::warn!(%error, "old parts of the metadata log could not be removed; the \
                            next snapshot removes them");
                    }
                    done => done?,
                }
            }
        }
        Ok(())
    }

    /// In the background: it takes a while for a large cluster, and no request waits for it.
    fn write_snapshot(&mut self, task: Box<SnapshotTask>) {
        let writer = self.files.snapshot_writer();
        let sender = self.node.peers.controller.shared.sender();
        let id = task.id;
        let write = move || {
            let written = writer.write(&task);
            if let Err(error) = &written {
                tracing::error!(snapshot = %id, %error, "a metadata snapshot could not be written; the \
                    log is kept, and a later snapshot is attempted");
            }
            // The quorum thread may have ended; the report has no use then.
            let _ = sender.send(Message::SnapshotWritten { id, size: written.ok() });
        };
        if let Err(error) = std::thread::Builder::new().name("snapshot".to_owned()).spawn(write) {
            tracing::error!(snapshot = %id, %error, "a metadata snapshot could not be written; the log \
                is kept, and a later snapshot is attempted");
            self.quorum.snapshot_written(id, None);
        }
    }

    fn now(&self) -> Now {
        Now { wall: self.node.clock.wall(), monotonic: self.node.clock.monotonic() }
    }
}
