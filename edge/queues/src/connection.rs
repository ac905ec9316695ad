//! One peer: the socket, core/amqp's machine, and what goes between it and the tasks of its links.
//!
//! Bounded, for each connection: payloads that came and are not settled ([`HELD_BYTES_MAX`], two messages at least),
//! deliveries that came ([`CREDIT`] a link), deliveries that go out ([`OUTGOING_BYTES_MAX`] beside the socket's), tasks
//! ([`LINKS_MAX`], those of links that are gone included), transactions (`connection/transactions.rs`).
//!
//! Before: edge/queue-access/src/listener.rs. After: open.rs, which chooses a link's task. Between them: link.rs. The
//! machine: core/amqp/src/server.rs. Transactions: connection/transacting.rs.

mod transacting;
mod transactions;

use crate::link::{
    CREDIT, Deliver, Demand, FromLink, MESSAGE_BYTES_MAX, OUTGOING_BYTES_MAX, Opening, Place, ToLink,
    UNSETTLED_MAX,
};
use crate::login;
use crate::open::{self, Wanted};
use crate::refusal;
use barnabas_amqp::{
    AmqpError, Arrived, Attach, Condition, DeliveryKey, LoginStep, Outcome, PeerLink, Server, ServerConfig,
    ServerEvent,
};
use barnabas_base::MonotonicMs;
use barnabas_client::ClusterConfig;
use barnabas_net::Stream;
use barnabas_queue_access::{LOGIN_WITHIN, Logins, Origin, Producers, Slots, Socket};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::spawn_local;
use transactions::Transactions;

const SESSIONS_MAX: u16 = 64;
const LINKS_MAX: usize = 256;
const HELD_BYTES_MAX: usize = 2 * MESSAGE_BYTES_MAX;
/// While so much waits to be written, no delivery is added.
const WRITE_BYTES_MAX: usize = 256 * 1024;
const IDLE_TIMEOUT_MS: u32 = 60_000;
const REPORTS_MAX: usize = 64;

#[derive(Debug)]
struct Held {
    to: mpsc::Sender<ToLink>,
    demand: watch::Sender<Demand>,
    /// Deliveries that were sent.
    sent: u64,
    waiting: VecDeque<Deliver>,
    is_drained: bool,
    places: BTreeMap<DeliveryKey, Place>,
    /// Deliveries that came and have no outcome.
    outstanding: u32,
    receives: bool,
    is_coordinator: bool,
    /// Of a link that the peer sends on: where its messages go.
    topic: Option<String>,
}

