//! Where requests for the controller go, wherever it is: into this node's quorum thread, or over a link to the node
//! that leads.
//!
//! Every broker uses this handle, even one whose own process is the active controller: the quorum's thread takes the
//! request or hands it back. Without a leader the request waits, within bounds.
//!
//! Before: requests/cluster/admin.rs and all that the broker says in its own name. After: quorum_worker.rs here,
//! forward.rs elsewhere.

pub(super) mod forward;

use super::figures::Figures;
use super::{Message, Reply};
use crate::node::cluster_events::ClusterEvents;
use crate::node::workers::repeated::RepeatedLines;
use barnabas_base::{BrokerEpoch, BrokerId, DirectoryId, ErrorCode, LeaderEpoch, Offset};
use barnabas_metadata::Image;
use barnabas_net::links::{Address, Link, LinkLogin, LinkThread};
use barnabas_quorum::controller::{Asked, AskingClient};
use barnabas_quorum::raft::message::{Request as PeerRequest, Response as PeerResponse};
use barnabas_quorum::raft::requests::Here;
use barnabas_tls::ClientTls;
use barnabas_wire::messages::CreateTopicsRequest;
use barnabas_wire::{RequestBody, ResponseBody};
use std::sync::atomic::{AtomicBool, AtomicI16, AtomicI64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{timeout, timeout_at};

/// Requests that wait for the controller; more are told that it is busy.
const REQUESTS_MAX: usize = 4096;
/// The broker's own requests without a waiting caller, at once.
const SAID_MAX: usize = 64;
/// How long a request is tried while controllers come and go. Below the 30 s that Kafka's clients wait.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two tries, where nothing is known to have changed.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a new topic's answer is waited for before the disk may be why there is none.
const ROOM_PAUSE: Duration = Duration::from_millis(500);

/// The controller did not take the request; nothing was decided, but for [`NotTaken::NoRoom`] and
/// [`NotTaken::Unknown`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTaken {
    /// It is stopping, or has too many.
    Busy,
    /// The metadata log's disk is full, and this would make the cluster larger.
    DiskFull,
    /// The same, and there is no room either for what was decided: it comes about once there is.
    NoRoom,
    /// The active controller will not take it in this form: Kafka's code for why.
    Refused(ErrorCode),
    /// The metadata quorum had no leader in time, or the leader could not be reached.
    NoController,
    /// It stopped leading with the request under way, which may come about or not.
    Unknown,
}

/// Who leads the metadata quorum, as far as this node knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActiveController {
    pub leader: Option<BrokerId>,
    pub epoch: LeaderEpoch,
    /// Where it listens; `None` where that is not known.
    pub address: Option<Address>,
    /// It is this node.
    pub is_here: bool,
}

/// Where requests for the controller go. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ControllerHandle {
    pub shared: Arc<Shared>,
}

#[derive(Debug)]
pub struct Shared {
    sender: SyncSender<Message>,
    pub kraft_version: AtomicI16,
    directory: OnceLock<DirectoryId>,
    /// The metadata log's disk is full: it lives on its reserve.
    pub is_full: AtomicBool,
    /// The reserve is used up as well: the thread waits for room.
    pub waits_for_room: AtomicBool,
    /// The log's tail was cut at this start.
    pub was_cut: AtomicBool,
    /// The broker of this node lived on after what its disk knows: the disk was restored to an earlier moment.
    pub has_outlived_disk: AtomicBool,
    /// What the recovery-point checkpoint may name.
    pub recovery_point: AtomicI64,
    /// Where the metadata log ends here, committed or not.
    pub log_end: AtomicI64,
    pub figures: Figures,
    /// What the log says of requests that are not forwarded.
    repeated: RepeatedLines,
    /// What the log is to say of the cluster.
    pub events: ClusterEvents,
    active: watch::Sender<ActiveController>,
    /// Whether an image was published.
    has_image: watch::Sender<bool>,
    /// The link to the active controller, where it is another node.
    pub link: Mutex<Option<Link>>,
    pub links: LinkThread,
    /// For that link.
    tls: Option<Arc<ClientTls>>,
    here: Arc<Here>,
    /// What links to other controllers log in with.
    login: OnceLock<LinkLogin>,
    said: Arc<Semaphore>,
}

/// The receiving end, until the thread is started with it.
#[derive(Debug)]
pub struct Requests {
    pub receiver: Receiver<Message>,
}

impl Shared {
    pub fn sender(&self) -> SyncSender<Message> {
        self.sender.clone()
    }
}

