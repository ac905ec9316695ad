//! The metadata quorum's thread: drives core/quorum's node, writes its log, its state file and its snapshots.
//!
//! One thread that may block: it takes every request that waits, appends what the controller decided, syncs once for all of
//! them, publishes the new image and answers. A failed write or sync ends the node: the quorum's promises rest on this log.
//! A full disk does not: what makes the cluster larger is refused at once, and a reserve (files.rs) carries deletions and
//! settings through until there is room again.
//!
//! Always true:
//! 1. an answer goes out after the image that it speaks of is published
//! 2. nothing is published that is not on disk
//!
//! Metadata path 1 of 4. Before: dispatch/admin.rs. After: core/quorum/src/node.rs, publisher.rs.

mod damage;
mod files;
mod snapshot_check;
#[cfg(test)]
mod tests;

pub use files::{MetadataFiles, make_dir, partition, write_file};

use crate::directories::Directory;
use crate::node::Node;
use crate::publisher;
use barnabas_base::{DirectoryId, MonotonicMs, Offset};
use barnabas_quorum::batches::EncodedBatch;
use barnabas_quorum::controller::Asked;
use barnabas_quorum::{Effect, Node as Quorum, Now, QuorumError, SnapshotTask};
use barnabas_storage::StorageError;
use barnabas_wire::messages::CreateTopicsRequest;
use barnabas_wire::{RequestBody, ResponseBody};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI16, AtomicI64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Requests that wait for the controller; more are told that it is busy.
const REQUESTS_MAX: usize = 4096;
/// How long a full disk is left alone before it is tried again.
const FULL_PAUSE: Duration = Duration::from_millis(500);
/// Requests that are decided before one sync.
const ROUND_MAX: usize = 512;

/// What the thread is asked to do.
enum Message {
    Request { body: Box<RequestBody>, asked: Asked, reply: Option<oneshot::Sender<ResponseBody>> },
    SnapshotWritten { id: barnabas_quorum::SnapshotId, written: bool },
    Stop(oneshot::Sender<()>),
}

/// Why the metadata log cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    #[error(transparent)]
    Quorum(#[from] QuorumError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// With the file or directory that it was read from.
    #[error("{}: {source}", place.display())]
    At { place: PathBuf, source: QuorumError },
}

/// The controller did not take the request; nothing was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTaken {
    /// It is stopping, or has too many.
    Busy,
    /// The metadata log's disk is full, and this would make the cluster larger.
    DiskFull,
}

/// Where requests for the controller go. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ControllerHandle {
    sender: SyncSender<Message>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    kraft_version: AtomicI16,
    directory: OnceLock<DirectoryId>,
    /// The metadata log's disk is full: it lives on its reserve.
    is_full: AtomicBool,
    /// The log's tail was cut at this start.
    was_cut: AtomicBool,
    /// What the recovery-point checkpoint may name.
    recovery_point: AtomicI64,
}

/// The receiving end, until the thread is started with it.
#[derive(Debug)]
pub struct Requests {
    receiver: Receiver<Message>,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Request { body, .. } => write!(f, "Request({})", body.key()),
            Self::SnapshotWritten { id, .. } => write!(f, "SnapshotWritten({id})"),
            Self::Stop(_) => f.write_str("Stop"),
        }
    }
}

impl ControllerHandle {
    /// `directory`: where the metadata log lies.
    pub fn new(directory: DirectoryId, kraft_version: i16) -> (Self, Requests) {
        let (sender, receiver) = mpsc::sync_channel(REQUESTS_MAX);
        let shared = Shared {
            kraft_version: AtomicI16::new(kraft_version),
            directory: OnceLock::from(directory),
            ..Shared::default()
        };
        (Self { sender, shared: Arc::new(shared) }, Requests { receiver })
    }

    /// The level of `kraft.version`, which stands in no record of the image.
    pub fn kraft_version(&self) -> i16 {
        self.shared.kraft_version.load(Ordering::Relaxed)
    }

