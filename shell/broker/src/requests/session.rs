//! What a connection's requests know of it, and leave behind for those after them.
//!
//! The connection (connection.rs) and the requests that it starts hold it together. It ends with the last of them: what
//! other parts of the node keep for the connection is released then.
//!
//! Neighbours: connection.rs, which makes progress with it; call.rs, which adds one request's surroundings.

mod affinity;
pub mod audited;
mod open_transactions;
pub mod reading;
pub mod share_members;
pub mod turns;

use crate::controller::broker_probe;
use crate::mailbox::{LoggedIn, NewConnection};
use crate::node::cluster::callers::Callers;
use crate::node::workers::quotas::Limited;
use crate::node::{Node, logins};
use crate::requests::decode::{Beside, Unclaimed};
use affinity::Foreign;
use barnabas_api::k00_produce::forwarding::Forwarding;
use barnabas_api::k01_fetch::FetchSessions;
use barnabas_api::share::Connection as ShareConnection;
use barnabas_api::{Client, k58_envelope};
use barnabas_base::{BrokerEpoch, BrokerId, ConnectionNumber, MonotonicMs, Text};
use barnabas_metrics::clients::OTHER;
use barnabas_metrics::spans::Asker;
use barnabas_metrics::{Passed, Recorder, Stamp, Track, Tracks};
use barnabas_net::{Claim, Claimant};
use barnabas_sasl::exchange::{Authenticated, SaslMechanism};
use barnabas_telemetry::Software;
use barnabas_wire::ApiKey;
use open_transactions::OpenTransactions;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Waker};

/// Requests in a row until the first move. Each move makes the next one four times as hard, so that a producer that
/// wanders over partitions is not carried after them.
pub const MOVE_PATIENCE: u32 = 32;

/// Requests of one connection that may hold replication's reserve at a time. Followers and quorum members send one or a
/// few.
const REPLICATION_IN_FLIGHT_MAX: usize = 4;

/// How many connections more than its own worker another one may have that a connection moves to by choice.
const UNEVEN_MAX: u64 = 8;

/// What a connection's requests know of it.
#[derive(Debug)]
pub struct Session {
    pub node: Arc<Node>,
    pub recorder: Rc<Recorder>,
    pub peer: SocketAddr,
    /// The user whom the TLS certificate names that the client showed, without `User:`.
    pub certified: Option<Text>,
    /// Stays when another worker goes on with the connection.
    pub number: ConnectionNumber,
    /// The listener's place in the node's list.
    pub listener: usize,
    /// Who has authenticated, on a listener with SASL.
    login: RefCell<Option<LoggedIn>>,
    /// As its last ApiVersions request named it.
    software: RefCell<Option<Software>>,
    /// When its session ends; `u64::MAX`: with the connection.
    over_ms: Cell<u64>,
    /// When something last moved, in milliseconds of the process's clock.
    pub active_ms: Cell<u64>,
    pub(super) closing: Cell<bool>,
    /// The worker that serves the connection.
    worker: usize,
    pub(super) patience: u32,
    foreign: Cell<Foreign>,
    /// Answers are on their way to the socket.
    pub(super) writing: Cell<bool>,
    /// The memory budget was spent when one of the answers was read, which holds bytes without a share of it.
    pub is_scarce: Cell<bool>,
    /// The client as its last request named itself, and its place in the figures.
    client: RefCell<Option<(Arc<Client>, u16)>>,
    /// What became of the request whose future has just been polled; taken where it was polled.
    pub passed: Cell<Passed>,
    /// The newest Fetch was a follower's.
    pub follows: Cell<bool>,
    /// And the cluster knows it.
    pub is_follower: Cell<bool>,
    /// Only brokers or controllers connect to the listener.
    is_reserved: bool,
    /// What it claims of the memory budget, on its address's account.
    claimant: Claimant,
    pub(super) unclaimed: Unclaimed,
    /// Bytes of answers that are ready, and not yet on their way to the socket.
    pub(super) unsent: Cell<usize>,
    /// Bytes that Fetches hold whose answers are not ready (session/reading.rs).
    pub(super) reading: Cell<usize>,
    pub open_transactions: RefCell<OpenTransactions>,
    pub forwarding: RefCell<Forwarding>,
    /// The broker whose heartbeats come in by this connection.
    pub registered: Cell<Option<(BrokerId, BrokerEpoch)>>,
    /// As share sessions know it, once one was begun here: its end is theirs.
    pub share_connection: Cell<Option<ShareConnection>>,
    /// What its client may do.
    pub(super) callers: Callers,
    /// The request that was started last was denied as a whole; taken where it is charged.
    pub(super) is_denied: Cell<bool>,
    /// The quotas of the client, once one was looked for.
    pub(super) limited: RefCell<Option<Limited>>,
    /// Nothing is read before; 0: it never was muted.
    muted_until: Cell<MonotonicMs>,
    pub(super) tracks: RefCell<Tracks>,
    wakers: RefCell<[Option<Waker>; 2]>,
}