impl ControllerHandle {
    /// `directory`: where the metadata log lies.
    pub fn new(
        directory: DirectoryId,
        kraft_version: i16,
        (links, tls): (LinkThread, Option<Arc<ClientTls>>),
        here: Arc<Here>,
    ) -> (Self, Requests) {
        let (sender, receiver) = mpsc::sync_channel(REQUESTS_MAX);
        let shared = Shared {
            sender,
            kraft_version: AtomicI16::new(kraft_version),
            directory: OnceLock::from(directory),
            is_full: AtomicBool::default(),
            waits_for_room: AtomicBool::default(),
            was_cut: AtomicBool::default(),
            has_outlived_disk: AtomicBool::default(),
            recovery_point: AtomicI64::default(),
            log_end: AtomicI64::default(),
            figures: Figures::default(),
            repeated: RepeatedLines::default(),
            events: ClusterEvents::default(),
            active: watch::Sender::new(ActiveController::default()),
            has_image: watch::Sender::new(false),
            link: Mutex::new(None),
            links,
            tls,
            here,
            login: OnceLock::new(),
            said: Arc::new(Semaphore::new(SAID_MAX)),
        };
        (Self { shared: Arc::new(shared) }, Requests { receiver })
    }

    /// The level of `kraft.version`, which stands in no record of the image.
    pub fn kraft_version(&self) -> i16 {
        self.shared.kraft_version.load(Ordering::Relaxed)
    }

    /// Links to other controllers log in from now on. To be called before there is one.
    pub fn log_in_with(&self, login: LinkLogin) {
        // The first call counts.
        let _ = self.shared.login.set(login);
    }

    /// What other members' requests are read against.
    pub fn here(&self) -> Arc<Here> {
        self.shared.here.clone()
    }

    /// Who leads, and who will.
    pub fn watch(&self) -> watch::Receiver<ActiveController> {
        self.shared.active.subscribe()
    }

    /// The quorum's leader; [`BrokerId::NONE`] while it is unknown.
    pub fn leader(&self) -> BrokerId {
        self.shared.active.borrow().leader.unwrap_or(BrokerId::NONE)
    }

    /// Who leads, and in which epoch.
    pub fn active(&self) -> ActiveController {
        self.shared.active.borrow().clone()
    }

    /// Where the metadata log ends here, committed or not.
    pub fn log_end(&self) -> Offset {
        Offset(self.shared.log_end.load(Ordering::Acquire))
    }

    pub fn figures(&self) -> &Figures {
        &self.shared.figures
    }

    /// Whether this node is the active controller.
    pub fn is_active(&self) -> bool {
        self.shared.active.borrow().is_here
    }

    pub fn led_by(&self, active: ActiveController) {
        self.shared.active.send_if_modified(|known| std::mem::replace(known, active.clone()) != active);
    }

    pub fn published(&self) {
        self.shared.has_image.send_if_modified(|has_image| !std::mem::replace(has_image, true));
    }

    pub fn events(&self) -> &ClusterEvents {
        &self.shared.events
    }

    /// Whether this node knows what the cluster is like.
    pub fn has_image(&self) -> bool {
        *self.shared.has_image.borrow()
    }

    /// Whether the metadata log says more of this broker than its disk can have. Known with the first image.
    pub fn has_outlived_disk(&self) -> bool {
        self.shared.has_outlived_disk.load(Ordering::Acquire)
    }

    /// Becomes true when this node knows what the cluster is like.
    pub fn watch_image(&self) -> watch::Receiver<bool> {
        self.shared.has_image.subscribe()
    }

    /// How this node stands to its quorum, for its operator.
    pub fn standing(&self) -> String {
        let active = self.shared.active.borrow().clone();
        match active {
            ActiveController { is_here: true, epoch, .. } => {
                format!("this node leads in epoch {epoch}, and waits for a majority of the voters")
            }
            ActiveController { leader: Some(leader), epoch, address: Some(address), .. } => {
                format!("node {leader} at {address} leads in epoch {epoch}, and is not caught up with yet")
            }
            ActiveController { epoch, .. } => format!(
                "no leader is known (epoch {epoch}). A majority of the voters must run and reach each other: check \
                 controller.quorum.voters or controller.quorum.bootstrap.servers, and the logs of the other controllers"
            ),
        }
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

    /// Hands a request to the active controller. Its answer comes when what it says is committed and, where this node
    /// leads, published.
    ///
    /// # Errors
    /// [`NotTaken`]
    pub async fn ask(&self, body: impl Into<RequestBody>, asked: Asked) -> Result<ResponseBody, NotTaken> {
        let mut body = Box::new(body.into());
        let until = barnabas_clock::now() + PATIENCE;
        let mut watch = self.watch();
        loop {
            let active = watch.borrow_and_update().clone();
            if active.is_here {
                match self.ask_here(body, asked.clone()).await? {
                    Reply::Answer(response) => return Ok(response),
                    Reply::LeadershipLost => return Err(NotTaken::Unknown),
                    Reply::Back(back) => body = back,
                }
            } else if active.address.is_some() {
                // A controller that is silent and no longer the leader is not waited for: the request is sent to its
                // successor, even if the former leader may have received it.
                let succeeded = |now: &ActiveController| now.leader.is_some() && now.leader != active.leader;
                let answer = tokio::select! {
                    biased;
                    answer = self.ask_there(&active, &body, &asked, until) => answer,
                    Ok(_) = watch.wait_for(succeeded) => continue,
                };
                match answer {
                    Some(answer) => return answer,
                    None if barnabas_clock::now() >= until => return Err(NotTaken::NoController),
                    None => {}
                }
            }
            // Until another leads, or for a moment: what failed may succeed with the same one.
            let tried = active.is_here || active.address.is_some();
            let wake = if tried { until.min(barnabas_clock::now() + PAUSE) } else { until };
            match timeout_at(wake.into(), watch.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(NotTaken::Busy),
                Err(_) if barnabas_clock::now() >= until => return Err(NotTaken::NoController),
                Err(_) => {}
            }
        }
    }

    /// Only of this node: for requests that others sent here since they think that it leads. `None`: it does not.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn ask_active(
        &self,
        body: RequestBody,
        asked: Asked,
    ) -> Result<Option<ResponseBody>, NotTaken> {
        match self.ask_here(Box::new(body), asked).await? {
            Reply::Answer(response) => Ok(Some(response)),
            Reply::Back(_) | Reply::LeadershipLost => Ok(None),
        }
    }