    /// Whether the metadata log lies in this directory.
    pub fn lies_in(&self, directory: DirectoryId) -> bool {
        self.shared.directory.get() == Some(&directory)
    }

    /// Whether the metadata log lost its tail at this start, so that it may not know topics whose data is there.
    pub fn log_was_cut(&self) -> bool {
        self.shared.was_cut.load(Ordering::Relaxed)
    }

    /// How far the metadata log is safe.
    pub fn recovery_point(&self) -> Offset {
        Offset(self.shared.recovery_point.load(Ordering::Acquire))
    }

    /// Hands a request to the controller. Its answer comes when what it says is committed and published.
    ///
    /// # Errors
    /// [`NotTaken`]: nothing was decided.
    pub async fn ask(&self, body: impl Into<RequestBody>, asked: Asked) -> Result<ResponseBody, NotTaken> {
        let body = Box::new(body.into());
        if grows(&body) && self.shared.is_full.load(Ordering::Relaxed) {
            return Err(NotTaken::DiskFull);
        }
        let (reply, answer) = oneshot::channel();
        let message = Message::Request { body, asked, reply: Some(reply) };
        self.send(message)?;
        answer.await.map_err(|_| NotTaken::Busy)
    }

    fn send(&self, message: Message) -> Result<(), NotTaken> {
        match self.sender.try_send(message) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Err(NotTaken::Busy),
        }
    }

    /// Asks for topics in the broker's own name. Nobody waits: whoever needs them asks again.
    pub fn auto_create(&self, request: CreateTopicsRequest) {
        if self.shared.is_full.load(Ordering::Relaxed) {
            tracing::debug!("topics were not created: the metadata log's disk is full");
            return;
        }
        let body = Box::new(RequestBody::from(request));
        if self
            .send(Message::Request { body, asked: Asked { version: 7, ..Asked::default() }, reply: None })
            .is_err()
        {
            tracing::debug!("topics were not created: the controller is busy");
        }
    }

    /// Says something in the broker's own name; nobody waits for the answer.
    ///
    /// # Errors
    /// [`NotTaken::Busy`]: to be said again.
    pub fn tell(&self, body: impl Into<RequestBody>, version: i16) -> Result<(), NotTaken> {
        let asked = Asked { version, ..Asked::default() };
        self.send(Message::Request { body: Box::new(body.into()), asked, reply: None })
    }

    /// Gives the reserve's room away, where the metadata log's own directory is one that is `short`: to the end of the node
    /// (checkpoints, snapshots and the marks of a clean stop need a few bytes) or to a start that finds none. It is taken again
    /// when there is room.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn give_reserve_away(
        &self,
        node: &Node,
        short: impl Fn(&Directory) -> bool,
    ) -> Result<(), StorageError> {
        for directory in node.directories.iter().filter(|directory| short(directory)) {
            if self.lies_in(directory.id) {
                self.shared.is_full.store(true, Ordering::Relaxed);
                directory
                    .disk
                    .remove_file(&MetadataFiles::dir_in(&directory.path).join(files::RESERVE_NAME))?;
            }
        }
        Ok(())
    }

    /// Ends the thread after what it has taken; answered when its files are closed.
    pub fn stop(&self) -> oneshot::Receiver<()> {
        let (done, stopped) = oneshot::channel();
        // Blocks only while the queue is full, and the thread empties it. Disconnected: it has ended already.
        let _ = self.sender.send(Message::Stop(done));
        stopped
    }
}

/// Publishes the first image, of a quorum that has read its past, and starts the thread.
///
/// # Errors
/// The first records cannot be written; the system gives no thread.
pub fn start(
    quorum: Quorum,
    files: MetadataFiles,
    requests: Requests,
    node: Arc<Node>,
) -> Result<JoinHandle<()>, Box<dyn std::error::Error>> {
    let shared = &node.controller.shared;
    shared.was_cut.store(files.was_cut, Ordering::Relaxed);
    let mut worker = QuorumWorker { quorum, files, node, replies: HashMap::new(), next_ticket: 0 };
    worker.settle()?;
    worker.retake_reserve()?;
    let thread = std::thread::Builder::new().name("quorum".to_owned());
    Ok(thread.spawn(move || worker.run(&requests.receiver))?)
}