impl Session {
    pub fn new(node: Arc<Node>, recorder: Rc<Recorder>, new: &NewConnection, worker: usize) -> Self {
        let active_ms = Cell::new(node.clock.monotonic().0);
        let claimant = node.workers.budget.claimant(new.peer.ip());
        let is_reserved = node.identity.listeners[new.listener].0.is_reserved;
        recorder.cells().connected.add(1);
        Self {
            node,
            tracks: RefCell::new(Tracks::new(recorder.clone())),
            recorder,
            peer: new.peer,
            certified: new.certified.clone(),
            number: new.slot.number(),
            listener: new.listener,
            over_ms: Cell::new(new.login.as_ref().map_or(u64::MAX, |login| login.over_ms)),
            login: RefCell::new(new.login.clone()),
            software: RefCell::new(new.software.clone()),
            active_ms,
            closing: Cell::new(false),
            worker,
            patience: new.patience,
            foreign: Cell::default(),
            writing: Cell::new(false),
            is_scarce: Cell::new(false),
            client: RefCell::new(None),
            open_transactions: RefCell::default(),
            forwarding: RefCell::default(),
            registered: Cell::default(),
            share_connection: Cell::new(None),
            passed: Cell::default(),
            follows: Cell::default(),
            is_follower: Cell::default(),
            is_denied: Cell::default(),
            is_reserved,
            claimant,
            unclaimed: Unclaimed::default(),
            unsent: Cell::default(),
            reading: Cell::default(),
            callers: Callers::default(),
            limited: RefCell::default(),
            muted_until: Cell::new(MonotonicMs(0)),
            wakers: RefCell::default(),
        }
    }

    /// The client behind a request. Made once, as long as it goes on naming itself the same.
    pub fn client(&self, client_id: Option<&str>) -> Arc<Client> {
        let mut known = self.client.borrow_mut();
        if let Some((client, _)) = &*known
            && client.client_id.as_deref() == client_id
        {
            return client.clone();
        }
        let place = self.node.workers.metering.client_came(client_id);
        let client = Arc::new(self.described(client_id));
        if let Some((_, left)) = known.replace((client.clone(), place)) {
            self.node.workers.metering.client_left(left);
        }
        client
    }

    /// ApiVersions names the client's software.
    pub(super) fn names_software(&self, name: &str, version: &str) {
        self.software.replace(Some(Software::new(name, version)));
    }

    /// `None`: it has not named it.
    pub(super) fn software(&self) -> Option<Software> {
        self.software.borrow().clone()
    }

    /// The client behind the newest request.
    pub(super) fn known_client(&self) -> Option<Arc<Client>> {
        self.client.borrow().as_ref().map(|(client, _)| client.clone())
    }

    /// As spans name the connection's client.
    pub(super) fn asker(&self) -> Asker {
        let client_id = self.known_client().and_then(|client| client.client_id.clone());
        let listener = &self.node.identity.listeners[self.listener].0;
        Asker { client_id, listener: Text::from(listener.endpoint.listener.as_str()) }
    }