#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    server: Server,
    started: Instant,
    logins: Logins,
    producers: Producers,
    origin: Origin,
    /// How this peer's connections to the broker are opened, once it is known.
    kafka: Option<ClusterConfig>,
    links: BTreeMap<PeerLink, Held>,
    transactions: Transactions<PeerLink, DeliveryKey>,
    /// Tasks of links that are gone, where deliveries of theirs are in a transaction.
    lingering: BTreeMap<PeerLink, mpsc::Sender<ToLink>>,
    slots: Slots,
    reports: (mpsc::Sender<FromLink>, mpsc::Receiver<FromLink>),
    outgoing: Arc<Semaphore>,
    places: Arc<Semaphore>,
    has_opened: bool,
    is_closed: bool,
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error(transparent)]
    Amqp(#[from] AmqpError),
    #[error("the socket: {0}")]
    Io(#[from] std::io::Error),
    #[error("no login within {} s", LOGIN_WITHIN.as_secs())]
    Late,
}

impl Connection {
    pub fn new(stream: Stream, logins: Logins, producers: Producers, slots: Slots) -> Self {
        let config = ServerConfig {
            mechanisms: login::offered(&logins),
            needs_login: logins.needs_login(),
            message_bytes_max: MESSAGE_BYTES_MAX,
            held_bytes_max: HELD_BYTES_MAX,
            idle_timeout_ms: IDLE_TIMEOUT_MS / 2,
            sessions_max: SESSIONS_MAX,
            links_max: LINKS_MAX,
            ..ServerConfig::default()
        };
        Self {
            socket: Socket::new(stream),
            server: Server::new(config, MonotonicMs(0)),
            started: Instant::now(),
            logins,
            origin: producers.origin(),
            producers,
            kafka: None,
            links: BTreeMap::new(),
            transactions: Transactions::default(),
            lingering: BTreeMap::new(),
            slots,
            reports: mpsc::channel(REPORTS_MAX),
            outgoing: Arc::new(Semaphore::new(OUTGOING_BYTES_MAX)),
            places: Arc::new(Semaphore::new(LINKS_MAX)),
            has_opened: false,
            is_closed: false,
        }
    }

    /// Until the connection ends. The tasks of its links end by themselves then, and give back what was not settled.
    pub async fn run(mut self) {
        if let Err(error) = self.converse().await {
            tracing::debug!(%error, "an AMQP connection ended");
        }
        self.queue_output();
        self.socket.end().await;
    }

    async fn converse(&mut self) -> Result<(), Ended> {
        loop {
            while let Some(event) = self.server.next_event() {
                self.take(event)?;
            }
            self.pump();
            if self.is_closed {
                return Ok(());
            }
            self.step().await?;
        }
    }

    /// One read, one write that ended, one report of a link, or one timer.
    async fn step(&mut self) -> Result<(), Ended> {
        self.queue_output();
        let deadline =
            self.transactions.deadline().map_or(self.server.deadline(), |at| at.min(self.server.deadline()));
        let deadline = self.started + Duration::from_millis(deadline.0);
        let deadline = if self.has_opened { deadline } else { deadline.min(self.started + LOGIN_WITHIN) };
        let now = self.now();
        let wants_input = self.server.wants_input();
        let (socket, server) = (&mut self.socket, &mut self.server);
        let receive = |bytes: &[u8]| server.receive(bytes, now).map_err(Ended::Amqp);
        let report = tokio::select! {
            done = socket.go_on(wants_input, receive) => return done,
            report = self.reports.1.recv() => report,
            () = tokio::time::sleep_until(deadline.into()) => None,
        };
        match report {
            Some(report) => self.hear(report),
            None if !self.has_opened && self.started.elapsed() >= LOGIN_WITHIN => Err(Ended::Late),
            None => {
                self.expire_transactions();
                Ok(self.server.tick(self.now())?)
            }
        }
    }

    fn take(&mut self, event: ServerEvent) -> Result<(), Ended> {
        match event {
            ServerEvent::Login(step) => self.take_login(step)?,
            ServerEvent::Opened { container_id } => {
                tracing::debug!(container_id, "an AMQP client");
                self.has_opened = true;
            }
            ServerEvent::Attach(link, attach) => self.attach(link, *attach),
            ServerEvent::Message(arrived) => self.take_message(arrived),
            ServerEvent::Credit(link) => self.take_credit(link),
            ServerEvent::Outcome { link, id, outcome, is_settled } => {
                self.take_outcome(link, id, outcome, is_settled);
            }
            ServerEvent::Detached(link) => self.forget_link(link),
            ServerEvent::Closed => self.is_closed = true,
        }
        Ok(())
    }

    fn take_login(&mut self, step: LoginStep) -> Result<(), Ended> {
        let claim = match &step {
            LoginStep::Init { mechanism, response } => {
                login::claim(&self.logins, mechanism, response.as_ref())
            }
            // No mechanism here has a second step.
            LoginStep::Response(_) => None,
        };
        let Some(claim) = claim else {
            let now = self.now();
            return Ok(self.server.end_login(login::WRONG, now)?);
        };
        let (logins, reports) = (self.logins.clone(), self.reports.0.clone());
        spawn_local(async move {
            let judged = logins.check(claim).await;
            // The connection may be gone.
            let _ = reports.send(FromLink::Login(judged.map(Box::new).map_err(login::outcome))).await;
        });
        Ok(())
    }

    fn attach(&mut self, link: PeerLink, attach: Attach) {
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            let words = "too many links of this connection are still ending";
            return self.server.refuse(link, Condition::new(refusal::LIMIT, words));
        };
        let wanted = match open::judge(&attach) {
            Ok(wanted) => wanted,
            Err(why) => return self.server.refuse(link, why),
        };
        let receives = !attach.is_receiver;
        let (to, from_peer) = mpsc::channel(if receives { CREDIT as usize } else { UNSETTLED_MAX });
        let (demand, demanded) = watch::channel(Demand::default());
        let held = Held {
            to,
            demand,
            sent: 0,
            waiting: VecDeque::new(),
            is_drained: false,
            places: BTreeMap::new(),
            outstanding: 0,
            receives,
            is_coordinator: wanted == Wanted::Transact,
            topic: if let Wanted::Put(address) = &wanted { Some(address.topic.clone()) } else { None },
        };
        self.links.insert(link, held);
        let opening = Opening {
            link,
            kafka: self.kafka.clone().unwrap_or_else(|| self.logins.anonymous()),
            producers: self.producers.clone(),
            origin: self.origin,
            slots: self.slots.clone(),
            reports: self.reports.0.clone(),
            from_peer,
            demanded,
            outgoing: self.outgoing.clone(),
            // The peer asks for deliveries that are settled when they are sent.
            sends_settled: attach.snd_settle_mode == 1,
        };
        spawn_local(async move {
            open::serve(opening, wanted).await;
            drop(place);
        });
    }

    fn take_message(&mut self, arrived: Arrived) {
        let Some(held) = self.links.get_mut(&arrived.link) else {
            return self.server.release(arrived.payload.len());
        };
        held.outstanding += 1;
        match arrived.txn_id.clone() {
            _ if held.is_coordinator => self.take_control(arrived),
            Some(txn_id) => self.take_put(arrived, txn_id),
            None => held.tell(ToLink::Arrived(arrived)),
        }
    }

    fn take_credit(&mut self, link: PeerLink) {
        let (credit, drain) = (self.server.credit(link), self.server.wants_drain(link));
        if let Some(held) = self.links.get_mut(&link) {
            held.is_drained = false;
            let turn = held.demand.borrow().turn + 1;
            held.demand.send_replace(Demand { limit: held.sent + u64::from(credit), drain, turn });
        }
    }

    fn hear(&mut self, report: FromLink) -> Result<(), Ended> {
        match report {
            FromLink::Login(Ok(kafka)) => {
                self.kafka = Some(*kafka);
                let now = self.now();
                self.server.end_login(0, now)?;
            }
            FromLink::Login(Err(code)) => {
                let now = self.now();
                self.server.end_login(code, now)?;
            }
            FromLink::Ready(link, address) => {
                self.server.accept(link, address.clone());
                if let Some(held) = self.links.get_mut(&link).filter(|held| held.receives) {
                    held.topic = address.or(held.topic.take());
                    self.server.grant(link, CREDIT);
                } else {
                    self.take_credit(link);
                }
            }
            FromLink::Ended(link, why) => self.end_link(link, why),
            FromLink::Discharged(link, ended) => self.discharged(link, *ended),
            FromLink::Settled { link, id, outcome, bytes } => self.settle(link, id, outcome, bytes),
            FromLink::Deliver(link, deliver) => {
                if let Some(held) = self.links.get_mut(&link) {
                    held.waiting.push_back(deliver);
                }
            }
            FromLink::Drained(link) => {
                if let Some(held) = self.links.get_mut(&link) {
                    held.is_drained = true;
                }
            }
            FromLink::Concluded(id, outcome) => self.server.conclude(id, outcome),
        }
        Ok(())
    }

    fn settle(&mut self, link: PeerLink, id: DeliveryKey, outcome: Option<Outcome>, bytes: usize) {
        if let Some(outcome) = outcome.filter(|_| self.links.contains_key(&link)) {
            self.server.settle(id, outcome);
        }
        self.settled(link, bytes);
    }

    /// A delivery that came is done with.
    fn settled(&mut self, link: PeerLink, bytes: usize) {
        self.server.release(bytes);
        let Some(held) = self.links.get_mut(&link) else { return };
        held.outstanding = held.outstanding.saturating_sub(1);
        if self.server.credit(link) <= CREDIT / 2 {
            self.server.grant(link, CREDIT - held.outstanding.min(CREDIT));
        }
    }

    /// Sends what waits, as far as credit, windows and the socket go.
    fn pump(&mut self) {
        for (link, held) in &mut self.links {
            while self.socket.queued() + self.server.output_len() < WRITE_BYTES_MAX
                && self.server.can_send(*link)
                && let Some(deliver) = held.waiting.pop_front()
            {
                let id = self.server.send(*link, deliver.payload, deliver.is_settled);
                held.sent += 1;
                if let Some(id) = id.filter(|_| !deliver.is_settled) {
                    held.places.insert(id, deliver.place);
                }
            }
            if held.is_drained && held.waiting.is_empty() {
                held.is_drained = false;
                self.server.drained(*link);
            }
        }
    }

    fn queue_output(&mut self) {
        let now = self.now();
        let out = self.server.take_output(now);
        self.socket.queue(&out);
    }

    fn now(&self) -> MonotonicMs {
        MonotonicMs(self.started.elapsed().as_millis() as u64)
    }
}

impl Held {
    fn tell(&self, word: ToLink) {
        // The channel holds as much as credit and unsettled deliveries allow. A task that has ended says so itself.
        if let Err(mpsc::error::TrySendError::Full(_)) = self.to.try_send(word) {
            tracing::warn!(
                "a link of an AMQP client had more deliveries than its bound: one outcome was dropped"
            );
        }
    }
}