    async fn ask_here(&self, body: Box<RequestBody>, asked: Asked) -> Result<Reply, NotTaken> {
        let grows = grows(&body);
        if grows && self.shared.is_full.load(Ordering::Relaxed) {
            return Err(NotTaken::DiskFull);
        }
        let (reply, mut answer) = oneshot::channel();
        self.send(Message::Request { body, asked, reply: Some(reply) })?;
        if !grows {
            return answer.await.map_err(|_| NotTaken::Busy);
        }
        loop {
            match timeout(ROOM_PAUSE, &mut answer).await {
                Ok(reply) => return reply.map_err(|_| NotTaken::Busy),
                Err(_) if self.shared.waits_for_room.load(Ordering::Relaxed) => return Err(NotTaken::NoRoom),
                Err(_) => {}
            }
        }
    }

    fn send(&self, message: Message) -> Result<(), NotTaken> {
        match self.shared.sender.try_send(message) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Err(NotTaken::Busy),
        }
    }

    /// Hands another member's request to the quorum. `None`: it takes no more, or has no answer.
    pub async fn ask_member(&self, request: PeerRequest) -> Option<PeerResponse> {
        let (reply, answer) = oneshot::channel();
        self.send(Message::PeerAsked { request: Box::new(request), reply }).ok()?;
        answer.await.ok()
    }

    /// Says that a broker's process is gone. Where this node is not the active controller, that has no consequences.
    pub fn broker_is_gone(&self, id: BrokerId, epoch: BrokerEpoch) {
        if self.send(Message::BrokerGone { id, epoch }).is_err() {
            tracing::debug!(%id, "the controller is busy: the broker's session will run out instead");
        }
    }

    /// Requests topics in the name of the client that needs them, or in the broker's own. There is no answer: the
    /// client asks again.
    pub fn auto_create(&self, request: CreateTopicsRequest, client: Option<AskingClient>) {
        if self.shared.is_full.load(Ordering::Relaxed) && self.is_active() {
            tracing::debug!("topics were not created: the metadata log's disk is full");
            return;
        }
        if self.say(request.into(), Asked { version: 7, client, ..Asked::default() }).is_err() {
            tracing::debug!("topics were not created: the controller is busy");
        }
    }

    /// Sends a request in the broker's own name without waiting for the answer.
    ///
    /// # Errors
    /// [`NotTaken::Busy`]: to be said again.
    pub fn tell(&self, body: impl Into<RequestBody>, version: i16) -> Result<(), NotTaken> {
        self.say(body.into(), Asked { version, ..Asked::default() })
    }

    fn say(&self, body: RequestBody, asked: Asked) -> Result<(), NotTaken> {
        if self.is_active() {
            return self.send(Message::Request { body: Box::new(body), asked, reply: None });
        }
        let permit = self.shared.said.clone().try_acquire_owned().map_err(|_| NotTaken::Busy)?;
        let handle = self.clone();
        self.shared.links.handle().spawn(async move {
            match handle.ask(body, asked).await {
                Ok(response) => forward::log_unheard(&response, handle.events()),
                Err(why) => tracing::debug!(?why, "the controller did not hear what this broker had to say"),
            }
            drop(permit);
        });
        Ok(())
    }

    /// Whether the metadata log has something that `image` does not show yet.
    pub fn knows_more(&self, image: &Image) -> bool {
        Offset(self.shared.log_end.load(Ordering::Acquire)) > image.provenance.end
    }

    /// This node is about to stop: where others vote, one of them is to lead, before this one's connections and logs
    /// are closed.
    pub fn resign(&self) {
        if self.send(Message::Resign).is_err() {
            tracing::debug!("the quorum's thread is busy: it resigns when it ends");
        }
    }

    /// Ends the thread after what it has taken; answered when its files are closed.
    pub fn stop(&self) -> oneshot::Receiver<()> {
        let (done, stopped) = oneshot::channel();
        // Blocks only while the queue is full, and the thread empties it. Disconnected: it has ended already.
        let _ = self.shared.sender.send(Message::Stop(done));
        stopped
    }
}

/// What makes the cluster larger: refused while the disk is full. The rest goes on the reserve.
fn grows(body: &RequestBody) -> bool {
    matches!(body, RequestBody::CreateTopics(_) | RequestBody::CreatePartitions(_))
}
