//! A broker's life in its cluster: it registers with the active controller, keeps in touch, asks to be unfenced once it
//! serves, and asks for a controlled shutdown.
//!
//! One way for all brokers: also that of a process which is the active controller itself asks through
//! [`ControllerHandle::ask`]. Only where the process is the quorum's only voter has the quorum registered it already,
//! when it read its log.
//!
//! Source: KIP-631; Kafka `BrokerLifecycleManager`.
//!
//! [`ControllerHandle::ask`]: crate::node::peers::controller::ControllerHandle::ask

use crate::node::Node;
use crate::node::log_rate_limit::LogRateLimit;
use crate::node::log_rate_limit::Unsaid;
use crate::node::peers::controller::NotTaken;
use crate::node::workers::repeated::Repeated;
use crate::requests::quorum::identity_mismatch;
use crate::requests::quorum::identity_mismatch::Registrant;
use crate::upkeep::last_life;
use crate::upkeep::placement::reports;
use barnabas_base::{BrokerEpoch, BrokerId, DurationMs, ErrorCode};
use barnabas_identity::lifecycle::{
    AfterHeartbeat, Life, Unregistered, after_heartbeat, after_registration, must_register, untaken_text,
};
use barnabas_quorum::controller::Asked;
use barnabas_wire::ResponseBody;
use barnabas_wire::messages::{
    BrokerHeartbeatResponse, BrokerRegistrationRequest, ControllerRegistrationRequest,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Between heartbeats while the broker waits to be unfenced, or for its controlled shutdown.
const SOON: Duration = Duration::from_millis(20);
/// How often a controller looks whether the cluster still knows it.
const REGISTERED_CHECK: Duration = Duration::from_secs(5);
/// Between tries to register.
const RETRY: Duration = Duration::from_millis(200);
/// How long a broker that stops waits for its partitions to find other leaders.
const GOODBYE_PATIENCE: Duration = Duration::from_secs(30);
/// The same, while no controller answers: the quorum has no leader, perhaps because the whole cluster stops.
const SILENCE: Duration = Duration::from_secs(3);

/// What is known of the broker's standing. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Lifecycle {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// It serves: clients may be sent to it.
    is_ready: AtomicBool,
    shutdown_requested: AtomicBool,
    /// The controller lets it go.
    may_stop: AtomicBool,
    /// Heartbeats that the controller has answered.
    heard: AtomicU64,
    changed: Notify,
}

impl Lifecycle {
    /// Starts the task that keeps in touch.
    pub fn start(&self, node: Arc<Node>, registration: BrokerRegistrationRequest) {
        let shared = self.shared.clone();
        let handle = node.peers.links.handle().clone();
        handle.spawn(live(node, registration, shared));
    }

    /// The broker serves from now on.
    pub fn ready(&self) {
        self.shared.is_ready.store(true, Ordering::Release);
        self.shared.changed.notify_one();
    }