    /// Nothing more is read before then.
    pub(super) fn mute_until(&self, until: MonotonicMs) {
        self.muted_until.set(self.muted_until.get().max(until));
    }

    pub(super) fn muted_until(&self) -> MonotonicMs {
        self.muted_until.get()
    }

    /// A client as core/api sees it.
    pub(super) fn described(&self, client_id: Option<&str>) -> Client {
        let listener = &self.node.identity.listeners[self.listener].0;
        let login = self.login.borrow();
        let login = login.as_ref().map(|login| &login.authenticated.login);
        // On a listener with SASL its login counts, not a certificate (Kafka `DefaultKafkaPrincipalBuilder`).
        let name = login.map(|login| &*login.name).or(self.certified.as_deref()).unwrap_or("ANONYMOUS");
        let principal = Text::from(format!("User:{name}"));
        Client {
            listener: Text::from(listener.endpoint.listener.as_str()),
            client_id: client_id.map(Text::from),
            host: Text::from(format!("/{}", self.peer.ip().to_canonical())),
            principal,
            is_authenticated: login.is_some() || self.certified.is_some(),
            token_authenticated: login.is_some_and(|login| login.token.is_some()),
        }
    }

    /// Who has authenticated.
    pub(super) fn login(&self) -> Option<Authenticated> {
        self.login.borrow().as_ref().map(|login| login.authenticated.clone())
    }

    /// As another worker needs it.
    pub(super) fn handed_login(&self) -> Option<LoggedIn> {
        self.login.borrow().clone()
    }

    /// The client has authenticated, for the first time or again.
    pub(super) fn logged_in(&self, authenticated: Authenticated) {
        let now_ms = self.node.clock.monotonic().0;
        let lifetime = authenticated.lifetime_ms.map(|most| u64::try_from(most).unwrap_or(0));
        let over_ms = lifetime.map_or(u64::MAX, |most| now_ms.saturating_add(most));
        self.over_ms.set(over_ms);
        let began_ms = self.login.borrow().as_ref().map(|_| now_ms);
        self.login.replace(Some(LoggedIn { authenticated, over_ms, began_ms }));
        if let Some((_, place)) = self.client.take() {
            self.node.workers.metering.client_left(place);
        }
    }

    /// Whether a frame begins to authenticate again: at most once a second, as in Kafka.
    pub(super) fn is_again(&self, frame: &[u8], now_ms: u64) -> bool {
        if frame.get(..2) != Some(&[0, ApiKey::SaslHandshake as u8]) {
            return false;
        }
        let login = self.login.borrow();
        login
            .as_ref()
            .is_some_and(|login| login.began_ms.is_none_or(|began| now_ms.saturating_sub(began) >= 1000))
    }

    /// Whether the client's session has ended.
    pub(super) fn is_over(&self, now_ms: u64) -> bool {
        self.over_ms.get() <= now_ms
    }

    /// Whether the user of the connection has lost the credential that it authenticated with.
    pub fn is_revoked(&self) -> bool {
        let login = self.login.borrow();
        let Some(login) = login.as_ref().map(|login| &login.authenticated) else { return false };
        match (login.mechanism, &login.login.token) {
            (_, Some(id)) => !self.node.cluster.image.load().tokens.contains_key(id.as_str()),
            (SaslMechanism::Scram(mechanism), None) => {
                !logins::has_scram(&self.node.cluster.image.load(), mechanism, &login.login.name)
            }
            (SaslMechanism::Plain, None) => {
                let listener = self.node.logins.listener(self.listener);
                listener.is_some_and(|listener| !listener.plain.knows(&login.login.name))
            }
            _ => false,
        }
    }