/// What makes the cluster larger: refused while the disk is full. The rest goes on the reserve.
fn grows(body: &RequestBody) -> bool {
    matches!(body, RequestBody::CreateTopics(_) | RequestBody::CreatePartitions(_))
}

struct QuorumWorker {
    quorum: Quorum,
    files: MetadataFiles,
    node: Arc<Node>,
    replies: HashMap<u64, oneshot::Sender<ResponseBody>>,
    next_ticket: u64,
}

impl QuorumWorker {
    fn run(mut self, receiver: &Receiver<Message>) {
        match self.work(receiver) {
            Ok(done) => {
                if let Err(error) = self.files.close() {
                    tracing::error!(%error, "the metadata log was not closed cleanly; the next start recovers it");
                }
                // Whoever asked may have stopped waiting.
                let _ = done.send(());
            }
            // Only on the way out: until then the thread waits for room.
            Err(MetadataError::Storage(error)) if error.is_passing() => {
                tracing::warn!(%error, "the metadata log stops while nothing can be written; what was not written was not answered");
            }
            Err(error) => {
                tracing::error!(%error, "the metadata quorum cannot go on, and the node stops");
                self.node.shutdown.failed("the metadata log has failed");
            }
        }
    }

    fn work(&mut self, receiver: &Receiver<Message>) -> Result<oneshot::Sender<()>, MetadataError> {
        loop {
            let mut stopping = None;
            let mut next = self.wait(receiver);
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
            if self.quorum.next_tick().is_some_and(|at| at <= now.monotonic) {
                self.quorum.tick(now)?;
            }
            self.settle()?;
            if self.is_full() && stopping.is_none() {
                self.retake_reserve()?;
            }
            if let Some(done) = stopping {
                return Ok(done);
            }
        }
    }

    /// The next message; `None` when the quorum's own time has come.
    fn wait(&self, receiver: &Receiver<Message>) -> Option<Message> {
        let MonotonicMs(now) = self.node.clock.monotonic();
        let sleep = self.quorum.next_tick().map_or(60_000, |MonotonicMs(at)| at.saturating_sub(now));
        let sleep = Duration::from_millis(sleep.min(60_000));
        receiver.recv_timeout(if self.is_full() { sleep.min(FULL_PAUSE) } else { sleep }).ok()
    }

    fn take(&mut self, message: Message) -> Result<(), MetadataError> {
        match message {
            Message::Request { body, asked, reply } => {
                self.next_ticket += 1;
                let ticket = self.next_ticket;
                if let Some(reply) = reply {
                    self.replies.insert(ticket, reply);
                }
                let now = self.now();
                let mut random = || crate::directories::random_uuid().0;
                if self.quorum.handle(ticket, *body, asked, now, &mut random)?.is_err() {
                    // Dropping the reply tells the asker; dispatch sends only what the controller knows.
                    self.replies.remove(&ticket);
                }
            }
            Message::SnapshotWritten { id, written } => self.quorum.snapshot_written(id, written),
            Message::Stop(_) => unreachable!("the loop keeps it"),
        }
        Ok(())
    }