    /// Asks for a controlled shutdown, and waits until the controller lets the broker go, or for a while. Blocks.
    /// Returns whether others lead by now what this broker led.
    pub fn controlled_shutdown(&self, node: &Node) -> bool {
        if is_alone(node) {
            return false;
        }
        let asked = barnabas_clock::now();
        let (mut heard, mut heard_at) = (self.shared.heard.load(Ordering::Relaxed), asked);
        self.shared.shutdown_requested.store(true, Ordering::Release);
        self.shared.changed.notify_one();
        while !self.shared.may_stop.load(Ordering::Acquire) {
            let now_heard = self.shared.heard.load(Ordering::Relaxed);
            if now_heard != heard {
                (heard, heard_at) = (now_heard, barnabas_clock::now());
            }
            if barnabas_clock::since(heard_at) >= SILENCE {
                tracing::info!(
                    "no active controller was reachable for a controlled shutdown; leadership moves when \
                     the broker session expires"
                );
                return false;
            }
            if barnabas_clock::since(asked) >= GOODBYE_PATIENCE {
                tracing::warn!(
                    "controlled shutdown timed out after {} s; leadership moves when the broker session \
                     expires",
                    GOODBYE_PATIENCE.as_secs()
                );
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }
}

/// Whether the cluster has no other node.
fn is_alone(node: &Node) -> bool {
    let image = node.cluster.image.load();
    let others = image.cluster.brokers().any(|broker| broker.id != node.identity.broker_id);
    node.peers.controller.is_active() && !others
}

fn life(node: &Node) -> Life {
    Life { broker: node.identity.broker_id, incarnation: node.identity.incarnation }
}

async fn live(node: Arc<Node>, registration: BrokerRegistrationRequest, shared: Arc<Shared>) {
    let interval_ms = node.cluster.config.load().long("broker.heartbeat.interval.ms").max(1).unsigned_abs();
    let interval = Duration::from_millis(interval_ms);
    let mut active = node.peers.controller.watch();
    // The level of the cluster at which it was last told of the log directories once more.
    let mut told_at = None;
    if !is_member(&node, &registration, &shared).await {
        return;
    }
    loop {
        let shutdown_requested = shared.shutdown_requested.load(Ordering::Acquire);
        if let Some(level) = life(&node).level_without_directories(&node.cluster.image.load())
            && told_at.replace(level) != Some(level)
        {
            tracing::info!(
                "metadata.version {level} supports log directories: broker {} registers again with its \
                 directories",
                node.identity.broker_id
            );
            if !register(&node, &registration, &shared).await {
                return;
            }
        }
        // A controller never misses the broker of its own process.
        let is_silent = node.peers.controller.is_active()
            && life(&node).is_unfenced(&node.cluster.image.load())
            && !shutdown_requested;
        let mut wake = interval;
        if !is_silent {
            let wants_fence = !shared.is_ready.load(Ordering::Acquire);
            let answer = beat(&node, wants_fence, shutdown_requested).await;
            shared.heard.fetch_add(u64::from(answer.is_some()), Ordering::Relaxed);
            match after_heartbeat(answer.as_ref(), wants_fence, shutdown_requested) {
                AfterHeartbeat::RegisterAgain => {
                    note_unknown_epoch(&node);
                    if !register(&node, &registration, &shared).await {
                        return;
                    }
                    wake = Duration::ZERO;
                }
                AfterHeartbeat::Refused(code) => {
                    note_refused_heartbeat(&node, code);
                    wake = RETRY;
                }
                AfterHeartbeat::Stop => {
                    shared.may_stop.store(true, Ordering::Release);
                    return;
                }
                AfterHeartbeat::AskSoon => wake = SOON,
                AfterHeartbeat::Wait => {}
                AfterHeartbeat::Unheard => wake = RETRY,
            }
        }
        tokio::select! {
            () = tokio::time::sleep(wake) => {}
            () = shared.changed.notified() => {}
            changed = active.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

fn note_unknown_epoch(node: &Node) {
    if let Some(unsaid) = node.workers.repeated.happened(Repeated::RegistersAgain) {
        tracing::info!(
            "the controller does not know broker epoch {}; the broker registers again{unsaid}",
            node.identity.broker_epoch()
        );
    }
}

fn note_refused_heartbeat(node: &Node, code: i16) {
    if let Some(unsaid) = node.workers.repeated.happened(Repeated::HeartbeatRefused) {
        tracing::warn!(code, "the controller refused a heartbeat of this broker{unsaid}");
    }
}

/// Registers, unless the quorum has done that already. `false` if that cannot be: the node stops then.
async fn is_member(node: &Arc<Node>, registration: &BrokerRegistrationRequest, shared: &Shared) -> bool {
    if node.identity.broker_epoch() == BrokerEpoch::NONE {
        return register(node, registration, shared).await;
    }
    note_life(node).await;
    true
}

/// Registers this node's controller with the active one: also where it is the quorum's only voter, since tools look for
/// the active controller among those that are registered (KIP-919), and others may join. One that runs and is forgotten
/// (UnregisterController, KIP-1312) registers again, as Kafka's does.
pub fn register_controller(node: &Arc<Node>, registration: ControllerRegistrationRequest) {
    let registering = node.clone();
    node.peers.links.handle().spawn(async move {
        let node = registering;
        let mut watch = node.peers.controller.watch_image();
        if watch.wait_for(|has_image| *has_image).await.is_err() {
            return;
        }
        while !node.shutdown.is_wanted() {
            if is_alone(&node) {
                // It can wait: what a full disk has left belongs to the start, and to those who make more.
                tokio::time::sleep(RETRY * 3).await;
                if node.log_dirs.directories.iter().any(|directory| directory.room.is_short()) {
                    continue;
                }
            }
            let asked = Asked::default();
            match node.peers.controller.ask(registration.clone(), asked).await {
                Ok(ResponseBody::ControllerRegistration(response))
                    if response.error_code == 0
                        // The cluster is at a level that knows no registrations of controllers.
                        || response.error_code == ErrorCode::UnsupportedVersion.code() =>
                {
                    // Not at once: this node's own image may not show it yet.
                    tokio::time::sleep(REGISTERED_CHECK).await;
                    while !node.shutdown.is_wanted()
                        && !must_register(&node.cluster.image.load(), &registration)
                    {
                        tokio::time::sleep(REGISTERED_CHECK).await;
                    }
                    continue;
                }
                Ok(ResponseBody::ControllerRegistration(response)) => {
                    let code = ErrorCode::from_code(response.error_code);
                    tracing::warn!(%code, "the active controller did not register this broker; retrying");
                }
                Ok(_) => tracing::warn!(
                    "the active controller sent an unexpected response to the \
                    registration"
                ),
                Err(why) => tracing::debug!(?why, "this controller is not registered yet"),
            }
            tokio::time::sleep(RETRY * 10).await;
        }
    });
}

/// Registers; `false` if that cannot be: the node stops then.
async fn register(node: &Arc<Node>, registration: &BrokerRegistrationRequest, shared: &Shared) -> bool {
    let timeout =
        DurationMs(node.cluster.config.load().long("initial.broker.registration.timeout.ms").max(0));
    let asked = barnabas_clock::now();
    let (mut has_said, doubles, waits) = (false, LogRateLimit::default(), LogRateLimit::default());
    loop {
        let answer =
            node.peers.controller.ask(registration.clone(), Asked { version: 4, ..Asked::default() }).await;
        let code = match answer {
            Ok(ResponseBody::BrokerRegistration(response)) if response.error_code == 0 => {
                let epoch = BrokerEpoch(response.broker_epoch);
                tracing::info!("broker {} is registered at epoch {epoch}", node.identity.broker_id);
                node.identity.set_broker_epoch(epoch);
                note_life(node).await;
                return true;
            }
            Ok(ResponseBody::BrokerRegistration(response)) => ErrorCode::from_code(response.error_code),
            Ok(_) => ErrorCode::UnknownServerError,
            Err(NotTaken::NoController | NotTaken::Unknown) => ErrorCode::NotController,
            Err(NotTaken::Refused(code)) => code,
            Err(NotTaken::Busy | NotTaken::DiskFull | NotTaken::NoRoom) => ErrorCode::RequestTimedOut,
        };
        if shared.shutdown_requested.load(Ordering::Acquire) {
            shared.may_stop.store(true, Ordering::Release);
            return false;
        }
        let leader = node.peers.controller.leader();
        let asked_for =
            DurationMs(i64::try_from(barnabas_clock::since(asked).as_millis()).unwrap_or(i64::MAX));
        match after_registration(code, &node.identity.cluster_id, asked_for, timeout) {
            Unregistered::Refused(why) => {
                tracing::error!(
                    "the active controller (node {leader}) refuses broker {}: {why}",
                    node.identity.broker_id
                );
                node.shutdown.failed("this broker cannot register with its cluster");
                return false;
            }
            Unregistered::TooLate => {
                tracing::error!(
                    %code,
                    "broker {} was not registered by the active controller (node {leader}) within {} ms",
                    node.identity.broker_id,
                    timeout.0
                );
                node.shutdown.failed(
                    "this broker could not register in time (initial.broker.registration.timeout.ms)",
                );
                return false;
            }
            Unregistered::Double => {
                say_waits_for_double(node, leader, std::mem::replace(&mut has_said, true));
                let (id, patience) = (node.identity.broker_id, identity_mismatch::session_timeout(node));
                if let Some(unsaid) = doubles.lasts(&id, patience, barnabas_clock::now()) {
                    say_double(node, registration, unsaid);
                }
            }
            Unregistered::Untaken => {
                if let Some(unsaid) = waits.happened(&node.identity.broker_id, barnabas_clock::now()) {
                    say_untaken(node, leader, unsaid);
                }
            }
            Unregistered::Wait => {}
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// The links have other work while the disk is waited for.
async fn note_life(node: &Arc<Node>) {
    let noting = node.clone();
    if let Err(error) = tokio::task::spawn_blocking(move || last_life::note(&noting)).await {
        tracing::warn!(%error, "the broker epoch is not noted in the log directories: after a kill, this broker counts as shut down uncleanly");
    }
}

/// A cluster that works has registered a broker by now. Said long before the start is given up.
fn say_untaken(node: &Node, leader: BrokerId, unsaid: Unsaid) {
    tracing::warn!(
        "broker {} is not registered yet and serves no clients: {}{unsaid}",
        node.identity.broker_id,
        untaken_text(leader)
    );
}

fn say_waits_for_double(node: &Node, leader: BrokerId, has_said: bool) {
    if !has_said {
        tracing::info!(
            "broker {} is registered by another process with a live session at the active controller \
             (node {leader}); waiting for that session to expire. Unless it is a former run of this \
             node, two nodes have the same node.id",
            node.identity.broker_id
        );
    }
}

/// This node's former life would be gone by now.
fn say_double(node: &Node, registration: &BrokerRegistrationRequest, unsaid: Unsaid) {
    let image = node.cluster.image.load();
    let other =
        image.cluster.broker(node.identity.broker_id).map(|broker| identity_mismatch::described(broker));
    let here = Registrant::of(registration);
    tracing::warn!(
        "two nodes have the same node.id: broker {} {} is alive, so this process ({here}) is not \
         registered. Change the node.id of one of them{unsaid}",
        node.identity.broker_id,
        other.as_deref().unwrap_or("is another process"),
    );
}

async fn beat(node: &Node, want_fence: bool, want_shut_down: bool) -> Option<BrokerHeartbeatResponse> {
    let mut request = reports::heartbeat_request(node);
    request.want_fence = want_fence;
    request.want_shut_down = want_shut_down;
    match node.peers.controller.ask(request, Asked { version: 2, ..Asked::default() }).await {
        Ok(ResponseBody::BrokerHeartbeat(response)) => Some(*response),
        Ok(_) => None,
        Err(why) => {
            tracing::debug!(?why, "a heartbeat was not heard");
            None
        }
    }
}