    /// A request of so many bytes that was read then has just been started. Returns when that is.
    pub(super) fn started(
        &self,
        (api, version, correlation_id): (ApiKey, i16, i32),
        bytes: u32,
        read: Stamp,
    ) -> Stamp {
        let passed = self.passed.take();
        let client = self.client.borrow().as_ref().map_or(OTHER, |(_, place)| *place);
        let started = Stamp::now();
        // What is not ready yet gets its own time later.
        let ready = started;
        let is_follower = api == ApiKey::Fetch && self.follows.get();
        let error = None;
        let track = Track {
            api,
            version,
            correlation_id,
            error,
            is_follower,
            client,
            bytes,
            bytes_out: 0,
            read,
            started,
            ready,
            passed,
        };
        self.tracks.borrow_mut().started(track);
        started
    }

    /// A request to produce or to fetch concerns partitions of these workers.
    pub fn worked_for(&self, owners: impl Iterator<Item = usize>) {
        self.foreign.set(self.foreign.get().after(self.worker, owners));
    }

    /// Where the connection had better be served.
    pub(super) fn move_to(&self) -> Option<usize> {
        let Foreign { owner, same, any } = self.foreign.get();
        if any < self.patience || self.share_connection.get().is_some() {
            return None;
        }
        // Either no other worker can do its work, or several can, and it must not take all connections.
        let connections = |worker| self.node.workers.metering.connections(worker);
        let goes = same >= self.patience || connections(owner) <= connections(self.worker) + UNEVEN_MAX;
        goes.then_some(owner)
    }

    /// The shard that holds fetch session `id`; 0: the one for a new session.
    pub fn fetch_sessions(&self, id: i32) -> MutexGuard<'_, FetchSessions> {
        self.node.workers.fetch_sessions.of(id, self.worker)
    }

    /// The APIs whose next frame may claim replication's reserve, while so many requests wait for their answers.
    pub(super) fn replicates(&self, in_flight: usize) -> Option<fn(i16) -> bool> {
        let is_replication = self.is_follower.get() || self.is_reserved;
        (is_replication && in_flight < REPLICATION_IN_FLIGHT_MAX).then_some(is_of_replication)
    }

    /// An empty share of the memory budget.
    pub fn claim(&self) -> Claim {
        self.claimant.claim()
    }

    /// Where work is done for this client that would hold up the worker.
    pub fn beside(&self) -> Beside<'_> {
        Beside { threads: &self.node.workers.unpacking, address: self.peer.ip().to_canonical() }
    }

    /// Ends the connection at its next turn.
    pub fn close(&self) {
        self.closing.set(true);
        self.wake(Half::End);
    }

    pub(super) fn wake(&self, half: Half) {
        if let Some(waker) = self.wakers.borrow_mut()[half as usize].take() {
            waker.wake();
        }
    }

    pub(super) fn park(&self, half: Half, context: &Context<'_>) {
        let mut wakers = self.wakers.borrow_mut();
        let waker = &mut wakers[half as usize];
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.recorder.cells().disconnected.add(1);
        if let Some((id, epoch)) = self.registered.get() {
            broker_probe::connection_closed(&self.node, id, epoch);
        }
        if let Some(connection) = self.share_connection.get() {
            share_members::gone(&self.node, connection);
        }
        if let Some((_, place)) = self.client.get_mut().take() {
            self.node.workers.metering.client_left(place);
        }
    }
}

/// What brokers and controllers send each other in their own names. An Envelope is not among them: a client decides how
/// large it is.
fn is_of_replication(key: i16) -> bool {
    ApiKey::from_number(key).is_some_and(|api| {
        k58_envelope::is_own(api)
            || matches!(
                api,
                ApiKey::ApiVersions
                    | ApiKey::Fetch
                    | ApiKey::FetchSnapshot
                    | ApiKey::ListOffsets
                    | ApiKey::OffsetForLeaderEpoch
                    | ApiKey::WriteTxnMarkers
                    | ApiKey::Vote
                    | ApiKey::BeginQuorumEpoch
                    | ApiKey::EndQuorumEpoch
                    | ApiKey::UpdateRaftVoter
            )
    })
}

/// The two halves of a connection's task, which wake each other.
#[derive(Debug, Clone, Copy)]
pub(super) enum Half {
    Read = 0,
    End = 1,
}