    /// Carries out effects until there are none: one sync for all that was appended.
    fn settle(&mut self) -> Result<(), MetadataError> {
        loop {
            let effects = self.quorum.take_effects();
            if effects.is_empty() {
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
                    self.node.controller.shared.recovery_point.store(synced, Ordering::Release);
                }
                self.quorum.synced(end, self.now())?;
            }
        }
    }

    fn append(&mut self, batch: &EncodedBatch) -> Result<(), MetadataError> {
        self.with_room(|worker| worker.files.append(batch, worker.node.clock.wall()))
    }

    /// On a full disk, writes into the reserve. When that is used up as well, waits for room: brokers go on serving what they
    /// have, and whoever asked the controller waits.
    fn with_room(
        &mut self,
        mut write: impl FnMut(&mut Self) -> Result<(), StorageError>,
    ) -> Result<(), MetadataError> {
        loop {
            match write(self) {
                Ok(()) => return Ok(()),
                Err(error) if error.is_passing() => {
                    if !self.node.controller.shared.is_full.swap(true, Ordering::Relaxed) {
                        tracing::error!(
                            %error,
                            "nothing can be written to the metadata log just now: topics and partitions are not created until that ends"
                        );
                        self.files.release_reserve()?;
                    } else if self.node.shutdown.is_wanted() {
                        return Err(error.into());
                    } else {
                        std::thread::sleep(FULL_PAUSE);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn is_full(&self) -> bool {
        self.node.controller.shared.is_full.load(Ordering::Relaxed)
    }

    /// Takes the reserve (again). Where there is no room for it, the disk counts as full.
    fn retake_reserve(&mut self) -> Result<(), MetadataError> {
        let is_full = !self.files.take_reserve()?;
        let was_full = self.node.controller.shared.is_full.swap(is_full, Ordering::Relaxed);
        match (was_full, is_full) {
            (false, true) => tracing::error!(
                "the metadata log's disk is full: topics and partitions are not created until there is room"
            ),
            (true, false) => tracing::info!("there is room for the metadata log again"),
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
                    .controller
                    .shared
                    .kraft_version
                    .store(self.quorum.kraft_version(), Ordering::Relaxed);
                if let Some(broker) = image.cluster.broker(self.node.broker_id) {
                    self.node.set_broker_epoch(broker.epoch);
                }
                publisher::publish(&self.node, image, changes);
            }
            Effect::Respond { ticket, response } => match self.replies.remove(&ticket) {
                // A connection that is gone does not hear its answer.
                Some(reply) => drop(reply.send(response)),
                None => log_unheard(&response),
            },
            Effect::WriteSnapshot(task) => self.write_snapshot(task),
            Effect::DeleteBefore { log_start, snapshots } => {
                match self.files.delete_before(log_start, &snapshots, self.node.clock.wall()) {
                    Err(error) if error.is_passing() => {
                        tracing::warn!(%error, "old parts of the metadata log stay until the next snapshot");
                    }
                    done => done?,
                }
            }
        }
        Ok(())
    }

    /// In the background: it takes a while for a large cluster, and nobody waits for it.
    fn write_snapshot(&mut self, task: Box<SnapshotTask>) {
        let writer = self.files.snapshot_writer();
        let sender = self.node.controller.sender.clone();
        let id = task.id;
        let write = move || {
            let written = writer.write(&task);
            if let Err(error) = &written {
                tracing::error!(snapshot = %id, %error, "a snapshot of the metadata was not written: the log that it would replace is kept, and a later one is tried");
            }
            // The quorum thread may have ended: then nobody needs to know.
            let _ = sender.send(Message::SnapshotWritten { id, written: written.is_ok() });
        };
        if let Err(error) = std::thread::Builder::new().name("snapshot".to_owned()).spawn(write) {
            tracing::error!(snapshot = %id, %error, "a snapshot of the metadata was not written: the log that it would replace is kept, and a later one is tried");
            self.quorum.snapshot_written(id, false);
        }
    }

    fn now(&self) -> Now {
        Now { wall: self.node.clock.wall(), monotonic: self.node.clock.monotonic() }
    }
}

/// What came of topics that the broker asked for in its own name.
fn log_unheard(response: &ResponseBody) {
    let ResponseBody::CreateTopics(response) = response else { return };
    for topic in &response.topics {
        match topic.error_code {
            0 => tracing::info!(topic = %topic.name.as_str(), "topic created since a client named it"),
            // TOPIC_ALREADY_EXISTS: several clients named it at once.
            36 => {}
            code => {
                let why = topic.error_message.as_ref().map_or("", |text| text.as_str());
                tracing::info!(topic = %topic.name.as_str(), code, "topic was not created: {why}");
            }
        }
    }
}
